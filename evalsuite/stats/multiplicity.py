"""Many rows, one level: adjusted p-values that may be compared with it directly, in the order of the rows.

* `holm`, `weighted_holm`, `discrete_holm` bound the probability of a single false alarm among all rows, whatever the
  dependence between them (Holm 1979).
* `benjamini_hochberg` bounds the expected share of false alarms among the alarms (1995): for lists of warnings.
* `partial_conjunction` bounds from below the number of rows in which there is a difference at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.stats._checks import as_vector, check_alpha


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Return Holm's adjusted p-values: with p sorted, max over l <= k of min(1, (m - l + 1) p_(l)).

    Args:
        p: [m] p-values; m may be 0.

    Returns:
        [m], in the order of p.

    Raises:
        ValueError: Not one dimension, or a value outside [0, 1].
    """
    values = _p_values(p)
    return weighted_holm(values, np.ones(values.size))


def weighted_holm(p: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """Return Holm's adjusted p-values when row j is allotted the share w_j / sum w of the level.

    With rows in ascending order of p / w: max over l <= k of min(1, p_(l) / w_(l) * sum over j >= l of w_(j)).

    Args:
        p: [m] p-values; m may be 0.
        weights: [m] positive; only their ratios matter.

    Returns:
        [m], in the order of p.

    Raises:
        ValueError: p as for `holm`, another number of weights, or one that is not positive and finite.
    """
    values = _p_values(p)
    allotted = _weights(weights, values.size)
    order = np.argsort(values / allotted, kind="stable")  # [m]
    ahead = allotted[order]  # [m]
    remaining = np.array([math.fsum(ahead[rank:].tolist()) for rank in range(values.size)])
    steps = np.minimum(1.0, values[order] * (remaining / ahead))
    return _in_row_order(np.maximum.accumulate(steps), order)


def discrete_holm(
    p: ArrayLike, attainable: Sequence[Callable[[float], float]], weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return Holm's adjusted p-values when each row is charged only what its p-value can attain.

    F_j(c) being the largest attainable p-value of row j that is <= c, and p sorted: max over l <= k of
    min(1, sum over j >= l of F_(j)(p_(l))). F_j(c) bounds the probability that row j falls to c, so the union bound
    over the remaining rows holds under any dependence, and F_j(c) <= c keeps it from ever exceeding Holm's (in the
    line of Tarone 1990, Westfall and Wolfinger 1997, Hommel and Krummenauer 1998). With weights, rows are sorted by
    p / w and row j is charged F_j(w_j p_(l) / w_(l)), as in `weighted_holm`.

    Args:
        p: [m] p-values; m may be 0.
        attainable: m functions, F_j of row j (see `attainable_map`; the identity for a continuous row). Values are
            taken as at most their argument.
        weights: [m] positive, or None for equal ones.

    Returns:
        [m], in the order of p.

    Raises:
        ValueError: p as for `holm`, another number of functions or weights, or a weight that is not positive.
    """
    values = _p_values(p)
    m = values.size
    if len(attainable) != m:
        raise ValueError(f"got {m} p-values and {len(attainable)} attainable functions, expected one a row")
    allotted = np.ones(m) if weights is None else _weights(weights, m)
    order = np.argsort(values / allotted, kind="stable")  # [m]
    adjusted = np.ones(m)  # [m], ascending
    reached = 0.0
    for rank, row in enumerate(order.tolist()):
        shares = (values[row] * (allotted / allotted[row])).tolist()  # [m], exactly p for the row itself
        charges = (min(attainable[j](min(1.0, shares[j])), shares[j]) for j in order[rank:].tolist())
        reached = max(reached, math.fsum(charges))
        if reached >= 1.0:
            break  # the rest is 1 too
        adjusted[rank] = reached
    return _in_row_order(adjusted, order)


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """Return the q-values of Benjamini and Hochberg (1995): with p sorted, min over l >= k of min(1, m p_(l) / l).

    Valid for independent or positively dependent rows.

    Args:
        p: [m] p-values; m may be 0.

    Returns:
        [m], in the order of p.

    Raises:
        ValueError: as for `holm`.
    """
    values = _p_values(p)
    m = values.size
    order = np.argsort(values, kind="stable")  # [m]
    steps = np.minimum(1.0, values[order] * (m / np.arange(1, m + 1)))
    return _in_row_order(np.minimum.accumulate(steps[::-1])[::-1], order)


def partial_conjunction(p: ArrayLike, alpha: float = 0.05) -> tuple[int, NDArray[np.float64]]:
    """Return in how many rows at least there is a difference, and the p-value of each such claim.

    The p-value of "at least u of N" is max over v <= u of (N - v + 1) p_(v), the Bonferroni form of Benjamini and
    Heller (2008) as used by Dror et al. (2017), valid under any dependence. The number of u with a p-value <= alpha is
    a lower bound with confidence 1 - alpha. It does not say which rows: `holm` does.

    Args:
        p: [N] p-values; N may be 0.
        alpha: Probability that the bound is too high.

    Returns:
        (the bound, [N] p-values of u = 1..N, at most 1).

    Raises:
        ValueError: p as for `holm`, or alpha outside (0, 1).
    """
    alpha = check_alpha(alpha)
    claims = np.sort(holm(p))
    return int(np.count_nonzero(claims <= alpha)), claims


def _p_values(p: ArrayLike) -> NDArray[np.float64]:
    """Read p-values [m], refusing what is no probability."""
    values = as_vector(p, "p", least=0)
    if (wrong := (values < 0.0) | (values > 1.0)).any():
        at = int(wrong.argmax())
        raise ValueError(f"p[{at}] is {values[at]}, expected 0 <= p <= 1; pass one p-value a row")
    return values


def _weights(weights: ArrayLike, m: int) -> NDArray[np.float64]:
    """Read m positive weights."""
    values = as_vector(weights, "weights", least=0)
    if values.size != m:
        raise ValueError(f"got {m} p-values and {values.size} weights, expected one a row")
    if (wrong := values <= 0.0).any():
        at = int(wrong.argmax())
        raise ValueError(f"weights[{at}] is {values[at]}, expected > 0; leave a row out that should not gate")
    return values


def _in_row_order(ranked: NDArray[np.float64], order: NDArray[np.intp]) -> NDArray[np.float64]:
    """Put values [m] of sorted rows back to where the rows were."""
    placed = np.empty(ranked.size)
    placed[order] = ranked
    return placed

"""Spearman's rank correlation (1904): Pearson's correlation of the ranks, where tied values share their mean rank."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.stats._checks import as_vector


def average_ranks(x: ArrayLike) -> NDArray[np.float64]:
    """Rank values from 1; tied values get the mean of the ranks they take up.

    Args:
        x: [n] finite values.

    Returns:
        [n] float64, multiples of 1/2.

    Raises:
        ValueError: x is empty, not one-dimensional or not finite.
    """
    # Four lines instead of scipy.stats.rankdata, whose import costs half a second in every worker.
    values = as_vector(x, "x")
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)  # [distinct], the highest rank of each tied group
    ranks: NDArray[np.float64] = (ends - (counts - 1) / 2.0)[group]  # [n]
    return ranks


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return Spearman's rank correlation of pairs.

    Args:
        x: [n] finite values, n >= 2, not all equal.
        y: [n] finite values of the same units, not all equal.

    Returns:
        From -1 to 1.

    Raises:
        ValueError: The lengths differ, there are fewer than 2 pairs, an input is constant, not one-dimensional or
            not finite.
    """
    first, second = as_vector(x, "x", least=2), as_vector(y, "y", least=2)
    if first.size != second.size:
        raise ValueError(f"x has {first.size} values and y has {second.size}, expected pairs; align both by unit")
    for name, values in (("x", first), ("y", second)):
        if np.all(values == values[0]):
            raise ValueError(
                f"{name} has the same value {float(values[0])!r} {values.size} times, expected at least two different "
                f"ones; a constant has no rank correlation, so check what produced it"
            )
    middle = (first.size + 1) / 2.0  # the mean rank, with or without ties
    rank_x, rank_y = average_ranks(first) - middle, average_ranks(second) - middle
    covariance = float(rank_x @ rank_y)
    rho = covariance / math.sqrt(float(rank_x @ rank_x) * float(rank_y @ rank_y))
    return min(1.0, max(-1.0, rho))

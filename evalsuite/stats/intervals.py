"""Confidence intervals of one row, and the quantiles of the normal and t distributions that they use.

Values are plain float64 numbers; alpha is the total miss rate of both sides, 0.05 for a 95 % interval.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evalsuite.stats._checks import as_vector, check_alpha, check_count

# Residuals of a ratio below this share of their terms are rounding: two sums, a division and a product.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


def normal_cdf(z: float) -> float:
    """Return the standard normal distribution function at z: erfc(-z / sqrt 2) / 2."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def normal_ppf(p: float) -> float:
    """Return the standard normal quantile of p.

    The upper half is the mirror image of the lower one; p = 0.5 gives exactly 0.

    Raises:
        ValueError: p outside (0, 1), or NaN.
    """
    _check_p(p)
    if p > 0.5:
        return -normal_ppf(1.0 - p)
    return 0.0 if p == 0.5 else float(special.ndtri(p))


def t_cdf(t: float, df: int) -> float:
    """Return Student's distribution function at t with df degrees of freedom.

    Raises:
        ValueError: df is not an integer >= 1.
    """
    return float(special.stdtr(check_count(df, "df", 1), t))


def t_ppf(p: float, df: int) -> float:
    """Return Student's quantile of p with df degrees of freedom.

    Raises:
        ValueError: p outside (0, 1), or df not an integer >= 1.
    """
    df = check_count(df, "df", 1)
    _check_p(p)
    if p > 0.5:
        return -t_ppf(1.0 - p, df)
    return 0.0 if p == 0.5 else float(special.stdtrit(df, p))


def standard_error(x: ArrayLike) -> float:
    """Return the standard error of the mean: sqrt(sum (x - mean)^2 / (n - 1)) / sqrt(n).

    Args:
        x: [n] finite values, n >= 2. Equal values give exactly 0.

    Raises:
        ValueError: Not one dimension, n < 2, or a value that is not finite.
    """
    return _mean_and_error(as_vector(x, "x", least=2))[1]


def mean_ci(x: ArrayLike, alpha: float = 0.05) -> tuple[float, float, float]:
    """Return the mean and its Student t interval.

    mean -+ t_(n-1, 1-alpha/2) * standard error; independent values are assumed (see `cluster_ratio_ci` otherwise).

    Args:
        x: [n] finite values, n >= 2.
        alpha: Miss rate of both sides together.

    Returns:
        (mean, lower end, upper end), in the unit of x.

    Raises:
        ValueError: x as for `standard_error`, or alpha outside (0, 1).
    """
    alpha = check_alpha(alpha)
    values = as_vector(x, "x", least=2)
    mean, error = _mean_and_error(values)
    half = t_ppf(1.0 - alpha / 2.0, values.size - 1) * error
    return mean, mean - half, mean + half


def wilson_interval(k: int, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return Wilson's score interval (1927) of a share of k in n.

    With z the normal quantile and q = k / n: centre (q + z^2/2n) / (1 + z^2/n), half width
    z sqrt(q(1-q)/n + z^2/4n^2) / (1 + z^2/n). The lower end is exactly 0 for k = 0, the upper exactly 1 for k = n.

    Args:
        k: Successes, 0 <= k <= n.
        n: Trials, n >= 1.
        alpha: Miss rate of both sides together.

    Returns:
        (lower end, upper end), within [0, 1].

    Raises:
        ValueError: k or n no integer (booleans included) or out of range, or alpha outside (0, 1).
    """
    alpha = check_alpha(alpha)
    n = check_count(n, "n", 1)
    k = check_count(k, "k", 0)
    if k > n:
        raise ValueError(f"k is {k} and n is {n}, expected k <= n; k counts the successes among the n trials")
    return _wilson(k / n, n, alpha)


def clustered_wilson_interval(successes: ArrayLike, trials: ArrayLike, alpha: float = 0.05) -> tuple[float, float]:
    """Return Wilson's interval of a share when trials of one cluster move together (the tokens of a sentence).

    The trials count as fewer independent ones, Korn and Graubard's effective sample size (1998). With k_c of n_c in
    cluster c, G clusters, n = sum n_c and q = sum k_c / n: var = G / (G - 1) * sum (k_c - q n_c)^2 / n^2, the
    cluster-robust variance of Liang and Zeger (1986) with the CR1 factor as in `cluster_ratio_ci`;
    deff = var / (q (1 - q) / n), never below 1, since a chance pattern should not narrow the interval;
    n_eff = n / deff * (t_(n-1) / t_(G-1))^2, t the Student quantile, since G clusters tell the variance no better
    than that. Clusters of one trial give n - 1, so nearly `wilson_interval`; where all trials went alike no variance
    can be seen, and the plain interval comes back.

    Args:
        successes: [G] whole numbers, k_c.
        trials: [G] whole numbers, n_c; a cluster without a trial is left out of G.
        alpha: Miss rate of both sides together.

    Returns:
        (lower end, upper end), within [0, 1].

    Raises:
        ValueError: Not whole numbers with 0 <= k_c <= n_c, lengths differ, fewer than 2 clusters with a trial, or
            alpha outside (0, 1).
    """
    alpha = check_alpha(alpha)
    right, tried = as_vector(successes, "successes"), as_vector(trials, "trials")
    if right.size != tried.size:
        raise ValueError(f"got {right.size} successes and {tried.size} trials, expected one of each a cluster")
    if (wrong := (right < 0.0) | (right > tried) | (right % 1.0 != 0.0) | (tried % 1.0 != 0.0)).any():
        at = int(wrong.argmax())
        raise ValueError(
            f"cluster {at} has {right[at]} successes in {tried[at]} trials, expected whole numbers, 0 <= successes <= "
            f"trials; count right answers and answers"
        )
    right, tried = right[tried > 0.0], tried[tried > 0.0]
    count = tried.size
    if count < 2:
        raise ValueError(
            f"found {count} cluster{'' if count == 1 else 's'} with a trial, expected at least 2 (one alone has no "
            f"spread); score more units"
        )
    n = int(tried.sum())
    share = float(right.sum()) / n
    if share in (0.0, 1.0):
        return _wilson(share, n, alpha)
    residual = right - share * tried  # [G]
    variance = count / (count - 1) * math.fsum((residual * residual).tolist()) / n**2
    deff = max(1.0, variance * n / (share * (1.0 - share)))
    fewer = t_ppf(1.0 - alpha / 2.0, n - 1) / t_ppf(1.0 - alpha / 2.0, count - 1)
    return _wilson(share, n / deff * fewer * fewer, alpha)


def fisher_z_interval(rho: float, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return Fisher's interval (1921) of a correlation.

    tanh(atanh(rho) -+ z / sqrt(n - 3)), z the normal quantile; fewer than 5 pairs use a standard error of 1, and rho
    is kept 1e-12 away from -1 and 1.

    Args:
        rho: Correlation, within [-1, 1].
        n: Pairs, n >= 2.
        alpha: Miss rate of both sides together.

    Returns:
        (lower end, upper end).

    Raises:
        ValueError: rho outside [-1, 1] or NaN, n no integer >= 2, or alpha outside (0, 1).
    """
    return _through_atanh(rho, n, alpha, 1.0)


def bonett_wright_interval(rho: float, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return the interval of a rank correlation after Bonett and Wright (2000).

    Fisher's with the variance (1 + rho^2 / 2) / (n - 3), which a Spearman correlation has: with 1 / (n - 3) the
    interval of a strong one is too narrow.

    Args:
        rho: Spearman's correlation, within [-1, 1].
        n: Pairs, n >= 2.
        alpha: Miss rate of both sides together.

    Returns:
        (lower end, upper end).

    Raises:
        ValueError: as for `fisher_z_interval`.
    """
    return _through_atanh(rho, n, alpha, 1.0 + rho * rho / 2.0)


def _through_atanh(rho: float, n: int, alpha: float, variance: float) -> tuple[float, float]:
    """tanh(atanh(rho) -+ z sqrt(variance / (n - 3))), checked and kept finite as `fisher_z_interval` says."""
    alpha = check_alpha(alpha)
    n = check_count(n, "n", 2)
    if not abs(rho) <= 1.0 + 1e-9:
        raise ValueError(f"rho is {rho!r}, expected a correlation from -1 to 1; pass what spearman() returned")
    bound = 1.0 - 1e-12
    centre = math.atanh(min(bound, max(-bound, rho)))
    half = normal_ppf(1.0 - alpha / 2.0) * math.sqrt(variance / max(n - 3, 1))
    return math.tanh(centre - half), math.tanh(centre + half)


def cluster_ratio_ci(
    sums: ArrayLike, weights: ArrayLike, clusters: Sequence[Hashable] | None = None, alpha: float = 0.05
) -> tuple[float, float, float]:
    """Return a ratio of sums and its interval when units of one cluster move together.

    With L_c and W_c the sums within cluster c and G clusters: mean = sum L_c / sum W_c,
    SE = sqrt(G / (G - 1) * sum (L_c - mean W_c)^2) / sum W_c, interval mean -+ t_(G-1, 1-alpha/2) * SE: the
    cluster-robust variance of Liang and Zeger (1986) with the CR1 factor. For a language model, sums are the NLLs of
    a document in nats and weights its tokens (or bytes). With weights 1 and no clusters this is `mean_ci`.

    Args:
        sums: [n] finite values.
        weights: [n] finite values >= 0, not all 0.
        clusters: [n] cluster ids; None makes each unit its own cluster. A cluster whose sum and weight are both 0
            (a document without a scored token) tells nothing and is left out of G.
        alpha: Miss rate of both sides together.

    Returns:
        (mean, lower end, upper end), in units of sums per weight. Equal ratios give three equal numbers.

    Raises:
        ValueError: Lengths differ, a value is not finite, a weight is negative, all weights are 0, fewer than 2
            clusters, or alpha outside (0, 1).
    """
    alpha = check_alpha(alpha)
    sum_units, weight_units = as_vector(sums, "sums"), as_vector(weights, "weights")
    if sum_units.size != weight_units.size or (clusters is not None and len(clusters) != sum_units.size):
        given = "" if clusters is None else f" and {len(clusters)} clusters"
        raise ValueError(
            f"got {sum_units.size} sums, {weight_units.size} weights{given}, expected one of each a unit; "
            f"check how the lists were built"
        )
    if weight_units.min() < 0.0 or not weight_units.any():
        raise ValueError(
            f"weights run from {weight_units.min()} to {weight_units.max()}, expected >= 0 and not all 0; "
            f"pass counts of tokens, bytes or items"
        )
    total, weight = sum_units, weight_units
    if clusters is not None:
        total, weight = _add_up(sum_units, weight_units, clusters)  # [G], [G]
    used = (total != 0.0) | (weight != 0.0)
    total, weight = total[used], weight[used]
    count = total.size
    if count < 2:
        raise ValueError(
            f"found {count} cluster{'' if count == 1 else 's'} with a weight, expected at least 2 (one alone has no "
            f"spread); score more documents, or use mean_ci on the items and say that they are one text"
        )
    weight_sum = math.fsum(weight.tolist())
    mean = math.fsum(total.tolist()) / weight_sum
    expected = mean * weight
    residual = total - expected  # [G]
    if np.all(np.abs(residual) <= _ROUNDING * np.maximum(np.abs(total), np.abs(expected))):
        return mean, mean, mean
    error = math.sqrt(count / (count - 1) * math.fsum((residual * residual).tolist())) / weight_sum
    half = t_ppf(1.0 - alpha / 2.0, count - 1) * error
    return mean, mean - half, mean + half


def _check_p(p: float) -> None:
    """Refuse a probability that has no finite quantile."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"p is {p!r}, expected 0 < p < 1; the quantiles of 0 and 1 are infinite")


def _wilson(share: float, n: float, alpha: float) -> tuple[float, float]:
    """Wilson's interval of a share seen in n trials, which need not be a whole number."""
    z = normal_ppf(1.0 - alpha / 2.0)
    widening = 1.0 + z * z / n
    centre = (share + z * z / (2.0 * n)) / widening
    half = z * math.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n)) / widening
    lower = 0.0 if share == 0.0 else max(0.0, centre - half)
    upper = 1.0 if share == 1.0 else min(1.0, centre + half)
    return lower, upper


def _mean_and_error(values: NDArray[np.float64]) -> tuple[float, float]:
    """Compute the mean and standard error of [n], with exact sums."""
    first = float(values[0])
    if np.all(values == first):
        return first, 0.0  # n * c / n need not be c in floating point
    n = values.size
    mean = math.fsum(values.tolist()) / n
    deviations = values - mean  # [n]
    return mean, math.sqrt(math.fsum((deviations * deviations).tolist()) / (n - 1)) / math.sqrt(n)


def _add_up(
    sums: NDArray[np.float64], weights: NDArray[np.float64], clusters: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add units [n] up within clusters [G], in order of first appearance."""
    sums_of: dict[Hashable, list[float]] = {}
    weights_of: dict[Hashable, list[float]] = {}
    for cluster, value, weight in zip(clusters, sums.tolist(), weights.tolist(), strict=True):
        sums_of.setdefault(cluster, []).append(value)
        weights_of.setdefault(cluster, []).append(weight)
    return (
        np.array([math.fsum(values) for values in sums_of.values()]),
        np.array([math.fsum(values) for values in weights_of.values()]),
    )

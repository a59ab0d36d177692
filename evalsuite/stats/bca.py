"""The BCa bootstrap interval of a bounded mean (Efron 1987), with what replaces it where it does not hold.

With B resampled means, z0 the normal quantile of the share of them below the mean (ties count half) and the
acceleration a = sum (x - mean)^3 / (6 (sum (x - mean)^2)^1.5), the ends are the quantiles of the resampled means at
Phi(z0 + (z0 -+ z) / (1 - a (z0 -+ z))), z = z_(1-alpha/2).

| data | interval |
|---|---|
| all scores equal | see `equal_scores_interval`: a resample shows no spread |
| fewer than 20 scores, or z0 or a without a value | Student t |
| other | BCa |
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.stats._checks import as_vector, check_alpha, check_count
from evalsuite.stats.bootstrap import quantile
from evalsuite.stats.intervals import mean_ci, normal_cdf, normal_ppf
from evalsuite.stats.pcg32 import PCG32

_FEWEST = 20
# Draws held at a time, 8 bytes each in a few temporaries. A single resample may be longer.
_BLOCK = 1 << 18


def bca_interval(
    x: ArrayLike, rng: PCG32, n_boot: int = 9999, alpha: float = 0.05, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[float, float, float]:
    """Return the mean of bounded scores and its interval, clipped to the bounds.

    Args:
        x: [n] scores within the bounds, n >= 1.
        rng: Advanced by n_boot * n uniforms where BCa applies, not at all elsewhere.
        n_boot: Resamples, >= 1.
        alpha: Miss rate of both sides together.
        bounds: Smallest and largest possible score.

    Returns:
        (mean, lower end, upper end).

    Raises:
        ValueError: x empty, not one-dimensional, not finite or out of bounds, n_boot no integer >= 1, or alpha outside
            (0, 1).
    """
    alpha = check_alpha(alpha)
    n_boot = check_count(n_boot, "n_boot", 1)
    values = as_vector(x, "x")
    least, most = bounds
    if values.min() < least or values.max() > most:
        raise ValueError(
            f"x runs from {values.min()} to {values.max()}, expected {least} to {most}; pass the bounds of the score"
        )
    if np.all(values == values[0]):
        return equal_scores_interval(float(values[0]), values.size, alpha, bounds)
    mean, lower, upper = mean_ci(values, alpha)
    if values.size >= _FEWEST:
        thetas = _resampled_means(values, n_boot, rng)
        levels = _levels(values, mean, thetas, alpha)
        if levels is not None:
            lower, upper = (quantile(thetas, level) for level in levels)
    return mean, max(lower, least), min(upper, most)


def equal_scores_interval(
    score: float, n: int, alpha: float = 0.05, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[float, float, float]:
    """Return the interval of a mean after n equal scores, the rule of three.

    At confidence 1 - alpha/2 a share of at most r = 1 - (alpha/2)^(1/n) of scores differs, as none of n did, and these
    could at worst be at a bound: from score - r (score - least) to score + r (most - score). For a score at a bound of
    [0, 1] this is the interval of Clopper and Pearson.

    Args:
        score: The common value, within the bounds.
        n: How many, >= 1.
        alpha: Miss rate of both sides together.
        bounds: Smallest and largest possible score.

    Returns:
        (score, lower end, upper end).

    Raises:
        ValueError: n no integer >= 1, or alpha outside (0, 1).
    """
    unseen = -math.expm1(math.log(check_alpha(alpha) / 2.0) / check_count(n, "n", 1))
    least, most = bounds
    return score, score - unseen * (score - least), score + unseen * (most - score)


def _resampled_means(values: NDArray[np.float64], n_boot: int, rng: PCG32) -> NDArray[np.float64]:
    """Return the means [n_boot] of resamples of [n], drawn in the order that `bootstrap_ci` draws in."""
    n = values.size
    rows = max(1, _BLOCK // n)
    means = np.empty(n_boot)
    for start in range(0, n_boot, rows):
        stop = min(start + rows, n_boot)
        indices = np.minimum((rng.uniforms((stop - start) * n) * n).astype(np.intp), n - 1)  # u * n can round up to n
        means[start:stop] = values[indices].reshape(stop - start, n).mean(axis=1)
    return means


def _levels(
    values: NDArray[np.float64], mean: float, thetas: NDArray[np.float64], alpha: float
) -> tuple[float, float] | None:
    """Return which quantiles of the resampled means are the ends, or None where they are undefined."""
    share = (np.count_nonzero(thetas < mean) + np.count_nonzero(thetas <= mean)) / (2.0 * thetas.size)
    if not 0.0 < share < 1.0:
        return None
    z0 = normal_ppf(share)
    deviations = (values - mean) / np.abs(values - mean).max()  # [n], scaled: cubes of small numbers would vanish
    acceleration = float((deviations**3).sum()) / (6.0 * float((deviations**2).sum()) ** 1.5)
    z = normal_ppf(1.0 - alpha / 2.0)
    shrunk = [1.0 - acceleration * (z0 + side) for side in (-z, z)]
    if min(shrunk) <= 0.0:
        return None
    lower, upper = (normal_cdf(z0 + (z0 + side) / by) for side, by in zip((-z, z), shrunk, strict=True))
    return lower, upper

"""Percentile bootstrap of any statistic, with draws that are fixed to the last one.

Resample b takes n indices min(int(u * n), n - 1), one uniform each and in order; the interval runs between the
alpha/2 and 1 - alpha/2 quantiles of the statistic over the resamples (Efron 1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.stats._checks import as_array, as_vector, check_alpha, check_count
from evalsuite.stats.pcg32 import PCG32

# Draws held at a time, 8 bytes each in a few temporaries. A single resample may be longer.
_BLOCK = 1 << 18


def quantile(x: ArrayLike, q: float) -> float:
    """Return the q quantile of x by linear interpolation (type 7 of Hyndman and Fan 1996).

    Between the sorted values number floor(h) and floor(h) + 1, h = (n - 1) q, counted from 0.

    Args:
        x: [n] values in any order, n >= 1; infinities are allowed.
        q: From 0 to 1.

    Raises:
        ValueError: x is empty, has not one dimension or holds NaN, or q is outside [0, 1].
    """
    values = as_array(x, "x")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"x has shape {values.shape}, expected one dimension and at least one value; pass the values")
    missing = int(np.isnan(values).sum())
    if missing:
        raise ValueError(f"x holds {missing} NaN of {values.size} values, expected none; drop or score them before")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"q is {q!r}, expected 0 <= q <= 1; the 97.5 % point is q=0.975")
    height = (values.size - 1) * q
    below = min(math.floor(height), max(values.size - 2, 0))
    above = min(below + 1, values.size - 1)
    ordered = np.partition(values, (below, above))
    low, high = float(ordered[below]), float(ordered[above])
    share = height - below
    # The ends are returned as they are: a difference of infinities would be NaN.
    if low == high or share == 0.0 or math.isinf(low):
        return low
    return high if share == 1.0 else low + share * (high - low)


def bootstrap_ci(
    x: ArrayLike, stat: Callable[[NDArray[np.float64]], float], n_boot: int, alpha: float, rng: PCG32
) -> tuple[float, float, float]:
    """Return a statistic and its percentile bootstrap interval.

    Args:
        x: [n] finite values, n >= 1.
        stat: Maps a float64 array [n] to a number; `numpy.mean` takes a faster way to the same bits.
        n_boot: Resamples, >= 1.
        alpha: Miss rate of both sides together.
        rng: Advanced by exactly n_boot * n uniforms.

    Returns:
        (stat of x, alpha/2 quantile, 1 - alpha/2 quantile over the resamples).

    Raises:
        ValueError: x is empty, not one-dimensional or not finite, n_boot is no integer >= 1, alpha is outside (0, 1),
            or stat gave NaN for a resample.
    """
    values = as_vector(x, "x")
    n_boot = check_count(n_boot, "n_boot", 1)
    alpha = check_alpha(alpha)
    n = values.size
    rows = max(1, _BLOCK // n)
    point = float(stat(values.copy()))  # a copy: a statistic may sort in place
    thetas = np.empty(n_boot, dtype=np.float64)  # [n_boot]
    for start in range(0, n_boot, rows):
        stop = min(start + rows, n_boot)
        scaled = rng.uniforms((stop - start) * n)  # [rows * n]
        scaled *= n
        indices = scaled.astype(np.intp)
        np.minimum(indices, n - 1, out=indices)  # u * n can round up to n
        sample = values[indices].reshape(stop - start, n)
        if stat is np.mean:
            thetas[start:stop] = sample.mean(axis=1)  # rows are contiguous: summed as each would be alone
        else:
            thetas[start:stop] = [float(stat(row)) for row in sample]
    undefined = int(np.isnan(thetas).sum())
    if undefined:
        raise ValueError(
            f"the statistic is NaN for {undefined} of {n_boot} resamples of {n} values, expected a number for each; "
            f"use a statistic that is defined when values repeat, or collect more values"
        )
    return point, quantile(thetas, alpha / 2.0), quantile(thetas, 1.0 - alpha / 2.0)

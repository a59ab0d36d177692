"""Sign-flip p-values for magnitudes that are multiples of one step: counts, ratings, 0/1 scores, means of repeats.

In units of the step let B be the sum of a random half of the integer magnitudes m_i. The signed sum reaches the
observed one exactly when B reaches the sum P of the magnitudes that are positive in the data, so p = P(B >= P).

* Few and small magnitudes: all 2^k halves are counted with integers (`count_tail`), and p is correctly rounded.
* Otherwise the distribution of B is moved by exponential tilting until P is its mean, and read off its characteristic
  function (`fourier_tail`). Tails of any size keep about 12 digits, as nothing there is small compared to the peak.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evalsuite.stats._tilt import solve_tilt

# Reject a step when the magnitudes miss its multiples by more than this share of their sum (rounding of decimals).
_OFF_GRID = 1e-9
# The largest sum of magnitudes, in steps, that a step is looked for; beyond it data counts as continuous.
_FINEST = 10_000_000
# Work limits: bytes moved by the integer count, and cells (grid points times distinct magnitudes) of the transform.
_COUNT_BYTES = 1e8
_FOURIER_CELLS = 1e7
# Mass left outside the window of the transform: exp(-46) = 1e-20.
_LOG_OUTSIDE = 46.0


def find_step(distinct: NDArray[np.float64]) -> float | None:
    """Find the largest step that all values are multiples of, to within rounding, or None.

    Args:
        distinct: [d] positive values, ascending.
    """
    largest = float(distinct[-1])
    finest = float(distinct.sum()) / _FINEST
    noise = max(finest * 1e-3, largest * 1e-13)
    step = largest
    for value in distinct[::-1].tolist():
        larger, smaller = value, step
        if larger < smaller:
            larger, smaller = smaller, larger
        while smaller > noise:  # Euclid's algorithm, where a remainder of about 0 is 0
            larger, smaller = smaller, abs(math.remainder(larger, smaller))
        step = larger
        if step < finest:
            return None
    return step


def lattice_tail(magnitudes: NDArray[np.float64], positive: NDArray[np.bool_]) -> float | None:
    """Compute the sign-flip p-value on a lattice, or None when the data lie on none or it is too fine.

    Args:
        magnitudes: [k] positive and finite.
        positive: [k] whether the difference is positive.

    Returns:
        P(X >= S) including ties.
    """
    distinct, member = np.unique(magnitudes / magnitudes.max(), return_inverse=True)  # [d], [k]
    step = find_step(distinct)
    if step is None:
        return None
    steps = np.rint(distinct / step)  # [d], integers as float64
    step = float(distinct.sum() / steps.sum())
    counts = np.bincount(member, minlength=distinct.size)  # [d]
    hits = np.bincount(member[positive], minlength=distinct.size)  # [d]
    if float(counts @ np.abs(distinct - steps * step)) > _OFF_GRID * float(counts @ distinct):
        return None
    sizes, merged = np.unique(steps.astype(np.int64), return_inverse=True)  # values that rounding had parted
    count = np.bincount(merged, weights=counts).astype(np.int64)
    reached = int(hits @ steps.astype(np.int64))
    return integer_tail(sizes, count, reached)


def integer_tail(sizes: NDArray[np.int64], counts: NDArray[np.int64], reached: int) -> float | None:
    """Compute P(B >= reached), or None when both methods would take too long.

    Args:
        sizes: [d] distinct positive integers.
        counts: [d] how often each occurs.
        reached: Sum over the positive differences.
    """
    k, total = int(counts.sum()), int(counts @ sizes)
    if float(k) * k * total / 8.0 <= _COUNT_BYTES:
        return count_tail(np.repeat(sizes, counts).tolist(), reached)
    if 2 * reached > total:
        return fourier_tail(sizes, counts, reached)
    other = fourier_tail(sizes, counts, total - reached + 1)  # P(B < reached), as B is symmetric
    return None if other is None else 1.0 - other


def count_tail(sizes: list[int], reached: int) -> float:
    """Count the halves of k integers that sum to at least `reached`, divided by 2^k and correctly rounded."""
    # One long integer holds the number of halves of each sum, `width` bits a sum; adding an integer to the choice
    # is a shift and an addition.
    k = len(sizes)
    width = k + 1
    packed = 1
    for size in sizes:
        packed += packed << (size * width)
    tail = packed >> (reached * width)
    return int(tail % ((1 << width) - 1)) / (1 << k)  # 2^width = 1 mod 2^width - 1, so this adds the fields up


def fourier_tail(sizes: NDArray[np.int64], counts: NDArray[np.int64], reached: int) -> float | None:
    """Compute P(B >= reached) for reached above half of the sum, or None when it would take too long.

    Args:
        sizes: [d] distinct positive integers.
        counts: [d] how often each occurs.
        reached: Above half of the sum of all, at most the sum.
    """
    total = int(counts @ sizes)
    if reached == total:
        return math.ldexp(1.0, -int(counts.sum()))
    squares = float(counts @ (sizes.astype(np.float64) ** 2))
    reach = min(math.ceil(math.sqrt(_LOG_OUTSIDE / 2.0 * squares)), total)  # Hoeffding's bound
    points = 2 * reach + 2
    if points * sizes.size > _FOURIER_CELLS:
        return None
    scale = math.sqrt(squares)
    tilt = solve_tilt(sizes / scale, counts.astype(np.float64), (total - reached) / scale)
    t = tilt.t / scale
    frequency = np.arange(points // 2 + 1)  # [f]
    log_size = np.zeros(frequency.size)  # [f]
    phase = np.zeros(frequency.size)  # [f]
    for size, number in zip(sizes.tolist(), counts.tolist(), strict=True):
        decay = math.exp(-2.0 * t * size)
        chosen, left = 1.0 / (1.0 + decay), decay / (1.0 + decay)
        angle = (frequency * size % points) * (2.0 * math.pi / points)
        # log(left + chosen exp(i angle)); for the size, 1 - 4 left chosen sin^2 is accurate around angle 0.
        with np.errstate(divide="ignore"):
            removed = np.minimum(4.0 * left * chosen * np.sin(angle / 2.0) ** 2, 1.0)
            log_size += 0.5 * number * np.log1p(-removed)
        phase += number * np.arctan2(chosen * np.sin(angle), left + chosen * np.cos(angle))
    phase -= (frequency * (reached % points) % points) * (2.0 * math.pi / points)
    tilted = np.fft.irfft(np.exp(log_size - 1j * phase), points)  # [points], mass at reached + 0, 1, ..., then below
    weights = np.exp(-2.0 * t * np.arange(reach + 1))
    return min(1.0, math.exp(tilt.exponent) * float(tilted[: reach + 1] @ weights))

"""The p-values that a sign-flip test can attain for given magnitudes, which discrete Holm charges a row for.

With the magnitudes |d_i| fixed the p-value takes known values only, and P(p <= c) <= F(c) under the hypothesis, where
F(c) is the largest attainable value that is <= c, 0 if there is none.

| data | F |
|---|---|
| nothing changed | 1 for c >= 1, else 0 |
| multiples of a step (0/1, counts, ratings) | the tail of the distribution of the sum, which is computed as a whole |
| up to 40 other units | floor(c 2^k) / 2^k, as every p-value is a multiple of 2^-k |
| more | c, or 0 below 2^-k |

The last two rows may exceed the largest attainable value, never fall below it. Rounding is taken the same way: a value
within 1e-9 of c counts as <= c.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.stats._checks import as_vector
from evalsuite.stats._lattice import find_step

_FLOORED = 40
# The same p-value comes from several routines that agree to about 12 digits.
_SAME = 1.0 + 1e-9
# Error of a tail read off a transform. It is added, so that F stays a bound; it matters far below any level only.
_NOISE = 1e-13
# Reject a step when the magnitudes miss its multiples by more than this share of their sum: stricter than the ties of
# the test, so that sums which are equal here are equal there.
_OFF_GRID = 1e-10
# Work limits: the sum of magnitudes, in steps, for direct convolution, and the cells of the transform beyond.
_CONVOLVED = 4096
_CELLS = 2_000_000


def attainable_map(differences: ArrayLike) -> Callable[[float], float]:
    """Return F of a row: F(c) is the largest p-value <= c that `sign_flip_p` can attain for these magnitudes.

    Args:
        differences: [n] finite values, one a unit; only their magnitudes matter. n may be 0.

    Returns:
        A function from c in [0, 1] to a number in [0, c]; F(p) = p for the p-value of the row itself.

    Raises:
        ValueError: Not one-dimensional, or a value that is not finite.
    """
    values = as_vector(differences, "differences", least=0)
    magnitudes = np.abs(values[values != 0.0])  # [k]
    if magnitudes.size == 0:
        return partial(_look_up, np.ones(1), 0.0)
    lattice = _read_lattice(magnitudes)
    if lattice is not None:
        sizes, counts = lattice
        total = int(counts @ sizes)
        if sizes.size == 1 or total <= _CONVOLVED:
            return partial(_look_up, np.cumsum(_convolved(sizes, counts)), 0.0)
        if sizes.size * total <= _CELLS:
            tails = np.cumsum(_transformed(sizes, counts))
            return partial(_look_up, np.maximum.accumulate(tails), _NOISE)
    if magnitudes.size <= _FLOORED:
        return partial(_floor, magnitudes.size)
    return partial(_cut, math.ldexp(1.0, -magnitudes.size))


def _look_up(tails: NDArray[np.float64], error: float, c: float) -> float:
    """Return the largest of the ascending tails that is <= c, 0 if none; `error` is how far they may be off."""
    number = int(np.searchsorted(tails, c * _SAME + error, side="right"))
    if number == 0:
        return 0.0
    tail = float(tails[number - 1]) + error
    return c if tail * _SAME >= c else tail


def _floor(k: int, c: float) -> float:
    """Return the largest multiple of 2^-k that is <= c."""
    return min(c, math.ldexp(math.floor(math.ldexp(c * _SAME, k)), -k))


def _cut(least: float, c: float) -> float:
    """Return c where it is attainable at all."""
    return c if c * _SAME >= least else 0.0


def _read_lattice(magnitudes: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Write positive magnitudes [k] as whole numbers of one step: distinct sizes [d] and their counts [d], or None."""
    distinct, counts = np.unique(magnitudes / magnitudes.max(), return_counts=True)  # [d], [d]
    step = find_step(distinct)
    if step is None:
        return None
    steps = np.rint(distinct / step)  # [d]
    fitted = float(distinct.sum() / steps.sum())
    if float(counts @ np.abs(distinct - steps * fitted)) > _OFF_GRID * float(counts @ distinct):
        return None
    sizes, merged = np.unique(steps.astype(np.int64), return_inverse=True)  # values that rounding had parted
    if sizes[0] == 0:
        return None  # a value far below the step, which may or may not count as rounding in the test
    return sizes, np.bincount(merged, weights=counts).astype(np.int64)


def _convolved(sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distribution of the sum of a random half of the integers: [total + 1], each value to full accuracy."""
    mass = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        spaced = np.zeros(size * count + 1)
        spaced[::size] = _binomial(count)
        mass = np.convolve(mass, spaced)
    return mass


def _binomial(n: int) -> NDArray[np.float64]:
    """Return the probabilities of 0..n heads of n fair coins, from the middle outward so that none underflows early."""
    middle = n // 2
    heads = np.arange(middle, n)
    upper = np.concatenate([[1.0], np.cumprod((n - heads) / (heads + 1.0))])  # middle..n, relative to the middle
    lower = upper[n - 2 * middle :][::-1]  # 0..middle by symmetry
    mass = np.concatenate([lower[:-1], upper])
    probabilities: NDArray[np.float64] = mass / mass.sum()
    return probabilities


def _transformed(sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the same distribution from its characteristic function, prod cos(t m / 2)^n exp(i t total / 2)."""
    total = int(counts @ sizes)
    points = total + 1
    frequency = np.arange(points // 2 + 1)  # [f], t = 2 pi f / points
    log_size = np.zeros(frequency.size)  # [f]
    sign = np.ones(frequency.size)  # [f]
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        angle = (frequency * size % (2 * points)) * (math.pi / points)  # [f], t m / 2
        with np.errstate(divide="ignore"):  # a power of cos would lose digits where cos is nearly 1
            log_size += 0.5 * count * np.log1p(-np.minimum(np.sin(angle) ** 2, 1.0))
        sign *= np.sign(np.cos(angle)) ** (count % 2)
    phase = (frequency * total % (2 * points)) * (math.pi / points)  # [f]
    return np.fft.irfft(sign * np.exp(log_size - 1j * phase), points)

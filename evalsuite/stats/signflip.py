"""One-sided sign-flip test of paired differences, without random numbers.

Under the hypothesis that both versions are equally good each difference d_i is as likely to be -d_i, so with fair
random signs s_i

    p = P(sum s_i |d_i| >= sum d_i)

Positive differences mean worse, and a unit is whatever may be flipped on its own: an item, or the sum of a cluster
(Fisher 1935). Zeros drop out. For 0/1 scores this is the one-sided exact McNemar test.

| data | method | accuracy |
|---|---|---|
| all differences of one sign | 2^-k, or 1 | exact |
| up to 30 changed units | two halves of all 2^k sign patterns | exact, ties within 1e-9 of the sum of magnitudes |
| multiples of a step | integer counts, or a tilted Fourier transform | exact, or about 12 digits |
| few patterns reach the sum | those patterns, one by one | exact, same ties |
| other | saddlepoint | about 1 %, a few % near the smallest possible p |
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.stats._checks import as_vector

_ENUMERATED = 30
# Extreme sums of up to _LISTED_UNITS units are reached by few patterns; up to _LISTED of them are counted.
_LISTED_UNITS = 200
_LISTED = 1 << 15
# Sums closer than this share of the sum of magnitudes are one value that rounding has split.
_TIES = 1e-9


def sign_flip_p(differences: ArrayLike) -> float:
    """Return the probability that random signs give at least the observed sum of differences.

    Args:
        differences: [n] finite values, one a unit, positive = worse; 0 = unchanged. n may be 0.

    Returns:
        The one-sided p-value, from 2^-k to 1 for k changed units (0 only where 2^-k is below the smallest float64);
        1 when nothing changed.

    Raises:
        ValueError: Not one-dimensional, or a value that is not finite.
    """
    changed = _changed(differences)
    k = changed.size
    positive = changed > 0.0
    if positive.all():
        return math.ldexp(1.0, -k)  # 1 for k = 0
    if not positive.any():
        return 1.0
    magnitudes = np.abs(changed)  # [k]
    if k <= _ENUMERATED:
        return enumerated_tail(magnitudes, positive)
    from evalsuite.stats._lattice import lattice_tail

    exact = lattice_tail(magnitudes, positive)
    if exact is not None:
        return exact
    miss = math.fsum(magnitudes[~positive].tolist())
    if k <= _LISTED_UNITS:
        exact = listed_tail(magnitudes, miss)
        if exact is not None:
            return exact
    from evalsuite.stats._saddlepoint import upper_tail  # needs SciPy, which the exact ways do without

    return upper_tail(magnitudes, miss)


def attainable_p(differences: ArrayLike) -> float:
    """Return the smallest p-value that these magnitudes could have given: 2^-k for k changed units.

    A row whose attainable p exceeds its level cannot fail, whatever the signs.

    Args:
        differences: As for `sign_flip_p`.

    Returns:
        2^-k, 1 when nothing changed.

    Raises:
        ValueError: As for `sign_flip_p`.
    """
    return math.ldexp(1.0, -_changed(differences).size)


def enumerated_tail(magnitudes: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Compute the p-value by meeting in the middle: the sums of all subsets of one half against those of the other.

    Args:
        magnitudes: [k] positive; memory and time grow with 2^(k/2).
        positive: [k] whether the difference is positive.

    Returns:
        The share of the 2^k sign patterns that reach the observed sum, ties included.
    """
    scaled = magnitudes / magnitudes.max()
    if _whole(magnitudes):
        scaled, slack = magnitudes, 0.0  # sums of integers are exact
    else:
        slack = _TIES * float(scaled.sum()) / 2.0
    # A pattern reaches the observed sum when its positive magnitudes reach those of the data.
    enough = math.fsum(scaled[positive].tolist()) - slack
    half = scaled.size // 2
    left, right = _subset_sums(scaled[:half]), np.sort(_subset_sums(scaled[half:]))
    below = int(np.searchsorted(right, enough - left, side="left").sum())
    return (left.size * right.size - below) / (left.size * right.size)


def listed_tail(magnitudes: NDArray[np.float64], miss: float) -> float | None:
    """Compute the p-value by listing the sets of negative signs that sum to at most `miss`, or None if too many.

    Args:
        magnitudes: [k] positive.
        miss: Sum of the magnitudes that are negative in the data.
    """
    largest = float(magnitudes.max())
    ascending = np.sort(magnitudes / largest)
    limit = miss / largest + _TIES * float(ascending.sum()) / 2.0
    sums = np.zeros(1)  # [sets so far]
    for magnitude in ascending[ascending <= limit].tolist():
        sums = np.concatenate([sums, sums[sums <= limit - magnitude] + magnitude])
        if sums.size > _LISTED:
            return None
    return math.ldexp(float(sums.size), -magnitudes.size)


def _changed(differences: ArrayLike) -> NDArray[np.float64]:
    """Read the differences and drop the zeros."""
    values = as_vector(differences, "differences", least=0)
    changed: NDArray[np.float64] = values[values != 0.0]
    return changed


def _whole(magnitudes: NDArray[np.float64]) -> bool:
    """Tell whether all values are integers whose sums float64 holds exactly."""
    return bool(np.all(magnitudes == np.rint(magnitudes))) and float(magnitudes.sum()) < 2.0**53


def _subset_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of all subsets of [m], as [2^m]."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums

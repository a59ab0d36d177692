"""Saddlepoint approximation of the sign-flip p-value for many real magnitudes.

With the tilt t of the observed sum S, w = sqrt(2 (t S - K(t))) and u = t sqrt(K''(t)) (Lugannani and Rice 1980),

    P(X >= S) ~ 1 - Phi(w) + phi(w) (1/u - 1/w)

The relative error is about 1 % or less from 30 magnitudes of one order on, however small p is. It can reach half of p
when a few magnitudes outweigh the others, as those keep the sum from being smooth. Then the largest ones are
enumerated, only the rest is taken as smooth, and

    P(X >= S) ~ exp(K(t) - t S) * sum over sign patterns of P_t(pattern) E[exp(-t Y); Y >= 0]

where P_t is the tilted probability and Y, what the pattern and the tilted rest exceed S by, is taken as normal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evalsuite.stats._tilt import Tilt, solve_tilt

_ROOT_2 = math.sqrt(2.0)
_ROOT_2PI = math.sqrt(2.0 * math.pi)
# Fewer effective magnitudes than this, (sum a^2)^2 / sum a^4, and the largest _PEELED are enumerated (2^16 patterns).
_FEW = 16
_PEELED = 16
# Below this w, 1/u - 1/w loses more digits to cancellation than its first series term leaves out.
_NEAR_MEAN = 1e-4


def upper_tail(magnitudes: NDArray[np.float64], miss: float) -> float:
    """Approximate P(X >= S) for the sum X of the magnitudes [k] under random signs, S = sum of them - 2 miss.

    Args:
        magnitudes: [k] positive and finite, k >= 2.
        miss: Sum of those that are negative in the data, between 0 and the sum of all, both excluded.

    Returns:
        The probability, between 2^-k and 1.
    """
    largest = float(magnitudes.max())
    scaled = magnitudes / largest  # no square can overflow, and their sum cannot vanish
    norm = math.sqrt(float(scaled @ scaled))
    scaled /= norm
    miss = miss / largest / norm
    total = float(scaled.sum())
    if 2.0 * miss > total:
        return 1.0 - _positive_side(scaled, total - miss)
    return max(_positive_side(scaled, miss), math.ldexp(1.0, -magnitudes.size))


def _positive_side(scaled: NDArray[np.float64], miss: float) -> float:
    """Approximate the tail for an observed sum >= 0; magnitudes [k] have a sum of squares of 1."""
    if float(scaled.sum()) - 2.0 * miss <= 1e-12:
        return 0.5
    tilt = solve_tilt(scaled, np.ones_like(scaled), miss)
    fourth = float((scaled**4).sum())
    integral = _smooth(tilt, fourth) if _FEW * fourth <= 1.0 else _peeled(np.sort(scaled)[::-1], tilt, miss)
    return min(1.0, math.exp(tilt.exponent) * integral)


def _smooth(tilt: Tilt, fourth: float) -> float:
    """Return P(X >= S) / exp(K - t S) by Lugannani and Rice; `fourth` is the sum of the fourth powers."""
    w = math.sqrt(-2.0 * tilt.exponent)
    u = tilt.t * math.sqrt(tilt.curvature)
    correction = tilt.t * fourth / 4.0 if w < _NEAR_MEAN else 1.0 / u - 1.0 / w
    # (1 - Phi(w)) / phi(w) is of order 1/w: with the density taken out nothing underflows early.
    return float(special.erfcx(w / _ROOT_2)) / 2.0 + correction / _ROOT_2PI


def _peeled(scaled: NDArray[np.float64], tilt: Tilt, miss: float) -> float:
    """Return P(X >= S) / exp(K - t S) with the largest of the descending magnitudes [k] enumerated."""
    t = tilt.t
    odds = np.exp(-2.0 * t * scaled)  # [k], of a negative sign
    negative = odds / (1.0 + odds)  # [k], its tilted probability
    lost, weight = np.zeros(1), np.ones(1)  # [patterns], sum of the negative magnitudes and probability
    for magnitude, share in zip(scaled[:_PEELED].tolist(), negative[:_PEELED].tolist(), strict=True):
        lost = np.concatenate([lost, lost + magnitude])
        weight = np.concatenate([weight * (1.0 - share), weight * share])
    rest, flipped = scaled[_PEELED:], negative[_PEELED:]
    mean = 2.0 * (miss - lost - float(rest @ flipped))  # [patterns], of Y
    variance = 4.0 * float(rest**2 @ (flipped / (1.0 + odds[_PEELED:])))
    if variance <= 0.0:  # the rest is fixed at this tilt
        return float(weight @ np.where(mean >= 0.0, np.exp(-t * np.maximum(mean, 0.0)), 0.0))
    spread = math.sqrt(variance)
    # exp(t^2 variance / 2 - t mean) Phi(-z), written for z > 0 without a product of a huge and a tiny number.
    z = t * spread - mean / spread  # [patterns]
    above = 0.5 * np.exp(-0.5 * (mean / spread) ** 2) * special.erfcx(np.maximum(z, 0.0) / _ROOT_2)
    below = np.exp(np.minimum(0.5 * t * t * variance - t * mean, 0.0)) * special.ndtr(-z)
    return float(weight @ np.where(z > 0.0, above, below))

"""Exponential tilting of a sum of random signs, which both large-sample sign-flip methods build on.

X = sum s_i a_i with independent fair signs s_i and magnitudes a_i > 0 has the cumulant function
K(t) = sum log cosh(t a_i). The tilt t of an observed S solves K'(t) = sum a_i tanh(t a_i) = S. All is written in terms
of `miss` = (sum a - S) / 2, the sum of the magnitudes whose sign is negative: near the largest possible S that keeps
the digits which sum a - S would lose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEPS = 1000
_LOG2 = float(np.log(2.0))


@dataclass(frozen=True)
class Tilt:
    """The tilt of an observed sum.

    Attributes:
        t: Solution of K'(t) = S, > 0.
        exponent: K(t) - t S, <= 0: the log of the Chernoff bound on P(X >= S).
        curvature: K''(t), the variance of X under the tilt.
    """

    t: float
    exponent: float
    curvature: float


def solve_tilt(magnitudes: NDArray[np.float64], counts: NDArray[np.float64], miss: float) -> Tilt:
    """Find the tilt for 0 < miss < sum / 2, which means 0 < S < sum.

    Args:
        magnitudes: [d] positive, best scaled so that sum counts * magnitudes^2 = 1.
        counts: [d] how often each occurs.
        miss: Sum of the magnitudes with a negative sign.

    Returns:
        The tilt, to about 1e-14.
    """
    # tanh is concave for t > 0, so Newton's method from the left never oversteps and needs no bracket.
    total = float(counts @ magnitudes)
    t = (total - 2.0 * miss) / float(counts @ magnitudes**2)
    for _ in range(_STEPS):
        excess, curvature = _derivatives(magnitudes, counts, t)
        step = 2.0 * (excess - miss) / curvature if curvature > 0.0 else 0.0
        if not step > 1e-14 * t:
            break
        t += step
    # With the equation solved K - t S is K - t K', a sum of terms of one sign.
    exponent = -float(counts @ _entropy(t * magnitudes))
    return Tilt(t=t, exponent=exponent, curvature=_derivatives(magnitudes, counts, t)[1])


def _derivatives(magnitudes: NDArray[np.float64], counts: NDArray[np.float64], t: float) -> tuple[float, float]:
    """Return ((sum a - K'(t)) / 2, K''(t)) without cancellation for large t."""
    decay = np.exp(-2.0 * t * magnitudes)  # [d], the odds of a negative sign
    negative = decay / (1.0 + decay)  # [d], its probability
    weighted = counts * magnitudes * negative  # [d]
    return float(weighted.sum()), float(4.0 * (weighted * magnitudes / (1.0 + decay)).sum())


def _entropy(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x tanh x - log cosh x >= 0 for x >= 0, in a form that holds its digits for small and for large x."""
    small = np.minimum(x, 0.5)
    near = small * np.tanh(small) - np.log1p(2.0 * np.sinh(small / 2.0) ** 2)
    decay = np.exp(-2.0 * x)
    far = _LOG2 - np.log1p(decay) - 2.0 * x * decay / (1.0 + decay)
    return np.where(x < 0.5, near, far)

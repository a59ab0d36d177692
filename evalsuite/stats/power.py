"""How large a drop a row can see: the smallest one that its test detects with a given probability (power).

For 0/1 scores the model of a drop d at churn f (the share of items that change between equal versions) is

    P(right to wrong) = f / 2 + d        P(wrong to right) = f / 2

so that k ~ Binomial(n, f + d) items change, and of these Binomial(k, (f / 2 + d) / (f + d)) got worse. Power comes
from the model alone, never from an observed drop. alpha is the one-sided level of the row after the correction for the
number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evalsuite.stats._checks import check_alpha, check_count
from evalsuite.stats.intervals import normal_ppf

# Drops are solved to this width.
_WIDTH = 1e-12
# Counts of changed items further than this from their mean have a mass below 1e-15.
_DEVIATIONS, _EXTRA = 9.0, 30


def mdd_normal(s_d: float, n: int, alpha: float, power: float = 0.8) -> float:
    """Return the minimum detectable mean difference (z_(1-alpha) + z_power) s_d / sqrt n.

    Args:
        s_d: Standard deviation of the differences of units, >= 0, from an A/A run or the current pair.
        n: Units, >= 1.
        alpha: One-sided level.
        power: Probability of detection.

    Returns:
        The difference, in the unit of s_d.

    Raises:
        ValueError: s_d negative or not finite, n no integer >= 1, or alpha or power outside (0, 1).
    """
    n = check_count(n, "n", 1)
    return _quantiles(alpha, power) * _check_spread(s_d) / math.sqrt(n)


def units_needed(drop: float, s_d: float, alpha: float, power: float = 0.8) -> int:
    """Return how many units would make `drop` the minimum detectable one: `mdd_normal` solved for n.

    Args:
        drop: Mean difference to be seen, > 0, in the unit of s_d.
        s_d: Standard deviation of the differences of units, >= 0.
        alpha: One-sided level.
        power: Probability of detection.

    Returns:
        All units that are needed, not those beyond the present ones; at least `minimal_losses(alpha)`.

    Raises:
        ValueError: drop not positive and finite, or the others as for `mdd_normal`.
    """
    if not (drop > 0.0 and math.isfinite(drop)):
        raise ValueError(f"drop is {drop!r}, expected a finite number > 0; pass the drop that should be seen")
    ratio = _quantiles(alpha, power) * _check_spread(s_d) / drop
    return max(minimal_losses(alpha), math.ceil(ratio * ratio))


def minimal_losses(alpha: float) -> int:
    """Return ceil(log2(1 / alpha)): a sign-flip test cannot fail with fewer changed units, all of them losses.

    Raises:
        ValueError: alpha outside (0, 1).
    """
    # alpha = m 2^e with 1/2 <= m < 1, so 2^(e-1) is the largest power of 2 up to alpha. No rounding of a logarithm.
    return 1 - math.frexp(check_alpha(alpha))[1]


def mdd_binary(n: int, churn: float, alpha: float, power: float = 0.8) -> float:
    """Return the minimum detectable drop of a 0/1 row by the normal approximation.

    Solves d sqrt n = z_(1-alpha) sqrt(f + d) + z_power sqrt(f + d - d^2) (Connor 1987 for McNemar's test); within 0.2
    points of `mdd_binary_exact` for n >= 500.

    Args:
        n: Items, >= 1.
        churn: f, share of items that change between equal versions, from 0 to below 1.
        alpha: One-sided level.
        power: Probability of detection, at least 0.5.

    Returns:
        The drop as a share (0.05 is 5 points), or infinity when even the largest, 1 - churn, is too small.

    Raises:
        ValueError: n no integer >= 1, churn outside [0, 1), alpha outside (0, 1), or power outside [0.5, 1).
    """
    n, churn, alpha, power = _check_binary(n, churn, alpha, power)
    z_alpha, z_power = normal_ppf(1.0 - alpha), normal_ppf(power)

    def surplus(drop: float) -> float:
        changed = churn + drop
        spread = z_alpha * math.sqrt(changed) + z_power * math.sqrt(max(changed - drop * drop, 0.0))
        return drop * math.sqrt(n) - spread

    # For alpha < 1/2 the function is convex and starts at or below 0, so it crosses 0 once.
    return _crossing(surplus, 1.0 - churn)


@lru_cache(maxsize=4096)
def mdd_binary_exact(n: int, churn: float, alpha: float, power: float = 0.8) -> float:
    """Return the drop at which `power_binary_exact` reaches the given power.

    Args:
        n: Items, >= 1.
        churn: f, share of items that change between equal versions, from 0 to below 1.
        alpha: One-sided level.
        power: Probability of detection, at least 0.5.

    Returns:
        The drop as a share, or infinity when even the largest, 1 - churn, is too small.

    Raises:
        ValueError: as for `mdd_binary`.
    """
    n, churn, alpha, power = _check_binary(n, churn, alpha, power)
    return _crossing(lambda drop: _power(n, churn, drop, alpha) - power, 1.0 - churn)


def power_binary_exact(n: int, churn: float, drop: float, alpha: float) -> float:
    """Return the probability that the one-sided exact McNemar test of a 0/1 row detects a drop.

    Sum over k of P(k items change) P(Binomial(k, (f / 2 + d) / (f + d)) >= b_k), with b_k the fewest losses among k
    changes that the test calls significant.

    Args:
        n: Items, >= 1.
        churn: f, share of items that change between equal versions, from 0 to below 1.
        drop: d, from 0 to 1 - churn.
        alpha: One-sided level.

    Returns:
        The power; at d = 0 the true level of the test.

    Raises:
        ValueError: n, churn or alpha as for `mdd_binary`, or drop out of range.
    """
    n, churn, alpha, _ = _check_binary(n, churn, alpha, 0.5)
    if not 0.0 <= drop <= 1.0 - churn:
        raise ValueError(f"drop is {drop!r}, expected 0 to 1 - churn = {1.0 - churn:g}; 5 points are drop=0.05")
    return _power(n, churn, float(drop), alpha)


def _power(n: int, churn: float, drop: float, alpha: float) -> float:
    """Sum the power over the counts of changed items that matter."""
    rate = churn + drop
    if rate == 0.0:
        return 0.0
    around = _DEVIATIONS * math.sqrt(n * rate * (1.0 - rate)) + _EXTRA
    k = np.arange(max(0, math.floor(n * rate - around)), min(n, math.ceil(n * rate + around)) + 1.0)  # [K]
    log_mass = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    log_mass += special.xlogy(k, rate) + special.xlog1py(n - k, -min(rate, 1.0))
    mass = np.exp(log_mass)  # [K]
    detected = _binomial_tail(_critical(k, alpha), k, (churn / 2.0 + drop) / rate)  # [K]
    return float(mass @ detected)


def _critical(k: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Return the fewest heads b of k fair coins with P(Binomial(k, 1/2) >= b) <= alpha; k + 1 where there is none."""
    # The normal approximation is off by a few heads at most; step until exact.
    b = np.clip(np.ceil((k + normal_ppf(1.0 - alpha) * np.sqrt(k)) / 2.0), 0.0, k + 1.0)
    while (low := _binomial_tail(b, k, 0.5) > alpha).any():
        b[low] += 1.0
    while (high := (b > 0.0) & (_binomial_tail(b - 1.0, k, 0.5) <= alpha)).any():
        b[high] -= 1.0
    return b


def _binomial_tail(b: NDArray[np.float64], k: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """Return P(Binomial(k, p) >= b) for whole numbers 0 <= b <= k + 1, all [K]."""
    inside = (b > 0.0) & (b <= k)
    tail = special.betainc(np.where(inside, b, 1.0), np.where(inside, k - b + 1.0, 1.0), p)
    return np.where(inside, tail, (b <= 0.0).astype(np.float64))


def _crossing(function: Callable[[float], float], high: float) -> float:
    """Return where a function that ends up positive on (0, high] crosses 0, or infinity when it stays below.

    The secant through both ends, with the value of an end that stays halved (the Illinois rule): about twenty calls.
    """
    low, above = 0.0, function(high)
    if above < 0.0:
        return math.inf
    below = min(function(low), -1e-9)  # without churn the drop 0 is a solution too, but not the one looked for
    kept = 0  # the end that stayed last time
    while high - low > _WIDTH:
        middle = high - above * (high - low) / (above - below)
        middle = min(max(middle, low + _WIDTH / 4.0), high - _WIDTH / 4.0)
        value = function(middle)
        if value < 0.0:
            low, below = middle, value
            above /= 2.0 if kept == 1 else 1.0
            kept = 1
        else:
            high, above = middle, value
            below /= 2.0 if kept == -1 else 1.0
            kept = -1
    return high


def _quantiles(alpha: float, power: float) -> float:
    """Return z_(1-alpha) + z_power."""
    if not 0.0 < power < 1.0:
        raise ValueError(f"power is {power!r}, expected 0 < power < 1; usual is 0.8")
    return normal_ppf(1.0 - check_alpha(alpha)) + normal_ppf(power)


def _check_spread(s_d: float) -> float:
    """Return a standard deviation that is finite and not negative."""
    if not (s_d >= 0.0 and math.isfinite(s_d)):
        raise ValueError(f"s_d is {s_d!r}, expected a finite number >= 0; pass the sd of the unit differences")
    return float(s_d)


def _check_binary(n: int, churn: float, alpha: float, power: float) -> tuple[int, float, float, float]:
    """Return the checked arguments that the functions of 0/1 rows share."""
    n = check_count(n, "n", 1)
    alpha = check_alpha(alpha)
    if not 0.0 <= churn < 1.0:
        raise ValueError(f"churn is {churn!r}, expected 0 <= churn < 1; it is the share of items that change")
    if not 0.5 <= power < 1.0:
        raise ValueError(f"power is {power!r}, expected 0.5 <= power < 1; usual is 0.8")
    return n, float(churn), alpha, float(power)

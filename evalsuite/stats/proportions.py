"""Shares of 0/1 scores: the exact interval of one, and the score test and interval of a paired difference.

For two versions on the same n items the difference of their accuracies is d = (b - c) / n, with b items that went from
right to wrong and c the other way; positive = worse.
"""

from __future__ import annotations

import math

from scipy import special

from evalsuite.stats._checks import check_alpha, check_count
from evalsuite.stats.intervals import normal_cdf, normal_ppf

_HALVINGS = 60


def clopper_pearson_interval(k: int, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return the exact interval of a share of k in n (Clopper and Pearson 1934): its coverage is never below 1 - alpha.

    Beta quantiles: the lower end is that of alpha/2 for Beta(k, n - k + 1), the upper that of 1 - alpha/2 for
    Beta(k + 1, n - k); exactly 0 for k = 0 and 1 for k = n.

    Args:
        k: Successes, 0 <= k <= n.
        n: Trials, n >= 1.
        alpha: Miss rate of both sides together.

    Returns:
        (lower end, upper end), within [0, 1].

    Raises:
        ValueError: k or n no integer or out of range, or alpha outside (0, 1).
    """
    alpha = check_alpha(alpha)
    n = check_count(n, "n", 1)
    k = check_count(k, "k", 0)
    if k > n:
        raise ValueError(f"k is {k} and n is {n}, expected k <= n; k counts the successes among the n trials")
    lower = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, alpha / 2.0))
    upper = 1.0 if k == n else float(special.betainccinv(k + 1, n - k, alpha / 2.0))
    return lower, upper


def tango_test(right_to_wrong: int, wrong_to_right: int, n: int, margin: float = 0.0) -> tuple[float, float]:
    """Return Tango's score test (1998) of "the drop exceeds the margin".

    z = (b - c - n D) / sqrt(n (2 q + D (1 - D))) at the margin D, where q, the probability of wrong to right, is the
    most likely one under a drop of D: the larger root of A q^2 + B q + C = 0, A = 2n, B = -b - c + (2n - b + c) D,
    C = -c D (1 - D). At D = 0 it is McNemar's test without continuity correction.

    Args:
        right_to_wrong: b, items that were right and are wrong.
        wrong_to_right: c, items that were wrong and are right.
        n: All items, >= b + c and >= 1.
        margin: D, strictly between -1 and 1.

    Returns:
        (z, one-sided p-value); (0, 0.5) when nothing changed and the margin is 0.

    Raises:
        ValueError: Counts no integers >= 0, b + c > n, or the margin out of range.
    """
    b, c, n = _check_table(right_to_wrong, wrong_to_right, n)
    if not -1.0 < margin < 1.0:
        raise ValueError(f"margin is {margin!r}, expected -1 < margin < 1; 1 point is margin=0.01")
    excess = b - c - n * margin
    variance = _score_variance(b, c, n, margin)
    z = excess / math.sqrt(variance) if variance > 0.0 else 0.0  # without variance nothing changed and D = 0
    return z, normal_cdf(-z)


def tango_interval(right_to_wrong: int, wrong_to_right: int, n: int, alpha: float = 0.05) -> tuple[float, float, float]:
    """Return the drop in accuracy and its score interval: the margins that `tango_test` does not reject on either side.

    Args:
        right_to_wrong: b, items that were right and are wrong.
        wrong_to_right: c, items that were wrong and are right.
        n: All items, >= b + c and >= 1.
        alpha: Miss rate of both sides together.

    Returns:
        (drop, lower end, upper end) as shares, within [-1, 1]; positive = worse.

    Raises:
        ValueError: Counts as for `tango_test`, or alpha outside (0, 1).
    """
    b, c, n = _check_table(right_to_wrong, wrong_to_right, n)
    z = normal_ppf(1.0 - check_alpha(alpha) / 2.0)
    drop = (b - c) / n

    def end(outside: float) -> float:
        inside = drop
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2.0
            excess = b - c - n * middle
            if excess * excess <= z * z * _score_variance(b, c, n, middle):
                inside = middle
            else:
                outside = middle
        return (inside + outside) / 2.0

    return drop, -1.0 if c == n else end(-1.0), 1.0 if b == n else end(1.0)


def _score_variance(b: int, c: int, n: int, margin: float) -> float:
    """Return n (2 q + D (1 - D)), the variance of b - c under a drop of D."""
    linear = -b - c + (2 * n - b + c) * margin
    constant = -c * margin * (1.0 - margin)
    root = math.sqrt(max(linear * linear - 8.0 * n * constant, 0.0))
    # Of the two ways to write the larger root, the one that adds numbers of one sign.
    q = (root - linear) / (4.0 * n) if linear <= 0.0 else -2.0 * constant / (root + linear)
    return max(0.0, n * (2.0 * q + margin * (1.0 - margin)))


def _check_table(right_to_wrong: int, wrong_to_right: int, n: int) -> tuple[int, int, int]:
    """Return the checked counts."""
    b = check_count(right_to_wrong, "right_to_wrong", 0)
    c = check_count(wrong_to_right, "wrong_to_right", 0)
    n = check_count(n, "n", 1)
    if b + c > n:
        raise ValueError(f"{b} and {c} of {n} items changed, expected no more than all; n counts the unchanged too")
    return b, c, n

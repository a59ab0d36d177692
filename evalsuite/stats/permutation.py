"""Monte Carlo permutation tests of a difference, two-sided, with draws that are fixed to the last one.

The p-value is (1 + count) / (1 + n_perm), where count is how many rearrangements reach the observed statistic less one
part in 1e9: it is never 0, and ties count (Phipson and Smyth 2010).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.stats._checks import as_vector, check_count
from evalsuite.stats.pcg32 import PCG32

# Draws held at a time, 8 bytes each in a few temporaries. A single rearrangement may be longer.
_BLOCK = 1 << 18
_TIES = 1.0 - 1e-9


def paired_permutation_test(a: ArrayLike, b: ArrayLike, n_perm: int, rng: PCG32) -> float:
    """Test whether paired values differ, by flipping the signs of their differences.

    The statistic is |sum(a - b)|. A permutation draws one uniform a pair, in order, and flips the pair when it is
    below 1/2.

    Args:
        a: [n] finite values, n >= 1.
        b: [n] finite values of the same units in the same order.
        n_perm: Permutations, >= 1.
        rng: Advanced by exactly n_perm * n uniforms.

    Returns:
        The two-sided p-value, 1 when all pairs are equal.

    Raises:
        ValueError: An input is empty, not one-dimensional or not finite, the lengths differ, or n_perm is no
            integer >= 1.
    """
    first, second = as_vector(a, "a"), as_vector(b, "b")
    if first.size != second.size:
        raise ValueError(
            f"a has {first.size} values and b has {second.size}, expected pairs; align both by item id before"
        )
    n_perm = check_count(n_perm, "n_perm", 1)
    difference = first - second  # [n]
    n = difference.size
    enough = abs(float(difference.sum())) * _TIES
    rows = max(1, _BLOCK // n)
    count = 0
    for start in range(0, n_perm, rows):
        size = min(rows, n_perm - start)
        flip = rng.uniforms(size * n).reshape(size, n) < 0.5
        sums = np.where(flip, -difference, difference).sum(axis=1)  # [size]
        count += int(np.count_nonzero(np.abs(sums) >= enough))
    return (1 + count) / (1 + n_perm)


def permutation_test(a: ArrayLike, b: ArrayLike, n_perm: int, rng: PCG32) -> float:
    """Test whether two independent samples differ, by dealing the pooled values anew.

    The statistic is |mean(a) - mean(b)|. A permutation is a Fisher-Yates shuffle of the pooled values, which start
    in their own order each time: for i = N-1 down to 1 swap i with min(int(u * (i + 1)), i).

    Args:
        a: [n] finite values, n >= 1.
        b: [m] finite values, m >= 1; N = n + m.
        n_perm: Permutations, >= 1.
        rng: Advanced by exactly n_perm * (N - 1) uniforms.

    Returns:
        The two-sided p-value.

    Raises:
        ValueError: An input is empty, not one-dimensional or not finite, or n_perm is no integer >= 1.
    """
    first, second = as_vector(a, "a"), as_vector(b, "b")
    n_perm = check_count(n_perm, "n_perm", 1)
    pooled = np.concatenate([first, second])  # [N]
    total = pooled.size
    enough = float(_gap(pooled[:, None], first.size)[0]) * _TIES
    columns = max(1, _BLOCK // total)
    count = 0
    for start in range(0, n_perm, columns):
        size = min(columns, n_perm - start)
        draws = rng.uniforms(size * (total - 1)).reshape(size, total - 1)
        count += int(np.count_nonzero(_gap(_shuffle(pooled, draws), first.size) >= enough))
    return (1 + count) / (1 + n_perm)


def _shuffle(pooled: NDArray[np.float64], draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shuffle copies of the pool [N] by draws [R, N - 1], one column [N] a permutation."""
    dealt = np.repeat(pooled[:, None], draws.shape[0], axis=1)  # [N, R]
    column = np.arange(draws.shape[0])
    for draw, last in enumerate(range(pooled.size - 1, 0, -1)):
        chosen = np.minimum((draws[:, draw] * (last + 1)).astype(np.intp), last)  # [R]
        moved = dealt[chosen, column]
        dealt[chosen, column] = dealt[last]
        dealt[last] = moved
    return dealt


def _gap(dealt: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return |mean of the first `size` rows - mean of the others| for each column of [N, R]."""
    gap: NDArray[np.float64] = np.abs(dealt[:size].mean(axis=0) - dealt[size:].mean(axis=0))  # [R]
    return gap

"""Bootstrap and permutation tests against loops that follow the definition draw by draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.stats import PCG32, bootstrap_ci, paired_permutation_test, permutation_test, quantile

values = st.lists(st.floats(-100, 100), min_size=1, max_size=9)


def slow_bootstrap(x, stat, n_boot, alpha, rng):
    x = np.asarray(x, dtype=np.float64)
    n = len(x)
    thetas = []
    for _ in range(n_boot):
        resample = [x[min(int(rng.uniform() * n), n - 1)] for _ in range(n)]
        thetas.append(float(stat(np.array(resample))))
    return float(stat(x)), quantile(thetas, alpha / 2), quantile(thetas, 1 - alpha / 2)


def slow_paired(a, b, n_perm, rng):
    d = [x - y for x, y in zip(a, b, strict=True)]
    observed, count = abs(sum(d)), 0
    for _ in range(n_perm):
        signed = [-x if rng.uniform() < 0.5 else x for x in d]
        count += abs(sum(signed)) >= observed * (1 - 1e-9)
    return (1 + count) / (1 + n_perm)


def slow_two_sample(a, b, n_perm, rng):
    def gap(pool):
        return abs(np.mean(pool[: len(a)]) - np.mean(pool[len(a) :]))

    pooled = [*a, *b]
    observed, count = gap(pooled), 0
    for _ in range(n_perm):
        dealt = list(pooled)
        for i in range(len(dealt) - 1, 0, -1):
            j = min(int(rng.uniform() * (i + 1)), i)
            dealt[i], dealt[j] = dealt[j], dealt[i]
        count += gap(dealt) >= observed * (1 - 1e-9)
    return (1 + count) / (1 + n_perm)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(0, 1))
@settings(max_examples=80, deadline=None)
def test_quantile_agrees_with_numpy(x, q):
    assert quantile(x, q) == pytest.approx(np.quantile(x, q), rel=1e-12, abs=1e-9)


def test_quantile_by_hand_and_with_infinities():
    assert quantile([4, 1, 3, 2], 0.5) == 2.5
    assert quantile([4, 1, 3, 2], 0.0) == 1.0
    assert quantile([4, 1, 3, 2], 1.0) == 4.0
    assert quantile([7], 0.3) == 7.0
    assert quantile([1, 2, 11], 0.75) == 6.5
    assert quantile([1, math.inf, math.inf], 0.9) == math.inf
    assert quantile([-math.inf, 1], 0.5) == -math.inf


@pytest.mark.parametrize(
    ("x", "q"), [([], 0.5), ([[1]], 0.5), ([1, math.nan], 0.5), ([1], -0.1), ([1], 1.1), ([1], math.nan)]
)
def test_quantile_refuses(x, q):
    with pytest.raises(ValueError, match="expected"):
        quantile(x, q)


def test_bootstrap_worked_number():
    assert bootstrap_ci([0, 1, 1, 1], np.mean, 200, 0.05, PCG32(3)) == (0.75, 0.25, 1.0)


@pytest.mark.parametrize("stat", [np.mean, np.median, np.max, lambda row: float(row[0] - row[-1])])
@pytest.mark.parametrize("n", [1, 2, 7, 130])
def test_bootstrap_is_the_slow_loop(stat, n):
    x = np.exp(PCG32(n).uniforms(n) * 5)
    rng, slow = PCG32(8), PCG32(8)
    assert bootstrap_ci(x, stat, 40, 0.1, rng) == slow_bootstrap(x, stat, 40, 0.1, slow)
    assert rng.state() == slow.state()


def test_bootstrap_across_blocks_is_one_stream():
    n, n_boot = 50_000, 12  # five resamples a block
    x = PCG32(1).uniforms(n)
    rng, other = PCG32(2), PCG32(2)
    thetas = [float(np.mean(x[np.minimum((other.uniforms(n) * n).astype(int), n - 1)])) for _ in range(n_boot)]
    expected = (float(np.mean(x)), quantile(thetas, 0.25), quantile(thetas, 0.75))
    assert bootstrap_ci(x, np.mean, n_boot, 0.5, rng) == expected
    assert rng.state() == other.state()


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 127, 129, 1000, 4097])
def test_the_short_way_for_the_mean_has_the_same_bits(n):
    x = np.exp(PCG32(n).uniforms(n) * 20)
    fast = bootstrap_ci(x, np.mean, 60, 0.05, PCG32(4))
    assert fast == bootstrap_ci(x, lambda row: float(np.mean(row)), 60, 0.05, PCG32(4))


def test_a_statistic_may_spoil_its_argument():
    def middle(row):
        row.sort()
        return row[len(row) // 2]

    x = np.array([3.0, 1.0, 2.0])
    assert bootstrap_ci(x, middle, 30, 0.05, PCG32(0)) == bootstrap_ci(x, np.median, 30, 0.05, PCG32(0))
    assert x.tolist() == [3.0, 1.0, 2.0]


def test_bootstrap_covers_the_mean():
    covered, rng = 0, PCG32(77)
    for _ in range(200):
        _, low, high = bootstrap_ci(rng.uniforms(40), np.mean, 200, 0.1, rng)
        covered += low <= 0.5 <= high
    assert 160 <= covered <= 196  # 90 % of 200, 4 standard errors either way


@pytest.mark.parametrize(
    ("x", "n_boot", "alpha"),
    [
        ([], 10, 0.05),
        ([[1.0]], 10, 0.05),
        ([1.0, math.nan], 10, 0.05),
        ([1.0], 0, 0.05),
        ([1.0], 10.0, 0.05),
        ([1.0], True, 0.05),
        ([1.0], 10, 0.0),
        ([1.0], 10, 1.0),
    ],
)
def test_bootstrap_refuses_and_draws_nothing(x, n_boot, alpha):
    rng = PCG32(0)
    with pytest.raises(ValueError, match="expected"):
        bootstrap_ci(x, np.mean, n_boot, alpha, rng)
    assert rng.state() == PCG32(0).state()


def test_bootstrap_names_an_undefined_statistic():
    with pytest.raises(ValueError, match=r"NaN for \d+ of 20 resamples"):
        bootstrap_ci([0, 1], lambda row: row.sum() / row.sum() if row.any() else math.nan, 20, 0.05, PCG32(0))


def test_paired_worked_number():
    assert paired_permutation_test([5, 4, 6], [3, 3, 3], 100, PCG32(0)) == 21 / 101


@given(values, st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_paired_is_the_slow_loop(d, seed):
    # Whole numbers: sums in another order are the same there, so ties are ties in both.
    a = [float(round(x)) for x in d]
    b = [float(i % 3) for i in range(len(a))]
    rng, slow = PCG32(seed), PCG32(seed)
    assert paired_permutation_test(a, b, 25, rng) == slow_paired(a, b, 25, slow)
    assert rng.state() == slow.state()


def test_paired_across_blocks_and_its_edges():
    n = 100_000  # two permutations a block
    a, b = PCG32(3).uniforms(n), PCG32(4).uniforms(n)
    rng, slow = PCG32(5), PCG32(5)
    d, count = a - b, 0
    for _ in range(7):
        count += abs(np.where(slow.uniforms(n) < 0.5, -d, d).sum()) >= abs(d.sum()) * (1 - 1e-9)
    assert paired_permutation_test(a, b, 7, rng) == (1 + count) / 8
    assert rng.state() == slow.state()
    assert paired_permutation_test([1, 2], [1, 2], 10, PCG32(0)) == 1.0
    assert paired_permutation_test([1e9] * 30, [0] * 30, 50, PCG32(0)) == 1 / 51  # never 0


def test_paired_counts_ties_that_rounding_splits():
    # All of one sign and one pair: both flips tie with the observed sum.
    assert paired_permutation_test([0.3], [0.1], 60, PCG32(1)) == 1.0


@given(values, values, st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_two_sample_is_the_slow_loop(a, b, seed):
    a, b = [float(round(x)) for x in a], [float(round(x)) for x in b]
    rng, slow = PCG32(seed), PCG32(seed)
    assert permutation_test(a, b, 20, rng) == slow_two_sample(a, b, 20, slow)
    assert rng.state() == slow.state()


def test_two_sample_across_blocks():
    a, b = PCG32(1).uniforms(300), PCG32(2).uniforms(229) + 0.05
    n_perm = 2 * (2**18 // 529) + 3
    rng, parts = PCG32(6), PCG32(6)
    p = permutation_test(a, b, n_perm, rng)
    counts = [permutation_test(a, b, size, parts) * (size + 1) - 1 for size in (400, 500, n_perm - 900)]
    assert p == pytest.approx((1 + sum(counts)) / (1 + n_perm), rel=1e-12)
    assert rng.state() == parts.state()


@pytest.mark.parametrize("test", [paired_permutation_test, permutation_test])
@pytest.mark.parametrize(
    ("a", "b", "n_perm"),
    [
        ([], [], 10),
        ([1], [], 10),
        ([[1]], [1], 10),
        ([math.nan], [1], 10),
        ([1], [math.inf], 10),
        ([1], [1], 0),
        ([1], [1], 2.0),
    ],
)
def test_permutation_tests_refuse(test, a, b, n_perm):
    with pytest.raises(ValueError, match="expected"):
        test(a, b, n_perm, PCG32(0))


def test_pairs_must_be_pairs():
    with pytest.raises(ValueError, match="a has 2 values and b has 3"):
        paired_permutation_test([1, 2], [1, 2, 3], 10, PCG32(0))

"""Intervals of shares, of their paired differences, and of means over clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats

from evalsuite.stats import (
    clopper_pearson_interval,
    cluster_mean_ci,
    mean_ci,
    paired_t_interval,
    t_ppf,
    tango_interval,
    tango_test,
)

TABLES = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 200)).filter(sum)

# Clopper and Pearson


@pytest.mark.parametrize(
    ("k", "n", "expected"), [(0, 20, (0.0, 0.168433470983)), (47, 50, (0.834518053396, 0.987451412165))]
)
def test_clopper_pearson_worked_numbers(k, n, expected):
    assert clopper_pearson_interval(k, n) == pytest.approx(expected, abs=1e-11)


@settings(deadline=None)
@given(st.integers(1, 400), st.data(), st.floats(0.001, 0.5))
def test_clopper_pearson_is_scipys(n, data, alpha):
    k = data.draw(st.integers(0, n))
    interval = scipy_stats.binomtest(k, n).proportion_ci(1.0 - alpha, method="exact")
    assert clopper_pearson_interval(k, n, alpha) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_clopper_pearson_covers_at_least_the_nominal_share():
    for n in (5, 23):
        ends = [clopper_pearson_interval(k, n) for k in range(n + 1)]
        for share in np.linspace(0.001, 0.999, 400):
            inside = [low <= share <= high for low, high in ends]
            assert scipy_stats.binom.pmf(np.arange(n + 1), n, share)[inside].sum() >= 0.95 - 1e-12


# Tango


def test_tango_worked_number():
    assert tango_test(14, 5, 100, 0.01) == pytest.approx((1.85292055029, 0.0319468735654), abs=1e-11)


@given(TABLES)
def test_tango_without_margin_is_mcnemar(table):
    b, c, same = table
    z, p = tango_test(b, c, b + c + same)
    assert z == pytest.approx((b - c) / math.sqrt(b + c) if b + c else 0.0, abs=1e-9)
    assert p == pytest.approx(scipy_stats.norm.sf(z), abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 100), st.floats(-0.6, 0.6))
def test_tango_uses_the_most_likely_table(b, c, same, margin):
    """The root against a numerical search: q maximises b log(q + D) + c log q + same log(1 - 2q - D)."""
    n = b + c + same
    low, high = max(0.0, -margin), (1.0 - margin) / 2.0

    def loss(q):
        cells = ((b, q + margin), (c, q), (same, 1.0 - 2.0 * q - margin))
        return -sum(count * math.log(max(cell, 1e-300)) for count, cell in cells if count)

    q = optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    variance = n * (2.0 * q + margin * (1.0 - margin))
    if variance > 1e-3:
        assert tango_test(b, c, n, margin)[0] == pytest.approx((b - c - n * margin) / math.sqrt(variance), rel=1e-4)


@settings(deadline=None)
@given(TABLES, st.floats(0.001, 0.5))
def test_tango_interval_inverts_the_test(table, alpha):
    b, c, same = table
    n = b + c + same
    drop, lower, upper = tango_interval(b, c, n, alpha)
    assert -1.0 <= lower <= drop == (b - c) / n <= upper <= 1.0
    z = scipy_stats.norm.isf(alpha / 2.0)
    if c < n:
        assert tango_test(b, c, n, lower)[0] == pytest.approx(z, rel=1e-6)
    if b < n:
        assert tango_test(b, c, n, upper)[0] == pytest.approx(-z, rel=1e-6)


@given(TABLES)
def test_tango_interval_mirrors(table):
    b, c, same = table
    drop, lower, upper = tango_interval(b, c, b + c + same)
    assert tango_interval(c, b, b + c + same) == pytest.approx((-drop, -upper, -lower), abs=1e-12)


def test_tango_interval_at_the_ends():
    assert tango_interval(7, 0, 7)[2] == 1.0
    assert tango_interval(0, 7, 7)[1] == -1.0
    z2 = scipy_stats.norm.isf(0.025) ** 2
    drop, lower, upper = tango_interval(0, 0, 50)  # n D^2 = z^2 D (1 - D)
    assert (drop, lower, upper) == pytest.approx((0.0, -z2 / (50 + z2), z2 / (50 + z2)), abs=1e-12)


@pytest.mark.parametrize(("worse", "better", "n"), [(0.05, 0.02, 50), (0.1, 0.05, 200), (0.3, 0.1, 30)])
def test_tango_interval_coverage_is_near_nominal(worse, better, n):
    covered = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            mass = scipy_stats.multinomial.pmf([b, c, n - b - c], n, [worse, better, 1 - worse - better])
            if mass > 1e-8:
                _, lower, upper = tango_interval(b, c, n)
                covered += mass * (lower <= worse - better <= upper)
    assert 0.94 <= covered <= 0.985


# Clusters


def test_cluster_mean_worked_number():
    y = [1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1]
    clusters = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
    mean, lower, upper = cluster_mean_ci(y, clusters)
    assert mean == pytest.approx(7 / 12)
    assert (upper - lower) / 2.0 / t_ppf(0.975, 3) == pytest.approx(0.100794171561, abs=1e-11)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=20))
def test_items_on_their_own_give_the_t_interval(values):
    assert paired_t_interval(values) == mean_ci(values)
    assert paired_t_interval(values, list(range(len(values)))) == pytest.approx(mean_ci(values), abs=1e-9)
    assert cluster_mean_ci(values) == pytest.approx(mean_ci(values), abs=1e-9)


def test_paired_t_of_cluster_sums_is_scipys():
    d = [0.5, -0.25, 0.8, 0.1, 0.333, -0.05, 0.6, 0.0, 0.2, -0.15]
    clusters = list("aababbccdd")
    sums = [sum(x for x, c in zip(d, clusters, strict=True) if c == name) for name in "abcd"]
    interval = scipy_stats.ttest_1samp(sums, 0.0).confidence_interval(0.9)
    expected = (sum(d) / 10, interval.low * 4 / 10, interval.high * 4 / 10)
    assert paired_t_interval(d, clusters, 0.1) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=40).filter(lambda d: len(d) % 2 == 0))
def test_both_cluster_intervals_agree_for_clusters_of_one_size(d):
    clusters = [i // 2 for i in range(len(d))]
    assert paired_t_interval(d, clusters) == pytest.approx(cluster_mean_ci(d, clusters), abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clopper_pearson_interval(3, 2), "k is 3 and n is 2"),
        (lambda: clopper_pearson_interval(1, 2, 1.0), "alpha"),
        (lambda: tango_test(3, 2, 4), "3 and 2 of 4 items"),
        (lambda: tango_test(1, 1, 4, 1.0), "margin is 1.0"),
        (lambda: tango_test(-1, 1, 4), "right_to_wrong is -1"),
        (lambda: tango_interval(1, 1, 0), "n is 0"),
        (lambda: paired_t_interval([1.0, 2.0], ["a"]), "2 differences and 1 clusters"),
        (lambda: paired_t_interval([1.0, 2.0], ["a", "a"]), "found 1 cluster, expected"),
        (lambda: cluster_mean_ci([1.0, 2.0], ["a", "a"]), "found 1 cluster"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""Minimum detectable drops: a published table, full enumeration of small samples, and the round trips."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats

from evalsuite.stats import (
    mdd_binary,
    mdd_binary_exact,
    mdd_normal,
    minimal_losses,
    power_binary_exact,
    sign_flip_p,
    units_needed,
)

# Points (exact, formula) for 1, 10, 50 and 200 rows at level 0.05 / rows and power 0.8.
TABLE = {
    (50, 0.02): ((14.9, 13.6), (22.9, 23.9), (27.4, 30.8), (32.7, 36.5)),
    (50, 0.05): ((17.2, 15.6), (26.1, 26.2), (31.7, 33.2), (36.5, 39.1)),
    (50, 0.1): ((19.8, 18.3), (30.1, 29.5), (36.4, 36.7), (41.5, 42.7)),
    (50, 0.2): ((24.1, 22.4), (35.8, 34.7), (43.3, 42.5), (49.4, 48.8)),
    (100, 0.02): ((8.3, 7.6), (12.7, 13.1), (15.4, 16.7), (18.0, 19.8)),
    (100, 0.05): ((10.0, 9.3), (15.2, 15.1), (18.4, 18.9), (21.0, 22.1)),
    (100, 0.1): ((12.1, 11.4), (18.1, 17.7), (21.8, 21.8), (24.9, 25.2)),
    (100, 0.2): ((15.2, 14.4), (22.3, 21.8), (26.7, 26.3), (30.1, 30.0)),
    (200, 0.02): ((4.8, 4.4), (7.3, 7.3), (8.8, 9.2), (10.1, 10.9)),
    (200, 0.05): ((6.1, 5.7), (9.1, 9.0), (11.0, 11.0), (12.5, 12.8)),
    (200, 0.1): ((7.6, 7.3), (11.2, 11.0), (13.4, 13.3), (15.1, 15.2)),
    (200, 0.2): ((10.0, 9.5), (14.3, 14.0), (17.0, 16.7), (19.0, 18.9)),
    (500, 0.02): ((2.4, 2.3), (3.6, 3.6), (4.4, 4.5), (5.0, 5.1)),
    (500, 0.05): ((3.3, 3.2), (4.8, 4.8), (5.8, 5.7), (6.5, 6.5)),
    (500, 0.1): ((4.4, 4.2), (6.2, 6.1), (7.4, 7.3), (8.3, 8.2)),
    (500, 0.2): ((5.8, 5.6), (8.2, 8.1), (9.6, 9.5), (10.7, 10.7)),
    (1000, 0.02): ((1.5, 1.5), (2.2, 2.2), (2.7, 2.7), (3.0, 3.1)),
    (1000, 0.05): ((2.2, 2.1), (3.1, 3.1), (3.7, 3.7), (4.1, 4.1)),
    (1000, 0.1): ((2.9, 2.8), (4.1, 4.0), (4.8, 4.8), (5.4, 5.3)),
    (1000, 0.2): ((3.9, 3.8), (5.5, 5.4), (6.4, 6.4), (7.2, 7.1)),
    (5000, 0.02): ((0.6, 0.6), (0.8, 0.8), (1.0, 1.0), (1.1, 1.1)),
    (5000, 0.05): ((0.9, 0.9), (1.2, 1.2), (1.4, 1.4), (1.6, 1.6)),
    (5000, 0.1): ((1.2, 1.2), (1.7, 1.6), (1.9, 1.9), (2.1, 2.1)),
    (5000, 0.2): ((1.7, 1.6), (2.3, 2.3), (2.7, 2.6), (2.9, 2.9)),
}


@pytest.mark.parametrize(("n", "churn"), TABLE)
def test_table(n, churn):
    for rows, (exact, formula) in zip((1, 10, 50, 200), TABLE[n, churn], strict=True):
        assert round(100 * mdd_binary_exact(n, churn, 0.05 / rows), 1) == exact
        assert round(100 * mdd_binary(n, churn, 0.05 / rows), 1) == formula


def test_formula_worked_number():
    assert mdd_binary(200, 0.1, 0.05, 0.8) == pytest.approx(0.0726807079882, abs=1e-11)


@pytest.mark.parametrize(("n", "churn", "alpha", "power"), [(50, 0.0, 0.05, 0.8), (300, 0.3, 0.001, 0.9)])
def test_formula_against_scipys_root(n, churn, alpha, power):
    z_alpha, z_power = scipy_stats.norm.isf(alpha), scipy_stats.norm.ppf(power)

    def surplus(d):
        return d * n**0.5 - z_alpha * (churn + d) ** 0.5 - z_power * (churn + d - d * d) ** 0.5

    assert mdd_binary(n, churn, alpha, power) == pytest.approx(optimize.brentq(surplus, 1e-3, 1 - churn), abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.floats(0, 0.6), st.floats(0, 1), st.sampled_from([0.04, 0.05, 0.25, 0.001, 2.0**-5]))
def test_power_against_enumeration(n, churn, share, alpha):
    drop = share * (1.0 - churn)
    worse, better = churn / 2 + drop, churn / 2
    same = max(0.0, 1.0 - worse - better)
    expected = sum(
        math.comb(n, b) * math.comb(n - b, c) * worse**b * better**c * same ** (n - b - c)
        for b in range(n + 1)
        for c in range(n + 1 - b)
        if sign_flip_p([1.0] * b + [-1.0] * c) <= alpha
    )
    assert power_binary_exact(n, churn, drop, alpha) == pytest.approx(expected, abs=1e-11)


def test_power_of_a_large_sample_against_scipy():
    n, churn, drop, alpha = 4000, 0.05, 0.012, 0.001
    rate = churn + drop
    expected = 0.0
    for k in range(n + 1):
        mass = scipy_stats.binom.pmf(k, n, rate)
        if mass > 1e-14:
            b = next(b for b in range(k // 2, k + 2) if scipy_stats.binom.sf(b - 1, k, 0.5) <= alpha)
            expected += mass * scipy_stats.binom.sf(b - 1, k, (churn / 2 + drop) / rate)
    assert power_binary_exact(n, churn, drop, alpha) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.integers(10, 3000), st.floats(0, 0.5), st.floats(1e-4, 0.2), st.floats(0.5, 0.95))
def test_exact_drop_has_the_power_asked_for(n, churn, alpha, power):
    drop = mdd_binary_exact(n, churn, alpha, power)
    if math.isinf(drop):
        assert power_binary_exact(n, churn, 1.0 - churn, alpha) < power
    else:
        assert power_binary_exact(n, churn, min(drop, 1.0 - churn), alpha) == pytest.approx(power, abs=1e-6)


def test_a_row_below_the_hard_floor_sees_nothing():
    assert mdd_binary_exact(7, 0.0, 0.005) == math.inf
    assert mdd_binary_exact(8, 0.0, 0.005) < 1.0
    assert mdd_binary(2, 0.1, 0.001) == math.inf


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [(0.05, 5), (0.005, 8), (0.001, 10), (0.00025, 12), (0.04, 5), (0.004, 8), (0.0008, 11), (0.0002, 13)],
)
def test_minimal_losses(alpha, expected):
    assert minimal_losses(alpha) == expected


@given(st.floats(1e-300, 0.999))
def test_minimal_losses_is_the_fewest(alpha):
    k = minimal_losses(alpha)
    assert math.ldexp(1.0, -k) <= alpha < math.ldexp(1.0, 1 - k)


def test_minimal_losses_of_powers_of_two():
    assert [minimal_losses(2.0**-k) for k in (1, 7, 52)] == [1, 7, 52]


def test_normal_worked_number():
    assert mdd_normal(0.4, 100, 0.05) == pytest.approx((1.6448536269514722 + 0.8416212335729143) * 0.04, abs=1e-12)
    assert mdd_normal(0.0, 100, 0.05) == 0.0


@given(st.floats(1e-3, 10), st.floats(1e-3, 10), st.floats(1e-5, 0.3))
def test_units_needed_reach_the_drop(drop, s_d, alpha):
    n = units_needed(drop, s_d, alpha)
    assert n >= minimal_losses(alpha)
    assert mdd_normal(s_d, n, alpha) <= drop * (1 + 1e-12)
    assert n == minimal_losses(alpha) or mdd_normal(s_d, n - 1, alpha) > drop * (1 - 1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mdd_normal(-1.0, 10, 0.05), "s_d is -1.0"),
        (lambda: mdd_normal(1.0, 0, 0.05), "n is 0"),
        (lambda: mdd_normal(1.0, 10, 0.0), "alpha is 0.0"),
        (lambda: mdd_normal(1.0, 10, 0.05, 1.0), "power is 1.0"),
        (lambda: units_needed(0.0, 1.0, 0.05), "drop is 0.0"),
        (lambda: minimal_losses(1.0), "alpha is 1.0"),
        (lambda: mdd_binary(10, 1.0, 0.05), "churn is 1.0"),
        (lambda: mdd_binary_exact(10, 0.1, 0.05, 0.4), "power is 0.4"),
        (lambda: power_binary_exact(10, 0.1, 0.95, 0.05), "drop is 0.95"),
        (lambda: power_binary_exact(10.0, 0.1, 0.1, 0.05), "n is 10.0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()

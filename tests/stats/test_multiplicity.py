"""Adjusted p-values: worked numbers, the definitions written out, and what must hold for any rows."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalsuite.stats import (
    attainable_map,
    benjamini_hochberg,
    discrete_holm,
    holm,
    partial_conjunction,
    sign_flip_p,
    weighted_holm,
)

SOME = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205]
P_VALUES = st.lists(st.floats(0, 1), max_size=8)
ROWS = st.lists(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, 0.37]), max_size=12), max_size=7)


def identity(c: float) -> float:
    return c


def judged(rows) -> tuple[list[float], list]:
    return [sign_flip_p(row) for row in rows], [attainable_map(row) for row in rows]


# Worked numbers


def test_benjamini_hochberg_worked_numbers():
    expected = [0.008, 0.032, 0.0672, 0.0672, 0.0672, 0.08, 0.0845714285714, 0.205]
    assert benjamini_hochberg(SOME) == pytest.approx(expected, abs=1e-12)


def test_holm_worked_numbers():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], abs=1e-15)
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_weighted_holm_worked_numbers():
    # p / w = .02, .03, .08: (.02 * 3), then (.03 * 1), then (.08 * .5).
    assert weighted_holm([0.04, 0.015, 0.04], [2.0, 0.5, 0.5]) == pytest.approx([0.06, 0.06, 0.06], abs=1e-15)


def test_discrete_holm_charges_quiet_rows_nothing():
    loud = [1.0] * 8
    quiet = [[1.0, -1.0, 1.0], [0.0] * 50, [1.0]]
    p, attainable = judged([loud, *quiet])
    assert discrete_holm(p, attainable)[0] == 2.0**-8
    assert holm(p)[0] == 4 * 2.0**-8


def test_discrete_holm_worked_numbers():
    # 6 losses: p = 1/64. 5 losses, 2 gains (7 units): p = 29/128; attainable 1/128, 8/128, 29/128, ...
    p, attainable = judged([[1.0] * 6, [1.0] * 5 + [-1.0] * 2])
    assert p == [1 / 64, 29 / 128]
    assert discrete_holm(p, attainable) == pytest.approx([1 / 64 + 1 / 128, 29 / 128], abs=1e-15)


def test_partial_conjunction_worked_numbers():
    bound, claims = partial_conjunction([0.3, 0.001, 0.02, 0.01], alpha=0.05)
    assert claims == pytest.approx([0.004, 0.03, 0.04, 0.3], abs=1e-15)
    assert bound == 3


def test_no_rows():
    for adjusted in (holm([]), weighted_holm([], []), discrete_holm([], []), benjamini_hochberg([])):
        assert adjusted.shape == (0,)
    assert partial_conjunction([])[0] == 0


# Against the definitions


@settings(deadline=None)
@given(P_VALUES.filter(len))
def test_holm_is_the_closed_test_of_bonferroni(p):
    """Adjusted p of a row: the largest Bonferroni p of all sets of rows that hold it."""
    rows = range(len(p))
    sets = [s for size in range(1, len(p) + 1) for s in combinations(rows, size)]
    closed = [max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets if i in s) for i in rows]
    assert holm(p) == pytest.approx(closed, abs=1e-14)


@settings(deadline=None)
@given(P_VALUES.filter(len))
def test_benjamini_hochberg_is_scipys(p):
    assert benjamini_hochberg(p) == pytest.approx(scipy_stats.false_discovery_control(p), abs=1e-14)


@settings(deadline=None)
@given(P_VALUES, st.floats(0.01, 0.5))
def test_partial_conjunction_is_its_formula(p, alpha):
    bound, claims = partial_conjunction(p, alpha)
    ordered, n = sorted(p), len(p)
    expected = [min(1.0, max((n - v + 1) * ordered[v - 1] for v in range(1, u + 1))) for u in range(1, n + 1)]
    assert claims == pytest.approx(expected, abs=1e-14)
    assert bound == sum(claim <= alpha for claim in claims)


@settings(deadline=None, max_examples=50)
@given(ROWS)
def test_discrete_holm_is_its_formula(rows):
    p, attainable = judged(rows)
    order = sorted(range(len(p)), key=p.__getitem__)
    expected, reached = [0.0] * len(p), 0.0
    for rank, row in enumerate(order):
        reached = max(reached, min(1.0, math.fsum(attainable[j](p[row]) for j in order[rank:])))
        expected[row] = reached
    assert discrete_holm(p, attainable) == pytest.approx(expected, abs=1e-14)


def test_discrete_holm_keeps_the_level_over_all_signs():
    """Three rows on their own units: of all 2^12 sign patterns at most 4 % raise an alarm, and more than with Holm."""
    rows = [[1.0] * 6, [1.0, 2.0, 1.0], [0.5, 1.7, 0.3]]
    attainable = [attainable_map(row) for row in rows]
    outcomes = [[sign_flip_p(np.multiply(signs, row)) for signs in product((1, -1), repeat=len(row))] for row in rows]
    alarms = discrete_alarms = total = 0
    for p in product(*outcomes):
        total += 1
        discrete_alarms += bool(discrete_holm(p, attainable).min() <= 0.04)
        alarms += bool(holm(p).min() <= 0.04)
    assert total == 4096
    assert alarms < discrete_alarms <= 0.04 * total


# What must hold for any rows


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_discrete_holm_is_never_above_holm_nor_below_p(rows):
    p, attainable = judged(rows)
    adjusted = discrete_holm(p, attainable)
    assert np.all(adjusted <= holm(p))
    assert np.all(adjusted >= np.array(p) * (1.0 - 1e-9))


@settings(deadline=None)
@given(P_VALUES)
def test_continuous_rows_give_holm(p):
    assert discrete_holm(p, [identity] * len(p)) == pytest.approx(holm(p), abs=1e-15)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 100)), max_size=8))
def test_weighted_discrete_holm_of_continuous_rows_is_weighted_holm(pairs):
    p, weights = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert discrete_holm(p, [identity] * len(p), weights) == pytest.approx(weighted_holm(p, weights), abs=1e-12)


@settings(deadline=None)
@given(P_VALUES, st.floats(0.01, 100))
def test_equal_weights_change_nothing(p, weight):
    assert weighted_holm(p, [weight] * len(p)) == pytest.approx(holm(p), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, random):
    p, attainable = judged(rows)
    weights = [1.0 + len(row) for row in rows]
    order = list(range(len(rows)))
    random.shuffle(order)
    moved, moved_weights = [p[j] for j in order], [weights[j] for j in order]
    assert list(holm(moved)) == list(holm(p)[order])
    assert list(benjamini_hochberg(moved)) == list(benjamini_hochberg(p)[order])
    discrete = discrete_holm(moved, [attainable[j] for j in order])
    assert list(discrete) == list(discrete_holm(p, attainable)[order])
    weighted = weighted_holm(moved, moved_weights)
    assert list(weighted) == list(weighted_holm(p, weights)[order])


@settings(deadline=None)
@given(P_VALUES)
def test_adjusting_keeps_the_order_of_the_p_values(p):
    order = np.argsort(p)
    for adjusted in (holm(p), benjamini_hochberg(p), discrete_holm(p, [identity] * len(p))):
        assert np.all(np.diff(adjusted[order]) >= 0.0)
        assert np.all((adjusted >= np.array(p)) & (adjusted <= 1.0))


@settings(deadline=None)
@given(P_VALUES.filter(len), st.floats(0, 1), st.integers(0, 7))
def test_a_smaller_p_value_raises_no_other(p, factor, at):
    smaller = list(p)
    smaller[at % len(p)] *= factor
    for adjust in (holm, benjamini_hochberg):
        assert np.all(adjust(smaller) <= adjust(p) + 1e-15)


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: holm([0.1, 1.2]), r"p\[1\] is 1.2"),
        (lambda: holm([-0.1]), r"p\[0\] is -0.1"),
        (lambda: holm([math.nan]), r"p\[0\] is nan"),
        (lambda: weighted_holm([0.1, 0.2], [1.0]), "2 p-values and 1 weights"),
        (lambda: weighted_holm([0.1], [0.0]), r"weights\[0\] is 0.0"),
        (lambda: discrete_holm([0.1], []), "1 p-values and 0 attainable"),
        (lambda: partial_conjunction([0.1], 0.0), "alpha"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()

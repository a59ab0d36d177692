"""Ranks and Spearman's correlation against SciPy, worked numbers and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalsuite.stats import average_ranks, fisher_z_interval, spearman

tied = st.lists(st.integers(-3, 3), min_size=2, max_size=15)


def test_worked_correlation():
    x = range(1, 11)
    y = [2, 1, 4, 3, 7, 5, 6, 10, 8, 9]
    rho = spearman(list(x), y)
    assert rho == pytest.approx(1 - 6 * 16 / 990, rel=1e-14)
    # The stored case widens Fisher's error by sqrt(1 + rho^2 / 2); undone, it is our interval.
    z = np.arctanh([0.543748636627, 0.982582558434])
    half = (z[1] - z[0]) / 2 / math.sqrt(1 + rho**2 / 2)
    expected = np.tanh([z.mean() - half, z.mean() + half])
    assert fisher_z_interval(rho, 10) == pytest.approx(expected, rel=1e-9)


def test_ranks_of_ties_by_hand():
    assert average_ranks([10, 20, 20, 5]).tolist() == [2.0, 3.5, 3.5, 1.0]
    assert average_ranks([7, 7, 7]).tolist() == [2.0, 2.0, 2.0]


@given(tied)
@settings(max_examples=40, deadline=None)
def test_ranks_agree_with_scipy(x):
    assert average_ranks(x).tolist() == scipy_stats.rankdata(x).tolist()


@given(tied, st.data())
@settings(max_examples=60, deadline=None)
def test_spearman_agrees_with_scipy(x, data):
    y = data.draw(st.lists(st.floats(-5, 5), min_size=len(x), max_size=len(x)))
    assume(len(set(x)) > 1)
    assume(len(set(y)) > 1)
    assert spearman(x, y) == pytest.approx(scipy_stats.spearmanr(x, y).statistic, abs=1e-12)


def test_monotone_pairs_are_exactly_one():
    x = np.linspace(-3, 3, 101)
    assert spearman(x, np.exp(x)) == 1.0
    assert spearman(x, -(x**3)) == -1.0


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, 2], [1, 2, 3], "x has 2 values and y has 3"),
        ([1], [2], "x has 1 value, expected at least 2"),
        ([], [], "x has 0 values"),
        ([1, 1, 1], [1, 2, 3], "x has the same value 1.0 3 times"),
        ([1, 2], [4, 4], "y has the same value"),
        ([1, math.nan], [1, 2], r"x\[1\] is nan"),
        ([[1, 2]], [1, 2], "expected one dimension"),
    ],
)
def test_spearman_refuses(x, y, message):
    with pytest.raises(ValueError, match=message):
        spearman(x, y)

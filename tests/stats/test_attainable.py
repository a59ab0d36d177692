"""The map of attainable p-values against a listing of every sign pattern in exact fractions."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalsuite.stats import attainable_map, sign_flip_p
from evalsuite.stats.attainable import _NOISE, _convolved, _read_lattice, _transformed


def every_p(magnitudes) -> list[Fraction]:
    """The p-value of each sign pattern of whole magnitudes, by the definition."""
    sums = [sum(s * m for s, m in zip(signs, magnitudes, strict=True))
            for signs in product((1, -1), repeat=len(magnitudes))]  # fmt: skip
    return sorted({Fraction(sum(other >= one for other in sums), len(sums)) for one in sums})


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.floats(0, 1))
def test_whole_magnitudes_against_enumeration(magnitudes, c):
    attainable = attainable_map(magnitudes)
    values = every_p(magnitudes)
    reached = [float(v) for v in values if v <= c * (1.0 + 1e-9)]  # equal to within rounding counts as reached
    assert attainable(c) == pytest.approx(min(c, max(reached, default=0.0)), rel=1e-12)
    for value in values:
        assert attainable(float(value)) == pytest.approx(float(value), rel=1e-12)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.one_of(st.sampled_from([0.0, 0.1, -0.1, 0.3, 1.0, -2.0]), st.floats(-1, 1)), max_size=60),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_is_at_most_c_and_never_falls(differences, one, other):
    attainable = attainable_map(differences)
    low, high = sorted((one, other))
    assert 0.0 <= attainable(low) <= min(low, attainable(high))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.one_of(st.sampled_from([0.0, 0.1, -0.1, 0.3, -2.0]), st.floats(-1, 1)), max_size=30))
def test_a_row_attains_its_own_p_value(differences):
    p = sign_flip_p(differences)
    assert attainable_map(differences)(p) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("k", [1, 7, 44, 1000, 20_000])
def test_binary_row_is_the_binomial_tail(k):
    attainable = attainable_map([1.0] * (k - k // 3) + [-1.0] * (k // 3) + [0.0] * 5)
    tails = scipy_stats.binom.sf(np.arange(k, -1, -1) - 1, k, 0.5)
    for c in (1e-6, 0.0008, 0.04, 0.3, 0.5, 0.9):
        expected = max((float(t) for t in tails if t <= c), default=0.0)
        assert attainable(c) == pytest.approx(expected, rel=1e-10)


def test_a_quiet_row_costs_nothing():
    assert attainable_map([0.0] * 200)(0.04) == 0.0
    assert attainable_map([0.0] * 200)(1.0) == 1.0
    assert attainable_map([])(0.99) == 0.0
    assert attainable_map([1.0, -1.0, 1.0])(0.12) == 0.0
    assert attainable_map([1.0, -1.0, 1.0])(0.13) == 0.125


def test_real_units_are_floored_and_many_are_continuous():
    some = np.sqrt(np.arange(2.0, 12.0))
    assert attainable_map(some)(0.0415) == math.floor(0.0415 * 1024) / 1024
    many = np.sqrt(np.arange(2.0, 102.0))
    assert attainable_map(many)(0.0415) == 0.0415
    assert attainable_map(many)(2.0**-101) == 0.0


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 90)), min_size=1, max_size=4, unique_by=lambda x: x[0]))
def test_both_ways_to_the_distribution_agree(pairs):
    sizes, counts = (np.array(column) for column in zip(*sorted(pairs), strict=True))
    direct, transformed = _convolved(sizes, counts), _transformed(sizes, counts)
    assert np.abs(np.cumsum(direct) - np.cumsum(transformed)).max() < _NOISE / 10


def test_a_large_lattice_keeps_its_digits():
    d = np.repeat([1.0, -1.0, 2.0, -2.0, 3.0, -4.0], [20_000, 19_500, 8000, 7900, 2000, 1400])
    sizes, counts = _read_lattice(np.abs(d))
    tails = np.cumsum(_transformed(sizes, counts))
    assert tails[-1] == pytest.approx(1.0, abs=_NOISE)
    centre = tails.size // 2  # symmetric: the tails on both sides of the middle add up to 1
    assert tails[centre - 300] + tails[-1 - (centre - 300) - 1] == pytest.approx(1.0, abs=_NOISE)
    p = sign_flip_p(d)
    attainable = attainable_map(d)
    assert attainable(p) == pytest.approx(p, rel=1e-9)
    assert attainable(1e-20) == 1e-20  # below what the transform resolves: never taken for unattainable


def test_time_of_a_large_row():
    d = np.resize([1.0, -1.0, 2.0, -3.0, 1.0], 100_000)
    started = time.perf_counter()
    attainable_map(d)
    assert time.perf_counter() - started < 1.0


@pytest.mark.parametrize("bad", [[[1.0]], [math.nan], ["x"]])
def test_refuses_what_is_no_row(bad):
    with pytest.raises(ValueError, match="differences"):
        attainable_map(bad)

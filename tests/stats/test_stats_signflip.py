"""The sign-flip test against full enumeration in exact fractions, binomial tails and its own exact methods."""

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

from evalsuite.stats import attainable_p, sign_flip_p
from evalsuite.stats._lattice import count_tail, find_step, fourier_tail, lattice_tail
from evalsuite.stats._saddlepoint import upper_tail
from evalsuite.stats._tilt import solve_tilt
from evalsuite.stats.signflip import enumerated_tail, listed_tail


def brute_force(differences) -> Fraction:
    """The definition: every sign pattern of the changed units, in exact arithmetic."""
    d = [Fraction(x) for x in differences if x]
    observed = sum(d, Fraction())
    hits = sum(sum((s * abs(x) for s, x in zip(signs, d, strict=True)), Fraction()) >= observed
               for signs in product((1, -1), repeat=len(d)))  # fmt: skip
    return Fraction(hits, 2 ** len(d))


def saddlepoint(d: np.ndarray) -> float:
    return upper_tail(np.abs(d), math.fsum(np.abs(d[d < 0]).tolist()))


def biased(rng: np.random.Generator, magnitudes: np.ndarray, share: float) -> np.ndarray:
    d = np.where(rng.uniform(size=magnitudes.size) < share, magnitudes, -magnitudes)
    d[0], d[1] = abs(d[0]), -abs(d[1])  # never all of one sign
    return d


# Worked numbers


@pytest.mark.parametrize(
    ("worse", "better", "expected"),
    [(8, 0, 0.00390625), (0, 0, 1.0), (12, 3, 0.017578125), (0, 8, 1.0)],
)
def test_binary_worked_numbers(worse, better, expected):
    assert sign_flip_p([1.0] * worse + [-1.0] * better + [0.0] * 5) == expected


def test_mcnemar_thirty_against_fourteen():
    assert sign_flip_p([1] * 30 + [-1] * 14) == pytest.approx(0.011314420603, rel=1e-11)
    exact = Fraction(sum(math.comb(44, i) for i in range(30, 45)), 2**44)
    assert sign_flip_p([1] * 30 + [-1] * 14) == float(exact)


def test_f1_differences_worked_number():
    assert sign_flip_p([0.5, -0.25, 0.8, 0.1, 0.333, -0.05, 0.6, 0.0, 0.2, -0.15]) == 25 / 512


def test_three_items_slightly_lower():
    assert sign_flip_p([0.001] * 3) == 1 / 8


def test_joint_statistic_of_two_rows_that_share_items():
    d1, d2 = np.array([1, 0, -1, 1, 1, 0]), np.array([2, 0, 1, -1, 1, 1])
    joint = d1 / np.sqrt((d1**2).sum()) + d2 / np.sqrt((d2**2).sum())
    # The stored case flips all six units; the one without a difference cancels.
    assert sign_flip_p(joint) == 6 / 64


# Exactness


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=12))
@settings(max_examples=40, deadline=None)
def test_binary_is_exact(d):
    assert sign_flip_p(d) == float(brute_force(d))


@given(st.lists(st.integers(-9, 9), max_size=11))
@settings(max_examples=40, deadline=None)
def test_integers_are_exact(d):
    assert sign_flip_p(d) == float(brute_force(d))


@given(st.lists(st.floats(-10, 10).map(lambda x: round(x, 3)), max_size=10))
@settings(max_examples=40, deadline=None)
def test_reals_are_exact(d):
    # Decimals are meant: ties among them count although their binary neighbours differ.
    assert sign_flip_p(d) == float(brute_force([Fraction(round(x * 1000)) for x in d]))


@given(st.lists(st.integers(-6, 6).filter(bool), min_size=2, max_size=12), st.sampled_from([0.1, 1 / 3, 0.25, 7e-5]))
@settings(max_examples=40, deadline=None)
def test_lattice_methods_are_exact_on_multiples_of_a_step(d, step):
    values = np.array(d) * step
    positive = values > 0
    if positive.all() or not positive.any():
        return
    expected = float(brute_force(d))
    assert lattice_tail(np.abs(values), positive) == expected
    sizes, counts = np.unique(np.abs(d), return_counts=True)
    total, reached = int(np.abs(d).sum()), int(np.array(d)[positive].sum())
    if 2 * reached > total:
        assert fourier_tail(sizes, counts, reached) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("k", [20, 24])
@pytest.mark.parametrize("kind", ["integers", "reals", "tied"])
def test_meeting_in_the_middle_against_all_patterns(k, kind):
    rng = np.random.default_rng(k)
    magnitudes = {
        "integers": rng.integers(1, 50, k).astype(float),
        "reals": rng.uniform(0.1, 2, k),
        "tied": rng.choice([0.1, 0.2, 0.3], k),
    }[kind]
    d = biased(rng, magnitudes, 0.65)
    sums = np.zeros(1)
    for magnitude in magnitudes:
        sums = np.concatenate([sums + magnitude, sums - magnitude])
    hits = int((sums >= d.sum() - 1e-9 * magnitudes.sum()).sum())
    assert sign_flip_p(d) == hits / 2**k


@pytest.mark.parametrize("step", [1.0, 0.25, 0.1, 1 / 3])
def test_many_multiples_of_a_step_are_counted(step):
    rng = np.random.default_rng(3)
    for k in (31, 80, 300):
        sizes = rng.integers(1, 6, k)
        d = biased(rng, sizes, 0.6)
        distribution = [1]
        for size in sizes.tolist():
            longer = [0] * (len(distribution) + size)
            for i, number in enumerate(distribution):
                longer[i] += number
                longer[i + size] += number
            distribution = longer
        exact = Fraction(sum(distribution[int(d[d > 0].sum()) :]), 2**k)
        assert sign_flip_p(d * step) == float(exact)


@pytest.mark.parametrize(("k", "worse"), [(1500, 800), (1500, 700), (100_000, 50_500), (100_000, 53_000), (5000, 4999)])
def test_long_binary_rows_are_binomial_tails(k, worse):
    d = np.r_[np.ones(worse), -np.ones(k - worse)]
    assert sign_flip_p(d) == pytest.approx(scipy_stats.binom.sf(worse - 1, k, 0.5), rel=1e-11)


def test_transform_agrees_with_counting_in_both_tails():
    rng = np.random.default_rng(8)
    for share in (0.2, 0.45, 0.55, 0.9, 0.99):
        sizes = rng.integers(1, 8, 120)
        d = biased(rng, sizes, share)
        reached, total = int(d[d > 0].sum()), int(sizes.sum())
        distinct, counts = np.unique(sizes, return_counts=True)
        exact = count_tail(sizes.tolist(), reached)
        if 2 * reached > total:
            tail = fourier_tail(distinct, counts, reached)
        else:
            other = fourier_tail(distinct, counts, total - reached + 1)
            assert other is not None
            tail = 1 - other
        assert tail == pytest.approx(exact, rel=1e-12)


def test_steps_are_found_and_reals_have_none():
    assert find_step(np.array([0.3, 0.5, 1.2])) == pytest.approx(0.1, rel=1e-12)
    assert find_step(np.array([2.0, 3.0])) == pytest.approx(1.0)
    assert find_step(np.array([1 / 3, 2 / 3])) == pytest.approx(1 / 3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        magnitudes = rng.uniform(0.1, 1, 40)
        assert lattice_tail(magnitudes, rng.uniform(size=40) < 0.5) is None


def test_extreme_sums_of_many_reals_are_counted():
    rng = np.random.default_rng(2)
    magnitudes = np.sort(rng.uniform(1, 2, 60))
    for rank in (0, 7, 59):
        d = magnitudes.copy()
        d[rank] *= -1
        # No two of them sum to one: the pattern without a negative sign, and one for each that is no larger.
        assert sign_flip_p(d) == (rank + 2) * 2.0**-60
    middle = biased(rng, rng.uniform(1, 2, 31), 0.8)
    exact = enumerated_tail(np.abs(middle), middle > 0)
    assert listed_tail(np.abs(middle), math.fsum(-middle[middle < 0])) in (None, exact)
    assert listed_tail(magnitudes, magnitudes.sum() / 2) is None


# All of one sign, edges


@pytest.mark.parametrize("k", [1, 5, 31, 100, 1074, 1075, 5000])
def test_one_sign(k):
    d = np.linspace(0.5, 1.5, k)
    assert sign_flip_p(d) == math.ldexp(1.0, -k)
    assert sign_flip_p(-d) == 1.0
    assert attainable_p(d) == attainable_p(-d) == math.ldexp(1.0, -k)
    assert (sign_flip_p(d) == 0.0) == (k > 1074)


def test_nothing_changed():
    for d in ([], [0.0, 0.0], [-0.0]):
        assert sign_flip_p(d) == 1.0
        assert attainable_p(d) == 1.0


def test_zeros_do_not_matter():
    d = [0.4, -0.1, 0.7]
    assert sign_flip_p([0, *d, 0, 0]) == sign_flip_p(d)
    assert attainable_p([0, *d]) == 1 / 8


@pytest.mark.parametrize("d", [[1.0, math.nan], [math.inf], [[1.0, 2.0]], 3.0, ["x"]])
def test_refusals(d):
    with pytest.raises(ValueError, match="differences"):
        sign_flip_p(d)
    with pytest.raises(ValueError, match="differences"):
        attainable_p(d)


def test_units_and_order_do_not_matter():
    rng = np.random.default_rng(4)
    d = biased(rng, rng.lognormal(size=50), 0.6)
    p = sign_flip_p(d)
    assert sign_flip_p(d[::-1]) == pytest.approx(p, rel=1e-10)
    for scale in (1e-300, 1e-9, 1e12, 1e300):
        assert sign_flip_p(d * scale) == pytest.approx(p, rel=1e-10)


# The saddlepoint


@pytest.mark.parametrize("k", [31, 34])
@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_saddlepoint_against_meeting_in_the_middle(k, share):
    rng = np.random.default_rng(k)
    for magnitudes in (rng.uniform(0, 1, k), np.abs(rng.normal(size=k)), rng.exponential(size=k)):
        d = biased(rng, magnitudes, share)
        exact = enumerated_tail(np.abs(d), d > 0)
        assert saddlepoint(d) == pytest.approx(exact, rel=0.02)
        assert sign_flip_p(d) in (exact, saddlepoint(d))


@pytest.mark.parametrize("kind", ["lognormal", "pareto", "five large", "fifteen large"])
def test_saddlepoint_when_few_units_outweigh_the_others(kind):
    rng = np.random.default_rng(12)
    for share in (0.5, 0.65, 0.8):
        magnitudes = {
            "lognormal": rng.lognormal(0, 2, 32),
            "pareto": rng.pareto(1, 32) + 0.1,
            "five large": np.r_[rng.uniform(5, 10, 5), rng.uniform(0, 1, 27)],
            "fifteen large": np.r_[rng.uniform(50, 100, 15), rng.uniform(0, 1, 17)],
        }[kind]
        d = biased(rng, magnitudes, share)
        exact = enumerated_tail(np.abs(d), d > 0)
        assert saddlepoint(d) == pytest.approx(exact, rel=0.03)
        assert sign_flip_p(d) in (exact, saddlepoint(d))


def test_saddlepoint_of_twenty_units_is_close():
    rng = np.random.default_rng(20)
    for share in (0.3, 0.5, 0.7):
        d = biased(rng, rng.uniform(0, 1, 20), share)
        assert saddlepoint(d) == pytest.approx(float(enumerated_tail(np.abs(d), d > 0)), rel=0.1)


def test_saddlepoint_is_smooth_through_the_mean():
    rng = np.random.default_rng(6)
    magnitudes = rng.uniform(0.5, 1.5, 200)
    half, scale = magnitudes.sum() / 2, math.sqrt((magnitudes**2).sum())
    assert upper_tail(magnitudes, half) == 0.5
    offsets = np.array([-1e-1, -1e-3, -3e-4, -1e-4, -1e-6, 1e-6, 1e-4, 3e-4, 1e-3, 1e-1])
    tails = np.array([upper_tail(magnitudes, half - z * scale / 2) for z in offsets])
    assert np.all(np.diff(tails) < 0)
    assert tails + tails[::-1] == pytest.approx(np.ones(10), abs=1e-11)
    slope = (tails[5:] - 0.5) / offsets[5:]
    assert slope == pytest.approx(np.full(5, -1 / math.sqrt(2 * math.pi)), rel=5e-3)
    # The series and the formula meet at w = 1e-4.
    assert slope[0] == pytest.approx(slope[2], rel=1e-7)


def test_saddlepoint_of_tiny_p_keeps_its_digits():
    # Binomial tails are of the same size when all magnitudes are nearly one.
    rng = np.random.default_rng(1)
    d = np.r_[np.ones(1500), -np.ones(500)] * (1 + 1e-3 * rng.uniform(size=2000))
    log_binomial = scipy_stats.binom.logsf(1499, 2000, 0.5)
    assert -300 * math.log(10) < log_binomial < -100 * math.log(10)
    assert math.log(sign_flip_p(d)) == pytest.approx(log_binomial, rel=5e-3)


def test_saddlepoint_stays_between_its_bounds():
    rng = np.random.default_rng(2)
    lone = rng.uniform(1, 2, 300)
    lone[int(np.argmin(lone))] *= -1
    assert 2.0**-300 <= sign_flip_p(lone) < 2.0**-290
    assert 1 - 1e-9 < sign_flip_p(-lone) <= 1.0
    wide = np.logspace(-12, 12, 41) * np.where(np.arange(41) % 2, 1, -1)
    assert 2.0**-41 <= sign_flip_p(wide) <= 1.0
    many = np.r_[-1.0, rng.uniform(1, 2, 50_000)]
    assert sign_flip_p(many) == 0.0  # as 2^-50001 is


def test_tilt_solves_its_equation_and_bounds_the_tail():
    rng = np.random.default_rng(9)
    magnitudes = rng.uniform(0.1, 1, 50)
    magnitudes /= math.sqrt((magnitudes**2).sum())
    for miss in (1e-6, 0.1, 1.0, 0.499 * magnitudes.sum()):
        tilt = solve_tilt(magnitudes, np.ones(50), miss)
        observed = magnitudes.sum() - 2 * miss
        assert (magnitudes * np.tanh(tilt.t * magnitudes)).sum() == pytest.approx(observed, rel=1e-12)
        cumulant = np.logaddexp(tilt.t * magnitudes, -tilt.t * magnitudes).sum() - 50 * math.log(2)
        assert tilt.exponent == pytest.approx(cumulant - tilt.t * observed, rel=1e-9, abs=1e-12)
        curvature = (magnitudes**2 / np.cosh(tilt.t * magnitudes) ** 2).sum()
        assert tilt.curvature == pytest.approx(curvature, rel=1e-9)


def test_p_values_of_unchanged_versions_hold_their_level():
    rng = np.random.default_rng(30)
    p = np.array([sign_flip_p(rng.normal(size=60)) for _ in range(1500)])
    for level in (0.05, 0.2, 0.5):
        assert abs((p <= level).mean() - level) < 4 * math.sqrt(level * (1 - level) / 1500)


@pytest.mark.parametrize("kind", ["binary", "ratings", "real", "heavy"])
def test_a_hundred_thousand_units_are_no_burden(kind):
    rng = np.random.default_rng(0)
    d = {
        "binary": lambda: rng.choice([-1.0, 0.0, 1.0], 100_000),
        "ratings": lambda: rng.integers(-4, 5, 100_000).astype(float),
        "real": lambda: rng.normal(size=100_000),
        "heavy": lambda: rng.standard_cauchy(100_000),
    }[kind]()
    normal_p = scipy_stats.norm.sf(d.sum() / math.sqrt((d**2).sum()))
    start = time.perf_counter()
    p = sign_flip_p(d)
    assert time.perf_counter() - start < 5.0  # about 0.05 s; the slack is for a busy machine
    assert p == pytest.approx(normal_p, rel=0.02 if kind != "heavy" else 0.5)

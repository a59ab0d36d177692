"""The BCa interval against SciPy's, its coverage, and what replaces it."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats as scipy_stats

from evalsuite.stats import PCG32, bca_interval, clopper_pearson_interval, equal_scores_interval, mean_ci


def f1_scores(seed: int, n: int) -> np.ndarray:
    """Skewed scores with many at both bounds."""
    rng = np.random.default_rng(seed)
    return np.clip(rng.beta(0.6, 0.3, size=n) * 1.3 - 0.1, 0.0, 1.0)


@pytest.mark.parametrize("n", [20, 60, 300])
def test_agrees_with_scipy_within_the_noise_of_resampling(n):
    x = f1_scores(n, n)
    ours = bca_interval(x, PCG32(5), n_boot=20_000)
    theirs = scipy_stats.bootstrap((x,), np.mean, n_resamples=20_000, method="BCa", rng=7).confidence_interval
    width = theirs.high - theirs.low
    assert ours == pytest.approx((x.mean(), theirs.low, theirs.high), abs=0.04 * width)


def test_is_scipys_formula_on_the_same_resamples():
    """SciPy's interval with its index source replaced by our draws, so that no noise is left."""
    x, n_boot = f1_scores(1, 40), 999

    class Draws(np.random.Generator):
        def integers(self, low, high=None, size=None, **_):
            drawn = PCG32(5).uniforms(int(np.prod(size))) * x.size
            return np.minimum(drawn.astype(np.intp), x.size - 1).reshape(size)

    theirs = scipy_stats.bootstrap(
        (x,), np.mean, n_resamples=n_boot, method="BCa", rng=Draws(np.random.PCG64(0))
    ).confidence_interval
    assert bca_interval(x, PCG32(5), n_boot)[1:] == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_same_seed_same_interval():
    x = f1_scores(2, 50)
    assert bca_interval(x, PCG32(1), 500) == bca_interval(x, PCG32(1), 500)
    assert bca_interval(x, PCG32(1), 500) != bca_interval(x, PCG32(2), 500)


def test_coverage_of_skewed_scores():
    rng = np.random.default_rng(4)
    hits = 0
    for seed in range(400):
        x = rng.beta(0.5, 0.2, size=60)
        _, lower, upper = bca_interval(x, PCG32(seed), 600)
        hits += lower <= 0.5 / 0.7 <= upper
    assert 0.915 <= hits / 400 <= 0.975


def test_few_scores_take_t_and_are_clipped():
    x = [0.9, 1.0, 1.0, 0.7]
    mean, lower, upper = mean_ci(x)
    assert upper > 1.0
    rng = PCG32(1)
    assert bca_interval(x, rng) == (mean, lower, 1.0)
    assert rng.state() == PCG32(1).state()  # nothing drawn


def test_equal_scores_follow_the_rule_of_three():
    for n in (5, 200):
        assert bca_interval([0.0] * n, PCG32(1)) == pytest.approx((0.0, *clopper_pearson_interval(0, n)), abs=1e-12)
        assert bca_interval([1.0] * n, PCG32(1)) == pytest.approx((1.0, *clopper_pearson_interval(n, n)), abs=1e-12)
    assert equal_scores_interval(1.0, 100)[1] == pytest.approx(0.025**0.01, abs=1e-12)
    score, lower, upper = equal_scores_interval(3.0, 10, bounds=(1.0, 5.0))
    assert (score - lower, upper - score) == pytest.approx((2.0 * (1 - 0.025**0.1),) * 2)


def test_a_lone_outlier_still_has_an_interval():
    mean, lower, upper = bca_interval([1.0] * 39 + [0.0], PCG32(3), 999)
    assert 0.8 < lower < mean < upper <= 1.0


def test_one_resample_falls_back_to_t():
    x = f1_scores(3, 30)
    mean, lower, upper = mean_ci(x)
    assert bca_interval(x, PCG32(1), n_boot=1) == (mean, max(lower, 0.0), min(upper, 1.0))


def test_ratings_take_their_own_bounds():
    ratings = np.resize([1.0, 5.0, 4.0, 4.0, 3.0], 40)
    mean, lower, upper = bca_interval(ratings, PCG32(1), 999, bounds=(1.0, 5.0))
    assert 1.0 < lower < mean < upper < 5.0
    with pytest.raises(ValueError, match=r"x runs from 1.0 to 5.0, expected 0.0 to 1.0"):
        bca_interval(ratings, PCG32(1))


def test_time_of_a_thousand_scores():
    x = f1_scores(6, 1000)
    started = time.perf_counter()
    bca_interval(x, PCG32(1))
    assert time.perf_counter() - started < 3.0

"""Quantiles and intervals against worked numbers, SciPy and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalsuite.stats import (
    bonett_wright_interval,
    cluster_ratio_ci,
    clustered_wilson_interval,
    fisher_z_interval,
    mean_ci,
    normal_cdf,
    normal_ppf,
    standard_error,
    t_cdf,
    t_ppf,
    wilson_interval,
)

finite = st.floats(-1e6, 1e6)


def bisected(cdf, p: float, low: float, high: float) -> float:
    """The quantile by halving a bracket until it stops shrinking."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return high
        low, high = (middle, high) if cdf(middle) < p else (low, middle)


def t_series(t: float, df: int) -> float:
    """Student's distribution function for t >= 0 by its finite trigonometric sum."""
    angle = math.atan2(t, math.sqrt(df))
    cosine, total = math.cos(angle) ** 2, 0.0
    if df % 2:
        term = math.cos(angle)
        for i in range(1, (df - 1) // 2 + 1):
            total += term
            term *= cosine * 2 * i / (2 * i + 1)
        return 0.5 + (angle + math.sin(angle) * total) / math.pi
    term = 1.0
    for i in range(1, df // 2 + 1):
        total += term
        term *= cosine * (2 * i - 1) / (2 * i)
    return 0.5 + math.sin(angle) * total / 2


def test_normal_quantile_at_the_usual_levels():
    assert normal_ppf(0.975) == pytest.approx(1.959963984540054, abs=1e-15)
    assert normal_ppf(0.025) == pytest.approx(-1.959963984540054, abs=1e-15)
    assert normal_ppf(0.5) == 0.0
    assert normal_cdf(0.0) == 0.5
    assert normal_cdf(-38.0) == pytest.approx(scipy_stats.norm.cdf(-38.0), rel=1e-12)


@pytest.mark.parametrize("p", [1e-300, 1e-20, 1e-9, 0.001, 0.025, 0.2, 0.4999, 0.5001, 0.8, 0.95, 0.999999])
def test_normal_quantile_agrees_with_bisection(p):
    expected = bisected(normal_cdf, p, -40.0, 0.0) if p < 0.5 else -bisected(normal_cdf, 1 - p, -40.0, 0.0)
    assert normal_ppf(p) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_quantiles_refuse_impossible_probabilities(p):
    with pytest.raises(ValueError, match="expected 0 < p < 1"):
        normal_ppf(p)
    with pytest.raises(ValueError, match="expected 0 < p < 1"):
        t_ppf(p, 3)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 30, 31, 500])
def test_t_agrees_with_its_series_and_scipy(df):
    for t in (0.0, 0.3, 2.0, 9.0):
        assert t_cdf(t, df) == pytest.approx(t_series(t, df), rel=1e-12)
        assert t_cdf(-t, df) == pytest.approx(1 - t_series(t, df), abs=1e-13)
    for p in (0.6, 0.975, 0.999):
        assert t_ppf(p, df) == pytest.approx(bisected(lambda t: t_series(t, df), p, 0.0, 1e4), rel=1e-11)
        assert t_ppf(p, df) == pytest.approx(scipy_stats.t.ppf(p, df), rel=1e-12)
        assert t_ppf(1 - p, df) == pytest.approx(-t_ppf(p, df), rel=1e-12)
    assert t_ppf(0.5, df) == 0.0


@pytest.mark.parametrize("df", [0, -1, 2.0, True])
def test_t_refuses_other_degrees_of_freedom(df):
    with pytest.raises(ValueError, match="df is"):
        t_ppf(0.9, df)
    with pytest.raises(ValueError, match="df is"):
        t_cdf(0.9, df)


def test_mean_ci_worked_number():
    assert mean_ci([2, 4, 4, 5, 7, 8]) == pytest.approx((5, 2.700801709516404, 7.299198290483596), rel=1e-14)


def test_perplexity_interval_is_the_exponential_of_the_ends():
    x = [2.1, 0.4, 3.3, 1.7, 0.9, 2.8, 1.2, 0.3]
    assert np.exp(mean_ci(x)) == pytest.approx([4.89150486746, 1.96087357931, 12.2021226257], rel=1e-11)


def test_strided_windows_interval():
    mean, low, high = mean_ci(np.log([2, 3, 4, 3, 4]))
    assert np.exp([low, high]) == pytest.approx([2.1795667455160914, 4.419639252131198], rel=1e-13)
    bits = np.array([mean, low, high]) / math.log(2)
    assert bits == pytest.approx([1.6339850002884624, 1.1240413844446706, 2.1439286161322544], rel=1e-13)


def test_mean_ci_of_equal_values_has_no_width():
    assert mean_ci([math.log(256)] * 4) == (math.log(256),) * 3
    # 0.1 + 0.1 + 0.1 is not 3 * 0.1 in floating point.
    assert mean_ci([0.1] * 3) == (0.1, 0.1, 0.1)
    assert standard_error([0.1] * 3) == 0.0


@given(st.lists(finite, min_size=2, max_size=20), st.floats(0.001, 0.9))
@settings(max_examples=60, deadline=None)
def test_mean_ci_agrees_with_scipy(x, alpha):
    mean, low, high = mean_ci(x, alpha)
    error = standard_error(x)
    assert error == pytest.approx(scipy_stats.sem(x), rel=1e-9, abs=1e-9)
    assert mean == pytest.approx(np.mean(x), rel=1e-12, abs=1e-9)
    half = scipy_stats.t.ppf(1 - alpha / 2, len(x) - 1) * error
    assert high - mean == pytest.approx(half, rel=1e-9, abs=1e-9)
    assert mean - low == pytest.approx(half, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("x", [[], [1.0], [[1.0, 2.0]], [1.0, math.nan], [1.0, math.inf], 3.0, ["a", "b"]])
def test_means_refuse(x):
    with pytest.raises(ValueError, match="expected"):
        mean_ci(x)
    with pytest.raises(ValueError, match="expected"):
        standard_error(x)


@pytest.mark.parametrize("alpha", [0, 1, -0.05, 2, math.nan])
def test_intervals_refuse_alpha(alpha):
    for interval in (
        lambda: mean_ci([1, 2], alpha),
        lambda: wilson_interval(1, 2, alpha),
        lambda: clustered_wilson_interval([1, 2], [2, 2], alpha),
        lambda: fisher_z_interval(0.5, 9, alpha),
        lambda: cluster_ratio_ci([1, 2], [1, 1], alpha=alpha),
    ):
        with pytest.raises(ValueError, match="expected 0 < alpha < 1"):
            interval()


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (0, 10, (0.0, 0.2775327998628892)),
        (17, 40, (0.28509392559950375, 0.5780493145800892)),
        (8, 10, (0.490162471537, 0.943317848546)),
        (20, 20, (0.838874841947, 1.0)),
        (143, 200, (0.648846539704, 0.773049969954)),
    ],
)
def test_wilson_worked_numbers(k, n, expected):
    assert wilson_interval(k, n) == pytest.approx(expected, rel=1e-11)


@given(st.integers(1, 5000), st.data())
@settings(max_examples=60, deadline=None)
def test_wilson_agrees_with_scipy(n, data):
    k = data.draw(st.integers(0, n))
    expected = scipy_stats.binomtest(k, n).proportion_ci(method="wilson")
    low, high = wilson_interval(k, n)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert (low == 0.0) == (k == 0)
    assert (high == 1.0) == (k == n)
    assert wilson_interval(np.int64(k), np.int64(n)) == (low, high)


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (0, 0), (1.0, 5), (1, 5.0), (True, 5), (1, True), ("1", 5)])
def test_wilson_refuses(k, n):
    with pytest.raises(ValueError, match="expected"):
        wilson_interval(k, n)


def test_clustered_wilson_worked_number():
    """Two sentences of four tokens all right, two all wrong: var = 4/3 * 16 / 16^2 = 1/12, deff = (1/12) / (1/64), so
    16 tokens count as 3, and with 3 degrees of freedom instead of 15 as 1.3457."""
    n = 3 * (2.131449545559323 / 3.182446305284263) ** 2
    half = 0.5 * 1.959963984540054 / math.sqrt(n + 1.959963984540054**2)  # Wilson at a share of 1/2
    found = clustered_wilson_interval([4, 0, 4, 0], [4, 4, 4, 4])
    assert found == pytest.approx((0.5 - half, 0.5 + half), rel=1e-12)
    assert found == pytest.approx((0.0697, 0.9303), abs=1e-4)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=12), st.floats(0.01, 0.3))
@settings(max_examples=100, deadline=None)
def test_clustered_wilson_inverts_the_score_test_at_fewer_trials(counts, alpha):
    k, extra = np.array(counts).T
    n = k + extra
    assume((n > 0).sum() >= 2)
    low, high = clustered_wilson_interval(k, n, alpha)
    share, total, groups = k.sum() / n.sum(), n.sum(), (n > 0).sum()
    assert low <= share <= high
    plain = wilson_interval(int(k.sum()), int(total), alpha)
    assert low <= plain[0] + 1e-12
    assert high >= plain[1] - 1e-12
    assert clustered_wilson_interval(k[::-1], n[::-1], alpha) == pytest.approx((low, high), abs=1e-12)
    if share in (0, 1):
        assert (low, high) == plain
        return
    deff = groups / (groups - 1) * ((k - share * n) ** 2).sum() / total / (share * (1 - share))
    t_ratio = scipy_stats.t.ppf(alpha / 2, total - 1) / scipy_stats.t.ppf(alpha / 2, groups - 1)
    effective = total / max(deff, 1) * t_ratio**2
    for end in (low, high):  # |share - end| = z sqrt(end (1 - end) / n)
        error = scipy_stats.norm.isf(alpha / 2) * math.sqrt(end * (1 - end) / effective)
        assert abs(share - end) == pytest.approx(error, rel=1e-6, abs=1e-9)


def test_clusters_of_one_trial_are_nearly_independent_trials():
    found = clustered_wilson_interval([1] * 143 + [0] * 57, [1] * 200)
    z, n = 1.959963984540054, 199
    centre, half = 143 / 200 + z**2 / 2 / n, z * math.sqrt(0.715 * 0.285 / n + z**2 / 4 / n**2)
    assert found == pytest.approx(((centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)), rel=1e-12)
    assert found == pytest.approx(wilson_interval(143, 200), abs=2e-4)


def test_clustered_wilson_covers_where_the_plain_one_does_not():
    """Sentences whose own shares spread around 0.8 (beta, intraclass correlation 0.2), 40 a set."""
    rng = np.random.default_rng(7)
    hits = {"clustered": 0, "plain": 0}
    for _ in range(1000):
        trials = rng.integers(1, 10, 40)
        successes = rng.binomial(trials, rng.beta(3.2, 0.8, 40))
        ends = {
            "clustered": clustered_wilson_interval(successes, trials),
            "plain": wilson_interval(int(successes.sum()), int(trials.sum())),
        }
        for name, (low, high) in ends.items():
            hits[name] += low <= 0.8 <= high
    assert 930 <= hits["clustered"] <= 970
    assert hits["plain"] < 880


def test_clusters_without_a_trial_do_not_count():
    assert clustered_wilson_interval([1, 0, 3], [2, 0, 4]) == clustered_wilson_interval([1, 3], [2, 4])


@pytest.mark.parametrize(
    ("successes", "trials", "message"),
    [
        ([1, 2], [2], "2 successes and 1 trials"),
        ([1, 3], [2, 2], "cluster 1 has 3.0 successes in 2.0 trials"),
        ([-1, 2], [2, 2], "cluster 0 has -1.0 successes"),
        ([0.5, 1], [2, 2], "cluster 0 has 0.5 successes"),
        ([1, 1], [2, 2.5], "cluster 1 has 1.0 successes in 2.5 trials"),
        ([1], [2], "found 1 cluster with a trial"),
        ([1, 0], [2, 0], "found 1 cluster with a trial"),
        ([0, 0], [0, 0], "found 0 clusters with a trial"),
        ([1, math.nan], [2, 2], r"successes\[1\] is nan"),
        ([], [], "successes has 0 values"),
    ],
)
def test_clustered_wilson_refuses(successes, trials, message):
    with pytest.raises(ValueError, match=message):
        clustered_wilson_interval(successes, trials)


def test_fisher_z_worked_number_needs_three_pairs_less():
    expected = (0.07381057440740976, 0.7717607064299188)
    assert fisher_z_interval(0.5, 20) == pytest.approx(expected, rel=1e-13)
    wrong = math.tanh(math.atanh(0.5) + normal_ppf(0.975) / math.sqrt(20))
    assert abs(fisher_z_interval(0.5, 20)[1] - wrong) > 0.01


def test_fisher_z_agrees_with_scipy_and_has_its_edges():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 25))
    fit = scipy_stats.pearsonr(x, y + x)
    assert fisher_z_interval(fit.statistic, 25, 0.1) == pytest.approx(tuple(fit.confidence_interval(0.9)), rel=1e-10)
    one = math.tanh(math.atanh(0.3) - normal_ppf(0.975))
    assert [fisher_z_interval(0.3, n)[0] for n in (2, 3, 4)] == pytest.approx([one] * 3, rel=1e-14)
    low, high = fisher_z_interval(1.0, 103)
    assert low == pytest.approx(math.tanh(math.atanh(1 - 1e-12) - normal_ppf(0.975) / 10), rel=1e-14)
    assert low < high <= 1.0
    assert fisher_z_interval(-1.0, 103) == (-high, -low)


@pytest.mark.parametrize(("rho", "n"), [(1.1, 20), (-1.1, 20), (math.nan, 20), (0.5, 1), (0.5, 20.0)])
def test_fisher_z_refuses(rho, n):
    with pytest.raises(ValueError, match="expected"):
        fisher_z_interval(rho, n)


def test_bonett_wright_worked_number():
    # atanh(.5) = .549306, half = 1.959964 sqrt((1 + .125) / 25) = .415771
    assert bonett_wright_interval(0.5, 28) == pytest.approx((0.132747, 0.746533), abs=1e-6)


@given(st.floats(-0.999, 0.999), st.integers(4, 2000), st.floats(0.001, 0.5))
def test_bonett_wright_is_fisher_with_another_variance(rho, n, alpha):
    fisher, wider = fisher_z_interval(rho, n, alpha), bonett_wright_interval(rho, n, alpha)
    assert wider[0] <= fisher[0] <= rho + 1e-12
    assert wider[1] >= fisher[1] >= rho - 1e-12
    width = math.atanh(wider[1]) - math.atanh(wider[0])
    assert width == pytest.approx(
        (math.atanh(fisher[1]) - math.atanh(fisher[0])) * math.sqrt(1 + rho**2 / 2), rel=1e-6, abs=1e-6
    )


def test_bonett_wright_covers_strong_correlations():
    """Of 2,000 samples of 50 normal pairs; Fisher's interval covers 91 % of them."""
    generator = np.random.default_rng(0)
    r, n = 0.9, 50
    x = generator.normal(size=(2000, n))
    y = r * x + math.sqrt(1 - r * r) * generator.normal(size=x.shape)
    ranks = [scipy_stats.rankdata(values, axis=1) - (n + 1) / 2 for values in (x, y)]
    rhos = (ranks[0] * ranks[1]).sum(axis=1) / (n * (n * n - 1) / 12)
    true = 6 / math.pi * math.asin(r / 2)  # Spearman's of a binormal pair
    ends = np.array([bonett_wright_interval(rho, n) for rho in rhos])
    assert 0.94 <= np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])) <= 0.965


@pytest.mark.parametrize(("rho", "n"), [(1.1, 5), (math.nan, 5), (0.5, 1), (0.5, True)])
def test_bonett_wright_refuses(rho, n):
    with pytest.raises(ValueError, match="expected"):
        bonett_wright_interval(rho, n)


def test_clustered_standard_error_worked_number():
    y = [1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1]
    cluster = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
    mean, low, high = cluster_ratio_ci(y, [1] * 12, cluster)
    error = 0.100794171561
    assert mean == pytest.approx(7 / 12, rel=1e-15)
    assert (high - mean) / t_ppf(0.975, 3) == pytest.approx(error, rel=1e-11)
    assert (mean - low) / t_ppf(0.975, 3) == pytest.approx(error, rel=1e-11)
    # The same clusters under other names, and added up beforehand.
    assert cluster_ratio_ci(y, [1] * 12, [f"doc{c}" for c in cluster]) == (mean, low, high)
    assert cluster_ratio_ci([3, 1, 1, 2], [4, 3, 2, 3]) == pytest.approx((mean, low, high), rel=1e-14)


@given(st.lists(finite, min_size=2, max_size=20))
@settings(max_examples=60, deadline=None)
def test_with_unit_weights_it_is_mean_ci(x):
    scale = max(1.0, *map(abs, x))
    assert cluster_ratio_ci(x, [1] * len(x)) == pytest.approx(mean_ci(x), rel=1e-12, abs=1e-12 * scale)


@given(st.floats(1e-3, 1e3), st.lists(st.integers(1, 10_000), min_size=2, max_size=20))
@settings(max_examples=60, deadline=None)
def test_equal_ratios_give_three_equal_numbers(ratio, weights):
    mean, low, high = cluster_ratio_ci([ratio * weight for weight in weights], weights)
    assert low == mean == high
    assert mean == pytest.approx(ratio, rel=1e-14)


def test_a_small_true_spread_is_kept():
    mean, low, high = cluster_ratio_ci([1.0, 1.0 + 1e-12], [1.0, 1.0])
    assert low < mean < high


def test_documents_without_tokens_do_not_count_as_clusters():
    assert cluster_ratio_ci([2, 0, 3], [1, 0, 2]) == cluster_ratio_ci([2, 3], [1, 2])


@pytest.mark.parametrize(
    ("sums", "weights", "clusters", "message"),
    [
        ([1, 2], [1, 1], ["a", "a"], "found 1 cluster with"),
        ([1], [1], None, "found 1 cluster with"),
        ([1, 0], [1, 0], None, "found 1 cluster with"),
        ([1, 2], [1], None, "2 sums, 1 weights"),
        ([1, 2], [1, 1], ["a"], "and 1 clusters"),
        ([1, 2], [1, -1], None, "expected >= 0"),
        ([1, 2], [0, 0], None, "not all 0"),
        ([1, math.nan], [1, 1], None, r"sums\[1\] is nan"),
        ([1, 2], [1, math.inf], None, r"weights\[1\] is inf"),
        ([], [], None, "sums has 0 values"),
    ],
)
def test_cluster_ratio_refuses(sums, weights, clusters, message):
    with pytest.raises(ValueError, match=message):
        cluster_ratio_ci(sums, weights, clusters)

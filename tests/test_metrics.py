"""The table of metrics, and value and interval from scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalsuite.evals.metrics import METRICS, interval_for, link_value, value_and_interval
from evalsuite.result import Scores
from evalsuite.tasks.task import METRICS_OF_KIND


def scores(values: list[float], weights: list[float] | None = None, clusters: list[str] | None = None) -> Scores:
    names = tuple(str(i) for i in range(len(values)))
    given = np.ones(len(values)) if weights is None else np.array(weights)
    groups = None if clusters is None else tuple(clusters)
    return Scores(names, names, np.array(values, dtype=float), given, np.zeros(len(values)), clusters=groups)


def test_every_metric_of_a_task_is_in_the_table() -> None:
    assert {metric for kind in METRICS_OF_KIND.values() for metric in kind} <= METRICS.keys()
    assert {name for name, metric in METRICS.items() if not metric.higher_is_better} == {"bpb", "nll", "ppl"}
    assert {metric.min_drop for metric in METRICS.values()} == {0.001}
    assert [name for name, metric in METRICS.items() if metric.link == "exp"] == ["ppl"]
    assert {name: metric.normaliser for name, metric in METRICS.items() if metric.normaliser != "none"} == {
        "bpb": "bytes",
        "acc_norm": "bytes",
    }


def test_wilson() -> None:
    value, lo, hi = value_and_interval(scores([1] * 17 + [0] * 23), "identity", "wilson")
    assert value == 17 / 40
    assert (lo, hi) == pytest.approx((0.28509392559950375, 0.5780493145800892), rel=1e-12)
    assert value_and_interval(scores([0] * 10), "identity", "wilson") == pytest.approx((0, 0, 0.2775327998628892))


def test_t() -> None:
    value, lo, hi = value_and_interval(scores([2, 4, 4, 5, 7, 8]), "identity", "t")
    assert (value, lo, hi) == pytest.approx((5, 2.700801709516404, 7.299198290483596), rel=1e-12)


def test_cluster_t_by_hand() -> None:
    """Clusters a: 3 in 2, b: 1 in 2; mean 1, residuals 1 and -1, SE = sqrt(2 / 1 * 2) / 4 = 1/2."""
    value, lo, hi = value_and_interval(scores([2, 1, 0, 1], clusters=["a", "a", "b", "b"]), "identity", "cluster-t")
    half = 12.706204736174698 / 2
    assert (value, lo, hi) == pytest.approx((1, 1 - half, 1 + half), rel=1e-12)


def test_exp_link_carries_the_ends() -> None:
    plain = value_and_interval(scores([20, 10], [8, 8]), "identity", "cluster-t")
    assert value_and_interval(scores([20, 10], [8, 8]), "exp", "cluster-t") == pytest.approx(
        tuple(math.exp(end) for end in plain)
    )


def test_none_is_the_value_alone() -> None:
    assert value_and_interval(scores([3], [4]), "identity", "none") == (0.75, 0.75, 0.75)


def test_nothing_scored_is_an_error() -> None:
    with pytest.raises(ValueError, match="no unit was scored"):
        value_and_interval(scores([]), "identity", "t")


@pytest.mark.parametrize("ratio", [710.0, math.inf, math.nan])
def test_a_value_that_is_not_finite_is_an_error(ratio: float) -> None:
    with pytest.raises(ValueError, match="not finite: exp of"):
        link_value(ratio, "exp")
    assert link_value(700.0, "exp") == math.exp(700)


@pytest.mark.parametrize(
    ("values", "clusters", "expected"),
    [
        ([1, 0, 1], None, "wilson"),
        ([1], None, "wilson"),
        ([1, 0, 0.5], None, "t"),
        ([0.5], None, "none"),
        ([1, 0, 1], ["a", "b", "a"], "cluster-t"),
        ([1, 0, 1], ["a", "a", "a"], "none"),
    ],
)
def test_interval_for(values: list[float], clusters: list[str] | None, expected: str) -> None:
    assert interval_for(scores(values, clusters=clusters)) == expected

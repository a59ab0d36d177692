"""Scores that a user's own test computed: numbers are read, nothing is guessed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from evalsuite.evals.custom import measure_scores
from evalsuite.provenance import content_hash
from evalsuite.result import Measurement


def row(scores: Any, *args: Any, **given: Any) -> Measurement:
    return measure_scores(("bot", "support", "help"), scores, *args, **given)


def test_a_row_of_the_mean() -> None:
    found = row([0.2, 0.4, 0.4, 0.5, 0.7, 0.8], units=["a", "b", "c", "d", "e", "f"])
    assert found.row_id == "bot--support--help"
    assert (found.value, found.n, found.interval) == (pytest.approx(0.5), 6, "t")
    assert (found.lo, found.hi) == pytest.approx((0.2700801709516404, 0.7299198290483596))
    assert (found.bounds, found.min_drop, found.higher_is_better, found.gating) == ((0.0, 1.0), 0.001, True, True)
    assert found.scores.ids == ("a", "b", "c", "d", "e", "f")
    assert found.scores.hashes == tuple(map(content_hash, "abcdef"))
    assert found.scores.tolerance.tolist() == [0] * 6
    assert (found.task_hash, found.blind, found.scores.clusters) == (None, "", None)


@pytest.mark.parametrize(
    "scores",
    [
        [True, False, 1],
        [1, 0.0, True],
        np.array([1, 0, 1]),
        np.array([True, False, True]),
        np.array([1.0, 0.0, 1.0], np.float32),
        torch.tensor([1, 0, 1]),
        (Fraction(1), 0, np.int64(1)),
    ],
)
def test_numbers_and_bools_of_all_kinds_are_read(scores: Any) -> None:
    found = row(scores)
    assert found.scores.scores.tolist() == [1, 0, 1]
    assert found.interval == "wilson"
    assert found.scores.ids == ("0", "1", "2")


@pytest.mark.parametrize("score", ["1.0", "C", b"1", "", [1], {}, object, 1j, 10**400])
def test_anything_else_is_refused_by_name(score: Any) -> None:
    with pytest.raises(ValueError, match=r"^bot--support--help: the score of 'b' is .*give a number or a bool$"):
        row([1, score], units=["a", "b"])


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("higher_is_better", "worst"), [(True, 0.0), (False, 1.0)])
def test_unscored_units_take_the_worst_bound(missing: Any, higher_is_better: bool, worst: float) -> None:
    found = row([0.5, missing, 0.25], units=["a", "b", "c"], higher_is_better=higher_is_better)
    assert found.scores.scores.tolist() == [0.5, worst, 0.25]
    assert found.scores.unscored == ("b",)
    assert found.n == 3


def test_the_worst_bound_is_the_users() -> None:
    assert row([4, None], bounds=(1, 5)).scores.scores.tolist() == [4, 1]
    assert row([4, None], bounds=(1, 5), higher_is_better=False).scores.scores.tolist() == [4, 5]


def test_unscored_units_without_bounds_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"1 of 2 units have no finite score \('1' is the first\) and no bounds"):
        row([4, None])


@pytest.mark.parametrize("given", [{}, {"bounds": (0.0, 1.0)}])
def test_nothing_scored_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"2 of 2 units have no finite score \('0' is the first\)$"):
        row([None, math.nan], **given)


@pytest.mark.parametrize(
    ("scores", "given", "bounds", "min_drop"),
    [
        ([0, 1], {}, (0.0, 1.0), 0.001),
        ([0, 1.5], {}, None, 0.0),
        ([-0.1, 1], {}, None, 0.0),
        ([1, 5], {"bounds": (1.0, 5.0)}, (1.0, 5.0), 0.0),
        ([0, 1], {"min_drop": 0.02}, (0.0, 1.0), 0.02),
        ([0, 1], {"min_drop": 0.0}, (0.0, 1.0), 0.0),
        ([1, 5], {"min_drop": 0.1}, None, 0.1),
    ],
)
def test_bounds_and_min_drop(scores: list[float], given: Any, bounds: Any, min_drop: float) -> None:
    found = row(scores, **given)
    assert (found.bounds, found.min_drop) == (bounds, min_drop)


@pytest.mark.parametrize("score", [0.5, 5.5])
def test_a_score_outside_its_bounds_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match=rf"the score {score} lies outside the bounds \(1, 5\)"):
        row([3, score], bounds=(1, 5))


def test_no_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="no scores"):
        row([])


@pytest.mark.parametrize(("name", "given"), [("units", {"units": ["a"]}), ("clusters", {"clusters": ["a", "b", "c"]})])
def test_lengths_must_agree(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"2 scores but \d {name}; give one for each score"):
        row([1, 0], **given)


@pytest.mark.parametrize("units", [["a", "b", "a"], [1, 2, "1"]])
def test_an_id_twice_is_refused_by_name(units: list[Any]) -> None:
    with pytest.raises(ValueError, match=rf"the unit '{units[0]}' stands twice"):
        row([1, 0, 1], units=units)


def test_clusters_are_the_units_of_the_interval() -> None:
    found = row([1, 0.5, 0, 0.5], clusters=["a", "a", 3, 3])
    assert found.interval == "cluster-t"
    assert found.scores.clusters == ("a", "a", "3", "3")
    # Means 0.75 and 0.25: residual sums 0.5 and -0.5, SE = sqrt(2 * 0.5) / 4.
    assert found.hi - found.value == pytest.approx(12.706204736174698 * 0.25)


def test_a_single_unit_is_blind() -> None:
    for found in (row([0.5]), row([0.5, 0.25], clusters=["a", "a"])):
        assert (found.interval, found.lo, found.hi) == ("none", found.value, found.value)
        assert found.blind == "a single unit: no significance can be had from it"

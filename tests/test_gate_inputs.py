"""Before the statistics: which units pair, which count as losses, and when nothing can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalsuite.gate.inputs import NotComparable, Paired, cluster_sums, pair
from evalsuite.result import Measurement
from tests.gate_rows import documents, items


def paired(now: Measurement, base: Measurement) -> Paired:
    found = pair(now, base)
    assert isinstance(found, Paired), found
    return found


def refused(now: Measurement, base: Measurement) -> str:
    found = pair(now, base)
    assert isinstance(found, NotComparable), found
    return found.reason


def test_units_pair_by_id_whatever_their_order() -> None:
    base = items([1, 0, 0.5], ids=["a", "b", "c"])
    now = items([0.25, 1, 0], ids=["c", "a", "b"])
    found = paired(now, base)
    assert found.worse_by.tolist() == [0, 0, 0.25]
    assert (found.missing, found.new, found.losses) == ((), (), False)


@pytest.mark.parametrize(("higher_is_better", "expected"), [(True, [0.5, -0.25]), (False, [-0.5, 0.25])])
def test_positive_is_worse_whatever_the_direction(higher_is_better: bool, expected: list[float]) -> None:
    facts = {"higher_is_better": higher_is_better}
    assert paired(items([0.5, 1], **facts), items([1, 0.75], **facts)).worse_by.tolist() == expected


@pytest.mark.parametrize(("side", "name"), [("now", "this run"), ("base", "the baseline")])
def test_an_id_twice_is_refused_by_name(side: str, name: str) -> None:
    rows = {"now": items([1, 0, 1]), "base": items([1, 0, 1])} | {side: items([1, 0, 1], ids=["a", "b", "a"])}
    with pytest.raises(ValueError, match=f"m--t--acc: the unit 'a' stands twice in {name}"):
        pair(rows["now"], rows["base"])


@pytest.mark.parametrize(
    ("fact", "was", "is_now"),
    [
        ("higher_is_better", True, False),
        ("normaliser", "none", "bytes"),
        ("link", "identity", "exp"),
    ],
)
def test_another_metric_under_the_same_name_is_not_comparable(fact: str, was: Any, is_now: Any) -> None:
    reason = refused(items([1, 0], **{fact: is_now}), items([1, 0], **{fact: was}))
    assert reason == f"the metric changed: {fact} was {was!r} in the baseline and is {is_now!r} now"


def test_other_weights_are_not_comparable() -> None:
    """Half the bytes double bits per byte although no NLL moved: that must not pass as "unchanged"."""
    base = documents([30, 40], [10, 20])
    halved = documents([30, 40], [10, 20])
    object.__setattr__(halved.scores, "weights", base.scores.weights * [1.0, 0.5])
    reason = refused(halved, base)
    assert reason.startswith("the metric changed: the unit 'doc 1' had the weight 13.8629 in the baseline")
    assert "6.93147 now" in reason
    object.__setattr__(halved.scores, "weights", base.scores.weights * (1 + 1e-12))
    assert paired(halved, base).worse_by.tolist() == [0, 0]


def test_missing_items_of_an_unchanged_task_take_the_worst_score() -> None:
    base = items([1, 0.25, 0, 1], ids=["a", "b", "c", "d"])
    found = paired(items([1], ids=["a"]), base)
    assert found.worse_by.tolist() == [0, 0.25, 0, 1]
    assert (found.missing, found.losses) == (("b", "c", "d"), True)
    # The worst score of an error rate is its upper bound.
    upside_down = {"higher_is_better": False, "bounds": (0.0, 2.0)}
    base = items([1, 0.25], ids=["a", "b"], **upside_down)
    assert paired(items([1], ids=["a"], **upside_down), base).worse_by.tolist() == [0, 1.75]


def test_lost_items_keep_their_cluster_and_weight() -> None:
    base = items([1, 1, 1], ids=["a", "b", "c"], clusters=["x", "y", "x"])
    found = paired(items([1, 1], ids=["b", "c"], clusters=["y", "x"]), base)
    assert found.clusters == ("y", "x", "x")
    assert found.worse_by.tolist() == [0, 0, 1]
    assert cluster_sums(found.worse_by, found.clusters).tolist() == [0, 1]
    assert found.weights.tolist() == [1, 1, 1]


def test_missing_units_without_a_worst_score_are_not_comparable() -> None:
    ratings = {"bounds": None}
    reason = refused(items([4, 5], **ratings), items([4, 5, 1, 2, 3, 4], **ratings))
    assert reason == (
        "4 of 6 units of the baseline are missing (q2, q3, q4 and 1 more), and the metric has no worst score to give "
        "them"
    )


@pytest.mark.parametrize(("shared", "comparable"), [(190, True), (189, False)])
def test_changed_content_needs_95_percent_of_the_baseline(shared: int, comparable: bool) -> None:
    hashes = [f"h{i}" for i in range(200)]
    changed = [h if i < shared else f"new {h}" for i, h in enumerate(hashes)]
    base = items([1] * 200, hashes=hashes, task_hash="one")
    now = items([0] * 200, hashes=changed, task_hash="two")
    if comparable:
        found = paired(now, base)
        assert found.worse_by.tolist() == [1] * 190  # the changed ones are left out, neither lost nor compared
        assert (len(found.missing), len(found.new), found.losses) == (10, 10, False)
    else:
        reason = refused(now, base)
        assert reason.startswith("the data changed (hash one -> two): 189 of 200 units of the baseline are still there")
        assert "95% are needed; first changed: q189, q190, q191 and 8 more" in reason


def test_where_no_task_hash_is_known_new_units_tell_that_the_content_changed() -> None:
    base = items([1] * 10, task_hash=None)
    fewer = paired(items([1] * 5, task_hash=None), base)
    assert fewer.losses
    assert fewer.worse_by.tolist() == [0] * 5 + [1] * 5
    others = items([1] * 6, ids=["q0", "q1", "q2", "q3", "q4", "new"], task_hash=None)
    assert "5 of 10 units of the baseline are still there" in refused(others, base)


def test_added_units_are_left_out() -> None:
    found = paired(items([1, 0, 0, 0], task_hash="two"), items([1, 1], task_hash="one"))
    assert found.worse_by.tolist() == [0, 1]
    assert found.new == ("q2", "q3")


def test_a_stream_of_other_data_is_not_comparable() -> None:
    base, now = documents([30, 40], [10, 20]), documents([30, 40], [10, 20], stream="another")
    assert "0 of 2 units of the baseline are still there" in refused(now, base)


@pytest.mark.parametrize(("moved", "expected"), [(2e-5, 0.0), (-2e-5, 0.0), (2.1e-5, 2.1e-3), (-2.1e-5, -2.1e-3)])
def test_noise_of_the_dead_zone_is_no_difference(moved: float, expected: float) -> None:
    """2e-5 nats a token, in a document of 100 tokens."""
    # A baseline of 0, so that the subtraction is exact and the edge can be tested.
    noise = 100 * 2e-5
    base, now = items([0.0], tolerance=noise, bounds=None), items([-100 * moved], tolerance=noise, bounds=None)
    found = paired(now, base)
    assert found.worse_by[0] == pytest.approx(expected, abs=1e-18)
    assert (found.worse_by[0] == 0) == (expected == 0)


def test_an_item_on_the_edge_in_both_runs_does_not_differ() -> None:
    """An item that became a tie has changed: a model that gives every choice the same score is no noise."""
    base = items([1, 1, 1, 1], tolerance=[0, 1, 0, 1])
    now = items([0, 0, 0, 0], tolerance=[0, 0, 1, 1])
    assert paired(now, base).worse_by.tolist() == [1, 1, 1, 0]


def test_a_row_that_came_to_gate_needs_a_new_baseline() -> None:
    assert "recorded as one that only informs" in refused(items([1, 0]), items([1, 0], gating=False))
    assert paired(items([1, 0], gating=False), items([1, 0])).worse_by.tolist() == [0, 0]


@pytest.mark.parametrize(("then", "today"), [(None, "abb"), ("abb", None), ("abb", "aab")])
def test_other_clusters_are_not_comparable(then: str | None, today: str | None) -> None:
    base, now = (items([1, 0, 1], clusters=None if given is None else list(given)) for given in (then, today))
    assert "the clusters changed" in refused(now, base)


def test_a_document_that_was_renamed_is_left_out() -> None:
    """The text is the same, its division into documents is not: under one in twenty may have gone."""
    names = [f"d{i}" for i in range(40)]
    base, now = (items([1] * 40, ids=ids, bounds=None, task_hash=str(ids)) for ids in (names, ["new", *names[1:]]))
    found = paired(now, base)
    assert (found.missing, found.new, found.losses) == (("d0",), ("new",), False)


def test_cluster_sums_cancel_exactly() -> None:
    values = np.array([0.1, 1.0, 0.2, -0.3, 1.0])
    assert cluster_sums(values, ("a", "b", "a", "a", "b"))[1] == 2
    sums = cluster_sums(np.array([0.1, 1e16, -1e16, -0.1]), ("a", "a", "a", "a"))
    assert sums.tolist() == [0.0]  # 0.1 would be lost beside 1e16 in a plain sum
    assert cluster_sums(values, None) is values

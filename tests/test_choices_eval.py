"""Multiple choice: two metrics that may pick two winners, and items that say too little to be judged."""

from __future__ import annotations

import json
import math
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalsuite.evals.choices import measure_choices
from evalsuite.provenance import content_hash
from evalsuite.result import Measurement
from evalsuite.tasks.items import ChoiceItem
from evalsuite.tasks.task import Task

TASK = Task("quiz", "choices", Path("quiz.jsonl"), ("acc", "acc_norm"), ("acc", "acc_norm"))


class Table:
    """p(next | last) by byte; where the table is silent, 1e-3. ``broken`` maps a byte to the NLL after it."""

    vocab_size = 256

    def __init__(self, table: dict[str, float], broken: dict[str, float] | None = None, max_len: int | None = None):
        self.table, self.broken, self.max_len = table, broken or {}, max_len

    def sequence_nll(self, ids: np.ndarray) -> np.ndarray:
        text = bytes(ids.tolist()).decode()
        return np.array([self.broken.get(a, -math.log(self.table.get(a + b, 1e-3))) for a, b in pairwise(text)])


HAND = Table({"ab": 0.4, "ac": 0.45, "bb": 0.9})


def rows(model: Any, *asked: ChoiceItem, task: Task = TASK) -> dict[str, Measurement]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # arithmetic on NaN must be on purpose
        return measure_choices("m", task, model, asked, {"params": 3})


def item(label: int, *choices: str, context: str = "a", name: str = "q") -> ChoiceItem:
    return ChoiceItem(name, context, choices, label)


def test_two_winners() -> None:
    """LL("bb") = ln .36 = -1.0217, by byte -0.5108; LL("c") = ln .45 = -0.7985: acc picks "c", acc_norm "bb"."""
    found = rows(HAND, item(0, "bb", "c", name="q0"), item(1, "bb", "c", name="q1"))
    assert found["acc"].scores.scores.tolist() == [0, 1]
    assert found["acc_norm"].scores.scores.tolist() == [1, 0]
    detail = found["acc"].scores.details[0]
    assert detail["log_likelihoods"] == pytest.approx([-1.0216512475319812, -0.7985076962177716])
    assert (detail["input"], detail["expected"], detail["answer"]) == ("a", "bb", "c")
    assert found["acc_norm"].scores.details[0]["answer"] == "bb"


def test_what_a_row_says() -> None:
    asked = [item(1, "bb", "c", name=f"q{i}") for i in range(10)]
    found = rows(HAND, *asked)
    for metric, normaliser, value in (("acc", "none", 1.0), ("acc_norm", "bytes", 0.0)):
        row = found[metric]
        assert (row.value, row.n, row.interval, row.normaliser) == (value, 10, "wilson", normaliser)
        assert (row.higher_is_better, row.bounds, row.min_drop) == (True, (0.0, 1.0), 0.001)
        assert row.source == {"params": 3}
        assert row.scores.weights.tolist() == [1] * 10
    # Wilson 95 %: (0, 10) gives [0, 0.27753...], its mirror image for (10, 10).
    assert (found["acc"].lo, found["acc"].hi) == pytest.approx((1 - 0.2775327998628892, 1))
    assert (found["acc_norm"].lo, found["acc_norm"].hi) == pytest.approx((0, 0.2775327998628892))


@pytest.mark.parametrize("change", ["context", "choices", "label", "id"])
def test_identity_of_items(change: str) -> None:
    base = item(0, "bb", "c")
    other = {
        "context": item(0, "bb", "c", context="b"),
        "choices": item(0, "bb", "d"),
        "label": item(1, "bb", "c"),
        "id": item(0, "bb", "c", name="r"),
    }[change]
    ours, theirs = rows(HAND, base)["acc"], rows(HAND, other)["acc"]
    assert ours.task_hash != theirs.task_hash
    assert (ours.scores.hashes == theirs.scores.hashes) == (change == "id")
    assert ours.scores.hashes == (content_hash("a", "bb", "c", "0"),)


def test_contexts_beyond_the_window_lose_their_left_end_and_are_counted() -> None:
    model = Table(HAND.table, max_len=4)
    found = rows(
        model,
        item(1, "bb", "c", context="xxxxa", name="cut"),
        item(1, "bb", "c", context="xa", name="whole"),
        item(1, "bb", "c", context="xxa", name="cut for one choice"),
    )
    assert found["acc"].scores.truncated == 2
    assert found["acc_norm"].scores.truncated == 2
    assert found["acc"].scores.scores.tolist() == [1, 1, 1]  # all that counts is in reach


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["the answer", "another", "both"])
def test_an_item_without_log_likelihood_is_wrong_and_counted(value: float, where: str) -> None:
    after = {"the answer": "b", "another": "c", "both": "a"}[where]
    model = Table({"ab": 0.9, "bx": 0.9, "ac": 0.1, "cx": 0.1, "zb": 0.9, "zc": 0.1}, {after: value})
    found = rows(model, item(0, "bx", "cx", name="bad"), item(0, "b", "c", context="z", name="fine"))
    for row in found.values():
        assert row.scores.unscored == ("bad",)
        assert row.scores.scores.tolist() == [0, 1]
        assert row.value == 0.5
        assert row.scores.tolerance.tolist() == [0, 0]
        detail = row.scores.details[0]
        assert (detail["answer"], detail["unstable"]) == (None, False)
        assert None in detail["log_likelihoods"]  # type: ignore[operator]


def test_no_item_with_a_log_likelihood_is_an_error() -> None:
    with pytest.raises(ValueError, match="non-finite log-likelihood in 2/2 items"):
        rows(Table({}, {"a": math.nan}), item(0, "b", "c", name="q0"), item(0, "b", "c", name="q1"))


def nearly(gap: float) -> Table:
    """A model whose log-likelihoods of "b" and "c" after "a" differ by ``gap`` nats."""
    return Table({"ab": 0.5, "ac": 0.5 * math.exp(-gap)})


@pytest.mark.parametrize(
    ("gap", "unstable"), [(0.0, True), (1.9e-5, True), (2.1e-5, False), (-1.9e-5, True), (-1, False)]
)
@pytest.mark.parametrize("label", [0, 1])
def test_an_answer_within_the_dead_zone_is_unstable(gap: float, unstable: bool, label: int) -> None:
    row = rows(nearly(gap), item(label, "b", "c"))["acc"]
    assert row.scores.tolerance.tolist() == [1.0 if unstable else 0.0]
    assert row.scores.details[0]["unstable"] is unstable
    assert row.scores.scores.tolist() == [float((gap < 0) == label)]  # ties go to the first choice


def test_the_dead_zone_grows_with_the_tokens_of_a_choice() -> None:
    """2e-5 nats a token: five tokens may move by 1e-4 together; by byte it is 2e-5 again."""
    model = Table({"ab": 0.5, "bb": 1.0, "ac": 0.5 * math.exp(-8e-5), "cc": 1.0})
    found = rows(model, item(0, "bbbbb", "ccccc"))
    assert found["acc"].scores.tolerance.tolist() == [1]
    assert found["acc_norm"].scores.tolerance.tolist() == [1]  # 8e-5 / 5 < 2e-5
    wider = Table(model.table | {"ac": 0.5 * math.exp(-1.1e-4)})
    assert rows(wider, item(0, "bbbbb", "ccccc"))["acc"].scores.tolerance.tolist() == [0]


def test_only_the_distance_to_the_best_rival_counts() -> None:
    model = Table({"ab": 0.5, "ac": 0.2, "ad": 0.2})
    assert rows(model, item(0, "b", "c", "d"))["acc"].scores.tolerance.tolist() == [0]
    assert rows(model, item(1, "b", "c", "d"))["acc"].scores.tolerance.tolist() == [0]  # a tie for second place


@pytest.mark.parametrize("broken", [{}, {"c": math.nan}], ids=["scored", "unscored"])
def test_details_are_plain_json(broken: dict[str, float]) -> None:
    """They travel between processes and into JSON, neither of which takes NumPy's bool."""
    asked = [item(0, "bx", "cx", name="q0"), item(0, "b", "b", name="q1")]
    for row in rows(Table({"ab": 0.9}, broken), *asked).values():
        for detail in row.scores.details:
            assert json.loads(json.dumps(detail, allow_nan=False)) == detail


def test_a_choice_that_fills_the_window_is_named() -> None:
    with pytest.raises(ValueError, match=r"item 'q': choice 'bbbb' has 4 tokens, which leaves none for the context"):
        rows(Table({}, max_len=4), item(0, "bbbb", "c"))


def test_only_the_metrics_asked_for() -> None:
    task = Task("quiz", "choices", Path(), ("acc_norm",), ())
    assert list(rows(HAND, item(0, "bb", "c"), task=task)) == ["acc_norm"]

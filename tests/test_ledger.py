"""The controller's book: every row that was owed has a state, whatever became of its test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalsuite.cases import Case
from evalsuite.gate.snapshot import Desk, extension_for
from evalsuite.gate.store import Stored
from evalsuite.report.ledger import Ledger
from evalsuite.report.outcome import Outcome
from evalsuite.result import Measurement
from evalsuite.tasks.task import Task
from evalsuite.zoo.manifest import Entry
from tests.gate_rows import STORED, documents, items
from tests.report_rows import RECORDED

ZOO = "evalsuite/test_zoo.py::test_metric"
MINE = "tests/test_mine.py::test_row"


def node(row_id: str, prefix: str = "") -> str:
    return f"{prefix}{ZOO}[{row_id}]"


def case(row_id: str, *, ad_hoc: bool = False) -> Case:
    model, task, metric = row_id.split("--")
    found = Task(task, "lm", Path(), (metric,), (metric,))
    return Case(Entry(model, {"id": model}, Path()), found, metric, ad_hoc=ad_hoc)


def stored(row_id: str, test: str | None = None, *, gating: bool = True, **header: Any) -> Stored:
    """A baseline: of the zoo, or of the user's ``test``."""
    folder = "test_zoo" if test is None else "test_mine"
    known = {"value": 2.0, "ci95": [1.9, 2.1], "n": 9, "recorded": RECORDED} | header
    return Stored(row_id, Path("snapshots", folder, f"{row_id}.json"), gating, test or node(row_id), known)


def payload(row_id: str, state: str = "ok", test: str | None = None, **more: Any) -> dict[str, Any]:
    """What a worker sends: a row, its items and its model's timing."""
    model, task, metric = row_id.split("--")
    row = {"id": row_id, "model": model, "task": task, "metric": metric, "state": state, "gating": True}
    row |= {"test": test or node(row_id), "baseline": None, "reason": None} | more.pop("row", {})
    return {"row": row, "items": [], "timing": {}} | more


class Book:
    """A ledger with what the hooks would have noted."""

    def __init__(self, folder: Path, *selected: str) -> None:
        self.outcomes: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.ledger = Ledger(folder, list(selected), self.outcomes, self.why)

    def ended(self, node_id: str, outcome: str, why: str = "") -> None:
        self.outcomes[node_id], self.why[node_id] = outcome, why

    def sends(self, row_id: str, state: str = "ok", **more: Any) -> None:
        sent = payload(row_id, state, **more)
        self.ended(sent["row"]["test"], "passed")
        self.ledger.receive(sent, sent["row"]["test"])

    def complete(
        self,
        cases: Sequence[str] = (),
        baselines: Sequence[Stored] = (),
        crashed: Mapping[str, str] | None = None,
        *,
        zoo_asked: bool = True,
        narrowed: bool = False,
    ) -> dict[str, dict[str, Any]]:
        rows = self.ledger.complete(
            [case(row_id) for row_id in cases], baselines, crashed or {}, zoo_asked=zoo_asked, narrowed=narrowed
        )
        self.ledger.close()
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row for row in rows}


ROWS = ["a--t--bpb", "a--t--ppl", "b--t--bpb"]


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "report", *map(node, ROWS))


# --- rows of the zoo


def test_received_rows_in_the_order_of_the_cases(book: Book) -> None:
    for row_id in reversed(ROWS):
        book.sends(row_id)
    found = book.complete(ROWS)
    assert list(found) == ROWS
    assert {row["state"] for row in found.values()} == {"ok"}


@pytest.mark.parametrize("prefix", ["", "../../site-packages/"])
def test_a_row_is_known_wherever_the_package_lies(tmp_path: Path, prefix: str) -> None:
    book = Book(tmp_path, node(ROWS[0], prefix))
    assert book.complete(ROWS[:1])[ROWS[0]]["state"] == "not_run"


def test_what_a_stopped_run_never_reached(book: Book) -> None:
    book.sends(ROWS[0])
    found = book.complete(ROWS)
    assert [row["state"] for row in found.values()] == ["ok", "not_run", "not_run"]
    row = found[ROWS[1]]
    assert row["reason"] == "the run ended before it (--maxfail, -x or an interrupt)"
    assert row["test"] == node(ROWS[1])
    assert (row["model"], row["task"], row["metric"], row["gating"]) == ("a", "t", "ppl", True)
    assert set(row["source"].values()) == {None}


def test_a_crash_takes_its_models_other_rows_along(book: Book) -> None:
    book.ended(node(ROWS[0]), "crashed", "worker died")
    book.sends(ROWS[2])
    found = book.complete(ROWS, crashed={"a": node(ROWS[0])})
    assert [row["state"] for row in found.values()] == ["crashed", "crashed", "ok"]
    assert found[ROWS[0]]["reason"].startswith("its worker died while scoring it")
    assert found[ROWS[1]]["reason"] == (f"its model killed a worker in {node(ROWS[0])} and was not loaded again")


def test_rows_that_arrived_before_the_crash_stay(book: Book) -> None:
    book.sends(ROWS[0])
    book.ended(node(ROWS[1]), "crashed")
    found = book.complete(ROWS, crashed={"a": node(ROWS[1])})
    assert [row["state"] for row in found.values()] == ["ok", "crashed", "not_run"]


def test_a_late_report_of_a_crashed_test_is_ignored(book: Book) -> None:
    book.ended(node(ROWS[0]), "crashed")
    book.ledger.receive(payload(ROWS[0]), node(ROWS[0]))
    assert book.complete(ROWS)[ROWS[0]]["state"] == "crashed"
    assert not (book.ledger.folder / "rows.jsonl").exists()


def test_deselected_rows(tmp_path: Path) -> None:
    book = Book(tmp_path, node(ROWS[0]))
    book.sends(ROWS[0])
    found = book.complete(ROWS, narrowed=True)
    assert [row["state"] for row in found.values()] == ["ok", "deselected", "deselected"]
    assert found[ROWS[1]]["reason"] is None


@pytest.mark.parametrize(
    ("outcome", "why", "reason"),
    [
        ("failed", "fixture 'x' not found", "fixture 'x' not found"),
        ("failed", "", "its test failed without a row"),
        ("passed", "", "its test passed without a row"),
    ],
)
def test_a_test_without_a_row_is_an_error(book: Book, outcome: str, why: str, reason: str) -> None:
    book.ended(node(ROWS[0]), outcome, why)
    row = book.complete(ROWS)[ROWS[0]]
    assert (row["state"], row["reason"]) == ("error", reason)


# --- baselines that nobody answered for


def test_a_baseline_that_the_zoo_no_longer_asks_for_is_lost(book: Book) -> None:
    for row_id in ROWS:
        book.sends(row_id)
    gone = stored("old--t--bpb", gating=False)
    found = book.complete(ROWS, [gone, stored(ROWS[0])])
    assert list(found) == [*ROWS, "old--t--bpb"]
    row = found["old--t--bpb"]
    assert (row["state"], row["gating"], row["test"]) == ("lost", False, node("old--t--bpb"))
    assert row["reason"] == "it has a baseline, but the zoo no longer asks for it"
    assert row["baseline"] == {"value": 2.0, "ci95": [1.9, 2.1], "n": 9, "recorded": RECORDED}
    assert found[ROWS[0]]["state"] == "ok"


def test_nothing_is_lost_where_nobody_asked(book: Book) -> None:
    assert "old--t--bpb" not in book.complete(ROWS, [stored("old--t--bpb")], zoo_asked=False)
    assert "old--t--bpb" in book.complete(ROWS, [stored("old--t--bpb")], narrowed=True), "all cases were selected"
    book.ledger.collected = book.ledger.collected[1:]
    assert "old--t--bpb" not in book.complete(ROWS, [stored("old--t--bpb")])


def test_a_run_that_is_not_the_zoos_owes_no_zoo_rows(book: Book) -> None:
    assert book.complete(ROWS, zoo_asked=False) == {}


# --- rows of a user's tests


def mine(folder: Path, *selected: str) -> Book:
    return Book(folder, *(selected or (MINE,)))


def test_a_users_row(tmp_path: Path) -> None:
    book = mine(tmp_path)
    book.sends("bot--help--f1", test=MINE)
    found = book.complete([], [stored("bot--help--f1", MINE)], zoo_asked=False)
    assert [row["state"] for row in found.values()] == ["ok"]


def test_users_rows_follow_the_zoos_by_id(tmp_path: Path) -> None:
    book = Book(tmp_path, MINE, node(ROWS[0]))
    for row_id in ("z--t--f1", "m--t--f1"):
        book.sends(row_id, test=MINE)
    book.sends(ROWS[0])
    assert list(book.complete(ROWS[:1])) == [ROWS[0], "m--t--f1", "z--t--f1"]


ABSENT = "it has a baseline, but no test recorded it"


@pytest.mark.parametrize(
    ("selected", "outcome", "narrowed", "expected"),
    [
        # Its file was not selected: nobody asked.
        ("tests/test_other.py::test_row", "passed", False, None),
        ("tests/test_mine.py.bak::test_row", "passed", False, None),
        # Its file was, its test is gone or recorded nothing.
        ("tests/test_mine.py::test_other", "passed", False, ("lost", ABSENT)),
        (MINE, "passed", False, ("lost", ABSENT)),
        (MINE, "skipped", False, ("lost", ABSENT)),
        # Left out on purpose, or run without recording.
        ("tests/test_mine.py::test_other", "passed", True, None),
        (MINE, "passed", True, ("lost", ABSENT)),
        # Its test had no chance.
        (MINE, "failed", False, ("error", "its test failed before recording it: boom")),
        (MINE, "failed", True, ("error", "its test failed before recording it: boom")),
        (MINE, "crashed", False, ("crashed", "its worker died in the test that records it")),
        (MINE, None, False, ("not_run", "the run ended before its test (--maxfail, -x or an interrupt)")),
        (MINE, None, True, ("not_run", "the run ended before its test (--maxfail, -x or an interrupt)")),
    ],
)
def test_a_users_row_that_did_not_arrive(
    tmp_path: Path, selected: str, outcome: str | None, narrowed: bool, expected: tuple[str, str] | None
) -> None:
    book = mine(tmp_path, selected)
    if outcome is not None:
        book.ended(selected, outcome, "boom")
    found = book.complete([], [stored("bot--help--f1", MINE)], zoo_asked=False, narrowed=narrowed)
    if expected is None:
        assert found == {}
    else:
        row = found["bot--help--f1"]
        assert (row["state"], row["reason"]) == expected
        assert row["test"] == MINE
        assert row["baseline"] is not None


def test_a_users_row_of_a_model_that_crashed_elsewhere(tmp_path: Path) -> None:
    """The scheduler runs no test of that model any more: this one was not merely cut off."""
    test = "tests/test_mine.py::test_row[a--t--bpb]"
    book = Book(tmp_path, node(ROWS[0]), test, MINE)
    book.ended(node(ROWS[0]), "crashed")
    baselines = [stored("a--mine--f1", test), stored("bot--help--f1", MINE)]
    found = book.complete([ROWS[0]], baselines, crashed={"a": node(ROWS[0])})
    assert {row_id: row["state"] for row_id, row in found.items()} == {
        ROWS[0]: "crashed",
        "a--mine--f1": "crashed",
        "bot--help--f1": "not_run",
    }
    assert found["a--mine--f1"]["reason"].startswith(f"its model killed a worker in {node(ROWS[0])}")


@pytest.mark.parametrize("order", [lambda *tests: tests, lambda *tests: tests[::-1]], ids=["first", "last"])
def test_two_tests_that_record_one_row(tmp_path: Path, order: Callable[..., tuple[str, ...]]) -> None:
    """Whichever ends first."""
    other = "tests/test_mine.py::test_other"
    book = mine(tmp_path, MINE, other)
    for test in order(MINE, other):
        book.sends("bot--help--f1", test=test)
    row = book.complete([], zoo_asked=False)["bot--help--f1"]
    assert row["state"] == "error"
    assert row["reason"] == f"two tests record the row bot--help--f1: {other} and {MINE}; give one another metric"


def test_a_test_that_is_run_again_replaces_its_row(tmp_path: Path) -> None:
    book = mine(tmp_path)
    book.sends("bot--help--f1", "regressed", test=MINE)
    book.sends("bot--help--f1", "ok", test=MINE)
    assert book.complete([], zoo_asked=False)["bot--help--f1"]["state"] == "ok"


# --- baselines beside rows


@pytest.mark.parametrize(
    ("state", "has"), [("ok", True), ("error", True), ("skipped", True), ("new", False), ("recorded", False)]
)
def test_a_row_shows_the_baseline_it_was_or_would_be_compared_with(book: Book, state: str, has: bool) -> None:
    book.sends(ROWS[0], state)
    assert (book.complete(ROWS, [stored(ROWS[0])])[ROWS[0]]["baseline"] is not None) == has


def test_a_damaged_baseline_is_not_shown(book: Book) -> None:
    damaged = Stored(ROWS[0], Path("snapshots/test_zoo/x.json"), True, "", {})
    assert book.complete(ROWS, [damaged])[ROWS[0]]["baseline"] is None


# --- files and timing


def test_the_last_runs_report_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "items").mkdir()
    for name in ("report.json", "eval-results.json", "rows.jsonl", "items/old--t--bpb.jsonl"):
        (tmp_path / name).write_text("stale")
    for name in ("mine.json", "items/notes.txt", "junit.xml"):
        (tmp_path / name).write_text("keep")
    ledger = Ledger(tmp_path, [], {}, {})
    ledger.open()
    ledger.close()
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == [
        *("items/notes.txt", "junit.xml", "mine.json", "rows.jsonl"),
    ]
    assert (tmp_path / "rows.jsonl").read_text() == ""


def test_rows_are_on_disk_as_they_arrive(book: Book) -> None:
    for number, row_id in enumerate(ROWS[:2], start=1):
        book.sends(row_id, items=[{"id": "q0", "score": 1.0}])
        lines = (book.ledger.folder / "rows.jsonl").read_text().splitlines()
        assert len(lines) == number
        row = json.loads(lines[-1])
        assert (row["id"], row["items"]) == (row_id, f"items/{row_id}.jsonl")
        assert json.loads((book.ledger.folder / row["items"]).read_text()) == {"id": "q0", "score": 1.0}


def test_a_row_with_a_number_that_json_lacks_is_an_error(book: Book) -> None:
    book.sends(ROWS[0], row={"value": float("nan")})
    row = book.complete(ROWS)[ROWS[0]]
    assert row["state"] == "error"
    json.dumps(row, allow_nan=False)


def test_a_models_timing_is_the_largest_seen(book: Book) -> None:
    for seconds in (1.0, 3.0, 2.0):
        timing = {"load_seconds": 0.5, "eval_seconds": seconds, "peak_rss_mb": 100.0}
        book.sends(ROWS[0], timing=timing)
    book.sends(ROWS[2])
    assert book.ledger.timing == {"a": {"load_seconds": 0.5, "eval_seconds": 3.0, "peak_rss_mb": 100.0}}


# --- what a worker sends


def outcome(folder: Path, **given: Any) -> Outcome:
    desk = Desk(folder, "m--t--acc", 0.04, False, STORED)
    return Outcome("m", "t", "acc", True, MINE, desk, **given)


def compared(folder: Path, now: Measurement, base: Measurement, **given: Any) -> Outcome:
    """A row after the comparison that syrupy makes."""
    found = outcome(folder, measurement=now, **given)
    extension = extension_for(found.desk)()
    extension.matches(serialized_data=extension.serialize(now), snapshot_data=extension.serialize(base))
    return found


def test_a_compared_row(tmp_path: Path) -> None:
    sent = compared(tmp_path, items([0] * 20), items([1] * 20)).row()
    assert (sent["id"], sent["state"], sent["reason"], sent["test"]) == ("m--t--acc", "regressed", None, MINE)
    assert (sent["value"], sent["ci95"], sent["n"], sent["units"], sent["clusters"]) == (0.0, [0.0, 0.0], 20, 20, None)
    assert sent["baseline"]["value"] == 1.0
    assert sent["baseline"]["recorded"] == {key: STORED[key] for key in RECORDED}
    verdict = sent["verdict"]
    assert (verdict["drop"], verdict["p"], verdict["level"], verdict["worse"]) == (1.0, 2.0**-20, 0.04, 20)
    assert json.loads(json.dumps(sent)) == sent


def test_an_incomparable_row_has_a_reason_and_no_numbers_of_a_comparison(tmp_path: Path) -> None:
    sent = compared(tmp_path, items([1, 1], task_hash="two"), items([1] * 20, task_hash="one")).row()
    assert (sent["state"], sent["verdict"]) == ("incomparable", None)
    assert "2 of 20 units" in sent["reason"]
    assert sent["baseline"] is not None


def test_states_of_a_row_that_was_not_compared(tmp_path: Path) -> None:
    scored = items([1, 0])
    assert outcome(tmp_path, measurement=scored).state == "new"
    assert outcome(tmp_path, measurement=scored, ad_hoc=True).state == "informing"
    failed = outcome(tmp_path, failure=("skipped", "no zoo scorer"))
    assert (failed.state, failed.red, failed.row()["reason"], failed.items()) == ("skipped", False, "no zoo scorer", [])
    assert "value" not in failed.row()
    written = outcome(tmp_path, measurement=scored)
    written.desk.written = True
    assert (written.state, written.row()["verdict"]) == ("recorded", None)


def test_a_damaged_baseline_makes_an_error(tmp_path: Path) -> None:
    damaged = outcome(tmp_path, measurement=items([1, 0]))
    damaged.desk.damage = "x.json: cut off"
    sent = damaged.row()
    assert (sent["state"], sent["reason"], damaged.red) == ("error", "x.json: cut off", True)
    assert "value" not in sent


def test_items_and_counts(tmp_path: Path) -> None:
    scored = items([1, 0, 0], clusters=["a", "a", "b"], tolerance=[0, 1, 0], unscored=("q2",))
    found = outcome(tmp_path, measurement=scored)
    sent = found.row()
    assert (sent["clusters"], sent["unscored"], sent["unstable"], sent["units"]) == (2, 1, 1, 3)
    lines = found.items()
    assert [line["id"] for line in lines] == ["q0", "q1", "q2"]
    assert [line["cluster"] for line in lines] == ["a", "a", "b"]
    assert [line.get("unscored") for line in lines] == [None, None, True]
    assert json.loads(json.dumps(lines)) == lines
    # The dead zone of a language model marks no unit.
    assert outcome(tmp_path, measurement=documents([3, 4], [10, 10])).row()["unstable"] == 0

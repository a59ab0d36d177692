"""The controller's book: which rows a run owes, which arrived, and what became of the rest.

A report made of received rows only would hide a crash; this one starts from the rows that were expected. A pure
object: hooks feed it node ids and reports, `complete` gives the rows of the report.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evalsuite.cases import Case
from evalsuite.gate.store import Stored
from evalsuite.report.json_file import RowLog, write_items
from evalsuite.report.rows import Recorded, Source, error_row
from evalsuite.selection import ZOO_TEST, test_files, zoo_row

TIMINGS = ("load_seconds", "eval_seconds", "peak_rss_mb")


@dataclass(eq=False)
class Ledger:
    """Rows of one run on the controller.

    Attributes:
        folder: where the report goes; rows are appended to ``rows.jsonl`` there as they arrive.
        collected: node ids of the tests that were selected.
        outcomes: node id -> how its test ended, ``passed``, ``failed``, ``skipped`` or ``crashed``.
        why: node id -> the last line of a failed test's message.
        rows: the rows received, by id.
        timing: model -> seconds and memory.
    """

    folder: Path
    collected: Sequence[str]
    outcomes: Mapping[str, str]
    why: Mapping[str, str]
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    timing: dict[str, dict[str, float]] = field(default_factory=dict)
    _log: RowLog | None = None

    def open(self) -> RowLog:
        """Start the report's folder: what the last run left there must not be taken for this run's.

        Raises:
            pytest.UsageError: the folder cannot be written to.
        """
        if self._log is None:
            reports = [self.folder / name for name in ("report.json", "eval-results.json")]
            try:
                # By the names that rows have, since the folder may be one where the user keeps other files.
                for stale in (*self.folder.glob("items/*--*--*.jsonl"), *reports):
                    stale.unlink(missing_ok=True)
                self._log = RowLog(self.folder / "rows.jsonl")
            except OSError as error:
                raise pytest.UsageError(f"--eval-out {self.folder}: no report can be written there ({error})") from None
        return self._log

    def check(self) -> None:
        """See that the folder, which is not there, can be made, without making it.

        Raises:
            pytest.UsageError: it cannot.
        """
        above = next(parent for parent in self.folder.parents if parent.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            why = "no write permission" if above.is_dir() else "no folder"
            raise pytest.UsageError(f"--eval-out {self.folder}: no report can be written there ({above}: {why})")

    def close(self) -> None:
        """Close the row log."""
        if self._log is not None:
            self._log.close()

    def receive(self, payload: Mapping[str, Any], node_id: str) -> None:
        """Take a row that rode on a test's report. A later report of a crashed test is ignored."""
        if self.outcomes.get(node_id) == "crashed":
            return
        row = dict(payload["row"])
        twin = next((one for one in self.rows.values() if one["id"].casefold() == row["id"].casefold()), None)
        if twin is not None and (twin["id"], twin["test"]) != (row["id"], row["test"]):
            del self.rows[twin["id"]]
            row = _two_tests(*sorted((twin, row), key=lambda one: (one["id"], one["test"])))
        log = self.open()
        if payload["items"] and row["state"] != "error":
            try:
                row["items"] = write_items(self.folder, row["id"], payload["items"])
            except OSError as error:
                row = error_row(row, f"its items cannot be written ({error})")
        self.rows[row["id"]] = row
        log.append(row)
        if payload["timing"]:
            kept = self.timing.setdefault(row["model"], dict.fromkeys(TIMINGS, 0.0))
            for key in TIMINGS:
                # The bench counts up over a model's rows, so the largest is the whole.
                kept[key] = max(kept[key], payload["timing"][key])

    def complete(
        self,
        cases: Sequence[Case],
        stored: Iterable[Stored],
        crashed: Mapping[str, str],
        *,
        zoo_asked: bool,
        narrowed: bool,
        files: frozenset[str] | None = None,
    ) -> list[dict[str, Any]]:
        """All rows of the report: received, owed and lost.

        Args:
            cases: every case of the zoo and the command line.
            stored: the baselines as they were when the run began.
            crashed: model -> node id of the test that its worker died in.
            zoo_asked: whether the run was to score the zoo at all.
            narrowed: whether tests were left out on purpose; then a user's row without a result need not be lost.
            files: test files that the run was asked for; those of the collected tests where absent.
        """
        files = test_files(self.collected) if files is None else files
        selected = {owed: node_id for node_id in self.collected if (owed := zoo_row(node_id))}
        # A row of the zoo can only be missed when every case was to be scored: a deselected one may stand for it.
        whole = zoo_asked and all(case.row_id in selected for case in cases)
        known = {one.row_id: one for one in stored}
        rows: dict[str, dict[str, Any]] = {}
        for case in cases if zoo_asked else ():
            rows[case.row_id] = self.rows.get(case.row_id) or (
                _bare(case.model, case.task.name, case.metric, case.gating, f"{ZOO_TEST}[{case.row_id}]")
                | self._fate(selected.get(case.row_id), crashed.get(case.model))
            )
        for row_id in sorted(self.rows.keys() - rows.keys()):
            rows[row_id] = self.rows[row_id]
        for one in known.values():
            if one.row_id in rows:
                continue
            fate = self._absent_zoo(one, whole) if one.of_zoo else self._absent(one, crashed, files, narrowed=narrowed)
            if fate is not None:
                model, task, metric = one.row_id.split("--")
                rows[one.row_id] = _bare(model, task, metric, one.gating, one.test or None) | fate
        for row_id, row in rows.items():
            if row_id in known and row.get("baseline") is None and row["state"] not in ("recorded", "new"):
                row["baseline"] = _baseline(known[row_id])
        return [_finite(row) for row in rows.values()]

    def _fate(self, node_id: str | None, killer: str | None) -> dict[str, Any]:
        """What became of a case that sent no row."""
        if node_id is None:
            return {"state": "deselected"}
        outcome = self.outcomes.get(node_id)
        if outcome == "crashed":
            return {
                "state": "crashed",
                "reason": "its worker died while scoring it (killed from outside? out of memory?)",
            }
        if killer is not None:
            return _after_crash(killer)
        if outcome is not None:
            return {"state": "error", "reason": self.why.get(node_id) or f"its test {outcome} without a row"}
        return {"state": "not_run", "reason": "the run ended before it (--maxfail, -x or an interrupt)"}

    @staticmethod
    def _absent_zoo(one: Stored, whole: bool) -> dict[str, Any] | None:
        """What became of a baseline of the zoo that no case answers for, or None when nobody asked for it."""
        if not whole or one.ad_hoc:
            return None
        return {"state": "lost", "reason": "it has a baseline, but the zoo no longer asks for it"}

    def _absent(
        self, one: Stored, crashed: Mapping[str, str], files: frozenset[str], *, narrowed: bool
    ) -> dict[str, Any] | None:
        """What became of a baseline of a user's test that sent no row, or None when its file was not asked for."""
        if one.test.split("::")[0] not in files:
            return None
        outcome = self.outcomes.get(one.test)
        if outcome == "crashed":
            return {"state": "crashed", "reason": "its worker died in the test that records it"}
        if outcome == "failed":
            return {"state": "error", "reason": f"its test failed before recording it: {self.why.get(one.test, '')}"}
        if outcome is None and one.test in self.collected:
            if (killer := _killer(one.test, crashed)) is not None:
                return _after_crash(killer)
            return {"state": "not_run", "reason": "the run ended before its test (--maxfail, -x or an interrupt)"}
        if narrowed and outcome is None:
            return None
        return {"state": "lost", "reason": "it has a baseline, but no test recorded it"}


def _two_tests(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The row that stands for two of one name. Sorted, so that it does not depend on which test ended first."""
    names = first["id"] if first["id"] == second["id"] else f"{first['id']} (and {second['id']}: case does not count)"
    return _bare(first["model"], first["task"], first["metric"], first["gating"], first["test"]) | {
        "state": "error",
        "reason": f"two tests record the row {names}: {first['test']} and {second['test']}; give one another metric",
    }


def _killer(node_id: str, crashed: Mapping[str, str]) -> str | None:
    """The test in which the model of this test killed its worker, or None."""
    if not crashed:
        return None
    from evalsuite.scheduler import model_of  # needs xdist, without which no worker can crash

    return crashed.get(model_of(node_id) or "")


def _after_crash(killer: str) -> dict[str, Any]:
    return {"state": "crashed", "reason": f"its model killed a worker in {killer} and was not loaded again"}


def _bare(model: str, task: str, metric: str, gating: bool, test: str | None) -> dict[str, Any]:
    """A row of which only the name is known."""
    return {
        "id": f"{model}--{task}--{metric}",
        "model": model,
        "task": task,
        "metric": metric,
        "gating": gating,
        "test": test,
        "reason": None,
        "baseline": None,
        "source": dict.fromkeys(Source.__annotations__),
    }


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """The row, or an error in its place where a number is none that JSON has: one bad row must not cost the report."""
    try:
        json.dumps(row, allow_nan=False)
    except ValueError:
        return error_row(row | {"baseline": None}, "a number of the row is not finite")
    return row


def _baseline(one: Stored) -> dict[str, Any] | None:
    """A stored row as the report states it, or None when its file is damaged."""
    header = one.header
    try:
        recorded = {key: header["recorded"][key] for key in Recorded.__annotations__}
        return {"value": header["value"], "ci95": header["ci95"], "n": header["n"], "recorded": recorded}
    except KeyError:
        return None

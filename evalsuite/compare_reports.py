"""Two runs compared offline, from their report folders: the verdicts that the gate would have given.

Rows pair by id, units by id and content, as in a run. The family is the gating rows of the older report; a row that it
scored and the newer one lacks is lost, and one that only the newer one has is new and is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalsuite.gate.verdict import Verdict, judge, row_levels
from evalsuite.report.blocks import block
from evalsuite.report.numbers import count
from evalsuite.report.outcome import plain_verdict
from evalsuite.report.read import StoredReport, read_report
from evalsuite.report.rows import SCORED, normal_row

OK, REGRESSION, NOT_COMPARABLE, BAD_INPUT = 0, 1, 2, 3
"""Exit statuses of ``evalsuite compare``."""


@dataclass(frozen=True)
class Compared:
    """A row of either report and what became of it.

    Attributes:
        row: the newer row, or the older one where it is lost, with the new state, baseline and verdict.
    """

    row: Mapping[str, Any]

    @property
    def state(self) -> str:
        """The row's state."""
        return str(self.row["state"])

    @property
    def failed(self) -> bool:
        """Whether the newer run is worse here."""
        return self.state in ("regressed", "lost", "error", "crashed", "not_run")


def compare_reports(base: str | Path, new: str | Path) -> list[Compared]:
    """Judge every row of two reports.

    Args:
        base: folder of the older report.
        new: folder of the newer one.

    Returns:
        The rows of the older report in its order, then those that only the newer one has.

    Raises:
        ValueError: a report or its items cannot be read.
    """
    older, newer = read_report(base), read_report(new)
    rows = older.rows
    family = row_levels({row_id: bool(row["gating"]) for row_id, row in rows.items() if row["state"] in SCORED})
    found = [_compare(older, newer, row, family.get(row_id)) for row_id, row in rows.items() if row["state"] in SCORED]
    added = [row for row_id, row in newer.rows.items() if row_id not in rows or rows[row_id]["state"] not in SCORED]
    return found + [Compared(normal_row({**row, "state": "new", "baseline": None, "verdict": None})) for row in added]


def _compare(older: StoredReport, newer: StoredReport, row: Mapping[str, Any], level: float | None) -> Compared:
    base = older.measurement(row)
    assert base is not None  # the row was scored
    now_row = newer.rows.get(row["id"])
    if now_row is None:
        gone = {"state": "lost", "reason": "the newer report has no such row", "value": None, "verdict": None}
        return Compared(normal_row({**row, **gone, "baseline": None}))
    now = newer.measurement(now_row)
    if now is None:
        state = "lost" if now_row["state"] == "skipped" else now_row["state"]
        return Compared(normal_row({**now_row, "state": state, "baseline": None, "verdict": None}))
    verdict = judge(now, base, level)
    baseline = {"value": base.value, "ci95": [base.lo, base.hi], "n": base.n, "recorded": _recorded(older)}
    changed = {"state": verdict.state, "reason": verdict.reason or None, "baseline": baseline}
    return Compared(normal_row({**now_row, **changed, "verdict": _shown(verdict)}))


def _shown(verdict: Verdict) -> dict[str, Any] | None:
    return None if verdict.state == "incomparable" else plain_verdict(verdict)


def _recorded(report: StoredReport) -> dict[str, Any]:
    """The older run's provenance in the place of a baseline's."""
    facts = report.document["provenance"]
    return {
        "date": report.document["run"]["started"],
        "commit": facts["git_commit"],
        **{key: facts[key] for key in ("seed", "threads", "platform", "versions")},
    }


def comparison_status(rows: list[Compared]) -> int:
    """`REGRESSION` where any row is worse, else `NOT_COMPARABLE` where a row could not be compared, else `OK`."""
    if any(one.failed for one in rows):
        return REGRESSION
    if any(one.state == "incomparable" for one in rows) or not any(one.state != "new" for one in rows):
        return NOT_COMPARABLE
    return OK


def comparison_lines(rows: list[Compared]) -> list[str]:
    """The comparison as text: each row's block, the worse ones last, next to the verdict."""
    ordered = sorted(rows, key=lambda one: (one.failed, one.state == "incomparable"))
    lines = [line for one in ordered for line in block([one.row])]
    states = [one.state for one in rows]
    parts = [f"{states.count(state)} {state.replace('_', ' ')}" for state in dict.fromkeys(states)]
    return [*lines, f"compared {count(len(rows), 'row')}: {', '.join(parts)}"]

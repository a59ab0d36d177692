"""From the rows of a run to the files of its report folder: report.json and eval-results.json."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalsuite.gate.verdict import ALPHA_ROW
from evalsuite.provenance import git_commit, platform_name, versions
from evalsuite.report.build import build_report, validate
from evalsuite.report.eval_results import eval_results, validate_v1, write_v1
from evalsuite.report.json_file import write_json

if TYPE_CHECKING:
    from evalsuite.record import Run


def write_reports(
    rows: Sequence[Mapping[str, Any]], run: Run, *, partial: bool, exit_status: int, facts: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Build, check and write both reports.

    Returns:
        The report, and what is wrong with either of them, one line each; a faulty one is written all the same.
    """
    chosen = run.settings
    report = build_report(
        rows,
        provenance={
            "versions": versions(),
            "platform": platform_name(),
            "seed": chosen.seed,
            "threads": chosen.threads,
            "git_commit": git_commit(chosen.root),
            "family": {"rows": len(run.levels), "alpha_row": ALPHA_ROW},
        },
        run={**facts, "host": socket.gethostname()},
        expected=sum(row["state"] != "deselected" for row in rows),
        exit_status=exit_status,
        suite=run.suite,
        partial=partial,
    )
    v1 = eval_results(report)
    faults = [*validate(report), *(f"eval-results.json: {fault}" for fault in validate_v1(v1))]
    write_json(report, chosen.out / "report.json")
    write_v1(v1, chosen.out / "eval-results.json")
    return report, faults

"""Rows and reports for the tests of the report: the two models of the design's example screens."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from evalsuite.report.build import build_report
from evalsuite.report.terminal import summary_lines

PATH = "eval-report/report.json"
METRICS = [("prose", "bpb"), ("prose", "ppl"), ("quiz", "acc"), ("quiz", "acc_norm")]

RECORDED = {
    "date": "2026-11-28T10:00:00Z",
    "commit": "3f2c1a9",
    "seed": 0,
    "threads": 1,
    "platform": "Linux x86_64",
    "versions": {"python": "3.11.7", "torch": "2.6.0"},
}
PROVENANCE = {
    "versions": {"python": "3.11.7", "torch": "2.6.0", "numpy": "2.1.0"},
    "platform": "Linux x86_64",
    "seed": 0,
    "threads": 1,
    "git_commit": "9e107d9",
    "family": {"rows": 6, "alpha_row": 0.04},
}
RUN = {
    "started": "2026-11-30T10:00:00Z",
    "seconds": 23.2,
    "workers": 2,
    "host": "box",
    "models": {"gpt-tiny": {"load_seconds": 0.4, "eval_seconds": 2.0, "peak_rss_mb": 310.0}},
}
VALUES: dict[str, tuple[float, float, float, bool]] = {
    "bpb": (2.214, 2.18, 2.249, False),
    "ppl": (21.53, 20.1, 23.0, False),
    "acc": (0.312, 0.255, 0.376, True),
    "acc_norm": (0.33, 0.27, 0.4, True),
}


def verdict(**given: Any) -> dict[str, Any]:
    """A gate's finding of no change, with ``given`` in its place."""
    same = {"drop": 0.0, "drop_ci95": [0.0, 0.0], "p": 1.0, "level": 0.007, "min_drop": 0.001, "test": "sign-flip"}
    counts = {"units": 312, "changed": 0, "worse": 0, "better": 0, "missing": [], "new": [], "notes": []}
    return same | counts | given


def row(model: str, task: str, metric: str, state: str = "ok", **given: Any) -> dict[str, Any]:
    """A scored row that equals its baseline, with ``given`` in its place."""
    value, lo, hi, higher = VALUES[metric]
    row_id = f"{model}--{task}--{metric}"
    return {
        "id": row_id,
        "model": model,
        "task": task,
        "metric": metric,
        "state": state,
        "gating": metric != "ppl",
        "higher_is_better": higher,
        "value": value,
        "ci95": [lo, hi],
        "interval": "cluster-t" if metric in ("bpb", "ppl") else "wilson",
        "n": 31200 if metric in ("bpb", "ppl") else 200,
        "baseline": {"value": value, "ci95": [lo, hi], "n": 31200, "recorded": RECORDED},
        "verdict": verdict(),
        "source": {"tl_arch": "gpt", "checkpoint": model, "params": 875264},
        "test": f"evalsuite/test_zoo.py::test_metric[{row_id}]",
    } | given


def unscored(model: str, task: str, metric: str, state: str, reason: str | None, **given: Any) -> dict[str, Any]:
    """A row without a value."""
    gone = dict.fromkeys(("value", "ci95", "interval", "n", "baseline", "verdict"))
    return row(model, task, metric, state, reason=reason, **(gone | given))


def fresh(model: str, task: str, metric: str) -> dict[str, Any]:
    """A scored row without a baseline."""
    return row(model, task, metric, "new", baseline=None, verdict=None)


def regressed() -> dict[str, Any]:
    """The regression of the design's red screen."""
    worse = verdict(drop=0.104, drop_ci95=[0.089, 0.119], p=2e-31, changed=312, worse=301, better=11)
    return row("gpt-tiny", "prose", "bpb", "regressed", value=2.318, ci95=[2.28, 2.357], verdict=worse)


def report(rows: list[dict[str, Any]], **given: Any) -> dict[str, Any]:
    """A report on ``rows``; the exit status is 1 unless ``given``."""
    facts: dict[str, Any] = {"provenance": PROVENANCE, "run": RUN, "exit_status": 1}
    facts["expected"] = sum(each.get("state") != "deselected" for each in rows)
    return build_report(rows, **(facts | given))


def screen(rows: list[dict[str, Any]], *, command: str = "pytest evalsuite", **given: Any) -> str:
    """The screen for a report on ``rows``, which must fit 100 columns of plain ASCII but for commands."""
    lines = summary_lines(
        report(rows, **given),
        report_path=PATH,
        command=command,
        age_now=datetime(2026, 11, 30, 12, tzinfo=UTC),
    )
    assert all(line.isascii() and line.isprintable() and line == line.rstrip() for line in lines)
    assert [line for line in lines if len(line) > 100 and not re.search("pytest|evalsuite forget", line)] == []
    return "\n".join(lines)


def model(name: str) -> list[dict[str, Any]]:
    """The four rows of a model that equals its baseline."""
    return [row(name, task, metric) for task, metric in METRICS]

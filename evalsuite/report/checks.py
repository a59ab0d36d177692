"""What a JSON Schema cannot say about a report: numbers are finite, intervals hold their value, parts agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from evalsuite.report.layout import printable
from evalsuite.report.rows import RED, STATES


def semantic_errors(report: Mapping[str, Any]) -> list[str]:
    """Every broken rule as a ``path: message`` line. ``report`` already satisfies the schema."""
    errors = list(_not_finite(report, ""))
    for index, row in enumerate(report["rows"]):
        errors += [f"rows[{index}].{error} (row {printable(row['id'])})" for error in _row_errors(row)]
    return [*errors, *_id_errors(report), *_verdict_errors(report)]


def _not_finite(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{path}: {value} is not a finite number, which JSON cannot hold"
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _not_finite(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _not_finite(entry, f"{path}[{index}]")


def _row_errors(row: Mapping[str, Any]) -> Iterator[str]:
    joined = f"{row['model']}--{row['task']}--{row['metric']}"
    if row["id"] != joined:
        yield f"id: {row['id']!r}, but model, task and metric make {joined!r}"
    yield from _interval_errors("ci95", row["ci95"], row["value"])
    yield from _interval_errors("v1_ci95", row["v1_ci95"], None)
    if row["baseline"]:
        yield from _interval_errors("baseline.ci95", row["baseline"]["ci95"], row["baseline"]["value"])
    if row["verdict"]:
        yield from _interval_errors("verdict.drop_ci95", row["verdict"]["drop_ci95"], None)


def _interval_errors(name: str, interval: list[float] | None, value: float | None) -> Iterator[str]:
    if interval is None:
        return
    lo, hi = interval
    if lo > hi:
        yield f"{name}: lower end {lo} lies above upper end {hi}"
    elif value is not None and (value < lo or value > hi):
        yield f"{name}: [{lo}, {hi}] does not hold the value {value}"


def _id_errors(report: Mapping[str, Any]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for index, row in enumerate(report["rows"]):
        first = seen.setdefault(row["id"].casefold(), index)
        if first != index:
            yield f"rows[{index}].id: {row['id']!r} is also the id of rows[{first}] (case does not count)"


def _verdict_errors(report: Mapping[str, Any]) -> Iterator[str]:
    verdict, rows = report["verdict"], report["rows"]
    found = Counter(row["state"] for row in rows)
    for state in STATES:
        if verdict["counts"][state] != found[state]:
            yield f"verdict.counts.{state}: says {verdict['counts'][state]}, the rows hold {found[state]}"
    judged = len(rows) - found["deselected"]
    if judged < verdict["expected"]:
        yield f"verdict.expected: {verdict['expected']} rows are expected, the report holds {judged}"
    failures = [row["id"] for row in rows if row["state"] in RED] + list(verdict["gates"])
    if sorted(verdict["failures"]) != sorted(failures):
        odd = sorted(set(failures) ^ set(verdict["failures"])) or "a repeated entry"
        yield f"verdict.failures: does not agree with the red rows and gates: {odd}"
    status = "red" if failures or (verdict["exit"] and not judged) else "green"
    if verdict["status"] != status:
        yield f"verdict.status: says {verdict['status']}, the rows make it {status}"
    if status == "red" and verdict["exit"] == 0:
        yield "verdict.exit: 0, but the verdict is red"

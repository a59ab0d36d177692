"""What is said about a row: one block of lines, the same in the summary and in the failure of the row's test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalsuite.report.commands import SUITE, accept
from evalsuite.report.layout import flow, listed, paragraph, printable
from evalsuite.report.numbers import bracket, count, decimals, number, p_text, signed, with_interval
from evalsuite.report.rows import normal_row

_INDENT = 11
_PER_DOCUMENT = ("bpb", "ppl", "nll")


def short_verdict(row: Mapping[str, Any], *, command: str = SUITE) -> str:
    """The block of one row as text: the failure message of its test.

    Args:
        row: a row, optional keys may be absent.
        command: how the reader starts the suite, for a row that has to be recorded.
    """
    row = normal_row(row)
    lines = block([row])
    if row["state"] == "new":
        lines.append(f"{' ' * _INDENT}record it with `{accept(row, command)}`")
    return "\n".join(lines)


def block(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The block of rows that differ in the metric only: state, model, task, metrics, then what happened."""
    row, label = rows[0], state_text(rows[0]["state"])
    metrics = f"{row['metric']}{direction(row)}" if len(rows) == 1 else ", ".join(each["metric"] for each in rows)
    names = [printable(part) for part in (row["model"], row["task"], metrics)]
    lines = flow(names, gap="  ", indent=_INDENT, first=f"{label:<{_INDENT - 2}}  ")
    if row["value"] is not None and len(rows) == 1:
        lines += flow(numbers(row), gap=" ", indent=_INDENT)
    if row["reason"]:
        lines += paragraph(row["reason"], indent=_INDENT)
    elif row["value"] is None:
        lines += paragraph("no reason was given", indent=_INDENT)
    if len(rows) == 1:
        for note in notes(row):
            lines += paragraph(f"note: {note}", indent=_INDENT)
        if row["verdict"] and row["verdict"]["missing"]:
            lines += paragraph(f"missing now: {listed(row['verdict']['missing'])}", indent=_INDENT)
    return lines


def fold(rows: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """``rows`` in groups that share one block: without a value, and alike in state, model, task and reason."""
    groups: dict[object, list[Mapping[str, Any]]] = {}
    for row in rows:
        alike = (row["state"], row["model"], row["task"], row["reason"])
        groups.setdefault(row["id"] if row["value"] is not None else alike, []).append(row)
    return list(groups.values())


def state_text(state: str, of: int = 1) -> str:
    """A state as words, for ``of`` rows."""
    return "errors" if state == "error" and of > 1 else state.replace("_", " ")


def direction(row: Mapping[str, Any]) -> str:
    """`` (lower is better)``, or nothing where a metric has no direction."""
    if row["higher_is_better"] is None:
        return ""
    return " (higher is better)" if row["higher_is_better"] else " (lower is better)"


def units(row: Mapping[str, Any]) -> str:
    """What the paired comparison of a row counts: document, cluster or item."""
    if row["metric"] in _PER_DOCUMENT:
        return "document"
    return "item" if row["clusters"] is None else "cluster"


def change(row: Mapping[str, Any]) -> str:
    """``+0.004``, ``unchanged``, or the state of a row that was not compared. ``unchanged`` alone means that value and
    units are what they were."""
    verdict, baseline = row["verdict"], row["baseline"]
    if verdict is None or baseline is None:
        return "" if row["state"] in ("ok", "informing") else state_text(row["state"])
    others = verdict["missing"] or verdict["new"]
    on = f" on the {count(verdict['units'], units(row))} compared" if others else ""
    moved = -verdict["drop"] if row["higher_is_better"] else verdict["drop"]
    if moved:
        return signed(moved, decimals(row["value"], moved, of_change=1)) + on
    if verdict["changed"]:
        return f"+0 ({verdict['better']} better, {verdict['worse']} worse){on}"
    digits = decimals(row["value"])
    before, now = (number(side["value"], digits) for side in (baseline, row))
    return f"unchanged{on}" if on or before == now else f"was {before}, within noise"


def notes(row: Mapping[str, Any]) -> list[str]:
    """What a reader of the number should know: units that were left out, counted as losses or not scored."""
    if row["verdict"]:
        return list(row["verdict"]["notes"])
    unscored = row["unscored"]
    return [f"{unscored} units could not be scored and count at the worst score"] if unscored else []


def value_text(row: Mapping[str, Any]) -> str:
    """``2.214 [2.180, 2.249]``."""
    return with_interval(row["value"], row["ci95"], decimals(row["value"]))


def numbers(row: Mapping[str, Any]) -> list[str]:
    """Parts of the line of numbers: ``before ->``, ``now,``, ``worse by ...,``, ``p = ...``."""
    baseline, verdict = row["baseline"], row["verdict"]
    moved = verdict["drop"] if verdict else 0.0
    digits = max(decimals(each["value"], moved) for each in (row, baseline) if each)
    now = with_interval(row["value"], row["ci95"], digits)
    if baseline is None:
        return [f"{now},", "no baseline"]
    parts = [f"{with_interval(baseline['value'], baseline['ci95'], digits)} ->", now]
    if verdict is None or row["state"] == "incomparable":
        return parts
    parts[-1] += ","
    drop, interval = verdict["drop"], verdict["drop_ci95"]
    if drop < 0:
        interval = interval and [-interval[1], -interval[0]]
    size = f"{number(abs(drop), digits)} {bracket(interval, digits)}" if interval else number(abs(drop), digits)
    over = f"over {count(verdict['units'], units(row))}"
    if drop < 0:
        return [*parts, f"better by {size}", f"{over} ({verdict['better']} better)"]
    return [*parts, f"worse by {size},", f"{p_text(verdict['p'])} {over} ({verdict['worse']} worse)"]

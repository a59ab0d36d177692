"""The last screen of a run: on green one line a model, on red the verdict, the bad rows and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from evalsuite.report import commands
from evalsuite.report.baselines import age, identity
from evalsuite.report.blocks import block, change, fold, notes, numbers, short_verdict, state_text, value_text
from evalsuite.report.layout import flow, paragraph, printable
from evalsuite.report.numbers import count, seconds_text
from evalsuite.report.rows import RED

__all__ = ["short_verdict", "summary_lines"]

_WORST_FIRST = ("regressed", "crashed", "error", "lost", "incomparable", "not_run", "new")
_APART = ("improved", "blind", "recorded", "skipped")
_MOST_BLOCKS = 20
_MOST_MODELS = 50
_MOST_COMMANDS = 5
_MOST_NAMES = 20
_NAME_WIDTH = 24

Rows = Sequence[Mapping[str, Any]]


def summary_lines(
    report: Mapping[str, Any],
    *,
    report_path: str | Path,
    command: str = commands.SUITE,
    snapshots: str = commands.SNAPSHOTS,
    age_now: datetime | None = None,
) -> list[str]:
    """The last screen, for a terminal of 100 columns.

    Args:
        report: a valid report.
        report_path: where the report is, as the reader should type it.
        command: how the reader starts the suite: ``pytest evalsuite``, ``pytest --pyargs evalsuite``.
        snapshots: the folder of the baselines, as the reader should type it.
        age_now: the present, to give the age of the baselines; None leaves it out.
    """
    rows = [row for row in report["rows"] if row["state"] != "deselected"]
    end = f"{printable(str(report_path))}{_scope(report)}"
    if report["verdict"]["status"] == "green":
        lines = [*_green(report, rows, age_now), *_notices(rows)]
        improved = [row for row in rows if row["state"] == "improved"]
        if improved:
            lines.append("  the baselines of improved rows are stale:")
            lines += _command_lines("accept:", _accepting(improved, command))
        return [*lines, *_to_commit(rows, snapshots), f"  {end}"]
    return [*_red(report, rows, command, snapshots), *_to_commit(rows, snapshots), f"  report:   {end}"]


def _green(report: Mapping[str, Any], rows: Rows, age_now: datetime | None) -> list[str]:
    if not rows:
        return ["evalsuite: no row was evaluated"]
    models: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        models.setdefault(row["model"], []).append(row)
    states = _states(rows)
    all_of = ", all ok" if states == [f"{len(rows)} ok"] else f": {', '.join(states)}"
    baselines = age(rows, age_now)
    parts = [
        f"{'partial run, ' if report['verdict']['partial'] else ''}"
        f"{count(len(models), 'model')}, {count(len(rows), 'row')}{all_of}",
        *([f"({baselines})"] if baselines else []),
        f"in {seconds_text(report['run']['seconds'])}",
    ]
    lines = flow(parts, gap=" ", indent=11, first="evalsuite: ")
    width = min(_NAME_WIDTH, max(len(model) for model in models))
    for model, of_model in list(models.items())[:_MOST_MODELS]:
        shown = [row for row in of_model if row["gating"]] or of_model
        parts = [f"{printable(row['task'])} {printable(row['metric'])} {_result(row)}" for row in shown]
        lines += flow(parts, gap="   ", indent=width + 4, first=f"  {printable(model):<{width}}  ")
    if len(models) > _MOST_MODELS:
        lines.append(f"  ... and {len(models) - _MOST_MODELS} more models (all in the report)")
    if report["verdict"]["exit"]:
        lines.append(f"  every row is fine, but pytest ends with exit status {report['verdict']['exit']}: see above")
    return lines


def _result(row: Mapping[str, Any]) -> str:
    return f"{value_text(row)} {change(row)}".rstrip() if row["value"] is not None else str(row["state"])


def _notices(rows: Rows) -> list[str]:
    """What stands beside the verdict: improved rows, whose baselines are stale; blind and skipped ones, which guard
    nothing; and notes on numbers that are not what they seem."""
    lines: list[str] = []
    for row in [row for row in rows if row["state"] == "improved"][:_MOST_BLOCKS]:
        name = printable(f"{row['model']} {row['task']} {row['metric']}")
        lines += flow([f"improved: {name}", *numbers(row)], gap=" ", indent=4, first="  ")
    said: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        why = [(row["state"], row["reason"] or "no reason was given")] if row["state"] in ("blind", "skipped") else []
        if row["state"] == "new" or row["state"] not in RED:  # the block of any other red row has its notes
            why += [("note", "; ".join(notes(row)))] if notes(row) else []
        for label, text in why:
            said.setdefault((label, row["model"], row["task"], text), []).append(row["metric"])
    for (label, model, task, text), metrics in list(said.items())[:_MOST_BLOCKS]:
        lines += paragraph(f"{label}: {model} {task} {', '.join(metrics)}: {text}", indent=4, first="  ")
    if len(said) > _MOST_BLOCKS:
        lines.append(f"  ... and {len(said) - _MOST_BLOCKS} more such rows (all in the report)")
    return lines


def _to_commit(rows: Rows, snapshots: str) -> list[str]:
    """What to type once rows were recorded: their scores lie in files whose names are new."""
    recorded = any(row["state"] == "recorded" for row in rows)
    return _command_lines("commit:", [f"git add {shlex.quote(snapshots)}"] if recorded else [])


def _red(report: Mapping[str, Any], rows: Rows, command: str, snapshots: str) -> list[str]:
    verdict = report["verdict"]
    bad = sorted((row for row in rows if row["state"] in RED), key=_badness)
    gates = {name: why for name, why in verdict["gates"].items() if _inside(name) not in {row["id"] for row in bad}}
    partial = " (partial run)" if verdict["partial"] else ""
    if not rows:
        return [f"evalsuite: RED{partial} - no row was evaluated"]
    states = [*gates, *_states(rows)]
    lines = flow(
        [f"{state}," for state in states[:-1]] + [f"{states[-1]} of {count(verdict['expected'], 'row')} expected"],
        gap=" ",
        indent=11,
        first=f"evalsuite: RED{partial} - ",
    )
    for name, why in gates.items():
        lines += paragraph(f"{name}: {why}", indent=13, first="  ")
    groups = fold(row for row in bad if row["state"] != "new")
    for group in groups[:_MOST_BLOCKS]:
        lines += [f"  {line}" for line in block(group)]
    if len(groups) > _MOST_BLOCKS:
        rest = [row for group in groups[_MOST_BLOCKS:] for row in group]
        lines.append(f"  ... and {count(len(rest), 'row')} more: {', '.join(_states(rest))} (all in the report)")
    baselines = identity(bad, report["provenance"]) or identity(rows if gates else [], report["provenance"])
    if baselines:
        lines += flow(baselines, gap=" ", indent=4, first="  ")
    lines += _notices(rows)
    lines += _next_commands(rows, bad, gates, verdict["partial"], command)
    return [*lines, *_command_lines("forget:", _forgetting(rows, snapshots))]


def _forgetting(rows: Rows, snapshots: str) -> list[str]:
    """Commands for rows that were taken out on purpose, a model of the zoo at once where nothing else of it is left;
    of a user's model this run may not have seen all. None while a row that was never recorded is an error: where the
    manifest, an entry or a task cannot be read, its rows look lost under their own names."""
    if any(row["state"] == "error" and row["baseline"] is None for row in rows):
        return []
    kept = {row["model"] for row in rows if row["state"] != "lost"}
    lost = [row for row in rows if row["state"] == "lost"]
    whole = [commands.in_suite(row) and row["model"] not in kept for row in lost]
    names = list(dict.fromkeys(row["model"] if gone else row["id"] for row, gone in zip(lost, whole, strict=True)))
    return [commands.forget(names[at : at + _MOST_NAMES], snapshots) for at in range(0, len(names), _MOST_NAMES)]


def _next_commands(rows: Rows, bad: Rows, gates: Mapping[str, str], partial: bool, command: str) -> list[str]:
    lines: list[str] = []
    new = [row for row in bad if row["state"] == "new"]
    if new:
        have = "row has" if len(new) == 1 else "rows have"
        lines += _new(new)
        # Recording everything would also accept what changed in rows that have a baseline.
        if not partial and not any(row["baseline"] for row in rows) and all(commands.in_suite(row) for row in new):
            lines.append(f"  {len(new)} {have} no baseline: record them with `{commands.record_all(command)}`")
        else:
            lines.append(f"  {len(new)} {have} no baseline:")
            lines += _command_lines("record:", _accepting(new, command))
    seen = [row for row in bad if row["state"] not in ("lost", "new")]
    if seen:
        lines += _command_lines("see one:", [commands.see(seen[0], command)])
    lines += _command_lines(
        "accept:", _accepting([row for row in bad if row["state"] in ("regressed", "incomparable")], command)
    )
    if gates:
        lines += _command_lines("all rows:", [commands.record_all(command)])
    return lines


def _new(rows: Rows) -> list[str]:
    """What is about to be recorded: a line a model and task."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        tasks.setdefault((row["model"], row["task"]), []).append(f"{printable(row['metric'])} {value_text(row)}")
    lines: list[str] = []
    for (model, task), parts in list(tasks.items())[:_MOST_BLOCKS]:
        lines += flow(parts, gap="   ", indent=13, first=f"  new        {printable(model)}  {printable(task)}  ")
    if len(tasks) > _MOST_BLOCKS:
        lines.append(f"  ... and {count(len(tasks) - _MOST_BLOCKS, 'task')} more (all in the report)")
    return lines


def _accepting(rows: Rows, command: str) -> list[str]:
    return list(dict.fromkeys(commands.accept(row, command) for row in rows))


def _command_lines(label: str, typed: Sequence[str]) -> list[str]:
    lines = [f"  {label:<9} {text}" for text in typed[:_MOST_COMMANDS]]
    rest = len(typed) - _MOST_COMMANDS
    return [*lines, f"  {'':<9} ... and {rest} more"] if rest > 0 else lines


def _states(rows: Rows) -> list[str]:
    """``1 regressed``, ``1 error``, ``15 ok``: bad states worst first, then ok, then green ones to know about."""
    found = {state: sum(row["state"] == state for row in rows) for state in (*_WORST_FIRST, *_APART)}
    fine = len(rows) - sum(found.values())
    bad = [f"{found[state]} {state_text(state, found[state])}" for state in _WORST_FIRST if found[state]]
    apart = [f"{found[state]} {state}" for state in _APART if found[state]]
    return [*bad, *([f"{fine} ok"] if fine else []), *apart]


def _badness(row: Mapping[str, Any]) -> tuple[int, float]:
    """Worst first: by state, then by how many times its tolerance a row dropped; else in manifest order."""
    verdict = row["verdict"]
    times = verdict["drop"] / (verdict["min_drop"] or 0.001) if verdict else 0.0
    return _WORST_FIRST.index(row["state"]), -times


def _inside(gate: str) -> str:
    return gate.removeprefix("gate[").removesuffix("]")


def _scope(report: Mapping[str, Any]) -> str:
    if not report["verdict"]["partial"]:
        return ""
    left_out = report["verdict"]["counts"]["deselected"]
    return f" (partial: {f'{left_out} deselected, ' if left_out else ''}lost rows not checked)"

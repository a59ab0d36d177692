"""Which baselines rows were compared with, and what has changed around them since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evalsuite.report.layout import listed
from evalsuite.report.numbers import count


def identity(rows: Iterable[Mapping[str, Any]], provenance: Mapping[str, Any]) -> list[str]:
    """Parts of the line that says when baselines were recorded, and what of their making is the same and what is not.

    Empty where no row has a baseline.
    """
    recorded = _recorded(rows)
    if not recorded:
        return []
    stamps = [f"{entry['date'][:10]}{_commit(entry, ' ({})')}" for entry in recorded]
    span = stamps[0] if stamps[0] == stamps[-1] else f"{stamps[0]} to {stamps[-1]}"
    changes = {name: _differences(name, recorded, provenance) for name in ("versions", "seed", "threads", "platform")}
    same = [name for name, differences in changes.items() if not differences]
    other = [f"other {name}: {listed(differences)}" for name, differences in changes.items() if differences]
    parts = [f"{'baseline' if stamps[0] == stamps[-1] else 'baselines'} of {span}"]
    parts += [f"same {', '.join(same)}"] if same else []
    return [f"{part};" for part in [*parts, *other][:-1]] + [[*parts, *other][-1]]


def age(rows: Iterable[Mapping[str, Any]], now: datetime | None) -> str:
    """``baseline 3f2c1a9, 2 days``: the commits of the oldest and newest baseline and, given ``now``, their age.

    Empty where no row has a baseline.
    """
    recorded = _recorded(rows)
    if not recorded:
        return ""
    first, last = recorded[0], recorded[-1]
    commits = [_commit(entry, "{}") or entry["date"][:10] for entry in (first, last)]
    name = f"baseline {commits[0]}" if commits[0] == commits[1] else f"baselines {commits[0]} to {commits[1]}"
    if now is None:
        return name
    ages = [_age(now, entry["date"]) for entry in (first, last)]
    return f"{name}, {ages[0]}" if ages[0] == ages[1] else f"{name}, {ages[1]} to {ages[0]}"


def _recorded(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted((row["baseline"]["recorded"] for row in rows if row["baseline"]), key=lambda entry: entry["date"])


def _commit(entry: Mapping[str, Any], form: str) -> str:
    return form.format(entry["commit"][:7]) if entry["commit"] else ""


def _differences(name: str, recorded: Sequence[Mapping[str, Any]], provenance: Mapping[str, Any]) -> list[str]:
    if name != "versions":
        now = str(provenance[name])
        return _difference("", {str(entry[name]) for entry in recorded}, now)
    found = []
    for package, version in provenance["versions"].items():
        before = {entry["versions"][package] for entry in recorded if package in entry["versions"]}
        found += _difference(f"{package} ", before, version)
    return found


def _difference(label: str, before: set[str], now: str) -> list[str]:
    other = "/".join(sorted(before - {now}))
    return [f"{label}{other}{' for some' if now in before else ''}, now {now}"] if other else []


def _age(now: datetime, date: str) -> str:
    then = datetime.fromisoformat(date)
    hours = int((now.astimezone(UTC) - then).total_seconds() // 3600)
    if hours < 1:
        return "under an hour"
    return count(hours, "hour") if hours < 48 else count(hours // 24, "day")

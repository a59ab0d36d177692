"""The row: its states, its keys in their stable order, and its plain JSON form.

Rows travel over xdist as plain dicts; the typed dicts here say what is in them, and the order of their keys is the
order in the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

GREEN = ("ok", "improved", "blind", "informing", "recorded", "skipped")
RED = ("new", "regressed", "incomparable", "error", "crashed", "lost", "not_run")
STATES = (
    *("ok", "improved", "blind", "informing", "new", "regressed", "incomparable", "error", "crashed", "lost"),
    *("not_run", "skipped", "deselected", "recorded"),
)
SCORED = ("ok", "improved", "blind", "informing", "recorded", "regressed", "new", "incomparable")
"""States of rows that were measured; the others have a reason instead of a value."""


class Recorded(TypedDict):
    """Where and when a baseline was recorded."""

    date: str
    commit: str | None
    seed: int
    threads: int
    platform: str
    versions: dict[str, str]


class Baseline(TypedDict):
    """What a row is compared with."""

    value: float
    ci95: list[float]
    n: int
    recorded: Recorded


class Verdict(TypedDict):
    """What the gate found: ``drop`` is in the metric's unit, positive = worse."""

    drop: float
    drop_ci95: list[float] | None
    p: float
    level: float | None
    min_drop: float
    test: str
    units: int
    changed: int
    worse: int
    better: int
    missing: list[str]
    new: list[str]
    notes: list[str]


class Source(TypedDict):
    """The checkpoint and the data behind a row."""

    tl_arch: str | None
    checkpoint: str | None
    checkpoint_sha256: str | None
    data: str | None
    data_sha256: str | None
    params: int | None
    decode: str | None
    beam: int | None


class Row(TypedDict):
    """One metric of one model on one task."""

    id: str
    model: str
    task: str
    metric: str
    state: str
    gating: bool
    higher_is_better: bool | None
    reason: str | None
    value: float | None
    ci95: list[float] | None
    interval: str | None
    n: int | None
    normaliser: str | None
    link: str | None
    min_drop: float | None
    bounds: list[float] | None
    task_hash: str | None
    units: int | None
    clusters: int | None
    unscored: int | None
    truncated: int | None
    unstable: int | None
    v1_ci95: list[float] | None
    baseline: Baseline | None
    verdict: Verdict | None
    source: Source
    test: str | None
    items: str | None


_ALWAYS = ("id", "model", "task", "metric", "state", "gating", "source")


def plain(value: Any) -> Any:
    """``value`` with tuples as lists and every key order left as it is."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


def in_order(value: Mapping[str, Any], keys: Iterable[str], fill: Iterable[str] = ()) -> dict[str, Any]:
    """``value`` with ``keys`` first, in that order, and all others after them, sorted.

    Keys in ``fill`` that are absent become None; other absent keys stay absent, for the schema to name.
    """
    fill, first = frozenset(fill), tuple(keys)
    known = {key: value.get(key) for key in first if key in value or key in fill}
    return known | {key: value[key] for key in sorted(value.keys() - set(first), key=str)}


def normal_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row in the report's form: every key, in its order, optional ones None where absent."""
    done = in_order(plain(row), Row.__annotations__, set(Row.__annotations__) - set(_ALWAYS))
    if isinstance(baseline := done["baseline"], dict):
        baseline = done["baseline"] = in_order(baseline, Baseline.__annotations__)
        if isinstance(recorded := baseline.get("recorded"), dict):
            recorded = baseline["recorded"] = in_order(recorded, Recorded.__annotations__)
            if isinstance(versions := recorded.get("versions"), dict):
                recorded["versions"] = in_order(versions, ())
    if isinstance(verdict := done["verdict"], dict):
        done["verdict"] = in_order(verdict, Verdict.__annotations__)
    if isinstance(source := done.get("source") or {}, dict):
        done["source"] = in_order(source, Source.__annotations__, Source.__annotations__)
    return in_order(done, Row.__annotations__)


def error_row(row: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """``row`` as an error: its identity, direction, baseline and source kept, everything measured dropped."""
    kept = ("id", "model", "task", "metric", "gating", "higher_is_better", "baseline", "source", "test")
    return normal_row({key: row[key] for key in kept if key in row} | {"state": "error", "reason": reason})


def manifest_order(rows: Sequence[Mapping[str, Any]], order: Sequence[str] | None) -> list[Mapping[str, Any]]:
    """``rows`` as ``order`` names their ids; those it does not name come last, sorted by id. None keeps their order."""
    if order is None:
        return list(rows)
    place = {row_id: index for index, row_id in enumerate(order)}
    return sorted(rows, key=lambda row: (place.get(str(row.get("id")), len(place)), str(row.get("id"))))

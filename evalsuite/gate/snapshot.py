"""Baselines on disk, and the syrupy extension that stores a row there and lets the gate compare it.

A row is two files in ``snapshots/<test file stem>/``: ``<row id>.<sha8>.safetensors`` holds the units' numbers in
float64, ``<row id>.json`` everything else and the sidecar's name. The sidecar is written first and the JSON moved into
place last, so a killed run leaves the old row or the new one, never half of each. Inside the extension a row is one
JSON text with the numbers in it; only here do the two forms meet.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from syrupy.data import SnapshotCollections
from syrupy.extensions.base import AbstractSyrupyExtension
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from evalsuite.gate.verdict import Verdict, judge
from evalsuite.result import Measurement, Scores

if TYPE_CHECKING:
    from syrupy.data import SnapshotCollection
    from syrupy.location import PyTestLocation

FORMAT = "evalsuite.baseline.v1"
ARRAYS = ("scores", "weights", "tolerance")
FACTS = frozenset({"date", "commit", "seed", "threads", "platform", "versions", "test"})
"""What is stored beside the scores, and needed to say what a row was compared with."""


@dataclass(eq=False)
class Desk:
    """What one row's comparison needs to know, and what came of it.

    Attributes:
        folder: where the row's files are.
        row_id: the row.
        level: the row's level, or None when it only informs.
        recording: whether ``--snapshot-update`` is on: then equality means equal scores, so that a row that is
            better, or worse within noise, is written too.
        facts: what is stored beside the scores, under the names in `FACTS`.
        verdict: set when the row was compared.
        base: the baseline, set when there is one.
        recorded: facts stored with that baseline.
        written: set when the row was recorded in this run.
        damage: why the stored files cannot be read or written, or "".
    """

    folder: Path
    row_id: str
    level: float | None
    recording: bool
    facts: Mapping[str, Any]
    verdict: Verdict | None = None
    base: Measurement | None = None
    recorded: Mapping[str, Any] = field(default_factory=dict)
    written: bool = False
    damage: str = ""

    @property
    def path(self) -> Path:
        """The row's JSON file."""
        return self.folder / f"{self.row_id}.json"


def extension_for(desk: Desk) -> type[AbstractSyrupyExtension]:
    """The extension for one row. syrupy makes its own instances and calls class methods, so a row's desk has to be
    reached through the class."""
    return type("RowBaseline", (BaselineExtension,), {"desk": desk})


class BaselineExtension(SingleFileSnapshotExtension):
    """Stores a `Measurement`; two of them "match" when the gate finds the new one not worse."""

    desk: ClassVar[Desk]
    file_extension = "json"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Any, *, exclude: Any = None, include: Any = None, matcher: Any = None) -> str:
        """A measurement as one JSON text. syrupy's filters have no meaning for it."""
        return json.dumps(encode(data, self.desk.facts))

    def matches(self, *, serialized_data: Any, snapshot_data: Any) -> bool:
        """Whether the row passes; the verdict stays on the desk."""
        desk = self.desk
        now, _ = decode(json.loads(serialized_data))
        desk.base, desk.recorded = decode(json.loads(snapshot_data))
        desk.verdict = judge(now, desk.base, desk.level)
        if desk.recording:
            return same_scores(json.loads(serialized_data), json.loads(snapshot_data))
        return desk.verdict.state not in ("regressed", "incomparable")

    def diff_lines(self, serialized_data: Any, snapshot_data: Any) -> Iterator[str]:
        """What a bare assertion shows. The suite's own rows show the report's text instead."""
        if self.desk.verdict is None:
            yield f"{self.desk.row_id} has no baseline"
        else:
            verdict = self.desk.verdict
            yield f"{self.desk.row_id} {verdict.state}: worse by {verdict.drop:.4g}, p = {verdict.p:.2g}"

    @classmethod
    def get_file_basename(cls, *, test_location: PyTestLocation, index: Any) -> str:
        """A row's file is named after the row, not after the test."""
        return cls.desk.row_id

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """``snapshots/<test file stem>``, wherever the project keeps ``snapshots``."""
        return str(cls.desk.folder)

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
        """Rows lie outside the test's folder on purpose; syrupy would warn about it."""
        return True

    def discover_snapshots(self, *, test_location: Any, ignore_extensions: Any = None) -> SnapshotCollections:
        """Nothing: a row without a test is `lost`, which the suite reports itself, and is never deleted as unused."""
        return SnapshotCollections()

    def read_snapshot_data_from_location(
        self, *, snapshot_location: str, snapshot_name: str, session_id: str
    ) -> str | None:
        """The stored row as one text, or None when there is none. A damaged one is replaced when recording."""
        try:
            raw = read_row(Path(snapshot_location))
        except ValueError as error:
            if self.desk.recording:
                return None
            self.desk.damage = str(error)
            raise
        return None if raw is None else json.dumps(raw)

    @classmethod
    def write_snapshot_collection(
        cls, *, snapshot_collection: SnapshotCollection, name_order: dict[str, int] | None = None
    ) -> None:
        """Write the row: sidecar first, JSON last, stale sidecars swept."""
        (snapshot,) = snapshot_collection
        try:
            write_row(Path(snapshot_collection.location), json.loads(str(snapshot.data)))
        except OSError as error:  # syrupy takes any exception for "does not match"
            cls.desk.damage = f"{snapshot_collection.location}: the baseline cannot be written ({error})"
            raise
        cls.desk.written = True


def encode(measurement: Measurement, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A measurement as plain values, its arrays as lists."""
    scores = measurement.scores
    return {
        "format": FORMAT,
        "model": measurement.model,
        "task": measurement.task,
        "metric": measurement.metric,
        "value": measurement.value,
        "ci95": [measurement.lo, measurement.hi],
        "interval": measurement.interval,
        "n": measurement.n,
        "higher_is_better": measurement.higher_is_better,
        "gating": measurement.gating,
        "min_drop": measurement.min_drop,
        "bounds": None if measurement.bounds is None else list(measurement.bounds),
        "link": measurement.link,
        "normaliser": measurement.normaliser,
        "task_hash": measurement.task_hash,
        "blind": measurement.blind,
        "recorded": dict(facts),
        "source": dict(measurement.source),
        "ids": list(scores.ids),
        "hashes": list(scores.hashes),
        "clusters": None if scores.clusters is None else list(scores.clusters),
        "unscored": list(scores.unscored),
        "truncated": scores.truncated,
        **{name: getattr(scores, name).tolist() for name in ARRAYS},
    }


def decode(raw: Mapping[str, Any]) -> tuple[Measurement, Mapping[str, Any]]:
    """The measurement behind `encode`, without the details of its units, and the facts stored with it."""
    clusters = raw["clusters"]
    numbers, weights, tolerance = (np.asarray(raw[name], dtype=np.float64) for name in ARRAYS)
    scores = Scores(
        tuple(raw["ids"]),
        tuple(raw["hashes"]),
        numbers,
        weights,
        tolerance,
        clusters=None if clusters is None else tuple(clusters),
        unscored=tuple(raw["unscored"]),
        truncated=raw["truncated"],
    )
    measurement = Measurement(
        raw["model"],
        raw["task"],
        raw["metric"],
        raw["value"],
        raw["ci95"][0],
        raw["ci95"][1],
        raw["interval"],
        raw["n"],
        scores,
        higher_is_better=raw["higher_is_better"],
        gating=raw["gating"],
        min_drop=raw["min_drop"],
        bounds=None if raw["bounds"] is None else (raw["bounds"][0], raw["bounds"][1]),
        link=raw["link"],
        normaliser=raw["normaliser"],
        task_hash=raw["task_hash"],
        blind=raw["blind"],
        source=raw["source"],
    )
    return measurement, raw["recorded"]


def same_scores(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether two encoded rows are equal but for where they came from."""
    provenance = ("recorded", "source")
    if any(ours["recorded"].get(key) != theirs["recorded"].get(key) for key in ("test", "ad_hoc")):
        return False  # the row has moved to another test, which owes it from now on
    return all(ours[key] == theirs[key] for key in ours if key not in provenance)


def read_row(path: Path) -> dict[str, Any] | None:
    """The encoded row stored at a JSON path, or None when there is none.

    Raises:
        ValueError: the files are damaged or do not belong together; the message says what to do.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    raw = read_header(path)
    if raw is None:
        return None
    sidecar = path.parent / str(raw.pop("sidecar"))
    try:
        data = sidecar.read_bytes()
        tensors = load(data)
        arrays = {name: tensors[name].tolist() for name in ARRAYS}
    except (OSError, KeyError, SafetensorError) as error:
        raise ValueError(f"{sidecar}: the scores of the baseline cannot be read ({error!r}); {_REPAIR}") from None
    if sidecar.name != _sidecar_name(path, data):
        raise ValueError(f"{sidecar}: the scores of the baseline are not those its name stands for; {_REPAIR}")
    whole = raw | arrays
    try:
        decode(whole)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: the baseline lacks a field or holds a wrong one ({error!r}); {_REPAIR}") from None
    if len({len(whole[key]) for key in ("ids", "hashes", "clusters", *ARRAYS) if whole[key] is not None}) != 1:
        raise ValueError(f"{path}: the baseline's ids and scores differ in number; {_REPAIR}")
    if twice := [unit for unit, count in Counter(whole["ids"]).items() if count > 1]:
        raise ValueError(f"{path}: the unit {twice[0]!r} stands twice in the baseline; {_REPAIR}")
    return whole


_REPAIR = "restore both files from version control, or record the row again with --snapshot-update"


def read_header(path: Path) -> dict[str, Any] | None:
    """A row's JSON file without the numbers of its units, or None when there is none.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{path}: the baseline cannot be read ({error.strerror}); {_REPAIR}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: the baseline is not JSON ({error}); {_REPAIR}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or "sidecar" not in raw:
        raise ValueError(f"{path}: no baseline of format {FORMAT}; {_REPAIR}")
    if not isinstance(raw.get("recorded"), dict) or not raw["recorded"].keys() >= FACTS:
        raise ValueError(f'{path}: "recorded" must hold {", ".join(sorted(FACTS))}; {_REPAIR}')
    if wrong := next((key for key, fits in _STATED.items() if not fits(raw | raw["recorded"])), None):
        raise ValueError(f"{path}: {wrong} is {(raw | raw['recorded']).get(wrong)!r}, which no run records; {_REPAIR}")
    return raw


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_STATED: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "value": lambda raw: _is_number(raw.get("value")),
    "ci95": lambda raw: (
        isinstance(raw.get("ci95"), list) and len(raw["ci95"]) == 2 and all(_is_number(end) for end in raw["ci95"])
    ),
    "n": lambda raw: type(raw.get("n")) is int and raw["n"] >= 0,
    "min_drop": lambda raw: _is_number(raw.get("min_drop")) and raw["min_drop"] >= 0,
    "date": lambda raw: re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(raw["date"])) is not None,
    "commit": lambda raw: raw["commit"] is None or isinstance(raw["commit"], str),
    "seed": lambda raw: type(raw["seed"]) is int,
    "threads": lambda raw: type(raw["threads"]) is int,
    "platform": lambda raw: isinstance(raw["platform"], str),
    "versions": lambda raw: (
        isinstance(raw["versions"], dict) and all(isinstance(v, str) for v in raw["versions"].values())
    ),
}
"""What the report repeats of a baseline, and what each has to be: a file may have been edited by hand."""


def write_row(path: Path, raw: dict[str, Any]) -> None:
    """Store an encoded row."""
    from safetensors.numpy import save

    data = save({name: np.asarray(raw[name], dtype=np.float64) for name in ARRAYS})
    sidecar = path.with_name(_sidecar_name(path, data))
    header = {key: value for key, value in raw.items() if key not in ARRAYS} | {"sidecar": sidecar.name}
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(sidecar, data)
    _replace(path, (json.dumps(header, indent=1, ensure_ascii=False) + "\n").encode())
    for stale in sidecars(path):
        if stale != sidecar:
            stale.unlink(missing_ok=True)


def sidecars(path: Path) -> list[Path]:
    """All sidecars that belong to a row's JSON file, current or stale."""
    # The eight hex digits keep a row from sweeping another whose id starts with its own and a dot.
    return sorted(path.parent.glob(f"{path.stem}.{'[0-9a-f]' * 8}.safetensors"))


def _sidecar_name(path: Path, data: bytes) -> str:
    """``<row id>.<first eight digits of the content's SHA-256>.safetensors``."""
    return f"{path.stem}.{hashlib.sha256(data).hexdigest()[:8]}.safetensors"


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that a reader finds all of it or the one before."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

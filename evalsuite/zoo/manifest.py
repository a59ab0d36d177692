"""``zoo.json``: which checkpoints there are and what each is scored on.

The first seed's entry (``id``, ``dir``, ``task``, ``data`` and fields by kind) works unchanged; an entry may
name task files instead (``"tasks": ["prose", "quiz"]``) and set ``gating`` and ``min_drop``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalsuite.names import name_problem, row_part

SUITE_PATTERN = r"[a-z][a-z0-9_.-]*"
"""What the v1 report takes for the name of a suite."""


@dataclass(frozen=True)
class Entry:
    """One model of the zoo.

    Attributes:
        name: the model's part of a row id, unique in the zoo without regard to case.
        raw: the entry as written.
        root: the folder that ``dir`` and ``data`` are relative to.
        problem: why the entry cannot be used, or "".
    """

    name: str
    raw: Mapping[str, Any]
    root: Path
    problem: str = ""

    @property
    def directory(self) -> Path:
        """The checkpoint: a folder, or a single .safetensors file for an n-gram."""
        return self.root / str(self.raw.get("dir", ""))


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest as a dict with at least ``models``, a list.

    Raises:
        ValueError: no such file, not JSON, no list of models, or a suite name that no report can hold; the message
            names the file.
    """
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot read the manifest ({error.strerror}); it lists the models to score") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("models"), list):
        raise ValueError(f'{path}: expected an object with a list "models", such as {{"models": [{{"id": ...}}]}}')
    suite = manifest.get("suite", "zoo")
    if not isinstance(suite, str) or not re.fullmatch(SUITE_PATTERN, suite):
        raise ValueError(f'{path}: "suite" is {suite!r}, expected lower-case letters, digits, "_", "." and "-"')
    return manifest


def read_entries(path: Path) -> tuple[Entry, ...]:
    """The entries in the order written. A bad one keeps its place and says what is wrong with it."""
    manifest = read_manifest(path)
    entries: list[Entry] = []
    for position, raw in enumerate(manifest["models"], 1):
        entries.append(_entry(raw, position, path.resolve().parent, {entry.name.casefold() for entry in entries}))
    return tuple(entries)


def _entry(raw: Any, position: int, root: Path, taken: Iterable[str]) -> Entry:
    """One entry; a broken one gets a name of its own so that its row can say why."""
    stand_in = f"entry-{position}"
    if not isinstance(raw, dict):
        return Entry(stand_in, {}, root, f"entry {position} of the manifest is {type(raw).__name__}, not an object")
    if not isinstance(raw.get("id"), str) or not raw["id"]:
        return Entry(stand_in, raw, root, f'entry {position} of the manifest has no "id" (a non-empty string)')
    name = row_part(raw["id"])
    if problem := name_problem(name):
        return Entry(stand_in, raw, root, problem)
    if name.casefold() in taken:
        return Entry(stand_in, raw, root, f"the name {name!r} is taken by an earlier entry (case does not count)")
    return Entry(name, raw, root, _field_problem(raw))


def _field_problem(raw: Mapping[str, Any]) -> str:
    """What is wrong with the fields of an entry whose name is good, or ""."""
    entry = f"entry {raw['id']!r}"
    if not isinstance(raw.get("dir"), str) or not raw["dir"]:
        return f'{entry} has no "dir", the folder of its checkpoint'
    if not isinstance(raw.get("gating", True), bool):
        return f'{entry}: "gating" is {raw["gating"]!r}, expected true or false'
    drops = raw.get("min_drop", {})
    if not isinstance(drops, dict) or not all(
        type(drop) in (int, float) and 0 <= drop < math.inf for drop in drops.values()
    ):
        return f'{entry}: "min_drop" is {drops!r}, expected numbers of at least 0 by metric, such as {{"bpb": 0.01}}'
    return ""

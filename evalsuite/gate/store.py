"""The baselines of a project as a whole: which rows there are, and how to drop one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalsuite.gate.snapshot import read_header, sidecars
from evalsuite.selection import zoo_row

ZOO_STEM = "test_zoo"
"""Folder of the zoo's rows; rows of a user's test lie in a folder named after the test file."""


@dataclass(frozen=True)
class Stored:
    """One baseline, without the numbers of its units.

    Attributes:
        row_id: the row.
        path: its JSON file.
        gating: whether it belongs to the family.
        test: node id of the test that recorded it.
        header: everything in the JSON file.
    """

    row_id: str
    path: Path
    gating: bool
    test: str
    header: Mapping[str, Any]

    @property
    def of_zoo(self) -> bool:
        """Whether the row comes from the zoo, not from a test of the user's; its file may be a test_zoo.py too."""
        return zoo_row(self.test) is not None if self.test else self.path.parent.name == ZOO_STEM

    @property
    def ad_hoc(self) -> bool:
        """Whether it was recorded for a case of the command line, which later runs need not ask for."""
        return bool(self.header.get("recorded", {}).get("ad_hoc"))


def baselines(snapshots: Path) -> tuple[Stored, ...]:
    """Every baseline below the folder, sorted by row id. A damaged one counts as gating: it fails when it is read."""
    found = []
    for path in sorted(path for path in snapshots.glob("*/*.json") if path.stem.count("--") == 2):
        try:
            header = read_header(path) or {}
        except ValueError:
            header = {}
        test = str(header.get("recorded", {}).get("test", ""))
        found.append(Stored(path.stem, path, bool(header.get("gating", True)), test, header))
    return tuple(sorted(found, key=lambda stored: stored.row_id))


def forget(snapshots: Path, row_id: str) -> list[Path]:
    """Delete a row's baseline and return the files removed.

    Raises:
        ValueError: no such baseline; the message lists the nearest names.
    """
    import difflib

    rows = baselines(snapshots)
    matching = [stored for stored in rows if stored.row_id == row_id]
    if not matching:
        near = difflib.get_close_matches(row_id, [stored.row_id for stored in rows], n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"{snapshots} has no baseline of the row {row_id!r}{hint}")
    removed = [file for stored in matching for file in (stored.path, *sidecars(stored.path))]
    for file in removed:
        file.unlink()
    return removed

"""The baselines of a project as a whole: which rows there are, and how to drop one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def forget(snapshots: Path, names: Sequence[str]) -> list[Path]:
    """Delete baselines and return the files removed; none is removed where a name is wrong.

    Args:
        snapshots: the folder of the baselines.
        names: row ids, or names of models, of which all rows go.

    Raises:
        ValueError: no such baseline; the message lists the nearest names.
    """
    import difflib

    rows = baselines(snapshots)
    matching: dict[Path, None] = {}
    for name in names:
        found = [stored.path for stored in rows if name in (stored.row_id, stored.row_id.split("--")[0])]
        if not found:
            known = [stored.row_id for stored in rows]
            near = difflib.get_close_matches(name, [*known, *(row.split("--")[0] for row in known)], n=3)
            hint = f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
            raise ValueError(f"{snapshots} has no baseline of the row or model {name!r}{hint}")
        matching |= dict.fromkeys(found)
    removed = [file for path in matching for file in (path, *sidecars(path))]
    for file in removed:
        file.unlink()
    return removed

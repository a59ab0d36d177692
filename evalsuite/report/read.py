"""A report folder read back: its rows, and of each scored one the measurement with the scores of its units.

What was written is not trusted on the way back: a folder may be from another version, edited, or half there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evalsuite.report.build import validate
from evalsuite.report.rows import SCORED
from evalsuite.result import Measurement, Scores

ITEM_KEYS = ("id", "hash", "score", "weight", "tolerance")


@dataclass(frozen=True)
class StoredReport:
    """A report and the folder it lies in.

    Attributes:
        folder: where `report.json` and `items/` are.
        document: the report.
    """

    folder: Path
    document: Mapping[str, Any]

    @property
    def rows(self) -> dict[str, Mapping[str, Any]]:
        """Rows by id, those that were left out on purpose excepted."""
        return {row["id"]: row for row in self.document["rows"] if row["state"] != "deselected"}

    def measurement(self, row: Mapping[str, Any]) -> Measurement | None:
        """What a row measured, or None where it has no value.

        Raises:
            ValueError: the row's items are not there, or are broken; the message names file and line.
        """
        if row["state"] not in SCORED or row["value"] is None:
            return None
        scores = _read_scores(self.folder / str(row["items"]), row)
        return Measurement(
            row["model"],
            row["task"],
            row["metric"],
            row["value"],
            row["ci95"][0],
            row["ci95"][1],
            row["interval"],
            row["n"],
            scores,
            higher_is_better=row["higher_is_better"],
            gating=row["gating"],
            min_drop=row["min_drop"],
            bounds=None if row["bounds"] is None else (row["bounds"][0], row["bounds"][1]),
            link=row["link"],
            normaliser=row["normaliser"],
            task_hash=row["task_hash"],
        )


def read_report(folder: str | Path) -> StoredReport:
    """Read the report of a folder, or of a ``report.json`` in it.

    Raises:
        ValueError: there is none, or it breaks the schema; the message says what and where.
    """
    given = Path(folder)
    path = given if given.suffix == ".json" else given / "report.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: no report can be read ({error.strerror}); give the folder of a run") from None
    except ValueError as error:  # bad JSON or bad UTF-8
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise ValueError(f"{path}: no report of evalsuite: it has no rows")
    if faults := validate(document):
        more = f" and {len(faults) - 1} more faults" if len(faults) > 1 else ""
        raise ValueError(f"{path}: {faults[0]}{more}; was it written by another version?")
    return StoredReport(path.parent, document)


def _read_scores(path: Path, row: Mapping[str, Any]) -> Scores:
    items: list[Mapping[str, Any]] = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise ValueError(f"{path}: the items of {row['id']} cannot be read ({error.strerror})") from None
    for number, line in enumerate(lines, start=1):
        if line:
            items.append(_item(line, f"{path}:{number}"))
    if len(items) != row["units"]:
        raise ValueError(f"{path}: {len(items)} items, the row says {row['units']} units: the folder is not whole")
    clusters = tuple(str(item["cluster"]) for item in items) if items and "cluster" in items[0] else None
    numbers = {key: np.array([item[key] for item in items], dtype=np.float64) for key in ITEM_KEYS[2:]}
    return Scores(
        tuple(item["id"] for item in items),
        tuple(item["hash"] for item in items),
        numbers["score"],
        numbers["weight"],
        numbers["tolerance"],
        clusters=clusters,
        unscored=tuple(item["id"] for item in items if item.get("unscored")),
        truncated=row["truncated"] or 0,
        details=tuple(items),
    )


def _item(line: str, where: str) -> Mapping[str, Any]:
    try:
        item = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where}: not JSON ({error})") from None
    if not isinstance(item, dict) or (missing := [key for key in ITEM_KEYS if key not in item]):
        what = ", ".join(missing) if isinstance(item, dict) else "an object"
        raise ValueError(f"{where}: {what} missing; items need {', '.join(ITEM_KEYS)}")
    for key in ITEM_KEYS[2:]:
        if isinstance(item[key], bool) or not isinstance(item[key], int | float):
            raise ValueError(f"{where}: {key} is {item[key]!r}, expected a number")
    return item

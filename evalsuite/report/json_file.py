"""Writing JSON so that equal reports are equal bytes and a reader never sees half a file.

UTF-8, indent 1, keys in the order of the dict, a final newline. A document goes to a temporary file beside its place
and is moved there when complete; a row log grows by one flushed line a row, so a killed run leaves what it had.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

ITEMS = "items"
_SAFE_ID = re.compile(r"[A-Za-z0-9_.-]+")


def write_json(document: Mapping[str, Any], path: str | Path) -> None:
    """Write ``document`` to ``path``, creating its folder.

    Raises:
        ValueError: ``document`` holds a NaN or an infinity, which JSON cannot; nothing is written.
    """
    _write_whole(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", Path(path))


def items_name(row_id: str) -> str:
    """Where the items of a row are, relative to the report: ``items/<row id>.jsonl``."""
    if not _SAFE_ID.fullmatch(row_id):
        raise ValueError(f"row id {row_id!r} cannot name a file: letters, digits, '_', '.' and '-' only")
    return f"{ITEMS}/{row_id}.jsonl"


def write_items(folder: str | Path, row_id: str, items: Iterable[Mapping[str, Any]]) -> str:
    """Write a row's items, one line each, below the report's ``folder``; returns the path for the row's ``items``.

    A number that is not finite becomes null.
    """
    name = items_name(row_id)
    _write_whole("".join(f"{_line(item)}\n" for item in items), Path(folder, name))
    return name


class RowLog:
    """``rows.jsonl``: every row as it arrives, one flushed line each; a new log replaces that of the last run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = self.path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row; a number that is not finite becomes null."""
        self._file.write(f"{_line(row)}\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        self._file.close()

    def __enter__(self) -> RowLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def read_row_log(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a log; a last line that a killed run left half written is ignored.

    Raises:
        ValueError: a line before the last is no JSON.
    """
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    rows = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number}: not a row: {error}") from error
    return rows


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value


def _write_whole(text: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # A lone surrogate (a file name that is no UTF-8) becomes \udcXX, which is its JSON escape.
        part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

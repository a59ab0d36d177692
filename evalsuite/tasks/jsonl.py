"""Items in JSONL files: one JSON object a line, blank lines ignored, every item with an id of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar


class Named(Protocol):
    """An item with an id."""

    @property
    def id(self) -> str:
        """Unique in its file."""


T = TypeVar("T", bound=Named)


def read_jsonl(
    path: str | Path, keys: tuple[str, ...], make: Callable[[Mapping[str, Any], str, str], T], things: str
) -> list[T]:
    """The items of a file, in its order.

    Args:
        path: the file; a byte order mark is taken away.
        keys: what every object must have.
        make: gives the item of an object, the name it has where it brings no id (``line-3``), and the place for errors.
        things: what the items are called.

    Raises:
        ValueError: a line that is no such object, an id that comes twice, or no items; the message names the line.
        OSError: the file cannot be read.
    """
    path = Path(path)
    expected = f"{', '.join(keys[:-1])} and {keys[-1]}"
    items: list[T] = []
    lines_of: dict[str, int] = {}
    # Split bytes at \n alone: str.splitlines would also cut at U+2028, which JSON strings may hold.
    for number, raw in enumerate(path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not raw.strip():
            continue
        where = f"{path}:{number}"
        item = make(_object(raw, where, keys, expected), f"line-{number}", where)
        if item.id in lines_of:
            raise ValueError(
                f"{where}: id {item.id!r} is already taken by line {lines_of[item.id]}: ids must be unique"
            )
        lines_of[item.id] = number
        items.append(item)
    if not items:
        raise ValueError(f"{path}: no {things}, expected one JSON object a line")
    return items


def _object(raw: bytes, where: str, keys: tuple[str, ...], expected: str) -> Mapping[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:  # bad JSON or bad UTF-8
        raise ValueError(f"{where}: not a JSON object ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f"{where}: found {value!r}, expected an object with {expected}")
    if missing := [key for key in keys if key not in value]:
        raise ValueError(f"{where}: {', '.join(missing)} missing, expected {expected}")
    return value

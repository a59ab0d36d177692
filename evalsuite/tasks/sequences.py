"""Pairs of token sequences in JSONL files, one pair a line, blank lines ignored.

    {"id": "hello", "src": [11, 8, 15, 15, 18], "tgt": [12, 30, 21, 9]}

Neither sequence holds a start or end symbol. ``id`` may be left out: the pair is then named after its line. Other keys
are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalsuite.tasks.jsonl import read_jsonl


@dataclass(frozen=True)
class SequencePair:
    """What a model reads, and what it should write.

    Attributes:
        id: unique in its file.
        src: token ids, at least one.
        tgt: token ids; none where the right answer is empty.
    """

    id: str
    src: tuple[int, ...]
    tgt: tuple[int, ...]


def read_pairs(path: str | Path) -> list[SequencePair]:
    """The pairs of a JSONL file, in its order; anything wrong is a ValueError that names the line."""
    return read_jsonl(path, ("src", "tgt"), _pair, "pairs")


def _pair(value: Mapping[str, Any], default: str, where: str) -> SequencePair:
    name = value.get("id", default)
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ValueError(f"{where}: id is {name!r}, expected a printable text that is not empty")
    src, tgt = (_ids(value[key], key, where) for key in ("src", "tgt"))
    if not src:
        raise ValueError(f"{where}: src is empty: there is nothing to read")
    return SequencePair(name, src, tgt)


def _ids(value: object, key: str, where: str) -> tuple[int, ...]:
    """Token ids as a tuple. Whether they are in a vocabulary is known only with the model."""
    if not isinstance(value, list) or not all(type(token) is int and 0 <= token < 2**63 for token in value):
        raise ValueError(f"{where}: {key} is {value!r}, expected a list of token ids, integers of at least 0")
    return tuple(value)

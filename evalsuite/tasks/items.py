"""Multiple-choice items in JSONL files, one item a line, blank lines ignored.

    {"id": "europe-001", "context": "Question: ...\\nAnswer:", "choices": [" Rome", " Paris"], "label": 1}

``id`` may be left out: the item is then named after its line. Other keys are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalsuite.tasks.jsonl import read_jsonl


@dataclass(frozen=True)
class ChoiceItem:
    """A context and the texts that may continue it, one of which is right.

    Attributes:
        id: unique in its file.
        context: what the model reads; each choice is scored as its continuation, byte for byte.
        choices: at least two texts.
        label: index of the right choice.
    """

    id: str
    context: str
    choices: tuple[str, ...]
    label: int


def read_choices(path: str | Path) -> list[ChoiceItem]:
    """The items of a JSONL file, in its order; anything wrong is a ValueError that names the line."""
    return read_jsonl(path, ("context", "choices", "label"), _item, "items")


def _item(value: Mapping[str, Any], default: str, where: str) -> ChoiceItem:
    choices = value["choices"]
    if not isinstance(choices, list) or len(choices) < 2:
        raise ValueError(f"{where}: choices is {choices!r}, expected a list of at least two texts")
    label = value["label"]
    if type(label) is not int or not 0 <= label < len(choices):
        raise ValueError(f"{where}: label is {label!r}, expected an integer from 0 to {len(choices) - 1}")
    return ChoiceItem(
        id=_text(value.get("id", default), "id", where),
        context=_text(value["context"], "context", where),
        choices=tuple(_text(choice, f"choice {i}", where) for i, choice in enumerate(choices)),
        label=label,
    )


def _text(value: object, name: str, where: str) -> str:
    """A string with something in it that UTF-8 can write (JSON escapes may spell half a surrogate pair)."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where}: {name} is {value!r}, expected a text that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where}: {name} is {value!r}, which is not valid Unicode ({error.reason})") from None
    return value

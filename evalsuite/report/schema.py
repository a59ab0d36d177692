"""Checking a document against one of the JSON Schemas beside this file; jsonschema is loaded on first use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evalsuite.report.layout import printable

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def load_schema(name: str) -> dict[str, Any]:
    """The schema file ``name`` of this package."""
    schema: dict[str, Any] = json.loads(files("evalsuite.report").joinpath(name).read_text(encoding="utf-8"))
    return schema


def schema_errors(document: Mapping[str, Any], name: str) -> list[str]:
    """What ``document`` breaks in the schema ``name``: ``path: message`` lines."""
    return [
        f"{where(error.absolute_path)}: {_brief(error.message)}{_row_name(document, list(error.absolute_path))}"
        for error in _validator(name).iter_errors(document)
    ]


def where(path: Iterable[str | int]) -> str:
    """A path as a reader writes it: ``rows[3].value``; the document itself is ``report``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "report"


@cache
def _validator(name: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(load_schema(name))


def _row_name(document: Mapping[str, Any], path: list[str | int]) -> str:
    match path:
        case ["rows", int(index), *_] if isinstance(row := document["rows"][index], Mapping):
            name = row.get("id") or row.get("model")
            return f" (row {printable(str(name))})" if name else ""
    return ""


def _brief(message: str, limit: int = 300) -> str:
    line = " ".join(message.split())
    return line if len(line) <= limit else f"{line[: limit // 2]} ... {line[-limit // 2 :]}"

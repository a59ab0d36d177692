"""Names of models, tasks and metrics: a row's id is ``model--task--metric``, and it names the row's files."""

from __future__ import annotations

import re

ID_PATTERN = r"[A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+)*"
"""One part of a row id: letters, digits, ``_ .`` and single hyphens between them; a double one joins the parts, and
next to a hyphen at an end it could not be told where."""

MAX_NAME = 70
"""Three parts, a sidecar's suffix and that of a file being written must fit a file name of 255 bytes."""


def row_part(name: str) -> str:
    """A model's or task's name as a part of a row id: ``org/name@rev`` becomes ``org_name_rev``."""
    return re.sub(r"[/@]", "_", name)


def name_problem(name: str) -> str:
    """Why a name cannot be part of a row id and a file name, or ""."""
    if len(name) > MAX_NAME:
        return f"the name {name[:30]!r}... has {len(name)} characters; a row's file name has room for {MAX_NAME}"
    if not re.fullmatch(ID_PATTERN, name, re.ASCII):
        return f"the name {name!r} must be made of letters, digits, '_', '.' and single hyphens between them"
    return ""


UNKNOWN = "unknown"
"""The task of a row whose entry names none that can be read."""

MANIFEST_ROW = f"zoo--{UNKNOWN}--score"
"""The row of a zoo that cannot be read or lists nothing: then no other row of it can be asked for."""

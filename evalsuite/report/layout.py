"""Lines of a terminal: safe characters, wrapped between the parts that belong together."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 98
"""Columns of a line: 100, less the two by which a summary moves a block in."""

_MOST_LINES = 8


def printable(text: str) -> str:
    """``text`` in plain ASCII: other characters, and control characters, as escapes."""
    safe = text.expandtabs(4).encode("ascii", "backslashreplace").decode("ascii")
    return "".join(char if " " <= char <= "~" else f"\\x{ord(char):02x}" for char in safe)


def flow(parts: Iterable[str], *, gap: str, indent: int, first: str = "") -> list[str]:
    """``parts`` joined by ``gap``, broken only between parts; later lines start at ``indent``."""
    lines: list[str] = []
    line, empty = first or " " * indent, True
    for part in parts:
        if not empty and len(line) + len(gap) + len(part) > WIDTH:
            lines.append(line.rstrip())
            line, empty = " " * indent, True
        line += part if empty else gap + part
        empty = False
    return [*lines, line.rstrip()]


def paragraph(text: str, *, indent: int, first: str = "") -> list[str]:
    """``text`` wrapped at ``indent``, its own line ends kept, cut after a few lines."""
    lines: list[str] = []
    for line in text.strip().splitlines():
        lines += textwrap.wrap(
            printable(line),
            WIDTH,
            initial_indent=first if first and not lines else " " * indent,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    if len(lines) > _MOST_LINES:
        left = len(lines) - _MOST_LINES + 1
        lines[_MOST_LINES - 1 :] = [f"{' ' * indent}... ({left} more lines in the report)"]
    return lines


def listed(names: Sequence[str], most: int = 5) -> str:
    """``a, b, c``, cut after ``most`` names with a count of the rest."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")

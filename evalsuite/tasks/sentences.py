"""Labelled sentences with splits: a header line, then ``split<TAB>sentence<TAB>label``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LabelledSentence:
    """One row of a split: its text and the number of its class."""

    sentence: str
    label: int


def read_sentences(path: str | Path, split: str) -> list[LabelledSentence]:
    """The sentences of one split, in file order. Rows of other splits are left out: a model that was trained on them
    would look better than it is.

    Args:
        path: a TSV file; its first line is a header and is always dropped.
        split: the split's name, ``val`` say.

    Raises:
        ValueError: a line without three fields or with a label that is no whole number of at least 0 (the message
            names file and line), or no row of the split.
    """
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    rows = []
    seen = set()
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != 3 or not fields[2].isdecimal():
            raise ValueError(f"{path}, line {number}: expected split<TAB>sentence<TAB>label, found {line[:80]!r}")
        seen.add(fields[0])
        if fields[0] == split:
            rows.append(LabelledSentence(fields[1], int(fields[2])))
    if not rows:
        raise ValueError(f"{path}: no row of the split {split!r}; splits there: {', '.join(sorted(seen)) or 'none'}")
    return rows

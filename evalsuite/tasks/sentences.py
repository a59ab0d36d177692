"""Labelled sentences with splits: a header line, then ``split<TAB>sentence<TAB>label``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LabelledSentence:
    """One row of a split.

    Attributes:
        sentence: its text.
        label: the number of its class.
        line: its line in the file, from 1; the header is line 1.
    """

    sentence: str
    label: int
    line: int


def read_sentences(path: str | Path, split: str) -> list[LabelledSentence]:
    """The sentences of one split, in file order. Rows of other splits are left out: a model that was trained on them
    would look better than it is.

    Args:
        path: a TSV file; its first line is a header and is always dropped.
        split: the split's name, ``val`` say.

    Raises:
        ValueError: a line without three fields or with a label that is no whole number of at least 0 (the message
            names file and line), no row of the split, or a file that is not UTF-8.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text ({error})") from None
    rows = []
    seen = set()
    # Cut at \n alone: str.splitlines would also cut at U+2028 and its like, which a sentence may hold.
    for number, line in enumerate(text.removesuffix("\n").split("\n")[1:], start=2):
        fields = line.removesuffix("\r").split("\t")
        if len(fields) != 3 or not fields[2].isdecimal():
            raise ValueError(f"{path}, line {number}: expected split<TAB>sentence<TAB>label, found {line[:80]!r}")
        seen.add(fields[0])
        if fields[0] == split:
            rows.append(LabelledSentence(fields[1], int(fields[2]), number))
    if not rows:
        raise ValueError(f"{path}: no row of the split {split!r}; splits there: {', '.join(sorted(seen)) or 'none'}")
    return rows

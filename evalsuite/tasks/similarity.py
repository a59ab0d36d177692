"""Pairs of words with a similarity that people or a lexicon gave them: ``w1<TAB>w2<TAB>score`` lines.

Blank lines and lines that start with ``#`` are ignored. A data file named ``gensim:wordsim353.tsv`` or
``gensim:simlex999.txt`` is the one that an installed gensim has among its test data; those sets must not be copied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

GENSIM = "gensim:"


@dataclass(frozen=True)
class WordPair:
    """Two words and how similar they are, on any scale."""

    first: str
    second: str
    score: float


def similarity_path(data: Path) -> Path:
    """The file behind a task's ``data``: the path itself, or the file of an installed gensim.

    Raises:
        ValueError: gensim is named and not installed.
    """
    if not data.name.startswith(GENSIM):
        return data
    # Found, not imported: gensim takes a second to load, and only its data is wanted.
    spec = find_spec("gensim")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"{data.name}: this word list comes with gensim, which is not installed: pip install gensim")
    return Path(spec.submodule_search_locations[0]) / "test" / "test_data" / data.name.removeprefix(GENSIM)


def read_similarity(path: str | Path) -> list[WordPair]:
    """The pairs of a file, in its order.

    Raises:
        ValueError: a line without two words and a finite number (the message names file and line), or no pairs.
        OSError: the file cannot be read.
    """
    file = similarity_path(Path(path))
    pairs: list[WordPair] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        fields = [field.strip() for field in line.split("\t")]
        if not line.strip() or line.startswith("#"):
            continue
        if len(fields) != 3 or not (fields[0] and fields[1]) or not _is_number(fields[2]):
            raise ValueError(f"{file}, line {number}: expected w1<TAB>w2<TAB>score, found {line[:80]!r}")
        pairs.append(WordPair(fields[0], fields[1], float(fields[2])))
    if not pairs:
        raise ValueError(f"{file}: no pairs, expected one w1<TAB>w2<TAB>score a line")
    return pairs


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False

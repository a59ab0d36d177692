"""Build the prose data from its two source texts: train.bin, heldout.bin and their document indexes.

    python tasks/prose/build.py KJV DEVIL

KJV is the King James Bible, a verse a line ("Ge1:1 In the beginning ..."), plain or gzip-compressed; DEVIL is the
Devil's Dictionary as the text that dict-devil ships. Where to get them: NOTICE.md. The output depends on nothing else.

A chapter is a document, and so is an entry of the dictionary. Held out are eight whole books, of short chapters, and
seven letters of the dictionary. To train on there are the rest of the New Testament, four books of the Old one and the
rest of the dictionary; the other books are left out, so that the dictionary is not drowned and the files stay small.
Tokens are bytes; every document ends with a newline and there is no separator.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections import Counter
from pathlib import Path

import numpy as np

from evalsuite.tasks.tokens import Document, write_index, write_tokens

BOOKS = {
    "Ge": "Genesis", "Exo": "Exodus", "Lev": "Leviticus", "Num": "Numbers", "Deu": "Deuteronomy", "Josh": "Joshua",
    "Jdgs": "Judges", "Ruth": "Ruth", "1Sm": "1 Samuel", "2Sm": "2 Samuel", "1Ki": "1 Kings", "2Ki": "2 Kings",
    "1Chr": "1 Chronicles", "2Chr": "2 Chronicles", "Ezra": "Ezra", "Neh": "Nehemiah", "Est": "Esther", "Job": "Job",
    "Psa": "Psalms", "Prv": "Proverbs", "Eccl": "Ecclesiastes", "SSol": "Song of Solomon", "Isa": "Isaiah",
    "Jer": "Jeremiah", "Lam": "Lamentations", "Eze": "Ezekiel", "Dan": "Daniel", "Hos": "Hosea", "Joel": "Joel",
    "Amos": "Amos", "Obad": "Obadiah", "Jonah": "Jonah", "Mic": "Micah", "Nahum": "Nahum", "Hab": "Habakkuk",
    "Zep": "Zephaniah", "Hag": "Haggai", "Zec": "Zechariah", "Mal": "Malachi", "Mat": "Matthew", "Mark": "Mark",
    "Luke": "Luke", "John": "John", "Acts": "Acts", "Rom": "Romans", "1Cor": "1 Corinthians", "2Cor": "2 Corinthians",
    "Gal": "Galatians", "Eph": "Ephesians", "Phi": "Philippians", "Col": "Colossians", "1Th": "1 Thessalonians",
    "2Th": "2 Thessalonians", "1Tim": "1 Timothy", "2Tim": "2 Timothy", "Titus": "Titus", "Phmn": "Philemon",
    "Heb": "Hebrews", "Jas": "James", "1Pet": "1 Peter", "2Pet": "2 Peter", "1Jn": "1 John", "2Jn": "2 John",
    "3Jn": "3 John", "Jude": "Jude", "Rev": "Revelation",
}  # fmt: skip
HELD_OUT_BOOKS = {"Ruth", "Song of Solomon", "Jonah", "Nahum", "Titus", "Philemon", "2 John", "3 John"}
HELD_OUT_LETTERS = set("FNOQVWY")
NEW_TESTAMENT = list(BOOKS.values())[list(BOOKS).index("Mat") :]
TRAIN_BOOKS = {"Genesis", "Judges", "Psalms", "Isaiah", *NEW_TESTAMENT} - HELD_OUT_BOOKS

VERSE = re.compile(r"(\d?[A-Za-z]+)(\d+):\d+ (.*)")
# An entry starts at column 0 after an empty line with a headword in capitals. Letters have entries too
# ("I is the first letter", "T, the twentieth letter", "W (double U)", "X in our alphabet").
ENTRY = re.compile(r"[A-Z]{2}|[A-Z](?: is |, the | \(| in )|R\.I\.P\.")
HEADWORD_END = re.compile(r",? ?\b(?:n|adj|adv|v|pro|pron|p\.p|x)\.|\?|\.(?= |$)| (?:is|in) |, the | \(double")
FOOTER = " abcdefghijklmnopqrstuvwxyz"


def read_source(path: Path) -> str:
    """A text file, plain or gzip-compressed, which must be ASCII."""
    raw = path.read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("ascii")


def bible(text: str) -> list[tuple[str, str]]:
    """(id, text) of each chapter, a verse a line without its reference."""
    chapters: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        verse = VERSE.fullmatch(line)
        if verse is None or verse[1] not in BOOKS:
            raise SystemExit(f"line {number} of the Bible is {line[:60]!r}, expected a verse like 'Ge1:1 In the ...'")
        chapters.setdefault(f"{BOOKS[verse[1]]} {verse[2]}", []).append(verse[3].rstrip())
    return [(name, "".join(f"{verse}\n" for verse in verses)) for name, verses in chapters.items()]


def book(chapter: str) -> str:
    """``1 John 3`` to ``1 John``."""
    return chapter.rsplit(" ", 1)[0]


def dictionary(text: str) -> list[tuple[str, str]]:
    """(id, text) of each entry; the file's header, the distribution notice and the preface come before the first."""
    lines = [line.rstrip() for line in text.split("\n") if line != FOOTER]
    first = next(i for i, line in enumerate(lines) if line.startswith("ABASEMENT, n."))
    entries: list[list[str]] = []
    for i in range(first, len(lines)):
        if ENTRY.match(lines[i]) and not lines[i - 1]:
            entries.append([])
        entries[-1].append(lines[i])
    seen: Counter[str] = Counter()
    documents = []
    for entry in entries:
        end = HEADWORD_END.search(entry[0])
        if end is None:
            raise SystemExit(f"no headword found in the entry that starts {entry[0]!r}")
        word = entry[0][: end.start()].strip()
        seen[word] += 1
        name = word if seen[word] == 1 else f"{word} ({seen[word]})"
        documents.append((name, "\n".join(entry).rstrip() + "\n"))
    return documents


def write_split(folder: Path, name: str, documents: list[tuple[str, str]]) -> None:
    """``<name>.bin`` and ``<name>.index.json``, the documents in the order given."""
    index = []
    position = 0
    for document_id, text in documents:
        index.append(Document(document_id, position, position + len(text)))
        position += len(text)
    ids = np.frombuffer("".join(text for _, text in documents).encode("ascii"), np.uint8)
    write_tokens(folder / f"{name}.bin", ids, 256)
    write_index(folder / f"{name}.bin", index, len(ids))
    print(f"{name}: {len(documents)} documents, {len(ids)} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kjv", type=Path, help="the King James Bible, a verse a line, plain or .gz")
    parser.add_argument("devil", type=Path, help="the Devil's Dictionary, the text that dict-devil ships")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder (default: this one)")
    args = parser.parse_args()

    chapters = bible(read_source(args.kjv))
    entries = dictionary(read_source(args.devil))
    # Books in the canon's order, entries in the dictionary's.
    train = [chapter for chapter in chapters if book(chapter[0]) in TRAIN_BOOKS]
    train += [entry for entry in entries if entry[0][0] not in HELD_OUT_LETTERS]
    heldout = [chapter for chapter in chapters if book(chapter[0]) in HELD_OUT_BOOKS]
    heldout += [entry for entry in entries if entry[0][0] in HELD_OUT_LETTERS]
    shared = {text for _, text in train} & {text for _, text in heldout}
    if shared:
        raise SystemExit(f"{len(shared)} texts are in both splits, first {min(shared)[:60]!r}")
    write_split(args.out, "train", train)
    write_split(args.out, "heldout", heldout)


if __name__ == "__main__":
    main()

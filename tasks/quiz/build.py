"""Build quiz.jsonl, four-choice items, from the data files of the game quiz (BSD games).

    python tasks/quiz/build.py FOLDER

FOLDER holds the game's data files, /usr/share/games/bsdgames/quiz where the Debian package bsdgames is installed
(NOTICE.md). An item's wrong choices are the right answers of three other questions of its set, none of them accepted
for its own; which ones, and where the right one stands, is drawn from a generator seeded with `SEED`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from evalsuite.stats import PCG32

SEED = 0
N_CHOICES = 4
CAPITAL = "What is the capital of {}?"
# A set's file: the question, and which of the fields between colons holds the answer (the first is asked about).
# Left out, of those with a plain question: Latin and the language of flowers, where the form gives the answer away,
# and the young of animals, where a pup or a kitten has so many accepted parents that few wrong ones are left.
SETS = {
    "europe": (CAPITAL, 1),
    "asia": (CAPITAL, 1),
    "africa": (CAPITAL, 1),
    "america": (CAPITAL, 1),
    "state": ("What is the capital of the US state of {}?", 1),
    "province": (CAPITAL, 1),
    "collectives": ("What is the collective noun for a group of {}?", 1),
    "elements": ("Which chemical element has the symbol {}?", 3),
}


@dataclass(frozen=True)
class Question:
    """A question with all its accepted answers, the first of which is the one to be chosen."""

    text: str
    answers: tuple[str, ...]


def expand(pattern: str) -> list[str]:
    """All texts that a pattern of the game's syntax stands for: ``a|b``, ``[a|b]``, optional ``{a}``."""
    found, end = _alternatives(pattern, 0)
    if end != len(pattern):
        raise SystemExit(f"unbalanced bracket at position {end} of {pattern!r}")
    return list(dict.fromkeys(found))


def _alternatives(pattern: str, start: int) -> tuple[list[str], int]:
    """The texts of a pattern from ``start`` to the bracket that closes it, and where that is."""
    done: list[str] = []
    current = [""]
    i = start
    while i < len(pattern) and pattern[i] not in "]}":
        if pattern[i] == "|":
            done += current
            current = [""]
        elif pattern[i] in "[{":
            inner, close = _alternatives(pattern, i + 1)
            options = [*inner, ""] if pattern[i] == "{" else inner
            current = [text + option for text in current for option in options]
            i = close
        else:
            current = [text + pattern[i] for text in current]
        i += 1
    return done + current, i


def clean(text: str) -> bool:
    """False where the game's file spells an accent by overstriking, with a backspace."""
    return text.isascii() and text.isprintable()


def questions(folder: Path, name: str) -> list[Question]:
    """The usable questions of a set, in order; the answers of a question asked twice are joined."""
    template, field = SETS[name]
    answers: dict[str, list[str]] = {}
    for line in (folder / name).read_text(encoding="latin-1").splitlines():
        fields = line.split(":")
        # The longest of a thing's names: "United Kingdom", not "UK".
        subject = max(expand(fields[0]), key=len)
        found = [text for text in expand(fields[field]) if clean(text)]
        if clean(subject) and found:
            answers.setdefault(template.format(subject), []).extend(found)
    return [Question(text, tuple(dict.fromkeys(found))) for text, found in answers.items()]


def draw_distractors(question: Question, pool: list[Question], rng: PCG32) -> list[str]:
    """Three different answers of other questions, none accepted for this one (without regard to case)."""
    taken = {answer.casefold() for answer in question.answers}
    candidates = []
    for other in pool:
        answer = other.answers[0]
        if answer.casefold() not in taken:
            taken.add(answer.casefold())
            candidates.append(answer)
    return [candidates.pop(rng.below(len(candidates))) for _ in range(N_CHOICES - 1)]


def build(folder: Path) -> list[dict[str, object]]:
    """All items; the labels 0 to 3 are equally frequent (to within one)."""
    rng = PCG32(SEED)
    pools = {name: questions(folder, name) for name in SETS}
    asked: set[str] = set()  # some countries are in two of the sets
    kept: list[tuple[str, int, Question]] = []
    for name, pool in pools.items():
        for question in pool:
            if question.text not in asked:
                asked.add(question.text)
                kept.append((name, pool.index(question) + 1, question))
    labels = [i % N_CHOICES for i in range(len(kept))]
    rng.shuffle(labels)
    items: list[dict[str, object]] = []
    for (name, number, question), label in zip(kept, labels, strict=True):
        choices = draw_distractors(question, pools[name], rng)
        choices.insert(label, question.answers[0])
        items.append(
            {
                "id": f"{name}-{number:03d}",
                "context": f"Question: {question.text}\nAnswer:",
                "choices": [f" {choice}" for choice in choices],
                "label": label,
            }
        )
    return items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the game's data files")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("quiz.jsonl"), help="file to write")
    args = parser.parse_args()
    items = build(args.folder)
    args.out.write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8", newline="\n")
    print(f"{args.out.name}: {len(items)} items")


if __name__ == "__main__":
    main()

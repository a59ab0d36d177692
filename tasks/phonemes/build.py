"""Build the letters-to-phonemes data from CMUdict: symbols.json, heldout.jsonl and train.jsonl.

    PYTHONPATH=models/recipes python tasks/phonemes/build.py FOLDER

FOLDER holds `cmudict-en-us.dict`; models/recipes/corpora.py, which reads it, also fetches it (NOTICE.md). The output
depends on nothing else.

A line is a word: {"id": word, "src": letter ids, "tgt": phoneme ids}. Eligible are words of two letters or more, spelt
with a to z alone, that have one pronunciation: a second one would make a right answer count as wrong. Which words are
drawn follows from a generator seeded with `SEED`.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from corpora import LETTERS, PHONEMES, cmudict, spoken_word

from evalsuite.stats import PCG32

SEED = 0
N_HELDOUT = 1000
N_TRAIN = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds cmudict-en-us.dict of pocketsphinx 5.1.1")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder (default: this one)")
    args = parser.parse_args()

    symbols = {"letters": LETTERS, "phonemes": PHONEMES}
    (args.out / "symbols.json").write_text(f"{json.dumps(symbols)}\n", encoding="utf-8", newline="\n")

    dictionary = cmudict(args.folder)
    words = sorted(word for word, spoken in dictionary.items() if re.fullmatch("[a-z]{2,}", word) and len(spoken) == 1)
    print(f"{len(words)} words to draw from")
    PCG32(SEED).shuffle(words)
    for name, part in (("heldout", words[:N_HELDOUT]), ("train", words[N_HELDOUT : N_HELDOUT + N_TRAIN])):
        lines = []
        for word in part:
            ids = spoken_word(word, dictionary[word][0])
            line = {"id": word, "src": ids.src, "tgt": ids.tgt}
            lines.append(f"{json.dumps(line, separators=(',', ':'))}\n")
        (args.out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
        print(f"{name}.jsonl: {len(lines)} words")


if __name__ == "__main__":
    main()

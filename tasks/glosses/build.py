"""Build glosses.tsv and labels.json: the definition of a noun, and which of ten categories the noun is of.

    PYTHONPATH=models/recipes python tasks/glosses/build.py FOLDER

FOLDER holds `data.noun` of WordNet 3.0; models/recipes/corpora.py, which reads it, also fetches it (NOTICE.md). The
output depends on nothing else.

The ten are the categories with most nouns. Each has as many rows as the others, so guessing scores a tenth. Eligible
are glosses that no other synset has (see `normalised`), so that none stands in both splits, and none under two labels.
Which are drawn follows from a generator seeded with `SEED`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from corpora import LABELS, normalised, noun_glosses

from evalsuite.stats import PCG32

SEED = 0
PER_LABEL = {"train": 40, "val": 120}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds data.noun of WordNet 3.0")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder (default: this one)")
    args = parser.parse_args()

    synsets = noun_glosses(args.folder)
    (args.out / "labels.json").write_text(f"{json.dumps(LABELS)}\n", encoding="utf-8", newline="\n")

    copies = Counter(normalised(synset.gloss) for synset in synsets)
    rng = PCG32(SEED)
    rows: dict[str, list[str]] = {split: [] for split in PER_LABEL}
    for number, label in enumerate(LABELS):
        pool = [s.gloss for s in synsets if s.category == label and copies[normalised(s.gloss)] == 1]
        rng.shuffle(pool)
        for split, count in PER_LABEL.items():
            rows[split] += [f"{split}\t{gloss}\t{number}\n" for gloss in pool[:count]]
            del pool[:count]
    for part in rows.values():
        rng.shuffle(part)
    text = "split\tsentence\tlabel\n" + "".join(line for part in rows.values() for line in part)
    (args.out / "glosses.tsv").write_text(text, encoding="utf-8", newline="\n")
    print(f"glosses.tsv: {', '.join(f'{len(part)} {split}' for split, part in rows.items())}; {', '.join(LABELS)}")


if __name__ == "__main__":
    main()

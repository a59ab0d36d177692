"""Build wordnet.tsv: pairs of nouns, and how near they stand in the hierarchy of WordNet 3.0.

    PYTHONPATH=models/recipes python tasks/similarity/build.py FOLDER

FOLDER holds `data.noun` and `cntlist.rev` of WordNet 3.0; models/recipes/corpora.py, which reads them, also fetches
them (NOTICE.md). The output depends on these, on the training text of tasks/prose and on tasks/glosses/glosses.tsv.

The score is the path similarity of two senses, 1 / (1 + edges of the shortest way up from both to a synset above both),
where a synset is above itself and the edges are hypernyms. The senses are the words' most frequent ones, and only words
are taken that are rarely used in another: the best of all senses, the usual choice, calls king and singer near (there
is a B. B. King), and head and john. Pairs are drawn in equal numbers from bands of distance by a generator seeded with
`SEED`.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from corpora import SENSE_COUNTS, Synset, corpus_file, noun_glosses, plain_text_for_word_vectors, words_of

from evalsuite.stats import PCG32

SEED = 0
MIN_COUNT = 50  # in the text that word vectors are trained on
MIN_SHARE = 0.75  # of the sense, among all uses of the word that were tagged, verbs and adjectives too
BANDS = ((0, 2), (3, 5), (6, 9), (10, 99))  # edges, both ends included
PER_BAND = 100
MAX_USES = 3  # of a word, in all pairs
NOT_NOUNS = {"data", "men", "nothing", "slain", "someone", "while"}
"""Words of other kinds that WordNet lists as nouns, and plurals that do not end in s."""
HEADER = "# w1, w2, path similarity. From WordNet 3.0, Copyright 2006 by Princeton University; its licence: NOTICE.md\n"


def main_senses(synsets: Iterable[Synset], sense_counts: str) -> dict[str, Synset]:
    """The sense of each word that has at least `MIN_SHARE` of its uses, and is a noun.

    Args:
        synsets: all of them.
        sense_counts: lines ``sense_key sense_number count`` (cntlist(5WN)); a key starts with ``word%``.
    """
    synset_of = {key: synset for synset in synsets for key in synset.keys}
    uses: Counter[str] = Counter()
    best: dict[str, tuple[int, str]] = {}
    for line in sense_counts.splitlines():
        key, _, count = line.split()
        word = key.split("%")[0]
        uses[word] += int(count)
        best[word] = max(best.get(word, (0, "")), (int(count), key))
    return {
        word: synset_of[key]
        for word, (count, key) in best.items()
        if key in synset_of and count >= MIN_SHARE * uses[word]
    }


def chosen(synsets: list[Synset], senses: Mapping[str, Synset], text: Iterable[str]) -> list[str]:
    """The words that pairs are made of: frequent, singular, and never written with a capital (which names are)."""
    counts = Counter(word for part in text for word in words_of(part))
    nouns = {word for synset in synsets for word in synset.words}
    names = {word.lower() for word in nouns if word != word.lower()}
    return sorted(
        word
        for word in senses
        if re.fullmatch("[a-z]{3,}", word)
        and counts[word] >= MIN_COUNT
        and not (word.endswith("s") and word[:-1] in nouns)
        and word not in names
        and word not in NOT_NOUNS
    )


def above(synset: Synset, by_offset: Mapping[int, Synset]) -> dict[int, int]:
    """Edges from a synset up to each one above it, itself included, by offset."""
    edges = {synset.offset: 0}
    level = [synset]
    while level:
        level = [by_offset[up] for low in level for up in low.hypernyms if up not in edges]
        distance = max(edges.values()) + 1
        edges.update({synset.offset: distance for synset in level})
    return edges


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds data.noun and cntlist.rev of WordNet 3.0")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("wordnet.tsv"), help="file to write")
    args = parser.parse_args()

    synsets = noun_glosses(args.folder)
    by_offset = {synset.offset: synset for synset in synsets}
    senses = main_senses(synsets, corpus_file(SENSE_COUNTS, args.folder).read_text(encoding="ascii"))
    words = chosen(synsets, senses, plain_text_for_word_vectors(args.folder))
    ways = {word: above(senses[word], by_offset) for word in words}
    pairs: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for first, second in combinations(words, 2):
        a, b = ways[first], ways[second]
        pairs[min(a[top] + b[top] for top in a.keys() & b.keys())].append((first, second))

    rng = PCG32(SEED)
    uses: Counter[str] = Counter()
    lines = []
    for low, high in BANDS:
        pool = [(pair, distance) for distance in range(low, high + 1) for pair in pairs[distance]]
        rng.shuffle(pool)
        left = PER_BAND
        for pair, distance in pool:
            if left and all(uses[word] < MAX_USES for word in pair):
                left -= 1
                uses.update(pair)
                lines.append(f"{pair[0]}\t{pair[1]}\t{1 / (1 + distance):.6f}\n")
        print(f"{low} to {high} edges: {PER_BAND - left} of {len(pool)} pairs")
    args.out.write_text(HEADER + "".join(sorted(lines)), encoding="utf-8", newline="\n")
    print(f"{args.out.name}: {len(lines)} pairs of {len(uses)} words, out of {len(words)}")


if __name__ == "__main__":
    main()

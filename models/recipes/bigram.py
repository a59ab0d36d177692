"""Bigram: a table of log frequencies with one added to every count.

python models/recipes/bigram.py [--out models/bigram]
"""

from __future__ import annotations

from common import VOCAB, options, report, train_ids

from evalsuite.zoo.families.bigram import BigramLM, save

BAR = 3.70


def main() -> None:
    opts = options(__doc__, "bigram")
    save(BigramLM.fit(train_ids(), VOCAB, alpha=1.0), opts.out)
    report(opts.out, "prose", bpb=BAR)


if __name__ == "__main__":
    main()

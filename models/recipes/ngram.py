"""4-gram with modified Kneser-Ney smoothing; every document starts from <s>.

python models/recipes/ngram.py [--out models/kn4]
"""

from __future__ import annotations

from common import VOCAB, options, report, train_documents

from evalsuite.zoo.families.ngram import NGramLM

BAR = 2.46


def main() -> None:
    opts = options(__doc__, "kn4")
    NGramLM().fit(train_documents().values(), 4, "modified", VOCAB).save(opts.out)
    report(opts.out, "prose", bpb=BAR)


if __name__ == "__main__":
    main()

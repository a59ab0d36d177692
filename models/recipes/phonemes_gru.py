"""Letters to phonemes: a GRU encoder and decoder with Bahdanau's attention, on CMUdict.

python models/recipes/phonemes_gru.py [--out models/phonemes-gru] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from common import options, report, set_up, train
from corpora import LETTERS, PHONEMES, phoneme_training_pairs
from pairs import losses

from evalsuite.zoo.families.seq2seq import Seq2Seq, Seq2SeqConfig, save

BAR = 0.58
STEPS = 4500


def main() -> None:
    opts = options(__doc__, "phonemes-gru")
    set_up(opts)
    config = Seq2SeqConfig(
        vocab_size=len(PHONEMES),
        tl_src_vocab=len(LETTERS),
        tl_cell="gru",
        tl_d_emb=64,
        hidden_size=256,
        tl_seq2seq_attention="bahdanau",
        tl_d_attn=128,
    )
    model = Seq2Seq(config, dropout=0.1)
    train(
        model, losses(model, phoneme_training_pairs(), STEPS, opts.seed), opts.curve, steps=STEPS, lr=3e-3, warm_up=100
    )
    save(model, opts.out)
    report(opts.out, "phonemes", exact_match=BAR)


if __name__ == "__main__":
    main()

"""Letters to phonemes: the 2017 Transformer, two layers on either side, on CMUdict.

python models/recipes/phonemes_transformer.py [--out models/phonemes-transformer] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from common import options, report, set_up, train
from corpora import LETTERS, PHONEMES, phoneme_training_pairs
from pairs import losses

from evalsuite.zoo.families.transformer import Transformer, TransformerConfig, save

BAR = 0.47
STEPS = 4000


def main() -> None:
    opts = options(__doc__, "phonemes-transformer")
    set_up(opts)
    config = TransformerConfig(
        vocab_size=len(PHONEMES),
        tl_src_vocab=len(LETTERS),
        d_model=128,
        n_heads=4,
        d_ff=384,
        n_enc=2,
        n_dec=2,
        tl_norm="post",
        tie_word_embeddings=True,
        max_position_embeddings=48,
    )
    model = Transformer(config, dropout=0.1)
    train(
        model,
        losses(model, phoneme_training_pairs(), STEPS, opts.seed),
        opts.curve,
        steps=STEPS,
        lr=2e-3,
        betas=(0.9, 0.98),
        warm_up=300,
    )
    save(model, opts.out)
    report(opts.out, "phonemes", exact_match=BAR)


if __name__ == "__main__":
    main()

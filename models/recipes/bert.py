"""BERT: 4 layers of width 128 on the glosses of WordNet's nouns, a quarter of the bytes hidden.

python models/recipes/bert.py [--out models/bert] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from common import VOCAB, options, report, set_up, train
from corpora import training_glosses
from sentences import MAX_LEN, batches, hide
from torch import Tensor

from evalsuite.zoo.families.bert import BertConfig, BertForMLM, save

BAR = 0.55
TOKENS = 2048
STEPS = 3600
HIDDEN = 0.25


def losses(
    model: BertForMLM, texts: Sequence[str], steps: int, share: float, seed: int
) -> Iterator[Callable[[], Tensor]]:
    """Cross-entropy of hidden bytes, a share of all."""
    generator = torch.Generator().manual_seed(seed)
    stream = batches(texts, TOKENS, generator)
    for _ in range(steps):
        _, ids, real = next(stream)
        inputs, picked = hide(ids, real, share, VOCAB, generator)

        def compute(ids: Tensor = ids, real: Tensor = real, inputs: Tensor = inputs, picked: Tensor = picked) -> Tensor:
            return F.cross_entropy(model.logits(model.hidden(inputs, real)[picked]), ids[picked])

        yield compute


def main() -> None:
    opts = options(__doc__, "bert")
    set_up(opts)
    config = BertConfig(
        vocab_size=VOCAB,
        max_position_embeddings=MAX_LEN,
        hidden_size=128,
        num_attention_heads=4,
        num_hidden_layers=4,
        intermediate_size=512,
        type_vocab_size=2,
    )
    model = BertForMLM(config)
    texts = [synset.gloss for synset in training_glosses()]
    train(
        model,
        losses(model, texts, STEPS, HIDDEN, opts.seed),
        opts.curve,
        steps=STEPS,
        lr=1.5e-3,
        weight_decay=0.01,
        betas=(0.9, 0.98),
        warm_up=200,
    )
    save(model, opts.out)
    report(opts.out, "gloss-masked", accuracy=BAR)


if __name__ == "__main__":
    main()

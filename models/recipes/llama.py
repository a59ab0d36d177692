"""Llama: the size and the text of the GPT, with grouped queries, rotary positions, RMSNorm and SwiGLU.

python models/recipes/llama.py [--out models/llama] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from common import VOCAB, options, random_windows, report, set_up, train, train_ids
from torch import Tensor

from evalsuite.zoo.families.llama import Llama, LlamaConfig, save

BAR = 2.25
CONTEXT = 128
BATCH = 16
STEPS = 2400


def losses(model: Llama, ids: Tensor, seed: int) -> Iterator[Callable[[], Tensor]]:
    """Cross-entropy of every byte of a window given those before it."""
    for read, targets in random_windows(ids, CONTEXT, BATCH, STEPS, seed):

        def compute(read: Tensor = read, targets: Tensor = targets) -> Tensor:
            return F.cross_entropy(model(read).flatten(0, 1), targets.flatten())

        yield compute


def main() -> None:
    opts = options(__doc__, "llama")
    set_up(opts)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=128,
        intermediate_size=344,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
    )
    model = Llama(config)
    train(
        model,
        losses(model, torch.from_numpy(train_ids()), opts.seed),
        opts.curve,
        steps=STEPS,
        lr=3e-3,
        weight_decay=0.1,
        betas=(0.9, 0.98),
        warm_up=100,
    )
    save(model, opts.out)
    report(opts.out, "prose", bpb=BAR)


if __name__ == "__main__":
    main()

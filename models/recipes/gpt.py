"""GPT: 4 layers of width 128 on windows of 128 bytes, cut from the text at random.

python models/recipes/gpt.py [--out models/gpt] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from common import VOCAB, options, random_windows, report, set_up, train, train_ids
from torch import Tensor

from evalsuite.zoo.families.gpt import GPT, GPTConfig, save

BAR = 2.25
CONTEXT = 128
BATCH = 16
STEPS = 2400


def losses(model: GPT, ids: Tensor, seed: int) -> Iterator[Callable[[], Tensor]]:
    """Cross-entropy of every byte of a window given those before it."""
    for read, targets in random_windows(ids, CONTEXT, BATCH, STEPS, seed):

        def compute(read: Tensor = read, targets: Tensor = targets) -> Tensor:
            loss: Tensor | None = model(read, targets)[1]
            assert loss is not None
            return loss

        yield compute


def main() -> None:
    opts = options(__doc__, "gpt")
    set_up(opts)
    config = GPTConfig(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=128, n_head=4, n_layer=4, n_inner=512)
    model = GPT(config)
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

"""NPLM: a feed-forward network on the last 12 bytes, with direct connections.

python models/recipes/nplm.py [--out models/nplm] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from common import VOCAB, options, report, set_up, train, train_ids
from torch import Tensor

from evalsuite.zoo.families.nplm import NPLM, NPLMConfig, save

BAR = 2.55
CONTEXT = 12
BATCH = 1024
STEPS = 2400


def losses(model: NPLM, ids: Tensor, seed: int) -> Iterator[Callable[[], Tensor]]:
    """Every window of CONTEXT + 1 bytes once an epoch, shuffled."""
    windows = ids.unfold(0, CONTEXT + 1, 1)  # [N - C, C + 1], a view
    generator = torch.Generator().manual_seed(seed)
    order = torch.empty(0, dtype=torch.int64)
    for _ in range(STEPS):
        if len(order) < BATCH:
            order = torch.randperm(len(windows), generator=generator)
        batch, order = windows[order[:BATCH]], order[BATCH:]  # [B, C + 1]

        def compute(batch: Tensor = batch) -> Tensor:
            return F.cross_entropy(model(batch[:, :-1]), batch[:, -1])

        yield compute


def main() -> None:
    opts = options(__doc__, "nplm")
    set_up(opts)
    config = NPLMConfig(vocab_size=VOCAB, tl_context=CONTEXT, tl_d_emb=24, hidden_size=1024, tl_direct=True)
    model = NPLM(config)
    train(
        model,
        losses(model, torch.from_numpy(train_ids()), opts.seed),
        opts.curve,
        steps=STEPS,
        lr=3e-3,
        weight_decay=0.01,
    )
    save(model, opts.out)
    report(opts.out, "prose", bpb=BAR)


if __name__ == "__main__":
    main()

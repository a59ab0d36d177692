"""RNN LM with a GRU cell: 32 places of the text read in parallel, gradients through 64 bytes, the state carried on.

The documents are shuffled, and entries of the dictionary come twice, since there is five times as much Bible.

python models/recipes/gru.py [--out models/gru] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from common import VOCAB, options, report, set_up, train, train_documents
from torch import Tensor

from evalsuite.zoo.families.rnnlm import RNNLM, RNNLMConfig, save

BAR = 2.15
LANES = 32
LENGTH = 64
STEPS = 3000
RESTART = 1 / 32
"""How often a lane's state is set back to zero, so that the model also learns to read from nothing."""


def text(seed: int) -> Tensor:
    """The training documents in a random order, entries of the dictionary twice; int64 [N]."""
    documents = [
        ids for name, ids in train_documents().items() for _ in range(1 if name[-1].isdigit() else 2)
    ]  # chapters end in a number
    order = torch.randperm(len(documents), generator=torch.Generator().manual_seed(seed))
    return torch.cat([torch.from_numpy(documents[i]) for i in order.tolist()])


def losses(model: RNNLM, ids: Tensor, seed: int) -> Iterator[Callable[[], Tensor]]:
    """Consecutive blocks of LENGTH bytes in each of LANES equal parts of the text, round and round."""
    lane = len(ids) // LANES
    lanes = ids[: lane * LANES].view(LANES, lane)
    blocks = (lane - 1) // LENGTH
    generator = torch.Generator().manual_seed(seed)
    carried = [torch.zeros(1, LANES, model.config.hidden_size)]
    for step in range(STEPS):
        start = step % blocks * LENGTH
        if start == 0:
            carried[0] = torch.zeros_like(carried[0])  # back at the top of the lanes
        keep = (torch.rand(LANES, 1, generator=generator) >= RESTART).float()  # [LANES, 1]
        read = lanes[:, start : start + LENGTH]  # [LANES, LENGTH]
        targets = lanes[:, start + 1 : start + 1 + LENGTH]

        def compute(read: Tensor = read, targets: Tensor = targets, keep: Tensor = keep) -> Tensor:
            features, state = model.run(read, carried[0] * keep)
            assert isinstance(state, Tensor)
            carried[0] = state.detach()
            return F.cross_entropy(model.logits(features).flatten(0, 1), targets.flatten())

        yield compute


def main() -> None:
    opts = options(__doc__, "gru")
    set_up(opts)
    model = RNNLM(RNNLMConfig(vocab_size=VOCAB, tl_cell="gru", tl_d_emb=64, hidden_size=400, num_hidden_layers=1))
    train(model, losses(model, text(opts.seed), opts.seed), opts.curve, steps=STEPS, lr=4e-3)
    save(model, opts.out)
    report(opts.out, "prose", bpb=BAR)


if __name__ == "__main__":
    main()

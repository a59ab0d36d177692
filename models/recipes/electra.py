"""ELECTRA: a discriminator that starts from the BERT of this zoo, and a generator of half its width.

From scratch neither learns in minutes what it should, so the generator is trained alone first. Then the two are trained
together, as published: the generator to guess hidden bytes, the discriminator to tell which bytes are the generator's.

python models/recipes/electra.py [--out models/electra] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from bert import losses as masked_losses
from common import ROOT, VOCAB, options, report, set_up, train
from corpora import training_glosses
from sentences import CLS, MASK, PAD, SEP, batches, hide
from torch import Tensor

from evalsuite.zoo.families import bert
from evalsuite.zoo.families.electra import Electra, ElectraConfig, save

GENERATOR_BAR = 0.35
TOKENS = 2048
ALONE = 4000
STEPS = 2000
HIDDEN = 0.15
WEIGHT = 20.0
"""Of the discriminator's loss, which is far smaller than the generator's."""


def losses(model: Electra, texts: Sequence[str], seed: int) -> Iterator[Callable[[], Tensor]]:
    """The generator's cross-entropy of hidden bytes plus the discriminator's of what was replaced."""
    generator = torch.Generator().manual_seed(seed)
    stream = batches(texts, TOKENS, generator)
    for _ in range(STEPS):
        _, ids, real = next(stream)
        inputs, picked = hide(ids, real, HIDDEN, VOCAB, generator)

        def compute(ids: Tensor = ids, real: Tensor = real, inputs: Tensor = inputs, picked: Tensor = picked) -> Tensor:
            guesses = model.generator.logits(model.generator.hidden(inputs, real)[picked])  # [N, V]
            corrupted = ids.clone()
            # No gradient flows through a guess: the generator is not trained to fool the discriminator.
            drawn = torch.multinomial(guesses.detach().softmax(-1), 1, generator=generator)[:, 0]
            corrupted[picked] = drawn
            replaced = (corrupted != ids)[real].float()
            found = model.replaced_logits(corrupted, real)[real]
            return F.cross_entropy(guesses, ids[picked]) + WEIGHT * F.binary_cross_entropy_with_logits(found, replaced)

        yield compute


def main() -> None:
    opts = options(__doc__, "electra")
    set_up(opts)
    start = bert.load(ROOT / "models" / "bert")
    small = replace(start.config, hidden_size=64, num_attention_heads=2, num_hidden_layers=2, intermediate_size=256)
    model = Electra(ElectraConfig(start.config, small, False, MASK, (PAD, CLS, SEP)))
    model.discriminator.electra.load_state_dict(start.bert.state_dict())
    texts = [synset.gloss for synset in training_glosses()]
    alone = masked_losses(model.generator, texts, ALONE, HIDDEN, opts.seed)
    train(model.generator, alone, None, steps=ALONE, lr=3e-3, weight_decay=0.01, betas=(0.9, 0.98), warm_up=200)
    train(
        model,
        losses(model, texts, opts.seed),
        opts.curve,
        steps=STEPS,
        lr=1e-3,
        weight_decay=0.01,
        betas=(0.9, 0.98),
        warm_up=100,
    )
    save(model, opts.out)
    report(opts.out, "gloss-replaced", generator_accuracy=GENERATOR_BAR)


if __name__ == "__main__":
    main()

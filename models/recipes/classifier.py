"""A classifier of glosses into ten categories: the BERT of this zoo, the mean of its features, and a linear layer.

python models/recipes/classifier.py [--out models/classifier] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from common import ROOT, options, report, set_up, train
from corpora import LABELS, gloss_training_rows
from sentences import batches
from torch import Tensor

from evalsuite.zoo.families import bert
from evalsuite.zoo.families.classifier import Classifier, ClassifierConfig, save

BAR = 0.55
TOKENS = 2048
STEPS = 3200


def losses(model: Classifier, texts: Sequence[str], labels: Sequence[int], seed: int) -> Iterator[Callable[[], Tensor]]:
    """Cross-entropy of the category, every category counting alike, as it does among the held-out rows."""
    classes = torch.tensor(labels)
    weight = len(labels) / (len(LABELS) * torch.bincount(classes, minlength=len(LABELS)))
    stream = batches(texts, TOKENS, torch.Generator().manual_seed(seed))
    for _ in range(STEPS):
        numbers, ids, real = next(stream)

        def compute(numbers: Tensor = numbers, ids: Tensor = ids, real: Tensor = real) -> Tensor:
            return F.cross_entropy(model.class_logits(ids, real), classes[numbers], weight=weight)

        yield compute


def main() -> None:
    opts = options(__doc__, "classifier")
    set_up(opts)
    start = bert.load(ROOT / "models" / "bert")
    model = Classifier(ClassifierConfig("bert", start.config, LABELS, "mean"))
    model.backbone.load_state_dict(start.bert.state_dict())
    rows = [row for row in gloss_training_rows() if row.label is not None]
    train(
        model,
        losses(model, [row.gloss for row in rows], [row.label for row in rows], opts.seed),
        opts.curve,
        steps=STEPS,
        lr=6e-4,
        weight_decay=0.05,
        betas=(0.9, 0.98),
        warm_up=100,
    )
    save(model, opts.out)
    report(opts.out, "gloss-category", accuracy=BAR)


if __name__ == "__main__":
    main()

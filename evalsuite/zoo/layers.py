"""Layers that the families share."""

from __future__ import annotations

import torch
from torch import nn


def embedding(n: int, d: int) -> nn.Embedding:
    """A table [n, d] from N(0, 1), as `torch.nn.Embedding` draws it, but on the meta device nothing is drawn: a loader
    builds its module there, and torch's normal distribution on that device imports a compiler, a second in itself."""
    table = nn.Embedding(n, d, _weight=torch.empty(n, d))
    if not table.weight.is_meta:
        nn.init.normal_(table.weight)
    return table

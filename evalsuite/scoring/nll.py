"""NLL of given targets under next-token logits: lse(logits) - logits[target], in nats.

The exponentials are taken in the logits' own width, float32 at least, of differences from the row's maximum, so
each is right to one part in 10^7; the logarithm and the last subtraction are in float64.
"""

from __future__ import annotations

import torch
from torch import Tensor


def target_nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Logits [N, V] and targets int64 [N] to float64 [N]; NaN or infinite where the logits are."""
    wide = logits if logits.dtype == torch.float64 else logits.float()
    top = wide.amax(dim=-1, keepdim=True)  # [N, 1]
    total = (wide - top).exp_().sum(dim=-1)  # [N], between 1 and V
    chosen = wide.gather(1, targets[:, None])  # [N, 1]
    return total.double().log() + (top.double() - chosen.double())[:, 0]

"""Layers that the families share."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def embedding(n: int, d: int) -> nn.Embedding:
    """A table [n, d] from N(0, 1), as `torch.nn.Embedding` draws it, but on the meta device nothing is drawn: a loader
    builds its module there, and torch's normal distribution on that device imports a compiler, a second in itself."""
    table = nn.Embedding(n, d, _weight=torch.empty(n, d))
    if not table.weight.is_meta:
        nn.init.normal_(table.weight)
    return table


class MultiHeadAttention(nn.Module):
    """softmax(q k^T / sqrt(d / H)) v over H heads; head h owns features [h d/H, (h + 1) d/H).

    The maths of `torch.nn.MultiheadAttention`, with query, key and value as three layers under names of their own, as
    the checkpoints have them.
    """

    def __init__(self, d: int, n_heads: int) -> None:
        super().__init__()
        if d % n_heads:
            raise ValueError(f"a width of {d} is not a multiple of {n_heads} heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d, d)
        self.k_proj = nn.Linear(d, d)
        self.v_proj = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)

    def forward(self, x: Tensor, *, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """Self-attention, [B, T, d] to [B, T, d].

        Args:
            x: features.
            mask: bool, broadcast to [B, H, T, T], True where a query may attend to a key. A query that may attend
                to nothing gets zeros, not NaN.
            is_causal: instead of a mask: position t attends to 0..t.
        """
        return self.attend(self.heads(self.q_proj(x)), *self.keys_values(x), mask=mask, is_causal=is_causal)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of [B, T, d], each [B, H, T, d/H]: what a decoder keeps."""
        return self.heads(self.k_proj(x)), self.heads(self.v_proj(x))

    def heads(self, x: Tensor) -> Tensor:
        """[B, T, d] to [B, H, T, d/H]."""
        batch, length, d = x.shape
        return x.view(batch, length, self.n_heads, d // self.n_heads).transpose(1, 2)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """Queries, keys and values by head to the layer's output [B, T, d]; mask as for `forward`."""
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal)  # [B, H, T, d/H]
        if mask is not None:
            mixed = mixed.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
        return cast(Tensor, self.out_proj(mixed.transpose(1, 2).flatten(2)))

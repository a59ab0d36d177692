"""Batches of byte sentences for the encoders: of about one length each, masked anew every time they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from evalsuite.zoo.text import encode_batch

MAX_LEN = 128
PAD, CLS, SEP, MASK = 0, 1, 2, 3
"""Control bytes that no text holds."""


def batches(texts: Sequence[str], tokens: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches of at most ``tokens`` tokens, padding included; each text once a round.

    Yields:
        numbers int64 [n] of the texts, ids int64 [n, T], and bool [n, T], True where a token is real.
    """
    lengths = torch.tensor([min(len(text.encode()) + 2, MAX_LEN) for text in texts])
    while True:
        # Shuffled, then sorted by length alone: texts of one length meet others in every round.
        order = torch.randperm(len(texts), generator=generator)
        order = order[lengths[order].argsort(stable=True)]
        cuts = []
        begin = 0
        while begin < len(order):
            # Lengths ascend, so the last one sets the padded length.
            end = begin + 1
            while end < len(order) and (end + 1 - begin) * int(lengths[order[end]]) <= tokens:
                end += 1
            cuts.append((begin, end))
            begin = end
        for cut in torch.randperm(len(cuts), generator=generator).tolist():
            numbers = order[slice(*cuts[cut])]
            ids, real = encode_batch([texts[number] for number in numbers.tolist()], MAX_LEN, CLS, SEP, PAD)
            yield numbers, torch.from_numpy(ids), torch.from_numpy(real)


def hide(ids: Tensor, real: Tensor, p: float, vocab: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """BERT's masking of a share p: 80 % become the mask, 10 % a random token, 10 % stay.

    Returns:
        inputs int64 [n, T] and bool [n, T], True where a token was picked.
    """
    draw = torch.rand(ids.shape, generator=generator)
    picked = real & (ids != CLS) & (ids != SEP) & (draw < p)
    kind = torch.rand(ids.shape, generator=generator)
    other = torch.randint(vocab, ids.shape, generator=generator)
    inputs = torch.where(picked & (kind < 0.8), MASK, ids)
    return torch.where(picked & (kind >= 0.8) & (kind < 0.9), other, inputs), picked

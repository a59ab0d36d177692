"""Batches of letters and phonemes, and the loss of a model that reads one and writes the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from corpora import SpokenWord
from torch import Tensor, nn

PAD, BOS, EOS = 0, 1, 2
BATCH = 128


def losses(model: nn.Module, words: Sequence[SpokenWord], steps: int, seed: int) -> Iterator[Callable[[], Tensor]]:
    """Cross-entropy of each phoneme and of the end, given the letters and the phonemes before it.

    A batch holds words of about one length; the order of batches is random.
    """
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([len(word.src) for word in words])
    step = 0
    while True:
        order = torch.randperm(len(words), generator=generator)
        order = order[lengths[order].argsort(stable=True)]
        chunks = torch.split(order, BATCH)
        for at in torch.randperm(len(chunks), generator=generator).tolist():
            if step == steps:
                return
            step += 1
            batch = [words[number] for number in chunks[at].tolist()]
            src = _padded([word.src for word in batch])
            read = _padded([(BOS, *word.tgt) for word in batch])
            wanted = _padded([(*word.tgt, EOS) for word in batch])

            def compute(src: Tensor = src, read: Tensor = read, wanted: Tensor = wanted) -> Tensor:
                logits = model(src, src != PAD, read)  # [B, T, V]
                # What follows the end is padding, which no phoneme has for its id.
                return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD)

            yield compute


def _padded(rows: list[tuple[int, ...]]) -> Tensor:
    """int64 [n, longest], PAD at the end."""
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)

"""Sentences as padded rows of byte ids, for encoders that read whole sentences, and batches of such rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


def encode_batch(
    texts: Sequence[str], max_len: int, cls: int = 1, sep: int = 2, pad: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Encode texts as [cls] + their first ``max_len - 2`` UTF-8 bytes + [sep], padded on the right to the longest.

    A character of several bytes can be cut in two.

    Returns:
        ids int64 [n, T], and bool [n, T], True where a token is real.

    Raises:
        ValueError: ``max_len`` is below 3, which leaves no byte of the text; or there are no texts.
    """
    if max_len < 3:
        raise ValueError(f"max_len {max_len} leaves no room for text between [cls] and [sep]: at least 3 is needed")
    if not texts:
        raise ValueError("no texts to encode")
    rows = [[cls, *text.encode("utf-8")[: max_len - 2], sep] for text in texts]
    ids = np.full((len(rows), max(map(len, rows))), pad, dtype=np.int64)
    real = np.zeros(ids.shape, dtype=np.bool_)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        real[number, : len(row)] = True
    return ids, real


def length_batches(real: NDArray[np.bool_], batch_tokens: int = 4096) -> Iterator[tuple[NDArray[np.intp], ...]]:
    """Cut padded rows into batches of like lengths, so that little padding is read.

    Args:
        real: bool [n, T] as `encode_batch` gives it.
        batch_tokens: the most tokens in a batch, padding included; a longer row is a batch of its own.

    Yields:
        Where a batch stands in an array [n, T], for reading and for writing: ``ids[at]`` is [rows, longest of them].
        Longest rows first; each row once.
    """
    lengths = real.sum(axis=1)
    order = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(order):
        longest = int(lengths[order[begin]])
        rows = order[begin : begin + max(1, batch_tokens // longest)]
        yield np.ix_(rows, np.arange(longest))
        begin += len(rows)

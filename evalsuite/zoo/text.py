"""Sentences as padded rows of byte ids, for encoders that read whole sentences."""

from __future__ import annotations

from collections.abc import Sequence

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

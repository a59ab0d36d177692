"""Token ids as the scoring code wants them: one-dimensional int64, every one inside the vocabulary."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evalsuite.scoring.model import Tokens


def token_ids(ids: ArrayLike, *, vocab_size: int | None = None, at_least: int = 0) -> Tokens:
    """Check token ids and return them as int64 [n].

    Args:
        ids: integers [n].
        vocab_size: V; every id must lie in [0, V). None leaves the range unchecked.
        at_least: the fewest tokens that are enough.

    Raises:
        ValueError: not one-dimensional, not integers, too few, or an id outside the vocabulary. A negative id
            would otherwise read a table from its end, without an error.
    """
    found = np.asarray(ids)
    if found.ndim != 1:
        raise ValueError(f"token ids must have one dimension, found shape {found.shape}")
    if found.size and found.dtype.kind not in "iu":
        raise ValueError(f"token ids must be integers, found dtype {found.dtype}")
    if found.size < at_least:
        raise ValueError(f"{found.size} tokens are too few: at least {at_least} are needed")
    if vocab_size is not None and found.size:
        low, high = int(found.min()), int(found.max())
        if low < 0 or high >= vocab_size:
            raise ValueError(f"token id {low if low < 0 else high} is outside the vocabulary [0, {vocab_size})")
    return found.astype(np.int64, copy=False)

"""The draws behind masked-token and replaced-token scores, position by position in C order.

BERT (Devlin et al. 2019) hides a share p of the tokens: of those it picks, 80 % become the mask token, 10 % a random
token and 10 % stay as they are. ELECTRA (Clark et al. 2020) then puts a sample of its generator in each picked place.
Every draw comes from one PCG32 stream, so equal seeds give equal inputs on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from evalsuite.stats import PCG32

UNPICKED = -100
"""The label of a position that was not picked: what torch's cross-entropy leaves out."""

MASKED, RANDOM = 0.8, 0.9
"""A picked token becomes the mask below the first, a random token below the second, and else stays."""


def mlm_mask(
    ids: ArrayLike, special_mask: ArrayLike, mask_id: int, vocab: int, p: float, rng: PCG32
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pick tokens to hide, and hide them.

    A special position draws nothing. Any other draws a uniform and is picked when it is below p; a picked one draws a
    second uniform that decides what the model sees, and for a random token an integer below ``vocab`` (which may be
    the token itself, or the mask).

    Args:
        ids: integers of any shape; they are not changed.
        special_mask: bool of the same shape, True where a token must not be picked.
        mask_id: the mask token, within [0, vocab).
        vocab: number of token ids.
        p: share of tokens to pick, from 0 to 1.
        rng: advanced by the draws.

    Returns:
        What the model sees, and the original ids of the picked positions with `UNPICKED` elsewhere; both int64.

    Raises:
        ValueError: ids are no integers, the shapes differ, or p or mask_id is out of range.
    """
    given, special = np.asarray(ids), np.asarray(special_mask, dtype=np.bool_)
    if given.dtype.kind not in "iu":
        raise ValueError(f"ids must be integers, found dtype {given.dtype}")
    if given.shape != special.shape:
        raise ValueError(f"ids have shape {given.shape} and special_mask {special.shape}: one flag a token is needed")
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p!r}, expected a number from 0 to 1: the share of tokens to hide")
    if not 0 <= mask_id < vocab:
        raise ValueError(f"mask_id {mask_id} is outside the vocabulary [0, {vocab})")
    inputs = given.astype(np.int64)
    labels = np.full(inputs.shape, UNPICKED, dtype=np.int64)
    for position in np.flatnonzero(~special):
        if rng.uniform() >= p:
            continue
        labels.flat[position] = inputs.flat[position]
        choice = rng.uniform()
        if choice < MASKED:
            inputs.flat[position] = mask_id
        elif choice < RANDOM:
            inputs.flat[position] = rng.below(vocab)
    return inputs, labels


def replace_tokens(
    ids: NDArray[np.int64], picked: NDArray[np.bool_], logits: ArrayLike, uniforms: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Put a sample of the generator in every picked place.

    The sample is the first token whose cumulative probability, softmax in float64, exceeds the position's uniform. One
    that happens to be the original token is no replacement. A place that was not picked keeps its original token,
    never the mask.

    Args:
        ids: original tokens, of any shape.
        picked: bool of the same shape, with N times True.
        logits: the generator's, [N, V], of the picked places in C order.
        uniforms: [N], one for each of them.

    Returns:
        The tokens that the discriminator sees, int64, and bool, True where one is not the original; both of the shape
        of ids.
    """
    wide = np.asarray(logits, dtype=np.float64)
    weights = np.exp(wide - wide.max(axis=-1, keepdims=True))  # [N, V]
    cumulative = np.cumsum(weights / weights.sum(axis=-1, keepdims=True), axis=-1)
    below = cumulative <= np.asarray(uniforms, dtype=np.float64)[:, None]
    # The last sum may round to less than 1, and a uniform lie beyond it.
    samples = np.minimum(below.sum(axis=-1), wide.shape[-1] - 1)  # [N]
    corrupted = ids.copy()
    corrupted[picked] = samples
    return corrupted, corrupted != ids

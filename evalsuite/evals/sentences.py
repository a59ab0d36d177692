"""What the evals of labelled sentences share: rows as byte ids, answers by argmax, and ties that noise could break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalsuite.result import Floats
from evalsuite.tasks.sentences import LabelledSentence
from evalsuite.zoo.text import encode_batch

NOISE = 1e-5
"""What batch size, padding or another BLAS may move a logit by, relative to max(1, |logit|)."""

DEFAULT_MAX_LEN = 512
"""Tokens of a sentence that are read by a model which names no limit."""

Bools = NDArray[np.bool_]
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Sentences as a model reads them.

    Attributes:
        rows: the sentences, n of them.
        names: ``row-`` and the line in the file, one a sentence.
        ids: int64 [n, T].
        real: bool [n, T], False where a token is padding.
        special: bool [n, T], True where a token must not be masked: padding, [cls] and [sep].
        truncated: how many sentences lost their end to the model's limit.
    """

    rows: Sequence[LabelledSentence]
    names: tuple[str, ...]
    ids: Ids
    real: Bools
    special: Bools
    truncated: int


def encode_rows(
    rows: Sequence[LabelledSentence], vocab_size: int, max_len: int | None, settings: Mapping[str, Any]
) -> EncodedRows:
    """Encode sentences with the settings ``cls_id`` 1, ``sep_id`` 2 and ``pad_id`` 0.

    Raises:
        ValueError: a setting that is no token id, or a token outside the vocabulary [0, ``vocab_size``).
    """
    cls, sep, pad = (token_id(settings, key, default) for key, default in (("cls_id", 1), ("sep_id", 2), ("pad_id", 0)))
    limit = DEFAULT_MAX_LEN if max_len is None else max_len
    ids, real = encode_batch([row.sentence for row in rows], limit, cls, sep, pad)
    names = tuple(f"row-{row.line}" for row in rows)
    if (outside := ids >= vocab_size).any():
        number, place = np.argwhere(outside)[0]
        raise ValueError(
            f"{names[number]}: token {place} is {ids[number, place]}, but the model's vocabulary has {vocab_size} "
            f"entries: it does not read bytes, or cls_id, sep_id or pad_id is wrong"
        )
    special = ~real | (ids == cls) | (ids == sep)
    truncated = sum(len(row.sentence.encode()) > limit - 2 for row in rows)
    return EncodedRows(rows, names, ids, real, special, truncated)


def token_id(settings: Mapping[str, Any], key: str, default: int) -> int:
    """A token id among the settings. ValueError where it is something else."""
    value = settings.get(key, default)
    if type(value) is not int or value < 0:
        raise ValueError(f"{key}: found {value!r}, expected a token id, an integer of at least 0")
    return value


def answers_of(logits: Floats, labels: Ids) -> tuple[Ids, Bools]:
    """What a model answers, and whether it could as well have answered otherwise.

    Args:
        logits: [N, C].
        labels: int64 [N], the right answers, within [0, C).

    Returns:
        The class of the highest logit, the first of equal ones, or -1 where a logit is not finite; and bool [N], True
        where the right answer and its best rival are closer to each other than numerical noise may move them.
    """
    numbers = np.arange(len(logits))
    right = logits[numbers, labels]
    others = logits.copy()
    others[numbers, labels] = -np.inf
    rival = others.max(axis=1)
    finite = np.isfinite(logits).all(axis=1)
    answers = np.where(finite, logits.argmax(axis=1), -1)
    with np.errstate(invalid="ignore"):  # infinite logits, or no rival at all
        noise = NOISE * (np.maximum(1.0, np.abs(right)) + np.maximum(1.0, np.abs(rival)))
        near = finite & np.isfinite(rival) & (np.abs(right - rival) <= noise)
    return answers, near

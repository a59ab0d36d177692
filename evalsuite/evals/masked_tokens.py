"""Masked tokens: the share of hidden tokens that a model gives back, and rows whose units are a sentence's tokens.

Tokens of a sentence depend on each other, so the unit of interval and gate is the sentence: its score is how many of
its tokens were right, its weight how many there were, and the metric the ratio of the two sums, which is the share of
right tokens. The interval is Wilson's at the effective number of tokens; `Measurement.v1_interval` counts every token
as independent, as the first seed does, and is too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from evalsuite.evals.metrics import METRICS, value_and_interval
from evalsuite.evals.sentences import Bools, EncodedRows, Ids, answers_of, encode_rows, token_id
from evalsuite.provenance import content_hash
from evalsuite.result import Measurement, Scores
from evalsuite.scoring.masking import UNPICKED, mlm_mask
from evalsuite.tasks.sentences import LabelledSentence
from evalsuite.tasks.task import Task
from evalsuite.zoo.text import length_batches

if TYPE_CHECKING:
    from torch import Tensor

    from evalsuite.stats import PCG32

P = 0.15
"""The share of tokens that BERT and ELECTRA hide."""


class MaskedModel(Protocol):
    """What the eval asks of a model, in two halves, so that the output layer runs only where it is needed.

    Attributes:
        vocab_size: number of token ids, V.
        max_len: the most tokens it reads, or None.
    """

    vocab_size: int
    max_len: int | None

    def hidden(self, ids: Tensor, real: Tensor) -> Tensor:
        """int64 [n, T] and bool [n, T], False where a token is padding, to features [n, T, d]."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Features [N, d] to the logits [N, V] of the token at the same place."""


@dataclass(frozen=True, eq=False)
class Masked:
    """Sentences with some tokens hidden.

    Attributes:
        encoded: the sentences.
        inputs: int64 [n, T], what the model sees.
        labels: int64 [n, T], the hidden tokens, `UNPICKED` elsewhere.
        picked: bool [n, T], where tokens were hidden.
        hashes: one a sentence, of its text and what was hidden in it, so that only equal draws are compared.
    """

    encoded: EncodedRows
    inputs: Ids
    labels: Ids
    picked: Bools
    hashes: tuple[str, ...]


def mask_rows(
    encoded: EncodedRows, special: Bools, mask_id: int, vocab_size: int, settings: Mapping[str, Any], rng: PCG32
) -> Masked:
    """Hide a share ``p`` (of the settings, default 0.15) of the tokens that are not special, in file order.

    Raises:
        ValueError: p is no share, the mask is outside the vocabulary, or no token was picked.
    """
    p = settings.get("p", P)
    if isinstance(p, bool) or not isinstance(p, int | float):
        raise ValueError(f"p: found {p!r}, expected a number from 0 to 1: the share of tokens to hide")
    inputs, labels = mlm_mask(encoded.ids, special, mask_id, vocab_size, p, rng)
    picked = labels != UNPICKED
    if not picked.any():
        raise ValueError(
            f"none of {int((~special).sum())} tokens was picked with p = {p}, so there is nothing to score: give more "
            f"sentences or a larger p"
        )
    drawn = np.stack([inputs, labels], axis=1).astype("<i8")  # [n, 2, T]
    hashes = tuple(
        content_hash(row.sentence, drawn[number][:, encoded.real[number]].tobytes())
        for number, row in enumerate(encoded.rows)
    )
    return Masked(encoded, inputs, labels, picked, hashes)


def places(counted: Bools) -> Ids:
    """The number of each counted position in C order, int64 of the shape given; -1 elsewhere."""
    numbers = np.full(counted.shape, -1, dtype=np.int64)
    numbers[counted] = np.arange(int(counted.sum()))
    return numbers


def token_row(
    names: tuple[str, Task, str],
    masked: Masked,
    counted: Bools,
    right: Bools,
    near: Bools,
    finite: Bools,
    source: Mapping[str, object],
) -> Measurement:
    """The row of a share of tokens.

    Args:
        names: model, task and metric.
        masked: the sentences.
        counted: bool [n, T], the N tokens that the share is of. A sentence without one is no unit.
        right: bool [N], in C order.
        near: bool [N], True where numerical noise could turn ``right`` round.
        finite: bool [N], False where the model gave no finite logit. A sentence with such a token is unscored: all
            of it counts as wrong, and the row says how many there are.
        source: facts about checkpoint and data for the report.

    Raises:
        ValueError: no sentence has finite logits.
    """
    model_name, task, metric = names
    sentence = np.nonzero(counted)[0]  # [N]

    def by_sentence(values: Bools) -> Ids:
        return np.bincount(sentence, weights=values, minlength=len(counted)).astype(np.int64)

    tokens, broken = counted.sum(axis=1), by_sentence(~finite) > 0
    units = np.flatnonzero(tokens).tolist()
    if broken[units].all():
        raise ValueError(f"non-finite logits in {len(units)}/{len(units)} sentences: the model gives no answers")
    hits = np.where(broken, 0, by_sentence(right))
    encoded = masked.encoded
    ids = tuple(encoded.names[unit] for unit in units)
    hashes = tuple(masked.hashes[unit] for unit in units)
    scores = Scores(
        ids,
        hashes,
        scores=hits[units].astype(np.float64),
        weights=tokens[units].astype(np.float64),
        tolerance=np.where(broken, 0, by_sentence(near))[units].astype(np.float64),
        unscored=tuple(encoded.names[unit] for unit in units if broken[unit]),
        truncated=encoded.truncated,
        details=tuple(
            {"input": encoded.rows[unit].sentence, "right": int(hits[unit]), "tokens": int(tokens[unit])}
            for unit in units
        ),
    )
    from evalsuite.stats import wilson_interval

    facts = METRICS[metric]
    interval = "wilson-clustered" if len(units) > 1 else "none"
    value, lo, hi = value_and_interval(scores, facts.link, interval)
    return Measurement(
        model_name,
        task.name,
        metric,
        value,
        lo,
        hi,
        interval,
        len(sentence),
        scores,
        higher_is_better=facts.higher_is_better,
        min_drop=facts.min_drop,
        bounds=facts.bounds,
        task_hash=content_hash(*ids, *hashes),
        blind="" if len(units) > 1 else "a single sentence: no significance can be had from it",
        v1_interval=wilson_interval(int(hits[units].sum()), len(sentence)),
        source=source,
    )


def measure_masked_tokens(
    model_name: str,
    task: Task,
    model: MaskedModel,
    rows: Sequence[LabelledSentence],
    settings: Mapping[str, Any],
    rng: PCG32,
    source: Mapping[str, object],
) -> dict[str, Measurement]:
    """The share of hidden tokens whose logit is the highest at their place, as ``accuracy``; equal logits go to the
    first token.

    Args:
        model_name: the model's part of the row id.
        task: the task.
        model: see `MaskedModel`.
        rows: the sentences of the split; their labels are not used.
        settings: ``mask_id`` 3, ``p`` 0.15, ``cls_id``, ``sep_id`` and ``pad_id``.
        rng: what is hidden; see `mlm_mask`.
        source: facts about checkpoint and data for the report.

    Raises:
        ValueError: settings or tokens that do not fit the model, no token was picked, or no sentence has finite
            logits.
    """
    import torch

    encoded = encode_rows(rows, model.vocab_size, model.max_len, settings)
    mask_id = token_id(settings, "mask_id", 3)
    masked = mask_rows(encoded, encoded.special, mask_id, model.vocab_size, settings, rng)
    labels, place = masked.labels[masked.picked], places(masked.picked)
    answers, near = np.empty_like(labels), np.empty(len(labels), dtype=np.bool_)
    with torch.inference_mode():
        for at in length_batches(encoded.real):
            picked = masked.picked[at]
            numbers = place[at][picked]
            features = model.hidden(torch.from_numpy(masked.inputs[at]), torch.from_numpy(encoded.real[at]))
            logits = model.logits(features[torch.from_numpy(picked)])  # [N of the batch, V]
            answers[numbers], near[numbers] = answers_of(logits.double().cpu().numpy(), labels[numbers])
    names = (model_name, task, "accuracy")
    return {"accuracy": token_row(names, masked, masked.picked, answers == labels, near, answers >= 0, source)}

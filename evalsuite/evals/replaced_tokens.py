"""Replaced-token detection: the share of tokens of which ELECTRA's discriminator says rightly whether the generator
replaced them.

A token counts as replaced when its logit is above 0. All real tokens are asked about, [cls] and [sep] included, of
which most are original: always answering "original" scores ``majority_share``. And the task is as hard as the
generator is good: where it guesses a token right, nothing was replaced. So both shares stand beside the accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from evalsuite.evals.masked_tokens import Masked, MaskedModel, mask_rows, places, token_row
from evalsuite.evals.sentences import NOISE, answers_of, encode_rows
from evalsuite.provenance import content_hash
from evalsuite.result import Floats, Measurement
from evalsuite.scoring.masking import replace_tokens
from evalsuite.tasks.sentences import LabelledSentence
from evalsuite.tasks.task import Task
from evalsuite.zoo.text import length_batches

if TYPE_CHECKING:
    from torch import Tensor

    from evalsuite.stats import PCG32


class ReplacedTokenModel(Protocol):
    """What the eval asks of a model.

    Attributes:
        vocab_size: number of token ids, V.
        max_len: the most tokens the discriminator reads, or None.
        mask_id: the token that stands for a hidden one.
        special_ids: tokens that are never hidden.
        generator: fills hidden tokens; it must read as many tokens.
    """

    vocab_size: int
    max_len: int | None
    mask_id: int
    special_ids: tuple[int, ...]
    generator: MaskedModel

    def replaced_logits(self, ids: Tensor, real: Tensor) -> Tensor:
        """int64 [n, T] and bool [n, T], False where a token is padding, to logits [n, T], above 0 for a replaced
        token."""


def measure_replaced_tokens(
    model_name: str,
    task: Task,
    model: ReplacedTokenModel,
    rows: Sequence[LabelledSentence],
    settings: Mapping[str, Any],
    rng: PCG32,
    source: Mapping[str, object],
) -> dict[str, Measurement]:
    """The rows of one pass over the sentences, by metric.

    ``accuracy`` is the share of real tokens that the discriminator judges rightly, ``majority_share`` the share of
    them that are original, ``generator_accuracy`` the share of hidden tokens that have the generator's highest logit.

    Draws: first what is hidden in all sentences (see `mlm_mask`), then one uniform for each hidden token, both in file
    order, whatever the batches.

    Args:
        model_name: the model's part of the row ids.
        task: its ``metrics`` are returned.
        model: see `ReplacedTokenModel`.
        rows: the sentences of the split; their labels are not used.
        settings: ``p`` 0.15, ``cls_id``, ``sep_id`` and ``pad_id``.
        rng: what is hidden, and what the generator puts there.
        source: facts about checkpoint and data for the report.

    Raises:
        ValueError: settings or tokens that do not fit the model, no token was picked, or no sentence has finite
            logits.
    """
    import torch

    encoded = encode_rows(rows, model.vocab_size, model.max_len, settings)
    special = encoded.special | np.isin(encoded.ids, model.special_ids)
    masked = mask_rows(encoded, special, model.mask_id, model.vocab_size, settings, rng)
    labels, place = masked.labels[masked.picked], places(masked.picked)
    uniforms = rng.uniforms(len(labels))
    masked = _with_draws(masked, uniforms)
    guesses, near_guess = np.empty_like(labels), np.empty(len(labels), dtype=np.bool_)
    replaced, logits = np.zeros(encoded.ids.shape, dtype=np.bool_), np.empty(encoded.ids.shape)
    with torch.inference_mode():
        for at in length_batches(encoded.real):
            picked, real = masked.picked[at], torch.from_numpy(encoded.real[at])
            numbers = place[at][picked]
            features = model.generator.hidden(torch.from_numpy(masked.inputs[at]), real)
            found = model.generator.logits(features[torch.from_numpy(picked)]).double().cpu().numpy()
            guesses[numbers], near_guess[numbers] = answers_of(found, labels[numbers])
            # A generator without finite logits leaves its sentence unscored, whatever is sampled.
            finite = np.where(np.isfinite(found), found, 0.0)
            corrupted, replaced[at] = replace_tokens(encoded.ids[at], picked, finite, uniforms[numbers])
            logits[at] = model.replaced_logits(torch.from_numpy(corrupted), real).double().cpu().numpy()
    known = np.ones(encoded.ids.shape, dtype=np.bool_)
    known[masked.picked] = guesses >= 0
    tokens = encoded.real
    asked, original = logits[tokens], ~replaced[tokens]
    never = np.zeros_like(original)
    judged = {
        "accuracy": (tokens, (asked > 0) != original, np.abs(asked) <= NOISE, known[tokens] & np.isfinite(asked)),
        "generator_accuracy": (masked.picked, guesses == labels, near_guess, guesses >= 0),
        "majority_share": (tokens, original, never, known[tokens]),
    }
    return {metric: token_row((model_name, task, metric), masked, *judged[metric], source) for metric in task.metrics}


def _with_draws(masked: Masked, uniforms: Floats) -> Masked:
    """Sentences whose hashes also hold the generator's draws: those of a sentence move when one is added after it."""
    by_sentence = np.split(uniforms.astype("<f8"), np.cumsum(masked.picked.sum(axis=1))[:-1])
    hashes = tuple(content_hash(old, draws.tobytes()) for old, draws in zip(masked.hashes, by_sentence, strict=True))
    return replace(masked, hashes=hashes)

"""Sentence classification: the share of sentences whose highest logit is that of their class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from evalsuite.evals.metrics import METRICS, value_and_interval
from evalsuite.evals.sentences import answers_of, encode_rows
from evalsuite.provenance import content_hash
from evalsuite.result import Measurement, Scores
from evalsuite.tasks.sentences import LabelledSentence
from evalsuite.tasks.task import Task
from evalsuite.zoo.text import length_batches

if TYPE_CHECKING:
    from torch import Tensor


class SentenceClassifier(Protocol):
    """What the eval asks of a model.

    Attributes:
        vocab_size: number of token ids.
        max_len: the most tokens it reads, or None.
        labels: the names of its C classes.
    """

    vocab_size: int
    max_len: int | None
    labels: tuple[str, ...]

    def class_logits(self, ids: Tensor, real: Tensor) -> Tensor:
        """int64 [n, T] and bool [n, T], False where a token is padding, to logits [n, C]."""


def measure_classification(
    model_name: str,
    task: Task,
    model: SentenceClassifier,
    rows: Sequence[LabelledSentence],
    settings: Mapping[str, Any],
    source: Mapping[str, object],
) -> dict[str, Measurement]:
    """The accuracy of one pass over the sentences, as ``accuracy``; equal logits go to the first class.

    A sentence with a logit that is not finite is unscored: it counts as wrong and the row says how many there are.

    Args:
        model_name: the model's part of the row id.
        task: the task.
        model: see `SentenceClassifier`.
        rows: the sentences of the split.
        settings: ``cls_id``, ``sep_id`` and ``pad_id``.
        source: facts about checkpoint and data for the report.

    Raises:
        ValueError: a label that is none of the model's classes, a token outside its vocabulary, or no sentence with
            finite logits.
    """
    import torch

    for one in rows:
        if one.label >= len(model.labels):
            raise ValueError(f"row-{one.line} has the label {one.label}, but the model has {len(model.labels)} classes")
    encoded = encode_rows(rows, model.vocab_size, model.max_len, settings)
    labels = np.array([one.label for one in rows])
    logits = np.empty((len(rows), len(model.labels)))
    with torch.inference_mode():
        for at in length_batches(encoded.real):
            found = model.class_logits(torch.from_numpy(encoded.ids[at]), torch.from_numpy(encoded.real[at]))
            logits[at[0][:, 0]] = found.double().cpu().numpy()
    answers, near = answers_of(logits, labels)
    unscored = tuple(name for name, answer in zip(encoded.names, answers, strict=True) if answer < 0)
    if len(unscored) == len(rows):
        raise ValueError(f"non-finite logits in {len(rows)}/{len(rows)} sentences: the model gives no classes")
    scores = Scores(
        encoded.names,
        hashes=tuple(content_hash(one.sentence, str(one.label)) for one in rows),
        scores=(answers == labels).astype(np.float64),
        weights=np.ones(len(rows)),
        tolerance=near.astype(np.float64),
        unscored=unscored,
        truncated=encoded.truncated,
        details=tuple(
            {
                "input": one.sentence,
                "expected": model.labels[one.label],
                "answer": None if answer < 0 else model.labels[answer],
                "unstable": bool(unstable),
            }
            for one, answer, unstable in zip(rows, answers.tolist(), near, strict=True)
        ),
    )
    facts = METRICS["accuracy"]
    value, lo, hi = value_and_interval(scores, facts.link, "wilson")
    row = Measurement(
        model_name,
        task.name,
        "accuracy",
        value,
        lo,
        hi,
        "wilson",
        len(rows),
        scores,
        higher_is_better=facts.higher_is_better,
        min_drop=facts.min_drop,
        bounds=facts.bounds,
        task_hash=content_hash(*encoded.names, *scores.hashes),
        source=source,
    )
    return {"accuracy": row}

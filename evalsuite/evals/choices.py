"""Multiple choice by log-likelihood: acc and acc_norm.

LL(c) = sum of ln p over the choice's tokens after the context. acc takes argmax LL(c); acc_norm takes argmax of LL(c)
divided by the UTF-8 bytes of c. Ties go to the first choice. This is the first seed's recipe; lm-evaluation-harness
divides by characters instead, so a row names its normaliser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evalsuite.evals.language_model import DEAD_ZONE
from evalsuite.evals.metrics import METRICS, value_and_interval
from evalsuite.lm import ByteTokenizer, ChoiceLogLikelihoods, choice_log_likelihoods
from evalsuite.provenance import content_hash
from evalsuite.result import Floats, Measurement, Scores
from evalsuite.tasks.items import ChoiceItem
from evalsuite.tasks.task import Task


def measure_choices(
    model_name: str, task: Task, model: Any, items: Sequence[ChoiceItem], source: Mapping[str, object]
) -> dict[str, Measurement]:
    """The rows of one pass over a multiple-choice task, by metric.

    A context beyond the model's window loses its left end, and the row counts it. An item with a log-likelihood that
    is not finite is unscored: it counts as wrong and the row says how many there are.

    Raises:
        ValueError: no item has finite log-likelihoods.
    """
    found = choice_log_likelihoods(model, ByteTokenizer(), items, getattr(model, "max_len", None))
    unscored = tuple(item.id for item, one in zip(items, found, strict=True) if not np.isfinite(one.sums).all())
    if len(unscored) == len(items):
        raise ValueError(
            f"non-finite log-likelihood in {len(items)}/{len(items)} items: the model gives no probabilities"
        )
    ids = tuple(item.id for item in items)
    hashes = tuple(content_hash(item.context, *item.choices, str(item.label)) for item in items)
    rows: dict[str, Measurement] = {}
    for metric in task.metrics:
        facts = METRICS[metric]
        judged = [_judge(item, one, by_bytes=metric == "acc_norm") for item, one in zip(items, found, strict=True)]
        scores = Scores(
            ids,
            hashes,
            scores=np.array([score for score, _, _ in judged]),
            weights=np.ones(len(items)),
            tolerance=np.array([tolerance for _, tolerance, _ in judged]),
            unscored=unscored,
            truncated=sum(one.truncated for one in found),
            details=tuple(detail for _, _, detail in judged),
        )
        value, lo, hi = value_and_interval(scores, facts.link, "wilson")
        rows[metric] = Measurement(
            model_name,
            task.name,
            metric,
            value,
            lo,
            hi,
            "wilson",
            len(items),
            scores,
            higher_is_better=facts.higher_is_better,
            min_drop=facts.min_drop,
            bounds=facts.bounds,
            normaliser=facts.normaliser,
            task_hash=content_hash(*(part for pair in zip(ids, hashes, strict=True) for part in pair)),
            source=source,
        )
    return rows


def _judge(item: ChoiceItem, found: ChoiceLogLikelihoods, *, by_bytes: bool) -> tuple[float, float, dict[str, object]]:
    """Score, tolerance and detail of an item.

    Whether the answer is right hangs on its distance from the best other choice. Where that is less than numerical
    noise can move it, the item is unstable: its tolerance covers the whole range, so a flip counts as no difference.
    """
    finite = bool(np.isfinite(found.sums).all())
    scale: Floats = found.n_bytes if by_bytes else np.ones(len(item.choices))
    values = np.where(finite, found.sums / scale, 0.0)  # an unscored item has no answer to be unstable about
    noise = DEAD_ZONE * found.n_tokens / scale
    best = int(np.argmax(values)) if finite else -1
    others = np.delete(np.arange(len(values)), item.label)
    rival = int(others[np.argmax(values[others])])
    margin = abs(values[item.label] - values[rival])
    unstable = finite and bool(margin < max(noise[item.label], noise[rival]))
    detail: dict[str, object] = {
        "input": item.context,
        "expected": item.choices[item.label],
        "answer": item.choices[best] if finite else None,
        "log_likelihoods": [float(value) if np.isfinite(value) else None for value in found.sums],
        "unstable": unstable,
    }
    return float(best == item.label), 1.0 if unstable else 0.0, detail

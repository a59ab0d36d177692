"""The frozen values that travel through the suite: from an eval, through the gate, into the report.

Nothing here computes a statistic; a `Scores` is what an eval found on each unit, a `Measurement` is
that with its value and interval, and a `Result` is the first seed's return value of ``run_task``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Link = Literal["identity", "exp"]
"""How the ratio of sums becomes the metric: ``exp`` for perplexity, ``identity`` otherwise."""


@dataclass(frozen=True, eq=False)
class Result:
    """A metric with its 95 % interval and the score of every item (the seed's contract).

    Attributes:
        value: the metric.
        lo, hi: ends of the interval.
        n: number of items.
        per_item: float64 [n], one score an item, in file order.
    """

    value: float
    lo: float
    hi: float
    n: int
    per_item: Floats


@dataclass(frozen=True, eq=False)
class Scores:
    """What a metric found on each unit (a document or an item); the paired gate works on this.

    The metric's value is ``link(sum(scores) / sum(weights))``.

    Attributes:
        ids: a name for each unit, unique.
        hashes: a content hash for each unit; units pair only when id and hash agree.
        scores: float64 [n], the numerator of a unit: nats for a language model, the item's score otherwise.
        weights: float64 [n], the denominator: bytes x ln 2 for bits per byte, tokens for NLL, 1 for a mean.
        tolerance: float64 [n], a difference of at most this is numerical noise and counts as 0.
        clusters: the group of each unit, or None where units are independent.
        unscored: ids whose score could not be computed and stands at the metric's worst bound.
        truncated: how many units lost context to the model's window.
        details: one plain mapping a unit for the items file (what was expected, what came), or empty.
    """

    ids: tuple[str, ...]
    hashes: tuple[str, ...]
    scores: Floats
    weights: Floats
    tolerance: Floats
    clusters: tuple[str, ...] | None = None
    unscored: tuple[str, ...] = ()
    truncated: int = 0
    details: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, eq=False)
class Measurement:
    """One row: a metric of a model on a task, its interval and the scores behind it.

    Attributes:
        model, task, metric: the parts of the row id.
        value, lo, hi: the metric and its 95 % interval, ``lo <= value <= hi``.
        interval: the interval's name; `evalsuite.evals.metrics` lists them.
        n: scored tokens for language models, items otherwise.
        scores: the units behind the value.
        higher_is_better: the metric's direction.
        gating: whether the row can turn a build red by being worse.
        min_drop: a drop of at most this never fails, in the metric's unit.
        bounds: the range of a unit's score, or None where it has none; ``bounds`` give a lost item its worst score.
        link: see `Link`.
        normaliser: what a choice's log-likelihood was divided by: ``none`` or ``bytes``.
        task_hash: hash of the whole task's content, or None where it is not known.
        blind: why the row can never be significant (one document, say), or "".
        v1_interval: the interval that the v1 report states, where it differs: Student t on tokens for bits per byte,
            Wilson on tokens for accuracies of tokens, Fisher's z for Spearman.
        source: facts about checkpoint and data for the report (``tl_arch``, ``params``, sha256 sums, how was decoded).
    """

    model: str
    task: str
    metric: str
    value: float
    lo: float
    hi: float
    interval: str
    n: int
    scores: Scores
    higher_is_better: bool
    gating: bool = True
    min_drop: float = 0.0
    bounds: tuple[float, float] | None = None
    link: Link = "identity"
    normaliser: str = "none"
    task_hash: str | None = None
    blind: str = ""
    v1_interval: tuple[float, float] | None = None
    source: Mapping[str, object] = field(default_factory=dict)

    @property
    def row_id(self) -> str:
        """``model--task--metric``."""
        return f"{self.model}--{self.task}--{self.metric}"

"""The table of metrics: direction, range, smallest drop that matters, interval; and a measurement from scores.

Intervals (Wilson 1927; Liang and Zeger 1986 with the CR1 correction; Student t; Bonett and Wright 2000):

====================  =================================================================================================
``wilson``            0/1 scores of independent units
``wilson-clustered``  right answers out of a unit's answers (the tokens of a sentence), which depend on each other
``cluster-t``         ratio of sums over documents or clusters, t with G - 1 degrees of freedom
``block-t``           the same over blocks of one long text: speaks of this text only
``token-t``           Student t on tokens of a text too short for blocks: too narrow, since tokens depend on each other
``t``                 Student t on independent units
``bonett-wright``     Spearman's correlation, through its inverse hyperbolic tangent
``none``              a single unit: no interval can be had, its ends equal the value
====================  =================================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalsuite.result import Link, Scores


@dataclass(frozen=True)
class Metric:
    """What is true of a metric whatever the model.

    Attributes:
        higher_is_better: its direction.
        min_drop: default for the smallest drop that may fail a build, in the metric's unit.
        bounds: range of a unit's score, or None.
        link: how the ratio of sums becomes the metric.
        normaliser: what a choice's log-likelihood is divided by.
    """

    higher_is_better: bool
    min_drop: float = 0.001
    bounds: tuple[float, float] | None = None
    link: Link = "identity"
    normaliser: str = "none"


METRICS = {
    "bpb": Metric(higher_is_better=False, normaliser="bytes"),
    "nll": Metric(higher_is_better=False),
    "ppl": Metric(higher_is_better=False, link="exp"),
    "acc": Metric(higher_is_better=True, bounds=(0.0, 1.0)),
    "acc_norm": Metric(higher_is_better=True, bounds=(0.0, 1.0), normaliser="bytes"),
    "exact_match": Metric(higher_is_better=True, bounds=(0.0, 1.0)),
    "accuracy": Metric(higher_is_better=True, bounds=(0.0, 1.0)),
    "generator_accuracy": Metric(higher_is_better=True, bounds=(0.0, 1.0)),
    "majority_share": Metric(higher_is_better=True, bounds=(0.0, 1.0)),
    "spearman": Metric(higher_is_better=True),
}


def link_value(ratio: float, link: Link) -> float:
    """The metric from the ratio of sums.

    Raises:
        ValueError: the metric is not a finite number, as the perplexity of a very bad model.
    """
    value = ratio
    if link == "exp":
        value = math.exp(ratio) if ratio < 709.0 else math.inf
    if not math.isfinite(value):
        raise ValueError(f"the metric is not finite: {link} of {ratio!r}")
    return value


def value_and_interval(scores: Scores, link: Link, interval: str) -> tuple[float, float, float]:
    """``(value, lo, hi)`` of a metric from its units; the interval is one of the table above but ``token-t``.

    Raises:
        ValueError: no unit, or a value that is not finite.
    """
    from evalsuite.stats import cluster_ratio_ci, clustered_wilson_interval, wilson_interval

    if not len(scores.scores):
        raise ValueError("no unit was scored: there is nothing to measure")
    ratio = float(math.fsum(scores.scores) / math.fsum(scores.weights))
    if interval == "wilson":
        ends = wilson_interval(int(scores.scores.sum()), len(scores.scores))
    elif interval == "wilson-clustered":
        ends = clustered_wilson_interval(scores.scores, scores.weights)
    elif interval == "none":
        ends = (ratio, ratio)
    else:
        _, *pair = cluster_ratio_ci(scores.scores, scores.weights, scores.clusters)
        ends = (pair[0], pair[1])
    value = link_value(ratio, link)
    lo, hi = (link_value(end, link) for end in ends)
    return value, min(lo, value), max(hi, value)


def interval_for(scores: Scores) -> str:
    """The interval that fits scores of which nothing else is known: Wilson for independent 0/1 scores, else t."""
    groups = len(set(scores.clusters)) if scores.clusters is not None else len(scores.ids)
    if scores.clusters is None and bool(np.isin(scores.scores, (0.0, 1.0)).all()):
        return "wilson"
    if groups < 2:
        return "none"
    return "t" if scores.clusters is None else "cluster-t"

"""Measurements for the tests of the gate: what an eval would have handed over, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evalsuite.evals.metrics import METRICS, value_and_interval
from evalsuite.gate.snapshot import FACTS
from evalsuite.provenance import content_hash
from evalsuite.result import Measurement, Scores

STORED = {
    **dict.fromkeys(FACTS, ""),
    "date": "2026-11-30T22:48:00Z",
    "versions": {},
    "seed": 0,
    "threads": 1,
    "test": "tests/test_mine.py::test_row",
}
"""Facts beside a baseline, where a test does not care for them."""


def items(
    scores: Sequence[float],
    *,
    ids: Sequence[str] | None = None,
    hashes: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    tolerance: Sequence[float] | float = 0.0,
    task_hash: str | None = "task",
    **facts: Any,
) -> Measurement:
    """A row of bounded item scores: higher is better, on [0, 1], unless ``facts`` says otherwise."""
    numbers = np.array(scores, dtype=np.float64)
    names = tuple(f"q{i}" for i in range(len(numbers))) if ids is None else tuple(ids)
    found = Scores(
        names,
        tuple(content_hash(name) for name in names) if hashes is None else tuple(hashes),
        numbers,
        np.ones(len(numbers)),
        np.zeros(len(numbers)) + np.array(tolerance),
        clusters=None if clusters is None else tuple(clusters),
        unscored=facts.pop("unscored", ()),
    )
    given = {"higher_is_better": True, "min_drop": 0.001, "bounds": (0.0, 1.0), "task_hash": task_hash} | facts
    mean = float(numbers.mean())
    return Measurement("m", "t", "acc", mean, mean, mean, "t", len(numbers), found, **given)


def documents(
    nats: Sequence[float],
    tokens: Sequence[float],
    *,
    metric: str = "bpb",
    tolerance: float = 2e-5,
    stream: str = "stream",
    **facts: Any,
) -> Measurement:
    """A row of a language model on documents of so many tokens, a token being a byte."""
    counts = np.array(tokens, dtype=np.float64)
    names = tuple(f"doc {i}" for i in range(len(counts)))
    weights = counts * np.log(2) if metric == "bpb" else counts
    found = Scores(
        names, tuple(content_hash(stream, name) for name in names), np.array(nats), weights, tolerance * counts
    )
    known = METRICS[metric]
    value, lo, hi = value_and_interval(found, known.link, "cluster-t")
    given = {
        "higher_is_better": known.higher_is_better,
        "min_drop": known.min_drop,
        "link": known.link,
        "normaliser": known.normaliser,
        "task_hash": stream,
    } | facts
    return Measurement("m", "prose", metric, value, lo, hi, "cluster-t", int(counts.sum()), found, **given)

"""Word similarity: Spearman's correlation of cosines with the scores that people or a lexicon gave.

    cos(u, v) = u . v / (max(|u|, 1e-8) max(|v|, 1e-8))          float64

Pairs with a word outside the vocabulary are skipped; the row counts the rest. The gate needs a number a pair: with rx
and ry the centred average ranks of the n cosines and scores,

    rho = sum rx ry / sqrt(sum rx^2 sum ry^2) = mean of n rx ry / sqrt(sum rx^2 sum ry^2)

so a pair's term of that mean is its score, and the sign-flip test swaps the two models' ranks of a pair. No term is
beyond n max|rx| max|ry| / sqrt(sum rx^2 sum ry^2), which is 3 (n - 1) / (n + 1) without ties and more where many are
tied. A pair that is not covered any more takes the lower end: the worst that the baseline's ranks could make of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalsuite.evals.metrics import METRICS
from evalsuite.provenance import content_hash
from evalsuite.result import Floats, Measurement, Scores
from evalsuite.tasks.similarity import WordPair
from evalsuite.tasks.task import Task

if TYPE_CHECKING:
    from evalsuite.zoo.families.word2vec import WordVectors

SHORTEST = 1e-8
"""A shorter vector counts as this long."""

ROUNDING = 1e-9
"""Of a pair's score: less than any change of a rank makes of it."""


def measure_similarity(
    model_name: str, task: Task, vectors: WordVectors, pairs: Sequence[WordPair], source: Mapping[str, object]
) -> dict[str, Measurement]:
    """The row of one set of pairs, as ``spearman``.

    The interval is Bonett and Wright's; `Measurement.v1_interval` is Fisher's z, as the first seed has it.

    Args:
        model_name: the model's part of the row id.
        task: the task.
        vectors: table [V, d] and words.
        pairs: words with the score they were given, in any unit: ranks alone count.
        source: facts for the report, to which the numbers of pairs are added, all and covered.

    Raises:
        ValueError: fewer than two pairs are covered, or all of them have one cosine or one score.
    """
    from evalsuite.stats import average_ranks, bonett_wright_interval, fisher_z_interval, spearman

    row_of = {word: number for number, word in enumerate(vectors.words)}
    covered = [pair for pair in pairs if pair.first in row_of and pair.second in row_of]
    if len(covered) < 2:
        raise ValueError(
            f"{len(covered)} of {len(pairs)} pairs have both words in the vocabulary, at least 2 are needed: the task "
            f"is in another language or case than the vectors"
        )
    cosines = _cosines(
        vectors.table[[row_of[pair.first] for pair in covered]],
        vectors.table[[row_of[pair.second] for pair in covered]],
    )
    given = np.array([pair.score for pair in covered])
    rho = spearman(cosines, given)
    n = len(covered)
    middle = (n + 1) / 2.0
    one, two = average_ranks(cosines) - middle, average_ranks(given) - middle
    spread = np.sqrt((one @ one) * (two @ two))
    bound = float(n * np.abs(one).max() * np.abs(two).max() / spread)
    facts = METRICS["spearman"]
    scores = Scores(
        _names(covered),
        tuple(content_hash(pair.first, pair.second, repr(pair.score)) for pair in covered),
        n * one * two / spread,
        np.ones(n),
        tolerance=np.full(n, ROUNDING),
        details=tuple(
            {"input": f"{pair.first} {pair.second}", "expected": pair.score, "answer": float(cosine)}
            for pair, cosine in zip(covered, cosines, strict=True)
        ),
    )
    row = Measurement(
        model_name,
        task.name,
        "spearman",
        rho,
        *_around(rho, bonett_wright_interval(rho, n)),
        "bonett-wright",
        n,
        scores,
        higher_is_better=facts.higher_is_better,
        min_drop=facts.min_drop,
        bounds=(-bound, bound),
        # Of all pairs: a vocabulary that lost words does not change the task.
        task_hash=content_hash(*(f"{pair.first}\t{pair.second}\t{pair.score!r}" for pair in pairs)),
        v1_interval=_around(rho, fisher_z_interval(rho, n)),
        source={**source, "pairs": len(pairs), "covered": n},
    )
    return {"spearman": row}


def _cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> Floats:
    """Cosines of the rows of two arrays [n, d], float64 [n]."""
    one, two = first.astype(np.float64), second.astype(np.float64)
    lengths = [np.maximum(np.linalg.norm(rows, axis=1), SHORTEST) for rows in (one, two)]
    cosines: Floats = (one * two).sum(axis=1) / (lengths[0] * lengths[1])
    return cosines


def _names(pairs: Sequence[WordPair]) -> tuple[str, ...]:
    """``first|second``; a pair that comes again is numbered, so that ids are unique."""
    seen: dict[str, int] = {}
    names = []
    for pair in pairs:
        name = f"{pair.first}|{pair.second}"
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return tuple(names)


def _around(value: float, ends: tuple[float, float]) -> tuple[float, float]:
    """The ends of an interval, which rounding must not push past the value."""
    return min(ends[0], value), max(ends[1], value)

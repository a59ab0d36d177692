"""What the verdict on a row costs, beside SciPy's paired t-test on the same scores.

The t-test is the cheapest paired test there is, and an approximation; `judge` also pairs the units by id and content
hash, and its p is exact for 0/1 scores. SciPy's `permutation_test`, which answers the same question by drawing signs,
is timed on fewer units and scaled. Only ratios within one run are meant to be compared between machines:

    python benchmarks/gate_speed.py
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evalsuite.gate.verdict import judge
from evalsuite.result import Measurement, Scores

UNITS = 100_000
DRAWN_UNITS, DRAWS = 1000, 9999
LEVEL = 0.04 / 50


def row(scores: NDArray[np.float64], clusters: tuple[str, ...] | None = None) -> Measurement:
    """A row of item scores on [0, 1]."""
    n = len(scores)
    ids = tuple(f"item-{i:06d}" for i in range(n))
    found = Scores(ids, ids, scores, np.ones(n), np.zeros(n), clusters=clusters)
    mean = float(scores.mean())
    return Measurement(
        "m", "t", "acc", mean, mean, mean, "t", n, found, higher_is_better=True, bounds=(0.0, 1.0), task_hash="t"
    )


def fastest(run: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest of some runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Time the three, check that the p-values agree where they should, and print the ratios."""
    rng = np.random.default_rng(0)
    right = rng.random(UNITS) < 0.7
    flipped = rng.random(UNITS) < 0.05
    real = rng.random(UNITS)
    labels = tuple(f"passage-{i // 5:05d}" for i in range(UNITS))
    pairs = {
        "0/1 scores": (row((right ^ flipped).astype(float)), row(right.astype(float))),
        "real scores": (row(np.clip(real + rng.normal(0, 0.05, UNITS), 0, 1)), row(real)),
        "0/1 in clusters of 5": (row((right ^ flipped).astype(float), labels), row(right.astype(float), labels)),
    }
    print(f"{UNITS} units a row; seconds, and how many times the t-test's")
    for name, (now, base) in pairs.items():
        ours = fastest(lambda now=now, base=base: judge(now, base, LEVEL))
        scores = (base.scores.scores, now.scores.scores)
        t_test = fastest(lambda scores=scores: stats.ttest_rel(*scores, alternative="greater"))
        p, p_t = judge(now, base, LEVEL).p, float(stats.ttest_rel(*scores, alternative="greater").pvalue)
        if now.scores.clusters is None and abs(p - p_t) > 0.01:
            raise SystemExit(f"{name}: p = {p} and the t-test's {p_t} differ: with so many units they agree")
        print(f"  {name:<22} judge {ours:7.3f} s   t-test {t_test:7.4f} s   ratio {ours / t_test:6.0f}")

    print(f"  peak memory so far {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")

    few = [side.scores.scores[:DRAWN_UNITS] for side in pairs["real scores"]]
    difference = few[1] - few[0]
    small = (row(few[0]), row(few[1]))
    ours = fastest(lambda: judge(*small, LEVEL))
    drawn = fastest(
        lambda: stats.permutation_test(
            (difference,),
            lambda x, axis: x.sum(axis=axis),
            permutation_type="samples",
            n_resamples=DRAWS,
            vectorized=True,
            alternative="greater",
            rng=0,
        ),
        times=1,
    )
    print(f"{DRAWN_UNITS} units, against permutation_test with {DRAWS} draws")
    print(f"  {'real scores':<22} judge {ours:7.3f} s   drawn  {drawn:7.3f} s   ratio {drawn / ours:6.0f}")


if __name__ == "__main__":
    main()

"""How much faster the vectorised bootstrap is than the loop that defines it.

Both make the same draws. The loop is timed on a small sample and scaled by the number of draws, in the same run and
process, and only the ratio is meant to be compared between machines:

    python benchmarks/bootstrap_speed.py
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from evalsuite.stats import PCG32, bootstrap_ci, quantile

RESAMPLES, ITEMS = 1000, 10_000
LOOP_RESAMPLES, LOOP_ITEMS = 100, 1000
ALPHA = 0.05


def loop(x: NDArray[np.float64], n_boot: int, rng: PCG32) -> tuple[float, float, float]:
    """Bootstrap the mean of x [n] one draw at a time."""
    n = len(x)
    thetas = []
    for _ in range(n_boot):
        resample = np.array([x[min(int(rng.uniform() * n), n - 1)] for _ in range(n)])
        thetas.append(float(np.mean(resample)))
    return float(np.mean(x)), quantile(thetas, ALPHA / 2), quantile(thetas, 1 - ALPHA / 2)


def main() -> None:
    """Time both, check that they agree bit for bit, and print the ratio."""
    scores = PCG32(0).uniforms(ITEMS)
    small = scores[:LOOP_ITEMS]

    start = time.perf_counter()
    slow = loop(small, LOOP_RESAMPLES, PCG32(1))
    loop_seconds = (time.perf_counter() - start) * (RESAMPLES * ITEMS) / (LOOP_RESAMPLES * LOOP_ITEMS)
    if bootstrap_ci(small, np.mean, LOOP_RESAMPLES, ALPHA, PCG32(1)) != slow:
        raise SystemExit("the vectorised bootstrap and the loop differ: expected equal bits, check bootstrap.py")

    start = time.perf_counter()
    bootstrap_ci(scores, np.mean, RESAMPLES, ALPHA, PCG32(1))
    seconds = time.perf_counter() - start

    print(f"bootstrap of the mean, {RESAMPLES} resamples of {ITEMS} items")
    print(f"  loop (scaled from {LOOP_RESAMPLES} x {LOOP_ITEMS})  {loop_seconds:8.2f} s")
    print(f"  vectorised                {seconds:8.2f} s")
    print(f"  ratio                     {loop_seconds / seconds:8.1f}")


if __name__ == "__main__":
    main()

"""What `make mutants` found: the mutation score by file, and the survivors by function.

A mutant is a small change of the code; it is killed when a test fails. The score is killed / all, where a test that
runs into its time limit counts as failed and a mutant that no test reaches as survived. docs/mutants.md says why
survivors may live. Ends with status 1 below the bar.

    python benchmarks/mutation_score.py [--bar 0.80] [--survivors]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MUTANTS = Path(__file__).parents[1] / "mutants"
SURVIVED, NO_TESTS = 0, 33
"""mutmut's exit codes: the tests passed, no test reaches the function. None: the mutant has not been run."""


def results() -> Iterator[tuple[str, str, int | None]]:
    """File, function and exit code of every mutant."""
    for meta in sorted(MUTANTS.rglob("*.py.meta")):
        file = meta.relative_to(MUTANTS).as_posix().removesuffix(".meta")
        for key, code in json.loads(meta.read_text())["exit_code_by_key"].items():
            yield file, key.rpartition("__mutmut_")[0].rpartition(".")[2].removeprefix("x_"), code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bar", type=float, default=0.80, help="least score (default: 0.80)")
    parser.add_argument("--survivors", action="store_true", help="also list the survivors by function")
    options = parser.parse_args()
    found = list(results())
    every, alive, functions = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for file, function, code in found:
        every[file] += 1
        if code in (SURVIVED, NO_TESTS):
            alive[file] += 1
            functions[file, function] += 1
    for file, count in every.items():
        print(f"{file:<40} {count - alive[file]:>5} of {count:>5} killed  {1 - alive[file] / count:.3f}")
    if options.survivors:
        for (file, function), count in functions.items():
            print(f"  {count:>3} live in {file} {function}")
    open_ones = sum(code is None for _, _, code in found)
    if not found or open_ones:
        print(f"{len(found)} mutants, {open_ones} of them not run: run `make mutants` to its end")
        return 1
    score = 1 - alive.total() / len(found)
    print(f"mutation score {score:.3f} over {len(found)} mutants (bar {options.bar})")
    return 0 if score >= options.bar else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""The suite: one test a row, each metric of each model on each task against its baseline."""

from __future__ import annotations

from collections.abc import Callable

from evalsuite.cases import Case
from evalsuite.result import Measurement


def test_metric(eval_case: Case, measure: Callable[[Case], Measurement], baseline: object) -> None:
    """The model is not significantly worse than its stored scores, on the same items."""
    assert measure(eval_case) == baseline

"""A row from scores that a user's own test computed: the measurement behind ``eval_record``."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from evalsuite.evals.metrics import interval_for, value_and_interval
from evalsuite.provenance import content_hash
from evalsuite.result import Measurement, Scores

UNIT_MIN_DROP = 0.001
"""Default ``min_drop`` of scores on [0, 1]; on other scales no drop is too small to matter unless the user says so."""


def measure_scores(
    names: tuple[str, str, str],
    scores: Sequence[Any],
    units: Sequence[Hashable] | None = None,
    clusters: Sequence[Hashable] | None = None,
    *,
    higher_is_better: bool = True,
    bounds: tuple[float, float] | None = None,
    gating: bool = True,
    min_drop: float | None = None,
) -> Measurement:
    """A measurement of the mean of ``scores``.

    Args:
        names: model, task and metric.
        scores: one number or bool a unit. None, NaN and infinities are unscored: they count at the worst bound.
        units: one id a unit, unique; the position where absent. They pair the scores with the baseline's.
        clusters: one label a unit where units depend on each other (questions on one passage).
        higher_is_better: the metric's direction.
        bounds: range of a score; [0, 1] where absent and all scores lie there.
        gating: whether the row can turn a build red by being worse.
        min_drop: a drop of at most this never fails; 0.001 on [0, 1] and 0 elsewhere where absent.

    Raises:
        ValueError: no scores, lengths that differ, an id twice, a score outside its bounds, a score that is no number,
            or an unscored unit of a metric without bounds.
    """
    row_id = "--".join(names)
    if isinstance(scores, Mapping):
        raise ValueError(f"{row_id}: scores is a mapping; give its values as scores and its keys as units")
    if min_drop is not None and not 0 <= min_drop < math.inf:
        raise ValueError(f"{row_id}: min_drop is {min_drop!r}, expected a number of at least 0")
    if len(scores) == 0:
        raise ValueError(f"{row_id}: no scores; a row needs at least one unit")
    ids = tuple(str(unit) for unit in (range(len(scores)) if units is None else units))
    for name, given in (("units", ids), ("clusters", clusters)):
        if given is not None and len(given) != len(scores):
            raise ValueError(f"{row_id}: {len(scores)} scores but {len(given)} {name}; give one for each score")
    if len(set(ids)) < len(ids):
        twice = next(unit for index, unit in enumerate(ids) if unit in ids[:index])
        raise ValueError(f"{row_id}: the unit {twice!r} stands twice; ids must be unique")
    values = np.array([_number(score, unit, row_id) for score, unit in zip(scores, ids, strict=True)])
    finite = np.isfinite(values)
    if bounds is None and finite.any() and values[finite].min() >= 0 and values[finite].max() <= 1:
        bounds = (0.0, 1.0)
    if bounds is not None and ((values[finite] < bounds[0]) | (values[finite] > bounds[1])).any():
        wrong = float(values[finite][(values[finite] < bounds[0]) | (values[finite] > bounds[1])][0])
        raise ValueError(f"{row_id}: the score {wrong!r} lies outside the bounds {bounds}")
    unscored = tuple(unit for unit, fine in zip(ids, finite, strict=True) if not fine)
    if unscored:
        if bounds is None or len(unscored) == len(ids):
            raise ValueError(
                f"{row_id}: {len(unscored)} of {len(ids)} units have no finite score ({unscored[0]!r} is the first)"
                + ("" if len(unscored) == len(ids) else " and no bounds are given to take the worst from")
            )
        values[~finite] = bounds[0] if higher_is_better else bounds[1]
    found = Scores(
        ids,
        tuple(content_hash(unit) for unit in ids),
        values,
        np.ones(len(ids)),
        # Scores on a scale of their own may be large: what lies beyond nine digits is rounding.
        np.zeros(len(ids)) if bounds == (0.0, 1.0) else 1e-9 * np.abs(values),
        clusters=None if clusters is None else tuple(str(label) for label in clusters),
        unscored=unscored,
    )
    interval = interval_for(found)
    value, lo, hi = value_and_interval(found, "identity", interval)
    default_drop = UNIT_MIN_DROP if bounds == (0.0, 1.0) else 0.0
    return Measurement(
        *names,
        value,
        lo,
        hi,
        interval,
        len(ids),
        found,
        higher_is_better=higher_is_better,
        gating=gating,
        min_drop=default_drop if min_drop is None else min_drop,
        bounds=bounds,
        blind="a single unit: no significance can be had from it" if interval == "none" else "",
    )


def _number(score: Any, unit: str, row_id: str) -> float:
    """A score as a float. Numbers, bools, NumPy and torch scalars and None (unscored) are read; nothing else is
    guessed, since an unknown answer must not count as wrong."""
    if score is None:
        return math.nan
    if isinstance(score, str | bytes):
        raise ValueError(f"{row_id}: the score of {unit!r} is the text {score!r}; give a number or a bool")
    try:
        return float(score)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{row_id}: the score of {unit!r} is {score!r}; give a number or a bool") from None

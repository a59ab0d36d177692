"""Before any statistics: do two measurements speak of the same units, and by how much did each get worse?

Awkward inputs are settled here, so that a verdict never rests on units that were dropped, counted twice or compared
with something else.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalsuite.result import Floats, Measurement

MIN_OVERLAP = 0.95
"""Share of the baseline's units that must be there unchanged; below it two rows are not comparable."""

SAME_WEIGHT = 1e-9
"""Relative: weights of a unit that differ by more were not counted alike, and the sums behind a drop do not match."""


@dataclass(frozen=True, eq=False)
class Paired:
    """Differences of the units that two measurements share, lost ones included.

    Attributes:
        worse_by: float64 [n], oriented so that positive is worse, numerical noise set to exactly 0.
        weights: float64 [n], the units' denominators.
        clusters: one label a unit where the data has clusters, else None.
        missing: ids of the baseline that the new run lacks.
        losses: whether the missing ones count as losses (the task is unchanged) or are left out.
        new: ids that the baseline lacks; they are left out.
    """

    worse_by: Floats
    weights: Floats
    clusters: tuple[str, ...] | None
    missing: tuple[str, ...]
    losses: bool
    new: tuple[str, ...]


@dataclass(frozen=True)
class NotComparable:
    """Why no difference can be formed."""

    reason: str


def pair(now: Measurement, base: Measurement) -> Paired | NotComparable:
    """Pair two measurements of a row by unit id and content hash.

    Units of the baseline that are missing now are losses when the task's content is unchanged (they take the worst
    bound of a bounded metric). When the content changed, at least `MIN_OVERLAP` of the baseline's units must still be
    there. A unit must weigh the same on both sides. There is no fallback to an unpaired comparison.

    Raises:
        ValueError: an id stands twice on one side.
    """
    for side, name in ((now, "this run"), (base, "the baseline")):
        if twice := [unit for unit, count in Counter(side.scores.ids).items() if count > 1]:
            raise ValueError(f"{side.row_id}: the unit {twice[0]!r} stands twice in {name}; ids must be unique")
    for what in ("higher_is_better", "normaliser", "link"):
        ours, theirs = getattr(now, what), getattr(base, what)
        if ours != theirs:
            return NotComparable(f"the metric changed: {what} was {theirs!r} in the baseline and is {ours!r} now")

    if now.gating and not base.gating:
        return NotComparable(
            "the row gates now, but its baseline was recorded as one that only informs: record it again"
        )

    place = {key: index for index, key in enumerate(zip(now.scores.ids, now.scores.hashes, strict=True))}
    keys = list(zip(base.scores.ids, base.scores.hashes, strict=True))
    at_base = np.array([index for index, key in enumerate(keys) if key in place], dtype=np.intp)
    at_now = np.array([place[key] for key in keys if key in place], dtype=np.intp)
    lost = [index for index, key in enumerate(keys) if key not in place]
    missing = tuple(base.scores.ids[index] for index in lost)
    known = set(keys)
    new = tuple(key[0] for key in place if key not in known)

    if lost and _content_changed(now, base, new):
        if len(at_base) < MIN_OVERLAP * len(keys):
            return NotComparable(_changed_text(now, base, len(at_base), missing))
        lost = []
    elif lost and base.bounds is None:
        return NotComparable(
            f"{len(lost)} of {len(keys)} units of the baseline are missing ({_some(missing)}), and the metric has no "
            f"worst score to give them"
        )

    if (then := _groups(base, at_base)) != (today := _groups(now, at_now)):
        first = next(
            (at for at, pair in enumerate(zip(then or (), today or (), strict=False)) if pair[0] != pair[1]), 0
        )
        return NotComparable(
            f"the clusters changed, first at the unit {base.scores.ids[at_base[first]]!r}: the baseline was recorded "
            f"with other clusters, or with none; accept a new baseline"
        )
    weighed, weighs = base.scores.weights[at_base], now.scores.weights[at_now]
    if (other := np.abs(weighs - weighed) > SAME_WEIGHT * np.abs(weighed)).any():
        first = int(other.argmax())
        return NotComparable(
            f"the metric changed: the unit {base.scores.ids[at_base[first]]!r} had the weight {weighed[first]:.6g} in "
            f"the baseline and has {weighs[first]:.6g} now (n_bytes, for bits per byte); accept a new baseline"
        )

    sign = 1.0 if now.higher_is_better else -1.0
    difference = sign * (base.scores.scores[at_base] - now.scores.scores[at_now])
    # Noise can flip an item only when it is near the edge in both runs: one that became a tie has changed.
    noise = np.minimum(base.scores.tolerance[at_base], now.scores.tolerance[at_now])
    difference[np.abs(difference) <= noise] = 0.0
    order = at_base
    if lost and base.bounds is not None:
        worst = base.bounds[0] if now.higher_is_better else base.bounds[1]
        difference = np.concatenate([difference, sign * (base.scores.scores[lost] - worst)])
        order = np.concatenate([at_base, np.array(lost, dtype=np.intp)])
    groups = base.scores.clusters
    return Paired(
        difference,
        base.scores.weights[order],
        None if groups is None else tuple(groups[index] for index in order),
        missing,
        bool(lost),
        new,
    )


def cluster_sums(values: Floats, clusters: tuple[str, ...] | None) -> Floats:
    """Sums by cluster in order of first appearance, or the values themselves where each unit stands alone."""
    if clusters is None:
        return values
    number: dict[str, int] = {}
    index = [number.setdefault(label, len(number)) for label in clusters]
    grouped: list[list[float]] = [[] for _ in number]
    for at, value in zip(index, values, strict=True):
        grouped[at].append(float(value))
    # fsum, so that gains and losses of equal size cancel to exactly 0.
    return np.array([math.fsum(group) for group in grouped])


def _groups(side: Measurement, at: NDArray[np.intp]) -> tuple[str, ...] | None:
    """The clusters of some units, or None where units stand alone."""
    groups = side.scores.clusters
    return None if groups is None else tuple(groups[index] for index in at)


def _content_changed(now: Measurement, base: Measurement, new: tuple[str, ...]) -> bool:
    """Whether the task itself changed. Where its hash is not known, units that are new tell."""
    if now.task_hash is None or base.task_hash is None:
        return bool(new)
    return now.task_hash != base.task_hash


def _changed_text(now: Measurement, base: Measurement, shared: int, missing: tuple[str, ...]) -> str:
    hashes = f" (hash {base.task_hash} -> {now.task_hash})" if now.task_hash and base.task_hash else ""
    return (
        f"the data changed{hashes}: {shared} of {len(base.scores.ids)} units of the baseline are still there "
        f"unchanged, {MIN_OVERLAP:.0%} are needed; first changed: {_some(missing)}. Scores on other data cannot be "
        f"compared: accept a new baseline"
    )


def _some(ids: tuple[str, ...], most: int = 3) -> str:
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")

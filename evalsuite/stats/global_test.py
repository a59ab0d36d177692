"""One test over all rows: did the suite as a whole become worse, if no row alone shows it?

Each row is scaled to a sum of squares of 1 and added up within the units, u_c = sum over rows r of
d_rc / sqrt(sum over c of d_rc^2). One random sign a unit flips every row that shares it, so whatever makes rows move
together (the same items, the same documents) is kept, and the test is as exact as the one of a row.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from evalsuite.stats.signflip import sign_flip_p


def global_sign_flip(
    rows: Sequence[Mapping[Hashable, float]], coarser: Mapping[Hashable, Hashable] | None = None
) -> float:
    """Return the one-sided sign-flip p-value of all rows together.

    Args:
        rows: One mapping a row from unit id to difference, finite, positive = worse. Ids carry the name of the data
            set, e.g. ("facts", "item 7"): rows that name the same id share its sign. A row may be empty.
        coarser: Unit id to the id of the larger unit that it belongs to (item to passage, passage to document), for
            data sets of which one row uses items and another clusters. Differences within the larger unit are added
            up in every row. Ids that are not in it, or map to themselves, stay as they are.

    Returns:
        The p-value, 1 when nothing changed. It depends neither on the order of the rows nor on that of the units.

    Raises:
        ValueError: A difference that is not finite, or ids of `coarser` that lead in a circle.
    """
    shares: dict[Hashable, list[float]] = {}
    for number, row in enumerate(rows):
        changed = _changed(row, number, coarser or {})
        # Scaled by the largest first: squares neither overflow nor vanish.
        largest = max(map(abs, changed.values()), default=0.0)
        norm = math.sqrt(math.fsum((d / largest) ** 2 for d in changed.values()))
        for unit, d in changed.items():
            shares.setdefault(unit, []).append(d / largest / norm)
    # Exact sums in sorted order: the last digit does not depend on the order of the rows.
    return sign_flip_p(np.sort(np.array([math.fsum(parts) for parts in shares.values()])))


def _changed(row: Mapping[Hashable, float], number: int, coarser: Mapping[Hashable, Hashable]) -> dict[Hashable, float]:
    """Add the differences of a row up within the units of the test, and drop zeros."""
    parts: dict[Hashable, list[float]] = {}
    for unit, d in row.items():
        if not math.isfinite(d):
            raise ValueError(
                f"row {number} has the difference {d} at {unit!r}, expected finite numbers; "
                f"score lost and failed items before"
            )
        if d != 0.0:
            parts.setdefault(_coarsest(unit, coarser), []).append(float(d))
    sums = {unit: math.fsum(values) for unit, values in parts.items()}
    return {unit: d for unit, d in sums.items() if d != 0.0}


def _coarsest(unit: Hashable, coarser: Mapping[Hashable, Hashable]) -> Hashable:
    """Follow a unit to the largest one that holds it."""
    seen = {unit}
    while (larger := coarser.get(unit, unit)) != unit:
        if larger in seen:
            raise ValueError(f"the units of {larger!r} lead back to it, expected each to lie in a larger one")
        seen.add(larger)
        unit = larger
    return unit

"""The verdict on one row: did the model really get worse on the same units?

A one-sided sign-flip test on the differences by cluster (document, or item where there are no clusters): if nothing
changed, each difference is as likely to be a loss as a gain, so p is the share of sign patterns whose sum reaches the
observed one. The row fails when p is at most its level and the drop exceeds `min_drop`. Nothing is random here, so the
same scores always give the same verdict. Source: Fisher 1935; Dror et al. 2018 for its use on paired scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evalsuite.gate.inputs import NotComparable, Paired, cluster_sums, pair
from evalsuite.result import Floats, Measurement
from evalsuite.stats import sign_flip_p

ALPHA_ROW = 0.04
"""Chance that any row of the family fails though no model changed; every row gets an equal share."""

SLACK = 1e-9
"""Relative: a drop that equals ``min_drop`` but for rounding does not exceed it."""


@dataclass(frozen=True)
class Verdict:
    """What became of a row that has a baseline.

    Attributes:
        state: ok, improved, blind, informing, regressed or incomparable.
        reason: why an incomparable or blind row is so, else "".
        drop: how much worse, in the metric's unit; negative is better.
        drop_ci95: its paired 95 % interval, or None where there is none.
        p: one-sided p of the sign-flip test.
        level: the p at which the row fails, None for a row that only informs.
        units: independent units compared (clusters where there are any).
        changed, worse, better: how many of them differ, lost, gained.
        missing, new: ids that only the baseline or only this run has.
        notes: red flags a reader should know of.
    """

    state: str
    reason: str = ""
    drop: float = 0.0
    drop_ci95: tuple[float, float] | None = None
    p: float = 1.0
    level: float | None = None
    min_drop: float = 0.0
    units: int = 0
    changed: int = 0
    worse: int = 0
    better: int = 0
    missing: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def row_levels(gating: Mapping[str, bool]) -> dict[str, float]:
    """The level of every gating row of the baselines: `ALPHA_ROW` in equal shares (Bonferroni over the family).

    Args:
        gating: every row with a baseline and whether it gates. Rows that inform get no level and cost none.
    """
    family = [row for row, gates in gating.items() if gates]
    return {row: ALPHA_ROW / len(family) for row in family}


def judge(now: Measurement, base: Measurement, level: float | None) -> Verdict:
    """Compare a row with its baseline.

    Args:
        now, base: the two measurements.
        level: the row's share of `ALPHA_ROW`, or None for a row that only informs.

    Raises:
        ValueError: an id stands twice on one side.
    """
    paired = pair(now, base)
    if isinstance(paired, NotComparable):
        return Verdict("incomparable", paired.reason, level=level, min_drop=now.min_drop)
    sums = cluster_sums(paired.worse_by, paired.clusters)
    weights = cluster_sums(paired.weights, paired.clusters)
    drop = _drop(now, base, sums, weights)
    p = sign_flip_p(sums)
    smallest_p = 2.0 ** -len(sums) if not now.blind else 1.0
    state, reason = "ok", ""
    if level is None:
        state = "informing"
    elif smallest_p > level:
        state = "blind"
        reason = (
            now.blind or f"{len(sums)} units can reach p = {smallest_p:.2g} at best, the row's level is {level:.2g}"
        )
    elif p <= level and _exceeds(drop, now.min_drop):
        state = "regressed"
    elif sign_flip_p(-sums) <= level and _exceeds(-drop, now.min_drop):
        state = "improved"
    return Verdict(
        state,
        reason,
        drop=drop,
        drop_ci95=_drop_interval(now, sums, weights),
        p=p,
        level=level,
        min_drop=now.min_drop,
        units=len(sums),
        changed=int(np.count_nonzero(sums)),
        worse=int((sums > 0).sum()),
        better=int((sums < 0).sum()),
        missing=paired.missing,
        new=paired.new,
        notes=_notes(now, paired, sums),
    )


def _exceeds(drop: float, min_drop: float) -> bool:
    return drop > min_drop * (1 + SLACK) + (SLACK if not min_drop else 0.0)


def _drop(now: Measurement, base: Measurement, sums: Floats, weights: Floats) -> float:
    """The drop in the metric's unit. Perplexity is no mean of units: its drop is the difference of the values."""
    if not sums.any():
        return 0.0
    if now.link != "identity":
        return (base.value - now.value) * (1.0 if now.higher_is_better else -1.0)
    return math.fsum(sums) / math.fsum(weights)


def _drop_interval(now: Measurement, sums: Floats, weights: Floats) -> tuple[float, float] | None:
    """Paired t interval of the drop over clusters."""
    if now.link != "identity" or len(sums) < 2:
        return None
    from evalsuite.stats import cluster_ratio_ci  # needs SciPy, which the controller does without

    _, lo, hi = cluster_ratio_ci(sums, weights)
    return lo, hi


def _notes(now: Measurement, paired: Paired, sums: Floats) -> tuple[str, ...]:
    notes = []
    # Of all units: 0/1 scores that change always change by 1.
    if len(sums) > 1 and sums.all() and np.ptp(sums) <= SLACK * abs(sums[0]):
        notes.append("constant shift: every unit moved by the same amount")
    if paired.missing:
        one, many = ("counts as a loss", "count as losses") if paired.losses else ("is left out", "are left out")
        where = "of the baseline"
        notes.append(_units(paired.missing, f"{where} is missing and {one}", f"{where} are missing and {many}"))
    if paired.new:
        notes.append(_units(paired.new, "has no baseline and is left out", "have no baseline and are left out"))
    if now.scores.unscored:
        what, worst = "could not be scored and", "at the worst score"
        notes.append(_units(now.scores.unscored, f"{what} counts {worst}", f"{what} count {worst}"))
    return tuple(notes)


def _units(ids: tuple[str, ...], one: str, many: str) -> str:
    return f"1 unit {one}" if len(ids) == 1 else f"{len(ids)} units {many}"

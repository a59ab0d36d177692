"""What became of a row in the process that scored it, and the plain values it sends to the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evalsuite.gate.snapshot import Desk
from evalsuite.gate.verdict import Verdict
from evalsuite.report.rows import RED, Source
from evalsuite.result import Measurement


@dataclass(eq=False)
class Outcome:
    """One row on its way through a test.

    Attributes:
        model, task, metric: the parts of its id.
        gating: whether it can turn a build red by being worse.
        test: node id of its test.
        desk: where it is compared with its baseline.
        ad_hoc: whether it may do without a baseline.
        measurement: set when it was scored.
        failure: ``(state, reason)``, set when it could not be.
    """

    model: str
    task: str
    metric: str
    gating: bool
    test: str
    desk: Desk
    ad_hoc: bool = False
    measurement: Measurement | None = None
    failure: tuple[str, str] | None = None

    @property
    def state(self) -> str:
        """The row's state, as far as its own process can tell."""
        if self.failure is not None:
            return self.failure[0]
        if self.desk.damage:
            return "error"
        if self.desk.written:
            return "recorded"
        if self.desk.verdict is not None:
            return self.desk.verdict.state
        return "informing" if self.ad_hoc else "new"

    @property
    def settled(self) -> bool:
        """Whether its test came as far as comparing it, or finding that there is nothing to compare it with."""
        desk = self.desk
        return self.measurement is not None and bool(
            desk.verdict or desk.damage or desk.written or not desk.path.exists()
        )

    @property
    def red(self) -> bool:
        """Whether the state turns the build red."""
        return self.state in RED

    def row(self) -> dict[str, Any]:
        """The row for the report: plain values only, since it may travel between processes."""
        reason = self.failure[1] if self.failure else self.desk.damage
        if not reason and self.desk.verdict is not None and not self.desk.written:
            reason = self.desk.verdict.reason
        scored = self.measurement if self.failure is None and not self.desk.damage else None
        return {
            "id": self.desk.row_id,
            "model": self.model,
            "task": self.task,
            "metric": self.metric,
            "state": self.state,
            "gating": self.gating,
            "reason": reason or None,
            "baseline": self._baseline(),
            "verdict": self._verdict() if scored is not None else None,
            "source": dict.fromkeys(Source.__annotations__),
            "test": self.test,
            "items": None,
            **(_measured(scored) if scored is not None else {}),
        }

    def items(self) -> list[dict[str, Any]]:
        """One plain mapping a unit, for the row's items file."""
        return [] if self.measurement is None else list(_items(self.measurement))

    def _baseline(self) -> dict[str, Any] | None:
        base, recorded = self.desk.base, self.desk.recorded
        if base is None:
            return None
        keys = ("date", "commit", "seed", "threads", "platform", "versions")
        return {
            "value": base.value,
            "ci95": [base.lo, base.hi],
            "n": base.n,
            "recorded": {key: recorded[key] for key in keys},
        }

    def _verdict(self) -> dict[str, Any] | None:
        verdict = self.desk.verdict
        if verdict is None or verdict.state == "incomparable" or self.desk.written:
            return None
        return plain_verdict(verdict)


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as the report has it."""
    return {
        "drop": verdict.drop,
        "drop_ci95": None if verdict.drop_ci95 is None else list(verdict.drop_ci95),
        "p": verdict.p,
        "level": verdict.level,
        "min_drop": verdict.min_drop,
        "test": "sign-flip, one-sided",
        "units": verdict.units,
        "changed": verdict.changed,
        "worse": verdict.worse,
        "better": verdict.better,
        "missing": list(verdict.missing),
        "new": list(verdict.new),
        "notes": list(verdict.notes),
    }


def _measured(measurement: Measurement) -> dict[str, Any]:
    scores = measurement.scores
    token = measurement.v1_interval
    # A tolerance of 0 or proportional to the tokens is the dead zone; one that covers the whole range marks a unit
    # whose answer hangs on numerical noise.
    unstable = 0 if measurement.bounds is None else int((scores.tolerance > 0).sum())
    return {
        "higher_is_better": measurement.higher_is_better,
        "value": measurement.value,
        "ci95": [measurement.lo, measurement.hi],
        "interval": measurement.interval,
        "n": measurement.n,
        "normaliser": measurement.normaliser,
        "link": measurement.link,
        "min_drop": measurement.min_drop,
        "bounds": None if measurement.bounds is None else list(measurement.bounds),
        "task_hash": measurement.task_hash,
        "units": len(scores.ids),
        "clusters": None if scores.clusters is None else len(set(scores.clusters)),
        "unscored": len(scores.unscored),
        "truncated": scores.truncated,
        "unstable": unstable,
        "v1_ci95": None if token is None else list(token),
        "source": {key: measurement.source.get(key) for key in Source.__annotations__},
    }


def _items(measurement: Measurement) -> Iterator[dict[str, Any]]:
    scores = measurement.scores
    unscored = set(scores.unscored)
    for index, unit in enumerate(scores.ids):
        item: dict[str, Any] = {
            "id": unit,
            "hash": scores.hashes[index],
            "score": float(scores.scores[index]),
            "weight": float(scores.weights[index]),
            "tolerance": float(scores.tolerance[index]),
        }
        if scores.clusters is not None:
            item["cluster"] = scores.clusters[index]
        if unit in unscored:
            item["unscored"] = True
        yield item | (dict(scores.details[index]) if scores.details else {})

"""From the rows of a run to the report, and from a report to the list of what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evalsuite.report.checks import semantic_errors
from evalsuite.report.rows import RED, STATES, in_order, manifest_order, normal_row, plain
from evalsuite.report.schema import schema_errors

FORMAT = "evalsuite.report.v1"
_PROVENANCE = ("versions", "platform", "seed", "threads", "git_commit", "family")
_RUN = ("started", "seconds", "workers", "host", "models")
_MODEL_RUN = ("load_seconds", "eval_seconds", "peak_rss_mb")


def build_report(
    rows: Sequence[Mapping[str, Any]],
    *,
    provenance: Mapping[str, Any],
    run: Mapping[str, Any],
    expected: int,
    exit_status: int,
    suite: str = "zoo",
    partial: bool = False,
    order: Sequence[str] | None = None,
    gates: Mapping[str, str] | None = None,
    aggregates: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The report of one run.

    Args:
        rows: rows in any order, as in the row contract; absent optional keys become null.
        provenance: what makes the numbers: versions, platform, seed, threads, git_commit, family.
        run: what may differ between equal runs: started, seconds, workers, host, models.
        expected: how many rows this run owes, deselected ones not counted.
        exit_status: the exit status of pytest.
        suite: the suite's name.
        partial: whether only a selection of the suite was asked for.
        order: row ids in manifest order; rows it does not name come last, sorted by id. None keeps the given order.
        gates: failures of the suite that are not a row's own, ``{"gate[global]": "why"}``.
        aggregates: summaries over the rows, an object a name.
    """
    gates = dict(gates or {})
    ordered = [normal_row(row) for row in manifest_order(rows, order)]
    found = Counter(str(row.get("state")) for row in ordered)
    failures = [row.get("id") for row in ordered if row.get("state") in RED] + sorted(gates)
    judged = sum(row.get("state") != "deselected" for row in ordered)
    return {
        "format": FORMAT,
        "suite": suite,
        "verdict": {
            "status": "red" if failures or (exit_status and not judged) else "green",
            "partial": partial,
            "counts": {state: found[state] for state in STATES},
            "expected": expected,
            "exit": exit_status,
            "failures": failures,
            "gates": {name: gates[name] for name in sorted(gates)},
        },
        "provenance": _ordered_provenance(plain(provenance)),
        "aggregates": plain(aggregates or {}),
        "rows": ordered,
        "run": _ordered_run(plain(run)),
    }


def validate(report: Mapping[str, Any]) -> list[str]:
    """What is wrong with ``report``, one readable line each (``path: message``); empty when nothing is.

    Rules about meaning (an interval holds its value, counts agree with the rows) are checked once the shape is right.
    """
    return schema_errors(report, "report.schema.json") or semantic_errors(report)


def _ordered_provenance(provenance: dict[str, Any]) -> dict[str, Any]:
    done = in_order(provenance, _PROVENANCE, ["git_commit"])
    for key, first in (("versions", ()), ("family", ("rows", "alpha_row"))):
        if isinstance(part := done.get(key), dict):
            done[key] = in_order(part, first)
    return done


def _ordered_run(run: dict[str, Any]) -> dict[str, Any]:
    done = in_order(run, _RUN)
    if isinstance(models := done.get("models"), dict):
        done["models"] = {
            name: in_order(facts, _MODEL_RUN) if isinstance(facts, dict) else facts for name, facts in models.items()
        }
    return done

"""The report as strict ``tl.eval-results.v1``: one row a model and task, its primary metric.

The primary metric is bits per byte where a task has it, then accuracy (``acc`` before ``acc_norm``), exact match, F1,
and otherwise the first gating one. ``ci95`` is what the format's reference computes where that differs from the
report's own interval: Student t and Wilson on tokens that are taken as independent, and Fisher's z.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalsuite.report.json_file import write_json
from evalsuite.report.rows import SCORED
from evalsuite.report.schema import schema_errors

FORMAT = "tl.eval-results.v1"
ARCHS = (
    *("bigram", "nplm", "word2vec", "rnnlm", "seq2seq", "transformer", "gpt", "bert", "electra", "llama", "elmo", "t5"),
)
"""The families the format knows; an n-gram is not among them and leaves ``tl_arch`` out."""

METRICS = {
    **{"bpb": "bpb", "acc": "accuracy", "acc_norm": "accuracy", "exact_match": "em", "token_f1": "f1"},
    **{name: name for name in ("accuracy", "em", "f1", "spearman", "ppl", "loss")},
}
"""Our metric names -> the format's, in the order of preference for the primary one; others are ``score``."""


def eval_results(
    report: Mapping[str, Any], *, manifest: str | None = None, created: str | None = None
) -> dict[str, Any]:
    """``report`` in the v1 format; ``created`` (UTC, RFC 3339) and ``manifest`` only when given."""
    pairs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in report["rows"]:
        if row["state"] != "deselected":
            pairs.setdefault((row["model"], row["task"]), []).append(row)
    head = {"format": FORMAT, "suite": report["suite"], "seed": report["provenance"]["seed"]}
    given = {"manifest": manifest, "created": created}
    extra = {key: value for key, value in given.items() if value is not None}
    return head | extra | {"rows": [_v1_row(_primary(rows)) for rows in pairs.values()]}


def validate_v1(report: Mapping[str, Any]) -> list[str]:
    """What ``report`` breaks in the v1 schema, as ``path: message`` lines."""
    return schema_errors(report, "eval-results.schema.json")


def write_v1(report: Mapping[str, Any], path: str | Path) -> None:
    """Write a v1 report: JSON with indent 1 and a final newline, parents created."""
    write_json(report, path)


def _primary(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for metric in METRICS:
        for row in rows:
            if row["metric"] == metric:
                return row
    return next((row for row in rows if row["gating"]), rows[0])


def _v1_row(row: Mapping[str, Any]) -> dict[str, Any]:
    metric = METRICS.get(row["metric"], "score")
    if row["state"] not in SCORED or row["value"] is None:
        status = "skipped" if row["state"] == "skipped" else "error"
        reason = row["reason"] or f"{row['state']}: no value"
        return {"model": row["model"], "task": row["task"], "metric": metric} | {
            "status": status,
            "value": None,
            "reason": reason,
        }
    source = row["source"]
    facts = {
        "model": row["model"],
        "checkpoint": source["checkpoint"],
        "task": row["task"],
        "tl_arch": source["tl_arch"] if source["tl_arch"] in ARCHS else None,
        "metric": metric,
        "value": row["value"],
        "ci95": row["v1_ci95"] or row["ci95"],
        "n": row["n"],
        "decode": source["decode"],
        "beam": source["beam"],
        "higher_is_better": row["higher_is_better"],
        "params": source["params"],
        "status": "ok",
    }
    return {key: value for key, value in facts.items() if value is not None}

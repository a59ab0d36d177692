"""The first seed's zoo: ``run_zoo(manifest, rng)`` gives the strict v1 report without pytest.

One row an entry (one an entry and task where an entry names task files), in manifest order. A row that cannot be
scored stays in the table: an exception is ``status: "error"`` with its type and message, a family without a scorer
``status: "skipped"``, and the rest of the zoo is still scored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalsuite.measure import UnscoredError, failure, load, measure_task
from evalsuite.report.eval_results import ARCHS, FORMAT, METRICS, write_v1
from evalsuite.stats import PCG32
from evalsuite.tasks.task import METRICS_OF_KIND, Task, read_task
from evalsuite.zoo.checkpoint import kind_of, read_config
from evalsuite.zoo.manifest import Entry, read_manifest


def run_zoo(manifest: str | os.PathLike[str], rng: PCG32, seed: int = 0) -> dict[str, Any]:
    """Score every entry of a manifest.

    Args:
        manifest: path of ``zoo.json``; paths inside are relative to its folder.
        rng: generator of the rows that draw, shared by all of them in row order.
        seed: label of the report, at least 0. It seeds nothing.

    Returns:
        A report that satisfies ``tl.eval-results.v1``.

    Raises:
        ValueError: the manifest cannot be read, or lists no models; or the seed is negative.
    """
    if seed < 0:
        raise ValueError(f"seed {seed}: a report has a seed of at least 0")
    path = Path(manifest)
    raw = read_manifest(path)
    rows = [row for entry in raw["models"] for row in _rows(entry, path.resolve().parent, rng)]
    return {
        "format": FORMAT,
        "suite": raw.get("suite", "zoo"),
        "seed": int(seed),
        "manifest": os.fspath(manifest),
        "rows": rows,
    }


def score_entry(entry: Mapping[str, Any], base: str | os.PathLike[str], rng: PCG32) -> dict[str, Any]:
    """The row of one entry with one task, of status ok.

    Args:
        entry: ``id``, ``dir``, ``task``, ``data`` and fields by kind; see the manifest's documentation.
        base: the folder that ``dir`` and ``data`` are relative to.
        rng: generator of the rows that draw.

    Raises:
        KeyError: "no zoo scorer for ..." for a family that cannot be scored, or a field that is missing.
        ValueError: a broken checkpoint, or data that does not fit.
    """
    root = Path(base)
    kind = kind_of(read_config(root / entry["dir"]))
    metric = METRICS_OF_KIND[kind][0]
    task = Task(str(entry["task"]), kind, root / entry["data"], (metric,), (metric,))
    return _score(Entry(str(entry["id"]), entry, root), task, rng)


def write_report(report: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a v1 report: JSON with indent 1 and a final newline, parents created.

    Raises:
        ValueError: the report holds a NaN or an infinity, which JSON cannot.
    """
    write_v1(report, Path(path))


def _rows(entry: Any, root: Path, rng: PCG32) -> Iterator[dict[str, Any]]:
    fields = entry if isinstance(entry, dict) else {}
    if "tasks" not in fields:
        try:
            yield score_entry(entry, root, rng)
        except Exception as error:  # every fault of an entry is a row with a reason
            yield _unscored(fields, failure(error))
        return
    names = fields["tasks"]
    if not isinstance(names, list) or not names:
        yield _unscored(fields, failure(ValueError(f'"tasks" is {names!r}, expected a list of task files')))
        return
    for name in names:
        one = fields | {"task": name}
        try:
            task = read_task(_tasks_folder(root) / f"{name}.json")
            primary = METRICS_OF_KIND[task.kind][0]
            yield _score(Entry(str(fields["id"]), fields, root), replace(task, metrics=(primary,)), rng)
        except Exception as error:
            yield _unscored(one, failure(error))


def _tasks_folder(root: Path) -> Path:
    """Task files lie in ``tasks/`` beside the manifest's folder, as the suite's default options have them."""
    return root.parent / "tasks"


def _score(entry: Entry, task: Task, rng: PCG32) -> dict[str, Any]:
    loaded = load(entry)
    (row,) = measure_task(loaded, entry, task, rng).values()
    interval = row.v1_interval or (row.lo, row.hi)
    facts = {
        "model": entry.name,
        "checkpoint": entry.raw["dir"],
        "task": task.name,
        "tl_arch": row.source["tl_arch"] if row.source["tl_arch"] in ARCHS else None,
        "metric": METRICS[row.metric],
        "value": row.value,
        "ci95": list(interval),
        "n": row.n,
        "decode": row.source.get("decode"),
        "beam": row.source.get("beam"),
        "higher_is_better": row.higher_is_better,
        "params": row.source["params"],
        "status": "ok",
    }
    return {key: value for key, value in facts.items() if value is not None}


def _unscored(entry: Mapping[str, Any], why: UnscoredError) -> dict[str, Any]:
    return {
        "model": str(entry.get("id") or "?"),
        "task": str(entry.get("task") or "?"),
        "metric": METRICS.get(str(entry.get("metric")), "score"),
        "status": why.state,
        "value": None,
        "reason": why.reason,
    }

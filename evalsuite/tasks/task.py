"""A task: data, its kind, the metrics it yields and which of them gate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

METRICS_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "lm": ("bpb", "ppl", "nll"),
    "choices": ("acc", "acc_norm"),
    "seq2seq": ("exact_match",),
    "classifier": ("accuracy",),
    "mlm": ("accuracy",),
    "rtd": ("accuracy", "generator_accuracy", "majority_share"),
    "embeddings": ("spearman",),
}
"""What a task of each kind can yield, the primary metric first."""

GATING_OF_KIND: Mapping[str, tuple[str, ...]] = {
    kind: metrics if kind == "choices" else metrics[:1] for kind, metrics in METRICS_OF_KIND.items()
}
"""Of metrics that are functions of each other (bpb, ppl, nll) one gates; the others inform."""

_SENTENCES = ("split", "cls_id", "sep_id", "pad_id")

SETTINGS_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "lm": ("ctx_len", "stride", "n_bytes", "tokenizer"),
    "choices": (),
    "seq2seq": ("bos", "eos", "pad_id", "beam", "max_len"),
    "classifier": _SENTENCES,
    "mlm": (*_SENTENCES, "mask_id", "p"),
    "rtd": (*_SENTENCES, "p"),
    "embeddings": (),
}
"""What a task of each kind can set; an entry of the zoo overrides it."""

SCHEMA = Path(__file__).with_name("task.schema.json")


@dataclass(frozen=True)
class Task:
    """What a model is scored on.

    Attributes:
        name: the task's part of a row id.
        kind: ``lm`` (a token stream), ``choices`` (multiple choice), ``seq2seq`` (pairs of sequences),
            ``classifier``, ``mlm`` and ``rtd`` (labelled sentences) or ``embeddings`` (word pairs).
        data: the data file.
        metrics: the rows the task yields, in order.
        gating: the metrics among them that can turn a build red by being worse.
        min_drop: drops of at most this never fail, by metric; the metric's default where it is absent.
        settings: fields by kind (``ctx_len``, ``beam``, ``split`` ...); an entry of the zoo overrides them.
    """

    name: str
    kind: str
    data: Path
    metrics: tuple[str, ...]
    gating: tuple[str, ...]
    min_drop: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def read_task(path: Path) -> Task:
    """Read a task file, ``tasks/<name>.json``.

    Raises:
        ValueError: the file is absent, is not JSON or breaks the schema; the message names the file and the place.
    """
    from jsonschema import Draft202012Validator

    try:
        raw = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        known = ", ".join(task_names(path.parent)) or "none"
        raise ValueError(f"{path}: cannot read the task file ({error.strerror}); tasks there: {known}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    for fault in Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).iter_errors(raw):
        where = "/".join(str(part) for part in fault.absolute_path) or "top level"
        raise ValueError(f"{path}: {where}: {fault.message}")
    kind = raw["kind"]
    metrics = tuple(raw.get("metrics", METRICS_OF_KIND[kind]))
    gating = tuple(raw.get("gating", [metric for metric in GATING_OF_KIND[kind] if metric in metrics]))
    min_drop, settings = raw.get("min_drop", {}), raw.get("settings", {})
    for key, names, known_names in (
        ("metrics", metrics, METRICS_OF_KIND[kind]),
        ("gating", gating, metrics),
        ("min_drop", tuple(min_drop), metrics),
        ("settings", tuple(settings), SETTINGS_OF_KIND[kind]),
    ):
        if unknown := [name for name in names if name not in known_names]:
            known_text = ", ".join(known_names) or f"the {key} of kind {kind!r}, which has none"
            raise ValueError(f"{path}: {key}: {unknown[0]!r} is none of {known_text}")
    return Task(path.stem, kind, path.parent / raw["data"], metrics, gating, min_drop, settings)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def task_names(folder: Path) -> list[str]:
    """Names of the task files in a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []

"""Task files: what they mean, and what is wrong with a bad one, by file and place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalsuite.tasks.task import read_task, task_names

LM = {"format": "evalsuite.task.v1", "kind": "lm", "data": "prose/heldout.bin"}


def write(folder: Path, task: Any, name: str = "prose") -> Path:
    path = folder / f"{name}.json"
    path.write_text(task if isinstance(task, str) else json.dumps(task))
    return path


def test_defaults(tmp_path: Path) -> None:
    task = read_task(write(tmp_path, LM))
    assert (task.name, task.kind, task.data) == ("prose", "lm", tmp_path / "prose" / "heldout.bin")
    assert (task.metrics, task.gating) == (("bpb", "ppl", "nll"), ("bpb",))
    assert (dict(task.min_drop), dict(task.settings)) == ({}, {})
    quiz = read_task(write(tmp_path, LM | {"kind": "choices", "data": "q.jsonl"}, "quiz"))
    assert (quiz.metrics, quiz.gating) == (("acc", "acc_norm"), ("acc", "acc_norm"))


def test_everything_set(tmp_path: Path) -> None:
    facts = {
        "description": "Held-out prose",
        "metrics": ["nll", "bpb"],
        "gating": [],
        "min_drop": {"nll": 0.01},
        "settings": {"ctx_len": 64, "stride": 32, "n_bytes": 999, "tokenizer": "file"},
    }
    task = read_task(write(tmp_path, LM | facts))
    assert (task.metrics, task.gating) == (("nll", "bpb"), ())
    assert task.min_drop == {"nll": 0.01}
    assert task.settings == facts["settings"]


def test_the_default_gate_is_among_the_metrics(tmp_path: Path) -> None:
    assert read_task(write(tmp_path, LM | {"metrics": ["ppl"]})).gating == ()


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        ({"kind": "code"}, "kind", "'code' is not one of"),
        ({"format": "v0"}, "format", "'evalsuite.task.v1' was expected"),
        ({"data": ""}, "data", ""),
        ({"data": 5}, "data", "5 is not of type 'string'"),
        ({"metrics": []}, "metrics", ""),
        ({"metrics": ["bpb", "bpb"]}, "metrics", "has non-unique elements"),
        ({"metrics": ["acc"]}, "metrics", "'acc' is none of bpb, ppl, nll"),
        ({"gating": ["acc"]}, "gating", "'acc' is none of bpb, ppl, nll"),
        ({"metrics": ["ppl"], "gating": ["bpb"]}, "gating", "'bpb' is none of ppl"),
        ({"min_drop": {"bpb": -1}}, "min_drop/bpb", "-1 is less than the minimum of 0"),
        ({"min_drop": {"acc": 0.1}}, "min_drop", "'acc' is none of bpb, ppl, nll"),
        ({"min_drop": 0.1}, "min_drop", "is not of type 'object'"),
        ({"settings": {"ctx_len": 1}}, "settings/ctx_len", "1 is less than the minimum of 2"),
        ({"settings": {"window": 1}}, "settings", "'window' was unexpected"),
        ({"tokens": 1}, "top level", "'tokens' was unexpected"),
    ],
)
def test_a_bad_field_is_named(tmp_path: Path, change: dict[str, Any], where: str, what: str) -> None:
    path = write(tmp_path, LM | change)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {where}: .*{re.escape(what)}"):
        read_task(path)


@pytest.mark.parametrize("key", ["format", "kind", "data"])
def test_a_missing_field_is_named(tmp_path: Path, key: str) -> None:
    path = write(tmp_path, {name: value for name, value in LM.items() if name != key})
    with pytest.raises(ValueError, match=f"top level: '{key}' is a required property"):
        read_task(path)


@pytest.mark.parametrize("text", ["", "{", "\ufeff{}"])
def test_not_json(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: not JSON"):
        read_task(path)


def test_not_an_object(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"top level: .* is not of type 'object'"):
        read_task(write(tmp_path, "[]"))


def test_an_absent_file_lists_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read the task file \(No such file or directory\); tasks there: none"):
        read_task(tmp_path / "quiz.json")
    write(tmp_path, LM, "b")
    write(tmp_path, LM, "a")
    with pytest.raises(ValueError, match=r"tasks there: a, b$"):
        read_task(tmp_path / "quiz.json")


def test_task_names(tmp_path: Path) -> None:
    assert task_names(tmp_path / "absent") == []
    write(tmp_path, LM, "b")
    write(tmp_path, LM, "a")
    (tmp_path / "NOTICE.md").write_text("")
    assert task_names(tmp_path) == ["a", "b"]

"""The first seed's zoo: one strict v1 row an entry, whatever is wrong with it."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evalsuite.report.eval_results import validate_v1
from evalsuite.report.schema import load_schema
from evalsuite.run_zoo import run_zoo, score_entry, write_report
from evalsuite.stats import PCG32, mean_ci
from evalsuite.tasks.tokens import write_tokens
from evalsuite.zoo.families import bigram, nplm

torch.set_num_threads(1)


@pytest.fixture
def zoo(template: Path, tmp_path: Path) -> Path:
    """The small project with a uniform bigram, an NPLM and a folder of a family nobody scores."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    models = tmp_path / "models"
    bigram.save(bigram.BigramLM(np.zeros((256, 256), np.float32)), models / "uniform")
    torch.manual_seed(0)
    nplm.save(nplm.NPLM(nplm.NPLMConfig(256, 3, 4, 4, False)), models / "nplm")
    for name, config in (("elmo", {"tl_arch": "elmo"}), ("head", {"tl_arch": "elmo", "tl_head": {"kind": "sequence"}})):
        (models / name).mkdir()
        (models / name / "config.json").write_text(json.dumps(config))
    return models


PROSE = {"task": "prose", "data": "../tasks/prose/heldout.bin"}


def run(models: Path, *entries: Any, **facts: Any) -> list[dict[str, Any]]:
    """The rows of a zoo of these entries; every report is valid and survives JSON."""
    path = models / "zoo.json"
    path.write_text(json.dumps({"models": list(entries)} | facts))
    report = run_zoo(path, PCG32(0))
    assert validate_v1(report) == []
    written = models / "out" / "eval-results.json"
    write_report(report, written)
    assert json.loads(written.read_text()) == report
    rows: list[dict[str, Any]] = report["rows"]
    return rows


def only(models: Path, entry: Any) -> dict[str, Any]:
    (row,) = run(models, entry)
    return row


# --- ok rows


def test_a_uniform_bigram_is_eight_bits(zoo: Path) -> None:
    row = only(zoo, {"id": "u", "dir": "uniform", **PROSE})
    n = row.pop("n")
    assert row == {
        "model": "u",
        "checkpoint": "uniform",
        "task": "prose",
        "tl_arch": "bigram",
        "metric": "bpb",
        "value": 8.0,
        "ci95": [8.0, 8.0],
        "higher_is_better": False,
        "status": "ok",
    }
    assert n == (zoo.parent / "tasks" / "prose" / "heldout.bin").stat().st_size // 2 - 512 - 1


@pytest.mark.parametrize(
    ("entry", "first", "arch", "counts_parameters"),
    [
        ({"id": "b", "dir": "bigram"}, 1, "bigram", False),
        ({"id": "k", "dir": "kn3/model.safetensors"}, 0, None, False),
        ({"id": "k", "dir": "kn3"}, 0, None, False),
        ({"id": "n", "dir": "nplm"}, 3, "nplm", True),
        ({"id": "g", "dir": "gpt", "ctx_len": 16, "stride": 4}, 1, "gpt", True),
    ],
    ids=["bigram", "ngram file", "ngram folder", "nplm", "gpt"],
)
def test_value_and_interval_of_each_family(
    zoo: Path, entry: dict[str, Any], first: int, arch: str | None, counts_parameters: bool
) -> None:
    from evalsuite.tasks.tokens import read_tokens
    from evalsuite.zoo.checkpoint import lm_token_nlls, load_model, read_config

    row = only(zoo, entry | PROSE)
    folder = zoo / entry["dir"]
    ids = read_tokens(zoo.parent / "tasks" / "prose" / "heldout.bin").ids
    config = read_config(folder)
    nll = lm_token_nlls(load_model(folder), str(config["tl_arch"]), config, ids, entry)
    mean, lo, hi = mean_ci(nll)
    n = len(ids) - first
    scale = n / (n * math.log(2))  # a token is a byte
    assert row["n"] == n == len(nll)
    assert row["ci95"] == [lo * scale, hi * scale]
    assert row["value"] == pytest.approx(mean * scale, rel=1e-12)
    assert row.get("tl_arch") == arch  # an n-gram is not in the format's list
    assert ("params" in row) == counts_parameters


def test_bytes_of_a_file_tokenizer(zoo: Path) -> None:
    entry = {"id": "u", "dir": "uniform", "tokenizer": "file", **PROSE}
    row = only(zoo, entry | {"n_bytes": 1000})
    assert row["value"] == pytest.approx(8 * row["n"] / 1000)
    assert row["ci95"] == pytest.approx([8 * row["n"] / 1000] * 2)
    assert "bpb needs the byte count" in only(zoo, entry)["reason"]


def test_task_files_give_a_row_each(zoo: Path) -> None:
    rows = run(zoo, {"id": "k", "dir": "kn3/model.safetensors", "tasks": ["quiz", "prose", "gone"]})
    assert [(row["task"], row["metric"], row["status"]) for row in rows] == [
        ("quiz", "accuracy", "ok"),
        ("prose", "bpb", "ok"),
        ("gone", "score", "error"),
    ]
    assert rows[0]["higher_is_better"] is True
    assert rows[0]["n"] == 30
    assert rows[2]["reason"].startswith("ValueError: ")
    assert "tasks there: prose, quiz" in rows[2]["reason"]


# --- rows without a value


def test_every_fault_is_a_row_and_the_rest_is_scored(zoo: Path) -> None:
    good = {"id": "u", "dir": "uniform", **PROSE}
    rows = run(zoo, good | {"id": "gone", "dir": "gone"}, good | {"id": "l", "dir": "elmo"}, good)
    gone = f"{(zoo / 'gone').resolve()}: no such directory"
    assert rows[0] == {
        "model": "gone",
        "task": "prose",
        "metric": "score",
        "status": "error",
        "value": None,
        "reason": f"ValueError: {gone}; a checkpoint directory holds config.json and model.safetensors",
    }
    assert rows[1] == {
        "model": "l",
        "task": "prose",
        "metric": "score",
        "status": "skipped",
        "value": None,
        "reason": "no zoo scorer for tl_arch 'elmo'",
    }
    assert rows[2]["status"] == "ok"


U = {"dir": "uniform", **PROSE}
HEADLESS = "no zoo scorer for a head on tl_arch 'elmo'; one sits on bert, electra, gpt"


@pytest.mark.parametrize(
    ("entry", "names", "status", "reason"),
    [
        (U, ("?", "prose", "score"), "error", "KeyError: id"),
        (U | {"id": "h", "dir": "head"}, ("h", "prose", "score"), "skipped", HEADLESS),
        ({"id": "a", "dir": "uniform"}, ("a", "?", "score"), "error", "KeyError: task"),
        ({"id": "a", "dir": "uniform", "task": "t"}, ("a", "t", "score"), "error", "KeyError: data"),
        ({"id": "a"}, ("a", "?", "score"), "error", "KeyError: dir"),
        (5, ("?", "?", "score"), "error", "TypeError: 'int' object is not subscriptable"),
        ([], ("?", "?", "score"), "error", "TypeError: list indices must be integers or slices, not str"),
        (U | {"id": 5, "dir": "elmo"}, ("5", "prose", "score"), "skipped", "no zoo scorer for tl_arch 'elmo'"),
        (U | {"id": "a", "dir": "elmo", "task": ["t"]}, ("a", "['t']", "score"), "skipped", None),
        (U | {"id": "a", "dir": "elmo", "metric": "spearman"}, ("a", "prose", "spearman"), "skipped", None),
        (U | {"id": "a", "dir": "elmo", "metric": "exact_match"}, ("a", "prose", "em"), "skipped", None),
        (U | {"id": "a", "dir": "elmo", "metric": "shine"}, ("a", "prose", "score"), "skipped", None),
        (
            {"id": "a", "tasks": []},
            ("a", "?", "score"),
            "error",
            'ValueError: "tasks" is [], expected a list of task files',
        ),
        (
            {"id": "a", "tasks": None},
            ("a", "?", "score"),
            "error",
            'ValueError: "tasks" is None, expected a list of task files',
        ),
    ],
)
def test_names_and_reasons(zoo: Path, entry: Any, names: tuple[str, str, str], status: str, reason: str | None) -> None:
    row = only(zoo, entry)
    assert (row["model"], row["task"], row["metric"]) == names
    assert row["status"] == status
    assert row["value"] is None
    if reason is not None:
        assert row["reason"] == reason


def test_an_integer_id_is_a_name(zoo: Path) -> None:
    assert only(zoo, U | {"id": 7})["model"] == "7"


def test_a_damaged_checkpoint_and_damaged_data(zoo: Path) -> None:
    weights = zoo / "bigram" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    (zoo / "short.bin").write_bytes(b"123")
    rows = run(zoo, {"id": "b", "dir": "bigram", **PROSE}, U | {"id": "u", "data": "short.bin"}, U | {"id": "ok"})
    assert [row["status"] for row in rows] == ["error", "error", "ok"]
    assert str(weights) in rows[0]["reason"]
    assert "3 bytes are too few for a token file" in rows[1]["reason"]


def test_data_of_another_tokenizer(zoo: Path) -> None:
    write_tokens(zoo / "wide.bin", [1, 2, 300])
    row = only(zoo, U | {"id": "u", "data": "wide.bin"})
    assert row["reason"].startswith("ValueError: token 2 of the data is 300, but the model's vocabulary has 256")


# --- the report


def test_the_report_says_where_it_is_from(zoo: Path) -> None:
    path = zoo / "zoo.json"
    path.write_text(json.dumps({"suite": "mine", "models": []}))
    assert run_zoo(path, PCG32(0), seed=3) == {
        "format": "tl.eval-results.v1",
        "suite": "mine",
        "seed": 3,
        "manifest": str(path),
        "rows": [],
    }
    path.write_text(json.dumps({"models": []}))
    assert run_zoo(str(path), PCG32(0))["suite"] == "zoo"


def test_rows_are_in_manifest_order(zoo: Path) -> None:
    rows = run(zoo, *({"id": name, "dir": "elmo", **PROSE} for name in "zamb"))
    assert [row["model"] for row in rows] == list("zamb")


@pytest.mark.parametrize("text", ["{}", '{"models": 3}', "[]", "no", '{"models": [], "suite": "Not Valid"}'])
def test_a_manifest_that_cannot_be_read_raises(zoo: Path, text: str) -> None:
    (zoo / "zoo.json").write_text(text)
    with pytest.raises(ValueError, match=r"zoo.json"):
        run_zoo(zoo / "zoo.json", PCG32(0))
    with pytest.raises(ValueError, match="cannot read the manifest"):
        run_zoo(zoo / "gone.json", PCG32(0))


def test_the_file_has_indent_1_and_a_final_newline(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "r.json"
    report = {"format": "tl.eval-results.v1", "rows": [{"reason": "Größe"}], "x": 0.1 + 0.2}
    write_report(report, path)
    assert path.read_text(encoding="utf-8") == json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_report({"x": math.nan}, path)
    assert json.loads(path.read_text()) == report  # the old file is whole


def test_score_entry_raises_what_the_row_would_say(zoo: Path) -> None:
    assert score_entry(U | {"id": "u"}, zoo, PCG32(0))["value"] == 8.0
    with pytest.raises(KeyError, match="no zoo scorer for tl_arch 'elmo'"):
        score_entry(U | {"id": "l", "dir": "elmo"}, zoo, PCG32(0))
    with pytest.raises(ValueError, match="no such directory"):
        score_entry(U | {"id": "l", "dir": "gone"}, str(zoo), PCG32(0))


def test_the_schema_is_the_seeds() -> None:
    schema = load_schema("eval-results.schema.json")
    assert schema["$id"] == "tl.eval-results.v1"
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["row"]["additionalProperties"] is False
    assert schema["$defs"]["row"]["required"] == ["model", "task", "metric", "status"]

"""The first seed's `run_zoo` on every family: the strict v1 rows, and one generator for all rows that draw."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evalsuite.report.eval_results import validate_v1
from evalsuite.stats import PCG32
from evalsuite.tasks.tokens import write_tokens
from evalsuite.zoo import run_zoo, score_entry
from tests.family_project import TASK_OF, entry, write_families


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest."""
    root = tmp_path_factory.mktemp("run-zoo")
    write_families(root)
    (root / "tasks" / "prose").mkdir()
    text = np.frombuffer(b"the cat sees the dog. " * 20, np.uint8)
    write_tokens(root / "tasks" / "prose" / "heldout.bin", text, 256)
    return root / "models" / "zoo.json"


def test_the_v1_report_names_each_family_and_metric(zoo: Path) -> None:
    zoo.write_text(json.dumps({"models": [entry(model) for model in TASK_OF]}))
    report = run_zoo(zoo, PCG32(0))
    assert validate_v1(report) == []
    assert [(row["model"], row["tl_arch"], row["metric"], row["status"]) for row in report["rows"]] == [
        ("seq2seq", "seq2seq", "em", "ok"),
        ("transformer", "transformer", "em", "ok"),
        ("classifier", "bert", "accuracy", "ok"),
        ("bert", "bert", "accuracy", "ok"),
        ("electra", "electra", "accuracy", "ok"),
        ("word2vec", "word2vec", "spearman", "ok"),
        ("llama", "llama", "bpb", "ok"),
        ("gpt", "gpt", "bpb", "ok"),
    ]
    assert [(row.get("decode"), row.get("beam")) for row in report["rows"][:3]] == [
        ("beam", 2),
        ("beam", 2),
        (None, None),
    ]
    assert ["params" in row for row in report["rows"]] == [True] * 5 + [False, True, True]


def test_rows_of_run_zoo_share_one_generator(zoo: Path) -> None:
    """As the first seed has it: the second row that draws continues where the first one stopped."""

    def hidden(*models: str) -> list[int]:
        """How many tokens were hidden in each row."""
        zoo.write_text(json.dumps({"models": [entry(model) for model in models]}))
        return [row["n"] for row in run_zoo(zoo, PCG32(5))["rows"]]

    both, alone = hidden("bert", "bert"), hidden("bert")
    assert both[0] == alone[0]
    assert both[1] != both[0]


def test_score_entry_draws_from_the_generator_it_is_given(zoo: Path) -> None:
    def drawn(seed: int) -> int:
        """How many tokens were hidden."""
        return int(score_entry(entry("bert"), zoo.parent, PCG32(seed))["n"])

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(4)}) > 1


def test_rows_of_task_files_draw_too(zoo: Path) -> None:
    task = {"format": "evalsuite.task.v1", "kind": "mlm", "data": "rows.tsv", "settings": {"p": 0.3}}
    (zoo.parents[1] / "tasks" / "hidden.json").write_text(json.dumps(task))
    zoo.write_text(json.dumps({"models": [{"id": "b", "dir": "bert", "tasks": ["hidden"]}] * 2}))
    one, two = run_zoo(zoo, PCG32(5), seed=3)["rows"]
    assert (one["model"], one["task"], one["metric"], one["status"]) == ("b", "hidden", "accuracy", "ok")
    assert one["n"] != two["n"]

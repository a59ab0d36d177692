"""A zoo with every family: a row each in one report, whatever the number of workers and whoever else is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evalsuite.report.eval_results import validate_v1
from evalsuite.stats import PCG32
from evalsuite.zoo import run_zoo, save_word2vec
from evalsuite.zoo.families import bert, classifier, electra, gpt, llama, seq2seq, transformer
from tests.zoo_project import Project

pytest_plugins = ["pytester"]

SENTENCES = [f"{a} {b} is {c}" for a in ("the", "a") for b in ("cat", "dog", "tree") for c in ("tall", "old", "here")]
FIELDS: dict[str, dict[str, Any]] = {
    "pairs": {"task": "pairs", "data": "../tasks/pairs.jsonl", "bos": 1, "eos": 2, "beam": 2},
    "labels": {"task": "labels", "data": "../tasks/rows.tsv"},
    "masked": {"task": "masked", "data": "../tasks/rows.tsv", "p": 0.3},
    "replaced": {"task": "replaced", "data": "../tasks/rows.tsv", "p": 0.3},
    "words": {"task": "words", "data": "../tasks/words.tsv"},
    "prose": {"task": "prose", "data": "../tasks/prose/heldout.bin"},
}
TASK_OF = {
    **{"seq2seq": "pairs", "transformer": "pairs", "classifier": "labels", "bert": "masked", "electra": "replaced"},
    **{"word2vec": "words", "llama": "prose", "gpt": "prose"},
}
PRIMARY = {
    "pairs": "exact_match",
    "labels": "accuracy",
    "masked": "accuracy",
    "replaced": "accuracy",
    "words": "spearman",
    "prose": "bpb",
}
ROWS = [f"{model}--{task}--{PRIMARY[task]}" for model, task in TASK_OF.items()]


def entry(model: str) -> dict[str, Any]:
    """A model in the form of the first seed's manifest: its task and settings in the entry."""
    return {"id": model, "dir": model, **FIELDS[TASK_OF[model]]}


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of every family with random weights, and data of every kind."""
    folder = tmp_path_factory.mktemp("families")
    models, tasks = folder / "models", folder / "tasks"
    tasks.mkdir()
    torch.manual_seed(3)
    seq2seq.save(seq2seq.Seq2Seq(seq2seq.Seq2SeqConfig(9, 9, "gru", 4, 8, "bahdanau", 4)), models / "seq2seq")
    sizes = transformer.TransformerConfig(9, 9, 8, 2, 8, 1, 1, "post", True, 12)
    transformer.save(transformer.Transformer(sizes), models / "transformer")
    small = bert.BertConfig(256, 24, 8, 2, 1, 16, 2)
    bert.save(bert.BertForMLM(small), models / "bert")
    electra.save(electra.Electra(electra.ElectraConfig(small, small, True, 3, (0, 1, 2))), models / "electra")
    head = classifier.ClassifierConfig("bert", small, ("no", "yes"), "mean")
    classifier.save(classifier.Classifier(head), models / "classifier")
    shape = llama.LlamaConfig(
        vocab_size=256, hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32, tie_word_embeddings=True,
    )  # fmt: skip
    llama.save(llama.Llama(shape), models / "llama")
    gpt.save(gpt.GPT(gpt.GPTConfig(256, 32, 8, 2, 1, 16)), models / "gpt")
    words = [f"w{number}" for number in range(12)]
    save_word2vec(np.random.default_rng(3).normal(size=(12, 4)), words, models / "word2vec")

    rng = np.random.default_rng(4)
    pairs = [{"src": rng.integers(3, 9, 4).tolist(), "tgt": rng.integers(3, 9, 3).tolist()} for _ in range(12)]
    (tasks / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    rows = [f"{'val' if at % 3 else 'train'}\t{text}\t{at % 2}\n" for at, text in enumerate(SENTENCES)]
    (tasks / "rows.tsv").write_text("split\tsentence\tlabel\n" + "".join(rows))
    near = [f"{a}\t{b}\t{rng.random():.3f}\n" for at, a in enumerate(words) for b in words[at + 1 : at + 4]]
    (tasks / "words.tsv").write_text("# first, second, score\n" + "".join(near))
    return folder


@pytest.fixture
def zoo(families: Path, project: Project) -> Project:
    """The small project with every family in it."""
    for part in ("models", "tasks"):
        target = project.path / part
        for source in (families / part).rglob("*"):
            if source.is_file():
                place = target / source.relative_to(families / part)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(source.read_bytes())
    project.manifest(*(entry(model) for model in TASK_OF))
    return project


def test_one_row_a_family_whoever_else_is_there(zoo: Project) -> None:
    recorded = zoo.suite("-n0", "--snapshot-update")
    assert recorded.exit == 0, recorded.text
    assert set(ROWS) <= recorded.rows.keys()
    assert {row["interval"] for row in recorded.rows.values()} == {
        *("wilson", "wilson-clustered", "bonett-wright", "cluster-t"),
    }

    zoo.manifest(*(entry(model) for model in reversed(TASK_OF)))
    turned = zoo.suite("-n2")
    assert turned.exit == 0, turned.text
    assert set(turned.states.values()) <= {"ok", "informing", "blind"}
    assert {row_id: row["value"] for row_id, row in turned.rows.items()} == {
        row_id: row["value"] for row_id, row in recorded.rows.items()
    }

    # Rows that draw do not depend on the rows before them.
    zoo.manifest(*(entry(model) for model in ("electra", "bert")))
    alone = zoo.suite("-n0", "--eval-model", "electra")
    assert alone.rows["electra--replaced--accuracy"]["value"] == recorded.rows["electra--replaced--accuracy"]["value"]
    assert alone.states["electra--replaced--accuracy"] in ("ok", "blind")

    # Another seed of the suite hides other tokens: no comparison is made up from that.
    other = zoo.suite("-n0", "--eval-model", "bert", "--eval-seed", "1")
    assert other.states["bert--masked--accuracy"] == "incomparable"


def test_the_v1_report_names_each_family_and_metric(zoo: Project) -> None:
    report = run_zoo(zoo.path / "models" / "zoo.json", PCG32(0))
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


def test_rows_of_run_zoo_share_one_generator(zoo: Project) -> None:
    """As the first seed has it: the second row that draws continues where the first one stopped."""
    manifest = zoo.path / "models" / "zoo.json"

    def hidden(*models: str) -> list[int]:
        """How many tokens were hidden in each row."""
        zoo.manifest(*(entry(model) for model in models))
        return [row["n"] for row in run_zoo(manifest, PCG32(5))["rows"]]

    both, alone = hidden("bert", "bert"), hidden("bert")
    assert both[0] == alone[0]
    assert both[1] != both[0]


def test_a_task_of_another_kind_is_an_error_that_says_so(zoo: Project) -> None:
    for name, kind, data in (("words", "embeddings", "words.tsv"), ("labels", "classifier", "rows.tsv")):
        fields = {"format": "evalsuite.task.v1", "kind": kind, "data": data}
        (zoo.path / "tasks" / f"{name}.json").write_text(json.dumps(fields))
    zoo.manifest({"id": "bert", "dir": "bert", "tasks": ["words"]}, {"id": "w", "dir": "word2vec", "tasks": ["words"]},
                 {"id": "c", "dir": "classifier", "tasks": ["words"]})  # fmt: skip
    ran = zoo.suite("-n0", "--snapshot-update")
    assert ran.states["w--words--spearman"] == "recorded"
    assert ran.rows["bert--words--spearman"]["reason"] == (
        "ValueError: the family bert is scored on tasks of kind mlm, and the task words is of kind embeddings: take "
        "the task out of the entry"
    )
    assert (
        "bert with a classifier head is scored on tasks of kind classifier" in ran.rows["c--words--spearman"]["reason"]
    )


def test_an_ad_hoc_checkpoint_is_scored_on_what_its_family_does(zoo: Project) -> None:
    for name, kind, data in (("words", "embeddings", "words.tsv"), ("labels", "classifier", "rows.tsv")):
        fields = {"format": "evalsuite.task.v1", "kind": kind, "data": data}
        (zoo.path / "tasks" / f"{name}.json").write_text(json.dumps(fields))
    (zoo.path / "models" / "classifier").rename(zoo.path / "mine")
    zoo.manifest("bigram")
    ran = zoo.suite("-n0", "--eval-checkpoint=mine", "--eval-model=mine")
    assert {row_id for row_id, state in ran.states.items() if state != "deselected"} == {"mine--labels--accuracy"}

"""A zoo with every family: a row each in one report, whatever the number of workers and whoever else is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.family_project import ROWS, TASK_OF, entry, write_families
from tests.zoo_project import Project

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    write_families(folder)
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

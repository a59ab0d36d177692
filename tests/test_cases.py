"""Which rows a run owes: found from files alone, in manifest order, every broken part a row that says what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalsuite.cases import Case, discover

LM = {"format": "evalsuite.task.v1", "kind": "lm", "data": "prose.bin"}
QUIZ = {"format": "evalsuite.task.v1", "kind": "choices", "data": "quiz.jsonl"}
LM_ROWS = ["bpb", "ppl", "nll"]


class Zoo:
    """A folder with models/ and tasks/, of which only the small files are there."""

    def __init__(self, root: Path) -> None:
        self.models, self.tasks = root / "models", root / "tasks"
        self.models.mkdir()
        self.task("prose", LM)
        self.task("quiz", QUIZ)

    def task(self, name: str, task: Any, folder: Path | None = None) -> Path:
        path = (folder or self.tasks) / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(task if isinstance(task, str) else json.dumps(task))
        return path

    def checkpoint(self, name: str, arch: str = "gpt") -> Path:
        """A folder with a configuration and no weights."""
        folder = self.models / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"tl_arch": arch}))
        return folder

    def cases(self, *entries: Any, **more: Any) -> tuple[Case, ...]:
        (self.models / "zoo.json").write_text(json.dumps({"models": list(entries)}))
        return self.found(**more)

    def found(self, **more: Any) -> tuple[Case, ...]:
        return discover(self.models, self.tasks, **more)


@pytest.fixture
def zoo(tmp_path: Path) -> Zoo:
    return Zoo(tmp_path.resolve())


def ids(cases: tuple[Case, ...]) -> list[str]:
    return [case.row_id for case in cases]


def only(cases: tuple[Case, ...]) -> Case:
    assert len(cases) == 1, ids(cases)
    return cases[0]


# --- entries with task files


def test_manifest_order_then_task_order_then_metric_order(zoo: Zoo) -> None:
    found = zoo.cases(
        {"id": "z", "dir": "z", "tasks": ["quiz", "prose"]},
        {"id": "org/a@v1", "dir": "a", "tasks": ["prose"]},
    )
    assert ids(found) == [
        *("z--quiz--acc", "z--quiz--acc_norm"),
        *(f"z--prose--{metric}" for metric in LM_ROWS),
        *(f"org_a_v1--prose--{metric}" for metric in LM_ROWS),
    ]
    assert {case.problem for case in found} == {""}
    assert [case.gating for case in found] == [True, True, True, False, False, True, False, False]
    assert found[2].task.data == zoo.tasks / "prose.bin"
    assert not any(case.ad_hoc for case in found)


def test_an_entry_can_opt_out_of_the_gate(zoo: Zoo) -> None:
    assert not any(case.gating for case in zoo.cases({"id": "z", "dir": "z", "tasks": ["prose"], "gating": False}))


def test_min_drop_of_entry_before_task_before_metric(zoo: Zoo) -> None:
    zoo.task("prose", LM | {"min_drop": {"bpb": 0.01, "ppl": 0.5}})
    found = zoo.cases({"id": "z", "dir": "z", "tasks": ["prose"], "min_drop": {"bpb": 0.02}})
    assert [case.min_drop for case in found] == [0.02, 0.5, None]
    found = zoo.cases({"id": "z", "dir": "z", "tasks": ["prose"]})
    assert [case.min_drop for case in found] == [0.01, 0.5, None]


def test_a_task_file_with_a_revision_in_its_name(zoo: Zoo) -> None:
    zoo.task("prose@v2", LM)
    found = zoo.cases({"id": "z", "dir": "z", "tasks": ["prose@v2"]})
    assert ids(found) == [f"z--prose_v2--{metric}" for metric in LM_ROWS]


@pytest.mark.parametrize(
    ("name", "text", "row", "why"),
    [
        ("absent", None, "z--absent--score", "cannot read the task file (No such file or directory); tasks there: "),
        ("broken", "{", "z--broken--score", "broken.json: not JSON"),
        ("broken", json.dumps(LM | {"kind": "code"}), "z--broken--score", "kind: 'code' is not one of"),
        ("a b", json.dumps(LM), "z--unknown--score", "the name 'a b' must be made of"),
        ("x" * 71, json.dumps(LM), "z--unknown--score", "has 71 characters"),
    ],
)
def test_a_bad_task_file_is_one_row(zoo: Zoo, name: str, text: str | None, row: str, why: str) -> None:
    if text is not None:
        zoo.task(name, text)
    found = zoo.cases({"id": "z", "dir": "z", "tasks": [name, "quiz"]})
    assert ids(found) == [row, "z--quiz--acc", "z--quiz--acc_norm"]
    assert why in found[0].problem
    assert found[1].problem == ""


# --- bad entries


@pytest.mark.parametrize(
    ("entry", "row", "why"),
    [
        (5, "entry-1--unknown--score", "entry 1 of the manifest is int, not an object"),
        ({}, "entry-1--unknown--score", 'has no "id"'),
        ({"id": "a b", "dir": "x"}, "entry-1--unknown--score", "the name 'a b' must be"),
        ({"id": "a"}, "a--unknown--score", "entry 'a' has no \"dir\""),
        ({"id": "a", "dir": "x"}, "a--unknown--score", "entry 'a' names no task: give it"),
        ({"id": "a", "dir": "x", "tasks": []}, "a--unknown--score", "names no task"),
        ({"id": "a", "dir": "x", "tasks": "prose"}, "a--unknown--score", "names no task"),
        ({"id": "a", "dir": "x", "tasks": [1]}, "a--unknown--score", "names no task"),
        ({"id": "a", "dir": "x", "task": ""}, "a--unknown--score", "names no task"),
    ],
)
def test_a_bad_entry_is_one_row(zoo: Zoo, entry: Any, row: str, why: str) -> None:
    case = only(zoo.cases(entry))
    assert case.row_id == row
    assert why in case.problem


def test_all_rows_of_a_bad_entry_say_why(zoo: Zoo) -> None:
    found = zoo.cases({"id": "a", "tasks": ["quiz"]}, {"id": "b", "dir": "b", "tasks": ["quiz"]})
    assert ids(found) == ["a--quiz--acc", "a--quiz--acc_norm", "b--quiz--acc", "b--quiz--acc_norm"]
    assert ['no "dir"' in case.problem for case in found] == [True, True, False, False]


def test_a_name_taken_in_another_case(zoo: Zoo) -> None:
    found = zoo.cases({"id": "a", "dir": "a", "tasks": ["quiz"]}, {"id": "A", "dir": "b", "tasks": ["quiz"]})
    assert ids(found)[2:] == ["entry-2--quiz--acc", "entry-2--quiz--acc_norm"]
    assert [bool(case.problem) for case in found] == [False, False, True, True]


@pytest.mark.parametrize("names", [["quiz", "quiz"], ["quiz", "QUIZ"]])
def test_a_row_asked_for_twice_is_one_red_row(zoo: Zoo, names: list[str]) -> None:
    zoo.task(names[1], QUIZ)
    found = zoo.cases({"id": "a", "dir": "a", "tasks": names})
    assert ids(found) == ["a--quiz--acc", "a--quiz--acc_norm"]
    assert all("is asked for twice (case does not count)" in case.problem for case in found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot read the manifest"),
        ("{", "not JSON"),
        ('{"rows": []}', 'expected an object with a list "models"'),
        ('{"models": []}', "lists no model: nothing would be scored"),
    ],
)
def test_a_zoo_that_cannot_be_read_is_one_red_row(zoo: Zoo, text: str | None, why: str) -> None:
    if text is not None:
        (zoo.models / "zoo.json").write_text(text)
    case = only(zoo.found())
    assert case.row_id == "zoo--unknown--score"
    assert why in case.problem
    assert case.gating


# --- entries in the first seed's form


def test_a_seed_entry(zoo: Zoo) -> None:
    zoo.checkpoint("bigram", "bigram")
    found = zoo.cases({"id": "b", "dir": "bigram", "task": "held/out", "data": "../data/x.bin", "min_drop": {"ppl": 1}})
    assert ids(found) == [f"b--held_out--{metric}" for metric in LM_ROWS]
    assert [case.gating for case in found] == [True, False, False]
    assert [case.min_drop for case in found] == [None, 1.0, None]
    assert found[0].task.data == zoo.models / "../data/x.bin"
    assert {case.problem for case in found} == {""}


def test_a_seed_entry_of_an_unknown_family(zoo: Zoo) -> None:
    zoo.checkpoint("elmo", "elmo")
    case = only(zoo.cases({"id": "l", "dir": "elmo", "task": "sts", "data": "x.tsv", "metric": "spearman"}))
    assert (case.row_id, case.problem) == ("l--sts--spearman", "")  # measuring it says "no zoo scorer"
    case = only(zoo.cases({"id": "l", "dir": "elmo", "task": "sts", "data": "x.tsv"}))
    assert case.row_id == "l--sts--score"
    assert only(zoo.cases({"id": "l", "dir": "elmo", "task": "sts"})).problem == ""
    assert only(zoo.cases({"id": "l", "dir": "elmo", "task": "sts", "metric": "../f1"})).row_id == "l--sts--score"


def test_a_seed_entry_without_its_checkpoint_is_what_its_data_says(zoo: Zoo) -> None:
    found = zoo.cases({"id": "gone", "dir": "gone", "task": "prose", "data": "x.bin"})
    assert ids(found) == [f"gone--prose--{metric}" for metric in LM_ROWS]
    assert only(zoo.cases({"id": "gone", "dir": "gone", "task": "t", "data": "x.jsonl"})).row_id == "gone--t--score"


@pytest.mark.parametrize("data", [None, "", 5])
def test_a_seed_entry_without_data(zoo: Zoo, data: Any) -> None:
    zoo.checkpoint("bigram", "bigram")
    entry = {"id": "b", "dir": "bigram", "task": "prose"} | ({} if data is None else {"data": data})
    for case in zoo.cases(entry):
        assert case.problem == "entry 'b' has no \"data\", the file that its task 'prose' is scored on"


def test_a_seed_entry_with_a_bad_task_name(zoo: Zoo) -> None:
    found = zoo.cases({"id": "b", "dir": "b", "task": "a b", "data": "x.bin"})
    assert ids(found) == [f"b--unknown--{metric}" for metric in LM_ROWS]
    assert "the name 'a b' must be made of" in found[0].problem


# --- from the command line


def test_an_added_task_file_is_scored_by_every_model(zoo: Zoo, tmp_path: Path) -> None:
    extra = zoo.task("extra", LM | {"metrics": ["nll"]}, tmp_path.resolve() / "else")
    found = zoo.cases(
        {"id": "a", "dir": "a", "tasks": ["quiz"]}, {"id": "b", "dir": "b", "tasks": ["quiz"]}, task_files=(extra,)
    )
    quiz = ["quiz--acc", "quiz--acc_norm"]
    assert ids(found) == [f"{model}--{row}" for model in "ab" for row in [*quiz, "extra--nll"]]
    assert [case.ad_hoc for case in found] == [False, False, True] * 2
    assert not found[2].gating


def test_a_task_file_of_the_project_adds_nothing(zoo: Zoo) -> None:
    entry = {"id": "a", "dir": "a", "tasks": ["quiz"]}
    assert ids(zoo.cases(entry, task_files=(zoo.tasks / "prose.json",))) == ids(zoo.cases(entry))


def test_an_added_checkpoint_is_scored_on_what_it_can_do(zoo: Zoo) -> None:
    nplm, gpt = zoo.checkpoint("more/nplm", "nplm"), zoo.checkpoint("more/my-gpt", "gpt")
    found = zoo.found(checkpoints=(nplm, gpt))  # without a manifest too
    prose = [f"prose--{metric}" for metric in LM_ROWS]
    assert ids(found) == [f"nplm--{row}" for row in prose] + [
        f"my-gpt--{row}" for row in [*prose, "quiz--acc", "quiz--acc_norm"]
    ]
    assert all(case.ad_hoc and not case.gating and not case.problem for case in found)
    assert found[0].entry.directory == nplm


def test_an_added_checkpoint_joins_the_zoo(zoo: Zoo) -> None:
    gpt = zoo.checkpoint("more/gpt")
    found = zoo.cases(
        {"id": "a", "dir": "a", "tasks": ["quiz"]}, checkpoints=(gpt,), task_files=(zoo.tasks / "quiz.json",)
    )
    assert ids(found) == ["a--quiz--acc", "a--quiz--acc_norm", "gpt--quiz--acc", "gpt--quiz--acc_norm"]
    assert [case.ad_hoc for case in found] == [False, False, True, True]


def test_a_task_it_was_told_to_do_is_a_row_even_if_it_cannot(zoo: Zoo) -> None:
    nplm = zoo.checkpoint("more/nplm", "nplm")
    found = zoo.found(checkpoints=(nplm,), task_files=(zoo.tasks / "quiz.json",))
    assert ids(found) == ["nplm--quiz--acc", "nplm--quiz--acc_norm"]


def test_an_added_checkpoint_that_is_not_there_has_rows(zoo: Zoo, tmp_path: Path) -> None:
    assert len(zoo.found(checkpoints=(tmp_path / "gone",))) == 5


def test_an_added_checkpoint_with_a_taken_name(zoo: Zoo) -> None:
    twin = zoo.checkpoint("more/A")
    found = zoo.cases({"id": "a", "dir": "a", "tasks": ["quiz"]}, checkpoints=(twin,))
    assert ids(found)[:2] == ["a--quiz--acc", "a--quiz--acc_norm"]
    assert all(case.model == "A-checkpoint" for case in found[2:])
    assert {case.problem for case in found[2:]} == {
        f"{twin}: there is a model of the name 'a' already: rename the folder"
    }


@pytest.mark.parametrize("at", ["gpt", "gpt/model.safetensors"])
def test_an_added_checkpoint_that_the_zoo_has(zoo: Zoo, at: str) -> None:
    folder = zoo.checkpoint("gpt")
    for checkpoint in (folder, zoo.models / "more" / ".." / "gpt"):
        found = zoo.cases({"id": "gpt", "dir": at, "tasks": ["quiz"]}, checkpoints=(checkpoint,))
        assert {case.model for case in found[2:]} == {"gpt-checkpoint"}
        assert {case.problem for case in found[2:]} == {
            f"{checkpoint} is the model 'gpt' already: score it with --eval-model gpt instead"
        }


def test_an_added_checkpoint_and_no_task(zoo: Zoo) -> None:
    for path in zoo.tasks.iterdir():
        path.unlink()
    case = only(zoo.found(checkpoints=(zoo.checkpoint("more/gpt"),)))
    assert case.problem.startswith("no task to score ")
    assert case.row_id == "gpt--unknown--score"


# --- cost


def test_discovery_is_pure_and_loads_no_library(zoo: Zoo) -> None:
    zoo.checkpoint("gpt")
    entries = [{"id": "a", "dir": "gpt", "task": "t", "data": "x.bin"}, {"id": "b", "dir": "gpt", "tasks": ["prose"]}]
    here = zoo.cases(*entries)
    assert here == zoo.found()
    code = (
        "import sys, pathlib; from evalsuite.cases import discover\n"
        f"cases = discover(pathlib.Path({str(zoo.models)!r}), pathlib.Path({str(zoo.tasks)!r}))\n"
        "print(*[case.row_id for case in cases])\n"
        "print(*sorted({'torch', 'scipy', 'safetensors'} & sys.modules.keys()))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert there[0].split() == ids(here)
    assert there[1] == ""

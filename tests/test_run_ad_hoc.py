"""Cases of the command line: ``--eval-checkpoint`` and ``--eval-task FILE``."""

from __future__ import annotations

import json
import shutil

from tests.zoo_project import ENTRIES, LM_ROWS, Project, of_rows, row_ids

pytest_plugins = ["pytester"]


def test_a_checkpoint(recorded: Project) -> None:
    """It is scored on every task beside the zoo; recorded it informs, and runs without it do not miss it."""
    shutil.copytree(recorded.path / "models" / "gpt", recorded.path / "exp" / "step 9" / "mine")
    at = ("--eval-checkpoint", "exp/step 9/mine")
    ran = recorded.suite(*at)
    assert ran.exit == 0, ran.text
    mine = [row_id.replace("gpt", "mine", 1) for row_id in row_ids("gpt")]
    assert list(ran.rows) == [*row_ids(*ENTRIES), *mine]
    assert {ran.states[row_id] for row_id in mine} == {"informing"}
    assert not any(ran.rows[row_id]["gating"] for row_id in mine)

    before = recorded.snapshots()
    kept = recorded.suite(*at, "--snapshot-update", "-n", "2", "--eval-model", "mine")
    assert kept.exit == 0, kept.text
    assert of_rows(recorded.snapshots().keys() - before.keys()) == set(mine)
    config = recorded.path / "exp" / "step 9" / "mine" / "config.json"
    config.write_text(config.read_text().replace("1e-05", "1.0"))  # other scores
    judged = recorded.suite(*at, "--eval-model", "mine")
    assert judged.exit == 0, judged.text
    assert {judged.states[row_id] for row_id in mine} == {"informing"}
    assert judged.rows["mine--prose--bpb"]["verdict"]["changed"] > 0
    without = recorded.suite()
    assert without.exit == 0, without.text
    assert set(without.rows) == set(row_ids(*ENTRIES))


def test_a_task_file(recorded: Project) -> None:
    """A task file of elsewhere is scored by the whole zoo, or by the checkpoint that is given with it."""
    folder = recorded.path / "other"
    folder.mkdir()
    task = {"format": "evalsuite.task.v1", "kind": "lm", "data": "../tasks/prose/heldout.bin", "metrics": ["bpb"]}
    (folder / "mine.json").write_text(json.dumps(task))
    ran = recorded.suite("--eval-task", "other/mine.json")
    assert ran.exit == 0, ran.text
    chosen = {row_id: state for row_id, state in ran.states.items() if state != "deselected"}
    assert chosen == {f"{model}--mine--bpb": "informing" for model in ENTRIES}

    shutil.copytree(recorded.path / "models" / "bigram", recorded.path / "cut")
    weights = recorded.path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:900])
    both = recorded.suite("--eval-task", "other/mine.json", "--eval-checkpoint", "cut", "-n", "2")
    assert both.exit == 1
    assert {row_id for row_id, state in both.states.items() if state != "deselected"} == {"cut--mine--bpb"}
    assert both.states["cut--mine--bpb"] == "error"
    again = recorded.printed(both, "see one:")
    assert (again.exit, again.states["cut--mine--bpb"]) == (1, "error")


def test_a_folder_that_is_none(recorded: Project) -> None:
    recorded.manifest("bigram")
    ran = recorded.suite("--eval-checkpoint", "nowhere", "--eval-model", "nowhere")
    assert ran.exit == 1
    assert {state for row_id, state in ran.states.items() if row_id.startswith("nowhere")} == {"error"}
    assert "nowhere: no such directory" in ran.rows["nowhere--prose--bpb"]["reason"]


def test_names_that_collide(recorded: Project) -> None:
    """A checkpoint called like a model of the zoo is refused; the model is scored all the same."""
    shutil.copytree(recorded.path / "models" / "bigram", recorded.path / "exp" / "BIGRAM")
    ran = recorded.suite("--eval-checkpoint", "exp/BIGRAM", "--eval-task", "prose", "-k", "bigram or checkpoint")
    assert ran.exit == 1
    assert {ran.states[f"bigram--prose--{metric}"] for metric in LM_ROWS} == {"ok", "informing"}
    odd = {row_id: row["reason"] for row_id, row in ran.rows.items() if row["state"] == "error"}
    assert odd
    assert all("there is a model of the name 'bigram' already" in reason for reason in odd.values())


def test_a_checkpoint_of_the_zoo(recorded: Project) -> None:
    ran = recorded.suite("--eval-checkpoint=models/gpt", "--eval-task", "quiz", "--eval-model", "gpt-checkpoint")
    assert ran.exit == 1
    assert "models/gpt is the model 'gpt' already: score it with --eval-model gpt instead" in ran.screen


def test_without_a_zoo(project: Project) -> None:
    (project.path / "models" / "zoo.json").unlink()
    ran = project.suite("--eval-checkpoint", "models/bigram")
    assert ran.exit == 0, ran.text
    assert {ran.states[f"bigram--prose--{metric}"] for metric in LM_ROWS} == {"informing"}

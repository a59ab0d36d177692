"""What is broken or worse is red with its reason, while everything else is scored."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import numpy as np
import pytest

from evalsuite.tasks.tokens import write_tokens
from evalsuite.zoo.tensors import read_tensors, write_tensors
from tests.zoo_project import ENTRIES, Project, of_rows, row_ids

pytest_plugins = ["pytester"]


def test_noise_on_weights(recorded: Project) -> None:
    """A worse model is red in the words a reader needs, and the commands printed do what they say."""
    before = recorded.snapshots()
    recorded.damage("bigram", 0.6)
    ran = recorded.suite("-n", "2")
    assert ran.exit == 1
    assert {row_id for row_id, state in ran.states.items() if state not in ("ok", "informing")} == {
        "bigram--prose--bpb"
    }
    row = ran.rows["bigram--prose--bpb"]
    assert row["state"] == "regressed"
    assert row["value"] - row["baseline"]["value"] == pytest.approx(row["verdict"]["drop"])
    lines = ran.screen.splitlines()
    assert lines[0] == "evalsuite: RED - 1 regressed, 12 ok of 13 rows expected"
    assert lines[1].split() == ["regressed", "bigram", "prose", "bpb", "(lower", "is", "better)"]
    numbers = " ".join(lines[2:4])
    for value, (lo, hi) in ((row["baseline"]["value"], row["baseline"]["ci95"]), (row["value"], row["ci95"])):
        assert f"{value:.3f} [{lo:.3f}, {hi:.3f}]" in numbers
    assert f"worse by {row['verdict']['drop']:.3f} [" in numbers
    assert "p = " in numbers
    assert "over 48 documents" in numbers
    assert "FAILED test_zoo.py::test_metric[bigram--prose--bpb] - regressed" in ran.text

    again = recorded.printed(ran, "see one:")
    assert again.exit == 1
    assert again.states["bigram--prose--bpb"] == "regressed"
    assert recorded.snapshots() == before

    accepted = recorded.printed(ran, "accept:")
    assert accepted.exit == 0, accepted.text
    after = recorded.snapshots()
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert of_rows(changed) == set(row_ids("bigram"))
    assert len(after) == len(before)
    assert recorded.suite().exit == 0


def broken(recorded: Project) -> dict[str, str]:
    """Models broken in every way, and what their rows must say."""
    models, tasks = recorded.path / "models", recorded.path / "tasks"
    weights = (models / "bigram" / "model.safetensors").read_bytes()
    config = (models / "bigram" / "config.json").read_text()
    for name in ("cut", "nan", "arch", "notjson"):
        (models / name).mkdir()
        (models / name / "model.safetensors").write_bytes(weights)
        (models / name / "config.json").write_text(config)
    (models / "cut" / "model.safetensors").write_bytes(weights[:1000])
    tensors, _ = read_tensors(models / "bigram" / "model.safetensors")
    tensors["bigram.weight"][3, 4] = float("nan")
    write_tensors(models / "nan" / "model.safetensors", tensors, {"format": "tinyllm"})
    (models / "arch" / "config.json").write_text(config.replace('"bigram"', '"mamba"'))
    (models / "notjson" / "config.json").write_text("{")
    write_tokens(tasks / "prose" / "wide.bin", np.array([1, 2, 300] * 500))
    wide = {"format": "evalsuite.task.v1", "kind": "lm", "data": "prose/wide.bin"}
    (tasks / "wide.json").write_text(json.dumps(wide))
    prose = {name: {"id": name, "dir": name, "tasks": ["prose"]} for name in ("cut", "nan", "arch", "notjson", "gone")}
    recorded.manifest(*ENTRIES, *prose.values(), {"id": "wide", "dir": "bigram", "tasks": ["wide"]})
    return {
        "cut--prose--bpb": "models/cut/model.safetensors",
        "nan--prose--bpb": "NaN",
        "arch--prose--bpb": "no zoo scorer for tl_arch 'mamba'",
        "notjson--prose--bpb": "models/notjson/config.json, line 1: not JSON",
        "gone--prose--bpb": "models/gone: no such directory",
        "wide--wide--bpb": "token 2 of the data is 300, but the model's vocabulary has 256",
    }


def test_broken_models(recorded: Project) -> None:
    reasons = broken(recorded)
    ran = recorded.suite("-n", "2")
    assert ran.exit == 1
    assert {ran.states[row_id] for row_id in row_ids(*ENTRIES)} == {"ok", "informing"}
    for row_id, reason in reasons.items():
        assert ran.states[row_id] == ("skipped" if row_id.startswith("arch") else "error")
        assert reason in ran.rows[row_id]["reason"]
        assert str(recorded.path) not in ran.rows[row_id]["reason"]
    assert ran.screen.splitlines()[0].startswith("evalsuite: RED - 15 errors, 13 ok, 3 skipped")


def test_family_no_longer_known(recorded: Project) -> None:
    """Without a scorer a row is skipped, and with a baseline it is lost."""
    config = recorded.path / "models" / "bigram" / "config.json"
    config.write_text(config.read_text().replace('"bigram"', '"mamba"'))
    ran = recorded.suite()
    assert ran.exit == 1
    assert {ran.states[row_id] for row_id in row_ids("bigram")} == {"lost"}
    assert ran.rows["bigram--prose--bpb"]["baseline"]["n"] > 0
    assert "it has a baseline, but no zoo scorer for tl_arch 'mamba'" in ran.screen


def test_entry_deleted(recorded: Project) -> None:
    """A deleted entry is lost until it is forgotten, with the command printed; the folder need not be the default."""
    (recorded.path / "snapshots").rename(recorded.path / "base lines")
    recorded.manifest("kn3", "gpt")
    at = ("--eval-snapshots", "base lines")
    ran = recorded.suite(*at, "-n", "2", "--junitxml=junit.xml")
    assert ran.exit == 1
    assert {ran.states[row_id] for row_id in row_ids("bigram")} == {"lost"}
    assert ran.text.count("FAILED evalsuite/test_zoo.py::gate[bigram--prose--") == 3
    junit = (recorded.path / "junit.xml").read_text()
    assert [f"gate[{row_id}]" in junit for row_id in row_ids("bigram")] == [True] * 3
    assert recorded.suite(*at, "--eval-model", "kn3").exit == 0  # nobody asked for the others

    command = "evalsuite forget bigram --eval-snapshots 'base lines'"
    assert ran.screen.count("forget:") == ran.screen.count(command) == 1
    code = "import sys; from evalsuite.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=recorded.path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert recorded.suite(*at).exit == 0


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [('{"models": []}', "lists no model"), (None, "cannot read the manifest"), ("{", "not JSON")],
)
def test_nothing_to_score(recorded: Project, manifest: str | None, reason: str) -> None:
    """Said with the whole path, since the root may be the mistake; and no baseline is to be forgotten for it."""
    project = recorded
    path = project.path / "models" / "zoo.json"
    path.unlink() if manifest is None else path.write_text(manifest)
    ran = project.suite("-n", "2" if manifest is None else "0")
    assert ran.exit == 1
    assert {row_id for row_id, state in ran.states.items() if state != "lost"} == {"zoo--unknown--score"}
    assert reason in " ".join(ran.screen.split())
    assert str(path) in ran.rows["zoo--unknown--score"]["reason"]
    assert "forget" not in ran.screen


def test_a_label_is_edited(recorded: Project) -> None:
    """Too little to make the row incomparable, and said: the number is one of other items."""
    path = recorded.path / "tasks" / "quiz" / "quiz.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    label = json.loads(first)["label"]
    path.write_text(first.replace(f'"label": {label}', f'"label": {1 - label}') + "".join(others))
    ran = recorded.suite("--eval-model", "kn3", "--eval-task", "quiz")
    assert ran.exit == 0, ran.text
    assert "quiz acc 0.967 [0.833, 0.994] unchanged on the 29 items compared" in ran.screen
    assert "note: kn3 quiz acc, acc_norm: 1 unit of the baseline is missing and is left out" in ran.screen


def test_baselines_that_cannot_be_written(project: Project) -> None:
    """A row that could not be recorded is an error that says so."""
    project.manifest("bigram")
    (project.path / "snapshots").write_text("no folder")
    ran = project.suite("--snapshot-update")
    assert ran.exit == 1
    assert set(ran.states.values()) == {"error"}
    assert "snapshots/test_zoo: no baseline can be written there" in ran.rows["bigram--prose--bpb"]["reason"]


def test_report_that_cannot_be_written(project: Project) -> None:
    (project.path / "taken").write_text("a file")
    ran = project.suite("--eval-out", "taken/report")
    assert ran.exit == 4
    assert "--eval-out" in ran.text
    assert "Traceback" not in ran.text


def test_manifest_edited_during_the_run(recorded: Project) -> None:
    """The cases are those of the start."""
    recorded.conftest(
        "import pathlib\nfrom evalsuite import measure\nreal = measure.load\n"
        "def load(entry):\n    pathlib.Path(entry.root, 'zoo.json').write_text('{')\n    return real(entry)\n"
        "measure.load = load\n"
    )
    ran = recorded.suite("-n", "2")
    assert ran.exit == 0, ran.text
    assert set(ran.rows) == set(row_ids(*ENTRIES))


def test_half_a_baseline(recorded: Project) -> None:
    """A baseline whose scores are gone is an error, and recording it again repairs it."""
    (sidecar,) = (recorded.path / "snapshots" / "test_zoo").glob("bigram--prose--bpb.*.safetensors")
    sidecar.unlink()
    ran = recorded.suite("--eval-model", "bigram")
    assert ran.exit == 1
    assert ran.states["bigram--prose--bpb"] == "error"
    reason = ran.rows["bigram--prose--bpb"]["reason"]
    assert reason.startswith("snapshots/test_zoo/bigram--prose--bpb.")
    assert "record the row again with --snapshot-update" in reason
    assert recorded.suite("--eval-model", "bigram", "--snapshot-update").exit == 0
    assert sidecar.exists()

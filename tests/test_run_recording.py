"""Recording baselines: what is written, what is left alone, and where it is refused."""

from __future__ import annotations

import numpy as np
import pytest

from evalsuite.zoo.families import bigram
from tests.zoo_project import ENTRIES, Project, of_rows, row_ids

pytest_plugins = ["pytester"]


def improve(project: Project) -> None:
    """Fit the bigram on the held-out text itself."""
    from evalsuite.tasks.tokens import read_tokens

    ids = read_tokens(project.path / "tasks" / "prose" / "heldout.bin").ids
    bigram.save(bigram.BigramLM.fit(ids, 256, alpha=0.01), project.path / "models" / "bigram")


def test_first_run_then_record_then_green(project: Project) -> None:
    first = project.suite()
    assert first.exit == 1
    assert set(first.states.values()) == {"new"}
    assert "13 rows have no baseline: record them with `pytest --pyargs evalsuite --snapshot-update`" in first.screen
    assert project.snapshots() == {}
    recording = project.suite("-n", "2", "--snapshot-update")
    assert recording.exit == 0, recording.text
    assert set(recording.states.values()) == {"recorded"}
    files = project.snapshots()
    assert of_rows(files) == set(row_ids(*ENTRIES))
    assert len(files) == 2 * len(recording.rows)
    again = project.suite("-n", "2", "--snapshot-update")
    assert again.exit == 0, again.text
    assert "recorded" not in again.states.values()
    assert project.snapshots() == files


@pytest.mark.parametrize("option", ["--snapshot-update", "--snapshot-update-new-only"])
def test_refused_in_ci(project: Project, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setenv("CI", "true")
    ran = project.suite(option)
    assert ran.exit == 4
    assert "a build must not accept its own results" in ran.text
    assert project.snapshots() == {}
    if option == "--snapshot-update":
        monkeypatch.setenv("EVAL_RECORD", "1")
        assert project.suite(option, "--eval-model", "bigram").exit == 0
        assert of_rows(project.snapshots()) == set(row_ids("bigram"))


def test_refused_in_ci_for_a_test_of_the_user(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the run is not active, as with a copy of the suite's test under another name."""
    project.manifest("bigram")
    project.pytester.makepyfile(
        test_mine="""
def test_copy(eval_case, measure, baseline):
    assert measure(eval_case) == baseline

def test_mine(eval_record):
    eval_record("acc", [1, 0], task="t", model="m")
"""
    )
    monkeypatch.setenv("CI", "true")
    ran = project.run("--snapshot-update", "test_mine.py")
    assert ran.exit == 1
    assert "a build must not accept its own results" in ran.text
    assert project.snapshots() == {}


def test_improved(recorded: Project) -> None:
    """Better is green; the command that is printed makes it the baseline and leaves all other files alone."""
    before = recorded.snapshots()
    improve(recorded)
    ran = recorded.suite()
    assert ran.exit == 0, ran.text
    assert ran.states["bigram--prose--bpb"] == "improved"
    assert "improved: bigram prose bpb" in ran.screen
    assert recorded.snapshots() == before
    accepted = recorded.printed(ran, "accept:")
    assert accepted.exit == 0
    after = recorded.snapshots()
    assert of_rows({name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}) == set(
        row_ids("bigram")
    )
    assert recorded.suite("-k", "bigram").states["bigram--prose--bpb"] == "ok"


def test_new_rows_only(recorded: Project) -> None:
    """A new model is recorded, and a worse one stays red beside it."""
    before = recorded.snapshots()
    recorded.damage("bigram", 0.6)
    recorded.manifest(*ENTRIES, {"id": "twin", "dir": "kn3/model.safetensors", "tasks": ["quiz"]})
    ran = recorded.suite("--snapshot-update-new-only", "-n", "2")
    assert ran.exit == 1
    assert ran.states["bigram--prose--bpb"] == "regressed"
    assert ran.states["twin--quiz--acc"] == "recorded"
    after = recorded.snapshots()
    assert of_rows(after.keys() - before.keys()) == {"twin--quiz--acc", "twin--quiz--acc_norm"}
    assert {name: after[name] for name in before} == before


def test_other_rows_are_kept(recorded: Project) -> None:
    """Recording deletes nothing: neither rows of a model that is gone nor foreign files."""
    recorded.manifest("kn3", "gpt")
    (recorded.path / "snapshots" / "test_zoo" / "README.txt").write_text("mine")
    before = recorded.snapshots()
    ran = recorded.suite("--snapshot-update")
    assert ran.exit == 1
    assert {ran.states[row_id] for row_id in row_ids("bigram")} == {"lost"}
    assert recorded.snapshots() == before


def test_error_records_nothing(recorded: Project) -> None:
    before = recorded.snapshots()
    weights = recorded.path / "models" / "bigram" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    ran = recorded.suite("--snapshot-update", "--eval-model", "bigram")
    assert ran.exit == 1
    assert {ran.states[row_id] for row_id in row_ids("bigram")} == {"error"}
    assert recorded.snapshots() == before
    assert np.isfinite(ran.rows["bigram--prose--bpb"]["baseline"]["value"])

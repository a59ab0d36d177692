"""Rows of a user's own tests: ``eval_record``, and tests that ask for a case or a checkpoint."""

from __future__ import annotations

import json

import pytest

from tests.zoo_project import ENTRIES, LOADS_CONFTEST, Project, of_rows, row_ids

pytest_plugins = ["pytester"]

BOT = """
import json, pathlib
import numpy as np
import pytest

SCORES = json.loads(pathlib.Path(__file__).with_name("scores.json").read_text())


@pytest.mark.parametrize("task", ["support", "sales"])
def test_bot(eval_record, task):
    found = {key: value for key, value in SCORES.items() if value != "gone"}
    eval_record("helpful", np.array(list(found.values()), float), units=list(found), task=task, model="my-bot")


def test_nothing():
    pass
"""
ROW = "my-bot--support--helpful"


def scores(project: Project, changed: dict[str, object]) -> None:
    """Every second of 60 answers is right, but for these."""
    (project.path / "scores.json").write_text(json.dumps({f"q{i}": i % 2 for i in range(60)} | changed))


@pytest.fixture
def bot(pytester: pytest.Pytester, project: Project) -> Project:
    """The project with a test of its own, recorded."""
    pytester.makepyfile(test_bot=BOT)
    scores(project, {})
    ran = project.run("test_bot.py")
    assert ran.exit == 1
    assert ran.states == {ROW: "new", "my-bot--sales--helpful": "new"}
    assert "pytest 'test_bot.py::test_bot[support]' --snapshot-update" in ran.screen
    ran = project.run("test_bot.py", "--snapshot-update", "-n", "2")
    assert ran.exit == 0, ran.text
    assert {name.split("/")[0] for name in project.snapshots()} == {"test_bot"}
    return project


def test_life_of_a_row(bot: Project) -> None:
    assert bot.run("test_bot.py").states[ROW] == "ok"
    scores(bot, {f"q{i}": 0 for i in range(31)})
    worse = bot.run("test_bot.py", "-n", "2")
    assert worse.exit == 1
    assert worse.states[ROW] == "regressed"
    assert "15 worse" in worse.screen
    again = bot.printed(worse, "see one:")
    assert (again.exit, again.states) == (1, {"my-bot--sales--helpful": "regressed"})
    assert of_rows(bot.snapshots()) == {ROW, "my-bot--sales--helpful"}
    scores(bot, {f"q{i}": 1 for i in range(31)})
    better = bot.run("test_bot.py")
    assert (better.exit, better.states[ROW]) == (0, "improved")
    # Right answers that are missing now, or are NaN, count as wrong ones.
    scores(bot, {f"q{i}": "gone" for i in range(31)})
    gone = bot.run("test_bot.py")
    assert (gone.exit, gone.states[ROW]) == (1, "regressed")
    assert len(gone.rows[ROW]["verdict"]["missing"]) == 31
    scores(bot, {f"q{i}": None for i in range(31)})
    unscored = bot.run("test_bot.py", "-n", "2")
    assert (unscored.exit, unscored.states[ROW]) == (1, "regressed")
    assert unscored.rows[ROW]["unscored"] == 31


@pytest.mark.parametrize("n", ["0", "2"])
def test_snapshots_of_syrupy_beside_rows(bot: Project, n: str) -> None:
    """syrupy speaks of its own only: what it would say of rows contradicts the report."""
    bot.pytester.makepyfile(test_snap="def test_snap(snapshot):\n    assert 1 == snapshot\n")
    ran = bot.run("-n", n, "--snapshot-update")
    assert ran.exit == 0, ran.text
    assert "\n1 snapshot generated.\n" in ran.text
    scores(bot, {f"q{i}": 0 for i in range(31)})
    worse = bot.run("test_bot.py", "-n", n)
    assert worse.exit == 1
    assert "snapshot report summary" not in worse.text


def test_lost_only_where_its_file_was_selected(bot: Project) -> None:
    """A test that no longer records is noticed, also when it was the only one; runs of other tests owe nothing."""
    bot.pytester.makepyfile(test_bot="def test_nothing():\n    pass\n", test_other="def test_other():\n    pass\n")
    for arguments in ((), ("-n", "2")):
        ran = bot.run("test_bot.py", *arguments)
        assert ran.exit == 1, ran.text
        assert ran.states == {ROW: "lost", "my-bot--sales--helpful": "lost"}
        assert f"evalsuite forget my-bot--sales--helpful {ROW}\n" in ran.screen
    (ran.folder / "report.json").unlink()
    for quiet in (bot.run("test_other.py"), bot.run("test_bot.py", "-k", "nothing")):
        assert quiet.exit == 0, quiet.text
    assert bot.run("test_other.py").report is None or "lost" not in bot.run("test_other.py").states.values()


def test_killed_before_its_first_row(bot: Project) -> None:
    """A worker that dies in the only test with a row leaves a report that says so."""
    bot.pytester.makepyfile(
        test_bot="import os, signal\n" + BOT.replace("    found", "    os.kill(os.getpid(), 9)\n    found")
    )
    ran = bot.run("test_bot.py", "-n", "1")
    assert ran.exit == 1
    assert set(ran.states.values()) == {"crashed"}


def test_a_file_called_like_the_suite(recorded: Project) -> None:
    """A user's test_zoo.py may record rows; a run of the zoo alone does not miss them."""
    (recorded.path / "tests").mkdir()
    (recorded.path / "tests" / "test_zoo.py").write_text(
        "def test_mine(eval_record):\n    eval_record('acc', [1, 0, 1], task='t', model='m')\n"
    )
    mine = recorded.run("tests", "--snapshot-update")
    assert mine.exit == 0, mine.text
    assert mine.states == {"m--t--acc": "recorded"}
    ran = recorded.suite()
    assert ran.exit == 0, ran.text
    assert set(ran.rows) == set(row_ids(*ENTRIES))
    both = recorded.suite("tests", "-n", "2")
    assert both.exit == 0, both.text
    assert set(both.rows) == {*row_ids(*ENTRIES), "m--t--acc"}


def test_odd_rows(project: Project) -> None:
    """Scalars of any library, clusters, names in brackets; what cannot be read, or stands twice, is refused."""
    project.pytester.makepyfile(
        test_odd="""
import numpy as np
import pytest
import torch

@pytest.mark.parametrize("name", ["a[b]", "c d"])
def test_scalars(eval_record, name):
    scores = [np.float32(0.5), np.True_, torch.tensor(1.0), 1, np.int64(0)]
    eval_record("x", scores, units=np.arange(5), clusters=[np.int64(1), 1, 2, 2, 3], task="t", model=name[0],
                min_drop=np.float32(0.25), bounds=(np.float64(0), np.int64(1)), gating=np.True_)

def test_twice(eval_record):
    eval_record("x", [1, 0], task="t", model="twice")

def test_twice_again(eval_record):
    eval_record("x", [1, 0], task="t", model="twice")

def test_same_test(eval_record):
    eval_record("y", [1, 0], task="t", model="same")
    eval_record("y", [0, 0], task="t", model="same")

def test_units(eval_record):
    eval_record("x", [1, 0], units=["a", "a"], task="t", model="units")

def test_text(eval_record):
    eval_record("x", ["yes"], task="t", model="text")

def test_name(eval_record):
    eval_record("x", [1], task="a--b", model="name")

def test_raises(eval_record):
    eval_record("x", 5, task="t", model="raises")
"""
    )
    seen = []
    for n in ("0", "2"):
        ran = project.run("test_odd.py", "--snapshot-update", "-n", n)
        assert ran.exit == 1
        assert ran.text.count("INTERNALERROR") == 0
        seen.append({row_id: (row["state"], row["reason"], row["clusters"]) for row_id, row in ran.rows.items()})
        for path in (project.path / "snapshots" / "test_odd").glob("[ac]--*"):
            path.unlink()
    states = {row_id: state for row_id, (state, _, _) in seen[0].items()}
    assert states == {
        **{"a--t--x": "recorded", "c--t--x": "recorded", "twice--t--x": "error", "same--t--y": "recorded"},
        **{"units--t--x": "error", "text--t--x": "error", "raises--t--x": "error"},
    }
    assert seen[0]["a--t--x"][2] == 3
    assert "two tests record the row twice--t--x" in seen[0]["twice--t--x"][1]
    assert "stands twice" in seen[0]["units--t--x"][1]
    assert {row_id for row_id in seen[0] if seen[0][row_id][0] == seen[1][row_id][0]} >= {"a--t--x", "twice--t--x"}
    assert "this test has the row same--t--y already" in ran.text
    assert "the name 'a--b' must be made of" in ran.text
    assert "During handling" not in ran.text  # each reason once


def test_a_test_for_each_case(recorded: Project) -> None:
    """Tests that ask for the case or its checkpoint run for every row, beside the suite, on the checkpoint in hand."""
    recorded.conftest(LOADS_CONFTEST)
    recorded.pytester.makepyfile(
        test_mine="""
import pathlib

def test_weights(checkpoint, eval_case):
    assert checkpoint.model.vocab_size == 256
    assert eval_case.model in ("bigram", "kn3", "gpt")

def test_case(eval_case):
    assert eval_case.row_id.startswith(eval_case.model)
"""
    )
    for n in ("0", "2"):
        ran = recorded.suite("test_mine.py", "-n", n)
        assert ran.exit == 0, ran.text
        assert "39 passed" in ran.text
        assert ran.loads == dict.fromkeys(ENTRIES, 1)
        assert set(ran.states.values()) == {"ok", "informing"}
    (recorded.path / "models" / "gpt" / "config.json").write_text("{")
    broken = recorded.run("test_mine.py", "--eval-model", "gpt")
    assert broken.exit == 1
    assert "not JSON" in broken.text
    assert "During handling" not in broken.text
    assert broken.report == ran.report  # it sent no row, so it wrote none


def test_compared_with_nothing(recorded: Project) -> None:
    """A test that ends before it compared its row is an error, not a new row."""
    recorded.pytester.makepyfile(
        test_mine="def test_own(eval_case, measure, baseline):\n    assert measure(eval_case).value < 0, 'too high'\n"
    )
    zoo = recorded.path / "snapshots"
    (zoo / "test_zoo").rename(zoo / "test_mine")
    ran = recorded.run("test_mine.py", "--eval-model", "bigram")
    assert ran.exit == 1
    assert ran.states["bigram--prose--bpb"] == "error"
    assert "too high" in ran.rows["bigram--prose--bpb"]["reason"]

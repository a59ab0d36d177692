"""Options and ini keys: where they are read from, what they are relative to, and what is refused."""

from __future__ import annotations

import pytest

from tests.test_run_crash import KILLER
from tests.zoo_project import Project, row_ids

pytest_plugins = ["pytester"]


def test_ini_keys_and_another_folder(recorded: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ini paths are relative to the root, typed ones to where they are typed; printed commands work from there."""
    root = recorded.path / "lab"
    root.mkdir()
    for name in ("models", "tasks", "snapshots"):
        (recorded.path / name).rename(root / f"my_{name}")
    (recorded.path / "pytest.ini").rename(root / "pytest.ini")
    keys = {"models": "my_models", "tasks": "my_tasks", "snapshots": "my_snapshots", "model": "bigram", "threads": "2"}
    (root / "pytest.ini").unlink()
    lines = [
        f'eval_{key} = "{value}"' if key != "model" else f'eval_{key} = ["{value}"]' for key, value in keys.items()
    ]
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n" + "\n".join(lines) + "\n")
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    weights = root / "my_models" / "bigram" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:900])
    ran = recorded.suite("--eval-out", "../out dir", "-n", "2", out="lab/out dir")
    assert ran.exit == 1
    assert {ran.states[row_id] for row_id in row_ids("bigram")} == {"error"}
    assert ran.report is not None
    assert ran.report["provenance"]["threads"] == 2
    assert {state for row_id, state in ran.states.items() if not row_id.startswith("bigram")} == {"deselected"}
    again = recorded.printed(ran, "see one:", out="lab/out dir")
    assert (again.exit, again.states["bigram--prose--bpb"]) == (1, "error")
    assert again.report != ran.report
    assert not (root / "sub" / "eval-report").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--eval-seed", "x"), "--eval-seed takes a whole number of at least 0, got 'x'"),
        (("--eval-threads", "0", "-n", "2"), "--eval-threads takes a whole number of at least 1, got '0'"),
        (
            ("--eval-model", "bigran"),
            "--eval-model bigran: no such name; did you mean bigram? (there are: bigram, gpt, kn3)",
        ),
        (("--eval-task", "proze"), "--eval-task proze: no such name; did you mean prose?"),
    ],
)
def test_refused(recorded: Project, arguments: tuple[str, ...], message: str) -> None:
    ran = recorded.suite(*arguments)
    assert ran.exit == 4
    assert message in ran.text
    assert "Traceback" not in ran.text
    assert ran.report is None


def test_threads_are_set_before_libraries_load(recorded: Project) -> None:
    """The variables stand when NumPy is imported, without xdist and in workers alike."""
    recorded.pytester.makepyfile(
        spy="""
import os, pathlib, sys


class Spy:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            with open(pathlib.Path(__file__).with_name("seen"), "a") as f:
                f.write(os.environ.get("OPENBLAS_NUM_THREADS", "unset") + "\\n")


sys.meta_path.insert(0, Spy())
"""
    )
    for n in ("0", "1"):
        ran = recorded.suite("-p", "spy", "-n", n, "--eval-threads", "3", "--eval-model", "bigram")
        assert ran.exit == 0, ran.text
    seen = (recorded.path / "seen").read_text().split()
    assert set(seen) == {"3"}
    assert len(seen) == 3


@pytest.fixture
def inner(recorded: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project in a folder of one that configures pytest too. pytest looks for its root above all paths that exist
    among its arguments, those of options that it does not know yet included."""
    folder = recorded.path / "inner"
    folder.mkdir()
    for name in ("models", "tasks", "snapshots"):
        (recorded.path / name).rename(folder / name)
    (folder / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(folder)
    return recorded


def test_workers_have_the_root_of_the_controller(inner: Project) -> None:
    """Also one that is started later, to replace one that died, and finds a folder that was not there at first: the
    first rows made it."""
    (inner.path / "inner" / "conftest.py").write_text(KILLER.format(once=False).replace("kn3", "gpt"))
    ran = inner.suite("-n", "1", "--eval-out", "../fresh", out="fresh")
    assert {ran.states[row_id] for row_id in row_ids("gpt")} == {"crashed"}
    assert {ran.states[row_id] for row_id in row_ids("bigram", "kn3")} == {"ok", "informing"}, ran.text


def test_a_path_that_moves_the_root(inner: Project) -> None:
    """It is refused with what to write; in one word it moves nothing."""
    (inner.path / "fresh").mkdir()
    ran = inner.suite("--eval-out", "../fresh", "-n", "2", out="fresh")
    assert ran.exit == 4
    assert "moved its root from" in ran.text
    assert "write it in one word, --eval-out=../fresh" in ran.text
    assert ran.report is None
    good = inner.suite("--eval-out=../fresh", "-n", "2", out="fresh")
    assert good.exit == 0, good.text
    assert set(good.states.values()) == {"ok", "informing"}
    assert inner.suite("--eval-out", "../inner/snapshots", out="inner/snapshots").exit == 0  # of the project: it may

"""Options and ini keys: where they are read from, what they are relative to, and what is refused."""

from __future__ import annotations

import pytest

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


def test_workers_have_the_root_of_the_controller(recorded: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest looks for its root above all paths among its arguments that exist, and the folder of the report exists by
    the time a worker looks: it would find the configuration of the folder above, and another project's baselines."""
    inner = recorded.path / "inner"
    inner.mkdir()
    for name in ("models", "tasks", "snapshots"):
        (recorded.path / name).rename(inner / name)
    (inner / "pytest.ini").write_text("[pytest]\n")
    (recorded.path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(inner)
    ran = recorded.suite("-n", "2", "--eval-out", "../fresh", out="fresh")
    assert ran.exit == 0, ran.text
    assert set(ran.states.values()) == {"ok", "informing"}

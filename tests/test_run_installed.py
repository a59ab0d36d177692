"""The ways to have the suite: a wheel beside the user's own project, a clone that was never installed, and both."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.zoo_project import ENTRIES, LOADS_CONFTEST, ROOT, Project, Ran, row_ids

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has this package as a wheel, and from here what it depends on."""
    source, env = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("env")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "evalsuite", source / "evalsuite", ignore=shutil.ignore_patterns("__pycache__"))
    python = env / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True, timeout=180)
    (site,) = (env / "lib").glob("python*/site-packages")
    (site / "here.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    quiet = {"stdout": subprocess.DEVNULL, "check": True, "timeout": 120}
    subprocess.run([*pip, "wheel", source, "--no-deps", "--no-build-isolation", "-w", env / "wheels"], **quiet)
    (wheel,) = (env / "wheels").glob("evalsuite-*.whl")
    subprocess.run([*pip, "--python", python, "install", "--no-deps", "--no-index", wheel], **quiet)
    return python


def run(project: Project, *command: str | Path) -> Ran:
    """Run this in the project, with nothing of this repository on the path."""
    env = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    }
    others = ("-p", "no:hypothesispytest", "-p", "no:anyio")  # whatever else this environment has costs time only
    done = subprocess.run([*command, *others], cwd=project.path, env=env, capture_output=True, text=True, timeout=180)
    return project.left(done.returncode, done.stdout + done.stderr)


WHERE = """
import pathlib, sys

def pytest_unconfigure():
    pathlib.Path(__file__).with_name("where").write_text(sys.modules["evalsuite.plugin"].__file__)
"""


def test_wheel(project: Project, installed: Path) -> None:
    """A project with models/, tasks/, snapshots/ and pyproject.toml alone."""
    (project.path / "pytest.ini").unlink()
    (project.path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    project.conftest(WHERE)
    first = run(project, installed, "-m", "pytest", "--pyargs", "evalsuite", "-n", "2")
    assert first.exit == 1, first.text
    assert "record them with `pytest --pyargs evalsuite --snapshot-update`" in first.screen
    assert Path((project.path / "where").read_text()).is_relative_to(installed.parents[1])
    assert run(project, installed, "-m", "pytest", "--pyargs", "evalsuite", "--snapshot-update").exit == 0
    ran = run(project, installed, "-m", "pytest", "--pyargs", "evalsuite.test_zoo", "-n", "2")
    assert ran.exit == 0, ran.text
    assert list(ran.rows) == row_ids(*ENTRIES)
    assert ran.report is not None
    assert ran.report["run"]["workers"] == 2
    assert ran.report["verdict"]["partial"] is False


def clone(project: Project) -> None:
    (project.path / "pytest.ini").unlink()
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, project.path)
    shutil.copytree(
        ROOT / "evalsuite", project.path / "evalsuite", ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache")
    )


def test_clone(recorded: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without installation, by the root conftest; from a folder below, the printed command names the suite as typed."""
    clone(recorded)
    monkeypatch.delenv("PYTHONPATH")
    recorded.damage("bigram", 0.6)
    ran = recorded.run("evalsuite", "-n", "2", plugins=("-p", "xdist", "-p", "syrupy"))
    assert ran.exit == 1, ran.text
    assert ran.states["bigram--prose--bpb"] == "regressed"
    assert set(ran.rows) == set(row_ids(*ENTRIES))
    assert "see one:  pytest evalsuite -n0 --eval-model bigram --eval-task prose" in ran.screen
    monkeypatch.chdir(recorded.path / "models")
    below = recorded.run("../evalsuite/", "--eval-model", "bigram", plugins=("-p", "xdist", "-p", "syrupy"))
    assert below.exit == 1
    assert "see one:  pytest ../evalsuite -n0 --eval-model bigram --eval-task prose" in below.screen


def test_clone_and_wheel(recorded: Project, installed: Path) -> None:
    """A clone is scored by its own code though another copy is installed: one plugin, an active run, the same rows. So
    it is where its pyproject.toml does not put it on the path, by the installed plugin then."""
    clone(recorded)
    recorded.conftest((ROOT / "conftest.py").read_text() + LOADS_CONFTEST + WHERE)
    where = recorded.path / "where"
    # -P keeps the folder off the path, as the command `pytest` does.
    ran = run(recorded, installed, "-P", "-m", "pytest", "evalsuite", "--eval-model", "bigram")
    assert ran.exit == 0, ran.text
    assert Path(where.read_text()) == recorded.path / "evalsuite" / "plugin.py"

    (recorded.path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = ['--import-mode=importlib']\n")
    (recorded.path / "loads.jsonl").unlink()
    ran = run(recorded, installed, "-P", "-m", "pytest", "evalsuite", "-n", "2")
    assert ran.exit == 0, ran.text
    assert Path(where.read_text()).is_relative_to(installed.parents[1])
    assert set(ran.rows) == set(row_ids(*ENTRIES))
    assert ran.loads == dict.fromkeys(ENTRIES, 1)
    assert {threads for *_, threads in map(json.loads, (recorded.path / "loads.jsonl").open())} == {"1"}

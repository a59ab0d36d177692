"""Fixtures of the tests that run pytest on a small project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.zoo_project import PLUGINS, ROOT, SUITE, Project, write_template


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project, written once a session."""
    folder = tmp_path_factory.mktemp("template")
    write_template(folder)
    return folder


@pytest.fixture(scope="session")
def recorded_template(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project with its baselines."""
    folder = tmp_path_factory.mktemp("recorded") / "project"
    shutil.copytree(template, folder)
    command = [sys.executable, "-m", "pytest", *PLUGINS, *SUITE, "--snapshot-update"]
    done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    for left in ("eval-report", ".pytest_cache"):
        shutil.rmtree(folder / left)
    return folder


@pytest.fixture
def project(template: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A fresh copy of the small project, without baselines."""
    return _copy(template, pytester, monkeypatch)


@pytest.fixture
def recorded(recorded_template: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A fresh copy of the small project with its baselines."""
    return _copy(recorded_template, pytester, monkeypatch)


def _copy(folder: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    environment = _environment()
    for name in os.environ.keys() - environment.keys():
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    shutil.copytree(folder, pytester.path, dirs_exist_ok=True)
    return Project(pytester)


def _environment() -> dict[str, str]:
    """The environment of a user at home: neither CI nor a worker's, this package on the path, no other plugin."""
    foreign = ("CI", "EVAL_RECORD", "GITHUB_", "PYTEST_")
    mine = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return mine | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

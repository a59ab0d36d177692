"""Fixtures of the tests that run pytest on a small project."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.zoo_project import ROOT, Project, write_template


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project, written once a session."""
    folder = tmp_path_factory.mktemp("template")
    write_template(folder)
    return folder


@pytest.fixture
def project(template: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A fresh copy of the small project, and an environment that is neither CI nor a worker's."""
    for name in [name for name in os.environ if name in ("CI", "EVAL_RECORD") or name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shutil.copytree(template, pytester.path, dirs_exist_ok=True)
    return Project(pytester)

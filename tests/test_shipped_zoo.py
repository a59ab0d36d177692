"""The zoo that comes with the project: noise on a real checkpoint turns the build red and says what happened."""

import re
import shutil

import pytest

from tests.zoo_project import ROOT, SUITE, Project

pytest_plugins = ["pytester"]


@pytest.fixture
def shipped(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The shipped GPT with the prose and its baselines, alone in a project."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("CI", raising=False)
    project = Project(pytester)
    shutil.copytree(ROOT / "models" / "gpt", project.path / "models" / "gpt")
    shutil.copytree(ROOT / "tasks", project.path / "tasks", ignore=shutil.ignore_patterns("train.*"))
    for path in sorted((ROOT / "snapshots" / "test_zoo").glob("gpt--prose--*")):
        target = project.path / "snapshots" / "test_zoo" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    project.manifest({"id": "gpt", "dir": "gpt", "tasks": ["prose"]})
    (project.path / "pytest.ini").write_text("[pytest]\n")
    return project


def add_noise(project: Project, share: float) -> None:
    """Gaussian noise on every weight of the GPT, ``share`` of its tensor's standard deviation."""
    import torch

    from evalsuite.zoo.families.gpt import load, save

    folder = project.path / "models" / "gpt"
    model = load(folder)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += share * parameter.std() * torch.randn(parameter.shape, generator=generator)
    save(model, folder)


def test_noise_that_costs_a_tenth_of_a_bit_is_regressed(shipped: Project) -> None:
    add_noise(shipped, 0.087)

    ran = shipped.run(*SUITE, "-n0", timeout=180)

    row = ran.rows["gpt--prose--bpb"]
    assert ran.exit == 1
    assert row["state"] == "regressed"
    assert 0.05 < row["verdict"]["drop"] < 0.2
    assert row["verdict"]["p"] < 1e-20
    old, new = row["baseline"], row
    assert ran.screen.startswith("evalsuite: RED - 1 regressed, 2 ok of 3 rows expected\n")
    for part in (old["value"], *old["ci95"], new["value"], *new["ci95"], row["verdict"]["drop"]):
        assert f"{part:.3f}" in ran.screen
    assert re.search(r"regressed +gpt +prose +bpb", ran.screen)
    assert "over 150 documents" in ran.screen
    assert "see one:  pytest --pyargs evalsuite -n0 --eval-model gpt --eval-task prose\n" in ran.screen
    assert "accept:   pytest --pyargs evalsuite --snapshot-update --eval-model gpt --eval-task prose\n" in ran.screen

"""A family that a user's own package brings: the example of the documentation, installed and scored, and what goes
wrong with such packages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from evalsuite.zoo.registry import FAMILIES, Family
from tests.zoo_project import ROOT, Project

pytest_plugins = ["pytester"]

DOCS = (ROOT / "docs" / "families.md").read_text(encoding="utf-8")


def install(site: Path, entry_point: str, files: dict[str, str], package: str = "unigram_family") -> None:
    """Lay a package out as pip does, with its entry point."""
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[evalsuite.families]\n{entry_point}\n")


def documented() -> dict[str, str]:
    """The files of the documentation's example, each named in its first line."""
    return {
        code.split("\n")[0].removeprefix("# "): code for code in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    }


def checkpoint(directory: Path, logits: np.ndarray, arch: str = "unigram") -> None:
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps({"tl_arch": arch, "vocab_size": len(logits)}))
    save_file({"logits": logits.astype(np.float32)}, directory / "model.safetensors")


def test_the_documented_family_is_scored_like_ours(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    site = project.path / "site"
    (target,) = re.findall(r'^unigram = "(.+)"$', DOCS, re.MULTILINE)
    install(site, f"unigram = {target}", documented())
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=":")
    checkpoint(project.path / "models" / "uni", np.zeros(256))
    checkpoint(project.path / "models" / "short", np.zeros(256))
    (project.path / "models" / "short" / "config.json").write_text('{"tl_arch": "unigram", "vocab_size": 9}')
    quiz = {"id": "uni", "dir": "uni", "tasks": ["prose", "quiz"]}
    project.manifest(quiz, {"id": "short", "dir": "short", "tasks": ["prose"]}, "gpt")

    ran = project.suite("-n2", "--snapshot-update")
    assert ran.rows["uni--prose--bpb"]["value"] == 8.0
    assert ran.rows["uni--prose--bpb"]["ci95"] == [8.0, 8.0]
    assert ran.rows["uni--prose--bpb"]["source"]["tl_arch"] == "unigram"
    assert ran.states["uni--quiz--acc"] == "recorded"
    assert ran.states["gpt--prose--bpb"] == "recorded"
    assert ran.states["short--prose--bpb"] == "error"
    assert "256 logits, config.json says vocab_size 9" in ran.rows["short--prose--bpb"]["reason"]

    # A peaked distribution over bytes is worse than the uniform one on this text.
    checkpoint(project.path / "models" / "worse", np.linspace(5.0, 0.0, 256))
    project.manifest(quiz | {"dir": "worse"}, "gpt")
    assert project.suite("--eval-model", "uni", "--eval-task", "prose").states["uni--prose--bpb"] == "regressed"


def test_the_example_is_short() -> None:
    assert sum(len(code.strip().splitlines()) for code in documented().values()) <= 40


@pytest.mark.parametrize(
    ("entry_point", "files", "reason"),
    [
        ("mine = gone_family:MINE", {}, "'gone_family:MINE' of tl_arch 'mine' cannot be loaded: ModuleNotFoundError"),
        ("mine = my_family:OTHER", {"my_family.py": "MINE = 1"}, "cannot be loaded: AttributeError"),
        ("mine = my_family:MINE", {"my_family.py": "MINE = 'lm'"}, "is str, expected an evalsuite.zoo.Family"),
        ("mine = my_family:MINE", {"my_family.py": "1 / 0"}, "cannot be loaded: ZeroDivisionError"),
        (
            "mine = my_family:MINE",
            {"my_family.py": "from evalsuite.zoo import Family\nMINE = Family('speech', 'my_family')"},
            "a family of kind 'speech': expected one of lm, seq2seq",
        ),
    ],
)
def test_a_broken_entry_point_is_a_reason(tmp_path: Path, entry_point: str, files: dict[str, str], reason: str) -> None:
    install(tmp_path, entry_point, files)
    assert reason in asked(tmp_path, "mine")


def asked(site: Path, arch: str) -> str:
    """What a fresh process says of an architecture's kind."""
    code = (
        "from evalsuite.zoo import kind_of\n"
        f"try: print(kind_of({{'tl_arch': {arch!r}}}))\n"
        "except (KeyError, ValueError) as error: print(type(error).__name__, error)"
    )
    environment = {"PYTHONPATH": f"{site}:{ROOT}"}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout


def test_two_packages_with_one_name_are_refused(tmp_path: Path) -> None:
    family = "from evalsuite.zoo import Family\nMINE = Family('lm', 'x')"
    install(tmp_path, "mine = one:MINE", {"one.py": family}, "one")
    install(tmp_path, "mine = two:MINE", {"two.py": family}, "two")
    assert "ValueError tl_arch 'mine' is offered by several packages" in asked(tmp_path, "mine")
    assert "KeyError" in asked(tmp_path, "yours")


def test_ours_cannot_be_replaced(tmp_path: Path) -> None:
    install(
        tmp_path, "gpt = mine:GPT", {"mine.py": "from evalsuite.zoo import Family\nGPT = Family('mlm', 'x')"}, "mine"
    )
    assert asked(tmp_path, "gpt") == "lm\n"


def test_a_family_does_its_kind_and_choices_only_with_continuations() -> None:
    assert FAMILIES["gpt"].does("lm")
    assert FAMILIES["gpt"].does("choices")
    assert not FAMILIES["gpt"].does("mlm")
    assert not FAMILIES["nplm"].does("choices")
    assert not Family("mlm", "x").does("lm")

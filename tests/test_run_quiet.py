"""The plugin in runs that have nothing to do with evals: it prints, writes and imports nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.zoo_project import ROOT, Project

pytest_plugins = ["pytester"]
HEAVY = ("torch", "scipy", "numpy", "syrupy.assertion", "evalsuite.record")


def test_import_is_light() -> None:
    code = "import sys, evalsuite.plugin; print([name for name in ('torch', 'scipy', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [(), ("-n", "2")])
def test_plain_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    """Also under xdist, in controller and workers."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile(
        test_plain="import sys\ndef test_a():\n    assert not {'torch', 'scipy', 'numpy'} & {*sys.modules}\n"
    )
    pytester.makeconftest(
        "import sys\ndef pytest_unconfigure():\n"
        "    assert not {'torch', 'scipy', 'numpy', 'evalsuite.record'} & {*sys.modules}\n"
    )
    (pytester.path / "snapshots").mkdir()
    result = pytester.runpytest_subprocess(
        "-p", "xdist", "-p", "evalsuite.plugin", "test_plain.py", *arguments, timeout=60
    )
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    # An installed plugin is named in pytest's own header.
    assert not [line for line in result.outlines if "evalsuite" in line and not line.startswith("plugins: ")]
    assert not (pytester.path / "eval-report").exists()


def test_runs_that_only_show(recorded: Project) -> None:
    """They leave the report of the last run where it is."""
    ran = recorded.suite("--eval-model", "bigram")
    assert ran.exit == 0
    files = {path: path.read_bytes() for path in ran.folder.rglob("*") if path.is_file()}
    assert {path.name for path in files} >= {
        "report.json",
        "eval-results.json",
        "rows.jsonl",
        "bigram--prose--bpb.jsonl",
    }
    for option in ("--collect-only", "--help", "--fixtures", "--setup-plan"):
        shown = recorded.suite(option)
        assert shown.exit == 0, shown.text
        assert {path: path.read_bytes() for path in ran.folder.rglob("*") if path.is_file()} == files


def test_what_an_earlier_run_left(recorded: Project) -> None:
    """Items of rows that this run did not score go, files of the user stay."""
    ran = recorded.suite("--eval-model", "bigram", "--eval-out", ".", out=".")
    assert ran.exit == 0
    items = recorded.path / "items"
    (items / "mine.jsonl").write_text("{}\n")
    (recorded.path / "other.json").write_text("{}")
    recorded.suite("--eval-model", "kn3", "--eval-task", "quiz", "--eval-out", ".", out=".")
    assert {path.name for path in items.iterdir()} == {
        "mine.jsonl",
        "kn3--quiz--acc.jsonl",
        "kn3--quiz--acc_norm.jsonl",
    }
    assert (recorded.path / "other.json").exists()

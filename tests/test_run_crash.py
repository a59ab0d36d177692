"""A model that kills its worker costs its own rows and nothing else, in bounded time."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalsuite.report.json_file import read_row_log
from tests.zoo_project import ENTRIES, PLUGINS, SUITE, Project, row_ids

pytest_plugins = ["pytester"]

KILLER = """
import os, pathlib, signal
from evalsuite import measure

real = measure.load
ONCE = {once}
NOTE = pathlib.Path(__file__).with_name("killed")


def load(entry):
    if entry.name == "kn3" and not (ONCE and NOTE.exists()):
        with NOTE.open("a") as f:
            f.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return real(entry)


measure.load = load
"""


@pytest.mark.parametrize(("n", "once"), [("1", False), ("2", False), ("2", True)])
def test_killed(recorded: Project, n: str, once: bool) -> None:
    recorded.conftest(KILLER.format(once=once))
    ran = recorded.suite("-n", n, "--junitxml=junit.xml", timeout=180)
    assert ran.exit == 1
    assert (recorded.path / "killed").read_text() == "x"  # it was loaded once
    assert {ran.states[row_id] for row_id in row_ids("kn3")} == {"crashed"}
    assert {ran.states[row_id] for row_id in row_ids("bigram", "gpt")} == {"ok", "informing"}
    assert ran.rows["kn3--prose--bpb"]["baseline"] is not None
    assert ran.screen.splitlines()[0] == "evalsuite: RED - 5 crashed, 8 ok of 13 rows expected"
    assert "its worker died while scoring it" in ran.screen
    assert "its model killed a worker in" in ran.rows["kn3--quiz--acc"]["reason"]
    assert "gate[kn3--quiz--acc]" in (recorded.path / "junit.xml").read_text()


def test_no_worker_left(recorded: Project) -> None:
    """Rows that no worker was left for were not run, and say so."""
    recorded.conftest(KILLER.format(once=False))
    ran = recorded.suite("-n", "1", "--max-worker-restart=0", timeout=180)
    assert ran.exit not in (0, 3), ran.text
    assert {ran.states[row_id] for row_id in row_ids("kn3")} == {"crashed"}
    others = [ran.states[row_id] for row_id in row_ids("bigram", "gpt")]
    assert set(others) <= {"ok", "informing", "not_run"}
    assert "not_run" in others


def test_controller_killed(recorded: Project) -> None:
    """A run that is killed leaves the rows it had, and no report of an earlier run."""
    assert recorded.suite("--eval-model", "bigram").report
    recorded.conftest(
        "import time\nfrom evalsuite import measure\nreal = measure.load\n"
        "def load(entry):\n    if entry.name == 'kn3':\n        time.sleep(60)\n    return real(entry)\n"
        "measure.load = load\n"
    )
    command = [sys.executable, "-m", "pytest", *PLUGINS, *SUITE]
    log = recorded.path / "eval-report" / "rows.jsonl"
    process = subprocess.Popen(command, cwd=recorded.path, stdout=subprocess.DEVNULL)
    try:
        assert _grows_to(log, 3)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [row["id"] for row in read_row_log(log)] == row_ids("bigram")
    assert not (log.parent / "report.json").exists()
    assert not (log.parent / "eval-results.json").exists()


def _grows_to(log: Path, lines: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        # The report of the earlier run goes first; its log has as many lines as this run's is to have.
        if not (log.parent / "report.json").exists() and len(log.read_text().splitlines()) == lines:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("n", ["0", "2"])
def test_interrupted(recorded: Project, n: str) -> None:
    """Ctrl-C: what was scored is reported, the rest was not run."""
    recorded.conftest(
        "import os, signal\nfrom evalsuite import measure\nreal = measure.load\n"
        "def load(entry):\n"
        "    if entry.name == 'gpt':\n"
        f"        os.kill(os.get{'p' if n != '0' else ''}pid(), signal.SIGINT)\n"
        "        import time; time.sleep(10)\n"
        "    return real(entry)\n"
        "measure.load = load\n"
    )
    ran = recorded.suite("-n", n, timeout=180)
    assert ran.exit == 2, ran.text
    assert set(ran.rows) == set(row_ids(*ENTRIES))
    assert ran.states["gpt--quiz--acc"] == "not_run"
    assert ran.report is not None
    assert ran.report["verdict"]["status"] == "red"
    assert "gate[" not in ran.text  # one reason for all of them is enough
    if n == "0":
        assert {ran.states[row_id] for row_id in row_ids("bigram", "kn3")} == {"ok", "informing"}


@pytest.mark.parametrize(("arguments", "status"), [(("-x",), 1), (("--maxfail=1", "-n", "2"), 2)])
def test_stopped_at_the_first_failure(recorded: Project, arguments: tuple[str, ...], status: int) -> None:
    recorded.damage("bigram", 0.6)
    ran = recorded.suite(*arguments)
    assert ran.exit == status, ran.text
    assert set(ran.rows) == set(row_ids(*ENTRIES))
    assert ran.states["bigram--prose--bpb"] == "regressed"
    assert "not_run" in ran.states.values()
    assert "the run ended before it" in ran.screen
    assert "gate[" not in ran.text


def test_without_xdist(recorded: Project) -> None:
    ran = recorded.suite("-p", "no:cacheprovider", plugins=("-p", "syrupy", "-p", "evalsuite.plugin", "-p", "no:xdist"))
    assert ran.exit == 0, ran.text
    assert set(ran.rows) == set(row_ids(*ENTRIES))
    assert not (recorded.path / ".pytest_cache").exists()

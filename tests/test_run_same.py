"""The same rows, byte for byte, whatever the number of workers and the order of the manifest; one load a model."""

from __future__ import annotations

import json

import pytest

from tests.zoo_project import ENTRIES, LOADS_CONFTEST, Project, Ran, row_ids, without_run

pytest_plugins = ["pytester"]


def text_of(ran: Ran) -> str:
    """The report's file without ``run``, its last block, byte for byte."""
    text = (ran.folder / "report.json").read_text()
    assert list(json.loads(text))[-1] == "run"
    return text[: text.index('\n "run": {')]


def test_any_number_of_workers(recorded: Project) -> None:
    recorded.conftest(LOADS_CONFTEST)
    seen = set()
    for n in ("0", "1", "2"):
        ran = recorded.suite("-n", n)
        assert ran.exit == 0, ran.text
        assert ran.loads == dict.fromkeys(ENTRIES, 1)
        assert ran.report is not None
        assert ran.report["run"]["workers"] == int(n)
        assert list(ran.rows) == row_ids(*ENTRIES)
        assert set(ran.states.values()) == {"ok", "informing"}
        assert set(ran.report["run"]["models"]) == set(ENTRIES)
        seen.add(text_of(ran))
        noted = [json.loads(line) for line in (recorded.path / "loads.jsonl").read_text().splitlines()]
        assert {threads for _, _, threads in noted} == {"1"}
    assert len(seen) == 1
    assert len(ran.screen.splitlines()) == 1 + 3 + 2 + 1  # verdict, a model a line and the rest of two, path
    assert "3 models, 13 rows, all ok" in ran.screen.splitlines()[0]
    assert ran.screen.splitlines()[-1].strip() == "eval-report/report.json"

    recorded.manifest(*reversed(ENTRIES))
    turned = recorded.suite()
    assert list(turned.rows) == row_ids(*reversed(ENTRIES))
    assert turned.rows == ran.rows


def test_first_recording(project: Project) -> None:
    """The family of a first recording is empty, also where other workers have recorded rows by the time it is asked."""
    reports = []
    for n in ("0", "2"):
        ran = project.suite("-n", n, "--snapshot-update")
        assert ran.exit == 0, ran.text
        assert set(ran.states.values()) == {"recorded"}
        reports.append(without_run(ran.report or {}))
        for path in sorted((project.path / "snapshots" / "test_zoo").iterdir()):
            path.unlink()
    assert reports[0]["provenance"]["family"]["rows"] == 0
    assert reports[0] == reports[1]


def test_narrowed(recorded: Project) -> None:
    """A narrowed run judges its rows at the level they have in the whole family, and says that it is partial."""
    recorded.damage("bigram", 0.6)
    levels = {}
    for arguments in ((), ("-k", "bigram"), ("--eval-model", "bigram", "-n", "2")):
        ran = recorded.suite(*arguments)
        assert ran.exit == 1
        row = ran.rows["bigram--prose--bpb"]
        assert row["state"] == "regressed"
        levels[arguments] = row["verdict"]["level"]
        assert ran.report is not None
        assert ran.report["verdict"]["partial"] is bool(arguments)
        lines = ran.screen.splitlines()
        assert ("partial" in lines[0]) is bool(arguments)
        assert ("partial" in lines[-1]) is bool(arguments)
        others = {state for row_id, state in ran.states.items() if not row_id.startswith("bigram")}
        assert others == ({"deselected"} if arguments else {"ok", "informing"})
    assert set(levels.values()) == {0.04 / 7}


@pytest.mark.parametrize("dist", ["loadfile", "each"])
def test_any_way_of_sending(recorded: Project, dist: str) -> None:
    recorded.conftest(LOADS_CONFTEST)
    recorded.manifest("bigram")
    for path in (recorded.path / "snapshots" / "test_zoo").glob("[!b]*"):
        path.unlink()
    ran = recorded.suite("-n", "2", "--dist", dist)
    assert ran.exit == 0, ran.text
    assert ran.loads == {"bigram": 1}

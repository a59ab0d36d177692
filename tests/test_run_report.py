"""The report knows how the run ended, and a faulty one fails the run."""

from __future__ import annotations

import json

from tests.zoo_project import DOCUMENTS, Project, row_ids

pytest_plugins = ["pytester"]


def test_row_that_breaks_the_rules(recorded: Project) -> None:
    """A value outside its interval is no valid report: the run fails and says where."""
    recorded.conftest(
        "from evalsuite.report import ledger\nreal = ledger.Ledger.receive\n"
        "def receive(self, payload, node_id):\n"
        "    payload['row']['ci95'] = [90.0, 91.0]\n"
        "    real(self, payload, node_id)\n"
        "ledger.Ledger.receive = receive\n"
    )
    result = recorded.pytester.runpytest_subprocess(
        *("-p", "xdist", "-p", "syrupy", "-p", "evalsuite.plugin", "--pyargs", "evalsuite", "--eval-model", "bigram"),
        timeout=60,
    )
    assert result.ret == 1
    text = result.stdout.str()
    assert "the report breaks its own rules: rows[0].ci95" in text
    assert "3 passed" in text
    report = json.loads((recorded.path / "eval-report" / "report.json").read_text())
    assert report["verdict"]["exit"] == 1


def test_number_that_json_has_not(recorded: Project) -> None:
    """A NaN costs its row, which fails, and not the report."""
    recorded.conftest(
        "from evalsuite.report.outcome import Outcome\nreal = Outcome.row\n"
        "def row(self):\n"
        "    return real(self) | ({'value': float('nan')} if self.metric == 'ppl' else {})\n"
        "Outcome.row = row\n"
    )
    ran = recorded.suite("--eval-model", "bigram", "-n", "1")
    assert ran.exit == 1
    assert {row_id: ran.states[row_id] for row_id in row_ids("bigram")} == {
        "bigram--prose--bpb": "ok",
        "bigram--prose--ppl": "error",
        "bigram--prose--nll": "informing",
    }
    assert "gate[bigram--prose--ppl]" in ran.text


def test_values_of_any_type(recorded: Project) -> None:
    """What an eval tells of its items may hold NumPy's types, which neither xdist nor JSON can send."""
    recorded.conftest(
        "import dataclasses, pathlib\nimport numpy as np\nfrom evalsuite import measure\nreal = measure.measure_task\n"
        "ODD = {'a': np.float64(0.5), 'b': np.True_, 'c': np.arange(2), 'd': (pathlib.Path('x'), np.float32('nan'))}\n"
        "def measure_task(*args):\n"
        "    rows = real(*args)\n"
        "    for row in rows.values():\n"
        "        object.__setattr__(row.scores, 'details', (ODD,) * len(row.scores.ids))\n"
        "    return rows\n"
        "measure.measure_task = measure_task\n"
    )
    for n in ("0", "1"):
        ran = recorded.suite("--eval-model", "bigram", "-n", n)
        assert ran.exit == 0, ran.text
        lines = (ran.folder / "items" / "bigram--prose--bpb.jsonl").read_text().splitlines()
        assert len(lines) == DOCUMENTS
        item = json.loads(lines[0])
        assert [item[key] for key in "abcd"] == [0.5, True, [0, 1], ["x", None]]


def test_others_have_their_say(recorded: Project) -> None:
    """A status that another plugin raises at the end is in the report too: see `Project.run`."""
    recorded.conftest(
        "import pytest\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_sessionfinish(session):\n    session.exitstatus = 1\n"
    )
    ran = recorded.suite("--eval-model", "bigram")
    assert ran.exit == 1
    assert "every row is fine, but pytest ends with exit status 1" in ran.screen

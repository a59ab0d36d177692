"""`evalsuite compare`: two report folders judged offline, with exit statuses, on awkward inputs too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalsuite.cli import main
from evalsuite.gate.snapshot import Desk
from evalsuite.gate.verdict import judge
from evalsuite.report.json_file import write_items, write_json
from evalsuite.report.outcome import Outcome
from evalsuite.report.read import read_report
from evalsuite.result import Measurement
from tests.gate_rows import documents, items
from tests.report_rows import report, unscored
from tests.zoo_project import Project

pytest_plugins = ["pytester"]


def write(folder: Path, *measured: Measurement, others: tuple[dict[str, Any], ...] = ()) -> Path:
    """The report folder of a run that measured these rows."""
    rows = []
    for one in measured:
        names = (one.model, one.task, one.metric)
        desk = Desk(folder, one.row_id, None, False, {})
        outcome = Outcome(*names, one.gating, "tests/test_x.py::test_x", desk, measurement=one)
        rows.append(outcome.row() | {"items": write_items(folder, one.row_id, outcome.items())})
    write_json(report([*rows, *others]), folder / "report.json")
    return folder


def named(row: Measurement, model: str) -> Measurement:
    return replace(row, model=model)


def run(*arguments: str | Path) -> int:
    return main(["compare", *map(str, arguments)])


RIGHT = [1.0] * 150 + [0.0] * 50
WORSE = [0.0] * 15 + [1.0] * 135 + [1.0] * 3 + [0.0] * 47


def test_a_measurement_comes_back_as_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for row in (
        items(rng.integers(0, 2, 40).tolist(), clusters=[f"c{i % 8}" for i in range(40)], unscored=("q3",)),
        documents(rng.gamma(9, 10, 12).tolist(), rng.integers(50, 90, 12).tolist(), metric="ppl"),
    ):
        stored = read_report(write(tmp_path / row.metric, row))
        (back,) = (stored.measurement(one) for one in stored.rows.values())
        assert back is not None
        for key in ("scores", "weights", "tolerance"):
            np.testing.assert_array_equal(getattr(back.scores, key), getattr(row.scores, key))
        for key in ("ids", "hashes", "clusters", "unscored"):
            assert getattr(back.scores, key) == getattr(row.scores, key)
        for key in ("value", "lo", "hi", "higher_is_better", "min_drop", "bounds", "link", "normaliser", "task_hash"):
            assert getattr(back, key) == getattr(row, key)


def test_the_verdict_is_the_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, now = items(RIGHT), items(WORSE)
    older, newer = write(tmp_path / "a", base), write(tmp_path / "b", now)
    assert run(older, newer, "--fail") == 1
    out = capsys.readouterr().out
    # 15 lost and 3 gained: the exact one-sided binomial tail is 0.0037689.
    assert "regressed  m  t  acc (higher is better)" in out
    assert "p = 0.0038 over 200 items (15 worse)" in out
    assert judge(now, base, 0.04).p == pytest.approx(0.0037689, abs=5e-8)
    assert out.endswith("compared 1 row: 1 regressed\n")
    assert run(older, newer) == 0  # without --fail it informs
    assert run(older / "report.json", older, "--fail") == 0
    assert "worse by 0.000" in capsys.readouterr().out


def test_the_family_shares_the_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = [named(items(RIGHT), f"m{i}") for i in range(20)]
    older = write(tmp_path / "a", items(RIGHT), *others)
    newer = write(tmp_path / "b", items(WORSE), *others)
    assert run(older, newer, "--fail") == 0  # 0.0038 is above 0.04 / 21
    informing = [replace(other, gating=False) for other in others]
    older = write(tmp_path / "c", items(RIGHT), *informing)
    newer = write(tmp_path / "d", items(WORSE), *informing)
    assert run(older, newer, "--fail") == 1
    assert "compared 21 rows: 1 regressed, 20 informing" in capsys.readouterr().out


def test_a_lost_row_is_a_regression_and_a_new_one_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = items(RIGHT), named(items(RIGHT), "other")
    both, single = write(tmp_path / "both", one, two), write(tmp_path / "single", one)
    assert run(both, single, "--fail") == 1
    assert "lost       other  t  acc" in capsys.readouterr().out
    assert run(single, both, "--fail") == 0
    assert "new        other  t  acc" in capsys.readouterr().out
    broken = unscored("other", "t", "acc", "error", "ValueError: no such file")
    assert run(both, write(tmp_path / "broken", one, others=(broken,)), "--fail") == 1
    assert "ValueError: no such file" in capsys.readouterr().out


def test_what_cannot_be_compared_has_a_status_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older = write(tmp_path / "a", items(RIGHT))
    changed = items(RIGHT, ids=[f"new{i}" for i in range(200)], task_hash="edited")
    assert run(older, write(tmp_path / "b", changed), "--fail") == 2
    assert "0 of 200 units of the baseline are still there" in capsys.readouterr().out
    assert run(older, write(tmp_path / "c", items(RIGHT, higher_is_better=False)), "--fail") == 2
    assert run(older, write(tmp_path / "d", named(items(RIGHT), "other")), "--fail") == 1  # and ours is lost
    assert run(write(tmp_path / "e"), older, "--fail") == 2  # nothing to compare


def test_items_that_are_missing_now_count_as_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older = write(tmp_path / "a", items(RIGHT))
    kept = [i for i in range(200) if i >= 30]
    scores = [RIGHT[i] if i < 194 else 1.0 for i in kept]
    newer = write(tmp_path / "b", items(scores, ids=[f"q{i}" for i in kept]))
    assert run(older, newer, "--fail") == 1
    assert "30 units of the baseline are missing and count as losses" in capsys.readouterr().out


def faulty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(tmp_path, tmp_path) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "report.json: no report can be read" in faulty(tmp_path, capsys)
    write(tmp_path, items(RIGHT))
    path = tmp_path / "items" / "m--t--acc.jsonl"
    whole = path.read_text()
    for text, message in (
        (whole[:-200], ": not JSON"),
        ("\n".join(whole.split("\n")[:-2]) + "\n", "199 items, the row says 200 units: the folder is not whole"),
        (whole.replace('"tolerance": 0.0', '"slack": 0.0', 1), ":1: tolerance missing; items need id, hash, score"),
        (whole.replace('"score": 1.0', '"score": "C"', 1), ":1: score is 'C', expected a number"),
        (whole.replace('"score": 1.0', '"score": null', 1), ":1: score is None, expected a number"),
        (whole.replace('"id": "q1"', '"id": "q0"', 1), "the unit 'q0' stands twice in this run"),
        ("[]\n" * 200, ":1: an object missing"),
    ):
        path.write_text(text)
        assert message in faulty(tmp_path, capsys)
    path.unlink()
    assert "the items of m--t--acc cannot be read" in faulty(tmp_path, capsys)
    document = json.loads((tmp_path / "report.json").read_text())
    for change, message in (
        ("{", "not JSON"),
        ("[]", "no report of evalsuite: it has no rows"),
        (json.dumps(document | {"format": "evalsuite.report.v0"}), "was it written by another version?"),
    ):
        (tmp_path / "report.json").write_text(change)
        assert message in faulty(tmp_path, capsys)


def test_the_reports_of_real_runs(recorded: Project) -> None:
    before = recorded.suite("-n0", "--eval-out=before", out="before")
    recorded.damage("bigram", 0.6)
    after = recorded.suite("-n0", "--eval-out=after", out="after")
    assert after.states["bigram--prose--bpb"] == "regressed"
    assert run(before.folder, before.folder, "--fail") == 0
    assert run(before.folder, after.folder, "--fail") == 1

"""The report: what is valid, what is refused and how it is said, and that equal reports are equal bytes."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from evalsuite.report.build import validate
from evalsuite.report.eval_results import eval_results, validate_v1
from evalsuite.report.json_file import RowLog, read_row_log, write_items, write_json
from evalsuite.report.rows import GREEN, RED, SCORED, STATES, Row, error_row, normal_row
from evalsuite.report.schema import load_schema
from evalsuite.report.terminal import summary_lines
from tests.report_rows import PROVENANCE, fresh, regressed, report, row, unscored, verdict

CRASH = "worker gw1 died, likely out of memory"


def every_state() -> list[dict[str, Any]]:
    """One valid row a state."""
    rows = [
        row(f"m-{state}", "prose", "bpb", state, verdict=verdict())
        for state in ("ok", "improved", "blind", "informing", "recorded")
    ]
    rows += [regressed(), fresh("m-new", "prose", "bpb"), row("m-other", "quiz", "acc", "incomparable", reason="data")]
    without = ("error", "crashed", "lost", "not_run", "skipped")
    rows += [unscored(f"m-{state}", "prose", "bpb", state, CRASH) for state in without]
    return [*rows, unscored("m-left", "prose", "bpb", "deselected", None)]


def broken(**at: Any) -> list[str]:
    """The errors of a report of one good row, changed at one place."""
    made = report([row("gpt", "prose", "bpb")], exit_status=0)
    for path, value in at.items():
        *way, last = path.split("__")
        place: Any = made
        for step in way:
            place = place[int(step[1:])] if step.startswith("_") else place[step]
        place[last] = value
    return validate(made)


@pytest.mark.parametrize("name", ["report.schema.json", "eval-results.schema.json"])
def test_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(load_schema(name))


def test_schema_lists_the_states_and_the_keys_of_a_row() -> None:
    made = load_schema("report.schema.json")
    of_row = made["$defs"]["row"]["properties"]
    assert of_row["state"]["enum"] == list(STATES)
    assert list(made["properties"]["verdict"]["properties"]["counts"]["properties"]) == list(STATES)
    assert list(of_row) == list(Row.__annotations__)
    assert sorted((*GREEN, *RED, "deselected")) == sorted(STATES)
    assert set(SCORED) < set(STATES)


def test_every_object_is_closed() -> None:
    def objects(schema: Any) -> Any:
        if isinstance(schema, dict):
            if "object" in str(schema.get("type")) and "properties" in schema and "additionalProperties" not in schema:
                yield schema
            for part in schema.values():
                yield from objects(part)

    made = load_schema("report.schema.json")
    inside_rules = made["$defs"]["row"].pop("allOf")
    assert len(inside_rules) == 3
    assert list(objects(made)) == []


def test_every_state_has_a_valid_row() -> None:
    made = report(every_state())
    assert validate(made) == []
    assert made["verdict"]["counts"] == dict.fromkeys(STATES, 1)
    assert made["verdict"]["status"] == "red"
    assert {made["rows"][index]["id"] for index in range(len(STATES))} > set(made["verdict"]["failures"])


def test_keys_come_in_the_stable_order() -> None:
    made = report([row("gpt", "prose", "bpb")])
    assert list(made) == ["format", "suite", "verdict", "provenance", "aggregates", "rows", "run"]
    assert list(made["verdict"]) == ["status", "partial", "counts", "expected", "exit", "failures", "gates"]
    assert list(made["rows"][0]) == list(Row.__annotations__)


def test_rows_come_in_manifest_order_and_strangers_last() -> None:
    rows = [unscored("z", "t", "bpb", "lost", "gone"), row("b", "t", "bpb"), row("a", "t", "bpb")]
    rows += [unscored("y", "t", "bpb", "lost", "gone")]
    made = report(rows, order=["b--t--bpb", "a--t--bpb"])
    assert [each["model"] for each in made["rows"]] == ["b", "a", "y", "z"]


@pytest.mark.parametrize(("exit_status", "status"), [(0, "green"), (5, "red")])
def test_without_any_row_the_exit_status_decides(exit_status: int, status: str) -> None:
    made = report([unscored("gpt", "prose", "bpb", "deselected", None)], exit_status=exit_status)
    assert made["verdict"]["status"] == status
    assert validate(made) == []
    assert validate(report([], exit_status=5)) == []


def test_gate_failures_turn_a_report_red() -> None:
    made = report([row("gpt", "prose", "bpb")], gates={"gate[global]": "all rows together got worse"})
    assert validate(made) == []
    assert made["verdict"]["failures"] == ["gate[global]"]
    assert made["verdict"]["status"] == "red"


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"rows___0__value": float("nan")}, "rows[0].value: nan is not a finite number, which JSON cannot hold"),
        ({"run__seconds": float("inf")}, "run.seconds: inf is not a finite number, which JSON cannot hold"),
        (
            {"rows___0__ci95": [2.3, 2.4]},
            "rows[0].ci95: [2.3, 2.4] does not hold the value 2.214 (row gpt--prose--bpb)",
        ),
        (
            {"rows___0__ci95": [2.3, 2.1]},
            "rows[0].ci95: lower end 2.3 lies above upper end 2.1 (row gpt--prose--bpb)",
        ),
        ({"rows___0__value": None}, "rows[0].value: None is not of type 'number' (row gpt--prose--bpb)"),
        ({"rows___0__ci95": None}, "rows[0].ci95: None is not of type 'array' (row gpt--prose--bpb)"),
        ({"rows___0__n": None}, "rows[0].n: None is not of type 'integer' (row gpt--prose--bpb)"),
        ({"rows___0__state": "error"}, "rows[0].reason: None is not of type 'string' (row gpt--prose--bpb)"),
        ({"rows___0__state": "fine"}, "rows[0].state: 'fine' is not one of"),
        ({"rows___0__id": "other"}, "rows[0].id: 'other', but model, task and metric make 'gpt--prose--bpb'"),
        ({"rows___0__colour": 1}, "rows[0]: Additional properties are not allowed ('colour' was unexpected)"),
        ({"rows___0__units": True}, "rows[0].units: True is not of type 'integer', 'null' (row gpt--prose--bpb)"),
        ({"verdict__counts__ok": 2}, "verdict.counts.ok: says 2, the rows hold 1"),
        ({"verdict__expected": 3}, "verdict.expected: 3 rows are expected, the report holds 1"),
        ({"verdict__failures": ["x"]}, "verdict.failures: does not agree with the red rows and gates: ['x']"),
        ({"verdict__status": "red"}, "verdict.status: says red, the rows make it green"),
        ({"provenance__seed": -1}, "provenance.seed: -1 is less than the minimum of 0"),
        ({"aggregates": {"gpt": 1}}, "aggregates.gpt: 1 is not of type 'object'"),
        ({"extra": 1}, "report: Additional properties are not allowed ('extra' was unexpected)"),
    ],
)
def test_planted_faults_are_named(at: dict[str, Any], message: str) -> None:
    errors = broken(**at)
    assert any(error.startswith(message) for error in errors), errors


def test_a_red_report_never_exits_with_0() -> None:
    assert validate(report([regressed()], exit_status=0)) == ["verdict.exit: 0, but the verdict is red"]


def test_ids_are_unique_without_regard_to_case() -> None:
    made = report([row("gpt", "prose", "bpb"), row("GPT", "prose", "bpb")], exit_status=0)
    expected = "rows[1].id: 'GPT--prose--bpb' is also the id of rows[0] (case does not count)"
    assert validate(made) == [expected]


@pytest.mark.parametrize("state", ["improved", "regressed"])
def test_a_changed_row_has_what_it_is_compared_with(state: str) -> None:
    errors = validate(report([row("gpt", "prose", "bpb", state, baseline=None)]))
    assert errors == ["rows[0].baseline: None is not of type 'object' (row gpt--prose--bpb)"]


def test_error_row_keeps_who_and_drops_what_was_measured() -> None:
    bad = row("gpt", "prose", "bpb", value=float("nan"))
    made = error_row(bad, "the value is nan")
    assert (made["id"], made["state"], made["value"], made["reason"]) == (bad["id"], "error", None, "the value is nan")
    assert made["baseline"] == bad["baseline"]
    assert validate(report([made])) == []


def test_tuples_from_a_worker_are_lists_in_the_report() -> None:
    made = report([row("gpt", "prose", "bpb", ci95=(2.18, 2.249))], exit_status=0)
    assert made["rows"][0]["ci95"] == [2.18, 2.249]
    assert validate(made) == []


def test_building_leaves_the_rows_alone() -> None:
    rows = every_state()
    before = copy.deepcopy(rows)
    report(rows)
    assert rows == before


def test_importing_the_report_is_cheap() -> None:
    modules = "build, eval_results, json_file, terminal"
    heavy = "{'torch', 'scipy', 'pytest', 'jsonschema', 'numpy'}"
    code = f"import sys; from evalsuite.report import {modules}; sys.exit(str({heavy} & sys.modules.keys() or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


# Bytes


def shuffled(value: Any, draw: random.Random) -> Any:
    """``value`` with the keys of every dict in another order."""
    if isinstance(value, dict):
        keys = list(value)
        draw.shuffle(keys)
        return {key: shuffled(value[key], draw) for key in keys}
    return [shuffled(entry, draw) for entry in value] if isinstance(value, list) else value


def test_equal_runs_are_equal_bytes_apart_from_run(tmp_path: Path) -> None:
    rows, draw = every_state(), random.Random(3)
    order = [each["id"] for each in rows]
    arrived = [shuffled(each, draw) for each in draw.sample(rows, len(rows))]
    first = report(rows, order=order)
    second = report(arrived, order=order, provenance=shuffled(PROVENANCE, draw))
    second["run"]["seconds"] = 99.0
    parts = []
    for name, made in (("a", first), ("b", second)):
        write_json(made, tmp_path / name)
        parts.append((tmp_path / name).read_bytes().split(b'\n "run": '))
    assert parts[0][0] == parts[1][0]
    assert parts[0][1] != parts[1][1]


def test_a_report_file_reads_back_and_ends_with_a_line_end(tmp_path: Path) -> None:
    made = report([row("gpt", "prose", "bpb", "blind", reason="Grüße, 東京")], exit_status=0)
    path = tmp_path / "eval-report" / "report.json"
    write_json(made, path)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == made
    assert text.startswith('{\n "format": "evalsuite.report.v1",\n')
    assert text.endswith("}\n")
    assert "東京" in text


def test_a_file_name_that_is_no_utf8_survives(tmp_path: Path) -> None:
    reason = b"caf\xe9.bin: truncated".decode("utf-8", "surrogateescape")
    write_json({"reason": reason}, tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == {"reason": reason}


def test_a_refused_document_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_json({"value": 1}, path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"value": float("nan")}, path)
    assert json.loads(path.read_text()) == {"value": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_half_way_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    write_json({"value": 1}, path)

    def no_space(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(OSError, match="No space"):
        write_json({"value": 2}, path)
    assert json.loads(path.read_text()) == {"value": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_items_are_one_line_each_below_the_report(tmp_path: Path) -> None:
    items = [{"id": "q1", "score": 1.0, "hash": "ab"}, {"id": "q2", "score": float("nan")}]
    assert write_items(tmp_path, "gpt--quiz--acc", items) == "items/gpt--quiz--acc.jsonl"
    lines = (tmp_path / "items" / "gpt--quiz--acc.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [items[0], {"id": "q2", "score": None}]


@pytest.mark.parametrize("row_id", ["../x", "a/b", "", "a b"])
def test_items_never_leave_their_folder(tmp_path: Path, row_id: str) -> None:
    with pytest.raises(ValueError, match="cannot name a file"):
        write_items(tmp_path, row_id, [])
    assert list(tmp_path.iterdir()) == []


def test_a_row_log_is_readable_while_it_grows_and_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "eval-report" / "rows.jsonl"
    with RowLog(path) as log:
        log.append({"id": "a", "value": float("inf"), "ci95": (1.0, 2.0)})
        assert read_row_log(path) == [{"id": "a", "value": None, "ci95": [1.0, 2.0]}]
        log.append({"id": "b"})
    with path.open("a", encoding="utf-8") as torn:
        torn.write('{"id": "c", "val')
    assert [each["id"] for each in read_row_log(path)] == ["a", "b"]
    with RowLog(path) as log:
        log.append({"id": "d"})
    assert [each["id"] for each in read_row_log(path)] == ["d"]


def test_a_broken_line_in_a_row_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "a"}\nnot json\n{"id": "b"}\n')
    with pytest.raises(ValueError, match=r"rows.jsonl:2: not a row"):
        read_row_log(path)


# Any rows at all

FLOATS = st.floats() | st.none()
TEXT = st.text("ab \n\t\x1b\u00e9\u6771\ud800", max_size=5)
ODD = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.lists(st.floats(), max_size=3)
NAMES = st.text("ab-._", min_size=1, max_size=4)


@st.composite
def any_row(draw: st.DrawFn) -> dict[str, Any]:
    """A row of the right shape, most often, with some keys at random."""
    metric = draw(st.sampled_from(["bpb", "ppl", "acc"]))
    made = row(draw(NAMES), draw(NAMES), metric, draw(st.sampled_from(STATES)), reason=draw(st.none() | TEXT))
    made |= {"value": draw(FLOATS), "ci95": draw(st.none() | st.tuples(st.floats(), st.floats()))}
    made |= draw(st.dictionaries(st.sampled_from(list(Row.__annotations__)), ODD, max_size=2))
    for key in draw(st.sets(st.sampled_from(list(made)), max_size=2)):
        del made[key]
    return made


@settings(deadline=None)
@given(st.lists(any_row(), max_size=4))
def test_any_rows_make_a_valid_report_or_readable_errors(rows: list[dict[str, Any]]) -> None:
    made = report(rows)
    errors = validate(made)
    for error in errors:
        path, _, message = error.partition(": ")
        assert path
        assert message
        assert "\n" not in error
    if not errors:
        assert json.loads(json.dumps(made, allow_nan=False)) == made
        assert all(normal_row(each) == each for each in made["rows"])
        assert validate_v1(eval_results(made)) == []
        lines = summary_lines(made, report_path="report.json")
        assert all(line.isascii() and line.isprintable() for line in lines)

"""The strict ``tl.eval-results.v1`` report: its values, what it leaves out, and the schema itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalsuite.report.eval_results import ARCHS, eval_results, validate_v1, write_v1
from evalsuite.report.rows import RED, SCORED
from tests.report_rows import fresh, regressed, report, row, unscored

HEAD = {"format": "tl.eval-results.v1", "suite": "zoo", "seed": 0}


def v1_rows(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    """The v1 rows of a report on ``rows``; the document satisfies the schema."""
    made = eval_results(report(list(rows)))
    assert validate_v1(made) == []
    return list(made["rows"])


def test_one_row_a_model_and_task_with_the_references_keys_in_order() -> None:
    rows = [row("gpt", "prose", metric, v1_ci95=[2.19, 2.23]) for metric in ("ppl", "bpb")]
    rows += [row("gpt", "quiz", metric) for metric in ("acc_norm", "acc")]
    made = eval_results(report(rows, exit_status=0))
    prose = {
        "model": "gpt",
        "checkpoint": "gpt",
        "task": "prose",
        "tl_arch": "gpt",
        "metric": "bpb",
        "value": 2.214,
        "ci95": [2.19, 2.23],
        "n": 31200,
        "higher_is_better": False,
        "params": 875264,
        "status": "ok",
    }
    changed = {"task": "quiz", "metric": "accuracy", "value": 0.312, "ci95": [0.255, 0.376], "n": 200}
    quiz = prose | changed | {"higher_is_better": True}
    assert made == HEAD | {"rows": [prose, quiz]}
    assert [list(each) for each in made["rows"]] == [list(prose), list(prose)]
    assert validate_v1(made) == []


def test_without_a_v1_interval_the_rows_own_one_is_used() -> None:
    assert v1_rows(row("gpt", "prose", "bpb"))[0]["ci95"] == [2.18, 2.249]


def test_how_sequences_were_decoded_is_stated() -> None:
    source = {"tl_arch": "seq2seq", "checkpoint": "g2p", "params": 7, "decode": "beam", "beam": 4}
    made = v1_rows(row("g2p", "phonemes", "acc", source=source))[0]
    assert (made["decode"], made["beam"]) == ("beam", 4)
    assert list(made).index("decode") == list(made).index("n") + 1


def test_an_ngram_has_no_tl_arch() -> None:
    source = {"tl_arch": "ngram", "checkpoint": "kn4/model.safetensors", "params": None}
    made = v1_rows(row("kn4", "prose", "bpb", source=source))[0]
    assert "tl_arch" not in made
    assert "params" not in made
    assert made["checkpoint"] == "kn4/model.safetensors"


@pytest.mark.parametrize("arch", ARCHS)
def test_every_family_the_format_knows_is_kept(arch: str) -> None:
    assert v1_rows(row("m", "prose", "bpb", source={"tl_arch": arch}))[0]["tl_arch"] == arch


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        *[("bpb", "bpb"), ("acc", "accuracy"), ("acc_norm", "accuracy"), ("exact_match", "em"), ("token_f1", "f1")],
        *[("spearman", "spearman"), ("ppl", "ppl"), ("nll", "score"), ("bleu", "score"), ("brier", "score")],
    ],
)
def test_metric_names(ours: str, theirs: str) -> None:
    made = row("m", "t", "bpb") | {"metric": ours, "id": f"m--t--{ours}"}
    assert v1_rows(made)[0]["metric"] == theirs


def test_a_task_of_unknown_metrics_gives_its_first_gating_one() -> None:
    rows = [
        row("m", "t", "acc", gating=name != "a", n=size) | {"metric": name, "id": f"m--t--{name}"}
        for size, name in enumerate("abc", start=5)
    ]
    assert [(each["metric"], each["n"]) for each in v1_rows(*rows)] == [("score", 6)]


@pytest.mark.parametrize("state", SCORED)
def test_scored_states_are_ok(state: str) -> None:
    made = regressed() if state == "regressed" else row("m", "prose", "bpb", state, reason="r")
    made = fresh("m", "prose", "bpb") if state == "new" else made
    assert v1_rows(made)[0]["status"] == "ok"


@pytest.mark.parametrize("state", [*(state for state in RED if state not in SCORED), "skipped"])
def test_rows_without_a_value_say_why(state: str) -> None:
    reason = "no zoo scorer for tl_arch 't5'"
    made = v1_rows(unscored("m", "prose", "bpb", state, reason))[0]
    status = "skipped" if state == "skipped" else "error"
    expected = {"model": "m", "task": "prose", "metric": "bpb", "status": status, "value": None, "reason": reason}
    assert made == expected
    assert list(made) == list(expected)


def test_a_failed_primary_metric_is_not_replaced_by_another() -> None:
    rows = [unscored("m", "prose", "bpb", "crashed", "out of memory"), row("m", "prose", "ppl")]
    assert [each["status"] for each in v1_rows(*rows)] == ["error"]


def test_an_incomparable_row_that_was_not_scored_is_an_error() -> None:
    assert v1_rows(unscored("m", "prose", "bpb", "incomparable", "the data changed"))[0]["status"] == "error"


def test_deselected_rows_are_left_out() -> None:
    rows = [unscored("m", "prose", "bpb", "deselected", None), row("m", "quiz", "acc")]
    assert [each["task"] for each in v1_rows(*rows)] == ["quiz"]


def test_manifest_and_time_only_when_given() -> None:
    made = report([row("m", "prose", "bpb")])
    assert list(eval_results(made)) == ["format", "suite", "seed", "rows"]
    given = eval_results(made, manifest="models/zoo.json", created="2026-11-30T10:00:00Z")
    assert list(given) == ["format", "suite", "seed", "manifest", "created", "rows"]
    assert validate_v1(given) == []


ROW = {"model": "m", "task": "t", "metric": "bpb", "status": "ok", "value": 1.0, "ci95": [0.9, 1.1], "n": 4}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"status": "skipped", "value": None, "reason": "no scorer"},
        {"metric": "em", "decode": "beam", "beam": 4},
        {"tl_arch": "word2vec", "metric": "spearman", "higher_is_better": True, "params": 0, "checkpoint": ""},
    ],
)
def test_the_schema_accepts(change: dict[str, Any]) -> None:
    assert validate_v1(HEAD | {"rows": [ROW | change]}) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"tl_arch": "ngram"}, "rows[0].tl_arch"),
        ({"metric": "acc"}, "rows[0].metric"),
        ({"status": "crashed"}, "rows[0].status"),
        ({"ci95": [1.0]}, "rows[0].ci95"),
        ({"ci95": None}, "rows[0].ci95"),
        ({"n": 1.5}, "rows[0].n"),
        ({"params": -1}, "rows[0].params"),
        ({"decode": "sample"}, "rows[0].decode"),
        ({"beam": 0}, "rows[0].beam"),
        ({"model": ""}, "rows[0].model"),
        ({"reason": None}, "rows[0].reason"),
        ({"state": "ok"}, "rows[0]"),
    ],
)
def test_the_schema_refuses_rows(change: dict[str, Any], path: str) -> None:
    errors = validate_v1(HEAD | {"rows": [ROW | change]})
    assert [error.split(":")[0] for error in errors] == [path]
    assert errors[0].endswith("(row m)") or not change.get("model", "m")


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "Zoo"},
        {"suite": "9"},
        {"seed": -1},
        {"seed": "0"},
        {"created": "2026-11-30"},
        {"extra": 1},
        {"rows": {}},
    ],
)
def test_the_schema_refuses_heads(change: dict[str, Any]) -> None:
    assert len(validate_v1(HEAD | {"rows": []} | change)) == 1


@pytest.mark.parametrize("missing", ["model", "task", "metric", "status"])
def test_a_row_needs(missing: str) -> None:
    short = {key: value for key, value in ROW.items() if key != missing}
    assert f"'{missing}' is a required property" in validate_v1(HEAD | {"rows": [short]})[0]


def test_a_written_report_reads_back_equal(tmp_path: Path) -> None:
    made = eval_results(report([row("m", "prose", "bpb"), unscored("t5", "de-en", "acc", "skipped", "no scorer")]))
    path = tmp_path / "deep" / "er" / "eval-results.json"
    write_v1(made, path)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == made
    assert text == json.dumps(made, indent=1) + "\n"

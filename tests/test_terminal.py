"""The last screen of a run, whole for the main cases, and the commands it tells a reader to type."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evalsuite.report.rows import SCORED, STATES
from evalsuite.report.terminal import short_verdict, summary_lines
from tests.report_rows import (
    METRICS,
    PATH,
    PROVENANCE,
    RECORDED,
    fresh,
    model,
    regressed,
    report,
    row,
    screen,
    unscored,
    verdict,
)

TRUNCATED = (
    "models/rnn-gru/model.safetensors: header says 1,204,224 bytes of data, file holds 700,000: truncated; "
    "train it again or restore it"
)


def test_green() -> None:
    rows = model("gpt-tiny") + model("kn4")
    rows[2] = row("gpt-tiny", "quiz", "acc", verdict=verdict(drop=-0.004, changed=3, units=200))
    rows[4] = row("kn4", "prose", "bpb", verdict=verdict(drop=0.00031, changed=12))
    assert screen(rows, exit_status=0) == (
        "evalsuite: 2 models, 8 rows, all ok (baseline 3f2c1a9, 2 days) in 23 s\n"
        "  gpt-tiny  prose bpb 2.214 [2.180, 2.249] unchanged   quiz acc 0.312 [0.255, 0.376] +0.004\n"
        "            quiz acc_norm 0.330 [0.270, 0.400] unchanged\n"
        "  kn4       prose bpb 2.214 [2.180, 2.249] +0.0003   quiz acc 0.312 [0.255, 0.376] unchanged\n"
        "            quiz acc_norm 0.330 [0.270, 0.400] unchanged\n"
        "  eval-report/report.json"
    )


def test_red() -> None:
    old = RECORDED | {"date": "2026-11-02T09:00:00Z", "commit": "1c0ffee", "platform": "Linux aarch64"}
    rows = [*model("gpt-tiny")[1:], *model("kn4"), regressed()]
    had = row("rnn-gru", "prose", "bpb")["baseline"]
    rows += [unscored("rnn-gru", "prose", metric, "error", TRUNCATED, baseline=had) for metric in ("bpb", "ppl")]
    lost = {"value": 2.2, "ci95": [2.1, 2.3], "n": 9, "recorded": old}
    rows += [unscored("old", "prose", "bpb", "lost", "it has a baseline, but no result", baseline=lost)]
    assert screen(rows) == (
        "evalsuite: RED - 1 regressed, 2 errors, 1 lost, 7 ok of 11 rows expected\n"
        "  regressed  gpt-tiny  prose  bpb (lower is better)\n"
        "             2.214 [2.180, 2.249] -> 2.318 [2.280, 2.357], worse by 0.104 [0.089, 0.119],\n"
        "             p = 2e-31 over 312 documents (301 worse)\n"
        "  error      rnn-gru  prose  bpb, ppl\n"
        "             models/rnn-gru/model.safetensors: header says 1,204,224 bytes of data, file holds\n"
        "             700,000: truncated; train it again or restore it\n"
        "  lost       old  prose  bpb (lower is better)\n"
        "             it has a baseline, but no result\n"
        "  baselines of 2026-11-02 (1c0ffee) to 2026-11-28 (3f2c1a9); same versions, seed, threads;\n"
        "    other platform: Linux aarch64 for some, now Linux x86_64\n"
        "  see one:  pytest evalsuite -n0 --eval-model gpt-tiny --eval-task prose\n"
        "  accept:   pytest evalsuite --snapshot-update --eval-model gpt-tiny --eval-task prose\n"
        "  forget:   evalsuite forget old\n"
        "  report:   eval-report/report.json"
    )


def test_first_run() -> None:
    rows = [fresh(name, task, metric) for name in ("a", "b") for task, metric in METRICS]
    assert screen(rows) == (
        "evalsuite: RED - 8 new of 8 rows expected\n"
        "  new        a  prose  bpb 2.214 [2.180, 2.249]   ppl 21.53 [20.10, 23.00]\n"
        "  new        a  quiz  acc 0.312 [0.255, 0.376]   acc_norm 0.330 [0.270, 0.400]\n"
        "  new        b  prose  bpb 2.214 [2.180, 2.249]   ppl 21.53 [20.10, 23.00]\n"
        "  new        b  quiz  acc 0.312 [0.255, 0.376]   acc_norm 0.330 [0.270, 0.400]\n"
        "  8 rows have no baseline: record them with `pytest evalsuite --snapshot-update`\n"
        "  report:   eval-report/report.json"
    )


def test_one_new_model_is_recorded_alone() -> None:
    rows = model("gpt") + [fresh("kn4", task, metric) for task, metric in METRICS]
    made = screen(rows)
    assert (
        "  4 rows have no baseline:\n"
        "  record:   pytest evalsuite --snapshot-update --eval-model kn4 --eval-task prose\n"
        "  record:   pytest evalsuite --snapshot-update --eval-model kn4 --eval-task quiz\n"
    ) in made
    assert "`" not in made


def test_a_partial_first_run_records_only_what_it_ran() -> None:
    made = screen([fresh("a", "prose", "bpb"), unscored("b", "prose", "bpb", "deselected", None)], partial=True)
    assert made == (
        "evalsuite: RED (partial run) - 1 new of 1 row expected\n"
        "  new        a  prose  bpb 2.214 [2.180, 2.249]\n"
        "  1 row has no baseline:\n"
        "  record:   pytest evalsuite --snapshot-update --eval-model a --eval-task prose\n"
        "  report:   eval-report/report.json (partial: 1 deselected, lost rows not checked)"
    )


def test_partial_green_says_so_first_and_last() -> None:
    rows = [*model("gpt"), unscored("b", "prose", "bpb", "deselected", None)]
    lines = screen(rows, partial=True, exit_status=0).splitlines()
    assert lines[0] == "evalsuite: partial run, 1 model, 4 rows, all ok (baseline 3f2c1a9, 2 days) in 23 s"
    assert lines[-1] == "  eval-report/report.json (partial: 1 deselected, lost rows not checked)"
    assert "  b " not in "\n".join(lines)


def test_improved_blind_and_skipped_rows_are_named_on_green() -> None:
    better = verdict(drop=-0.114, drop_ci95=[-0.13, -0.1], changed=312, worse=5, better=307)
    rows = [
        row("gpt", "prose", "bpb", "improved", value=2.1, ci95=[2.0, 2.2], verdict=better),
        row("kn4", "prose", "bpb", "blind", reason="one document: a drop can never be significant"),
        unscored("t5", "de-en", "acc", "skipped", "no zoo scorer for tl_arch 't5'"),
        row("gpt", "quiz", "acc"),
    ]
    assert screen(rows, exit_status=0) == (
        "evalsuite: 3 models, 4 rows: 1 ok, 1 improved, 1 blind, 1 skipped (baseline 3f2c1a9, 2 days)\n"
        "           in 23 s\n"
        "  gpt  prose bpb 2.100 [2.000, 2.200] -0.114   quiz acc 0.312 [0.255, 0.376] unchanged\n"
        "  kn4  prose bpb 2.214 [2.180, 2.249] unchanged\n"
        "  t5   de-en acc skipped\n"
        "  improved: gpt prose bpb 2.214 [2.180, 2.249] -> 2.100 [2.000, 2.200],\n"
        "    better by 0.114 [0.100, 0.130] over 312 documents (307 better)\n"
        "  blind: kn4 prose bpb: one document: a drop can never be significant\n"
        "  skipped: t5 de-en acc: no zoo scorer for tl_arch 't5'\n"
        "  the baselines of improved rows are stale:\n"
        "  accept:   pytest evalsuite --snapshot-update --eval-model gpt --eval-task prose\n"
        "  eval-report/report.json"
    )


def test_recording_says_recorded_and_what_to_commit() -> None:
    rows = [row("gpt", task, metric, "recorded", baseline=None, verdict=None) for task, metric in METRICS]
    made = screen(rows, exit_status=0)
    assert made.startswith("evalsuite: 1 model, 4 rows: 4 recorded in 23 s\n")
    assert "prose bpb 2.214 [2.180, 2.249] recorded   quiz acc" in made
    assert "\n  commit:   git add snapshots\n" in made
    assert "  commit:   git add snapshots\n" in screen([*rows, unscored("kn4", "prose", "bpb", "error", "broken")])


def test_a_crash_is_one_block_a_task() -> None:
    why = "its worker died while scoring it (killed from outside? out of memory?)"
    made = screen([*model("kn4"), *(unscored("gpt", task, metric, "crashed", why) for task, metric in METRICS)])
    assert made.startswith("evalsuite: RED - 4 crashed, 4 ok of 8 rows expected\n")
    assert made.count(why) == 2
    assert f"  crashed    gpt  prose  bpb, ppl\n             {why}\n" in made
    # In a worker: in one process the model would take the report with it.
    assert "  see one:  pytest evalsuite -n1 --eval-model gpt --eval-task prose\n" in made
    assert "accept:" not in made


def test_bad_rows_come_worst_first() -> None:
    def drop(name: str, by: float, p: float) -> dict[str, Any]:
        return row(name, "quiz", "acc", "regressed", verdict=verdict(drop=by, p=p))

    rows = [
        unscored("m1", "prose", "bpb", "not_run", "maxfail"),
        unscored("m2", "prose", "bpb", "error", "broken"),
        drop("m3", 0.002, 1e-40),
        drop("m4", 0.2, 1e-6),
        row("m5", "prose", "bpb", "incomparable", reason="data changed: ab12 -> cd34"),
    ]
    shown = [line.split()[:2] for line in screen(rows).splitlines() if "prose  " in line or "quiz  " in line]
    order = [["regressed", "m4"], ["regressed", "m3"], ["error", "m2"], ["incomparable", "m5"], ["not", "run"]]
    assert shown == order


def test_the_whole_suites_failure_is_shown_and_accepted_as_a_whole() -> None:
    made = screen(model("gpt"), gates={"gate[global]": "rows dropped 3.2 times their tolerance, p = 0.003"})
    assert made.startswith(
        "evalsuite: RED - gate[global], 4 ok of 4 rows expected\n"
        "  gate[global]: rows dropped 3.2 times their tolerance, p = 0.003\n"
        "  baseline of 2026-11-28 (3f2c1a9); same versions, seed, threads, platform\n"
    )
    assert "  all rows: pytest evalsuite --snapshot-update\n" in made


def test_a_gate_of_a_red_row_is_not_said_twice() -> None:
    made = screen([regressed()], gates={"gate[gpt-tiny--prose--bpb]": "p = 0.01, level 0.02 by Holm"})
    assert "gate[" not in made


def test_hundreds_of_bad_rows_are_cut_with_a_count() -> None:
    had = row("m", "prose", "bpb")["baseline"]
    rows = [unscored(f"m{index}", "prose", "bpb", "error", f"broken {index}", baseline=had) for index in range(150)]
    rows += [unscored(f"n{index}", "prose", "bpb", "lost", f"gone {index}") for index in range(50)]
    lines = screen(rows).splitlines()
    assert sum(line.startswith("  error ") for line in lines) == 20
    assert "  ... and 180 rows more: 130 errors, 50 lost (all in the report)" in lines
    assert [line.count(" n") for line in lines if line.startswith("  forget:")] == [20, 20, 10]
    assert len(lines) < 60


def test_long_reasons_are_wrapped_and_cut() -> None:
    reason = "first line\n\n" + "word " * 400
    lines = screen([unscored("m", "prose", "bpb", "error", reason)]).splitlines()
    assert lines[2] == "             first line"
    assert lines[9] == "             ... (18 more lines in the report)"


def test_what_a_terminal_must_not_see_is_escaped() -> None:
    made = screen([unscored("m", "prose", "bpb", "error", "\x1b[2Jgone \u6771 caf\udce9")])
    assert "\\x1b[2Jgone \\u6771 caf\\udce9" in made


def test_other_versions_seed_and_threads_are_named() -> None:
    now = PROVENANCE | {"seed": 1, "threads": 4, "versions": {"torch": "2.7.1", "python": "3.11.7", "numpy": "2.1.0"}}
    assert (
        "  baseline of 2026-11-28 (3f2c1a9); same platform; other versions: torch 2.6.0, now 2.7.1;\n"
        "    other seed: 0, now 1; other threads: 1, now 4\n"
    ) in screen([regressed()], provenance=now)


def test_a_red_exit_without_a_red_row_is_explained() -> None:
    assert "  every row is fine, but pytest ends with exit status 1: see above\n" in screen(model("gpt"))


def test_a_failed_run_without_any_row_is_red() -> None:
    assert screen([], exit_status=5).startswith("evalsuite: RED - no row was evaluated\n")


def test_rows_left_out_on_purpose_are_no_failure() -> None:
    rows = [unscored("b", "prose", "bpb", "deselected", None)]
    assert screen(rows, partial=True, exit_status=0) == (
        "evalsuite: no row was evaluated\n  eval-report/report.json (partial: 1 deselected, lost rows not checked)"
    )


# Commands


def test_commands_for_an_installed_package() -> None:
    test = "../site-packages/evalsuite/test_zoo.py::test_metric[gpt-tiny--prose--bpb]"
    made = screen([regressed() | {"test": test}], command="pytest --pyargs evalsuite")
    assert "  see one:  pytest --pyargs evalsuite -n0 --eval-model gpt-tiny --eval-task prose\n" in made
    assert "pytest --pyargs evalsuite --snapshot-update --eval-model gpt-tiny --eval-task prose\n" in made


@pytest.mark.parametrize("command", ["pytest evalsuite", "pytest --pyargs evalsuite"])
def test_rows_of_a_users_test_name_their_test(command: str) -> None:
    made = screen([regressed() | {"test": "tests/test_mine.py::test_helpful"}], command=command)
    assert "  see one:  pytest tests/test_mine.py::test_helpful -n0\n" in made
    assert "  accept:   pytest tests/test_mine.py::test_helpful --snapshot-update\n" in made


def test_a_parametrised_test_is_quoted_for_the_shell() -> None:
    made = screen([fresh("m", "prose", "bpb") | {"test": "tests/test_mine.py::test_helpful[a b]"}])
    assert "  record:   pytest 'tests/test_mine.py::test_helpful[a b]' --snapshot-update\n" in made


def test_the_same_pair_is_accepted_once_and_many_are_cut() -> None:
    def drops(name: str) -> list[dict[str, Any]]:
        return [row(name, "quiz", metric, "regressed", verdict=verdict(drop=0.1)) for metric in ("acc", "acc_norm")]

    made = screen([each for index in range(7) for each in drops(f"m{index}")])
    assert made.count("accept:") == 5
    assert "            ... and 2 more\n" in made


# One row


def test_the_failure_of_a_test_is_worded_as_the_summary() -> None:
    text = short_verdict(regressed())
    assert "\n".join(f"  {line}" for line in text.splitlines()) in screen([regressed()])
    assert text.startswith("regressed  gpt-tiny  prose  bpb (lower is better)\n")


def test_a_new_rows_failure_says_how_to_record_it() -> None:
    assert short_verdict(fresh("gpt", "quiz", "acc"), command="pytest --pyargs evalsuite") == (
        "new        gpt  quiz  acc (higher is better)\n"
        "           0.312 [0.255, 0.376], no baseline\n"
        "           record it with"
        " `pytest --pyargs evalsuite --snapshot-update --eval-model gpt --eval-task quiz`"
    )


def test_incomparable_shows_both_values_and_the_reason() -> None:
    made = row("gpt", "quiz", "acc", "incomparable", reason="items changed: 40 of 200 are the same")
    assert short_verdict(made) == (
        "incomparable  gpt  quiz  acc (higher is better)\n"
        "           0.312 [0.255, 0.376] -> 0.312 [0.255, 0.376]\n"
        "           items changed: 40 of 200 are the same"
    )


def test_notes_and_missing_items_are_said() -> None:
    gone = verdict(drop=0.05, p=0.0012, units=200, worse=12, missing=[f"q{index}" for index in range(8)], notes=["n1"])
    assert short_verdict(row("gpt", "quiz", "acc", "regressed", verdict=gone | {"drop_ci95": None})) == (
        "regressed  gpt  quiz  acc (higher is better)\n"
        "           0.312 [0.255, 0.376] -> 0.312 [0.255, 0.376], worse by 0.050,\n"
        "           p = 0.0012 over 200 items (12 worse)\n"
        "           note: n1\n"
        "           missing now: q0, q1, q2, q3, q4 and 3 more"
    )


@pytest.mark.parametrize(
    ("metric", "clusters", "unit"),
    [("bpb", None, "documents"), ("ppl", 40, "documents"), ("acc", None, "items"), ("acc", 40, "clusters")],
)
def test_units_are_named(metric: str, clusters: int | None, unit: str) -> None:
    made = row("m", "t", metric, "regressed", clusters=clusters, verdict=verdict(drop=0.1, units=40, worse=30))
    assert f"over 40 {unit} (30 worse)" in " ".join(short_verdict(made).split())


@pytest.mark.parametrize(
    ("metric", "value", "drop", "shown"),
    [
        ("bpb", 2.2144, 0.0, "2.214"),
        ("acc", 0.5, 0.0, "0.500"),
        ("ppl", 21.534, 0.3, "21.53"),
        ("ppl", 215.34, 3.0, "215.3"),
        ("ppl", 21534.2, 300.0, "21534"),
        ("ppl", 2.15e12, 1e11, "2.150e12"),
        ("acc", 0.0042, 0.0, "0.0042"),
        ("bpb", 2.21441, 0.0012, "2.2144"),
        ("acc", 0.0, 0.0, "0.000"),
    ],
)
def test_values_have_the_digits_that_matter(metric: str, value: float, drop: float, shown: str) -> None:
    made = row("m", "t", metric, value=value, ci95=[value, value], verdict=verdict(drop=drop))
    made["baseline"] = made["baseline"] | {"value": value}
    assert f"-> {shown} [{shown}, {shown}]" in short_verdict(made)


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        *[(2.3e-31, "p = 2e-31"), (0.00123, "p = 0.0012"), (0.034, "p = 0.034"), (9.7e-5, "p = 1e-4")],
        *[(1.0, "p = 1 "), (0.0, "p < 1e-300")],
    ],
)
def test_p_values(p: float, shown: str) -> None:
    assert shown in short_verdict(row("m", "t", "acc", "regressed", verdict=verdict(drop=0.1, p=p)))


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_words_and_needs_no_optional_key(state: str) -> None:
    made = row("m", "t", "acc", state) if state in SCORED else unscored("m", "t", "acc", state, "why")
    for key in ("verdict", "baseline", "higher_is_better", "reason", "units", "clusters", "items"):
        made.pop(key, None)
        assert short_verdict(made).startswith(state.replace("_", " "))


@pytest.mark.parametrize(
    ("hours", "age"),
    [(0.2, "under an hour"), (1.5, "1 hour"), (26, "26 hours"), (49, "2 days"), (24 * 400, "400 days")],
)
def test_the_age_of_a_baseline(hours: float, age: str) -> None:
    then = datetime.fromtimestamp(1_790_000_000 - hours * 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = row("m", "prose", "bpb")
    made["baseline"] = made["baseline"] | {"recorded": RECORDED | {"date": then, "commit": None}}
    lines = summary_lines(
        report([made], exit_status=0), report_path=PATH, age_now=datetime.fromtimestamp(1_790_000_000, UTC)
    )
    assert f"(baseline {then[:10]}, {age})" in lines[0]

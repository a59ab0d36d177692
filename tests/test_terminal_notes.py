"""What the last screen says beside the verdict: rows that guard nothing, numbers that are not what they seem, and when
it offers to forget a baseline."""

from __future__ import annotations

from typing import Any

import pytest

from tests.report_rows import regressed, row, screen, unscored, verdict


def test_rows_that_guard_nothing_are_named_on_red_too() -> None:
    better = verdict(drop=-0.114, drop_ci95=[-0.13, -0.1], changed=312, worse=5, better=307)
    rows = [
        regressed(),
        unscored("mamba", "prose", "bpb", "skipped", "no zoo scorer for tl_arch 'mamba'"),
        row("kn4", "prose", "bpb", "blind", reason="one document"),
        row("gpt", "prose", "bpb", "improved", value=2.1, ci95=[2.0, 2.2], verdict=better),
    ]
    made = screen(rows)
    assert "  skipped: mamba prose bpb: no zoo scorer for tl_arch 'mamba'\n" in made
    assert "  blind: kn4 prose bpb: one document\n" in made
    assert "  improved: gpt prose bpb 2.214 [2.180, 2.249] -> 2.100 [2.000, 2.200],\n" in made
    assert made.count("accept:") == 1  # of what is red; nobody should accept more in passing


NOTE = "20 units of the baseline are missing and are left out"
EDITED = {"drop": 0.0, "units": 451, "missing": ["q1", "q2"], "notes": [NOTE]}


@pytest.mark.parametrize("bad", [[], [regressed()]], ids=["green", "red"])
def test_edited_data_is_said(bad: list[dict[str, Any]]) -> None:
    made = screen([row("kn4", "quiz", "acc", verdict=verdict(**EDITED)), *bad], exit_status=len(bad))
    assert made.count(f"  note: kn4 quiz acc: {NOTE}\n") == 1


def test_a_blind_row_has_its_notes_too() -> None:
    made = screen([row("m", "quiz", "acc", "blind", reason="2 units", verdict=verdict(**EDITED))], exit_status=0)
    assert f"  blind: m quiz acc: 2 units\n  note: m quiz acc: {NOTE}\n" in made


@pytest.mark.parametrize("state", ["recorded", "informing", "new"])
def test_unscored_units_of_a_row_without_a_verdict_are_said(state: str) -> None:
    made = screen([row("m", "quiz", "acc", state, baseline=None, verdict=None, unscored=3)], exit_status=state == "new")
    assert "  note: m quiz acc: 3 units could not be scored and count at the worst score\n" in made


@pytest.mark.parametrize(
    ("found", "value", "text"),
    [
        ({}, 0.312, "unchanged"),
        (EDITED, 0.312, "unchanged on the 451 items compared"),
        (EDITED, 0.29, "unchanged on the 451 items compared"),
        (EDITED | {"drop": -0.004, "changed": 3}, 0.312, "+0.004 on the 451 items compared"),
        ({"changed": 6, "better": 3, "worse": 3}, 0.312, "+0 (3 better, 3 worse)"),
        ({}, 0.314, "was 0.312, within noise"),  # items on the edge flipped, which counts as no difference
    ],
)
def test_unchanged_is_said_only_where_value_and_units_are(found: dict[str, Any], value: float, text: str) -> None:
    made = screen([row("m", "quiz", "acc", value=value, verdict=verdict(**found))], exit_status=0)
    assert f"  m  quiz acc {value:.3f} [0.255, 0.376] {text}\n" in made


def test_a_model_that_is_gone_is_forgotten_at_once_and_a_task_by_its_rows() -> None:
    gone = [unscored("old", "quiz", metric, "lost", "gone") for metric in ("acc", "acc_norm")]
    task = [unscored("gpt", "quiz", metric, "lost", "gone") for metric in ("acc", "acc_norm")]
    made = screen([row("gpt", "prose", "bpb"), *gone, *task])
    assert "  forget:   evalsuite forget old gpt--quiz--acc gpt--quiz--acc_norm\n" in made
    assert made.count("forget:") == 1


def test_of_a_users_model_rows_are_forgotten_and_no_others() -> None:
    """It may have rows in files that this run was not asked for."""
    lost = unscored("bot", "quiz", "acc", "lost", "gone") | {"test": "tests/test_bot.py::test_it"}
    assert "  forget:   evalsuite forget bot--quiz--acc\n" in screen([lost])


@pytest.mark.parametrize("broken", ["zoo--unknown--score", "entry-1--quiz--acc", "gpt--quiz--score"])
def test_nothing_is_forgotten_while_the_zoo_cannot_be_read(broken: str) -> None:
    """A manifest, an entry or a task file that is broken has a row of another name, and its own rows look lost."""
    name, task, metric = broken.split("--")
    odd = unscored(name, task, "acc", "error", "not JSON") | {"id": broken, "metric": metric}
    lost = unscored("gpt", "quiz", "acc", "lost", "gone")
    assert "forget" not in screen([odd, lost])
    assert "forget" in screen(
        [unscored("kn4", "quiz", "acc", "error", "cut", baseline=row("m", "quiz", "acc")["baseline"]), lost]
    )

"""Ways to a green build that should not be, found by trying: each must be red, or be said."""

from __future__ import annotations

import json

import pytest

from tests.zoo_project import ENTRIES, Project

pytest_plugins = ["pytester"]

ROW = """
def test_rec(eval_record):
    eval_record("em", {scores}, task="support", model="bot"{more})
"""


def test_a_model_that_gives_every_choice_the_same_score_is_regressed(recorded: Project) -> None:
    """Its answers are all ties, which is no numerical noise: they were none before."""
    import torch

    from evalsuite.zoo.families.gpt import load, save

    folder = recorded.path / "models" / "gpt"
    model = load(folder)
    recorded.manifest({**ENTRIES["gpt"], "tasks": ["quiz"]})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    save(model, folder)
    rows = recorded.suite("--eval-model", "gpt").rows
    for metric in ("acc", "acc_norm"):
        row = rows[f"gpt--quiz--{metric}"]
        assert row["unstable"] > 0
        assert row["verdict"]["changed"] > 0, metric
        assert row["verdict"]["drop"] == pytest.approx(row["baseline"]["value"] - row["value"])


def test_a_row_that_comes_to_gate_is_red_until_it_is_recorded(project: Project) -> None:
    project.manifest({**ENTRIES["bigram"], "gating": False})
    assert project.suite("--snapshot-update").exit == 0
    project.manifest("bigram")
    project.damage("bigram", 2.0)
    ran = project.suite()
    assert (ran.exit, ran.states["bigram--prose--bpb"]) == (1, "incomparable")
    assert "record it again" in ran.rows["bigram--prose--bpb"]["reason"]


def test_a_users_row_cannot_take_the_name_of_a_zoo_row(recorded: Project) -> None:
    (recorded.path / "test_mine.py").write_text(
        "def test_rec(eval_record):\n    eval_record('bpb', [1, 2], task='prose', model='bigram', gating=False)\n"
    )
    ran = recorded.run("test_mine.py")
    assert ran.exit == 1
    assert "the row bigram--prose--bpb is one of the zoo's" in ran.text


@pytest.mark.parametrize(
    "text",
    ["import pytest\npytest.importorskip('no_such_library')\n" + ROW, ROW.replace("test_rec", "xtest_rec"), None],
)
def test_a_file_that_yields_no_test_owes_its_rows(project: Project, text: str | None) -> None:
    """It is skipped as a whole, its test was renamed, or it is gone; an ordinary file beside it passes."""
    folder = project.path / "tests"
    folder.mkdir()
    (folder / "test_b.py").write_text("def test_ok():\n    assert True\n")
    file = folder / "test_a.py"
    file.write_text(ROW.format(scores="[1, 0, 1]", more=""))
    assert project.run("tests", "--snapshot-update").exit == 0
    if text is None:
        file.unlink()
    else:
        file.write_text(text.replace("{scores}", "[1, 0, 1]").replace("{more}", ""))
    ran = project.run("tests")
    assert (ran.exit, ran.states) == (1, {"bot--support--em": "lost"})
    assert project.run("tests/test_b.py").exit == 0


def test_a_row_that_moved_is_owed_by_its_new_test(project: Project) -> None:
    (project.path / "tests" / "sub").mkdir(parents=True)
    file = project.path / "tests" / "test_a.py"
    file.write_text(ROW.format(scores="[1, 0, 1]", more=""))
    assert project.run("tests", "--snapshot-update").exit == 0
    moved = file.rename(project.path / "tests" / "sub" / "test_a.py")
    assert project.run("tests", "--snapshot-update").states == {"bot--support--em": "recorded"}
    moved.write_text("def test_rec():\n    pass\n")
    assert project.run("tests").states == {"bot--support--em": "lost"}


def test_a_folder_ignored_for_good_does_not_hide_a_lost_model(recorded: Project) -> None:
    (recorded.path / "pytest.ini").write_text("[pytest]\naddopts = --ignore=build\n")
    recorded.manifest("bigram")
    ran = recorded.suite()
    assert ran.exit == 1
    assert {state for row, state in ran.states.items() if not row.startswith("bigram")} == {"lost"}
    assert "partial" not in ran.screen


def test_a_row_of_a_subtest_waits_for_the_whole_test(project: Project) -> None:
    text = (
        "import pytest\n"
        "@pytest.mark.parametrize('bad', [{bad}])\n"
        "def test_rec(eval_record, subtests, bad):\n"
        "    for lang in ('de', 'en'):\n"
        "        with subtests.test(lang):\n"
        "            scores = [not (bad and lang == 'de')] * 40\n"
        "            eval_record(f'em-{{lang}}', scores, task='support', model='bot')\n"
    )
    file = project.path / "test_mine.py"
    file.write_text(text.format(bad=False))
    assert project.run("test_mine.py", "--snapshot-update").exit == 0
    file.write_text(text.format(bad=True))
    ran = project.run("test_mine.py")
    assert (ran.exit, ran.states) == (1, {"bot--support--em-de": "regressed", "bot--support--em-en": "ok"})


def test_two_names_that_differ_in_case_only_are_an_error(project: Project) -> None:
    (project.path / "test_mine.py").write_text(
        "import pytest\n@pytest.mark.parametrize('name', ['em', 'EM'])\n"
        "def test_rec(eval_record, name):\n    eval_record(name, [1, 0], task='support', model='bot')\n"
    )
    ran = project.run("test_mine.py")
    assert (ran.exit, list(ran.states.values())) == (1, ["error"])
    assert "case does not count" in ran.screen


@pytest.mark.parametrize(("field", "value"), [("value", "zz"), ("ci95", "zz"), ("n", "zz"), ("min_drop", float("inf"))])
def test_a_baseline_edited_by_hand_is_an_error_that_names_it(recorded: Project, field: str, value: object) -> None:
    path = recorded.path / "snapshots" / "test_zoo" / "bigram--prose--bpb.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    row = recorded.suite("--eval-model", "bigram").rows["bigram--prose--bpb"]
    assert row["state"] == "error"
    assert f"bigram--prose--bpb.json: {field} is" in row["reason"]
    assert "record the row again" in row["reason"]


def test_more_layers_than_the_file_has_are_refused_at_once(recorded: Project) -> None:
    path = recorded.path / "models" / "gpt" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n_layer": 10**9}))
    row = recorded.suite("--eval-model", "gpt").rows["gpt--prose--bpb"]
    assert (row["state"], "h.999999999.ln_1.weight" in row["reason"]) == ("error", True)


def test_a_folder_of_items_that_is_a_file_costs_the_rows_not_the_run(recorded: Project) -> None:
    folder = recorded.path / "eval-report"
    folder.mkdir(exist_ok=True)
    (folder / "items").write_text("not a folder")
    ran = recorded.suite("--eval-model", "bigram")
    assert ran.exit == 1
    assert "its items cannot be written" in ran.rows["bigram--prose--bpb"]["reason"]


def test_paths_that_lead_nowhere_are_usage_errors(recorded: Project) -> None:
    (recorded.path / "loop").symlink_to("loop")
    assert recorded.suite("--eval-tasks", "loop").exit == 4
    (recorded.path / "models" / "zoo.json").write_text("[" * 200_000)
    ran = recorded.suite()
    assert ran.exit == 1
    assert "not JSON" in ran.rows["zoo--unknown--score"]["reason"]


@pytest.mark.parametrize("drop", ["float('inf')", "float('nan')", "-1"])
def test_a_smallest_drop_that_is_no_number_is_refused(project: Project, drop: str) -> None:
    (project.path / "test_mine.py").write_text(ROW.format(scores="[1, 0, 1]", more=f", min_drop={drop}"))
    ran = project.run("test_mine.py", "--snapshot-update")
    assert (ran.exit, ran.states) == (1, {"bot--support--em": "error"})
    assert "expected a number of at least 0" in ran.screen

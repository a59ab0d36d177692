"""The baselines of a project: listed without their numbers, whatever their state, and deleted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalsuite.gate.snapshot import encode, sidecars, write_row
from evalsuite.gate.store import baselines, forget
from tests.gate_rows import STORED, items


def store(snapshots: Path, row_id: str, folder: str = "test_zoo", test: str = "", **facts: Any) -> Path:
    path = snapshots / folder / f"{row_id}.json"
    write_row(path, encode(items([1, 0], **facts), STORED | {"test": test}))
    return path


def test_rows_of_all_folders_by_id(tmp_path: Path) -> None:
    store(tmp_path, "b--t--acc", test="evalsuite/test_zoo.py::test_metric[b--t--acc]")
    store(tmp_path, "a--t--acc", "test_mine", "tests/test_mine.py::test_it", gating=False)
    store(tmp_path, "v1.5--org_name-rev--f1.x", "test_mine", "tests/test_mine.py::test_it")
    found = baselines(tmp_path)
    assert [one.row_id for one in found] == ["a--t--acc", "b--t--acc", "v1.5--org_name-rev--f1.x"]
    assert [one.gating for one in found] == [False, True, True]
    assert [one.of_zoo for one in found] == [False, True, False]
    assert found[0].test == "tests/test_mine.py::test_it"
    assert found[0].header["value"] == 0.5
    assert found[0].path == tmp_path / "test_mine" / "a--t--acc.json"


def test_other_files_are_no_rows(tmp_path: Path) -> None:
    path = store(tmp_path, "a--t--acc")
    (path.parent / "notes.json").write_text("{}")
    (path.parent / "a--t.json").write_text("{}")
    (tmp_path / "b--t--acc.json").write_text("{}")
    assert [one.row_id for one in baselines(tmp_path)] == ["a--t--acc"]
    assert baselines(tmp_path / "absent") == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "evalsuite.baseline.v1", "sidecar": "x"}', "<<<<<<<"])
def test_a_damaged_row_gates_until_it_is_read(tmp_path: Path, text: str) -> None:
    """A row that cannot be read must not leave the family, or make the run crash before anything is reported."""
    path = store(tmp_path, "a--t--acc", gating=False)
    path.write_text(text)
    (found,) = baselines(tmp_path)
    assert (found.row_id, found.gating, found.test, dict(found.header)) == ("a--t--acc", True, "", {})


def test_facts_of_another_shape_are_damage(tmp_path: Path) -> None:
    path = store(tmp_path, "a--t--acc")
    path.write_text(path.read_text().replace('"recorded": {', '"recorded": null, "was": {'))
    (found,) = baselines(tmp_path)
    assert found.header == {}


def test_forget_deletes_a_row_and_no_other(tmp_path: Path) -> None:
    gone = store(tmp_path, "a--t--acc")
    kept = store(tmp_path, "a--t--acc_norm")
    stale = gone.with_name("a--t--acc.00000000.safetensors")
    stale.write_bytes(b"")
    removed = forget(tmp_path, ["a--t--acc"])
    assert len(removed) == 3
    assert {gone, stale} <= set(removed)
    assert sorted(gone.parent.iterdir()) == sorted([kept, *sidecars(kept)])


def test_forget_works_on_a_damaged_row(tmp_path: Path) -> None:
    path = store(tmp_path, "a--t--acc")
    path.write_text("{")
    assert len(forget(tmp_path, ["a--t--acc"])) == 2
    assert list(path.parent.iterdir()) == []


def test_forget_of_an_unknown_row_names_the_nearest(tmp_path: Path) -> None:
    store(tmp_path, "kn4--prose--bpb")
    with pytest.raises(
        ValueError, match=r"has no baseline of the row or model 'kn4--prose--bpc'; did you mean kn4--prose--bpb\?"
    ):
        forget(tmp_path, ["kn4--prose--bpc"])
    with pytest.raises(ValueError, match=r"has no baseline of the row or model 'zzz'$"):
        forget(tmp_path, ["zzz"])
    assert len(baselines(tmp_path)) == 1


def test_forget_takes_models_and_several_names_or_nothing(tmp_path: Path) -> None:
    for row_id in ("gpt--prose--bpb", "gpt--quiz--acc", "kn4--prose--bpb", "kn4--quiz--acc"):
        store(tmp_path, row_id)
    with pytest.raises(ValueError, match=r"of the row or model 'gtp'; did you mean gpt\?"):
        forget(tmp_path, ["kn4--prose--bpb", "gtp"])
    assert len(baselines(tmp_path)) == 4
    assert len(forget(tmp_path, ["gpt", "kn4--prose--bpb", "gpt--quiz--acc"])) == 6
    assert [stored.row_id for stored in baselines(tmp_path)] == ["kn4--quiz--acc"]

"""The manifest: a bad entry keeps its place and says what is wrong; a bad file is one clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalsuite.names import MAX_NAME, name_problem, row_part
from evalsuite.zoo.manifest import Entry, read_entries, read_manifest


def write(folder: Path, manifest: Any) -> Path:
    path = folder / "zoo.json"
    path.write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
    return path


def entries(folder: Path, *models: Any) -> tuple[Entry, ...]:
    return read_entries(write(folder, {"models": list(models)}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", r"not JSON"),
        ("", r"not JSON"),
        ("[]", r'expected an object with a list "models"'),
        ("{}", r'expected an object with a list "models"'),
        ('{"models": {}}', r'expected an object with a list "models"'),
        ('{"models": null}', r'expected an object with a list "models"'),
        ('{"models": [], "suite": "My Suite"}', r'"suite" is \'My Suite\', expected lower-case'),
        ('{"models": [], "suite": 3}', r'"suite" is 3, expected lower-case'),
    ],
)
def test_a_bad_manifest_is_named(tmp_path: Path, text: str, why: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=why) as raised:
        read_manifest(path)
    assert str(raised.value).startswith(f"{path}: ")


def test_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"zoo.json: cannot read the manifest \(No such file or directory\)"):
        read_entries(tmp_path / "zoo.json")


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "zoo.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match="not JSON"):
        read_manifest(tmp_path / "zoo.json")


def test_entries_keep_their_order_and_root(tmp_path: Path) -> None:
    found = entries(tmp_path, {"id": "z", "dir": "zz"}, {"id": "a", "dir": "x/y"})
    assert [(entry.name, entry.problem) for entry in found] == [("z", ""), ("a", "")]
    assert found[1].directory == tmp_path.resolve() / "x" / "y"
    assert found[0].raw == {"id": "z", "dir": "zz"}


def test_an_id_with_organisation_and_revision(tmp_path: Path) -> None:
    (found,) = entries(tmp_path, {"id": "org/name@rev-1.2", "dir": "x"})
    assert (found.name, found.problem) == ("org_name_rev-1.2", "")


GOOD = {"id": "a", "dir": "x"}


@pytest.mark.parametrize(
    ("entry", "name", "why"),
    [
        ("text", "entry-2", "entry 2 of the manifest is str, not an object"),
        (None, "entry-2", "entry 2 of the manifest is NoneType, not an object"),
        ({"dir": "x"}, "entry-2", 'entry 2 of the manifest has no "id" (a non-empty string)'),
        ({"id": "", "dir": "x"}, "entry-2", 'has no "id"'),
        ({"id": 5, "dir": "x"}, "entry-2", 'has no "id"'),
        ({"id": "b c", "dir": "x"}, "entry-2", "the name 'b c' must be made of letters, digits"),
        ({"id": "b--c", "dir": "x"}, "entry-2", "the name 'b--c' must be made of"),
        ({"id": "x" * 71, "dir": "x"}, "entry-2", "has 71 characters; a row's file name has room for 70"),
        ({"id": "A", "dir": "x"}, "entry-2", "the name 'A' is taken by an earlier entry (case does not count)"),
        ({"id": "b"}, "b", "entry 'b' has no \"dir\", the folder of its checkpoint"),
        ({"id": "b", "dir": 5}, "b", 'has no "dir"'),
        ({"id": "b", "dir": "x", "gating": "no"}, "b", "entry 'b': \"gating\" is 'no', expected true or false"),
        ({"id": "b", "dir": "x", "min_drop": 0.1}, "b", "entry 'b': \"min_drop\" is 0.1, expected numbers"),
        ({"id": "b", "dir": "x", "min_drop": {"bpb": "0.1"}}, "b", '"min_drop" is {'),
        ({"id": "b", "dir": "x", "min_drop": {"bpb": -1}}, "b", '"min_drop" is {'),
        ({"id": "b", "dir": "x", "min_drop": {"bpb": True}}, "b", '"min_drop" is {'),
    ],
)
def test_a_bad_entry_keeps_its_place(tmp_path: Path, entry: Any, name: str, why: str) -> None:
    found = entries(tmp_path, GOOD, entry, {"id": "c", "dir": "y"})
    assert [one.name for one in found] == ["a", name, "c"]
    assert [bool(one.problem) for one in found] == [False, True, False]
    assert why in found[1].problem


def test_good_optional_fields(tmp_path: Path) -> None:
    (found,) = entries(tmp_path, {"id": "b", "dir": "x", "gating": False, "min_drop": {"bpb": 0, "acc": 0.02}})
    assert found.problem == ""


@pytest.mark.parametrize("name", ["a", "A.b_c-d", "0", "x" * MAX_NAME, "a-b-c", "..."])
def test_good_names(name: str) -> None:
    assert name_problem(name) == ""


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "a--b", "-a", "a-", "-", "ä", "a\n", "a[0]", "a:b", "x" * (MAX_NAME + 1)]
)
def test_bad_names(name: str) -> None:
    assert name_problem(name)


def test_three_parts_can_be_told_apart() -> None:
    """A hyphen at the end of a part would run into the two that join parts: "a-" and "b", or "a" and "-b"?"""
    parts = ["a", "a-b", "A.0_1"]
    for one in parts:
        for two in parts:
            for three in parts:
                assert f"{one}--{two}--{three}".split("--") == [one, two, three]
    assert (
        name_problem("a-") == "the name 'a-' must be made of letters, digits, '_', '.' and single hyphens between them"
    )


def test_row_part() -> None:
    assert row_part("org/name@rev") == "org_name_rev"
    assert row_part("a b") == "a b"  # refused, not mended: two names must not become one

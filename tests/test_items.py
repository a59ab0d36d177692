"""Multiple-choice items: what is read from JSONL, and what each bad line is told as."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalsuite.tasks.items import ChoiceItem, read_choices

GOOD = {"id": "a", "context": "Q:", "choices": [" x", " y"], "label": 1}


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return path


def test_items_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", GOOD, "", "  \t", {**GOOD, "id": "b", "extra": 1})
    assert read_choices(path) == [
        ChoiceItem("a", "Q:", (" x", " y"), 1),
        ChoiceItem("b", "Q:", (" x", " y"), 1),
    ]


def test_an_item_without_id_is_named_after_its_line(tmp_path: Path) -> None:
    bare = {key: value for key, value in GOOD.items() if key != "id"}
    path = write(tmp_path / "x.jsonl", bare, "", bare)
    assert [item.id for item in read_choices(path)] == ["line-1", "line-3"]


def test_line_separators_inside_a_text_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps({**GOOD, "context": "a\u2028b\x85"}, ensure_ascii=False).encode() + b"\r\n"
    )
    assert read_choices(path)[0].context == "a\u2028b\x85"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a JSON object"),
        ("3", "found 3, expected an object"),
        ({"context": "Q:"}, "choices, label missing"),
        ({**GOOD, "id": ""}, "id is ''"),
        ({**GOOD, "id": 3}, "id is 3"),
        ({**GOOD, "id": None}, "id is None"),
        ({**GOOD, "context": ""}, "context is ''"),
        ({**GOOD, "context": ["Q:"]}, "context is"),
        ({**GOOD, "choices": [" x"]}, "at least two"),
        ({**GOOD, "choices": " x"}, "at least two"),
        ({**GOOD, "choices": [" x", ""]}, "choice 1 is ''"),
        ({**GOOD, "choices": [" x", 4]}, "choice 1 is 4"),
        ({**GOOD, "choices": [" x", "\ud800"]}, "not valid Unicode"),
        ({**GOOD, "label": 2}, "label is 2, expected an integer from 0 to 1"),
        ({**GOOD, "label": -1}, "label is -1"),
        ({**GOOD, "label": True}, "label is True"),
        ({**GOOD, "label": 1.0}, "label is 1.0"),
        (GOOD, "id 'a' is already taken by line 1"),
    ],
)
def test_a_bad_line_is_named_with_its_fault(tmp_path: Path, line: object, message: str) -> None:
    path = write(tmp_path / "x.jsonl", GOOD, "", line)
    with pytest.raises(ValueError, match=message) as caught:
        read_choices(path)
    assert f"{path}:3:" in str(caught.value)


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"context": "\xff"}')
    with pytest.raises(ValueError, match=r"x\.jsonl:1: not a JSON object"):
        read_choices(path)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_items_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match="no items"):
        read_choices(path)

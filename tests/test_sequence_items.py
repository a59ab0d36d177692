"""Sequence pairs: what is read from JSONL, and what each bad line is told as."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalsuite.tasks.sequences import SequencePair, read_pairs

GOOD = {"id": "a", "src": [3, 4], "tgt": [5]}


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return path


def test_pairs_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", GOOD, "", "  \t", {**GOOD, "id": "b", "extra": 1})
    assert read_pairs(path) == [SequencePair("a", (3, 4), (5,)), SequencePair("b", (3, 4), (5,))]


def test_a_pair_without_id_is_named_after_its_line(tmp_path: Path) -> None:
    bare = {"src": [0], "tgt": []}
    path = write(tmp_path / "x.jsonl", bare, "", bare)
    assert read_pairs(str(path)) == [SequencePair("line-1", (0,), ()), SequencePair("line-3", (0,), ())]


def test_a_byte_order_mark_and_carriage_returns_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n")
    assert read_pairs(tmp_path / "x.jsonl")[0].id == "a"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ("3", "found 3, expected an object with src and tgt"),
        ({"id": "b", "tgt": [1]}, "src missing"),
        ({}, "src, tgt missing"),
        ({**GOOD, "id": ""}, "id is ''"),
        ({**GOOD, "id": 3}, "id is 3"),
        ({**GOOD, "id": "a\nb"}, "id is 'a\\\\nb', expected a printable text"),
        ({**GOOD, "id": "\ud800"}, "expected a printable text"),
        ({**GOOD, "src": []}, "src is empty"),
        ({**GOOD, "src": "3 4"}, "src is '3 4', expected a list of token ids"),
        ({**GOOD, "src": [3, -1]}, r"src is \[3, -1\]"),
        ({**GOOD, "src": [3, 2**63]}, r"src is \[3, 9223372036854775808\]"),
        ({**GOOD, "tgt": [1.0]}, r"tgt is \[1.0\]"),
        ({**GOOD, "tgt": [True]}, r"tgt is \[True\]"),
        ({**GOOD, "tgt": None}, "tgt is None"),
        (GOOD, "id 'a' is already taken by line 1"),
    ],
)
def test_a_bad_line_is_named_with_its_fault(tmp_path: Path, line: object, message: str) -> None:
    path = write(tmp_path / "x.jsonl", GOOD, "", line)
    with pytest.raises(ValueError, match=message) as caught:
        read_pairs(path)
    assert f"{path}:3:" in str(caught.value)


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(ValueError, match=r"x\.jsonl:1: not a JSON object"):
        read_pairs(path)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_pairs_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match="no pairs, expected one JSON object a line"):
        read_pairs(path)

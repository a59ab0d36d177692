"""Labelled sentences: the split asked for, and nothing else."""

from pathlib import Path

import pytest

from evalsuite.tasks.sentences import LabelledSentence, read_sentences

ROWS = "split\tsentence\tlabel\ntrain\tgood\t1\nval\tbad\t0\nval\tfine é\t2\ntest\tother\t1\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.tsv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def test_only_the_rows_of_the_split_come_back(file: Path) -> None:
    assert read_sentences(file, "val") == [LabelledSentence("bad", 0, 3), LabelledSentence("fine é", 2, 4)]


def test_the_first_line_is_a_header_whatever_it_says(file: Path) -> None:
    file.write_text("val\tlooks like a row\t1\nval\tbad\t0\n", encoding="utf-8")
    assert read_sentences(file, "val") == [LabelledSentence("bad", 0, 2)]


@pytest.mark.parametrize("line", ["val\tno label", "val\ttext\tx", "val\ttext\t-1", "", "a\tb\tc\td"])
def test_a_bad_line_is_named(file: Path, line: str) -> None:
    file.write_text(ROWS + line + "\nval\tx\t1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 6: expected split"):
        read_sentences(file, "val")


def test_an_absent_split_names_those_there(file: Path) -> None:
    with pytest.raises(ValueError, match=r"no row of the split 'dev'; splits there: test, train, val"):
        read_sentences(file, "dev")


def test_only_a_line_feed_ends_a_line(file: Path) -> None:
    """A sentence may hold what Unicode calls a line separator; a byte order mark and \\r\\n are left out."""
    text = "one\u2028two\x85three\x0bfour"
    file.write_bytes(f"\ufeffsplit\tsentence\tlabel\r\nval\t{text}\t1\r\nval\tx\t0".encode())
    assert read_sentences(file, "val") == [LabelledSentence(text, 1, 2), LabelledSentence("x", 0, 3)]


def test_a_file_that_is_not_utf_8_is_named(file: Path) -> None:
    file.write_bytes(b"split\tsentence\tlabel\nval\t\xff\t1\n")
    with pytest.raises(ValueError, match=r"rows\.tsv: not UTF-8 text"):
        read_sentences(file, "val")

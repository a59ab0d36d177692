"""Token files and document indexes: the layout byte by byte, round trips, and what each fault is told as."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.tasks.tokens import (
    HEADER_BYTES,
    Document,
    index_path,
    read_index,
    read_tokens,
    validate_index,
    write_index,
    write_tokens,
)


def header(magic: int = 20240520, version: int = 1, n: int = 0, vocab: int = 256) -> bytes:
    return struct.pack("<4i", magic, version, n, vocab).ljust(HEADER_BYTES, b"\0")


def test_the_published_example_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_tokens(path, [1, 2, 3], 256)
    raw = path.read_bytes()
    assert len(raw) == 1030
    assert raw[:4].hex() == "88d83401"
    assert raw[-6:].hex() == "010002000300"
    assert raw == header(n=3) + bytes.fromhex("010002000300")
    found = read_tokens(path)
    assert found.ids.dtype == np.int64
    assert found.ids.tolist() == [1, 2, 3]
    assert found.vocab_size == 256


@given(st.lists(st.integers(0, 2**32 - 1), max_size=30))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, ids: list[int]) -> None:
    path = tmp_path_factory.mktemp("tokens") / "x.bin"
    write_tokens(path, ids)
    assert read_tokens(path).ids.tolist() == ids
    width = 2 if max(ids, default=0) < 2**16 else 4
    assert path.stat().st_size == HEADER_BYTES + width * len(ids)


@pytest.mark.parametrize(("vocab", "width"), [(2**16, 2), (2**16 + 1, 4), (2**31 - 1, 4)])
def test_the_vocabulary_decides_the_width(tmp_path: Path, vocab: int, width: int) -> None:
    path = tmp_path / "x.bin"
    write_tokens(path, np.array([0, 1], np.uint8), vocab)
    assert path.stat().st_size == HEADER_BYTES + 2 * width
    assert read_tokens(path).vocab_size == vocab


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "0 bytes are too few"),
        (header()[:-1], "1023 bytes are too few"),
        (header(magic=7), "starts with 7"),
        (header(version=3), "version 3 is unknown"),
        (header(n=-1), "-1 tokens"),
        (header(vocab=-1), "vocabulary of -1"),
        (header(n=2) + b"\1\0", "1026 bytes, but 2 ids of 2 bytes after the header make 1028: the file is cut off"),
        (header(n=1) + b"\1\0\0", "longer than its header says"),
        (header(n=3, vocab=3) + bytes.fromhex("010003000200"), r"id 3 at position 1, expected 0 to 2 .*tokenizer"),
    ],
)
def test_a_bad_token_file_is_named_with_its_fault(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=message) as caught:
        read_tokens(path)
    assert str(path) in str(caught.value)


def test_an_unknown_vocabulary_allows_every_id(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(header(n=1, vocab=0) + b"\xff\xff")
    assert read_tokens(path).ids.tolist() == [65535]
    path.write_bytes(header(n=1, version=2, vocab=0) + b"\xff\xff\xff\xff")
    assert read_tokens(path).ids.tolist() == [2**32 - 1]


@pytest.mark.parametrize(
    ("ids", "vocab", "message"),
    [
        ([-1], 0, "id -1 at position 0"),
        ([0, 300], 256, "id 300 at position 1"),
        ([2**32], 0, "too large"),
        ([[1, 2]], 0, "shape"),
        ([0.5], 0, "float64"),
        ([True], 0, "bool"),
        ([0], -1, "vocabulary size -1"),
    ],
)
def test_ids_that_cannot_be_written(tmp_path: Path, ids: list[object], vocab: int, message: str) -> None:
    path = tmp_path / "x.bin"
    with pytest.raises(ValueError, match=message):
        write_tokens(path, ids, vocab)
    assert not path.exists()


def test_an_index_is_found_beside_its_stream(tmp_path: Path) -> None:
    stream = tmp_path / "heldout.bin"
    documents = (Document("Ruth 1", 0, 3), Document('Café "2"', 3, 4))
    write_index(stream, documents, 4)
    assert index_path(stream) == tmp_path / "heldout.index.json"
    assert read_index(stream, 4) == documents
    assert read_index(index_path(stream)) == documents


def test_an_empty_stream_has_an_empty_index(tmp_path: Path) -> None:
    write_index(tmp_path / "x.bin", (), 0)
    assert read_index(tmp_path / "x.bin", 0) == ()


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([Document("a", 1, 2)], "starts at token 1, expected 0"),
        ([Document("a", 0, 2), Document("b", 1, 4)], "starts at token 1, expected 2"),
        ([Document("a", 0, 2), Document("b", 3, 4)], "starts at token 3, expected 2"),
        ([Document("a", 0, 0)], "leave empty ones out"),
        ([Document("a", 0, 2), Document("a", 2, 4)], "documents 0 and 1 have the same id 'a'"),
        ([Document("", 0, 4)], "empty id"),
        ([Document("a", 0, 3)], "end at token 3, the stream at 4"),
    ],
)
def test_an_index_must_cut_the_stream_without_gaps(documents: list[Document], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validate_index(documents, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a JSON document"),
        ("[]", "format None"),
        ('{"format": "other"}', "format 'other'"),
        ('{"format": "evalsuite.documents.v1"}', '"documents" is missing'),
        ('{"format": "evalsuite.documents.v1", "documents": [3]}', "document 0 is 3"),
        ('{"format": "evalsuite.documents.v1", "documents": [{"id": "a", "start": 0, "end": true}]}', "integers start"),
        ('{"format": "evalsuite.documents.v1", "documents": [{"id": "a", "start": 0}]}', "id, start and end"),
    ],
)
def test_a_bad_index_file_is_named_with_its_fault(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.index.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_index(path)
    assert str(path) in str(caught.value)

"""Token streams in ``.bin`` files (llm.c layout) and the index of documents beside them.

A token file is little-endian throughout: a header of 256 int32, then the ids and nothing else.

    header[0]       magic 20240520
    header[1]       version, 1 for uint16 ids, 2 for uint32 ids
    header[2]       number of tokens n
    header[3]       vocabulary size V, 0 where it is not known
    header[4:256]   0

The index ``<name>.index.json`` cuts the stream of ``<name>.bin`` into documents without gaps:

    {"format": "evalsuite.documents.v1", "documents": [{"id": "Ruth 1", "start": 0, "end": 3120}, ...]}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAGIC = 20240520
HEADER_INTS = 256
HEADER_BYTES = 4 * HEADER_INTS
INDEX_FORMAT = "evalsuite.documents.v1"
ID_TYPES: dict[int, np.dtype[np.uint16 | np.uint32]] = {1: np.dtype("<u2"), 2: np.dtype("<u4")}
"""Version to the type of an id."""


@dataclass(frozen=True, eq=False)
class TokenFile:
    """What a token file holds.

    Attributes:
        ids: int64 [n], the stream.
        vocab_size: V, every id is below it; 0 where the file does not say.
    """

    ids: NDArray[np.int64]
    vocab_size: int


@dataclass(frozen=True)
class Document:
    """``ids[start:end]`` of a stream, under a name that is unique in its index."""

    id: str
    start: int
    end: int


def read_tokens(path: str | Path) -> TokenFile:
    """Read a token file whole; any departure from the layout is a ValueError that names the file."""
    path = Path(path)
    raw = path.read_bytes()
    if len(raw) < HEADER_BYTES:
        raise ValueError(
            f"{path}: {len(raw)} bytes are too few for a token file, whose header alone takes {HEADER_BYTES}: "
            f"the file is cut off or of another format"
        )
    magic, version, n_tokens, vocab_size = (int(x) for x in np.frombuffer(raw, "<i4", count=4))
    if magic != MAGIC:
        raise ValueError(f"{path}: the file starts with {magic}, a token file with {MAGIC}: it is of another format")
    if version not in ID_TYPES:
        raise ValueError(
            f"{path}: version {version} is unknown, expected 1 (uint16 ids) or 2 (uint32 ids): write the file again"
        )
    if n_tokens < 0 or vocab_size < 0:
        raise ValueError(
            f"{path}: the header gives {n_tokens} tokens and a vocabulary of {vocab_size}, "
            f"neither may be negative: write the file again"
        )
    dtype = ID_TYPES[version]
    expected = HEADER_BYTES + n_tokens * dtype.itemsize
    if len(raw) != expected:
        raise ValueError(
            f"{path}: {len(raw)} bytes, but {n_tokens} ids of {dtype.itemsize} bytes after the header make {expected}: "
            f"the file is {'cut off' if len(raw) < expected else 'longer than its header says'}, write or copy it again"
        )
    ids = np.frombuffer(raw, dtype, offset=HEADER_BYTES).astype(np.int64)  # [n]
    _check_range(ids, vocab_size, str(path))
    return TokenFile(ids, vocab_size)


def write_tokens(path: str | Path, ids: ArrayLike, vocab_size: int = 0) -> None:
    """Write a token file, version 1 where every id the vocabulary allows fits in 16 bits, else version 2.

    Args:
        path: the file, replaced if it exists.
        ids: integers [n], each in ``[0, vocab_size)``.
        vocab_size: V, or 0 where it is not known; then the largest id decides the version.
    """
    array = np.asarray(ids)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{path}: ids of shape {array.shape} and type {array.dtype}, expected integers [n]")
    if not 0 <= vocab_size < 2**31:
        raise ValueError(f"{path}: vocabulary size {vocab_size}, expected 0 (unknown) to {2**31 - 1}")
    if array.size >= 2**31:
        raise ValueError(f"{path}: {array.size} tokens, a token file holds at most {2**31 - 1}: split the stream")
    largest = int(array.max(initial=0))
    _check_range(array, vocab_size, str(path))
    if largest >= 2**32:
        raise ValueError(f"{path}: id {largest} is too large, a token file holds 32-bit ids")
    version = 1 if max(vocab_size - 1, largest) < 2**16 else 2
    header = np.zeros(HEADER_INTS, "<i4")
    header[:4] = MAGIC, version, array.size, vocab_size
    Path(path).write_bytes(header.tobytes() + array.astype(ID_TYPES[version]).tobytes())


def index_path(path: str | Path) -> Path:
    """Where the document index of a token file lies: ``heldout.bin`` to ``heldout.index.json``."""
    path = Path(path)
    return path if path.name.endswith(".index.json") else path.with_suffix(".index.json")


def read_index(path: str | Path, n_tokens: int | None = None) -> tuple[Document, ...]:
    """The documents of a stream, in its order.

    Args:
        path: the index, or the token file that it lies beside.
        n_tokens: length of the stream, to check that the documents cover it exactly.
    """
    path = index_path(path)
    try:
        index = json.loads(path.read_bytes())
    except ValueError as error:  # bad JSON or bad UTF-8
        raise ValueError(f"{path}: not a JSON document ({error}): write the index again") from None
    found = index.get("format") if isinstance(index, dict) else None
    if found != INDEX_FORMAT:
        raise ValueError(f"{path}: format {found!r}, expected {INDEX_FORMAT!r}: the file is of another format")
    entries = index.get("documents")
    if not isinstance(entries, list):
        raise ValueError(f'{path}: "documents" is missing or not a list, expected one entry a document')
    documents = tuple(_document(entry, f"{path}: document {i}") for i, entry in enumerate(entries))
    validate_index(documents, n_tokens, str(path))
    return documents


def write_index(path: str | Path, documents: Sequence[Document], n_tokens: int | None = None) -> None:
    """Write the index of a stream, one document a line; ``path`` as in `read_index`."""
    path = index_path(path)
    validate_index(documents, n_tokens, str(path))
    lines = [json.dumps({"id": doc.id, "start": doc.start, "end": doc.end}, ensure_ascii=False) for doc in documents]
    body = ",\n".join(lines)
    path.write_text(f'{{"format": "{INDEX_FORMAT}", "documents": [\n{body}\n]}}\n', encoding="utf-8", newline="\n")


def validate_index(documents: Sequence[Document], n_tokens: int | None, where: str = "document index") -> None:
    """ValueError unless the documents are non-empty, contiguous from 0 (to ``n_tokens``) and have unique ids."""
    position = 0
    seen: dict[str, int] = {}
    for i, doc in enumerate(documents):
        if not doc.id:
            raise ValueError(f"{where}: document {i} has an empty id, expected a name")
        if doc.id in seen:
            raise ValueError(f"{where}: documents {seen[doc.id]} and {i} have the same id {doc.id!r}: rename one")
        seen[doc.id] = i
        if doc.start != position:
            raise ValueError(
                f"{where}: document {i} ({doc.id!r}) starts at token {doc.start}, expected {position}: "
                f"documents follow each other from token 0 without gap or overlap"
            )
        if doc.end <= doc.start:
            raise ValueError(
                f"{where}: document {i} ({doc.id!r}) runs from token {doc.start} to {doc.end}: leave empty ones out"
            )
        position = doc.end
    if n_tokens is not None and position != n_tokens:
        raise ValueError(
            f"{where}: the documents end at token {position}, the stream at {n_tokens}: "
            f"the index belongs to another token file, build both again"
        )


def _document(entry: object, where: str) -> Document:
    if not isinstance(entry, dict) or set(entry) != {"id", "start", "end"}:
        raise ValueError(f"{where} is {entry!r}, expected an object with id, start and end")
    name, start, end = entry["id"], entry["start"], entry["end"]
    if not isinstance(name, str) or type(start) is not int or type(end) is not int:
        raise ValueError(f"{where} is {entry!r}, expected a string id and integers start and end")
    return Document(name, start, end)


def _check_range(ids: NDArray[np.integer], vocab_size: int, where: str) -> None:
    """ValueError at the first id below 0, or at or above a known vocabulary size."""
    bad = ids < 0
    if vocab_size:
        bad |= ids >= vocab_size
    if bad.any():
        i = int(bad.argmax())
        expected = f"0 to {vocab_size - 1} (vocabulary size {vocab_size})" if vocab_size else "0 or more"
        raise ValueError(f"{where}: id {ids[i]} at position {i}, expected {expected}: was another tokenizer used?")

"""The file of an n-gram model: a safetensors file of int32 tables, written byte for byte the same every time.

    order{k}.grams   I32 [N_k, k]   rows ascending, -1 is the start symbol
    order{k}.counts  I32 [N_k]      raw counts

The writer is our own since the library orders metadata keys by a hash that differs between processes. No torch here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from evalsuite.zoo.tensors import read_header


@dataclass(frozen=True, eq=False)
class Grams:
    """The grams of one order.

    Attributes:
        symbols: int64 [N_k, k].
        counts: int64 [N_k].
    """

    symbols: NDArray[np.int64]
    counts: NDArray[np.int64]


def write_gram_file(path: Path, grams: Sequence[Grams], metadata: Mapping[str, str]) -> None:
    """Write the orders 1, 2, ... in safetensors' canonical form; the file appears whole or not at all."""
    tensors = {}
    for k, table in enumerate(grams, start=1):
        tensors[f"order{k}.grams"] = table.symbols.astype("<i4")
        tensors[f"order{k}.counts"] = table.counts.astype("<i4")
    header: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))}
    position = 0
    for name in sorted(tensors):
        size = tensors[name].nbytes
        shape = list(tensors[name].shape)
        header[name] = {"dtype": "I32", "shape": shape, "data_offsets": [position, position + size]}
        position += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    body = b"".join(tensors[name].tobytes() for name in sorted(tensors))
    partial = path.with_name(f"{path.name}.tmp")
    partial.write_bytes(len(text).to_bytes(8, "little") + text + body)
    partial.replace(path)


def read_gram_file(path: Path) -> tuple[Mapping[str, str], list[Grams]]:
    """Metadata and the orders 1, 2, ... of a file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is damaged or holds something else; the text names it and says what was found.
    """
    header = read_header(path)
    metadata = header.metadata
    if metadata.get("tl_arch") != "ngram":
        raise ValueError(f"{path}: metadata names tl_arch {metadata.get('tl_arch')!r}, expected 'ngram'")
    tensors = header.tensors
    n = len(tensors) // 2
    expected = {f"order{k}.{part}" for k in range(1, n + 1) for part in ("grams", "counts")}
    if set(tensors) != expected or not n:
        odd = ", ".join(sorted(expected ^ set(tensors))) or "no tensors"
        raise ValueError(f"{path}: tensors missing or unexpected ({odd}), expected order<k>.grams and .counts from 1")
    for k in range(1, n + 1):
        grams, counts = tensors[f"order{k}.grams"], tensors[f"order{k}.counts"]
        if grams.dtype != "I32" or counts.dtype != "I32":
            raise ValueError(f"{path}: order {k} is of type {grams.dtype} and {counts.dtype}, expected I32 twice")
        if len(grams.shape) != 2 or grams.shape[1] != k or counts.shape != grams.shape[:1]:
            shapes = f"grams {list(grams.shape)} and counts {list(counts.shape)}"
            raise ValueError(f"{path}: order {k} has {shapes}, expected [N, {k}] and [N]")
    arrays = load_file(path)
    return metadata, [
        Grams(arrays[f"order{k}.grams"].astype(np.int64), arrays[f"order{k}.counts"].astype(np.int64))
        for k in range(1, n + 1)
    ]

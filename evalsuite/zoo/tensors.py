"""Checkpoint tensors in the safetensors format: checked, read as float32, written the same bytes every time.

A file is an 8-byte little-endian header length N, N bytes of JSON and the data. The header is checked here in
full before the safetensors library maps the file, so that a damaged file is reported with what is wrong and what
to do. Writing is done here because the library orders metadata by a hash that differs between processes.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

ITEM_SIZE = {
    "U64": 8,
    "I64": 8,
    "F64": 8,
    "F32": 4,
    "U32": 4,
    "I32": 4,
    "BF16": 2,
    "F16": 2,
    "U16": 2,
    "I16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
"""Bytes an element, in the order in which the canonical writer sorts tensors."""

WIDENED = ("F32", "BF16", "F16")
"""The dtypes that float32 holds exactly."""

MAX_HEADER = 100_000_000


@dataclass(frozen=True)
class TensorInfo:
    """What the header says of one tensor: its dtype and shape."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Header:
    """A safetensors header: the tensors by name, and the metadata."""

    tensors: Mapping[str, TensorInfo]
    metadata: Mapping[str, str]


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read and check the header of a safetensors file without reading its data, and without torch.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is not a whole safetensors file; the text says what was found and what to do.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file; a checkpoint directory holds config.json and model.safetensors")
    size = file.stat().st_size
    with file.open("rb") as stream:
        prefix = stream.read(8)
        if len(prefix) < 8:
            raise ValueError(f"{file}: {size} bytes are too few for a safetensors file; {REMEDY}")
        (length,) = struct.unpack("<Q", prefix)
        if length > MAX_HEADER or 8 + length > size:
            raise ValueError(
                f"{file}: not a safetensors file, or truncated inside its header: the first 8 bytes announce "
                f"a header of {length:,} bytes, file holds {size:,}; {REMEDY}"
            )
        raw = stream.read(length)
    try:
        document = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except ValueError as error:
        raise ValueError(f"{file}: the safetensors header is not JSON ({error}); {REMEDY}") from error
    if not isinstance(document, dict):
        raise ValueError(f"{file}: the safetensors header is a JSON {type(document).__name__}, expected an object")
    metadata = document.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError(f"{file}: the metadata must map strings to strings, found {metadata!r}")
    spans: list[tuple[int, int]] = []
    tensors: dict[str, TensorInfo] = {}
    for name, entry in document.items():
        tensors[name], span = _entry(file, name, entry)
        spans.append(span)
    _check_layout(file, spans, size - 8 - length)
    return Header(tensors, metadata)


REMEDY = "train it again or restore it"


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that names a key twice: ``json`` would keep the last one silently."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError(f"duplicate keys among {[key for key, _ in pairs]}")
    return result


def _entry(file: Path, name: str, entry: object) -> tuple[TensorInfo, tuple[int, int]]:
    """One tensor's header entry, checked, and its [begin, end) in the data."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{file}: tensor {name!r} needs exactly dtype, shape and data_offsets, found {entry!r}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in ITEM_SIZE:
        raise ValueError(f"{file}: tensor {name!r} has the unknown dtype {dtype!r}")
    if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2:
        raise ValueError(f"{file}: tensor {name!r} has shape {shape!r} and data_offsets {offsets!r}")
    needed = math.prod(shape) * ITEM_SIZE[dtype]
    if offsets[1] - offsets[0] != needed:
        raise ValueError(f"{file}: tensor {name!r}, {dtype} {shape}, needs {needed:,} bytes, data_offsets {offsets}")
    return TensorInfo(dtype, tuple(shape)), (offsets[0], offsets[1])


def _naturals(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_layout(file: Path, spans: Iterable[tuple[int, int]], found: int) -> None:
    """The tensors must fill the data without a gap, an overlap or a rest."""
    end = 0
    for begin, stop in sorted(spans):
        if begin != end:
            raise ValueError(f"{file}: a gap or an overlap in the data at byte {min(begin, end):,}; {REMEDY}")
        end = stop
    if end != found:
        cause = "truncated" if found < end else "trailing bytes"
        raise ValueError(f"{file}: header says {end:,} bytes of data, file holds {found:,}: {cause}; {REMEDY}")


def read_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], Mapping[str, str]]:
    """Read a safetensors file as float32 tensors by name, and its metadata.

    BF16 and F16 are widened to float32, which is exact.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a damaged file (see `read_header`), another dtype, or NaN or infinite values.
    """
    import torch
    from safetensors.torch import load_file

    header = read_header(path)
    for name, info in header.tensors.items():
        if info.dtype not in WIDENED:
            raise ValueError(f"{path}: tensor {name!r} is {info.dtype}, expected one of {', '.join(WIDENED)}")
    tensors = {name: tensor.float() for name, tensor in load_file(path).items()}
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{path}: tensor {name!r} holds NaN or infinite values; {REMEDY}")
    return tensors, header.metadata


def read_checkpoint(model_dir: str | os.PathLike[str]) -> tuple[dict[str, Tensor], Path]:
    """Read a directory's tensors, and say which file they are from.

    It is ``model.safetensors`` or, where that is absent, ``model.safetensors.index.json`` with the shards it lists.

    Raises:
        FileNotFoundError, ValueError: see `read_tensors` and `read_shards`.
    """
    weights = Path(model_dir) / "model.safetensors"
    index = Path(f"{weights}.index.json")
    if index.is_file() and not weights.is_file():
        return read_shards(index), index
    return read_tensors(weights)[0], weights


def read_shards(index: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read a checkpoint that is cut into several safetensors files.

    Args:
        index: ``model.safetensors.index.json``, whose ``weight_map`` says for each tensor which file holds it.

    Raises:
        FileNotFoundError: a shard is not there.
        ValueError: an index that is none, a damaged shard, or shards that hold other tensors than the index says.
    """
    path = Path(index)
    try:
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_unique)
    except ValueError as error:
        raise ValueError(f"{path}: not a JSON object ({error})") from None
    placed = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(placed, dict) or not placed or not all(isinstance(name, str) for name in placed.values()):
        raise ValueError(f'{path}: expected an object "weight_map" from tensor to file name')
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(placed.values())):
        if not shard or Path(shard).name != shard:
            raise ValueError(f"{path}: the shard {shard!r} is no plain file name; shards lie beside the index")
        found, _ = read_tensors(path.with_name(shard))
        listed = {name for name, file in placed.items() if file == shard}
        if found.keys() != listed:
            raise ValueError(
                f"{path.with_name(shard)}: missing tensors {sorted(listed - found.keys())}, unexpected tensors "
                f"{sorted(found.keys() - listed)}; {path.name} lists what each shard holds"
            )
        tensors |= found
    return tensors


def require(tensors: Mapping[str, Tensor], last: str, path: str | os.PathLike[str]) -> None:
    """Refuse a configuration with more layers than the file, before a module of that many is built.

    Raises:
        KeyError: the last layer's tensor is missing.
    """
    if last not in tensors:
        raise KeyError(f"{path}: missing tensor {last!r}, which the number of layers in config.json asks for")


def load_strict(module: nn.Module, tensors: Mapping[str, Tensor], path: str | os.PathLike[str]) -> None:
    """Fill a module, built on the meta device, with exactly the tensors it names, and put it in eval mode.

    The meta device spares a load from drawing an initialisation, and the caller's generator from its draws.

    Raises:
        KeyError: a tensor is missing, or one is there that the module does not have.
        ValueError: a tensor has another shape than the configuration gives.
    """
    expected = module.state_dict()
    missing, unexpected = sorted(expected.keys() - tensors.keys()), sorted(tensors.keys() - expected.keys())
    if missing or unexpected:
        raise KeyError(f"{path}: missing tensors {missing}, unexpected tensors {unexpected}")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise ValueError(
                f"{path}: tensor {name!r} has shape {list(tensor.shape)}, config.json gives "
                f"{list(expected[name].shape)}"
            )
    module.to_empty(device="cpu")
    module.load_state_dict(dict(tensors))
    module.eval()


def write_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write float32 tensors as a canonical safetensors file, so equal tensors give equal bytes.

    Tensors are sorted by name, the JSON is compact, metadata keys ascend. The file appears whole or not at all.
    """
    import torch

    header: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    data: list[bytes] = []
    end = 0
    for name in sorted(tensors, key=str.encode):
        tensor = tensors[name].detach().to("cpu", torch.float32).contiguous()
        data.append(tensor.numpy().astype("<f4", copy=False).tobytes())
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [end, end + len(data[-1])]}
        end += len(data[-1])
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    partial = Path(f"{os.fspath(path)}.tmp")
    partial.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))
    partial.replace(path)

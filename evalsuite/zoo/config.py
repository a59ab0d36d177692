"""A checkpoint's ``config.json``: read, and its values checked one key at a time. Without torch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from evalsuite.zoo.tensors import read_header

Config = Mapping[str, object]


class ConfigError(ValueError):
    """A key of a configuration that is missing or holds something else than expected."""


def read_config(model_dir: str | os.PathLike[str]) -> dict[str, object]:
    """Read a checkpoint's configuration.

    It is ``model_dir/config.json``; failing that, the metadata of the safetensors file (``model_dir`` itself, or
    ``model_dir/model.safetensors``) where they name ``tl_arch``, all values being strings then (the n-gram's way).

    Raises:
        ValueError: neither is there, or ``config.json`` is not a JSON object.
    """
    directory = Path(model_dir)
    file = directory / "config.json"
    if file.is_file():
        return _read_object(file)
    weights = directory if directory.suffix == ".safetensors" else directory / "model.safetensors"
    if weights.is_file():
        metadata = read_header(weights).metadata
        if "tl_arch" in metadata:
            return dict(metadata)
    found = "no such file" if weights == directory else "no such directory"
    if directory.exists():
        found = "no config.json and no .safetensors file that names tl_arch"
    raise ValueError(f"{directory}: {found}; a checkpoint directory holds config.json and model.safetensors")


def _read_object(file: Path) -> dict[str, object]:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{file}, line {error.lineno}: not JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not UTF-8 text ({error})") from error
    if not isinstance(config, dict):
        raise ValueError(f"{file}: expected a JSON object, found {type(config).__name__}")
    return config


def write_config(model_dir: str | os.PathLike[str], config: Config) -> None:
    """Write ``config.json``, keys in the order given, creating the directory."""
    directory = Path(model_dir)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def tokenizer_of(config: Config) -> str:
    """``tl_tokenizer``; where it is absent "bytes" for a vocabulary of 256, else "file"."""
    named = config.get("tl_tokenizer")
    if named is None:
        return "bytes" if str(config.get("vocab_size")) == "256" else "file"
    if named not in ("bytes", "file"):
        raise ConfigError(f"config key 'tl_tokenizer': found {named!r}, expected 'bytes' or 'file'")
    return str(named)


def check_arch(config: Config, arch: str) -> None:
    """Raise ValueError unless the configuration is of this architecture."""
    if config.get("tl_arch") != arch:
        raise ConfigError(f"config key 'tl_arch': found {config.get('tl_arch')!r}, expected {arch!r}")


def size(config: Config, key: str) -> int:
    """An integer of at least 1. ValueError where it is missing or something else."""
    value = _required(config, key)
    if type(value) is not int or value < 1:
        raise ConfigError(f"config key {key!r}: found {value!r}, expected an integer of at least 1")
    return value


def positive(config: Config, key: str, default: float) -> float:
    """A number above 0, or the default where the key is absent."""
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ConfigError(f"config key {key!r}: found {value!r}, expected a number above 0")
    return float(value)


def flag(config: Config, key: str) -> bool:
    """True or false. ValueError where it is missing or something else."""
    value = _required(config, key)
    if not isinstance(value, bool):
        raise ConfigError(f"config key {key!r}: found {value!r}, expected true or false")
    return value


def one_of(config: Config, key: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed strings. ValueError where it is missing or something else."""
    value = _required(config, key)
    if value not in allowed:
        raise ConfigError(f"config key {key!r}: found {value!r}, expected one of {', '.join(allowed)}")
    return str(value)


def _required(config: Config, key: str) -> object:
    if key not in config:
        raise ConfigError(f"config: missing key {key!r}")
    return config[key]

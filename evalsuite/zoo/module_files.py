"""A module and its checkpoint directory: ``config.json`` beside ``model.safetensors``, loaded strictly."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from evalsuite.zoo.config import Config, write_config
from evalsuite.zoo.tensors import load_strict, read_checkpoint, require, write_tensors

M = TypeVar("M", bound=nn.Module)


def load_module(
    model_dir: str | os.PathLike[str],
    build: Callable[[], M],
    *,
    last: tuple[str, ...] = (),
    skip: Callable[[str], bool] = lambda _name: False,
) -> M:
    """Build a module and fill it with the directory's tensors, sharded or not, in eval mode.

    Args:
        model_dir: the checkpoint directory.
        build: makes the module; called with the meta device as the default, so that no initialisation is drawn.
        last: a tensor of the last layer of each stack, asked for before the module is built, so that a configuration
            with a billion layers is an error and not a killed process.
        skip: says of a tensor's name whether it is derived from others and not wanted.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a damaged file, a wrong shape, NaN or infinite weights.
    """
    tensors, weights = read_checkpoint(model_dir)
    tensors = {name: tensor for name, tensor in tensors.items() if not skip(name)}
    for name in last:
        require(tensors, name, weights)
    with torch.device("meta"):
        module = build()
    load_strict(module, tensors, weights)
    return module


def save_module(
    module: nn.Module, config: Config, model_dir: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write ``config.json`` (with ``tl_format``) and ``model.safetensors``; equal modules give equal bytes.

    Args:
        module: its ``state_dict`` is what is stored; a tied tensor must stand in it once.
        config: ``config.json`` without ``tl_format``.
        model_dir: created where it is not there.
        metadata: of the file; by default its format and ``tl_arch``.
    """
    write_config(model_dir, {"tl_arch": config["tl_arch"], "tl_format": 1} | dict(config))
    metadata = metadata or {"format": "tinyllm", "tl_arch": str(config["tl_arch"])}
    write_tensors(Path(model_dir) / "model.safetensors", module.state_dict(), metadata)

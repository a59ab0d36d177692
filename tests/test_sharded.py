"""Checkpoints that are cut into several files load like whole ones, and say what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from evalsuite.zoo import load_model, save_word2vec
from evalsuite.zoo.families import gpt, llama

INDEX = "model.safetensors.index.json"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    llama.save(llama.Llama(llama.LlamaConfig(20, 8, 12, 2, 2, 1, 32)), tmp_path / "llama")
    return tmp_path / "llama"


def shard(directory: Path, files: int = 3) -> dict[str, str]:
    """Cut the checkpoint into files; returns the map from tensor to file."""
    tensors = load_file(directory / "model.safetensors")
    placed = {name: f"model-{at % files + 1:05d}-of-{files:05d}.safetensors" for at, name in enumerate(sorted(tensors))}
    for file in set(placed.values()):
        save_file({name: tensors[name] for name in placed if placed[name] == file}, directory / file)
    (directory / "model.safetensors").unlink()
    (directory / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": placed}))
    return placed


def test_shards_are_the_whole(directory: Path) -> None:
    whole = load_model(directory).state_dict()
    shard(directory)
    cut = load_model(directory).state_dict()
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_every_family_reads_them(tmp_path: Path) -> None:
    gpt.save(gpt.GPT(gpt.GPTConfig(11, 8, 4, 2, 1, 8)), tmp_path)
    whole = load_model(tmp_path).state_dict()
    shard(tmp_path, 2)
    assert all(torch.equal(tensor, whole[name]) for name, tensor in load_model(tmp_path).state_dict().items())


def test_word_vectors_too(tmp_path: Path) -> None:
    save_word2vec([[1.0, 2.0], [3.0, 4.0]], ["a", "b"], tmp_path)
    shard(tmp_path, 1)
    assert load_model(tmp_path).table.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def refused(directory: Path, kind: type[Exception], reason: str) -> None:
    with pytest.raises(kind) as caught:
        load_model(directory)
    assert reason in str(caught.value)


def test_a_shard_that_is_gone(directory: Path) -> None:
    shard(directory)
    (directory / "model-00002-of-00003.safetensors").unlink()
    refused(directory, FileNotFoundError, "model-00002-of-00003.safetensors: no such file")


def test_a_tensor_that_is_elsewhere(directory: Path) -> None:
    placed = shard(directory)
    placed["model.norm.weight"] = next(file for file in placed.values() if file != placed["model.norm.weight"])
    (directory / INDEX).write_text(json.dumps({"weight_map": placed}))
    refused(directory, ValueError, "tensors ['model.norm.weight']")


def test_a_tensor_in_two_shards(directory: Path) -> None:
    shard(directory)
    for file in sorted(directory.glob("model-*.safetensors")):
        save_file(load_file(file) | {"model.norm.weight": torch.ones(8)}, file)
    refused(directory, ValueError, "unexpected tensors ['model.norm.weight']")


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("{", "not a JSON object"),
        ('{"weight_map": {"a": "x", "a": "y"}}', "duplicate keys"),
        ("[]", 'expected an object "weight_map"'),
        ('{"weight_map": {}}', 'expected an object "weight_map"'),
        ('{"weight_map": {"a": 3}}', 'expected an object "weight_map"'),
        ('{"weight_map": {"a": ""}}', "the shard '' is no plain file name"),
        ('{"weight_map": {"a": "../secret.safetensors"}}', "'../secret.safetensors' is no plain file name"),
    ],
)
def test_a_bad_index(directory: Path, index: Any, reason: str) -> None:
    shard(directory)
    (directory / INDEX).write_text(index)
    refused(directory, ValueError, reason)

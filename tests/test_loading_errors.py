"""What a reader is told about a checkpoint that cannot be loaded: the file, what was found, what was expected."""

from __future__ import annotations

import json
import re
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from evalsuite.zoo.checkpoint import load_model, read_config
from evalsuite.zoo.families import bigram, gpt, nplm, rnnlm
from evalsuite.zoo.tensors import read_header, read_tensors

torch.set_num_threads(1)

SAVERS = {
    "bigram": lambda place: bigram.save(bigram.BigramLM(np.zeros((4, 4), np.float32)), place),
    "nplm": lambda place: nplm.save(nplm.NPLM(nplm.NPLMConfig(6, 3, 4, 5, True)), place),
    "rnnlm": lambda place: rnnlm.save(rnnlm.RNNLM(rnnlm.RNNLMConfig(6, "gru", 4, 5, 1)), place),
    "gpt": lambda place: gpt.save(gpt.GPT(gpt.GPTConfig(6, 8, 8, 2, 1, 12)), place),
}


@pytest.fixture(params=SAVERS)
def checkpoint(request, tmp_path):
    SAVERS[request.param](tmp_path / request.param)
    return tmp_path / request.param


def change_config(directory, **changes):
    """Set keys of config.json; a value of None drops the key."""
    config = json.loads((directory / "config.json").read_text()) | changes
    kept = {key: value for key, value in config.items() if value is not None}
    (directory / "config.json").write_text(json.dumps(kept))


def change_tensors(directory, change):
    tensors, metadata = read_tensors(directory / "model.safetensors")
    change(tensors)
    save_file(tensors, directory / "model.safetensors", dict(metadata))


# config.json


def test_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'none'}: no such directory")):
        read_config(tmp_path / "none")
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'n.safetensors'}: no such file")):
        read_config(tmp_path / "n.safetensors")
    with pytest.raises(ValueError, match=r"no config.json and no .safetensors file that names tl_arch"):
        read_config(tmp_path)


@pytest.mark.parametrize("arch", ["nplm", "rnnlm", "gpt"])
def test_weights_alone(tmp_path, arch):
    """They may name the family, but not its sizes."""
    SAVERS[arch](tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}: no config.json, and the file's metadata does not")):
        load_model(tmp_path)


def test_a_configuration_without_a_family(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(KeyError, match=r"no zoo scorer for tl_arch None; config\.json names no tl_arch"):
        load_model(tmp_path)


def test_the_file_is_named_whatever_the_loader_says(tmp_path, monkeypatch):
    SAVERS["gpt"](tmp_path)

    def load(_model_dir):
        raise ValueError("too deep")

    monkeypatch.setattr(gpt, "load", load)
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}: too deep")):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"tl_arch": gpt}', "config.json, line 2: not JSON"),
        ("", "config.json, line 1: not JSON"),
        ("[1]", "config.json: expected a JSON object, found list"),
    ],
)
def test_config_is_not_json(tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_model(tmp_path)


@pytest.mark.parametrize("module", [bigram, nplm, rnnlm, gpt])
def test_another_architecture(tmp_path, module):
    (tmp_path / "config.json").write_text('{"tl_arch": "bert"}')
    arch = module.__name__.rsplit(".", 1)[1]
    with pytest.raises(ValueError, match=f"'tl_arch': found 'bert', expected '{arch}'"):
        module.load(tmp_path)


@pytest.mark.parametrize(
    ("arch", "key"),
    [("nplm", "tl_context"), ("nplm", "tl_direct"), ("rnnlm", "tl_cell"), ("rnnlm", "hidden_size"), ("gpt", "n_inner")],
)
def test_a_missing_key(tmp_path, arch, key):
    SAVERS[arch](tmp_path)
    change_config(tmp_path, **{key: None})
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'config.json'}: config: missing key '{key}'")):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("arch", "key", "value", "message"),
    [
        ("gpt", "n_layer", 0, "'n_layer': found 0, expected an integer of at least 1"),
        ("gpt", "n_embd", "8", "'n_embd': found '8', expected an integer"),
        ("gpt", "n_head", True, "'n_head': found True, expected an integer"),
        ("gpt", "n_head", 3, "n_embd 8 is not a multiple of n_head 3"),
        ("gpt", "layer_norm_epsilon", -1, "'layer_norm_epsilon': found -1, expected a number above 0"),
        ("gpt", "tie_word_embeddings", 1, "'tie_word_embeddings': found 1, expected true or false"),
        ("gpt", "tl_tokenizer", "bpe", "'tl_tokenizer': found 'bpe', expected 'bytes' or 'file'"),
        ("rnnlm", "tl_cell", "sru", "'tl_cell': found 'sru', expected one of rnn, gru, lstm"),
        ("bigram", "vocab_size", 5, r"'bigram.weight' has shape \[4, 4\], config.json gives vocab_size 5"),
    ],
)
def test_a_bad_value(tmp_path, arch, key, value, message):
    SAVERS[arch](tmp_path)
    change_config(tmp_path, **{key: value})
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path))}.*{message}"):
        load_model(tmp_path)


# Tensors


def test_no_weights(checkpoint):
    (checkpoint / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors: no such file"):
        load_model(checkpoint)


def test_a_missing_tensor(checkpoint):
    change_tensors(checkpoint, lambda tensors: tensors.pop(sorted(tensors)[0]))
    with pytest.raises(KeyError, match=re.escape(str(checkpoint / "model.safetensors"))):
        load_model(checkpoint)


def test_an_unexpected_tensor(checkpoint):
    change_tensors(checkpoint, lambda tensors: tensors.update(extra=torch.zeros(2)))
    with pytest.raises(KeyError, match=r"tensors \[.*'extra'"):
        load_model(checkpoint)


@pytest.mark.parametrize(("arch", "key"), [("gpt", "n_inner"), ("nplm", "hidden_size"), ("rnnlm", "tl_d_emb")])
def test_a_wrong_shape(tmp_path, arch, key):
    SAVERS[arch](tmp_path)
    change_config(tmp_path, **{key: 7})
    with pytest.raises(ValueError, match=r"tensor '.*' has shape \[.*\], config.json gives \[.*7"):
        load_model(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(checkpoint, value):
    name = sorted(read_header(checkpoint / "model.safetensors").tensors)[0]
    change_tensors(checkpoint, lambda tensors: tensors[name].view(-1)[1:2].fill_(value))
    with pytest.raises(ValueError, match=f"tensor '{name}' holds NaN or infinite values"):
        load_model(checkpoint)


def test_another_dtype(checkpoint):
    name = sorted(read_header(checkpoint / "model.safetensors").tensors)[0]
    change_tensors(checkpoint, lambda tensors: tensors.update({name: tensors[name].double()}))
    with pytest.raises(ValueError, match=f"tensor '{name}' is F64, expected"):
        load_model(checkpoint)


@pytest.mark.parametrize("shape", [(4, 3), (0, 0), (16,)])
def test_a_bigram_table_is_square_and_not_empty(tmp_path, shape):
    SAVERS["bigram"](tmp_path)
    change_tensors(tmp_path, lambda tensors: tensors.update({"bigram.weight": torch.zeros(shape)}))
    with pytest.raises(ValueError, match="expected a square table that is not empty"):
        load_model(tmp_path)


# The safetensors file


def test_a_truncated_file_says_what_is_there_and_what_to_do(tmp_path):
    SAVERS["bigram"](tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    message = f"{path}: header says 64 bytes of data, file holds 54: truncated; train it again or restore it"
    with pytest.raises(ValueError, match=re.escape(message)):
        load_model(tmp_path)


def test_a_truncated_file_of_every_length_is_refused(checkpoint):
    path = checkpoint / "model.safetensors"
    whole = path.read_bytes()
    for size in {0, 7, 8, 9, 50, len(whole) // 2, len(whole) - 1}:
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load_model(checkpoint)


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "data", "message"),
    [
        (b"not json", b"", "the safetensors header is not JSON"),
        (b"\xff\xfe", b"", "the safetensors header is not JSON"),
        (b"[]", b"", "a JSON list, expected an object"),
        (b'{"a": 1, "a": 2}', b"", "duplicate keys"),
        ({"__metadata__": {"n": 3}}, b"", "must map strings to strings"),
        ({"a": {"dtype": "F32", "shape": [2]}}, b"", "'a' needs exactly dtype, shape and data_offsets"),
        ({"a": ENTRY | {"more": 1}}, b"12345678", "'a' needs exactly dtype, shape and data_offsets"),
        ({"a": ENTRY | {"dtype": "F31"}}, b"12345678", "'a' has the unknown dtype 'F31'"),
        ({"a": ENTRY | {"shape": [-2]}}, b"12345678", r"'a' has shape \[-2\]"),
        ({"a": ENTRY | {"shape": [3]}}, b"12345678", r"'a', F32 \[3\], needs 12 bytes, data_offsets \[0, 8\]"),
        ({"a": ENTRY, "b": ENTRY}, b"12345678", "a gap or an overlap in the data at byte 0"),
        ({"a": ENTRY, "b": ENTRY | {"data_offsets": [12, 20]}}, b"1" * 20, "a gap or an overlap in the data at byte 8"),
        ({"a": ENTRY}, b"123456789", "header says 8 bytes of data, file holds 9: trailing bytes"),
    ],
)
def test_a_damaged_header(tmp_path, header, data, message):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    with pytest.raises(ValueError, match=message):
        read_header(path)


def test_garbage_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"<!DOCTYPE html><html>this is no checkpoint</html>")
    with pytest.raises(ValueError, match="not a safetensors file, or truncated inside its header"):
        read_tensors(path)


# Ids


@pytest.mark.parametrize("arch", ["bigram", "nplm", "rnnlm"])
@pytest.mark.parametrize("bad", [-1, 256])
def test_ids_outside_the_vocabulary(tmp_path, arch, bad):
    SAVERS[arch](tmp_path)
    model = load_model(tmp_path)
    with pytest.raises(ValueError, match=f"token id {bad} is outside the vocabulary"):
        model.nll(np.array([1, 2, bad, 3, 1, 2]))


@pytest.mark.parametrize("arch", ["bigram", "rnnlm"])
def test_too_few_tokens(tmp_path, arch):
    SAVERS[arch](tmp_path)
    with pytest.raises(ValueError, match="1 tokens are too few: at least 2"):
        load_model(tmp_path).nll(np.array([1]))

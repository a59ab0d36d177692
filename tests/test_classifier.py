"""Sentence classifiers: the case file's numbers, the three ways to pool, both backbones, and the configuration."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from evalsuite.zoo.checkpoint import load_model
from evalsuite.zoo.families.bert import BertConfig
from evalsuite.zoo.families.classifier import POOLS, Classifier, ClassifierConfig, load, save
from evalsuite.zoo.families.gpt import GPT, GPTConfig
from tests.encoders import BACKBONE, classifier
from tests.weight_rule import CASES, write_checkpoint

torch.set_num_threads(1)
CASE = CASES["classifier bert 3 classes"]
IDS = torch.tensor(CASE["ids"])
REAL = IDS != 0
HEAD = {"kind": "sequence", "n_classes": 3, "pool": "cls", "d_model": 4, "labels": ["bad", "fair", "good"]}
CONFIG = {"tl_arch": "bert", "tl_tokenizer": "file", "tl_format": 1, "tl_backbone": BACKBONE, "tl_head": HEAD}
BERT = BertConfig(11, 8, 8, 2, 2, 12, 2, tl_tokenizer="file")
GPT_SIZES = GPTConfig(11, 8, 8, 2, 2, 12, tie_word_embeddings=True, tl_tokenizer="file")


def with_head(**change: object) -> dict[str, object]:
    return CONFIG | {"tl_head": HEAD | change}


def rough(arch: str = "bert", pool: str = "cls") -> Classifier:
    torch.manual_seed(0)
    sizes = GPT_SIZES if arch == "gpt" else BERT
    model = Classifier(ClassifierConfig(arch, sizes, ("no", "yes", "maybe"), pool)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("arch", ["bert", "electra"])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize(("double", "error"), [(False, 1e-5), (True, 1e-9)], ids=["float32", "float64"])
def test_the_numbers_of_the_case_file(tmp_path: Path, arch: str, pool: str, double: bool, error: float) -> None:
    """An ELECTRA classifier's backbone is the same encoder."""
    model = load_model(write_checkpoint(tmp_path, with_head(pool=pool) | {"tl_arch": arch}, classifier(3)))
    if double:
        model = model.double()
    with torch.inference_mode():
        logits = model.class_logits(IDS, REAL)
    np.testing.assert_allclose(logits, CASE[pool], atol=error)
    assert (model.vocab_size, model.max_len, model.labels) == (9, 8, ("bad", "fair", "good"))


@pytest.mark.parametrize("arch", ["bert", "gpt"])
@pytest.mark.parametrize("pool", POOLS)
def test_padding_says_nothing(arch: str, pool: str) -> None:
    model = rough(arch, pool)
    with torch.inference_mode():
        alone = model.class_logits(torch.tensor([[1, 5, 6, 2]]), torch.ones(1, 4).bool())
        for filler in (0, 9):
            ids = torch.tensor([[1, 5, 6, 2, filler, filler], [1, 4, 3, 8, 7, 2]])
            real = torch.tensor([[True] * 4 + [False] * 2, [True] * 6])
            torch.testing.assert_close(model.class_logits(ids, real)[:1], alone, atol=1e-6, rtol=0)


def test_a_gpt_backbone_is_its_last_norm_pooled() -> None:
    """In float64 and by hand from `GPT.hidden`, which other tests compare with Hugging Face."""
    ids, real = torch.tensor([[1, 5, 6, 2], [1, 4, 0, 0]]), torch.tensor([[True] * 4, [True, True, False, False]])
    for pool in POOLS:
        model = rough("gpt", pool).double()
        assert isinstance(model.backbone, GPT)
        with torch.inference_mode():
            features = model.backbone.hidden(ids)
            pooled = {
                "cls": [features[0, 0], features[1, 0]],
                "mean": [features[0].mean(0), (features[1, 0] + features[1, 1]) / 2],
                "last": [features[0, 3], features[1, 1]],
            }[pool]
            expected = torch.stack(pooled) @ model.classifier.weight.T + model.classifier.bias
            torch.testing.assert_close(model.class_logits(ids, real), expected)


@pytest.mark.parametrize("arch", ["bert", "gpt"])
def test_a_row_without_a_real_token_is_refused(arch: str) -> None:
    real = torch.tensor([[True, True], [False, False]])
    with pytest.raises(ValueError, match="row 1 has no real token"):
        rough(arch).class_logits(torch.zeros(2, 2).long(), real)


@pytest.mark.parametrize(("arch", "limit"), [("bert", "max_len 8"), ("gpt", "n_ctx 8")])
def test_more_tokens_than_positions_are_refused(arch: str, limit: str) -> None:
    with pytest.raises(ValueError, match=f"9 tokens do not fit {limit}"):
        rough(arch).class_logits(torch.zeros(1, 9).long(), torch.ones(1, 9).bool())


@pytest.mark.parametrize("arch", ["bert", "electra", "gpt"])
@pytest.mark.parametrize("pool", POOLS)
def test_a_saved_model_loads_to_the_same_bytes(tmp_path: Path, arch: str, pool: str) -> None:
    model = rough(arch, pool)
    save(model, tmp_path / "a")
    loaded = load_model(tmp_path / "a")
    assert not loaded.training
    assert loaded.config == model.config
    save(loaded, tmp_path / "b")
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_names_and_keys_of_the_checkpoint(tmp_path: Path) -> None:
    save(load(write_checkpoint(tmp_path / "a", CONFIG, classifier(3))), tmp_path / "b")
    with safe_open(tmp_path / "b" / "model.safetensors", "np") as file:
        assert set(file.keys()) == classifier(3).keys()
    written = json.loads((tmp_path / "b" / "config.json").read_text())
    assert written == CONFIG | {"tl_backbone": BACKBONE | {"dropout": 0.0}}  # a loaded model has none
    save(rough("gpt"), tmp_path / "gpt")
    assert json.loads((tmp_path / "gpt" / "config.json").read_text())["tl_backbone"] == {
        "vocab": 11, "n_ctx": 8, "d_model": 8, "n_heads": 2, "n_layers": 2, "d_ff": 12,
        "dropout": 0.0, "ln_eps": 1e-5, "tie": True,
    }  # fmt: skip


@pytest.mark.parametrize("labels", [None, []])
def test_classes_without_names_are_named_by_number(tmp_path: Path, labels: object) -> None:
    assert load(write_checkpoint(tmp_path, with_head(labels=labels), classifier(3))).labels == ("0", "1", "2")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (CONFIG | {"tl_arch": "rnnlm"}, "'tl_arch': found 'rnnlm'"),
        (CONFIG | {"tl_backbone": None}, "'tl_backbone': found None, expected an object"),
        (CONFIG | {"tl_head": True}, "'tl_head': found True, expected an object"),
        (CONFIG | {"tl_backbone": BACKBONE | {"d_ff": 0}}, "'d_ff': found 0"),
        (with_head(kind="token"), "'kind': found 'token', expected one of sequence"),
        (with_head(pool="max"), "'pool': found 'max', expected one of cls, mean, last"),
        (with_head(n_classes=0), "'n_classes': found 0"),
        (with_head(labels=["a", "b"]), "'labels': found .*, expected a list of n_classes = 3 names"),
        (with_head(d_model=8), "'d_model': 8 in tl_head, 4 in tl_backbone"),
    ],
)
def test_a_bad_configuration_is_refused(tmp_path: Path, config: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(write_checkpoint(tmp_path, config, classifier(3)))


@pytest.mark.parametrize(("arch", "last"), [("bert", "layers.998.ff1"), ("gpt", "h.998.ln_1")])
def test_a_checkpoint_with_fewer_layers_than_its_configuration_says_so(tmp_path: Path, arch: str, last: str) -> None:
    save(rough(arch), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["tl_backbone"]["n_layers"] = 999
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(KeyError, match=f"missing tensor 'backbone.{last}.weight'"):
        load(tmp_path)

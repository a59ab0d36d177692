"""ELECTRA: the case file's numbers, Hugging Face's two models as the oracle, shared tables, and its configuration."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from evalsuite.zoo.checkpoint import parameter_count
from evalsuite.zoo.families.bert import BertConfig, from_hf_name
from evalsuite.zoo.families.electra import TABLES, Electra, ElectraConfig, load, save
from tests.encoders import ELECTRA, SIZES, electra
from tests.weight_rule import CASES, write_checkpoint

torch.set_num_threads(1)
CASE = CASES["electra gen 1 layer disc 2 layers"]
IDS = torch.tensor(CASE["ids"])
REAL = IDS != 0
SMALL = BertConfig(11, 8, 8, 2, 2, 12, 2)


def rough(*, tied: bool = True) -> Electra:
    torch.manual_seed(0)
    model = Electra(ElectraConfig(SMALL, BertConfig(11, 8, 8, 2, 1, 6, 2), tied, 3, (1, 2))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize(("double", "error"), [(False, 1e-5), (True, 1e-9)], ids=["float32", "float64"])
def test_the_numbers_of_the_case_file(tmp_path: Path, double: bool, error: float) -> None:
    shapes = electra(tied=True)
    assert len(shapes) == CASE["tensor count"]
    model = load(write_checkpoint(tmp_path, ELECTRA, shapes))
    if double:
        model = model.double()
    with torch.inference_mode():
        logits = model.replaced_logits(IDS, REAL)
    np.testing.assert_allclose(logits, CASE["disc_logits on uncorrupted ids"], atol=error)
    assert (model.vocab_size, model.max_len, model.mask_id, model.special_ids) == (9, 8, 3, (1, 2))


def hugging_face(name: str) -> tuple[Any, dict[str, torch.Tensor], BertConfig]:
    """One of the two models with weights far from their start, and its tensors under our names."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.ElectraConfig(
        vocab_size=50, embedding_size=16, max_position_embeddings=16, hidden_size=16, num_attention_heads=4,
        num_hidden_layers=2, intermediate_size=24, type_vocab_size=2,
    )  # fmt: skip
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    tensors = {from_hf_name(name): tensor for name, tensor in model.state_dict().items()}
    return model, tensors, BertConfig.from_dict(config.to_dict())


def test_the_parts_match_hugging_face() -> None:
    theirs_d, discriminator, config = hugging_face("ElectraForPreTraining")
    theirs_g, generator, _ = hugging_face("ElectraForMaskedLM")
    head = {
        "electra.": "generator.bert.",
        "generator_predictions.dense.": "generator.transform.",
        "generator_predictions.LayerNorm.": "generator.transform_norm.",
        "generator_lm_head.bias": "generator.decoder_bias",
    }
    tensors = {f"discriminator.{name}": tensor for name, tensor in discriminator.items()}
    for name, tensor in generator.items():
        for old, new in head.items():
            if name.startswith(old):
                tensors[name.replace(old, new)] = tensor
    model = Electra(ElectraConfig(config, config, False, 4)).eval()
    model.load_state_dict(tensors)  # strict: no tensor of ours is left over, and theirs only the tied output layer
    assert len(tensors) == len(discriminator) + len(generator) - 1
    ids = torch.randint(50, (4, 16), generator=torch.Generator().manual_seed(4))
    real = torch.arange(16) < torch.tensor([16, 9, 2, 15])[:, None]
    with torch.inference_mode():
        expected = theirs_d(ids, attention_mask=real.long()).logits[real]
        torch.testing.assert_close(model.replaced_logits(ids, real)[real], expected, atol=1e-5, rtol=0)
        expected = theirs_g(ids, attention_mask=real.long()).logits[real]
        found = model.generator.logits(model.generator.hidden(ids, real)[real])
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("tied", [True, False])
def test_a_saved_model_loads_to_the_same_bytes(tmp_path: Path, tied: bool) -> None:
    model = rough(tied=tied)
    save(model, tmp_path / "a")
    loaded = load(tmp_path / "a")
    assert not loaded.training
    assert loaded.config == model.config
    save(loaded, tmp_path / "b")
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    ids, real = torch.tensor([[1, 5, 6, 2, 0]]), torch.tensor([[True] * 4 + [False]])
    with torch.inference_mode():
        assert torch.equal(loaded.replaced_logits(ids, real), model.replaced_logits(ids, real))
        assert torch.equal(loaded.generator.hidden(ids, real), model.generator.hidden(ids, real))


@pytest.mark.parametrize("tied", [True, False])
def test_names_and_keys_of_the_checkpoint(tmp_path: Path, tied: bool) -> None:
    config = ELECTRA | {"tl_tie_embeddings": tied}
    model = load(write_checkpoint(tmp_path / "a", config, electra(tied=tied)))
    save(model, tmp_path / "b")
    with safe_open(tmp_path / "b" / "model.safetensors", "np") as file:
        assert set(file.keys()) == electra(tied=tied).keys()
    assert json.loads((tmp_path / "b" / "config.json").read_text()) == config


def test_shared_tables_are_one_tensor_whatever_is_done_to_the_model() -> None:
    model = rough()
    for other in (model, copy.deepcopy(model), copy.deepcopy(model).double()):
        for table in TABLES:
            ours, theirs = getattr(other.discriminator.electra, table), getattr(other.generator.bert, table)
            assert ours.weight is theirs.weight
    untied = parameter_count(rough(tied=False))
    assert untied is not None
    assert untied - 8 * (11 + 8 + 2) == parameter_count(model)
    model.load_state_dict(copy.deepcopy(model).state_dict())


def test_training_moves_a_shared_table_from_both_sides() -> None:
    model = rough()
    table = model.discriminator.electra.word_emb.weight
    ids = torch.tensor([[1, 5, 2]])
    model.replaced_logits(ids).sum().backward()
    first = table.grad.clone()
    model.generator.logits(model.generator.hidden(ids)).square().sum().backward()
    assert first.any()
    assert not torch.equal(table.grad, first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tl_arch": "bert"}, "'tl_arch': found 'bert', expected 'electra'"),
        ({"tl_generator": None}, "'tl_generator': found None, expected an object"),
        ({"tl_generator": SIZES | {"vocab_size": 8}}, "vocab_size is 9 in the discriminator and 8 in the gen"),
        ({"tl_generator": SIZES | {"hidden_size": 2}}, "hidden_size is 4 .* and 2 .*: tied tables need equal sizes"),
        ({"tl_generator": SIZES | {"max_position_embeddings": 7}}, "max_position_embeddings is 8 .* and 7"),
        ({"tl_generator": SIZES | {"type_vocab_size": 1}}, "type_vocab_size is 2 .* and 1"),
        ({"tl_mask_id": 9}, r"'tl_mask_id': found 9, expected token ids of \[0, 9\)"),
        ({"tl_mask_id": "3"}, "'tl_mask_id': found '3'"),
        ({"tl_special_ids": [1, -1]}, "'tl_special_ids': found -1"),
        ({"tl_special_ids": 1}, "'tl_special_ids': found 1, expected a list"),
        ({"tl_tie_embeddings": 1}, "'tl_tie_embeddings': found 1"),
    ],
)
def test_a_bad_configuration_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(write_checkpoint(tmp_path, ELECTRA | change, electra(tied=True)))


def test_the_mask_id_is_needed_and_specials_are_not(tmp_path: Path) -> None:
    without = {key: value for key, value in ELECTRA.items() if key != "tl_special_ids"}
    assert load(write_checkpoint(tmp_path / "a", without, electra(tied=True))).special_ids == ()
    del without["tl_mask_id"]
    with pytest.raises(ValueError, match="missing key 'tl_mask_id'"):
        load(write_checkpoint(tmp_path / "b", without, electra(tied=True)))


def test_an_untied_generator_may_be_narrower_but_not_read_other_tokens() -> None:
    config = ElectraConfig(SMALL, BertConfig(11, 8, 4, 2, 1, 6, 1), False, 3)
    assert Electra(config).generator.bert.word_emb.weight.shape == (11, 4)
    with pytest.raises(ValueError, match="both parts read the same tokens"):
        ElectraConfig(SMALL, BertConfig(12, 8, 4, 2, 1, 6, 1), False, 3)


@pytest.mark.parametrize("tied", [True, False])
def test_tables_are_stored_as_often_as_the_configuration_says(tmp_path: Path, tied: bool) -> None:
    config = ELECTRA | {"tl_tie_embeddings": tied}
    with pytest.raises(KeyError, match=r"generator\.bert\.word_emb\.weight"):
        load(write_checkpoint(tmp_path, config, electra(tied=not tied)))
    missing = {name: shape for name, shape in electra(tied=tied).items() if "electra.word_emb" not in name}
    with pytest.raises(KeyError, match=r"missing tensors \['discriminator\.electra\.word_emb\.weight'\]"):
        load(write_checkpoint(tmp_path, config, missing))

"""BERT: the case file's numbers, Hugging Face's model as the oracle, padding, and the checkpoint format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from evalsuite.zoo.families import bert
from evalsuite.zoo.families.bert import BertConfig, BertForMLM, from_hf_bert, load, save
from tests.encoders import BERT, masked_lm
from tests.weight_rule import CASES, write_checkpoint

torch.set_num_threads(1)
CASE = CASES["bert V=9 max_len=8 d=4 heads=2 layers=1 d_ff=8"]
IDS = torch.tensor(CASE["ids"])
REAL = IDS != 0
SMALL = BertConfig(11, 8, 8, 2, 2, 12, 2)


def everything(model: BertForMLM, ids: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return model.logits(model.hidden(ids, real))


def rough(config: BertConfig = SMALL) -> BertForMLM:
    """A model whose weights are all far from their start, biases and gains too."""
    torch.manual_seed(0)
    model = BertForMLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize(("double", "error"), [(False, 1e-5), (True, 1e-9)], ids=["float32", "float64"])
def test_the_numbers_of_the_case_file(tmp_path: Path, double: bool, error: float) -> None:
    model = load(write_checkpoint(tmp_path, BERT, masked_lm(1)))
    logits = everything(model.double() if double else model, IDS, REAL)
    np.testing.assert_allclose(logits[0, 2], CASE["logits[0,2]"], atol=error)
    np.testing.assert_allclose(logits[1, 1], CASE["logits[1,1]"], atol=error)
    assert logits.argmax(-1).tolist() == CASE["argmax"]


@pytest.fixture(scope="module")
def oracle() -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=50, max_position_embeddings=16, hidden_size=16, num_attention_heads=4, num_hidden_layers=3,
        intermediate_size=24, type_vocab_size=2,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def test_logits_match_hugging_face(oracle: Any, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(2)
    ids, types = (torch.randint(top, (5, 16), generator=generator) for top in (50, 2))
    real = torch.arange(16) < torch.tensor([16, 9, 1, 5, 15])[:, None]
    model = from_hf_bert(oracle.state_dict(), oracle.config.to_dict())
    save(model, tmp_path)
    with torch.inference_mode():
        expected = oracle(ids, attention_mask=real.long(), token_type_ids=types).logits[real]
        whole = oracle(ids).logits
        for ours in (model, load(tmp_path)):
            found = ours.logits(ours.hidden(ids, real, types))[real]
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
            torch.testing.assert_close(ours.logits(ours.hidden(ids)), whole, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("key", "value"), [("hidden_act", "relu"), ("is_decoder", True), ("tie_word_embeddings", False)]
)
def test_a_setting_that_the_model_does_not_have_is_refused(oracle: Any, key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"BERT config key '{key}': found {value!r}, only"):
        from_hf_bert(oracle.state_dict(), oracle.config.to_dict() | {key: value})


def test_every_token_sees_the_whole_sentence_and_no_padding() -> None:
    model = rough()
    ids = torch.tensor([[3, 4, 5, 6]])
    whole = everything(model, ids, torch.ones(1, 4).bool())
    other = everything(model, torch.tensor([[3, 4, 5, 7]]), torch.ones(1, 4).bool())
    assert (whole[0, 0] - other[0, 0]).abs().max() > 1e-3
    for filler in (0, 9):
        padded = torch.tensor([[3, 4, 5, 6, filler, filler]])
        real = torch.tensor([[True] * 4 + [False] * 2])
        torch.testing.assert_close(everything(model, padded, real)[:, :4], whole, atol=1e-6, rtol=0)


def test_a_row_of_padding_gives_numbers() -> None:
    assert everything(rough(), torch.zeros(1, 3).long(), torch.zeros(1, 3).bool()).isfinite().all()


def test_more_tokens_than_positions_are_refused() -> None:
    with pytest.raises(ValueError, match="9 tokens do not fit max_len 8"):
        rough().hidden(torch.zeros(1, 9).long())


def test_a_saved_model_loads_to_the_same_bytes(tmp_path: Path) -> None:
    save(rough(), tmp_path / "a")
    loaded = load(tmp_path / "a")
    assert not loaded.training
    assert (loaded.vocab_size, loaded.max_len, loaded.config) == (11, 8, SMALL)
    save(loaded, tmp_path / "b")
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_the_output_layer_is_stored_once(tmp_path: Path) -> None:
    save(BertForMLM(BertConfig(9, 8, 4, 2, 1, 8, 2)), tmp_path)
    with safe_open(tmp_path / "model.safetensors", "np") as file:
        found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    assert found == masked_lm(1)


def test_the_start_is_berts() -> None:
    torch.manual_seed(0)
    model = BertForMLM(BertConfig(500, 64, 64, 4, 2, 128, 2))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.25), name


def test_dropout_is_for_training() -> None:
    torch.manual_seed(0)
    model = BertForMLM(SMALL, dropout=0.5)
    ids = torch.tensor([[3, 4, 5]])
    assert not torch.equal(model.hidden(ids), model.hidden(ids))
    model.eval()
    assert torch.equal(model.hidden(ids), model.hidden(ids))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tl_arch": "gpt"}, "'tl_arch': found 'gpt', expected 'bert'"),
        ({"hidden_size": 0}, "'hidden_size': found 0"),
        ({"layer_norm_eps": -1.0}, "'layer_norm_eps': found -1.0"),
        ({"num_attention_heads": 3}, "hidden_size 4 is not a multiple of num_attention_heads 3"),
    ],
)
def test_a_bad_configuration_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(write_checkpoint(tmp_path, BERT | change, masked_lm(1)))


def test_epsilon_has_berts_default(tmp_path: Path) -> None:
    config = {key: value for key, value in BERT.items() if key != "layer_norm_eps"}
    assert load(write_checkpoint(tmp_path, config, masked_lm(1))).config.layer_norm_eps == 1e-12


def test_a_checkpoint_with_fewer_layers_than_its_configuration_says_so(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r"missing tensor 'bert\.layers\.999999999\.ff1\.weight'"):
        load(write_checkpoint(tmp_path, BERT | {"num_hidden_layers": 1_000_000_000}, masked_lm(1)))


@pytest.mark.parametrize("fault", ["tanh gelu", "padding seen", "no segment"])
def test_the_case_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Guards the test of the numbers itself: a slightly wrong model does not pass it."""
    model, real = load(write_checkpoint(tmp_path, BERT, masked_lm(1))), REAL
    if fault == "tanh gelu":
        gelu = torch.nn.functional.gelu
        monkeypatch.setattr(bert.F, "gelu", lambda x: gelu(x, approximate="tanh"))
    elif fault == "padding seen":
        real = torch.ones_like(REAL)
    else:
        model.bert.type_emb.weight.data.zero_()
    logits = everything(model, IDS, real)
    found = torch.cat([logits[0, 2], logits[1, 1]])
    assert (found - torch.tensor(CASE["logits[0,2]"] + CASE["logits[1,1]"])).abs().max() > 1e-4

"""Llama: the numbers of the case file, Hugging Face's Llama and Qwen2 with the same weights, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaForCausalLM, PreTrainedModel, Qwen2Config, Qwen2ForCausalLM
from transformers import LlamaConfig as HFLlamaConfig

from evalsuite.scoring.engine import span_nlls
from evalsuite.scoring.model import CausalModel
from evalsuite.scoring.windows import strided_spans
from evalsuite.zoo import lm_token_nlls, load_model
from evalsuite.zoo.families import llama
from tests.weight_rule import CASES, write_checkpoint

torch.set_num_threads(1)
CASE = CASES["llama V=7 d=8 ff=12 layers=2 heads=4 kv=2 head_dim=2 tied"]
CONFIG: dict[str, Any] = {
    "tl_arch": "llama", "tl_tokenizer": "file", "vocab_size": 7, "hidden_size": 8, "intermediate_size": 12,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2,
    "tie_word_embeddings": True,
}  # fmt: skip
LAYER = {
    "self_attn.q_proj.weight": (8, 8),
    "self_attn.k_proj.weight": (4, 8),
    "self_attn.v_proj.weight": (4, 8),
    "self_attn.o_proj.weight": (8, 8),
    "mlp.gate_proj.weight": (12, 8),
    "mlp.up_proj.weight": (12, 8),
    "mlp.down_proj.weight": (8, 12),
    "input_layernorm.weight": (8,),
    "post_attention_layernorm.weight": (8,),
}
SHAPES = {"model.embed_tokens.weight": (7, 8), "model.norm.weight": (8,)} | {
    f"model.layers.{i}.{name}": shape for i in (0, 1) for name, shape in LAYER.items()
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "llama", CONFIG, SHAPES)


def test_the_case_file(checkpoint: Path) -> None:
    model = load_model(checkpoint)
    assert isinstance(model, CausalModel)
    nll = lm_token_nlls(model, "llama", CONFIG, CASE["ids"], {"ctx_len": 4, "stride": 2})
    np.testing.assert_allclose(nll, CASE["nll ctx4 stride2"], atol=1e-5)
    wide = np.concatenate(span_nlls(model.double(), strided_spans(CASE["ids"], 4, 2)))
    np.testing.assert_allclose(wide, CASE["nll ctx4 stride2"], atol=1e-9)


SMALL: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64,
}  # fmt: skip
SCALED = {"factor": 4.0, "original_max_position_embeddings": 16}


def same_logits(theirs: PreTrainedModel, directory: Path) -> None:
    """What Hugging Face saves loads here, gives its logits, and goes back."""
    torch.manual_seed(1)
    for parameter in theirs.parameters():  # far from the initialisation, where all gains are 1 and all biases 0
        parameter.data += 0.1 * torch.randn_like(parameter)
    theirs.eval().save_pretrained(directory)
    ours = llama.load(directory)
    ids = torch.randint(50, (3, 40), generator=torch.Generator().manual_seed(2))
    llama.save(ours, directory / "back")
    back = AutoModelForCausalLM.from_pretrained(directory / "back").eval()
    assert type(back) is type(theirs)
    with torch.no_grad():
        expected = theirs(ids).logits
        torch.testing.assert_close(ours(ids), expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours(ids[0].numpy()), expected[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(back(ids).logits, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "fields",
    [
        {"num_key_value_heads": 4},
        {"num_key_value_heads": 2, "tie_word_embeddings": True},
        {"num_key_value_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-4},
        {"num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh"},
        {"num_key_value_heads": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        {"num_key_value_heads": 2, "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}},
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "rope_parameters": {
                "rope_type": "llama3", "rope_theta": 1e4, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **SCALED,
            },
        },
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, **SCALED},
        },
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 1e3, "beta_fast": 4.0, "beta_slow": 0.5, "attention_factor": 1.2,
                "truncate": False, **SCALED,
            },
        },
    ],
    ids=["mha", "gqa-tied", "mqa", "gelu", "theta", "linear", "llama3", "yarn", "yarn-numbers"],
)  # fmt: skip
def test_hugging_face(fields: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    same_logits(LlamaForCausalLM(HFLlamaConfig(**SMALL, **fields)), tmp_path)


def test_hugging_face_qwen2_has_biases(tmp_path: Path) -> None:
    torch.manual_seed(0)
    same_logits(Qwen2ForCausalLM(Qwen2Config(**SMALL, num_key_value_heads=2)), tmp_path)
    assert llama.load(tmp_path).config.tl_qkv_bias


def test_older_configurations_name_the_scheme_in_rope_scaling(checkpoint: Path) -> None:
    def nlls(**fields: Any) -> np.ndarray:
        (checkpoint / "config.json").write_text(json.dumps(CONFIG | fields))
        return lm_token_nlls(load_model(checkpoint), "llama", CONFIG, CASE["ids"], {"ctx_len": 8, "stride": 4})

    plain = nlls()
    linear = nlls(rope_scaling={"type": "linear", "factor": 2.0}, rope_theta=10000.0)
    assert np.abs(linear - plain).max() > 1e-3
    np.testing.assert_array_equal(linear, nlls(rope_parameters={"rope_type": "linear", "factor": 2, "rope_theta": 1e4}))
    np.testing.assert_array_equal(plain, nlls(rope_scaling=None))


def test_ntk_leaves_the_highest_frequency_and_divides_the_lowest() -> None:
    plain = llama.Rope(rope_theta=100.0)
    stretched = llama.Rope("ntk", rope_theta=100.0, factor=3.0)
    like = torch.zeros(1, dtype=torch.float64)

    def angle(rope: llama.Rope) -> torch.Tensor:
        cosines, sines = rope.tables(2, 8, like)
        return torch.atan2(sines, cosines)[1]  # of position 1: the frequencies

    torch.testing.assert_close(angle(stretched)[0], angle(plain)[0])
    torch.testing.assert_close(angle(stretched)[-1], angle(plain)[-1] / 3.0)


def test_save_and_load_give_the_same_bytes(tmp_path: Path) -> None:
    config = llama.LlamaConfig(
        20, 8, 12, 1, 2, 1, 32, hidden_act="gelu_pytorch_tanh", tl_qkv_bias=True,
        rope=llama.Rope("yarn", 1e3, 2.0, 16.0, attention_factor=1.5),
    )  # fmt: skip
    torch.manual_seed(0)
    llama.save(llama.Llama(config), tmp_path / "a")
    loaded = llama.load(tmp_path / "a")
    llama.save(loaded, tmp_path / "b")
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert loaded.config.rope == config.rope


def test_training_starts_from_small_matrices_and_no_biases() -> None:
    torch.manual_seed(0)
    model = llama.Llama(llama.LlamaConfig(500, 32, 48, 1, 2, 1, 32, tl_qkv_bias=True))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif parameter.dim() == 1:
            assert (parameter == 1).all()
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.1)


def test_nulls_stand_for_defaults() -> None:
    needed = {key: CONFIG[key] for key in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")}
    config = {"model_type": "llama", "num_attention_heads": 4} | needed
    sizes = ("num_key_value_heads", "head_dim", "max_position_embeddings", "rms_norm_eps", "rope_theta")
    nulls = dict.fromkeys((*sizes, "hidden_act", "rope_scaling", "tie_word_embeddings", "attention_bias"))
    expected = llama.LlamaConfig(7, 8, 12, 2, 4, 4, 2048, tl_tokenizer="file")
    assert llama.LlamaConfig.from_dict(config) == llama.LlamaConfig.from_dict(config | nulls) == expected


def test_tl_pos_may_name_the_scheme() -> None:
    yarn = {"rope_type": "yarn", "factor": 2.0}
    config = llama.LlamaConfig.from_dict(CONFIG | {"tl_pos": "yarn", "rope_scaling": yarn})
    assert config == llama.LlamaConfig.from_dict(CONFIG | {"rope_scaling": yarn})


def test_derived_tensors_are_left_out_and_half_precision_is_widened(checkpoint: Path) -> None:
    weights = checkpoint / "model.safetensors"
    expected = load_model(checkpoint)(np.array(CASE["ids"]))
    tensors = load_file(weights)
    extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(1)}
    save_file(tensors | extra | {"lm_head.weight": tensors["model.embed_tokens.weight"].clone()}, weights)
    torch.testing.assert_close(load_model(checkpoint)(np.array(CASE["ids"])), expected)
    halves = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    save_file(halves, weights)
    model = load_model(checkpoint)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    torch.testing.assert_close(model.model.norm.weight.data, halves["model.norm.weight"].float())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"num_key_value_heads": 3}, "num_attention_heads 4 is not a multiple of num_key_value_heads 3"),
        (
            {"head_dim": None, "hidden_size": 9},
            "hidden_size 9 is not a multiple of num_attention_heads 4; set head_dim",
        ),
        ({"head_dim": 3}, "head_dim 3 is odd"),
        ({"attention_bias": True}, "config key 'attention_bias': found True, only False is supported"),
        ({"tl_attention": "mla"}, "config key 'tl_attention': found 'mla', only 'mha' or 'gqa' or 'mqa' is supported"),
        ({"model_type": "gemma"}, "config key 'model_type': found 'gemma', only 'llama' or 'qwen2' is supported"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "'layer_types': found 'sliding_attention', only"),
        ({"tl_pos": "alibi"}, "config key 'tl_pos': found 'alibi'"),
        ({"tl_pos": "yarn"}, "config key 'tl_pos': found 'yarn' beside rope_type 'default'"),
        ({"tl_sliding_window": 4}, "config key 'tl_sliding_window': found 4, only null is supported"),
        ({"tl_num_experts": 8}, "config key 'tl_num_experts': found 8"),
        ({"hidden_act": "relu"}, "config key 'hidden_act': found 'relu', expected one of silu, gelu_pytorch_tanh"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2}}, "config key 'rope_type': found 'dynamic'"),
        ({"rope_scaling": {"rope_type": "linear"}}, "rope_type 'linear' needs a factor"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2, "beta_fast": 3}}, "'beta_fast' means nothing to"),
        ({"rope_scaling": 4}, "config key 'rope_scaling': found 4, expected an object"),
        (
            {"rope_parameters": {"rope_type": "linear"}},
            "config key 'rope_parameters': rope_type 'linear' needs a factor",
        ),
        ({"rope_scaling": {"rope_type": "ntk", "factor": 2}}, "head_dim 2 has a single frequency"),
        ({"rope_theta": 1, "rope_scaling": {"rope_type": "yarn", "factor": 2}}, "config key 'rope_theta': found 1"),
        (
            {"rope_scaling": {"rope_type": "llama3", "factor": 2, "low_freq_factor": 4}},
            "config key 'high_freq_factor': found 4.0, expected more than low_freq_factor, 4.0",
        ),
        ({"vocab_size": 0}, "config key 'vocab_size': found 0"),
        ({"vocab_size": None}, "missing key 'vocab_size'"),
    ],
)
def test_a_bad_configuration_names_its_key(checkpoint: Path, fields: dict[str, Any], reason: str) -> None:
    (checkpoint / "config.json").write_text(json.dumps(CONFIG | fields))
    with pytest.raises(ValueError) as caught:
        load_model(checkpoint)
    assert reason in str(caught.value)
    assert str(checkpoint / "config.json") in str(caught.value)


def test_loading_is_strict(checkpoint: Path) -> None:
    weights = checkpoint / "model.safetensors"
    tensors = load_file(weights)
    save_file(tensors | {"model.layers.0.self_attn.q_proj.bias": torch.ones(8)}, weights)
    with pytest.raises(KeyError, match=r"unexpected tensors \['model.layers.0.self_attn.q_proj.bias'\]"):
        load_model(checkpoint)
    (checkpoint / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 9}))
    with pytest.raises(KeyError, match=r"missing tensor 'model.layers.8.input_layernorm.weight'"):
        load_model(checkpoint)


def test_more_tokens_than_the_model_reads(checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text(json.dumps(CONFIG | {"max_position_embeddings": 4}))
    model = load_model(checkpoint)
    with pytest.raises(ValueError, match="5 tokens do not fit max_position_embeddings 4"):
        model(np.zeros(5, np.int64))

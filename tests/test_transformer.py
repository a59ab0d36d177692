"""The encoder-decoder Transformer: the case file's numbers, torch's layers as the oracle, cached steps, the format."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import Tensor, nn

from evalsuite.scoring.decode import beam_search, decode_sources
from evalsuite.zoo.families.transformer import Transformer, TransformerConfig, load, save, translate
from tests.weight_rule import CASES, attention_shapes, write_checkpoint

torch.set_num_threads(1)
Shapes = dict[str, tuple[int, ...]]
SMALL = TransformerConfig(11, 9, 8, 2, 12, 2, 3, "post", False, 10)


def checkpoint(directory: Path, src_vocab: int, *, norm: str = "post", tied: bool) -> Path:
    """A checkpoint of the case file's sizes: V 8, d 4, 2 heads, d_ff 6, 1 + 1 layers."""

    def affine(name: str) -> Shapes:
        return {f"{name}.weight": (4,), f"{name}.bias": (4,)}

    shapes: Shapes = {"src_emb.weight": (src_vocab, 4)}
    if not tied or src_vocab != 8:
        shapes["tgt_emb.weight"] = (8, 4)
    if not tied:
        shapes["out.weight"] = (8, 4)
    for at in ("encoder.0", "decoder.0"):
        shapes |= attention_shapes(f"{at}.self_attn", 4) | affine(f"{at}.norm1") | affine(f"{at}.norm2")
        shapes |= {f"{at}.linear1.weight": (6, 4), f"{at}.linear1.bias": (6,)}
        shapes |= {f"{at}.linear2.weight": (4, 6), f"{at}.linear2.bias": (4,)}
    shapes |= attention_shapes("decoder.0.cross_attn", 4) | affine("decoder.0.norm3")
    if norm == "pre":
        shapes |= affine("enc_norm") | affine("dec_norm")
    config = {"tl_arch": "transformer", "tl_tokenizer": "file", "vocab_size": 8, "tl_src_vocab": src_vocab}
    config |= {"tl_format": 1, "d_model": 4, "n_heads": 2, "d_ff": 6, "n_enc": 1, "n_dec": 1, "tl_norm": norm}
    config |= {"tie_word_embeddings": tied, "max_position_embeddings": 8}
    return write_checkpoint(directory, config, shapes)


def rough(**change: Any) -> Transformer:
    """A random model in float64 whose weights are all far from their start, biases and gains too."""
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, **change)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
SRC = torch.tensor([[3, 4, 5, 6, 7, 8], [8, 3, 0, 0, 0, 0], [4, 0, 4, 5, 0, 0]])
REAL = torch.arange(6) < torch.tensor([6, 2, 4])[:, None]
TGT = torch.tensor([[1, 3, 4, 5, 10], [1, 6, 6, 0, 0], [1, 0, 2, 3, 0]])


@pytest.mark.parametrize(("src_vocab", "tied"), [(8, True), (6, False)])
def test_the_numbers_of_the_case_file(tmp_path: Path, src_vocab: int, tied: bool) -> None:
    case = CASES[f"transformer src_vocab={src_vocab} tgt_vocab=8 d=4 heads=2 ff=6 1+1 layers norm=post tie={tied}"]
    model = load(checkpoint(tmp_path, src_vocab, tied=tied))
    for error, made in ((1e-5, model), (1e-9, model.double())):
        with torch.inference_mode():
            logits = made(torch.tensor(case["src"]), torch.ones(1, 3).bool(), torch.tensor(case["tgt_in"]))
        np.testing.assert_allclose(logits[0, -1], case["logits last"], atol=error)
        for beam in (1, 3):
            (found,) = decode_sources(made, case["src"], bos=1, eos=2, beam_size=beam, max_len=5)
            expected = case[f"beam{beam} max5"]
            assert [[list(one.tokens), one.finished] for one in found] == [[ids, end] for ids, _, end in expected]
            np.testing.assert_allclose([one.logprob for one in found], [one for _, one, _ in expected], atol=error)


def torch_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """A layer's tensors under torch's names: query, key and value are one matrix there."""
    made = {}
    for name, tensor in weights.items():
        name = name.replace("cross_attn", "multihead_attn")
        if ".q_proj." in name:
            parts = [weights[name.replace("multihead_attn", "cross_attn").replace(".q_", f".{p}_")] for p in "qkv"]
            made[name.replace(".q_proj.", ".in_proj_")] = torch.cat(parts)
        elif ".k_proj." not in name and ".v_proj." not in name:
            made[name] = tensor
    return made


def oracle(model: Transformer, src: Tensor, real: Tensor, tgt: Tensor, tgt_real: Tensor | None) -> Tensor:
    """The whole model with torch's layers."""
    config, d = model.config, model.config.d_model
    settings = {"d_model": d, "nhead": config.n_heads, "dim_feedforward": config.d_ff, "dropout": 0.0}
    settings |= {"norm_first": config.tl_norm == "pre", "batch_first": True, "layer_norm_eps": config.layer_norm_eps}

    def embed(table: Tensor, ids: Tensor) -> Tensor:
        places = [
            [math.sin(p * 10000 ** (-i / d)) if i % 2 == 0 else math.cos(p * 10000 ** (-(i - 1) / d)) for i in range(d)]
            for p in range(ids.shape[1])
        ]
        return table[ids] * math.sqrt(d) + torch.tensor(places, dtype=torch.float32)

    x = embed(model.src_emb.weight, src)
    for layer in model.encoder:
        made = nn.TransformerEncoderLayer(**settings).double()
        made.load_state_dict(torch_weights(layer.state_dict()))
        x = made(x, src_key_padding_mask=~real)
    memory = model.enc_norm(x) if config.tl_norm == "pre" else x
    table = model.src_emb.weight if config.shares_table else model.tgt_emb.weight
    y = embed(table, tgt)
    for layer in model.decoder:
        made = nn.TransformerDecoderLayer(**settings).double()
        made.load_state_dict(torch_weights(layer.state_dict()))
        y = made(
            y, memory,
            tgt_mask=torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool(),
            tgt_key_padding_mask=None if tgt_real is None else ~tgt_real,
            memory_key_padding_mask=~real,
        )  # fmt: skip
    y = model.dec_norm(y) if config.tl_norm == "pre" else y
    return y @ (table if config.tie_word_embeddings else model.out.weight).T


@NORMS
@pytest.mark.parametrize(("tied", "src_vocab"), [(False, 9), (True, 9), (True, 11)])
def test_the_layers_are_torchs(norm: str, tied: bool, src_vocab: int) -> None:
    model = rough(tl_norm=norm, tie_word_embeddings=tied, tl_src_vocab=src_vocab, layer_norm_eps=1e-3)
    tgt_real = torch.tensor([[True] * 5, [True, True, False, False, False], [True, False, True, True, False]])
    for shown in (None, tgt_real):
        expected = oracle(model, SRC, REAL, TGT, shown)
        torch.testing.assert_close(model(SRC, REAL, TGT, shown), expected, atol=1e-10, rtol=0)
    single = model.float()(SRC, REAL, TGT)
    torch.testing.assert_close(single.double(), oracle(model.double(), SRC, REAL, TGT, None), atol=1e-4, rtol=0)


@NORMS
def test_a_step_with_the_cache_is_the_whole_prefix(norm: str) -> None:
    model = rough(tl_norm=norm)
    whole = model(SRC, REAL, TGT)
    state = model.start(SRC, REAL)
    for position, tokens in enumerate(TGT.unbind(1)):
        logits, state = model.step(tokens, state)
        torch.testing.assert_close(logits, whole[:, position], atol=1e-12, rtol=0)


@NORMS
def test_beam_search_is_that_of_recomputed_prefixes(norm: str) -> None:
    model = rough(tl_norm=norm)

    def step(tokens: np.ndarray, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        prefix = torch.cat([state["prefix"], torch.from_numpy(tokens)[:, None]], dim=1)
        return model(state["src"], state["src"] != 0, prefix)[:, -1], {"src": state["src"], "prefix": prefix}

    expected = []
    for source in SRC:
        start = {"src": source[None], "prefix": torch.empty(1, 0, dtype=torch.int64)}
        best = beam_search(step, start, 1, 2, 3, 6, 0.5)[0]
        expected.append(list(best.tokens[:-1] if best.finished else best.tokens))
    assert translate(model, SRC, bos=1, eos=2, pad_id=0, max_len=6, beam_size=3, length_penalty=0.5) == expected
    assert translate(model, SRC.numpy(), 1, 2, 0, 6, 3, 0.5) == expected


def test_a_translation_has_no_end_symbol_and_may_be_empty() -> None:
    model = rough(tie_word_embeddings=False)
    with torch.no_grad():
        model.dec_norm = nn.Identity()
        model.out.weight.zero_()
        model.decoder[-1].norm3.weight.zero_()
        model.decoder[-1].norm3.bias.fill_(1.0)
        model.out.weight[2] = 5.0  # logit 40 for eos
    assert translate(model, SRC, 1, 2, 0, 4, 2) == [[], [], []]
    assert translate(model, SRC, 1, 3, 0, 4, 1) == [[2] * 4] * 3


def test_padding_is_seen_by_nobody_wherever_it_stands() -> None:
    model = rough()
    hidden = torch.tensor([[3, 0, 5, 6, 0, 0]])
    whole = model(hidden, hidden != 0, TGT[:1])
    torch.testing.assert_close(model(hidden.where(hidden != 0, 7), hidden != 0, TGT[:1]), whole, atol=0, rtol=0)
    torch.testing.assert_close(model(hidden[:, :4], hidden[:, :4] != 0, TGT[:1]), whole, atol=1e-12, rtol=0)
    rules = {"bos": 1, "eos": 2, "beam_size": 3, "max_len": 5}
    (found,) = decode_sources(model, [[3, 0, 5, 6]], **rules, pad_id=0)
    (other,) = decode_sources(model, [[3, 7, 5, 6]], **rules, pad_id=7)
    assert [one.tokens for one in found] == [one.tokens for one in other]
    np.testing.assert_allclose([one.logprob for one in found], [one.logprob for one in other], atol=1e-12)
    (seen,) = decode_sources(model, [[3, 0, 5, 6]], **rules, pad_id=8)
    assert abs(seen[0].logprob - found[0].logprob) > 1e-6


def test_a_source_of_padding_alone_gives_numbers() -> None:
    logits = rough()(torch.zeros(1, 3).long(), torch.zeros(1, 3).bool(), TGT[:1])
    assert logits.isfinite().all()


def test_a_source_decodes_alone_as_it_does_among_others() -> None:
    model = rough(tl_norm="pre")
    rng = np.random.default_rng(0)
    sources = [rng.integers(0, 9, rng.integers(1, 10)).tolist() for _ in range(12)]
    rules = {"bos": 1, "eos": 2, "beam_size": 3, "max_len": 6}
    for source, found in zip(sources, decode_sources(model, sources, **rules, rows=15), strict=True):
        (alone,) = decode_sources(model, [source], **rules)
        assert [one.tokens for one in found] == [one.tokens for one in alone]
        np.testing.assert_allclose([one.logprob for one in found], [one.logprob for one in alone], atol=1e-10)


def test_more_tokens_than_positions_are_refused() -> None:
    model = rough(max_position_embeddings=4)
    assert model.max_len == 4
    with pytest.raises(ValueError, match="5 tokens do not fit max_position_embeddings 4"):
        model(SRC[:, :4], REAL[:, :4], TGT)
    with pytest.raises(ValueError, match="6 tokens do not fit"):
        model.start(SRC, REAL)
    with pytest.raises(ValueError, match="source 0 has 6 tokens, the model reads at most 4"):
        translate(model, SRC, 1, 2, 0, 4, 2)


def test_a_prefix_may_fill_the_positions_and_no_more() -> None:
    model = rough(max_position_embeddings=4)
    everything = {"bos": 1, "eos": 10, "beam_size": 500}  # a beam so wide holds hypotheses that have not ended
    (found,) = decode_sources(model, [[3]], **everything, max_len=4)
    assert max(len(one.tokens) for one in found) == 4
    with pytest.raises(ValueError, match="5 tokens do not fit max_position_embeddings 4"):
        decode_sources(model, [[3]], **everything, max_len=5)


def test_a_model_without_numbers_translates_nothing() -> None:
    model = rough()
    with torch.no_grad():
        model.out.weight.fill_(math.nan)
    with pytest.raises(ValueError, match="row 0: the model gives no finite log-probability"):
        translate(model, SRC, 1, 2, 0, 4, 2)


@NORMS
@pytest.mark.parametrize(("tied", "src_vocab"), [(False, 8), (False, 6), (True, 8), (True, 6)])
def test_a_saved_model_has_the_formats_names_and_loads_to_the_same_bytes(
    tmp_path: Path, norm: str, tied: bool, src_vocab: int
) -> None:
    described = checkpoint(tmp_path / "a", src_vocab, norm=norm, tied=tied)
    model = load(described)
    assert not model.training
    assert (model.vocab_size, model.src_vocab, model.max_len) == (8, src_vocab, 8)
    save(model, tmp_path / "b")
    save(load(tmp_path / "b"), tmp_path / "c")
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "b" / file).read_bytes() == (tmp_path / "c" / file).read_bytes()
    expected, found = (load_file(folder / "model.safetensors") for folder in (described, tmp_path / "b"))
    assert expected.keys() == found.keys() == Transformer(model.config).state_dict().keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tie_word_embeddings": False}, KeyError, "missing tensors.*out.weight.*tgt_emb.weight"),
        ({"tl_norm": "pre"}, KeyError, "missing tensors.*dec_norm"),
        ({"n_dec": 10**9}, KeyError, "missing tensor 'decoder.999999999.linear1.weight'"),
        ({"n_enc": 2}, KeyError, "missing tensor 'encoder.1.linear1.weight'"),
        ({"d_ff": 7}, ValueError, r"shape \[6\], config.json gives \[7\]"),
    ],
)
def test_tensors_must_be_those_of_the_configuration(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    file = checkpoint(tmp_path, 8, tied=True) / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(error, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tl_arch": "gpt"}, "'tl_arch': found 'gpt', expected 'transformer'"),
        ({"n_heads": 3}, "d_model 4 is not a multiple of n_heads 3"),
        ({"tl_norm": "layer"}, "'tl_norm': found 'layer', expected one of post, pre"),
        ({"tie_word_embeddings": 1}, "'tie_word_embeddings': found 1, expected true or false"),
        ({"layer_norm_eps": 0}, "'layer_norm_eps': found 0"),
        ({"max_position_embeddings": ...}, "missing key 'max_position_embeddings'"),
    ],
)
def test_a_bad_configuration_is_refused(change: dict[str, Any], message: str) -> None:
    good = {"tl_arch": "transformer", "vocab_size": 8, "tl_src_vocab": 8, "d_model": 4, "n_heads": 2, "d_ff": 6}
    good |= {"n_enc": 1, "n_dec": 1, "tl_norm": "pre", "tie_word_embeddings": True, "max_position_embeddings": 8}
    made = TransformerConfig.from_dict(good)
    assert (made.tl_tokenizer, made.layer_norm_eps) == ("file", 1e-5)
    with pytest.raises(ValueError, match=message):
        TransformerConfig.from_dict({key: value for key, value in (good | change).items() if value is not ...})


def test_dropout_is_for_training_and_every_weight_learns() -> None:
    torch.manual_seed(0)
    model = Transformer(replace(SMALL, tl_norm="pre"), dropout=0.3)
    assert not torch.equal(model(SRC, REAL, TGT), model(SRC, REAL, TGT))
    model(SRC, REAL, TGT).logsumexp(-1).sum().backward()
    # A key's bias adds the same to all scores of a query, so the softmax never feels it.
    rest = {name: one.grad for name, one in model.named_parameters() if not name.endswith("k_proj.bias")}
    assert [name for name, grad in rest.items() if grad is None or not grad.abs().sum() > 0] == []
    model.eval()
    assert torch.equal(model(SRC, REAL, TGT), model(SRC, REAL, TGT))

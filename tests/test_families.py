"""Every family's forward pass against numbers computed elsewhere, its checkpoint format, and torch's own modules.

The reference numbers come from float64 NumPy forward passes under a weight rule: tensor names ascending give
j = 0, 1, ...; element k in C order is float32(0.5 sin(1 + 0.7 k + 1.3 j)), or float32(1 + 0.2 sin(...)) for the
gain of a norm.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from evalsuite.zoo.checkpoint import kind_of, lm_token_nlls, load_model, parameter_count, read_config
from evalsuite.zoo.families import bigram, gpt, nplm, rnnlm
from evalsuite.zoo.families.word2vec import save_word2vec
from evalsuite.zoo.layers import embedding
from evalsuite.zoo.tensors import read_tensors
from evalsuite.zoo.text import encode_batch
from tests.weight_rule import write_checkpoint

torch.set_num_threads(1)

BIGRAM = {"tl_arch": "bigram", "tl_tokenizer": "file", "vocab_size": 4, "tl_format": 1}
NPLM = {
    "tl_arch": "nplm", "tl_tokenizer": "file", "vocab_size": 5, "tl_format": 1,
    "tl_context": 2, "tl_d_emb": 3, "hidden_size": 4, "tl_direct": True,
}  # fmt: skip
RNNLM = {
    "tl_arch": "rnnlm", "tl_tokenizer": "file", "vocab_size": 5, "tl_format": 1,
    "tl_cell": "gru", "tl_d_emb": 3, "hidden_size": 4, "num_hidden_layers": 2,
}  # fmt: skip
GPT = {
    "tl_arch": "gpt", "tl_tokenizer": "file", "tl_format": 1, "vocab_size": 7, "n_positions": 8, "n_embd": 4,
    "n_head": 2, "n_layer": 2, "n_inner": 8, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
}  # fmt: skip

SHAPES = {
    "bigram": {"bigram.weight": (4, 4)},
    "nplm": {
        "emb.weight": (5, 3),
        "hidden.weight": (4, 6),
        "hidden.bias": (4,),
        "out.weight": (5, 4),
        "out.bias": (5,),
        "direct.weight": (5, 6),
    },
    "rnnlm": {"emb.weight": (5, 3), "out.weight": (5, 4), "out.bias": (5,)}
    | {f"rnn.weight_ih_l{k}": (12, 3 if k == 0 else 4) for k in (0, 1)}
    | {f"rnn.weight_hh_l{k}": (12, 4) for k in (0, 1)}
    | {f"rnn.bias_{which}_l{k}": (12,) for which in ("ih", "hh") for k in (0, 1)},
    "gpt": {"wte.weight": (7, 4), "wpe.weight": (8, 4), "ln_f.weight": (4,), "ln_f.bias": (4,)}
    | {f"h.{i}.{ln}.{part}": (4,) for i in (0, 1) for ln in ("ln_1", "ln_2") for part in ("weight", "bias")}
    | {f"h.{i}.attn.{p}_proj.weight": (4, 4) for i in (0, 1) for p in ["q", "k", "v", "out"]}
    | {f"h.{i}.attn.{p}_proj.bias": (4,) for i in (0, 1) for p in ["q", "k", "v", "out"]}
    | {f"h.{i}.mlp_fc.weight": (8, 4) for i in (0, 1)}
    | {f"h.{i}.mlp_fc.bias": (8,) for i in (0, 1)}
    | {f"h.{i}.mlp_proj.weight": (4, 8) for i in (0, 1)}
    | {f"h.{i}.mlp_proj.bias": (4,) for i in (0, 1)},
}


@pytest.mark.parametrize(
    ("config", "ids", "entry", "expected"),
    [
        (
            BIGRAM,
            [0, 1, 2, 3, 0],
            {},
            [1.2247385421157082, 1.4792590026287966, 1.4144907799372974, 1.0868566451245483],
        ),
        (
            NPLM,
            [0, 1, 2, 3, 4, 1],
            {},
            [1.6317135754985523, 2.1225314626942198, 2.17527525441556, 2.0204163974404246],
        ),
        (
            RNNLM,
            [0, 1, 2, 3, 4, 1],
            {},
            [1.3450422644614244, 1.8049486908387187, 2.0056727253728965, 1.8323110123641781, 1.2843232684825208],
        ),
        (
            GPT,
            [0, 3, 6, 2, 5, 1, 4, 0, 3],
            {"ctx_len": 4, "stride": 2},
            [
                1.7155822193675716, 2.5649778539216403, 3.3436013352034473, 1.8890595561352603,
                1.1244886909815277, 3.377777164303418, 3.3949157587175316, 1.2396594282295441,
            ],
        ),
        (
            GPT,
            [0, 3, 6, 2, 5, 1, 4, 0, 3],
            {"ctx_len": 8, "stride": 7},
            [
                1.7155822193675716, 2.5649778539216403, 3.3436013352034473, 2.054135104011257,
                1.0273869956616808, 3.1438004649752367, 3.3043315626309235, 1.7155822193675716,
            ],
        ),
    ],
    ids=["bigram", "nplm", "rnnlm", "gpt-4-2", "gpt-8-7"],
)  # fmt: skip
def test_forward_passes(tmp_path, config, ids, entry, expected):
    arch = config["tl_arch"]
    directory = write_checkpoint(tmp_path / arch, config, SHAPES[arch])
    found = lm_token_nlls(load_model(directory), arch, read_config(directory), ids, entry)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_gpt_windows_default_to_the_context_and_half_of_it(tmp_path):
    directory = write_checkpoint(tmp_path / "gpt", GPT, SHAPES["gpt"])
    model, ids = load_model(directory), np.arange(30) % 7
    default = lm_token_nlls(model, "gpt", GPT, ids, {})
    np.testing.assert_array_equal(default, lm_token_nlls(model, "gpt", GPT, ids, {"ctx_len": 8, "stride": 4}))
    half = lm_token_nlls(model, "gpt", GPT, ids, {"ctx_len": 6})
    np.testing.assert_array_equal(half, lm_token_nlls(model, "gpt", GPT, ids, {"ctx_len": 6, "stride": 3}))


MODELS = {
    "bigram": lambda: bigram.BigramLM(np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)),
    "nplm": lambda: nplm.NPLM(nplm.NPLMConfig(6, 3, 4, 5, False)),
    "nplm-direct": lambda: nplm.NPLM(nplm.NPLMConfig(6, 3, 4, 5, True)),
    "rnnlm-rnn": lambda: rnnlm.RNNLM(rnnlm.RNNLMConfig(6, "rnn", 4, 5, 1)),
    "rnnlm-gru": lambda: rnnlm.RNNLM(rnnlm.RNNLMConfig(6, "gru", 4, 5, 2)),
    "rnnlm-lstm": lambda: rnnlm.RNNLM(rnnlm.RNNLMConfig(6, "lstm", 4, 5, 2)),
    "gpt": lambda: gpt.GPT(gpt.GPTConfig(6, 8, 8, 2, 2, 12)),
    "gpt-untied": lambda: gpt.GPT(gpt.GPTConfig(6, 8, 8, 2, 2, 12, tie_word_embeddings=False)),
}
MODULES = {"bigram": bigram, "nplm": nplm, "rnnlm": rnnlm, "gpt": gpt}


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_loads_to_the_same_scores_and_the_same_bytes(tmp_path, name):
    torch.manual_seed(1)
    arch = name.split("-")[0]
    model, module = MODELS[name](), MODULES[arch]
    module.save(model, tmp_path / "a")
    before = torch.random.get_rng_state()
    loaded = load_model(tmp_path / "a")
    assert torch.equal(torch.random.get_rng_state(), before)
    module.save(loaded, tmp_path / "b")
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert not getattr(loaded, "training", False)
    ids, config = np.arange(20) % 6, read_config(tmp_path / "a")
    np.testing.assert_array_equal(
        lm_token_nlls(loaded, arch, config, ids, {}), lm_token_nlls(model, arch, config, ids, {})
    )
    with safe_open(tmp_path / "a" / "model.safetensors", "np") as file:
        expected = {"format": "tinyllm"} | ({} if arch == "bigram" else {"tl_arch": arch})
        assert file.metadata() == expected
        names = sorted(file.keys())
    assert config["tl_arch"] == arch
    assert config["tl_format"] == 1
    if arch == "gpt":
        assert ("lm_head.weight" in names) == (name == "gpt-untied")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_floats_are_widened(tmp_path, dtype):
    from safetensors.torch import save_file as save_torch

    nplm.save(MODELS["nplm"](), tmp_path)
    path = tmp_path / "model.safetensors"
    narrow = {name: tensor.to(dtype) for name, tensor in read_tensors(path)[0].items()}
    save_torch(narrow, path)
    loaded = load_model(tmp_path)
    for name, tensor in loaded.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, narrow[name].float())


# Bigram


def test_bigram_reads_rows_as_the_token_before():
    table = np.log(np.array([[0.9, 0.1], [0.4, 0.6]], dtype=np.float32))
    np.testing.assert_allclose(np.exp(-bigram.BigramLM(table).nll(np.array([0, 1, 1, 0]))), [0.1, 0.6, 0.4], rtol=1e-6)


def test_bigram_fit_counts_pairs():
    model = bigram.BigramLM.fit([0, 1, 0, 1, 2], vocab_size=3, alpha=1.0)
    np.testing.assert_allclose(
        np.exp(model.weight), [[1 / 5, 3 / 5, 1 / 5], [2 / 5, 1 / 5, 2 / 5], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6
    )


def test_bigram_config_may_leave_the_vocabulary_out(tmp_path):
    config = {"tl_arch": "bigram", "tl_tokenizer": "bytes"}
    directory = write_checkpoint(tmp_path / "bigram", config, SHAPES["bigram"])
    assert load_model(directory).vocab_size == 4


# NPLM


def test_nplm_scores_all_but_the_first_context():
    torch.manual_seed(0)
    model = MODELS["nplm-direct"]().eval()
    ids = np.random.default_rng(0).integers(0, 6, 40)
    with torch.no_grad():
        rows = [torch.log_softmax(model(torch.tensor(ids[None, t - 3 : t])).double(), -1)[0] for t in range(3, 40)]
    expected = [-float(row[ids[t]]) for t, row in enumerate(rows, start=3)]
    np.testing.assert_allclose(model.nll(ids), expected, atol=1e-6)
    with pytest.raises(ValueError, match="3 tokens are too few: at least 4"):
        model.nll(ids[:3])


# RNN


@pytest.mark.parametrize(("cell", "reference"), [("rnn", torch.nn.RNN), ("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)])
@pytest.mark.parametrize("layers", [1, 2])
def test_rnn_is_torchs(tmp_path, cell, reference, layers):
    torch.manual_seed(0)
    emb, rnn, out = torch.nn.Embedding(6, 4), reference(4, 5, layers), torch.nn.Linear(5, 6)
    tensors = {
        f"{part}.{name}": tensor.detach().numpy()
        for part, module in (("emb", emb), ("rnn", rnn), ("out", out))
        for name, tensor in module.state_dict().items()
    }
    save_file(tensors, tmp_path / "model.safetensors")
    config = {"tl_cell": cell, "tl_d_emb": 4, "hidden_size": 5, "num_hidden_layers": layers}
    (tmp_path / "config.json").write_text(json.dumps({"tl_arch": "rnnlm", "vocab_size": 6} | config))
    ids = torch.randint(6, (50,))
    with torch.no_grad():
        rows = torch.log_softmax(out(rnn(emb(ids[:-1]))[0]).double(), -1)
    expected = -rows[torch.arange(49), ids[1:]].numpy()
    np.testing.assert_allclose(load_model(tmp_path).nll(ids.numpy()), expected, atol=1e-6)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_rnn_state_is_carried_over_chunks(cell):
    torch.manual_seed(0)
    model = MODELS[f"rnnlm-{cell}"]().eval()
    ids = np.random.default_rng(0).integers(0, 6, 101)
    whole = model.nll(ids)
    assert len(whole) == 100
    for chunk in (1, 7, 100, 1000):
        np.testing.assert_allclose(model.nll(ids, chunk=chunk), whole, atol=1e-6)


# GPT


def test_gpt_is_callable_and_causal():
    torch.manual_seed(0)
    model = MODELS["gpt"]().eval()
    ids = np.array([[0, 1, 2, 3], [5, 4, 3, 2]])
    logits, loss = model(ids)
    assert logits.shape == (2, 4, 6)
    assert loss is None
    shorter, _ = model(torch.from_numpy(ids[:, :2]))
    torch.testing.assert_close(logits[:, :2], shorter)
    _, loss = model(ids, torch.from_numpy(ids))
    assert loss is not None
    assert loss.shape == ()


def test_gpt_refuses_more_tokens_than_positions():
    model = MODELS["gpt"]()
    with pytest.raises(ValueError, match="9 tokens do not fit n_ctx 8"):
        model(np.zeros((1, 9), np.int64))
    with pytest.raises(ValueError, match="ctx_len 9 exceeds n_ctx 8"):
        lm_token_nlls(model, "gpt", {"n_positions": 8}, np.zeros(20, np.int64), {"ctx_len": 9})


# Dispatch and the rest


def test_families_and_kinds():
    kinds = {
        **dict.fromkeys(("bigram", "ngram", "nplm", "rnnlm", "gpt", "llama"), "lm"),
        **dict.fromkeys(("seq2seq", "transformer"), "seq2seq"),
        **{"bert": "mlm", "electra": "rtd", "word2vec": "embeddings"},
    }
    assert {arch: kind_of({"tl_arch": arch}) for arch in kinds} == kinds
    assert kind_of({"model_type": "llama"}) == "lm"
    assert kind_of({"tl_arch": "gpt", "tl_head": None}) == "lm"
    head = {"kind": "sequence"}
    assert {kind_of({"tl_arch": arch, "tl_head": head}) for arch in ("bert", "electra", "gpt")} == {"classifier"}
    with pytest.raises(KeyError) as caught:
        kind_of({"tl_arch": "elmo"})
    assert caught.value.args == ("no zoo scorer for tl_arch 'elmo'",)
    with pytest.raises(KeyError, match="no zoo scorer for a head on tl_arch 'llama'"):
        kind_of({"tl_arch": "llama", "tl_head": head})
    with pytest.raises(KeyError, match="no zoo scorer for tl_arch 'elmo'"):
        lm_token_nlls(None, "elmo", {}, [1, 2], {})


def test_an_unknown_family_is_refused_before_anything_is_loaded(tmp_path):
    (tmp_path / "config.json").write_text('{"tl_arch": "t5"}')
    with pytest.raises(KeyError, match="no zoo scorer for tl_arch 't5'"):
        load_model(tmp_path)


def test_ngram_is_reached_through_its_metadata(tmp_path):
    metadata = {"tl_arch": "ngram", "n": "1", "discount": "modified", "vocab_size": "3"}
    tensors = {"order1.grams": np.array([[0], [1]], np.int32), "order1.counts": np.array([2, 1], np.int32)}
    save_file(tensors, tmp_path / "model.safetensors", metadata)
    for place in (tmp_path, tmp_path / "model.safetensors"):
        assert read_config(place) == metadata
        assert len(lm_token_nlls(load_model(place), "ngram", metadata, np.array([0, 1, 2]), {})) == 3


def test_parameters_are_counted_once():
    assert parameter_count(MODELS["bigram"]()) is None
    tied, untied = parameter_count(MODELS["gpt"]()), parameter_count(MODELS["gpt-untied"]())
    assert untied - tied == 6 * 8
    assert parameter_count(MODELS["nplm"]()) == 6 * 4 + 5 * 12 + 5 + 6 * 5 + 6


def test_encode_batch_pads_on_the_right_and_cuts_bytes():
    ids, real = encode_batch(["ab", "c"], 24)
    assert ids.tolist() == [[1, 97, 98, 2], [1, 99, 2, 0]]
    assert real.tolist() == [[True] * 4, [True, True, True, False]]
    assert encode_batch(["aé"], 4)[0].tolist() == [[1, 97, 0xC3, 2]]
    with pytest.raises(ValueError, match="max_len 2"):
        encode_batch(["a"], 2)


def test_save_word2vec_writes_the_table_and_its_words(tmp_path):
    table = np.arange(6, dtype=np.float64).reshape(3, 2)
    save_word2vec(table, ["a", "é", "c"], tmp_path)
    assert json.loads((tmp_path / "vocab.json").read_text()) == ["a", "é", "c"]
    config = {"tl_arch": "word2vec", "tl_tokenizer": "file", "tl_format": 1, "vocab_size": 3, "hidden_size": 2}
    assert read_config(tmp_path) == config
    np.testing.assert_array_equal(read_tensors(tmp_path / "model.safetensors")[0]["embeddings"].numpy(), table)
    for wrong in (table[:2], table[0]):
        with pytest.raises(ValueError, match="expected"):
            save_word2vec(wrong, ["a", "b", "c"], tmp_path)


def test_loading_imports_no_compiler(tmp_path):
    """torch's normal distribution on the meta device would: a second for every process."""
    gpt.save(gpt.GPT(gpt.GPTConfig(vocab_size=7, n_positions=4, n_embd=4, n_head=2, n_layer=1, n_inner=8)), tmp_path)
    code = "import sys, evalsuite.zoo as z; z.load_model(sys.argv[1]); print('torch._dynamo' in sys.modules)"
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_embedding_is_drawn_as_torch_draws_it():
    torch.manual_seed(3)
    ours = embedding(5, 4).weight
    torch.manual_seed(3)
    assert torch.equal(ours, torch.nn.Embedding(5, 4).weight)

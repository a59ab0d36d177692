"""Recurrent encoder-decoders: the case file's numbers, torch's layers and plain NumPy as oracles, and the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

from evalsuite.scoring.decode import decode_sources
from evalsuite.zoo.families.seq2seq import ATTENTIONS, Seq2Seq, Seq2SeqConfig, load, save
from tests.weight_rule import CASES, write_checkpoint

torch.set_num_threads(1)
Shapes = dict[str, tuple[int, ...]]


def checkpoint(directory: Path, cell: str, attention: str) -> Path:
    """The case file's checkpoint: vocabularies 6, e 3, H 4, A 3; names and shapes from the format's description."""
    gates, wide = {"gru": 3, "lstm": 4}[cell], attention == "bahdanau"
    reads = 3 if attention == "none" else 7
    shapes: Shapes = {"src_emb.weight": (6, 3), "tgt_emb.weight": (6, 3), "bridge.weight": (4, 4), "bridge.bias": (4,)}
    for name in ("enc_fwd", "enc_bwd"):
        shapes |= {f"{name}.weight_ih_l0": (6, 3), f"{name}.weight_hh_l0": (6, 2)}
        shapes |= {f"{name}.bias_ih_l0": (6,), f"{name}.bias_hh_l0": (6,)}
    shapes |= {"cell.weight_ih": (4 * gates, reads), "cell.weight_hh": (4 * gates, 4)}
    shapes |= {"cell.bias_ih": (4 * gates,), "cell.bias_hh": (4 * gates,)}
    shapes |= {"out.weight": (6, 8 if wide else 4), "out.bias": (6,)}
    config = {"tl_arch": "seq2seq", "tl_tokenizer": "file", "vocab_size": 6, "tl_src_vocab": 6, "tl_format": 1}
    config |= {"tl_cell": cell, "tl_d_emb": 3, "hidden_size": 4, "tl_seq2seq_attention": attention}
    if wide:
        config["tl_d_attn"] = 3
        shapes |= {"attention.query.weight": (3, 4), "attention.key.weight": (3, 4), "attention.key.bias": (3,)}
        shapes["attention.v.weight"] = (1, 3)
    elif attention != "none":
        shapes["attention.combine.weight"] = (4, 8)
    if attention == "luong-general":
        shapes["attention.score_proj.weight"] = (4, 4)
    if attention == "luong-concat":
        shapes |= {"attention.score_proj.weight": (4, 8), "attention.v.weight": (1, 4)}
    return write_checkpoint(directory, config, shapes)


def rough(cell: str = "gru", attention: str = "bahdanau", seed: int = 0, **sizes: Any) -> Seq2Seq:
    """A random model in float64 whose weights are large enough for differences to show."""
    torch.manual_seed(seed)
    width = 3 if attention == "bahdanau" else None
    sizes = {"vocab_size": 7, "tl_src_vocab": 9, "tl_d_emb": 4, "hidden_size": 6} | sizes
    model = Seq2Seq(Seq2SeqConfig(**sizes, tl_cell=cell, tl_seq2seq_attention=attention, tl_d_attn=width))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
    return model.double().eval()


ALL = pytest.mark.parametrize(("cell", "attention"), [(c, a) for c in ("gru", "lstm") for a in ATTENTIONS])
SRC = torch.tensor([[3, 4, 5, 6, 7], [8, 3, 0, 0, 0], [4, 0, 4, 0, 0]])
REAL = torch.arange(5) < torch.tensor([5, 2, 3])[:, None]
TGT = torch.tensor([[1, 3, 4, 5], [1, 6, 6, 0], [1, 0, 2, 3]])


@pytest.mark.parametrize(("cell", "attention"), [("gru", "none"), ("gru", "bahdanau"), ("lstm", "luong-dot")])
def test_the_numbers_of_the_case_file(tmp_path: Path, cell: str, attention: str) -> None:
    case = CASES[f"seq2seq 6/6 emb=3 h=4 cell={cell} att={attention}"]
    model = load(checkpoint(tmp_path, cell, attention))
    src, real, tgt = torch.tensor([case["src"]]), torch.ones(1, 4, dtype=torch.bool), torch.tensor([[1, 3]])
    for error, made in ((1e-5, model), (1e-9, model.double())):
        with torch.inference_mode():
            logits = made(src, real, tgt)
        np.testing.assert_allclose(logits[0, -1], case["logits after [bos=1, 3]"], atol=error)
        for beam in (1, 3):
            (found,) = decode_sources(made, [case["src"]], bos=1, eos=2, beam_size=beam, max_len=5)
            expected = case[f"beam{beam} max5"]
            assert [[list(one.tokens), one.finished] for one in found] == [[ids, end] for ids, _, end in expected]
            np.testing.assert_allclose([one.logprob for one in found], [one for _, one, _ in expected], atol=error)


def test_the_encoder_is_torchs_bidirectional_gru_on_packed_sequences() -> None:
    model = rough(attention="luong-dot")
    oracle = nn.GRU(4, 3, batch_first=True, bidirectional=True).double()
    weights = model.enc_fwd.state_dict() | {f"{name}_reverse": w for name, w in model.enc_bwd.state_dict().items()}
    oracle.load_state_dict(weights)
    packed = nn.utils.rnn.pack_padded_sequence(model.src_emb(SRC), REAL.sum(1), batch_first=True, enforce_sorted=False)
    features, last = oracle(packed)
    features, _ = nn.utils.rnn.pad_packed_sequence(features, batch_first=True)
    state = model.start(SRC, REAL)
    assert state.memory is not None
    torch.testing.assert_close(state.memory.keys[REAL], features[REAL], atol=1e-12, rtol=0)
    hidden = torch.tanh(model.bridge(torch.cat([last[0], last[1]], dim=-1)))
    torch.testing.assert_close(state.hidden, hidden, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("cell", "layer"), [("gru", nn.GRU), ("lstm", nn.LSTM)])
def test_the_decoders_cell_is_torchs_layer(cell: str, layer: type[nn.GRU] | type[nn.LSTM]) -> None:
    model = rough(cell, "none")
    oracle = layer(4, 6, batch_first=True).double()
    oracle.load_state_dict({f"{name}_l0": weight for name, weight in model.cell.state_dict().items()})
    hidden = model.start(SRC, REAL).hidden[None]
    features, _ = oracle(model.tgt_emb(TGT), hidden if cell == "gru" else (hidden, torch.zeros_like(hidden)))
    torch.testing.assert_close(model(SRC, REAL, TGT), model.out(features), atol=1e-12, rtol=0)


def by_hand(model: Seq2Seq, source: list[int], target: list[int]) -> np.ndarray:
    """Attention over one source from its formulas, nothing computed ahead: logits [T, V]. Encoder and cell are the
    model's, which other tests hold against torch."""
    kind, lstm = model.config.tl_seq2seq_attention, model.config.tl_cell == "lstm"
    w = {name.removeprefix("attention."): tensor.numpy() for name, tensor in model.state_dict().items()}
    start = model.start(torch.tensor([source]), torch.ones(1, len(source), dtype=torch.bool))
    assert start.memory is not None
    keys, h = start.memory.keys[0].numpy(), start.hidden[0].numpy()

    def score(key: np.ndarray, h: np.ndarray) -> float:
        if kind == "bahdanau":
            return w["v.weight"][0] @ np.tanh(w["key.weight"] @ key + w["key.bias"] + w["query.weight"] @ h)
        if kind == "luong-concat":
            return w["v.weight"][0] @ np.tanh(w["score_proj.weight"] @ np.concatenate([h, key]))
        return (w["score_proj.weight"] @ key if kind == "luong-general" else key) @ h

    def context(h: np.ndarray) -> np.ndarray:
        weights = np.exp([score(key, h) for key in keys])
        return weights @ keys / weights.sum()

    c, feed, found = np.zeros_like(h), np.zeros_like(h), []
    for token in target:
        seen = context(h) if kind == "bahdanau" else feed
        x = torch.from_numpy(np.concatenate([w["tgt_emb.weight"][token], seen]))
        if lstm:
            h, c = (one.numpy() for one in model.cell(x, (torch.from_numpy(h), torch.from_numpy(c))))
        else:
            h = model.cell(x, torch.from_numpy(h)).numpy()
        feature = np.concatenate([h, seen])
        if kind != "bahdanau":
            feature = feed = np.tanh(w["combine.weight"] @ np.concatenate([context(h), h]))
        found.append(w["out.weight"] @ feature + w["out.bias"])
    return np.array(found)


@pytest.mark.parametrize(("cell", "attention"), [(c, a) for c in ("gru", "lstm") for a in ATTENTIONS[1:]])
def test_attention_by_its_formulas(cell: str, attention: str) -> None:
    model = rough(cell, attention)
    with torch.inference_mode():
        logits = model(SRC, REAL, TGT)
        for row in range(3):
            source = SRC[row][REAL[row]].tolist()
            np.testing.assert_allclose(logits[row], by_hand(model, source, TGT[row].tolist()), atol=1e-12)


@ALL
def test_stepping_is_teacher_forcing(cell: str, attention: str) -> None:
    model = rough(cell, attention)
    state = model.start(SRC, REAL)
    whole = model(SRC, REAL, TGT)
    for position, tokens in enumerate(TGT.unbind(1)):
        logits, state = model.step(tokens, state)
        torch.testing.assert_close(logits, whole[:, position], atol=1e-12, rtol=0)


@ALL
def test_padding_is_read_by_nobody(cell: str, attention: str) -> None:
    model = rough(cell, attention)
    whole = model(SRC, REAL, TGT)
    torch.testing.assert_close(model(SRC.where(REAL, 8), REAL, TGT), whole, atol=0, rtol=0)
    for row in range(3):
        source = SRC[row][REAL[row]][None]
        alone = model(source, torch.ones_like(source, dtype=torch.bool), TGT[row][None])
        torch.testing.assert_close(whole[row], alone[0], atol=1e-12, rtol=0)


def test_a_gap_in_a_source_is_read_as_id_0_and_not_attended_to() -> None:
    model, real = rough(), torch.tensor([[True, False, True]])
    whole = model(torch.tensor([[3, 0, 4]]), real, TGT[:1])
    torch.testing.assert_close(model(torch.tensor([[3, 8, 4]]), real, TGT[:1]), whole, atol=0, rtol=0)
    seen = model(torch.tensor([[3, 0, 4]]), torch.ones(1, 3, dtype=torch.bool), TGT[:1])
    assert (seen - whole).abs().max() > 1e-3


@ALL
def test_a_source_decodes_alone_as_it_does_among_others(cell: str, attention: str) -> None:
    model = rough(cell, attention, seed=1)
    rng = np.random.default_rng(0)
    sources = [rng.integers(0, 9, rng.integers(1, 8)).tolist() for _ in range(9)]
    rules = {"bos": 1, "eos": 2, "beam_size": 3, "max_len": 6}
    together = decode_sources(model, sources, **rules, rows=12)
    for source, found in zip(sources, together, strict=True):
        (alone,) = decode_sources(model, [source], **rules)
        assert [one.tokens for one in found] == [one.tokens for one in alone]
        np.testing.assert_allclose([one.logprob for one in found], [one.logprob for one in alone], atol=1e-10)


@ALL
def test_a_saved_model_has_the_formats_names_and_loads_to_the_same_bytes(
    tmp_path: Path, cell: str, attention: str
) -> None:
    model = rough(cell, attention, vocab_size=6, tl_src_vocab=6, tl_d_emb=3, hidden_size=4)
    save(model, tmp_path / "a")
    loaded = load(tmp_path / "a")
    assert not loaded.training
    assert (loaded.vocab_size, loaded.src_vocab, loaded.max_len, loaded.config) == (6, 6, None, model.config)
    save(loaded, tmp_path / "b")
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert ("tl_d_attn" in (tmp_path / "a" / "config.json").read_text()) == (attention == "bahdanau")
    described = checkpoint(tmp_path / "c", cell, attention)
    assert load(described).config == model.config
    with safe_open(tmp_path / "a" / "model.safetensors", "np") as ours:
        with safe_open(described / "model.safetensors", "np") as theirs:
            assert set(ours.keys()) == set(theirs.keys())
        assert ours.metadata() == {"format": "tinyllm", "tl_arch": "seq2seq"}


def test_tensors_must_be_those_of_the_configuration(tmp_path: Path) -> None:
    config = (checkpoint(tmp_path / "dot", "gru", "luong-dot") / "config.json").read_text()
    for attention, message in (
        ("luong-general", "unexpected tensors.*score_proj"),
        ("none", "missing tensors.*combine"),
    ):
        other = checkpoint(tmp_path / attention, "gru", attention)
        (other / "config.json").write_text(config)
        with pytest.raises(KeyError, match=message):
            load(other)
    (tmp_path / "dot" / "config.json").write_text(config.replace('"tl_src_vocab": 6', '"tl_src_vocab": 7'))
    with pytest.raises(ValueError, match=r"src_emb.weight.*shape \[6, 3\].*\[7, 3\]"):
        load(tmp_path / "dot")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tl_arch": "transformer"}, "'tl_arch': found 'transformer', expected 'seq2seq'"),
        ({"hidden_size": 5}, "hidden_size 5 is odd"),
        ({"hidden_size": 0}, "'hidden_size': found 0"),
        ({"tl_cell": "rnn"}, "'tl_cell': found 'rnn', expected one of gru, lstm"),
        ({"tl_seq2seq_attention": "luong"}, "'tl_seq2seq_attention': found 'luong', expected one of none, bahdanau"),
        ({"tl_src_vocab": None}, "'tl_src_vocab': found None"),
        ({"tl_d_attn": ...}, "missing key 'tl_d_attn'"),
        ({"tl_d_emb": ...}, "missing key 'tl_d_emb'"),
    ],
)
def test_a_bad_configuration_is_refused(change: dict[str, Any], message: str) -> None:
    good = {"tl_arch": "seq2seq", "vocab_size": 6, "tl_src_vocab": 6, "tl_cell": "gru", "tl_d_emb": 3}
    good |= {"hidden_size": 4, "tl_seq2seq_attention": "bahdanau", "tl_d_attn": 3}
    assert Seq2SeqConfig.from_dict(good).tl_tokenizer == "file"
    with pytest.raises(ValueError, match=message):
        Seq2SeqConfig.from_dict({key: value for key, value in (good | change).items() if value is not ...})


def test_dropout_is_for_training_and_every_weight_learns() -> None:
    torch.manual_seed(0)
    model = Seq2Seq(Seq2SeqConfig(7, 9, "lstm", 4, 6, "luong-concat"), dropout=0.5)
    assert not torch.equal(model(SRC, REAL, TGT), model(SRC, REAL, TGT))
    model(SRC, REAL, TGT).logsumexp(-1).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())
    model.eval()
    assert torch.equal(model(SRC, REAL, TGT), model(SRC, REAL, TGT))

"""Recurrent encoder-decoder (Sutskever et al., 2014) with the attention of Bahdanau et al. or Luong et al., both 2015.

The encoder is a bidirectional `torch.nn.GRU` of one layer, each direction half as wide as the decoder, whose cell is a
`torch.nn.GRUCell` or `torch.nn.LSTMCell`. The decoder starts from tanh(bridge([last forward; last backward state])); an
LSTM's cell state starts at zero. With e the embedding of the last token, h the decoder's state, and a context c that
attention takes from the encoder's features k_j by softmax_j of a score:

    none      h' = cell(e, h)              logits = out(h')
    bahdanau  h' = cell([e; c], h)         logits = out([h'; c])   c from the old h, score v . tanh(key(k_j) + query(h))
    luong-*   h' = cell([e; feed], h)      logits = out(feed')     c from the new h', feed' = tanh(combine([c; h']))

Luong's scores: ``dot`` k_j . h', ``general`` (score_proj k_j) . h', ``concat`` v . tanh(score_proj [h'; k_j]). His feed
starts at zero. What of a score depends on the source alone is computed once a source.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import NamedTuple, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evalsuite.zoo.config import Config, check_arch, one_of, read_config, size, tokenizer_of
from evalsuite.zoo.layers import embedding
from evalsuite.zoo.module_files import load_module, save_module

CELLS: dict[str, type[nn.GRUCell] | type[nn.LSTMCell]] = {"gru": nn.GRUCell, "lstm": nn.LSTMCell}
ATTENTIONS = ("none", "bahdanau", "luong-dot", "luong-general", "luong-concat")


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes under their ``config.json`` names.

    ``vocab_size`` is the target's, ``tl_src_vocab`` the source's; ``tl_cell`` is the decoder's, "gru" or "lstm";
    ``tl_d_attn`` is the width of Bahdanau's score, None for the others.
    """

    vocab_size: int
    tl_src_vocab: int
    tl_cell: str
    tl_d_emb: int
    hidden_size: int
    tl_seq2seq_attention: str
    tl_d_attn: int | None = None
    tl_tokenizer: str = "file"

    def __post_init__(self) -> None:
        if self.hidden_size % 2:
            raise ValueError(f"hidden_size {self.hidden_size} is odd: each direction of the encoder has half of it")

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration. ValueError names the key, what was found and what was expected."""
        check_arch(config, "seq2seq")
        attention = one_of(config, "tl_seq2seq_attention", ATTENTIONS)
        return cls(
            vocab_size=size(config, "vocab_size"),
            tl_src_vocab=size(config, "tl_src_vocab"),
            tl_cell=one_of(config, "tl_cell", tuple(CELLS)),
            tl_d_emb=size(config, "tl_d_emb"),
            hidden_size=size(config, "hidden_size"),
            tl_seq2seq_attention=attention,
            tl_d_attn=size(config, "tl_d_attn") if attention == "bahdanau" else None,
            tl_tokenizer=tokenizer_of(config),
        )


class Memory(NamedTuple):
    """What attention reads of a source.

    Attributes:
        keys: the encoder's features [B, S, H].
        projected: what the score needs of them, [B, S, A]; None where that is the keys themselves.
        real: bool [B, S], False where a position is padding.
    """

    keys: Tensor
    projected: Tensor | None
    real: Tensor

    @property
    def scored(self) -> Tensor:
        """What the score reads."""
        return self.keys if self.projected is None else self.projected

    def context(self, scores: Tensor) -> Tensor:
        """Scores [B, S] to the mean of the keys under their softmax, [B, H]."""
        weights = scores.masked_fill(~self.real, -torch.inf).softmax(dim=-1)
        return torch.bmm(weights[:, None], self.keys)[:, 0]


class State(NamedTuple):
    """The decoder before a token.

    Attributes:
        hidden: h [B, H].
        cell: an LSTM's c [B, H], else None.
        feed: Luong's last output [B, H], else None.
        memory: None without attention.
    """

    hidden: Tensor
    cell: Tensor | None
    feed: Tensor | None
    memory: Memory | None


class Bahdanau(nn.Module):
    """score_j = v . tanh(key(k_j) + query(h)), of width A."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, width, bias=False)
        self.key = nn.Linear(hidden, width)
        self.v = nn.Linear(width, 1, bias=False)

    def remember(self, keys: Tensor, real: Tensor) -> Memory:
        """The memory of sources with keys [B, S, H]."""
        return Memory(keys, self.key(keys), real)

    def context(self, hidden: Tensor, memory: Memory) -> Tensor:
        """The context [B, H] for states [B, H]."""
        return memory.context(self.v(torch.tanh(memory.scored + self.query(hidden)[:, None]))[..., 0])


class Luong(nn.Module):
    """The scores of the module's docstring by their last name, and feed' = tanh(combine([c; h']))."""

    def __init__(self, hidden: int, score: str) -> None:
        super().__init__()
        self.hidden, self.score = hidden, score
        self.combine = nn.Linear(2 * hidden, hidden, bias=False)
        if score != "dot":
            self.score_proj = nn.Linear(2 * hidden if score == "concat" else hidden, hidden, bias=False)
        if score == "concat":
            self.v = nn.Linear(hidden, 1, bias=False)

    def remember(self, keys: Tensor, real: Tensor) -> Memory:
        """The memory of sources with keys [B, S, H]."""
        if self.score == "dot":
            return Memory(keys, None, real)
        # The projection of [h; k] is that of h and that of k, added up.
        return Memory(keys, F.linear(keys, self.score_proj.weight[:, -self.hidden :]), real)

    def forward(self, hidden: Tensor, memory: Memory) -> Tensor:
        """States [B, H] to features [B, H]."""
        if self.score == "concat":
            query = F.linear(hidden, self.score_proj.weight[:, : self.hidden])
            scores = self.v(torch.tanh(memory.scored + query[:, None]))[..., 0]
        else:
            scores = torch.bmm(memory.scored, hidden[:, :, None])[..., 0]  # [B, S]
        return torch.tanh(self.combine(torch.cat([memory.context(scores), hidden], dim=-1)))


class Seq2Seq(nn.Module):
    """The model. An `EncoderDecoder` that reads and writes sequences of any length.

    Args:
        config: sizes.
        dropout: for training only: on both embeddings and before the output. A loaded model has none.
    """

    def __init__(self, config: Seq2SeqConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.vocab_size, self.src_vocab = config.vocab_size, config.tl_src_vocab
        self.max_len: int | None = None
        e, hidden, attention = config.tl_d_emb, config.hidden_size, config.tl_seq2seq_attention
        self.src_emb = embedding(config.tl_src_vocab, e)
        self.enc_fwd = nn.GRU(e, hidden // 2, batch_first=True)
        self.enc_bwd = nn.GRU(e, hidden // 2, batch_first=True)
        self.bridge = nn.Linear(hidden, hidden)
        self.tgt_emb = embedding(config.vocab_size, e)
        self.cell = CELLS[config.tl_cell](e if attention == "none" else e + hidden, hidden)
        self.attention: Bahdanau | Luong | None = None
        if config.tl_d_attn is not None:
            self.attention = Bahdanau(hidden, config.tl_d_attn)
        elif attention != "none":
            self.attention = Luong(hidden, attention.removeprefix("luong-"))
        self.out = nn.Linear(2 * hidden if attention == "bahdanau" else hidden, config.vocab_size)
        self.dropout = nn.Dropout(dropout)

    def start(self, src: Tensor, real: Tensor) -> State:
        """Read sources.

        Args:
            src: int64 [B, S].
            real: bool [B, S], False where a position is padding; every row has a real one. Padding is read as id 0
                where it is not behind the last real token, and never attended to.
        """
        places = torch.arange(src.shape[1], device=src.device)
        last = (places * real).amax(dim=1, keepdim=True)  # [B, 1]
        # The backward encoder starts from each row's own last token: its real part turned round, and padding behind.
        turned = torch.where(places <= last, last - places, places)[..., None]  # [B, S, 1]
        x = self.dropout(self.src_emb(src.where(real, 0)))  # [B, S, e]
        forward, _ = self.enc_fwd(x)  # [B, S, H/2]
        backward, _ = self.enc_bwd(x.gather(1, turned.expand_as(x)))
        backward = backward.gather(1, turned.expand_as(backward))
        at_last = forward.gather(1, last[..., None].expand(-1, 1, forward.shape[-1]))[:, 0]
        hidden = torch.tanh(self.bridge(torch.cat([at_last, backward[:, 0]], dim=-1)))
        zeros = torch.zeros_like(hidden)
        keys = torch.cat([forward, backward], dim=-1)  # [B, S, H]
        return State(
            hidden,
            cell=zeros if self.config.tl_cell == "lstm" else None,
            feed=zeros if isinstance(self.attention, Luong) else None,
            memory=None if self.attention is None else self.attention.remember(keys, real),
        )

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The last token of each row, int64 [B], and the state before it to the logits [B, V] of the next token and
        the state after it."""
        features, state = self._advance(self.tgt_emb(tokens), state)
        return cast(Tensor, self.out(features)), state

    def forward(self, src: Tensor, real: Tensor, tgt_in: Tensor) -> Tensor:
        """Teacher forcing, for training.

        Args:
            src, real: sources, as for `start`.
            tgt_in: int64 [B, T], the targets behind bos.

        Returns:
            The logits [B, T, V] of the token after each of ``tgt_in``.
        """
        state = self.start(src, real)
        features = []
        for embedded in self.dropout(self.tgt_emb(tgt_in)).unbind(1):
            feature, state = self._advance(embedded, state)
            features.append(feature)
        return cast(Tensor, self.out(self.dropout(torch.stack(features, dim=1))))

    def _advance(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """Embedded tokens [B, e] and the state before them to what the output layer reads and the state after."""
        memory = cast(Memory, state.memory)  # None without attention, where nothing reads it
        inputs = [embedded]
        if isinstance(self.attention, Bahdanau):
            inputs.append(self.attention.context(state.hidden, memory))
        elif state.feed is not None:
            inputs.append(state.feed)
        x = torch.cat(inputs, dim=-1)
        if state.cell is None:
            state = state._replace(hidden=self.cell(x, state.hidden))
        else:
            hidden, cell = self.cell(x, (state.hidden, state.cell))
            state = state._replace(hidden=hidden, cell=cell)
        if isinstance(self.attention, Bahdanau):
            return torch.cat([state.hidden, inputs[1]], dim=-1), state
        if isinstance(self.attention, Luong):
            feed = self.attention(state.hidden, memory)
            return feed, state._replace(feed=feed)
        return state.hidden, state


def load(model_dir: str | os.PathLike[str]) -> Seq2Seq:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    config = Seq2SeqConfig.from_dict(read_config(model_dir))
    return load_module(model_dir, lambda: Seq2Seq(config))


def save(model: Seq2Seq, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    config = {key: value for key, value in asdict(model.config).items() if value is not None}
    save_module(model, {"tl_arch": "seq2seq"} | config, model_dir)

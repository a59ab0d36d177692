"""Encoder-decoder Transformer (Vaswani et al., "Attention Is All You Need", 2017).

Embeddings are table[ids] sqrt(d) plus sinusoids: PE(p, 2i) = sin(p 10000^(-2i/d)), PE(p, 2i + 1) the cosine.
Feed-forward layers are linear2(relu(linear1 x)). With ``tl_norm`` "post", as published, a sublayer is
x = norm(x + sublayer(x)); with "pre" it is x += sublayer(norm x), and each stack ends in a norm. The maths of
`torch.nn.TransformerEncoderLayer` and `torch.nn.TransformerDecoderLayer`, with query, key and value as three layers.

A decoder keeps the keys and values of what it has written, and those of the source, which are computed once: a step
costs one position, not the whole prefix.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple, Self, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike
from torch import Tensor, nn

from evalsuite.scoring.decode import decode_sources
from evalsuite.zoo.config import Config, check_arch, flag, one_of, positive, read_config, size, tokenizer_of
from evalsuite.zoo.layers import MultiHeadAttention, embedding
from evalsuite.zoo.module_files import load_module, save_module


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes under their ``config.json`` names.

    ``vocab_size`` is the target's, ``tl_src_vocab`` the source's. Tied, the output layer is the target's embedding, and
    source and target share one table where their vocabularies are of one size.
    """

    vocab_size: int
    tl_src_vocab: int
    d_model: int
    n_heads: int
    d_ff: int
    n_enc: int
    n_dec: int
    tl_norm: str
    tie_word_embeddings: bool
    max_position_embeddings: int
    layer_norm_eps: float = 1e-5
    tl_tokenizer: str = "file"

    def __post_init__(self) -> None:
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model {self.d_model} is not a multiple of n_heads {self.n_heads}")

    @property
    def shares_table(self) -> bool:
        """Whether source and target have one embedding."""
        return self.tie_word_embeddings and self.tl_src_vocab == self.vocab_size

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration. ValueError names the key, what was found and what was expected."""
        check_arch(config, "transformer")
        return cls(
            vocab_size=size(config, "vocab_size"),
            tl_src_vocab=size(config, "tl_src_vocab"),
            d_model=size(config, "d_model"),
            n_heads=size(config, "n_heads"),
            d_ff=size(config, "d_ff"),
            n_enc=size(config, "n_enc"),
            n_dec=size(config, "n_dec"),
            tl_norm=one_of(config, "tl_norm", ("post", "pre")),
            tie_word_embeddings=flag(config, "tie_word_embeddings"),
            max_position_embeddings=size(config, "max_position_embeddings"),
            layer_norm_eps=positive(config, "layer_norm_eps", 1e-5),
            tl_tokenizer=tokenizer_of(config),
        )


KeysValues = tuple[Tensor, Tensor]
"""Keys and values by head, each [B, H, T, d/H]."""


class Layer(nn.Module):
    """What both kinds of layer have: a self-attention, a feed-forward half, and norms before or behind each part."""

    def __init__(self, config: TransformerConfig, dropout: float) -> None:
        super().__init__()
        d = config.d_model
        self.pre = config.tl_norm == "pre"
        self.self_attn = MultiHeadAttention(d, config.n_heads)
        self.linear1 = nn.Linear(d, config.d_ff)
        self.linear2 = nn.Linear(config.d_ff, d)
        self.norm1 = nn.LayerNorm(d, eps=config.layer_norm_eps)
        self.norm2 = nn.LayerNorm(d, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(dropout)

    def before(self, norm: nn.Module, x: Tensor) -> Tensor:
        """What a sublayer reads."""
        return cast(Tensor, norm(x)) if self.pre else x

    def after(self, norm: nn.Module, x: Tensor, sublayer: Tensor) -> Tensor:
        """The residual stream behind a sublayer."""
        x = x + self.dropout(sublayer)
        return x if self.pre else cast(Tensor, norm(x))

    def feed_forward(self, norm: nn.Module, x: Tensor) -> Tensor:
        """The last half of a layer, [B, T, d] to [B, T, d]."""
        return self.after(norm, x, self.linear2(F.relu(self.linear1(self.before(norm, x)))))


class EncoderLayer(Layer):
    """Self-attention (norm1), feed-forward (norm2)."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """[B, S, d] to [B, S, d]; mask as for `MultiHeadAttention`."""
        x = self.after(self.norm1, x, self.self_attn(self.before(self.norm1, x), mask=mask))
        return self.feed_forward(self.norm2, x)


class DecoderLayer(Layer):
    """Self-attention (norm1), attention to the source (norm2), feed-forward (norm3)."""

    def __init__(self, config: TransformerConfig, dropout: float) -> None:
        super().__init__(config, dropout)
        self.cross_attn = MultiHeadAttention(config.d_model, config.n_heads)
        self.norm3 = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(
        self, x: Tensor, past: KeysValues | None, source: KeysValues, src_mask: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, KeysValues]:
        """Read positions [B, T, d] that follow the past ones: features [B, T, d], and the keys and values so far.

        Without a past they are the first, and each sees no later one unless a mask says what it sees. With a past T is
        1. ``src_mask`` says what may be seen of the source.
        """
        y = self.before(self.norm1, x)
        own = self.self_attn.keys_values(y)
        if past is not None:
            own = torch.cat([past[0], own[0]], dim=2), torch.cat([past[1], own[1]], dim=2)
        queries = self.self_attn.heads(self.self_attn.q_proj(y))
        causal = past is None and mask is None
        x = self.after(self.norm1, x, self.self_attn.attend(queries, *own, mask=mask, is_causal=causal))
        queries = self.cross_attn.heads(self.cross_attn.q_proj(self.before(self.norm2, x)))
        x = self.after(self.norm2, x, self.cross_attn.attend(queries, *source, mask=src_mask))
        return self.feed_forward(self.norm3, x), own


class State(NamedTuple):
    """The decoder before a token.

    Attributes:
        own: keys and values of what has been written, by layer; empty before the first token.
        source: keys and values of the source, by layer.
        src_mask: bool [B, 1, 1, S], False where a position of the source is padding.
    """

    own: tuple[KeysValues, ...]
    source: tuple[KeysValues, ...]
    src_mask: Tensor


class Transformer(nn.Module):
    """The model. An `EncoderDecoder`.

    Args:
        config: sizes.
        dropout: for training only: after the embeddings and every sublayer. A loaded model has none.
    """

    masks_pad = True

    def __init__(self, config: TransformerConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.vocab_size, self.src_vocab = config.vocab_size, config.tl_src_vocab
        self.max_len: int | None = config.max_position_embeddings
        d, eps = config.d_model, config.layer_norm_eps
        self.src_emb = embedding(config.tl_src_vocab, d)
        if not config.shares_table:
            self.tgt_emb = embedding(config.vocab_size, d)
        self.encoder = nn.ModuleList(EncoderLayer(config, dropout) for _ in range(config.n_enc))
        self.decoder = nn.ModuleList(DecoderLayer(config, dropout) for _ in range(config.n_dec))
        if config.tl_norm == "pre":
            self.enc_norm = nn.LayerNorm(d, eps=eps)
            self.dec_norm = nn.LayerNorm(d, eps=eps)
        if not config.tie_word_embeddings:
            self.out = nn.Linear(d, config.vocab_size, bias=False)
        self.dropout = nn.Dropout(dropout)
        self._initialise()

    def _initialise(self) -> None:
        """Matrices after Glorot and Bengio (2010), biases 0, tables of a scale that sqrt(d) makes 1."""
        if self.src_emb.weight.is_meta:  # a loader fills the module
            return
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif name.endswith("emb.weight"):
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)

    def start(self, src: Tensor, real: Tensor) -> State:
        """Read sources.

        Args:
            src: int64 [B, S].
            real: bool [B, S], False where a position is not attended to.

        Raises:
            ValueError: S exceeds ``max_position_embeddings``.
        """
        mask = real[:, None, None, :]  # the same for all heads and queries
        x = self._embed(self.src_emb.weight, src, 0)
        for layer in self.encoder:
            x = layer(x, mask)
        if self.config.tl_norm == "pre":
            x = self.enc_norm(x)
        source = tuple(cast(DecoderLayer, layer).cross_attn.keys_values(x) for layer in self.decoder)
        return State((), source, mask)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The last token of each row, int64 [B], and the state before it to the logits [B, V] of the next token and
        the state after it. ValueError where the prefix exceeds ``max_position_embeddings``."""
        logits, state = self._decode(tokens[:, None], state)
        return logits[:, 0], state

    def forward(self, src: Tensor, src_real: Tensor, tgt_in: Tensor, tgt_real: Tensor | None = None) -> Tensor:
        """All positions of known targets at once, for training.

        Args:
            src, src_real: sources, as for `start`.
            tgt_in: int64 [B, T], the targets behind bos.
            tgt_real: bool [B, T], False where a position is not attended to. Padding behind a target needs none: no
                real position sees it.

        Returns:
            The logits [B, T, V] of the token after each of ``tgt_in``.

        Raises:
            ValueError: S or T exceeds ``max_position_embeddings``.
        """
        mask = None
        if tgt_real is not None:
            length = tgt_in.shape[1]
            mask = torch.ones(length, length, dtype=torch.bool, device=tgt_in.device).tril() & tgt_real[:, None, None]
        return self._decode(tgt_in, self.start(src, src_real), mask)[0]

    def _decode(self, ids: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Token ids [B, T] that follow the state to logits [B, T, V] and the state after them."""
        table = self.src_emb.weight if self.config.shares_table else self.tgt_emb.weight
        x = self._embed(table, ids, state.own[0][0].shape[2] if state.own else 0)
        own, past = [], state.own or (None,) * len(self.decoder)
        for layer, before, source in zip(self.decoder, past, state.source, strict=True):
            x, kept = layer(x, before, source, state.src_mask, mask)
            own.append(kept)
        if self.config.tl_norm == "pre":
            x = self.dec_norm(x)
        head = table if self.config.tie_word_embeddings else self.out.weight
        return F.linear(x, head), state._replace(own=tuple(own))

    def _embed(self, table: Tensor, ids: Tensor, begin: int) -> Tensor:
        """Token ids [B, T] at the positions from ``begin`` on to features [B, T, d]."""
        end, most = begin + ids.shape[1], self.config.max_position_embeddings
        if end > most:
            raise ValueError(f"{end} tokens do not fit max_position_embeddings {most}, the most this model reads")
        places = torch.from_numpy(sinusoids(begin, end, self.config.d_model)).to(table)
        return cast(Tensor, self.dropout(F.embedding(ids, table) * math.sqrt(self.config.d_model) + places))


def sinusoids(begin: int, end: int, d: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Encodings of the positions ``begin .. end - 1``, float32 [T, d]: sines in even columns, cosines in odd ones."""
    angles = np.arange(begin, end)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)  # [T, d/2]
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # [T, d/2, 2]
    return pairs.reshape(end - begin, -1)[:, :d].astype(np.float32)


def translate(
    model: Transformer,
    src: ArrayLike,
    bos: int,
    eos: int,
    pad_id: int,
    max_len: int,
    beam_size: int,
    length_penalty: float = 1.0,
) -> list[list[int]]:
    """The best hypothesis of each source, without its eos.

    Args:
        model: in eval mode.
        src: int64 [B, S]; positions that hold ``pad_id`` are masked.
        bos, eos, pad_id, max_len, beam_size, length_penalty: see `evalsuite.scoring.decode.decode_sources`.

    Raises:
        ValueError: what `decode_sources` refuses, a prefix that exceeds ``max_position_embeddings``, or a source for
            which the model gives no finite log-probability.
    """
    sources = cast(Sequence[Sequence[int]], np.asarray(src))
    given = {"bos": bos, "eos": eos, "pad_id": pad_id, "max_len": max_len, "beam_size": beam_size}
    best = []
    for row, hypotheses in enumerate(decode_sources(model, sources, **given, length_penalty=length_penalty)):
        if not hypotheses:
            raise ValueError(f"row {row}: the model gives no finite log-probability")
        best.append(list(hypotheses[0].tokens[: -1 if hypotheses[0].finished else None]))
    return best


def load(model_dir: str | os.PathLike[str]) -> Transformer:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    config = TransformerConfig.from_dict(read_config(model_dir))
    last = (f"encoder.{config.n_enc - 1}.linear1.weight", f"decoder.{config.n_dec - 1}.linear1.weight")
    return load_module(model_dir, lambda: Transformer(config), last=last)


def save(model: Transformer, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    save_module(model, {"tl_arch": "transformer"} | asdict(model.config), model_dir)

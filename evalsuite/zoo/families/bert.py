"""BERT (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019), after ``BertForMaskedLM``.

Post-LayerNorm blocks that see the whole sentence, learned positions, GELU in its exact form x Phi(x). The output layer
is tied to the word embedding. Where it differs from the Hugging Face model of that name: tensors have shorter names,
there is no pooler, and dropout does not fall on attention weights. `from_hf_bert` maps between the two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evalsuite.zoo.config import Config, check_arch, positive, read_config, size, tokenizer_of
from evalsuite.zoo.layers import MultiHeadAttention, embedding
from evalsuite.zoo.module_files import load_module, save_module
from evalsuite.zoo.tensors import load_strict


@dataclass(frozen=True)
class BertConfig:
    """Sizes under their ``config.json`` names; ``intermediate_size`` is the width of the feed-forward layer."""

    vocab_size: int
    max_position_embeddings: int
    hidden_size: int
    num_attention_heads: int
    num_hidden_layers: int
    intermediate_size: int
    type_vocab_size: int
    layer_norm_eps: float = 1e-12
    tl_tokenizer: str = "bytes"

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}"
            )

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check sizes. ValueError names the key, what was found and what was expected."""
        return cls(
            vocab_size=size(config, "vocab_size"),
            max_position_embeddings=size(config, "max_position_embeddings"),
            hidden_size=size(config, "hidden_size"),
            num_attention_heads=size(config, "num_attention_heads"),
            num_hidden_layers=size(config, "num_hidden_layers"),
            intermediate_size=size(config, "intermediate_size"),
            type_vocab_size=size(config, "type_vocab_size"),
            layer_norm_eps=positive(config, "layer_norm_eps", 1e-12),
            tl_tokenizer=tokenizer_of(config),
        )


def initialise(module: nn.Module) -> None:
    """BERT's start: every matrix from N(0, 0.02), biases 0, norm gains 1 as torch has them."""
    for name, parameter in module.named_parameters():
        if parameter.is_meta:  # a loader fills the module
            return
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)


class Layer(nn.Module):
    """x = norm(x + attention(x)); x = norm(x + ff(x))."""

    def __init__(self, config: BertConfig, dropout: float) -> None:
        super().__init__()
        d, eps = config.hidden_size, config.layer_norm_eps
        self.attn = MultiHeadAttention(d, config.num_attention_heads)
        self.attn_norm = nn.LayerNorm(d, eps=eps)
        self.ff1 = nn.Linear(d, config.intermediate_size)
        self.ff2 = nn.Linear(config.intermediate_size, d)
        self.ff_norm = nn.LayerNorm(d, eps=eps)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """[B, T, d] to [B, T, d]; mask as for `MultiHeadAttention`."""
        x = self.attn_norm(x + self.dropout(self.attn(x, mask=mask)))
        return cast(Tensor, self.ff_norm(x + self.dropout(self.ff2(F.gelu(self.ff1(x))))))


class BertEncoder(nn.Module):
    """Token ids to features, without any head.

    Args:
        config: sizes.
        dropout: for training only: after the embedding and both halves of a layer.
    """

    def __init__(self, config: BertConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        d = config.hidden_size
        self.vocab_size = config.vocab_size
        self.max_len = config.max_position_embeddings
        self.word_emb = embedding(config.vocab_size, d)
        self.pos_emb = embedding(config.max_position_embeddings, d)
        self.type_emb = embedding(config.type_vocab_size, d)
        self.emb_norm = nn.LayerNorm(d, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(config, dropout) for _ in range(config.num_hidden_layers))
        initialise(self)

    def hidden(self, ids: Tensor, real: Tensor | None = None, types: Tensor | None = None) -> Tensor:
        """Features of every token.

        Args:
            ids: int64 [n, T].
            real: bool [n, T], False where a token is padding, which no token attends to; None if all are real.
            types: int64 [n, T], the segment of each token; None if all are of segment 0.

        Returns:
            [n, T, d]; those of padding mean nothing.

        Raises:
            ValueError: T exceeds ``max_len``.
        """
        length = ids.shape[1]
        if length > self.max_len:
            raise ValueError(f"{length} tokens do not fit max_len {self.max_len}, the most this model reads")
        segment = self.type_emb.weight[0] if types is None else self.type_emb(types)
        x: Tensor = self.dropout(self.emb_norm(self.word_emb(ids) + self.pos_emb.weight[:length] + segment))
        mask = None if real is None else real[:, None, None, :]  # [n, 1, 1, T]: the same keys for all heads and queries
        for layer in self.layers:
            x = layer(x, mask)
        return x


class BertForMLM(nn.Module):
    """The encoder with its masked-token head.

    Args:
        config: sizes.
        dropout: for training only, see `BertEncoder`. A loaded model has none.
    """

    def __init__(self, config: BertConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        self.max_len = config.max_position_embeddings
        self.bert = BertEncoder(config, dropout=dropout)
        self.transform = nn.Linear(config.hidden_size, config.hidden_size)
        self.transform_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder_bias = nn.Parameter(torch.zeros(config.vocab_size))
        initialise(self.transform)

    def hidden(self, ids: Tensor, real: Tensor | None = None, types: Tensor | None = None) -> Tensor:
        """Features [n, T, d] of token ids int64 [n, T]; see `BertEncoder.hidden`."""
        return self.bert.hidden(ids, real, types)

    def logits(self, hidden: Tensor) -> Tensor:
        """Features [..., d] to the logits [..., V] of the token at the same place."""
        features = self.transform_norm(F.gelu(self.transform(hidden)))
        return F.linear(features, self.bert.word_emb.weight, self.decoder_bias)


def load(model_dir: str | os.PathLike[str]) -> BertForMLM:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    raw = read_config(model_dir)
    check_arch(raw, "bert")
    config = BertConfig.from_dict(raw)
    last = f"bert.layers.{config.num_hidden_layers - 1}.ff1.weight"
    return load_module(model_dir, lambda: BertForMLM(config), last=(last,))


def save(model: BertForMLM, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    save_module(model, {"tl_arch": "bert"} | asdict(model.config), model_dir)


# In this order: "output.dense" is also the end of "attention.output.dense".
_FROM_HF = {
    "embeddings.word_embeddings": "word_emb",
    "embeddings.position_embeddings": "pos_emb",
    "embeddings.token_type_embeddings": "type_emb",
    "embeddings.LayerNorm": "emb_norm",
    "encoder.layer": "layers",
    "attention.self.query": "attn.q_proj",
    "attention.self.key": "attn.k_proj",
    "attention.self.value": "attn.v_proj",
    "attention.output.dense": "attn.out_proj",
    "attention.output.LayerNorm": "attn_norm",
    "intermediate.dense": "ff1",
    "output.dense": "ff2",
    "output.LayerNorm": "ff_norm",
    "cls.predictions.transform.dense": "transform",
    "cls.predictions.transform.LayerNorm": "transform_norm",
    "cls.predictions.bias": "decoder_bias",
}


def from_hf_name(name: str) -> str:
    """A tensor's name in Hugging Face's BERT or ELECTRA encoder, or in BERT's masked-token head, to its name here."""
    for theirs, ours in _FROM_HF.items():
        name = name.replace(theirs, ours)
    return name


def from_hf_bert(state_dict: Mapping[str, Tensor], config: Mapping[str, object]) -> BertForMLM:
    """Build a `BertForMLM` from Hugging Face's ``BertForMaskedLM``: its ``state_dict()`` and ``config.to_dict()``.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a setting that this model does not have, such as another activation function.
    """
    for key, only in {
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "tie_word_embeddings": True,
    }.items():
        if config.get(key, only) != only:
            raise ValueError(f"BERT config key {key!r}: found {config[key]!r}, only {only!r} is supported")
    with torch.device("meta"):
        model = BertForMLM(BertConfig.from_dict(config))
    tensors = {
        from_hf_name(name): tensor.float()
        for name, tensor in state_dict.items()
        # The output layer is the word embedding and ``cls.predictions.bias`` under second names.
        if not name.startswith("cls.predictions.decoder.") and not name.endswith(".position_ids")
    }
    load_strict(model, tensors, "BERT state dict")
    return model

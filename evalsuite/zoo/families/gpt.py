"""GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019), after ``GPT2LMHeadModel``.

Pre-LayerNorm blocks, learned positions that restart at 0 in every window, GELU in its tanh form. Where it differs
from the Hugging Face model of that name: query, key and value are three `torch.nn.Linear` instead of one
``Conv1D`` (so weights are [out, in]), ``n_inner`` is always given, and a tied head stores no ``lm_head.weight``.
`from_hf_gpt2` maps between the two.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self, cast

import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike
from torch import Tensor, nn

from evalsuite.zoo.config import Config, check_arch, flag, positive, read_config, size, tokenizer_of
from evalsuite.zoo.layers import MultiHeadAttention, embedding
from evalsuite.zoo.module_files import load_module, save_module
from evalsuite.zoo.tensors import load_strict


@dataclass(frozen=True)
class GPTConfig:
    """Sizes under their ``config.json`` names; ``n_inner`` is the width of the feed-forward layer."""

    vocab_size: int
    n_positions: int
    n_embd: int
    n_head: int
    n_layer: int
    n_inner: int
    layer_norm_epsilon: float = 1e-5
    tie_word_embeddings: bool = True
    tl_tokenizer: str = "bytes"

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd {self.n_embd} is not a multiple of n_head {self.n_head}")

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration. ValueError names the key, what was found and what was expected."""
        check_arch(config, "gpt")
        return cls(
            vocab_size=size(config, "vocab_size"),
            n_positions=size(config, "n_positions"),
            n_embd=size(config, "n_embd"),
            n_head=size(config, "n_head"),
            n_layer=size(config, "n_layer"),
            n_inner=size(config, "n_inner"),
            layer_norm_epsilon=positive(config, "layer_norm_epsilon", 1e-5),
            tie_word_embeddings=flag(config, "tie_word_embeddings"),
            tl_tokenizer=tokenizer_of(config),
        )


class Block(nn.Module):
    """x += attention(ln_1 x); x += mlp(ln_2 x)."""

    def __init__(self, config: GPTConfig, dropout: float) -> None:
        super().__init__()
        d, eps = config.n_embd, config.layer_norm_epsilon
        self.ln_1 = nn.LayerNorm(d, eps=eps)
        self.attn = MultiHeadAttention(d, config.n_head)
        self.ln_2 = nn.LayerNorm(d, eps=eps)
        self.mlp_fc = nn.Linear(d, config.n_inner)
        self.mlp_proj = nn.Linear(config.n_inner, d)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] to [B, T, d]."""
        x = x + self.dropout(self.attn(self.ln_1(x), is_causal=True))
        return x + cast(Tensor, self.dropout(self.mlp_proj(F.gelu(self.mlp_fc(self.ln_2(x)), approximate="tanh"))))


class GPT(nn.Module):
    """The model. A `CausalModel`, and callable: ``model(ids)`` gives ``(logits, loss)``.

    Args:
        config: sizes.
        dropout: for training only: after the embedding and both halves of a block. A loaded model has none.
    """

    def __init__(self, config: GPTConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        self.max_len: int | None = config.n_positions
        self.wte = embedding(config.vocab_size, config.n_embd)
        self.wpe = embedding(config.n_positions, config.n_embd)
        self.dropout = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(config, dropout) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self._initialise()

    def _initialise(self) -> None:
        """GPT-2's: every matrix from N(0, 0.02), those that write into the residual stream smaller, biases 0."""
        if self.wte.weight.is_meta:  # a loader fills the module
            return
        residual = 0.02 / math.sqrt(2 * self.config.n_layer)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                nn.init.normal_(
                    parameter, std=residual if name.endswith(("out_proj.weight", "mlp_proj.weight")) else 0.02
                )

    def hidden(self, ids: Tensor) -> Tensor:
        """int64 [B, T] token ids to the features after the last LayerNorm, [B, T, d].

        Raises:
            ValueError: T exceeds ``n_positions``.
        """
        length = ids.shape[1]
        if length > self.config.n_positions:
            raise ValueError(f"{length} tokens do not fit n_ctx {self.config.n_positions}, the most this model reads")
        x: Tensor = self.dropout(self.wte(ids) + self.wpe.weight[:length])  # [B, T, d]
        for block in self.h:
            x = block(x)
        return cast(Tensor, self.ln_f(x))

    def logits(self, hidden: Tensor) -> Tensor:
        """Features [..., d] to next-token logits [..., V]."""
        head = self.wte.weight if self.config.tie_word_embeddings else self.lm_head.weight
        return F.linear(hidden, head)

    def forward(self, ids: ArrayLike | Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Token ids [B, T] (NumPy or torch) to logits [B, T, V] and, given targets [B, T], their mean NLL in nats."""
        logits = self.logits(self.hidden(torch.as_tensor(ids).long()))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


def load(model_dir: str | os.PathLike[str]) -> GPT:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    config = GPTConfig.from_dict(read_config(model_dir))
    return load_module(model_dir, lambda: GPT(config), last=(f"h.{config.n_layer - 1}.ln_1.weight",))


def save(model: GPT, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    save_module(model, {"tl_arch": "gpt"} | asdict(model.config), model_dir)


def from_hf_gpt2(state_dict: Mapping[str, Tensor], config: Mapping[str, object]) -> GPT:
    """Build a `GPT` from Hugging Face's ``GPT2LMHeadModel``: its ``state_dict()`` and ``config.to_dict()``.

    ``c_attn.weight`` [d, 3d] (Conv1D: in x out) splits by columns into query, key and value; every Conv1D weight
    is transposed. The prefix ``transformer.`` may be absent.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a setting that this model does not have, such as another activation function.
    """
    for key, only in {
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    }.items():
        if config.get(key, only) != only:
            raise ValueError(f"GPT-2 config key {key!r}: found {config[key]!r}, only {only!r} is supported")
    inner = config.get("n_inner")
    ours = GPTConfig.from_dict(
        {"tie_word_embeddings": True}
        | dict(config)
        | {"tl_arch": "gpt", "n_inner": 4 * size(config, "n_embd") if inner is None else inner}
    )
    tensors: dict[str, Tensor] = {}
    for name, tensor in state_dict.items():
        name = name.removeprefix("transformer.")
        if name.endswith((".attn.bias", ".attn.masked_bias")) or (
            name == "lm_head.weight" and ours.tie_word_embeddings
        ):
            continue  # the causal mask is no weight, and a tied head is wte
        if ".attn.c_attn." in name:
            parts = torch.split(tensor, ours.n_embd, dim=-1)
            for part, projection in zip(parts, ("q_proj", "k_proj", "v_proj"), strict=True):
                tensors[name.replace("c_attn", projection)] = part.T if part.dim() == 2 else part
            continue
        conv = ".attn.c_proj." in name or ".mlp.c_" in name
        name = name.replace("attn.c_proj", "attn.out_proj").replace("mlp.c_", "mlp_")
        tensors[name] = tensor.T if conv and tensor.dim() == 2 else tensor
    with torch.device("meta"):
        model = GPT(ours)
    load_strict(model, {name: tensor.float() for name, tensor in tensors.items()}, "GPT-2 state dict")
    return model

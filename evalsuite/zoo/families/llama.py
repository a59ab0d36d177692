"""Llama (Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023), after ``LlamaForCausalLM``.

Pre-norm blocks with RMSNorm, rotary positions, grouped-query attention (Ainslie et al., 2023) and SwiGLU (Shazeer,
2020). Tensor names and configuration are Hugging Face's, so its checkpoints load as they are, sharded ones included.
Where it differs from the model of that name: it returns logits alone, its configuration may carry the biases of Qwen2
(``qkv_bias``, which ``model_type`` qwen2 or ``tl_qkv_bias`` asks for), and what changes the maths and is not built here
is refused by name. So are families with the same tensor names and other maths, such as Gemma.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Self, cast

import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike
from torch import Tensor, nn

from evalsuite.zoo.config import (
    Config,
    ConfigError,
    check_arch,
    flag,
    one_of,
    positive,
    read_config,
    size,
    tokenizer_of,
)
from evalsuite.zoo.layers import embedding
from evalsuite.zoo.module_files import load_module, save_module
from evalsuite.zoo.registry import arch_of
from evalsuite.zoo.rope import KEYS, Rope, rotate

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
}

BUILT: Mapping[str, tuple[object, ...]] = {
    "model_type": ("llama", "qwen2"),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "layer_types": ("full_attention",),
    "use_sliding_window": (False,),
    "partial_rotary_factor": (1.0,),
    "rope_interleaved": (False,),
    "quantization_config": (),
    "tl_attention": ("mha", "gqa", "mqa"),
    "tl_sliding_window": (),
    "tl_sink_tokens": (0,),
    "tl_num_experts": (1,),
    "tl_pos": ("rope", "yarn"),
}
"""Keys that change the maths, and what is built here of each, beside null."""


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes under their ``config.json`` names; ``head_dim`` 0 stands for ``hidden_size / num_attention_heads``."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    max_position_embeddings: int = 2048
    head_dim: int = 0
    rms_norm_eps: float = 1e-6
    hidden_act: str = "silu"
    tie_word_embeddings: bool = False
    tl_qkv_bias: bool = False
    rope: Rope = field(default_factory=Rope)
    tl_tokenizer: str = "bytes"

    def __post_init__(self) -> None:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ConfigError(
                f"num_attention_heads {self.num_attention_heads} is not a multiple of num_key_value_heads "
                f"{self.num_key_value_heads}: a group of queries shares a key"
            )
        if not self.head_dim and self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}; "
                f"set head_dim"
            )
        if self.head_width % 2:
            raise ConfigError(f"head_dim {self.head_width} is odd: rotary positions turn pairs of features")
        if self.head_width == 2 and self.rope.rope_type == "ntk":
            raise ConfigError("head_dim 2 has a single frequency, which rope_type 'ntk' does not change: use 'default'")

    @property
    def head_width(self) -> int:
        """Features of a head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration, whose nulls stand for defaults.

        Raises:
            ValueError: names the key, what was found and what was expected.
        """
        given = {key: value for key, value in config.items() if value is not None}
        check_arch({"tl_arch": arch_of(given)}, "llama")
        _refuse_what_is_not_built(given)
        config = {
            "num_key_value_heads": given.get("num_attention_heads"),
            "max_position_embeddings": 2048,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "tl_qkv_bias": given.get("model_type") == "qwen2",
        } | given
        max_len = size(config, "max_position_embeddings")
        rope = Rope.from_config(config, max_len)
        if config.get("tl_pos") == "yarn" != rope.rope_type:
            raise ConfigError(f"config key 'tl_pos': found 'yarn' beside rope_type {rope.rope_type!r}")
        return cls(
            vocab_size=size(config, "vocab_size"),
            hidden_size=size(config, "hidden_size"),
            intermediate_size=size(config, "intermediate_size"),
            num_hidden_layers=size(config, "num_hidden_layers"),
            num_attention_heads=size(config, "num_attention_heads"),
            num_key_value_heads=size(config, "num_key_value_heads"),
            max_position_embeddings=max_len,
            head_dim=size(config, "head_dim") if "head_dim" in config else 0,
            rms_norm_eps=positive(config, "rms_norm_eps", 1e-6),
            hidden_act=one_of(config, "hidden_act", tuple(ACTIVATIONS)),
            tie_word_embeddings=flag(config, "tie_word_embeddings"),
            tl_qkv_bias=flag(config, "tl_qkv_bias"),
            rope=rope,
            tl_tokenizer=tokenizer_of(config),
        )

    def as_dict(self) -> dict[str, object]:
        """What `from_dict` reads, and Hugging Face too: its Llama has no biases, which its Qwen2 has."""
        fields = {key: value for key, value in asdict(self).items() if key not in ("rope", "head_dim")}
        names = {"tl_arch": "llama", "model_type": "qwen2" if self.tl_qkv_bias else "llama"}
        return names | fields | {"head_dim": self.head_width} | _rope_keys(self.rope)


def _rope_keys(rope: Rope) -> dict[str, object]:
    """``rope_theta`` and ``rope_scaling`` of a scheme."""
    theta: dict[str, object] = {"rope_theta": rope.rope_theta}
    if rope.rope_type == "default":
        return theta
    numbers = {key: getattr(rope, key) for key in KEYS[rope.rope_type]}
    if not rope.attention_factor:  # it follows from the factor
        numbers.pop("attention_factor", None)
    return theta | {"rope_scaling": {"rope_type": rope.rope_type} | numbers}


def _refuse_what_is_not_built(config: Config) -> None:
    for key, built in BUILT.items():
        found = config.get(key, [])
        for value in found if isinstance(found, list) else [found]:
            if value not in built:
                only = " or ".join(map(repr, built)) or "null"
                raise ConfigError(f"config key {key!r}: found {value!r}, only {only} is supported")


class Attention(nn.Module):
    """Causal self-attention in which query head h reads the keys and values of head h // (H / Hkv)."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        d, width, bias = config.hidden_size, config.head_width, config.tl_qkv_bias
        self.head_width = width
        self.q_proj = nn.Linear(d, config.num_attention_heads * width, bias=bias)
        self.k_proj = nn.Linear(d, config.num_key_value_heads * width, bias=bias)
        self.v_proj = nn.Linear(d, config.num_key_value_heads * width, bias=bias)
        self.o_proj = nn.Linear(config.num_attention_heads * width, d, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """[B, T, d] to [B, T, d]; ``turn`` holds the rotary tables [T, width / 2]."""
        q, k, v = (
            projection(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )  # [B, H or Hkv, T, width]
        q, k = rotate(q, *turn), rotate(k, *turn)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return cast(Tensor, self.o_proj(mixed.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    """down(act(gate x) * up x)."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        d, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(d, inner, bias=False)
        self.up_proj = nn.Linear(d, inner, bias=False)
        self.down_proj = nn.Linear(inner, d, bias=False)
        self.act = ACTIVATIONS[config.hidden_act]

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d] to [B, T, d]."""
        return cast(Tensor, self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x)))


class Layer(nn.Module):
    """x += attention(norm x); x += mlp(norm x)."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = MLP(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """[B, T, d] to [B, T, d]."""
        x = x + self.self_attn(self.input_layernorm(x), turn)
        return x + cast(Tensor, self.mlp(self.post_attention_layernorm(x)))


class Decoder(nn.Module):
    """Everything but the output layer, under the name ``model`` that checkpoints give it."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)


class Llama(nn.Module):
    """The model. A `CausalModel`, and callable: ``model(ids)`` gives the logits."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        self.max_len: int | None = config.max_position_embeddings
        self.model = Decoder(config)
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if not self.model.embed_tokens.weight.is_meta:  # a loader fills the module
            for name, parameter in self.named_parameters():
                if name.endswith("bias"):
                    nn.init.zeros_(parameter)
                elif parameter.dim() == 2:
                    nn.init.normal_(parameter, std=0.02)

    def hidden(self, ids: Tensor) -> Tensor:
        """int64 [B, T] token ids to the features after the last norm, [B, T, d].

        Raises:
            ValueError: T exceeds ``max_position_embeddings``.
        """
        length = ids.shape[1]
        if length > self.config.max_position_embeddings:
            raise ValueError(
                f"{length} tokens do not fit max_position_embeddings {self.config.max_position_embeddings}, the most "
                f"this model reads"
            )
        x: Tensor = self.model.embed_tokens(ids)  # [B, T, d]
        turn = self.config.rope.tables(length, self.config.head_width, x)
        for layer in self.model.layers:
            x = layer(x, turn)
        return cast(Tensor, self.model.norm(x))

    def logits(self, hidden: Tensor) -> Tensor:
        """Features [..., d] to next-token logits [..., V]."""
        head = self.model.embed_tokens if self.config.tie_word_embeddings else self.lm_head
        return F.linear(hidden, head.weight)

    def forward(self, ids: ArrayLike | Tensor) -> Tensor:
        """Token ids [B, T] or [T] (NumPy or torch) to logits [B, T, V] or [T, V]."""
        tokens = torch.as_tensor(ids).long()
        logits = self.logits(self.hidden(tokens if tokens.dim() == 2 else tokens[None]))
        return logits if tokens.dim() == 2 else logits[0]


def load(model_dir: str | os.PathLike[str]) -> Llama:
    """Load a checkpoint directory, strictly; ``model.safetensors`` may be sharded.

    Stored tables of rotary frequencies are left out, since they follow from the configuration, and so is the output
    layer of a tied model, which is the embedding under a second name.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    config = LlamaConfig.from_dict(read_config(model_dir))

    def derived(name: str) -> bool:
        return name.endswith("rotary_emb.inv_freq") or (name == "lm_head.weight" and config.tie_word_embeddings)

    last = f"model.layers.{config.num_hidden_layers - 1}.input_layernorm.weight"
    return load_module(model_dir, lambda: Llama(config), last=(last,), skip=derived)


def save(model: Llama, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    save_module(model, model.config.as_dict(), model_dir, metadata={"format": "pt"})

"""A sentence classifier: an encoder of another family, its features pooled, and one linear layer.

The backbone is a BERT encoder (``tl_arch`` bert or electra) or a GPT up to its last LayerNorm. The features that are
pooled are the last layer's themselves, without the dense layer and tanh of Hugging Face's ``BertPooler``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, cast

import torch
from torch import Tensor, nn

from evalsuite.zoo.config import Config, flag, one_of, positive, read_config, size, tokenizer_of
from evalsuite.zoo.families.bert import BertConfig, BertEncoder, initialise
from evalsuite.zoo.families.gpt import GPT, GPTConfig
from evalsuite.zoo.module_files import load_module, save_module

POOLS = ("cls", "mean", "last")

BERT_SIZES = {
    "vocab": "vocab_size",
    "max_len": "max_position_embeddings",
    "d_model": "hidden_size",
    "n_heads": "num_attention_heads",
    "n_layers": "num_hidden_layers",
    "d_ff": "intermediate_size",
    "type_vocab": "type_vocab_size",
}
GPT_SIZES = {
    "vocab": "vocab_size",
    "n_ctx": "n_positions",
    "d_model": "n_embd",
    "n_heads": "n_head",
    "n_layers": "n_layer",
    "d_ff": "n_inner",
}
"""The sizes in ``tl_backbone``, and the family's own names for them."""


@dataclass(frozen=True)
class ClassifierConfig:
    """What a classifier is made of.

    Attributes:
        tl_arch: "bert", "electra" or "gpt": whose encoder the backbone is.
        backbone: its sizes, a `GPTConfig` for "gpt".
        labels: a name for each class; the class's number is its place.
        pool: the features that are read: "cls" the first token's, "mean" the mean over real tokens, "last" the last
            real token's.
    """

    tl_arch: str
    backbone: BertConfig | GPTConfig
    labels: tuple[str, ...]
    pool: str

    @property
    def width(self) -> int:
        """Features of a token."""
        return self.backbone.n_embd if isinstance(self.backbone, GPTConfig) else self.backbone.hidden_size

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration. ValueError names the key, what was found and what was expected."""
        arch = one_of(config, "tl_arch", ("bert", "electra", "gpt"))
        sizes, head = _object(config, "tl_backbone"), _object(config, "tl_head")
        tokenizer = tokenizer_of({"vocab_size": sizes.get("vocab"), **config})
        backbone = _read_backbone(sizes, arch, tokenizer)
        one_of(head, "kind", ("sequence",))
        classes = size(head, "n_classes")
        labels = head.get("labels") or [str(number) for number in range(classes)]
        if not isinstance(labels, list) or len(labels) != classes:
            raise ValueError(f"config key 'labels': found {labels!r}, expected a list of n_classes = {classes} names")
        found = cls(arch, backbone, tuple(str(label) for label in labels), one_of(head, "pool", POOLS))
        if size(head, "d_model") != found.width:
            raise ValueError(f"config key 'd_model': {head['d_model']} in tl_head, {found.width} in tl_backbone")
        return found

    def as_dict(self) -> dict[str, object]:
        """What `from_dict` reads."""
        return {
            "tl_arch": self.tl_arch,
            "tl_tokenizer": self.backbone.tl_tokenizer,
            "tl_backbone": _write_backbone(self.backbone),
            "tl_head": {
                "kind": "sequence",
                "n_classes": len(self.labels),
                "pool": self.pool,
                "d_model": self.width,
                "labels": list(self.labels),
            },
        }


def _object(config: Config, key: str) -> Config:
    value = config.get(key)
    if not isinstance(value, Mapping):
        raise ValueError(f"config key {key!r}: found {value!r}, expected an object")
    return value


def _read_backbone(sizes: Config, arch: str, tokenizer: str) -> BertConfig | GPTConfig:
    """``tl_backbone`` as the family's own configuration; its ``dropout`` is not read."""
    if arch == "gpt":
        return GPTConfig(
            **{ours: size(sizes, theirs) for theirs, ours in GPT_SIZES.items()},
            layer_norm_epsilon=positive(sizes, "ln_eps", 1e-5),
            tie_word_embeddings=flag(sizes, "tie"),
            tl_tokenizer=tokenizer,
        )
    return BertConfig(
        **{ours: size(sizes, theirs) for theirs, ours in BERT_SIZES.items()},
        layer_norm_eps=positive(sizes, "ln_eps", 1e-12),
        tl_tokenizer=tokenizer,
    )


def _write_backbone(config: BertConfig | GPTConfig) -> dict[str, object]:
    """What `_read_backbone` reads."""
    if isinstance(config, GPTConfig):
        sizes: dict[str, object] = {theirs: getattr(config, ours) for theirs, ours in GPT_SIZES.items()}
        return sizes | {"dropout": 0.0, "ln_eps": config.layer_norm_epsilon, "tie": config.tie_word_embeddings}
    sizes = {theirs: getattr(config, ours) for theirs, ours in BERT_SIZES.items()}
    return sizes | {"dropout": 0.0, "ln_eps": config.layer_norm_eps}


class Classifier(nn.Module):
    """The model.

    Args:
        config: backbone and head.
        dropout: for training only, in the backbone. A loaded model has none.
    """

    def __init__(self, config: ClassifierConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.labels = config.labels
        self.backbone: BertEncoder | GPT
        if isinstance(config.backbone, GPTConfig):
            self.backbone = GPT(config.backbone, dropout=dropout)
        else:
            self.backbone = BertEncoder(config.backbone, dropout=dropout)
        self.vocab_size = self.backbone.vocab_size
        self.max_len = self.backbone.max_len
        self.classifier = nn.Linear(config.width, len(config.labels))
        initialise(self.classifier)

    def class_logits(self, ids: Tensor, real: Tensor) -> Tensor:
        """Sentences to the logits of their classes.

        Args:
            ids: int64 [n, T].
            real: bool [n, T], False where a token is padding, which stands on the right. A GPT needs no mask: a real
                token sees none of what follows it.

        Returns:
            [n, C].

        Raises:
            ValueError: a row without a real token, or T exceeds ``max_len``.
        """
        if not bool(real.any(dim=1).all()):
            raise ValueError(f"row {int(real.any(dim=1).int().argmin())} has no real token: there is nothing to pool")
        body = self.backbone
        features = body.hidden(ids) if isinstance(body, GPT) else body.hidden(ids, real)  # [n, T, d]
        return cast(Tensor, self.classifier(self._pool(features, real)))

    def _pool(self, features: Tensor, real: Tensor) -> Tensor:
        """[n, T, d] to [n, d]."""
        if self.config.pool == "cls":
            return features[:, 0]
        if self.config.pool == "mean":
            return features.masked_fill(~real[..., None], 0.0).sum(dim=1) / real.sum(dim=1, keepdim=True)
        places = torch.arange(real.shape[1], device=real.device)
        last = (places * real).amax(dim=1)  # [n]
        return features[torch.arange(len(features), device=real.device), last]


def load(model_dir: str | os.PathLike[str]) -> Classifier:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    config = ClassifierConfig.from_dict(read_config(model_dir))
    if isinstance(config.backbone, GPTConfig):
        last = f"backbone.h.{config.backbone.n_layer - 1}.ln_1.weight"
    else:
        last = f"backbone.layers.{config.backbone.num_hidden_layers - 1}.ff1.weight"
    return load_module(model_dir, lambda: Classifier(config), last=(last,))


def save(model: Classifier, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    save_module(model, model.config.as_dict(), model_dir)

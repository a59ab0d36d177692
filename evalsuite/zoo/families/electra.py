"""ELECTRA (Clark et al., "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators", 2020).

A generator, which is a small BERT, fills masked tokens with guesses, and a discriminator says of every token whether
it was replaced. The pair may share its embedding tables, which the checkpoint then holds once, as the discriminator's.

The parts are Hugging Face's ``ElectraForMaskedLM`` and ``ElectraForPreTraining`` with embeddings as wide as the hidden
layers: there is no projection between the two, so tables can only be shared by a generator that is as wide as the
discriminator. Hugging Face keeps them as two models; here they are one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, cast

import torch.nn.functional as F
from torch import Tensor, nn

from evalsuite.zoo.config import Config, check_arch, flag, read_config
from evalsuite.zoo.families.bert import BertConfig, BertEncoder, BertForMLM, initialise
from evalsuite.zoo.module_files import load_module, save_module

TABLES = ("word_emb", "pos_emb", "type_emb")
"""The embedding tables that generator and discriminator may share."""


@dataclass(frozen=True)
class ElectraConfig:
    """Sizes of both parts and what masking needs to know.

    Attributes:
        discriminator: its keys stand at the top of ``config.json``.
        generator: ``tl_generator``.
        tie_embeddings: ``tl_tie_embeddings``: whether the parts share their `TABLES`.
        mask_id: ``tl_mask_id``, the token that stands for a hidden one.
        special_ids: ``tl_special_ids``, tokens that are never hidden; ascending.
    """

    discriminator: BertConfig
    generator: BertConfig
    tie_embeddings: bool
    mask_id: int
    special_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        needed = ["vocab_size"]
        if self.tie_embeddings:
            needed += ["hidden_size", "max_position_embeddings", "type_vocab_size"]
        for key in needed:
            ours, theirs = getattr(self.discriminator, key), getattr(self.generator, key)
            if ours != theirs:
                why = "both parts read the same tokens" if key == "vocab_size" else "tied tables need equal sizes"
                raise ValueError(f"{key} is {ours} in the discriminator and {theirs} in the generator: {why}")
        for key, ids in (("tl_mask_id", (self.mask_id,)), ("tl_special_ids", self.special_ids)):
            for one in ids:
                if type(one) is not int or not 0 <= one < self.discriminator.vocab_size:
                    raise ValueError(
                        f"config key {key!r}: found {one!r}, expected token ids of [0, {self.discriminator.vocab_size})"
                    )

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration. ValueError names the key, what was found and what was expected."""
        check_arch(config, "electra")
        if "tl_mask_id" not in config:
            raise ValueError("config: missing key 'tl_mask_id', the id of the mask token")
        generator, special = config.get("tl_generator"), config.get("tl_special_ids", [])
        if not isinstance(generator, Mapping):
            raise ValueError(f"config key 'tl_generator': found {generator!r}, expected an object with its sizes")
        if not isinstance(special, list):
            raise ValueError(f"config key 'tl_special_ids': found {special!r}, expected a list of token ids")
        discriminator = BertConfig.from_dict(config)
        return cls(
            discriminator,
            BertConfig.from_dict({**generator, "tl_tokenizer": discriminator.tl_tokenizer}),
            tie_embeddings=flag(config, "tl_tie_embeddings"),
            mask_id=cast(int, config["tl_mask_id"]),
            special_ids=tuple(special),
        )


class Predictions(nn.Module):
    """Features to one logit a token."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d, d)
        self.dense_prediction = nn.Linear(d, 1)
        initialise(self)

    def forward(self, hidden: Tensor) -> Tensor:
        """[n, T, d] to [n, T]."""
        return cast(Tensor, self.dense_prediction(F.gelu(self.dense(hidden)))).squeeze(-1)


class Discriminator(nn.Module):
    """The encoder with its head."""

    def __init__(self, config: BertConfig, dropout: float) -> None:
        super().__init__()
        self.electra = BertEncoder(config, dropout=dropout)
        self.discriminator_predictions = Predictions(config.hidden_size)


class Electra(nn.Module):
    """Generator and discriminator.

    Args:
        config: sizes.
        dropout: for training only, see `BertEncoder`. A loaded model has none.
    """

    def __init__(self, config: ElectraConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.discriminator.vocab_size
        self.max_len = config.discriminator.max_position_embeddings
        self.mask_id = config.mask_id
        self.special_ids = config.special_ids
        self.discriminator = Discriminator(config.discriminator, dropout)
        self.generator = BertForMLM(config.generator, dropout=dropout)
        if config.tie_embeddings:
            for table in TABLES:
                setattr(self.generator.bert, table, getattr(self.discriminator.electra, table))
            # torch names a shared tensor once for each owner; the checkpoint has it under the first name only.
            self.register_state_dict_post_hook(_leave_out_tied)  # type: ignore[no-untyped-call]
            self.register_load_state_dict_pre_hook(_put_back_tied)  # type: ignore[no-untyped-call]

    def replaced_logits(self, ids: Tensor, real: Tensor | None = None) -> Tensor:
        """Token ids int64 [n, T] and bool [n, T], True where a token is real, to logits [n, T]: above 0 where the
        discriminator takes a token for a replaced one."""
        hidden = self.discriminator.electra.hidden(ids, real)
        return cast(Tensor, self.discriminator.discriminator_predictions(hidden))


def _tied_names(prefix: str) -> dict[str, str]:
    """The generator's name of each table, and the discriminator's."""
    return {
        f"{prefix}generator.bert.{table}.weight": f"{prefix}discriminator.electra.{table}.weight" for table in TABLES
    }


def _leave_out_tied(_module: nn.Module, state_dict: dict[str, Tensor], prefix: str, _metadata: object) -> None:
    for name in _tied_names(prefix):
        del state_dict[name]


def _put_back_tied(_module: nn.Module, state_dict: dict[str, Tensor], prefix: str, *_rest: Any) -> None:
    for name, original in _tied_names(prefix).items():
        if original in state_dict:
            state_dict[name] = state_dict[original]


def load(model_dir: str | os.PathLike[str]) -> Electra:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    config = ElectraConfig.from_dict(read_config(model_dir))
    last = (
        f"discriminator.electra.layers.{config.discriminator.num_hidden_layers - 1}.ff1.weight",
        f"generator.bert.layers.{config.generator.num_hidden_layers - 1}.ff1.weight",
    )
    return load_module(model_dir, lambda: Electra(config), last=last)


def save(model: Electra, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    config = model.config
    generator = asdict(config.generator)
    del generator["tl_tokenizer"]  # both parts have one tokenizer, named at the top
    save_module(
        model,
        {
            "tl_arch": "electra",
            **asdict(config.discriminator),
            "tl_generator": generator,
            "tl_tie_embeddings": config.tie_embeddings,
            "tl_mask_id": config.mask_id,
            "tl_special_ids": sorted(config.special_ids),
        },
        model_dir,
    )

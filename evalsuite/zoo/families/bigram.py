"""Bigram language model: a table whose row i holds the logits of the token after token i.

Jelinek's count model when the rows are log frequencies, a one-layer network when they are trained. Hugging Face
has no model of that name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.scoring.ids import token_ids
from evalsuite.zoo.config import Config, check_arch, read_config, size, tokenizer_of, write_config
from evalsuite.zoo.tensors import read_header, read_tensors, write_tensors

TENSOR = "bigram.weight"


@dataclass(frozen=True)
class BigramConfig:
    """``vocab_size`` may be absent from ``config.json``; the table's shape then gives it."""

    vocab_size: int | None = None
    tl_tokenizer: str = "bytes"

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration. ValueError names the key, what was found and what was expected."""
        check_arch(config, "bigram")
        return cls(
            vocab_size=size(config, "vocab_size") if "vocab_size" in config else None,
            tl_tokenizer=tokenizer_of(config),
        )


class BigramLM:
    """A bigram table; a `SequenceModel`.

    Args:
        weight: float32 [V, V], row i the logits of the token after i.

    Raises:
        ValueError: the table is empty, not square, not float32 or not finite.
    """

    def __init__(self, weight: NDArray[np.float32], tl_tokenizer: str = "bytes") -> None:
        if weight.dtype != np.float32:
            raise ValueError(f"{TENSOR} is {weight.dtype}, expected float32")
        if weight.ndim != 2 or weight.shape[0] != weight.shape[1] or not weight.size:
            raise ValueError(f"{TENSOR} has shape {list(weight.shape)}, expected a square table that is not empty")
        if not np.isfinite(weight).all():
            raise ValueError(f"{TENSOR} holds NaN or infinite values")
        self.weight = weight
        self.vocab_size: int = weight.shape[0]
        self.tl_tokenizer = tl_tokenizer
        shifted = weight.astype(np.float64) - weight.max(axis=1, keepdims=True)
        self._nll = np.log(np.exp(shifted).sum(axis=1, keepdims=True)) - shifted  # [V, V] float64, nats

    @classmethod
    def fit(cls, ids: ArrayLike, vocab_size: int, alpha: float = 1.0) -> Self:
        """Count pairs: log((count + alpha) / sum of the row), with alpha > 0 added to every count."""
        if not alpha > 0:
            raise ValueError(f"alpha is {alpha}, expected a number above 0: a pair never seen needs a probability")
        tokens = token_ids(ids, vocab_size=vocab_size, at_least=2)
        pairs = tokens[:-1] * vocab_size + tokens[1:]
        counts = np.bincount(pairs, minlength=vocab_size**2).reshape(vocab_size, vocab_size) + alpha
        tokenizer = tokenizer_of({"vocab_size": vocab_size})
        return cls(np.log(counts / counts.sum(axis=1, keepdims=True)).astype(np.float32), tokenizer)

    def nll(self, ids: ArrayLike) -> NDArray[np.float64]:
        """NLL in nats of tokens 1..n-1, each from the one before it; float64 [n - 1].

        Raises:
            ValueError: n < 2, or an id outside the vocabulary.
        """
        tokens = token_ids(ids, vocab_size=self.vocab_size, at_least=2)
        result: NDArray[np.float64] = self._nll[tokens[:-1], tokens[1:]]
        return result

    def sequence_nll(self, ids: ArrayLike) -> NDArray[np.float64]:
        """The same as `nll`, under the name that the scoring code asks for."""
        return self.nll(ids)


def load(model_dir: str | os.PathLike[str]) -> BigramLM:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: the file holds other tensors than ``bigram.weight``.
        ValueError: a bad configuration, a damaged file, or a table that `BigramLM` refuses.
    """
    config = BigramConfig.from_dict(read_config(model_dir))
    path = Path(model_dir) / "model.safetensors"
    found = read_header(path).tensors
    if set(found) != {TENSOR}:
        raise KeyError(f"{path}: found tensors {sorted(found)}, expected {TENSOR!r} alone")
    if found[TENSOR].dtype != "F32":
        raise ValueError(f"{path}: tensor {TENSOR!r} is {found[TENSOR].dtype}, expected F32")
    tensors, _ = read_tensors(path)
    try:
        model = BigramLM(tensors[TENSOR].numpy(), config.tl_tokenizer)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if config.vocab_size not in (None, model.vocab_size):
        raise ValueError(
            f"{path}: tensor {TENSOR!r} has shape {list(model.weight.shape)}, config.json gives "
            f"vocab_size {config.vocab_size}"
        )
    return model


def save(model: BigramLM, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    import torch

    write_config(
        model_dir,
        {"tl_arch": "bigram", "tl_tokenizer": model.tl_tokenizer, "vocab_size": model.vocab_size, "tl_format": 1},
    )
    write_tensors(
        Path(model_dir) / "model.safetensors", {TENSOR: torch.from_numpy(model.weight)}, {"format": "tinyllm"}
    )

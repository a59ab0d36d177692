"""Word vectors (Mikolov et al., 2013): a table of embeddings with its vocabulary. Written here, not scored yet."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from evalsuite.zoo.config import write_config
from evalsuite.zoo.tensors import write_tensors


def save_word2vec(emb: ArrayLike, vocab: Sequence[str], model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json``, ``vocab.json`` (the words in row order) and ``model.safetensors``.

    Args:
        emb: [V, d], written as float32.
        vocab: V words.
        model_dir: created where it is not there.

    Raises:
        ValueError: ``emb`` is not two-dimensional with one row a word.
    """
    import torch

    table = np.asarray(emb, dtype=np.float32)
    if table.ndim != 2 or len(table) != len(vocab):
        raise ValueError(f"embeddings of shape {table.shape} for {len(vocab)} words, expected [{len(vocab)}, d]")
    write_config(
        model_dir,
        {
            "tl_arch": "word2vec",
            "tl_tokenizer": "file",
            "tl_format": 1,
            "vocab_size": table.shape[0],
            "hidden_size": table.shape[1],
        },
    )
    words = json.dumps(list(vocab), ensure_ascii=False) + "\n"
    (Path(model_dir) / "vocab.json").write_text(words, encoding="utf-8")
    write_tensors(
        Path(model_dir) / "model.safetensors",
        {"embeddings": torch.from_numpy(table)},
        {"format": "tinyllm", "tl_arch": "word2vec"},
    )

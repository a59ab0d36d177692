"""word2vec (Mikolov et al., "Efficient Estimation of Word Representations in Vector Space", 2013): a table of word
vectors with its vocabulary. How they were trained (skip-gram or CBOW, which loss) does not matter to the table.
Hugging Face has no model of that name.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.zoo.config import check_arch, read_config, size, write_config
from evalsuite.zoo.tensors import read_checkpoint, write_tensors


class WordVectors(NamedTuple):
    """A table, float32 [V, d], and its V words in row order."""

    table: NDArray[np.float32]
    words: list[str]


def load(model_dir: str | os.PathLike[str]) -> WordVectors:
    """Load a checkpoint directory: ``config.json``, ``vocab.json`` and the tensor ``embeddings``.

    Raises:
        FileNotFoundError: ``vocab.json`` or the tensors are not there.
        KeyError: another set of tensors.
        ValueError: a bad configuration or vocabulary, a damaged file, a wrong shape, NaN or infinite values.
    """
    directory = Path(model_dir)
    config = read_config(directory)
    check_arch(config, "word2vec")
    shape = [size(config, "vocab_size"), size(config, "hidden_size")]
    words = _read_words(directory / "vocab.json", shape[0])
    tensors, weights = read_checkpoint(directory)
    if tensors.keys() != {"embeddings"}:
        raise KeyError(f"{weights}: found the tensors {sorted(tensors)}, expected embeddings alone")
    table = tensors["embeddings"]
    if list(table.shape) != shape:
        raise ValueError(f"{weights}: tensor 'embeddings' has shape {list(table.shape)}, config.json gives {shape}")
    return WordVectors(table.numpy(), words)


def _read_words(path: Path, expected: int) -> list[str]:
    """The vocabulary; ValueError where it is no list of that many different words."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; it lists the words of word vectors in row order")
    try:
        words = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # bad JSON or bad UTF-8
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{path}: expected a list of words")
    if len(words) != expected:
        raise ValueError(f"{path}: {len(words)} words, config.json gives vocab_size {expected}")
    word, times = Counter(words).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{path}: the word {word!r} stands {times} times, and which row is meant cannot be known")
    return words


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

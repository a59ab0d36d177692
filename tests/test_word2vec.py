"""Word vectors: saved and loaded, and what is wrong with a checkpoint of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from evalsuite.zoo import load_model, save_word2vec


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    table = np.arange(6, dtype=np.float64).reshape(3, 2)
    save_word2vec(table, ["a", "é", "c"], tmp_path)
    found, words = load_model(tmp_path)  # unpacks, as the first seed's loader does
    np.testing.assert_array_equal(found, table)
    assert found.dtype == np.float32
    assert words == ["a", "é", "c"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("vocab.json", '["a", "b"]', "2 words, config.json gives vocab_size 3"),
        ("vocab.json", '["a", "b", "a"]', "the word 'a' stands 2 times"),
        ("vocab.json", '{"a": 1}', "expected a list of words"),
        ("vocab.json", '["a", 2, "c"]', "expected a list of words"),
        ("vocab.json", "[", "not JSON"),
        ("config.json", '{"tl_arch": "word2vec", "vocab_size": 3, "hidden_size": 4}', "has shape [3, 2]"),
        ("config.json", '{"tl_arch": "word2vec", "vocab_size": 3}', "missing key 'hidden_size'"),
    ],
)
def test_a_broken_checkpoint_says_what_is_wrong(tmp_path: Path, name: str, content: str, reason: str) -> None:
    save_word2vec(np.ones((3, 2)), ["a", "b", "c"], tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError) as caught:
        load_model(tmp_path)
    assert reason in str(caught.value)


def test_missing_and_other_tensors(tmp_path: Path) -> None:
    save_word2vec(np.ones((3, 2)), ["a", "b", "c"], tmp_path)
    save_file({"vectors": np.ones((3, 2), np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(KeyError, match=r"found the tensors \['vectors'\], expected embeddings alone"):
        load_model(tmp_path)
    (tmp_path / "vocab.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"vocab.json: no such file"):
        load_model(tmp_path)


def test_nan_is_refused(tmp_path: Path) -> None:
    save_word2vec(np.array([[1.0, np.nan]]), ["a"], tmp_path)
    with pytest.raises(ValueError, match="tensor 'embeddings' holds NaN or infinite values"):
        load_model(tmp_path)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (3, 2, 2)])
def test_a_table_needs_one_row_a_word(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"for 3 words, expected \[3, d\]"):
        save_word2vec(np.ones(shape), ["a", "b", "c"], tmp_path)

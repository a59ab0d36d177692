"""Word similarity: the pairs read, Spearman with its interval, and what the gate sees of a pair."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evalsuite.evals.similarity import measure_similarity
from evalsuite.gate.verdict import judge
from evalsuite.result import Measurement
from evalsuite.tasks.similarity import WordPair, read_similarity, similarity_path
from evalsuite.tasks.task import Task
from evalsuite.zoo.families.word2vec import WordVectors

TASK = Task("words", "embeddings", Path("words.tsv"), ("spearman",), ("spearman",))


def measured(vectors: WordVectors, pairs: list[WordPair]) -> Measurement:
    return measure_similarity("w2v", TASK, vectors, pairs, {"params": None})["spearman"]


def random_vectors(words: int, seed: int = 0) -> WordVectors:
    table = np.random.default_rng(seed).normal(size=(words, 5)).astype(np.float32)
    return WordVectors(table, [f"w{number}" for number in range(words)])


def all_pairs(words: int, seed: int = 1) -> list[WordPair]:
    rng = np.random.default_rng(seed)
    return [WordPair(f"w{a}", f"w{b}", float(rng.integers(0, 10))) for a in range(words) for b in range(a + 1, words)]


# Data


def test_comments_and_blank_lines_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "words.tsv"
    file.write_text("# w1\tw2\tscore\n\nking\tqueen\t8.5\r\ncat\tstone\t-1e0\n")
    assert read_similarity(file) == [WordPair("king", "queen", 8.5), WordPair("cat", "stone", -1.0)]


@pytest.mark.parametrize("line", ["a\tb", "a b 3", "a\t\t3", "a\tb\tnear", "a\tb\tnan", "a\tb\t3\t4"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "words.tsv"
    file.write_text(f"x\ty\t1\n{line}\n")
    with pytest.raises(ValueError, match=r"words.tsv, line 2: expected w1<TAB>w2<TAB>score, found"):
        read_similarity(file)


def test_no_pairs(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("# nothing\n")
    with pytest.raises(ValueError, match="no pairs"):
        read_similarity(tmp_path / "words.tsv")


def test_the_word_lists_of_an_installed_gensim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "gensim" / "test" / "test_data"
    data.mkdir(parents=True)
    (tmp_path / "gensim" / "__init__.py").write_text("raise RuntimeError('imported')")
    (data / "wordsim353.tsv").write_text("# Word 1\tWord 2\tHuman (mean)\nlove\tsex\t6.77\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "tasks" / "gensim:wordsim353.tsv"
    assert similarity_path(path) == data / "wordsim353.tsv"
    assert read_similarity(path) == [WordPair("love", "sex", 6.77)]
    assert "gensim" not in sys.modules


def test_without_gensim_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalsuite.tasks.similarity.find_spec", lambda _name: None)
    with pytest.raises(ValueError, match="gensim, which is not installed: pip install gensim"):
        read_similarity("tasks/gensim:simlex999.txt")


# Spearman


def test_scipy_and_the_two_intervals() -> None:
    vectors, pairs = random_vectors(12), all_pairs(12)
    row = measured(vectors, pairs)
    table = vectors.table.astype(np.float64)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosines = [float(unit[int(pair.first[1:])] @ unit[int(pair.second[1:])]) for pair in pairs]
    rho = scipy_stats.spearmanr(cosines, [pair.score for pair in pairs]).statistic
    assert row.value == pytest.approx(rho, abs=1e-12)
    assert row.n == len(pairs)
    z = 1.959963984540054
    half = z * math.sqrt((1 + rho**2 / 2) / (len(pairs) - 3))
    assert (row.lo, row.hi) == pytest.approx((math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)))
    half = z / math.sqrt(len(pairs) - 3)
    assert row.v1_interval == pytest.approx((math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)))
    assert row.interval == "bonett-wright"


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), words=st.integers(3, 12))
def test_the_value_is_the_mean_of_the_pairs_scores(seed: int, words: int) -> None:
    pairs = all_pairs(words, seed)
    if len({pair.score for pair in pairs}) == 1:
        return
    row = measured(random_vectors(words, seed), pairs)
    assert row.scores.scores.mean() == pytest.approx(row.value, abs=1e-12)
    assert row.lo <= row.value <= row.hi


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    given_scores=st.lists(st.sampled_from([0.0, 1.0]), min_size=15, max_size=15).filter(lambda s: len(set(s)) == 2),
)
def test_no_pair_scores_beyond_the_bounds(seed: int, given_scores: list[float]) -> None:
    pairs = [WordPair(pair.first, pair.second, score) for pair, score in zip(all_pairs(6), given_scores, strict=True)]
    row = measured(random_vectors(6, seed), pairs)
    assert row.bounds is not None
    low, high = row.bounds
    assert low <= row.scores.scores.min() <= row.scores.scores.max() <= high


def test_the_bounds_approach_three_where_nothing_is_tied() -> None:
    pairs = [WordPair(pair.first, pair.second, float(at)) for at, pair in enumerate(all_pairs(5))]
    assert measured(random_vectors(5), pairs).bounds == pytest.approx(
        (-27 / 11, 27 / 11)
    )  # 3 (n - 1) / (n + 1), n = 10


def test_the_bounds_are_wider_where_many_are_tied() -> None:
    """One similar pair among 31, which has the lowest cosine: it scores below -3, and being lost is no gain."""
    angles = np.linspace(0.0, 3.0, 32)
    vectors = WordVectors(
        np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32), [f"w{at}" for at in range(32)]
    )
    row = measured(vectors, [WordPair("w0", f"w{at}", float(at == 31)) for at in range(1, 32)])
    assert row.bounds is not None
    assert row.bounds[0] == pytest.approx(row.scores.scores[-1])
    assert row.bounds[0] < -3


def test_two_pairs_are_enough() -> None:
    vectors = WordVectors(np.array([[1, 0], [1, 1], [0, 1]], np.float32), ["a", "b", "c"])
    row = measured(vectors, [WordPair("a", "b", 2.0), WordPair("a", "c", 1.0)])
    assert (row.value, row.n) == (1.0, 2)


def test_a_pair_is_its_words_and_its_score() -> None:
    def hashes(*pairs: WordPair) -> tuple[str, ...]:
        return measured(random_vectors(4), [*pairs, WordPair("w2", "w3", 9.0)]).scores.hashes

    one = hashes(WordPair("w0", "w1", 1.0))[0]
    others = (WordPair("w0", "w2", 1.0), WordPair("w2", "w1", 1.0), WordPair("w0", "w1", 2.0))
    assert one == hashes(WordPair("w0", "w1", 1.0))[0]
    assert one not in {hashes(pair)[0] for pair in others}


def test_unknown_words_are_skipped() -> None:
    pairs = all_pairs(6)
    row = measured(random_vectors(6), [*pairs, WordPair("w0", "unheard", 3.0), WordPair("W1", "w2", 3.0)])
    assert row.n == len(pairs)
    assert row.source == {"params": None, "pairs": len(pairs) + 2, "covered": len(pairs)}
    assert row.value == measured(random_vectors(6), pairs).value
    with pytest.raises(ValueError, match="1 of 2 pairs have both words in the vocabulary, at least 2 are needed"):
        measured(random_vectors(2), [WordPair("w0", "w1", 1.0), WordPair("king", "queen", 2.0)])


def test_a_vector_of_zeros_has_a_cosine_of_zero() -> None:
    vectors = WordVectors(np.array([[0, 0], [1, 0], [1, 1], [-1, 0]], np.float32), ["z", "a", "b", "c"])
    pairs = [WordPair("z", "a", 1.0), WordPair("a", "b", 2.0), WordPair("a", "c", 0.0)]
    row = measured(vectors, pairs)
    assert [detail["answer"] for detail in row.scores.details] == pytest.approx([0.0, math.sqrt(0.5), -1.0])
    assert row.value == 1.0
    assert row.hi == 1.0


def test_pairs_that_come_twice_have_ids_of_their_own() -> None:
    row = measured(random_vectors(3), [*all_pairs(3), WordPair("w0", "w1", 4.0)])
    assert row.scores.ids == ("w0|w1", "w0|w2", "w1|w2", "w0|w1#2")


# The gate


def test_worse_vectors_are_regressed_and_equal_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    vectors = random_vectors(16)
    table = vectors.table.astype(np.float64)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    pairs = [
        WordPair(f"w{a}", f"w{b}", float(unit[a] @ unit[b] + 0.1 * rng.normal())) for a in range(16) for b in range(a)
    ]
    base = measured(vectors, pairs)
    assert judge(measured(vectors, pairs), base, 0.04).p == 1.0
    scaled = WordVectors((vectors.table * np.float32(4)), vectors.words)
    assert judge(measured(scaled, pairs), base, 0.04).state == "ok"
    noisy = WordVectors(vectors.table + rng.normal(size=vectors.table.shape).astype(np.float32), vectors.words)
    worse = measured(noisy, pairs)
    verdict = judge(worse, base, 0.04)
    assert verdict.state == "regressed"
    assert verdict.drop == pytest.approx(base.value - worse.value, abs=1e-12)
    assert judge(base, worse, 0.04).state == "improved"


def test_a_vocabulary_that_lost_words_loses_their_pairs() -> None:
    vectors, pairs = random_vectors(12), all_pairs(12)
    smaller = WordVectors(vectors.table[:-1], vectors.words[:-1])
    verdict = judge(measured(smaller, pairs), measured(vectors, pairs), 0.04)
    assert verdict.state == "regressed"
    assert len(verdict.missing) == 11
    assert json.dumps(verdict.notes) == '["11 units of the baseline are missing and count as losses"]'

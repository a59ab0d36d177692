"""The n-gram model against worked examples and a reference in exact fractions; its file; its refusals."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from evalsuite.scoring.model import SequenceModel
from evalsuite.zoo.families.ngram import NGramLM, load, save

CORPUS = [[0, 1, 2], [0, 1, 0, 1], [2, 0, 1, 2]]  # abc, abab, cabc
Gram = tuple[int, ...]


class Reference:
    """The definition word for word, with dictionaries and fractions."""

    def __init__(self, corpus: list[list[int]], n: int, discount: str | float, vocab: int) -> None:
        self.n, self.vocab = n, vocab
        raw: list[Counter[Gram]] = [Counter() for _ in range(n + 1)]
        for text in corpus:
            if not text:
                continue
            padded = (-1, *text)
            for end in range(2, len(padded) + 1):  # a gram ends at a token, not at <s>
                for k in range(1, min(n, end) + 1):
                    raw[k][padded[end - k : end]] += 1
        self.adjusted: list[dict[Gram, int]] = [{} for _ in range(n + 1)]
        for k in range(1, n + 1):
            for gram, count in raw[k].items():
                if k == n or gram[0] == -1:
                    self.adjusted[k][gram] = count
                else:
                    self.adjusted[k][gram] = len({longer[0] for longer in raw[k + 1] if longer[1:] == gram})
        self.discounts = [self._discounts(k, discount) for k in range(n + 1)]
        self.followers: list[defaultdict[Gram, list[int]]] = [defaultdict(list) for _ in range(n + 1)]
        for k in range(1, n + 1):
            for gram, a in self.adjusted[k].items():
                self.followers[k][gram[:-1]].append(a)

    def _discounts(self, k: int, discount: str | float) -> list[Fraction]:
        if not isinstance(discount, str):
            return [Fraction(0), *[Fraction(discount)] * 3]
        n = [list(self.adjusted[k].values()).count(j) for j in range(5)]
        if all(n[1:]):
            y = Fraction(n[1], n[1] + 2 * n[2])
            found = [j - (j + 1) * y * Fraction(n[j + 1], n[j]) for j in (1, 2, 3)]
            if all(0 < d <= j for j, d in enumerate(found, 1)):
                return [Fraction(0), *found]
        return [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2)]

    def probability(self, history: list[int], word: int) -> Fraction:
        symbols = (-1, *history) if len(history) < self.n - 1 else tuple(history)
        p = Fraction(1, self.vocab)
        for k in range(1, min(self.n, len(symbols) + 1) + 1):
            h = symbols[len(symbols) - (k - 1) :]
            follow = self.followers[k].get(h)
            if not follow:
                continue
            d = self.discounts[k]
            total = sum(follow)
            gamma = sum((d[min(a, 3)] for a in follow), Fraction(0)) / total
            a = self.adjusted[k].get((*h, word), 0)
            p = max(a - d[min(a, 3)], Fraction(0)) / total + gamma * p
        return p


def fractions(*values: str) -> list[float]:
    return [float(Fraction(value)) for value in values]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], fractions("2/3", "1/18", "5/18")),
        ([0], fractions("1/16", "43/48", "1/24")),
        ([1], fractions("1/3", "1/18", "11/18")),
        ([2], fractions("3/4", "1/12", "1/6")),
    ],
)
def test_bigram_with_a_fixed_discount_by_hand(history: list[int], expected: list[float]) -> None:
    model = NGramLM().fit(CORPUS, 2, 0.5)
    np.testing.assert_allclose(model.next_probs(history), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("history", "expected"),
    [([0], fractions("5/48", "13/16", "1/12")), ([0, 1], fractions("19/48", "1/16", "13/24"))],
)
def test_trigram_with_modified_discounts_by_hand(history: list[int], expected: list[float]) -> None:
    model = NGramLM().fit(CORPUS, 3)
    np.testing.assert_allclose(model.next_probs(history), expected, rtol=1e-15)


texts = st.lists(st.integers(0, 3), max_size=12)


@given(
    corpus=st.lists(texts, min_size=1, max_size=6).filter(any),
    n=st.integers(1, 4),
    discount=st.sampled_from(["modified", 1.0, 0.75, 0.25]),
    extra=st.integers(0, 2),
    text=texts,
)
@settings(max_examples=150, deadline=None)
def test_every_probability_agrees_with_the_definition(
    corpus: list[list[int]], n: int, discount: str | float, extra: int, text: list[int]
) -> None:
    vocab = 4 + extra
    reference = Reference(corpus, n, discount, vocab)
    model = NGramLM().fit(corpus, n, discount, vocab)
    assert isinstance(model, SequenceModel)
    expected = [reference.probability(text[:t], text[t]) for t in range(len(text))]
    nll = model.nll(text)
    assert nll.dtype == np.float64
    np.testing.assert_allclose(np.exp(-nll), [float(p) for p in expected], rtol=1e-12)
    if text:
        np.testing.assert_array_equal(model.sequence_nll(text), nll[1:])
        assert model.perplexity(text) == pytest.approx(math.exp(nll.mean()))
    following = [float(reference.probability(text, w)) for w in range(vocab)]
    np.testing.assert_allclose(model.next_probs(text), following, rtol=1e-12)
    assert model.next_probs(text).sum() == pytest.approx(1, abs=1e-12)


def test_counts_of_counts_give_chen_and_goodmans_discounts() -> None:
    # Random letters make every order's n1..n4 positive, so the fallback is not what is tested here.
    rng = np.random.default_rng(0)
    corpus = [rng.choice(40, size=60, p=np.arange(40, 0, -1) / 820).tolist() for _ in range(15)]
    reference = Reference(corpus, 3, "modified", 40)
    fallback = [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2)]
    assert sum(d != fallback for d in reference.discounts[1:]) >= 2
    model = NGramLM().fit(corpus, 3)
    text = corpus[0][:20] + corpus[1][:20]
    expected = [float(reference.probability(text[:t], text[t])) for t in range(len(text))]
    np.testing.assert_allclose(np.exp(-model.nll(text)), expected, rtol=1e-12)


def test_probabilities_sum_to_one_for_a_larger_model() -> None:
    rng = np.random.default_rng(1)
    model = NGramLM().fit([rng.integers(0, 30, 400) for _ in range(5)], 4, vocab_size=33)
    for length in range(6):
        probs = model.next_probs(rng.integers(0, 33, length))
        assert probs.shape == (33,)
        assert probs.min() > 0
        assert probs.sum() == pytest.approx(1, abs=1e-12)


def test_the_largest_vocabulary_does_not_overflow() -> None:
    top = 2**31 - 2
    model = NGramLM().fit([[top, 0, top, top], [top, top, 5]], 3, vocab_size=2**31 - 1)
    reference = Reference([[top, 0, top, top], [top, top, 5]], 3, "modified", 2**31 - 1)
    text = [top, top, 0, 7, top]
    expected = [float(reference.probability(text[:t], text[t])) for t in range(5)]
    np.testing.assert_allclose(np.exp(-model.nll(text)), expected, rtol=1e-12)


def test_a_certain_token_costs_nothing() -> None:
    for discount in (0.1, 0.3, 0.7, "modified"):
        nll = NGramLM().fit([[0] * 7, [0] * 3], 3, discount).nll([0] * 5)
        np.testing.assert_allclose(nll, 0, atol=1e-15)
        assert (nll >= 0).all()


def test_fit_replaces_earlier_counts_and_skips_empty_sequences() -> None:
    model = NGramLM().fit([[5, 5, 5]], 4)
    again = model.fit([[], *CORPUS, np.empty(0, np.int64)], 2, 0.5)
    assert again is model
    assert (model.n, model.discount, model.vocab_size) == (2, 0.5, 3)
    np.testing.assert_array_equal(model.nll([0, 1]), NGramLM().fit(CORPUS, 2, 0.5).nll([0, 1]))


@pytest.mark.parametrize(("n", "discount"), [(1, "modified"), (3, "modified"), (3, 0.1), (6, 1)])
def test_the_file_is_the_same_byte_for_byte(tmp_path: Path, n: int, discount: str | float) -> None:
    model = NGramLM().fit(CORPUS, n, discount, 5)
    model.save(tmp_path / "kn")
    file = tmp_path / "kn" / "model.safetensors"
    assert [path.name for path in file.parent.iterdir()] == ["model.safetensors"]
    for source in (file, tmp_path / "kn"):
        again = load(source)
        save(again, tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == file.read_bytes()
        np.testing.assert_array_equal(again.nll([0, 1, 2, 4, 0]), model.nll([0, 1, 2, 4, 0]))


def test_the_file_holds_raw_counts_in_order(tmp_path: Path) -> None:
    file = tmp_path / "kn.safetensors"
    NGramLM().fit(CORPUS, 2, 0.5).save(file)
    tensors = load_file(file)
    assert {name: str(array.dtype) for name, array in tensors.items()} == {
        "order1.counts": "int32",
        "order1.grams": "int32",
        "order2.counts": "int32",
        "order2.grams": "int32",
    }
    assert tensors["order1.grams"].tolist() == [[0], [1], [2]]
    assert tensors["order1.counts"].tolist() == [4, 4, 3]
    assert tensors["order2.grams"].tolist() == [[-1, 0], [-1, 2], [0, 1], [1, 0], [1, 2], [2, 0]]
    assert tensors["order2.counts"].tolist() == [2, 1, 4, 1, 2, 1]
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert length % 8 == 0
    head = json.loads(raw[8 : 8 + length])
    assert head["__metadata__"] == {"discount": "0.5", "n": "2", "tl_arch": "ngram", "vocab_size": "3"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NGramLM().nll([0]), "no counts yet"),
        (lambda: NGramLM().next_probs([]), "no counts yet"),
        (lambda: NGramLM().save("x"), "no counts yet"),
        (lambda: NGramLM().fit(CORPUS, 0), "n is 0"),
        (lambda: NGramLM().fit(CORPUS, 2.0), "n is 2.0"),  # type: ignore[arg-type]
        (lambda: NGramLM().fit(CORPUS, 2, 0.0), "discount is 0.0"),
        (lambda: NGramLM().fit(CORPUS, 2, 1.5), "discount is 1.5"),
        (lambda: NGramLM().fit(CORPUS, 2, math.nan), "discount is nan"),
        (lambda: NGramLM().fit(CORPUS, 2, "good"), "discount is 'good'"),  # type: ignore[arg-type]
        (lambda: NGramLM().fit(CORPUS, 2, vocab_size=0), "vocabulary size is 0"),
        (lambda: NGramLM().fit(CORPUS, 2, vocab_size=2**31), "vocabulary size is 2147483648"),
        (lambda: NGramLM().fit(CORPUS, 2, vocab_size=2), r"token id 2 is outside the vocabulary \[0, 2\)"),
        (lambda: NGramLM().fit([[0, -1]], 2), "token id -1"),
        (lambda: NGramLM().fit([], 2), "no token"),
        (lambda: NGramLM().fit([[], []], 2, vocab_size=3), "no token"),
        (lambda: NGramLM().fit(CORPUS, 2).nll([0, 3]), "token id 3"),
        (lambda: NGramLM().fit(CORPUS, 2).next_probs([-1]), "token id -1"),
        (lambda: NGramLM().fit(CORPUS, 2).perplexity([]), "0 tokens are too few"),
        (lambda: NGramLM().fit(CORPUS, 2).sequence_nll([]), "0 tokens are too few"),
        (lambda: NGramLM().fit(CORPUS, 2).nll([0.5]), "integers"),
    ],
    ids=range(20),
)
def test_what_cannot_be_counted_or_scored_is_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def write(path: Path, orders: list[tuple[list[Gram], list[int]]], **metadata: str) -> Path:
    """An n-gram file with any content, by the library's own writer."""
    from safetensors.numpy import save_file

    tensors = {}
    for k, (grams, counts) in enumerate(orders, 1):
        tensors[f"order{k}.grams"] = np.array(grams, np.int32).reshape(len(grams), k)
        tensors[f"order{k}.counts"] = np.array(counts, np.int32)
    save_file(
        tensors, path, {"tl_arch": "ngram", "n": str(len(orders)), "discount": "0.5", "vocab_size": "3"} | metadata
    )
    return path


UNIGRAMS: tuple[list[Gram], list[int]] = ([(0,), (1,)], [2, 1])
BIGRAMS: tuple[list[Gram], list[int]] = ([(-1, 0), (0, 0), (0, 1)], [1, 1, 1])


def test_a_file_by_another_writer_is_read(tmp_path: Path) -> None:
    model = load(write(tmp_path / "x.safetensors", [UNIGRAMS, BIGRAMS]))
    expected = NGramLM().fit([[0, 0, 1]], 2, 0.5, 3)
    np.testing.assert_array_equal(model.nll([0, 1, 2]), expected.nll([0, 1, 2]))


@pytest.mark.parametrize(
    ("orders", "metadata", "message"),
    [
        ([UNIGRAMS, BIGRAMS], {"tl_arch": "gpt"}, "tl_arch 'gpt'"),
        ([UNIGRAMS, BIGRAMS], {"n": "3"}, "n = 3, but the file has orders 1 to 2"),
        ([UNIGRAMS, BIGRAMS], {"n": "two"}, "'two'"),
        ([UNIGRAMS, BIGRAMS], {"discount": "0"}, "discount is 0.0"),
        ([UNIGRAMS, BIGRAMS], {"discount": "some"}, "'some'"),
        ([UNIGRAMS, BIGRAMS], {"vocab_size": "0"}, "vocabulary size is 0"),
        ([UNIGRAMS, BIGRAMS], {"vocab_size": "1"}, r"order-1 gram \[1\] has an id outside 0 to 0"),
        ([([], []), BIGRAMS], {}, "order 1 has no grams"),
        ([([(-1,), (0,)], [1, 1])], {}, "<s> stands among the unigrams"),
        ([([(1,), (0,)], [1, 1])], {}, r"order-1 gram \[0\] is out of order"),
        ([([(0,), (0,)], [1, 1])], {}, r"order-1 gram \[0\] is out of order"),
        ([([(0,)], [0])], {}, r"order-1 gram \[0\] has count 0"),
        ([UNIGRAMS, ([(-1, 0), (0, -1)], [1, 1])], {}, r"order-2 gram \[0, -1\] has an id outside"),
        ([UNIGRAMS, ([(-2, 0)], [1])], {}, r"order-2 gram \[-2, 0\] has an id outside"),
        ([UNIGRAMS, ([(-1, 0), (0, 1), (2, 0)], [1, 1, 1])], {}, r"order-2 gram \[2, 0\] starts with no order-1 gram"),
        ([UNIGRAMS, ([(-1, 0), (0, 1), (0, 2)], [1, 1, 1])], {}, "an order-2 gram ends in no order-1 gram"),
        ([UNIGRAMS, ([(-1, 0)], [1])], {}, "an order-1 gram is no part of any order-2 gram"),
    ],
)
def test_a_file_that_no_counting_gives_is_refused(
    tmp_path: Path, orders: list[tuple[list[Gram], list[int]]], metadata: dict[str, str], message: str
) -> None:
    path = write(tmp_path / "bad.safetensors", orders, **metadata)
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_missing_metadata_and_tensors_are_named(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "bad.safetensors"
    one = {"order1.grams": np.zeros((1, 1), np.int32), "order1.counts": np.ones(1, np.int32)}
    save_file(one, path, {"tl_arch": "ngram", "n": "1", "vocab_size": "3"})
    with pytest.raises(ValueError, match="metadata lacks 'discount'"):
        load(path)
    three = {name.replace("1", "3"): array for name, array in one.items()}
    for tensors, message in (
        ({**one, "other": np.ones(1, np.int32)}, "other"),
        ({**one, **three}, r"order2\.counts, order2\.grams"),
        ({"order1.grams": one["order1.grams"]}, "order1"),
        ({**one, "order1.counts": np.ones(1, np.int64)}, "expected I32 twice"),
        ({**one, "order1.counts": np.ones(2, np.int32)}, r"expected \[N, 1\] and \[N\]"),
    ):
        save_file(tensors, path, {"tl_arch": "ngram", "n": "1", "vocab_size": "3", "discount": "modified"})
        with pytest.raises(ValueError, match=message):
            load(path)


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_a_truncated_file_is_a_value_error_that_names_it(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.safetensors"
    NGramLM().fit(CORPUS, 2).save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"cut\.safetensors"):
        load(path)


def test_neither_fitting_nor_loading_imports_torch(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from evalsuite.zoo.families.ngram import NGramLM, load\n"
        f"path = {str(tmp_path / 'x.safetensors')!r}\n"
        "NGramLM().fit([[0, 1]], 2).save(path)\n"
        "load(path).nll([0, 1])\n"
        "sys.exit('torch' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Bits per byte, perplexity and NLL of a stream: documents, blocks or one text, each by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evalsuite.evals.language_model import (
    BLOCK,
    DEAD_ZONE,
    MIN_BLOCKS,
    StreamNLL,
    measure_stream,
    stream_nll,
)
from evalsuite.result import Measurement
from evalsuite.tasks.task import Task
from evalsuite.tasks.tokens import Document, TokenFile
from evalsuite.zoo.families.bigram import BigramLM
from evalsuite.zoo.families.gpt import GPT, GPTConfig
from evalsuite.zoo.families.ngram import NGramLM
from evalsuite.zoo.families.nplm import NPLM, NPLMConfig

torch.set_num_threads(1)

LN2 = math.log(2)
TASK = Task("prose", "lm", Path("prose.bin"), ("bpb", "ppl", "nll"), ("bpb",))
T_3 = 3.182446305284263  # Student's t, 3 degrees of freedom, .975
T_2 = 0.95 * math.sqrt(2 / 0.0975)  # two degrees of freedom have a closed form
UNIFORM = BigramLM(np.zeros((256, 256), np.float32))
BYTES = {"tl_arch": "bigram", "vocab_size": 256}


def index(*lengths: int) -> tuple[Document, ...]:
    ends = np.cumsum(lengths).tolist()
    return tuple(Document(f"d{i}", end - n, end) for i, (n, end) in enumerate(zip(lengths, ends, strict=True)))


def measured(
    nll: Any, documents: tuple[Document, ...] | None, *, first: int = 1, n_bytes: int | None = None, ids: Any = None
) -> dict[str, Measurement]:
    """The rows of a stream with these NLLs, a byte a token unless told."""
    values = np.array(nll, dtype=np.float64)
    tokens = np.zeros(first + len(values), np.int64) if ids is None else np.array(ids)
    stream = StreamNLL(values, first, len(values) if n_bytes is None else n_bytes)
    return measure_stream("m", TASK, stream, TokenFile(tokens, 256), documents, {})


# --- which tokens belong to which document


def test_a_bigram_loses_the_first_token_of_the_first_document() -> None:
    rows = measured([1, 2, 4, 8, 16], index(3, 2, 1))
    for row in rows.values():
        assert row.scores.ids == ("d0", "d1", "d2")
        assert row.scores.scores.tolist() == [3, 12, 16]
        assert (row.n, row.interval, row.blind) == (5, "cluster-t", "")
    assert rows["nll"].scores.weights.tolist() == [2, 2, 1]
    assert rows["ppl"].scores.weights.tolist() == [2, 2, 1]
    assert rows["bpb"].scores.weights == pytest.approx([2 * LN2, 2 * LN2, LN2])
    assert rows["bpb"].scores.tolerance == pytest.approx([2 * DEAD_ZONE, 2 * DEAD_ZONE, DEAD_ZONE])
    assert [detail["tokens"] for detail in rows["bpb"].scores.details] == [2, 2, 1]


def test_an_ngram_loses_none() -> None:
    row = measured([1, 2, 4, 8, 16, 32], index(3, 2, 1), first=0)["nll"]
    assert row.scores.scores.tolist() == [7, 24, 32]
    assert row.scores.weights.tolist() == [3, 2, 1]


def test_an_nplm_loses_its_context_even_across_documents() -> None:
    row = measured([1, 2], index(2, 1, 2, 1), first=4)["nll"]
    assert row.scores.ids == ("d2", "d3")  # d0 and d1 hold no scored token
    assert row.scores.scores.tolist() == [1, 2]
    assert row.n == 2


def test_each_family_scores_its_own_tokens() -> None:
    ids = np.random.default_rng(0).integers(0, 256, 40)
    tokens = TokenFile(ids, 256)
    torch.manual_seed(0)
    nplm = NPLM(NPLMConfig(256, 3, 4, 4, False)).eval()
    gpt = GPT(GPTConfig(256, 8, 8, 2, 1, 8)).eval()
    kn = NGramLM().fit([ids], 2, 0.5, vocab_size=256)
    for model, arch, first in ((UNIFORM, "bigram", 1), (kn, "ngram", 0), (nplm, "nplm", 3), (gpt, "gpt", 1)):
        stream = stream_nll(model, {"tl_arch": arch, "n_positions": 8}, tokens, {})
        assert (stream.first, len(stream.nll), stream.n_bytes) == (first, 40 - first, 40 - first), arch


def test_a_document_is_predicted_from_the_one_before() -> None:
    """The stream is one text: only its first token has no context."""
    table = np.zeros((256, 256), np.float32)
    table[1, 2] = 5.0
    stream = stream_nll(BigramLM(table), BYTES, TokenFile(np.array([0, 1, 2, 1, 2]), 256), {})
    row = measure_stream("m", TASK, stream, TokenFile(np.array([0, 1, 2, 1, 2]), 256), index(2, 3), {})["nll"]
    sure = math.log(math.exp(5) + 255) - 5
    assert row.scores.scores == pytest.approx([math.log(256), 2 * sure + math.log(256)])


# --- values and intervals


def cr1(sums: list[float], weights: list[float]) -> tuple[float, float]:
    """Ratio of sums and its standard error, clustered, with the CR1 factor."""
    total, groups = sum(weights), len(sums)
    mean = sum(sums) / total
    spread = sum((s - mean * w) ** 2 for s, w in zip(sums, weights, strict=True))
    return mean, math.sqrt(groups / (groups - 1) * spread) / total


def test_intervals_by_document() -> None:
    rows = measured([1, 2, 4, 8, 16, 1, 1], index(3, 2, 1, 2))
    mean, error = cr1([3, 12, 16, 2], [2, 2, 1, 2])
    nll, ppl, bpb = rows["nll"], rows["ppl"], rows["bpb"]
    assert (nll.value, nll.lo, nll.hi) == pytest.approx((mean, mean - T_3 * error, mean + T_3 * error), rel=1e-12)
    assert nll.value == 33 / 7
    # ppl = exp(nll) at all three points, bpb = nll / ln 2 where a token is a byte.
    assert (ppl.value, ppl.lo, ppl.hi) == pytest.approx(tuple(map(math.exp, (nll.value, nll.lo, nll.hi))))
    assert (bpb.value, bpb.lo, bpb.hi) == pytest.approx(tuple(end / LN2 for end in (nll.value, nll.lo, nll.hi)))


def test_bits_per_byte_counts_bytes() -> None:
    """Three bytes a token: bpb is a third, ppl stays per token."""
    nlls, documents = [1.0, 2, 4, 8, 16, 1, 1], index(3, 2, 1, 2)
    one, three = measured(nlls, documents), measured(nlls, documents, n_bytes=21)
    for end in ("value", "lo", "hi"):
        assert getattr(three["bpb"], end) == pytest.approx(getattr(one["bpb"], end) / 3)
        assert getattr(three["ppl"], end) == getattr(one["ppl"], end)
    assert three["bpb"].v1_interval == pytest.approx([end / 3 for end in one["bpb"].v1_interval or ()])
    assert three["bpb"].n == 7
    # What the gate divides by: bytes times ln 2, each document its share.
    assert three["bpb"].scores.weights.sum() == pytest.approx(21 * math.log(2))
    assert three["bpb"].scores.weights == pytest.approx(3 * one["bpb"].scores.weights)


def test_v1_interval_is_the_seeds() -> None:
    """Student t on the tokens, carried to bits per byte: [2, 4, 4, 5, 7, 8] has [2.7008, 7.2992]."""
    rows = measured([2, 4, 4, 5, 7, 8], index(4, 3), n_bytes=3)
    expected = (2.700801709516404 * 2 / LN2, 7.299198290483596 * 2 / LN2)
    assert rows["bpb"].v1_interval == pytest.approx(expected, rel=1e-12)
    assert rows["nll"].v1_interval is None
    assert rows["ppl"].v1_interval is None


def test_a_uniform_bigram_has_eight_bits_exactly() -> None:
    for length in (5, 18, 999, 3001):
        tokens = TokenFile(np.arange(length) % 256, 256)
        stream = stream_nll(UNIFORM, BYTES, tokens, {})
        for documents in (None, index(2, 1, length - 3)):
            rows = measure_stream("m", TASK, stream, tokens, documents, {})
            bpb, nll, ppl = (rows[metric] for metric in ("bpb", "nll", "ppl"))
            assert (bpb.value, bpb.lo, bpb.hi, bpb.v1_interval) == (8.0, 8.0, 8.0, (8.0, 8.0))
            assert nll.value == nll.lo == nll.hi == math.log(256)
            assert ppl.value == ppl.lo == ppl.hi == pytest.approx(256)


# --- blocks, or one text


def units(n: int, documents: tuple[Document, ...] | None = None, first: int = 1) -> Measurement:
    return measured(np.arange(n) % 7, documents, first=first)["nll"]


@pytest.mark.parametrize(("extra", "last"), [(0, BLOCK), (1, BLOCK + 1), (511, BLOCK + 511)])
@pytest.mark.parametrize("first", [0, 1, 3])
def test_blocks_of_512_and_the_last_takes_the_rest(extra: int, last: int, first: int) -> None:
    row = units(MIN_BLOCKS * BLOCK + extra, first=first)
    assert (row.interval, row.blind, len(row.scores.ids)) == ("block-t", "", 30)
    assert row.scores.weights.tolist() == [512] * 29 + [last]
    assert row.scores.scores.sum() == (np.arange(MIN_BLOCKS * BLOCK + extra) % 7).sum()  # no token is left out
    assert row.scores.ids[:2] == (f"block-{first:06d}", f"block-{first + 512:06d}")


def test_31_blocks() -> None:
    assert units(31 * BLOCK).scores.weights.tolist() == [512] * 31


def test_a_text_too_short_for_30_blocks_is_blind() -> None:
    row = units(MIN_BLOCKS * BLOCK - 1)
    assert (row.interval, row.scores.ids) == ("token-t", ("stream",))
    assert row.blind == (
        "one text of 15359 scored tokens, too short for 30 blocks of 512: no significance can be had from it"
    )


def test_one_text_has_the_interval_of_its_tokens() -> None:
    rows = measured([1, 2, 6], None, n_bytes=6)
    half = T_2 * math.sqrt(7) / math.sqrt(3)  # mean 3, sum of squares 14 over 2
    assert (rows["nll"].value, rows["nll"].lo, rows["nll"].hi) == pytest.approx((3, 3 - half, 3 + half), rel=1e-12)
    assert (rows["ppl"].lo, rows["ppl"].hi) == pytest.approx((math.exp(3 - half), math.exp(3 + half)))
    assert (rows["bpb"].lo, rows["bpb"].hi) == pytest.approx(((3 - half) / 2 / LN2, (3 + half) / 2 / LN2))
    assert {row.interval for row in rows.values()} == {"token-t"}


@pytest.mark.parametrize(
    ("documents", "first", "why"),
    [
        (index(4), 1, "3 scored tokens in 1 of 1 document: no significance can be had from it"),
        (index(1, 3), 1, "3 scored tokens in 1 of 2 documents: no significance can be had from it"),
    ],
)
def test_one_document_with_scored_tokens_is_blind(documents: tuple[Document, ...], first: int, why: str) -> None:
    row = measured([1, 2, 6], documents, first=first)["bpb"]
    assert (row.interval, row.scores.ids, row.blind) == ("token-t", ("stream",), why)


def test_two_documents_are_enough_whatever_their_length() -> None:
    assert measured([1, 2], index(2, 1))["bpb"].interval == "cluster-t"


# --- identity


def test_any_change_of_the_stream_changes_every_unit() -> None:
    """A token changes what all later ones are predicted from."""
    ids = np.arange(7)
    row = measured([1] * 6, index(3, 4), ids=ids)["bpb"]
    other = measured([1] * 6, index(3, 4), ids=[*ids[:-1], 99])["bpb"]
    assert not set(row.scores.hashes) & set(other.scores.hashes)
    assert row.task_hash != other.task_hash
    again = measured([2] * 6, index(3, 4), ids=ids)["bpb"]
    assert (row.scores.hashes, row.task_hash) == (again.scores.hashes, again.task_hash)


def test_another_cut_of_the_same_stream_changes_its_documents_alone() -> None:
    one, two = measured([1] * 6, index(3, 2, 2))["bpb"], measured([1] * 6, index(3, 3, 1))["bpb"]
    assert [a == b for a, b in zip(one.scores.hashes, two.scores.hashes, strict=True)] == [True, False, False]


def test_only_the_metrics_asked_for() -> None:
    stream = StreamNLL(np.ones(3), 1, 3)
    task = Task("prose", "lm", Path(), ("ppl",), ())
    rows = measure_stream("m", task, stream, TokenFile(np.zeros(4, np.int64), 256), None, {"params": 3})
    assert list(rows) == ["ppl"]
    assert rows["ppl"].row_id == "m--prose--ppl"
    assert rows["ppl"].source == {"params": 3}


# --- what is refused


def score(ids: Any, config: dict[str, Any] | None = None, model: Any = UNIFORM, **fields: Any) -> StreamNLL:
    return stream_nll(model, config or BYTES, TokenFile(np.array(ids, np.int64), 0), fields)


@pytest.mark.parametrize("ids", [[1, 2, 256], [1, 2, 256, 3, 999]])
def test_the_first_id_beyond_the_vocabulary_is_named(ids: list[int]) -> None:
    with pytest.raises(ValueError, match=r"token 2 of the data is 256, but the model's vocabulary has 256 entries"):
        score(ids)


class Broken:
    """A model that gives no probability somewhere."""

    vocab_size = 256

    def __init__(self, *values: float) -> None:
        self.values = np.array(values)

    def nll(self, ids: np.ndarray) -> np.ndarray:
        return self.values


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_nll_that_is_not_finite_is_named(value: float) -> None:
    with pytest.raises(ValueError, match=rf"the NLL of token 3 is {value}: the model gives no probability there"):
        score([1, 2, 3, 4, 5], model=Broken(1, 1, value, math.nan))


@pytest.mark.parametrize(
    ("config", "fields", "expected"),
    [
        ({}, {}, 4),  # a vocabulary of 256 is bytes
        ({}, {"n_bytes": 99}, 4),  # a byte is a byte
        ({"tl_tokenizer": "bytes"}, {}, 4),
        ({"tl_tokenizer": "file"}, {"n_bytes": 99}, 99),
        ({}, {"tokenizer": "file", "n_bytes": 99}, 99),  # the entry has the last word
        ({"tl_tokenizer": "file"}, {"tokenizer": "bytes"}, 4),
    ],
)
def test_bytes_of_the_text(config: dict[str, Any], fields: dict[str, Any], expected: int) -> None:
    assert score([1, 2, 3, 4, 5], BYTES | config, **fields).n_bytes == expected


@pytest.mark.parametrize("n_bytes", [None, 0, -1, 2.5, "9"])
def test_a_file_tokenizer_needs_the_byte_count(n_bytes: Any) -> None:
    fields = {} if n_bytes is None else {"n_bytes": n_bytes}
    with pytest.raises(ValueError, match=r'set "n_bytes" in the entry or in the task\'s settings \(found'):
        score([1, 2, 3], BYTES | {"tl_tokenizer": "file"}, **fields)


def test_a_vocabulary_of_another_size_is_no_byte() -> None:
    model = BigramLM(np.zeros((300, 300), np.float32))
    with pytest.raises(ValueError, match="a token of a 'file' tokenizer is no byte"):
        score([1, 2, 299], model=model)


def test_one_scored_token_has_no_interval() -> None:
    with pytest.raises(ValueError, match="expected at least 2"):
        measured([1], None)

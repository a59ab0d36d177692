"""Exact match of decoded sequences: what counts as right, what a row says, and what cannot be scored."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from evalsuite.evals.language_model import DEAD_ZONE
from evalsuite.evals.sequences import measure_sequences
from evalsuite.result import Measurement
from evalsuite.tasks.sequences import SequencePair
from evalsuite.tasks.task import Task
from evalsuite.zoo.families.seq2seq import Seq2Seq, Seq2SeqConfig
from evalsuite.zoo.families.transformer import Transformer, TransformerConfig

torch.set_num_threads(1)
TASK = Task("say", "seq2seq", Path("say.jsonl"), ("exact_match",), ("exact_match",))
BOS, EOS = 1, 2
IDS = {"bos": BOS, "eos": EOS}


class Table:
    """log p(next | last) whatever the source, but for a source of 7, which has no probabilities."""

    vocab_size, src_vocab = 8, 9

    def __init__(self, table: dict[int, dict[int, float]], max_len: int | None = None) -> None:
        self.max_len = max_len
        self.logits = torch.full((8, 8), -math.inf, dtype=torch.float64)
        for last, row in table.items():
            for token, p in row.items():
                self.logits[last, token] = math.log(p)

    def start(self, src: Tensor, real: Tensor) -> Any:
        return {"broken": (src == 7).any(dim=1)}

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        return self.logits[tokens].masked_fill(state["broken"][:, None], math.nan), state


SAYS_34 = Table({BOS: {3: 0.9, EOS: 0.1}, 3: {4: 0.8, EOS: 0.2}, 4: {EOS: 1.0}})


def pair(*tgt: int, src: tuple[int, ...] = (5,), name: str = "p") -> SequencePair:
    return SequencePair(name, src, tgt)


def row(model: Any, *pairs: SequencePair, **settings: Any) -> Measurement:
    found = measure_sequences("m", TASK, model, pairs, IDS | settings, {"params": 3})
    assert list(found) == ["exact_match"]
    return found["exact_match"]


def test_an_answer_is_right_without_its_end_symbol_and_only_as_a_whole() -> None:
    asked = [pair(3, 4, name="a"), pair(3, name="b"), pair(3, 4, 4, name="c"), pair(name="d"), pair(3, 4, 2, name="e")]
    found = row(SAYS_34, *asked)
    assert found.scores.scores.tolist() == [1, 0, 0, 0, 0]
    assert found.scores.details[1] == {
        "input": "5",
        "expected": "3",
        "answer": "3 4",
        "logprob": pytest.approx(math.log(0.72)),
        "unstable": False,
    }


def test_what_a_row_says() -> None:
    found = row(SAYS_34, *(pair(3, 4, name=f"p{i}") for i in range(10)))
    assert (found.row_id, found.value, found.n, found.interval) == ("m--say--exact_match", 1.0, 10, "wilson")
    # Wilson 95 %: the mirror image of [0, 0.27753...] for (0, 10).
    assert (found.lo, found.hi) == pytest.approx((1 - 0.2775327998628892, 1))
    assert (found.higher_is_better, found.bounds, found.min_drop) == (True, (0.0, 1.0), 0.001)
    assert found.source == {"params": 3, "decode": "beam", "beam": 4}
    assert row(SAYS_34, pair(3), beam=1).source == {"params": 3, "decode": "greedy", "beam": 1}
    assert found.scores.weights.tolist() == [1] * 10
    assert (found.scores.unscored, found.scores.truncated, found.blind) == ((), 0, "")


def test_identity_of_pairs() -> None:
    base = row(SAYS_34, pair(3, 4))
    for other in (pair(3), pair(3, 4, src=(5, 5)), pair(4, src=(5, 3))):
        assert row(SAYS_34, other).scores.hashes != base.scores.hashes
    renamed = row(SAYS_34, pair(3, 4, name="q"))
    assert renamed.scores.hashes == base.scores.hashes
    assert renamed.task_hash != base.task_hash


def test_a_beam_finds_what_greedy_search_misses() -> None:
    model = Table({BOS: {3: 0.55, 4: 0.45}, 3: {5: 0.5, 6: 0.5}, 4: {EOS: 1.0}, 5: {EOS: 1.0}, 6: {EOS: 1.0}})
    assert row(model, pair(4)).value == 1
    assert row(model, pair(4), beam=1).value == 0
    assert row(model, pair(3, 5), beam=1).value == 1


def test_the_longest_answer() -> None:
    """By default two more than the longest target; an answer that is cut off is compared whole."""
    endless = Table({BOS: {3: 1.0}, 3: {3: 0.9, EOS: 0.1}})
    assert row(endless, pair(3, 3, name="a"), pair(3, name="b"), beam=1).scores.details[1]["answer"] == "3 3 3 3"
    assert row(endless, pair(3, 3), beam=1, max_len=2).value == 1
    assert (
        row(Table({BOS: {3: 1.0}, 3: {3: 1.0}}, max_len=3), pair(3, 3), beam=1).scores.details[0]["answer"] == "3 3 3"
    )


def test_a_source_without_probabilities_is_unscored_and_wrong() -> None:
    found = row(SAYS_34, pair(3, 4, name="a"), pair(src=(7,), name="b"))
    assert found.scores.scores.tolist() == [1, 0]
    assert found.scores.unscored == ("b",)
    assert found.scores.details[1] == {"input": "7", "expected": "", "answer": None}
    with pytest.raises(ValueError, match="no finite log-probability for 2/2 sources"):
        row(SAYS_34, pair(src=(7,), name="a"), pair(src=(7, 7), name="b"))


def test_a_pair_is_unstable_where_noise_decides_whether_it_is_right() -> None:
    """Two answers of two tokens: their scores differ by half the difference of their log-probabilities."""
    for gap, unstable in ((1.9 * DEAD_ZONE, True), (2.1 * DEAD_ZONE, False)):
        p = 1 / (1 + math.exp(gap))
        model = Table({BOS: {3: 1 - p, 4: p}, 3: {EOS: 1.0}, 4: {EOS: 1.0}})
        for target in (3, 4):
            found = row(model, pair(target))
            assert found.scores.tolerance.tolist() == [float(unstable)]
            assert found.scores.details[0]["unstable"] == unstable
        # Both answers are wrong: which of them comes first changes nothing.
        assert row(model, pair(5)).scores.tolerance.tolist() == [0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bos": None}, '"bos" is missing: set it in the entry'),
        ({"eos": None}, '"eos" is missing'),
        ({"bos": 8}, r"bos 8 is outside the vocabulary \[0, 8\)"),
        ({"eos": -1}, "eos: found -1, expected an integer of at least 0"),
        ({"eos": True}, "eos: found True"),
        ({"beam": 0}, "beam: found 0, expected an integer of at least 1"),
        ({"beam": 2.0}, "beam: found 2.0"),
        ({"max_len": 0}, "max_len: found 0"),
        ({"pad_id": "0"}, "pad_id: found '0'"),
    ],
)
def test_a_setting_that_is_missing_or_out_of_range_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row(SAYS_34, pair(3), **settings)


def test_bos_and_eos_have_no_default() -> None:
    for missing in IDS:
        settings = {key: value for key, value in IDS.items() if key != missing}
        with pytest.raises(ValueError, match=f'"{missing}" is missing'):
            measure_sequences("m", TASK, SAYS_34, [pair(3)], settings, {})


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (pair(3, src=(3, 9), name="odd"), r"odd: src holds the token id 9, the model's vocabulary is \[0, 9\)"),
        (pair(8, name="odd"), r"odd: tgt holds the token id 8, the model's vocabulary is \[0, 8\)"),
        (pair(3, src=(3,) * 5, name="odd"), "odd: src has 5 tokens, the model reads at most 4"),
    ],
)
def test_a_pair_that_does_not_fit_the_model_is_named(odd: SequencePair, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row(Table({}, max_len=4), pair(3), odd)


def test_a_huge_bias_of_eos_answers_the_empty_string() -> None:
    model = Seq2Seq(Seq2SeqConfig(8, 9, "gru", 4, 6, "luong-dot")).eval()
    with torch.no_grad():
        model.out.bias[EOS] = 1e4
    found = row(model, pair(name="empty"), pair(3, name="full"))
    assert [detail["answer"] for detail in found.scores.details] == ["", ""]
    assert found.scores.scores.tolist() == [1, 0]


def test_a_transformer_does_not_see_the_pad_id_and_a_recurrent_model_does() -> None:
    torch.manual_seed(0)
    transformer = Transformer(TransformerConfig(8, 9, 8, 2, 12, 1, 1, "pre", True, 12)).eval()
    recurrent = Seq2Seq(Seq2SeqConfig(8, 9, "gru", 4, 6, "none")).eval()
    asked = [pair(3, src=(3, 4, 0, 0), name="padded"), pair(3, src=(3, 4), name="bare")]
    for model, same in ((transformer, True), (recurrent, False)):
        padded, bare = (detail["logprob"] for detail in row(model, *asked).scores.details)
        assert (abs(padded - bare) < 1e-5) == same
    shown, bare = (detail["logprob"] for detail in row(transformer, *asked, pad_id=6).scores.details)
    assert abs(shown - bare) > 1e-5


def test_scores_do_not_depend_on_the_other_pairs() -> None:
    torch.manual_seed(1)
    model = Transformer(TransformerConfig(8, 9, 8, 2, 12, 1, 1, "post", True, 12)).eval()
    rng = np.random.default_rng(0)
    asked = [pair(3, src=tuple(rng.integers(0, 9, rng.integers(1, 9)).tolist()), name=f"p{i}") for i in range(20)]
    together = row(model, *asked, max_len=6)
    for one, detail in zip(asked, together.scores.details, strict=True):
        alone = row(model, one, max_len=6).scores.details[0]
        assert alone["answer"] == detail["answer"]
        assert alone["logprob"] == pytest.approx(detail["logprob"], abs=1e-5)

"""What the three evals of encoders share: batches, draws, identity of sentences, and sentences without an answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evalsuite.evals import classification, masked_tokens, replaced_tokens
from evalsuite.evals.masked_tokens import mask_rows
from evalsuite.evals.sentences import encode_rows
from evalsuite.result import Measurement
from evalsuite.stats import wilson_interval
from evalsuite.tasks.sentences import LabelledSentence
from evalsuite.zoo.families.bert import BertForMLM
from evalsuite.zoo.families.classifier import Classifier, ClassifierConfig
from evalsuite.zoo.families.electra import Electra
from evalsuite.zoo.text import length_batches
from tests.encoder_models import (
    BERT,
    CLASSIFIER,
    ELECTRA,
    ROWS,
    SIZES,
    OneLogit,
    Script,
    byte_logits,
    classify,
    detect,
    fill,
)

MEASURES: dict[str, Callable[..., Measurement]] = {
    "classification": classify,
    "masked_tokens": fill,
    "replaced_tokens": lambda *arguments, **fields: detect(*arguments, **fields)["accuracy"],
}
MODULES = {"classification": classification, "masked_tokens": masked_tokens, "replaced_tokens": replaced_tokens}
MODELS = {"classification": CLASSIFIER, "masked_tokens": BERT, "replaced_tokens": ELECTRA}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("batch_tokens", [1, 40, 10**6])
def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch, name: str, batch_tokens: int) -> None:
    whole = MEASURES[name]()
    monkeypatch.setattr(MODULES[name], "length_batches", partial(length_batches, batch_tokens=batch_tokens))
    again = MEASURES[name]()
    assert again.scores.scores.tolist() == whole.scores.scores.tolist()
    assert again.scores.hashes == whole.scores.hashes


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=8), st.integers(0, 9))
def test_a_sentence_scores_the_same_in_any_company(texts: list[str], seed: int) -> None:
    rows = [LabelledSentence(text, seed % 3, number) for number, text in enumerate(texts)]
    together = classify(rows=rows).scores
    alone = [classify(rows=[row]).scores for row in rows]
    assert together.scores.tolist() == [float(one.scores[0]) for one in alone]
    assert together.hashes == tuple(one.hashes[0] for one in alone)
    assert together.truncated == sum(len(text.encode()) > 22 for text in texts)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.integers(1, 100))
def test_batches_cover_each_row_once_within_the_budget(lengths: list[int], batch_tokens: int) -> None:
    real = np.arange(max(lengths)) < np.array(lengths)[:, None]
    read = np.zeros(real.shape, dtype=int)
    for at in length_batches(real, batch_tokens):
        assert real[at].size <= batch_tokens or len(real[at]) == 1
        assert real[at].any(axis=0).all()  # no column of padding alone
        read[at] += 1
    assert (read[real] == 1).all()
    assert read.max() == 1


@pytest.mark.parametrize("name", ["masked_tokens", "replaced_tokens"])
def test_equal_generators_draw_alike_and_only_equal_draws_pair(name: str) -> None:
    row, again, other = (MEASURES[name](seed=seed, p=0.5).scores for seed in (1, 1, 2))
    assert again.hashes == row.hashes
    # A sentence in which nothing was hidden is the same whatever the seed.
    same = set(zip(row.ids, row.hashes, strict=True)) & set(zip(other.ids, other.hashes, strict=True))
    assert {ROWS[int(name.removeprefix("row-")) - 2].sentence for name, _ in same} <= {"", "é"}


def test_a_sentence_at_the_end_moves_the_generators_draws_but_not_the_masks() -> None:
    some, more = ROWS[:3], [*ROWS[:3], LabelledSentence("one more sentence, and the longest", 0, 99)]
    few = fill(rows=some, p=0.5).scores.hashes
    assert fill(rows=more, p=0.5).scores.hashes[: len(few)] == few
    shorter, longer = (detect(rows=rows, p=0.5)["generator_accuracy"].scores.hashes for rows in (some, more))
    assert not set(shorter) & set(longer)


def test_a_token_that_was_picked_and_kept_is_another_draw_than_one_that_was_not() -> None:
    encoded = encode_rows([LabelledSentence("ab", 0, 2)], 256, 24, {})
    kept, left = (
        mask_rows(encoded, encoded.special, 3, 256, {}, Script([*draws, 0.0, 0.0])) for draws in ([0.0, 0.95], [0.9])
    )
    assert kept.inputs.tolist() == left.inputs.tolist() == [[1, ord("a"), 3, 2]]
    assert kept.hashes != left.hashes


@pytest.mark.parametrize("name", MEASURES)
def test_what_identifies_a_sentence(name: str) -> None:
    """Its text does, and for a classifier its label; the model does not."""
    measure = MEASURES[name]
    base = measure().scores
    torch.manual_seed(9)
    other = {
        "classification": lambda: Classifier(ClassifierConfig("bert", SIZES, ("bad", "fair", "good"), "cls")),
        "masked_tokens": lambda: BertForMLM(SIZES),
        "replaced_tokens": lambda: Electra(replace(ELECTRA.config, tie_embeddings=False)),
    }[name]().eval()
    assert measure(other).scores.hashes == base.hashes
    relabelled = [replace(row, label=(row.label + 1) % 3) for row in ROWS]
    assert (measure(rows=relabelled).scores.hashes == base.hashes) == (name != "classification")
    changed = measure(rows=[replace(ROWS[0], sentence="b good film"), *ROWS[1:]]).scores
    assert changed.hashes[0] != base.hashes[0]
    assert changed.hashes[1:] == base.hashes[1:]
    cut = measure(rows=[*ROWS[:3], replace(ROWS[3], sentence=ROWS[3].sentence + "!"), *ROWS[4:]]).scores
    assert [at for at, (old, new) in enumerate(zip(base.hashes, cut.hashes, strict=True)) if old != new] == [
        base.ids.index("row-5")
    ]


@pytest.mark.parametrize("name", MEASURES)
def test_sentences_that_lose_their_end_are_counted(name: str) -> None:
    assert MEASURES[name]().scores.truncated == 3


@pytest.mark.parametrize("name", MEASURES)
def test_a_token_outside_the_vocabulary_is_named(name: str) -> None:
    model = OneLogit(*[0.0, 1.0])
    model.vocab_size = 100
    rows = [LabelledSentence("AAA", 0, 2), LabelledSentence("AAd", 0, 3)]
    with pytest.raises(ValueError, match="row-3: token 3 is 100, but the model's vocabulary has 100 entries"):
        MEASURES[name](model, rows)


class Broken:
    """A model that gives NaN wherever a sentence holds "!", in one of its outputs."""

    def __init__(self, model: Any, output: str) -> None:
        self.model, self.output = model, output
        self.generator = Broken(model.generator, output) if hasattr(model, "generator") else self

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.model, name)
        if name != self.output:
            return found

        def spoilt(ids: Tensor, real: Tensor) -> Tensor:
            out: Tensor = found(ids, real)
            out[(ids == ord("!")).any(dim=1)] = math.nan
            return out

        return spoilt


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("classification", "class_logits"),
        ("masked_tokens", "hidden"),
        ("replaced_tokens", "hidden"),
        ("replaced_tokens", "replaced_logits"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_sentence_without_finite_logits_is_wrong_and_counted(name: str, output: str) -> None:
    rows = [LabelledSentence(text, 0, number) for number, text in enumerate(["good " * 4, "bad! " * 4, "fair " * 4])]
    fields = {} if name == "classification" else {"p": 0.4}
    row, sound = MEASURES[name](Broken(MODELS[name], output), rows, **fields), MEASURES[name](rows=rows, **fields)
    assert row.scores.unscored == ("row-1",)
    assert row.scores.scores.tolist() == [sound.scores.scores[0], 0.0, sound.scores.scores[2]]
    assert row.scores.weights.tolist() == sound.scores.weights.tolist()
    assert row.scores.tolerance[1] == 0
    with pytest.raises(ValueError, match="non-finite logits in 2/2 sentences"):
        MEASURES[name](Broken(MODELS[name], output), [rows[1], replace(rows[1], line=7)], **fields)


@pytest.mark.filterwarnings("error")
def test_a_generator_with_infinite_logits_leaves_nothing_to_judge() -> None:
    with pytest.raises(ValueError, match="non-finite logits in 2/2 sentences"):
        detect(OneLogit(*byte_logits(a=math.inf)), [LabelledSentence("a" * 9, 0, line) for line in (2, 3)], p=1.0)


def test_an_unscored_sentence_is_not_excused_as_unstable() -> None:
    """One token without finite logits among tokens that are ties: the sentence is lost, and that is no noise."""

    class Spoilt(OneLogit):
        def logits(self, hidden: Tensor) -> Tensor:
            return self.row + torch.where(hidden == ord("!"), math.nan, 0.0)

    rows = [LabelledSentence("a!a!a!a!a!a!a!a!", 0, 2), LabelledSentence("a" * 16, 0, 3)]
    row = fill(Spoilt(*byte_logits()), rows, p=1.0)
    assert row.scores.unscored == ("row-2",)
    assert row.scores.tolerance.tolist() == [0, 16]


@pytest.mark.parametrize("name", ["masked_tokens", "replaced_tokens"])
def test_one_sentence_has_no_interval_and_no_significance(name: str) -> None:
    row = MEASURES[name](rows=ROWS[:1], p=0.5)
    assert (row.interval, row.lo, row.hi) == ("none", row.value, row.value)
    assert row.blind == "a single sentence: no significance can be had from it"
    assert row.v1_interval == wilson_interval(int(row.scores.scores[0]), row.n)
    assert fill().blind == ""


@pytest.mark.parametrize("name", MEASURES)
def test_details_are_plain_json(name: str) -> None:
    for detail in MEASURES[name]().scores.details:
        assert json.loads(json.dumps(detail, allow_nan=False)) == detail


def test_equal_logits_of_tokens_go_to_the_first_and_are_unstable() -> None:
    rows = [LabelledSentence("\x00b" * 10, 0, line) for line in (2, 3)]
    row = fill(OneLogit(*byte_logits()), rows, p=1.0)
    assert row.scores.scores.tolist() == [10, 10]  # all logits are equal, the first token is 0
    assert row.scores.tolerance.tolist() == [20, 20]

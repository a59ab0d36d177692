"""Masked and replaced tokens, each against the same score computed one token at a time by the rule of the format."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from evalsuite.evals.replaced_tokens import measure_replaced_tokens
from evalsuite.scoring.masking import mlm_mask
from evalsuite.stats import PCG32, wilson_interval
from evalsuite.tasks.sentences import LabelledSentence
from evalsuite.zoo.text import encode_batch
from tests.encoder_models import (
    BERT,
    ELECTRA,
    ROWS,
    RTD,
    TEXTS,
    OneLogit,
    byte_logits,
    detect,
    fill,
    task,
)

# Masked tokens


def test_masked_accuracy_is_that_of_tokens_read_one_by_one() -> None:
    ids, real = encode_batch(TEXTS, 24)
    special = ~real | (ids == 1) | (ids == 2)
    inputs, labels = mlm_mask(ids, special, 3, 256, 0.4, PCG32(1))
    right: dict[str, list[bool]] = {}
    for n, t in zip(*np.nonzero(labels != -100), strict=True):
        alone = torch.from_numpy(inputs[None, n, : real[n].sum()])
        with torch.inference_mode():
            logits = BERT.logits(BERT.hidden(alone, torch.ones_like(alone).bool())[0, t])
        right.setdefault(f"row-{n + 2}", []).append(int(logits.argmax()) == labels[n, t])
    row = fill(p=0.4)
    assert row.scores.ids == tuple(right)
    assert row.scores.scores.tolist() == [sum(found) for found in right.values()]
    assert row.scores.weights.tolist() == [len(found) for found in right.values()]
    picked = [one for found in right.values() for one in found]
    assert 0 < np.mean(picked) < 1
    assert (row.value, row.n, row.interval) == (np.mean(picked), len(picked), "wilson-clustered")
    assert row.v1_interval == wilson_interval(sum(picked), len(picked))


def test_masked_tokens_are_counted_by_sentence() -> None:
    """A model that says "a" everywhere is right on all 20 tokens of one sentence and on none of the other."""
    rows = [LabelledSentence("a" * 20, 0, 2), LabelledSentence("b" * 20, 0, 3), LabelledSentence("", 0, 4)]
    row = fill(OneLogit(*byte_logits(a=1.0)), rows, p=1.0)
    assert row.scores.scores.tolist() == [20, 0]  # the empty sentence has no token to hide and is no unit
    assert row.scores.weights.tolist() == [20, 20]
    assert [detail["right"] for detail in row.scores.details] == [20, 0]
    assert (row.value, row.n) == (0.5, 40)
    assert row.v1_interval == pytest.approx((0.352, 0.648), abs=1e-3)
    assert row.hi - row.lo > 0.9  # two sentences say next to nothing about others


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": 0.0}, r"none of \d+ tokens was picked with p = 0.0"),
        ({"p": 2}, "p is 2, expected"),
        ({"p": "0.15"}, "p: found '0.15', expected a number"),
        ({"mask_id": 256}, "mask_id 256 is outside the vocabulary"),
        ({"mask_id": "3"}, "mask_id: found '3', expected a token id"),
        ({"cls_id": -1}, "cls_id: found -1, expected a token id"),
        ({"sep_id": 300}, r"row-2: token 12 is 300, but the model's vocabulary has 256 entries"),
        ({"pad_id": True}, "pad_id: found True"),
    ],
)
def test_settings_that_do_not_fit(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fill(**change)


def test_settings_name_other_tokens() -> None:
    """[cls] 10, [sep] 11, padding 12: none is hidden, and the mask is 13."""
    seen = []

    class Watched(OneLogit):
        def hidden(self, ids: Tensor, real: Tensor) -> Tensor:
            seen.append((ids, real))
            return super().hidden(ids, real)

    rows = [LabelledSentence("ab", 0, 2), LabelledSentence("c\x0b", 0, 3), LabelledSentence("d", 0, 4)]
    row = fill(Watched(*byte_logits()), rows, p=1.0, cls_id=10, sep_id=11, pad_id=12, mask_id=13)
    ids, real = (part.numpy() for part in seen[0])
    assert ids[:, 0].tolist() == [10, 10, 10]
    assert ids[2, 2:].tolist() == [11, 12]
    assert real[2].tolist() == [True, True, True, False]
    assert ids[1, 2] == 11  # a byte that is [sep] is no text
    assert row.scores.weights.tolist() == [2, 1, 1]
    assert 13 in ids


# Replaced tokens


def test_replaced_accuracy_is_that_of_the_rule_step_by_step() -> None:
    rng = PCG32(1)
    ids, real = encode_batch(TEXTS, 24)
    special = ~real | np.isin(ids, (0, 1, 2, ord(" ")))
    inputs, labels = mlm_mask(ids, special, 3, 256, 0.4, rng)
    corrupted, guessed = ids.copy(), []
    for n, t in zip(*np.nonzero(labels != -100), strict=True):
        alone = torch.from_numpy(inputs[None, n, : real[n].sum()])
        with torch.inference_mode():
            logits = ELECTRA.generator.logits(ELECTRA.generator.hidden(alone)[0, t]).double()
        shares = torch.softmax(logits, -1).cumsum(-1).numpy()
        corrupted[n, t] = min(int(np.searchsorted(shares, rng.uniform(), side="right")), 255)
        guessed.append(int(logits.argmax()) == ids[n, t])
    right, original = [], []
    for n in range(len(ids)):
        alone = torch.from_numpy(corrupted[None, n, : real[n].sum()])
        with torch.inference_mode():
            found = ELECTRA.replaced_logits(alone)[0].numpy()
        for t, logit in enumerate(found):
            original.append(corrupted[n, t] == ids[n, t])
            right.append((logit > 0) == (corrupted[n, t] != ids[n, t]))
    rows = detect(p=0.4)
    assert {metric: row.value for metric, row in rows.items()} == pytest.approx(
        {"accuracy": np.mean(right), "generator_accuracy": np.mean(guessed), "majority_share": np.mean(original)}
    )
    assert 0.5 < np.mean(original) < 1
    assert 0 < np.mean(guessed) < 1
    tokens = sum(min(len(text.encode()), 22) + 2 for text in TEXTS)
    assert [row.n for row in rows.values()] == [tokens, len(guessed), tokens]
    assert [row.interval for row in rows.values()] == ["wilson-clustered"] * 3
    assert rows["accuracy"].v1_interval == wilson_interval(sum(right), tokens)
    assert len(rows["accuracy"].scores.ids) == 21
    assert len(rows["generator_accuracy"].scores.ids) < 21  # without a hidden token there is nothing to guess


@pytest.mark.parametrize(("logit", "calls_replaced"), [(-1.0, False), (0.0, False), (1e-9, True), (1.0, True)])
def test_a_logit_above_0_says_replaced(logit: float, calls_replaced: bool) -> None:
    model = OneLogit(*byte_logits(a=20.0), replaced=logit)
    rows = detect(model, [LabelledSentence("ab" * 5, 0, line) for line in (2, 3)], p=0.5)
    share = rows["majority_share"].value
    assert 0 < share < 1
    assert rows["accuracy"].value == pytest.approx(1 - share if calls_replaced else share)
    near = abs(logit) <= 1e-5
    assert rows["accuracy"].scores.tolerance.tolist() == ([12, 12] if near else [0, 0])
    assert rows["majority_share"].scores.tolerance.tolist() == [0, 0]


def test_the_generator_sees_the_mask_and_the_discriminator_never_does() -> None:
    class Watched(OneLogit):
        seen: dict[str, Tensor] = {}  # noqa: RUF012

        def hidden(self, ids: Tensor, real: Tensor) -> Tensor:
            self.seen["generator"] = ids
            return super().hidden(ids, real)

        def replaced_logits(self, ids: Tensor, real: Tensor) -> Tensor:
            self.seen["discriminator"] = ids
            return super().replaced_logits(ids, real)

    detect(Watched(*byte_logits(z=99.0)), [LabelledSentence("a" * 20, 0, line) for line in (2, 3)], p=0.5)
    ours = {name: set(ids[:, 1:-1].flatten().tolist()) for name, ids in Watched.seen.items()}
    assert {ord("a"), 3} <= ours["generator"]
    assert ours["discriminator"] == {ord("a"), ord("z")}


def test_a_generator_that_is_right_replaces_nothing() -> None:
    rows = detect(OneLogit(*byte_logits(a=99.0)), [LabelledSentence("a" * 20, 0, n) for n in (2, 3)], p=0.5)
    assert [rows[metric].value for metric in RTD] == [1.0, 1.0, 1.0]


def test_the_models_own_specials_are_never_hidden() -> None:
    model = OneLogit(*byte_logits(a=99.0))
    model.special_ids = (ord("b"),)
    rows = detect(model, [LabelledSentence("ab" * 5, 0, n) for n in (2, 3)], p=1.0)
    assert rows["generator_accuracy"].scores.weights.tolist() == [5, 5]
    assert rows["generator_accuracy"].value == 1.0


def test_only_the_metrics_asked_for() -> None:
    found = measure_replaced_tokens("m", task("rtd", "accuracy"), ELECTRA, ROWS, {}, PCG32(1), {})
    assert list(found) == ["accuracy"]
    assert found["accuracy"].value == detect()["accuracy"].value

"""Accuracy of a classifier, against the same computed one sentence at a time; the split, ties and labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from evalsuite.tasks.sentences import LabelledSentence, read_sentences
from evalsuite.zoo.text import encode_batch
from tests.encoder_models import (
    CLASSIFIER,
    ROWS,
    OneLogit,
    classify,
)


def test_accuracy_is_that_of_sentences_read_one_by_one() -> None:
    expected = []
    with torch.inference_mode():
        for row in ROWS:
            ids, real = encode_batch([row.sentence], 24)
            logits = CLASSIFIER.class_logits(torch.from_numpy(ids), torch.from_numpy(real))[0]
            expected.append(float(logits.argmax() == row.label))
    row_of = classify()
    assert row_of.scores.scores.tolist() == expected
    assert 0 < row_of.value == np.mean(expected) < 1
    assert row_of.scores.ids[:2] == ("row-2", "row-3")
    assert (row_of.n, row_of.interval, row_of.bounds) == (21, "wilson", (0.0, 1.0))
    assert (row_of.higher_is_better, row_of.min_drop, row_of.source) == (True, 0.001, {"params": 3})


def test_wilson_interval_of_accuracy() -> None:
    rows = [LabelledSentence("x", int(number < 8), number) for number in range(10)]
    row = classify(OneLogit(0.0, 1.0), rows)
    assert (row.value, row.lo, row.hi) == pytest.approx((0.8, 0.490162471537, 0.943317848546), abs=1e-12)


def test_only_the_split_counts(tmp_path: Path) -> None:
    """A model that is right on the sentences it was trained on and nowhere else scores 0, not 1/2."""
    file = tmp_path / "rows.tsv"
    file.write_text("split\tsentence\tlabel\n" + "train\tx\t1\nval\ty\t0\n" * 5)
    rows = read_sentences(file, "val")
    row = classify(OneLogit(0.0, 1.0), rows)
    assert (row.value, row.n, row.scores.ids) == (0.0, 5, tuple(f"row-{line}" for line in (3, 5, 7, 9, 11)))
    assert classify(OneLogit(0.0, 1.0), [*rows, *read_sentences(file, "train")]).value == 0.5  # the fault


@pytest.mark.parametrize(
    ("logits", "scores", "tolerance"),
    [
        ((1.0, 1.0), [1.0, 0.0], 1.0),  # equal logits go to the first class
        ((1.0, 1.0 + 1.9e-5), [0.0, 1.0], 1.0),
        ((1.0, 1.0 + 2.2e-5), [0.0, 1.0], 0.0),
        ((-5000.0, -5000.05), [1.0, 0.0], 1.0),  # noise grows with the logits
        ((0.0, 1.0), [0.0, 1.0], 0.0),
    ],
)
def test_ties(logits: tuple[float, ...], scores: list[float], tolerance: float) -> None:
    row = classify(OneLogit(*logits), [LabelledSentence("x", label, label) for label in (0, 1)])
    assert row.scores.scores.tolist() == scores
    assert row.scores.tolerance.tolist() == [tolerance] * 2
    assert row.scores.details[0]["unstable"] is (tolerance > 0)


def test_a_single_class_has_no_rival() -> None:
    model = OneLogit(0.0)
    model.labels = ("only",)  # type: ignore[assignment]
    row = classify(model, [LabelledSentence("x", 0, 2)])
    assert (row.value, row.scores.tolerance.tolist()) == (1.0, [0.0])


def test_a_label_that_is_no_class_is_refused() -> None:
    with pytest.raises(ValueError, match="row-7 has the label 2, but the model has 2 classes"):
        classify(OneLogit(0.0, 1.0), [LabelledSentence("x", 2, 7)])

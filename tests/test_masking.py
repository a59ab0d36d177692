"""What is hidden from a model and what is put there: the case file's draws, the order of draws, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.scoring.masking import UNPICKED, mlm_mask, replace_tokens
from evalsuite.stats import PCG32
from tests.encoder_models import Script
from tests.weight_rule import CASES

CASE = CASES["mlm_mask ids 5..28 as 2x12, first/last col special, mask 4, V 40, p .3, PCG32(2)"]


def test_the_arrays_of_the_case_file() -> None:
    ids = np.arange(5, 29).reshape(2, 12)
    special = np.zeros((2, 12), bool)
    special[:, [0, -1]] = True
    inputs, labels = mlm_mask(ids, special, 4, 40, 0.3, PCG32(2))
    assert inputs.tolist() == CASE["inputs"]
    assert labels.tolist() == CASE["labels"]
    assert inputs.dtype == labels.dtype == np.int64
    assert ids.tolist() == np.arange(5, 29).reshape(2, 12).tolist()


def test_the_worked_uniforms() -> None:
    """5 is picked (.05) and hidden (.50), 6 is not (.90), 7 is picked (.10) and replaced at random (.85)."""
    script = Script([0.05, 0.50, 0.90, 0.10, 0.85], below=9)
    special = [True, False, False, False, True, True]
    inputs, labels = mlm_mask([2, 5, 6, 7, 3, 0], special, 4, 40, 0.15, script)
    assert inputs.tolist() == [2, 4, 6, 9, 3, 0]
    assert labels.tolist() == [-100, 5, -100, 7, -100, -100]
    assert next(script.left, None) is None  # special positions draw nothing


@pytest.mark.parametrize(
    ("uniforms", "seen", "picked"),
    [
        ([0.15], 5, False),  # picked below p, not at it
        ([math.nextafter(0.15, 0), 0.0], 4, True),
        ([0.0, math.nextafter(0.8, 0)], 4, True),
        ([0.0, 0.8], 9, True),
        ([0.0, math.nextafter(0.9, 0)], 9, True),
        ([0.0, 0.9], 5, True),
        ([0.0, math.nextafter(1, 0)], 5, True),
    ],
)
def test_the_edges_of_the_shares(uniforms: list[float], seen: int, picked: bool) -> None:
    inputs, labels = mlm_mask([5], [False], 4, 40, 0.15, Script(uniforms, below=9))
    assert (inputs.tolist(), labels.tolist()) == ([seen], [5 if picked else UNPICKED])


def test_shares_over_many_tokens() -> None:
    """15 % are picked; of those 80 % are hidden, 10 % random (1 in 40 of them as it was) and 10 % kept: each share
    within five standard deviations."""
    n = 200_000
    ids = np.full(n, 7)
    inputs, labels = mlm_mask(ids, np.zeros(n, bool), 4, 40, 0.15, PCG32(5))
    picked = labels == 7
    found = [picked.mean(), *(np.mean(inputs[picked] == token) for token in (4, 7))]
    for share, expected, trials in zip(found, (0.15, 0.8 + 0.1 / 40, 0.1 + 0.1 / 40), (n, 30_000, 30_000), strict=True):
        assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / trials)
    assert set(inputs[picked]) == set(range(40))
    assert (inputs[~picked] == 7).all()


@given(st.integers(0, 2**32), st.lists(st.booleans(), max_size=40), st.floats(0, 1))
def test_padding_changes_no_draw(seed: int, special: list[bool], p: float) -> None:
    """More special positions anywhere, as padding is, leave the others as they were."""
    ids = np.arange(len(special)) + 5
    alone = mlm_mask(ids, special, 4, 50, p, PCG32(seed))
    wide_ids, wide_special = np.zeros((len(special), 2), int), np.ones((len(special), 2), bool)
    wide_ids[:, 0], wide_special[:, 0] = ids, special
    for found, padded in zip(alone, mlm_mask(wide_ids, wide_special, 4, 50, p, PCG32(seed)), strict=True):
        assert padded[:, 0].tolist() == found.tolist()
    inputs, labels = alone
    assert ((labels == UNPICKED) | (labels == ids)).all()
    assert (inputs[labels == UNPICKED] == ids[labels == UNPICKED]).all()
    assert (labels[np.array(special, bool)] == UNPICKED).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": [1.0, 2.0]}, "ids must be integers, found dtype float64"),
        ({"ids": [True, False]}, "ids must be integers, found dtype bool"),
        ({"special_mask": [False]}, r"shape \(2,\) and special_mask \(1,\)"),
        ({"p": -0.1}, "p is -0.1, expected"),
        ({"p": 1.1}, "p is 1.1, expected"),
        ({"p": math.nan}, "p is nan, expected"),
        ({"mask_id": 9}, r"mask_id 9 is outside the vocabulary \[0, 9\)"),
        ({"mask_id": -1}, "mask_id -1 is outside"),
    ],
)
def test_mlm_mask_refuses(change: dict[str, object], message: str) -> None:
    arguments = {"ids": [1, 2], "special_mask": [False, False], "mask_id": 3, "vocab": 9, "p": 0.15, "rng": PCG32(0)}
    with pytest.raises(ValueError, match=message):
        mlm_mask(**(arguments | change))  # type: ignore[arg-type]


# p = 1/4, 1/2, 1/4 whatever constant is added to the logits.
LOGITS = np.log([0.25, 0.5, 0.25]) + 700


@pytest.mark.parametrize(
    ("uniform", "sample"), [(0.0, 0), (0.2499, 0), (0.2501, 1), (0.7499, 1), (0.7501, 2), (1 - 2**-53, 2)]
)
def test_a_sample_inverts_the_distribution(uniform: float, sample: int) -> None:
    ids = np.array([[9, 9]])
    corrupted, replaced = replace_tokens(ids, np.array([[False, True]]), LOGITS[None], [uniform])
    assert corrupted.tolist() == [[9, sample]]
    assert replaced.tolist() == [[False, True]]
    assert ids.tolist() == [[9, 9]]


def test_a_token_of_probability_0_is_never_drawn_and_rounding_never_leaves_the_vocabulary() -> None:
    one = np.array([0])
    corrupted, _ = replace_tokens(one, one == 0, [[-1e4, 0.0, -1e4]], [0.0])
    assert corrupted.tolist() == [1]
    thirds = np.zeros((1, 3))
    assert np.cumsum(np.full(3, 1 / 3))[-1] <= 1
    assert replace_tokens(one, one == 0, thirds, [math.nextafter(1, 0)])[0].tolist() == [2]
    tenths = np.zeros((1, 10))
    assert np.cumsum(np.full(10, 0.1))[-1] < 1  # so that no cumulative probability exceeds the last uniform
    assert replace_tokens(one, one == 0, tenths, [math.nextafter(1, 0)])[0].tolist() == [9]


def test_a_lucky_sample_counts_as_original() -> None:
    corrupted, replaced = replace_tokens(np.array([5, 1, 6]), np.array([False, True, False]), LOGITS[None], [0.5])
    assert corrupted.tolist() == [5, 1, 6]
    assert not replaced.any()


def test_places_are_filled_in_c_order() -> None:
    ids = np.full((2, 2), 9)
    picked = np.array([[False, True], [True, True]])
    logits = np.log(np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98]]))
    assert replace_tokens(ids, picked, logits, [0.5] * 3)[0].tolist() == [[9, 0], [1, 2]]


def test_nothing_picked_changes_nothing() -> None:
    ids = np.array([3, 4])
    corrupted, replaced = replace_tokens(ids, ids < 0, np.empty((0, 5)), [])
    assert corrupted.tolist() == [3, 4]
    assert not replaced.any()

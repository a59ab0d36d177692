"""The global sign-flip test against enumeration of the signs that rows share."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.stats import global_sign_flip, sign_flip_p


def row(differences, name="facts"):
    return {(name, i): d for i, d in enumerate(differences)}


def brute_force(rows) -> float:
    """Flip every unit in all rows at once and compare the scaled totals."""
    units = sorted({unit for r in rows for unit, d in r.items() if d})
    norms = [math.sqrt(math.fsum(d * d for d in r.values())) for r in rows]
    used = [(r, norm) for r, norm in zip(rows, norms, strict=True) if norm]

    def total(sign) -> float:
        return math.fsum(sign[unit] * d / norm for r, norm in used for unit, d in r.items() if d)

    observed = total(dict.fromkeys(units, 1))
    patterns = [dict(zip(units, signs, strict=True)) for signs in product((1, -1), repeat=len(units))]
    return sum(total(sign) >= observed - 1e-9 for sign in patterns) / len(patterns)


def test_two_rows_over_the_same_items_worked_number():
    assert global_sign_flip([row([1, 0, -1, 1, 1, 0]), row([2, 0, 1, -1, 1, 1])]) == 0.09375


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.dictionaries(
            st.tuples(st.sampled_from("ab"), st.integers(0, 4)),
            st.sampled_from([-1.0, 0.0, 1.0, 2.0, 0.3]),
            max_size=6,
        ),
        max_size=4,
    )
)
def test_against_enumeration(rows):
    assert global_sign_flip(rows) == pytest.approx(brute_force(rows), abs=1e-12)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0]), max_size=10), st.floats(0.01, 100))
def test_one_row_is_its_own_test_and_scale_does_not_matter(differences, scale):
    expected = sign_flip_p(differences)
    assert global_sign_flip([row(differences)]) == pytest.approx(expected, abs=1e-12)
    assert global_sign_flip([row([d * scale for d in differences])]) == pytest.approx(expected, abs=1e-12)


def test_copies_of_a_row_are_no_further_evidence():
    differences = [1, 1, -1, 1, 1, 0, 1]
    assert global_sign_flip([row(differences)] * 10) == sign_flip_p(differences)


def test_the_same_number_in_another_data_set_is_another_unit():
    assert global_sign_flip([row([1, 1]), row([1, 1], "stories")]) == 2.0**-4
    assert global_sign_flip([row([1, 1]), row([1, 1])]) == 2.0**-2


def test_items_join_the_clusters_of_another_row():
    passages = {("facts", i): ("facts", "passage", i // 3) for i in range(6)}
    items = row([1, 1, 0, 1, 1, 1])
    clusters = {("facts", "passage", 0): 2.0, ("facts", "passage", 1): 1.0}
    assert global_sign_flip([items, clusters], passages) == 0.25
    assert global_sign_flip([items, clusters]) < 0.25  # without the map the items would flip on their own
    by_hand = {("facts", "passage", 0): 2.0, ("facts", "passage", 1): 3.0}
    assert global_sign_flip([items, row([-1, 2, 1], "b")], passages) == global_sign_flip(
        [by_hand, row([-1, 2, 1], "b")]
    )


def test_units_are_followed_to_the_coarsest():
    chain = {"item 1": "passage 1", "item 2": "passage 2", "passage 1": "document", "passage 2": "document"}
    assert global_sign_flip([{"item 1": 1.0, "item 2": 1.0}], {**chain, "document": "document"}) == 0.5


def test_differences_that_cancel_within_a_cluster_are_no_change():
    assert global_sign_flip([{"a": 0.1, "b": -0.1}], {"a": "c", "b": "c"}) == 1.0


def test_no_rows_or_no_change():
    assert global_sign_flip([]) == 1.0
    assert global_sign_flip([{}, row([0.0, 0.0])]) == 1.0


def test_extreme_scales_keep_their_weight():
    assert global_sign_flip([row([1e-200, 2e-200]), row([1e200, 3e200], "b")]) == 2.0**-4


def test_the_order_of_rows_and_units_changes_no_digit():
    rng = random.Random(3)
    rows = [{("facts", i): rng.gauss(0.1, 1) for i in range(60)} for _ in range(5)]
    expected = global_sign_flip(rows)
    for _ in range(5):
        rng.shuffle(rows)
        shuffled = [dict(rng.sample(sorted(r.items()), len(r))) for r in rows]
        assert global_sign_flip(shuffled) == expected


def test_refusals():
    with pytest.raises(ValueError, match=r"row 1 has the difference nan at \('facts', 0\)"):
        global_sign_flip([{}, row([math.nan])])
    with pytest.raises(ValueError, match="lead back"):
        global_sign_flip([{"a": 1.0}], {"a": "b", "b": "a"})

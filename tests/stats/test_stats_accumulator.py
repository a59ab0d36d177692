"""The NLL accumulator: exact sums, masks, merging, and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.stats import NLLAccumulator


def accumulated(*batches, **options) -> NLLAccumulator:
    accumulator = NLLAccumulator()
    for batch in batches:
        accumulator.add(batch, **options)
    return accumulator


def test_worked_numbers_of_strided_windows():
    result = accumulated(np.log([2, 3, 4, 3, 4]), n_bytes=5).result()
    assert result["nll_sum"] == pytest.approx(5.662960480135946, rel=1e-15)
    assert result["nll_mean"] == pytest.approx(1.1325920960271891, rel=1e-15)
    assert result["ppl"] == pytest.approx(3.103691147830719, rel=1e-15)
    assert result["bpb"] == pytest.approx(1.6339850002884624, rel=1e-15)
    assert (result["n_tokens"], result["n_bytes"]) == (5, 5)
    assert list(result) == ["nll_sum", "n_tokens", "n_bytes", "nll_mean", "ppl", "bits_per_token", "bpb"]


def test_bytes_add_up_over_calls():
    accumulator = NLLAccumulator()
    accumulator.add([math.log(2.0)], n_bytes=3)
    accumulator.add([math.log(4.0)], n_bytes=5)
    result = accumulator.result()
    assert result["n_bytes"] == 8
    assert result["bpb"] == pytest.approx(3 / 8, rel=1e-15)


def test_perplexity_with_padding():
    accumulator = NLLAccumulator()
    padded = np.log([[2, 2, 1e9, 1e9], [4, 4, 4, 4]])
    accumulator.add(padded, mask=[[1, 1, 0, 0], [1, 1, 1, 1]], n_bytes=8)
    result = accumulator.result()
    assert result["ppl"] == pytest.approx(3.174802103936399, rel=1e-14)
    assert result["bits_per_token"] == pytest.approx(5 / 3, rel=1e-14)
    assert result["bpb"] == pytest.approx(10 / 8, rel=1e-14)
    assert result["n_tokens"] == 6


def test_a_uniform_byte_model_has_exactly_eight_bits():
    assert accumulated([math.log(256.0)] * 4, n_bytes=4).result()["bpb"] == 8.0


def test_without_bytes_bits_per_byte_is_nan():
    assert math.isnan(accumulated([1.0]).result()["bpb"])


def test_small_values_after_a_large_one_are_not_lost():
    accumulator = accumulated([1e16])
    for _ in range(1000):
        accumulator.add([1.0])
    assert accumulator.result()["nll_sum"] == 1e16 + 1000
    naive = 1e16
    for _ in range(1000):
        naive += 1.0
    assert naive != 1e16 + 1000  # what plain addition gives


@given(st.lists(st.lists(st.floats(0, 1e12), max_size=5), min_size=1, max_size=6).filter(lambda rows: any(rows)))
@settings(max_examples=60, deadline=None)
def test_sum_is_right_to_the_last_digits(batches):
    total = sum((Fraction(value) for batch in batches for value in batch), Fraction())
    result = accumulated(*batches).result()
    assert abs(Fraction(result["nll_sum"]) - total) <= total * Fraction(1, 2**51)
    assert result["n_tokens"] == sum(map(len, batches))


def test_merge_in_any_order_agrees():
    parts = [[1e15, 3.0], [0.1] * 7, [1e-9, 2.5], [123456.789]]
    whole = accumulated(*parts, n_bytes=2).result()
    for order in permutations(range(4)):
        merged = NLLAccumulator()
        for part in order:
            merged.merge(accumulated(parts[part], n_bytes=2))
        result = merged.result()
        assert result["nll_sum"] == pytest.approx(whole["nll_sum"], rel=1e-15)
        assert (result["n_tokens"], result["n_bytes"]) == (12, 8)


def test_merge_leaves_the_other_one_alone_and_doubles_with_itself():
    other = accumulated([1.0, 2.0], n_bytes=3)
    before = other.result()
    NLLAccumulator().merge(other)
    assert other.result() == before
    other.merge(other)
    assert other.result()["nll_sum"] == 6.0
    assert (other.result()["n_tokens"], other.result()["n_bytes"]) == (4, 6)


def test_infinite_and_huge_values():
    assert accumulated([math.inf, 1.0], [2.0]).result()["nll_sum"] == math.inf
    assert accumulated([math.inf], [math.inf]).result()["ppl"] == math.inf
    assert accumulated([1e308, 1e308], [1.0]).result()["nll_sum"] == math.inf
    large = accumulated([1000.0]).result()
    assert large["ppl"] == math.inf
    assert large["nll_mean"] == 1000.0


def test_masked_values_are_not_looked_at():
    accumulator = NLLAccumulator()
    accumulator.add([math.nan, 1.5, -3.0], mask=[False, True, False])
    assert accumulator.result()["nll_sum"] == 1.5
    assert accumulator.result()["n_tokens"] == 1


@pytest.mark.parametrize(
    ("nll", "options", "message"),
    [
        ([1.0, math.nan], {}, "number 1 is nan"),
        ([-0.5], {}, "is -0.5, expected >= 0"),
        ([1.0], {"n_bytes": -1}, "n_bytes is -1"),
        ([1.0], {"n_bytes": 1.5}, "n_bytes is 1.5"),
        ([1.0, 2.0], {"mask": [True]}, r"mask has shape \(1,\)"),
        ([[1.0, 2.0]], {"mask": [True, True]}, r"mask has shape \(2,\)"),
        ([1.0, 2.0], {"mask": [0.5, 1.0]}, "other values than 0 and 1"),
        (["a"], {}, "cannot be read as numbers"),
    ],
)
def test_refusals_add_nothing(nll, options, message):
    accumulator = accumulated([1.0], n_bytes=2)
    with pytest.raises(ValueError, match=message):
        accumulator.add(nll, **options)
    result = accumulator.result()
    assert (result["nll_sum"], result["n_tokens"], result["n_bytes"]) == (1.0, 1, 2)


def test_no_tokens():
    with pytest.raises(ValueError, match="no tokens"):
        NLLAccumulator().result()
    empty = NLLAccumulator()
    empty.add([1.0], mask=[False], n_bytes=4)
    with pytest.raises(ValueError, match="no tokens"):
        empty.result()
    assert "n_tokens=0" in repr(empty)

"""Beam search beside an independent implementation, full enumeration and the worked example; states; batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.scoring.decode import Hypothesis, beam_search, beam_search_batch, decode_sources, greedy_decode
from evalsuite.scoring.state import select_state

torch.set_num_threads(1)
Logits = Callable[[tuple[int, ...]], list[float]]
"""A model by prefix: the tokens behind bos to the logits of the next one."""

EOS, A, B = 0, 1, 2


def step_of(*models: Logits) -> Callable[..., Any]:
    """A step function over rows of ``(model number, prefix)``, as nested arrays and tensors."""

    def step(tokens: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        prefix = np.column_stack([state["prefix"][0], tokens])  # bos first
        rows = zip(state["model"].tolist(), prefix.tolist(), strict=True)
        logits = [models[number](tuple(row[1:])) for number, row in rows]
        return np.array(logits), {"prefix": (prefix,), "model": state["model"]}

    return step


def start_of(n: int) -> dict[str, Any]:
    return {"prefix": (np.empty((n, 0), dtype=np.int64),), "model": torch.arange(n)}


def search(model: Logits, beam: int, max_len: int, penalty: float = 1.0, eos: int = EOS) -> list[Hypothesis]:
    return beam_search(step_of(model), start_of(1), 9, eos, beam, max_len, penalty)


def by_hand(model: Logits, beam: int, max_len: int, penalty: float = 1.0) -> list[Hypothesis]:
    """Beam search from the rules, one prefix at a time and with plain sorting."""
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    final: list[Hypothesis] = []

    def close(tokens: tuple[int, ...], total: float, finished: bool) -> None:
        final.append(Hypothesis(tokens, total, total / len(tokens) ** penalty, finished))

    for _ in range(max_len):
        candidates = []
        for tokens, total in live:
            for token, lp in enumerate(torch.log_softmax(torch.tensor(model(tokens), dtype=torch.float64), 0).tolist()):
                if math.isfinite(total + lp):
                    candidates.append(((*tokens, token), total + lp))
        candidates.sort(key=lambda one: -one[1])  # stable
        live = []
        for tokens, total in candidates[: beam - len(final)]:
            if tokens[-1] == EOS:
                close(tokens, total, True)
            else:
                live.append((tokens, total))
    for tokens, total in live:
        close(tokens, total, False)
    return sorted(final, key=lambda one: one.score, reverse=True)


def seeded(seed: int, vocabulary: int = 4, values: Sequence[float] | None = None) -> Logits:
    """Logits that depend on the whole prefix: normal ones, or drawn from few values, so that many are equal."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        rng = np.random.default_rng([seed, len(prefix), *prefix])
        drawn = rng.normal(size=vocabulary) if values is None else rng.choice(values, vocabulary)
        return [float(value) for value in drawn]

    return logits


def assert_same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    assert [(one.tokens, one.finished) for one in found] == [(one.tokens, one.finished) for one in expected]
    np.testing.assert_allclose([one.logprob for one in found], [one.logprob for one in expected], rtol=1e-12)
    np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=1e-12)


def log_p(prefix: tuple[int, ...]) -> list[float]:
    """P(.|bos) = .1 .5 .4, P(.|a) = .2 .1 .7, P(.|b) = .9 .05 .05 over eos, a, b."""
    table = {(): [0.1, 0.5, 0.4], (A,): [0.2, 0.1, 0.7], (B,): [0.9, 0.05, 0.05]}
    return [math.log(p) for p in table[prefix]]


def test_the_worked_example() -> None:
    calls = []
    step = step_of(log_p)

    def counting(tokens: np.ndarray, state: Any) -> Any:
        calls.append(tokens.tolist())
        return step(tokens, state)

    found = beam_search(counting, start_of(1), 9, EOS, 2, 2)
    assert calls == [[9], [A, B]]
    assert_same(
        found,
        [
            Hypothesis((B, EOS), math.log(0.36), math.log(0.36) / 2, True),
            Hypothesis((A, B), math.log(0.35), math.log(0.35) / 2, False),
        ],
    )
    greedy = greedy_decode(step, start_of(1), 9, EOS, 2)
    assert_same([greedy], [Hypothesis((A, B), math.log(0.35), math.log(0.35), False)])


@pytest.mark.parametrize("beam", [1, 2, 3, 1024])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_every_step_by_hand(beam: int, penalty: float) -> None:
    for seed in range(8):
        assert_same(search(seeded(seed), beam, 5, penalty), by_hand(seeded(seed), beam, 5, penalty))


def test_a_beam_that_drops_nothing_finds_every_sequence() -> None:
    model = seeded(3)
    expected = []
    for length in range(1, 6):
        for tokens in itertools.product(range(4), repeat=length):
            finished = tokens[-1] == EOS
            if EOS in tokens[:-1] or (length < 5 and not finished):
                continue
            total = 0.0
            for i, token in enumerate(tokens):
                logits = model(tokens[:i])
                total += logits[token] - math.log(math.fsum(map(math.exp, logits)))
            expected.append(Hypothesis(tokens, total, total / length, finished))
    found = search(model, 1024, 5)
    assert len(found) == len(expected) == 364
    assert_same(found, sorted(expected, key=lambda one: -one.score))
    assert math.fsum(math.exp(one.logprob) for one in found) == pytest.approx(1)


VALUES = st.sampled_from([(0.0,), (0.0, 1.0), (-math.inf, 0.0), (-math.inf, -1.0, 0.0, 1.0)])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), VALUES, st.integers(1, 5))
def test_equal_and_forbidden_tokens(seed: int, beam: int, values: tuple[float, ...], vocabulary: int) -> None:
    """Ties go to the lower beam and then to the lower token; a token of minus infinity is never taken."""
    model = seeded(seed, vocabulary, values)
    assert_same(search(model, beam, 4), by_hand(model, beam, 4))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 10**6), max_size=6), st.integers(1, 5), VALUES | st.none(), st.integers(1, 5))
def test_sources_together_are_sources_alone(
    seeds: list[int], beam: int, values: tuple[float, ...] | None, max_len: int
) -> None:
    models = [seeded(seed, 4, values) for seed in seeds]
    found = beam_search_batch(step_of(*models), start_of(len(models)), len(models), 9, EOS, beam, max_len)
    for ours, model in zip(found, models, strict=True):
        assert_same(ours, search(model, beam, max_len))


def test_with_a_large_vocabulary_the_order_is_that_of_a_stable_sort() -> None:
    rng = np.random.default_rng(0)
    logits = rng.integers(-3, 6, (3, 20_000)).astype(np.float32)  # thousands of ties
    logits[:, 1] = -np.inf  # eos

    def step(tokens: np.ndarray, state: None) -> tuple[torch.Tensor, None]:
        return torch.from_numpy(logits[: len(tokens)]), state

    found = beam_search(step, None, 9, 1, 3, 2)
    first = np.argsort(-logits[0], kind="stable")[:3]
    lp = logits.astype(np.float64) - np.log(np.exp(logits.astype(np.float64)).sum(axis=1, keepdims=True))
    total = (lp[0, first][:, None] + lp).ravel()
    expected = np.argsort(-total, kind="stable")[:3]
    assert [one.tokens for one in found] == [(first[at // 20_000], at % 20_000) for at in expected]


def test_finished_hypotheses_narrow_the_beam_and_done_sources_leave_the_batch() -> None:
    def likes_eos(prefix: tuple[int, ...]) -> list[float]:
        return [9.0, 1.0, 0.0]

    def never_ends(prefix: tuple[int, ...]) -> list[float]:
        return [-math.inf, 1.0, 0.0]

    rows = []
    step = step_of(likes_eos, never_ends)

    def counting(tokens: np.ndarray, state: Any) -> Any:
        rows.append(state["model"].tolist())
        return step(tokens, state)

    first, second = beam_search_batch(counting, start_of(2), 2, 9, EOS, 2, 4)
    assert rows == [[0, 1], [0, 1, 1], [1, 1], [1, 1]]
    assert [one.tokens for one in first] == [(EOS,), (A, EOS)]
    assert [one.finished for one in second] == [False, False]


def test_the_end_token_counts_in_the_length() -> None:
    (best,) = search(lambda prefix: [0.0, -50.0] if prefix else [-50.0, 0.0], 1, 5, penalty=2.0)
    assert best.tokens == (A, EOS)
    assert best.score == best.logprob / 4


def test_equal_scores_stay_in_the_order_in_which_they_were_final() -> None:
    """Two symmetric tokens, each then finished: (eos), (a, eos) and (b, eos) have equal scores under penalty 0."""
    found = search(lambda prefix: [math.log(1 / 2), math.log(1 / 2)] if not prefix else [0.0, -math.inf], 2, 3, 0.0)
    assert [one.tokens for one in found] == [(EOS,), (A, EOS)]
    assert found[0].score == found[1].score


@pytest.mark.parametrize("bad", [-math.inf, math.nan])
def test_a_model_without_a_finite_probability_gives_nothing(bad: float) -> None:
    assert search(lambda prefix: [bad] * 3, 4, 5) == []
    with pytest.raises(ValueError, match="nothing to decode"):
        greedy_decode(step_of(lambda prefix: [bad] * 3), start_of(1), 9, EOS, 5)


def test_a_hypothesis_that_meets_nan_is_dropped_and_its_source_alone() -> None:
    def breaks(prefix: tuple[int, ...]) -> list[float]:
        return [math.nan, 0.0, 0.0] if prefix == (A,) else [0.0, 2.0, 1.0]

    found = beam_search_batch(step_of(breaks, log_p), start_of(2), 2, 9, EOS, 2, 2)
    assert [one.tokens for one in found[0]] == [(B, A), (B, B)]
    assert found[1] == search(log_p, 2, 2)


def test_a_token_may_be_as_improbable_as_it_likes() -> None:
    found = search(lambda prefix: [0.0, -5000.0], 2, 1)
    assert [(one.tokens, one.logprob) for one in found] == [((EOS,), 0.0), ((A,), -5000.0)]


@pytest.mark.parametrize("as_type", [np.asarray, torch.tensor, np.float32, list])
def test_logits_of_any_kind(as_type: Callable[[Any], Any]) -> None:
    def step(tokens: np.ndarray, state: None) -> Any:
        return as_type(np.tile([0.0, 2.0, 1.0], (len(tokens), 1))), state

    assert beam_search(step, None, 9, EOS, 1, 2)[0].tokens == (A, A)


def test_logits_need_not_be_normalised_and_the_sum_is_in_float64() -> None:
    logits = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    shifted = beam_search(lambda tokens, state: (logits[None] + np.float64(100), state), None, 9, EOS, 1, 1)
    exact = logits.astype(np.float64)
    assert shifted[0].logprob == pytest.approx(exact[2] - math.log(np.exp(exact).sum()), rel=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beam_size": 0}, "beam_size is 0, expected at least 1"),
        ({"max_len": 0}, "max_len is 0, expected at least 1"),
        ({"length_penalty": -0.5}, "length_penalty is -0.5, expected at least 0"),
        ({"length_penalty": math.nan}, "length_penalty is nan"),
    ],
)
def test_arguments_out_of_range_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        beam_search(step_of(log_p), start_of(1), 9, EOS, **{"beam_size": 2, "max_len": 2} | change)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 3, 1), (1, 0)])
def test_logits_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"step_fn gave logits of shape .*, expected \[1, V\]"):
        beam_search(lambda tokens, state: (np.zeros(shape), state), None, 9, EOS, 2, 2)


class Pair(NamedTuple):
    left: Any
    right: Any


def test_rows_of_a_state_are_picked_wherever_they_are() -> None:
    tensor, array = torch.arange(6).view(3, 2), np.arange(3.0)
    state = {"pair": Pair(tensor, [array, None]), "empty": (), "rest": (2, "gru", np.array(5.0), torch.tensor(6))}
    picked = select_state(state, np.array([2, 0, 2, 2]))
    assert isinstance(picked["pair"], Pair)
    assert picked["pair"].left.tolist() == [[4, 5], [0, 1], [4, 5], [4, 5]]
    assert isinstance(picked["pair"].right, list)
    assert picked["pair"].right[0].tolist() == [2.0, 0.0, 2.0, 2.0]
    assert (picked["pair"].right[1], picked["empty"], picked["rest"]) == (None, (), state["rest"])
    assert tensor.tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("state", [{1, 2}, [frozenset({1})], {"x": object()}])
def test_a_state_that_may_hide_rows_is_refused(state: Any) -> None:
    with pytest.raises(TypeError, match=r"a decoder's state holds a (set|frozenset|object)"):
        select_state(state, np.array([0]))


class Copier:
    """Says the source again: a peaked distribution over the token at the hypothesis's length, eos behind the end."""

    vocab_size, src_vocab, max_len = 8, 8, 6
    starts: list[list[int]]

    def __init__(self, **attributes: Any) -> None:
        self.__dict__ |= {"starts": []} | attributes

    def start(self, src: torch.Tensor, real: torch.Tensor) -> Any:
        self.starts.append(list(src.shape))
        return {"src": torch.where(real, src, 2), "at": torch.zeros(len(src), dtype=torch.int64)}

    def step(self, tokens: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        src = torch.nn.functional.pad(state["src"], (0, 9), value=2)
        wanted = src.gather(1, state["at"][:, None])
        logits = torch.randn(8, generator=torch.Generator().manual_seed(0)).expand(len(tokens), 8)
        return logits.scatter(1, wanted, 5.0), {**state, "at": state["at"] + 1}


SOURCES = [[3], [4, 5, 6, 7, 3, 4], [5, 5], [0, 7], [6, 0, 6]]
RULES = {"bos": 1, "eos": 2, "max_len": 7}


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(len(SOURCES))), st.integers(1, 40), st.integers(1, 3))
def test_sources_do_not_depend_on_batch_size_order_or_padding(order: list[int], rows: int, beam: int) -> None:
    alone = [decode_sources(Copier(), [source], **RULES, beam_size=beam)[0] for source in SOURCES]
    assert [one[0].tokens for one in alone] == [(*source, 2) for source in SOURCES]
    found = decode_sources(Copier(), [SOURCES[i] for i in order], **RULES, beam_size=beam, rows=rows)
    assert found == [alone[i] for i in order]


def test_batches_hold_sources_of_like_length() -> None:
    model = Copier()
    decode_sources(model, SOURCES, **RULES, beam_size=2, rows=5)
    assert model.starts == [[2, 6], [2, 2], [1, 1]]
    assert decode_sources(model, [], **RULES, beam_size=2) == []


def test_a_large_vocabulary_or_a_long_answer_makes_batches_small() -> None:
    wide, long = Copier(src_vocab=8), Copier()
    wide.vocab_size = 1 << 21  # two rows of logits at once
    decode_sources(wide, SOURCES, **RULES, beam_size=2)
    assert wide.starts == [[1, 6], [1, 3], [1, 2], [1, 2], [1, 1]]
    decode_sources(long, SOURCES, bos=1, eos=2, max_len=1 << 13, beam_size=2)
    assert long.starts == [[2, 6], [2, 2], [1, 1]]


def test_the_pad_id_is_hidden_only_where_the_model_says_so() -> None:
    best = [one[0].tokens for one in decode_sources(Copier(), SOURCES[3:], **RULES, beam_size=1, pad_id=0)]
    assert best == [(0, 7, 2), (6, 0, 6, 2)]
    hides = Copier(masks_pad=True)
    assert decode_sources(hides, SOURCES[3:], **RULES, beam_size=1, pad_id=0)[1][0].tokens == (6, 2)
    assert decode_sources(hides, SOURCES[3:], **RULES, beam_size=1, pad_id=5)[1][0].tokens == (6, 0, 6, 2)


@pytest.mark.parametrize(
    ("sources", "change", "message"),
    [
        ([[3], []], {}, "source 1: 0 tokens are too few"),
        ([[3], [8]], {}, r"source 1: token id 8 is outside the vocabulary \[0, 8\)"),
        ([[3] * 7], {}, "source 0 has 7 tokens, the model reads at most 6"),
        ([[3]], {"bos": 8}, r"bos 8 is outside the vocabulary \[0, 8\)"),
        ([[3]], {"eos": -1}, "eos -1 is outside"),
        ([[3]], {"beam_size": 0}, "beam_size is 0"),
        ([[3]], {"max_len": 0}, "max_len is 0"),
    ],
)
def test_sources_that_do_not_fit_are_named(sources: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_sources(Copier(), sources, **RULES | {"beam_size": 2} | change)

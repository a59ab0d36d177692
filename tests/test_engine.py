"""The engine gives what scoring each span alone gives, whatever the batches; and refuses what a model cannot read."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.scoring.engine import span_nlls
from evalsuite.scoring.model import Span
from evalsuite.zoo.families.gpt import GPT, GPTConfig
from evalsuite.zoo.families.rnnlm import RNNLM, RNNLMConfig

torch.set_num_threads(1)

VOCAB, LONGEST = 7, 12


def tiny(family, seed, scale):
    torch.manual_seed(seed)
    if family == "gpt":
        model = GPT(GPTConfig(VOCAB, LONGEST, 8, 2, 2, 16, tie_word_embeddings=bool(seed % 2)))
    else:
        model = RNNLM(RNNLMConfig(VOCAB, family, 5, 6, 1 + seed % 2))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return model.eval()


def plain(model, span):
    """One forward pass a span on the whole span, float64 log-softmax."""
    with torch.no_grad():
        logits, _ = model(span.tokens[None])
    rows = torch.log_softmax(logits[0].double(), -1).numpy()
    nlls = [-rows[t - 1, span.tokens[t]] for t in range(span.first, len(span.tokens))]
    return np.array(nlls), max(1.0, float(logits.abs().max()))


@st.composite
def random_spans(draw):
    tokens = draw(st.lists(st.integers(0, VOCAB - 1), min_size=2, max_size=LONGEST))
    return Span(np.array(tokens), draw(st.integers(1, len(tokens) - 1)))


@settings(max_examples=60, deadline=None)
@given(
    family=st.sampled_from(["gpt", "rnn", "gru", "lstm"]),
    seed=st.integers(0, 1000),
    scale=st.sampled_from([0.02, 0.5, 2.0]),
    spans=st.lists(random_spans(), min_size=1, max_size=8),
    batch_tokens=st.sampled_from([1, 7, 24, 4096]),
)
def test_engine_equals_scoring_each_span_alone(family, seed, scale, spans, batch_tokens):
    model = tiny(family, seed, scale)
    found = span_nlls(model, spans, batch_tokens=batch_tokens)
    backwards = span_nlls(model, spans[::-1], batch_tokens=batch_tokens)[::-1]
    for span, one, other in zip(spans, found, backwards, strict=True):
        expected, size = plain(model, span)
        assert one.dtype == np.float64
        assert one.shape == (len(span.tokens) - span.first,)
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-5 * size)
        np.testing.assert_allclose(other, expected, rtol=0, atol=1e-5 * size)


def test_padding_is_not_scored_and_token_zero_is():
    model = tiny("gru", 0, 0.5)
    short, long = Span(np.array([0, 0, 0]), 1), Span(np.arange(12) % VOCAB, 1)
    (alone,) = span_nlls(model, [short])
    together, _ = span_nlls(model, [short, long])
    assert len(together) == 2
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_spans_that_share_a_prefix_do_not_read_each_other():
    model = tiny("gpt", 1, 0.5)
    spans = [Span(np.array([1, 2, 3, 4]), 2), Span(np.array([1, 2, 3, 4, 5]), 3), Span(np.array([1, 2, 6]), 2)]
    for span, together in zip(spans, span_nlls(model, spans), strict=True):
        np.testing.assert_allclose(together, span_nlls(model, [span])[0], atol=1e-6)


def test_the_output_layer_runs_on_scored_positions_only():
    class Counting(RNNLM):
        rows = 0

        def logits(self, hidden):
            self.rows += len(hidden)
            return super().logits(hidden)

    model = Counting(RNNLMConfig(VOCAB, "rnn", 3, 4, 1)).eval()
    span_nlls(model, [Span(np.arange(7), 6), Span(np.arange(3), 1)])
    assert model.rows == 3


def test_no_spans_give_no_results():
    assert span_nlls(tiny("gpt", 0, 0.5), []) == []


def test_the_mode_of_the_model_is_left_alone():
    model = tiny("gpt", 0, 0.5).train()
    span_nlls(model, [Span(np.arange(3), 1)])
    assert model.training


def test_non_finite_values_are_returned_as_they_are():
    model = tiny("rnn", 0, 0.5)
    with torch.no_grad():
        model.out.bias[3] = float("nan")
    (found,) = span_nlls(model, [Span(np.arange(4), 1)])
    assert np.isnan(found).all()
    with torch.no_grad():
        model.out.bias[3] = float("-inf")
    (found,) = span_nlls(model, [Span(np.array([1, 3, 2]), 1)])
    assert found[0] == np.inf
    assert np.isfinite(found[1])


def test_a_span_beyond_the_window_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match="span 1 has 13 tokens, the model reads at most 12"):
        span_nlls(tiny("gpt", 0, 0.5), [Span(np.arange(2), 1), Span(np.zeros(13, np.int64), 1)])


@pytest.mark.parametrize("bad", [-1, VOCAB])
def test_an_id_outside_the_vocabulary_is_refused(bad):
    with pytest.raises(ValueError, match=rf"span 0: token id {bad} is outside the vocabulary \[0, 7\)"):
        span_nlls(tiny("gru", 0, 0.5), [Span(np.array([1, bad, 2]), 1)])

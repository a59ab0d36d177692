"""Strided perplexity, multiple choice and comparison: the worked examples, and the properties behind them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import evalsuite
from evalsuite.lm import (
    ByteTokenizer,
    choice_log_likelihoods,
    choice_spans,
    compare,
    eval_ppl,
    log_probs,
    run_task,
    score_choices,
    span_nlls,
    strided_spans,
    token_nlls,
)
from evalsuite.result import Result
from evalsuite.scoring.model import Span
from evalsuite.stats import PCG32, bootstrap_ci
from evalsuite.tasks.items import ChoiceItem
from evalsuite.zoo.families.bigram import BigramLM
from evalsuite.zoo.families.rnnlm import RNNLM, RNNLMConfig

torch.set_num_threads(1)


class ContextLength:
    """Gives the true next token probability 1 / (j + 2) at window position j, so an NLL tells its context."""

    def __init__(self, vocab=12):
        self.vocab = vocab
        self.windows = []

    def __call__(self, ids):
        assert isinstance(ids, np.ndarray)
        assert ids.dtype == np.int64
        assert ids.shape[0] == 1
        self.windows.append(ids[0].tolist())
        length = ids.shape[1]
        p = np.full((1, length, self.vocab), 1e-3)
        for j in range(length):
            right = 1 / (j + 2)
            p[0, j] = (1 - right) / (self.vocab - 1)
            p[0, j, ids[0, (j + 1) % length]] = right
        return np.log(p)


def table_model(table):
    """A model whose next-token probabilities depend on the last token: {(before, after): p}, token 0 the rest."""

    def model(ids):
        logits = np.full((1, ids.shape[1], 256), np.log(1e-30))
        for j, token in enumerate(ids[0]):
            for (before, after), p in table.items():
                if token == ord(before):
                    logits[0, j, ord(after)] = math.log(p)
            rest = 1 - np.exp(logits[0, j]).sum()
            logits[0, j, 0] = math.log(max(rest, 1e-30))
        return logits

    return model


CHOICES = table_model({("a", "b"): 0.4, ("b", "b"): 0.9, ("a", "c"): 0.45})


# Strided windows


@pytest.mark.parametrize(
    ("n", "ctx_len", "stride", "windows", "inverse_p"),
    [
        (6, 4, 2, [[0, 1, 2, 3], [2, 3, 4, 5]], [2, 3, 4, 3, 4]),
        (6, 4, 3, [[0, 1, 2, 3], [3, 4, 5]], [2, 3, 4, 2, 3]),
        (10, 5, 2, [[0, 1, 2, 3, 4], [2, 3, 4, 5, 6], [4, 5, 6, 7, 8], [6, 7, 8, 9]], [2, 3, 4, 5, 4, 5, 4, 5, 4]),
        (3, 8, 4, [[0, 1, 2]], [2, 3]),
    ],
)
def test_hand_example_strided_windows(n, ctx_len, stride, windows, inverse_p):
    model = ContextLength()
    nlls = token_nlls(model, np.arange(n), ctx_len, stride)
    assert model.windows == windows
    np.testing.assert_allclose(np.exp(nlls), inverse_p, rtol=1e-12)


def test_hand_example_perplexity():
    found = eval_ppl(ContextLength(), np.arange(6), 4, 2, n_bytes=5)
    expected = {
        "nll_sum": 5.662960480135946,
        "n_tokens": 5.0,
        "nll_mean": 1.1325920960271891,
        "ppl": 288 ** (1 / 5),
        "bits_per_token": 1.1325920960271891 / math.log(2),
        "ppl_lo": 2.1795667455160914,
        "ppl_hi": 4.419639252131198,
        "bpb": 1.6339850002884624,
        "bpb_lo": 1.1240413844446706,
        "bpb_hi": 2.1439286161322544,
    }
    assert found == pytest.approx(expected, rel=1e-10)
    assert all(type(value) is float for value in found.values())


def test_bytes_and_intervals_appear_only_where_they_mean_something():
    assert set(eval_ppl(ContextLength(), np.arange(6), 4, 3)) == {
        "nll_sum", "n_tokens", "nll_mean", "ppl", "bits_per_token", "ppl_lo", "ppl_hi",
    }  # fmt: skip
    assert "ppl_lo" not in eval_ppl(ContextLength(), np.arange(2), 4, 3, n_bytes=1)
    assert "bpb" in eval_ppl(ContextLength(), np.arange(2), 4, 3, n_bytes=1)
    assert {"ppl_lo", "bpb_lo"} <= eval_ppl(ContextLength(), np.arange(3), 4, 3, n_bytes=1).keys()


@settings(max_examples=50, deadline=None)
@given(n=st.integers(2, 40), ctx_len=st.integers(2, 12), data=st.data())
def test_every_token_is_scored_once_within_the_context_bounds(n, ctx_len, data):
    stride = data.draw(st.integers(1, ctx_len - 1))
    spans = strided_spans(np.arange(n), ctx_len, stride)
    scored = np.concatenate([span.tokens[span.first :] for span in spans])
    np.testing.assert_array_equal(scored, np.arange(1, n))
    for number, span in enumerate(spans):
        assert span.first >= (1 if number == 0 else ctx_len - stride)
        assert len(span.tokens) <= ctx_len
        np.testing.assert_array_equal(span.tokens, np.arange(span.tokens[0], span.tokens[0] + len(span.tokens)))
    nlls = token_nlls(ContextLength(n), np.arange(n), ctx_len, stride)
    contexts = np.round(np.exp(nlls)) - 1  # a token at window position j + 1 has read j + 1 tokens
    assert contexts.max() <= ctx_len - 1
    assert (contexts[ctx_len - 1 :] >= ctx_len - stride).all()


@pytest.mark.parametrize(("ctx_len", "stride"), [(4, 4), (4, 5), (4, 0), (1, 1), (4, -1)])
def test_a_stride_that_leaves_a_token_without_context_is_refused(ctx_len, stride):
    with pytest.raises(ValueError, match=f"stride {stride} does not fit ctx_len {ctx_len}"):
        token_nlls(ContextLength(), np.arange(6), ctx_len, stride)


@pytest.mark.parametrize("ids", [[1], [], [[1, 2, 3]], [0.5, 1.5]])
def test_ids_that_cannot_be_scored_are_refused(ids):
    with pytest.raises(ValueError, match="token"):
        token_nlls(ContextLength(), np.array(ids), 4, 2)


def test_uniform_bigram_is_exactly_eight_bits_a_byte():
    model = BigramLM(np.zeros((256, 256), np.float32))
    found = eval_ppl(model, np.frombuffer(b"hello", np.uint8), 4, 2, n_bytes=4)
    assert (found["bpb"], found["bpb_lo"], found["bpb_hi"]) == (8.0, 8.0, 8.0)


# Models of every kind


def test_log_probs_accepts_every_kind_of_output():
    logits = np.random.default_rng(0).normal(size=(1, 3, 5))
    expected = logits[0] - np.log(np.exp(logits[0]).sum(-1, keepdims=True))

    class Holder:
        def __init__(self, **fields):
            self.__dict__.update(fields)

    tensor = torch.from_numpy(logits)
    outputs = [
        logits,
        (logits, None),
        [*logits],
        tensor,
        (tensor.requires_grad_(), None),
        Holder(logits=tensor),
        Holder(data=logits),
        (Holder(data=logits),),
    ]
    for output in outputs:
        found = log_probs(lambda ids, output=output: output, np.array([1, 2, 3]))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, atol=1e-12)
    half = log_probs(lambda ids: tensor.bfloat16(), np.array([1, 2, 3]))
    np.testing.assert_allclose(half, expected, atol=3e-2)


def test_a_torch_module_is_given_a_tensor_without_gradients():
    class Module(torch.nn.Module):
        def forward(self, ids):
            assert isinstance(ids, torch.Tensor)
            assert ids.dtype == torch.int64
            assert not torch.is_grad_enabled()
            return torch.zeros(*ids.shape, 4), None

    np.testing.assert_allclose(token_nlls(Module(), np.array([0, 1, 2]), 2, 1), [math.log(4)] * 2)


@pytest.mark.parametrize("shape", [(1, 2, 5), (3, 5), (2, 3, 5)])
def test_another_number_of_positions_is_refused(shape):
    with pytest.raises(ValueError, match="the model gave logits of shape"):
        log_probs(lambda ids: np.zeros(shape), np.array([1, 2, 3]))


def test_a_token_beyond_the_models_vocabulary_is_refused():
    with pytest.raises(ValueError, match=r"token id 5 is outside the vocabulary \[0, 5\)"):
        token_nlls(lambda ids: np.zeros((1, ids.shape[1], 5)), np.array([1, 5]), 4, 2)


def test_our_models_and_a_callable_around_them_agree():
    torch.manual_seed(0)
    model = RNNLM(RNNLMConfig(9, "lstm", 4, 6, 2)).eval()
    ids = np.random.default_rng(1).integers(0, 9, 30)
    plain = token_nlls(lambda window: model(window), ids, 8, 3)
    np.testing.assert_allclose(token_nlls(model, ids, 8, 3), plain, atol=1e-6)


def test_a_sequence_model_scores_the_tail_of_a_span():
    model = BigramLM(np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32))
    tokens = np.array([0, 3, 1, 4])
    (found,) = span_nlls(model, [Span(tokens, 2)])
    np.testing.assert_array_equal(found, model.nll(tokens)[1:])


# Multiple choice


def test_hand_example_choices():
    tok = ByteTokenizer()
    sums = score_choices(CHOICES, tok, "a", ["bb", "c"], normalize=False)
    np.testing.assert_allclose(sums, [-1.0216512475319812, -0.7985076962177716], rtol=1e-9)
    per_byte = score_choices(CHOICES, tok, "a", ["bb", "c"])
    np.testing.assert_allclose(per_byte, [-0.5108256237659906, -0.7985076962177716], rtol=1e-9)
    assert (sums.argmax(), per_byte.argmax()) == (1, 0)


def test_normalisation_divides_by_bytes_not_characters():
    uniform = BigramLM(np.zeros((256, 256), np.float32))
    found = score_choices(uniform, ByteTokenizer(), "x", ["éé", "abc"])
    np.testing.assert_allclose(found, [-math.log(256)] * 2)


def test_the_context_is_cut_on_the_left():
    spans, truncated = choice_spans(ByteTokenizer(), "abc", ["de", "f"], max_len=4)
    assert [bytes(span.tokens.tolist()) for span in spans] == [b"bcde", b"abcf"]
    assert [span.first for span in spans] == [2, 3]
    assert truncated
    assert not choice_spans(ByteTokenizer(), "abc", ["de"], max_len=5)[1]


@pytest.mark.parametrize(
    ("context", "choices", "max_len", "message"),
    [
        ("", ["b"], None, "context '' has no tokens"),
        ("a", ["b", ""], None, "choice '' has no tokens"),
        ("a", ["bbb"], 3, "choice 'bbb' has 3 tokens, which leaves none for the context within max_len 3"),
        ("a", [], None, "no choices"),
    ],
)
def test_choices_that_cannot_be_scored_are_refused(context, choices, max_len, message):
    with pytest.raises(ValueError, match=message):
        score_choices(CHOICES, ByteTokenizer(), context, choices, max_len=max_len)


def test_a_plain_model_is_called_once_a_choice_in_order():
    model = ContextLength(256)
    score_choices(model, ByteTokenizer(), "a", ["bb", "c"])
    assert model.windows == [[97, 98, 98], [97, 99]]


def test_many_items_in_one_pass_equal_one_item_at_a_time():
    torch.manual_seed(0)
    model = RNNLM(RNNLMConfig(256, "gru", 4, 6, 1)).eval()
    items = [
        ChoiceItem("1", "the quick brown", (" fox", " é"), 0),
        ChoiceItem("2", "a", (" bb", " c", " dddd"), 1),
    ]
    for item, found in zip(items, choice_log_likelihoods(model, ByteTokenizer(), items, 12), strict=True):
        alone = score_choices(model, ByteTokenizer(), item.context, item.choices, normalize=False, max_len=12)
        np.testing.assert_allclose(found.sums, alone, atol=1e-5)
        assert found.n_bytes.tolist() == [len(choice.encode()) for choice in item.choices]
        assert found.n_tokens.tolist() == found.n_bytes.tolist()
        assert found.truncated == (item.id == "1")


def write_items(path, items):
    lines = [json.dumps({"context": c, "choices": choices, "label": label}) for c, choices, label in items]
    path.write_text("\n\n".join(lines) + "\n")
    return path


def test_run_task_scores_items_and_bootstraps(tmp_path):
    # acc takes "c" after "a"; the second item is a tie, which goes to the first choice.
    items = [("a", ["bb", "c"], 0), ("a", ["bb", "c"], 1), ("a", ["c", "c"], 0), ("b", ["b", "c"], 0)]
    path = write_items(tmp_path / "t.jsonl", items)
    found = run_task(CHOICES, ByteTokenizer(), path, "acc", PCG32(3), n_boot=200)
    assert found.per_item.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert (found.value, found.lo, found.hi, found.n) == (0.75, 0.25, 1.0, 4)
    assert (found.value, found.lo, found.hi) == bootstrap_ci(
        found.per_item, lambda x: float(np.mean(x)), 200, 0.05, PCG32(3)
    )
    normed = run_task(CHOICES, ByteTokenizer(), path, "acc_norm", PCG32(3), n_boot=10)
    assert normed.per_item.tolist() == [1.0, 0.0, 1.0, 1.0]


def test_run_task_refuses_a_metric_before_it_reads_the_file(tmp_path):
    with pytest.raises(ValueError, match="metric 'f1': expected 'acc' or 'acc_norm'"):
        run_task(CHOICES, ByteTokenizer(), tmp_path / "none", "f1", PCG32(0))


def test_run_task_refuses_an_empty_file(tmp_path):
    (tmp_path / "t.jsonl").write_text("\n \n")
    with pytest.raises(ValueError, match="no items"):
        run_task(CHOICES, ByteTokenizer(), tmp_path / "t.jsonl", "acc", PCG32(0))


@pytest.mark.parametrize("metric", ["acc", "acc_norm"])
def test_a_non_finite_log_likelihood_never_wins(tmp_path, metric):
    path = write_items(tmp_path / "t.jsonl", [("a", ["b", "c"], 0)])
    with pytest.raises(ValueError, match=r"item 'line-1': non-finite log-likelihood, found \[nan, nan\]"):
        run_task(lambda ids: np.full((1, ids.shape[1], 256), np.nan), ByteTokenizer(), path, metric, PCG32(0))


# Comparison


def result(scores):
    per_item = np.array(scores, dtype=np.float64)
    return Result(per_item.mean(), 0.0, 0.0, len(per_item), per_item)


def test_compare_is_the_paired_permutation_test():
    a, b = result([5, 4, 6]), result([3, 3, 3])
    assert compare(a, b, n_perm=100, rng=PCG32(0)) == 21 / 101
    assert compare(a, b) == compare(a, b, rng=PCG32(0).substream("sample"))


def test_compare_uses_the_pairing():
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=200)
    assert compare(result(difficulty + 0.05), result(difficulty), n_perm=500) < 0.01


def test_compare_refuses_results_on_other_items():
    with pytest.raises(ValueError, match="the same items"):
        compare(result([1, 2]), result([1, 2, 3]))


def test_the_public_names_are_the_same_functions():
    assert evalsuite.token_nlls is token_nlls

r"""Perplexity of a long text and multiple choice by log-likelihood, for any left-to-right language model.

    nll_t  = -ln p(x_t | context)        nats
    ppl    = exp(sum_t nll_t / N)        over the N scored tokens
    bpb    = sum_t nll_t / (n_bytes ln 2)
    LL(c)  = sum_j ln p(c_j | context, c_<j)

A model is a `CausalModel` (scored in batches by the engine), a `SequenceModel`, or any callable for which
``model(ids[None])``, int64 [1, T], returns logits [1, T, V]: a NumPy array, a torch tensor, an object with
``.logits`` or an array in ``.data``, or a tuple whose first item is one of these. A `torch.nn.Module` is given a
tensor, any other callable a NumPy array; both are called once a window, and a module should be in eval mode.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

import evalsuite.stats as stats
from evalsuite.result import Floats, Result
from evalsuite.scoring.ids import token_ids
from evalsuite.scoring.model import CausalModel, SequenceModel, Span
from evalsuite.scoring.windows import strided_spans
from evalsuite.stats import PCG32
from evalsuite.tasks.items import ChoiceItem, read_choices

__all__ = [
    "ByteTokenizer",
    "ChoiceLogLikelihoods",
    "Model",
    "Result",
    "Tokenizer",
    "choice_log_likelihoods",
    "choice_spans",
    "compare",
    "eval_ppl",
    "log_probs",
    "run_task",
    "score_choices",
    "span_nlls",
    "strided_spans",
    "token_nlls",
]

Model = CausalModel | SequenceModel | Callable[[Any], Any]


class Tokenizer(Protocol):
    """Text to token ids."""

    def encode(self, text: str) -> Sequence[int]:
        """The ids of a text."""


class ByteTokenizer:
    """UTF-8 bytes as token ids: one token a byte, a vocabulary of 256."""

    def encode(self, text: str) -> list[int]:
        """The bytes of a text."""
        return list(text.encode("utf-8"))


def log_probs(model: Callable[[Any], Any], ids: ArrayLike) -> Floats:
    """Log-probabilities of every next token, in nats.

    Args:
        model: a callable that gives logits; see the module's docstring.
        ids: int64 [T].

    Returns:
        float64 [T, V]; row t is ln p(. | ids[:t + 1]).

    Raises:
        ValueError: the model gives another shape than [1, T, V].
    """
    tokens = token_ids(ids, at_least=1)[None]  # [1, T]
    torch = sys.modules.get("torch")  # a torch model cannot come from anywhere else
    guard: AbstractContextManager[object] = nullcontext() if torch is None else torch.no_grad()
    with guard:
        is_module = torch is not None and isinstance(model, torch.nn.Module)
        logits = _as_array(model(torch.from_numpy(tokens) if torch is not None and is_module else tokens))
    if logits.ndim != 3 or logits.shape[:2] != tokens.shape:
        raise ValueError(f"the model gave logits of shape {logits.shape} for ids [1, {tokens.shape[1]}]: not [1, T, V]")
    shifted = logits[0] - logits[0].max(axis=-1, keepdims=True)  # [T, V]
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def _as_array(output: Any) -> Floats:
    """What a model returned, as float64, whichever container holds it."""
    if isinstance(output, tuple):
        return _as_array(output[0])
    if hasattr(output, "logits"):
        return _as_array(output.logits)
    if hasattr(output, "detach"):  # float() first: NumPy has no bfloat16
        return np.asarray(output.detach().cpu().float() if output.itemsize < 4 else output.detach().cpu(), np.float64)
    if not isinstance(output, np.ndarray) and hasattr(output, "data"):
        return _as_array(output.data)
    return np.asarray(output, dtype=np.float64)


def span_nlls(model: Model, spans: Sequence[Span]) -> list[Floats]:
    """Score the tail of every span: one float64 array [T - first] a span, NLL in nats, in the order given.

    Raises:
        ValueError: a span does not fit the model; see `evalsuite.scoring.engine.span_nlls`.
    """
    if isinstance(model, CausalModel):
        from evalsuite.scoring import engine

        return engine.span_nlls(model, spans)
    if isinstance(model, SequenceModel):
        return [model.sequence_nll(span.tokens)[span.first - 1 :] for span in spans]
    return [_callable_nll(model, span) for span in spans]


def _callable_nll(model: Callable[[Any], Any], span: Span) -> Floats:
    """Position t - 1 predicts token t."""
    targets = span.tokens[span.first :]
    rows = log_probs(model, span.tokens)
    token_ids(targets, vocab_size=rows.shape[1])
    result: Floats = -rows[np.arange(span.first - 1, len(span.tokens) - 1), targets]
    return result


def token_nlls(model: Model, ids: ArrayLike, ctx_len: int, stride: int) -> Floats:
    """NLL in nats of tokens 1..n-1 under strided windows, float64 [n - 1]; each token is scored once.

    Args:
        model: see the module's docstring.
        ids: int64 [n].
        ctx_len: the most tokens in a window.
        stride: how far a window moves; a token has at least ``ctx_len - stride`` tokens of context.

    Raises:
        ValueError: ``ids`` is not one-dimensional with n >= 2, or not ``1 <= stride < ctx_len``.
    """
    return np.concatenate(span_nlls(model, strided_spans(ids, ctx_len, stride)))


def eval_ppl(model: Model, ids: ArrayLike, ctx_len: int, stride: int, n_bytes: int = 0) -> dict[str, float]:
    """Perplexity of a text with its 95 % interval.

    Args:
        model, ids, ctx_len, stride: see `token_nlls`.
        n_bytes: bytes of text behind the scored tokens; 0 where bits per byte are not wanted.

    Returns:
        ``nll_sum``, ``n_tokens``, ``nll_mean``, ``ppl``, ``bits_per_token``; with bytes ``bpb``. With at least two
        scored tokens the ends ``ppl_lo``, ``ppl_hi`` and, with bytes, ``bpb_lo``, ``bpb_hi``: Student t on the
        tokens' NLLs, carried to the metric's scale and not clipped.

    Raises:
        ValueError: as `token_nlls`; or an NLL that is NaN or infinite.
    """
    nlls = token_nlls(model, ids, ctx_len, stride)
    accumulator = stats.NLLAccumulator()
    accumulator.add(nlls, n_bytes=n_bytes)
    totals = accumulator.result()
    found = {
        "nll_sum": float(totals["nll_sum"]),
        "n_tokens": float(totals["n_tokens"]),
        "nll_mean": float(totals["nll_mean"]),
        "ppl": float(totals["ppl"]),
        "bits_per_token": float(totals["bits_per_token"]),
    }
    if n_bytes > 0:
        found["bpb"] = float(totals["bpb"])
    if len(nlls) >= 2:
        _, lo, hi = stats.mean_ci(nlls)
        with np.errstate(over="ignore"):  # the perplexity of a hopeless model is infinite, as in the accumulator
            found["ppl_lo"], found["ppl_hi"] = float(np.exp(lo)), float(np.exp(hi))
        if n_bytes > 0:
            scale = len(nlls) / (n_bytes * np.log(2))
            found["bpb_lo"], found["bpb_hi"] = float(lo * scale), float(hi * scale)
    return found


def choice_spans(tok: Tokenizer, context: str, choices: Sequence[str], max_len: int | None) -> tuple[list[Span], bool]:
    """One span a choice: context and choice encoded separately and joined, of which the choice is scored.

    Args:
        tok: the tokenizer.
        context: what the model reads first.
        choices: its continuations.
        max_len: a longer sequence keeps its last ``max_len`` tokens: the context is cut on the left.

    Returns:
        The spans, and whether a context was cut.

    Raises:
        ValueError: no choices; the context or a choice has no tokens; or a choice leaves no token of the context
            within ``max_len``.
    """
    if not choices:
        raise ValueError("no choices")
    before = list(tok.encode(context))
    if not before:
        raise ValueError(f"context {context!r} has no tokens: a choice needs at least one before it")
    spans: list[Span] = []
    truncated = False
    for choice in choices:
        continuation = list(tok.encode(choice))
        if not continuation:
            raise ValueError(f"choice {choice!r} has no tokens")
        if max_len is not None and len(continuation) >= max_len:
            raise ValueError(
                f"choice {choice!r} has {len(continuation)} tokens, which leaves none for the context within "
                f"max_len {max_len}"
            )
        whole = before + continuation
        tokens = whole if max_len is None else whole[-max_len:]
        truncated |= len(tokens) < len(whole)
        spans.append(Span(np.array(tokens, dtype=np.int64), first=len(tokens) - len(continuation)))
    return spans, truncated


@dataclass(frozen=True, eq=False)
class ChoiceLogLikelihoods:
    """What a model gives the choices of one item.

    Attributes:
        sums: float64 [k], LL(c) in nats.
        n_tokens: float64 [k], tokens of each choice.
        n_bytes: float64 [k], UTF-8 bytes of each choice.
        truncated: whether a context was cut on the left.
    """

    sums: Floats
    n_tokens: Floats
    n_bytes: Floats
    truncated: bool


def choice_log_likelihoods(
    model: Model, tok: Tokenizer, items: Sequence[ChoiceItem], max_len: int | None = None
) -> list[ChoiceLogLikelihoods]:
    """Log-likelihoods of the choices of many items, in one pass. Values that are not finite are returned as they are.

    Raises:
        ValueError: as `choice_spans`, naming the item.
    """
    spans: list[Span] = []
    cut: list[bool] = []
    for item in items:
        try:
            found, truncated = choice_spans(tok, item.context, item.choices, max_len)
        except ValueError as error:
            raise ValueError(f"item {item.id!r}: {error}") from error
        spans += found
        cut.append(truncated)
    nlls = iter(span_nlls(model, spans))
    results: list[ChoiceLogLikelihoods] = []
    for item, truncated in zip(items, cut, strict=True):
        of_item = [next(nlls) for _ in item.choices]
        results.append(
            ChoiceLogLikelihoods(
                sums=np.array([-nll.sum() for nll in of_item]),
                n_tokens=np.array([len(nll) for nll in of_item], dtype=np.float64),
                n_bytes=np.array([len(choice.encode()) for choice in item.choices], dtype=np.float64),
                truncated=truncated,
            )
        )
    return results


def score_choices(
    model: Model,
    tok: Tokenizer,
    context: str,
    choices: Sequence[str],
    normalize: bool = True,
    max_len: int | None = None,
) -> Floats:
    """Score every choice as a continuation of the context; float64 [k], nats.

    Args:
        model: see the module's docstring.
        tok: the tokenizer; context and choices are encoded separately.
        context, choices: the texts.
        normalize: divide LL(c) by the UTF-8 bytes of c, as acc_norm does; a sum favours short choices.
        max_len: see `choice_spans`.

    Raises:
        ValueError: as `choice_spans`.
    """
    item = ChoiceItem(context, context, tuple(choices), label=0)
    (found,) = choice_log_likelihoods(model, tok, [item], max_len)
    return found.sums / found.n_bytes if normalize else found.sums


def run_task(
    model: Model,
    tok: Tokenizer,
    task_jsonl: str | os.PathLike[str],
    metric: str,
    rng: PCG32,
    n_boot: int = 1000,
    max_len: int | None = None,
) -> Result:
    """Accuracy on a multiple-choice file, with a percentile bootstrap interval over its items.

    Args:
        model, tok, max_len: see `score_choices`.
        task_jsonl: see `evalsuite.tasks.items`.
        metric: "acc" takes the largest log-likelihood, "acc_norm" the largest per byte; the first one on ties.
        rng: gives the resamples' draws.
        n_boot: resamples.

    Raises:
        ValueError: another metric, a bad file, or an item whose largest score is not finite or which holds NaN.
    """
    if metric not in ("acc", "acc_norm"):
        raise ValueError(f"metric {metric!r}: expected 'acc' or 'acc_norm'")
    items = read_choices(os.fspath(task_jsonl))
    correct: list[float] = []
    for item, found in zip(items, choice_log_likelihoods(model, tok, items, max_len), strict=True):
        scores = found.sums / found.n_bytes if metric == "acc_norm" else found.sums
        # max() is NaN when any score is; -inf is a probability of 0, which can lose but not win.
        if not np.isfinite(scores.max()):
            raise ValueError(f"{task_jsonl}: item {item.id!r}: non-finite log-likelihood, found {scores.tolist()}")
        correct.append(float(int(np.argmax(scores)) == item.label))
    per_item = np.array(correct)
    value, lo, hi = stats.bootstrap_ci(per_item, _mean, n_boot, 0.05, rng)
    return Result(value, lo, hi, len(per_item), per_item)


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean())


def compare(a: Result, b: Result, n_perm: int = 10000, rng: PCG32 | None = None) -> float:
    """Two-sided p-value of "no difference" between two results on the same items, by the sign-flip test.

    Args:
        a, b: results on the same items in the same order; only their number is checked.
        n_perm: permutations.
        rng: gives their draws; by default ``PCG32(0).substream("sample")``.

    Raises:
        ValueError: the results have different numbers of items.
    """
    if a.per_item.shape != b.per_item.shape:
        raise ValueError(f"{a.per_item.shape} and {b.per_item.shape} scores: a paired test needs the same items")
    draws = stats.PCG32(0).substream("sample") if rng is None else rng
    return stats.paired_permutation_test(a.per_item, b.per_item, n_perm, draws)

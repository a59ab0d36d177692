"""Negative log-likelihoods of many token spans in few forward passes.

    nll_t = lse(logits_{t-1}) - logits_{t-1}[x_t]        nats, for t in [first, T)

Spans are sorted by length, longest first, so that a batch needs little padding; a batch holds at most
``batch_tokens`` tokens, padding included. Padding is on the right, where a causal model cannot see it, so no mask
is needed. A span's last token is never read, only scored. The output layer, which for a small model and a large
vocabulary is most of the work, runs on the scored positions alone, in blocks of bounded size.

What a span scores depends on the span alone: batch size, padding and order change the last float32 digits only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from evalsuite.scoring.ids import token_ids
from evalsuite.scoring.model import CausalModel, Span
from evalsuite.scoring.nll import target_nll

BATCH_TOKENS = 2048
"""Tokens read at once: large enough for the matrix products, small enough that activations stay in the cache."""

LOGIT_BLOCK = 1 << 20
"""Logits held at once: 4 MB in float32."""


def span_nlls(
    model: CausalModel, spans: Sequence[Span], *, batch_tokens: int = BATCH_TOKENS
) -> list[NDArray[np.float64]]:
    """Score the tail of every span.

    The model's train or eval mode is left as it is: the caller hands over a model in eval mode, as the loaders
    return it, since dropout would make scores random.

    Args:
        model: see `CausalModel`.
        spans: what to score, of any lengths and in any order.
        batch_tokens: the most tokens in a batch, padding included; a longer span is a batch of its own.

    Returns:
        One float64 array [T - first] a span, in the order given: NLL in nats of ``tokens[first:]``. NaN and
        infinite values are returned as they are.

    Raises:
        ValueError: a span is longer than ``model.max_len``, or holds an id outside [0, ``vocab_size``).
    """
    for number, span in enumerate(spans):
        _check(model, number, span)
    results: list[NDArray[np.float64]] = [np.empty(0)] * len(spans)
    order = sorted(range(len(spans)), key=lambda number: -len(spans[number].tokens))
    with torch.inference_mode():
        for batch in _batches(order, spans, batch_tokens):
            lengths = [len(spans[number].tokens) - spans[number].first for number in batch]
            scored = _score(model, [spans[number] for number in batch])
            for number, nlls in zip(batch, np.split(scored, np.cumsum(lengths)[:-1]), strict=True):
                results[number] = nlls
    return results


def _check(model: CausalModel, number: int, span: Span) -> None:
    if model.max_len is not None and len(span.tokens) > model.max_len:
        raise ValueError(f"span {number} has {len(span.tokens)} tokens, the model reads at most {model.max_len}")
    try:
        token_ids(span.tokens, vocab_size=model.vocab_size)
    except ValueError as error:
        raise ValueError(f"span {number}: {error}") from error


def _batches(order: Sequence[int], spans: Sequence[Span], batch_tokens: int) -> Iterator[Sequence[int]]:
    """Cut span numbers, sorted longest first, into batches whose first span sets the padded length."""
    begin = 0
    while begin < len(order):
        longest = len(spans[order[begin]].tokens) - 1
        rows = max(1, batch_tokens // longest)
        yield order[begin : begin + rows]
        begin += rows


def _score(model: CausalModel, batch: Sequence[Span]) -> NDArray[np.float64]:
    """Score one batch, longest span first: the NLLs of all its spans, one after the other."""
    longest = len(batch[0].tokens) - 1
    read = np.zeros((len(batch), longest), dtype=np.int64)
    for row, span in zip(read, batch, strict=True):
        row[: len(span.tokens) - 1] = span.tokens[:-1]
    # Position t - 1 predicts token t.
    positions = np.concatenate(
        [row * longest + np.arange(span.first - 1, len(span.tokens) - 1) for row, span in enumerate(batch)]
    )
    targets = torch.from_numpy(np.concatenate([span.tokens[span.first :] for span in batch]))  # [N]
    features = model.hidden(torch.from_numpy(read)).flatten(0, 1)[torch.from_numpy(positions)]  # [N, d]
    rows = max(1, LOGIT_BLOCK // model.vocab_size)
    nlls = [
        target_nll(model.logits(block), wanted.to(block.device))
        for block, wanted in zip(torch.split(features, rows), torch.split(targets, rows), strict=True)
    ]
    return torch.cat(nlls).cpu().numpy()

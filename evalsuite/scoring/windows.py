r"""Strided windows over a long text, each scoring only the tokens it adds.

With ``ctx_len`` C and ``stride`` s, window k covers [a_k, e_k) with a_k = k s and e_k = min(a_k + C, n), and
scores the tokens t in [max(e_{k-1}, 1), e_k). The first window that reaches n is the last. So every token but
the first is scored exactly once, in every window after the first from at least C - s tokens of context.

Source: Hugging Face, "Perplexity of fixed-length models"; unlike the code there, no window loses a token from
its count and s = C is refused.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from evalsuite.scoring.ids import token_ids
from evalsuite.scoring.model import Span


def strided_spans(ids: ArrayLike, ctx_len: int, stride: int) -> list[Span]:
    """Cut token ids [n] into windows of at most ``ctx_len`` tokens that together score tokens 1..n-1 in order.

    Raises:
        ValueError: ``ids`` is not one-dimensional with at least 2 integers, or not ``1 <= stride < ctx_len``;
            with ``stride == ctx_len`` a window's first token would have no context at all.
    """
    tokens = token_ids(ids, at_least=2)
    if not 1 <= stride < ctx_len:
        raise ValueError(f"stride {stride} does not fit ctx_len {ctx_len}: 1 <= stride < ctx_len is needed")
    spans: list[Span] = []
    begin, scored = 0, 1
    while scored < len(tokens):
        end = min(begin + ctx_len, len(tokens))
        spans.append(Span(tokens[begin:end], first=scored - begin))
        begin, scored = begin + stride, end
    return spans

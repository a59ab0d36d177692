"""Exact match of decoded sequences: the share of answers that equal their reference, white space at the ends apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evalsuite.result import Floats


def answer_text(tokens: Sequence[int], *, finished: bool) -> str:
    """A hypothesis as text: its ids joined by spaces, without the end symbol that a finished one ends in. With it on,
    no answer would ever equal its reference."""
    return " ".join(str(token) for token in (tokens[:-1] if finished else tokens))


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> Floats:
    """1.0 where a hypothesis equals its reference after `str.strip`, else 0.0; float64 [n]. Case counts.

    Raises:
        ValueError: no hypotheses, or not as many references.
    """
    if not hypotheses or len(hypotheses) != len(references):
        found = f"{len(hypotheses)} hypotheses and {len(references)} references"
        raise ValueError(f"{found}: give one for each, at least one")
    return np.array([float(h.strip() == r.strip()) for h, r in zip(hypotheses, references, strict=True)])

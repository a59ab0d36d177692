"""What the scoring engine asks of a model, and what it is asked to score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Tokens = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Span:
    """Tokens of which the tail is scored, each from all the tokens before it in the span.

    Attributes:
        tokens: int64 [T].
        first: ``tokens[first:]`` are scored; ``1 <= first < T``, since a token needs one before it.
    """

    tokens: Tokens
    first: int

    def __post_init__(self) -> None:
        if not 1 <= self.first < len(self.tokens):
            raise ValueError(
                f"a span of {len(self.tokens)} tokens cannot be scored from position {self.first}: "
                f"the first scored position must be at least 1 and below the length"
            )


@runtime_checkable
class CausalModel(Protocol):
    """A left-to-right model in two halves, so that the output layer runs only where it is needed.

    Position t of ``hidden`` may depend on tokens 0..t only: the engine pads on the right and
    relies on that instead of a padding mask.

    Attributes:
        vocab_size: number of token ids, V.
        max_len: the longest span the model can read, or None where there is no limit.
    """

    vocab_size: int
    max_len: int | None

    def hidden(self, ids: Tensor) -> Tensor:
        """int64 [B, T] token ids to the features [B, T, d] from which the next token is predicted."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Features [N, d] to next-token logits [N, V]."""


@runtime_checkable
class SequenceModel(Protocol):
    """A model that scores a whole sequence by itself, such as an n-gram table."""

    vocab_size: int

    def sequence_nll(self, ids: Tokens) -> NDArray[np.float64]:
        """int64 [T] to the NLL in nats of tokens 1..T-1, float64 [T - 1], each from all before it."""

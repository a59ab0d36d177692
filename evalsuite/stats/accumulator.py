"""A running sum of negative log-likelihoods that does not lose the small ones.

    mean NLL = sum / n     ppl = exp(mean)     bits per token = mean / ln 2     bpb = sum / (ln 2 * bytes)

NLLs are in nats and n counts scored tokens. One call is summed exactly (`math.fsum`); sums of calls are added with
Neumaier's compensation (1974), so a million batches have the accuracy of a few.
"""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.stats._checks import as_array, check_count


class NLLSummary(TypedDict):
    """What an accumulator has seen: sums in nats, counts, and the values derived from them."""

    nll_sum: float
    n_tokens: int
    n_bytes: int
    nll_mean: float
    ppl: float
    bits_per_token: float
    bpb: float


class NLLAccumulator:
    """Sum NLLs over batches, workers or documents.

    Accumulators of parts can be merged in any order; they agree to the last digit or two.
    """

    def __init__(self) -> None:
        self._sum = 0.0
        self._lost = 0.0  # what rounding has taken from _sum so far
        self._tokens = 0
        self._bytes = 0

    def __repr__(self) -> str:
        return f"NLLAccumulator(nll_sum={self._sum + self._lost!r}, n_tokens={self._tokens}, n_bytes={self._bytes})"

    def add(self, nll: ArrayLike, mask: ArrayLike | None = None, n_bytes: int = 0) -> None:
        """Add the NLLs of some tokens.

        Args:
            nll: Any shape, nats, >= 0; infinity (a token of probability 0) counts.
            mask: The same shape, true or 1 where a token counts; the other values are not looked at. None counts all.
            n_bytes: Bytes of text that these tokens stand for, >= 0.

        Raises:
            ValueError: A counted NLL is NaN or negative, mask has another shape or other values than 0 and 1, or
                n_bytes is negative or no integer. Nothing is added then.
        """
        values = as_array(nll, "nll")
        n_bytes = check_count(n_bytes, "n_bytes", 0)
        counted = values.ravel() if mask is None else values[_as_mask(mask, values.shape)]  # [n]
        wrong = ~(counted >= 0.0)  # NaN too
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ValueError(
                f"counted NLL number {first} is {counted[first]}, expected >= 0 nats ({int(wrong.sum())} such values); "
                f"pass minus the log-probability, and mask positions that have no target"
            )
        self._add_sum(_exact_sum(counted))
        self._tokens += counted.size
        self._bytes += n_bytes

    def merge(self, other: NLLAccumulator) -> None:
        """Add what another accumulator has seen; the other one is left as it is."""
        lost = other._lost  # read first: `other` may be this one
        self._add_sum(other._sum)
        self._lost += lost
        self._tokens += other._tokens
        self._bytes += other._bytes

    def result(self) -> NLLSummary:
        """Return the sums and what follows from them.

        Returns:
            nll_sum and nll_mean in nats, n_tokens, n_bytes, ppl (infinite when exp overflows), bits_per_token, and bpb
            in bits per byte, NaN when no bytes were given.

        Raises:
            ValueError: No token was counted.
        """
        if self._tokens == 0:
            raise ValueError("no tokens: expected at least one counted NLL; add() some, or check the mask")
        total = self._sum + self._lost
        mean = total / self._tokens
        try:
            ppl = math.exp(mean)
        except OverflowError:
            ppl = math.inf
        return NLLSummary(
            nll_sum=total,
            n_tokens=self._tokens,
            n_bytes=self._bytes,
            nll_mean=mean,
            ppl=ppl,
            bits_per_token=mean / math.log(2.0),
            bpb=total / math.log(2.0) / self._bytes if self._bytes else math.nan,
        )

    def _add_sum(self, value: float) -> None:
        """Add one number to the compensated sum."""
        total = self._sum + value
        if math.isinf(total):
            self._lost = 0.0  # inf - inf below would turn the sum into NaN
        elif abs(self._sum) >= abs(value):
            self._lost += (self._sum - total) + value
        else:
            self._lost += (value - total) + self._sum
        self._sum = total


def _exact_sum(values: NDArray[np.float64]) -> float:
    """Sum non-negative values [n] with one rounding."""
    try:
        return math.fsum(values.tolist())
    except OverflowError:
        return math.inf


def _as_mask(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Check a mask against the shape of the values and turn it into booleans."""
    array = np.asarray(mask)
    if array.shape != shape:
        raise ValueError(f"mask has shape {array.shape}, expected the shape of nll, {shape}; pass one entry a token")
    if array.dtype == np.bool_:
        return array
    keep = array == 1
    if not np.all(keep | (array == 0)):
        raise ValueError(
            f"mask holds other values than 0 and 1 (dtype {array.dtype}), expected true or false a token; "
            f"weights are not supported, multiply them into nll"
        )
    return np.asarray(keep, dtype=np.bool_)

"""Beam search, for many sources at once.

Of a hypothesis y_1 .. y_t the search knows log p = sum of ln p(y_i | y_<i), in nats. A step extends every live
hypothesis of a source by every token and keeps the best: as many as the beam is wide, less those already finished. One
that ends in eos is finished and keeps its place, so the beam narrows; the others live on. What lives at ``max_len`` is
returned unfinished. During the search hypotheses are ranked by log p, at its end by

    score = log p / t^alpha

with the length penalty alpha, t counting the eos: dividing by the length is what Bahdanau et al. (2015) and most after
them do. There is no early stopping and no coverage term. Equal values go to the better hypothesis, then to the lower
token.

All live hypotheses of all sources are one batch to the model, and a source that is done leaves it. A single source is
a batch of one, so there is one search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from evalsuite.scoring.ids import token_ids
from evalsuite.scoring.state import select_state

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
StepFn = Callable[[Ids, Any], tuple[Tensor | ArrayLike, Any]]
"""``step_fn(tokens, state) -> (logits, state)``: the last token of each of k hypotheses, int64 [k], and their state to
the logits [k, V] of the next token (they need not be normalised; minus infinity forbids a token) and the new state. A
state is whatever `select_state` takes."""

ROWS = 512
"""Hypotheses in a batch: enough for the matrix products, few enough that activations stay in the cache."""

LOGITS = 1 << 22
"""Logits in a batch, 32 MB in float64: with a large vocabulary it has fewer hypotheses."""

POSITIONS = 1 << 15
"""Positions in a batch, 32 MB in a tensor of width 256: with long sequences it has fewer hypotheses."""

LOWEST = float(np.finfo(np.float64).min)


@dataclass(frozen=True)
class Hypothesis:
    """A decoded sequence.

    Attributes:
        tokens: its ids without bos; a finished one ends in eos.
        logprob: the sum of its tokens' log-probabilities, nats.
        score: what hypotheses are ranked by, ``logprob / len(tokens) ** length_penalty``.
        finished: whether it ends in eos, or was cut off at ``max_len``.
    """

    tokens: tuple[int, ...]
    logprob: float
    score: float
    finished: bool


class EncoderDecoder(Protocol):
    """What decoding asks of a model that reads one sequence and writes another.

    A model may also have ``masks_pad``: True where a source position that holds the task's pad id is not to be seen,
    wherever it stands. Without it only the padding that batching adds is hidden.

    Attributes:
        vocab_size: number of token ids it writes, V.
        src_vocab: number of token ids it reads.
        max_len: the longest source it reads, and the longest target; None where there is no limit.
    """

    vocab_size: int
    src_vocab: int
    max_len: int | None

    def start(self, src: Tensor, real: Tensor) -> Any:
        """Read sources, int64 [B, S] with bool [B, S], False where a position is padding: the state before the first
        token, with B rows on axis 0 of every tensor."""

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The last token of each row, int64 [B], and the state before it to the logits [B, V] of the next token and
        the state after it."""


def beam_search(
    step_fn: StepFn, init_state: Any, bos: int, eos: int, beam_size: int, max_len: int, length_penalty: float = 1.0
) -> list[Hypothesis]:
    """Decode one source.

    Args:
        step_fn: see `StepFn`.
        init_state: the state before the first token, one row.
        bos: the token that every hypothesis starts from; it is no part of it.
        eos: the token that finishes a hypothesis.
        beam_size: the most hypotheses, at least 1.
        max_len: the most tokens of a hypothesis, at least 1.
        length_penalty: the exponent alpha, at least 0; 0 ranks by log-probability alone.

    Returns:
        At most ``beam_size`` hypotheses, best first; of equal ones the one that was final earlier comes first. None
        where no token has a finite log-probability.

    Raises:
        ValueError: an argument out of range, or logits that are not [k, V].
        TypeError: a state without rows, see `select_state`.
    """
    return beam_search_batch(step_fn, init_state, 1, bos, eos, beam_size, max_len, length_penalty)[0]


def greedy_decode(step_fn: StepFn, init_state: Any, bos: int, eos: int, max_len: int) -> Hypothesis:
    """Take the most probable token every time; arguments as for `beam_search`. The score is the log-probability.

    Raises:
        ValueError: as for `beam_search`, and where no token has a finite log-probability.
    """
    found = beam_search(step_fn, init_state, bos, eos, 1, max_len, length_penalty=0.0)
    if not found:
        raise ValueError("nothing to decode: no token has a finite log-probability")
    return found[0]


def beam_search_batch(
    step_fn: StepFn,
    init_state: Any,
    n_sources: int,
    bos: int,
    eos: int,
    beam_size: int,
    max_len: int,
    length_penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """Decode many sources together: for each of them what `beam_search` gives.

    Args:
        step_fn: see `StepFn`; the hypotheses of all sources come in one call.
        init_state: the state before the first token, one row a source.
        n_sources: number of sources.
        bos, eos, beam_size, max_len, length_penalty: as for `beam_search`.

    Raises:
        ValueError, TypeError: as for `beam_search`.
    """
    least = {"beam_size": (beam_size, 1), "max_len": (max_len, 1), "length_penalty": (length_penalty, 0)}
    for name, (value, lowest) in least.items():
        if not value >= lowest:
            raise ValueError(f"{name} is {value!r}, expected at least {lowest}")
    found: list[list[Hypothesis]] = [[] for _ in range(n_sources)]

    def finish(rows: NDArray[np.bool_], *, finished: bool) -> None:
        for row in np.flatnonzero(rows):
            ids, total = tuple(prefix[row].tolist()), float(logprob[row])
            found[source[row]].append(Hypothesis(ids, total, total / len(ids) ** length_penalty, finished))

    # One entry a live hypothesis; those of a source stand together, best first.
    state, source = init_state, np.arange(n_sources)
    prefix, logprob = np.empty((n_sources, 0), dtype=np.int64), np.zeros(n_sources)
    tokens = np.full(n_sources, bos, dtype=np.int64)
    room = np.full(n_sources, beam_size)  # places in each source's beam that no finished hypothesis holds
    for _ in range(max_len):
        if not len(source):
            break
        read = len(source)
        logits, state = step_fn(tokens, state)
        parent, tokens, logprob = _best(_as_logits(logits, read), logprob, source, room)
        source = source[parent]
        prefix = np.column_stack([prefix[parent], tokens])  # [rows, t]
        ended = tokens == eos
        finish(ended, finished=True)
        room -= np.bincount(source[ended], minlength=n_sources)
        parent, source, prefix, logprob, tokens = (a[~ended] for a in (parent, source, prefix, logprob, tokens))
        if not np.array_equal(parent, np.arange(read)):  # greedy search moves nothing
            state = select_state(state, parent)
    finish(np.full(len(source), True), finished=False)
    return [sorted(hypotheses, key=lambda one: -one.score) for hypotheses in found]


def _as_logits(logits: Tensor | ArrayLike, rows: int) -> Tensor:
    """What a step gave as float64 [rows, V]."""
    made = logits.detach().cpu() if isinstance(logits, Tensor) else torch.from_numpy(np.ascontiguousarray(logits))
    if made.ndim != 2 or len(made) != rows or not made.shape[1]:
        raise ValueError(f"step_fn gave logits of shape {list(made.shape)}, expected [{rows}, V]: a row a hypothesis")
    return made.double()


def _best(logits: Tensor, logprob: Floats, source: Ids, room: Ids) -> tuple[Ids, Ids, Floats]:
    """The best extensions of each source's hypotheses, best first, as many as it has room for.

    Args:
        logits: float64 [R, V].
        logprob: [R], nats, of the hypotheses so far.
        source: [R], ascending, the source of each.
        room: [n_sources].

    Returns:
        The extended hypothesis (its row), the token and the new log-probability of each.
    """
    total = torch.log_softmax(logits, dim=-1)  # [R, V]
    total += torch.from_numpy(logprob)[:, None]
    # What lies below the last place that its own row could fill is out; the few that are left are sorted. The bound is
    # finite, so forbidden tokens lie below it. It is NaN for a row with a NaN, of which nothing is left.
    bound = total.topk(min(int(room.max()), total.shape[1]), sorted=False).values.amin(dim=-1, keepdim=True)
    flat = np.flatnonzero((total >= bound.clamp(min=LOWEST)).numpy())
    value = total.flatten().numpy()[flat]
    row, token = np.divmod(flat, total.shape[1])
    order = np.lexsort((-value, source[row]))  # stable: equal values stay in the order of (row, token)
    row, token, value = row[order], token[order], value[order]
    rank = np.arange(len(row)) - np.searchsorted(source[row], source[row])  # within the source
    kept = rank < room[source[row]]
    return row[kept], token[kept], value[kept]


def decode_sources(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    *,
    bos: int,
    eos: int,
    beam_size: int,
    max_len: int,
    pad_id: int = 0,
    length_penalty: float = 1.0,
    rows: int = ROWS,
) -> list[list[Hypothesis]]:
    """Decode token sequences, sources of like length together.

    What a source decodes to depends on the source alone: batch size, padding and order change the last digits only.

    Args:
        model: see `EncoderDecoder`; in eval mode, as loaders return it.
        sources: token ids, of any lengths and in any order.
        bos, eos, beam_size, max_len, length_penalty: as for `beam_search`.
        pad_id: the id that is hidden in a source, for a model that ``masks_pad``.
        rows: the most hypotheses in a batch; fewer where the vocabulary is large.

    Returns:
        The hypotheses of each source, in the order given; none where the model gives no finite log-probability.

    Raises:
        ValueError: an argument out of range; a source that is empty, longer than the model reads or with an id outside
            ``src_vocab``; or hypotheses longer than the model writes.
    """
    for name, token in (("bos", bos), ("eos", eos)):
        if not 0 <= token < model.vocab_size:
            raise ValueError(f"{name} {token} is outside the vocabulary [0, {model.vocab_size})")
    read = [_source(model, number, source) for number, source in enumerate(sources)]
    hidden = pad_id if getattr(model, "masks_pad", False) else None

    def step(tokens: Ids, state: Any) -> tuple[Tensor, Any]:
        return model.step(torch.from_numpy(tokens), state)

    order = sorted(range(len(read)), key=lambda number: -len(read[number]))
    results: list[list[Hypothesis]] = [[] for _ in read]
    with torch.inference_mode():
        while order:
            longest = max(len(read[order[0]]), max_len)
            most = min(rows, LOGITS // model.vocab_size, POSITIONS // longest) // max(1, beam_size)
            batch, order = order[: max(1, most)], order[max(1, most) :]
            state = model.start(*_padded([read[number] for number in batch], hidden))
            decoded = beam_search_batch(step, state, len(batch), bos, eos, beam_size, max_len, length_penalty)
            for number, hypotheses in zip(batch, decoded, strict=True):
                results[number] = hypotheses
    return results


def _source(model: EncoderDecoder, number: int, source: Sequence[int]) -> Ids:
    """A source as int64 [S], checked."""
    try:
        ids = token_ids(source, vocab_size=model.src_vocab, at_least=1)
    except ValueError as error:
        raise ValueError(f"source {number}: {error}") from error
    if model.max_len is not None and len(ids) > model.max_len:
        raise ValueError(f"source {number} has {len(ids)} tokens, the model reads at most {model.max_len}")
    return ids


def _padded(sources: Sequence[Ids], hidden: int | None) -> tuple[Tensor, Tensor]:
    """Sources, the longest first, as int64 [B, S], and bool [B, S], False at padding and at the hidden id."""
    src = np.zeros((len(sources), len(sources[0])), dtype=np.int64)
    real = np.zeros(src.shape, dtype=np.bool_)
    for row, ids in enumerate(sources):
        src[row, : len(ids)] = ids
        real[row, : len(ids)] = True if hidden is None else ids != hidden
    return torch.from_numpy(src), torch.from_numpy(real)

"""Bits per byte, perplexity and NLL of a token stream, by document.

nll = sum(l) / N nats a token, ppl = exp(nll), bpb = sum(l) / (bytes ln 2), over the N scored tokens. The stream is
scored as one text (a token may be predicted from the document before); then each token's NLL belongs to its
document, and documents are the units of the interval and of the gate, since tokens of a text depend on each other.
A stream without a document index is cut into blocks of `BLOCK` tokens, which speak of that text only; one that is
too short for `MIN_BLOCKS` of them, or has a single document, keeps the token-level interval and is ``blind``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalsuite.evals.metrics import METRICS, link_value
from evalsuite.provenance import content_hash
from evalsuite.result import Floats, Measurement, Scores
from evalsuite.tasks.task import Task
from evalsuite.tasks.tokens import Document, TokenFile

BLOCK = 512
MIN_BLOCKS = 30
DEAD_ZONE = 2e-5
"""Nats a token: twice what batch size, padding or another BLAS may move a score by."""


@dataclass(frozen=True, eq=False)
class StreamNLL:
    """The scored tokens of a stream.

    Attributes:
        nll: float64 [N], nats, of tokens ``first .. first + N - 1``.
        first: index of the first scored token: 0 for an n-gram, 1 for most, the context length for an NPLM.
        n_bytes: bytes of text behind the scored tokens.
    """

    nll: Floats
    first: int
    n_bytes: int


def stream_nll(model: Any, config: Mapping[str, Any], tokens: TokenFile, fields: Mapping[str, Any]) -> StreamNLL:
    """Score a stream by the family's own rule.

    Args:
        model: a loaded checkpoint.
        config: its configuration; ``tl_arch`` names the family.
        tokens: the data.
        fields: settings of task and entry: ``ctx_len``, ``stride``, ``tokenizer``, ``n_bytes``.

    Raises:
        ValueError: an id beyond the model's vocabulary, a non-finite NLL, or a byte count that is not known.
    """
    from evalsuite.zoo.checkpoint import lm_token_nlls

    ids = tokens.ids
    if len(ids) and int(ids.max()) >= model.vocab_size:
        place = int(np.argmax(ids >= model.vocab_size))
        raise ValueError(
            f"token {place} of the data is {int(ids[place])}, but the model's vocabulary has {model.vocab_size} "
            f"entries: the data was made with another tokenizer"
        )
    nll = lm_token_nlls(model, str(config["tl_arch"]), config, ids, fields)
    first = len(ids) - len(nll)
    if not np.isfinite(nll).all():
        place = first + int(np.argmin(np.isfinite(nll)))
        raise ValueError(f"the NLL of token {place} is {nll[place - first]}: the model gives no probability there")
    return StreamNLL(nll, first, _byte_count(len(nll), model.vocab_size, config, fields))


def _byte_count(scored: int, vocab_size: int, config: Mapping[str, Any], fields: Mapping[str, Any]) -> int:
    """With a byte tokenizer a token is a byte; otherwise the count has to be told."""
    tokenizer = fields.get("tokenizer") or config.get("tl_tokenizer") or ("bytes" if vocab_size == 256 else "file")
    if tokenizer == "bytes":
        return scored
    n_bytes = fields.get("n_bytes")
    if not isinstance(n_bytes, int) or n_bytes < 1:
        raise ValueError(
            f"bpb needs the byte count of the text, since a token of a {tokenizer!r} tokenizer is no byte: "
            f'set "n_bytes" in the entry or in the task\'s settings (found {n_bytes!r})'
        )
    return n_bytes


def measure_stream(
    model_name: str,
    task: Task,
    stream: StreamNLL,
    tokens: TokenFile,
    documents: tuple[Document, ...] | None,
    source: Mapping[str, object],
) -> dict[str, Measurement]:
    """The rows of one pass over a stream, by metric. ``gating`` and ``min_drop`` are the defaults of the metric.

    The ``v1_interval`` of bits per byte is the seed's: Student t on the NLLs of tokens. It ignores that tokens of a
    text depend on each other, so it is too narrow; the v1 report states it because its readers expect it.

    Raises:
        ValueError: fewer than two scored tokens.
    """
    from evalsuite.stats import cluster_ratio_ci, mean_ci

    units, interval, blind = _units(stream, len(tokens.ids), documents)
    stream_hash = content_hash(tokens.ids.astype("<i8").tobytes())
    # reduceat sums each unit's slice; units are contiguous, ordered and not empty.
    starts = np.array([unit.start for unit in units]) - stream.first
    nats = np.add.reduceat(stream.nll, starts)
    counts = np.array([unit.end - unit.start for unit in units], dtype=np.float64)
    ids = tuple(unit.id for unit in units)
    # Any change of the data changes what every later token is predicted from, so the whole stream is in the hash.
    hashes = tuple(content_hash(stream_hash, f"{unit.start}:{unit.end}") for unit in units)
    n_bytes = counts * (stream.n_bytes / len(stream.nll))
    weights = {"bpb": n_bytes * math.log(2), "nll": counts, "ppl": counts}
    # Nats a token; the other metrics are these three numbers on another scale. The mean is taken over tokens, not
    # units, whose sums are rounded: a uniform model over bytes has 8 bits, not 8 and a rounding error.
    mean, *token_ends = mean_ci(stream.nll)
    ends = token_ends
    if interval != "token-t":
        centre, *by_unit = cluster_ratio_ci(nats, counts)
        ends = [mean + (end - centre) for end in by_unit]
    rows: dict[str, Measurement] = {}
    for metric in task.metrics:
        facts = METRICS[metric]
        scores = Scores(
            ids,
            hashes,
            nats,
            weights[metric],
            tolerance=DEAD_ZONE * counts,
            details=tuple({"tokens": int(count)} for count in counts),
        )
        scale = len(stream.nll) / (stream.n_bytes * math.log(2)) if metric == "bpb" else 1.0
        value, lo, hi = (link_value(nll * scale, facts.link) for nll in (mean, *ends))
        rows[metric] = Measurement(
            model_name,
            task.name,
            metric,
            value,
            lo,
            hi,
            interval,
            len(stream.nll),
            scores,
            higher_is_better=facts.higher_is_better,
            min_drop=facts.min_drop,
            link=facts.link,
            normaliser=facts.normaliser,
            task_hash=content_hash(stream_hash, *ids, *hashes),
            blind=blind,
            v1_interval=(token_ends[0] * scale, token_ends[1] * scale) if metric == "bpb" else None,
            source=source,
        )
    return rows


def _units(stream: StreamNLL, n_tokens: int, documents: tuple[Document, ...] | None) -> tuple[list[Document], str, str]:
    """Units of the stream with the name of their interval, and why the row is blind, or ""."""
    if documents is not None and len(documents) >= 2:
        # A document of which no token is scored (before the first context is full) says nothing.
        cut = [Document(doc.id, max(doc.start, stream.first), doc.end) for doc in documents]
        scored = [doc for doc in cut if doc.end > doc.start]
        if len(scored) >= 2:
            return scored, "cluster-t", ""
    elif documents is None and len(stream.nll) // BLOCK >= MIN_BLOCKS:
        starts = range(stream.first, n_tokens - BLOCK + 1, BLOCK)
        # The last block takes the remainder: no token is left out.
        ends = [*list(starts)[1:], n_tokens]
        return [Document(f"block-{at:06d}", at, end) for at, end in zip(starts, ends, strict=True)], "block-t", ""
    what = f"one text of {len(stream.nll)} scored tokens, too short for {MIN_BLOCKS} blocks of {BLOCK}"
    if documents is not None:
        what = f"{len(stream.nll)} scored tokens in 1 of {len(documents)} document{'s' * (len(documents) > 1)}"
    return [Document("stream", stream.first, n_tokens)], "token-t", f"{what}: no significance can be had from it"

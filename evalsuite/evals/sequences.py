"""Exact match of decoded sequences: the share of sources whose best hypothesis is the target, token for token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evalsuite.evals.exact_match import answer_text, exact_match
from evalsuite.evals.language_model import DEAD_ZONE
from evalsuite.evals.metrics import METRICS, value_and_interval
from evalsuite.provenance import content_hash
from evalsuite.result import Measurement, Scores
from evalsuite.tasks.sequences import SequencePair
from evalsuite.tasks.task import Task

if TYPE_CHECKING:
    from evalsuite.scoring.decode import EncoderDecoder, Hypothesis


def measure_sequences(
    model_name: str,
    task: Task,
    model: EncoderDecoder,
    pairs: Sequence[SequencePair],
    settings: Mapping[str, Any],
    source: Mapping[str, object],
) -> dict[str, Measurement]:
    """Decode every source by beam search and compare, as ``exact_match``.

    A source for which the model gives no finite log-probability is unscored: it counts as wrong and the row says how
    many there are.

    Args:
        model_name: the model's part of the row id.
        task: the task.
        model: see `EncoderDecoder`.
        pairs: sources and targets.
        settings: ``bos`` and ``eos``; ``beam`` 4, where 1 is greedy; ``max_len``, the most tokens of an answer with
            its eos, by default 2 more than the longest target, or what the model can write where that is less;
            ``pad_id`` 0, hidden in a source where the model does so.
        source: facts about checkpoint and data for the report; ``decode`` and ``beam`` are added.

    Raises:
        ValueError: a setting that is missing or out of range, a source or target that does not fit the model, or no
            pair for which the model gives a finite log-probability.
    """
    from evalsuite.scoring.decode import decode_sources

    bos, eos = (_whole(settings, key, None, 0) for key in ("bos", "eos"))
    beam, pad_id = _whole(settings, "beam", 4, 1), _whole(settings, "pad_id", 0, 0)
    for pair in pairs:
        _check(model, pair)
    longest = max(len(pair.tgt) for pair in pairs) + 2
    max_len = _whole(settings, "max_len", longest if model.max_len is None else min(longest, model.max_len), 1)
    decoded = decode_sources(
        model, [pair.src for pair in pairs], bos=bos, eos=eos, beam_size=beam, max_len=max_len, pad_id=pad_id
    )
    unscored = tuple(pair.id for pair, hypotheses in zip(pairs, decoded, strict=True) if not hypotheses)
    if len(unscored) == len(pairs):
        raise ValueError(f"no finite log-probability for {len(pairs)}/{len(pairs)} sources: the model gives no answers")
    judged = [_judge(pair, hypotheses) for pair, hypotheses in zip(pairs, decoded, strict=True)]
    ids = tuple(pair.id for pair in pairs)
    hashes = tuple(content_hash(_text(pair.src), _text(pair.tgt)) for pair in pairs)
    scores = Scores(
        ids,
        hashes,
        scores=np.array([score for score, _, _ in judged]),
        weights=np.ones(len(pairs)),
        tolerance=np.array([tolerance for _, tolerance, _ in judged]),
        unscored=unscored,
        details=tuple(detail for _, _, detail in judged),
    )
    facts = METRICS["exact_match"]
    value, lo, hi = value_and_interval(scores, facts.link, "wilson")
    row = Measurement(
        model_name,
        task.name,
        "exact_match",
        value,
        lo,
        hi,
        "wilson",
        len(pairs),
        scores,
        higher_is_better=facts.higher_is_better,
        min_drop=facts.min_drop,
        bounds=facts.bounds,
        task_hash=content_hash(*ids, *hashes),
        source={**source, "decode": "beam" if beam > 1 else "greedy", "beam": beam},
    )
    return {"exact_match": row}


def _whole(settings: Mapping[str, Any], key: str, default: int | None, least: int) -> int:
    """An integer among the settings. ValueError where it is missing without a default, or something else."""
    value = settings.get(key, default)
    if value is None:
        raise ValueError(f'"{key}" is missing: set it in the entry or in the task\'s settings')
    if type(value) is not int or value < least:
        raise ValueError(f"{key}: found {value!r}, expected an integer of at least {least}")
    return value


def _check(model: EncoderDecoder, pair: SequencePair) -> None:
    """ValueError where a pair does not fit the model: the data was made with another tokenizer."""
    for name, ids, size in (("src", pair.src, model.src_vocab), ("tgt", pair.tgt, model.vocab_size)):
        if ids and max(ids) >= size:
            raise ValueError(f"{pair.id}: {name} holds the token id {max(ids)}, the model's vocabulary is [0, {size})")
    if model.max_len is not None and len(pair.src) > model.max_len:
        raise ValueError(f"{pair.id}: src has {len(pair.src)} tokens, the model reads at most {model.max_len}")


def _judge(pair: SequencePair, hypotheses: Sequence[Hypothesis]) -> tuple[float, float, dict[str, object]]:
    """Score, tolerance and detail of a pair.

    Where a right and a wrong hypothesis are both as good as the best within numerical noise, the pair is unstable: its
    tolerance covers the whole range, so a flip counts as no difference.
    """
    expected = _text(pair.tgt)
    detail: dict[str, object] = {"input": _text(pair.src), "expected": expected, "answer": None}
    if not hypotheses:
        return 0.0, 0.0, detail
    best = hypotheses[0]
    # A score is nats a token, as the dead zone is.
    rivals = [one for one in hypotheses if best.score - one.score <= DEAD_ZONE]
    answers = [answer_text(one.tokens, finished=one.finished) for one in rivals]
    right = exact_match(answers, [expected] * len(answers))
    unstable = bool(right.min() != right.max())
    detail |= {"answer": answers[0], "logprob": best.logprob, "unstable": unstable}
    return float(right[0]), float(unstable), detail


def _text(ids: Sequence[int]) -> str:
    return answer_text(ids, finished=False)

"""What batching sources and keeping decoder states saves, beside the plain way of beam search.

The plain way decodes one source at a time and reads the whole prefix again at every step, as implementations written
for clarity do. Both decode the same random sources with the same random model, a GRU with Bahdanau's attention, and
must find the same hypotheses. Only the ratio is meant to be compared between machines:

    python benchmarks/beam_speed.py
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evalsuite.scoring.decode import Hypothesis, beam_search, decode_sources
from evalsuite.scoring.state import select_state
from evalsuite.zoo.families.seq2seq import Seq2Seq, Seq2SeqConfig

SOURCES, VOCABULARY, HIDDEN, EMBEDDING = 200, 60, 256, 64
BOS, EOS, BEAM, MAX_LEN = 1, 2, 4, 16


def one_by_one(model: Seq2Seq, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
    """Each source by itself, the decoder started anew at every step."""

    def step(tokens: NDArray[np.int64], state: Any) -> tuple[Tensor, Any]:
        prefix = torch.cat([state["prefix"], torch.from_numpy(tokens)[:, None]], dim=1)  # [k, t]
        decoder = select_state(state["start"], np.zeros(len(tokens), dtype=np.int64))
        for column in prefix.unbind(1):
            logits, decoder = model.step(column, decoder)
        return logits, {"prefix": prefix, "start": state["start"]}

    found = []
    with torch.inference_mode():
        for source in sources:
            src = torch.tensor([source])
            start = model.start(src, torch.ones_like(src, dtype=torch.bool))
            state = {"prefix": torch.empty(1, 0, dtype=torch.int64), "start": start}
            found.append(beam_search(step, state, BOS, EOS, BEAM, MAX_LEN))
    return found


def timed(run: Callable[[], list[list[Hypothesis]]]) -> tuple[float, list[list[Hypothesis]]]:
    """Seconds of the faster of two runs, and what they found."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def main() -> None:
    """Time both, check that they agree, and print the ratio."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Seq2Seq(Seq2SeqConfig(VOCABULARY, VOCABULARY, "gru", EMBEDDING, HIDDEN, "bahdanau", 128)).eval()
    rng = np.random.default_rng(0)
    sources = [rng.integers(3, VOCABULARY, rng.integers(4, 20)).tolist() for _ in range(SOURCES)]
    settings = {"bos": BOS, "eos": EOS, "beam_size": BEAM, "max_len": MAX_LEN}
    batched, found = timed(lambda: decode_sources(model, sources, **settings))
    plain, expected = timed(lambda: one_by_one(model, sources))
    for ours, theirs in zip(found, expected, strict=True):
        gap = max(abs(a.logprob - b.logprob) for a, b in zip(ours, theirs, strict=True))
        if gap > 1e-4:
            raise SystemExit(f"the two ways disagree by {gap} nats")
    print(f"{SOURCES} sources, beam {BEAM}, at most {MAX_LEN} tokens; GRU with attention, {HIDDEN} wide, one thread")
    print(f"  batched, states kept              {batched:7.2f} s")
    print(f"  one by one, prefixes read again   {plain:7.2f} s   ratio {plain / batched:5.1f}")


if __name__ == "__main__":
    main()

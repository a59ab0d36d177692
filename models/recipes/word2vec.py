"""word2vec: skip-grams with negative samples (Mikolov et al., 2013) on the prose and the glosses of WordNet's nouns.

python models/recipes/word2vec.py [--out models/word2vec] [--seed 0] [--threads 1]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from common import options, report, set_up, train
from corpora import plain_text_for_word_vectors, words_of
from torch import Tensor, nn

from evalsuite.zoo import save_word2vec
from evalsuite.zoo.layers import embedding

BAR = 0.17
WIDTH = 64
LEAST = 6
"""A rarer word is left out."""
WINDOW = 5
NEGATIVES = 8
FREQUENT = 1e-3
"""Words more frequent than this are thinned out, the more so the more frequent they are."""
BATCH = 4096
ROUNDS = 5


class SkipGram(nn.Module):
    """Two tables: a word as the centre, whose rows are the word vectors, and a word as the context of another."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.centre = embedding(words, WIDTH)
        self.context = embedding(words, WIDTH)
        nn.init.uniform_(self.centre.weight, -0.5 / WIDTH, 0.5 / WIDTH)
        nn.init.zeros_(self.context.weight)

    def loss(self, centres: Tensor, contexts: Tensor, others: Tensor) -> Tensor:
        """Centres and contexts int64 [B], others [B, NEGATIVES]: the mean negative log-likelihood of a pair."""
        v = self.centre(centres)  # [B, d]
        near = (v * self.context(contexts)).sum(-1)  # [B]
        far = torch.bmm(self.context(others), v[:, :, None])[:, :, 0]  # [B, NEGATIVES]
        return -(F.logsigmoid(near) + F.logsigmoid(-far).sum(-1)).mean()


def pairs(lines: list[np.ndarray], keep: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """All (centre, context) pairs of one round: frequent words thinned out, a window of 1..WINDOW drawn a word."""
    centres, contexts = [], []
    for line in lines:
        words = line[rng.random(len(line)) < keep[line]]
        reach = rng.integers(1, WINDOW + 1, len(words))
        for distance in range(1, min(WINDOW, len(words) - 1) + 1):
            left, right = words[:-distance], words[distance:]
            ahead, back = reach[:-distance] >= distance, reach[distance:] >= distance
            centres += [left[ahead], right[back]]
            contexts += [right[ahead], left[back]]
    return np.concatenate(centres), np.concatenate(contexts)


def losses(
    model: SkipGram, rounds: list[tuple[np.ndarray, np.ndarray]], noise: Tensor, seed: int
) -> Iterator[Callable[[], Tensor]]:
    """The pairs of each round in a random order, each with words drawn by the 3/4 power of their counts."""
    generator = torch.Generator().manual_seed(seed)
    for centres, contexts in rounds:
        order = torch.randperm(len(centres), generator=generator)
        for batch in torch.split(order, BATCH):
            others = torch.multinomial(noise, len(batch) * NEGATIVES, replacement=True, generator=generator)
            picked = batch.numpy()
            one, two = torch.from_numpy(centres[picked]), torch.from_numpy(contexts[picked])

            def compute(one: Tensor = one, two: Tensor = two, others: Tensor = others) -> Tensor:
                return model.loss(one, two, others.view(len(one), NEGATIVES))

            yield compute


def main() -> None:
    opts = options(__doc__, "word2vec")
    set_up(opts)
    lines = [words_of(text) for text in plain_text_for_word_vectors()]
    counts = Counter(word for line in lines for word in line)
    vocabulary = [word for word, count in counts.most_common() if count >= LEAST]
    number = {word: place for place, word in enumerate(vocabulary)}
    encoded = [np.array([number[word] for word in line if word in number], dtype=np.int64) for line in lines]
    encoded = [line for line in encoded if len(line) > 1]
    frequency = np.array([counts[word] for word in vocabulary], dtype=np.float64)
    share = frequency / frequency.sum()
    keep = np.minimum(1.0, np.sqrt(FREQUENT / share) + FREQUENT / share)
    rng = np.random.default_rng(opts.seed)
    rounds = [pairs(encoded, keep, rng) for _ in range(ROUNDS)]
    steps = sum(-(-len(centres) // BATCH) for centres, _ in rounds)
    print(f"{len(vocabulary)} words, {sum(map(len, encoded))} in the text, {steps} steps")
    model = SkipGram(len(vocabulary))
    noise = torch.from_numpy(frequency**0.75)
    train(model, losses(model, rounds, noise, opts.seed), opts.curve, steps=steps, lr=5e-3)
    save_word2vec(model.centre.weight.detach().numpy(), vocabulary, opts.out)
    report(opts.out, "word-similarity", spearman=BAR)


if __name__ == "__main__":
    main()

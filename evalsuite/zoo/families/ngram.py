"""n-gram language model, interpolated Kneser-Ney with one or three discounts an order.

With h the last k - 1 symbols before w, a_k adjusted counts and T = sum over w of a_k(hw):

    p_0(w) = 1 / V
    p_k(w) = max(a_k(hw) - D(a_k(hw)), 0) / T + gamma(h) p_{k-1}(w)       or p_{k-1}(w) where no k-gram starts with h
    gamma(h) = (D1 #{w: a_k(hw) = 1} + D2 #{w: a_k(hw) = 2} + D3 #{w: a_k(hw) >= 3}) / T

a_k(g) is the raw count c_k(g) at the highest order and where g starts with the start symbol <s>, else the number of
distinct symbols that precede g. Discounts follow Chen and Goodman (1999), each order from its own counts of counts.
NLLs are in nats, one for each token: the first token is predicted from <s>, which is itself never predicted.

The grams of all orders form a trie kept in sorted arrays: a k-gram is a node of level k, found by the key

    key = (node of its first k - 1 symbols at level k - 1) * (V + 1) + last symbol + 1          (<s> is symbol -1)

so that one binary search a level looks up a whole text. Nodes and symbols are below 2^31, so keys fit 62 bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalsuite.scoring.ids import token_ids
from evalsuite.zoo.families._gram_file import Grams, read_gram_file, write_gram_file

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Discount = Literal["modified"] | float

LIMIT = 2**31
"""Symbols, grams an order and counts stay below it, as the file stores them in 32 bits."""


@dataclass(frozen=True, eq=False)
class _Level:
    """The k-grams of a model. Level 1 has one node more, the first, for <s>; its counts are 0.

    Attributes:
        keys: int64 [N_k], ascending; a gram's node is its place here.
        counts: int64 [N_k], raw counts.
        adjusted: int64 [N_k], a_k; zeros until all levels are known.
        discounts: float64 [4], what is taken off an adjusted count of 0, 1, 2, 3 or more.
        totals: float64 [N_{k-1}], T of each history, 0 where no gram starts with it.
        backoff: float64 [N_{k-1}], gamma of each history.
    """

    keys: Ints
    counts: Ints
    adjusted: Ints
    discounts: Floats
    totals: Floats
    backoff: Floats


class NGramLM:
    """An n-gram model. Make one with ``NGramLM().fit(...)`` or `NGramLM.load`.

    Attributes:
        n: the order, 0 before `fit`.
        discount: ``"modified"`` or the fixed discount.
        vocab_size: V.
    """

    def __init__(self) -> None:
        self.n = 0
        self.discount: Discount = "modified"
        self.vocab_size = 0
        self._levels: list[_Level] = []

    def fit(
        self,
        sequences: Iterable[ArrayLike],
        n: int,
        discount: Discount = "modified",
        vocab_size: int | None = None,
    ) -> NGramLM:
        """Count the n-grams of some sequences, in place of any counted before, and return the model itself.

        Args:
            sequences: of integers [T] in ``[0, V)``; empty ones are skipped.
            n: the order, at least 1.
            discount: ``"modified"`` for three discounts an order, or one fixed number in (0, 1].
            vocab_size: V; by default 1 + the largest id.
        """
        discount = _check_settings(n, discount)
        if vocab_size is not None:
            _check_vocab(vocab_size)
        texts = [ids for ids in (token_ids(text, vocab_size=vocab_size) for text in sequences) if ids.size]
        if not texts:
            raise ValueError("no token to count: every sequence is empty, pass at least one that is not")
        if vocab_size is None:
            vocab_size = int(max(ids.max() for ids in texts)) + 1
            _check_vocab(vocab_size)
            texts = [token_ids(ids, vocab_size=vocab_size) for ids in texts]
        start = np.full(1, -1, np.int64)
        symbols = np.concatenate([part for ids in texts for part in (start, ids)])  # [N]
        lengths = np.array([ids.size + 1 for ids in texts])
        # How many symbols of its own sequence precede each symbol, 0 at <s>.
        depth = np.arange(symbols.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # [N]
        self._build(_count(symbols, depth, n, vocab_size), n, discount, vocab_size)
        return self

    def nll(self, ids: ArrayLike) -> Floats:
        """NLL in nats of every token [T] of a text that starts a sequence, float64 [T]."""
        array = self._checked(ids)
        with_start = np.concatenate([np.full(1, -1, np.int64), array])  # [T + 1]
        # Rounding can lift a certain token's probability above 1, and an NLL is never negative.
        result: Floats = -np.log(np.minimum(self._probabilities(with_start)[1:], 1))
        return result

    def sequence_nll(self, ids: ArrayLike) -> Floats:
        """NLL in nats of tokens 1..T-1 of a text [T] that starts a sequence, float64 [T - 1]."""
        return self.nll(self._checked(ids, at_least=1))[1:]

    def perplexity(self, ids: ArrayLike) -> float:
        """exp of the mean NLL over all tokens [T]."""
        return float(np.exp(self.nll(self._checked(ids, at_least=1)).mean()))

    def next_probs(self, history: ArrayLike) -> Floats:
        """Probabilities of all tokens after a history [T], float64 [V].

        A history shorter than n - 1 tokens is taken as the start of a sequence.
        """
        array = self._checked(history)
        if array.size < self.n - 1:
            array = np.concatenate([np.full(1, -1, np.int64), array])
        array = array[array.size - min(array.size, self.n - 1) :]  # [K - 1]
        texts = np.empty((self.vocab_size, array.size + 1), np.int64)  # [V, K]
        texts[:, :-1] = array
        texts[:, -1] = np.arange(self.vocab_size)
        # One text after another; only each one's last symbol is wanted, and nothing before its text is read for it.
        return self._probabilities(texts.ravel())[array.size :: array.size + 1]

    def save(self, path: str | Path) -> None:
        """Write the raw counts, from which all else follows, to a ``.safetensors`` file or to a folder's ``model``."""
        self._require_fit()
        grams = []
        table = np.empty((1, 0), np.int64)  # [N_{k-1}, k - 1], the symbols of every node of the level below
        for k, level in enumerate(self._levels, start=1):
            parents, symbols = np.divmod(level.keys, self.vocab_size + 1)
            table = np.column_stack([table[parents], symbols - 1])  # [N_k, k]
            first = 1 if k == 1 else 0  # <s> alone is no unigram
            grams.append(Grams(table[first:], level.counts[first:]))
        discount = self.discount if isinstance(self.discount, str) else repr(self.discount)
        metadata = {"tl_arch": "ngram", "n": str(self.n), "discount": discount, "vocab_size": str(self.vocab_size)}
        write_gram_file(_file(path), grams, metadata)

    @classmethod
    def load(cls, path: str | Path) -> NGramLM:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the file is damaged, or its tables could not have come from counting; it is named.
        """
        path = _file(path)
        metadata, grams = read_gram_file(path)
        try:
            n, vocab_size = int(metadata["n"]), int(metadata["vocab_size"])
            text = metadata["discount"]
            discount = _check_settings(n, "modified" if text == "modified" else float(text))
            _check_vocab(vocab_size)
            if n != len(grams):
                raise ValueError(f"metadata says n = {n}, but the file has orders 1 to {len(grams)}")
            model = cls()
            model._build(_levels_of(grams, vocab_size), n, discount, vocab_size)
        except KeyError as error:
            raise ValueError(f"{path}: metadata lacks {error}, expected n, discount and vocab_size") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}: write the file again") from None
        return model

    def _build(self, tables: list[tuple[Ints, Ints]], n: int, discount: Discount, vocab_size: int) -> None:
        """Set the model to sorted keys and raw counts, one pair a level."""
        suffixes = _suffix_links([keys for keys, _ in tables], vocab_size)
        levels = []
        for k, (keys, counts) in enumerate(tables, start=1):
            if k == n:
                adjusted = counts
            else:
                adjusted = np.bincount(suffixes[k], minlength=keys.size)  # distinct symbols before each gram
                adjusted = np.where(_starts_with_start(tables, k, vocab_size), counts, adjusted)
                if not adjusted[1 if k == 1 else 0 :].all():
                    raise ValueError(f"an order-{k} gram is no part of any order-{k + 1} gram")
            parents = keys // (vocab_size + 1)
            n_parents = tables[k - 2][0].size if k > 1 else 1
            levels.append(_level(keys, counts, adjusted, parents, n_parents, discount))
        self._levels = levels
        self.n, self.discount, self.vocab_size = n, discount, vocab_size

    def _probabilities(self, symbols: Ints) -> Floats:
        """Probability of each symbol [T] from those before it, float64 [T]; meaningless where the symbol is <s>."""
        p = np.full(symbols.size, 1 / self.vocab_size)
        history = np.zeros(symbols.size, np.int64)  # node of the k - 1 symbols before, -1 where there is none
        for level in self._levels:
            node = _find(level.keys, history, symbols, self.vocab_size)  # [T], of the gram that ends here, or -1
            known = np.flatnonzero(history >= 0)
            known = known[level.totals[history[known]] > 0]  # where some gram starts with the history
            parent, child = history[known], node[known]
            count = np.where(child >= 0, level.adjusted[child], 0)
            direct = np.maximum(count - level.discounts[np.minimum(count, 3)], 0) / level.totals[parent]
            p[known] = direct + level.backoff[parent] * p[known]
            history = np.concatenate([np.full(1, -1, np.int64), node[:-1]])
        return p

    def _checked(self, ids: ArrayLike, at_least: int = 0) -> Ints:
        self._require_fit()
        return token_ids(ids, vocab_size=self.vocab_size, at_least=at_least)

    def _require_fit(self) -> None:
        if not self._levels:
            raise ValueError("the n-gram model has no counts yet, call fit or load first")


def load(path: str | Path) -> NGramLM:
    """`NGramLM.load`, under the name that every family has."""
    return NGramLM.load(path)


def save(model: NGramLM, path: str | Path) -> None:
    """`NGramLM.save`, under the name that every family has."""
    model.save(path)


def _count(symbols: Ints, depth: Ints, n: int, vocab_size: int) -> list[tuple[Ints, Ints]]:
    """Sorted keys and raw counts of every level, from sequences [N] laid end to end, each after its <s>."""
    tables = []
    node = np.zeros(symbols.size, np.int64)  # of the gram of the level below that ends at each symbol
    for k in range(1, n + 1):
        before = np.zeros_like(node) if k == 1 else np.concatenate([np.zeros(1, np.int64), node[:-1]])
        ends = np.flatnonzero(depth >= k - 1)  # at level 1 this takes in <s> itself, as a node without a count
        keys, place, counts = np.unique(
            before[ends] * (vocab_size + 1) + symbols[ends] + 1, return_inverse=True, return_counts=True
        )
        if k == 1:
            counts[0] = 0
        if keys.size >= LIMIT or counts.max(initial=0) >= LIMIT:
            raise ValueError(f"order {k} has {LIMIT} grams or counts or more, which 32 bits cannot hold: use less text")
        node[ends] = place
        tables.append((keys, counts.astype(np.int64)))
    return tables


def _levels_of(grams: list[Grams], vocab_size: int) -> list[tuple[Ints, Ints]]:
    """Sorted keys and raw counts of every level, from the file's tables, which are checked."""
    tables: list[tuple[Ints, Ints]] = []
    for k, table in enumerate(grams, start=1):
        _check_grams(table, k, vocab_size)
        symbols, counts = table.symbols, table.counts
        if k == 1:  # give <s> its node
            symbols = np.concatenate([np.full((1, 1), -1, np.int64), symbols])
            counts = np.concatenate([np.zeros(1, np.int64), counts])
        node = np.zeros(len(symbols), np.int64)
        for column in range(k - 1):
            node = _find(tables[column][0], node, symbols[:, column], vocab_size)
        if (node < 0).any():
            row = symbols[int((node < 0).argmax())].tolist()
            raise ValueError(f"order-{k} gram {row} starts with no order-{k - 1} gram")
        keys = node * (vocab_size + 1) + symbols[:, -1] + 1
        if (np.diff(keys) <= 0).any():
            row = symbols[int((np.diff(keys) <= 0).argmax()) + 1].tolist()
            raise ValueError(f"order-{k} gram {row} is out of order: rows must be ascending and distinct")
        tables.append((keys, counts))
    return tables


def _check_grams(table: Grams, k: int, vocab_size: int) -> None:
    symbols, counts = table.symbols, table.counts
    if k == 1 and not len(symbols):
        raise ValueError("order 1 has no grams, a model has seen at least one token")
    if k == 1 and (symbols < 0).any():
        raise ValueError("<s> stands among the unigrams, it is never predicted")
    if (symbols < -1).any() or (symbols >= vocab_size).any() or (symbols[:, 1:] < 0).any():
        bad = (symbols < -1) | (symbols >= vocab_size)
        bad[:, 1:] |= symbols[:, 1:] < 0
        row = symbols[int(bad.any(axis=1).argmax())].tolist()
        raise ValueError(f"order-{k} gram {row} has an id outside 0 to {vocab_size - 1} (-1 may stand first only)")
    if (counts <= 0).any():
        i = int((counts <= 0).argmax())
        raise ValueError(f"order-{k} gram {symbols[i].tolist()} has count {counts[i]}, expected at least 1")


def _suffix_links(keys: list[Ints], vocab_size: int) -> list[Ints]:
    """For level k + 1 at index k, the node at level k of each gram without its first symbol, int64 [N_{k+1}]."""
    links = [np.zeros(keys[0].size, np.int64)]
    for k, (below, level) in enumerate(pairwise(keys), start=1):
        parents, last = np.divmod(level, vocab_size + 1)
        link = _find(below, links[-1][parents], last - 1, vocab_size)
        if (link < 0).any():
            raise ValueError(f"an order-{k + 1} gram ends in no order-{k} gram")
        links.append(link)
    return links


def _starts_with_start(tables: list[tuple[Ints, Ints]], k: int, vocab_size: int) -> NDArray[np.bool_]:
    """Whether each gram of level k starts with <s>, bool [N_k]."""
    node = np.arange(tables[k - 1][0].size)
    for keys, _ in reversed(tables[1:k]):
        node = keys[node] // (vocab_size + 1)
    starts: NDArray[np.bool_] = node == 0  # <s> is the first node of level 1
    return starts


def _level(keys: Ints, counts: Ints, adjusted: Ints, parents: Ints, n_parents: int, discount: Discount) -> _Level:
    discounts = _discounts(adjusted, discount)
    totals = np.bincount(parents, weights=adjusted, minlength=n_parents).astype(np.float64)  # [N_{k-1}], exact
    # Adding D1 once for each gram of count 1, and so on, in this order, keeps the sum the same on every machine.
    kinds = [np.bincount(parents[adjusted == j], minlength=n_parents) for j in (1, 2)]
    kinds.append(np.bincount(parents[adjusted >= 3], minlength=n_parents))
    mass = discounts[1] * kinds[0] + discounts[2] * kinds[1] + discounts[3] * kinds[2]
    backoff = np.divide(mass, totals, out=np.zeros(n_parents), where=totals > 0)
    return _Level(keys, counts, adjusted, discounts, totals, backoff)


def _discounts(adjusted: Ints, discount: Discount) -> Floats:
    """[0, D1, D2, D3] of an order; (0.5, 1, 1.5) where the counts of counts give no usable ones."""
    if not isinstance(discount, str):
        return np.array([0, discount, discount, discount])
    n1, n2, n3, n4 = (int(np.count_nonzero(adjusted == j)) for j in (1, 2, 3, 4))
    if min(n1, n2, n3, n4) > 0:
        y = n1 / (n1 + 2 * n2)
        found = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
        if all(0 < d <= j for j, d in enumerate(found, start=1)):
            return np.array([0, *found])
    return np.array([0, 0.5, 1.0, 1.5])


def _find(keys: Ints, parents: Ints, symbols: Ints, vocab_size: int) -> Ints:
    """The node that continues each parent node [T] (-1: none) with a symbol [T], or -1, int64 [T]."""
    if not keys.size:
        return np.full(parents.size, -1, np.int64)
    wanted = parents * (vocab_size + 1) + symbols + 1
    place = np.searchsorted(keys, wanted)
    place[place == keys.size] = 0
    return np.where((parents >= 0) & (keys[place] == wanted), place, -1)


def _check_settings(n: int, discount: Discount) -> Discount:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n is {n!r}, expected an integer of at least 1")
    if discount == "modified":
        return "modified"
    if isinstance(discount, bool | str) or not 0 < discount <= 1:
        raise ValueError(f'discount is {discount!r}, expected "modified" or a number above 0 and at most 1')
    return float(discount)


def _check_vocab(vocab_size: int) -> None:
    if not 1 <= vocab_size < LIMIT:
        raise ValueError(f"vocabulary size is {vocab_size}, expected 1 to {LIMIT - 1}")


def _file(path: str | Path) -> Path:
    """The ``.safetensors`` file itself, or the one in a folder."""
    path = Path(path)
    return path if path.suffix == ".safetensors" else path / "model.safetensors"

"""Recurrent language model (Mikolov et al., 2010; with GRU or LSTM cells Zaremba et al., 2014).

Embedding, a stack of `torch.nn.RNN` (tanh), `torch.nn.GRU` or `torch.nn.LSTM` layers, and an output layer that is
not tied to the embedding. Hugging Face has no model of that name. There is no start symbol: a text's first token
is context only, and the state before it is zero.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Self, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from evalsuite.scoring.ids import token_ids
from evalsuite.scoring.nll import target_nll
from evalsuite.zoo.config import Config, check_arch, one_of, read_config, size, tokenizer_of
from evalsuite.zoo.layers import embedding
from evalsuite.zoo.module_files import load_module, save_module

CELLS: dict[str, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}

State = Tensor | tuple[Tensor, Tensor]
"""[layers, B, H], or two of them (h, c) for an LSTM."""


@dataclass(frozen=True)
class RNNLMConfig:
    """Sizes under their ``config.json`` names; ``tl_cell`` is "rnn", "gru" or "lstm"."""

    vocab_size: int
    tl_cell: str
    tl_d_emb: int
    hidden_size: int
    num_hidden_layers: int
    tl_tokenizer: str = "bytes"

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration. ValueError names the key, what was found and what was expected."""
        check_arch(config, "rnnlm")
        return cls(
            vocab_size=size(config, "vocab_size"),
            tl_cell=one_of(config, "tl_cell", tuple(CELLS)),
            tl_d_emb=size(config, "tl_d_emb"),
            hidden_size=size(config, "hidden_size"),
            num_hidden_layers=size(config, "num_hidden_layers"),
            tl_tokenizer=tokenizer_of(config),
        )


class RNNLM(nn.Module):
    """The model. A `CausalModel` that reads spans of any length from the zero state.

    Args:
        config: sizes.
        dropout: for training only: on the embedding, between layers and before the output. A loaded model has none.
    """

    def __init__(self, config: RNNLMConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        self.max_len: int | None = None
        self.emb = embedding(config.vocab_size, config.tl_d_emb)
        layers = config.num_hidden_layers
        self.rnn = CELLS[config.tl_cell](
            config.tl_d_emb, config.hidden_size, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0
        )
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(config.hidden_size, config.vocab_size)

    def run(self, ids: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Read int64 [B, T] from a state (zero if None): the features [B, T, H] and the state after the last."""
        features, state = self.rnn(self.dropout(self.emb(ids)), state)
        return self.dropout(features), state

    def hidden(self, ids: Tensor) -> Tensor:
        """int64 [B, T] token ids, read from the zero state, to the last layer's features [B, T, H]."""
        return self.run(ids)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """Features [..., H] to next-token logits [..., V]."""
        return cast(Tensor, self.out(hidden))

    def forward(self, ids: ArrayLike | Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Token ids [B, T] (NumPy or torch) to logits [B, T, V] and, given targets [B, T], their mean NLL in nats."""
        logits = self.logits(self.hidden(torch.as_tensor(ids).long()))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss

    def nll(self, ids: ArrayLike, chunk: int = 2048) -> NDArray[np.float64]:
        """NLL in nats of tokens 1..n-1, each from all the tokens before it; float64 [n - 1].

        One pass over the text; the state is carried from one chunk to the next, so ``chunk`` sets the memory
        that is needed and not the result.

        Raises:
            ValueError: n < 2, or an id outside the vocabulary.
        """
        tokens = torch.from_numpy(token_ids(ids, vocab_size=self.vocab_size, at_least=2))
        state: State | None = None
        blocks: list[Tensor] = []
        with torch.inference_mode():
            for read, targets in zip(torch.split(tokens[:-1], chunk), torch.split(tokens[1:], chunk), strict=True):
                features, state = self.run(read[None], state)  # [1, chunk, H]
                blocks.append(target_nll(self.logits(features[0]), targets))
            return torch.cat(blocks).numpy()


def load(model_dir: str | os.PathLike[str]) -> RNNLM:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    config = RNNLMConfig.from_dict(read_config(model_dir))
    return load_module(model_dir, lambda: RNNLM(config), last=(f"rnn.weight_ih_l{config.num_hidden_layers - 1}",))


def save(model: RNNLM, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    save_module(model, {"tl_arch": "rnnlm"} | asdict(model.config), model_dir)

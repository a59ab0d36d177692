r"""Neural probabilistic language model (Bengio et al., 2003): a feed-forward network on the last C tokens.

    x = [emb(w_{t-C}); ...; emb(w_{t-1})]        oldest first, C d features
    logits = U tanh(H x + h) + b [+ W x]         W, the direct connections, only where tl_direct is set

As published, but for a full softmax over a small vocabulary. Hugging Face has no model of that name.
The window has a fixed length, so the first C tokens of a text have no score, and continuations are not offered.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Self, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from evalsuite.scoring.ids import token_ids
from evalsuite.scoring.nll import target_nll
from evalsuite.zoo.config import Config, check_arch, flag, read_config, size, tokenizer_of
from evalsuite.zoo.layers import embedding
from evalsuite.zoo.module_files import load_module, save_module

BLOCK = 4096
"""Windows scored at once: large enough for the matrix products, small enough for the cache."""


@dataclass(frozen=True)
class NPLMConfig:
    """Sizes under their ``config.json`` names: C is ``tl_context``, d ``tl_d_emb``, H ``hidden_size``."""

    vocab_size: int
    tl_context: int
    tl_d_emb: int
    hidden_size: int
    tl_direct: bool
    tl_tokenizer: str = "bytes"

    @classmethod
    def from_dict(cls, config: Config) -> Self:
        """Check a configuration. ValueError names the key, what was found and what was expected."""
        check_arch(config, "nplm")
        return cls(
            vocab_size=size(config, "vocab_size"),
            tl_context=size(config, "tl_context"),
            tl_d_emb=size(config, "tl_d_emb"),
            hidden_size=size(config, "hidden_size"),
            tl_direct=flag(config, "tl_direct"),
            tl_tokenizer=tokenizer_of(config),
        )


class NPLM(nn.Module):
    """The model, with torch's default initialisation."""

    def __init__(self, config: NPLMConfig) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        features = config.tl_context * config.tl_d_emb
        self.emb = embedding(config.vocab_size, config.tl_d_emb)
        self.hidden = nn.Linear(features, config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.vocab_size)
        self.direct = nn.Linear(features, config.vocab_size, bias=False) if config.tl_direct else None

    def forward(self, contexts: Tensor) -> Tensor:
        """int64 [B, C] contexts, oldest token first, to next-token logits [B, V]."""
        x = self.emb(contexts).flatten(1)  # [B, C d]
        logits = cast(Tensor, self.out(torch.tanh(self.hidden(x))))
        return logits if self.direct is None else logits + cast(Tensor, self.direct(x))

    def nll(self, ids: ArrayLike) -> NDArray[np.float64]:
        """NLL in nats of tokens C..n-1, each from the C tokens before it; float64 [n - C].

        Raises:
            ValueError: n <= C, or an id outside the vocabulary.
        """
        context = self.config.tl_context
        tokens = torch.from_numpy(token_ids(ids, vocab_size=self.vocab_size, at_least=context + 1))
        windows = tokens.unfold(0, context + 1, 1)  # [n - C, C + 1]
        with torch.inference_mode():
            blocks = [target_nll(self(block[:, :-1]), block[:, -1]) for block in torch.split(windows, BLOCK)]
            return torch.cat(blocks).numpy()


def load(model_dir: str | os.PathLike[str]) -> NPLM:
    """Load a checkpoint directory, strictly.

    Raises:
        KeyError: a tensor is missing or not known.
        ValueError: a bad configuration, a damaged file, a wrong shape, NaN or infinite weights.
    """
    config = NPLMConfig.from_dict(read_config(model_dir))
    return load_module(model_dir, lambda: NPLM(config))


def save(model: NPLM, model_dir: str | os.PathLike[str]) -> None:
    """Write ``config.json`` and ``model.safetensors``; equal models give equal bytes."""
    save_module(model, {"tl_arch": "nplm"} | asdict(model.config), model_dir)

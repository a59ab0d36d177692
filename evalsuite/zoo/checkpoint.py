"""From a checkpoint directory to a model and its per-token NLLs, dispatched on ``tl_arch``.

Reading a configuration and asking for its kind loads neither torch nor a family.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evalsuite.result import Floats
from evalsuite.scoring.windows import strided_spans
from evalsuite.zoo.config import read_config

__all__ = ["FAMILIES", "Family", "kind_of", "lm_token_nlls", "load_model", "parameter_count", "read_config"]


class Family(NamedTuple):
    """How an architecture is scored, and the module whose ``load(dir)`` reads its checkpoints.

    ``continuations`` says whether it gives log-likelihoods of a continuation, which multiple choice needs.
    """

    kind: str
    metric: str
    higher_is_better: bool
    module: str
    continuations: bool = True


def _language_model(name: str) -> Family:
    # An NPLM reads exactly its context of tokens, no fewer: it cannot score the start of a text.
    module = f"evalsuite.zoo.families.{name}"
    return Family("lm", "bpb", higher_is_better=False, module=module, continuations=name != "nplm")


FAMILIES: Mapping[str, Family] = {arch: _language_model(arch) for arch in ("bigram", "ngram", "nplm", "rnnlm", "gpt")}
"""The architectures that can be scored, by ``tl_arch``."""


def kind_of(config: Mapping[str, object]) -> str:
    """The kind of task a configuration's model is scored on: "lm".

    Raises:
        KeyError: "no zoo scorer for ..." where the suite cannot score such a model.
    """
    if config.get("tl_head"):
        raise KeyError(f"no zoo scorer for tl_head {config['tl_head']!r}")
    return _family(config.get("tl_arch")).kind


def _family(arch: object) -> Family:
    if not isinstance(arch, str) or arch not in FAMILIES:
        raise KeyError(f"no zoo scorer for tl_arch {arch!r}")
    return FAMILIES[arch]


def load_model(model_dir: str | os.PathLike[str]) -> Any:
    """Load a checkpoint through its family's loader, in eval mode.

    Raises:
        KeyError: "no zoo scorer for ..."; or a tensor is missing or not known.
        ValueError: a bad configuration or a damaged file.
    """
    config = read_config(model_dir)
    kind_of(config)
    return import_module(_family(config["tl_arch"]).module).load(model_dir)


def lm_token_nlls(model: Any, arch: str, cfg: Mapping[str, Any], ids: ArrayLike, entry: Mapping[str, Any]) -> Floats:
    """NLL in nats of a stream's tokens, float64, by the family's own rule.

    An n-gram scores all n tokens; bigram, rnnlm and gpt tokens 1..n-1; nplm tokens C..n-1 for a context of C.

    Args:
        model: what `load_model` returned.
        arch: ``tl_arch``.
        cfg: the checkpoint's configuration.
        ids: int64 [n].
        entry: for gpt ``ctx_len`` (default ``n_positions``) and ``stride`` (default ``max(1, ctx_len // 2)``).

    Raises:
        KeyError: "no zoo scorer for ...".
        ValueError: too few tokens, an id outside the vocabulary, or windows that do not fit the model.
    """
    _family(arch)
    if arch != "gpt":
        nlls: Floats = model.nll(ids)
        return nlls
    from evalsuite.scoring.engine import span_nlls

    ctx_len = _whole(entry, "ctx_len", cfg["n_positions"])
    stride = _whole(entry, "stride", max(1, ctx_len // 2))
    if ctx_len > model.max_len:
        raise ValueError(f"ctx_len {ctx_len} exceeds n_ctx {model.max_len}, the most this model reads")
    return np.concatenate(span_nlls(model, strided_spans(ids, ctx_len, stride)))


def _whole(entry: Mapping[str, Any], key: str, default: int) -> int:
    value = entry.get(key, default)
    if type(value) is not int:
        raise ValueError(f"{key}: found {value!r}, expected an integer")
    return value


def parameter_count(model: Any) -> int | None:
    """Trainable parameters, each distinct tensor once; None for the count models, bigram and n-gram."""
    if not hasattr(model, "named_parameters"):
        return None
    return sum(int(parameter.numel()) for parameter in model.parameters())

"""From a checkpoint directory to a model and its per-token NLLs, dispatched on the family.

Reading a configuration and asking for its kind loads neither torch nor a family.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalsuite.result import Floats
from evalsuite.scoring.windows import strided_spans
from evalsuite.zoo.config import ConfigError, read_config
from evalsuite.zoo.registry import family_of

__all__ = ["kind_of", "lm_token_nlls", "load_model", "parameter_count", "read_config"]


def kind_of(config: Mapping[str, object]) -> str:
    """The kind of task a configuration's model is scored on: lm, seq2seq, classifier, mlm, rtd or embeddings.

    Raises:
        KeyError: "no zoo scorer for ..." where the suite cannot score such a model.
    """
    return family_of(config).kind


def load_model(model_dir: str | os.PathLike[str]) -> Any:
    """Load a checkpoint through its family's loader, in eval mode.

    Raises:
        KeyError: "no zoo scorer for ..."; or a tensor is missing or not known.
        ValueError: a bad configuration or a damaged file; the message names it, or the checkpoint.
    """
    family = family_of(read_config(model_dir))
    try:
        return import_module(family.module).load(model_dir)
    except ConfigError as error:
        file = Path(model_dir) / "config.json"
        where = file if file.is_file() else f"{model_dir}: no config.json, and the file's metadata does not replace it"
        raise ValueError(f"{where}: {error}") from None
    except ValueError as error:
        if str(Path(model_dir)) in str(error):
            raise
        raise ValueError(f"{Path(model_dir)}: {error}") from None


def lm_token_nlls(model: Any, arch: str, cfg: Mapping[str, Any], ids: ArrayLike, entry: Mapping[str, Any]) -> Floats:
    """NLL in nats of a stream's tokens, float64, by the family's own rule.

    An n-gram scores all n tokens; bigram, rnnlm, gpt and llama tokens 1..n-1; nplm tokens C..n-1 for a context of C.
    A model that has an ``nll`` of its own reads the stream in one pass; any other reads strided windows.

    Args:
        model: what `load_model` returned.
        arch: ``tl_arch``.
        cfg: the checkpoint's configuration.
        ids: int64 [n].
        entry: for windows ``ctx_len`` (default the most the model reads) and ``stride`` (default
            ``max(1, ctx_len // 2)``).

    Raises:
        KeyError: "no zoo scorer for ..."; also for a family that is no language model.
        ValueError: too few tokens, an id outside the vocabulary, or windows that do not fit the model.
    """
    if family_of({**cfg, "tl_arch": arch}).kind != "lm":
        raise KeyError(f"no zoo scorer for tl_arch {arch!r} as a language model")
    if hasattr(model, "nll"):
        nlls: Floats = model.nll(ids)
        return nlls
    from evalsuite.scoring.engine import span_nlls

    ctx_len = _whole(entry, "ctx_len", model.max_len)
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
    """Trainable parameters, each distinct tensor once; None for models that are no modules: counts, word vectors."""
    if not hasattr(model, "named_parameters"):
        return None
    return sum(int(parameter.numel()) for parameter in model.parameters())

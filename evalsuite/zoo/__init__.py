"""The model zoo: checkpoints of every family, loaded and scored by their own rules.

Names are resolved on first use (PEP 562), so that importing the package loads neither torch nor SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsuite.run_zoo import run_zoo, score_entry, write_report
    from evalsuite.zoo.checkpoint import kind_of, lm_token_nlls, load_model, read_config
    from evalsuite.zoo.families.word2vec import save_word2vec
    from evalsuite.zoo.text import encode_batch

_HOME = {
    "encode_batch": "evalsuite.zoo.text",
    "kind_of": "evalsuite.zoo.checkpoint",
    "lm_token_nlls": "evalsuite.zoo.checkpoint",
    "load_model": "evalsuite.zoo.checkpoint",
    "read_config": "evalsuite.zoo.checkpoint",
    "run_zoo": "evalsuite.run_zoo",
    "save_word2vec": "evalsuite.zoo.families.word2vec",
    "score_entry": "evalsuite.run_zoo",
    "write_report": "evalsuite.run_zoo",
}

__all__ = [
    "encode_batch",
    "kind_of",
    "lm_token_nlls",
    "load_model",
    "read_config",
    "run_zoo",
    "save_word2vec",
    "score_entry",
    "write_report",
]


def __getattr__(name: str) -> object:
    """Import the file that holds a public name when the name is first asked for."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its names are {', '.join(__all__)}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})

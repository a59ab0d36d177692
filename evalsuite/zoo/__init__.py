"""The model zoo: checkpoints of every family, loaded and scored by their own rules.

Names are resolved on first use (PEP 562), so that importing the package loads neither torch nor SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.lazy import lazy_names

if TYPE_CHECKING:
    from evalsuite.run_zoo import run_zoo, score_entry, write_report
    from evalsuite.zoo.checkpoint import kind_of, lm_token_nlls, load_model, read_config
    from evalsuite.zoo.families.word2vec import save_word2vec
    from evalsuite.zoo.registry import Family
    from evalsuite.zoo.text import encode_batch

_HOME = {
    "Family": "evalsuite.zoo.registry",
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
    "Family",
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

__getattr__, __dir__ = lazy_names(globals(), _HOME)

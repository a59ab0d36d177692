"""Evaluations as pytest tests.

The names here score a language model by hand; ``pytest evalsuite`` scores a whole zoo. Names are resolved on first
use (PEP 562), so that importing the package loads neither torch nor SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.lazy import lazy_names

if TYPE_CHECKING:
    from evalsuite.lm import (
        ByteTokenizer,
        compare,
        eval_ppl,
        log_probs,
        run_task,
        score_choices,
        token_nlls,
    )
    from evalsuite.result import Result

__version__ = "0.1.0"

_HOME = {
    "ByteTokenizer": "evalsuite.lm",
    "Result": "evalsuite.result",
    "compare": "evalsuite.lm",
    "eval_ppl": "evalsuite.lm",
    "log_probs": "evalsuite.lm",
    "run_task": "evalsuite.lm",
    "score_choices": "evalsuite.lm",
    "token_nlls": "evalsuite.lm",
}

__all__ = [
    "ByteTokenizer",
    "Result",
    "__version__",
    "compare",
    "eval_ppl",
    "log_probs",
    "run_task",
    "score_choices",
    "token_nlls",
]

__getattr__, __dir__ = lazy_names(globals(), _HOME)

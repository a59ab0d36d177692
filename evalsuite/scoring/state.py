"""Rows of a decoder's state, picked and repeated as hypotheses are kept and dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SHARED = (bool, int, float, complex, str, bytes, np.generic, type(None))
"""What holds nothing a row: all rows share it."""


def select_state(state: Any, index: NDArray[np.int64] | Tensor) -> Any:
    """Rows of a state.

    Args:
        state: dicts, lists, tuples and named tuples, nested in any way, of tensors and NumPy arrays that have one row
            a hypothesis on axis 0. Scalars, arrays without axes, None and ``()`` are shared.
        index: int64 [k], the rows wanted, in order; a row may come several times.

    Returns:
        A state of the same build with k rows.

    Raises:
        TypeError: the state holds something else, such as a set: whether that has rows cannot be known, and sharing
            what has rows would give hypotheses each other's state.
    """
    rows = torch.as_tensor(index)
    if isinstance(state, Tensor):
        return state.index_select(0, rows.to(state.device)) if state.ndim else state
    if isinstance(state, np.ndarray):
        return state[rows.numpy()] if state.ndim else state
    if isinstance(state, Mapping):
        return {key: select_state(part, rows) for key, part in state.items()}
    if isinstance(state, tuple | list):
        parts = [select_state(part, rows) for part in state]
        if isinstance(state, list):
            return parts
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if isinstance(state, SHARED):
        return state
    raise TypeError(
        f"a decoder's state holds a {type(state).__name__}: use tensors and arrays with one row a hypothesis, in "
        f"dicts, lists or tuples"
    )

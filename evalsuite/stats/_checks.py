"""Argument checks shared by the statistics: each refusal says what came, what was expected and what to do."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Read anything array-like as float64, refusing what is not numeric."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be read as numbers ({error}); expected a flat sequence of numbers, "
            f"convert labels and missing values before"
        ) from None


def as_vector(values: ArrayLike, name: str, least: int = 1) -> NDArray[np.float64]:
    """Read a finite one-dimensional float64 array of at least `least` entries.

    Raises:
        ValueError: Another number of dimensions, too few entries, or a NaN or infinity (the first is named).
    """
    vector = as_array(values, name)
    if vector.ndim != 1:
        raise ValueError(f"{name} has shape {vector.shape}, expected one dimension; flatten it or pass one row")
    if vector.size < least:
        raise ValueError(
            f"{name} has {vector.size} value{'' if vector.size == 1 else 's'}, expected at least {least}; "
            f"check that the rows or items were not filtered away"
        )
    finite = np.isfinite(vector)
    if not finite.all():
        first = int(np.argmin(finite))
        raise ValueError(
            f"{name}[{first}] is {vector[first]}, expected finite numbers "
            f"({int((~finite).sum())} of {vector.size} are not); score or exclude those items before"
        )
    return vector


def check_alpha(alpha: float) -> float:
    """Return alpha as a float when it lies strictly between 0 and 1.

    Raises:
        ValueError: alpha outside (0, 1), or NaN.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha!r}, expected 0 < alpha < 1; a 95 % interval has alpha=0.05")
    return float(alpha)


def check_count(value: object, name: str, least: int) -> int:
    """Return a whole number of at least `least`; booleans and floats are refused.

    Raises:
        ValueError: Not an integer, or too small.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} is {value!r} ({type(value).__name__}), expected an integer >= {least}; pass an int")
    if value < least:
        raise ValueError(f"{name} is {int(value)}, expected an integer >= {least}; pass a larger one")
    return int(value)

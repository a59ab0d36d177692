"""Numbers as a reader sees them: enough digits to see the change, no more."""

from __future__ import annotations

import math
from collections.abc import Sequence

_MOST = 6
_LARGE = 1e7


def decimals(value: float, change: float = 0.0, *, of_change: int = 2) -> int:
    """Decimals for a metric's value: four significant digits, at most three decimals, more where ``change`` needs them.

    A value below 0.01 gets two significant digits and a small change ``of_change``, with six decimals at most.
    """
    size = abs(value)
    digits = 3 if size < 10 else max(0, 3 - _magnitude(size))
    small = [(size, 2), (abs(change), of_change)]
    return max([digits, *(min(_MOST, want - 1 - _magnitude(part)) for part, want in small if 0 < part < 0.01)])


def number(value: float, digits: int) -> str:
    """``value`` with ``digits`` decimals; very large ones, and those that would show as zero, in scientific form."""
    if abs(value) >= _LARGE:
        return _short_exponent(f"{value:.3e}")
    text = f"{value:.{digits}f}"
    if value and not text.strip("-0."):
        return _short_exponent(f"{value:.1e}")
    return text if value else text.lstrip("-")


def signed(value: float, digits: int) -> str:
    """``number`` with its sign: ``+0.004``."""
    return ("+" if value > 0 else "") + number(value, digits)


def bracket(interval: Sequence[float], digits: int) -> str:
    """``[2.180, 2.249]``."""
    lo, hi = interval
    return f"[{number(lo, digits)}, {number(hi, digits)}]"


def with_interval(value: float, interval: Sequence[float] | None, digits: int) -> str:
    """``2.214 [2.180, 2.249]``, or the value alone."""
    return number(value, digits) + (f" {bracket(interval, digits)}" if interval else "")


def p_text(p: float) -> str:
    """``p = 2e-31``, ``p = 0.0012``; one too small for a float is ``p < 1e-300``."""
    if p < 1e-300:
        return "p < 1e-300"
    return f"p = {p:.2g}" if p >= 0.001 else f"p = {_short_exponent(f'{p:.0e}')}"


def count(number_of: int, thing: str) -> str:
    """``1 document``, ``312 documents``."""
    return f"{number_of} {thing}" + ("" if number_of == 1 else "s")


def seconds_text(seconds: float) -> str:
    """``3.2 s``, ``23 s``, ``2 min 5 s``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def _magnitude(size: float) -> int:
    return math.floor(math.log10(size))


def _short_exponent(text: str) -> str:
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}"

"""PCG32, the generator behind every random draw of the suite (PCG-XSH-RR 64/32, O'Neill 2014).

    state' = state * 6364136223846793005 + inc   (mod 2^64)
    output = rotate_right_32(((state >> 18) ^ state) >> 27, state >> 59)   from the state *before* the step

An affine map composes with itself into another one, so state number k is `A_k * state + D_k * inc` with constants that
depend on k alone. `uniforms` keeps a table of them and computes thousands of states with one array expression; the
draws and the state left behind are those of the same number of `uniform` calls.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence
from functools import lru_cache
from operator import index
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evalsuite.stats._checks import check_count

T = TypeVar("T")

_MULTIPLIER = 6364136223846793005
_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
# Uniforms per array expression: the temporaries (8 bytes a value) stay in the second-level cache.
_BLOCK = 1 << 13


def _mix64(value: int) -> int:
    """Scramble 64 bits with the SplitMix64 finaliser (Steele, Lea, Flood 2014)."""
    value &= _MASK64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK64
    return value ^ (value >> 31)


@lru_cache(maxsize=1)
def _jump_table() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Tabulate (A_2k, D_2k) for k = 0.._BLOCK: two steps a uniform.

    Jumping i after jumping L gives A_(i+L) = A_i * A_L and D_(i+L) = A_i * D_L + D_i, so each pass doubles the table.
    """
    factor = np.ones(1, dtype=np.uint64)  # [L]
    offset = np.zeros(1, dtype=np.uint64)  # [L], in units of inc
    factor_next, offset_next = _MULTIPLIER**2 & _MASK64, _MULTIPLIER + 1  # the jump by L uniforms
    while factor.size <= _BLOCK:
        jump_a, jump_d = np.uint64(factor_next), np.uint64(offset_next)
        offset = np.concatenate([offset, factor * jump_d + offset])
        factor = np.concatenate([factor, factor * jump_a])
        offset_next = (factor_next * offset_next + offset_next) & _MASK64
        factor_next = factor_next * factor_next & _MASK64
    return factor[: _BLOCK + 1], offset[: _BLOCK + 1]


def _outputs(states: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Permute states [m] into their 32-bit outputs [m] (the XSH-RR step)."""
    word = ((states >> np.uint64(18)) ^ states) >> np.uint64(27)
    word &= np.uint64(_MASK32)
    word |= word << np.uint64(32)  # the word twice: a right shift now rotates its lower half
    word >>= states >> np.uint64(59)
    word &= np.uint64(_MASK32)
    return word


class PCG32:
    """A seeded PCG32 stream.

    Args:
        seed: Any integer, taken mod 2^64.
        seq: Stream number, taken mod 2^63; streams of different numbers are different sequences.

    The seed is remembered: `substream` and `child_seed` derive from it alone, whatever was drawn or set since.

    Raises:
        TypeError: seed or seq is not an integer.
    """

    def __init__(self, seed: int, seq: int = 54) -> None:
        self.seed = index(seed) & _MASK64
        self._inc = ((index(seq) << 1) | 1) & _MASK64
        # Seeding as published: step from state 0, add the seed, step.
        self._state = ((self._inc + self.seed) * _MULTIPLIER + self._inc) & _MASK64

    def __repr__(self) -> str:
        return f"PCG32(seed={self.seed}, state={self._state}, inc={self._inc})"

    def next_u32(self) -> int:
        """Draw an integer from 0 to 2^32 - 1."""
        old = self._state
        self._state = (old * _MULTIPLIER + self._inc) & _MASK64
        word = (((old >> 18) ^ old) >> 27) & _MASK32
        return ((word | (word << 32)) >> (old >> 59)) & _MASK32

    def uniform(self) -> float:
        """Draw a float64 in [0, 1): the upper 27 and 26 bits of two outputs, as a multiple of 2^-53."""
        high = self.next_u32() >> 5
        low = self.next_u32() >> 6
        return ((high << 26) | low) * 2.0**-53

    def uniforms(self, n: int) -> NDArray[np.float64]:
        """Draw n uniforms at once.

        Args:
            n: How many, >= 0.

        Returns:
            [n] float64, bit for bit the values of n calls of `uniform`; the state afterwards is the same too.

        Raises:
            ValueError: n is not an integer >= 0.
        """
        n = check_count(n, "n", 0)
        factor, offset = _jump_table()
        steps = offset * np.uint64(self._inc)  # [_BLOCK + 1], what inc has added after 2k steps
        multiplier, inc = np.uint64(_MULTIPLIER), np.uint64(self._inc)
        result = np.empty(n, dtype=np.float64)  # [n]
        for start in range(0, n, _BLOCK):
            size = min(_BLOCK, n - start)
            states = factor[:size] * np.uint64(self._state)  # [size], before the first step of each pair
            states += steps[:size]
            bits = _outputs(states) >> np.uint64(5)  # [size], 27 bits
            bits <<= np.uint64(26)
            states *= multiplier
            states += inc
            bits |= _outputs(states) >> np.uint64(6)  # 26 bits more
            np.multiply(bits, 2.0**-53, out=result[start : start + size])  # 53 bits: the conversion is exact
            self._state = (int(factor[size]) * self._state + int(steps[size])) & _MASK64
        return result

    def below(self, n: int) -> int:
        """Draw an integer from 0 to n - 1, each equally likely (outputs below 2^32 mod n are thrown away).

        Args:
            n: From 1 to 2^32.

        Raises:
            ValueError: n is outside that range or not an integer.
        """
        n = check_count(n, "n", 1)
        if n > 1 << 32:
            raise ValueError(f"n is {n}, expected at most 2^32 = {1 << 32}; one draw has 32 bits, combine two draws")
        threshold = ((1 << 32) - n) % n
        while True:
            draw = self.next_u32()
            if draw >= threshold:
                return draw % n

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Permute a list in place (Fisher-Yates from the end, one `below` an element)."""
        for last in range(len(items) - 1, 0, -1):
            chosen = self.below(last + 1)
            items[last], items[chosen] = items[chosen], items[last]

    def child_seed(self, purpose: str) -> int:
        """Derive the seed of a substream: mix64(seed + p * golden gamma), p the purpose's number.

        Args:
            purpose: "init", "dropout", "shuffle", "sample" or "mutation".

        Raises:
            KeyError: Another purpose.
        """
        return _mix64(self.seed + _number(purpose) * _GOLDEN)

    def substream(self, purpose: str) -> PCG32:
        """Make the generator of one purpose, independent of what was drawn from this one.

        Args:
            purpose: "init", "dropout", "shuffle", "sample" or "mutation".

        Raises:
            KeyError: Another purpose.
        """
        return PCG32(self.child_seed(purpose), seq=_number(purpose))

    def state(self) -> tuple[int, int]:
        """Return (state, inc), which `set_state` takes back."""
        return self._state, self._inc

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue from a stored (state, inc); the remembered seed does not change.

        Raises:
            ValueError: Not two integers of 64 bits, or an even increment.
        """
        if len(state) != 2:
            raise ValueError(f"the state has {len(state)} parts, expected (state, inc); pass what state() returned")
        position, inc = index(state[0]), index(state[1])
        for name, value in (("state", position), ("inc", inc)):
            if not 0 <= value <= _MASK64:
                raise ValueError(f"{name} is {value}, expected 0 to 2^64 - 1; pass what state() returned")
        if inc % 2 == 0:
            raise ValueError(f"inc is {inc}, expected an odd number (an even one has a short period); check the source")
        self._state, self._inc = position, inc


def _number(purpose: str) -> int:
    """Look up a purpose's stream number."""
    try:
        return _PURPOSES[purpose]
    except KeyError:
        raise KeyError(f"unknown purpose {purpose!r}, expected one of {', '.join(_PURPOSES)}") from None


def _box_muller(uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn uniforms [2m], pairs (u1, u2), into normals [2m], pairs (r cos 2 pi u2, r sin 2 pi u2)."""
    # The C library's functions rather than NumPy's vector loops, whose last bits depend on the processor.
    result = np.empty(uniforms.size, dtype=np.float64)  # [2m]
    radius = np.sqrt([-2.0 * math.log(1.0 - u) for u in uniforms[0::2].tolist()])  # [m]
    angles = (2.0 * math.pi * uniforms[1::2]).tolist()
    result[0::2] = radius * np.array([math.cos(angle) for angle in angles])
    result[1::2] = radius * np.array([math.sin(angle) for angle in angles])
    return result


def normal(rng: PCG32, n: int) -> NDArray[np.float64]:
    """Draw n standard normals from ceil(n / 2) fresh pairs of uniforms (Box-Muller 1958).

    With u1 drawn before u2 and r = sqrt(-2 ln(1 - u1)), a pair gives r cos(2 pi u2), then r sin(2 pi u2). For odd n the
    last sine is thrown away, so the draws of one call never depend on an earlier call.

    Args:
        rng: Advanced by 2 * ceil(n / 2) uniforms.
        n: How many, >= 0.

    Returns:
        [n] float64.

    Raises:
        ValueError: n is not an integer >= 0.
    """
    n = check_count(n, "n", 0)
    return _box_muller(rng.uniforms(n + n % 2))[:n]


class NormalStream:
    """Standard normals one after another, where no half of a pair is lost.

    The unused sine of a pair is kept and comes first in the next call, single or array; drawing 3 and then 2 gives the
    values of drawing 5.

    Args:
        rng: The generator to draw the pairs from.
    """

    def __init__(self, rng: PCG32) -> None:
        self._rng = rng
        self._spare: float | None = None

    def draw(self) -> float:
        """Draw one standard normal."""
        return float(self.draws(1)[0])

    def draws(self, n: int) -> NDArray[np.float64]:
        """Draw n standard normals, [n] float64.

        Raises:
            ValueError: n is not an integer >= 0.
        """
        n = check_count(n, "n", 0)
        kept = [] if self._spare is None or n == 0 else [self._spare]
        fresh = n - len(kept)
        pairs = _box_muller(self._rng.uniforms(fresh + fresh % 2))  # [fresh, rounded up to even]
        if n > 0:
            self._spare = float(pairs[-1]) if fresh % 2 else None
        return np.concatenate([np.array(kept, dtype=np.float64), pairs[:fresh]])

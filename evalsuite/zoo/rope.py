"""Rotary positions (Su et al., "RoFormer", 2021) and the ways of stretching them to longer texts.

Of a head's r features, features i and i + r/2 are a plane that position p turns by the angle p f_i, with

    f_i = theta^(-2i / r),   i = 0 .. r/2 - 1

so the product of a query and a key depends on their distance. A model that is to read texts longer than those it was
trained on divides some of the frequencies by a factor s; which ones is the scheme's name:

``linear``  all of them (Chen et al., 2023).
``ntk``     none, but theta becomes theta s^(r / (r - 2)), which leaves the highest and divides the lowest by s.
``yarn``    those that turn less than ``beta_slow`` times over the original length, none that turn more than
            ``beta_fast`` times, a linear mixture between; queries and keys grow by 0.1 ln s + 1 (Peng et al., 2023).
``llama3``  those of a wavelength above the original length / ``low_freq_factor``, none below it /
            ``high_freq_factor``, and a mixture between that is linear in the inverse wavelength (Llama 3.1, 2024).

Angles are float32, as Hugging Face computes them: wider ones would give other scores far into a text. Only a model that
is cast to float64 has float64 angles, cosines and sines: nothing in it is then coarser than the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from evalsuite.zoo.config import Config, ConfigError, flag, one_of, positive

TYPES = ("default", "linear", "ntk", "yarn", "llama3")
KEYS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "ntk": ("factor",),
    "yarn": ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "attention_factor", "truncate"),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
}
"""What each scheme reads beside ``rope_type`` and ``rope_theta``."""


@dataclass(frozen=True)
class Rope:
    """A scheme with its numbers; those that the scheme does not use stay at their defaults."""

    rope_type: str = "default"
    rope_theta: float = 10000.0
    factor: float = 1.0
    original_max_position_embeddings: float = 0.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 0.0
    truncate: bool = True
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        if self.rope_type == "llama3" and self.low_freq_factor >= self.high_freq_factor:
            raise ConfigError(
                f"config key 'high_freq_factor': found {self.high_freq_factor!r}, expected more than low_freq_factor, "
                f"{self.low_freq_factor!r}"
            )
        if self.rope_type == "yarn" and self.rope_theta == 1.0:
            raise ConfigError(
                "config key 'rope_theta': found 1, which makes all frequencies equal: yarn cannot part them"
            )

    @classmethod
    def from_config(cls, config: Config, max_len: int) -> Rope:
        """Read ``rope_theta`` and ``rope_scaling``, or the ``rope_parameters`` that newer configurations have instead.

        Args:
            config: a configuration with Hugging Face's names.
            max_len: the original length where none is given.

        Raises:
            ValueError: an unknown scheme, a key that the scheme does not have, or a number that is none.
        """
        where = "rope_parameters" if config.get("rope_parameters") else "rope_scaling"
        given = config.get(where) or {}
        if not isinstance(given, Mapping):
            raise ConfigError(f"config key {where!r}: found {given!r}, expected an object")
        values = {"rope_theta": config.get("rope_theta", 10000.0)} | dict(given)
        kind = one_of({"rope_type": values.pop("rope_type", values.pop("type", "default"))}, "rope_type", TYPES)
        theta = positive(values, "rope_theta", 10000.0)
        values = {
            key: value for key, value in values.items() if key not in ("rope_theta", "type") and value is not None
        }
        if unknown := sorted(values.keys() - set(KEYS[kind])):
            raise ConfigError(
                f"config key {where!r}: {unknown[0]!r} means nothing to rope_type {kind!r}, which reads "
                f"{', '.join(KEYS[kind]) or 'nothing else'}"
            )
        if kind != "default" and "factor" not in values:
            raise ConfigError(f"config key {where!r}: rope_type {kind!r} needs a factor")
        numbers = {key: positive(values, key, getattr(cls, key)) for key in values if key != "truncate"}
        if "original_max_position_embeddings" in KEYS[kind]:
            numbers.setdefault("original_max_position_embeddings", float(max_len))
        truncate = flag(values, "truncate") if "truncate" in values else True
        return cls(kind, theta, truncate=truncate, **numbers)

    def tables(self, length: int, width: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of positions 0..length-1, each [length, width / 2].

        Args:
            length: positions.
            width: features of a head, r.
            like: a tensor of the wanted device and dtype.
        """
        dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
        angles = torch.arange(length, dtype=dtype)[:, None] * self._frequencies(width, dtype)
        scale = self._scale()
        return (angles.cos() * scale).to(like), (angles.sin() * scale).to(like)

    def _frequencies(self, width: int, dtype: torch.dtype) -> Tensor:
        """f_i as the scheme has it, [r / 2]."""
        theta = self.rope_theta
        if self.rope_type == "ntk":
            theta *= self.factor ** (width / (width - 2))
        exponent = torch.arange(0, width, 2, dtype=dtype) / width
        plain = 1.0 / theta**exponent
        if self.rope_type == "linear":
            return plain / self.factor
        if self.rope_type == "yarn":
            low, high = self._turning_point(self.beta_fast, width), self._turning_point(self.beta_slow, width)
            if self.truncate:
                low, high = math.floor(low), math.ceil(high)
            low, high = max(low, 0), min(high, width - 1)
            place = torch.arange(width // 2, dtype=dtype)
            divided = ((place - low) / ((high - low) or 0.001)).clamp(0, 1)
            return plain / self.factor * divided + plain * (1 - divided)
        if self.rope_type == "llama3":
            # Turns over the original length: below low_freq_factor divided, above high_freq_factor kept.
            turns = self.original_max_position_embeddings * plain / (2 * math.pi)
            kept = ((turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)).clamp(0, 1)
            return (1 - kept) * plain / self.factor + kept * plain
        return plain

    def _turning_point(self, turns: float, width: int) -> float:
        """The i, a real number, whose frequency makes that many turns over the original length."""
        length = self.original_max_position_embeddings
        return width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(self.rope_theta))

    def _scale(self) -> float:
        """What queries and keys are multiplied by."""
        if self.rope_type != "yarn":
            return 1.0
        return self.attention_factor or (0.1 * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0)


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn the planes (i, i + r/2) of [..., T, r] by the tables [T, r / 2]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)

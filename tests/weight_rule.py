"""Small checkpoints of every family with weights by a rule, and what their forward passes must give.

The rule: sort the tensor names, j = 0, 1, ...; element k in C order is float32(0.5 sin(1 + 0.7 k + 1.3 j)), or
float32(1 + 0.2 sin(...)) for the gains of norms. The numbers of ``forward_passes.json`` were computed in float64
NumPy, independently of this package, and agree with torch and Hugging Face.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

CASES: dict[str, Any] = json.loads(Path(__file__).with_name("forward_passes.json").read_text(encoding="utf-8"))


def is_gain(name: str) -> bool:
    """Whether a tensor is the gain of a LayerNorm or RMSNorm."""
    if not name.endswith(".weight"):
        return False
    parent = name.split(".")[-2]
    return parent.startswith("ln_") or "norm" in parent


def weights(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Float32 tensors by the rule."""
    tensors = {}
    for j, name in enumerate(sorted(shapes)):
        sines = np.array([math.sin(1 + 0.7 * k + 1.3 * j) for k in range(math.prod(shapes[name]))])
        tensors[name] = (1 + 0.2 * sines if is_gain(name) else 0.5 * sines).astype(np.float32).reshape(shapes[name])
    return tensors


def write_checkpoint(directory: Path, config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Path:
    """A checkpoint by the rule, written without any code of the package."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    save_file(weights(shapes), directory / "model.safetensors", {"format": "tinyllm"})
    return directory


def attention_shapes(prefix: str, d: int) -> dict[str, tuple[int, ...]]:
    """The tensors of a multi-head attention of width d."""
    return {f"{prefix}.{p}_proj.weight": (d, d) for p in "qkv"} | {
        f"{prefix}.out_proj.weight": (d, d),
        **{f"{prefix}.{p}_proj.bias": (d,) for p in ("q", "k", "v", "out")},
    }

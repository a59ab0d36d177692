"""The public names resolve, and importing the packages costs neither torch nor SciPy."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


def loaded_after(code):
    """Which of the heavy packages a fresh interpreter holds after running the code."""
    report = "import sys; print(*sorted({'torch', 'scipy', 'safetensors', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    "code",
    [
        "import evalsuite, evalsuite.zoo; dir(evalsuite); evalsuite.Result; evalsuite.ByteTokenizer",
        "import evalsuite.lm",
        "from evalsuite.zoo import read_config, kind_of, encode_batch, load_model",
    ],
)
def test_imports_are_light(code):
    assert loaded_after(code) == []


def test_reading_a_configuration_is_light(tmp_path):
    import numpy as np
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "model.safetensors", {"tl_arch": "ngram"})
    code = f"from evalsuite.zoo.checkpoint import kind_of, read_config; assert kind_of(read_config({str(tmp_path)!r}))"
    assert loaded_after(code) == []


def test_scoring_a_plain_callable_is_light():
    code = (
        "import numpy as np; from evalsuite import token_nlls\n"
        "token_nlls(lambda ids: np.zeros((1, ids.shape[1], 4)), np.array([0, 1, 2, 3]), 2, 1)"
    )
    assert loaded_after(code) == []


@pytest.mark.parametrize("package", ["evalsuite", "evalsuite.zoo"])
def test_every_public_name_resolves_and_is_listed(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)


@pytest.mark.parametrize("package", ["evalsuite", "evalsuite.zoo"])
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = importlib.import_module(package).nothing

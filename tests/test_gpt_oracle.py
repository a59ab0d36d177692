"""Hugging Face's GPT-2 as the oracle: the same weights give the same strided per-token NLLs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from evalsuite.lm import token_nlls
from evalsuite.zoo.families.gpt import from_hf_gpt2, load, save

transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def oracle(request):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, tie_word_embeddings=request.param
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))  # biases and gains too, far from their start
    return model


def plain_nlls(model, ids, ctx_len, stride):
    """The Hugging Face recipe, one window at a time, with its count put right."""
    nlls, previous = [], 1
    for begin in range(0, len(ids), stride):
        end = min(begin + ctx_len, len(ids))
        with torch.no_grad():
            rows = torch.log_softmax(model(torch.from_numpy(ids[None, begin:end])).logits[0].double(), -1)
        nlls += [-float(rows[t - 1 - begin, ids[t]]) for t in range(previous, end)]
        previous = end
        if end == len(ids):
            return np.array(nlls)
    raise AssertionError("no window reached the end")


@pytest.mark.parametrize(("ctx_len", "stride"), [(8, 4), (8, 7), (16, 15), (16, 1)])
def test_strided_nlls_match_hugging_face(oracle, tmp_path, ctx_len, stride):
    ids = np.random.default_rng(0).integers(0, 50, 61)
    expected = plain_nlls(oracle, ids, ctx_len, stride)
    ours = from_hf_gpt2(oracle.state_dict(), oracle.config.to_dict())
    np.testing.assert_allclose(token_nlls(ours, ids, ctx_len, stride), expected, atol=1e-5)
    # The Hugging Face model itself is scored as a plain module, window by window.
    np.testing.assert_allclose(token_nlls(oracle, ids, ctx_len, stride), expected, atol=1e-5)
    save(ours, tmp_path)
    np.testing.assert_allclose(token_nlls(load(tmp_path), ids, ctx_len, stride), expected, atol=1e-5)


def test_the_prefix_may_be_absent(oracle):
    bare = {name.removeprefix("transformer."): tensor for name, tensor in oracle.state_dict().items()}
    ours = from_hf_gpt2(bare, oracle.config.to_dict())
    assert torch.equal(ours.wpe.weight, oracle.transformer.wpe.weight)


def test_a_setting_that_the_model_does_not_have_is_refused(oracle):
    with pytest.raises(ValueError, match="'activation_function': found 'relu', only 'gelu_new' is supported"):
        from_hf_gpt2(oracle.state_dict(), oracle.config.to_dict() | {"activation_function": "relu"})

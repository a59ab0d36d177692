"""PCG32 against the published vectors, and the vectorised draws against the single ones."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.stats.pcg32 import PCG32, NormalStream, normal

U32 = {
    0: [1203932051, 3113183783, 2101201694, 4034269462, 2630041435],
    1: [2607537577, 204602440, 3466066159, 2183922644, 2487127282],
    42: [0xA15C02B7, 0x7B47F409, 0xBA1D3330, 0x83D2F293, 0xBFA4784B, 0xCBED606E],
}
UNIFORM = {
    0: [0.2803122753265841, 0.4892241428740438, 0.6123542393923406, 0.34110672967546707, 0.09078100588415128],
    1: [0.6071146506640145, 0.8070064150429078, 0.579079442525411, 0.6869878306011451, 0.13930748004392746],
}
NORMAL = {
    0: [-0.809237002555057, 0.05487465048869301, -0.7457425176448607, 1.1572358387116342, 0.18554303822392118],
    1: [0.4792045624901359, -1.2801710317678228, -0.5073405793582986, -1.2137659831773626, -0.3390429782870848],
}
BELOW_10 = {
    0: [1, 3, 4, 2, 5, 7, 2, 6, 7, 9, 2, 8, 0, 7, 4, 3],
    1: [7, 0, 9, 4, 2, 7, 6, 7, 6, 5, 8, 0, 8, 2, 6, 2],
}
SHUFFLED = {0: [0, 3, 5, 4, 8, 9, 7, 6, 2, 1], 1: [5, 3, 6, 0, 2, 8, 1, 9, 4, 7]}
CHILD = {
    (0, "init"): 16294208416658607535,
    (0, "sample"): 17909611376780542444,
    (1, "init"): 10451216379200822465,
    (1, "sample"): 8196980753821780235,
}
SAMPLE_U32 = {
    0: [3444971639, 4260714914, 2470929150, 1051028940],
    1: [3376753372, 3462355821, 1445319583, 3239269940],
}


def ulps(value: float, reference: float) -> float:
    return abs(value - reference) / math.ulp(reference)


@pytest.mark.parametrize("seed", U32)
def test_integers(seed):
    rng = PCG32(seed)
    assert [rng.next_u32() for _ in U32[seed]] == U32[seed]


@pytest.mark.parametrize("seed", UNIFORM)
def test_uniforms(seed):
    rng = PCG32(seed)
    assert [rng.uniform() for _ in range(5)] == UNIFORM[seed]
    assert PCG32(seed).uniforms(5).tolist() == UNIFORM[seed]


@pytest.mark.parametrize("seed", NORMAL)
def test_normals_both_ways(seed):
    stream = NormalStream(PCG32(seed))
    ways = [normal(PCG32(seed), 5).tolist(), [stream.draw() for _ in range(5)]]
    for values in ways:
        assert max(map(ulps, values, NORMAL[seed])) <= 4


def test_normal_takes_fresh_pairs_and_the_stream_keeps_the_spare():
    rng = PCG32(0)
    first, second = normal(rng, 3), normal(rng, 2)
    assert rng.state() == advanced(0, 6).state()  # two pairs, then one
    stream = NormalStream(PCG32(0))
    joined = np.concatenate([stream.draws(3), stream.draws(0), stream.draws(2)])
    assert joined.tolist() == NormalStream(PCG32(0)).draws(5).tolist()
    assert joined[:3].tolist() == first.tolist()
    assert joined[4] == second[0]  # the spare came in between
    assert normal(PCG32(0), 0).shape == (0,)


def advanced(seed: int, uniforms: int) -> PCG32:
    rng = PCG32(seed)
    for _ in range(uniforms):
        rng.uniform()
    return rng


@pytest.mark.parametrize("seed", BELOW_10)
def test_below(seed):
    rng = PCG32(seed)
    assert [rng.below(10) for _ in range(16)] == BELOW_10[seed]


def test_below_at_its_limits_and_outside():
    assert PCG32(7).below(1) == 0
    assert PCG32(0).below(1 << 32) == U32[0][0]
    for n in (0, -1, (1 << 32) + 1, 2.0, True):
        with pytest.raises(ValueError, match="expected"):
            PCG32(0).below(n)


def test_below_rejects_the_draws_that_would_favour_small_results():
    # 2^32 mod n = 2^31 - 1 here, so half of the draws are thrown away.
    n = (1 << 31) + 1
    rng, raw = PCG32(3), PCG32(3)
    kept = [draw % n for draw in (raw.next_u32() for _ in range(64)) if draw >= (1 << 32) % n]
    assert [rng.below(n) for _ in kept] == kept
    assert 16 < len(kept) < 48


@pytest.mark.parametrize("seed", SHUFFLED)
def test_shuffle(seed):
    items = list(range(10))
    PCG32(seed).shuffle(items)
    assert items == SHUFFLED[seed]


@pytest.mark.parametrize(("seed", "purpose"), CHILD)
def test_child_seed(seed, purpose):
    assert PCG32(seed).child_seed(purpose) == CHILD[seed, purpose]


@pytest.mark.parametrize("seed", SAMPLE_U32)
def test_substream_derives_from_the_seed_not_from_the_state(seed):
    rng = PCG32(seed)
    rng.uniforms(17)
    rng.set_state((5, 7))
    child = rng.substream("sample")
    assert [child.next_u32() for _ in range(4)] == SAMPLE_U32[seed]
    assert child.seed == CHILD[seed, "sample"]


def test_unknown_purpose():
    with pytest.raises(KeyError, match=r"evaluation.*init, dropout, shuffle, sample, mutation"):
        PCG32(0).substream("evaluation")


@given(seed=st.integers(0, 2**64 - 1), seq=st.integers(0, 2**63 - 1), sizes=st.lists(st.integers(0, 40), max_size=4))
@settings(max_examples=40, deadline=None)
def test_arrays_draw_what_single_calls_draw(seed, seq, sizes):
    rng, single = PCG32(seed, seq), PCG32(seed, seq)
    for size in sizes:
        assert rng.uniforms(size).tolist() == [single.uniform() for _ in range(size)]
        assert rng.state() == single.state()


def test_arrays_longer_than_a_block():
    rng, single = PCG32(11), PCG32(11)
    n = 2 * 8192 + 5
    assert rng.uniforms(n).tolist() == [single.uniform() for _ in range(n)]
    assert rng.next_u32() == single.next_u32()


def test_uniforms_look_uniform():
    draws = PCG32(2024).uniforms(200_000)
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    counts = np.histogram(draws, bins=20, range=(0.0, 1.0))[0]
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 43.8  # chi-squared, 19 degrees of freedom, p = .001


def test_bad_sizes():
    for n in (-1, 2.5, True):
        with pytest.raises(ValueError, match="n is"):
            PCG32(0).uniforms(n)


def test_state_round_trip_and_refusals():
    rng = PCG32(9)
    rng.uniforms(3)
    saved = rng.state()
    ahead = rng.uniforms(4)
    other = PCG32(0)
    other.set_state(saved)
    assert other.uniforms(4).tolist() == ahead.tolist()
    with pytest.raises(ValueError, match="odd"):
        rng.set_state((1, 2))
    with pytest.raises(ValueError, match="2\\^64"):
        rng.set_state((1 << 64, 1))
    with pytest.raises(ValueError, match="3 parts"):
        rng.set_state((1, 1, 1))  # type: ignore[arg-type]


def test_seed_is_taken_modulo_two_to_the_64():
    assert PCG32(2**64 + 5).state() == PCG32(5).state()
    assert PCG32(-1).seed == 2**64 - 1
    with pytest.raises(TypeError):
        PCG32(1.5)  # type: ignore[arg-type]


def test_importing_the_package_and_the_generator_loads_neither_scipy_nor_torch():
    code = (
        "import sys, evalsuite.stats as s; s.PCG32(0).uniforms(3); s.bootstrap_ci; s.NLLAccumulator(); s.sign_flip_p; "
        "bad = {'scipy', 'torch'} & set(sys.modules); assert not bad, bad"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_resolves_and_others_do_not():
    import evalsuite.stats as stats

    for name in stats.__all__:
        assert getattr(stats, name).__name__ == name
    assert set(stats.__all__) <= set(dir(stats))
    with pytest.raises(AttributeError, match=r"no attribute 'bootstrap'.*bootstrap_ci"):
        stats.__getattr__("bootstrap")

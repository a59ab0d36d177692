"""The verdict on a row: every awkward input gets the answer that a careful reader of its numbers would give."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalsuite.evals.choices import measure_choices
from evalsuite.evals.language_model import measure_stream, stream_nll
from evalsuite.gate.verdict import ALPHA_ROW, Verdict, judge, row_levels
from evalsuite.result import Measurement
from evalsuite.tasks.items import ChoiceItem
from evalsuite.tasks.task import Task
from evalsuite.tasks.tokens import Document, TokenFile
from evalsuite.zoo.families.gpt import GPT, GPTConfig
from tests.gate_rows import documents, items

torch.set_num_threads(1)

LEVEL = 0.04
HALF = [0.5] * 200


def flips(lost: int, gained: int, same: int = 180) -> tuple[Measurement, Measurement]:
    """0/1 items of which some went wrong and some right: (now, base)."""
    base = [1.0] * lost + [0.0] * gained + [1.0] * same
    now = [0.0] * lost + [1.0] * gained + [1.0] * same
    return items(now), items(base)


# --- the family and its levels


def test_gating_rows_share_the_level_and_informing_ones_cost_nothing() -> None:
    levels = row_levels({"a": True, "b": False, "c": True, "d": True, "e": True})
    assert levels == {"a": 0.01, "c": 0.01, "d": 0.01, "e": 0.01}
    assert ALPHA_ROW == 0.04
    assert row_levels({}) == {}
    assert row_levels({"a": False}) == {}


# --- awkward inputs, one after the other


def test_1_identical_scores() -> None:
    found = judge(items(HALF), items(HALF), LEVEL)
    assert found == Verdict("ok", level=LEVEL, min_drop=0.001, units=200, drop_ci95=(0.0, 0.0))
    assert (found.drop, found.p, found.changed) == (0.0, 1.0, 0)


def test_1_every_score_better_is_never_red() -> None:
    found = judge(items([0.9] * 200), items(HALF), LEVEL)
    assert (found.state, found.p) == ("improved", 1.0)
    assert found.drop == pytest.approx(-0.4)
    assert (found.worse, found.better) == (0, 200)


def test_2_lost_items_count_as_losses() -> None:
    """200 items: 30 that were right are gone, 6 of the rest were gained. Dropping the 30 would read "better"."""
    base = items([1] * 30 + [0] * 6 + [1] * 164)
    now = items([1] * 170, ids=[f"q{i}" for i in range(30, 200)])
    found = judge(now, base, LEVEL)
    assert found.state == "regressed"
    assert (found.worse, found.better, len(found.missing)) == (30, 6, 30)
    assert found.missing[:2] == ("q0", "q1")
    assert found.drop == pytest.approx(24 / 200)
    # Binomial tail of 36 fair coins, 30 or more of one kind.
    assert found.p == pytest.approx(sum(math.comb(36, k) for k in range(30, 37)) / 2**36, rel=1e-12)
    assert found.notes == ("30 units of the baseline are missing and count as losses",)


def test_3_changed_content_is_incomparable() -> None:
    base = items([1] * 200, task_hash="one")
    now = items([1] * 180, task_hash="two")
    found = judge(now, base, LEVEL)
    assert (found.state, found.p, found.drop) == ("incomparable", 1.0, 0.0)
    assert "180 of 200 units" in found.reason
    assert "first changed: q180, q181, q182 and 17 more" in found.reason
    # Not even a row that only informs pretends to compare.
    assert judge(now, base, None).state == "incomparable"


def test_4_an_id_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="'q1' stands twice in this run"):
        judge(items([1, 1, 1], ids=["q0", "q1", "q1"]), items([1, 1, 1]), LEVEL)


def test_5_unscored_items_are_counted() -> None:
    now = items([0] * 10 + [1] * 190, unscored=tuple(f"q{i}" for i in range(10)))
    found = judge(now, items([1] * 200), LEVEL)
    assert (found.state, found.p) == ("regressed", 2.0**-10)
    assert found.notes == ("10 units could not be scored and count at the worst score",)


def test_6_a_score_that_falls_everywhere_without_failing_anything() -> None:
    found = judge(items([0.1] * 40), items([0.9] * 40), LEVEL)
    assert (found.state, found.p) == ("regressed", 2.0**-40)
    assert found.drop == pytest.approx(0.8)


def test_7_the_direction_belongs_to_the_row() -> None:
    tokens = [100.0] * 12
    base = documents([200.0 + i for i in range(12)], tokens, metric="nll")
    now = documents([204.0 + 2 * i for i in range(12)], tokens, metric="nll")
    found = judge(now, base, LEVEL)
    assert (found.state, found.p) == ("regressed", 2.0**-12)
    assert found.drop == pytest.approx((4 * 12 + 66) / 1200)
    assert judge(base, now, LEVEL).state == "improved"


def test_10_a_constant_shift_of_min_drop_passes_with_a_note() -> None:
    base = [0.2 + 0.003 * i for i in range(200)]
    found = judge(items([score - 0.001 for score in base]), items(base), LEVEL)
    assert (found.state, found.p) == ("ok", 2.0**-200)
    assert found.drop == pytest.approx(0.001)
    assert found.notes == ("constant shift: every unit moved by the same amount",)
    assert judge(items([score - 0.0010001 for score in base]), items(base), LEVEL).state == "regressed"


def test_10_equal_steps_of_some_items_are_no_constant_shift() -> None:
    """0/1 scores that change at all change by 1: a note on every such row would say nothing."""
    assert judge(*flips(12, 0), LEVEL).notes == ()


@pytest.mark.parametrize(
    ("lost", "gained", "p"), [(8, 0, 1 / 256), (12, 3, 0.017578125), (1, 0, 1 / 2), (0, 4, 1.0), (5, 5, 319 / 512)]
)
def test_11_exact_p(lost: int, gained: int, p: float) -> None:
    found = judge(*flips(lost, gained), LEVEL)
    assert found.p == pytest.approx(p, rel=1e-14)
    assert (found.changed, found.worse, found.better) == (lost + gained, lost, gained)


def test_11_three_small_losses() -> None:
    found = judge(items([0.499] * 3 + HALF), items([0.5] * 3 + HALF), LEVEL)
    assert (found.state, found.p) == ("ok", 1 / 8)


@pytest.mark.parametrize("groups", [1, 4])
def test_12_too_few_clusters_are_blind(groups: int) -> None:
    labels = [f"c{i % groups}" for i in range(40)]
    found = judge(items([0] * 40, clusters=labels), items([1] * 40, clusters=labels), LEVEL)
    assert (found.state, found.units) == ("blind", groups)
    assert found.drop == 1.0  # shown all the same
    assert found.reason == f"{groups} units can reach p = {2.0**-groups:.2g} at best, the row's level is 0.04"


def test_12_enough_clusters_are_not_blind() -> None:
    labels = [f"c{i % 5}" for i in range(40)]  # 2^-5 = 0.031
    found = judge(items([0] * 40, clusters=labels), items([1] * 40, clusters=labels), LEVEL)
    assert (found.state, found.units, found.p) == ("regressed", 5, 2.0**-5)


def test_12_clusters_are_the_units() -> None:
    """Ten passages of 20 questions, each wholly lost or gained: 100 items an item-level test would call significant."""
    labels = [f"c{i // 20}" for i in range(200)]
    base = [float(i // 20 < 6) for i in range(200)]
    now = [float(i // 20 in (6, 7)) for i in range(200)]
    found = judge(items(now, clusters=labels), items(base, clusters=labels), LEVEL)
    assert (found.units, found.worse, found.better) == (10, 6, 2)
    assert found.p == pytest.approx(37 / 256)
    assert found.state == "ok"


def test_16_a_row_that_says_it_is_blind_never_fails() -> None:
    now = items([0] * 40, blind="one text: no significance can be had from it")
    found = judge(now, items([1] * 40), LEVEL)
    assert (found.state, found.reason) == ("blind", "one text: no significance can be had from it")


def test_a_row_without_a_level_informs() -> None:
    found = judge(items([0] * 40), items([1] * 40), None)
    assert (found.state, found.p, found.level) == ("informing", 2.0**-40, None)


@pytest.mark.parametrize(
    ("level", "same", "state"),
    [
        (2.0**-8, 180, "regressed"),
        (2.0**-8 * (1 - 1e-9), 180, "ok"),
        (2.0**-8, 0, "regressed"),
        (2.0**-8 * (1 - 1e-9), 0, "blind"),
    ],
)
def test_a_row_fails_at_its_level(level: float, same: int, state: str) -> None:
    assert judge(*flips(8, 0, same), level).state == state


@pytest.mark.parametrize(
    ("min_drop", "state"),
    [(0.1, "ok"), (0.1 * (1 + 1e-10), "ok"), (0.1 * (1 - 1e-8), "regressed"), (0.0, "regressed")],
)
def test_min_drop_has_a_relative_slack(min_drop: float, state: str) -> None:
    assert judge(*[replace(row, min_drop=min_drop) for row in flips(20, 0)], LEVEL).state == state


@pytest.mark.parametrize(("by", "state"), [(1e-10, "ok"), (1e-8, "regressed")])
def test_without_min_drop_rounding_is_still_no_loss(by: float, state: str) -> None:
    given = {"min_drop": 0.0, "bounds": None}
    assert judge(items([3.0 - by] * 20, **given), items([3.0] * 20, **given), LEVEL).state == state


def test_min_drop_is_that_of_this_run() -> None:
    now, base = flips(20, 0)
    found = judge(replace(now, min_drop=0.2), base, LEVEL)
    assert (found.state, found.min_drop) == ("ok", 0.2)


def test_an_improvement_within_min_drop_is_ok() -> None:
    found = judge(items([0.5005] * 200), items(HALF), LEVEL)
    assert (found.state, round(found.drop, 12)) == ("ok", -0.0005)


def test_perplexity_drops_by_its_own_values() -> None:
    tokens = [100.0] * 12
    base = documents([200.0] * 12, tokens, metric="ppl")
    now = documents([210.0 + i for i in range(12)], tokens, metric="ppl")
    found = judge(now, base, LEVEL)
    assert found.state == "regressed"
    assert found.drop == pytest.approx(math.exp((12 * 210 + 66) / 1200) - math.exp(2))
    assert found.drop_ci95 is None


def test_paired_interval_by_hand() -> None:
    """Student t of the differences 0.1, 0.3, 0.2, 0: mean 0.15, sd sqrt(0.05 / 3), t_(3, .975) = 3.182446305284263."""
    found = judge(items([0.4, 0.2, 0.3, 0.5]), items([0.5, 0.5, 0.5, 0.5]), LEVEL)
    half = 3.182446305284263 * math.sqrt(0.05 / 3 / 4)
    assert found.drop == pytest.approx(0.15)
    assert found.drop_ci95 == pytest.approx((0.15 - half, 0.15 + half), rel=1e-12)


def test_one_unit_has_no_paired_interval() -> None:
    assert judge(items([0.0]), items([1.0]), LEVEL).drop_ci95 is None


def test_the_same_scores_give_the_same_verdict() -> None:
    rng = np.random.default_rng(1)
    now, base = items(rng.uniform(size=300)), items(rng.uniform(size=300))
    assert judge(now, base, LEVEL) == judge(now, base, LEVEL)


# --- the dead zone, on a model


class Noisy(GPT):
    """A GPT on another machine: every logit moves by at most ``scale``."""

    scale = 0.0

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        clean = super().logits(hidden).double()
        noise = torch.rand(clean.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        return clean + self.scale * (2 * noise - 1)


def random_gpt(scale: float = 0.0) -> Noisy:
    torch.manual_seed(3)
    model = Noisy(GPTConfig(256, 32, 16, 2, 1, 32))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.scale = scale
    return model.eval()


def prose(model: GPT, metric: str = "bpb") -> Measurement:
    ids = np.random.default_rng(2).integers(0, 256, 48 * 20)
    index = tuple(Document(f"doc {i}", 20 * i, 20 * (i + 1)) for i in range(48))
    tokens = TokenFile(ids, 256)
    config = {"tl_arch": "gpt", "n_positions": 32}
    task = Task("prose", "lm", None, ("bpb", "ppl", "nll"), ("bpb",))  # type: ignore[arg-type]
    return measure_stream("gpt", task, stream_nll(model, config, tokens, {}), tokens, index, {})[metric]


def quiz(model: GPT, metric: str) -> Measurement:
    rng = np.random.default_rng(4)
    words = ["".join(chr(97 + letter) for letter in rng.integers(0, 26, rng.integers(1, 6))) for _ in range(200)]
    asked = [ChoiceItem(f"q{i}", f"{words[i]} ", (words[i + 50], words[i + 100]), i % 2) for i in range(50)]
    # Ties broken by noise alone: the same choice twice.
    asked += [ChoiceItem(f"tie{i}", f"{words[i]} ", (words[i], words[i]), i % 2) for i in range(10)]
    task = Task("quiz", "choices", None, ("acc", "acc_norm"), ("acc",))  # type: ignore[arg-type]
    return measure_choices("gpt", task, model, asked, {})[metric]


@pytest.mark.parametrize("metric", ["bpb", "nll", "ppl"])
def test_noise_of_another_machine_moves_no_document(metric: str) -> None:
    base, now = prose(random_gpt(), metric), prose(random_gpt(1e-7), metric)
    assert len(base.scores.ids) == 48
    assert (now.scores.scores != base.scores.scores).sum() > 40  # the noise is there
    found = judge(now, base, LEVEL)
    assert (found.state, found.drop, found.p, found.changed) == ("ok", 0.0, 1.0, 0)
    assert judge(prose(random_gpt(0.5), metric), base, LEVEL).changed > 40  # and the dead zone is narrow


@pytest.mark.parametrize("metric", ["acc", "acc_norm"])
def test_noise_of_another_machine_moves_no_item(metric: str) -> None:
    base, now = quiz(random_gpt(), metric), quiz(random_gpt(1e-7), metric)
    flipped = (now.scores.scores != base.scores.scores).sum()
    assert flipped > 0  # the ties did flip
    found = judge(now, base, LEVEL)
    assert (found.state, found.drop, found.p, found.changed) == ("ok", 0.0, 1.0, 0)
    assert judge(quiz(random_gpt(0.5), metric), base, LEVEL).changed > 0


# --- properties

# Multiples of 2^-10, whose sums float64 holds exactly: p-values then do not hang on the order of additions.
scores = st.integers(0, 1024).map(lambda k: k / 1024)
pairs = st.lists(st.tuples(scores, scores), min_size=1, max_size=40)
levels = st.sampled_from([0.04, 0.01, 0.001])


def rows(found: list[tuple[float, float]], **facts: Any) -> tuple[Measurement, Measurement]:
    """(now, base) from pairs of scores."""
    return items([a for a, _ in found], **facts), items([b for _, b in found], **facts)


def assert_same(one: Verdict, other: Verdict) -> None:
    """Equal but for rounding in the last digits."""
    assert one.state == other.state
    assert one.p == pytest.approx(other.p, rel=1e-9)
    assert one.drop == pytest.approx(other.drop, rel=1e-9, abs=1e-15)
    assert (one.units, one.changed, one.worse, one.better) == (other.units, other.changed, other.worse, other.better)


@settings(max_examples=100, deadline=None)
@given(found=pairs, level=levels, data=st.data(), clustered=st.booleans())
def test_order_of_units_does_not_count(
    found: list[tuple[float, float]], level: float, data: st.DataObject, clustered: bool
) -> None:
    labels = [f"c{i % 7}" for i in range(len(found))] if clustered else None
    now, base = rows(found, clusters=labels)

    def shuffled(row: Measurement) -> Measurement:
        order = data.draw(st.permutations(range(len(found))))
        return items(
            row.scores.scores[list(order)],
            ids=[row.scores.ids[i] for i in order],
            clusters=None if labels is None else [labels[i] for i in order],
        )

    assert_same(judge(shuffled(now), shuffled(base), level), judge(now, base, level))


@settings(max_examples=100, deadline=None)
@given(found=pairs, level=levels)
def test_swapping_the_sides_turns_the_sign(found: list[tuple[float, float]], level: float) -> None:
    now, base = rows(found)
    there, back = judge(now, base, level), judge(base, now, level)
    assert back.drop == -there.drop
    assert (back.worse, back.better) == (there.better, there.worse)
    mirrored = {"regressed": "improved", "improved": "regressed"}
    assert back.state == mirrored.get(there.state, there.state)


@settings(max_examples=100, deadline=None)
@given(found=pairs, level=levels)
def test_the_convention_of_direction_does_not_count(found: list[tuple[float, float]], level: float) -> None:
    now, base = rows(found)
    negative = {"higher_is_better": False, "bounds": (-1.0, 0.0)}
    mirrored = rows([(-a, -b) for a, b in found], **negative)
    assert_same(judge(*mirrored, level), judge(now, base, level))


@settings(max_examples=100, deadline=None)
@given(found=pairs, level=levels, factor=st.sampled_from([0.25, 2.0, 1024.0]))
def test_scaling_weights_scales_the_drop_alone(found: list[tuple[float, float]], level: float, factor: float) -> None:
    now, base = rows(found, min_drop=0.0)
    plain = judge(now, base, level)
    scaled = [replace(row, scores=replace(row.scores, weights=row.scores.weights * factor)) for row in (now, base)]
    wide = judge(*scaled, level)
    assert (wide.state, wide.p) == (plain.state, plain.p)
    assert wide.drop == pytest.approx(plain.drop / factor)


@settings(max_examples=100, deadline=None)
@given(found=pairs, level=levels, extra=st.lists(scores, min_size=1, max_size=60))
def test_unchanged_units_never_make_a_regression(
    found: list[tuple[float, float]], level: float, extra: list[float]
) -> None:
    before = judge(*rows(found), level)
    assume(before.state != "regressed")
    after = judge(*rows(found + [(score, score) for score in extra]), level)
    assert after.state != "regressed"
    assert after.p == before.p


@settings(max_examples=100, deadline=None)
@given(found=pairs, level=levels, lost=st.integers(1, 8))
def test_losing_items_never_helps(found: list[tuple[float, float]], level: float, lost: int) -> None:
    now, base = rows(found)
    assume(lost < len(found))
    kept = range(lost, len(found))
    fewer = items(now.scores.scores[lost:], ids=[now.scores.ids[i] for i in kept])
    with_all, without = judge(now, base, level), judge(fewer, base, level)
    assert without.drop >= with_all.drop - 1e-15
    assert without.p <= with_all.p * (1 + 1e-9)

"""The eight classic faults of such a harness, each planted into a copy of the package: the tests must fail.

A fault is a text replaced in one file. The copy runs the test named beside it, which passes on a sound copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FAULTS = {
    "1a the overlap is scored again": (
        "evalsuite/scoring/windows.py",
        "first=scored - begin",
        "first=1",
        "tests/test_lm.py::test_hand_example_strided_windows",
    ),
    "1b a stride of the whole window is allowed": (
        "evalsuite/scoring/windows.py",
        "1 <= stride < ctx_len:",
        "1 <= stride <= ctx_len:",
        "tests/test_lm.py::test_a_stride_that_leaves_a_token_without_context_is_refused",
    ),
    "2 a choice is read one position late": (
        "evalsuite/lm.py",
        "rows[np.arange(span.first - 1, len(span.tokens) - 1), targets]",
        "rows[np.arange(span.first, len(span.tokens)), targets]",
        "tests/test_lm.py::test_hand_example_choices",
    ),
    "3a acc and acc_norm are swapped": (
        "evalsuite/lm.py",
        'metric == "acc_norm" else',
        'metric == "acc" else',
        "tests/test_lm.py::test_run_task_scores_items_and_bootstraps",
    ),
    "3b ties go to the last choice": (
        "evalsuite/lm.py",
        "int(np.argmax(scores))",
        "int(len(scores) - 1 - np.argmax(scores[::-1]))",
        "tests/test_lm.py::test_run_task_scores_items_and_bootstraps",
    ),
    "4a bits per byte in nats": (
        "evalsuite/stats/accumulator.py",
        "bpb=total / math.log(2.0)",
        "bpb=total",
        "tests/test_lm.py::test_uniform_bigram_is_exactly_eight_bits_a_byte",
    ),
    "4b bits per byte of a row in nats": (
        "evalsuite/evals/language_model.py",
        '"bpb": n_bytes * math.log(2)',
        '"bpb": n_bytes',
        "tests/test_language_model_eval.py",
    ),
    "4c the bigram table is read transposed": (
        "evalsuite/zoo/families/bigram.py",
        "self._nll[tokens[:-1], tokens[1:]]",
        "self._nll[tokens[1:], tokens[:-1]]",
        "tests/test_families.py::test_bigram_reads_rows_as_the_token_before",
    ),
    "5a the interval of perplexity is left in nats": (
        "evalsuite/lm.py",
        "float(np.exp(lo)), float(np.exp(hi))",
        "float(lo), float(hi)",
        "tests/test_lm.py::test_hand_example_perplexity",
    ),
    "5b Fisher z with the root of n": (
        "evalsuite/stats/intervals.py",
        "max(n - 3, 1)",
        "max(n, 1)",
        "tests/stats/test_stats_intervals.py",
    ),
    "6 items are compared unpaired": (
        "evalsuite/lm.py",
        "paired_permutation_test(a.per_item, b.per_item",
        "permutation_test(a.per_item, b.per_item",
        "tests/test_lm.py::test_compare_uses_the_pairing",
    ),
    "7 exact match with the end symbol still on": (
        "evalsuite/evals/exact_match.py",
        "tokens[:-1] if finished else tokens",
        "tokens",
        "tests/test_exact_match.py",
    ),
    "8 rows of every split are scored": (
        "evalsuite/tasks/sentences.py",
        "if fields[0] == split:",
        "if fields[0]:",
        "tests/test_sentences.py",
    ),
}


def copy_of_the_project(folder: Path) -> Path:
    for name in ("evalsuite", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(project: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    environment = {**os.environ, "PYTHONPATH": str(project), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def test_the_sound_copy_passes(tmp_path: Path) -> None:
    done = run(copy_of_the_project(tmp_path), *sorted({test for *_, test in FAULTS.values()}))

    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_turns_its_test_red(fault: str, tmp_path: Path) -> None:
    file, sound, faulty, test = FAULTS[fault]
    target = copy_of_the_project(tmp_path) / file
    text = target.read_text(encoding="utf-8")
    assert text.count(sound) == 1, f"{file} no longer reads {sound!r} once: plant the fault where the code is now"
    target.write_text(text.replace(sound, faulty), encoding="utf-8")

    done = run(tmp_path, test)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr

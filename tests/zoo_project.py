"""A user's project small enough to be scored in a second: three models, two tasks, and runs of it in subprocesses.

The models are a bigram table, a Kneser-Ney trigram and a random GPT of width 16, over bytes; the text is drawn from a
seeded generator, 48 documents of some 60 bytes, and the quiz asks which word ends a sentence of the same kind.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalsuite.report.build import validate
from evalsuite.report.eval_results import validate_v1

ROOT = Path(__file__).resolve().parents[1]
SUITE = ("--pyargs", "evalsuite")
PLUGINS = ("-p", "xdist", "-p", "syrupy", "-p", "evalsuite.plugin")
LM_ROWS = ("bpb", "ppl", "nll")
QUIZ_ROWS = ("acc", "acc_norm")
DOCUMENTS = 48
ITEMS = 30

ENTRIES: dict[str, dict[str, Any]] = {
    "bigram": {"id": "bigram", "dir": "bigram", "tasks": ["prose"]},
    "kn3": {"id": "kn3", "dir": "kn3/model.safetensors", "tasks": ["prose", "quiz"]},
    "gpt": {"id": "gpt", "dir": "gpt", "tasks": ["prose", "quiz"]},
}

_NOUNS = ("cat", "dog", "king", "ship", "river", "stone", "bird", "tree")
_VERBS = ("sees", "takes", "finds", "likes")


def row_ids(*models: str) -> list[str]:
    """Ids of the rows that models of the project have, in manifest order."""
    tasks = {"prose": LM_ROWS, "quiz": QUIZ_ROWS}
    return [
        f"{model}--{task}--{metric}" for model in models for task in ENTRIES[model]["tasks"] for metric in tasks[task]
    ]


def _sentence(rng: np.random.Generator) -> str:
    a, b = rng.choice(_NOUNS, 2)
    return f"the {a} {rng.choice(_VERBS)} the {b}"


def write_template(folder: Path) -> None:
    """Write the project once; tests copy it."""
    import torch

    from evalsuite.tasks.tokens import Document, write_index, write_tokens
    from evalsuite.zoo.families import bigram, gpt, ngram

    rng = np.random.default_rng(7)

    def stream(documents: int) -> tuple[np.ndarray, list[Document]]:
        texts = [". ".join(_sentence(rng) for _ in range(3)) + "\n" for _ in range(documents)]
        ends = np.cumsum([len(text) for text in texts])
        index = [
            Document(f"doc {i}", int(end) - len(text), int(end))
            for i, (text, end) in enumerate(zip(texts, ends, strict=True))
        ]
        return np.frombuffer("".join(texts).encode(), np.uint8), index

    models, tasks = folder / "models", folder / "tasks"
    tasks.mkdir(parents=True)
    train, _ = stream(40)
    bigram.save(bigram.BigramLM.fit(train, 256, alpha=0.1), models / "bigram")
    (models / "kn3").mkdir()
    ngram.save(ngram.NGramLM().fit([train], 3, 0.75, vocab_size=256), models / "kn3" / "model.safetensors")
    torch.manual_seed(7)
    config = gpt.GPTConfig(vocab_size=256, n_positions=32, n_embd=16, n_head=2, n_layer=1, n_inner=32)
    gpt.save(gpt.GPT(config), models / "gpt")
    (models / "zoo.json").write_text(json.dumps({"suite": "small", "models": list(ENTRIES.values())}))

    (tasks / "prose").mkdir()
    ids, index = stream(DOCUMENTS)
    write_tokens(tasks / "prose" / "heldout.bin", ids, 256)
    write_index(tasks / "prose" / "heldout.bin", index, len(ids))
    (tasks / "quiz").mkdir()
    items = []
    for i in range(ITEMS):
        sentence, wrong = _sentence(rng), "".join(rng.permutation(list("stone")))
        context, _, last = sentence.rpartition(" ")
        choices = [f" {last}", f" {wrong}"]
        label = int(rng.integers(2))
        items.append({"id": f"q{i}", "context": context, "choices": choices[:: 1 - 2 * label], "label": label})
    (tasks / "quiz" / "quiz.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    for name, kind, data in (("prose", "lm", "prose/heldout.bin"), ("quiz", "choices", "quiz/quiz.jsonl")):
        (tasks / f"{name}.json").write_text(json.dumps({"format": "evalsuite.task.v1", "kind": kind, "data": data}))
    (folder / "pytest.ini").write_text("[pytest]\n")


LOADS_CONFTEST = """
import json, os, pathlib
from evalsuite import measure

LOADS = pathlib.Path(__file__).with_name("loads.jsonl")
real = measure.load


def load(entry):
    with open(LOADS, "a") as f:  # one short write in append mode: lines of two workers do not mix
        f.write(json.dumps([entry.name, os.getpid(), os.environ.get("OMP_NUM_THREADS")]) + "\\n")
    return real(entry)


measure.load = load
"""
"""Notes every load of a checkpoint."""


@dataclass(frozen=True)
class Ran:
    """What one run left behind.

    Attributes:
        exit: its exit status.
        text: what it printed, standard error included.
        report: report.json, or None.
        folder: the report's folder.
    """

    exit: int
    text: str
    report: dict[str, Any] | None
    folder: Path
    loads: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        assert self.report is not None, self.text
        return {row["id"]: row for row in self.report["rows"]}

    @property
    def states(self) -> dict[str, str]:
        return {row_id: row["state"] for row_id, row in self.rows.items()}

    @property
    def screen(self) -> str:
        """The suite's part of the last screen."""
        _, found, rest = self.text.partition("= evalsuite =")
        assert found, self.text
        return re.split(r"\n[-=]{3,} ", rest.partition("\n")[2])[0].strip("\n")


class Project:
    """A copy of the template in a pytester's folder."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path

    def run(
        self, *args: str, out: str = "eval-report", timeout: float = 180, plugins: tuple[str, ...] = PLUGINS
    ) -> Ran:
        """Run pytest with these arguments here, in a process of its own."""
        report = self.path / out / "report.json"
        (self.path / "loads.jsonl").unlink(missing_ok=True)
        before = report.stat().st_mtime_ns if report.exists() else 0
        result = self.pytester.runpytest_subprocess(*plugins, *args, timeout=timeout)
        return self.left(int(result.ret), f"{result.stdout.str()}\n{result.stderr.str()}", out=out, before=before)

    def left(self, status: int, text: str, *, out: str = "eval-report", before: int = 0) -> Ran:
        """What a run left. A report that it wrote must be valid and know the exit status.

        Args:
            status, text: of the run.
            out: the report's folder.
            before: when the report was written that was there before the run, or 0.
        """
        folder, loads = self.path / out, self.path / "loads.jsonl"
        report = folder / "report.json"
        found = json.loads(report.read_text()) if report.exists() else None
        if found and report.stat().st_mtime_ns != before:
            assert validate(found) == [], text
            assert validate_v1(json.loads((folder / "eval-results.json").read_text())) == [], text
            assert found["verdict"]["exit"] == status, text
        noted = loads.read_text().splitlines() if loads.exists() else []
        return Ran(status, text, found, folder, Counter(json.loads(line)[0] for line in noted))

    def suite(self, *args: str, **options: Any) -> Ran:
        """Run the suite."""
        return self.run(*SUITE, *args, **options)

    def printed(self, ran: Ran, label: str, **options: Any) -> Ran:
        """Run the ``pytest`` command that a last screen prints, as it stands there."""
        found = re.search(rf"^ +{re.escape(label)} +pytest (.+)$", ran.screen, re.MULTILINE)
        assert found, ran.screen
        return self.run(*shlex.split(found[1]), **options)

    def manifest(self, *entries: str | Mapping[str, Any]) -> None:
        """Let the zoo consist of these entries."""
        models = [ENTRIES[entry] if isinstance(entry, str) else entry for entry in entries]
        (self.path / "models" / "zoo.json").write_text(json.dumps({"suite": "small", "models": models}))

    def conftest(self, text: str) -> None:
        """Write the project's conftest.py."""
        (self.path / "conftest.py").write_text(text)

    def damage(self, model: str, scale: float) -> None:
        """Add Gaussian noise to a checkpoint's weights."""
        from evalsuite.zoo.families import bigram

        folder = self.path / "models" / model
        loaded = bigram.load(folder)
        noise = np.random.default_rng(1).normal(0, scale, loaded.weight.shape).astype(np.float32)
        bigram.save(bigram.BigramLM(loaded.weight + noise), folder)

    def snapshots(self) -> dict[str, bytes]:
        """Every file below snapshots/ and its content."""
        folder = self.path / "snapshots"
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def without_run(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report without the block that may differ between equal runs."""
    return {key: value for key, value in report.items() if key != "run"}


def of_rows(files: Iterable[str]) -> set[str]:
    """Row ids that files below snapshots/ belong to."""
    return {re.sub(r"(\.[0-9a-f]{8}\.safetensors|\.json)$", "", Path(name).name) for name in files}

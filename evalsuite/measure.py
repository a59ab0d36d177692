"""Case -> checkpoint, eval, interval -> measurement: how one number of the zoo comes to be."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.cases import Case
from evalsuite.provenance import content_hash, sha256_of_files
from evalsuite.result import Measurement
from evalsuite.tasks.similarity import similarity_path
from evalsuite.tasks.task import METRICS_OF_KIND, Task
from evalsuite.zoo.checkpoint import kind_of, load_model, parameter_count, read_config
from evalsuite.zoo.manifest import Entry
from evalsuite.zoo.registry import arch_of

if TYPE_CHECKING:
    from evalsuite.stats import PCG32


class UnscoredError(Exception):
    """A case that gave no number.

    Attributes:
        state: ``error``, or ``skipped`` for a family that has no scorer.
        reason: what went wrong, for the report.
    """

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Loaded:
    """A checkpoint in memory.

    Attributes:
        model: the family's model.
        config: its configuration; ``tl_arch`` names the family.
        source: what the report says of it: ``tl_arch``, ``checkpoint``, ``checkpoint_sha256``, ``params``.
    """

    model: Any
    config: Mapping[str, Any]
    source: Mapping[str, object]


def load(entry: Entry) -> Loaded:
    """Load an entry's checkpoint.

    Raises:
        KeyError: no scorer for its family; raised before anything is loaded.
        ValueError: the checkpoint is broken; the message names the file.
    """
    config = read_config(entry.directory)
    kind_of(config)
    model = load_model(entry.directory)
    return Loaded(
        model,
        config,
        {
            "tl_arch": arch_of(config),
            "checkpoint": entry.raw["dir"],
            "checkpoint_sha256": sha256_of_files(entry.directory),
            "params": parameter_count(model),
        },
    )


def measure_task(loaded: Loaded, entry: Entry, task: Task, rng: PCG32) -> dict[str, Measurement]:
    """All metrics of one model on one task, from one pass over the data.

    Args:
        loaded: the checkpoint.
        entry: its fields override the task's settings.
        task: what it is scored on.
        rng: generator of the rows that draw.

    Raises:
        ValueError: data that is broken or does not fit the model.
    """
    from evalsuite.evals.by_kind import measure_kind

    data = similarity_path(task.data) if task.kind == "embeddings" else task.data
    source = {
        **loaded.source,
        "data": _shown(task.data, entry.root),
        "data_sha256": sha256_of_files(data) if data.is_file() else None,
    }
    settings = {**task.settings, **entry.raw}
    return measure_kind(entry.name, task, loaded.model, loaded.config, settings, rng, source)


def row_generator(seed: int, model: str, task: Task) -> PCG32:
    """The generator of a row's draws, from the suite's seed and the row id alone: no row depends on another, and rows
    of one pass share their draws under the id of the primary one."""
    from evalsuite.stats import PCG32

    row_id = f"{model}--{task.name}--{METRICS_OF_KIND[task.kind][0]}"
    return PCG32(int(content_hash(str(seed), row_id), 16))


def _shown(path: Path, root: Path) -> str:
    """A data path that is the same on every machine, as far as it lies in the project."""
    project = root.resolve().parent
    resolved = path.resolve()
    return resolved.relative_to(project).as_posix() if resolved.is_relative_to(project) else resolved.as_posix()


def failure(error: Exception) -> UnscoredError:
    """What a row says of an exception: the first seed's ``TypeName: message``, or ``skipped`` without a scorer."""
    if isinstance(error, KeyError):
        text = str(error.args[0]) if error.args else ""
        if "no zoo scorer" in text:
            return UnscoredError("skipped", text)
        return UnscoredError("error", f"KeyError: {text}")
    return UnscoredError("error", f"{type(error).__name__}: {error}".rstrip(": "))


class Bench:
    """Measures cases, keeping one checkpoint and the rows of its last task, so that a model-major run loads each
    checkpoint once and scores each task once for all its metrics.

    Args:
        threads: threads torch may use in this process.
        seed: the suite's.
    """

    def __init__(self, threads: int, seed: int) -> None:
        self.threads = threads
        self.seed = seed
        self.seconds = {"load_seconds": 0.0, "eval_seconds": 0.0}
        self._entry: Entry | None = None
        self._loaded: Loaded | UnscoredError | None = None
        self._task: Task | None = None
        self._rows: dict[str, Measurement] | UnscoredError = {}

    def checkpoint(self, entry: Entry) -> Loaded:
        """The entry's checkpoint, loaded now or before.

        Raises:
            UnscoredError: it cannot be loaded. The failure is kept too: a broken checkpoint is read once.
        """
        if self._entry != entry:
            # Free the one before: two checkpoints in memory at once may not fit.
            self._entry, self._loaded, self._task = None, None, None
            gc.collect()
            start = time.perf_counter()
            try:
                self._loaded = self._load(entry)
            except Exception as error:  # every fault of a checkpoint is a row with a reason
                self._loaded = failure(error)
            self._entry = entry
            self.seconds = {"load_seconds": time.perf_counter() - start, "eval_seconds": 0.0}
        assert self._loaded is not None
        if isinstance(self._loaded, UnscoredError):
            raise self._loaded
        return self._loaded

    def measure(self, case: Case) -> Measurement:
        """One row.

        Raises:
            UnscoredError: the case is broken, or its checkpoint or data; with the reason.
        """
        if case.problem:
            raise UnscoredError("error", case.problem)
        loaded = self.checkpoint(case.entry)
        if self._task != case.task:
            start = time.perf_counter()
            try:
                self._rows = measure_task(
                    loaded, case.entry, case.task, row_generator(self.seed, case.model, case.task)
                )
            except Exception as error:
                self._rows = failure(error)
            self._task = case.task
            self.seconds["eval_seconds"] += time.perf_counter() - start
        if isinstance(self._rows, UnscoredError):
            raise self._rows
        row = self._rows[case.metric]
        min_drop = row.min_drop if case.min_drop is None else case.min_drop
        return replace(row, gating=case.gating, min_drop=min_drop)

    def timing(self) -> dict[str, float]:
        """Seconds spent on the model in hand and the process's peak memory, for the report's ``run`` block."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        return {**self.seconds, "peak_rss_mb": round(peak, 1)}

    def _load(self, entry: Entry) -> Loaded:
        import torch

        torch.set_num_threads(self.threads)
        return load(entry)

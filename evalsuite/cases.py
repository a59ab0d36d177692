"""Manifest x tasks -> cases: what the suite will score, found without loading a weight.

`discover` is a pure function of the files it reads, so every process of a run sees the same list in the same
order. What is broken is still a case: it fails with its reason, while all others are scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalsuite.names import UNKNOWN, name_problem, row_part
from evalsuite.tasks.task import GATING_OF_KIND, METRICS_OF_KIND, Task, read_task, task_names
from evalsuite.zoo.checkpoint import kind_of, read_config
from evalsuite.zoo.manifest import Entry, read_entries
from evalsuite.zoo.registry import family_of


@dataclass(frozen=True)
class Case:
    """One row to be: a metric of a model on a task.

    Attributes:
        entry: the model.
        task: the task; of a broken one only the name counts.
        metric: the metric's name.
        problem: why the case cannot be scored, or "".
        ad_hoc: whether it came from the command line; such rows need no baseline and never gate.
    """

    entry: Entry
    task: Task
    metric: str
    problem: str = ""
    ad_hoc: bool = False

    @property
    def model(self) -> str:
        """The model's part of the row id."""
        return self.entry.name

    @property
    def row_id(self) -> str:
        """``model--task--metric``."""
        return f"{self.model}--{self.task.name}--{self.metric}"

    @property
    def gating(self) -> bool:
        """Whether the row can turn a build red by being worse."""
        return not self.ad_hoc and self.metric in self.task.gating and self.entry.raw.get("gating", True) is not False

    @property
    def min_drop(self) -> float | None:
        """The smallest drop that may fail as set by the entry or the task, or None for the metric's default."""
        drops = {**self.task.min_drop, **self.entry.raw.get("min_drop", {})}
        return float(drops[self.metric]) if self.metric in drops else None


def discover(
    models: Path, tasks: Path, checkpoints: Sequence[Path] = (), task_files: Sequence[Path] = ()
) -> tuple[Case, ...]:
    """All cases: the zoo's in manifest order, a model's together, then those of the command line.

    Args:
        models: folder of ``zoo.json``.
        tasks: folder of the task files.
        checkpoints: further checkpoints, scored on ``task_files``, or else on every task in ``tasks`` they can do.
        task_files: further task files; without ``checkpoints`` every model of the zoo is scored on them.
    """
    extra = tuple(path for path in task_files if path.parent != tasks.resolve())
    cases: list[Case] = []
    if not checkpoints or (models / "zoo.json").exists():
        try:
            entries = read_entries(models / "zoo.json")
        except ValueError as error:
            entries = ()
            cases.append(_manifest_case(models, str(error)))
        else:
            if not entries and not checkpoints:
                cases.append(_manifest_case(models, f"{models / 'zoo.json'} lists no model: nothing would be scored"))
        for entry in entries:
            cases += _entry_cases(entry, tasks)
            if not checkpoints:
                cases += [case for path in extra for case in _task_cases(entry, path, ad_hoc=True)]
    taken = {case.model.casefold(): case.entry for case in cases}
    for checkpoint in checkpoints:
        cases += _checkpoint_cases(checkpoint, tasks, task_files, taken)
    return tuple(_refuse_twins(cases))


def _manifest_case(models: Path, problem: str) -> Case:
    """The row of a zoo that cannot be read: an empty run must be red and say why."""
    return Case(Entry("zoo", {}, models), _nothing(UNKNOWN), "score", problem)


def _nothing(name: str) -> Task:
    """A stand-in for a task that cannot be read."""
    return Task(name, UNKNOWN, Path(), ("score",), ("score",))


def _entry_cases(entry: Entry, tasks: Path) -> Iterator[Case]:
    raw = entry.raw
    names = raw.get("tasks")
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        for name in names:
            yield from _task_cases(entry, tasks / f"{name}.json")
    elif names is None and isinstance(raw.get("task"), str) and raw["task"]:
        yield from _seed_cases(entry)
    else:
        problem = entry.problem or (
            f'entry {raw.get("id")!r} names no task: give it "tasks", a list of task files, or "task" and "data"'
        )
        yield Case(entry, _nothing(UNKNOWN), "score", problem)


def _task_cases(entry: Entry, path: Path, *, ad_hoc: bool = False) -> Iterator[Case]:
    """Cases of a model on a task file. A file that cannot be read gives one case that says so."""
    name = row_part(path.stem)
    try:
        if problem := name_problem(name):
            name = UNKNOWN
            raise ValueError(problem)
        task = read_task(path)
    except ValueError as error:
        yield Case(entry, _nothing(name), "score", entry.problem or str(error), ad_hoc)
        return
    for metric in task.metrics:
        yield Case(entry, replace(task, name=name), metric, entry.problem, ad_hoc)


def _seed_cases(entry: Entry) -> Iterator[Case]:
    """Cases of an entry in the first seed's form: one task, its data beside it, settings in the entry."""
    raw = entry.raw
    name = row_part(str(raw["task"]))
    problem = entry.problem or name_problem(name)
    kind = _kind(entry)
    if not problem and kind != UNKNOWN and not (isinstance(raw.get("data"), str) and raw["data"]):
        problem = f'entry {raw["id"]!r} has no "data", the file that its task {name!r} is scored on'
    metric = str(raw.get("metric", "score"))
    metrics = METRICS_OF_KIND.get(kind, ("score" if name_problem(metric) else metric,))
    task = Task(
        UNKNOWN if name_problem(name) else name,
        kind,
        entry.root / str(raw.get("data", "")),
        metrics,
        GATING_OF_KIND.get(kind, metrics),
    )
    for metric in metrics:
        yield Case(entry, task, metric, problem)


def _kind(entry: Entry) -> str:
    """The family's kind; where the checkpoint cannot tell, a token file means a language model."""
    try:
        return kind_of(read_config(entry.directory))
    except (ValueError, KeyError, OSError):
        return "lm" if str(entry.raw.get("data", "")).endswith(".bin") else UNKNOWN


def _checkpoint_cases(
    checkpoint: Path, tasks: Path, task_files: Sequence[Path], taken: dict[str, Entry]
) -> Iterator[Case]:
    """Cases of a checkpoint of the command line, which take its name."""
    name = row_part(checkpoint.stem if checkpoint.suffix == ".safetensors" else checkpoint.name)
    problem = name_problem(name)
    stand_in = f"{UNKNOWN if problem else name}-checkpoint"
    if (twin := taken.get(name.casefold())) is not None:
        folder = twin.directory.resolve()
        if checkpoint.resolve() in (folder, folder.parent):
            problem = f"{checkpoint} is the model {twin.name!r} already: score it with --eval-model {twin.name} instead"
        else:
            problem = f"{checkpoint}: there is a model of the name {twin.name!r} already: rename the folder"
    raw: dict[str, Any] = {"id": name, "dir": str(checkpoint)}
    entry = Entry(stand_in if problem else name, raw, checkpoint.parent, problem)
    taken.setdefault(entry.name.casefold(), entry)
    paths = task_files or [tasks / f"{task}.json" for task in task_names(tasks)]
    if not paths:
        yield Case(entry, _nothing(UNKNOWN), "score", f"no task to score {checkpoint} on: {tasks} holds none", True)
    for path in paths:
        for case in _task_cases(entry, path, ad_hoc=True):
            if task_files or _can_do(entry, case.task.kind):
                yield case


def _can_do(entry: Entry, kind: str) -> bool:
    """Whether the family can do a task of the kind; True where the checkpoint cannot tell, so that its row says why."""
    try:
        return family_of(read_config(entry.directory)).does(kind)
    except (ValueError, KeyError, OSError):
        return True


def _refuse_twins(cases: Iterable[Case]) -> Iterator[Case]:
    """Row ids name files: two that differ in case only would overwrite each other, so a later twin is left out
    and the first says so."""
    seen: dict[str, int] = {}
    kept: list[Case] = []
    for case in cases:
        key = case.row_id.casefold()
        if key not in seen:
            seen[key] = len(kept)
            kept.append(case)
            continue
        first = kept[seen[key]]
        problem = f"the row {case.row_id} is asked for twice (case does not count): rename a task or drop one"
        kept[seen[key]] = Case(first.entry, first.task, first.metric, first.problem or problem, first.ad_hoc)
    return iter(kept)

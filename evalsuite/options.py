"""Every option of the suite in one table: command line, ini key, default, and the settings they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from evalsuite.names import row_part


@dataclass(frozen=True)
class Option:
    """One setting. ``--eval-NAME`` on the command line, ``eval_NAME`` in the ini file.

    Attributes:
        name: with hyphens, without the prefix.
        default: a path (relative to the project's root), a number, or () for a list.
        metavar, help: what ``pytest --help`` shows.
    """

    name: str
    default: str | int | tuple[()]
    metavar: str
    help: str

    @property
    def flag(self) -> str:
        """The command-line spelling."""
        return f"--eval-{self.name}"

    @property
    def key(self) -> str:
        """The ini spelling, also the name on ``config.option``."""
        return f"eval_{self.name.replace('-', '_')}"


OPTIONS = (
    Option("models", "models", "DIR", "folder of zoo.json and the checkpoints"),
    Option("tasks", "tasks", "DIR", "folder of the task files"),
    Option("snapshots", "snapshots", "DIR", "folder of the baselines"),
    Option("out", "eval-report", "DIR", "folder the report is written to"),
    Option("model", (), "NAME", "score this model only (exact name; may be given again)"),
    Option("task", (), "NAME", "score this task only (exact name, or a task file to add; may be given again)"),
    Option("checkpoint", (), "DIR", "also score this checkpoint, without a baseline (may be given again)"),
    Option("seed", 0, "N", "seed of the suite; every draw comes from (seed, row id)"),
    Option("threads", 1, "N", "threads of each process, whatever -n says"),
)


@dataclass(frozen=True)
class Settings:
    """The options of a run, resolved: paths are absolute, names are as typed."""

    models: Path
    tasks: Path
    snapshots: Path
    out: Path
    only_models: tuple[str, ...]
    only_tasks: tuple[str, ...]
    task_files: tuple[Path, ...]
    checkpoints: tuple[Path, ...]
    seed: int
    threads: int

    @property
    def narrowed(self) -> bool:
        """Whether a model or a task was asked for by name."""
        return bool(self.only_models or self.only_tasks)


def add_options(parser: pytest.Parser) -> None:
    """Register the table with pytest, as options and as ini keys."""
    group = parser.getgroup("evalsuite", "evaluations of language models")
    for option in OPTIONS:
        many = option.default == ()
        text = option.help if many else f"{option.help} (default: {option.default})"
        group.addoption(
            option.flag,
            dest=option.key,
            action="append" if many else "store",
            default=None,
            metavar=option.metavar,
            help=text,
        )
        kind: Literal["args", "string"] = "args" if many else "string"
        parser.addini(option.key, text, kind, default=None)


def given(config: pytest.Config) -> bool:
    """Whether any option of the suite stands on the command line or in the ini file."""
    return any(getattr(config.option, one.key) or config.getini(one.key) for one in OPTIONS)


def typed(config: pytest.Config) -> list[str]:
    """What a command that scores a row again has to repeat: the project, and the options of the suite as they were
    typed, but for those that only narrow the run."""
    words: list[str] = []
    for flag, value in (("-c", config.option.inifilename), ("--rootdir", config.option.rootdir)):
        words += [flag, str(value)] if value else []
    for option in OPTIONS:
        value = getattr(config.option, option.key)
        for one in [value] if isinstance(value, str) else value or ():
            if option.name != "model" and (option.name != "task" or _names_a_file(one)):
                # In one word: pytest takes an existing path that stands alone for an argument that sets its root.
                words.append(f"{option.flag}={one}")
    return words


def settings(config: pytest.Config) -> Settings:
    """Resolve the options. A path typed on the command line is relative to where it was typed, one in
    the ini file or a default to the project's root.

    Raises:
        pytest.UsageError: a number that is none, or is out of range.
    """
    raw = {option.key: _lookup(config, option) for option in OPTIONS}
    path = _absolute(config)
    tasks = raw["eval_task"]
    files = tuple(path("eval_task", task) for task in tasks if _names_a_file(task))
    return Settings(
        models=path("eval_models", raw["eval_models"]),
        tasks=path("eval_tasks", raw["eval_tasks"]),
        snapshots=path("eval_snapshots", raw["eval_snapshots"]),
        out=path("eval_out", raw["eval_out"]),
        only_models=tuple(row_part(model) for model in raw["eval_model"]),
        only_tasks=tuple(row_part(Path(task).stem if _names_a_file(task) else task) for task in tasks),
        task_files=files,
        checkpoints=tuple(path("eval_checkpoint", item) for item in raw["eval_checkpoint"]),
        seed=_whole(raw["eval_seed"], "--eval-seed", least=0),
        threads=_whole(raw["eval_threads"], "--eval-threads", least=1),
    )


def _lookup(config: pytest.Config, option: Option) -> Any:
    typed = getattr(config.option, option.key)
    if typed is not None:
        return typed
    return config.getini(option.key) or option.default


def _absolute(config: pytest.Config) -> Callable[[str, str], Path]:
    def resolve(key: str, value: str) -> Path:
        typed = getattr(config.option, key) is not None
        path = (config.invocation_params.dir if typed else config.rootpath) / value
        try:
            return path.resolve()
        except (OSError, RuntimeError) as error:
            raise pytest.UsageError(f"{path}: cannot be followed ({error})") from None

    return resolve


def _names_a_file(task: str) -> bool:
    return task.endswith(".json") or "/" in task


def _whole(value: str | int, flag: str, *, least: int) -> int:
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if number < least:
        raise pytest.UsageError(f"{flag} takes a whole number of at least {least}, got {value!r}")
    return number

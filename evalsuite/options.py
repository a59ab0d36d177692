"""Every option of the suite in one table: command line, ini key, default, and the settings they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    """The options of a run, resolved: paths are absolute, names are as typed. ``root`` is pytest's."""

    root: Path
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
    for option, value in _given_values(config):
        if option.name != "model" and (option.name != "task" or _names_a_file(value)):
            words.append(f"{option.flag}={value}")  # in one word, see `check_root`
    return words


def _given_values(config: pytest.Config) -> Iterator[tuple[Option, str]]:
    """Options of the command line and their values, as they were typed."""
    for option in OPTIONS:
        value = getattr(config.option, option.key)
        for one in [value] if isinstance(value, str) else value or ():
            yield option, one


_CONFIGURES = {
    **dict.fromkeys(("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"), ""),
    **{"pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"},
}
"""Files that make their folder pytest's root, and what must stand in them for that."""


def check_root(config: pytest.Config) -> None:
    """Refuse a run whose root is not the project's. Before pytest knows our options it takes any path that exists and
    stands alone for a test's, and looks for its root above all of those: the run would read the zoo and the baselines
    of another project, or of none.

    Raises:
        pytest.UsageError: an option's path, typed apart from its option, moved the root.
    """
    here = config.invocation_params.dir
    root = next((folder for folder in (here, *here.parents) if _configures_pytest(folder)), None)
    if root is None or config.rootpath.is_relative_to(root) or config.option.rootdir or config.option.inifilename:
        return
    for option, value in _given_values(config):
        if value in config.invocation_params.args and not (here / value).resolve().is_relative_to(root.resolve()):
            raise pytest.UsageError(
                f"{option.flag} {value}: pytest took this path for one of a test and moved its root from {root} to "
                f"{config.rootpath}; write it in one word, {option.flag}={value}"
            )


def _configures_pytest(folder: Path) -> bool:
    return any(
        (folder / name).is_file() and mark in (folder / name).read_text(encoding="utf-8", errors="replace")
        for name, mark in _CONFIGURES.items()
    )


def settings(config: pytest.Config) -> Settings:
    """The options of a process, resolved; see `resolve`."""
    return resolve(choices(config))


def choices(config: pytest.Config) -> dict[str, Any]:
    """What was chosen, as plain values that can go to a worker: by key an option's value and the folder that its paths
    are relative to, and under ``root`` pytest's root."""
    chosen: dict[str, Any] = {"root": str(config.rootpath)}
    for option in OPTIONS:
        typed = getattr(config.option, option.key)
        if typed is not None:
            chosen[option.key] = (typed, str(config.invocation_params.dir))
        else:
            chosen[option.key] = (config.getini(option.key) or option.default, chosen["root"])
    return chosen


def resolve(chosen: Mapping[str, Any]) -> Settings:
    """The settings that choices make. A path typed on the command line is relative to where it was typed, one in the
    ini file or a default to the project's root.

    Raises:
        pytest.UsageError: a number that is none, or is out of range.
    """

    def path(key: str, value: str | None = None) -> Path:
        chosen_value, base = chosen[key]
        return _absolute(Path(base) / (chosen_value if value is None else value))

    models, tasks, checkpoints = (chosen[key][0] for key in ("eval_model", "eval_task", "eval_checkpoint"))
    return Settings(
        root=Path(chosen["root"]),
        models=path("eval_models"),
        tasks=path("eval_tasks"),
        snapshots=path("eval_snapshots"),
        out=path("eval_out"),
        only_models=tuple(row_part(model) for model in models),
        only_tasks=tuple(row_part(Path(task).stem if _names_a_file(task) else task) for task in tasks),
        task_files=tuple(path("eval_task", task) for task in tasks if _names_a_file(task)),
        checkpoints=tuple(path("eval_checkpoint", item) for item in checkpoints),
        seed=_whole(chosen["eval_seed"][0], "--eval-seed", least=0),
        threads=_whole(chosen["eval_threads"][0], "--eval-threads", least=1),
    )


def _absolute(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise pytest.UsageError(f"{path}: cannot be followed ({error})") from None


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

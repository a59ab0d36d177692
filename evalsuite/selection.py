"""What a run was asked for: is the suite active, is the run narrowed, which rows do the collected tests stand for.

Light: it is imported in every run of an environment that has the plugin.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.options import Settings, given, typed

if TYPE_CHECKING:
    from evalsuite.cases import Case

OUTCOMES = pytest.StashKey[list[Any]]()
"""On a test's item: the rows it opened. Here, so that a test without rows costs no import."""

HAD_BASELINES = pytest.StashKey[bool]()
"""On the controller's configuration: whether any row was stored when the session began."""

ZOO_TEST = "evalsuite/test_zoo.py::test_metric"
"""How the report names the zoo's test, wherever the package is installed."""

_ZOO_ID = re.compile(r"(?:^|/)test_zoo\.py::test_metric\[(?P<row>[^\[\]]+)\]$")


def active(config: pytest.Config) -> bool:
    """Whether the run scores the zoo or uses an option of the suite; only then are scheduler, threads and the number
    of workers ours to set."""
    return given(config) or asks_for_zoo(config)


def asks_for_zoo(config: pytest.Config) -> bool:
    """Whether an argument names the package or something in it."""
    return any(_into_package(config, argument) for argument in config.args)


def asks_for(config: pytest.Config, file: str) -> bool:
    """Whether an argument names a test file, or a folder that it is in or was in."""
    if config.option.pyargs:
        return False
    path = (config.rootpath / file).absolute()
    here = config.invocation_params.dir
    return any(path.is_relative_to((here / argument.split("::")[0]).absolute()) for argument in config.args)


def _into_package(config: pytest.Config, argument: str) -> bool:
    name = argument.split("::")[0]
    if config.option.pyargs and name.split(".")[0] == "evalsuite":
        return True
    path = (config.invocation_params.dir / name).resolve()
    return any(_is_package(folder) for folder in (path, *path.parents))


def _is_package(folder: Path) -> bool:
    """Whether a folder is this package. By its files: an installed plugin may score the suite of a clone."""
    return folder.name == "evalsuite" and all((folder / name).is_file() for name in ("plugin.py", "test_zoo.py"))


def has_baselines(snapshots: Path) -> bool:
    """Whether any row is stored there, found without loading what reads them."""
    return any(snapshots.glob("*/*--*--*.json"))


def narrowed(config: pytest.Config, settings: Settings) -> bool:
    """Whether the run was told to leave tests out, so that a row without a result need not be lost."""
    option = config.option
    chosen = ("keyword", "markexpr", "lf", "deselect", "ignore", "ignore_glob", "stepwise")
    return (
        settings.narrowed
        or any(getattr(option, name, None) for name in chosen)
        or any("::" in argument for argument in config.args)
    )


def zoo_row(node_id: str) -> str | None:
    """The row that a test of the zoo stands for, or None for any other test."""
    match = _ZOO_ID.search(node_id)
    return match["row"] if match else None


def why(report: pytest.TestReport) -> str:
    """In a line, why a test did not pass."""
    crash = getattr(report.longrepr, "reprcrash", None)
    # A traceback begins its message with the reason; a bare text (a skip, a crash, a verdict) ends with it.
    lines = (crash.message if crash is not None else report.longreprtext).strip().splitlines()
    return str(lines[0 if crash is not None else -1]) if lines else ""


def test_files(node_ids: Iterable[str]) -> frozenset[str]:
    """The test files that the node ids lie in."""
    return frozenset(node_id.split("::")[0] for node_id in node_ids)


def command(config: pytest.Config) -> str:
    """How this user starts the suite, for the commands that the report prints: with what was typed to say where things
    are and how to score, without what narrowed the run."""
    paths = [argument.split("::")[0] for argument in config.args if _into_package(config, argument)]
    suite = ["--pyargs", "evalsuite"] if config.option.pyargs else [_typed_suite(config, paths)]
    return shlex.join(["pytest", *suite, *typed(config)])


def _typed_suite(config: pytest.Config, paths: Sequence[str]) -> str:
    """The package's folder as an argument, or the name it has in a clone where none was given."""
    for path in paths:
        for folder in (Path(path), *Path(path).parents):
            if _is_package((config.invocation_params.dir / folder).resolve()):
                return str(folder)
    return "evalsuite"


def case_of(item: pytest.Item) -> Case | None:
    """The case that a test is parametrised with, or None."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("eval_case") if callspec is not None else None


def arrange(
    items: Sequence[pytest.Item], settings: Settings, cases: Sequence[Case]
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Split tests into those to run and those that ``--eval-model`` and ``--eval-task`` leave out.

    A model's tests are put together, in the order of the cases, so that its checkpoint is loaded once; tests without
    a case come first, in their order.
    """
    place = {name: index for index, name in enumerate(dict.fromkeys(case.model for case in cases))}
    kept: list[tuple[int, pytest.Item]] = []
    dropped: list[pytest.Item] = []
    for item in items:
        case = case_of(item)
        if case is None:
            kept.append((-1, item))
        elif _wanted(case.model, settings.only_models) and _wanted(case.task.name, settings.only_tasks):
            kept.append((place[case.model], item))
        else:
            dropped.append(item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])], dropped


def _wanted(name: str, names: tuple[str, ...]) -> bool:
    return not names or name in names

"""The pytest plugin: options, fixtures and hooks, each a few lines over tested functions.

It is loaded in every run of an environment that has evalsuite, so importing it loads neither torch nor SciPy, and a
run that neither scores the zoo nor uses an option of the suite is left alone until a test records a row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.options import add_options
from evalsuite.selection import OUTCOMES, active

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from evalsuite.cases import Case
    from evalsuite.measure import Loaded
    from evalsuite.record import Run
    from evalsuite.result import Measurement


def pytest_addoption(parser: pytest.Parser) -> None:
    """Controller and workers: register the options. https://docs.pytest.org/en/stable/reference/reference.html"""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Controller and workers, before anything is collected. The controller prepares an active run, keeps the book."""
    if hasattr(config, "workerinput"):
        return
    from evalsuite.controller import Controller

    controller = Controller(config)
    config.pluginmanager.register(controller, "evalsuite-controller")
    if active(config):
        controller.prepare(os.environ)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Workers (or the only process): one test for each case, for the suite's test and for user tests alike."""
    if "eval_case" in metafunc.fixturenames:
        from evalsuite.record import run_of

        cases = run_of(metafunc.config).cases
        metafunc.parametrize("eval_case", cases, ids=[case.row_id for case in cases], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers (or the only process): drop what was not asked for, put a model's tests together."""
    from evalsuite.selection import arrange, case_of

    if any(case_of(item) for item in items):
        from evalsuite.record import run_of

        items[:], dropped = arrange(items, run_of(config).settings, run_of(config).cases)
        config.hook.pytest_deselected(items=dropped)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Workers (or the only process): the rows of a test ride on its report, and a red row's text is its failure."""
    report = yield
    if OUTCOMES in item.stash:
        from evalsuite.record import attach_rows

        attach_rows(item, report)
    return report


@pytest.fixture
def eval_run(request: pytest.FixtureRequest) -> Run:
    """Settings, cases and measuring bench of this process."""
    from evalsuite.record import run_of

    return run_of(request.config)


@pytest.fixture
def eval_case(request: pytest.FixtureRequest) -> Case:
    """The case of this test. A test that asks for it runs once for every row of the zoo."""
    case: Case = request.param
    return case


@pytest.fixture
def checkpoint(eval_case: Case, eval_run: Run) -> Loaded:
    """The loaded checkpoint of this test's case: ``.model``, ``.config``, ``.source``. One is in memory at a time."""
    from evalsuite.record import checkpoint_of

    return checkpoint_of(eval_run, eval_case)


@pytest.fixture
def baseline(request: pytest.FixtureRequest, eval_case: Case, snapshot: SnapshotAssertion) -> Any:
    """The stored scores of this test's case; a measurement equals them when it is not significantly worse."""
    from evalsuite.record import open_case

    return open_case(request, eval_case, snapshot)


@pytest.fixture
def measure(request: pytest.FixtureRequest, eval_run: Run) -> Callable[[Case], Measurement]:
    """A function from a case to its measurement; a case that cannot be scored fails the test with its reason."""
    from evalsuite.record import measure_case

    return lambda case: measure_case(request, eval_run, case)


@pytest.fixture
def eval_record(request: pytest.FixtureRequest, snapshot: SnapshotAssertion) -> Callable[..., None]:
    """Add a row of your own to the report, gated like the zoo's: ``eval_record("helpfulness", scores, units=ids,
    task="support", model="my-bot")`` asserts when it is called. See `evalsuite.record.record_scores`."""
    from evalsuite.record import record_scores

    def record(
        metric: str,
        scores: Sequence[Any],
        units: Sequence[Hashable] | None = None,
        clusters: Sequence[Hashable] | None = None,
        **settings: Any,
    ) -> None:
        __tracebackhide__ = True
        record_scores(request, snapshot, metric, scores, units, clusters, **settings)

    return record

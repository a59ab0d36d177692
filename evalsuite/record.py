"""The worker's side of a row: measure it, compare it with its baseline, send it along with the test's report."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.session import SnapshotSession

from evalsuite.cases import Case, discover
from evalsuite.gate.snapshot import Desk, extension_for
from evalsuite.gate.store import ZOO_STEM, Stored, baselines
from evalsuite.gate.verdict import row_levels
from evalsuite.measure import Bench, Loaded, UnscoredError
from evalsuite.names import MANIFEST_ROW, name_problem
from evalsuite.options import Settings, resolve, settings
from evalsuite.provenance import git_commit, platform_name, versions
from evalsuite.report.outcome import Outcome
from evalsuite.report.terminal import short_verdict
from evalsuite.result import Measurement
from evalsuite.selection import HAD_BASELINES, OUTCOMES, ZOO_TEST, command, why, zoo_row
from evalsuite.zoo.manifest import read_manifest

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

RUN = pytest.StashKey["Run"]()
NAMES = pytest.StashKey[set[str]]()
"""On a test's item: ids of all rows it opened, also those whose outcome is on its way."""


@dataclass(eq=False)
class Run:
    """What all tests of a process share.

    Attributes:
        config: pytest's.
        sent: ``choices`` and ``levels`` as the controller read them at the start; empty where this process reads them.
    """

    config: pytest.Config
    sent: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Settings:
        """The options, resolved. A worker resolves none: it may have been started when folders were there that the
        controller did not see, and have found another root."""
        return resolve(self.sent["choices"]) if self.sent else settings(self.config)

    @cached_property
    def suite(self) -> str:
        """The manifest's name for the suite, for the v1 report."""
        try:
            return str(read_manifest(self.settings.models / "zoo.json").get("suite", "zoo"))
        except ValueError:
            return "zoo"

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every case of the zoo and the command line."""
        chosen = self.settings
        return discover(chosen.models, chosen.tasks, chosen.checkpoints, chosen.task_files)

    @cached_property
    def bench(self) -> Bench:
        """The process's measuring bench."""
        return Bench(self.settings.threads, self.settings.seed)

    @cached_property
    def stored(self) -> tuple[Stored, ...]:
        """The baselines as they were before any row of this run was recorded."""
        return baselines(self.settings.snapshots) if self.config.stash.get(HAD_BASELINES, True) else ()

    @cached_property
    def levels(self) -> Mapping[str, float]:
        """Level of each gating row with a baseline, frozen for the whole run: what is recorded during the run neither
        joins the family nor moves a level."""
        if self.sent:
            return self.sent["levels"]
        return row_levels({stored.row_id: stored.gating for stored in self.stored})

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What is stored beside every row recorded in this run."""
        return {
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "commit": git_commit(self.settings.root),
            "seed": self.settings.seed,
            "threads": self.settings.threads,
            "platform": platform_name(),
            "versions": versions(),
        }

    @property
    def recording(self) -> bool:
        """Whether ``--snapshot-update`` is on."""
        return bool(self.config.getoption("update_snapshots", False))

    @property
    def writing(self) -> bool:
        """Whether rows may be written at all: ``--snapshot-update`` or ``--snapshot-update-new-only``."""
        return self.recording or bool(self.config.getoption("update_new_snapshots_only", False))

    def check_recording(self, environ: Mapping[str, str]) -> None:
        """Refuse to record in CI, where a red build would accept itself.

        Raises:
            pytest.UsageError: recording was asked for, CI is set and EVAL_RECORD is not 1.
        """
        in_ci = environ.get("CI", "").lower() not in ("", "0", "false")
        if self.writing and in_ci and environ.get("EVAL_RECORD") != "1":
            raise pytest.UsageError(
                "--snapshot-update records baselines, and CI is set: a build must not accept its own results. "
                "Record them on your machine and commit snapshots/, or set EVAL_RECORD=1 if this job is meant to record"
            )

    def check_names(self) -> None:
        """Refuse names that no case has: a misspelt one would score nothing and look green.

        Raises:
            pytest.UsageError: an unknown ``--eval-model`` or ``--eval-task``.
        """
        models = {case.model for case in self.cases}
        tasks = {case.task.name for case in self.cases}
        for flag, names, known in (
            ("--eval-model", self.settings.only_models, models),
            ("--eval-task", self.settings.only_tasks, tasks),
        ):
            for name in names:
                if name not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    hint = f"; did you mean {near[0]}?" if near else ""
                    raise pytest.UsageError(
                        f"{flag} {name}: no such name{hint} (there are: {', '.join(sorted(known))})"
                    )

    def shown(self, path: Path) -> str:
        """A path as the user would type it."""
        here = self.config.invocation_params.dir
        return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

    def in_project(self, text: str) -> str:
        """A reason with its paths as they are in the project: a report says the same in every clone."""
        return text.replace(f"{self.settings.root}{os.sep}", "")


def run_of(config: pytest.Config) -> Run:
    """The process's run, made on first use."""
    if RUN not in config.stash:
        config.stash[RUN] = Run(config, getattr(config, "workerinput", {}).get("evalsuite", {}))
    return config.stash[RUN]


@dataclass(eq=False)
class Unjudged:
    """Stands for the baseline of a row that may do without one: every measurement equals it."""

    def __eq__(self, other: object) -> bool:
        return True


def open_case(request: pytest.FixtureRequest, case: Case, snapshot: SnapshotAssertion) -> SnapshotAssertion | Unjudged:
    """Start the row of a case in the running test; returns its baseline."""
    names = (case.model, case.task.name, case.metric)
    outcome = _open(request, names, gating=case.gating, ad_hoc=case.ad_hoc)
    if case.ad_hoc and not outcome.desk.path.exists() and not run_of(request.config).writing:
        return Unjudged()
    return _stored(snapshot, outcome.desk)


def _stored(snapshot: SnapshotAssertion, desk: Desk) -> SnapshotAssertion:
    """The baseline of a row. In a syrupy session of its own: that of the run counts snapshots in words that contradict
    the report's, and keeps every row's scores in memory."""
    own = SnapshotSession(snapshot.session.pytest_session)
    return replace(snapshot, session=own, extension_class=extension_for(desk))


def measure_case(request: pytest.FixtureRequest, run: Run, case: Case) -> Measurement:
    """Measure a case for its row, if the test opened one. A case without a number fails or skips the test."""
    __tracebackhide__ = True
    mine = [one for one in request.node.stash.get(OUTCOMES, []) if one.desk.row_id == case.row_id]
    measured = _tried(lambda: run.bench.measure(case), UnscoredError)
    if isinstance(measured, Measurement):
        for one in mine:
            one.measurement = measured
        return measured
    # Of the manifest the whole path: a reader must see where it was looked for.
    state, reason = measured.state, measured.reason if case.row_id == MANIFEST_ROW else run.in_project(measured.reason)
    if state == "skipped" and any(one.desk.path.exists() for one in mine):
        state, reason = "lost", f"it has a baseline, but {reason}"
    for one in mine:
        one.failure = (state, reason)
    if state == "skipped":
        pytest.skip(reason)
    pytest.fail(reason, pytrace=False)


def _tried(get: Callable[[], T], failure: type[E]) -> T | E:
    """What a call gives, or why it gave nothing. A test that fails inside an ``except`` shows its reason twice."""
    try:
        return get()
    except failure as error:
        return error


def checkpoint_of(run: Run, case: Case) -> Loaded:
    """The case's checkpoint for a user's test, which fails or is skipped where there is none."""
    found: Loaded | UnscoredError = UnscoredError("error", case.problem)
    if not case.problem:
        found = _tried(lambda: run.bench.checkpoint(case.entry), UnscoredError)
    if isinstance(found, Loaded):
        return found
    if found.state == "skipped":
        pytest.skip(found.reason)
    pytest.fail(found.reason, pytrace=False)


def record_scores(
    request: pytest.FixtureRequest,
    snapshot: SnapshotAssertion,
    metric: str,
    scores: Sequence[Any],
    units: Sequence[Hashable] | None,
    clusters: Sequence[Hashable] | None,
    *,
    model: str,
    task: str,
    higher_is_better: bool = True,
    bounds: tuple[float, float] | None = None,
    gating: bool = True,
    min_drop: float | None = None,
) -> None:
    """Add a row to the report from scores that a test computed, and assert that it is not significantly worse.

    Args:
        request, snapshot: fixtures of the test.
        metric, task, model: the parts of the row's id: letters, digits, ``_ . -``, no double hyphen.
        scores, units, clusters, higher_is_better, bounds, gating, min_drop: see
            `evalsuite.evals.custom.measure_scores`.

    Raises:
        AssertionError: the row has no baseline, or is significantly worse.
        ValueError: scores that cannot be read; the row is then an error.
    """
    __tracebackhide__ = True
    from evalsuite.evals.custom import measure_scores

    names = (model, task, metric)
    for name in names:
        if problem := name_problem(name):
            raise ValueError(f"eval_record: {problem}")
    row_id = "--".join(names)
    if row_id in {case.row_id for case in run_of(request.config).cases}:
        raise ValueError(f"the row {row_id} is one of the zoo's: give this one another metric, task or model")
    outcome = _open(request, names, gating=bool(gating))
    measured = _tried(
        lambda: measure_scores(
            names,
            scores,
            units,
            clusters,
            higher_is_better=bool(higher_is_better),
            bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
            gating=bool(gating),
            min_drop=None if min_drop is None else float(min_drop),
        ),
        ValueError,
    )
    if isinstance(measured, ValueError):
        outcome.failure = ("error", str(measured))
        pytest.fail(str(measured), pytrace=False)
    outcome.measurement = measured
    if outcome.measurement != _stored(snapshot, outcome.desk):
        pytest.fail(short_verdict(outcome.row(), command=command(request.config)), pytrace=False)


def attach_rows(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the rows of a test on the report of its last telling phase, as plain values, and let a failed test of the
    suite speak in the report's words."""
    # A subtest has a report of its own kind; the rows wait for that of the whole test.
    if type(report) is not pytest.TestReport or (report.when == "setup" and report.outcome == "passed"):
        return
    # Taken off the item, so that a test's scores do not stay in memory for the rest of the run.
    outcomes: list[Outcome] = item.stash.get(OUTCOMES, [])
    if not outcomes:
        return
    item.stash[OUTCOMES] = []
    run = run_of(item.config)
    for outcome in outcomes:
        outcome.desk.damage = run.in_project(outcome.desk.damage)
        if outcome.failure is None and not outcome.settled:
            outcome.failure = ("error", why(report) or "its test ended before it was compared")
        elif run.writing and outcome.state == "new":
            folder = run.in_project(str(outcome.desk.folder))
            outcome.failure = ("error", f"{folder}: no baseline can be written there: is it a folder, and yours?")
    payloads = [
        {
            "row": outcome.row(),
            "items": outcome.items(),
            "timing": run.bench.timing() if zoo_row(item.nodeid) else {},
        }
        for outcome in outcomes
    ]
    # An attribute of a report travels from worker to controller, also when the worker dies later.
    report.evalsuite_rows = _plain(payloads)  # type: ignore[attr-defined]
    if report.failed and zoo_row(item.nodeid) and outcomes[0].red:
        report.longrepr = short_verdict(outcomes[0].row(), command=command(item.config))


def _open(
    request: pytest.FixtureRequest, names: tuple[str, str, str], *, gating: bool, ad_hoc: bool = False
) -> Outcome:
    """A new row of the running test.

    Raises:
        pytest.UsageError: it would be recorded where that is refused.
        ValueError: the test has that row already.
    """
    run = run_of(request.config)
    run.check_recording(os.environ)
    row_id = "--".join(names)
    names_so_far = request.node.stash.setdefault(NAMES, set())
    if row_id in names_so_far:
        raise ValueError(f"this test has the row {row_id} already: give one of the two another metric, task or model")
    names_so_far.add(row_id)
    of_zoo = zoo_row(request.node.nodeid) is not None
    test = f"{ZOO_TEST}[{row_id}]" if of_zoo else request.node.nodeid
    levels = run.levels  # read here, also by a row that only informs: before anything is written
    desk = Desk(
        run.settings.snapshots / (ZOO_STEM if of_zoo else Path(request.node.path).stem),
        row_id,
        levels.get(row_id) if gating else None,
        run.recording,
        run.facts | {"test": test} | ({"ad_hoc": True} if ad_hoc else {}),
    )
    outcome = Outcome(*names, gating, test, desk, ad_hoc)
    request.node.stash.setdefault(OUTCOMES, []).append(outcome)
    return outcome


def _plain(value: Any) -> Any:
    """``value`` made of Python's own types alone, whatever an eval put into it: execnet takes values by exact type, so
    that a NumPy scalar would kill the worker, and JSON takes no more."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # scalars and arrays of NumPy and torch
        return _plain(value.tolist())
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    return str(value)

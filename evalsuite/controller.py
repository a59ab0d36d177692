"""The controller's side of a run: it prepares workers, keeps the book, and writes the report at the end.

Without xdist the only process is its own controller, so the same hooks serve both. In a run that has nothing to do
with the suite this object only notes how tests ended; whatever costs time to import is imported when a row arrives.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.options import check_root, choices, settings
from evalsuite.selection import (
    HAD_BASELINES,
    active,
    asks_for,
    asks_for_zoo,
    command,
    has_baselines,
    narrowed,
    test_files,
    why,
    zoo_row,
)

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

    from evalsuite.record import Run
    from evalsuite.report.ledger import Ledger
    from evalsuite.scheduler import ModelScheduling

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Controller:
    """Hooks that run on the controller only; registered by the plugin.

    Attributes:
        collected: node ids of the selected tests.
        outcomes: node id -> ``passed``, ``failed``, ``skipped`` or ``crashed``.
        why: node id -> last line of the message of a failed test.
        report: the finished report, or None.
        faults: what is wrong with it, one line each.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.collected: list[str] = []
        self.outcomes: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.report: dict[str, Any] | None = None
        self.faults: list[str] = []
        self._ledger: Ledger | None = None
        self._scheduler: ModelScheduling | None = None
        self._started = datetime.now(UTC)
        self._clock = time.perf_counter()

    @property
    def run(self) -> Run:
        """Settings, cases and baselines of the run."""
        from evalsuite.record import run_of

        return run_of(self.config)

    @property
    def ledger(self) -> Ledger:
        """The book, opened on first use."""
        if self._ledger is None:
            from evalsuite.report.ledger import Ledger

            self._ledger = Ledger(self.run.settings.out, self.collected, self.outcomes, self.why)
        return self._ledger

    def prepare(self, environ: MutableMapping[str, str]) -> None:
        """Set an active run up before workers start: the root, threads, the right to record, names that exist.

        Raises:
            pytest.UsageError: a root that an option moved, a name that no case has, recording where it is refused.
        """
        check_root(self.config)
        # Libraries read these when they are imported, and a worker inherits them: so before the run is made, which
        # imports NumPy, and before any worker starts.
        environ.update(dict.fromkeys(THREAD_VARIABLES, str(settings(self.config).threads)))
        self.run.check_recording(environ)
        self.run.check_names()

    def pytest_sessionstart(self) -> None:
        """Before workers start and tests are collected: note whether there are baselines, before any is recorded, and
        take away the last run's report."""
        self.config.stash[HAD_BASELINES] = has_baselines(settings(self.config).snapshots)
        if asks_for_zoo(self.config) and not self._idle:
            # A worker looks for pytest's root above all arguments that exist: a folder made before it does so could
            # give it another root than ours, with other baselines.
            if settings(self.config).out.exists() or not getattr(self.config.option, "numprocesses", None):
                self.ledger.open()
            else:
                self.ledger.check()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """xdist, before a worker starts: it gets the settings, and the family as it is now, so that all workers score
        the same and judge by equal levels."""
        levels = dict(self.run.levels) if self.config.stash[HAD_BASELINES] else {}
        node.workerinput["evalsuite"] = {"choices": choices(self.config), "levels": levels}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Scheduling | None:
        """xdist: a model stays on one worker, whatever ``--dist`` says."""
        if not active(config):
            return None
        from evalsuite.scheduler import ModelScheduling

        self._scheduler = ModelScheduling(config, log)
        return self._scheduler

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_auto_num_workers(self, config: pytest.Config) -> int | None:
        """xdist, for ``-n auto``: no more workers than models, since a further one would only load libraries."""
        if not active(config) or not asks_for_zoo(config):
            return None
        from xdist.plugin import pytest_xdist_auto_num_workers

        models = {case.model for case in self.run.cases}
        return max(1, min(int(pytest_xdist_auto_num_workers(config)), len(models)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: WorkerController, ids: list[str]) -> None:
        """xdist: a worker names the tests it selected; all workers name the same."""
        self.collected[:] = self.collected or ids

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without xdist: the selected tests. Under xdist the controller's session has none."""
        self.collected[:] = self.collected or [item.nodeid for item in session.items]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test ended, here or on a worker."""
        # xdist reports the test that a worker died in with a phase of its own.
        crashed = str(report.when) == "???"
        if crashed or report.when == "call" or report.outcome != "passed":
            self._note(report.nodeid, "crashed" if crashed else report.outcome, why(report))
        for payload in () if self._idle else getattr(report, "evalsuite_rows", ()):
            self.ledger.receive(payload, report.nodeid)

    def _note(self, node_id: str, outcome: str, reason: str) -> None:
        """A crash is final, and a failure is not undone by a later phase."""
        if self.outcomes.get(node_id) not in ("crashed", "failed"):
            self.outcomes[node_id] = outcome
            self.why[node_id] = reason

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Iterator[None]:
        """Around all tests: once they ended, or were interrupted, every expected row gets its state."""
        stopped = True
        try:
            result = yield
            stopped = False
            return result
        finally:
            if not self._idle and self._owes():
                self._finish(session, stopped=stopped)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A report that breaks its own rules fails the run; the status is never lowered. It is final only now, since
        an interrupt and other plugins have their say in it, so the report gets it here."""
        if self.faults and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.report is not None and self.report["verdict"]["exit"] != session.exitstatus:
            from evalsuite.report.json_file import write_json

            self.report["verdict"]["exit"] = int(session.exitstatus)
            write_json(self.report, self.run.settings.out / "report.json")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The last screen."""
        if self.report is None:
            return
        from evalsuite.report.terminal import summary_lines

        terminalreporter.write_sep("=", "evalsuite")
        run = self.run
        lines = summary_lines(
            self.report,
            report_path=run.shown(run.settings.out / "report.json"),
            command=command(self.config),
            snapshots=run.shown(run.settings.snapshots),
            age_now=datetime.now(UTC),
        )
        for line in lines:
            terminalreporter.write_line(line)
        for fault in self.faults:
            terminalreporter.write_line(f"  the report breaks its own rules: {fault}")

    @property
    def _idle(self) -> bool:
        """Whether pytest was asked to show something rather than to run tests."""
        shows = ("collectonly", "setupplan", "setuponly", "showfixtures", "show_fixtures_per_test", "cacheshow")
        return any(getattr(self.config.option, name, None) for name in shows)

    def _owes(self) -> bool:
        """Whether the run owes a report: the zoo was asked for, a row arrived, or a selected test file has recorded
        rows, which must not go missing because none of its tests sends any."""
        if self._ledger is not None or asks_for_zoo(self.config):
            return True
        # A session that failed to start noted nothing.
        if not self.config.stash.get(HAD_BASELINES, False):
            return False
        files = self._files()
        return any(one.test.split("::")[0] in files for one in self.run.stored if not one.of_zoo)

    def _files(self) -> frozenset[str]:
        """The test files this run was asked for, also those that yielded no test: a file that is skipped as a whole,
        or is gone, still owes the rows it recorded."""
        recorded = test_files(one.test for one in self.run.stored if one.test and not one.of_zoo)
        return test_files(self.collected) | {file for file in recorded if asks_for(self.config, file)}

    def _finish(self, session: pytest.Session, *, stopped: bool) -> None:
        from evalsuite.report.rows import RED
        from evalsuite.report.write import write_reports

        run, ledger = self.run, self.ledger
        ledger.open()
        is_narrowed = narrowed(self.config, run.settings)
        zoo_asked = asks_for_zoo(self.config) or any(zoo_row(node_id) for node_id in self.collected)
        crashed = self._scheduler.crashed if self._scheduler is not None else {}
        files = self._files()
        rows = ledger.complete(run.cases, run.stored, crashed, zoo_asked=zoo_asked, narrowed=is_narrowed, files=files)
        red = [row for row in rows if row["state"] in RED]
        self._fail_silent_rows(session, red, stopped=stopped)
        status = pytest.ExitCode.OK
        if stopped or red or session.testsfailed:
            status = pytest.ExitCode.TESTS_FAILED
        elif not self.collected:
            status = pytest.ExitCode.NO_TESTS_COLLECTED
        self.report, self.faults = write_reports(
            rows,
            run,
            partial=any(row["state"] == "deselected" for row in rows) or (is_narrowed and not zoo_asked),
            exit_status=int(status),
            facts={
                "started": self._started.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "seconds": round(time.perf_counter() - self._clock, 3),
                "workers": int(getattr(self.config.option, "numprocesses", 0) or 0),
                "models": ledger.timing,
            },
        )
        ledger.close()

    def _fail_silent_rows(self, session: pytest.Session, red: list[dict[str, Any]], *, stopped: bool) -> None:
        """A red row whose own test did not fail (it is lost, or its model crashed before its turn) fails the run by an
        entry of its own, which JUnit and the short summary show too. Rows that the run never reached do so only where
        nothing else says why."""
        from evalsuite.report.terminal import short_verdict

        for row in red:
            if row["state"] == "not_run" and (stopped or session.testsfailed):
                continue
            if any(self.outcomes.get(node_id) in ("failed", "crashed") for node_id in self._tests_of(row)):
                continue
            report = pytest.TestReport(
                nodeid=f"evalsuite/test_zoo.py::gate[{row['id']}]",
                location=("evalsuite/test_zoo.py", None, f"gate[{row['id']}]"),
                keywords={},
                outcome="failed",
                longrepr=short_verdict(row, command=command(self.config)),
                when="call",
            )
            self.config.hook.pytest_runtest_logreport(report=report)
        if red and not session.testsfailed:
            session.testsfailed = 1

    def _tests_of(self, row: dict[str, Any]) -> Iterator[str]:
        """Node ids, as this run spells them, of the test behind a row."""
        for node_id in self.collected:
            if node_id == row["test"] or zoo_row(node_id) == row["id"]:
                yield node_id

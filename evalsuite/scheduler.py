"""An xdist scheduler that keeps all tests of a model on one worker.

Everything here runs on the controller. A *unit* is what xdist calls a scope: all tests of one model, from whatever
file, or one ordinary test. Units are handed out whole and largest first (``LoadScopeScheduling.schedule``), so every
model is loaded once whatever ``-n`` is, and the many units of one test come last and fill the gaps.

When a worker dies, the unit it was in is over: its remaining tests are neither run nor reported, for loading that
model again could kill again. `ModelScheduling.crashed` names the model. Units that the dead worker had not begun go
back to the queue. Each death thus uses up a unit, which bounds the run even without ``--max-worker-restart``.

Why xdist's own ``loadscope`` (3.8.0) never ends here, and what is overridden against it:

* ``remove_node`` puts the crashed test back, so it kills each replacement until ``--max-worker-restart``.
* ``remove_node`` also puts back units that are finished. A node that gets one is sent no test, completes none and is
  never looked at again. Here a finished unit is forgotten at once.
* ``_reschedule`` hands out one unit. A worker keeps one test back until it knows the next one, so a replacement whose
  first unit is a single test waits for ever while the queue is not empty.
* ``_reschedule`` takes any node, also a replacement that is still collecting: the unit is recorded there but never
  sent. Called from ``remove_node``, DSession takes the KeyError for "unknown node" and forgets the crash.
* ``_assign_work_unit`` raises OSError, and ends the session, when the node is dead but the news is still queued.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from evalsuite.names import ID_PATTERN

_ROW = re.compile(rf"::[^\[\]:]+\[(?P<model>{ID_PATTERN})--{ID_PATTERN}--{ID_PATTERN}(?:-(?!-).*)?\]\Z", re.DOTALL)
"""A parameter set that starts with a row id; other parameters may follow it after a single ``-``."""

_WATERMARK = 2
"""Tests a worker needs to be busy: the one that runs and the one it keeps back to know which fixtures to tear down."""


def model_of(nodeid: str) -> str | None:
    """Return the model whose row id opens the parameters of a test, or None if they are not a row's.

    ``a.py::test_x[gpt--quiz--acc-fast]`` is a test of ``gpt``. The row id must be the first parameter:
    ``[fast-gpt--quiz--acc]`` cannot be told from a model called ``fast-gpt``, and that is how it is read.
    """
    match = _ROW.search(nodeid)
    return match["model"] if match else None


class ModelScheduling(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]  # xdist ships no py.typed
    """Load scheduling by model; lives on the controller, one for a session.

    Attributes:
        crashed: the models whose worker died, each with the node id of the test that it was in (as xdist reports it:
            the first test not completed; a worker that dies between two tests is counted as in the second). No test
            of the model runs afterwards.
    """

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self.crashed: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        """Name the unit of a test (controller; called for every collected and every completed test)."""
        model = model_of(nodeid)
        # The node id of an ordinary test makes it a unit of its own, so that such tests spread over all workers.
        return nodeid if model is None else f"model:{model}"

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take the tests a worker collected (controller).

        xdist ignores a replacement that collected other tests than the first workers did, say because a test wrote
        into ``models/``, and then trips over it. Such a worker is of no use: it is sent home and the run is red.
        The other workers go on; without any, the rest is not run.
        """
        super().add_node_collection(node, collection)
        if node not in self.registered_collections:
            text = f"replacement worker {node.gateway.id} collected other tests than the first workers: it gets none"
            report = pytest.CollectReport(nodeid=node.gateway.id, outcome="failed", longrepr=text, result=[])
            self.config.hook.pytest_collectreport(report=report)
            node.shutdown()
            if all(other.shutting_down for other in self.nodes):
                self.workqueue.clear()  # nobody is left to run it, which DSession would make an internal error

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker that finished or died; return the test it died in (controller).

        Replaces xdist's method, which puts all units back before anything could be taken out. Tests run in the order
        they were sent and completions arrive in that order, so the first test not completed is the one that ran, its
        unit is the first unfinished one, and no later unit has begun: none of their models has been loaded.
        """
        if self.collection is None:
            # Before the first schedule(): a dead worker must not count as one of the `numnodes` that have collected.
            self.registered_collections.pop(node, None)
        # A KeyError here is expected by DSession: xdist sends surplus workers home without remove_node.
        workload: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        units = {scope: unit for scope, unit in workload.items() if not all(unit.values())}
        if not units:
            return None

        unit = units.pop(next(iter(units)))
        crashitem = next(nodeid for nodeid, done in unit.items() if not done)
        model = model_of(crashitem)
        if model is not None:
            self.crashed[model] = crashitem

        for waiting in units.items():  # at most one, see _reschedule
            self._put_back(*waiting)
        # No other worker needs waking: it is shutting down, or has two tests and comes by after the next of them.
        return crashitem

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker its next units, or send it home when there are none (controller).

        xdist calls this after every completed test and, for each worker, when a replacement has collected. A model is
        handed out as late as possible, since it cannot move to an idle worker afterwards: when fewer than two tests
        are pending, where xdist says fewer than three. So a worker holds at most the unit it is in and one more.
        """
        units = self.assigned_work[node]
        # Counting pending tests visits every unit held: without this, n ordinary tests would take n * n steps.
        for scope in [scope for scope, unit in units.items() if all(unit.values())]:
            del units[scope]
        if node.shutting_down or node not in self.registered_collections:
            return
        for _ in range(_WATERMARK):  # every queued unit holds a test to run, so that many units are enough
            if self.workqueue and self._pending_of(units) < _WATERMARK:
                self._assign_work_unit(node)
        if not self.workqueue:
            # It runs what it has, the test it keeps back included. If another worker dies later, the replacement
            # takes its units.
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Send the first unit of the queue to a worker (controller; also called by xdist's ``schedule``)."""
        scope, unit = next(iter(self.workqueue.items()))
        try:
            super()._assign_work_unit(node)
        except OSError:
            # The worker is dead and DSession will hear of it soon. A unit it never got must not be taken for its crash.
            self.assigned_work[node].pop(scope, None)
            self._put_back(scope, unit)

    def _put_back(self, scope: str, unit: dict[str, bool]) -> None:
        """Make a unit that has not begun the first of the queue (controller)."""
        self.workqueue[scope] = unit
        self.workqueue.move_to_end(scope, last=False)

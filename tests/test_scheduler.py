"""`evalsuite.scheduler`: a model stays on one worker, and a model that kills its worker ends, once."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalsuite.scheduler import ModelScheduling, model_of

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]

CONFTEST = """
import json, os, pathlib, signal
import pytest

SEEN = pathlib.Path(__file__).parent
SETUP = json.loads((SEEN / "setup.json").read_text())
loaded = []  # the checkpoint this worker holds


def note(file, *words):
    with open(SEEN / file, "a") as f:  # one short write in append mode: lines of two workers do not mix
        f.write(json.dumps([*words, os.getpid()]) + "\\n")


def load(model):
    if loaded != [model]:
        loaded[:] = [model]
        note("loads", model)


@pytest.fixture(autouse=True)
def begin(request):
    note("begun", request.node.nodeid)
    if "row" in request.fixturenames:
        load(request.getfixturevalue("row").split("--")[0])
    for killer in SETUP["killers"]:
        if killer in request.node.nodeid:
            if SETUP["once"]:  # removes itself, so a second run of it would pass
                (SEEN / "setup.json").write_text(json.dumps({**SETUP, "killers": []}))
            os.kill(os.getpid(), signal.SIGKILL)


def pytest_generate_tests(metafunc):
    if "row" in metafunc.fixturenames:
        metafunc.parametrize("row", SETUP["rows"])


class Controller:
    def pytest_xdist_make_scheduler(self, config, log):
        from evalsuite.scheduler import ModelScheduling
        self.sched = ModelScheduling(config, log)
        return self.sched

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            note("passed", report.nodeid)
        elif report.when == "???":
            note("killed", report.nodeid)

    def pytest_sessionfinish(self):
        (SEEN / "crashed.json").write_text(json.dumps(self.sched.crashed))


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Controller())
"""
TEST_EVALS = """
def test_metric(row):
    assert not row.startswith("wrong")
"""
TEST_MINE = """
import pytest
@pytest.mark.parametrize("way", ["plain", "b--c"])
def test_mine(row, way): pass
"""
TEST_PLAIN = """
import pytest
@pytest.mark.parametrize("i", range(4))
def test_plain(i): pass
"""
PLAIN = [f"test_plain.py::test_plain[{i}]" for i in range(4)]


@dataclass(frozen=True)
class Run:
    """What one pytester run left behind."""

    exit: int
    loads: Counter[str]
    """Model -> how often any worker loaded it."""
    begun: Counter[str]
    passed: Counter[str]
    killed: list[str]
    """Node ids of xdist's crash reports."""
    crashed: dict[str, str]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """A function that runs a small suite of rows, user tests of the same models and ordinary tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the scheduler alone, and faster

    def run(rows: list[str], *args: str, killers: tuple[str, ...] = (), once: bool = False, only_rows: bool = False):
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(test_evals=TEST_EVALS)
        if not only_rows:
            pytester.makepyfile(test_mine=TEST_MINE, test_plain=TEST_PLAIN)
        pytester.path.joinpath("setup.json").write_text(json.dumps({"rows": rows, "killers": killers, "once": once}))
        result = pytester.runpytest_subprocess("-p", "xdist", *args, timeout=60)

        def noted(name: str) -> list[list[str]]:
            path = pytester.path / name
            return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

        return Run(
            exit=result.ret,
            loads=Counter(model for model, _ in noted("loads")),
            begun=Counter(nodeid for nodeid, _ in noted("begun")),
            passed=Counter(nodeid for nodeid, _ in noted("passed")),
            killed=[nodeid for nodeid, _ in noted("killed")],
            crashed=json.loads(pytester.path.joinpath("crashed.json").read_text()),
        )

    return run


def rows(*models: str, tasks: int = 2) -> list[str]:
    return [f"{model}--task{i}--acc" for model in models for i in range(tasks)]


def ids_of(*models: str, tasks: int = 2) -> list[str]:
    """All tests that the suite above has for these models."""
    ids = rows(*models, tasks=tasks)
    zoo = [f"test_evals.py::test_metric[{row}]" for row in ids]
    return zoo + [f"test_mine.py::test_mine[{row}-{way}]" for row in ids for way in ("plain", "b--c")]


@pytest.mark.parametrize(
    ("nodeid", "model"),
    [
        ("evalsuite/test_zoo.py::test_metric[gpt--quiz--acc]", "gpt"),
        ("t.py::TestMine::test_x[org_gpt-2.1@x--quiz--acc]", None),  # @ is not in the alphabet
        ("t.py::TestMine::test_x[org_gpt-2.1--quiz-a--acc_norm]", "org_gpt-2.1"),
        ("t.py::test_x[gpt--quiz--acc-fast]", "gpt"),
        ("t.py::test_x[gpt--quiz--acc-b--c]", "gpt"),
        ("t.py::test_x[gpt--quiz--acc-a b/c::d[0]]", "gpt"),
        ("t.py::test_x[fast-gpt--quiz--acc]", "fast-gpt"),  # documented: the row id comes first
        ("t.py::test_x[a--b]", None),
        ("t.py::test_x[a--b--c--d]", None),
        ("t.py::test_x[--b--c]", None),
        ("t.py::test_x[a----b--c]", None),
        ("t.py::test_x[1]", None),
        ("t.py::test_x", None),
        ("dir[a--b--c]/t.py::test_x", None),
        ("dir[a--b--c]/t.py::test_x[1]", None),
        ("evalsuite/test_zoo.py::gate[global]", None),
        ("README.md", None),
    ],
)
def test_the_model_is_read_from_the_node_id(nodeid: str, model: str | None) -> None:
    assert model_of(nodeid) == model


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_model_is_loaded_once(run, workers: int) -> None:
    seen = run(rows("a", "b", "c", "d"), "-n", str(workers))
    assert seen.exit == 0
    assert seen.loads == Counter("abcd")
    assert seen.begun == seen.passed == Counter([*ids_of("a", "b", "c", "d"), *PLAIN])
    assert seen.crashed == {}


@pytest.mark.parametrize(
    ("killer", "workers"),
    [
        ("metric[a--task0", 1),  # the first test of all
        ("metric[b--task1", 1),  # finished units and waiting units beside it
        ("metric[b--task0", 2),
        ("metric[d--task0", 2),  # the last model: the queue is empty and the workers are told to go
        ("mine[c--task0--acc-b--c]", 2),  # a user's test of the model
    ],
)
def test_a_model_that_kills_is_not_loaded_again(run, killer: str, workers: int) -> None:
    seen = run(rows("a", "b", "c", "d"), "-n", str(workers), killers=(killer,))
    crashed = killer.split("[")[1][0]
    others = [model for model in "abcd" if model != crashed]
    assert seen.exit == 1
    assert seen.loads == Counter("abcd")
    assert list(seen.crashed) == [crashed]
    assert killer in seen.crashed[crashed]
    assert seen.killed == [seen.crashed[crashed]]
    order = ids_of(crashed)
    assert seen.begun == Counter([*order[: order.index(seen.killed[0]) + 1], *ids_of(*others), *PLAIN])
    assert seen.passed == seen.begun - Counter(seen.killed)


def test_a_model_that_kills_once_is_not_tried_again(run) -> None:
    seen = run(rows("a", "b"), "-n", "2", killers=("metric[a--task0",), once=True)
    assert seen.exit == 1
    assert seen.loads == Counter("ab")
    assert seen.crashed == {"a": "test_evals.py::test_metric[a--task0--acc]"}
    assert seen.passed == Counter([*ids_of("b"), *PLAIN])


def test_the_only_model_kills(run) -> None:
    seen = run(rows("a", tasks=3), "-n", "1", killers=("[a--",), only_rows=True)
    assert seen.exit == 1
    assert seen.loads == Counter("a")
    assert seen.begun == Counter(seen.killed) == Counter(["test_evals.py::test_metric[a--task0--acc]"])


def test_every_model_kills_and_more_workers_than_models(run) -> None:
    # Workers die together, so that one dies while the replacement of another is still collecting.
    seen = run(rows("a", "b", "c"), "-n", "4", killers=("metric[",))
    assert seen.exit == 1
    assert seen.loads == Counter("abc")
    assert sorted(seen.crashed) == ["a", "b", "c"]
    assert seen.begun == Counter(
        [*(f"test_evals.py::test_metric[{row}]" for row in rows("a", "b", "c", tasks=1)), *PLAIN]
    )
    assert seen.passed == Counter(PLAIN)


def test_a_model_of_one_row_kills_while_the_next_model_is_held_back(run) -> None:
    # One test a unit: the worker holds the next model's only test, and a replacement gets units of one test.
    seen = run(rows("a", "b", "c", "d", tasks=1), "-n", "1", killers=("[b--", "[c--"), only_rows=True)
    assert seen.exit == 1
    assert seen.loads == Counter("abcd")
    assert list(seen.crashed) == ["b", "c"]
    assert seen.passed == Counter(f"test_evals.py::test_metric[{row}]" for row in rows("a", "d", tasks=1))


def test_an_ordinary_test_that_kills_takes_nothing_with_it(run) -> None:
    seen = run(rows("a", "b"), "-n", "2", killers=("test_plain[1]",))
    assert seen.exit == 1
    assert seen.crashed == {}
    assert seen.killed == [PLAIN[1]]
    assert seen.begun == Counter([*ids_of("a", "b"), *PLAIN])
    assert seen.passed == seen.begun - Counter(seen.killed)


@pytest.mark.parametrize(
    ("args", "exits"),
    [
        (("--max-worker-restart=0",), {1}),
        (("--max-worker-restart=1",), {1}),
        (("-x",), {1, 2}),
        (("--maxfail=2",), {1, 2}),
    ],
)
def test_limits_end_the_run_and_nothing_runs_twice(run, args: tuple[str, ...], exits: set[int]) -> None:
    models = ("a", "b", "wrong", "c")
    seen = run(rows(*models), "-n", "2", *args, killers=("metric[a--task0", "metric[c--task1"))
    assert seen.exit in exits
    assert max(seen.loads.values()) == max(seen.begun.values()) == 1
    assert seen.crashed["a"] == "test_evals.py::test_metric[a--task0--acc]"
    assert set(seen.killed) == set(seen.crashed.values())


class Node:
    """A worker as the scheduler sees it; `dead` makes sending fail as execnet does."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.sent: list[int] = []
        self.shutting_down = False
        self.dead = False

    def send_runtest_some(self, indices: list[int]) -> None:
        if self.dead:
            raise OSError("cannot send (already closed?)")
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Sched(ModelScheduling):
    """The scheduler with named nodes and without a session."""

    def __init__(self, *tests: str, workers: int) -> None:
        self.failures: list[pytest.CollectReport] = []
        hook = SimpleNamespace(pytest_collectreport=lambda report: self.failures.append(report))
        option = SimpleNamespace(loadscopereorder=True)
        config = SimpleNamespace(getvalue=lambda _: ["popen"] * workers, option=option, hook=hook)
        super().__init__(config)  # type: ignore[arg-type]
        self.log.enabled = False
        self.tests = list(tests)

    def join(self, name: str, tests: list[str] | None = None) -> Node:
        node = Node(name)
        self.add_node(node)
        self.collected(node, tests)
        return node

    def collected(self, node: Node, tests: list[str] | None = None) -> None:
        self.add_node_collection(node, tests or self.tests)
        if self.collection_is_completed:
            self.schedule()


ROWS = [f"t.py::test_metric[{row}]" for row in rows("a", "b", "c", "d", tasks=3)]


def test_the_next_model_is_sent_when_one_test_is_held_back() -> None:
    sched = Sched(*ROWS, workers=1)
    node = sched.join("gw0")
    assert node.sent == [0, 1, 2]
    sched.mark_test_complete(node, 0)
    assert node.sent == [0, 1, 2]
    sched.mark_test_complete(node, 1)
    assert node.sent == [0, 1, 2, 3, 4, 5]
    # The worker dies in the last test of `a`: `b` has not begun, goes to the replacement, and comes before `c`.
    assert sched.remove_node(node) == ROWS[2]
    assert sched.crashed == {"a": ROWS[2]}
    assert sched.join("gw1").sent == [3, 4, 5]


def test_units_of_one_test_fill_a_worker_to_two_and_finished_ones_are_forgotten() -> None:
    sched = Sched(*(f"t.py::test_{i}" for i in range(5)), workers=1)
    node = sched.join("gw0")
    assert node.sent == [0, 1]
    sched.mark_test_complete(node, 0)
    assert node.sent == [0, 1, 2]
    assert list(sched.assigned_work[node]) == ["t.py::test_1", "t.py::test_2"]
    assert sched.remove_node(node) == "t.py::test_1"
    replacement = sched.join("gw1")
    assert replacement.sent == [2, 3]
    assert not replacement.shutting_down
    sched.mark_test_complete(replacement, 2)
    assert replacement.sent == [2, 3, 4]
    assert replacement.shutting_down


def test_a_replacement_that_is_still_collecting_gets_nothing_yet() -> None:
    sched = Sched(*ROWS, workers=2)
    first, second = sched.join("gw0"), sched.join("gw1")
    assert (first.sent, second.sent) == ([0, 1, 2], [3, 4, 5])
    sched.remove_node(first)
    late = Node("gw2")
    sched.add_node(late)
    assert sched.remove_node(second) == ROWS[3]  # no KeyError: DSession would forget the crash
    assert sched.join("gw3").sent == [6, 7, 8]
    assert late.sent == []
    assert not late.shutting_down
    sched.collected(late)
    assert late.sent == [9, 10, 11]


def test_units_that_a_dead_worker_never_got_are_not_its_crash() -> None:
    sched = Sched(*ROWS, workers=1)
    node = sched.join("gw0")
    sched.mark_test_complete(node, 0)
    node.dead = True
    sched.mark_test_complete(node, 1)  # would send `b`
    assert sched.remove_node(node) == ROWS[2]
    replacement = Node("gw1")
    replacement.dead = True
    sched.add_node(replacement)
    sched.collected(replacement)
    assert sched.remove_node(replacement) is None
    assert list(sched.crashed) == ["a"]
    assert sched.join("gw2").sent == [3, 4, 5]


def test_a_worker_that_dies_before_the_start_does_not_count_as_one_that_has_collected() -> None:
    sched = Sched(*ROWS, workers=2)
    assert sched.remove_node(sched.join("gw0")) is None
    node = sched.join("gw1")
    assert not sched.collection_is_completed
    assert (node.sent, sched.join("gw2").sent) == ([0, 1, 2], [3, 4, 5])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_replacement_that_collects_other_tests_is_sent_home_and_the_run_is_red(workers: int) -> None:
    sched = Sched(*ROWS, workers=workers)
    nodes = [sched.join(f"gw{i}") for i in range(workers)]
    sched.remove_node(nodes[0])
    replacement = sched.join("gw2", ROWS[1:])
    assert replacement.shutting_down
    assert replacement.sent == []
    assert [report.outcome for report in sched.failures] == ["failed"]
    assert sched.remove_node(replacement) is None
    # A worker that is left takes the rest of the tests; without one the run has to end.
    assert sched.tests_finished == (workers == 1)
    assert [node.shutting_down for node in nodes] == [False] * workers

"""The package is built in floors: a file imports from lower floors and its own folder, and never in a circle.

Imports inside functions count; those under TYPE_CHECKING do not, since nothing runs them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "evalsuite"

FLOORS = (
    ("__main__",),
    ("plugin", "cli", "test_zoo"),
    ("controller",),
    ("record",),
    ("run_zoo", "compare_reports"),
    ("measure", "report"),
    ("cases", "evals", "gate"),
    ("zoo", "lm"),
    ("tasks", "scoring", "scheduler", "selection"),
    ("stats", "result", "options", "provenance"),
    ("__init__",),
    ("names", "lazy"),
)
"""From the top: files and folders of the package."""

FLOOR = {name: len(FLOORS) - number for number, floor in enumerate(FLOORS) for name in floor}


def module_name(path: Path) -> str:
    """``evalsuite/gate/inputs.py`` to ``evalsuite.gate.inputs``; a folder's ``__init__.py`` is the folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A tree without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from runtime_nodes(child)


def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports. ``from evalsuite.report import commands`` imports the latter."""
    found: set[str] = set()
    for node in runtime_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in names}
    return found


GRAPH = {name: imports(path) for name, path in MODULES.items()}


def part(module: str) -> str:
    """The file or folder of the package that a module belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


def test_the_graph_is_read_as_meant() -> None:
    """Guards the test itself: imports of all kinds are seen."""
    assert "evalsuite.scheduler" in GRAPH["evalsuite.controller"]  # in a function
    assert "evalsuite.gate.inputs" in GRAPH["evalsuite.gate.verdict"]  # at the top
    assert "evalsuite.report.commands" in GRAPH["evalsuite.report.terminal"]  # from a folder
    assert "evalsuite.record" not in GRAPH["evalsuite.report.write"]  # under TYPE_CHECKING


def test_imports_are_absolute() -> None:
    relative = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_every_part_has_a_floor() -> None:
    assert {part(module) for module in MODULES} == FLOOR.keys()


@pytest.mark.parametrize("module", MODULES)
def test_a_file_imports_from_below(module: str) -> None:
    wrong = [
        f"{module} imports {other}"
        for other in GRAPH[module]
        if part(other) != part(module) and FLOOR[part(other)] >= FLOOR[part(module)]
    ]
    assert wrong == []


def test_no_circle() -> None:
    # Sorting raises a CycleError that names the circle.
    assert set(TopologicalSorter(GRAPH).static_order()) == GRAPH.keys()


HEAVY = ("torch", "scipy", "safetensors", "jsonschema", "transformers", "hypothesis")


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("evalsuite", (*HEAVY, "numpy", "pytest")),
        ("evalsuite.plugin", (*HEAVY, "numpy", "syrupy", "xdist")),
        ("evalsuite.cli", (*HEAVY, "numpy", "pytest")),
        ("evalsuite.controller", (*HEAVY, "numpy", "syrupy", "xdist")),
        ("evalsuite.cases", HEAVY),
        ("evalsuite.report.ledger", HEAVY),
        ("evalsuite.record", HEAVY),
        ("evalsuite.gate.verdict", HEAVY),
        ("evalsuite.stats", (*HEAVY, "numpy")),
        ("evalsuite.zoo", HEAVY),
        ("evalsuite.evals.custom", HEAVY),
    ],
)
def test_importing_a_module_loads_no_library(module: str, forbidden: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(*sorted({set(forbidden)!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == ""

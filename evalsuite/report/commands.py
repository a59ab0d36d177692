"""The commands a reader can paste: see a row again, accept it, record it, forget it.

They name exact rows: a command that recorded more than what was read would accept what nobody looked at.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

SUITE = "pytest evalsuite"
RECORD = "--snapshot-update"
SNAPSHOTS = "snapshots"


def see(row: Mapping[str, Any], command: str = SUITE) -> str:
    """The command that evaluates ``row`` again: in one process, or in a worker where its model kills its process."""
    return _selecting(row, command, "-n1" if row["state"] == "crashed" else "-n0")


def accept(row: Mapping[str, Any], command: str = SUITE) -> str:
    """The command that makes what ``row`` scores now its baseline."""
    return _selecting(row, command, RECORD)


def record_all(command: str = SUITE) -> str:
    """The command that records every row of the suite."""
    return f"{command} {RECORD}"


def forget(names: Sequence[str], snapshots: str = SNAPSHOTS) -> str:
    """The command that deletes the baselines of rows, or all of models, in the folder ``snapshots``."""
    where = [] if snapshots == SNAPSHOTS else ["--eval-snapshots", snapshots]
    return shlex.join(["evalsuite", "forget", *names, *where])


def in_suite(row: Mapping[str, Any]) -> bool:
    """Whether a row comes from the suite in the package, wherever that is installed, and not from a user's test."""
    path = (row["test"] or "").split("::")[0]
    return not path or PurePosixPath(path).parts[-2:] == ("evalsuite", "test_zoo.py")


def _selecting(row: Mapping[str, Any], command: str, option: str) -> str:
    if not in_suite(row):
        return f"{_runner(command)} {shlex.quote(row['test'])} {option}"
    model, task = shlex.quote(row["model"]), shlex.quote(row["task"])
    return f"{command} {option} --eval-model {model} --eval-task {task}"


def _runner(command: str) -> str:
    """``command`` without the suite it names: ``pytest``, ``python -m pytest``."""
    words = [word for word in shlex.split(command) if word != "--pyargs" and PurePosixPath(word).name != "evalsuite"]
    return shlex.join(words)

"""The command: what it prints, its exit status, and one line for whatever the user got wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from evalsuite.cli import main
from evalsuite.gate.snapshot import encode, write_row
from evalsuite.report.eval_results import validate_v1
from evalsuite.tasks.tokens import write_tokens
from evalsuite.zoo.families import bigram
from tests.gate_rows import STORED, items

torch.set_num_threads(1)


@pytest.fixture
def zoo(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small project with a uniform bigram, as the current directory."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    bigram.save(bigram.BigramLM(np.zeros((256, 256), np.float32)), tmp_path / "models" / "uniform")
    monkeypatch.chdir(tmp_path)
    return tmp_path


PROSE = "tasks/prose/heldout.bin"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of an error, whose status is 2."""
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1, err
    assert err.startswith(f"evalsuite {arguments[0]}: ")
    return err.strip()


# --- ppl


def test_ppl(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "ppl", "models/uniform", PROSE)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[:3] == [
        "bpb  8.0000 [8.0000, 8.0000]",
        "ppl  256.0000 [256.0000, 256.0000]",
        "nll  5.5452 [5.5452, 5.5452]",
    ]
    assert lines[3].endswith(" scored tokens, 48 units; 95 % interval: cluster-t")
    assert len(lines) == 4


def test_ppl_of_one_text_says_that_it_is_blind(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tokens("one.bin", list(b"hello"), 256)
    status, out, _ = run(capsys, "ppl", "models/uniform", "one.bin")
    assert status == 0
    assert "4 scored tokens, 1 unit; 95 % interval: token-t\n" in out
    assert "note: one text of 4 scored tokens, too short for 30 blocks" in out


def test_ppl_with_windows(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = [
        run(capsys, "ppl", "models/gpt", PROSE, *options)[1].splitlines()[0]
        for options in ([], ["--ctx-len", "32", "--stride", "16"], ["--ctx-len", "4", "--stride", "1"])
    ]
    assert first[0] == first[1]  # the defaults
    assert first[0] != first[2]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["models/gone", PROSE], "models/gone: no such directory"),
        (["models/uniform", "gone.bin"], "No such file or directory: 'gone.bin'"),
        (["models/uniform", "tasks/quiz.json"], "a token file"),
        (["models/uniform", "tasks"], "Is a directory: 'tasks'"),
        (["models/uniform", "wide.bin"], "token 1 of the data is 300, but the model's vocabulary has 256"),
        (["models/gpt", PROSE, "--ctx-len", "8", "--stride", "8"], "stride 8 does not fit ctx_len 8"),
        (["models/gpt", PROSE, "--stride", "0"], "stride 0 does not fit ctx_len 32"),
        (["models/gpt", PROSE, "--ctx-len", "0"], "does not fit ctx_len 0"),
        (["models/gpt", PROSE, "--ctx-len", "33"], "ctx_len 33 exceeds n_ctx 32"),
        (["models/elmo", PROSE], "no zoo scorer for tl_arch 'elmo'"),
        (["models/damaged", PROSE], "config.json, line 1: not JSON"),
        (["models/short", PROSE], "model.safetensors"),
        (["models/file", PROSE, "--n-bytes", "0"], "bpb needs the byte count of the text"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_ppl_errors_are_one_line(zoo: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str) -> None:
    write_tokens("wide.bin", [1, 300], 0)
    table = bigram.BigramLM(np.zeros((256, 256), np.float32), "file")
    bigram.save(table, zoo / "models" / "file")
    shutil.copytree("models/uniform", "models/short")
    (zoo / "models/short/model.safetensors").write_bytes(b"123")
    for name, text in (("elmo", '{"tl_arch": "elmo"}'), ("damaged", "{")):
        (zoo / "models" / name).mkdir()
        (zoo / "models" / name / "config.json").write_text(text)
    assert why in refused(capsys, "ppl", *arguments)


# --- zoo


def test_zoo(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (zoo / "models" / "elmo").mkdir()
    (zoo / "models" / "elmo" / "config.json").write_text('{"tl_arch": "elmo"}')
    entry = {"task": "prose", "data": f"../{PROSE}"}
    models = [{"id": "u", "dir": "uniform", **entry}, {"id": "l", "dir": "elmo", **entry}]
    (zoo / "models" / "zoo.json").write_text(json.dumps({"models": models}))
    status, out, err = run(capsys, "zoo", "models/zoo.json", "--out", "out/r.json", "--seed", "4")
    assert (status, err) == (0, "")  # a family without a scorer is no error
    assert out.splitlines() == [
        f"{'u':<16} {'prose':<12} {'bpb':<9} 8.0000 [8.0000, 8.0000]",
        f"{'l':<16} {'prose':<12} {'skipped':<9} no zoo scorer for tl_arch 'elmo'",
        "intervals as the v1 format has them, by token for bpb; pytest evalsuite gives them by document",
        "out/r.json",
    ]
    report = json.loads((zoo / "out" / "r.json").read_text())
    assert validate_v1(report) == []
    assert (report["seed"], report["manifest"]) == (4, "models/zoo.json")


def test_a_row_that_cannot_be_scored_is_status_1(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [{"id": "gone", "dir": "gone", "task": "prose", "data": "x.bin"}]
    (zoo / "models" / "zoo.json").write_text(json.dumps({"models": models}))
    status, out, err = run(capsys, "zoo", "models/zoo.json")
    assert (status, err) == (1, "")
    assert "error     ValueError: " in out
    assert json.loads((zoo / "eval-report" / "eval-results.json").read_text())["rows"][0]["status"] == "error"


def test_zoo_errors_are_one_line(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot read the manifest" in refused(capsys, "zoo", "gone.json")
    (zoo / "bad.json").write_text("{}")
    assert 'expected an object with a list "models"' in refused(capsys, "zoo", "bad.json")
    (zoo / "empty.json").write_text('{"models": []}')
    assert "seed" in refused(capsys, "zoo", "empty.json", "--seed", "-1")
    assert "bad.json" in refused(capsys, "zoo", "empty.json", "--out", "bad.json/r.json")


# --- forget


def test_forget(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("snapshots/test_zoo/m--t--acc.json")
    write_row(path, encode(items([1, 0]), STORED))
    assert "did you mean m--t--acc?" in refused(capsys, "forget", "m--t--acd")
    status, out, err = run(capsys, "forget", "m--t--acc")
    assert (status, err) == (0, "")
    assert f"deleted {path}\n" in out
    assert out.count("deleted ") == 2
    assert list(path.parent.iterdir()) == []
    assert "has no baseline of the row or model 'm--t--acc'" in refused(capsys, "forget", "m--t--acc")


def test_forget_elsewhere(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_row(zoo / "base" / "test_mine" / "m--t--acc.json", encode(items([1, 0]), STORED))
    assert "snapshots has no baseline" in refused(capsys, "forget", "m--t--acc")
    assert run(capsys, "forget", "m--t--acc", "--eval-snapshots", "base")[0] == 0


# --- the command itself


@pytest.mark.parametrize("arguments", [[], ["fly"], ["ppl"], ["ppl", "a", "b", "--stride", "x"], ["forget"]])
def test_usage_errors_are_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert "usage: evalsuite" in capsys.readouterr().err


def test_help_loads_no_library() -> None:
    code = (
        "import sys\nfrom evalsuite.cli import main\ntry: main(['--help'])\n"
        "except SystemExit as stop: print(stop.code, sorted({'torch', 'scipy', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "{ppl,zoo,forget}" in done.stdout or "VERB" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 []"


def test_a_traceback_never_reaches_the_user(zoo: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from evalsuite.cli import main; raise SystemExit(main())", "ppl", "models/gone", PROSE],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""

"""Baselines on disk: exact, whole or not there, and clear about what is wrong with them; and the syrupy seam."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from syrupy.data import Snapshot, SnapshotCollection
from syrupy.extensions.base import AbstractSyrupyExtension
from syrupy.extensions.single_file import SingleFileSnapshotExtension

from evalsuite.gate import snapshot as module
from evalsuite.gate.snapshot import (
    BaselineExtension,
    Desk,
    decode,
    encode,
    extension_for,
    read_header,
    read_row,
    same_scores,
    sidecars,
    write_row,
)
from evalsuite.names import MAX_NAME
from evalsuite.result import Measurement
from tests.gate_rows import STORED, documents, items

REMEDY = "restore both files from version control, or record the row again with --snapshot-update"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshots" / "test_zoo" / "m--t--acc.json"


def store(path: Path, row: Measurement) -> Path:
    """Write a row and return its sidecar."""
    write_row(path, encode(row, STORED))
    (sidecar,) = sidecars(path)
    return sidecar


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def load(path: Path) -> Measurement:
    raw = read_row(path)
    assert raw is not None
    return decode(raw)[0]


# --- round trip


def test_a_row_comes_back_bit_for_bit(path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.standard_normal(200) * 10.0 ** rng.integers(-300, 300, 200), [5e-324, -0.0, 1 / 3]])
    row = items(
        scores.tolist(),
        clusters=[f"Köln {i % 9}" for i in range(len(scores))],
        tolerance=rng.uniform(size=len(scores)).tolist(),
        unscored=("q3", "q4"),
        bounds=None,
        blind="why not",
    )
    row = replace(row, scores=replace(row.scores, truncated=7), lo=0.1 + 0.2, value=1 / 3, hi=1e300)
    store(path, row)
    back = load(path)
    for name in ("scores", "weights", "tolerance"):
        ours, theirs = getattr(row.scores, name), getattr(back.scores, name)
        assert theirs.dtype == np.float64
        assert theirs.tobytes() == ours.tobytes()
    for name in ("ids", "hashes", "clusters", "unscored", "truncated"):
        assert getattr(back.scores, name) == getattr(row.scores, name)
    for name in ("model", "task", "metric", "value", "lo", "hi", "interval", "n", "higher_is_better", "gating"):
        assert getattr(back, name) == getattr(row, name)
    for name in ("min_drop", "bounds", "link", "normaliser", "task_hash", "blind"):
        assert getattr(back, name) == getattr(row, name)


def test_a_language_model_row_comes_back(path: Path) -> None:
    row = documents([30.25, 41.5], [10, 20], metric="ppl")
    store(path, row)
    back = load(path)
    assert (back.link, back.bounds, back.value) == ("exp", None, row.value)
    assert back.scores.tolerance.tolist() == [2e-4, 4e-4]


def test_equal_rows_are_equal_files(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / path.name
    assert store(path, items([1, 0])).read_bytes() == store(other, items([1, 0])).read_bytes()
    assert path.read_bytes() == other.read_bytes()
    assert path.read_bytes().endswith(b"\n}\n")


def test_the_sidecar_is_named_after_its_content(path: Path) -> None:
    sidecar = store(path, items([1, 0]))
    digest = hashlib.sha256(sidecar.read_bytes()).hexdigest()[:8]
    assert sidecar.name == f"m--t--acc.{digest}.safetensors"
    header = read_header(path)
    assert header is not None
    assert header["sidecar"] == sidecar.name
    assert not {"scores", "weights", "tolerance"} & header.keys()


def test_no_file_is_no_row(path: Path) -> None:
    assert read_row(path) is None
    assert read_header(path) is None


def test_the_longest_names_fit_a_file_name(tmp_path: Path) -> None:
    longest = tmp_path / f"{'--'.join(['x' * MAX_NAME] * 3)}.json"
    store(longest, items([1, 0]))
    assert load(longest).scores.scores.tolist() == [1, 0]


# --- written whole or not at all


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_run_that_dies_while_writing_leaves_the_old_row(
    path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(path, items([1, 0]))
    before = path.read_bytes()
    real = Path.replace

    def dies(self: Path, target: Path) -> Path:
        if str(target).endswith(suffix):
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        write_row(path, encode(items([0, 0]), STORED))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert load(path).scores.scores.tolist() == [1, 0]
    assert not [name for name in names(path) if name.endswith(".part")]
    # The next recording sweeps what was left behind.
    store(path, items([0, 1]))
    assert load(path).scores.scores.tolist() == [0, 1]
    assert len(names(path)) == 2


def test_the_json_is_moved_into_place_last(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(path, items([1, 0]))
    order: list[str] = []
    real_replace, real_unlink = Path.replace, Path.unlink

    def replaced(self: Path, target: Path) -> Path:
        order.append(f"write {Path(target).suffix}")
        return real_replace(self, target)

    def unlinked(self: Path, missing_ok: bool = False) -> None:
        if self.suffix != ".part":
            order.append(f"delete {self.suffix}")
        real_unlink(self, missing_ok)

    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(Path, "unlink", unlinked)
    write_row(path, encode(items([0, 0]), STORED))
    assert order == ["write .safetensors", "write .json", "delete .safetensors"]


def test_only_own_stale_sidecars_are_swept(path: Path) -> None:
    store(path, items([1, 0]))
    others = [
        "m--t--acc.1234abcd--x.00000000.safetensors",
        "m--t--acc.1234abcd.00000000.safetensors",  # of a row whose id ends in a dot and digits
        "m--t--acc_norm.00000000.safetensors",
        "other--t--acc.00000000.safetensors",
        "m--t--acc.0000000g.safetensors",
        "m--t--acc.00000000.safetensors.bak",
    ]
    for name in [*others, "m--t--acc.00000000.safetensors"]:
        (path.parent / name).write_bytes(b"")
    store(path, items([0, 0]))
    assert [name for name in names(path) if name not in others] == [sidecar.name for sidecar in sidecars(path)] + [
        "m--t--acc.json"
    ]
    assert set(others) <= set(names(path))


# --- damage


def rewrite(path: Path, **change: Any) -> None:
    raw = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in (raw | change).items() if value is not ...}))


def fake_sidecar(path: Path, **arrays: np.ndarray) -> None:
    """A sidecar with other arrays, under the name its content has."""
    data = save(arrays)
    name = f"{path.stem}.{hashlib.sha256(data).hexdigest()[:8]}.safetensors"
    (path.parent / name).write_bytes(data)
    rewrite(path, sidecar=name)


TWO = np.zeros(2)
JSON_DAMAGE = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "conflict": lambda path: path.write_text("<<<<<<< HEAD\n" + path.read_text()),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe"),
    "a list": lambda path: path.write_text("[]"),
    "another format": lambda path: rewrite(path, format="evalsuite.baseline.v0"),
    "no sidecar": lambda path: rewrite(path, sidecar=...),
    "no value": lambda path: rewrite(path, value=...),
    "no interval": lambda path: rewrite(path, ci95=[]),
    "no ids": lambda path: rewrite(path, ids=None),
    "too few ids": lambda path: rewrite(path, ids=["q0"]),
    "too few clusters": lambda path: rewrite(path, clusters=["c"]),
    "an id twice": lambda path: rewrite(path, ids=["q0", "q0"]),
    "no facts": lambda path: rewrite(path, recorded=None),
    "a fact missing": lambda path: rewrite(path, recorded={k: v for k, v in STORED.items() if k != "threads"}),
}
SIDECAR_DAMAGE = {
    "missing": lambda path, sidecar: sidecar.unlink(),
    "cut off": lambda path, sidecar: sidecar.write_bytes(sidecar.read_bytes()[:-9]),
    "empty": lambda path, sidecar: sidecar.write_bytes(b""),
    "a bit flipped": lambda path, sidecar: sidecar.write_bytes(sidecar.read_bytes()[:-1] + b"\x40"),
    "an LFS pointer": lambda path, sidecar: sidecar.write_text("version https://git-lfs.github.com/spec/v1\n"),
}


@pytest.mark.parametrize("damage", JSON_DAMAGE)
def test_a_damaged_json_file_is_named_with_the_remedy(path: Path, damage: str) -> None:
    store(path, items([1, 0]))
    JSON_DAMAGE[damage](path)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*{REMEDY}$"):
        read_row(path)


@pytest.mark.parametrize("damage", SIDECAR_DAMAGE)
def test_a_damaged_sidecar_is_named_with_the_remedy(path: Path, damage: str) -> None:
    sidecar = store(path, items([1, 0]))
    SIDECAR_DAMAGE[damage](path, sidecar)
    with pytest.raises(ValueError, match=f"^{re.escape(str(sidecar))}: .*{REMEDY}$"):
        read_row(path)


@pytest.mark.parametrize(
    "arrays", [{"scores": TWO, "weights": TWO}, {"scores": np.zeros(3), "weights": TWO, "tolerance": TWO}]
)
def test_a_sidecar_with_other_arrays_is_refused(path: Path, arrays: dict[str, np.ndarray]) -> None:
    store(path, items([1, 0]))
    fake_sidecar(path, **arrays)
    with pytest.raises(ValueError, match=REMEDY):
        read_row(path)


def test_a_copied_row_is_not_another_row(path: Path) -> None:
    sidecar = store(path, items([1, 0]))
    copy = path.with_name("m--t--copy.json")
    copy.write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match=re.escape(sidecar.name)):
        read_row(copy)


# --- what recording calls equal


def test_equality_of_scores_leaves_provenance_apart() -> None:
    ours = encode(items([1, 0]), STORED)
    assert same_scores(ours, encode(replace(items([1, 0]), source={"params": 3}), STORED | {"seed": 9}))
    assert not same_scores(ours, encode(items([1, 1]), STORED))
    assert not same_scores(ours, encode(items([1, 0], min_drop=0.002), STORED))
    assert not same_scores(ours, encode(items([1, 0], hashes=["a", "b"]), STORED))


# --- the syrupy seam


def overridden() -> list[str]:
    own = [name for name, value in vars(BaselineExtension).items() if callable(getattr(BaselineExtension, name))]
    assert len(own) >= 8
    return sorted(name for name in own if not name.startswith("__"))


@pytest.mark.parametrize("name", overridden())
def test_syrupy_still_has_what_we_override(name: str) -> None:
    """Same parameters, by name and kind: syrupy calls them by keyword."""
    assert hasattr(AbstractSyrupyExtension, name), f"syrupy no longer has {name}"

    def shape(cls: type) -> dict[str, Any]:
        found = inspect.getattr_static(cls, name)
        function = found.__func__ if isinstance(found, classmethod) else found
        return {key: one.kind for key, one in inspect.signature(function).parameters.items()}

    assert shape(BaselineExtension) == shape(SingleFileSnapshotExtension)
    assert isinstance(inspect.getattr_static(BaselineExtension, name), classmethod) == isinstance(
        inspect.getattr_static(SingleFileSnapshotExtension, name), classmethod
    )


def test_syrupy_still_writes_single_files_at_once_and_by_name_order() -> None:
    assert BaselineExtension.write_immediately
    parameters = inspect.signature(AbstractSyrupyExtension.write_snapshot_collection).parameters
    assert {"snapshot_collection", "name_order"} <= parameters.keys()
    assert "write_snapshot_collection" in inspect.getsource(AbstractSyrupyExtension.write_snapshot)


def desk_for(path: Path, *, recording: bool = False, level: float | None = 0.04) -> Desk:
    return Desk(path.parent, path.stem, level, recording, STORED)


def collection(path: Path, row: Measurement) -> SnapshotCollection:
    """What syrupy hands over to be written."""
    found = SnapshotCollection(location=str(path))
    found.add(Snapshot(name="test_row", data=json.dumps(encode(row, STORED))))
    return found


def read(extension: AbstractSyrupyExtension, path: Path) -> Any:
    return extension.read_snapshot_data_from_location(snapshot_location=str(path), snapshot_name="", session_id="")


def test_a_row_is_written_and_compared_through_the_extension(path: Path) -> None:
    desk = desk_for(path)
    kind = extension_for(desk)
    extension = kind()
    assert kind.get_location(test_location=None, index=0) == str(path)  # type: ignore[arg-type]
    assert read(extension, path) is None
    base = items([1] * 20)
    kind.write_snapshot_collection(snapshot_collection=collection(path, base), name_order={"a": 1})
    assert desk.written
    assert load(path).scores.scores.tolist() == [1] * 20

    assert extension.matches(serialized_data=extension.serialize(base), snapshot_data=read(extension, path))
    assert desk.verdict is not None
    assert desk.verdict.state == "ok"
    worse = extension.serialize(items([0] * 20))
    assert not extension.matches(serialized_data=worse, snapshot_data=read(extension, path))
    assert desk.verdict.state == "regressed"
    assert desk.base is not None
    assert desk.recorded["seed"] == 0
    assert list(extension.diff_lines("", "")) == ["m--t--acc regressed: worse by 1, p = 9.5e-07"]


@pytest.mark.parametrize("now", [[1] * 20, [1] * 19 + [0]])
def test_within_noise_matches_but_recording_wants_equal_scores(path: Path, now: list[float]) -> None:
    store(path, items([1] * 20))
    for recording in (False, True):
        extension = extension_for(desk_for(path, recording=recording))()
        matches = extension.matches(
            serialized_data=extension.serialize(items(now)), snapshot_data=read(extension, path)
        )
        assert matches == (not recording or now == [1] * 20)


def test_damage_is_noted_and_replaced_when_recording(path: Path) -> None:
    store(path, items([1, 0])).unlink()
    desk = desk_for(path)
    with pytest.raises(ValueError, match=REMEDY):
        read(extension_for(desk)(), path)
    assert desk.damage.endswith(REMEDY)

    desk = desk_for(path, recording=True)
    kind = extension_for(desk)
    assert read(kind(), path) is None
    kind.write_snapshot_collection(snapshot_collection=collection(path, items([0, 0])))
    assert (desk.damage, desk.written) == ("", True)
    assert load(path).scores.scores.tolist() == [0, 0]


def test_a_row_that_cannot_be_written_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """syrupy takes any exception for "does not match": without this the row would read "has no baseline"."""

    def full(path: Path, raw: dict[str, Any]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_row", full)
    desk = desk_for(path, recording=True)
    with pytest.raises(OSError, match="No space left"):
        extension_for(desk).write_snapshot_collection(snapshot_collection=collection(path, items([1])))
    assert not desk.written
    assert desk.damage == f"{path}: the baseline cannot be written ([Errno 28] No space left on device)"


def test_syrupy_never_finds_a_row_unused(path: Path) -> None:
    store(path, items([1, 0]))
    found = extension_for(desk_for(path))().discover_snapshots(test_location=None)
    assert list(found) == []

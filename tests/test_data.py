"""The data that ships with the suite: splits that share nothing, indexes that cover, items that are sound."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from evalsuite.tasks.items import read_choices
from evalsuite.tasks.tokens import read_index, read_tokens

TASKS = Path(__file__).resolve().parents[1] / "tasks"


def documents(split: str) -> dict[str, bytes]:
    """Text of each document by id; reading checks that the index covers the stream."""
    ids = read_tokens(TASKS / "prose" / f"{split}.bin").ids
    index = read_index(TASKS / "prose" / f"{split}.bin", len(ids))
    return {doc.id: bytes(ids[doc.start : doc.end].tolist()) for doc in index}


def test_the_splits_share_no_document() -> None:
    train, heldout = documents("train"), documents("heldout")
    assert not train.keys() & heldout.keys()
    assert not set(train.values()) & set(heldout.values())
    assert len(set(heldout.values())) == len(heldout)
    # Nor does a held-out text stand inside a longer training document.
    stream = b"".join(train.values())
    assert not [name for name, text in heldout.items() if text.strip() in stream]


def test_whole_books_and_whole_letters_are_held_out() -> None:
    train, heldout = documents("train"), documents("heldout")

    def groups(names: dict[str, bytes]) -> set[str]:
        return {name.rsplit(" ", 1)[0] if name[-1].isdigit() else name[0] for name in names}

    assert not groups(train) & groups(heldout)


def test_the_held_out_split_is_large_enough() -> None:
    heldout = documents("heldout")
    assert len(heldout) >= 150
    assert sum(map(len, heldout.values())) >= 80_000
    assert read_tokens(TASKS / "prose" / "heldout.bin").vocab_size == 256


def test_documents_end_with_a_newline_and_hold_no_apparatus() -> None:
    for split in ("train", "heldout"):
        for name, text in documents(split).items():
            assert text.endswith(b"\n"), name
            assert not text.startswith((b"\n", b" ")), name
            assert b"wiretap" not in text.lower(), name
    assert documents("heldout")["Ruth 1"].startswith(b"Now it came to pass in the days when the judges ruled")
    assert documents("heldout")["FAITH"].startswith(b"FAITH, n.  Belief without evidence")


def test_quiz_items_are_sound() -> None:
    items = read_choices(TASKS / "quiz" / "quiz.jsonl")
    assert len(items) >= 200
    for item in items:
        assert len(set(map(str.casefold, item.choices))) == len(item.choices) == 4, item.id
        assert all(choice.startswith(" ") and choice.strip() == choice[1:] for choice in item.choices), item.id
        assert item.context.startswith("Question: "), item.id
        assert item.context.endswith("?\nAnswer:"), item.id
        assert (item.context + "".join(item.choices)).replace("\n", "").isprintable(), item.id
    assert len({item.context for item in items}) == len(items)


def test_quiz_labels_are_balanced() -> None:
    items = read_choices(TASKS / "quiz" / "quiz.jsonl")
    counts = Counter(item.label for item in items)
    assert set(counts) == {0, 1, 2, 3}
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("task", sorted(TASKS.glob("*.json")), ids=lambda path: path.stem)
def test_task_files_name_data_that_is_there(task: Path) -> None:
    spec = json.loads(task.read_text())
    assert spec["format"] == "evalsuite.task.v1"
    assert (TASKS / spec["data"]).is_file()
    assert set(spec["gating"]) <= set(spec["metrics"])


@pytest.mark.parametrize("folder", sorted(p for p in TASKS.iterdir() if p.is_dir()), ids=lambda path: path.name)
def test_every_data_folder_states_its_source_and_licence(folder: Path) -> None:
    assert len((folder / "NOTICE.md").read_text()) > 200

"""The data that ships with the suite: splits that share nothing, indexes that cover, items that are sound."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalsuite.tasks.items import read_choices
from evalsuite.tasks.sentences import read_sentences
from evalsuite.tasks.task import read_task
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


def phonemes(split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (TASKS / "phonemes" / f"{split}.jsonl").read_text().splitlines()]


def test_no_word_is_in_both_splits_of_the_phonemes() -> None:
    train, heldout = ([word["id"] for word in phonemes(split)] for split in ("train", "heldout"))
    assert (len(train), len(heldout)) == (500, 1000)
    assert len({*train, *heldout}) == 1500
    # No forms like "word(2)", possessives or capitals, by which one word could be in both.
    assert all(re.fullmatch("[a-z]{2,}", word) for word in train + heldout)


def test_letters_and_phonemes_have_the_numbers_of_the_symbol_table() -> None:
    symbols = json.loads((TASKS / "phonemes" / "symbols.json").read_text())
    letters, arpabet = symbols["letters"], symbols["phonemes"]
    assert letters[:3] == arpabet[:3] == ["<pad>", "<bos>", "<eos>"]
    assert (len(set(letters)), len(set(arpabet))) == (len(letters), len(arpabet)) == (29, 42)
    spoken = {}
    for word in phonemes("train") + phonemes("heldout"):
        assert "".join(letters[i] for i in word["src"]) == word["id"]
        assert word["tgt"]
        assert min(word["tgt"]) > 2, word["id"]
        spoken[word["id"]] = " ".join(arpabet[i] for i in word["tgt"])
    assert spoken["personalizing"] == "P ER S AH N AH L AY Z IH NG"


def glosses(split: str) -> dict[str, int]:
    return {row.sentence: row.label for row in read_sentences(TASKS / "glosses" / "glosses.tsv", split)}


def test_no_gloss_is_in_both_splits_or_twice() -> None:
    texts = [*glosses("train"), *glosses("val")]
    assert len(texts) == 400 + 1200
    # Compared without regard to case, punctuation and spaces.
    assert len({"".join(re.findall(r"\w+", text.casefold())) for text in texts}) == len(texts)


def test_gloss_labels_are_balanced_and_named() -> None:
    labels = json.loads((TASKS / "glosses" / "labels.json").read_text())
    assert labels == sorted(set(labels))
    assert Counter(glosses("val").values()) == dict.fromkeys(range(len(labels)), 120)
    assert Counter(glosses("train").values()) == dict.fromkeys(range(len(labels)), 40)
    assert labels[glosses("val")["a university town in California"]] == "location"


def test_glosses_hold_no_byte_that_marks_a_sentence() -> None:
    for text in [*glosses("train"), *glosses("val")]:
        assert text.isascii(), text
        assert text.isprintable(), text
        assert text == text.strip() != "", text


def similarity() -> list[tuple[str, str, float]]:
    lines = (TASKS / "similarity" / "wordnet.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(first, second, float(score)) for first, second, score in rows]


def test_no_pair_of_the_word_similarities_is_there_twice() -> None:
    pairs = [frozenset(row[:2]) for row in similarity()]
    assert len(set(pairs)) == len(pairs) == 400
    assert {len(pair) for pair in pairs} == {2}
    words = Counter(word for pair in pairs for word in pair)
    assert all(re.fullmatch("[a-z]{3,}", word) for word in words)
    assert max(words.values()) <= 3


def test_word_similarities_are_path_similarities_spread_over_their_range() -> None:
    edges = [round(1 / score - 1, 2) for *_, score in similarity()]
    for _, _, score in similarity():
        assert score == pytest.approx(1 / (1 + round(1 / score - 1)), abs=1e-6)
    near = sum(distance < 3 for distance in edges)
    middle = sum(3 <= distance < 10 for distance in edges)
    assert (near, middle, len(edges) - near - middle) == (100, 200, 100)
    assert {("actor", "actress", 0.5), ("animal", "creature", 1.0)} <= set(similarity())


@pytest.mark.parametrize("task", sorted(TASKS.glob("*.json")), ids=lambda path: path.stem)
def test_task_files_name_data_that_is_there(task: Path) -> None:
    assert read_task(task).data.is_file()


@pytest.mark.parametrize("folder", sorted(p for p in TASKS.iterdir() if p.is_dir()), ids=lambda path: path.name)
def test_every_data_folder_states_its_source_and_licence(folder: Path) -> None:
    assert len((folder / "NOTICE.md").read_text()) > 200


@pytest.mark.parametrize(
    ("folder", "holder"),
    [
        ("phonemes", "Copyright (c) 1999-2016 Carnegie Mellon University"),
        ("glosses", "WordNet 3.0 Copyright 2006 by Princeton University"),
        ("similarity", "WordNet 3.0 Copyright 2006 by Princeton University"),
    ],
)
def test_a_licence_that_has_to_go_with_the_data_does(folder: str, holder: str) -> None:
    assert holder in (TASKS / folder / "NOTICE.md").read_text()

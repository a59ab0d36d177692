"""The corpora that recipes fetch: what was fetched is checked, read as stated, and cleared of held-out items.

Nothing is fetched here: small files stand for the corpora, and a function for the programs that download.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

DICTIONARY = """\
'bout B AW T
fenno F EH N OW
fenno's F EH N OW Z
fenno(2) F IY N OW
tomato T AH M EY T OW
tomato(2) T AH M AA T OW
"""
# Synsets of WordNet 3.0 with most pointers left out; the last gloss is one that is held out, written otherwise.
NOUNS = """\
  1 This software and database is being provided to you, the LICENSEE, by  
02084071 05 n 03 dog 0 domestic_dog 0 Canis_familiaris 0 003 @ 02083346 n 0000 @ 01317541 n 0000 #m 02085374 n 0000 | \
a member of the genus Canis; common; "the dog barked all night"  
11172593 18 n 01 Newton a 001 @i 10428004 n 0000 | English mathematician; see also: physicist  
07517737 12 n 01 joy_of_life 0 000 | the pleasure of being  
08672916 15 n 01 Berkeley 0 000 | A university town, in California  
"""  # noqa: W291


@pytest.fixture
def corpora(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "models" / "recipes"))
    return importlib.import_module("corpora")


@pytest.fixture
def folder(corpora: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Holds small corpora, which are what is pinned."""
    for name, text in ((corpora.DICTIONARY, DICTIONARY), (corpora.NOUNS, NOUNS)):
        (tmp_path / name).write_text(text)
        monkeypatch.setitem(corpora.SHA256, name, hashlib.sha256(text.encode()).hexdigest())
    return tmp_path


def test_a_word_has_all_its_pronunciations_in_order(corpora: ModuleType, folder: Path) -> None:
    words = corpora.cmudict(folder)
    assert list(words) == ["'bout", "fenno", "fenno's", "tomato"]
    assert words["tomato"] == [("T", "AH", "M", "EY", "T", "OW"), ("T", "AH", "M", "AA", "T", "OW")]


def test_no_form_of_a_held_out_word_is_trained_on(corpora: ModuleType, folder: Path) -> None:
    """fenno is held out, and with it its second pronunciation and fenno's; of tomato the first is the answer."""
    assert '"fenno"' in (ROOT / "tasks" / "phonemes" / "heldout.jsonl").read_text()
    [tomato] = corpora.phoneme_training_pairs(folder)
    assert "".join(corpora.LETTERS[i] for i in tomato.src) == "tomato"
    assert [corpora.PHONEMES[i] for i in tomato.tgt] == ["T", "AH", "M", "EY", "T", "OW"]


def test_ids_and_labels_are_those_of_the_committed_tables(corpora: ModuleType) -> None:
    symbols = json.loads((ROOT / "tasks" / "phonemes" / "symbols.json").read_text())
    assert symbols == {"letters": list(corpora.LETTERS), "phonemes": list(corpora.PHONEMES)}
    assert json.loads((ROOT / "tasks" / "glosses" / "labels.json").read_text()) == list(corpora.LABELS)


def test_a_synset_is_read_whole(corpora: ModuleType, folder: Path) -> None:
    dog, newton, *_ = corpora.noun_glosses(folder)
    assert (dog.offset, dog.category) == (2084071, "animal")
    assert dog.words == ("dog", "domestic dog", "Canis familiaris")
    assert dog.keys == ("dog%1:05:00::", "domestic_dog%1:05:00::", "canis_familiaris%1:05:00::")
    assert dog.hypernyms == (2083346, 1317541)  # and not the group that dogs are members of
    assert dog.gloss == "a member of the genus Canis; common"  # not the example
    assert (newton.hypernyms, newton.keys) == ((10428004,), ("newton%1:18:10::",))  # an instance; hexadecimal a


def test_a_held_out_gloss_is_not_trained_on_in_another_spelling(corpora: ModuleType, folder: Path) -> None:
    assert "\ta university town in California\t" in (ROOT / "tasks" / "glosses" / "glosses.tsv").read_text()
    assert [synset.words[0] for synset in corpora.training_glosses(folder)] == ["dog", "Newton", "joy of life"]
    animal, person, feeling = corpora.gloss_training_rows(folder)
    assert (corpora.LABELS[animal.label], corpora.LABELS[person.label], feeling.label) == ("animal", "person", None)
    assert feeling.gloss == "the pleasure of being"


def test_word_vectors_read_training_prose_and_glosses_only(corpora: ModuleType, folder: Path) -> None:
    texts = corpora.plain_text_for_word_vectors(folder)
    assert texts[0].startswith("In the beginning God created")
    assert texts[-1] == "the pleasure of being"
    assert len(texts) == 1415 + 3
    assert corpora.words_of("Ruth's 3 Dogs") == ["ruth", "s", "dogs"]


def test_another_content_than_the_pinned_one_is_refused(corpora: ModuleType, folder: Path) -> None:
    (folder / corpora.NOUNS).write_text(NOUNS + "\n")
    with pytest.raises(ValueError, match=r"data\.noun: SHA-256 [0-9a-f]{64}, expected [0-9a-f]{64}: delete the file"):
        corpora.noun_glosses(folder)


def packed(command: list[str], cwd: str | None = None, **_: Any) -> subprocess.CompletedProcess[bytes]:
    """Stands for pip, apt-get and dpkg-deb: packages of the small corpora."""
    tar = BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as package:
        member = tarfile.TarInfo("./usr/share/wordnet/data.noun")
        member.size = len(NOUNS)
        package.addfile(member, BytesIO(NOUNS.encode()))
    if command[0] == "apt-get":
        Path(cwd or "", "wordnet-base.deb").touch()
    elif command[0] != "dpkg-deb":
        with zipfile.ZipFile(Path(cwd or "", "pocketsphinx.whl"), "w") as wheel:
            wheel.writestr("pocketsphinx/model/en-us/cmudict-en-us.dict", DICTIONARY)
    return subprocess.CompletedProcess(command, 0, tar.getvalue())


def test_what_is_absent_is_fetched_once(corpora: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = folder / "deeper" / "folder"
    monkeypatch.setattr(subprocess, "run", packed)
    assert corpora.corpus_file(corpora.DICTIONARY, new).read_text() == DICTIONARY
    assert corpora.corpus_file(corpora.NOUNS, new).read_text() == NOUNS
    monkeypatch.delattr(subprocess, "run")
    assert len(corpora.noun_glosses(new)) == 4
    assert sorted(path.name for path in new.iterdir()) == [corpora.DICTIONARY, corpora.NOUNS]


def test_what_cannot_be_fetched_says_why_and_what_to_do(
    corpora: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(command: list[str], **_: Any) -> None:
        raise FileNotFoundError(2, "No such file or directory", command[0])

    def failing(command: list[str], **_: Any) -> None:
        raise subprocess.CalledProcessError(100, command, stderr="W: careful\nE: Unable to locate package\n")

    monkeypatch.setattr(subprocess, "run", absent)
    with pytest.raises(RuntimeError, match=r"data\.noun: apt-get is not installed here: fetch it elsewhere"):
        corpora.noun_glosses(tmp_path)
    monkeypatch.setattr(subprocess, "run", failing)
    with pytest.raises(RuntimeError, match=r"`apt-get download wordnet-base` failed \(E: Unable to locate package\)"):
        corpora.noun_glosses(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def build(corpora: ModuleType) -> ModuleType:
    """tasks/similarity/build.py, which imports corpora."""
    spec = importlib.util.spec_from_file_location("similarity_build", ROOT / "tasks" / "similarity" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_path_lengths_take_the_shortest_way_up(corpora: ModuleType, build: ModuleType) -> None:
    """Synset 4 has two ways to the top, of one edge and of three."""
    up = {1: (), 2: (1,), 3: (2,), 4: (3, 1), 5: (2,)}
    synsets = {i: corpora.Synset(i, "Tops", (), (), hypernyms, "") for i, hypernyms in up.items()}
    assert build.above(synsets[4], synsets) == {4: 0, 3: 1, 1: 1, 2: 2}
    assert build.above(synsets[1], synsets) == {1: 0}


def test_a_word_is_taken_for_a_sense_that_it_mostly_has(corpora: ModuleType, build: ModuleType) -> None:
    """dog: 42 of 50 uses; run: mostly a verb; bank: two senses of which none prevails."""
    counts = (
        "bank%1:14:00:: 2 20\nbank%1:17:01:: 1 25\n"
        "dog%1:05:00:: 1 42\ndog%1:18:01:: 2 6\ndog%2:38:00:: 1 2\n"
        "run%1:04:07:: 1 1\nrun%2:38:00:: 1 106\n"
    )
    keys = [line.split()[0] for line in counts.splitlines() if "%1" in line]
    synsets = [corpora.Synset(i, "Tops", (), (key,), (), "") for i, key in enumerate(keys)]
    assert build.main_senses(synsets, counts) == {"dog": synsets[2]}

"""The whole corpora that some recipes train on, fetched once, and what may be trained on: all but the held-out items.

    python models/recipes/corpora.py [FOLDER]

puts three files into a folder, by default in the user's cache, never in the repository: the CMU Pronouncing Dictionary
from the wheel of pocketsphinx 5.1.1, and of WordNet 3.0 the nouns and the counts of senses from Debian's wordnet-base.
pip and apt-get fetch them, the first time they are asked for. Whatever is read has a SHA-256 pinned here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from string import ascii_lowercase
from tempfile import TemporaryDirectory

from common import ROOT, train_documents

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evalsuite" / "corpora"
DICTIONARY, NOUNS, SENSE_COUNTS = "cmudict-en-us.dict", "data.noun", "cntlist.rev"
SHA256 = {
    DICTIONARY: "20b5c293e1f311fb375fe067e500ec5636f4fc7af5594967263696def9b23bfe",
    NOUNS: "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    SENSE_COUNTS: "a198580b8f705fa02797bba8b13e5cbe4a9f9f40cb1697e774c7fc6a5865b035",
}
PHONEMES_TASK = ROOT / "tasks" / "phonemes"
GLOSSES_TASK = ROOT / "tasks" / "glosses"

# WordNet's files of noun synsets, numbered from 3 (lexnames(5WN)).
FIRST_CATEGORY = 3
CATEGORIES = (
    "Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication", "event", "feeling", "food",
    "group", "location", "motive", "object", "person", "phenomenon", "plant", "possession", "process", "quantity",
    "relation", "shape", "state", "substance", "time",
)  # fmt: skip
LABELS = (
    "act", "animal", "artifact", "attribute", "communication", "location", "person", "plant", "state", "substance",
)  # fmt: skip
"""The ten categories with most nouns: a label of `tasks/glosses` is a place here."""

SPECIAL = ("<pad>", "<bos>", "<eos>")
LETTERS = (*SPECIAL, *ascii_lowercase)
"""An id of ``src`` in `tasks/phonemes` is a place here."""
PHONEMES = (
    *SPECIAL, "AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH", "IH", "IY",
    "JH", "K", "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y", "Z", "ZH",
)  # fmt: skip
"""ARPAbet without stress: an id of ``tgt`` is a place here."""


@dataclass(frozen=True)
class Synset:
    """A noun synset of WordNet.

    Attributes:
        offset: its byte offset in `data.noun`, by which others point to it.
        category: one of `CATEGORIES`.
        words: its members as written there, spaces for underscores.
        keys: the sense key of each member, as in `cntlist.rev`.
        hypernyms: offsets of the synsets it is a kind or an instance of.
        gloss: the definition, without the examples.
    """

    offset: int
    category: str
    words: tuple[str, ...]
    keys: tuple[str, ...]
    hypernyms: tuple[int, ...]
    gloss: str


@dataclass(frozen=True)
class LabelledGloss:
    """A gloss and the place of its category in `LABELS`, None if it is of another."""

    gloss: str
    label: int | None


@dataclass(frozen=True)
class SpokenWord:
    """Ids of a word's letters and phonemes, neither start nor end among them."""

    src: tuple[int, ...]
    tgt: tuple[int, ...]


def corpus_file(name: str, folder: Path = FOLDER) -> Path:
    """Where a file of `SHA256` lies; it is fetched first if the folder lacks it.

    Raises:
        RuntimeError: it cannot be fetched; the message says why and what to do.
        ValueError: its content is not what is pinned.
    """
    path = folder / name
    if not path.is_file():
        data = _from_wheel(name) if name == DICTIONARY else _from_debian(name)
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{name}.part{os.getpid()}")
        part.write_bytes(data)
        part.replace(path)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256[name]:
        raise ValueError(f"{path}: SHA-256 {found}, expected {SHA256[name]}: delete the file, and it is fetched again")
    return path


def _from_wheel(name: str) -> bytes:
    # The wheel of one platform, whatever this one is: the dictionary is the same in all.
    platform = ["--only-binary=:all:", "--platform=manylinux_2_28_x86_64", "--python-version=3.11"]
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", *platform, "pocketsphinx==5.1.1"]

    def unpack(path: Path) -> bytes:
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(f"pocketsphinx/model/en-us/{name}")

    return _download(name, pip, "*.whl", unpack)


def _from_debian(name: str) -> bytes:
    def unpack(path: Path) -> bytes:
        tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=BytesIO(tar)) as package:
            member = package.extractfile(f"./usr/share/wordnet/{name}")
            assert member is not None  # a file, no folder
            return member.read()

    return _download(name, ["apt-get", "download", "wordnet-base"], "*.deb", unpack)


def _download(name: str, command: Sequence[str], pattern: str, unpack: Callable[[Path], bytes]) -> bytes:
    """Run a command that downloads one package into the working folder, and unpack a file of it."""
    advice = f"fetch it elsewhere (NOTICE.md of the task says from where) and put it into {FOLDER}"
    with TemporaryDirectory() as folder:
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
            return unpack(next(Path(folder).glob(pattern)))
        except FileNotFoundError as error:
            raise RuntimeError(f"{name}: {error.filename} is not installed here: {advice}") from None
        except subprocess.CalledProcessError as error:
            reason = str(error.stderr).strip().rpartition("\n")[2]
            raise RuntimeError(f"{name}: `{' '.join(command)}` failed ({reason}): {advice}") from None


def cmudict(folder: Path = FOLDER) -> dict[str, list[tuple[str, ...]]]:
    """The pronunciations of each word in ARPAbet without stress, in the dictionary's order: ``word(2)`` is the second
    of ``word``."""
    words: dict[str, list[tuple[str, ...]]] = {}
    for line in corpus_file(DICTIONARY, folder).read_text(encoding="utf-8").splitlines():
        word, *phonemes = line.split()
        words.setdefault(re.sub(r"\(\d+\)$", "", word), []).append(tuple(phonemes))
    return words


def noun_glosses(folder: Path = FOLDER) -> list[Synset]:
    """All noun synsets, in the file's order."""
    text = corpus_file(NOUNS, folder).read_text(encoding="ascii")
    return [_synset(line) for line in text.splitlines() if not line.startswith("  ")]  # those are the licence


def _synset(line: str) -> Synset:
    """offset file type w (word lex_id){w} p (symbol offset type source){p} | gloss; w and lex_id in hexadecimal."""
    data, gloss = line.split(" | ", 1)
    fields = data.split()
    offset, lex_file = int(fields[0]), int(fields[1])
    end = 4 + 2 * int(fields[3], 16)
    members = list(zip(fields[4:end:2], fields[5:end:2], strict=True))
    pointers = zip(fields[end + 1 :: 4], fields[end + 2 :: 4], strict=False)
    return Synset(
        offset,
        CATEGORIES[lex_file - FIRST_CATEGORY],
        tuple(word.replace("_", " ") for word, _ in members),
        tuple(f"{word.lower()}%1:{lex_file:02d}:{int(lex_id, 16):02d}::" for word, lex_id in members),
        tuple(int(target) for symbol, target in pointers if symbol in ("@", "@i")),
        gloss.split('; "')[0].strip(),
    )


def normalised(text: str) -> str:
    """Letters and digits in lower case, single spaces: glosses equal in this form count as the same."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def spoken_word(word: str, phonemes: Sequence[str]) -> SpokenWord:
    """The ids of a word spelt with a to z and of its pronunciation."""
    return SpokenWord(tuple(map(LETTERS.index, word)), tuple(map(PHONEMES.index, phonemes)))


def phoneme_training_pairs(folder: Path = FOLDER) -> list[SpokenWord]:
    """Every word spelt with a to z alone that is not held out, in the dictionary's order.

    A word stands for its first pronunciation, since it is one answer that is scored. A held-out word is left out with
    everything the dictionary lists under it.
    """
    heldout = {json.loads(line)["id"] for line in (PHONEMES_TASK / "heldout.jsonl").read_text("utf-8").splitlines()}
    return [
        spoken_word(word, pronunciations[0])
        for word, pronunciations in cmudict(folder).items()
        if re.fullmatch("[a-z]+", word) and word not in heldout
    ]


def training_glosses(folder: Path = FOLDER) -> list[Synset]:
    """The noun synsets of all categories whose gloss, normalised, is not that of a held-out row."""
    rows = [line.split("\t") for line in (GLOSSES_TASK / "glosses.tsv").read_text("utf-8").splitlines()]
    heldout = {normalised(row[1]) for row in rows if row[0] == "val"}
    return [synset for synset in noun_glosses(folder) if normalised(synset.gloss) not in heldout]


def gloss_training_rows(folder: Path = FOLDER) -> list[LabelledGloss]:
    """`training_glosses` with their labels."""
    number = {label: i for i, label in enumerate(LABELS)}
    return [LabelledGloss(synset.gloss, number.get(synset.category)) for synset in training_glosses(folder)]


def plain_text_for_word_vectors(folder: Path = FOLDER) -> list[str]:
    """Texts: the training chapters and entries of `tasks/prose`, then `training_glosses` without their headwords."""
    prose = [bytes(ids.tolist()).decode("ascii") for ids in train_documents().values()]
    return prose + [synset.gloss for synset in training_glosses(folder)]


def words_of(text: str) -> list[str]:
    """The words that word vectors are learnt for: runs of the letters a to z, in lower case."""
    return re.findall("[a-z]+", text.lower())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help=f"where they go (default: {FOLDER})")
    folder = parser.parse_args().folder
    for name in SHA256:
        path = corpus_file(name, folder)
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

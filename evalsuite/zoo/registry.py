"""Which families there are: ours, and those that installed packages bring.

A package adds a family with an entry point of the group `GROUP`, named after the ``tl_arch`` of its checkpoints and
pointing at a `Family`:

    [project.entry-points."evalsuite.families"]
    unigram = "my_package.families:UNIGRAM"

The suite asks for the entry point only when it meets such a checkpoint. It is loaded while tests are collected, so the
file that holds the `Family` should not import torch; the module that it names may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from evalsuite.tasks.task import METRICS_OF_KIND

GROUP = "evalsuite.families"


@dataclass(frozen=True)
class Family:
    """How an architecture is scored, and where its loader is.

    Attributes:
        kind: the kind of task its models are scored on: lm, seq2seq, classifier, mlm, rtd or embeddings. What a model
            of the kind must offer is in ``docs/families.md``.
        module: the module whose ``load(model_dir)`` reads its checkpoints.
        continuations: whether a language model gives log-likelihoods of a continuation, which tasks of the kind
            ``choices`` need.
    """

    kind: str
    module: str
    continuations: bool = False

    def __post_init__(self) -> None:
        if self.kind not in METRICS_OF_KIND or self.kind == "choices":
            kinds = ", ".join(kind for kind in METRICS_OF_KIND if kind != "choices")
            raise ValueError(f"a family of kind {self.kind!r}: expected one of {kinds}")

    def does(self, kind: str) -> bool:
        """Whether its models can do a task of the kind."""
        return kind == self.kind or (kind == "choices" and self.continuations)


def _ours(kind: str, name: str, *, continuations: bool = False) -> Family:
    return Family(kind, f"evalsuite.zoo.families.{name}", continuations)


FAMILIES: Mapping[str, Family] = {
    "bigram": _ours("lm", "bigram", continuations=True),
    "ngram": _ours("lm", "ngram", continuations=True),
    # An NPLM reads exactly its context of tokens, no fewer: it cannot score the start of a text.
    "nplm": _ours("lm", "nplm"),
    "rnnlm": _ours("lm", "rnnlm", continuations=True),
    "gpt": _ours("lm", "gpt", continuations=True),
    "llama": _ours("lm", "llama", continuations=True),
    "seq2seq": _ours("seq2seq", "seq2seq"),
    "transformer": _ours("seq2seq", "transformer"),
    "bert": _ours("mlm", "bert"),
    "electra": _ours("rtd", "electra"),
    "word2vec": _ours("embeddings", "word2vec"),
}
"""The families of this package, by ``tl_arch``. A package cannot replace one of them."""

CLASSIFIER = _ours("classifier", "classifier")
BACKBONES = ("bert", "electra", "gpt")
"""What a classifier head may sit on: any of these with ``tl_head`` in its configuration."""


def arch_of(config: Mapping[str, object]) -> object:
    """The architecture a configuration names: ``tl_arch``, or ``llama`` for Hugging Face's ``model_type`` of that name
    and for ``qwen2``, which is a Llama with biases."""
    if "tl_arch" not in config and config.get("model_type") in ("llama", "qwen2"):
        return "llama"
    return config.get("tl_arch")


def family_of(config: Mapping[str, object]) -> Family:
    """The family of a checkpoint.

    Raises:
        KeyError: "no zoo scorer for ..." where neither this package nor an installed one can score it.
        ValueError: an installed package offers the family, but its entry point is broken.
    """
    arch = arch_of(config)
    if config.get("tl_head"):
        if arch not in BACKBONES:
            raise KeyError(f"no zoo scorer for a head on tl_arch {arch!r}; one sits on {', '.join(BACKBONES)}")
        return CLASSIFIER
    if isinstance(arch, str):
        if arch in FAMILIES:
            return FAMILIES[arch]
        if installed := _installed(arch):
            return installed
    missing = "; config.json names no tl_arch" if arch is None else ""
    raise KeyError(f"no zoo scorer for tl_arch {arch!r}{missing}")


@cache
def _installed(arch: str) -> Family | None:
    found = tuple(entry_points(group=GROUP, name=arch))
    if not found:
        return None
    if len({point.value for point in found}) > 1:
        raise ValueError(f"tl_arch {arch!r} is offered by several packages: {', '.join(p.value for p in found)}")
    where = f"the entry point {found[0].value!r} of tl_arch {arch!r}"
    try:
        family = found[0].load()
    except Exception as error:  # whatever a stranger's module raises belongs into the row
        raise ValueError(f"{where} cannot be loaded: {error!r}") from error
    if not isinstance(family, Family):
        raise ValueError(f"{where} is {type(family).__name__}, expected an evalsuite.zoo.Family")
    return family

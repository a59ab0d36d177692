"""Small encoders, the evals run on them, and stand-ins that answer by rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from evalsuite.evals.classification import measure_classification
from evalsuite.evals.masked_tokens import measure_masked_tokens
from evalsuite.evals.replaced_tokens import measure_replaced_tokens
from evalsuite.result import Measurement
from evalsuite.stats import PCG32
from evalsuite.tasks.sentences import LabelledSentence
from evalsuite.tasks.task import Task
from evalsuite.zoo.families.bert import BertConfig, BertForMLM
from evalsuite.zoo.families.classifier import Classifier, ClassifierConfig
from evalsuite.zoo.families.electra import Electra, ElectraConfig

torch.set_num_threads(1)
SIZES = BertConfig(256, 24, 8, 2, 1, 16, 2)
RTD = ("accuracy", "generator_accuracy", "majority_share")
TEXTS = ["a good film", "", "dull", "the plot, if there is one, is thin", "é", "a \x01 and a \x02", "fine acting"] * 3
ROWS = [LabelledSentence(text, number % 3, number + 2) for number, text in enumerate(TEXTS)]


def task(kind: str, *metrics: str) -> Task:
    return Task("rows", kind, Path("rows.tsv"), metrics or ("accuracy",), ("accuracy",))


def far_from_its_start(build: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    model = build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
        for name, parameter in model.named_parameters():
            if name.endswith("decoder_bias"):
                parameter[ord("i")] += 9.0  # so that some guesses are right
    return model.eval()


CLASSIFIER = far_from_its_start(lambda: Classifier(ClassifierConfig("bert", SIZES, ("bad", "fair", "good"), "mean")))
BERT = far_from_its_start(lambda: BertForMLM(SIZES))
ELECTRA = far_from_its_start(lambda: Electra(ElectraConfig(SIZES, SIZES, True, 3, (0, 1, 2, ord(" ")))))


def classify(model: Any = CLASSIFIER, rows: Sequence[LabelledSentence] = ROWS, **fields: Any) -> Measurement:
    return measure_classification("m", task("classifier"), model, rows, fields, {"params": 3})["accuracy"]


def fill(model: Any = BERT, rows: Sequence[LabelledSentence] = ROWS, seed: int = 1, **fields: Any) -> Measurement:
    return measure_masked_tokens("m", task("mlm"), model, rows, fields, PCG32(seed), {"params": 3})["accuracy"]


def detect(
    model: Any = ELECTRA, rows: Sequence[LabelledSentence] = ROWS, seed: int = 1, **fields: Any
) -> dict[str, Measurement]:
    return measure_replaced_tokens("m", task("rtd", *RTD), model, rows, fields, PCG32(seed), {"params": 3})


class OneLogit:
    """A model that gives every token, or every sentence, the same logits."""

    vocab_size, max_len, mask_id = 256, 24, 3
    special_ids: tuple[int, ...] = ()
    labels = ("bad", "good")

    def __init__(self, *logits: float, replaced: float = -1.0) -> None:
        self.row, self.replaced, self.generator = torch.tensor(logits), replaced, self

    def hidden(self, ids: Tensor, real: Tensor) -> Tensor:
        return ids[..., None].float()

    def logits(self, hidden: Tensor) -> Tensor:
        return self.row.expand(len(hidden), -1)

    def class_logits(self, ids: Tensor, real: Tensor) -> Tensor:
        return self.row.expand(len(ids), -1)

    def replaced_logits(self, ids: Tensor, real: Tensor) -> Tensor:
        return torch.full(ids.shape, self.replaced)


def byte_logits(**by_byte: float) -> list[float]:
    """Logits of 256 tokens, 0 but for those named."""
    return [by_byte.get(chr(token), 0.0) for token in range(256)]


class Script(PCG32):
    """A generator whose uniforms are given, and whose integers below n are all the same."""

    def __init__(self, uniforms: list[float], below: int = 0) -> None:
        super().__init__(0)
        self.left: Iterator[float] = iter(uniforms)
        self.chosen = below

    def uniform(self) -> float:
        return next(self.left)

    def below(self, n: int) -> int:
        assert self.chosen < n
        return self.chosen

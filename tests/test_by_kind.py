"""Each kind of task reaches its own eval with its own data, and its rows say whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalsuite.evals.by_kind import measure_kind
from evalsuite.evals.classification import measure_classification
from evalsuite.evals.language_model import measure_stream, stream_nll
from evalsuite.evals.masked_tokens import measure_masked_tokens
from evalsuite.evals.metrics import METRICS
from evalsuite.evals.replaced_tokens import measure_replaced_tokens
from evalsuite.evals.sequences import measure_sequences
from evalsuite.evals.similarity import measure_similarity
from evalsuite.result import Measurement
from evalsuite.stats import PCG32
from evalsuite.tasks.sentences import read_sentences
from evalsuite.tasks.sequences import read_pairs
from evalsuite.tasks.similarity import read_similarity
from evalsuite.tasks.task import GATING_OF_KIND, METRICS_OF_KIND, Task
from evalsuite.tasks.tokens import Document, read_tokens, write_index, write_tokens
from evalsuite.zoo import load_model, read_config
from evalsuite.zoo.registry import family_of
from tests.family_project import FIELDS, TASK_OF, write_families

SOURCE = {"checkpoint": "somewhere", "params": 7}
MODELS = ("seq2seq", "transformer", "classifier", "bert", "electra", "word2vec", "gpt")


@dataclass(frozen=True)
class Zoo:
    """A folder with every family, and how it is scored."""

    root: Path

    def task(self, model: str, kind: str = "") -> Task:
        fields = FIELDS[TASK_OF[model]]
        kind = kind or family_of(self.config(model)).kind
        path = self.root / "models" / fields["data"]
        return Task(str(fields["task"]), kind, path, METRICS_OF_KIND[kind], GATING_OF_KIND[kind])

    def config(self, model: str) -> dict[str, Any]:
        return read_config(self.root / "models" / model)

    def load(self, model: str) -> Any:
        return load_model(self.root / "models" / model)

    def rows(self, model: str, task: Task | None = None, **settings: Any) -> Mapping[str, Measurement]:
        fields = FIELDS[TASK_OF[model]] | settings
        loaded, config = self.load(model), self.config(model)
        return measure_kind("mine", task or self.task(model), loaded, config, fields, PCG32(3), SOURCE)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    root = tmp_path_factory.mktemp("by-kind")
    write_families(root)
    text = np.frombuffer(b"the cat sees the dog. " * 40, np.uint8)
    (root / "tasks" / "prose").mkdir()
    write_tokens(root / "tasks" / "prose" / "heldout.bin", text, 256)
    documents = [Document(f"d{at}", at * 88, at * 88 + 88) for at in range(10)]
    write_index(root / "tasks" / "prose" / "heldout.bin", documents, len(text))
    return Zoo(root)


@pytest.mark.parametrize("model", MODELS)
def test_rows_say_whose_they_are(zoo: Zoo, model: str) -> None:
    rows, task = zoo.rows(model), zoo.task(model)
    assert tuple(rows) == task.metrics
    for metric, row in rows.items():
        facts = METRICS[metric]
        assert (row.model, row.task, row.metric) == ("mine", task.name, metric)
        assert row.source.items() >= SOURCE.items()
        assert row.task_hash
        assert row.lo <= row.value <= row.hi
        assert (row.higher_is_better, row.min_drop, row.link) == (facts.higher_is_better, facts.min_drop, facts.link)
        assert row.normaliser == facts.normaliser
        if metric != "spearman":
            assert row.bounds == facts.bounds


def scored(rows: Mapping[str, Measurement]) -> dict[str, Any]:
    return {metric: (row.value, row.n, row.scores.ids, row.scores.scores.tolist()) for metric, row in rows.items()}


def test_each_kind_is_its_own_eval_on_its_own_data(zoo: Zoo) -> None:
    def arguments(model: str) -> tuple[Any, ...]:
        return "mine", zoo.task(model), zoo.load(model)

    def fields(model: str) -> dict[str, Any]:
        return FIELDS[TASK_OF[model]]

    for model in ("seq2seq", "transformer"):
        pairs = read_pairs(zoo.task(model).data)
        assert scored(zoo.rows(model)) == scored(measure_sequences(*arguments(model), pairs, fields(model), SOURCE))
    words = read_similarity(zoo.task("word2vec").data)
    assert scored(zoo.rows("word2vec")) == scored(measure_similarity(*arguments("word2vec"), words, SOURCE))
    val = read_sentences(zoo.task("bert").data, "val")
    direct = measure_classification(*arguments("classifier"), val, fields("classifier"), SOURCE)
    assert scored(zoo.rows("classifier")) == scored(direct)
    assert direct["accuracy"].n == len(val)
    direct = measure_masked_tokens(*arguments("bert"), val, fields("bert"), PCG32(3), SOURCE)
    assert scored(zoo.rows("bert")) == scored(direct)
    direct = measure_replaced_tokens(*arguments("electra"), val, fields("electra"), PCG32(3), SOURCE)
    assert scored(zoo.rows("electra")) == scored(direct)
    tokens = read_tokens(zoo.task("gpt").data)
    stream = stream_nll(zoo.load("gpt"), zoo.config("gpt"), tokens, fields("gpt"))
    documents = tuple(Document(f"d{at}", at * 88, at * 88 + 88) for at in range(10))
    direct = measure_stream("mine", zoo.task("gpt"), stream, tokens, documents, SOURCE)
    assert scored(zoo.rows("gpt")) == scored(direct)
    assert direct["bpb"].interval == "cluster-t"


def test_settings_reach_the_eval(zoo: Zoo) -> None:
    train = zoo.rows("classifier", split="train")["accuracy"]
    assert train.n == 6
    assert train.n < zoo.rows("classifier")["accuracy"].n
    assert zoo.rows("bert", p=0.9)["accuracy"].n > zoo.rows("bert")["accuracy"].n
    assert zoo.rows("seq2seq", beam=1)["exact_match"].source["decode"] == "greedy"


def refused(zoo: Zoo, model: str, kind: str) -> str:
    with pytest.raises(ValueError) as caught:
        zoo.rows(model, zoo.task(model, kind))
    return str(caught.value)


def test_a_model_on_a_task_of_another_kind(zoo: Zoo) -> None:
    end = "take the task out of the entry"
    assert refused(zoo, "bert", "lm") == (
        f"the family bert is scored on tasks of kind mlm, and the task masked is of kind lm: {end}"
    )
    assert refused(zoo, "classifier", "mlm") == (
        f"bert with a classifier head is scored on tasks of kind classifier, and the task labels is of kind mlm: {end}"
    )
    assert refused(zoo, "bert", "choices").startswith("the family bert is scored on tasks of kind mlm")
    assert refused(zoo, "gpt", "seq2seq").startswith("the family gpt is scored on tasks of kind lm")


def test_a_language_model_without_continuations_on_choices(zoo: Zoo) -> None:
    with pytest.raises(ValueError) as caught:
        measure_kind("m", zoo.task("gpt", "choices"), None, {"tl_arch": "nplm"}, {}, PCG32(0), {})
    assert str(caught.value) == (
        "the family nplm gives no log-likelihood of a continuation, which the task prose needs; take the task out of "
        "the entry"
    )

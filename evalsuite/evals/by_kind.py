"""From a task's kind to the eval that scores it: its data read, its rows returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalsuite.result import Measurement
from evalsuite.tasks.task import Task
from evalsuite.zoo.registry import arch_of, family_of

if TYPE_CHECKING:
    from evalsuite.stats import PCG32


def measure_kind(
    model_name: str,
    task: Task,
    model: Any,
    config: Mapping[str, Any],
    settings: Mapping[str, Any],
    rng: PCG32,
    source: Mapping[str, object],
) -> dict[str, Measurement]:
    """All rows of one model on one task, from one pass over the data.

    Args:
        model_name: the model's part of the row ids.
        task: the task.
        model: a loaded checkpoint.
        config: its configuration.
        settings: fields of task and entry, by kind.
        rng: generator of the kinds that draw: mlm and rtd.
        source: facts about checkpoint and data for the report.

    Raises:
        ValueError: data that is broken or does not fit the model, or a model that cannot do tasks of the kind.
    """
    # Evals are imported where they are used: each loads torch or SciPy, and collection needs neither.
    _check_fit(config, task)
    if task.kind == "lm":
        from evalsuite.evals.language_model import measure_stream, stream_nll
        from evalsuite.tasks.tokens import index_path, read_index, read_tokens

        tokens = read_tokens(task.data)
        index = index_path(task.data)
        documents = read_index(task.data, len(tokens.ids)) if index.exists() else None
        stream = stream_nll(model, config, tokens, settings)
        return measure_stream(model_name, task, stream, tokens, documents, source)
    if task.kind == "choices":
        from evalsuite.evals.choices import measure_choices
        from evalsuite.tasks.items import read_choices

        return measure_choices(model_name, task, model, read_choices(task.data), source)
    if task.kind == "seq2seq":
        from evalsuite.evals.sequences import measure_sequences
        from evalsuite.tasks.sequences import read_pairs

        return measure_sequences(model_name, task, model, read_pairs(task.data), settings, source)
    if task.kind == "embeddings":
        from evalsuite.evals.similarity import measure_similarity
        from evalsuite.tasks.similarity import read_similarity

        return measure_similarity(model_name, task, model, read_similarity(task.data), source)
    return _measure_sentences(model_name, task, model, settings, rng, source)


def _measure_sentences(
    model_name: str, task: Task, model: Any, settings: Mapping[str, Any], rng: PCG32, source: Mapping[str, object]
) -> dict[str, Measurement]:
    """Rows of the kinds that read labelled sentences; only the named split is scored."""
    from evalsuite.tasks.sentences import read_sentences

    rows = read_sentences(task.data, settings.get("split", "val"))
    if task.kind == "classifier":
        from evalsuite.evals.classification import measure_classification

        return measure_classification(model_name, task, model, rows, settings, source)
    if task.kind == "mlm":
        from evalsuite.evals.masked_tokens import measure_masked_tokens

        return measure_masked_tokens(model_name, task, model, rows, settings, rng, source)
    from evalsuite.evals.replaced_tokens import measure_replaced_tokens

    return measure_replaced_tokens(model_name, task, model, rows, settings, rng, source)


def _check_fit(config: Mapping[str, Any], task: Task) -> None:
    """ValueError where the family does not do such tasks: an entry names the wrong task."""
    family = family_of(config)
    if family.does(task.kind):
        return
    arch = arch_of(config)
    if task.kind == "choices" and family.kind == "lm":
        raise ValueError(
            f"the family {arch} gives no log-likelihood of a continuation, which the task {task.name} needs; take the "
            f"task out of the entry"
        )
    what = f"{arch} with a classifier head" if config.get("tl_head") else f"the family {arch}"
    raise ValueError(
        f"{what} is scored on tasks of kind {family.kind}, and the task {task.name} is of kind {task.kind}: take the "
        f"task out of the entry"
    )

"""A zoo with a checkpoint of every family, random and tiny, and data of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evalsuite.zoo import save_word2vec
from evalsuite.zoo.families import bert, classifier, electra, gpt, llama, seq2seq, transformer

SENTENCES = [f"{a} {b} is {c}" for a in ("the", "a") for b in ("cat", "dog", "tree") for c in ("tall", "old", "here")]
FIELDS: dict[str, dict[str, Any]] = {
    "pairs": {"task": "pairs", "data": "../tasks/pairs.jsonl", "bos": 1, "eos": 2, "beam": 2},
    "labels": {"task": "labels", "data": "../tasks/rows.tsv"},
    "masked": {"task": "masked", "data": "../tasks/rows.tsv", "p": 0.3},
    "replaced": {"task": "replaced", "data": "../tasks/rows.tsv", "p": 0.3},
    "words": {"task": "words", "data": "../tasks/words.tsv"},
    "prose": {"task": "prose", "data": "../tasks/prose/heldout.bin"},
}
TASK_OF = {
    **{"seq2seq": "pairs", "transformer": "pairs", "classifier": "labels", "bert": "masked", "electra": "replaced"},
    **{"word2vec": "words", "llama": "prose", "gpt": "prose"},
}
PRIMARY = {
    "pairs": "exact_match",
    "labels": "accuracy",
    "masked": "accuracy",
    "replaced": "accuracy",
    "words": "spearman",
    "prose": "bpb",
}
ROWS = [f"{model}--{task}--{PRIMARY[task]}" for model, task in TASK_OF.items()]


def entry(model: str) -> dict[str, Any]:
    """A model in the form of the first seed's manifest: its task and settings in the entry."""
    return {"id": model, "dir": model, **FIELDS[TASK_OF[model]]}


def write_families(folder: Path) -> None:
    """Write ``models`` and ``tasks`` into a folder."""
    models, tasks = folder / "models", folder / "tasks"
    tasks.mkdir()
    torch.manual_seed(3)
    seq2seq.save(seq2seq.Seq2Seq(seq2seq.Seq2SeqConfig(9, 9, "gru", 4, 8, "bahdanau", 4)), models / "seq2seq")
    sizes = transformer.TransformerConfig(9, 9, 8, 2, 8, 1, 1, "post", True, 12)
    transformer.save(transformer.Transformer(sizes), models / "transformer")
    small = bert.BertConfig(256, 24, 8, 2, 1, 16, 2)
    bert.save(bert.BertForMLM(small), models / "bert")
    electra.save(electra.Electra(electra.ElectraConfig(small, small, True, 3, (0, 1, 2))), models / "electra")
    head = classifier.ClassifierConfig("bert", small, ("no", "yes"), "mean")
    classifier.save(classifier.Classifier(head), models / "classifier")
    shape = llama.LlamaConfig(
        vocab_size=256, hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32, tie_word_embeddings=True,
    )  # fmt: skip
    llama.save(llama.Llama(shape), models / "llama")
    gpt.save(gpt.GPT(gpt.GPTConfig(256, 32, 8, 2, 1, 16)), models / "gpt")
    words = [f"w{number}" for number in range(12)]
    save_word2vec(np.random.default_rng(3).normal(size=(12, 4)), words, models / "word2vec")

    rng = np.random.default_rng(4)
    pairs = [{"src": rng.integers(3, 9, 4).tolist(), "tgt": rng.integers(3, 9, 3).tolist()} for _ in range(12)]
    (tasks / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    rows = [f"{'val' if at % 3 else 'train'}\t{text}\t{at % 2}\n" for at, text in enumerate(SENTENCES)]
    (tasks / "rows.tsv").write_text("split\tsentence\tlabel\n" + "".join(rows))
    near = [f"{a}\t{b}\t{rng.random():.3f}\n" for at, a in enumerate(words) for b in words[at + 1 : at + 4]]
    (tasks / "words.tsv").write_text("# first, second, score\n" + "".join(near))

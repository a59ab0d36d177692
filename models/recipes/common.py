"""What the recipes share: their options, the text to train on, the training loop and the final score.

The held-out text is read in one place, `report`, after the checkpoint is written: nothing is trained or stopped by it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalsuite.tasks.tokens import read_index, read_tokens

if TYPE_CHECKING:
    from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[2]
PROSE = ROOT / "tasks" / "prose"
VOCAB = 256


@dataclass(frozen=True)
class Options:
    """The command line of every recipe: where the checkpoint goes, and what the run depends on."""

    out: Path
    curve: Path
    seed: int
    threads: int


def options(description: str | None, out: str) -> Options:
    """Read the command line; ``out`` is the checkpoint's default folder inside ``models``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "models" / out, help=f"folder (default: models/{out})")
    curve = ROOT / "docs" / "curves" / f"{out}.json"
    parser.add_argument("--curve", type=Path, default=curve, help=f"training curve (default: docs/curves/{out}.json)")
    parser.add_argument("--seed", type=int, default=0, help="of initial weights and batches (default: 0)")
    parser.add_argument("--threads", type=int, default=1, help="of torch; another number rounds otherwise (default: 1)")
    args = parser.parse_args()
    return Options(args.out, args.curve, args.seed, args.threads)


def set_up(opts: Options) -> None:
    """Make torch repeatable: a seed, a number of threads, deterministic algorithms only."""
    import torch

    torch.manual_seed(opts.seed)
    torch.set_num_threads(opts.threads)
    torch.use_deterministic_algorithms(True)


def train_ids() -> NDArray[np.int64]:
    """The training text as one stream, int64 [N]."""
    return read_tokens(PROSE / "train.bin").ids


def train_documents() -> dict[str, NDArray[np.int64]]:
    """The training documents by name, int64 [T] each: "Genesis 1" is a chapter, "FAITH" an entry of the dictionary."""
    ids = train_ids()
    return {doc.id: ids[doc.start : doc.end] for doc in read_index(PROSE / "train.index.json", len(ids))}


def random_windows(ids: Tensor, context: int, batch: int, steps: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Windows that start anywhere: what is read, int64 [B, context], and what follows each token of it."""
    import torch

    windows = ids.unfold(0, context + 1, 1)  # [N - context, context + 1], a view
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        picked = windows[torch.randint(len(windows), (batch,), generator=generator)]
        yield picked[:, :-1], picked[:, 1:]


def train(
    model: nn.Module,
    losses: Iterable[Callable[[], Tensor]],
    curve: Path | None,
    *,
    steps: int,
    lr: float,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.99),
    warm_up: int = 50,
    clip: float = 1.0,
) -> None:
    """AdamW, the rate rising linearly and falling as half a cosine to a hundredth; gradients clipped by norm.

    Args:
        model: trained in place.
        losses: one function a step, which computes the step's mean NLL in nats.
        curve: where the training curve goes, if anywhere.
        steps: how many of them there are.
        weight_decay: on matrices alone, embeddings included.
    """
    import torch

    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": weight_decay},
        {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=lr, betas=betas)

    def factor(step: int) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))
        return min(1.0, (step + 1) / warm_up) * (0.01 + 0.99 * cosine)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    progress = Progress(steps, curve)
    model.train()
    for step, compute in enumerate(losses, start=1):
        loss = compute()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        schedule.step()
        progress.line(step, loss.item())
    model.eval()


class Progress:
    """Prints the mean training loss since the last line, forty times a run, and keeps it as the training curve."""

    def __init__(self, steps: int, curve: Path | None) -> None:
        self.steps = steps
        self.curve = curve
        self.every = max(1, steps // 40)
        self.recent: list[float] = []
        self.points: list[tuple[int, float]] = []
        self.start = time.process_time()

    def line(self, step: int, loss: float) -> None:
        self.recent.append(loss)
        if step % self.every == 0 or step == self.steps:
            bits = sum(self.recent) / len(self.recent) / math.log(2)
            minutes = (time.process_time() - self.start) / 60
            print(f"step {step} of {self.steps}, training loss {bits:.3f} bits, {minutes:.1f} CPU minutes", flush=True)
            self.recent.clear()
            self.points.append((step, round(bits, 4)))
        if step == self.steps and self.curve:
            self.curve.parent.mkdir(parents=True, exist_ok=True)
            points = ",\n".join(json.dumps(point) for point in self.points)
            self.curve.write_text(f'{{"unit": "bits", "points": [\n{points}\n]}}\n', encoding="utf-8")


def report(out: Path, task_name: str, **bars: float) -> None:
    """Load the checkpoint, score it on the held-out items of a task as the suite does, and say whether it is good
    enough.

    Args:
        out: the checkpoint.
        task_name: a task file of ``tasks/``.
        bars: by metric, what the score has to reach.
    """
    from evalsuite.evals.metrics import METRICS
    from evalsuite.measure import load, measure_task, row_generator
    from evalsuite.tasks.task import read_task
    from evalsuite.zoo.manifest import Entry

    entry = Entry(out.name, {"id": out.name, "dir": str(out.resolve())}, ROOT / "models")
    task = read_task(ROOT / "tasks" / f"{task_name}.json")
    for metric, row in measure_task(load(entry), entry, task, row_generator(0, entry.name, task)).items():
        line = f"{out.name} {task_name} {metric}: {row.value:.4f} [{row.lo:.4f}, {row.hi:.4f}], n {row.n}"
        if metric in bars:
            good = row.value >= bars[metric] if METRICS[metric].higher_is_better else row.value <= bars[metric]
            line += f" (bar {bars[metric]}, {'met' if good else 'MISSED'})"
        print(line)
    size = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    print(f"{out.name}: {size:.2f} MB, {time.process_time() / 60:.2f} CPU minutes in all")

"""The plots of zoo.md, from the training curves and a report of `make eval`. Needs matplotlib (the extra `html`).

python docs/plots.py [--report eval-report/report.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent
LANGUAGE_MODELS = ("nplm", "gru", "gpt", "llama")


def training_curves(out: Path) -> None:
    """Training loss over the course of training: language models, which share a unit, and the others."""
    curves = {path.stem: json.loads(path.read_text())["points"] for path in sorted((DOCS / "curves").glob("*.json"))}
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), sharex=True)
    for name, points in curves.items():
        axes = left if name in LANGUAGE_MODELS else right
        steps = [step for step, _ in points]
        axes.plot([100 * step / steps[-1] for step in steps], [bits for _, bits in points], label=name, linewidth=1.5)
    left.set(title="language models", ylabel="training loss, bits per byte", xlabel="% of training", ylim=(1.5, 4.5))
    right.set(title="other families", ylabel="training loss, bits per prediction", xlabel="% of training")
    right.set_yscale("log")  # ELECTRA's loss is a sum of two, one of them weighted
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=9)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, out)


def bits_per_byte(report: Path, out: Path) -> None:
    """Held-out bits per byte of every language model with its 95 % interval, best first."""
    rows = [
        row for row in json.loads(report.read_text())["rows"] if row["metric"] == "bpb" and row["value"] is not None
    ]
    rows.sort(key=lambda row: -row["value"])
    figure, axes = plt.subplots(figsize=(7, 0.45 * len(rows) + 1))
    for place, row in enumerate(rows):
        lo, hi = row["ci95"]
        axes.plot([lo, hi], [place, place], color="C0", linewidth=2)
        axes.plot(row["value"], place, "o", color="C0", markersize=6)
        axes.annotate(f"{row['value']:.3f}", (hi, place), (6, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [row["model"] for row in rows])
    axes.set(xlabel="bits per byte on held-out prose (95 % interval over documents); less is better")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12, y=0.15)
    save(figure, out)


def save(figure: plt.Figure, out: Path) -> None:
    """Write an SVG that is the same for the same numbers."""
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)
    print(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, default=DOCS.parent / "eval-report" / "report.json")
    report = parser.parse_args().report
    mpl.rcParams["svg.hashsalt"] = "evalsuite"
    training_curves(DOCS / "training-curves.svg")
    bits_per_byte(report, DOCS / "bits-per-byte.svg")


if __name__ == "__main__":
    main()

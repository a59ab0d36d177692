"""The ``evalsuite`` command: a verb a function. Exit status 0 ok, 1 a row could not be scored, 2 a usage error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb and return the exit status. What the user got wrong is one line on standard error."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (ValueError, KeyError, OSError) as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"evalsuite {options.verb}: {' '.join(str(text).split())}", file=sys.stderr)
        return 2
    return status


def ppl(options: argparse.Namespace) -> int:
    """Perplexity and bits per byte of a token file under a checkpoint, each with its 95 % interval."""
    from evalsuite.measure import load, measure_task, row_generator
    from evalsuite.tasks.task import METRICS_OF_KIND, Task
    from evalsuite.zoo.manifest import Entry

    checkpoint, data = Path(options.checkpoint), Path(options.tokens)
    fields = {name: getattr(options, name) for name in ("ctx_len", "stride", "n_bytes")}
    given = {key: value for key, value in fields.items() if value is not None}
    raw = {"id": checkpoint.name, "dir": str(checkpoint)} | given
    entry = Entry(checkpoint.name, raw, Path())
    task = Task(data.stem, "lm", data, METRICS_OF_KIND["lm"], ())
    rows = measure_task(load(entry), entry, task, row_generator(0, entry.name, task))
    for row in rows.values():
        print(f"{row.metric:<4} {row.value:.4f} [{row.lo:.4f}, {row.hi:.4f}]")
    row = rows["bpb"]
    units = len(row.scores.ids)
    print(f"{row.n} scored tokens, {units} unit{'s' * (units != 1)}; 95 % interval: {row.interval}")
    if row.blind:
        print(f"note: {row.blind}")
    return 0


def zoo(options: argparse.Namespace) -> int:
    """Score a manifest without baselines and write the strict v1 report."""
    from evalsuite.run_zoo import run_zoo, write_report
    from evalsuite.stats import PCG32

    report = run_zoo(options.manifest, PCG32(options.seed), options.seed)
    for row in report["rows"]:
        if row["status"] == "ok":
            lo, hi = row["ci95"]
            print(f"{row['model']:<16} {row['task']:<12} {row['metric']:<9} {row['value']:.4f} [{lo:.4f}, {hi:.4f}]")
        else:
            print(f"{row['model']:<16} {row['task']:<12} {row['status']:<9} {row['reason']}")
    write_report(report, options.out)
    print("intervals as the v1 format has them, by token for bpb; pytest evalsuite gives them by document")
    print(options.out)
    return 1 if any(row["status"] == "error" for row in report["rows"]) else 0


def forget(options: argparse.Namespace) -> int:
    """Delete the baselines of rows that are gone for good, or all of a model."""
    from evalsuite.gate.store import forget as forget_rows

    for path in forget_rows(Path(options.eval_snapshots), options.row):
        print(f"deleted {path}")
    return 0


def compare(options: argparse.Namespace) -> int:
    """Judge a newer run against an older one, from their report folders. With --fail the exit status is 1 for a
    regression (a lost row is one) and 2 where rows cannot be compared; bad input is always 3."""
    from evalsuite.compare_reports import BAD_INPUT, OK, compare_reports, comparison_lines, comparison_status

    try:
        rows = compare_reports(options.base, options.new)
    except ValueError as error:
        print(f"evalsuite compare: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    for line in comparison_lines(rows):
        print(line)
    return comparison_status(rows) if options.fail else OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="evalsuite", description="Evaluations of language models. The suite itself runs as `pytest evalsuite`."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    one = verbs.add_parser("ppl", help="perplexity and bits per byte of a token file", description=ppl.__doc__)
    one.add_argument("checkpoint", metavar="CHECKPOINT", help="a checkpoint's folder, or an n-gram's .safetensors file")
    one.add_argument("tokens", metavar="TOKENS", help="a token file (.bin)")
    one.add_argument("--ctx-len", type=int, metavar="C", help="window in tokens (default: the model's)")
    one.add_argument("--stride", type=int, metavar="S", help="step of the window (default: half of it)")
    one.add_argument("--n-bytes", type=int, metavar="N", help="bytes of the text, where a token is no byte")
    one.set_defaults(run=ppl)

    two = verbs.add_parser("zoo", help="score a manifest, strict v1 report", description=zoo.__doc__)
    two.add_argument("manifest", metavar="MANIFEST", help="path of zoo.json")
    two.add_argument("--out", default="eval-report/eval-results.json", metavar="FILE", help="default: %(default)s")
    two.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    two.set_defaults(run=zoo)

    three = verbs.add_parser("forget", help="delete baselines", description=forget.__doc__)
    three.add_argument("row", nargs="+", metavar="ROW", help="model--task--metric, or a model for all its rows")
    three.add_argument("--eval-snapshots", default="snapshots", metavar="DIR", help="default: %(default)s")
    three.set_defaults(run=forget)

    four = verbs.add_parser("compare", help="judge one report folder against another", description=compare.__doc__)
    four.add_argument("base", metavar="BASE", help="folder of the older report")
    four.add_argument("new", metavar="NEW", help="folder of the newer report")
    four.add_argument("--fail", action="store_true", help="exit status 1 for a regression, 2 for rows not comparable")
    four.set_defaults(run=compare)
    return parser

"""`rank`: scores the candidates of a split into a score file, and prints how often the
right element is near the top."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.output import say
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files import markdown
from seeact_offline.files.named import read_text
from seeact_offline.files.whole import write_whole
from seeact_offline.ranking.rankers import FUSED, parts_of
from seeact_offline.ranking.recall import (
    CUT,
    ENDINGS,
    RECALL_AT,
    CurvePoint,
    StepRank,
    curve,
    curve_csv,
    curve_picture,
    read_curve,
)
from seeact_offline.ranking.stage import SUFFIXES, RankConfig, rank
from seeact_offline.records import InputError
from seeact_offline.scoring.report import Extent, counted, data_in_words

NAMED = 5
"""Steps without scores that are named one by one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    ranking = parser.add_argument_group("ranking")
    options.add_fields(ranking, RankConfig, "ranker", "dtype", "backend")
    ranking.add_argument(
        "--out", type=Path, required=True, metavar="FILE",
        help="score file; a killed run resumes from FILE.partial.jsonl",
    )  # fmt: skip
    ranking.add_argument(
        "--format", choices=tuple(SUFFIXES), default="parquet",
        help="parquet, or the official pickle (default: %(default)s)",
    )  # fmt: skip
    ranking.add_argument(
        "--curve", action="store_true",
        help="also FILE's .curve.csv, .png, .pdf and .svg: recall@k and the ceiling of Step SR for k = 1 to 100",
    )  # fmt: skip
    ranking.add_argument(
        "--beside", type=Path, action="append", default=[], metavar="FILE.curve.csv",
        help="with --curve: add the curve of another ranker to the picture, under its file's name; repeatable",
    )  # fmt: skip
    options.add_engine_arguments(parser)
    ranking.add_argument("--json", action="store_true", help="machine-readable output")
    ranking.add_argument(
        "--config", type=Path, metavar="FILE.yaml", help="read options from a file; the command line wins"
    )


def run(args: argparse.Namespace) -> int:
    if args.beside and not args.curve:
        raise InputError("beside", sentence="`beside` needs `curve`")
    for path in args.beside:
        # refused before anything is ranked
        _curve_of(path)
    config = RankConfig(**options.given(args, RankConfig))
    ranking = rank(config, args.out, TerminalWatch(), args.format)
    results = ranking.results
    if args.curve:
        results["curve"] = _write_curve(args, config.dataset, ranking.ranks, results)
    print(json.dumps(results, indent=2)) if args.json else say(_text(results))
    return 1 if results["failures"] else 0


def _write_curve(
    args: argparse.Namespace, dataset: str, ranks: Sequence[StepRank], results: dict[str, Any]
) -> dict[str, str]:
    points = curve(ranks)
    name = FUSED.join(Path(part).name for part in parts_of(results["ranker"]))
    table = args.out.with_suffix(".curve.csv")
    write_whole(table, lambda path: path.write_text(curve_csv(points), encoding="utf-8"))
    curves = {name: points} | {path.name.removesuffix(".curve.csv"): _curve_of(path) for path in args.beside}
    of = data_in_words([Extent(dataset, results["split"], results["n_steps"], results["n_tasks"])])
    written = {"table": str(table)}
    for ending in ENDINGS:
        made = curve_picture(curves, f"{name if len(curves) == 1 else 'Recall'} on {of}", ending)
        picture = args.out.with_suffix(f".curve{ending}")
        write_whole(picture, partial(Path.write_bytes, data=made))
        written["picture" if ending == ".png" else ending[1:]] = str(picture)
    return written


def _curve_of(path: Path) -> list[CurvePoint]:
    """Reads the curve of another ranker. Raises InputError."""
    wanted = "a .curve.csv that `rank --curve` wrote"
    try:
        return read_curve(read_text("beside", path, wanted))
    except (ValueError, csv.Error) as error:
        raise InputError("beside", wanted, f"{path}: {error}") from None


def _text(results: dict[str, Any]) -> str:
    size = f"{counted(results['n_steps'], 'step')} of {counted(results['n_tasks'], 'task')}"
    head = f"{results['ranker']} on {results['split']}: {size}"
    published = "Published: the fine-tuned DeBERTa on the test sets of the original Mind2Web."
    steps = counted(results["n_steps"], "step has", "steps have")
    cut = counted(results["texts_truncated"], "was", "were")
    notes = [
        *([] if results["published_recall_at_50"] is None else [published]),
        f"{results['ties_across_cut']} of {steps} a tie across the cut at {CUT}, where document order decides who is offered.",
        f"{counted(results['texts'], 'text')}, of which {cut} cut to the model's length.",
    ]
    return "\n\n".join([head, _table(results), "\n".join(notes), "\n".join(_files(results))])


def _table(results: dict[str, Any]) -> str:
    published = results["published_recall_at_50"]
    rows = [
        _row(f"all {counted(results['n_steps'], 'step')}", results["recall_at_k"], results["mrr_at_50"]),
        _row(
            f"the {results['n_with_positive']} with a right element",
            results["recall_at_k_with_positive"],
            results["mrr_at_50_with_positive"],
        ),
        *([] if published is None else [_row("published", {str(CUT): published}, None)]),
    ]
    return markdown.table(("percent", *(f"recall@{k}" for k in RECALL_AT), f"MRR@{CUT}"), rows)


def _row(name: str, recall: dict[str, float | None], mrr: float | None) -> list[str]:
    return [name, *(markdown.percent(recall.get(str(k))) for k in RECALL_AT), markdown.percent(mrr)]


def _files(results: dict[str, Any]) -> Iterator[str]:
    left_out = results["steps_left_out"]
    if left_out:
        named = ", ".join(f"{name} {n}" for name, n in results["failures"].items())
        more = ", ..." if len(left_out) > NAMED else ""
        yield (
            f"{counted(len(left_out), 'step')} could not be ranked ({named}) and count as not found:"
            f" {', '.join(left_out[:NAMED])}{more}"
        )
    yield f"Scores: {results['out']}"
    if "curve" in results:
        yield f"Curve: {', '.join(results['curve'].values())}"

"""`rank`: the candidates of a split through a ranker, into a score file; how often the right element is near the top."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.output import say
from seeact_offline.cli.watching import Told
from seeact_offline.files import markdown
from seeact_offline.files.whole import write_whole
from seeact_offline.ranking.chart import curve_png
from seeact_offline.ranking.recall import CUT, RECALL_AT, StepRank, curve, curve_csv
from seeact_offline.runs.ranking import SUFFIXES, RankConfig, rank

NAMED = 5
"""Steps without scores that are named one by one."""
PUBLISHED_NOTE = "Published: the fine-tuned DeBERTa on the test sets of the original Mind2Web."
TIES_NOTE = "{ties} of {steps} steps have a tie across the cut at {cut}, where document order decides who is offered."
TEXTS_NOTE = "{texts:,} texts, of which {cut:,} were cut to the model's length."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    ranking = parser.add_argument_group("ranking")
    options.add_ranker_argument(ranking)
    ranking.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="score file; a killed run goes on from FILE.partial.jsonl",
    )
    ranking.add_argument(
        "--format",
        choices=tuple(SUFFIXES),
        default="parquet",
        help="parquet, or the official pickle (default: %(default)s)",
    )
    ranking.add_argument(
        "--curve",
        action="store_true",
        help="also FILE's .curve.csv and .curve.png: recall@k and the ceiling of Step SR for k = 1 to 100",
    )
    options.add_engine_arguments(parser)
    ranking.add_argument("--json", action="store_true", help="machine-readable output")
    ranking.add_argument(
        "--config", type=Path, metavar="FILE.yaml", help="read options from a file; the command line wins"
    )


def run(args: argparse.Namespace) -> int:
    config = RankConfig(**{field.name: getattr(args, field.name) for field in fields(RankConfig)})
    ranking = rank(config, args.out, Told(), args.format)
    results = ranking.results
    if args.curve:
        results["curve"] = _write_curve(args, ranking.ranks, results)
    print(json.dumps(results, indent=2)) if args.json else say(_text(results))
    return 1 if results["failures"] else 0


def _write_curve(args: argparse.Namespace, ranks: Sequence[StepRank], results: dict[str, Any]) -> dict[str, str]:
    points = curve(ranks)
    table, picture = args.out.with_suffix(".curve.csv"), args.out.with_suffix(".curve.png")
    title = f"{Path(args.ranker).name} on {results['split']} of {Path(args.dataset).name}: {results['n_steps']} steps"
    write_whole(table, lambda path: path.write_text(curve_csv(points), encoding="utf-8"))
    write_whole(picture, lambda path: path.write_bytes(curve_png(points, title)))
    return {"table": str(table), "picture": str(picture)}


def _text(results: dict[str, Any]) -> str:
    head = f"{results['ranker']} on {results['split']}: {results['n_steps']} steps of {results['n_tasks']} tasks"
    ties = TIES_NOTE.format(ties=results["ties_across_cut"], steps=results["n_steps"], cut=CUT)
    texts = TEXTS_NOTE.format(texts=results["texts"], cut=results["texts_truncated"])
    return "\n\n".join([head, _table(results), "\n".join([PUBLISHED_NOTE, ties, texts]), "\n".join(_files(results))])


def _table(results: dict[str, Any]) -> str:
    published = results["published_recall_at_50"]
    rows = [
        _row(f"all {results['n_steps']} steps", results["recall_at_k"], results["mrr_at_50"]),
        _row(
            f"{results['n_with_positive']} with a right element",
            results["recall_at_k_with_positive"],
            results["mrr_at_50_with_positive"],
        ),
        _row("published", {str(CUT): published}, None),
    ]
    return markdown.table(("percent", *(f"recall@{k}" for k in RECALL_AT), f"MRR@{CUT}"), rows)


def _row(name: str, recall: dict[str, float | None], mrr: float | None) -> list[str]:
    return [name, *(markdown.percent(recall.get(str(k))) for k in RECALL_AT), markdown.percent(mrr)]


def _files(results: dict[str, Any]) -> Iterator[str]:
    left_out = results["steps_left_out"]
    if left_out:
        named = ", ".join(f"{name} {n}" for name, n in results["failures"].items())
        more = ", ..." if len(left_out) > NAMED else ""
        yield f"{len(left_out)} steps could not be ranked ({named}) and count as not found: {', '.join(left_out[:NAMED])}{more}"
    yield f"Scores: {results['out']}"
    if "curve" in results:
        yield f"Curve: {results['curve']['table']}, {results['curve']['picture']}"

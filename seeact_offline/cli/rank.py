"""`rank`: the candidates of a split through a ranker, into a score file; how often the right element is near the top."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from seeact_offline import tables
from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.cli.progress import StepProgress
from seeact_offline.dataset import canonical_split, fingerprint, load_steps, step_keys
from seeact_offline.ranking import (
    TEXT_VERSION,
    FileScores,
    Origin,
    read_scores,
    write_official,
    write_scores,
)
from seeact_offline.ranking.chart import curve_png
from seeact_offline.ranking.recall import (
    CUT,
    PUBLISHED_RECALL_AT_50,
    RECALL_AT,
    StepRank,
    curve,
    curve_csv,
    step_rank,
    summary,
)
from seeact_offline.ranking.splits import Engine, LocalEngine, PartFile, RankedStep, Selection, reread_steps
from seeact_offline.records import InputError, ScoreFileError, StepKey

FORMATS = ("parquet", "official")
SUFFIXES = {"parquet": (".parquet",), "official": (".pkl", ".pickle")}
NAMED = 5
# steps without scores that are named one by one
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
        "--format", choices=FORMATS, default="parquet", help="parquet, or the official pickle (default: %(default)s)"
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
    split = canonical_split(args.split)
    _check_out(args.out, args.format)
    keys = step_keys(args.dataset, split, limit=args.limit)
    with _open_engine(args) as engine:
        origin = _origin(args, engine)
        note(f"{len(keys)} steps of {args.dataset} ({split}), ranker {args.ranker}, out {args.out}")
        finished = _finished(args.out, origin)
        if finished is not None:
            ranks, truncated = _reread(args, split, finished)
        else:
            ranks, truncated = _rank(args, keys, engine, origin)
    results = _results(args, origin, ranks, truncated)
    if args.curve:
        results["curve"] = _write_curve(args, ranks, results)
    print(json.dumps(results, indent=2)) if args.json else say(_text(results))
    return 1 if results["failures"] else 0


def kept_scores(args: argparse.Namespace, folder: Path) -> Path:
    """The score file that `rank` would make of the same options, in `folder`: made only where it is not there yet."""
    split = canonical_split(args.split)
    with _open_engine(args) as engine:
        origin = _origin(args, engine)
        name = hashlib.sha256(repr(origin).encode()).hexdigest()[:32]
        args = argparse.Namespace(**vars(args) | {"out": folder / f"{split}-{name}.parquet", "format": "parquet"})
        args.out.parent.mkdir(parents=True, exist_ok=True)
        if not args.out.exists():
            _rank(args, step_keys(args.dataset, split, limit=args.limit), engine, origin)
    return Path(args.out)


def _origin(args: argparse.Namespace, engine: Engine) -> Origin:
    split = canonical_split(args.split)
    return Origin(fingerprint(args.dataset, split), split, args.limit, engine.digest, TEXT_VERSION, args.ranker)


@contextmanager
def _open_engine(args: argparse.Namespace) -> Iterator[Engine]:
    """Raises InputError where the ranker or Ray cannot be used."""
    if args.engine == "local":
        named = [
            name
            for name in ("address", "score_workers", "describe_workers", "gpus_per_worker")
            if getattr(args, name) is not None
        ]
        if named:
            raise InputError(f"--{named[0].replace('_', '-')}: expected --engine ray beside it, got --engine local")
        yield LocalEngine(options.ranker_opener(args)(args.ranker))
        return
    from seeact_offline.ranking.ray_engine import Workers, open_engine

    workers = Workers(args.address, args.score_workers, args.describe_workers, args.gpus_per_worker)
    with open_engine(args.ranker, workers, options.ranker_opener(args)) as engine:
        crew = engine.crew
        note(
            f"Ray: {crew.describe} describing and {crew.score} scoring workers, {crew.gpus_each:g} GPUs each of the latter"
        )
        yield engine


def _check_out(out: Path, format: str) -> None:
    """Readers tell the formats apart by the ending."""
    expected = SUFFIXES[format]
    if out.suffix not in expected:
        raise InputError(
            f"--out: expected a file that ends in {' or '.join(expected)} for --format {format}, got {out}"
        )
    if format == "official" and out.exists():
        raise InputError(
            f"--out: expected a file that is not there yet, as a pickle cannot say what made it; got {out}"
        )


def _finished(out: Path, origin: Origin) -> FileScores | None:
    """The scores of a run that came to its end, of this very configuration. Raises InputError for another file."""
    if not out.exists():
        return None
    try:
        scores = read_scores(out)
    except ScoreFileError:
        raise InputError(f"--out: {out} is there already and is no score file; name another file") from None
    if scores.origin != origin:
        raise InputError(f"--out: {out} holds scores of another data set, split or ranker; name another file")
    note(f"{out} is finished already; nothing is scored again")
    return scores


def _reread(args: argparse.Namespace, split: str, finished: FileScores) -> tuple[list[StepRank], int]:
    steps = load_steps(args.dataset, split, limit=args.limit)
    ranks = [_told(step) for step in reread_steps(steps, finished)]
    return ranks, (finished.origin.texts_truncated or 0) if finished.origin else 0


def _rank(
    args: argparse.Namespace, keys: Sequence[StepKey], engine: Engine, origin: Origin
) -> tuple[list[StepRank], int]:
    """Scores what is not scored yet, and writes the score file."""
    ranks: list[StepRank] = []
    truncated = found = 0
    path = args.out.with_name(args.out.name + ".partial.jsonl")
    selection = Selection(args.dataset, origin.split, args.limit)
    with PartFile(path, origin) as part:
        resumed = sum(key in part for key in keys)
        if resumed:
            note(f"{resumed} steps are done already and are not scored again")
        with StepProgress(len(keys), origin.split) as progress:
            for step in engine.rank(selection, part):
                rank = _told(step)
                ranks.append(rank)
                truncated += step.scored.truncated if step.scored else 0
                found += rank.best_rank is not None and rank.best_rank < CUT
                progress.advance(f"recall@{CUT} {100 * found / len(ranks):.1f}", step.resumed)
        _write(args.out, args.format, part, keys, replace(origin, texts_truncated=truncated))
    path.unlink()
    places = {key: place for place, key in enumerate(keys)}
    return sorted(ranks, key=lambda rank: places[rank.key]), truncated


def _told(step: RankedStep) -> StepRank:
    """The step's figures, and a remark on one that could not be ranked."""
    if step.failure:
        note(f"step {step.truth.key} is left out: {step.failure}: {step.detail}")
    return step_rank(step)


def _write(out: Path, format: str, part: PartFile, keys: Sequence[StepKey], origin: Origin) -> None:
    """The score file, whole or not at all."""
    rows = part.rows(keys)

    def write(path: Path) -> None:
        if format == "official":
            write_official(path, rows)
        else:
            write_scores(path, rows, origin)

    _whole(out, write)


def _whole(path: Path, write: Callable[[Path], Any]) -> None:
    draft = path.with_name(path.name + ".tmp")
    write(draft)
    os.replace(draft, path)


def _results(args: argparse.Namespace, origin: Origin, ranks: Sequence[StepRank], truncated: int) -> dict[str, Any]:
    return {
        "schema": 1,
        "dataset": args.dataset,
        "dataset_fingerprint": origin.dataset_fingerprint,
        "split": origin.split,
        "limit": origin.limit,
        "ranker": args.ranker,
        "ranker_digest": origin.ranker_digest,
        "text_version": origin.text_version,
        "out": str(args.out),
        **summary(ranks),
        "texts_truncated": truncated,
        "published_recall_at_50": PUBLISHED_RECALL_AT_50.get(origin.split),
        "steps_left_out": [str(one.key) for one in ranks if one.failure],
    }


def _write_curve(args: argparse.Namespace, ranks: Sequence[StepRank], results: dict[str, Any]) -> dict[str, str]:
    points = curve(ranks)
    table, picture = args.out.with_suffix(".curve.csv"), args.out.with_suffix(".curve.png")
    title = f"{Path(args.ranker).name} on {results['split']} of {Path(args.dataset).name}: {results['n_steps']} steps"
    _whole(table, lambda path: path.write_text(curve_csv(points), encoding="utf-8"))
    _whole(picture, lambda path: path.write_bytes(curve_png(points, title)))
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
    return tables.table(("percent", *(f"recall@{k}" for k in RECALL_AT), f"MRR@{CUT}"), rows)


def _row(name: str, recall: dict[str, float | None], mrr: float | None) -> list[str]:
    return [name, *(tables.percent(recall.get(str(k))) for k in RECALL_AT), tables.percent(mrr)]


def _files(results: dict[str, Any]) -> Iterator[str]:
    left_out = results["steps_left_out"]
    if left_out:
        named = ", ".join(f"{name} {n}" for name, n in results["failures"].items())
        more = ", ..." if len(left_out) > NAMED else ""
        yield f"{len(left_out)} steps could not be ranked ({named}) and count as not found: {', '.join(left_out[:NAMED])}{more}"
    yield f"Scores: {results['out']}"
    if "curve" in results:
        yield f"Curve: {results['curve']['table']}, {results['curve']['picture']}"

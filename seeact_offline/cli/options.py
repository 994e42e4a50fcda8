"""Options that several verbs share, and what they name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from seeact_offline.cli import strategies
from seeact_offline.cli.output import note
from seeact_offline.records import MERGE_RULES, InputError, StepKey

if TYPE_CHECKING:
    from seeact_offline.grounding import Grounding
    from seeact_offline.ranking import Ranker, Scores

ENGINES = ("local", "ray")
N = TypeVar("N", int, float)


def positive_int(text: str) -> int:
    return _number(text, int, 1, "a whole number of at least 1")


def count(text: str) -> int:
    return _number(text, int, 0, "a whole number of at least 0")


def positive_float(text: str) -> float:
    return _number(text, float, sys.float_info.min, "a number above 0")


def non_negative_float(text: str) -> float:
    return _number(text, float, 0.0, "a number of at least 0")


def _number(text: str, kind: Callable[[str], N], least: float, expected: str) -> N:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not least <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text}")
    return value


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument(
        "--dataset",
        default="sample",
        metavar="DIR|FILE|HUB_ID",
        help="folder of parquet or JSONL, one such file, or a hub id",
    )
    data.add_argument(
        "--split",
        default="cross_task",
        help="train, cross_task, cross_website, cross_domain or all (default: %(default)s)",
    )
    data.add_argument("--limit", type=positive_int, metavar="N", help="only the first N tasks")


def add_question_arguments(parser: argparse.ArgumentParser) -> None:
    """What decides which questions a model is asked."""
    asked = parser.add_argument_group("ranking, grounding and prompts")
    add_group_arguments(asked)
    asked.add_argument(
        "--grounding",
        choices=strategies.GROUNDINGS,
        default="choice",
        help="how the plan becomes an element (default: %(default)s)",
    )
    strategies.add_arguments(parser.add_argument_group("how questions are put"))


def add_group_arguments(asked: argparse._ActionsContainer) -> None:
    """Which candidates are offered together, and in which words."""
    add_ranker_argument(asked)
    asked.add_argument("--scores", type=Path, metavar="FILE", help="a score file instead of --ranker, .parquet or .pkl")
    asked.add_argument(
        "--top-k", type=positive_int, default=50, metavar="K", help="candidates offered (default: %(default)s)"
    )
    asked.add_argument(
        "--group-size",
        type=positive_int,
        default=17,
        metavar="N",
        help="candidates in a question (default: %(default)s)",
    )
    asked.add_argument(
        "--merge",
        choices=MERGE_RULES,
        default="final-round",
        help="how the groups' answers become one (default: %(default)s)",
    )
    asked.add_argument("--prompts", default="seeact", metavar="NAME|DIR", help="prompt pack (default: %(default)s)")
    asked.add_argument(
        "--config", type=Path, metavar="FILE.yaml", help="read options from a file; the command line wins"
    )


def add_ranker_argument(parser: argparse._ActionsContainer) -> None:
    from seeact_offline.ranking import BACKENDS, DTYPES, default_ranker

    parser.add_argument(
        "--ranker",
        default=default_ranker(),
        metavar="NAME|DIR|HUB_ID",
        help="ranks the candidates: bundled, bm25, or a sequence-classification checkpoint (default: %(default)s)",
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="auto",
        help="of a checkpoint's numbers: auto is float32 on a CPU and bfloat16 on a GPU; "
        "mixed is bfloat16 with the best 50 as float32 has them (default: %(default)s)",
    )
    parser.add_argument(
        "--backend", choices=BACKENDS, default="auto", help="a checkpoint's forward pass (default: %(default)s)"
    )


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ranking."""
    engine = parser.add_argument_group("where the ranker runs")
    engine.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="this process, or Ray's workers: the same file (default: %(default)s)",
    )
    engine.add_argument(
        "--address", metavar="HOST:PORT", help="of a Ray cluster, or auto (default: a Ray of its own on this machine)"
    )
    engine.add_argument("--score-workers", type=positive_int, metavar="N", help="workers with a ranker each")
    engine.add_argument("--describe-workers", type=positive_int, metavar="N", help="workers that read pages")
    engine.add_argument(
        "--gpus-per-worker",
        type=non_negative_float,
        metavar="X",
        help="GPUs of each scoring worker, or a share of one (default: 1 where there are any)",
    )


def ranker_opener(args: argparse.Namespace) -> Callable[[str], Ranker]:
    """Opens a ranker by its name, as the options say."""
    from seeact_offline.ranking import open_ranker

    return partial(open_ranker, dtype=args.dtype, backend=args.backend)


def ranker_name(args: argparse.Namespace) -> str:
    """What made the ranks, as results name it."""
    return f"scores/{args.scores.name}" if args.scores is not None else str(args.ranker)


def ranker_named(args: argparse.Namespace, grounding: Grounding) -> str | None:
    """As `ranker_name`; None where nothing is ranked."""
    return ranker_name(args) if grounding.needs_ranking else None


def open_scores_for(
    args: argparse.Namespace, grounding: Grounding, keys: Sequence[StepKey] | None = None
) -> Scores | None:
    """As `open_scores`; None, and a remark where scores were named, for a grounding that ranks nothing."""
    if grounding.needs_ranking:
        return open_scores(args, keys)
    if args.scores is not None:
        note(f"--scores: {args.scores} is not read: this grounding ranks nothing")
    return None


def open_scores(args: argparse.Namespace, keys: Sequence[StepKey] | None = None) -> Scores:
    """The score file, checked against the steps asked for where these are given, or else the ranker's own scores."""
    from seeact_offline.ranking import check_dataset, check_match, read_scores

    if args.scores is None:
        return _live_scores(args)
    if getattr(args, "engine", "local") == "ray":
        raise InputError(f"--engine: expected no --scores beside ray, which is for ranking; got {args.scores}")
    scores = read_scores(args.scores)
    matched = check_match(scores, keys, str(args.scores)) if keys is not None else 0
    check_dataset(scores, args.dataset, str(args.scores))
    if keys is not None and matched < len(keys):
        note(f"the score file has {matched} of {len(keys)} steps; the others cannot be asked and count as failures")
    return scores


def _live_scores(args: argparse.Namespace) -> Scores:
    """By the ranker, and kept for the next run."""
    if getattr(args, "engine", "local") == "ray":
        return _ray_scores(args)
    from seeact_offline.dataset import canonical_split, fingerprint
    from seeact_offline.ranking import CachedScores, LiveScores

    split = canonical_split(args.split)
    scores = CachedScores(LiveScores(ranker_opener(args)(args.ranker)), fingerprint(args.dataset, split), split)
    if scores.problem:
        note(scores.problem)
    return scores


def _ray_scores(args: argparse.Namespace) -> Scores:
    """All steps at once, by Ray's workers, before any is asked; kept like those of a step at a time."""
    from seeact_offline.cli.rank import kept_scores
    from seeact_offline.ranking import cache_folder, read_scores

    return read_scores(kept_scores(args, cache_folder() / "scores"))

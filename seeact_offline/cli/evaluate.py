"""`eval`: a split through ranking, grounding and scoring, into a run directory."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.cli.watching import Told
from seeact_offline.grounding.strategies import notes, own_options
from seeact_offline.models import IMAGE_DETAILS, Price, usage
from seeact_offline.records import JPEG_95
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluation import evaluate
from seeact_offline.runs.run import Run
from seeact_offline.scoring.protocols import PROTOCOLS
from seeact_offline.scoring.report import short


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    options.add_tasks_argument(parser)
    options.add_question_arguments(parser)
    options.add_engine_arguments(parser)
    add_model_arguments(parser)
    runs = add_run_arguments(parser)
    runs.add_argument(
        "--exclude-flagged",
        type=Path,
        metavar="FILE",
        help="findings of lint-data: report the figures without these rows too",
    )
    runs.add_argument(
        "--shuffle-groups",
        type=options.count,
        default=0,
        metavar="N",
        help="choice, annotation: N more runs with groups and choices in a random order, and how far the figures vary",
    )
    runs.add_argument(
        "--out", type=Path, metavar="DIR", help="run directory; a killed run goes on from it (default: runs/...)"
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model", default="builtin/lexical", metavar="PROVIDER/NAME",
        help=f"{usage()} (default: %(default)s)",
    )  # fmt: skip
    model.add_argument(
        "--base-url", metavar="URL", help="an OpenAI-compatible server (default: $OPENAI_BASE_URL, else OpenAI)"
    )
    model.add_argument(
        "--temperature", type=options.non_negative_float, default=0.0, metavar="T", help="(default: %(default)s)"
    )
    model.add_argument(
        "--max-tokens", type=options.positive_int, default=4096, metavar="N", help="of a reply (default: %(default)s)"
    )
    add_picture_arguments(model)
    model.add_argument(
        "--timeout", type=options.positive_float, default=120.0, metavar="S", help="of a call (default: %(default)s)"
    )
    model.add_argument(
        "--max-retries", type=options.count, default=5, metavar="N", help="of a failed call (default: %(default)s)"
    )
    model.add_argument("--price", type=_price, metavar="IN,OUT", help="USD per million prompt and completion tokens")


def add_picture_arguments(model: argparse._ActionsContainer) -> None:
    """How pictures are sent."""
    model.add_argument(
        "--image-format", default=str(JPEG_95), metavar="FORMAT",
        help="of pictures sent: png, jpeg:Q or webp:Q with a quality Q from 1 to 100 (default: %(default)s)",
    )  # fmt: skip
    model.add_argument(
        "--image-detail", choices=IMAGE_DETAILS, default="high",
        help="how closely the server is to look at pictures (default: %(default)s)",
    )  # fmt: skip


def add_run_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """What every verb that asks a model has; returns the group for what is its own."""
    runs = parser.add_argument_group("run")
    runs.add_argument(
        "--protocol",
        default="seeact",
        metavar="NAME",
        help=f"scoring rules: {' or '.join(PROTOCOLS)} (default: %(default)s)",
    )
    runs.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the bootstrap and the model (default: %(default)s)"
    )
    runs.add_argument(
        "--concurrency", type=options.positive_int, default=4, metavar="N", help="steps at once (default: %(default)s)"
    )
    runs.add_argument(
        "--max-cost",
        type=options.positive_float,
        metavar="USD",
        help="begin no further step beyond this; needs --price",
    )
    return runs


def run(args: argparse.Namespace) -> int:
    run = evaluate(config_of(args), watch=Told())
    say(short(run.results, notes()))
    say(f"\nReport: {run.path / 'report.md'}")
    _note_what_is_left(run, args.max_cost)
    return 1 if run.n_failed or run.failed_repeats or not run.results["complete"] else 0


def config_of(args: argparse.Namespace, **changes: Any) -> EvalConfig:
    """The options that are fields of a run's configuration; a verb that lacks some leaves them at their defaults."""
    known = [*(field.name for field in fields(EvalConfig)), *own_options()]
    given = {name: getattr(args, name) for name in known if hasattr(args, name)}
    return EvalConfig().changed(**given | changes)


def _note_what_is_left(run: Run, max_cost: float | None) -> None:
    failed, n_steps = run.n_failed, run.results["n_steps"]
    if not run.results["complete"]:
        what = (
            f"{run.n_left} of {n_steps + run.n_left} steps were not begun"
            if run.n_left
            else "the other orders are not all done"
        )
        note(f"stopped at --max-cost {max_cost}: {what}")
    if failed:
        note(
            f"{failed} of {n_steps} steps failed to run: see failures in {run.path / 'results.json'}; the same command tries them again"
        )
    if run.failed_repeats:
        note(f"{run.failed_repeats} steps failed to run in another order; the same command tries them again")


def _price(text: str) -> Price:
    try:
        prompt, completion = map(options.non_negative_float, text.split(","))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"expected two numbers of at least 0, IN,OUT, got {text}") from None
    return Price(prompt, completion)

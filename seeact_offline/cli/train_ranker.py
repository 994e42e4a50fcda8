"""`train-ranker`: train a cross-encoder by the published recipe, from a published model or a small one from scratch."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from seeact_offline.cli import options
from seeact_offline.cli.output import say
from seeact_offline.cli.progress import TerminalWatch, duration
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted

if TYPE_CHECKING:
    from seeact_offline.training.ranker_tuning import RankerTraining

CHANGEABLE = (
    "epochs negatives distinct_negatives batch accumulate learning_rate max_tokens pair_order bf16 seed threads".split()
)
"""Options named like the field of the settings that they change."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser, with_defaults=True)
    parser.set_defaults(split="train")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the trained checkpoint")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--base", metavar="DIR|HUB_ID", help="model to start from (default: microsoft/deberta-v3-base)")
    start.add_argument("--small", action="store_true", help="a small DeBERTa and its tokenizer, both from scratch")
    parser.add_argument("--resume", action="store_true", help="resume from the last finished epoch in --out")
    parser.add_argument("--processes", type=options.positive_int, default=2, metavar="N", help="that prepare the texts")
    _add_recipe(parser)
    parser.add_argument("--config", type=Path, metavar="FILE.yaml", help="read options from a file")


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    recipe = parser.add_argument_group("recipe", "left out: as published, or those of --small")
    recipe.add_argument("--epochs", type=options.positive_int, metavar="N", help="5 as published")
    recipe.add_argument("--negatives", type=options.positive_int, metavar="N", help="a step and epoch; 5 as published")
    recipe.add_argument(
        "--distinct-negatives", action="store_true", default=None,
        help="draw no negative twice in an epoch, and none that reads like a positive; as published both happen",
    )  # fmt: skip
    recipe.add_argument(
        "--batch", type=options.positive_int, metavar="N", help="pairs, over all devices; 32 as published"
    )
    recipe.add_argument(
        "--accumulate", type=options.positive_int, metavar="N", help="parts of a device's share of a batch; 1"
    )
    recipe.add_argument("--learning-rate", type=options.positive_float, metavar="X", help="3e-5 as published")
    recipe.add_argument("--max-tokens", type=options.positive_int, metavar="N", help="of a pair; 512 as published")
    recipe.add_argument(
        "--pair-order", choices=("query-text", "text-query"), help="text-query as published; written into the config"
    )
    recipe.add_argument(
        "--bf16", action=argparse.BooleanOptionalAction, default=None, help="compute in bfloat16 (default: on a GPU)"
    )
    recipe.add_argument("--seed", type=options.seed, metavar="N", help="0 unless given")
    recipe.add_argument("--threads", type=options.positive_int, metavar="N", help="of torch")


def run(args: argparse.Namespace) -> int:
    from seeact_offline.training.ranker_tuning import train_ranker
    from seeact_offline.training.trainer import is_main_process

    # only the first of several processes reports
    result = train_ranker(training_of(args), TerminalWatch() if is_main_process() else Watch())
    if is_main_process():
        say(f"{result.folder}: trained on {counted(result.groups, 'step')} in {duration(result.seconds)}")
    return 0


def training_of(args: argparse.Namespace) -> RankerTraining:
    from seeact_offline.ranking.pair_groups import SMALL, SmallModel, TrainingSettings
    from seeact_offline.training.ranker_tuning import BASE, RankerTraining

    asked = {name: getattr(args, name) for name in CHANGEABLE if getattr(args, name) is not None}
    return RankerTraining(
        args.out,
        SmallModel() if args.small else args.base or BASE,
        args.dataset,
        args.split,
        args.limit,
        dataclasses.replace(SMALL if args.small else TrainingSettings(), **asked),
        args.resume,
        args.processes,
    )

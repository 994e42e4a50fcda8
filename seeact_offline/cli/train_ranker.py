"""`train-ranker`: train a cross-encoder by the published recipe, from a published model or a small one from scratch."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from seeact_offline.cli import options
from seeact_offline.cli.finetune import add_declared
from seeact_offline.cli.output import say
from seeact_offline.cli.progress import TerminalWatch, duration
from seeact_offline.ranking.trainable import SmallModel
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted
from seeact_offline.training.ranker_tuning import OPTIONS, RECIPE, SMALL, RankerTraining, TrainingSettings, train_ranker
from seeact_offline.training.trainer import is_main_process


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser, with_defaults=True)
    parser.set_defaults(split="train")
    start = parser.add_mutually_exclusive_group()
    options.add_fields(start, RankerTraining, "base")
    start.add_argument("--small", action="store_true", help="a small DeBERTa and its tokenizer, both from scratch")
    left_out = "left out: as published, or those of --small"
    groups = {OPTIONS: parser, RECIPE: parser.add_argument_group(RECIPE, left_out)}
    add_declared(parser, RankerTraining, groups, but=("base",))
    add_declared(parser, TrainingSettings, groups)
    parser.add_argument("--config", type=Path, metavar="FILE.yaml", help="read options from a file")


def run(args: argparse.Namespace) -> int:
    # only the first of several processes reports
    result = train_ranker(training_of(args), TerminalWatch() if is_main_process() else Watch())
    if is_main_process():
        say(f"{result.folder}: trained on {counted(result.groups, 'step')} in {duration(result.seconds)}")
    return 0


def training_of(args: argparse.Namespace) -> RankerTraining:
    recipe = dataclasses.replace(SMALL if args.small else TrainingSettings(), **options.given(args, TrainingSettings))
    asked = RankerTraining(**options.given(args, RankerTraining), settings=recipe)
    return dataclasses.replace(asked, base=SmallModel()) if args.small else asked

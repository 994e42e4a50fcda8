"""`train-ranker`: train a cross-encoder by the published recipe, from a published model or a small one from scratch."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.records import InputError

if TYPE_CHECKING:
    from seeact_offline.ranking.training import PairGroup, TrainingSettings

BASE = "microsoft/deberta-v3-base"
NEEDED = ("torch", "transformers", "accelerate")
CHANGEABLE = "epochs negatives batch accumulate learning_rate max_tokens pair_order bf16 seed threads".split()
"""Options named like the field of the settings that they change."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    parser.set_defaults(split="train")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the trained checkpoint")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--base", default=BASE, metavar="DIR|HUB_ID", help="model to start from (default: %(default)s)")
    start.add_argument("--small", action="store_true", help="a small DeBERTa and its tokenizer, both from scratch")
    parser.add_argument("--resume", action="store_true", help="go on from the last finished epoch in --out")
    _add_recipe(parser)
    parser.add_argument("--config", type=Path, metavar="FILE.yaml", help="read options from a file")


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    recipe = parser.add_argument_group("recipe", "left out: as published, or those of --small")
    recipe.add_argument("--epochs", type=options.positive_int, metavar="N", help="5 as published")
    recipe.add_argument("--negatives", type=options.positive_int, metavar="N", help="a step and epoch; 5 as published")
    recipe.add_argument("--batch", type=options.positive_int, metavar="N", help="pairs; 32 as published")
    recipe.add_argument("--accumulate", type=options.positive_int, metavar="N", help="batches a gradient step; 1")
    recipe.add_argument("--learning-rate", type=options.positive_float, metavar="X", help="3e-5 as published")
    recipe.add_argument("--max-tokens", type=options.positive_int, metavar="N", help="of a pair; 512 as published")
    recipe.add_argument("--pair-order", choices=("query-text", "text-query"), help="written into the config")
    recipe.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=None, help="compute in bfloat16")
    recipe.add_argument("--seed", type=options.count, metavar="N", help="0 unless given")
    recipe.add_argument("--threads", type=options.positive_int, metavar="N", help="of torch")


def run(args: argparse.Namespace) -> int:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError("train-ranker", f"the packages {', '.join(NEEDED)}", f"none of {', '.join(missing)} installed")
    from seeact_offline.ranking.training import RankerError, SmallModel, train

    groups, settings = _read(args), _settings(args)
    # one of several processes speaks for all
    speaks = os.environ.get("RANK", "0") == "0"
    if speaks:
        note(f"{sum(bool(group.positives) for group in groups)} steps to train on")
    try:
        base = SmallModel() if args.small else args.base
        result = train(
            groups, args.out, settings, base=base, resume=args.resume, tell=note if speaks else lambda text: None
        )
    except RankerError as error:
        raise InputError(error.argument, error.expected, error.got) from error
    if speaks:
        say(f"{result.folder}: trained on {result.groups} steps in {result.seconds / 60:.1f} minutes")
    return 0


def _read(args: argparse.Namespace) -> list[PairGroup]:
    """Every readable step. Pages are let go as soon as their texts are made."""
    from seeact_offline.dataset import load_steps
    from seeact_offline.ranking.training import to_group

    steps = load_steps(args.dataset, args.split, limit=args.limit)
    groups = [to_group(step) for step in steps if step.candidates and step.cleaned_html]
    if not groups:
        raise InputError("split", "steps with candidates to train on", f"none in {args.split}")
    return groups


def _settings(args: argparse.Namespace) -> TrainingSettings:
    from seeact_offline.ranking.training import SMALL, TrainingSettings

    asked = {name: getattr(args, name) for name in CHANGEABLE if getattr(args, name) is not None}
    return dataclasses.replace(SMALL if args.small else TrainingSettings(), **asked)

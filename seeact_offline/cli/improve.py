"""`improve`: imitate, explore, take feedback, train; cycle by cycle, over recorded train tasks."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.finetune import add_declared
from seeact_offline.cli.output import say
from seeact_offline.cli.parser import Parser
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.training.cycles import OF_EACH, REPORT, ImproveConfig, improve
from seeact_offline.training.recipe import Recipe, Running
from seeact_offline.training.web_agent_tuning import BASELINE

FULL: dict[str, Any] = {"lora": None, "learning_rate": 1e-5}
"""Fields of a recipe that trains all weights."""


def add_arguments(parser: Parser) -> None:
    options.add_fields(parser, ImproveConfig, "model", required=True)
    groups: dict[str, Any] = {"options": parser}
    add_declared(parser, ImproveConfig, groups, but=("model",))
    recipe, usual = groups[OF_EACH], BASELINE.recipe
    for name, text in {
        "epochs": f"{usual.epochs} unless given",
        "batch": f"actions a step of the optimizer; {usual.batch}",
        "learning_rate": f"{usual.learning_rate:g}; with --full {FULL['learning_rate']:g}",
        "warmup": f"share of the steps; {usual.warmup:g}",
    }.items():
        options.add_fields(recipe, Recipe, name, help=text)
    parser.shown |= {"full"}
    weights = recipe.add_mutually_exclusive_group()
    options.add_fields(weights, Recipe, "lora", help=f"matrices of this rank; {usual.lora}")
    weights.add_argument("--full", action="store_true", help="train all weights")
    options.add_fields(recipe, Recipe, "seed")
    add_declared(parser, Running, groups)
    parser.add_argument("--config", type=Path, metavar="FILE.yaml", help="read options from a file")


def run(args: argparse.Namespace) -> int:
    improvement = improve(config_of(args), watch=TerminalWatch())
    say(improvement.report())
    say(f"Report: {improvement.path / REPORT}")
    return 1 if improvement.n_failed else 0


def config_of(args: argparse.Namespace) -> ImproveConfig:
    """Reads a configuration from the options. Raises InputError."""
    config = ImproveConfig(**options.given(args, ImproveConfig), running=Running(**options.given(args, Running)))
    full = FULL if args.full else {}
    recipe = dataclasses.replace(config.recipe, **{**full, **options.given(args, Recipe)})
    return dataclasses.replace(config, recipe=recipe)

"""`improve`: imitate, explore, take feedback, train; cycle by cycle, over recorded train tasks."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.finetune import add_running, given, test_splits
from seeact_offline.cli.output import say
from seeact_offline.cli.parser import basic
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.dataset import TEST_SPLITS
from seeact_offline.training.cycles import REPORT, improve
from seeact_offline.training.improve_settings import ImproveConfig
from seeact_offline.training.recipe import Recipe, Running
from seeact_offline.training.web_agent_tuning import BASELINE

FULL: dict[str, Any] = {"lora": None, "learning_rate": 1e-5}
"""Fields of a recipe that trains all weights."""
OF_IMPROVE = """model out dataset limit test_data imitate thoughts cycles attempts temperature max_turns guided judge judge_base_url price max_cost together
processes evaluate eval_limit command""".split()
"""Options named like the field of `ImproveConfig` that they set."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    basic(parser.add_argument(
        "--model", required=True, metavar="hf/REPO_OR_DIR", help="an image-text-to-text model, whose weights are trained"
    ))  # fmt: skip
    basic(parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of all cycles; the same command resumes from it"
    ))  # fmt: skip
    data = parser.add_argument_group("data")
    basic(data.add_argument(
        "--dataset", default="sample", metavar="DIR|HUB_ID", help="whose train split is learnt from (default: %(default)s)"
    ))  # fmt: skip
    basic(data.add_argument("--limit", type=options.positive_int, metavar="N", help="only the first N train tasks"))
    data.add_argument("--test-data", metavar="DIR|HUB_ID", help="whose test splits count (default: --dataset)")
    basic(data.add_argument(
        "--imitate", type=Path, metavar="RUN", help="imitate this run over the train split (default: the recorded actions)"
    ))  # fmt: skip
    data.add_argument(
        "--thoughts", type=Path, metavar="RUN", help="thoughts of recorded actions (default: a neutral line for each)"
    )
    _add_cycles(parser)
    _add_training(parser)
    end = parser.add_argument_group("evaluation after each cycle")
    basic(end.add_argument(
        "--evaluate", type=test_splits, default=TEST_SPLITS, metavar="SPLIT[,SPLIT]",
        help="none for none (default: the three test splits)",
    ))  # fmt: skip
    end.add_argument("--eval-limit", type=options.positive_int, metavar="N", help="only the first N tasks of each")
    parser.add_argument("--config", type=Path, metavar="FILE.yaml", help="read options from a file")


def _add_cycles(parser: argparse.ArgumentParser) -> None:
    usual = {one.name: one.default for one in dataclasses.fields(ImproveConfig)}
    cycles = parser.add_argument_group("attempts and feedback")
    for name, metavar, text in (
        ("cycles", "N", "explore and train so many times"),
        ("attempts", "K", "most attempts at a task in a cycle"),
    ):
        basic(cycles.add_argument(
            f"--{name}", type=options.positive_int, default=usual[name], metavar=metavar, help=f"{text} (default: %(default)s)"
        ))  # fmt: skip
    cycles.add_argument(
        "--temperature", type=options.non_negative_float, default=usual["temperature"], metavar="X",
        help="of attempts; test splits are asked at 0 (default: %(default)s)",
    )  # fmt: skip
    cycles.add_argument(
        "--max-turns", type=options.positive_int, default=usual["max_turns"], metavar="N",
        help="most questions a step (default: %(default)s)",
    )  # fmt: skip
    basic(cycles.add_argument(
        "--guided", action="store_true", help="K attempts more for websites of which under 40 %% of the tasks are solved by then"
    ))  # fmt: skip
    basic(cycles.add_argument(
        "--judge", metavar="PROVIDER/NAME", help="a model that accepts attempts (default: the scorer, where all steps are right)"
    ))  # fmt: skip
    cycles.add_argument("--judge-base-url", metavar="URL", help="its server")
    cycles.add_argument(
        "--price", metavar="IN,OUT|FILE",
        help="the judge's USD per million prompt and completion tokens, or a file of prices (default: the bundled list of 2026-11-23)",
    )  # fmt: skip
    basic(cycles.add_argument(
        "--max-cost", type=options.positive_float, metavar="USD", help="most that the judge's calls may cost in all cycles"
    ))  # fmt: skip
    cycles.add_argument(
        "--together", type=options.positive_int, default=usual["together"], metavar="N",
        help="questions asked at once (default: %(default)s)",
    )  # fmt: skip


def _add_training(parser: argparse.ArgumentParser) -> None:
    recipe = parser.add_argument_group("training of each cycle")
    usual = BASELINE.recipe
    for name, text in (
        ("epochs", f"{usual.epochs} unless given"),
        ("batch", f"actions a step of the optimizer; {usual.batch}"),
        ("learning_rate", f"{usual.learning_rate:g}; with --full {FULL['learning_rate']:g}"),
        ("warmup", f"share of the steps; {usual.warmup:g}"),
    ):
        options.add_fields(recipe, Recipe, name, help=text)
    weights = recipe.add_mutually_exclusive_group()
    options.add_fields(weights, Recipe, "lora", help=f"matrices of this rank; {usual.lora}")
    basic(weights.add_argument("--full", action="store_true", help="train all weights"))
    options.add_fields(recipe, Recipe, "seed")
    recipe.add_argument("--processes", type=options.positive_int, default=2, metavar="N", help="that prepare the data")
    add_running(parser)


def run(args: argparse.Namespace) -> int:
    found = improve(config_of(args), watch=TerminalWatch())
    say(found.report())
    say(f"Report: {found.path / REPORT}")
    return 1 if found.n_failed else 0


def config_of(args: argparse.Namespace) -> ImproveConfig:
    """Raises InputError."""
    config = ImproveConfig(
        **given(args, OF_IMPROVE), running=dataclasses.replace(Running(), **options.given(args, Running))
    )
    full = FULL if args.full else {}
    recipe = dataclasses.replace(config.recipe, **{**full, **options.given(args, Recipe)})
    return dataclasses.replace(config, recipe=recipe)

"""Options that several verbs share, and what they name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from seeact_offline.cli import grounding_options
from seeact_offline.cli.parser import basic
from seeact_offline.dataset import SPLITS, TEST_SPLITS, canonical_split, open_split
from seeact_offline.grounding.strategies import UNGROUNDED, agents, find_strategy, groundings
from seeact_offline.records import MERGE_RULES, DatasetError, InputError
from seeact_offline.runs.config import ENGINES

ALL = "all"
_NAMES = f"{', '.join(groundings())}, or FILE.py:NAME"
N = TypeVar("N", int, float)


def positive_int(text: str) -> int:
    return _number(text, int, 1, "a whole number of at least 1")


def count(text: str) -> int:
    return _number(text, int, 0, "a whole number of at least 0")


def positive_float(text: str) -> float:
    return _number(text, float, sys.float_info.min, "a number above 0")


def non_negative_float(text: str) -> float:
    return _number(text, float, 0.0, "a number of at least 0")


def share(text: str) -> float:
    return _number(text, float, 0.0, "a share from 0 to 1, such as 0.3", most=1.0)


def _number(text: str, kind: Callable[[str], N], least: float, expected: str, most: float = sys.float_info.max) -> N:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text}")
    return value


class Several(argparse.Action):
    """An option that may be repeated; its first value replaces the default."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        seen = getattr(namespace, "_given_several", {})
        seen.setdefault(self.dest, []).append(values)
        namespace._given_several = seen
        setattr(namespace, self.dest, list(seen[self.dest]))


def add_data_arguments(parser: argparse.ArgumentParser, asks: bool = False) -> None:
    """`asks`: the verb asks a model, about a sample where one is wanted."""
    data = parser.add_argument_group("data")
    basic(
        data.add_argument(
            "--dataset",
            default="sample",
            metavar="DIR|FILE|HUB_ID",
            help="a folder of parquet or JSONL files, one such file, or a hub id (default: %(default)s)",
        )
    )
    basic(
        data.add_argument(
            "--split",
            default="cross_task",
            help="train, cross_task, cross_website, cross_domain, or all: the three test splits (default: %(default)s)",
        )
    )
    basic(data.add_argument("--limit", type=positive_int, metavar="N_TASKS", help="use only the first N tasks"))
    if asks:
        add_sample_argument(data)


def add_sample_argument(parser: argparse._ActionsContainer) -> None:
    basic(parser.add_argument(
        "--sample", type=positive_int, metavar="N_TASKS",
        help="use only N random tasks, equally many by website",
    ))  # fmt: skip


def each_split(parser: argparse.ArgumentParser) -> None:
    """Makes a verb without --split use every split that exists, train included."""
    parser.set_defaults(split=None)
    for action in parser._actions:
        if action.dest == "split":
            action.help = (
                "train, cross_task, cross_website, cross_domain, or all: the three test splits"
                " (default: every split that exists)"
            )


def splits_of(dataset: str, split: str | None) -> tuple[str, ...]:
    """Returns the splits that `split` names; None means all that exist. Raises DatasetError if there are none."""
    if split is not None:
        name = canonical_split(split)
        return TEST_SPLITS if name == ALL and not Path(dataset).is_file() else (name,)
    if Path(dataset).is_file():
        try:
            return (canonical_split(Path(dataset).stem.split("-")[0]),)
        except DatasetError:
            return (ALL,)
    found, missing = [], None
    for name in SPLITS:
        try:
            open_split(dataset, name)
            found.append(name)
        except DatasetError as error:
            if error.argument != "split":
                raise
            missing = error
    if not found and missing is not None:
        raise missing
    return tuple(found)


def add_tasks_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tasks", type=Path, metavar="FILE", help="use only the tasks in this file, one annotation_id a line"
    )


def add_question_arguments(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """Adds the options that determine a model's questions. `several`: allow more than one grounding."""
    asked = parser.add_argument_group("ranking, grounding and prompts")
    add_group_arguments(asked)
    if several:
        basic(asked.add_argument(
            "--grounding", type=_groundings, default=("choice",), metavar="NAME[,NAME]",
            help=f"method that turns the plan into an element: {_NAMES} (default: choice); several names make a grid",
        ))  # fmt: skip
    else:
        basic(asked.add_argument(
            "--grounding", type=_grounding, default="choice", metavar="NAME",
            help=f"method that turns the plan into an element: {_NAMES} (default: %(default)s)",
        ))  # fmt: skip
    basic(asked.add_argument(
        "--agent", default="seeact", metavar="NAME",
        help=f"way of looking and answering: {', '.join(agents())}, or FILE.py:NAME; others than seeact bring their own grounding"
        " (default: %(default)s)",
    ))  # fmt: skip
    grounding_options.add_arguments(parser.add_argument_group("questions"))


def _groundings(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_grounding(name.strip()) for name in text.split(",")))


def _grounding(text: str) -> str:
    if text == UNGROUNDED:
        raise argparse.ArgumentTypeError(f"expected one of {_NAMES}, got {text}; {UNGROUNDED} is an option of its own")
    try:
        find_strategy(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(f"expected {error.expected}, got {error.got}") from None
    return text


def add_group_arguments(asked: argparse._ActionsContainer) -> None:
    """Adds the options that determine the candidates of a question and its wording."""
    add_ranker_argument(asked)
    asked.add_argument(
        "--scores", type=Path, metavar="FILE", help="score file to use instead of --ranker: .parquet or .pkl"
    )
    basic(
        asked.add_argument(
            "--top-k",
            type=positive_int,
            default=50,
            metavar="K",
            help="number of candidates offered (default: %(default)s)",
        )
    )
    asked.add_argument(
        "--group-size",
        type=positive_int,
        default=17,
        metavar="N",
        help="number of candidates a question (default: %(default)s, with 16 in the first, as in the released code)",
    )
    asked.add_argument(
        "--merge",
        choices=MERGE_RULES,
        default="final-round",
        help="rule that merges the groups' answers (default: %(default)s)",
    )
    asked.add_argument("--prompts", default="seeact", metavar="NAME|DIR", help="prompt pack (default: %(default)s)")
    basic(
        asked.add_argument(
            "--config",
            type=Path,
            metavar="FILE.yaml",
            help="read options from this file; typed ones override it",
        )
    )


def add_ranker_argument(parser: argparse._ActionsContainer) -> None:
    from seeact_offline.ranking import BACKENDS, DTYPES

    basic(
        parser.add_argument(
            "--ranker",
            metavar="NAME|DIR|HUB_ID|FILE[+...]",
            help="bm25, bundled, a checkpoint, a score file, or several fused by rank"
            " (default: bundled+bm25 for the sample, else the published DeBERTa)",
        )
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="auto",
        help="number format of a checkpoint: auto is float32 on a CPU and bfloat16 on a GPU; mixed is bfloat16 with float32 "
        "near the cut, which nearly always gives the best 50 of float32 (default: %(default)s)",
    )
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="auto",
        help="implementation of a checkpoint's forward pass (default: %(default)s)",
    )


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the engine that ranks and asks."""
    engine = parser.add_argument_group("execution")
    engine.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="run in this process or on Ray workers, with the same output files (default: %(default)s)",
    )
    engine.add_argument(
        "--address", metavar="HOST:PORT", help="address of a Ray cluster, or auto (default: a new Ray on this machine)"
    )
    engine.add_argument(
        "--score-workers",
        type=positive_int,
        metavar="N",
        help="number of workers that hold a model: first the ranker, then the evaluated model",
    )
    engine.add_argument(
        "--describe-workers", type=positive_int, metavar="N", help="number of workers that read pages for the ranker"
    )
    engine.add_argument(
        "--gpus-per-worker",
        type=non_negative_float,
        metavar="X",
        help="GPUs, or share of one, for each worker with a model (default: 1 for a checkpoint or hf/, if there are GPUs)",
    )

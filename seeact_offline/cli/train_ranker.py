"""`train-ranker`: train a cross-encoder by the published recipe, from a published model or a small one from scratch."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import time
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.cli.progress import StepProgress, duration
from seeact_offline.dataset import Split, canonical_split, open_split
from seeact_offline.files.extras import hide_broken_torchvision, install_command
from seeact_offline.records import DatasetError, InputError
from seeact_offline.runs.folder import check_no_run
from seeact_offline.runs.selection import extent
from seeact_offline.scoring.report import counted

if TYPE_CHECKING:
    from seeact_offline.ranking.pair_groups import PairGroup, TrainingSettings, TrialGroup

BASE = "microsoft/deberta-v3-base"
TRIED, TRIED_STEPS = "cross_task", 30
"""The split on which the ranker is tried after each epoch, and so many of its steps."""
NEEDED = ("torch", "transformers", "accelerate")
CHANGEABLE = (
    "epochs negatives distinct_negatives batch accumulate learning_rate max_tokens pair_order bf16 seed threads".split()
)
"""Options named like the field of the settings that they change."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser, with_defaults=True)
    parser.set_defaults(split="train")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the trained checkpoint")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--base", default=BASE, metavar="DIR|HUB_ID", help="model to start from (default: %(default)s)")
    start.add_argument("--small", action="store_true", help="a small DeBERTa and its tokenizer, both from scratch")
    parser.add_argument("--resume", action="store_true", help="resume from the last finished epoch in --out")
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
    recipe.add_argument("--seed", type=options.count, metavar="N", help="0 unless given")
    recipe.add_argument("--threads", type=options.positive_int, metavar="N", help="of torch")


def run(args: argparse.Namespace) -> int:
    check_no_run(args.out)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        hint = install_command("train")
        raise InputError("train-ranker", sentence=f"training needs the packages {', '.join(missing)}: run {hint}")
    hide_broken_torchvision()
    from seeact_offline.ranking.pair_groups import RankerError, SmallModel, train

    # only the first of several processes reports
    speaks = os.environ.get("RANK", "0") == "0"
    began = time.monotonic()
    groups, settings = _read(args, speaks), _settings(args)
    trial = _read_trial(args) if speaks else []
    reading = time.monotonic() - began
    if speaks:
        note(f"{counted(sum(bool(group.positives) for group in groups), 'step')} to train on")
    try:
        base = SmallModel() if args.small else _base(args.base)
        with _Training(speaks) as progress:
            result = train(
                groups, args.out, settings, base=base, resume=args.resume,
                tell=progress.tell, advance=progress.advance, trial=trial,
            )  # fmt: skip
    except RankerError as error:
        raise InputError(error.argument, error.expected, error.got) from error
    if speaks:
        took = f"{duration(result.seconds)}, after {duration(reading)} of reading"
        say(f"{result.folder}: trained on {counted(result.groups, 'step')} in {took}")
    return 0


class _Training:
    """Reports the progress of the training; silent in all processes but the first."""

    def __init__(self, speaks: bool) -> None:
        self._speaks = speaks
        self._open = ExitStack()
        self._progress: StepProgress | None = None
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def tell(self, text: str) -> None:
        if self._speaks:
            note(text)

    def advance(self, done: int, total: int) -> None:
        """The first call gives the steps that an earlier training had done."""
        is_first = self._progress is None
        if self._progress is None and self._speaks:
            note(f"training: {counted(total - done, 'step')} of the optimizer")
            self._progress = self._open.enter_context(StepProgress(total, "training", "optimizer steps"))
        for _ in range(done - self._done if self._progress is not None else 0):
            assert self._progress is not None
            self._progress.advance("", resumed=is_first)
        self._done = done


def _base(name: str) -> str | Path:
    """The folder of a base on the hub; any other name as it is. Raises InputError."""
    from seeact_offline.files import hub
    from seeact_offline.ranking.rankers import checkpoint_folder, is_on_hub

    with hub.errors_as(InputError, "base"):
        return checkpoint_folder(name) if is_on_hub(name) else name


def _read(args: argparse.Namespace, speaks: bool) -> list[PairGroup]:
    """The texts of every readable step; of several processes, each reads its part. Pages are released as soon as their texts are made."""
    from seeact_offline.ranking.pair_groups import to_group

    split = open_split(args.dataset, args.split, limit=args.limit)
    place, n = (int(os.environ.get(name, usual)) for name, usual in (("RANK", "0"), ("WORLD_SIZE", "1")))
    own = split
    if n > 1:
        own = split.only(split.tasks[place * len(split.tasks) // n : (place + 1) * len(split.tasks) // n])
    if speaks:
        note(f"reading {extent(split)}")
    groups = []
    with StepProgress(len(own.keys), "reading") if speaks else nullcontext() as progress:
        for step in own.steps():
            if step.candidates and step.cleaned_html:
                groups.append(to_group(step))
            if progress is not None:
                progress.advance("")
    if n > 1:
        groups = _from_all(groups)
    if not groups:
        raise InputError(
            "split", sentence=f"{args.split} has no steps with candidates to train on; name another `split`"
        )
    return groups


def _read_trial(args: argparse.Namespace) -> list[TrialGroup]:
    """Steps of a test split, spread evenly over it; none where the data has no such split or it is the one trained on."""
    from seeact_offline.ranking.pair_groups import to_trial

    split: Split | None = None
    if canonical_split(args.split) == "train":
        with suppress(DatasetError):
            split = open_split(args.dataset, TRIED, limit=args.limit)
    if split is None:
        note(f"the ranker is not tried while it trains: that takes the splits train and {TRIED}")
        return []
    every = -(-len(split.keys) // TRIED_STEPS)
    kept = frozenset(split.keys[::every])
    steps = (step for step in split.only([key.annotation_id for key in kept]).steps() if step.key in kept)
    trial = [to_trial(step) for step in steps if step.candidates and step.cleaned_html]
    note(f"tried after each epoch on {counted(len(trial), 'step')} of {TRIED}, alone and fused with bm25")
    return trial


def _from_all(groups: list[PairGroup]) -> list[PairGroup]:
    """The groups of all processes, in the data's order. Opens their process group."""
    import torch
    from accelerate import PartialState
    from accelerate.utils import gather_object

    PartialState(cpu=not torch.cuda.is_available())
    gathered: list[PairGroup] = gather_object(groups)
    return gathered


def _settings(args: argparse.Namespace) -> TrainingSettings:
    from seeact_offline.ranking.pair_groups import SMALL, TrainingSettings

    asked = {name: getattr(args, name) for name in CHANGEABLE if getattr(args, name) is not None}
    return dataclasses.replace(SMALL if args.small else TrainingSettings(), **asked)

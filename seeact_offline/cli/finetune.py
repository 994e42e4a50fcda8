"""`finetune`: fine-tune a baseline of the paper by the published recipe, from a published model or a small one from scratch."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.cli import INTERRUPTED, options
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import basic
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.dataset import SPLITS, TEST_SPLITS
from seeact_offline.files.markdown import percent
from seeact_offline.files.options import words_of
from seeact_offline.files.table import Table
from seeact_offline.records import InputError
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.report import counted
from seeact_offline.training import BASELINES
from seeact_offline.training.recipe import MACHINE, RECIPE, RECIPES, Recipe, Running

if TYPE_CHECKING:
    from seeact_offline.training.baseline import FineTuning

OWN = ("side", "language", "max_pixels", "dialogues")
"""Options that not every baseline has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    basic(
        parser.add_argument(
            "--baseline", choices=tuple(BASELINES), default="flan-t5", help="what is trained (default: %(default)s)"
        )
    )
    options.add_data_arguments(parser, with_defaults=True)
    parser.set_defaults(split="train")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the trained model")
    start = parser.add_mutually_exclusive_group()
    basic(start.add_argument(
        "--base", metavar="DIR|HUB_ID",
        help="model to start from (default: google/flan-t5-base, Salesforce/blip2-flan-t5-xl; for vlm and web-agent there is none)",
    ))  # fmt: skip
    basic(start.add_argument("--small", action="store_true", help="a small model and its tokenizer, both from scratch"))
    basic(parser.add_argument("--resume", action="store_true", help="resume from the last checkpoint in --out"))
    basic(
        parser.add_argument(
            "--scores", type=Path, metavar="FILE", help="of the train split: for --hard-negatives, and vlm"
        )
    )
    basic(parser.add_argument(
        "--recipe", choices=tuple(RECIPES), dest="published",
        help="all of a published one that belongs together; options given beside it win, and are named",
    ))  # fmt: skip
    parser.add_argument("--prompts", metavar="NAME|DIR", help="prompt pack (default: seeact; with --recipe none)")
    parser.add_argument("--processes", type=options.positive_int, default=2, metavar="N", help="that prepare the data")
    own = parser.add_argument_group("of blip2 alone")
    own.add_argument("--side", type=options.positive_int, metavar="PIXELS", help="of pictures (default: as the base)")
    own.add_argument("--language", metavar="DIR|HUB_ID", help="a fine-tuned T5 to start the language part from")
    pixels = parser.add_argument_group("of vlm alone")
    pixels.add_argument(
        "--max-pixels", type=options.positive_int, metavar="N", help="of a picture (default: as the base)"
    )
    own = parser.add_argument_group("of web-agent alone")
    own.add_argument(
        "--dialogues", type=_paths, metavar="FILE[,FILE]", help="what it learns from, as `improve` writes it"
    )
    _add_recipe(parser)
    add_running(parser)
    _add_evaluation(parser)
    parser.add_argument("--config", type=Path, metavar="FILE.yaml", help="read options from a file")


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    recipe = parser.add_argument_group(
        RECIPE,
        "left out: MindAct's for flan-t5, and for blip2, of which none are published; those of --small; ours for vlm and web-agent",
    )
    options.add_fields(recipe, Recipe, *words_of(Recipe))


def add_running(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a training that do not decide its weights."""
    machine, may_be_off = parser.add_argument_group(MACHINE), argparse.BooleanOptionalAction
    for name in words_of(Running):
        if name in ("bf16", "gradient_checkpointing"):
            options.add_fields(machine, Running, name, action=may_be_off)
        elif name == "report_to":
            options.add_fields(machine, Running, name, type=_names)
        else:
            options.add_fields(machine, Running, name)


def _add_evaluation(parser: argparse.ArgumentParser) -> None:
    end = parser.add_argument_group("evaluation at the end")
    basic(end.add_argument(
        "--evaluate", type=test_splits, default=TEST_SPLITS, metavar="SPLIT[,SPLIT]",
        help="asked as a whole; none for none (default: the three test splits)",
    ))  # fmt: skip
    end.add_argument("--test-data", metavar="DIR|HUB_ID", help="whose test splits count (default: --dataset)")
    end.add_argument("--eval-ranker", metavar="NAME|DIR", help="ranks their candidates, and vlm's questions")
    end.add_argument("--eval-scores", type=Path, metavar="FILE", help="a score file instead")
    end.add_argument("--eval-limit", type=options.positive_int, metavar="N", help="only the first N tasks of each")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip() and name.strip() != "none")


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(map(Path, _names(text)))


def test_splits(text: str) -> tuple[str, ...]:
    """Test splits by their usual names."""
    hub = {SPLITS[name]: name for name in TEST_SPLITS}
    found = tuple(hub.get(name, name) for name in _names(text))
    wrong = [name for name in found if name not in TEST_SPLITS]
    if wrong:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(TEST_SPLITS)}, or none, got {wrong[0]}")
    return found


def run(args: argparse.Namespace) -> int:
    from seeact_offline.training.trainer import is_main_process
    from seeact_offline.training.tuning import CARD, fine_tune

    asked = fine_tuning_of(args)
    try:
        # only the first of several processes reports
        tuned = fine_tune(asked, TerminalWatch() if is_main_process() else Watch())
    except KeyboardInterrupt:
        if is_main_process():
            note(_stopped(args.out))
        return INTERRUPTED
    if is_main_process():
        say(f"Trained on {counted(tuned.made.steps, 'step')} in {tuned.seconds / 60:.1f} minutes")
        if tuned.results:
            say(f"\n{_figures(tuned.results)}")
        say(f"\nModel: {tuned.folder}\nCard: {tuned.folder / CARD}")
    return 0


def _figures(results: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in results:
        found = [headline(one["protocol"], metric, one[metric]) for metric in METRICS]
        low, high = found[-1]["ci95"] or (None, None)
        interval = "" if low is None else f"{percent(low)} to {percent(high)}"
        rows.append((one["split"], *(percent(figure["value"]) for figure in found), interval))
    header = ("split", *(f"{title}, %" for title in METRICS.values()), "95 % interval of Step SR")
    return Table(header=header, rows=rows).markdown()


def _stopped(out: Path) -> str:
    """A sentence on what a training that was stopped has saved."""
    from seeact_offline.training.trainer import is_trained, last_checkpoint

    if is_trained(out):
        return f"stopped: the trained model is saved in {out}; its evaluation is not finished"
    saved = last_checkpoint(out)
    if saved is None:
        return "stopped before the first checkpoint: nothing of the training is saved; the same command begins anew"
    return f"stopped: {saved} is saved; the same command with --resume continues from it"


def fine_tuning_of(args: argparse.Namespace) -> FineTuning:
    """Raises InputError."""
    from seeact_offline.training.baseline import PROMPTS, FineTuning
    from seeact_offline.training.small_bases import SmallBase

    if args.published is not None and args.prompts is None:
        kind = RECIPES[args.published].pack
        made = f"the released wording as `import-prompts --from {kind}` makes it, or seeact for ours"
        raise InputError("recipe", sentence=f"`recipe` {args.published} needs `prompts`: {made}")
    asked = FineTuning(
        out=args.out,
        baseline=args.baseline,
        base=SmallBase() if args.small else args.base,
        dataset=args.dataset,
        split=args.split,
        limit=args.limit,
        scores=args.scores,
        prompts=args.prompts or PROMPTS,
        published=args.published,
        running=dataclasses.replace(Running(), **options.given(args, Running)),
        own=given(args, OWN),
        resume=args.resume,
        processes=args.processes,
        test_data=args.test_data,
        evaluate=args.evaluate,
        eval_ranker=args.eval_ranker,
        eval_scores=args.eval_scores,
        eval_limit=args.eval_limit,
        command=_command(args),
    )
    return dataclasses.replace(asked, recipe=dataclasses.replace(asked.resolved_recipe, **options.given(args, Recipe)))


def given(args: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """The options of these names that have a value."""
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _command(args: argparse.Namespace) -> str:
    """The command that does the same again, for the card: all that decides the weights, and no folder but those named."""
    words = ["seeact-offline", "finetune", "--baseline", args.baseline, "--dataset", str(args.dataset)]
    words += ["--small"] if args.small else []
    words += ["--recipe", args.published] if args.published else []
    for name in ("base", "limit", "scores", "prompts", "eval_ranker", *OWN, *words_of(Recipe)):
        if getattr(args, name, None) is not None:
            value = getattr(args, name)
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [text])]
    return shlex.join([*words, "--out", str(args.out)])

"""`train-ranker`: train a cross-encoder on the steps of a split, from a published model or a small one from scratch."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.ranking import FORMS, PLACED, PLAIN
from seeact_offline.records import InputError

if TYPE_CHECKING:
    from seeact_offline.ranking.training import PairGroup, TrainingResult, TrainingSettings

BASE = "microsoft/deberta-v3-base"
NEEDED = ("torch", "transformers", "accelerate")
NEEDED_SMALL = (*NEEDED, "lightgbm")
CHANGEABLE = (
    "epochs",
    "negatives",
    "hard_negatives",
    "batch",
    "accumulate",
    "learning_rate",
    "max_tokens",
    "pair_order",
    "loss",
    "bf16",
    "patience",
    "best_by",
    "seed",
    "threads",
)
# options named like the field of the settings that they change


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    parser.set_defaults(split="train")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the trained checkpoint")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--base", default=BASE, metavar="DIR|HUB_ID", help="model to start from (default: %(default)s)")
    start.add_argument("--small", action="store_true", help="a small DeBERTa and its tokenizer, both from scratch")
    parser.add_argument("--resume", action="store_true", help="go on from the last finished epoch in --out")
    parser.add_argument(
        "--hold-out", type=_share, default=0.0, metavar="SHARE", help="share of the tasks to judge by (default: none)"
    )
    parser.add_argument(
        "--hold-out-sites",
        default="",
        metavar="NAME,NAME",
        help="websites to judge by, instead of a share of the tasks",
    )
    _add_recipe(parser)
    parser.add_argument("--config", type=Path, metavar="FILE.yaml", help="read options from a file")


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    recipe = parser.add_argument_group("recipe", "left out: as published, or those of --small")
    recipe.add_argument("--epochs", type=options.positive_int, metavar="N", help="5 as published")
    recipe.add_argument("--negatives", type=options.positive_int, metavar="N", help="a step and epoch; 5 as published")
    recipe.add_argument(
        "--hard-negatives", type=options.count, metavar="N", help="so many of them by the model's scores"
    )
    recipe.add_argument("--batch", type=options.positive_int, metavar="N", help="pairs, or steps for --loss group; 32")
    recipe.add_argument("--accumulate", type=options.positive_int, metavar="N", help="batches a gradient step; 1")
    recipe.add_argument("--learning-rate", type=options.positive_float, metavar="X", help="3e-5 as published")
    recipe.add_argument("--max-tokens", type=options.positive_int, metavar="N", help="of a pair; 512 as published")
    recipe.add_argument("--pair-order", choices=("query-text", "text-query"), help="written into the config")
    recipe.add_argument(
        "--texts",
        choices=FORMS,
        help="of the candidates: plain as published, or placed, with where they lie and what comes before; written into the config",
    )
    recipe.add_argument("--loss", choices=("pair", "group"), help="of each pair as published, or of a step's pairs")
    recipe.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=None, help="compute in bfloat16")
    recipe.add_argument(
        "--patience", type=options.positive_int, metavar="N", help="epochs without gain before stopping"
    )
    recipe.add_argument("--best-by", metavar="NAME", help="recall@K or mrr: which epoch is kept (recall@10)")
    recipe.add_argument("--seed", type=options.count, metavar="N", help="0 unless given")
    recipe.add_argument("--threads", type=options.positive_int, metavar="N", help="of torch")


def run(args: argparse.Namespace) -> int:
    _check(args)
    from seeact_offline.ranking.training import SENSES, RankerError, SmallModel, check, part, train

    steps, settings = _read(args), _settings(args)
    held = held_out_tasks(steps.values(), args.hold_out, _names(args.hold_out_sites))
    learnt = [steps[key] for key in steps if steps[key].task not in held]
    judged = [steps[key].group for key in steps if steps[key].task in held]
    speaks = os.environ.get("RANK", "0") == "0"
    # one of several processes does, for all
    tell = note if speaks else _silent
    tell(f"{sum(bool(step.group.positives) for step in learnt)} steps to train on, {len(judged)} to judge by")
    try:
        check(settings, args.out, judged=bool(judged), resume=args.resume)
        result = train(
            _groups(args, learnt, settings.seed, tell),
            args.out,
            settings,
            base=SmallModel() if args.small else args.base,
            synonyms=SENSES,
            text_form=_form(args),
            held_out=judged,
            resume=args.resume,
            tell=tell,
        )
    except RankerError as error:
        raise InputError(_spoken(str(error))) from error
    if speaks:
        say(_as_text(result))
    part()
    return 0


def _silent(text: str) -> None:
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingStep:
    """What training needs of a step."""

    task: str
    website: str
    group: PairGroup


def held_out_tasks(steps: Iterable[TrainingStep], share: float, websites: Sequence[str]) -> frozenset[str]:
    """Ids of the tasks to judge by: those of the websites named, else a share, the same in every run."""
    import hashlib

    steps = list(steps)
    unknown = sorted(set(websites) - {step.website for step in steps})
    if unknown:
        raise InputError(f"--hold-out-sites: expected websites of the split, it has none called {', '.join(unknown)}")
    if websites:
        return frozenset(step.task for step in steps if step.website in websites)
    tasks = sorted({step.task for step in steps}, key=lambda task: hashlib.sha256(task.encode()).hexdigest())
    return frozenset(tasks[: round(share * len(tasks))])


def _read(args: argparse.Namespace) -> dict[str, TrainingStep]:
    """Every readable step by its key. Pages are let go as soon as their texts are made."""
    from seeact_offline.dataset import load_steps
    from seeact_offline.ranking.training import to_group

    form = _form(args)
    steps = load_steps(args.dataset, args.split, limit=args.limit)
    found = {
        str(step.key): TrainingStep(step.annotation_id, step.website, to_group(step, form))
        for step in steps
        if step.candidates and step.cleaned_html
    }
    if not found:
        raise InputError(f"--split: expected steps with candidates to train on, {args.split} has none")
    return found


def _groups(
    args: argparse.Namespace, steps: Sequence[TrainingStep], seed: int, tell: Callable[[str], None]
) -> list[PairGroup]:
    """What is learnt from; a model from scratch is taught more than the steps' answers."""
    if not args.small:
        return [step.group for step in steps]
    from seeact_offline.ranking.training import TaughtStep, with_lessons

    groups = with_lessons([TaughtStep(step.task, step.group) for step in steps], seed)
    tell(f"{len(groups)} pages with a teacher's scores, {sum(not group.positives for group in groups)} of them mixed")
    return groups


def _form(args: argparse.Namespace) -> str:
    return str(args.texts or (PLACED if args.small else PLAIN))


def _settings(args: argparse.Namespace) -> TrainingSettings:
    from seeact_offline.ranking.training import SMALL, TrainingSettings

    asked = {name: getattr(args, name) for name in CHANGEABLE if getattr(args, name) is not None}
    return dataclasses.replace(SMALL if args.small else TrainingSettings(), **asked)


def _check(args: argparse.Namespace) -> None:
    needed = NEEDED_SMALL if args.small else NEEDED
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"train-ranker: expected the packages {', '.join(needed)}, {', '.join(missing)} not installed")
    if args.hold_out and args.hold_out_sites:
        raise InputError("--hold-out: expected it or --hold-out-sites, got both")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"expected a share of at least 0 and under 1, got {text}")
    return share


def _spoken(message: str) -> str:
    """The sentence in terms of the command line, where it begins with an argument that is an option here too."""
    name, _, rest = message.partition(":")
    known = {*CHANGEABLE, "base", "out", "resume"}
    return f"--{name.replace('_', '-')}:{rest}" if name in known else message


def _as_text(result: TrainingResult) -> str:
    lines = [f"{result.folder}: trained on {result.groups} steps in {result.seconds / 60:.1f} minutes"]
    if result.metrics:
        found = ", ".join(f"{name} {value:.3f}" for name, value in result.metrics.items())
        lines.append(f"on what was held out: {found}")
    return "\n".join(lines)

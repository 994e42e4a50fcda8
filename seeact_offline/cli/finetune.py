"""`finetune`: fine-tune a baseline of the paper by the published recipe, from a published
model or a small one from scratch."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.command import INTERRUPTED
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import Parser
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.markdown import percent
from seeact_offline.files.options import defaults_of, words_of
from seeact_offline.files.table import Table
from seeact_offline.records import InputError
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.report import counted
from seeact_offline.training.baseline import TRAINING, FineTuning, OwnOptions
from seeact_offline.training.recipe import RECIPE, RECIPES, Recipe, Running, SmallBase

_SWITCH = {"action": argparse.BooleanOptionalAction}
HERE: Mapping[str, dict[str, Any]] = {
    "out": {"required": True},
    "processes": {"default": 2},
    "bf16": _SWITCH,
    "gradient_checkpointing": _SWITCH,
}
"""How options of the command differ from the fields that declare them."""


def add_arguments(parser: Parser) -> None:
    left_out = (
        "left out: MindAct's for flan-t5, and for blip2, of which none are published;"
        " those of --small; ours for vlm and web-agent"
    )
    options.add_data_arguments(parser, with_defaults=True)
    parser.set_defaults(split="train")
    start = parser.add_mutually_exclusive_group()
    options.add_fields(start, FineTuning, "base")
    parser.shown |= {"small"}
    start.add_argument("--small", action="store_true", help="a small model and its tokenizer, both from scratch")
    groups = {TRAINING: parser, RECIPE: parser.add_argument_group(RECIPE, left_out)}
    for config in (FineTuning, OwnOptions, Recipe, Running):
        add_declared(parser, config, groups, but=("base",))
    parser.add_argument("--config", type=Path, metavar="FILE.yaml", help="read options from a file")


def add_declared(
    parser: argparse.ArgumentParser, config: type, groups: dict[str, Any], but: Sequence[str] = ()
) -> None:
    """Adds the options that a configuration declares, but for some, each to the group that it names.
    `groups`: those that are there."""
    for name, words in words_of(config).items():
        if name not in but:
            if words.group not in groups:
                groups[words.group] = parser.add_argument_group(words.group)
            options.add_fields(groups[words.group], config, name, **HERE.get(name, {}))


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
    for split in results:
        figures = [headline(split["protocol"], metric, split[metric]) for metric in METRICS]
        low, high = figures[-1]["ci95"] or (None, None)
        interval = "" if low is None else f"{percent(low)} to {percent(high)}"
        rows.append((split["split"], *(percent(figure["value"]) for figure in figures), interval))
    header = ("split", *(f"{title}, %" for title in METRICS.values()), "95 % interval of Step SR")
    return Table(header=header, rows=rows).markdown()


def _stopped(out: Path) -> str:
    """A sentence on what a training that was stopped has saved."""
    from seeact_offline.models.hf_folder import has_safetensors
    from seeact_offline.training.trainer import last_checkpoint

    if has_safetensors(out):
        return f"stopped: the trained model is saved in {out}; its evaluation is not finished"
    saved = last_checkpoint(out)
    if saved is None:
        return "stopped before the first checkpoint: nothing of the training is saved; the same command begins anew"
    return f"stopped: {saved} is saved; the same command with --resume continues from it"


def fine_tuning_of(args: argparse.Namespace) -> FineTuning:
    """Reads a fine-tuning from the options. Raises InputError."""
    asked = FineTuning(**options.given(args, FineTuning) | {"command": ""})
    if asked.published is not None and not hasattr(args, "prompts"):
        kind = RECIPES[asked.published].pack
        made = f"the released wording as `import-prompts --from {kind}` makes it, or seeact for ours"
        raise InputError("recipe", sentence=f"`recipe` {asked.published} needs `prompts`: {made}")
    asked = dataclasses.replace(
        asked,
        base=SmallBase() if args.small else asked.base,
        running=Running(**options.given(args, Running)),
        own=options.given(args, OwnOptions),
        command=_command(args),
    )
    return dataclasses.replace(asked, recipe=dataclasses.replace(asked.resolved_recipe, **options.given(args, Recipe)))


def _command(args: argparse.Namespace) -> str:
    """The command that does the same again, for the card: all that decides the weights,
    and no folder but those named."""
    words = ["seeact-offline", "finetune", "--baseline", getattr(args, "baseline", defaults_of(FineTuning)["baseline"])]
    words += ["--dataset", str(args.dataset), *(["--small"] if args.small else [])]
    names = "published base limit scores prompts eval_ranker".split()
    for name in (*names, *words_of(OwnOptions), *words_of(Recipe)):
        value = getattr(args, name, None)
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            option = "recipe" if name == "published" else name.replace("_", "-")
            words += [f"--{option}", *([] if value is True else [text])]
    return shlex.join([*words, "--out", str(args.out)])

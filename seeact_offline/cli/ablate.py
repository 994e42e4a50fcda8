"""`ablate`: the same steps with every way of marking, every observation of a web agent, or every ranker named, in
one folder, and the table of it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from seeact_offline.cli import options
from seeact_offline.cli.eval import add_model_arguments, add_run_arguments, config_of
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import Parser
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.markdown import printable
from seeact_offline.pages.marks import MARK_KINDS, MARK_POSITIONS, MarkPosition
from seeact_offline.records import InputError
from seeact_offline.runs.ablate import AXES, OptionAxis, Variant, ablate, markup_variants, ranker_variants
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.markings import Turn1, markings_of
from seeact_offline.scoring.report import counted, faults_in_words

if TYPE_CHECKING:
    from seeact_offline.tables.document import TableDocument

POSITIONS: tuple[MarkPosition, ...] = ("bottom-left", "bottom-center")
TURN1: tuple[Turn1, ...] = ("paper", "plain", "marked", "both")
ROWS = {"markup": ("kinds", "positions", "turn1"), "observation": ("observations",), "ranker": ("rankers",)}
"""The options that name the rows of a table."""
T = TypeVar("T", bound=str)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--over", choices=tuple(AXES), required=True, help="settings in which the rows differ")
    add_arguments_of(parser, [*AXES])


def add_arguments_of(parser: Parser, axes: Sequence[str]) -> None:
    """Adds the options of these axes."""
    options.add_asked_data(parser)
    rows = parser.add_argument_group("rows of the table")
    if "markup" in axes:
        _add_markup(rows)
    asked = parser.add_argument_group("ranking and prompts")
    options.add_group_arguments(parser, asked)
    options.add_fields(asked, EvalConfig, "max_image_side")
    for axis in (AXES[name] for name in axes):
        if isinstance(axis, OptionAxis):
            rows.add_argument(
                f"--{axis.option}s", type=_listed(axis.choices), metavar="NAME,...",
                help=f"{axis.option}s of {axis.agent}: any of {', '.join(axis.choices)} (default: all)",
            )  # fmt: skip
            for option in axis.own_options:
                if option.name != axis.option:
                    options.add_own(asked, option, axis.agent)
    if "ranker" in axes:
        rows.add_argument(
            "--rankers", type=lambda text: tuple(name for part in text.split(",") if (name := part.strip())), metavar="NAME|FILE[+...],...",
            help="rankers, score files and fusions of them, as --ranker takes",
        )  # fmt: skip
    add_model_arguments(parser)
    runs = add_run_arguments(parser)
    runs.add_argument(
        "--dry-run", action="store_true", help="estimate calls, tokens and cost of each row; send nothing"
    )
    text = "folder of all rows; a killed run resumes from it (default: runs/...)"
    options.add_fields(runs, EvalConfig, "out", is_basic=False, help=text)


def _add_markup(rows: argparse._ArgumentGroup) -> None:
    rows.add_argument(
        "--kinds", type=_listed(MARK_KINDS), metavar="KIND,...",
        help=f"labels: any of {', '.join(MARK_KINDS)} (default: all)",
    )  # fmt: skip
    rows.add_argument(
        "--positions", type=_listed(MARK_POSITIONS), metavar="POSITION,...",
        help=f"where they go: any of {', '.join(MARK_POSITIONS)} (default: {','.join(POSITIONS)})",
    )  # fmt: skip
    rows.add_argument(
        "--turn1", choices=TURN1,
        help="picture of turn 1: plain, marked, both, or as in the paper's Table 5, which has one marked row"
        f" (default: {TURN1[0]})",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from seeact_offline.tables.ablation import ablation_table

    axis, config = AXES[args.over], config_of(args)
    variants = _variants(args, config)
    if args.dry_run:
        from seeact_offline.results.estimate import estimate_ablation
        from seeact_offline.results.estimate_report import table_of_variants

        say(table_of_variants(estimate_ablation(config, axis, variants, TerminalWatch())).markdown())
        return 0
    ablation = ablate(config, axis, variants, TerminalWatch())
    names = [variant.name for variant in variants]
    table = ablation_table(axis.table, ablation.path, names, complete=not ablation.n_left)
    say(_write(axis.table, ablation.path, table).body())
    say(f"\nTable: {ablation.path / 'table.md'}")
    if ablation.n_left:
        n_steps = table["n_steps"] + ablation.n_left
        note(
            f"stopped at --max-cost {config.max_cost}: {ablation.n_left} of"
            f" {counted(n_steps, 'step is', 'steps are')} not in the table"
        )
    for sentence in faults_in_words(ablation.faults):
        note(sentence)
    if ablation.failed:
        note(
            f"{counted(ablation.failed, 'answer')} failed to run: see failures in each row's results.json;"
            " the same command retries them"
        )
    return 1 if ablation.failed or ablation.n_left else 0


def _variants(args: argparse.Namespace, config: EvalConfig) -> list[Variant]:
    """Makes the rows that the options name. Raises InputError for rows of another axis."""
    for over, names in ROWS.items():
        for name in names:
            if over != args.over and getattr(args, name, None) is not None:
                raise InputError(name, sentence=f"`{name}` needs `over` {over}")
    if isinstance(axis := AXES[args.over], OptionAxis):
        return axis.variants(config, getattr(args, f"{axis.option}s") or ())
    if args.over == "ranker":
        if not args.rankers:
            raise InputError("rankers", sentence="`over` ranker needs `rankers`")
        return ranker_variants(config, args.rankers)
    markings = markings_of(args.kinds or MARK_KINDS, args.positions or POSITIONS, args.turn1 or TURN1[0])
    return markup_variants(config, markings)


def _write(name: str, folder: Path, table: dict[str, Any]) -> TableDocument:
    """Writes the table in every format but HTML; returns it."""
    from seeact_offline.runs.folder import RunFolder
    from seeact_offline.tables import build_table

    out = RunFolder(folder)
    out.write("table.json", json.dumps(table, indent=2) + "\n")
    document = build_table(name, [folder], folder)
    out.write("table.md", printable(document.markdown()))
    out.write("table.csv", document.text("csv"))
    out.write("table.tex", printable(document.latex()))
    return document


def _listed(choices: Sequence[T]) -> Callable[[str], tuple[T, ...]]:
    """Reads some of `choices`, separated by commas."""

    def read(text: str) -> tuple[T, ...]:
        chosen = tuple(choice for word in text.split(",") for choice in choices if choice == word.strip())
        if not chosen or len(set(chosen)) < len(text.split(",")):
            raise argparse.ArgumentTypeError(f"expected some of {','.join(choices)}, each once, got {text}")
        return chosen

    return read

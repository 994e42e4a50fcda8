"""`ablate-markup`: annotation with every way of marking over the same steps, in one folder, and Table 5 of it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from seeact_offline.cli import grounding_options, options
from seeact_offline.cli.eval import add_model_arguments, add_run_arguments, config_of
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import basic
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.markdown import printable
from seeact_offline.pages.marks import MARK_KINDS, MARK_POSITIONS
from seeact_offline.runs.ablate import ablate_markup
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.markings import markings_of
from seeact_offline.scoring.report import counted
from seeact_offline.tables import build_table
from seeact_offline.tables.document import TableDocument
from seeact_offline.tables.markup import ablation_table

TURN1 = ("paper", "plain", "marked", "both")
T = TypeVar("T", bound=str)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    options.add_tasks_argument(parser)
    rows = parser.add_argument_group("rows of the table")
    basic(rows.add_argument(
        "--kinds", type=_listed(MARK_KINDS), default=MARK_KINDS, metavar="KIND,...",
        help=f"labels: any of {', '.join(MARK_KINDS)} (default: all)",
    ))  # fmt: skip
    basic(rows.add_argument(
        "--positions", type=_listed(MARK_POSITIONS), default=("bottom-left", "bottom-center"),
        metavar="POSITION,...",
        help=f"where they go: any of {', '.join(MARK_POSITIONS)} (default: bottom-left,bottom-center)",
    ))  # fmt: skip
    basic(rows.add_argument(
        "--turn1", choices=TURN1, default=TURN1[0],
        help="picture of turn 1: plain, marked, both, or as in the paper's Table 5, which has one marked row"
        " (default: %(default)s)",
    ))  # fmt: skip
    asked = parser.add_argument_group("ranking and prompts")
    options.add_group_arguments(asked)
    grounding_options.add_picture_argument(asked)
    add_model_arguments(parser)
    basic(
        add_run_arguments(parser).add_argument(
            "--out",
            type=Path,
            metavar="DIR",
            help="folder of all rows; a killed run resumes from it (default: runs/...)",
        )
    )


def run(args: argparse.Namespace) -> int:
    markings = markings_of(args.kinds, args.positions, args.turn1)
    found = ablate_markup(config_of(args), markings, TerminalWatch())
    table = ablation_table(found.path, [one.name for one in markings], complete=not found.n_left)
    say(_write(found.path, table).body())
    say(f"\nTable: {found.path / 'table.md'}")
    if found.n_left:
        n_steps = table["n_steps"] + found.n_left
        note(
            f"stopped at --max-cost {args.max_cost}: {found.n_left} of {counted(n_steps, 'step is', 'steps are')} not in the table"
        )
    if found.failed:
        note(
            f"{counted(found.failed, 'answer')} failed to run: see failures in each row's results.json; the same command retries them"
        )
    return 1 if found.failed or found.n_left else 0


def _write(folder: Path, table: dict[str, Any]) -> TableDocument:
    """Writes the table in every format but HTML; returns it."""
    out = RunFolder(folder)
    out.write("table.json", json.dumps(table, indent=2) + "\n")
    document = build_table(5, [folder], folder)
    out.write("table.md", printable(document.markdown()))
    out.write("table.csv", document.text("csv"))
    out.write("table.tex", printable(document.latex()))
    return document


def _listed(known: Sequence[T]) -> Callable[[str], tuple[T, ...]]:
    """Reads some of `known`, separated by commas."""

    def read(text: str) -> tuple[T, ...]:
        found = tuple(one for word in text.split(",") for one in known if one == word.strip())
        if not found or len(set(found)) < len(text.split(",")):
            raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, each once, got {text}")
        return found

    return read

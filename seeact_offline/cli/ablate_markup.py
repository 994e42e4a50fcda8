"""`ablate-markup`: annotation with every way of marking over the same steps, in one folder, and Table 5 of it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from seeact_offline.cli import evaluate, grounding_options, options
from seeact_offline.cli.output import note, say
from seeact_offline.cli.watching import NOT_THE_PAPERS, Told
from seeact_offline.files.markdown import printable
from seeact_offline.pages.marks import MARK_KINDS, MARK_POSITIONS
from seeact_offline.runs.ablate import Ablation, ablate_markup
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.markup_ablation import cells_of
from seeact_offline.runs.tabling import tabulate
from seeact_offline.scoring.report import counted
from seeact_offline.tables import TABLES
from seeact_offline.tables.drawing import Drawing

TURN1 = ("paper", "plain", "marked", "both")
T = TypeVar("T", bound=str)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    options.add_tasks_argument(parser)
    rows = parser.add_argument_group("rows of the table")
    rows.add_argument(
        "--kinds", type=_listed(MARK_KINDS), default=MARK_KINDS, metavar="KIND,...",
        help=f"labels: any of {', '.join(MARK_KINDS)} (default: all)",
    )  # fmt: skip
    rows.add_argument(
        "--positions", type=_listed(MARK_POSITIONS), default=("bottom-left", "bottom-center"),
        metavar="POSITION,...",
        help=f"where they go: any of {', '.join(MARK_POSITIONS)} (default: bottom-left,bottom-center)",
    )  # fmt: skip
    rows.add_argument(
        "--turn1", choices=TURN1, default=TURN1[0],
        help="picture of turn 1: plain, marked, both, or as in the paper's Table 5, which has one marked row"
        " (default: %(default)s)",
    )  # fmt: skip
    asked = parser.add_argument_group("ranking and prompts")
    options.add_group_arguments(asked)
    grounding_options.add_picture_argument(asked)
    evaluate.add_model_arguments(parser)
    evaluate.add_run_arguments(parser).add_argument(
        "--out", type=Path, metavar="DIR", help="folder of all rows; a killed run goes on from it (default: runs/...)"
    )


def run(args: argparse.Namespace) -> int:
    cells = cells_of(args.kinds, args.positions, args.turn1)
    found = ablate_markup(evaluate.config_of(args), cells, Told())
    say(_written(found, NOT_THE_PAPERS if args.dataset == "sample" else "").body())
    say(f"\nTable: {found.path / 'table.md'}")
    if not found.table["complete"]:
        n_steps = found.table["n_steps"] + found.n_left
        note(
            f"stopped at --max-cost {args.max_cost}: {found.n_left} of {counted(n_steps, 'step is', 'steps are')} not in the table"
        )
    if found.failed:
        note(
            f"{counted(found.failed, 'answer')} failed to run: see failures in each row's results.json; the same command tries them again"
        )
    return 1 if found.failed or not found.table["complete"] else 0


def _written(found: Ablation, remark: str) -> Drawing:
    """Writes the table in every format; returns it."""
    out = RunFolder(found.path)
    out.write("table.json", json.dumps(found.table, indent=2) + "\n")
    drawing = TABLES["table5"](tabulate(5, [found.path], found.path), remark)
    out.write("table.md", printable(drawing.markdown()))
    out.write("table.csv", drawing.csv())
    out.write("table.tex", printable(drawing.latex()))
    return drawing


def _listed(known: Sequence[T]) -> Callable[[str], tuple[T, ...]]:
    """Reads some of `known`, separated by commas."""

    def read(text: str) -> tuple[T, ...]:
        found = tuple(one for word in text.split(",") for one in known if one == word.strip())
        if not found or len(set(found)) < len(text.split(",")):
            raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, each once, got {text}")
        return found

    return read

"""`runs`: lists the run folders of a folder by status, date, model and figures."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.files.digest import RUNS
from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.records import InputError
from seeact_offline.results.listing import FIGURES, ListedRun, listed_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, nargs="?", default=RUNS, metavar="DIR", help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print JSON, figures as fractions")


def run(args: argparse.Namespace) -> int:
    # not before it is needed, so that --help stays quick
    from seeact_offline.tables.table_input import run_folders

    if not args.folder.is_dir():
        raise InputError("folder", sentence=f"there is no folder {args.folder}; name the one that holds your runs")
    folders = [one for child in sorted(args.folder.glob("*/")) for one in run_folders(child) or []]
    folders = folders or run_folders(args.folder)
    found = [listed_run(one, str(one.relative_to(args.folder))) for one in dict.fromkeys(folders)]
    # those without a date come last
    found.sort(key=lambda one: (not one.date, one.date, one.name))
    say(json.dumps([asdict(one) for one in found], indent=2) if args.json else _table(found, args.folder))
    return 0


def _table(found: list[ListedRun], folder: Path) -> str:
    if not found:
        return f"{folder} holds no runs"
    shown = [name for name in FIGURES if any(name in one.figures for one in found)]
    rows = [
        (
            one.name, one.status, one.date[:16].replace("T", " "), one.model, one.asked_by, one.split, one.steps,
            *(percent(value) if (value := one.figures.get(name)) is not None else None for name in shown),
        )
        for one in found
    ]  # fmt: skip
    header = ("run", "status", "begun", "model", "grounding or agent", "split", "steps or tasks")
    problems = [f"{one.name}: {one.problem}" for one in found if one.problem]
    return Table(header=(*header, *(f"{FIGURES[name]}, %" for name in shown)), rows=rows, notes=problems).markdown()

"""`runs`: lists the run folders of a folder by status, date, model and figures."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.cli.parser import run_folder
from seeact_offline.files.digest import RUNS
from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.records import InputError
from seeact_offline.results.listing import FIGURES, ListedRun, listed_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=run_folder, nargs="?", default=RUNS, metavar="DIR", help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print JSON, figures as fractions")


def run(args: argparse.Namespace) -> int:
    # not before it is needed, so that --help stays quick
    from seeact_offline.tables.table_input import run_folders

    if not args.folder.is_dir():
        raise InputError("folder", sentence=f"there is no folder {args.folder}; name the one that holds your runs")
    folders = [run_folder for child in sorted(args.folder.glob("*/")) for run_folder in run_folders(child) or []]
    folders = folders or run_folders(args.folder)
    listed = [listed_run(run_folder, str(run_folder.relative_to(args.folder))) for run_folder in dict.fromkeys(folders)]
    # those without a date come last
    listed.sort(key=lambda listing: (not listing.date, listing.date, listing.name))
    say(json.dumps([asdict(listing) for listing in listed], indent=2) if args.json else _table(listed, args.folder))
    return 0


def _table(listed: list[ListedRun], folder: Path) -> str:
    if not listed:
        return f"{folder} holds no runs"
    shown = [name for name in FIGURES if any(name in listing.figures for listing in listed)]
    rows = [
        (
            listing.name, listing.status, listing.date[:16].replace("T", " "), listing.model, listing.asked_by,
            listing.split, listing.steps,
            *(percent(value) if (value := listing.figures.get(name)) is not None else None for name in shown),
        )
        for listing in listed
    ]  # fmt: skip
    header = ("run", "status", "begun", "model", "grounding or agent", "split", "steps or tasks")
    problems = [f"{listing.name}: {listing.problem}" for listing in listed if listing.problem]
    return Table(header=(*header, *(f"{FIGURES[name]}, %" for name in shown)), rows=rows, notes=problems).markdown()

"""`tables`: makes the paper's tables and figures of finished runs, and checks that those in a file are still what the runs give."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from seeact_offline.cli.output import note, say
from seeact_offline.cli.watching import NOT_THE_PAPERS
from seeact_offline.files.markdown import printable
from seeact_offline.files.named import read_text
from seeact_offline.files.whole import replace_text, write_whole
from seeact_offline.records import InputError
from seeact_offline.runs import tabling
from seeact_offline.tables import TABLES, checking, figures
from seeact_offline.tables.drawing import ENDINGS, Drawing, Form

FIGURES = {
    "difficulty": tabling.difficulty,
    "waterfall": tabling.waterfall,
    "recall": tabling.recall,
    "cost": tabling.cost,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="*", type=Path, metavar="RUN",
        help="run folders or folders of them; --table 5: or a folder of ablate-markup; --table 1: a file of `stats --json`",
    )  # fmt: skip
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--table", type=int, choices=tabling.NUMBERS, help="number in the paper")
    what.add_argument("--figure", choices=FIGURES, help="a picture instead; needs --out")
    what.add_argument(
        "--check", type=Path, metavar="FILE", help="make the tables in a file again and say which cells have moved"
    )
    parser.add_argument(
        "--dataset",
        metavar="DIR|FILE|HUB_ID",
        help="--table 1: a data set to count instead of a file; --check: the one that was counted",
    )
    parser.add_argument("--by", choices=("website", "domain"), help="--table 2, 3: a row for each of them")
    parser.add_argument("--stderr", action="store_true", help="a column of standard errors, clustered by task")
    parser.add_argument("--format", choices=ENDINGS, help="(default: as --out ends, else markdown; all into a folder)")
    parser.add_argument("--standalone", action="store_true", help="LaTeX and HTML as whole documents")
    parser.add_argument(
        "--out", type=Path, metavar="FILE|DIR",
        help=f"table: {', '.join(ENDINGS.values())} or a folder; figure: {', '.join(figures.ENDINGS)}",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if args.check is not None:
        return _check(args)
    if args.dataset is not None and args.table != 1:
        raise InputError("dataset", "--table 1 with it", f"another, {args.table or args.figure}")
    if args.figure and (args.by or args.stderr):
        raise InputError("by" if args.by else "stderr", "--table with it", f"--figure {args.figure}")
    if not args.runs and args.dataset is None:
        raise InputError("runs", "at least one run folder", "none")
    return _draw(args) if args.figure else _tabulate(args)


# --- tables ---


def _tabulate(args: argparse.Namespace) -> int:
    forms = _forms(args)
    folder = Path.cwd() if args.out is None else args.out if _is_folder(args) else args.out.parent
    drawing = _drawn(tabling.tabulate(args.table, args.runs, folder, args.dataset, args.by, args.stderr))
    if args.out is None:
        say(drawing.text(forms[0], args.standalone).removesuffix("\n"))
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    for form in forms:
        path = folder / f"table{args.table}{ENDINGS[form]}" if _is_folder(args) else args.out
        replace_text(path, printable(drawing.text(form, args.standalone)))
        say(f"Table: {path}")
    return 0


def _drawn(found: dict[str, Any]) -> Drawing:
    return TABLES[f"table{found['table']}"](found, NOT_THE_PAPERS if found["is_sample"] else "")


def _forms(args: argparse.Namespace) -> list[Form]:
    """Raises InputError for a file of no format of ours."""
    if args.format is not None:
        return [args.format]
    if args.out is None:
        return ["markdown"]
    if _is_folder(args):
        return list(ENDINGS)
    by_ending = {ending: form for form, ending in ENDINGS.items()}
    if args.out.suffix not in by_ending:
        raise InputError("out", f"a file that ends with {', '.join(by_ending)}, or --format beside it", str(args.out))
    return [by_ending[args.out.suffix]]


def _is_folder(args: argparse.Namespace) -> bool:
    return args.out is not None and (args.out.is_dir() or not args.out.suffix)


# --- check ---


def _check(args: argparse.Namespace) -> int:
    text = read_text("check", args.check, largest=checking.LARGEST)
    tables = checking.written(text, str(args.check))
    if args.dataset is not None and all(one.dataset is None for one in tables):
        raise InputError("dataset", "a table of the file to have counted a data set", str(args.dataset))
    found = [_checked(one, args.check.parent, args.dataset) for one in tables]
    return 1 if any(found) else 0


def _checked(one: checking.TableText, base: Path, dataset: str | None) -> bool:
    """Whether this table is another now. Opens no data set but `dataset`, whatever the file names."""
    if one.dataset is not None and dataset is None:
        wanted = f"the data set that Table {one.table} counts, which --check does not open by itself"
        raise InputError("dataset", wanted, "none")
    inputs = [base / path for path in one.inputs]
    counted = dataset if one.dataset is not None else None
    now = tabling.tabulate(one.table, inputs, base, counted, one.by, one.stderr)
    found = checking.changes(one.text, printable(_drawn(now).text(one.form)), one.form)
    _note_new_results(one, now)
    for text in found.missing:
        say(f"missing: {text}")
    for text in found.unknown:
        say(f"not of these runs: {text}")
    for cell in found.moved:
        say(f"moved: {cell.place}: was {cell.was or 'empty'}, is now {cell.now or 'empty'}")
    rest = {"missing": found.missing, "not of these runs": found.unknown}
    counts = [f"{len(found.moved) or 'none'} of {found.n_cells} cells moved"]
    counts += [f"{len(texts)} {what}" for what, texts in rest.items() if texts]
    say(f"Table {one.table} ({one.form}): {', '.join(counts)}")
    return bool(found)


def _note_new_results(one: checking.TableText, now: dict[str, Any]) -> None:
    for run in now["runs"]:
        if one.hashes.get(run["run"], run["results_sha256"]) != run["results_sha256"]:
            note(f"{run['run']} has other results than when Table {one.table} was made")


# --- figures ---


def _draw(args: argparse.Namespace) -> int:
    if args.out is None or args.out.suffix not in figures.ENDINGS:
        raise InputError("out", f"a file that ends with {', '.join(figures.ENDINGS)}", str(args.out))
    made = figures.picture(args.figure, FIGURES[args.figure](args.runs), args.out.suffix)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(args.out, lambda draft: draft.write_bytes(made))
    say(f"Figure: {args.out}")
    return 0

"""`tables`: makes the paper's tables and figures of finished runs, and checks that those in a file
are still what the runs give."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import run_folder
from seeact_offline.files.markdown import printable
from seeact_offline.files.named import read_text
from seeact_offline.files.whole import replace_text, write_whole
from seeact_offline.records import InputError
from seeact_offline.tables import TABLES, build_table, checking, figures
from seeact_offline.tables.document import ENDINGS, Form
from seeact_offline.tables.table_input import NEWEST, is_live


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="*", type=run_folder, metavar="RUN",
        help="run folders or folders of them; --table 5, observations, rankers: or a folder of ablate; --table 4: also"
        " folders of browse; --table 1: a file of `stats --json`",
    )  # fmt: skip
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--table", metavar="NAME",
        help=f"number, those up to 5 as in the paper, or name ({', '.join(TABLES)}),"
        " or FILE.py:NAME for a table of your own",
    )  # fmt: skip
    what.add_argument("--figure", choices=figures.FIGURES, help="a picture instead; needs --out")
    what.add_argument(
        "--over-time", dest="figure", action="store_const", const="over-time",
        help="the figure of Step SR by the runs' dates, a line for each tag (see `eval --tags`); as --figure over-time",
    )  # fmt: skip
    what.add_argument(
        "--check", type=Path, metavar="FILE", help="make the tables in a file again and list the cells that have moved"
    )
    parser.add_argument(
        "--dataset", metavar="DIR|FILE|HUB_ID",
        help="--table 1: a data set to count instead of a file; --check: the one that was counted",
    )  # fmt: skip
    parser.add_argument("--by", choices=("website", "domain"), help="--table 2, 3: a row for each of them")
    parser.add_argument(
        "--which", default=NEWEST, metavar="newest|oldest|DATE",
        help="of runs that differ in their date alone, the one that stands in the table; DATE:"
        " the newest until that day (default: %(default)s)",
    )  # fmt: skip
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
    for option in ("dataset", "by", "stderr"):
        if args.figure and getattr(args, option):
            raise InputError(option, sentence=f"`{option}` cannot be combined with `figure`; use it with `table`")
    if args.figure and args.which != NEWEST:
        raise InputError("which", sentence="`which` cannot be combined with `figure`; use it with `table`")
    if not args.runs and args.dataset is None:
        raise InputError("runs", sentence="name at least one run folder")
    return _draw(args) if args.figure else _tabulate(args)


# --- tables ---


def _tabulate(args: argparse.Namespace) -> int:
    is_folder = args.out is not None and (args.out.is_dir() or not args.out.suffix)
    forms = _forms(args, is_folder)
    folder = Path.cwd() if args.out is None else args.out if is_folder else args.out.parent
    options = {"dataset": args.dataset, "by": args.by, "stderr": args.stderr, "which": args.which}
    document = build_table(args.table, args.runs, folder, **options)
    if args.out is None:
        # what goes to a file keeps its provenance
        is_page = args.format is None and sys.stdout.isatty()
        say(document.screen_text() if is_page else document.text(forms[0], args.standalone).removesuffix("\n"))
        if is_page and document.screen is not None:
            note("--out FILE or --format markdown gives the whole page, with the paper's own rows and provenance")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"table{args.table}" if args.table.isdecimal() else args.table.rpartition(":")[2]
    for form in forms:
        path = folder / f"{stem}{ENDINGS[form]}" if is_folder else args.out
        replace_text(path, printable(document.text(form, args.standalone)))
        say(f"Table: {path}")
    return 0


def _forms(args: argparse.Namespace, is_folder: bool) -> list[Form]:
    """Lists the formats to write. Raises InputError for a file of another format."""
    if args.format is not None:
        return [args.format]
    if args.out is None:
        return ["markdown"]
    if is_folder:
        return list(ENDINGS)
    by_ending = {ending: form for form, ending in ENDINGS.items()}
    if args.out.suffix not in by_ending:
        raise InputError("out", f"a file that ends with {', '.join(by_ending)}, or --format with it", str(args.out))
    return [by_ending[args.out.suffix]]


# --- check ---


def _check(args: argparse.Namespace) -> int:
    text = read_text("check", args.check, largest=checking.LARGEST)
    tables = checking.written(text, str(args.check))
    if args.dataset is not None and all(written_table.dataset is None for written_table in tables):
        raise InputError("dataset", sentence=f"no table of {args.check} counts a data set; remove `dataset`")
    changed = [_has_changed(written_table, args.check.parent, args.dataset) for written_table in tables]
    return 1 if any(changed) else 0


def _has_changed(old: checking.TableText, base: Path, dataset: str | None) -> bool:
    """Prints the differences of one table. Opens no data set but `dataset`, and loads no
    code, whatever the file names."""
    # reads replies, which a table does not
    from seeact_offline.results.verifying import verify_files

    if old.table not in TABLES:
        raise InputError(
            "check", f"one of tables {', '.join(TABLES)}", f"{old.table:.80}, whose code --check does not load"
        )
    if old.dataset is not None and dataset is None:
        raise InputError("dataset", sentence=f"name the data set that Table {old.table} counts with `dataset`")
    counted = dataset if old.dataset is not None else None
    inputs = [base / path for path in old.inputs]
    new = build_table(old.table, inputs, base, dataset=counted, by=old.by, stderr=old.stderr)
    changes = checking.changes(old.text, printable(new.text(old.form)), old.form)
    for run in new.provenance.runs if new.provenance else ():
        if old.hashes.get(run["run"], run["results_sha256"]) != run["results_sha256"]:
            note(f"{run['run']} has other results than when Table {old.table} was made")
    for text in changes.missing:
        say(f"missing: {text}")
    for text in changes.unknown:
        say(f"not of these runs: {text}")
    for cell in changes.moved:
        say(f"moved: {cell.place}: was {cell.was or 'empty'}, is now {cell.now or 'empty'}")
    differing = False
    for name in (run["run"] for run in (new.provenance.runs if new.provenance else ())):
        # scores without their run, and episodes, are not checked
        if not is_live(base / name) and (base / name / "manifest.json").is_file():
            for text in verify_files(base / name, None).differences:
                differing = True
                say(f"not verified: {name}: {text}")
    counts = [f"{len(changes.moved) or 'none'} of {changes.n_cells} cells moved"]
    counts += [f"{len(changes.missing)} missing"] if changes.missing else []
    counts += [f"{len(changes.unknown)} not of these runs"] if changes.unknown else []
    say(f"Table {old.table} ({old.form}): {', '.join(counts)}")
    return bool(changes or differing)


# --- figures ---


def _draw(args: argparse.Namespace) -> int:
    if args.out is None or args.out.suffix not in figures.ENDINGS:
        raise InputError("out", f"a file that ends with {', '.join(figures.ENDINGS)}", str(args.out))
    kind = figures.FIGURES[args.figure]
    gathered = kind.gather(args.runs)
    if hint := gathered.get("hint"):
        note(hint)
    made = figures.drawn(kind.draw, gathered, args.out.suffix)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(args.out, lambda draft: draft.write_bytes(made))
    say(f"Figure: {args.out}")
    return 0

"""`score`: scores finished predictions again. Asks no model and needs no scores.

Predictions of another program become a run first, if the importers' room is there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.cli.output import note, say
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.extensions import Doors
from seeact_offline.records import InputError
from seeact_offline.scoring.protocols import PROTOCOLS

if TYPE_CHECKING:
    from seeact_offline.runs.run import Run

OTHER_PROGRAMS = Doors({name: f"seeact_offline.cli.score_files:{name}" for name in ("add_arguments", "import_files")})
"""Functions for predictions of other programs: one adds options, one makes a run of what
the options name, if anything."""
CHECKS_ALONE = "`check` takes a run alone, whose files are left as they are; remove the other options"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "finished", type=Path, nargs="?", metavar="RUN|FILE", help="a run's folder, or predictions of another program"
    )
    parser.add_argument(
        "--protocol", default=(), metavar="NAME[,NAME...]",
        type=lambda text: tuple(dict.fromkeys(name.strip() for name in text.split(","))),
        help=f"scoring rules: {', '.join(PROTOCOLS)} or FILE.py:NAME (default: the run's or the format's); for several,"
        " the rules that make them differ are printed",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help="folder of the results (default: the run's folder); with several protocols a folder in it each,"
        " and delta.json and delta.md (default: nothing is written);"
        " for predictions of another program the folder of the run that they become",
    )  # fmt: skip
    parser.add_argument(
        "--dataset", metavar="DIR|FILE|HUB_ID",
        help="the data set with the right answers: for a run, its data where they are now"
        " (default: as kept with the run);"
        " required by all formats but uground",
    )  # fmt: skip
    parser.add_argument(
        "--oracle", type=Path, metavar="RUN",
        help="for an annotation run: count its errors over the steps that this run of the oracle grounding gets right",
    )  # fmt: skip
    parser.add_argument(
        "--causes", type=Path, metavar="FILE",
        help="for a run: causes of loss that a person gives (`view --causes`),"
        " added to the computed ones and counted in the waterfall",
    )  # fmt: skip
    parser.add_argument(
        "--also-right", type=Path, metavar="FILE",
        help="for a run: other right answers of steps (`view --also-right`), which count in figures of their own",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="store_true",
        help="compare a run's files with each other, its replies and its data, name each difference, and end with"
        " status 1 if there is one; with"
        " --dataset every page is read too",
    )  # fmt: skip
    if "add_arguments" in OTHER_PROGRAMS:
        OTHER_PROGRAMS["add_arguments"](parser)


def run(args: argparse.Namespace) -> int:
    # not before it is needed, so that --help stays quick
    from seeact_offline.results.recompute import rescore, rescore_all
    from seeact_offline.runs.reading_hints import hint_of_run
    from seeact_offline.runs.run import Run

    if args.finished is not None and not args.finished.exists():
        raise InputError(
            "run", sentence=f"{args.finished} does not exist; name a run's folder, or predictions of another program"
        )
    imported = OTHER_PROGRAMS["import_files"](args) if "import_files" in OTHER_PROGRAMS else None
    if isinstance(imported, int):
        return imported
    if args.check:
        return _check(args)
    folder = args.finished if imported is None else imported.run.path
    if folder is None:
        raise InputError("run", sentence="name a run's folder, or predictions of another program")
    for name in ("causes", "also_right"):
        if getattr(args, name) is not None and (len(args.protocol) > 1 or imported is not None):
            got = "several" if len(args.protocol) > 1 else "another program's"
            raise InputError(name, sentence=f"`{name}` needs a run under one protocol, not {got}")
    # an imported run keeps the right answers of its data set
    options = {"dataset": args.dataset if imported is None else None, "out": args.out, "watch": TerminalWatch()}
    if len(args.protocol) > 1:
        several = rescore_all(folder, args.protocol, **options)
        say("\n\n".join(table.markdown() for table in several.tables))
        if args.out is not None:
            say(f"\nDifferences: {args.out / 'delta.md'}")
        status = 0 if several.complete else 1
    elif imported is None:
        protocol = args.protocol[0] if args.protocol else None
        status = _show(rescore(folder, protocol=protocol, **_opinions(args), **options))
    else:
        status = _show(Run(folder))
    hint = None if imported is None else hint_of_run(imported.run.path)
    if hint is not None:
        note("\n".join(hint.sentences(folder)))
    return max(status, int(bool(imported and imported.covered)), int(hint is not None and hint.is_mostly_unreadable))


def _check(args: argparse.Namespace) -> int:
    """Checks a run, or each run of a folder; returns the exit status."""
    from seeact_offline.results.verifying import verify
    from seeact_offline.tables.table_input import find_runs

    if args.finished is None or args.out is not None or len(args.protocol) > 1:
        raise InputError("check", sentence=CHECKS_ALONE)
    runs = find_runs([args.finished])
    protocol = args.protocol[0] if args.protocol else None
    status = 0
    for folder in runs:
        verification = verify(folder, dataset=args.dataset, protocol=protocol, **_opinions(args))
        for difference in verification.differences:
            say(f"{folder}: {difference}" if len(runs) > 1 else difference)
        for text in verification.not_proved:
            note(f"not proved: {text}")
        say(f"{folder}: {verification.status}")
        status = max(status, int(bool(verification.differences)))
    return status


def _opinions(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in ("oracle", "causes", "also_right")}


def _show(done: Run) -> int:
    """Prints the figures of a scored run; returns the exit status."""
    from seeact_offline.results.recompute import meanings
    from seeact_offline.scoring.report import short

    say(short(done.record, meanings(done.record.settings)))
    # neither imported steps nor rows at fault can be asked again
    n_failed = done.record.n_not_run - sum(done.record.data_faults.values())
    has_failed = n_failed and not done.record.format
    return 1 if has_failed or not done.record.complete else 0

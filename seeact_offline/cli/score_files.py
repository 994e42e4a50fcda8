"""Predictions of another program, which `score` makes a run of."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.cli.options import add_fields, given
from seeact_offline.cli.output import fail, say
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.cli.score import CHECKS_ALONE
from seeact_offline.importers import IMPORTERS
from seeact_offline.importers.answer_table import UNITS
from seeact_offline.records import InputError
from seeact_offline.replies.final_answer import GROUNDINGS
from seeact_offline.runs.config import OWN_WORDS, EvalConfig

if TYPE_CHECKING:
    from seeact_offline.importers.importing import ImportedRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    other = parser.add_argument_group("predictions of another program")
    other.add_argument("--format", choices=tuple(IMPORTERS), help="format of RUN|FILE (default: by its content)")
    other.add_argument(
        "--split", metavar="NAME", help="split of --dataset: cross_task, cross_website, cross_domain or all"
    )
    other.add_argument(
        "--answered-only", action="store_true", help="leave out steps without an answer, which fail otherwise"
    )
    other.add_argument("--points", choices=tuple(UNITS), help="table: unit of its places (default: pixels)")
    other.add_argument(
        "--grounding", choices=GROUNDINGS, help="seeact: the strategy of its replies (default: by its files)"
    )
    other.add_argument("--agent", metavar="NAME", help="replies: whose language they are in, by name or FILE.py:NAME")
    other.add_argument(
        "--strict-reading", action="store_true", help="replies: read them as the agent's released code does"
    )
    other.add_argument("--samples", type=Path, metavar="FILE", help="uground: the samples, with the right answers")
    other.add_argument("--plan", type=Path, metavar="FILE", help="uground: the plans")
    other.add_argument(
        "--answers", type=Path, metavar="FILE",
        help="uground: the answered places (default: only operations are scored)",
    )  # fmt: skip
    other.add_argument("--date", metavar="DATE", help="day or moment on which the model answered (default: now)")
    add_fields(other, EvalConfig, *OWN_WORDS)


def import_files(args: argparse.Namespace) -> ImportedRun | int | None:
    """Makes a run of what the options name. None: they name a run of ours; an exit status: nobody says
    whose language the replies are in.

    Raises InputError.
    """
    is_import = args.agent is not None or _is_of_file(args)
    if args.check:
        if is_import:
            raise InputError("check", sentence=CHECKS_ALONE)
        return None
    if args.agent is None and args.finished is not None and args.finished.is_file():
        from seeact_offline.importers import looks_like

        looks = None if args.format else looks_like(args.finished)
        if (args.format or (looks and looks.name)) == "replies":
            return _show_fits(args)
    is_other = args.finished is not None and not _is_run(args)
    return _imported(args) if is_other or is_import else None


def _show_fits(args: argparse.Namespace) -> int:
    """Prints how well each agent fits; returns the exit status."""
    from seeact_offline.importers.reply_files import fit_file

    fits = fit_file(args.finished, args.dataset, args.split)
    say(fits.table().markdown())
    if fits.best is None:
        return fail(f"{fits.sentence()}; docs/agents.md says how to declare one")
    words = ["seeact-offline", "score", str(args.finished), "--format", "replies", "--agent", fits.best.agents[0]]
    named = {"--dataset": args.dataset or "DATASET", "--split": args.split or "SPLIT", "--out": str(args.out or "DIR")}
    words += [word for pair in named.items() for word in pair]
    return fail(f"name the agent whose language the replies are in; {fits.sentence()}: {shlex.join(words)}")


def _is_run(args: argparse.Namespace) -> bool:
    return args.finished is not None and (args.finished / "manifest.json").is_file()


def _is_of_file(args: argparse.Namespace) -> bool:
    """True where an option says how a file of predictions is read."""
    of_file = (args.format, args.samples, args.plan, args.answers, args.answered_only, args.points, args.grounding)
    return any(of_file)


def _imported(args: argparse.Namespace) -> ImportedRun:
    # reads pages, which a finished run does not
    from seeact_offline.importers.importing import ImportFiles, import_replies_of, import_run

    if args.out is None:
        raise InputError("out", sentence="name a folder for the run that the predictions become with `out`")
    protocol = args.protocol[0] if args.protocol else None
    shared: dict[str, Any] = {"out": args.out, "dataset": args.dataset, "protocol": protocol}
    shared |= {"strict": args.strict_reading, "watch": TerminalWatch(), "date": args.date, "command": args.command}
    shared |= {name: value for name, value in given(args, EvalConfig).items() if name in OWN_WORDS}
    if _is_run(args) and args.agent is not None and not _is_of_file(args):
        return import_replies_of(args.finished, agent=args.agent, **shared)
    files = ImportFiles(run=args.finished, samples=args.samples, plan=args.plan, answers=args.answers)
    is_uground = args.samples is not None and args.plan is not None and args.finished is None
    own = {name: getattr(args, name) for name in ("split", "answered_only", "points", "grounding", "agent")}
    return import_run(files, format=args.format or ("uground" if is_uground else None), **own, **shared)

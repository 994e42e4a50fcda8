"""`browse`: lets an agent act in headless Chromium, and judges it by the page's state."""

from __future__ import annotations

import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seeact_offline.cli import options
from seeact_offline.cli.eval import LIMITS, add_model_arguments, config_of
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import Parser, basic
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.table import Table
from seeact_offline.live.episode_results import figure_rows
from seeact_offline.live.episodes import Decision, Proposal
from seeact_offline.live.miniwob import MINIWOB
from seeact_offline.live.running import browse
from seeact_offline.records import InputError
from seeact_offline.runs.config import RUN, EvalConfig
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "source", nargs="?", default="sites", metavar="sites|miniwob|FILE",
        help="the bundled sites, MiniWoB++, or a file of tasks with checks as `record` takes it (default: %(default)s)",
    )  # fmt: skip
    data = parser.add_argument_group("tasks")
    options.add_fields(data, EvalConfig, "split", "limit", "sample", "tasks")
    data.add_argument("--seeds", type=options.positive_int, metavar="N", help="miniwob: episodes a task (default: 5)")
    options.add_question_arguments(parser)
    add_model_arguments(
        parser, help="%(known)s, builtin/random, or for miniwob builtin/submit (default: builtin/lexical)"
    )
    acting = parser.add_argument_group("acting")
    basic(
        acting.add_argument(
            "--max-steps",
            type=options.positive_int,
            metavar="N",
            help="most steps of an episode (default: the agent's own)",
        )
    )
    basic(
        acting.add_argument(
            "--unaided", action="store_true",
            help="builtin/oracle: end where its language has no words for the recorded act (default: carry that act out)",
        )
    )  # fmt: skip
    acting.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL",
        help="let pages and acts reach this origin, as https://host; may be repeated (default: only served folders)",
    )  # fmt: skip
    acting.add_argument(
        "--keep-rows", action="store_true", help="keep every page that was asked about as a row of rows.jsonl, for eval"
    )
    acting.add_argument(
        "--confirm", action="store_true", help="ask before each act: Enter accepts it, n rejects it, e ends the episode"
    )
    acting.add_argument("--browser", metavar="PATH", help="a Chromium (default: the one on the PATH)")
    runs = parser.add_argument_group(RUN)
    limits = options.add_fields(runs, EvalConfig, *LIMITS)
    limits["concurrency"].help = "number of browsers (default: 1)"
    options.add_fields(runs, EvalConfig, "out")


def run(args: argparse.Namespace) -> int:
    if args.max_steps is not None and args.max_steps < 1:
        raise InputError("max_steps", "at least 1", str(args.max_steps))
    if args.source == MINIWOB and getattr(args, "tasks", None) is not None and not args.tasks.is_file():
        # its tasks have short names
        args.tasks = str(args.tasks).split(",")
    config = config_of(args, concurrency=getattr(args, "concurrency", 1))
    if args.confirm and not sys.stdin.isatty():
        raise InputError("confirm", sentence="`confirm` asks in a terminal, and standard input is none; remove it")
    found = browse(
        args.source, config=config, seeds=args.seeds, max_steps=args.max_steps, unaided=args.unaided, allow_origins=args.allow_origin,
        browser=args.browser, keep_rows=args.keep_rows,
        confirm=_ask if args.confirm else None,
        watch=_AskingWatch() if args.confirm else TerminalWatch(),
    )  # fmt: skip
    rows = figure_rows(found.results)
    say(Table(header=("", "% of tasks", "95 % interval"), rows=rows).markdown())
    ends = ", ".join(f"{name} {n}" for name, n in found.results.ends.items())
    say(f"\n{counted(len(found.episodes), 'episode')}: {ends}")
    if found.spent_usd:
        say(f"Spent on this folder: {found.spent_usd:.4f} USD")
    say(f"\nReport: {Path(found.path) / 'report.md'}")
    if found.n_left:
        note(f"stopped at --max-cost {config.max_cost}: {counted(found.n_left, 'task')} not begun")
    if found.n_failed:
        failed = next(one for one in found.episodes if not one.has_verdict)
        note(f"{counted(found.n_failed, 'episode')} without a verdict ({failed.detail}); the same command tries again")
    return 1 if found.n_left or found.n_failed else 0


class _AskingWatch(Watch):
    """Draws no progress, which would be drawn over the answers."""

    def note(self, text: str) -> None:
        note(text)


def _ask(proposal: Proposal) -> Decision:
    """Asks in the terminal until an answer is one; its end ends the episode."""
    say(f"\n{proposal.task}\nStep {proposal.number} on {proposal.address}: {proposal.action}")
    if proposal.place:
        say(f"Place: {proposal.place}")
    answers: dict[str, Decision] = {"": "accept", "n": "reject", "e": "end"}
    while True:
        note("Enter accepts, n rejects, e ends the episode")
        # waits without a lock on the stream, which would keep an interrupted program from ending
        select.select([sys.stdin], [], [])
        line = sys.stdin.readline()
        answer = answers.get(line.strip().lower()) if line else "end"
        if answer is not None:
            return answer

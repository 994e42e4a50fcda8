"""`browse`: lets an agent act in Chromium, and judges it by the page's state, or by a person or a judge."""

from __future__ import annotations

import select
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from seeact_offline.cli import options
from seeact_offline.cli.eval import LIMITS, add_model_arguments, config_of
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import Parser, reader
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.table import Table
from seeact_offline.recorder.origins import BrowserOptions, read_geolocation
from seeact_offline.records import InputError
from seeact_offline.runs.config import RUN, EvalConfig
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted
from seeact_offline.trajectories.trajectory_files import NOBODY

T = TypeVar("T")
ASK = "ask"

if TYPE_CHECKING:
    import argparse

    from seeact_offline.live.episodes import Decision, Episode, Proposal


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "source", nargs="?", default="sites", metavar="sites|miniwob|FILE",
        help="the bundled sites, MiniWoB++, or a file of tasks: a script as `record` takes it,"
        " whose steps and checks may be missing, SeeAct's online tasks or Online-Mind2Web's (default: %(default)s)",
    )  # fmt: skip
    data = parser.add_argument_group("tasks")
    options.add_fields(data, EvalConfig, "split", "limit", "sample", "tasks")
    data.add_argument("--seeds", type=options.positive_int, metavar="N", help="miniwob: episodes a task (default: 5)")
    options.add_question_arguments(parser)
    add_model_arguments(
        parser, help="%(known)s, builtin/random, or for miniwob builtin/submit (default: builtin/lexical)"
    )
    acting = parser.add_argument_group("acting")
    acting.add_argument(
        "--max-steps", type=options.positive_int, metavar="N",
        help="most steps of an episode (default: the agent's own)",
    )  # fmt: skip
    acting.add_argument(
        "--unaided", action="store_true",
        help="builtin/oracle: end where its language has no words for the recorded act"
        " (default: carry that act out)",
    )  # fmt: skip
    acting.add_argument(
        "--keep-rows", action="store_true", help="keep every page that was asked about as a row of rows.jsonl, for eval"
    )
    acting.add_argument(
        "--confirm", action="store_true", help="ask before each act: Enter accepts it, n rejects it, e ends the episode"
    )
    parser.shown |= {"max_steps", "unaided"}
    acting.add_argument("--browser", metavar="PATH", help="a Chromium (default: the one on the PATH)")
    _add_web_arguments(parser)
    runs = parser.add_argument_group(RUN)
    limits = options.add_fields(runs, EvalConfig, *LIMITS)
    limits["concurrency"].help = "number of browsers (default: 1)"
    options.add_fields(runs, EvalConfig, "out")


def _add_web_arguments(parser: Parser) -> None:
    web = parser.add_argument_group("websites")
    web.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL|*",
        help="let pages and acts reach this origin, as https://host, or any (*); may be repeated"
        " (default: only served folders)",
    )  # fmt: skip
    web.add_argument(
        "--verdict", metavar="ask|DIR",
        help="whose verdict a task without a check has: a person's, who is asked at the end of each episode,"
        " or that of a folder of judge (default: people's that `view` has kept)",
    )  # fmt: skip
    web.add_argument("--annotator", metavar="NAME", help=f"--verdict ask: the person (default: {NOBODY})")
    web.add_argument("--headed", action="store_true", help="show the browser's window")
    web.add_argument("--user-agent", metavar="TEXT", help="the browser's name for websites (default: its own)")
    web.add_argument(
        "--locale", default=BrowserOptions().locale, metavar="NAME", help="language and formats (default: %(default)s)"
    )
    web.add_argument(
        "--geolocation", type=reader(read_geolocation), metavar="LAT,LON",
        help="place that pages may ask for, in degrees (default: they may not)",
    )  # fmt: skip
    web.add_argument(
        "--storage-state", type=Path, metavar="FILE", help="begin each episode with this login, as Playwright stores it"
    )
    web.add_argument(
        "--trace", action="store_true", help="keep Playwright's trace of each episode in traces/, for its show-trace"
    )


def run(args: argparse.Namespace) -> int:
    # not before they are needed, so that --help stays quick
    from seeact_offline.live.episode_results import ERROR, figure_rows, verdicts_in_words
    from seeact_offline.live.running import browse

    if args.max_steps is not None and args.max_steps < 1:
        raise InputError("max_steps", "at least 1", str(args.max_steps))
    config = config_of(args, concurrency=getattr(args, "concurrency", 1))
    asks = args.verdict == ASK
    for name in (name for name, is_asked in (("confirm", args.confirm), ("verdict", asks)) if is_asked):
        if not sys.stdin.isatty():
            raise InputError(name, sentence=f"`{name}` asks in a terminal, and standard input is none; remove it")
    if args.annotator and not asks:
        raise InputError("annotator", sentence="`annotator` needs `verdict` ask")
    web = BrowserOptions(args.headed, args.user_agent, args.locale, args.geolocation, args.storage_state, args.trace)
    browsed = browse(
        args.source, config=config, seeds=args.seeds, max_steps=args.max_steps, unaided=args.unaided,
        allow_origins=args.allow_origin, browser=args.browser, keep_rows=args.keep_rows,
        browser_options=web,
        confirm=_ask if args.confirm else None, ask_verdict=_ask_verdict if asks else None,
        annotator=args.annotator or NOBODY,
        judged=Path(args.verdict) if args.verdict and not asks else None,
        watch=_AskingWatch() if args.confirm or asks else TerminalWatch(),
    )  # fmt: skip
    rows = figure_rows(browsed.results)
    say(Table(header=("", "% of tasks", "95 % interval"), rows=rows).markdown())
    ends = ", ".join(f"{name} {n}" for name, n in browsed.results.ends.items())
    say(f"\n{counted(len(browsed.episodes), 'episode')}: {ends}")
    if browsed.spent_usd:
        say(f"Spent on this folder: {browsed.spent_usd:.4f} USD")
    say(f"\nReport: {Path(browsed.path) / 'report.md'}")
    if not browsed.results.is_by_state:
        say(verdicts_in_words(browsed.results))
    if n_unjudged := browsed.results.n_unjudged:
        note(
            f"{counted(n_unjudged, 'episode')} without a verdict: give them with `view {browsed.path}`,"
            f" or ask a judge with `judge {browsed.path}`; then this command with --verdict counts them"
        )
    if browsed.n_left:
        note(f"stopped at --max-cost {config.max_cost}: {counted(browsed.n_left, 'task')} not begun")
    if browsed.n_failed:
        failed = next(episode for episode in browsed.episodes if episode.end == ERROR)
        note(
            f"{counted(browsed.n_failed, 'episode')} ended by an error ({failed.detail}); the same command tries again"
        )
    return 1 if browsed.n_left or browsed.n_failed else 0


class _AskingWatch(Watch):
    """Draws no progress, which would be drawn over the answers."""

    def note(self, text: str) -> None:
        note(text)


def _ask(proposal: Proposal) -> Decision:
    say(f"\n{proposal.task}\nStep {proposal.number} on {proposal.address}: {proposal.action}")
    if proposal.place:
        say(f"Place: {proposal.place}")
    answers: dict[str, Decision] = {"": "accept", "n": "reject", "e": "end"}
    return _answer("Enter accepts, n rejects, e ends the episode", answers, "end")


def _ask_verdict(episode: Episode) -> bool | None:
    say(f"\n{episode.task.task}\nEnded ({episode.end}) on {episode.last_address}")
    if episode.answer is not None:
        say(f"Answer: {episode.answer}")
    return _answer("Was it done? y success, n failure, Enter leaves it open", {"y": True, "n": False, "": None}, None)


def _answer(question: str, answers: Mapping[str, T], otherwise: T) -> T:
    """Asks in the terminal until an answer is one; `otherwise` at its end."""
    while True:
        note(question)
        # waits without a lock on the stream, which would keep an interrupted program from ending
        select.select([sys.stdin], [], [])
        line = sys.stdin.readline()
        if not line:
            return otherwise
        if line.strip().lower() in answers:
            return answers[line.strip().lower()]

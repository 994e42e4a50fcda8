"""The command: parses arguments, composes the other modules, prints. Nothing else in the project prints.

Each verb is a module of this package with `add_arguments(parser)` and `run(args) -> exit status`; it is imported only
when it is asked for, so that `--help` stays quick.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import re
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from seeact_offline import __version__
from seeact_offline.cli.output import Downloads, fail, lasting_output, note, say, silence
from seeact_offline.cli.parser import Parser
from seeact_offline.files import hub
from seeact_offline.files.extras import missing_package
from seeact_offline.records import InputError, SeeActError

USES = {
    "eval": ("evaluate a model on the steps of a split", "--split cross_website --grounding choice"),
    "rank": (
        "score the candidates of a split with a ranker, into a score file",
        "--dataset DIR --split cross_domain --out scores.parquet",
    ),
    "train-ranker": (
        "train a ranker on the steps of a split",
        "--dataset sample --split train --small --out runs/ranker",
    ),
    "finetune": ("fine-tune a baseline of the paper on the train split", "--small --out runs/flan-t5-small"),
    "improve": (
        "improve an agent from its own attempts, offline: recorded train tasks, teacher-forced steps",
        "--model hf/Qwen/Qwen2.5-VL-3B-Instruct --dataset DIR --out runs/improved",
    ),
    "show": ("print exactly what the model would be sent for one step", "--split cross_website --step 2"),
    "score": ("score the finished predictions of a run again", "runs/NAME --protocol seeact,mindact"),
    "which-agent": (
        "name the agent whose language and frame fit a file of replies",
        "replies.jsonl --dataset DIR --split cross_website",
    ),
    "compare": ("compare finished runs, paired by step and clustered by task", "runs/a runs/b"),
    "judge": (
        "ask a model whether trajectories have done their tasks",
        "trajectories --judge strict --model openai/gpt-4o",
    ),
    "agreement": (
        "compare verdicts of judges with labels, with intervals over tasks",
        "runs/judged --labels labels.csv",
    ),
    "browse": (
        "let an agent act in headless Chromium, and judge it by the page's state",
        "sites --agent webvoyager --model builtin/oracle --limit 5",
    ),
    "reward": (
        "score finished tasks by programs over answers, addresses and stored pages",
        "--config tasks.json --answers answers.jsonl --states states",
    ),
    "runs": ("list the runs of a folder by status, date, model and figures", "runs"),
    "view": ("browse finished runs, or ground steps by hand", "runs/a runs/b"),
    "cache": ("list, prune or clear stored replies", "list"),
    "ablate": (
        "compare ways of marking, or the observations of a web agent, over the same steps",
        "--over markup --split cross_task --model builtin/oracle",
    ),
    "ablate-markup": (
        "compare ways of marking elements on the picture, as in the paper's Table 5",
        "--split cross_task --model builtin/oracle",
    ),
    "tables": (
        "draw the paper's tables and figures from finished runs, or check a drawn one",
        "--table 2 runs/a runs/b --format latex --out table2.tex",
    ),
    "stats": ("count tasks, pages, elements and tokens, as in the paper's Table 1", "--dataset DIR --split all"),
    "lint-data": ("find faults in a data set", "--dataset DIR --split all --out findings.jsonl"),
    "record": ("run a task script in headless Chromium and write its steps as a data set", "SCRIPT.yaml --out DIR"),
    "convert-raw-dump": (
        "convert Mind2Web's raw dump and task files to the hub's layout",
        "raw_dump/task Mind2Web/data --out DIR",
    ),
    "import-prompts": ("build a prompt pack from a checkout of the authors' repository", "PATH"),
}
"""What each verb does, and an example of its words, which `scripts/VERB.py` shows too."""
VERBS = {
    verb: use for verb, use in USES.items() if find_spec(f"seeact_offline.cli.{verb.replace('-', '_')}") is not None
}
"""The verbs that are here: those of an annex can be deleted with it."""
TASK_FILES = frozenset({"reward"})
"""Verbs whose `--config` is a file of tasks, as the task files' authors have it, and not of options."""
_ARGUMENT = re.compile(r"`([a-z][a-z0-9_]*)`")
"""The name of an argument in a sentence."""
COMPLETION = "--completion"
# 128 and the number of SIGINT: the status by which shells know a program that Ctrl-C has ended
INTERRUPTED = 130
LOG_LEVELS = ("debug", "info", "warning", "error")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb. Returns 0 done, 1 done but some steps failed to run or most replies could not be read, 2
    wrong usage or unreadable input."""
    with lasting_output(), _terminable():
        return _run_verb(list(sys.argv[1:] if argv is None else argv))


@contextmanager
def _terminable() -> Iterator[None]:
    """Lets SIGTERM, by which schedulers and containers end a program, do what Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        # asyncio has a handler of its own while a loop runs
        handler = signal.getsignal(signal.SIGINT)
        (handler if callable(handler) else signal.default_int_handler)(number, frame)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run_verb(words: Sequence[str]) -> int:
    try:
        parser = _parser(words)
    except ModuleNotFoundError as error:
        return fail(missing_package(error))
    if not words:
        say(parser.format_help().removesuffix("\n"))
        return 0
    if words[0].startswith("-") and words[0] not in parser._option_string_actions:
        parser.error(f"expected VERB first, such as eval, got {words[0]}")
    args, unknown = parser.parse_known_args(words)
    if unknown:
        args.verb_parser.unknown(unknown)
    # libraries' logs go to standard error, without secrets and control characters
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not isinstance(handler, _Notes)] + [_Notes()]
    root.setLevel(args.log_level.upper())
    silence(args.quiet)
    hub.listener = Downloads()
    for name, url in vars(args).items():
        if name.endswith("base_url") and isinstance(url, str):
            from seeact_offline.models.address import address_of

            # hides its secrets, as a run's command repeats it also where its model asks no server
            address_of(url)
    try:
        return int(args.run(args))
    except SeeActError as error:
        report_error(format_error(error, args.verb_parser), args.debug)
        return error.status
    except ModuleNotFoundError as error:
        return fail(missing_package(error))
    except KeyboardInterrupt:
        note("interrupted: the same command resumes")
        return INTERRUPTED
    except OSError as error:
        return report_error(f"{error.filename or 'a file'} cannot be used: {error.strerror or error}", args.debug)


class _Notes(logging.Handler):
    """Prints log records as remarks."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        note(self.format(record))


def report_error(sentence: str, debug: bool) -> int:
    """Prints an error, after its traceback with --debug. Returns the exit status 2."""
    if debug:
        # Python's own printing would not redact secrets
        note(traceback.format_exc())
    return fail(sentence)


def format_error(error: SeeActError, verb: argparse.ArgumentParser) -> str:
    """Returns the error's sentence; arguments of the library are named as the verb's options of
    that name, or of its singular."""
    if not isinstance(error, InputError):
        return str(error)
    option_strings = {name for action in verb._actions for name in action.option_strings}

    def shown(argument: str) -> str:
        option = f"--{argument.replace('_', '-')}"
        return next((name for name in (option, option.removesuffix("s")) if name in option_strings), argument)

    if error.sentence:
        return _ARGUMENT.sub(lambda match: shown(match[1]), error.sentence)
    return str(error).replace(error.argument, shown(error.argument), 1)


def _parser(words: Sequence[str]) -> Parser:
    parser = Parser(
        prog="seeact-offline", description="Step-wise offline evaluation of web agents on Mind2Web-style data."
    )
    parser.add_argument("--version", action="version", version=f"seeact-offline {__version__}")
    parser.add_argument(COMPLETION, action=_Completion, metavar="SHELL", help="print completions for bash, zsh or tcsh")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    asked = words[0] if words else ""
    for verb, (purpose, example) in VERBS.items():
        description = f"{purpose[0].upper()}{purpose[1:]}."
        sub = verbs.add_parser(verb, help=purpose, description=description)
        sub.epilog = f"example: {sub.prog} {example}"
        if verb == asked or asked == COMPLETION:
            _fill(sub, verb, words[1:])
    return parser


class _Completion(argparse.Action):
    """Prints the completions of a shell, of all verbs and their options."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        import shtab

        if values not in shtab.SUPPORTED_SHELLS:
            parser.error(f"{option}: expected one of {', '.join(shtab.SUPPORTED_SHELLS)}, got {values}")
        say(shtab.complete(parser, shell=values).removesuffix("\n"))
        parser.exit()


def _fill(parser: Parser, verb: str, words: Sequence[str]) -> None:
    module = importlib.import_module(f"seeact_offline.cli.{verb.replace('-', '_')}")
    options = {word.split("=")[0] for word in words} - ({"--config"} if verb in TASK_FILES else set())
    if "all" in words and "--help" in words:
        parser.strategies = None
    elif options & {"--grounding", "--agent", "--config"}:
        from seeact_offline.cli.config_file import load_strategies, option_names

        try:
            parser.strategies = load_strategies(words)
        except InputError as error:
            parser.exit(fail(error.sentence or f"--{error}"))
        parser.shown = option_names(parser.strategies)
    module.add_arguments(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--quiet", action="store_true", help="print results and errors, no progress and no remarks")
    parser.add_argument(
        "--log-level", choices=LOG_LEVELS, default="warning",
        help="level of libraries' log messages (default: %(default)s)",
    )  # fmt: skip
    variables = ""
    variable_names = {action.variable for action in parser._actions if hasattr(action, "variable")}
    try:
        if variable_names and (variable_names & os.environ.keys() or Path(".env").is_file()):
            from seeact_offline.cli.config_file import apply_variables

            variables = apply_variables(parser, words)
        command = f"{variables}{parser.prog} {shlex.join(words)}"
        parser.set_defaults(run=module.run, verb_parser=parser, command=command)
        if "--config" in options:
            from seeact_offline.cli.config_file import apply_config

            apply_config(parser, words)
    except SeeActError as error:
        parser.exit(fail(format_error(error, parser)))

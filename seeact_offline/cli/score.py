"""`score`: scores finished predictions again. Asks no model and needs no scores.

Predictions of another program become a run first.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from seeact_offline.cli.output import fail, note, say
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.records import InputError
from seeact_offline.replies.final_answer import GROUNDINGS
from seeact_offline.scoring.importers import IMPORTERS
from seeact_offline.scoring.importers.answer_table import UNITS
from seeact_offline.scoring.protocols import PROTOCOLS

if TYPE_CHECKING:
    from seeact_offline.runs.importing import ImportedRun
    from seeact_offline.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "finished", type=Path, nargs="?", metavar="RUN|FILE", help="a run's folder, or predictions of another program"
    )
    parser.add_argument(
        "--protocol", type=_names, default=(), metavar="NAME[,NAME...]",
        help=f"scoring rules: {', '.join(PROTOCOLS)} or FILE.py:NAME (default: the run's or the format's); for several, the rules that make them"
        " differ are printed",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help="folder of the results (default: the run's folder); with several protocols a folder in it each, and delta.json and"
        " delta.md (default: nothing is written); for predictions of another program the folder of the run that they become",
    )  # fmt: skip
    parser.add_argument(
        "--dataset", metavar="DIR|FILE|HUB_ID",
        help="the data set with the right answers: for a run, its data where they are now (default: as kept with the run);"
        " required by all formats but uground",
    )  # fmt: skip
    parser.add_argument(
        "--oracle", type=Path, metavar="RUN",
        help="for an annotation run: count its errors over the steps that this run of the oracle grounding gets right",
    )  # fmt: skip
    parser.add_argument(
        "--causes", type=Path, metavar="FILE",
        help="for a run: causes of loss that a person gives (`view --causes`), added to the computed ones and counted in the waterfall",
    )  # fmt: skip
    parser.add_argument(
        "--also-right", type=Path, metavar="FILE",
        help="for a run: other right answers of steps (`view --also-right`), which count in figures of their own",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="store_true",
        help="compare a run's files with each other, its replies and its data, name each difference, and end with status 1 if there is one; with"
        " --dataset every page is read too",
    )  # fmt: skip
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
        "--answers",
        type=Path,
        metavar="FILE",
        help="uground: the answered places (default: only operations are scored)",
    )


def run(args: argparse.Namespace) -> int:
    # not before it is needed, so that --help stays quick
    from seeact_offline.runs.reading_hints import hint_of_run
    from seeact_offline.runs.rescoring import rescore, rescore_all
    from seeact_offline.runs.run import Run

    if args.finished is not None and not args.finished.exists():
        raise InputError(
            "run", sentence=f"{args.finished} does not exist; name a run's folder, or predictions of another program"
        )
    if args.check:
        return _check(args)
    if _lacks_agent(args):
        return _show_fits(args)
    imported = _imported(args) if _is_to_be_imported(args) else None
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
        status = _show(
            rescore(
                folder, protocol=protocol, oracle=args.oracle, causes=args.causes, also_right=args.also_right, **options
            )
        )
    else:
        status = _show(Run(folder))
    hint = None if imported is None else hint_of_run(imported.run.path)
    if hint is not None:
        note("\n".join(hint.sentences(folder)))
    return max(status, int(bool(imported and imported.covered)), int(hint is not None and hint.is_mostly_unreadable))


def _lacks_agent(args: argparse.Namespace) -> bool:
    """True for raw replies of which nobody says whose language they are in."""
    from seeact_offline.scoring.importers import looks_like

    if args.agent is not None or args.finished is None or not args.finished.is_file():
        return False
    found = None if args.format else looks_like(args.finished)
    return args.format == "replies" or (found is not None and found.name == "replies")


def _show_fits(args: argparse.Namespace) -> int:
    """Prints how well each agent fits; returns the exit status."""
    from seeact_offline.runs.agent_fit import fit_file

    fits = fit_file(args.finished, args.dataset, args.split)
    say(fits.table().markdown())
    if fits.best is None:
        return fail(f"{fits.sentence()}; docs/agents.md says how to declare one")
    words = ["seeact-offline", "score", str(args.finished), "--format", "replies", "--agent", fits.best.agents[0]]
    named = {"--dataset": args.dataset or "DATASET", "--split": args.split or "SPLIT", "--out": str(args.out or "DIR")}
    words += [word for pair in named.items() for word in pair]
    return fail(f"name the agent whose language the replies are in; {fits.sentence()}: {shlex.join(words)}")


def _check(args: argparse.Namespace) -> int:
    """Checks a run, or each run of a folder; returns the exit status."""
    from seeact_offline.runs.verifying import verify
    from seeact_offline.tables.table_input import find_runs

    if args.finished is None or args.out is not None or len(args.protocol) > 1 or _is_import(args):
        raise InputError(
            "check", sentence="`check` takes a run alone, whose files are left as they are; remove the other options"
        )
    runs = find_runs([args.finished])
    protocol = args.protocol[0] if args.protocol else None
    status = 0
    for folder in runs:
        found = verify(
            folder, dataset=args.dataset, protocol=protocol, oracle=args.oracle, causes=args.causes, also_right=args.also_right
        )  # fmt: skip
        for difference in found.differences:
            say(f"{folder}: {difference}" if len(runs) > 1 else difference)
        for text in found.not_proved:
            note(f"not proved: {text}")
        say(f"{folder}: {found.status}")
        status = max(status, int(bool(found.differences)))
    return status


def _is_to_be_imported(args: argparse.Namespace) -> bool:
    return _is_import(args) or (args.finished is not None and not _is_run(args))


def _is_run(args: argparse.Namespace) -> bool:
    return args.finished is not None and (args.finished / "manifest.json").is_file()


def _is_import(args: argparse.Namespace) -> bool:
    return args.agent is not None or _is_of_file(args)


def _is_of_file(args: argparse.Namespace) -> bool:
    """True where an option says how a file of predictions is read."""
    of_file = (args.format, args.samples, args.plan, args.answers, args.answered_only, args.points, args.grounding)
    return any(of_file)


def _imported(args: argparse.Namespace) -> ImportedRun:
    # reads pages, which a finished run does not
    from seeact_offline.runs.importing import ImportFiles, import_replies_of, import_run

    if args.out is None:
        raise InputError("out", sentence="name a folder for the run that the predictions become with `out`")
    protocol = args.protocol[0] if args.protocol else None
    if _is_run(args) and args.agent is not None and not _is_of_file(args):
        return import_replies_of(
            args.finished,
            out=args.out,
            agent=args.agent,
            dataset=args.dataset,
            protocol=protocol,
            strict=args.strict_reading,
            watch=TerminalWatch(),
        )
    files = ImportFiles(run=args.finished, samples=args.samples, plan=args.plan, answers=args.answers)
    is_uground = args.samples is not None and args.plan is not None and args.finished is None
    return import_run(
        files,
        out=args.out,
        format=args.format or ("uground" if is_uground else None),
        dataset=args.dataset,
        split=args.split,
        protocol=protocol,
        answered_only=args.answered_only,
        points=args.points,
        grounding=args.grounding,
        agent=args.agent,
        strict=args.strict_reading,
        watch=TerminalWatch(),
    )


def _show(done: Run) -> int:
    """Prints the figures of a scored run; returns the exit status."""
    from seeact_offline.runs.rescoring import meanings
    from seeact_offline.scoring.report import short

    say(short(done.record, meanings(done.record.settings)))
    # neither imported steps nor rows at fault can be asked again
    n_failed = done.record.n_not_run - sum(done.record.data_faults.values())
    has_failed = n_failed and not done.record.format
    return 1 if has_failed or not done.record.complete else 0


def _names(text: str) -> tuple[str, ...]:
    """Names separated by commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))

"""`judge`: asks a model whether trajectories have done their tasks, and compares its verdicts with the labels that they hold."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from seeact_offline.cli import options
from seeact_offline.cli.eval import LIMITS, add_model_arguments, config_of
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import basic
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.scoring.report import counted
from seeact_offline.trajectories.agreement_tables import agreement_document, judgement_table
from seeact_offline.trajectories.judge_agreement import agreements
from seeact_offline.trajectories.judge_runs import judge
from seeact_offline.trajectories.judgements import LABELS, NO_ANSWER, VERDICTS
from seeact_offline.trajectories.judges import JUDGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="RUN|FOLDER",
        help="a folder of trajectories (ours, WebVoyager's, Online-Mind2Web's, SeeAct's, AgentRewardBench's), a scored run, or a data set with recorded tasks, such as sample",
    )  # fmt: skip
    rules = parser.add_argument_group("judge")
    basic(
        rules.add_argument("--judge", choices=JUDGES, default="strict", help="rules and prompts (default: %(default)s)")
    )
    basic(
        rules.add_argument(
            "--k", type=lambda text: tuple(one.strip() for one in text.split(",")), default=(), metavar="K[,K]",
            help="numbers of last screenshots to show, or all, such as 1,2,3,all (default: the judge's own: 3 for openwebvoyager, 1 for agenttrek and autonomouseval, else all)",
        )
    )  # fmt: skip
    basic(
        rules.add_argument(
            "--repeats",
            type=options.positive_int,
            default=1,
            metavar="N",
            help="judge everything N times (default: %(default)s)",
        )
    )
    basic(
        rules.add_argument(
            "--constructed", action="store_true",
            help="judge right trajectories and copies that are damaged on purpose, labelled as such",
        )
    )  # fmt: skip
    options.add_fields(rules, EvalConfig, "prompts")
    options.add_fields(
        rules, EvalConfig, "split", is_basic=False,
        help=f"split of a data set: train, cross_task, cross_website, cross_domain or all (default: {EvalConfig().split})",
    )  # fmt: skip
    options.add_fields(rules, EvalConfig, "limit", help="judge only the first N tasks")
    options.add_fields(rules, EvalConfig, "sample")
    add_model_arguments(parser, required=True, help="%(known)s")
    runs = parser.add_argument_group("run")
    limits = options.add_fields(runs, EvalConfig, *LIMITS)
    limits["seed"].help = f"seed of the bootstrap, the model and --sample (default: {JUDGES['strict'].seed})"
    basic(
        runs.add_argument(
            "--out",
            type=Path,
            metavar="DIR",
            help="folder of verdicts; an interrupted command resumes from it (default: runs/judge-...)",
        )
    )


def run(args: argparse.Namespace) -> int:
    config = config_of(args, repeats=0)
    found = judge(
        args.source, judge=args.judge, k=args.k, repeats=args.repeats, constructed=args.constructed,
        config=config, watch=TerminalWatch(),
    )  # fmt: skip
    say(judgement_table(found.judgements).markdown())
    if found.labels and any(one.ran for one in found.judgements):
        try:
            document = agreement_document(agreements(found.judgements, found.labels))
            say("\n" + "\n\n".join(filter(None, (document.remark, document.body()))))
        except InputError as error:
            # people may be unsure or split evenly; the verdicts are there all the same
            note(f"no agreement: {error.problem}")
        say(f"\nLabels: {found.path / LABELS}")
    if not any(one.calls or one.reply or not one.ran for one in found.judgements):
        outcomes = Counter(one.outcome for one in found.judgements)
        hint = "; --judge strict needs no answer" if NO_ANSWER in outcomes else ""
        note(f"no call was made: {', '.join(f'{name} {n}' for name, n in sorted(outcomes.items()))}{hint}")
    say(f"\nVerdicts: {found.path / VERDICTS}")
    if found.spent_usd is not None:
        say(f"Spent on this folder: {found.spent_usd:.4f} USD")
    if found.n_left:
        note(f"stopped at --max-cost {config.max_cost}: {counted(found.n_left, 'judgement')} not made")
    if found.n_failed:
        failed = next(one for one in found.judgements if not one.ran)
        note(
            f"{counted(found.n_failed, 'call')} failed, {failed.outcome} first ({failed.detail}); the same command asks again"
        )
    return 1 if found.n_left or found.n_failed else 0

"""`judge`: asks a model whether trajectories have done their tasks, and compares its verdicts
with the labels that they hold."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from seeact_offline.cli import options
from seeact_offline.cli.eval import LIMITS, add_model_arguments, config_of
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import Parser
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.known_files import VERDICTS
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.scoring.report import counted
from seeact_offline.trajectories.judges import JUDGES


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "source", metavar="RUN|FOLDER",
        help="a folder of trajectories (ours, WebVoyager's, Online-Mind2Web's, SeeAct's, AgentRewardBench's), a scored"
        " run, or a data set with recorded tasks, such as sample",
    )  # fmt: skip
    parser.shown |= {"judge", "k", "repeats", "constructed", "out"}
    rules = parser.add_argument_group("judge")
    rules.add_argument("--judge", choices=JUDGES, default="strict", help="rules and prompts (default: %(default)s)")
    rules.add_argument(
        "--k", type=lambda text: tuple(count.strip() for count in text.split(",")), default=(), metavar="K[,K]",
        help="numbers of last screenshots to show, or all, such as 1,2,3,all"
        " (default: the judge's own: 3 for openwebvoyager, 1 for agenttrek and autonomouseval, else all)",
    )  # fmt: skip
    rules.add_argument(
        "--repeats", type=options.positive_int, default=1, metavar="N",
        help="judge everything N times (default: %(default)s)",
    )  # fmt: skip
    rules.add_argument(
        "--constructed", action="store_true",
        help="judge right trajectories and copies that are damaged on purpose, labelled as such",
    )  # fmt: skip
    options.add_fields(rules, EvalConfig, "prompts")
    options.add_fields(
        rules, EvalConfig, "split", is_basic=False,
        help="split of a data set: train, cross_task, cross_website, cross_domain or all"
        f" (default: {EvalConfig().split})",
    )  # fmt: skip
    options.add_fields(rules, EvalConfig, "limit", help="judge only the first N tasks")
    options.add_fields(rules, EvalConfig, "sample")
    add_model_arguments(parser, required=True, help="%(known)s")
    runs = parser.add_argument_group("run")
    limits = options.add_fields(runs, EvalConfig, *LIMITS)
    limits["seed"].help = f"seed of the bootstrap, the model and --sample (default: {JUDGES['strict'].seed})"
    runs.add_argument(
        "--out", type=Path, metavar="DIR",
        help="folder of verdicts; an interrupted command resumes from it (default: runs/judge-...)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    # not before they are needed, so that --help stays quick
    from seeact_offline.trajectories.agreement_tables import agreement_document, judgement_table
    from seeact_offline.trajectories.judge_agreement import agreements
    from seeact_offline.trajectories.judge_runs import judge
    from seeact_offline.trajectories.judgements import LABELS, NO_ANSWER

    config = config_of(args, repeats=0)
    judged = judge(
        args.source, judge=args.judge, k=args.k, repeats=args.repeats, constructed=args.constructed,
        config=config, watch=TerminalWatch(),
    )  # fmt: skip
    say(judgement_table(judged.judgements).markdown())
    if judged.labels and any(judgement.ran for judgement in judged.judgements):
        try:
            document = agreement_document(agreements(judged.judgements, judged.labels))
            say("\n" + "\n\n".join(filter(None, (document.remark, document.body()))))
        except InputError as error:
            # people may be unsure or split evenly; the verdicts are there all the same
            note(f"no agreement: {error.problem}")
        say(f"\nLabels: {judged.path / LABELS}")
    if not any(judgement.calls or judgement.reply or not judgement.ran for judgement in judged.judgements):
        outcomes = Counter(judgement.outcome for judgement in judged.judgements)
        hint = "; --judge strict needs no answer" if NO_ANSWER in outcomes else ""
        note(f"no call was made: {', '.join(f'{name} {n}' for name, n in sorted(outcomes.items()))}{hint}")
    say(f"\nVerdicts: {judged.path / VERDICTS}")
    if judged.spent_usd is not None:
        say(f"Spent on this folder: {judged.spent_usd:.4f} USD")
    if judged.n_left:
        note(f"stopped at --max-cost {config.max_cost}: {counted(judged.n_left, 'judgement')} not made")
    if judged.n_failed:
        failed = next(judgement for judgement in judged.judgements if not judgement.ran)
        note(
            f"{counted(judged.n_failed, 'call')} failed, {failed.outcome} first ({failed.detail});"
            " the same command asks again"
        )
    return 1 if judged.n_left or judged.n_failed else 0

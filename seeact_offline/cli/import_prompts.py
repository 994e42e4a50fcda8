"""`import-prompts`: builds a prompt pack from a checkout of the authors' repository, without running its code."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.prompting.published import IMPORTABLE, MINDACT, import_agent_prompts, import_prompts

JUDGE = "judge-"
"""The beginning of the names of judges' prompts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkout", type=Path, metavar="PATH",
        help="folder of the checkout, with src/data_utils/prompts.py unless --from is given",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="agent", metavar="AGENT",
        help=f"the checkout is that of an agent, a judge or a baseline: {', '.join(IMPORTABLE)}",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=Path("prompts-imported"), metavar="DIR",
        help="folder of the new pack (default: %(default)s)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    written = (
        import_agent_prompts(args.agent, args.checkout, args.out)
        if args.agent
        else import_prompts(args.checkout, args.out)
    )
    for path in written:
        say(str(path))
    say(f"Use it with {_asked_by(args.agent)}--prompts {args.out}")
    return 0


def _asked_by(agent: str | None) -> str:
    if agent == MINDACT:
        return "--grounding mindact --layout seq2seq --max-input-tokens 512+512 "
    if agent and agent.startswith(JUDGE):
        return f"--judge {agent.removeprefix(JUDGE)} "
    return f"--agent {agent} " if agent else ""

"""`import-prompts`: builds a prompt pack from a checkout of the authors' repository, without running its code."""

from __future__ import annotations

import argparse
from functools import partial
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
    import_pack = partial(import_agent_prompts, args.agent) if args.agent else import_prompts
    for path in import_pack(args.checkout, args.out):
        say(str(path))
    asked_by = f"--agent {args.agent} " if args.agent else ""
    if args.agent == MINDACT:
        asked_by = "--grounding mindact --layout seq2seq --max-input-tokens 512+512 "
    elif asked_by and args.agent.startswith(JUDGE):
        asked_by = f"--judge {args.agent.removeprefix(JUDGE)} "
    say(f"Use it with {asked_by}--prompts {args.out}")
    return 0

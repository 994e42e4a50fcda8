"""`import-prompts`: builds a prompt pack from a checkout of the authors' repository, without running its code."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.prompt_import import PUBLISHED, import_agent_prompts, import_prompts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkout",
        type=Path,
        metavar="PATH",
        help="folder of the checkout, with src/data_utils/prompts.py unless --from is given",
    )
    parser.add_argument(
        "--from",
        dest="agent",
        metavar="AGENT",
        help=f"the checkout is that of a GUI agent: {', '.join(PUBLISHED)}",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("prompts-imported"),
        metavar="DIR",
        help="folder of the new pack (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    written = (
        import_agent_prompts(args.agent, args.checkout, args.out)
        if args.agent
        else import_prompts(args.checkout, args.out)
    )
    for path in written:
        say(str(path))
    say(f"Use it with {f'--agent {args.agent} ' if args.agent else ''}--prompts {args.out}")
    return 0

"""`import-prompts`: builds a prompt pack from a checkout of the authors' repository, without running its code."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.prompt_import import import_prompts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkout", type=Path, metavar="PATH", help="folder of the checkout, with src/data_utils/prompts.py"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("prompts-imported"),
        metavar="DIR",
        help="folder of the new pack (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    written = import_prompts(args.checkout, args.out)
    for path in written:
        say(str(path))
    say(f"Use it with --prompts {args.out}")
    return 0

"""`which-agent`: tries every agent's language and frame on a file of replies, and names the one that fits best."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.importers.reply_files import fit_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "replies", type=Path, metavar="FILE",
        help="replies, as `score --format replies` takes them, or alone: JSON lines with reply, or plain lines",
    )  # fmt: skip
    parser.add_argument(
        "--dataset", metavar="DIR|FILE|HUB_ID", help="data set of the steps, whose right answers tell frames apart"
    )
    parser.add_argument(
        "--split", metavar="NAME", help="split of --dataset: cross_task, cross_website, cross_domain or all"
    )


def run(args: argparse.Namespace) -> int:
    fits = fit_file(args.replies, args.dataset, args.split)
    say(fits.table().markdown())
    sentence = fits.sentence()
    say(f"\n{sentence[0].upper()}{sentence[1:]}.")
    if fits.best is not None and args.dataset is None:
        say("Frames look alike without the steps: --dataset and --split tell them apart by what lies at each place.")
    return 0 if fits.best is not None else 1

"""`score`: the finished predictions of a run again, under this or another protocol. Asks no model and needs no scores."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.cli.watching import Told
from seeact_offline.grounding.strategies import notes
from seeact_offline.runs.rescoring import rescore
from seeact_offline.scoring.protocols import PROTOCOLS
from seeact_offline.scoring.report import short


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run directory")
    parser.add_argument(
        "--protocol", metavar="NAME", help=f"scoring rules: {' or '.join(PROTOCOLS)} (default: the run's)"
    )
    parser.add_argument(
        "--dataset", metavar="DIR|FILE|HUB_ID", help="where the run's data are now (default: where they were)"
    )
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="where scores and report go (default: the run directory)"
    )


def run(args: argparse.Namespace) -> int:
    run = rescore(args.out, protocol=args.protocol, dataset=args.dataset, to=args.to, watch=Told())
    say(short(run.results, notes()))
    return 1 if run.results["waterfall"].get("not_run") or not run.results["complete"] else 0

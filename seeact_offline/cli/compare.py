"""`compare`: compares finished runs, paired by step and clustered by task. Asks no model and needs no data set."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.files.markdown import printable
from seeact_offline.files.whole import replace_text
from seeact_offline.records import InputError
from seeact_offline.runs.finished import compare
from seeact_offline.scoring.paired import BREAKDOWNS

ENDINGS = (".json", ".md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="run directories; the first is compared with each other"
    )
    parser.add_argument(
        "--by", type=_names, default=[], metavar="NAME[,NAME...]", help=f"break down by {', '.join(BREAKDOWNS)}"
    )
    parser.add_argument("--intersect", action="store_true", help="compare only the steps that all runs have")
    parser.add_argument(
        "--detect", type=float, default=5.0, metavar="POINTS",
        help="compute the number of tasks that would show a difference of so many points (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of resamples and signs (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help=f"also write it to a file, ending in {' or '.join(ENDINGS)}"
    )


def run(args: argparse.Namespace) -> int:
    if args.out is not None and args.out.suffix not in ENDINGS:
        raise InputError("out", f"a file ending in {' or '.join(ENDINGS)}", str(args.out))
    found = compare(*args.runs, by=args.by, intersect=args.intersect, detect=args.detect, seed=args.seed)
    if args.out is not None:
        as_json = json.dumps(found.to_dict(), indent=2) + "\n"
        args.out.parent.mkdir(parents=True, exist_ok=True)
        replace_text(args.out, as_json if args.out.suffix == ".json" else printable(found.report()))
    say(found.report())
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]

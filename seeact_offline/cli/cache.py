"""`cache`: lists, prunes and clears stored replies."""

from __future__ import annotations

import argparse
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import count
from seeact_offline.files.digest import cache_folder
from seeact_offline.files.store import Store
from seeact_offline.files.table import Table
from seeact_offline.runs.model_settings import REPLIES

DAYS = 90


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "prune", "clear"), help="operation on the stored replies")
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="folder that stores them (default: the one in your cache folder)"
    )
    parser.add_argument(
        "--days", type=count, default=DAYS, metavar="N",
        help="prune: drop replies unused for N days (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--model", metavar="NAME", help="use only replies of this model")


def run(args: argparse.Namespace) -> int:
    path = (args.cache or cache_folder()) / REPLIES
    if not path.is_file():
        say(f"{path}: no replies are kept")
        return 0
    with closing(Store(path, "cache")) as store:
        if store.remark:
            note(store.remark)
        if args.action == "list":
            summaries = [summary for summary in store.summaries() if args.model in (None, summary.about)]
            rows = [(s.about or "not known", s.texts, f"{s.characters / 1e6:.1f}", s.first, s.used) for s in summaries]
            table = Table(header=("model", "replies", "MB", "first", "last used"), rows=rows)
            say(f"{path}\n\n{table.markdown()}")
        else:
            today = datetime.now(UTC).date()
            oldest = date.fromordinal(max(1, today.toordinal() - args.days)).isoformat()
            dropped = store.drop(None if args.action == "clear" else oldest, args.model)
            say(f"{path}: {dropped} replies dropped")
    if args.action == "clear" and args.model is None:
        for damaged in path.parent.glob(f"{path.name}.damaged-*"):
            damaged.unlink()
    return 0

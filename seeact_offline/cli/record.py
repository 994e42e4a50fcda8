"""`record`: carry out a task script in headless Chromium and write its steps as a data set."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline.cli.options import positive_int
from seeact_offline.cli.output import note, say
from seeact_offline.dataset import SPLITS, canonical_split
from seeact_offline.dataset.writing import StepRecord, to_row, write_hub_parquet
from seeact_offline.recorder import Recorder, RecordOptions, load_script
from seeact_offline.records import InputError, StepError
from seeact_offline.scoring.report import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="YAML or JSON task script")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the data set; parquet goes to DIR/data")
    parser.add_argument("--split", default="cross_website", help="of tasks that name none (default: %(default)s)")
    parser.add_argument("--browser", metavar="PATH", help="a Chromium (default: the one on the PATH)")
    parser.add_argument(
        "--picture", choices=("jpeg", "webp", "png"), default="jpeg", help="format (default: %(default)s)"
    )
    parser.add_argument(
        "--quality", type=positive_int, default=80, metavar="1-100", help="of jpeg and webp (default: %(default)s)"
    )
    parser.add_argument("--force", action="store_true", help="write over recordings that --out holds already")
    parser.add_argument("--no-raw-html", action="store_true", help="leave the column raw_html empty")


def run(args: argparse.Namespace) -> int:
    tasks = load_script(args.script, args.split)
    splits = {task.annotation_id: canonical_split(task.split) for task in tasks}
    if args.quality > 100:
        raise InputError("quality", "1 to 100", str(args.quality))
    _check_out(args.out, args.force)
    options = RecordOptions(args.browser, args.picture, args.quality, raw_html=not args.no_raw_html)
    recorded: dict[str, list[StepRecord]] = {}
    failed = 0
    with Recorder(options) as recorder:
        for n, task in enumerate(tasks, 1):
            try:
                steps = recorder.record(task)
            except StepError as error:
                failed += 1
                note(f"{n}/{len(tasks)} left out: {error.detail}")
                continue
            recorded.setdefault(splits[task.annotation_id], []).extend(steps)
            note(f"{n}/{len(tasks)} {counted(len(steps), 'step')}: {task.task}")
    for split, steps in recorded.items():
        path = args.out / "data" / f"{SPLITS[split]}-00000-of-00001.parquet"
        say(f"{path}: {counted(write_hub_parquet(map(to_row, steps), path), 'step')}")
    return 1 if failed else 0


def _check_out(out: Path, force: bool) -> None:
    """Raises InputError for a folder with anything in it, before a browser is opened: a recording replaces a split's file."""
    if not force and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError("out", "a folder that is new or empty, or --force", f"{out}, which holds something already")

"""`record`: carry out a task script in headless Chromium and write its steps as a data set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from seeact_offline.cli.options import positive_int
from seeact_offline.cli.output import note, say
from seeact_offline.dataset.writing import StepRecord
from seeact_offline.recorder import Recorder, RecordFailed, RecordingFolder, RecordOptions, load_script
from seeact_offline.recorder.proving import Prover, harm_of
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import InputError, StepError
from seeact_offline.scoring.report import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="YAML or JSON task script")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the data set; parquet goes to DIR/data")
    parser.add_argument("--split", default="cross_website", help="split of tasks that name none (default: %(default)s)")
    parser.add_argument("--browser", metavar="PATH", help="a Chromium (default: the one on the PATH)")
    parser.add_argument(
        "--picture", choices=("jpeg", "webp", "png"), default="jpeg", help="format of pictures (default: %(default)s)"
    )
    parser.add_argument(
        "--quality", type=positive_int, default=80, metavar="1-100",
        help="quality of jpeg and webp (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL",
        help="let pages send requests to this origin too, as https://host; may be repeated"
        " (default: only that of the start)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="record all tasks, over those in --out (default: resume)")
    parser.add_argument(
        "--prove", action="store_true",
        help="afterwards play each task with an act left out, a false value, an act too many;"
        " name the checks that such a play passes",
    )  # fmt: skip
    parser.add_argument("--no-raw-html", action="store_true", help="leave the column raw_html empty")


def run(args: argparse.Namespace) -> int:
    tasks = load_script(args.script, args.split)
    if args.quality > 100:
        raise InputError("quality", "1 to 100", str(args.quality))
    options = RecordOptions(
        args.browser, args.picture, args.quality, raw_html=not args.no_raw_html, allow_origins=tuple(args.allow_origin)
    )
    failed, named = 0, set[str]()
    recording = RecordingFolder(args.out, tasks, options, args.force)
    with Recorder(options) as recorder, recording:
        for n, task in enumerate(tasks, 1):
            if task in recording:
                note(f"{n}/{len(tasks)} recorded before: {task.task}")
                continue
            try:
                steps = recorder.record(task)
            except StepError as error:
                failed += 1
                done = error.steps if isinstance(error, RecordFailed) else ()
                if done:
                    recording.keep(task, done, is_whole=False)
                kept = f"{counted(len(done), 'step')} before it kept" if done else "left out"
                note(f"{n}/{len(tasks)} {kept}: {error.detail}")
                _note_unseen(task, done)
                continue
            recording.keep(task, steps)
            note(f"{n}/{len(tasks)} {counted(len(steps), 'step')}: {task.task}")
            _note_unseen(task, steps)
            for origin in sorted(recorder.refused - named):
                note(f"no requests were sent to {origin}; --allow-origin {origin} allows them")
            named |= recorder.refused
        for path, n_steps in recording.write().items():
            say(f"{path}: {counted(n_steps, 'step')}")
    weak = _weak_checks(tasks, options) if args.prove else 0
    return 1 if failed or weak else 0


def _weak_checks(tasks: Sequence[TaskScript], options: RecordOptions) -> int:
    """The number of tasks whose check a wrong play passes; names the plays."""
    weak = 0
    with Prover(options) as prover:
        for task in (task for task in tasks if task.check):
            try:
                outcomes = prover.prove(task, harm_of(task, tasks))
            except StepError as error:
                note(error.detail)
                continue
            passing = [outcome.play for outcome in outcomes if outcome.is_weakness]
            weak += bool(passing)
            for play in passing:
                note(f"the check of task {task.task!r:.100} holds too early: {play.kind} {play.detail}".rstrip())
    say(f"{counted(weak, 'check')} that a wrong play passes")
    return weak


def _note_unseen(task: TaskScript, steps: Sequence[StepRecord]) -> None:
    """Names the steps whose rows have no right element: the cleaned page lacks it."""
    unseen = [
        f"{number}, inside a frame" if action.frame else str(number)
        for number, (action, step) in enumerate(zip(task.actions, steps, strict=False), 1)
        if not any(element.is_positive for element in step.elements)
    ]
    if unseen:
        note(f"rows without a right element, as the cleaned page lacks it: step {'; step '.join(unseen)}")

"""`eval`: ranks, grounds and scores a split into a run folder."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import Parser
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.options import names_in
from seeact_offline.files.table import Table
from seeact_offline.grounding.strategies import notes
from seeact_offline.records import InputError, Prediction
from seeact_offline.runs.config import MODEL, RESUMING, RUN, EvalConfig
from seeact_offline.scoring.report import counted, headline_text, none_answered, short

if TYPE_CHECKING:
    from seeact_offline.runs.run import Run

LIMITS = ("seed", "concurrency", "max_cost")
"""Options of every verb that asks a model."""


def add_arguments(parser: Parser) -> None:
    options.add_asked_data(parser)
    options.add_question_arguments(parser, several=True)
    options.add_engine_arguments(parser)
    parser.shown |= {"dry_run"}
    model = add_model_arguments(parser, action=options.Several)
    model.help = f"{model.help}; repeat it for a grid"
    runs = add_run_arguments(parser)
    again = parser.add_argument_group(RESUMING)
    options.add_fields(again, EvalConfig, *names_in(EvalConfig, RESUMING))
    runs.add_argument("--dry-run", action="store_true", help="estimate calls, cost and power; send nothing")
    runs.add_argument(
        "--batch", nargs=2, metavar=("ACTION", "DIR"),
        help="ask through batch files instead of calls: export, import or submit batches of requests in DIR",
    )  # fmt: skip
    runs.add_argument("--verbose", action="store_true", help="print all tables of report.md at the end")
    names = ("predict_only", "label", "tags", "metadata", "exclude_flagged", "repeats")
    options.add_fields(runs, EvalConfig, *names)
    runs.add_argument(
        "--baseline", type=Path, metavar="RUN",
        help="finished run of the same steps, which is subtracted from the new one at the end",
    )  # fmt: skip
    runs.add_argument(
        "--report-to", type=lambda text: text.split(","), default=[], metavar="NAME[,NAME]",
        help="send figures and settings to trackers at the end: names of their extras, such as wandb or mlflow",
    )  # fmt: skip
    options.add_fields(runs, EvalConfig, "out")


def add_model_arguments(parser: argparse.ArgumentParser, **changes: Any) -> argparse.Action:
    """Adds the options of the model; returns the one that names it. `changes` are settings of this one."""
    group = parser.add_argument_group(MODEL)
    named = options.add_fields(group, EvalConfig, "model", **changes)["model"]
    options.add_fields(group, EvalConfig, *(name for name in names_in(EvalConfig, MODEL) if name != "model"))
    group.add_argument(
        "--max-input-tokens", action=options.Several, type=lambda text: f"max_input_tokens={text}", dest="model_args",
        default=argparse.SUPPRESS, metavar="PAGE+REST",
        help="of hf/ with a text-to-text model: cut a question's page and its rest each to so"
        " many tokens, such as 512+512",
    )  # fmt: skip
    return named


def add_run_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Adds the options of every verb that asks a model; returns their group for further ones."""
    runs = parser.add_argument_group(RUN)
    options.add_fields(runs, EvalConfig, "protocol", *LIMITS)
    return runs


def run(args: argparse.Namespace) -> int:
    """Evaluates one run, or a grid of runs."""
    options_given = options.given(args, EvalConfig)
    models, groundings = options_given.get("model", [None]), options_given.get("grounding", [None])
    # a file names one model
    models = models if isinstance(models, list) else [models]
    if len(models) > 1 or len(groundings) > 1:
        usual = EvalConfig()
        return _run_grid(
            args, [name or usual.model for name in models], [name or usual.grounding for name in groundings]
        )
    for name, values in (("model", models), ("grounding", groundings)):
        if name in options_given:
            setattr(args, name, values[0])
    return _run_one(args)


def _run_grid(args: argparse.Namespace, models: list[str], groundings: list[str]) -> int:
    """Runs every model with every grounding, split by split, and prints the paper's Table 2."""
    from seeact_offline.runs.grid import evaluate_grid
    from seeact_offline.tables import build_table

    refused = [
        name
        for name in ("baseline", "label", "step", "predict_only", "ungrounded", "dry_run", "batch")
        if getattr(args, name, None)
    ]
    if refused:
        raise InputError(
            refused[0],
            sentence=f"`{refused[0]}` needs one model and one grounding, not {len(models)} and {len(groundings)}",
        )
    reporters = _reporters(args.report_to)
    config = config_of(args, model=models[0], grounding=groundings[0])
    grid = evaluate_grid(config, models=models, groundings=groundings, watch=TerminalWatch())
    say(build_table(2, [grid.path]).screen_text())
    say(f"\nEach run has a folder in {grid.path}; `tables --table 2 {grid.path}` makes this table in other formats")
    for done in grid.runs:
        if lost := done.record.unanswered:
            note(f"{done.path.name}: {none_answered(lost, done.record.n_steps)}")
    unread = [_note_reading(done) for done in grid.runs]
    for report in reporters:
        for done in grid.runs:
            report(done)
    return 1 if grid.n_failed or any(unread) or not grid.complete else 0


def _reporters(names: Sequence[str]) -> list[Callable[[Run], None]]:
    """Functions that send a run. Raises InputError before the run begins."""
    if not names:
        return []
    from seeact_offline.runs.trackers import open_reporters

    return open_reporters(names)


def _run_one(args: argparse.Namespace) -> int:
    # each is loaded where it is used, so that --help and a run stay quick
    if args.dry_run:
        from seeact_offline.results.estimate import dry_run

        say(dry_run(config_of(args), watch=TerminalWatch()).report())
        return 0
    reporters = _reporters(args.report_to)
    config = config_of(args)
    if args.baseline is not None:
        from seeact_offline.results.comparing import check_baseline
        from seeact_offline.runs.opening import selected_split

        # refused before anything is asked
        check_baseline(args.baseline, selected_split(config).keys)
    if args.batch is None:
        from seeact_offline.runs.evaluate import evaluate

        return _finish(args, config, evaluate(config, watch=TerminalWatch()), reporters)
    from seeact_offline.runs.batches import run_batch

    action, folder = args.batch
    report = run_batch(config, action, Path(folder), watch=TerminalWatch())
    if report.run is None:
        say(report.text)
        return 1 if report.failed or report.lost or report.odd else 0
    return _finish(args, config, report.run, reporters)


def _finish(args: argparse.Namespace, config: EvalConfig, run: Run, reporters: Sequence[Callable[[Run], None]]) -> int:
    """Prints the outcome of a run; returns the exit status."""
    from seeact_offline.scoring.assembling import unanswered

    predictions = run.predictions()
    lost = unanswered(predictions)
    if lost is not None:
        note(none_answered(lost, len(predictions)))
    unread = _note_reading(run)
    if config.predict_only:
        say(f"{counted(len(predictions), 'step')} predicted; `score {run.path}` scores them")
        return 1 if run.n_failed or run.n_left or unread else 0
    if lost is not None:
        _note_what_is_left(run, config.max_cost)
        return 1
    say(short(run.record, notes(run.record.grounding)) if args.verbose else headline_text(run.record))
    say(f"\nReport: {run.path / 'report.md'}")
    if args.baseline is not None:
        from seeact_offline.results.comparing import compare
        from seeact_offline.scoring.comparison import different_data

        comparison = compare(args.baseline, run.path, seed=config.seed)
        say("\n" + "\n\n".join([comparison.differences(), *different_data(comparison)]))
        say(f"\nMore of it: compare {args.baseline} {run.path}")
    _note_what_is_left(run, config.max_cost)
    for report in reporters:
        report(run)
    return 1 if run.n_failed or run.failed_repeats or unread or not run.record.complete else 0


def _note_reading(run: Run) -> bool:
    """Prints what is likely wrong with the reading of a run; True where most replies cannot be read."""
    from seeact_offline.runs.reading_hints import hint_of_run

    hint = hint_of_run(run.path)
    if hint is not None:
        note("\n".join(hint.sentences(run.path)))
    return hint is not None and hint.is_mostly_unreadable


def config_of(args: argparse.Namespace, **changes: Any) -> EvalConfig:
    """Returns the configuration of a run from the arguments that were given."""
    own = {action.dest for action in args.verb_parser._actions if getattr(action, "is_own", False)}
    own_options = {name: value for name, value in vars(args).items() if name in own}
    return EvalConfig().changed(**options.given(args, EvalConfig) | own_options | changes)


def _note_what_is_left(run: Run, max_cost: float | None) -> None:
    failed, reached = run.n_failed, len(run.predictions())
    if run.n_left or not (run.record.complete or run.record.unanswered):
        what = (
            f"{run.n_left} of {counted(reached + run.n_left, 'step was', 'steps were')} not started"
            if run.n_left
            else "some repeats are unfinished"
        )
        note(f"stopped at --max-cost {max_cost}: {what}" if run.is_stopped else what)
    if failed:
        note(f"\n{failed_steps(run).markdown()}\n")
        note(
            f"{failed} of {counted(reached, 'step')} failed to run;"
            " the same command retries them, --retry-failed only them"
        )
    if run.failed_repeats:
        note(f"{counted(run.failed_repeats, 'step')} failed to run in a repeat; the same command retries them")


def failed_steps(run: Run) -> Table:
    """Tabulates the failures of calls, each with its first step and message."""
    failed: dict[str, list[Prediction]] = {}
    for prediction in run.predictions():
        if prediction.has_failed:
            failed.setdefault(prediction.failure or "", []).append(prediction)
    rows = [(name, len(ones), str(ones[0].key), ones[0].detail) for name, ones in sorted(failed.items())]
    return Table(header=("failure", "steps", "first step", "its message"), rows=rows)

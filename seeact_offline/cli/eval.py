"""`eval`: ranks, grounds and scores a split into a run folder."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import basic
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.files.table import Table
from seeact_offline.grounding.strategies import notes, own_options
from seeact_offline.models import usage
from seeact_offline.models.parameters import read_model_args
from seeact_offline.records import IMAGE_DETAILS, JPEG_95, InputError, Prediction
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.trackers import REPORTERS, open_reporters
from seeact_offline.scoring.protocols import PROTOCOLS
from seeact_offline.scoring.report import counted, headline_text, none_answered, short

if TYPE_CHECKING:
    from seeact_offline.runs.run import Run

DEFAULT_MODEL = "builtin/lexical"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser, asks=True)
    options.add_tasks_argument(parser)
    options.add_question_arguments(parser, several=True)
    options.add_engine_arguments(parser)
    add_model_arguments(parser, several=True)
    runs = add_run_arguments(parser)
    again = parser.add_argument_group("resuming")
    again.add_argument("--retry-failed", action="store_true", help="ask only the steps that failed to run before")
    again.add_argument(
        "--step",
        metavar="ID[,ID]|@FILE",
        help="ask only these steps (annotation_id_action_uid), even if answered before",
    )
    basic(
        runs.add_argument(
            "--dry-run",
            action="store_true",
            help="estimate calls, tokens, cost and statistical power; send nothing",
        )
    )
    runs.add_argument(
        "--batch", nargs=2, metavar=("ACTION", "DIR"),
        help="ask through batch files instead of calls: export, import or submit batches of requests in DIR",
    )  # fmt: skip
    runs.add_argument("--verbose", action="store_true", help="print all tables of report.md at the end")
    runs.add_argument(
        "--predict-only", action="store_true", help="write predictions without scores; `score` adds them later"
    )
    runs.add_argument("--label", metavar="TEXT", help="name of the run in tables, legends and comparisons")
    runs.add_argument("--tags", type=_listed, default=(), metavar="WORD[,WORD]", help="tags for the manifest")
    runs.add_argument(
        "--metadata", type=_named_text, action="append", default=[], dest="named_texts", metavar="NAME=TEXT",
        help="named text for the manifest; repeatable",
    )  # fmt: skip
    runs.add_argument(
        "--exclude-flagged",
        type=Path,
        metavar="FILE",
        help="findings of lint-data: also report the figures without these rows",
    )
    runs.add_argument(
        "--repeats",
        "--shuffle-groups",
        type=options.count,
        default=0,
        metavar="N",
        help="choice, annotation, mindact: repeat the run N times with groups and choices in random order, and report the spread",
    )
    basic(
        runs.add_argument(
            "--baseline",
            type=Path,
            metavar="RUN",
            help="finished run of the same steps, which is subtracted from the new one at the end",
        )
    )
    runs.add_argument(
        "--report-to",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAME[,NAME]",
        help=f"send figures and settings to a tracker at the end: {', '.join(REPORTERS)} (each an extra)",
    )
    basic(
        runs.add_argument(
            "--out", type=Path, metavar="DIR", help="run folder; an interrupted run resumes from it (default: runs/...)"
        )
    )


def add_model_arguments(
    parser: argparse.ArgumentParser, several: bool = False, default: str | None = DEFAULT_MODEL
) -> None:
    """Adds the options of the model. `several`: allow more than one model. `default`: None where it must be named."""
    model = parser.add_argument_group("model")
    basic(model.add_argument(
        "--model", action=options.Several if several else "store", default=default, metavar="PROVIDER/NAME",
        required=default is None,
        help=usage() + (" (default: %(default)s)" if default else "") + ("; repeat the option for a grid" if several else ""),
    ))  # fmt: skip
    basic(
        model.add_argument(
            "--base-url",
            metavar="URL",
            help="URL of an OpenAI-compatible server (default: $OPENAI_BASE_URL, else OpenAI)",
        )
    )
    model.add_argument(
        "--grounder",
        metavar="PROVIDER/NAME",
        help="second model that finds what a planner such as --agent uground describes",
    )
    model.add_argument("--grounder-base-url", metavar="URL", help="URL of the grounder's server")
    _add_request_arguments(parser, model)
    add_picture_arguments(model)
    _add_call_arguments(model)
    _add_cost_arguments(model)


def _add_request_arguments(parser: argparse.ArgumentParser, model: argparse._ArgumentGroup) -> None:
    """Adds the parameters of a request."""
    basic(
        model.add_argument(
            "--temperature",
            type=options.non_negative_float,
            default=argparse.SUPPRESS,
            metavar="T",
            help="sampling temperature (default: 0)",
        )
    )
    model.add_argument(
        "--max-tokens",
        type=options.positive_int,
        default=argparse.SUPPRESS,
        metavar="N",
        help="maximum number of tokens a reply (default: 4096)",
    )
    model.add_argument(
        "--model-arg", "-M", action="append", default=[], dest="named_values", metavar="NAME=VALUE",
        help="any other parameter of the request; repeatable; -M api=responses selects OpenAI's Responses API",
    )  # fmt: skip
    parser.add_argument(
        "--max-input-tokens", action="append", type=lambda text: f"max_input_tokens={text}", dest="named_values", metavar="PAGE+REST",
        help="of hf/ with a text-to-text model: cut a question's page and its rest each to so many tokens, such as 512+512",
    )  # fmt: skip


def _add_call_arguments(model: argparse._ArgumentGroup) -> None:
    """Adds timeouts, retries and rates of calls."""
    model.add_argument(
        "--timeout",
        type=options.positive_float,
        default=120.0,
        metavar="S",
        help="timeout of a call in seconds (default: %(default)s)",
    )
    model.add_argument(
        "--max-retries",
        type=options.count,
        metavar="N",
        help="number of retries of a failed call (default: as many as --max-wait allows)",
    )
    model.add_argument(
        "--max-wait", type=options.positive_float, default=600.0, metavar="S",
        help="seconds that a call may take with all its attempts and pauses (default: %(default)s)",
    )  # fmt: skip
    model.add_argument(
        "--fail-on-error", type=options.share, metavar="SHARE",
        help="stop once more than this share (0 to 1) of the calls or of the steps has failed (default: stop only if every call fails)",
    )  # fmt: skip
    model.add_argument("--rpm", type=options.positive_float, metavar="N", help="maximum number of requests a minute")
    model.add_argument("--tpm", type=options.positive_float, metavar="N", help="maximum number of tokens a minute")


def _add_cost_arguments(model: argparse._ArgumentGroup) -> None:
    """Adds the options of stored replies and prices."""
    model.add_argument(
        "--cache", metavar="DIR|off",
        help="folder that stores paid replies for later runs (default: your cache folder; off with --base-url and at a temperature above 0)",
    )  # fmt: skip
    model.add_argument(
        "--ask-equal", action="store_true",
        help="send equal requests again, as the released code does (default: at temperature 0 each is sent once)",
    )  # fmt: skip
    model.add_argument(
        "--model-version", metavar="TEXT",
        help="your name for the model's weights; stored replies of other versions are not used",
    )  # fmt: skip
    model.add_argument(
        "--price", metavar="IN,OUT|FILE",
        help="USD per million prompt and completion tokens, or a file of prices (default: the bundled list of 2026-11-23)",
    )  # fmt: skip


def add_picture_arguments(model: argparse._ActionsContainer) -> None:
    """Adds the options of the pictures sent."""
    model.add_argument(
        "--image-format", default=str(JPEG_95), metavar="FORMAT",
        help="format of pictures sent: png, jpeg:Q or webp:Q with a quality Q from 1 to 100 (default: %(default)s)",
    )  # fmt: skip
    model.add_argument(
        "--image-detail", choices=IMAGE_DETAILS, default=argparse.SUPPRESS,
        help="detail at which the server reads pictures (default: high)",
    )  # fmt: skip


def add_run_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Adds the options of every verb that asks a model; returns their group for further ones."""
    runs = parser.add_argument_group("run")
    runs.add_argument(
        "--protocol",
        metavar="NAME",
        help=f"scoring rules: {', '.join(PROTOCOLS)} or FILE.py:NAME (default: the agent's own, which are seeact's for most)",
    )
    add_limit_arguments(runs)
    return runs


def add_limit_arguments(runs: argparse._ArgumentGroup, seed: int = 0) -> None:
    """Adds the options of seed, concurrency and cost. `seed`: the default, for the help."""
    runs.add_argument(
        "--seed",
        type=int,
        default=argparse.SUPPRESS,
        metavar="N",
        help=f"seed of the bootstrap, the model and --sample (default: {seed})",
    )
    basic(runs.add_argument(
        "--concurrency", "--max-connections", type=options.positive_int, default=4, metavar="N",
        help="maximum number of simultaneous calls (default: %(default)s)",
    ))  # fmt: skip
    basic(
        runs.add_argument(
            "--max-cost",
            type=options.positive_float,
            metavar="USD",
            help="stop before an attempt that could exceed it; needs prices, or a server that names costs",
        )
    )


def run(args: argparse.Namespace) -> int:
    """Evaluates one run, or a grid of runs."""
    models = args.model if isinstance(args.model, list) else [args.model]
    if len(models) > 1 or len(args.grounding) > 1:
        return _run_grid(args, models)
    args.model, (args.grounding,) = models[0], args.grounding
    return _run_one(args)


def _run_grid(args: argparse.Namespace, models: list[str]) -> int:
    """Runs every model with every grounding, split by split, and prints the paper's Table 2."""
    from seeact_offline.runs.grid import evaluate_grid
    from seeact_offline.tables import build_table

    refused = [
        name
        for name in ("baseline", "label", "step", "predict_only", "ungrounded", "dry_run", "batch")
        if getattr(args, name)
    ]
    if refused:
        raise InputError(refused[0], "one model and one grounding with it", f"{len(models)} and {len(args.grounding)}")
    reporters, groundings = open_reporters(args.report_to), args.grounding
    config = config_of(args, model=models[0], grounding=groundings[0])
    grid = evaluate_grid(config, models=models, groundings=groundings, watch=TerminalWatch())
    say(build_table(2, [grid.path]).screen_text())
    say(f"\nEach run has a folder in {grid.path}; `tables --table 2 {grid.path}` makes this table in other formats")
    for done in grid.runs:
        if lost := done.results.get("unanswered"):
            note(f"{done.path.name}: {none_answered(lost, done.results['n_steps'])}")
    for report in reporters:
        for done in grid.runs:
            report(done)
    return 1 if grid.n_failed or not grid.complete else 0


def _run_one(args: argparse.Namespace) -> int:
    # each is loaded where it is used, so that --help and a run stay quick
    if args.dry_run:
        from seeact_offline.runs.estimate import dry_run

        say(dry_run(config_of(args), watch=TerminalWatch()).report())
        return 0
    reporters = open_reporters(args.report_to)
    config = config_of(args)
    if args.baseline is not None:
        from seeact_offline.runs.finished import check_baseline

        # refused before anything is asked
        check_baseline(args.baseline, config)
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
    from seeact_offline.scoring.results import unanswered

    predictions = run.predictions()
    lost = unanswered(predictions)
    if lost is not None:
        note(none_answered(lost, len(predictions)))
    if config.predict_only:
        say(f"{counted(len(predictions), 'step')} predicted; `score {run.path}` scores them")
        return 1 if run.n_failed or run.n_left else 0
    if lost is not None:
        _note_what_is_left(run, args.max_cost)
        return 1
    say(short(run.results, notes()) if args.verbose else headline_text(run.results))
    say(f"\nReport: {run.path / 'report.md'}")
    if args.baseline is not None:
        from seeact_offline.runs.finished import compare

        say(f"\n{compare(args.baseline, run.path, seed=config.seed).differences()}")
        say(f"\nMore of it: compare {args.baseline} {run.path}")
    _note_what_is_left(run, args.max_cost)
    for report in reporters:
        report(run)
    return 1 if run.n_failed or run.failed_repeats or not run.results["complete"] else 0


def config_of(args: argparse.Namespace, **changes: Any) -> EvalConfig:
    """Returns the configuration of a run from the arguments; options that a verb lacks keep their defaults."""
    known = [*(field.name for field in fields(EvalConfig)), *own_options()]
    given = {name: getattr(args, name) for name in known if hasattr(args, name)}
    if hasattr(args, "named_values"):
        given["model_args"] = read_model_args(args.named_values)
    if hasattr(args, "named_texts"):
        given["metadata"] = dict(args.named_texts)
    return EvalConfig().changed(**given | changes)


def _note_what_is_left(run: Run, max_cost: float | None) -> None:
    failed, reached = run.n_failed, len(run.predictions())
    if run.n_left or not (run.results["complete"] or "unanswered" in run.results):
        what = (
            f"{run.n_left} of {counted(reached + run.n_left, 'step was', 'steps were')} not started"
            if run.n_left
            else "some repeats are unfinished"
        )
        note(f"stopped at --max-cost {max_cost}: {what}" if run.is_stopped else what)
    if failed:
        note(f"\n{failed_steps(run).markdown()}\n")
        note(
            f"{failed} of {counted(reached, 'step')} failed to run; the same command retries them, --retry-failed only them"
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


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _named_text(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text}")
    return name, value

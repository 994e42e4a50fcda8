"""`ablate-markup`: annotation with every way of marking over the same steps, in one folder, and Table 5 of it."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from seeact_offline import ablation, markup_table
from seeact_offline.ablation import Cell
from seeact_offline.cli import evaluate, options, strategies
from seeact_offline.cli.evaluate import NOT_THE_PAPERS, Job, State
from seeact_offline.cli.output import note, printable, say
from seeact_offline.cli.progress import RunProgress
from seeact_offline.dataset import load_steps
from seeact_offline.grounding import Prepared
from seeact_offline.models import open_model
from seeact_offline.models.shared import SharedReplies
from seeact_offline.records import Model, Prediction, Step, StepKey, Truth, Usage
from seeact_offline.runlog import RunDirectory
from seeact_offline.runner import Limits, answer, prepare
from seeact_offline.runner import run as run_steps

NAME = "ablate-markup"
TURN1 = ("paper", "plain", "marked", "both")
_ONE_CELLS = ("marks", "mark_position", "mark_turn1")
_AS_EVAL = {
    "grounding": "annotation", "ungrounded": False, "turns": 2, "no_image": False, "batching": strategies.BATCHINGS[0],
    "fuzzy_threshold": None, "coordinates": None, "oracle_file": None,
}  # fmt: skip
# the options of `eval` that are the same in every cell
T = TypeVar("T", bound=str)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    rows = parser.add_argument_group("rows of the table")
    rows.add_argument(
        "--kinds", type=_listed(strategies.MARK_KINDS), default=strategies.MARK_KINDS, metavar="KIND,...",
        help=f"labels: any of {', '.join(strategies.MARK_KINDS)} (default: all)",
    )  # fmt: skip
    rows.add_argument(
        "--positions", type=_listed(strategies.MARK_POSITIONS), default=("bottom-left", "bottom-center"),
        metavar="POSITION,...",
        help=f"where they go: any of {', '.join(strategies.MARK_POSITIONS)} (default: bottom-left,bottom-center)",
    )  # fmt: skip
    rows.add_argument(
        "--turn1", choices=TURN1, default=TURN1[0],
        help="picture of turn 1: plain, marked, both, or as in the paper's Table 5, which has one marked row"
        " (default: %(default)s)",
    )  # fmt: skip
    asked = parser.add_argument_group("ranking and prompts")
    options.add_group_arguments(asked)
    strategies.add_picture_argument(asked)
    evaluate.add_model_arguments(parser)
    evaluate.add_run_arguments(parser).add_argument(
        "--out", type=Path, metavar="DIR", help="folder of all rows; a killed run goes on from it (default: runs/...)"
    )


@dataclass(frozen=True)
class _Part:
    """One cell: its own run folder, and what is known of it."""

    cell: Cell
    job: Job
    folder: RunDirectory
    state: State

    def is_done(self, key: StepKey) -> bool:
        return key in self.state.done

    def keep(self, prediction: Prediction) -> None:
        self.folder.append(prediction)
        self.state.done[prediction.key] = prediction

    def show(self, progress: RunProgress, key: StepKey, resumed: bool = False) -> None:
        prediction = self.state.done[key]
        progress.add(prediction, evaluate.score(self.job, self.state, prediction), resumed)


@dataclass(frozen=True)
class _Paid:
    """What a step cost in the cells that asked it now."""

    usage: Usage


def run(args: argparse.Namespace) -> int:
    cells = ablation.cells_of(args.kinds, args.positions, args.turn1)
    ablation.check_cells(cells, args.group_size, args.merge, args.top_k)
    out = RunDirectory(args.out or evaluate.default_out(args, NAME))
    parts, model = _opened(args, cells, out)
    _announce(args, parts, out)
    with evaluate.rare_collections():
        complete = asyncio.run(_ask_all(args, parts, SharedReplies(model, out.calls)))
    return _finish(args, parts, out, complete)


# --- opening ---


def _opened(args: argparse.Namespace, cells: Sequence[Cell], out: RunDirectory) -> tuple[list[_Part], Model]:
    """The cells in their folders, and the model; no folder is claimed before all is known to be usable."""
    first = evaluate.open_job(_as_eval(args, cells[0]))
    identity = {name: value for name, value in first.identity.items() if name not in _ONE_CELLS} | {"ablation": NAME}
    settings = {name: value for name, value in first.settings.items() if name not in _ONE_CELLS}
    out.check(identity)
    truths: dict[StepKey, Truth] = {}
    parts = [_part(args, first, cell, out, truths) for cell in cells]
    # replies are kept by SharedReplies, whatever the model
    model = open_model(args.model, replace(evaluate.model_options(args, out), cache=None))
    out.claim(identity, settings)
    for part in parts:
        part.folder.claim(part.job.identity, part.job.settings)
    return parts, model


def _part(args: argparse.Namespace, first: Job, cell: Cell, out: RunDirectory, truths: dict[StepKey, Truth]) -> _Part:
    """One cell with what it has done; `truths` is the same for all."""
    opened = strategies.open_strategy(_as_eval(args, cell))
    identity = first.identity | opened.identity | {"ablation": NAME}
    job = replace(first, grounding=opened.grounding, identity=identity, settings=first.settings | opened.shown)
    folder = RunDirectory(out.path / cell.name)
    if folder.path.exists():
        folder.check(identity)
    return _Part(cell, job, folder, State({key: p for key, p in folder.load().items() if p.ran}, truths))


def _as_eval(args: argparse.Namespace, cell: Cell) -> argparse.Namespace:
    """The same arguments as `eval` has them for this cell."""
    marks = {"marks": cell.kind, "mark_position": cell.position, "mark_turn1": cell.in_turn1 or None}
    return argparse.Namespace(**{**vars(args), **_AS_EVAL, **marks})


def _announce(args: argparse.Namespace, parts: Sequence[_Part], out: RunDirectory) -> None:
    if args.dataset == "sample":
        say(NOT_THE_PAPERS)
    job, done = parts[0].job, sum(len(part.state.done) for part in parts)
    of = f"{job.settings['dataset']} ({job.settings['split']})"
    note(f"{len(parts)} ways of marking, {len(job.keys)} steps of {of} each, model {args.model}, out {out.path}")
    if done:
        note(f"{done} of {len(parts) * len(job.keys)} are done already and are not asked again")


# --- asking ---


async def _ask_all(args: argparse.Namespace, parts: Sequence[_Part], replies: SharedReplies) -> bool:
    """Step by step, each in all cells one after the other: so a run that is stopped has the same steps in each, the first
    cell always pays for what is shared, and a page is opened once. False when the cost limit left some over."""
    job = parts[0].job
    spent = sum(evaluate.spent_by(part.state) for part in parts)
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(part.folder)
        progress = stack.enter_context(RunProgress(len(parts) * len(job.keys), str(job.settings["split"])))

        async def work(step: Step) -> _Paid:
            return await _ask_step(step, args.top_k, parts, replies, progress)

        try:
            steps = _open_steps(args, parts, progress)
            complete = await run_steps(steps, work, lambda _: None, Limits(args.concurrency, args.max_cost, spent))
            for _ in steps:
                # what an earlier run has done beyond the first step left over stays in the files
                pass
            return complete
        finally:
            await replies.aclose()


def _open_steps(args: argparse.Namespace, parts: Sequence[_Part], progress: RunProgress) -> Iterator[Step]:
    """Streams the split, notes every truth, and gives the steps that some cell still has to ask."""
    for step in load_steps(args.dataset, parts[0].job.settings["split"], limit=args.limit):
        parts[0].state.truths[step.key] = step.truth
        for part in parts:
            if part.is_done(step.key):
                part.show(progress, step.key, resumed=True)
        if not all(part.is_done(step.key) for part in parts):
            yield step


async def _ask_step(
    step: Step, top_k: int, parts: Sequence[_Part], replies: SharedReplies, progress: RunProgress
) -> _Paid:
    """The step in every cell that has not asked it, each answer kept at once."""

    @cache
    def ready() -> Prepared:
        return prepare(step, parts[0].job.scores, top_k)

    usage = Usage()
    for part in parts:
        if not part.is_done(step.key):
            prediction = await _ask_cell(step, part, ready, replies)
            part.keep(prediction)
            part.show(progress, step.key)
            usage += prediction.usage
    return _Paid(usage)


async def _ask_cell(step: Step, part: _Part, ready: Callable[[], Prepared], replies: SharedReplies) -> Prediction:
    model = replies.of(part.cell.name)
    prediction = await answer(step, ready, part.job.grounding, model)
    if not model.reused:
        return prediction
    return replace(prediction, notes=tuple(sorted([*prediction.notes, ("reply_reused", model.reused)])))


# --- results ---


def _finish(args: argparse.Namespace, parts: Sequence[_Part], out: RunDirectory, complete: bool) -> int:
    """Scores what was reached, writes every cell's files and the table, prints it. Returns the exit status."""
    for part in parts:
        order = [key for key in part.job.keys if part.is_done(key)]
        evaluate.write_results(part.job, part.folder, part.state, order, complete)
    shared = [key for key in parts[0].job.keys if all(part.is_done(key) for part in parts)]
    table = _table(args, parts, shared, complete)
    _write(args, out, table)
    say(markup_table.body(table))
    say(f"\nTable: {out.path / 'table.md'}")
    failed = sum(not p.ran for part in parts for p in part.state.done.values())
    if not complete:
        left = len(parts[0].job.keys) - len(shared)
        note(f"stopped at --max-cost {args.max_cost}: {left} of {len(parts[0].job.keys)} steps are not in the table")
    if failed:
        note(
            f"{failed} answers failed to run: see failures in each row's results.json; the same command tries them again"
        )
    return 1 if failed or not complete else 0


def _table(args: argparse.Namespace, parts: Sequence[_Part], keys: Sequence[StepKey], complete: bool) -> dict[str, Any]:
    job = parts[0].job
    truths = [parts[0].state.truths[key] for key in keys]
    results = [
        ablation.cell_result(
            part.cell, [part.state.done[key] for key in keys], truths, job.protocol, args.top_k, args.seed
        )
        for part in parts
    ]
    settings = {name: value for name, value in job.settings.items() if name not in _ONE_CELLS}
    return ablation.markup_table(results, settings, complete, args.seed)


def _write(args: argparse.Namespace, out: RunDirectory, table: dict[str, Any]) -> None:
    remark = NOT_THE_PAPERS if args.dataset == "sample" else ""
    out.write("table.json", json.dumps(table, indent=2) + "\n")
    out.write("table.md", printable(markup_table.markdown(table, remark)))
    out.write("table.csv", markup_table.csv_text(table))
    out.write("table.tex", printable(markup_table.latex(table, remark)))


def _listed(known: Sequence[T]) -> Callable[[str], tuple[T, ...]]:
    """Reads some of `known`, separated by commas."""

    def read(text: str) -> tuple[T, ...]:
        found = tuple(one for word in text.split(",") for one in known if one == word.strip())
        if not found or len(set(found)) < len(text.split(",")):
            raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, each once, got {text}")
        return found

    return read

"""The model card of a fine-tuned baseline: its base, data and recipe, as resolved, its results,
and its learning curve as a picture."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seeact_offline.files.markdown import cell, percent, table
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.report import first_tasks
from seeact_offline.tables.figures import FAINT, GRID, INK
from seeact_offline.training.baseline import Baseline, FineTuning
from seeact_offline.training.training_rows import CUTS, RowCounts

SAMPLE = (
    "It was trained on the bundled sample, fictional websites made to try the program: no figure here says anything of"
    " real pages."
)

HELD_OUT: dict[str, tuple[str, Callable[[float], str]]] = {
    "step": ("step", lambda value: str(int(value))),
    "eval_loss": ("loss held out", lambda value: f"{value:.3f}"),
    "eval_letter_accuracy": ("right option, %", percent),
    "eval_answer_accuracy": ("whole answer, %", percent),
}
"""The Trainer's figures of the tasks held out -> a column's title, and its number format."""
METRICS = {
    "element_accuracy": "element accuracy, %",
    "operation_f1": "operation F1, %",
    "step_success_rate": "step success, %",
    "ceiling": "ceiling, %",
}
RESULTS = ("split", "protocol", "candidates ranked by", "tasks", "steps", *METRICS.values())
AVERAGES = (
    "The averages that the protocol quotes (macro: mean over tasks of the task's mean; micro: mean over steps), with"
    " 95 % intervals."
)

INCHES = (9.6, 5)
DOTS_PER_INCH = 120
LOSS, ASIDE, LETTERS, ANSWERS = "#98a2b3", "#1f6feb", "#12825b", "#d9730d"

SHARES = {
    "eval_letter_accuracy": (LETTERS, "right option, tasks held out"),
    "eval_answer_accuracy": (ANSWERS, "whole answer, tasks held out"),
}
"""Entries of the log that are drawn in percent: their colours and names."""


@dataclass(frozen=True, slots=True)
class FineTuningResult:
    """The outcome of a fine-tuning."""

    folder: Path
    made: RowCounts
    history: tuple[Mapping[str, float], ...]
    """The Trainer's log."""
    seconds: float
    """Seconds of training, in this process."""
    results: tuple[Mapping[str, Any], ...] = ()
    """`results.json` of each split."""


def render(
    asked: FineTuning, baseline: Baseline, base: str, tuned: FineTuningResult, recipe: Mapping[str, Any],
    data: Mapping[str, Any], machine: Mapping[str, Any],
) -> str:  # fmt: skip
    """Markdown with the hub's front matter.

    `base`: the model that training started from, for people. `recipe`: every value that decides the weights, as
    resolved. `data`: name, split and fingerprint of the data, and the test splits that were compared with it.
    `machine`: devices and versions.
    """
    tags = "".join(f"\n- {tag}" for tag in (baseline.tag, "web-agents", "mind2web"))
    parts = [
        f"---\nlibrary_name: transformers\ntags:{tags}\n---",
        f"# {cell(f'{baseline.title}, from {base}')}",
        f"Fine-tuned from {cell(base)} to {baseline.learns}, by seeact-offline.",
        *([f"```\n{asked.command.replace('```', '')}\n```"] if asked.command else []),
        *baseline.remarks,
        *([SAMPLE] if data["dataset"] == "sample" else []),
        "## Recipe",
        _named(recipe),
        "## Data",
        _named({**data, **_counted(tuned.made)}),
        *_held_out(tuned.history),
        *(["## Test splits", table(RESULTS, [*map(_test_row, tuned.results)]), AVERAGES] if tuned.results else []),
        "## Machine",
        _named(machine),
        "## Limits",
        f"{baseline.limits} Pages are English, and none of"
        " the test tasks was trained on, as far as the splits named above were compared. It has learnt the wording of"
        " the prompts it was trained with, and no other.",
    ]
    return "\n\n".join(parts) + "\n"


def _counted(counts: RowCounts) -> dict[str, Any]:
    return {
        "steps trained on": counts.steps,
        "steps held out": counts.held_out_steps,
        "questions, all epochs": counts.questions,
        **{f"steps left out: {name}": number for name, number in sorted(counts.left_out.items())},
        **{meaning: counts.cuts[name] for name, meaning in CUTS.items()},
    }


def _held_out(history: Sequence[Mapping[str, float]]) -> list[str]:
    evaluations = [entry for entry in history if "eval_loss" in entry]
    if not evaluations:
        return []
    shown = {name: how for name, how in HELD_OUT.items() if name in evaluations[0]}
    rows = [[write(entry[name]) for name, (_, write) in shown.items()] for entry in evaluations]
    titles = [title for title, _ in shown.values()]
    return ["## Tasks held out", table(titles, rows), "![learning curve](learning_curve.png)"]


def _test_row(results: Mapping[str, Any]) -> list[str]:
    limit = results.get("limit")
    tasks = "all" if limit is None else f"{first_tasks(limit).removeprefix('the ')} only"
    of = [cell(results["split"]), cell(results.get("protocol", "-")), cell(results.get("ranker") or "none"), tasks]
    return [*of, str(results["n_steps"]), *(_headline(results, name) for name in METRICS)]


def _headline(results: Mapping[str, Any], name: str) -> str:
    """The average that the protocol quotes, with its name and interval."""
    if not isinstance(results.get(name), Mapping):
        return "-"
    figure = headline(results.get("protocol", ""), name, results[name])
    interval = "" if figure["ci95"] is None else " ({} to {})".format(*map(percent, figure["ci95"]))
    return f"{percent(figure['value'])} {figure['average']}{interval}"


def _named(values: Mapping[str, Any]) -> str:
    rows = [
        (cell(name), cell(value if isinstance(value, str) else json.dumps(value))) for name, value in values.items()
    ]
    return table(("", ""), rows)


# --- learning curve ---


def learning_curve_png(history: Sequence[Mapping[str, float]], title: str) -> bytes:
    """Draws the Trainer's log as PNG, losses and shares in a panel each;
    the same history and title give the same bytes."""
    # not pyplot, which keeps every figure and may look for a screen
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    has_shares = any(name in entry for entry in history for name in SHARES)
    figure = Figure(INCHES, facecolor="white", layout="constrained")
    panels = figure.subplots(1 + has_shares, sharex=True, squeeze=False)[:, 0]
    loss = panels[0]
    drawn = [
        _line(loss, history, "loss", LOSS, "training loss"),
        _line(loss, history, "eval_loss", ASIDE, "loss, tasks held out", "s--"),
    ]
    loss.set_ylabel("loss a token", color=FAINT)
    loss.set_ylim(bottom=0)
    if has_shares:
        share = panels[1]
        drawn += [_line(share, history, name, colour, label, "o-", 100) for name, (colour, label) in SHARES.items()]
        share.set_ylim(0, 103)
        share.set_ylabel("%", color=FAINT)
    panels[-1].set_xlabel("steps of the optimizer", color=FAINT)
    loss.set_xlim(left=0)
    # whole steps alone
    loss.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not any(drawn):
        loss.set_axis_off()
        loss.text(0.5, 0.5, "no loss was logged", color=FAINT, ha="center", transform=loss.transAxes)
    for axes in panels:
        axes.grid(axis="y", color=GRID)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelcolor=FAINT)
    title = title.encode(errors="replace").decode()
    loss.set_title(title, loc="left", fontsize=13, color=INK, pad=14, parse_math=False)
    if any(axes.get_lines() for axes in panels):
        figure.legend(loc="outside lower center", frameon=False, labelcolor=INK, ncols=2)
    buffer = io.BytesIO()
    # matplotlib's version must not get into the file
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def _line(
    axes: Any,
    history: Sequence[Mapping[str, float]],
    name: str,
    colour: str,
    label: str,
    style: str = "-",
    times: float = 1,
) -> bool:
    """Draws what the log has under this name; False where that is nothing."""
    points = {entry["step"]: times * entry[name] for entry in history if name in entry}
    if points:
        # a line of one point cannot be seen
        style = style if len(points) > 1 else style.strip("-") or "o"
        axes.plot([*points], [*points.values()], style, color=colour, label=label)
    return bool(points)

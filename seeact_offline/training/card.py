"""The model card of a fine-tuned baseline: its base, data and recipe, as resolved, and its results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seeact_offline.files.markdown import cell, percent, table
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.report import first_tasks
from seeact_offline.training.examples import CUTS

SAMPLE = "It was trained on the bundled sample, fictional websites made to try the program: no figure here says anything of real pages."

HELD_OUT: dict[str, tuple[str, Callable[[float], str]]] = {
    "step": ("step", lambda value: str(int(value))),
    "eval_loss": ("loss held out", lambda value: f"{value:.3f}"),
    "eval_letter_accuracy": ("right option, %", percent),
    "eval_answer_accuracy": ("whole answer, %", percent),
}
"""The Trainer's figures of the tasks held out -> a column's title, and its number format."""
RESULTS = (
    "split",
    "protocol",
    "candidates ranked by",
    "tasks",
    "steps",
    "element accuracy, %",
    "operation F1, %",
    "step success, %",
    "ceiling, %",
)
AVERAGES = "The averages that the protocol quotes (macro: mean over tasks of the task's mean; micro: mean over steps), with 95 % intervals."


@dataclass(frozen=True, slots=True)
class Card:
    """The contents of a model card."""

    title: str
    base: str
    """The model that training started from, for people."""
    learns: str
    """Its purpose, behind `to`."""
    limits: str
    """The parts that its questions leave out."""
    tag: str
    """Its task, as the hub calls it."""
    command: str
    """The command that makes it again; empty if it was not made by one."""
    recipe: Mapping[str, Any]
    """Every value that decides the weights, as resolved."""
    machine: Mapping[str, Any]
    """Devices and versions."""
    data: Mapping[str, Any]
    """The data's name, split and fingerprint, and the test splits that were compared with it."""
    counts: Mapping[str, Any]
    """`RowCounts.to_dict()`."""
    history: Sequence[Mapping[str, float]] = ()
    results: Sequence[Mapping[str, Any]] = ()
    """`results.json` of each split."""
    remarks: Sequence[str] = field(default_factory=tuple)


def render(card: Card) -> str:
    """Markdown with the hub's front matter."""
    head = [
        "---",
        "library_name: transformers",
        "tags:",
        *(f"- {tag}" for tag in (card.tag, "web-agents", "mind2web")),
        "---",
    ]
    parts = [
        "\n".join(head),
        f"# {cell(card.title)}",
        f"Fine-tuned from {cell(card.base)} to {card.learns}, by seeact-offline.",
        *([f"```\n{card.command.replace('```', '')}\n```"] if card.command else []),
        *card.remarks,
        "## Recipe",
        _named(card.recipe),
        "## Data",
        _named({**card.data, **_counted(card.counts)}),
        *_reached(card),
        "## Machine",
        _named(card.machine),
        "## Limits",
        f"{card.limits} Pages are English, and none of"
        " the test tasks was trained on, as far as the splits named above were compared. It has learnt the wording of the"
        " prompts it was trained with, and no other.",
    ]
    return "\n\n".join(parts) + "\n"


def _counted(counts: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "steps trained on": counts["steps"],
        "steps held out": counts["held_out_steps"],
        "questions, all epochs": counts["questions"],
    }
    found |= {f"steps left out: {name}": number for name, number in counts["left_out"].items()}
    return found | {CUTS[name]: number for name, number in counts["cuts"].items()}


def _reached(card: Card) -> list[str]:
    parts = []
    evaluations = [entry for entry in card.history if "eval_loss" in entry]
    if evaluations:
        shown = {name: how for name, how in HELD_OUT.items() if name in evaluations[0]}
        rows = [[write(one[name]) for name, (_, write) in shown.items()] for one in evaluations]
        parts += ["## Tasks held out", table([header for header, _ in shown.values()], rows)]
        parts += ["![learning curve](learning_curve.png)"]
    if card.results:
        names = ("element_accuracy", "operation_f1", "step_success_rate", "ceiling")
        splits = []
        for one in card.results:
            figures = [_headline(one, name) for name in names]
            limit = one.get("limit")
            tasks = "all" if limit is None else f"{first_tasks(limit).removeprefix('the ')} only"
            of = [cell(one["split"]), cell(one.get("protocol", "-")), cell(one.get("ranker") or "none"), tasks]
            splits.append([*of, str(one["n_steps"]), *figures])
        parts += ["## Test splits", table(RESULTS, splits), AVERAGES]
    return parts


def _headline(results: Mapping[str, Any], name: str) -> str:
    """The average that the protocol quotes, with its name and interval."""
    if not isinstance(results.get(name), Mapping):
        return "-"
    found = headline(results.get("protocol", ""), name, results[name])
    interval = "" if found["ci95"] is None else " ({} to {})".format(*map(percent, found["ci95"]))
    return f"{percent(found['value'])} {found['average']}{interval}"


def _named(values: Mapping[str, Any]) -> str:
    rows = [
        (cell(name), cell(value if isinstance(value, str) else json.dumps(value))) for name, value in values.items()
    ]
    return table(("", ""), rows)

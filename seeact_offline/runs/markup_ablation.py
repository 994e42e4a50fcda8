"""The markup ablation: kinds of label, where they lie, and whether turn 1 shows them, over the same steps.

Its table is the layout of the SeeAct paper's Table 5 (arXiv 2401.01614v2): a row is one way of marking, a *cell* here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from seeact_offline.grounding.groups import split_groups
from seeact_offline.pages.marks import MARK_KINDS, MarkKind, MarkPosition, mark_capacity
from seeact_offline.records import InputError, MergeRule, Metric, Prediction, StepScore, Summary, Truth, Usage
from seeact_offline.scoring import aggregate, inference
from seeact_offline.scoring import step_scores as scoring
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.rules import Protocol

Turn1 = Literal["paper", "plain", "marked", "both"]
METRICS = ("element_accuracy", "operation_f1", "step_success_rate")
_VALUES = {"element_accuracy": "element", "operation_f1": "operation_f1", "step_success_rate": "success"}
"""The field of a step's score that each is the average of."""


@dataclass(frozen=True, slots=True)
class Marking:
    """One way of marking."""

    kind: MarkKind
    position: MarkPosition
    in_turn1: bool = False
    """Whether turn 1 shows the marked picture too."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.kind}-{self.position}" + ("-marked" if self.in_turn1 else "")

    @property
    def turn1(self) -> str:
        """What turn 1 shows."""
        return "marked" if self.in_turn1 else "plain"


@dataclass(frozen=True, slots=True)
class CellResult:
    """One cell over the steps that all cells have."""

    cell: Marking
    scores: Sequence[StepScore]
    summary: Summary
    failed: int
    """Steps that failed to run."""


def cells_of(kinds: Sequence[MarkKind], positions: Sequence[MarkPosition], turn1: Turn1) -> list[Marking]:
    """Every combination, those with a plain turn 1 first. `paper`: marked in turn 1 where the paper's Table 5 is."""
    plain = [Marking(kind, position) for kind in kinds for position in positions]
    marked = [Marking(cell.kind, cell.position, in_turn1=True) for cell in plain]
    if turn1 == "paper":
        marked = [cell for cell in marked if cell in paper_table5()]
    return [*(plain if turn1 != "marked" else ()), *(marked if turn1 != "plain" else ())]


def check_cells(cells: Sequence[Marking], group_size: int, merge: MergeRule, top_k: int) -> None:
    """Raises InputError for a kind with fewer labels than one picture may need, saying what to use instead."""
    most, why = _most_in_a_picture(group_size, merge, top_k)
    for kind in dict.fromkeys(cell.kind for cell in cells):
        capacity = mark_capacity(kind)
        if capacity is not None and most > capacity:
            others = [other for other in MARK_KINDS if (mark_capacity(other) or most) >= most]
            raise InputError(
                "kinds",
                f"at most {capacity} elements in one picture for {kind}",
                f"{most} by {why}; use kinds {','.join(others)} or another {why.split()[0]}",
            )


def _most_in_a_picture(group_size: int, merge: MergeRule, top_k: int) -> tuple[int, str]:
    """How many elements one picture may have to mark, and the option that decides it."""
    if merge == "single":
        return top_k, f"top_k {top_k} with merge single"
    groups = len(split_groups([""] * top_k, group_size)) if merge == "final-round" else 0
    if groups > group_size:
        return groups, f"group_size {group_size}, as the final round of top_k {top_k} holds a pick of every group"
    return group_size, f"group_size {group_size}"


@cache
def paper_table5() -> Mapping[Marking, Mapping[str, float]]:
    """The paper's figures by cell and metric, as fractions. Source: SeeAct, arXiv 2401.01614v2, Table 5."""
    table = json.loads((files("seeact_offline") / "paper" / "table5.json").read_text(encoding="utf-8"))
    return {
        Marking(row["kind"], row["position"], row["turn1"] == "marked"): {
            name: round(figure / 100, 4) for name, figure in zip(table["columns"], row["figures"], strict=True)
        }
        for row in table["rows"]
    }


def cell_result(
    cell: Marking, predictions: Sequence[Prediction], truths: Sequence[Truth], protocol: Protocol, top_k: int, seed: int
) -> CellResult:
    """Scores one cell. Every cell must be given the same steps, in the same order."""
    scores, summary = scoring.summarise(predictions, truths, protocol, top_k, seed)
    return CellResult(cell, scores, summary, sum(not p.ran for p in predictions))


def best_of(results: Sequence[CellResult], protocol: str) -> CellResult:
    """The highest Step SR as the protocol quotes it, then the highest Element Accuracy, then the first."""
    ranked = ("step_success_rate", "element_accuracy")
    return max(
        results, key=lambda one: [headline(protocol, name, asdict(figure(one, name)))["value"] for name in ranked]
    )


def figure(result: CellResult, name: str) -> Metric:
    """One of METRICS, all of which annotation has."""
    metric = getattr(result.summary, name)
    assert isinstance(metric, Metric)
    return metric


def markup_table(
    results: Sequence[CellResult], settings: Mapping[str, Any], complete: bool, seed: int
) -> dict[str, Any]:
    """`table.json`, all shares as fractions: each cell's figures, their difference to the best row, the paper's."""
    best = best_of(results, settings["protocol"])
    first = results[0].summary
    return {
        "schema": 1,
        **settings,
        "n_tasks": first.n_tasks,
        "n_steps": first.n_steps,
        "complete": complete,
        "best": best.cell.name,
        "rows": [_row(result, best, seed) for result in results],
        "usage": sum((result.summary.usage for result in results), Usage()).named,
    }


def _row(result: CellResult, best: CellResult, seed: int) -> dict[str, Any]:
    cell, summary = result.cell, result.summary
    paper = paper_table5().get(cell)
    return {
        "kind": cell.kind,
        "position": cell.position,
        "turn1": cell.turn1,
        "folder": cell.name,
        **{name: asdict(figure(result, name)) for name in METRICS},
        "difference_to_best": None if result is best else difference(result, best, seed),
        "paper": None if paper is None else dict(paper),
        "usage": summary.usage.named,
        "replies_reused": summary.notes.get("reply_reused", 0),
        "failed_steps": result.failed,
        "unreadable_replies": sum(summary.reply_failures.values()),
    }


def difference(result: CellResult, other: CellResult, seed: int) -> dict[str, Any]:
    """Metric -> the difference of its macro averages, paired by step, clustered by task."""
    return {name: asdict(inference.gap(_task_means(result, name) - _task_means(other, name), seed)) for name in METRICS}


def _task_means(result: CellResult, name: str) -> np.ndarray:
    """Shape (n_tasks,)."""
    values = [float(getattr(score, _VALUES[name]) or 0.0) for score in result.scores]
    return aggregate.task_means(list(aggregate.by_task([score.key for score in result.scores], values).values()))

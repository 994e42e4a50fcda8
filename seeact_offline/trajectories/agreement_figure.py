"""The figure of `agreement`: a row for each judge, of agreement with labels and of Cohen's kappa, with intervals. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

from seeact_offline.scoring.report import counted
from seeact_offline.tables.figures import COLOURS, FAINT, GRID, INCHES, INK, printable, shortened
from seeact_offline.trajectories.judgements import CONSTRUCTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_agreement(found: Mapping[str, Any]) -> Figure:
    """`found`: `judge_agreement.Agreements` as a dictionary; a row for each judge, of agreement and of Cohen's kappa."""
    from matplotlib.figure import Figure

    judges = found["judges"]
    figure = Figure((INCHES[0], 2 + 0.42 * len(judges)), facecolor="white", layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name, title, scale in zip(
        panels, ("agreement", "kappa"), ("Agreement with labels", "Cohen's kappa"), (100, 1), strict=True
    ):
        for place, judge in enumerate(judges):
            if (one := judge[name]) is not None:
                value, (low, high) = one["value"], one["ci95"] or (one["value"], one["value"])
                sides = [[scale * max(0.0, value - low)], [scale * max(0.0, high - value)]]
                axes.errorbar([scale * value], [place], xerr=sides, fmt="o", color=COLOURS[0], markersize=7, capsize=3)
        axes.set_title(title, loc="left", fontsize=12, color=INK)
        axes.set_xlim(right=scale)
        axes.spines[["left", "top", "right"]].set_visible(False)
        axes.grid(axis="x", color=GRID)
        axes.tick_params(axis="both", labelcolor=FAINT, length=0)
        axes.set_xlabel("% of verdicts" if scale == 100 else "0: as by chance", color=FAINT)
    n_tasks = max((judge["n_tasks"] for judge in judges), default=0)
    size = f"{counted(found['n_labels'], 'labelled trajectory', 'labelled trajectories')}, {counted(n_tasks, 'task')}"
    kind = "constructed labels (right or wrong by the way they were made)" if CONSTRUCTED in found["sources"] else ""
    others = ", ".join(source for source in found["sources"] if source != CONSTRUCTED)
    of = "; ".join(filter(None, [size, kind, others and f"labels from {others}"]))
    figure.suptitle(fill(printable(of), 120), x=0.01, ha="left", fontsize=9.5, color=FAINT)
    names = [shortened(f"{judge['judge']} {judge['model']}, k {judge['k'] or '-'}") for judge in judges]
    panels[0].set_yticks(range(len(judges)), [fill(name, 34) for name in names])
    panels[0].set_ylim(len(judges) - 0.5, -0.5)
    return figure

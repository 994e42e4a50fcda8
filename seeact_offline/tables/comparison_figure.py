"""The figure of `compare`: steps by the number of runs that solve them, and each run beside the union of all. Computes
nothing."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.report import size_in_words
from seeact_offline.tables.figures import COLOURS, FAINT, GRID, INCHES, INK, below_title, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_comparison(comparison: Mapping[str, Any]) -> Figure:
    """`comparison`: a comparison of three or more runs, as its `to_dict` gives it."""
    from matplotlib.figure import Figure

    overlap, runs = comparison["overlap"], comparison["runs"]
    figure = Figure((INCHES[0], 2.6 + 0.42 * len(runs)), facecolor="white", layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_counts(left, overlap)
    _draw_runs(right, comparison)
    about = f"{size_in_words(comparison['n_steps'], comparison['n_tasks'])}, protocol {comparison['protocol']}"
    for axes, title in (
        (left, f"Steps solved by k of {len(runs)} runs"),
        (right, f"{METRICS[overlap['metric']]}, and the union"),
    ):
        lines = below_title(axes, about, 60)
        axes.set_title(title, loc="left", fontsize=12, color=INK, pad=14 + 13 * lines)
        axes.spines[["left", "top", "right"]].set_visible(False)
        axes.tick_params(axis="both", labelcolor=FAINT, length=0)
        axes.grid(axis="x", color=GRID)
        axes.set_axisbelow(True)
    return figure


def _draw_counts(axes: Axes, overlap: Mapping[str, Any]) -> None:
    counts = [solved["steps"] for solved in overlap["solved_by"]]
    places = range(len(counts))
    colours = [COLOURS[1], *[COLOURS[0]] * (len(counts) - 1)]
    axes.barh(places, counts, 0.7, color=colours)
    for place, steps in zip(places, counts, strict=True):
        axes.annotate(
            str(steps), (steps, place), (3, 0), textcoords="offset points", va="center", fontsize=9, color=INK
        )
    axes.set_yticks(places, ["no run", *map(str, places[1:])])
    axes.set_ylim(-0.6, len(counts) - 0.4)
    axes.margins(x=0.12)
    axes.set_xlabel("steps", color=FAINT)


def _draw_runs(axes: Axes, comparison: Mapping[str, Any]) -> None:
    overlap, runs = comparison["overlap"], comparison["runs"]
    figures = comparison["figures"][overlap["metric"]]
    low, high = (100 * end for end in overlap["union"]["ci95"])
    axes.axvspan(low, high, color=COLOURS[2], alpha=0.15, linewidth=0)
    axes.axvline(100 * overlap["union"]["macro"], color=COLOURS[2])
    for place, name in enumerate(runs):
        value, (low, high) = figures[name]["macro"], figures[name]["ci95"]
        sides = [[100 * max(0.0, value - low)], [100 * max(0.0, high - value)]]
        axes.errorbar([100 * value], [place], xerr=sides, fmt="o", color=COLOURS[0], markersize=7, capsize=3)
    names = [f"{fill(shortened(name), 28)}\n{len(overlap['alone'][name])} alone" for name in runs]
    axes.set_yticks(range(len(runs)), names)
    axes.set_ylim(len(runs) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("%, macro, with 95 % intervals; the band: the union of all runs", color=FAINT)

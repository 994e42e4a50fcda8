"""The figure of `improve`: cycle against S@k, and against Step SR on the test splits, with intervals. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from seeact_offline.scoring.report import Extent, data_in_words
from seeact_offline.tables.figures import COLOURS, FAINT, GRID, INK, MARKERS, drawn, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def improvement_png(results: Mapping[str, Any]) -> bytes:
    """`results`: as `improvement.json` holds them. The same results give the same bytes."""
    return drawn(draw_improvement, results, ".png")


def draw_improvement(results: Mapping[str, Any]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure((11, 5), facecolor="white", layout="constrained")
    left, right = figure.subplots(1, 2)
    cycles = results["cycles"]
    explored = [one for one in cycles if "exploration" in one]
    figure.suptitle(fill(printable(_data(results, explored)), 140), x=0.01, ha="left", fontsize=9.5, color=FAINT)
    for number, k in enumerate(dict.fromkeys((1, results["attempts"]))):
        found = [one["exploration"]["s_at"][k - 1] for one in explored]
        _line(left, [one["cycle"] + number / 20 for one in explored], found, number, f"S@{k}")
    _panel(left, "Train tasks with an accepted attempt", [one["cycle"] for one in cycles])
    for number, split in enumerate(cycles[0]["tests"]):
        for who, style, name in (("model", "-", split), ("control", ":", f"{split}, control")):
            with_it = [one for one in cycles if who in one["tests"][split]]
            found = [one["tests"][split][who]["step_success_rate"] for one in with_it]
            shift = (number - 1) / 20 + (who == "control") / 40
            _line(right, [one["cycle"] + shift for one in with_it], found, number, name, style)
    _panel(right, "Step SR on the test splits, after the cycle", [one["cycle"] for one in cycles])
    return figure


def _data(results: Mapping[str, Any], explored: Sequence[Mapping[str, Any]]) -> str:
    """The data of both panels in words."""
    trained = [
        Extent(results["dataset"], "train", one["exploration"]["n_steps"], one["exploration"]["n_tasks"])
        for one in explored[:1]
    ]
    tested = [
        Extent(results["test_data"], split, found["model"]["n_steps"], found["model"]["n_tasks"])
        for split, found in results["cycles"][0]["tests"].items()
    ]
    return data_in_words([*trained, *tested])


def _line(
    axes: Axes, at: Sequence[float], found: Sequence[Mapping[str, Any]], number: int, label: str, style: str = "-"
) -> None:
    known = [(place, one) for place, one in zip(at, found, strict=True) if one["value"] is not None]
    if not known:
        return
    values = [100 * one["value"] for _, one in known]
    ends = [one["ci95"] or (one["value"],) * 2 for _, one in known]
    sides = [
        [max(0.0, value - 100 * low) for value, (low, _) in zip(values, ends, strict=True)],
        [max(0.0, 100 * high - value) for value, (_, high) in zip(values, ends, strict=True)],
    ]
    axes.errorbar(
        [place for place, _ in known], values, sides, fmt=MARKERS[number % len(MARKERS)] + style,
        color=COLOURS[number % len(COLOURS)], capsize=3, elinewidth=1, markersize=6, label=label,
    )  # fmt: skip


def _panel(axes: Axes, title: str, cycles: Sequence[int]) -> None:
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.set_xticks(cycles)
    axes.set_xlim(min(cycles) - 0.4, max(cycles) + 0.4)
    axes.set_ylim(0, 103)
    axes.set_xlabel("cycle (0: imitation)", color=FAINT)
    axes.set_ylabel("%, 95 % interval", color=FAINT)
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID)
    axes.tick_params(labelcolor=FAINT, length=0)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, labelcolor=INK, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)

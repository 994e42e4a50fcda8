"""The recall curve as a picture."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from seeact_offline.ranking.recall import CUT, CurvePoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (9.6, 6)
DOTS_PER_INCH = 150
INK, FAINT, GRID = "#1d2433", "#667085", "#e4e7ec"
K_TICKS = (1, *range(10, 101, 10))


class Line(NamedTuple):
    """One line of the chart."""

    label: str
    colour: str
    value: Callable[[CurvePoint], float]


# the last line is drawn over the others and comes first in the legend
LINES = (
    Line("recall of steps that have a right element", "#98a2b3", lambda p: p.recall_with_positive),
    Line("ceiling of Step SR, macro over tasks", "#d9730d", lambda p: p.step_sr_ceiling_macro),
    Line("recall of all steps = ceiling of Step SR, micro", "#1f6feb", lambda p: p.recall),
)


def curve_png(points: Sequence[CurvePoint], title: str) -> bytes:
    """The curve as PNG; the same points and title give the same bytes."""
    buffer = io.BytesIO()
    # matplotlib's version must not get into the file
    draw_curve(points, title).savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def draw_curve(points: Sequence[CurvePoint], title: str) -> Figure:
    # not pyplot, which keeps every figure and may look for a screen
    from matplotlib.figure import Figure

    figure = Figure(INCHES, facecolor="white")
    figure.subplots_adjust(left=0.08, right=0.96, top=0.88, bottom=0.13)
    axes = figure.subplots()
    for line in LINES:
        shares = [100 * line.value(point) for point in points]
        axes.plot(
            [point.k for point in points], shares, color=line.colour, linewidth=2, label=line.label, clip_on=False
        )
    _mark_the_cut(axes, points)
    # a file's name may hold anything: halves of surrogate pairs cannot be drawn, and a dollar sign must not begin a formula
    title = title.encode(errors="replace").decode()
    axes.set_title(title, loc="left", fontsize=14, color=INK, pad=18, parse_math=False)
    axes.legend(loc="lower right", bbox_to_anchor=(0.98, 0.18), reverse=True, frameon=False, labelcolor=INK)
    _style_axes(axes, points[-1].k)
    return figure


def _mark_the_cut(axes: Axes, points: Sequence[CurvePoint]) -> None:
    """Marks the value where the pipeline cuts."""
    at = next((point for point in points if point.k == CUT), None)
    if at is None:
        return
    share, colour = 100 * at.recall, LINES[-1].colour
    axes.axvline(at.k, color="#b8c7e6", linewidth=1, zorder=1)
    axes.plot(at.k, share, "o", color=colour, markersize=8, markeredgecolor="white", markeredgewidth=1.5, clip_on=False)
    axes.annotate(f"{share:.1f} % at k = {at.k}", (at.k, share), (8, -16), textcoords="offset points", color=colour)


def _style_axes(axes: Axes, last_k: int) -> None:
    """Percent from bottom to top, grey lines across, and only the lower axis in ink."""
    axes.set_xlim(1, max(2, last_k))
    axes.set_xticks([k for k in K_TICKS if k <= last_k])
    axes.set_xlabel("candidates offered, k", color=FAINT, labelpad=8)
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20), [f"{percent} %" for percent in range(0, 101, 20)])
    axes.grid(axis="y", color=GRID, clip_on=False)
    axes.set_axisbelow(True)
    axes.tick_params(labelcolor=FAINT, color=INK)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)

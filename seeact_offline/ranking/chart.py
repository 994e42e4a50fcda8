"""The recall curve as a picture."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

from seeact_offline.files.markdown import percent
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


COLOURS = ("#1f6feb", "#d9730d", "#12825b", "#8250df", "#c2255c", "#0b7285", "#846a00", "#475467")
DASHES = ("-", "--", ":", "-.")
"""Line styles, which tell several rankers apart in a print without colours."""
ENDINGS = (".png", ".pdf", ".svg")
_NAMELESS: Mapping[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    ".svg": {"Date": None, "Creator": None},
}
"""Dates and matplotlib's version must not get into a file."""


def curve_picture(curves: Mapping[str, Sequence[CurvePoint]], title: str, ending: str = ".png") -> bytes:
    """The curves by ranker as a file with this ending, one of ENDINGS; the same curves and title give the same bytes.

    One ranker has all lines; of several, each has one, the recall of all steps.
    """
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "curve", "pdf.fonttype": 42}):
        figure = draw_curve(next(iter(curves.values())), title) if len(curves) == 1 else draw_curves(curves, title)
        figure.savefig(buffer, format=ending[1:], dpi=DOTS_PER_INCH, metadata=_NAMELESS[ending])
    return buffer.getvalue()


def draw_curves(curves: Mapping[str, Sequence[CurvePoint]], title: str) -> Figure:
    """The recall of all steps of several rankers."""
    figure, axes = _new(title)
    for number, (name, points) in enumerate(curves.items()):
        shares = [100 * point.recall for point in points]
        cut = f": {percent(points[CUT - 1].recall)} % at k = {CUT}" if len(shares) >= CUT else ""
        style, colour = DASHES[number % len(DASHES)], COLOURS[number % len(COLOURS)]
        axes.plot(
            [p.k for p in points], shares, style, color=colour, linewidth=2, label=_drawable(name) + cut, clip_on=False
        )
    axes.axvline(CUT, color="#b8c7e6", linewidth=1, zorder=1)
    legend = axes.legend(
        loc="lower right", bbox_to_anchor=(0.98, 0.05), labelcolor=INK, edgecolor="none", framealpha=0.9
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    _style_axes(axes, max(points[-1].k for points in curves.values()))
    axes.set_ylabel("recall of all steps = ceiling of Step SR, micro", color=FAINT)
    return figure


def draw_curve(points: Sequence[CurvePoint], title: str) -> Figure:
    figure, axes = _new(title)
    for line in LINES:
        shares = [100 * line.value(point) for point in points]
        axes.plot(
            [point.k for point in points], shares, color=line.colour, linewidth=2, label=line.label, clip_on=False
        )
    _mark_the_cut(axes, points)
    axes.legend(loc="lower right", bbox_to_anchor=(0.98, 0.18), reverse=True, frameon=False, labelcolor=INK)
    _style_axes(axes, points[-1].k)
    return figure


def _new(title: str) -> tuple[Figure, Axes]:
    # not pyplot, which keeps every figure and may look for a screen
    from matplotlib.figure import Figure

    figure = Figure(INCHES, facecolor="white")
    figure.subplots_adjust(left=0.08, right=0.96, top=0.88, bottom=0.13)
    axes = figure.subplots()
    # a dollar sign must not begin a formula
    axes.set_title(fill(_drawable(title), 90), loc="left", fontsize=13, color=INK, pad=12, parse_math=False)
    return figure, axes


def _drawable(text: str) -> str:
    """Replaces halves of surrogate pairs, which a file's name may hold and nothing can draw."""
    return text.encode(errors="replace").decode()


def _mark_the_cut(axes: Axes, points: Sequence[CurvePoint]) -> None:
    """Marks the value where the pipeline cuts."""
    at = next((point for point in points if point.k == CUT), None)
    if at is None:
        return
    share, colour = 100 * at.recall, LINES[-1].colour
    axes.axvline(at.k, color="#b8c7e6", linewidth=1, zorder=1)
    axes.plot(at.k, share, "o", color=colour, markersize=8, markeredgecolor="white", markeredgewidth=1.5, clip_on=False)
    axes.annotate(
        f"{percent(at.recall)} % at k = {at.k}", (at.k, share), (8, -16), textcoords="offset points", color=colour
    )


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

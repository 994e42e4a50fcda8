"""The quality of a ranking: recall at k, MRR, ties across the cut, and the ceiling that recall puts on all later
stages; its curve as a table and a picture."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from seeact_offline.files.markdown import percent
from seeact_offline.ranking.pipeline import StepRanking
from seeact_offline.records import StepKey
from seeact_offline.scoring.metrics import recall_at_k

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECALL_AT = (1, 3, 5, 10, 20, 50, 100)
CUT = 50
"""Candidates that the pipeline offers, and the depth of the MRR."""
# twice the cut shows what a deeper one would gain
CURVE_TO = 100
PUBLISHED_RECALL_AT_50 = {"cross_task": 0.889, "cross_website": 0.853, "cross_domain": 0.857}
"""Recall of the fine-tuned DeBERTa on Mind2Web's own test sets, which have more steps than Multimodal-Mind2Web:
Mind2Web paper, section 4.1."""


@dataclass(frozen=True, slots=True)
class StepRank:
    """One step's ranking, reduced to what the figures need."""

    key: StepKey
    best_rank: int | None
    """Best rank of a positive, from 0; None without a positive or without scores."""
    has_positive: bool
    is_tied: bool
    """The scores on both sides of the cut are equal."""
    n_texts: int
    failure: str


class CurvePoint(NamedTuple):
    """Recall at one k, as fractions."""

    k: int
    recall: float
    """Recall over all steps. No other step can succeed, so this is also the ceiling of Step SR (micro)."""
    recall_with_positive: float
    """Recall over the steps that have a positive."""
    step_sr_ceiling_macro: float
    """Mean over tasks of each task's recall."""


def step_rank(step: StepRanking) -> StepRank:
    scores = step.scores or {}
    ranks = [rank for node in step.truth.positives if node in scores and (rank := scores[node][1]) is not None]
    ordered = sorted((score for score, _ in scores.values()), reverse=True)
    return StepRank(
        key=step.truth.key,
        best_rank=min(ranks, default=None),
        has_positive=bool(step.truth.positives),
        is_tied=len(ordered) > CUT and ordered[CUT - 1] == ordered[CUT],
        n_texts=len(scores),
        failure=step.failure,
    )


def summary(ranks: Sequence[StepRank]) -> dict[str, Any]:
    """The figures of a split, as fractions. Steps without a positive or without scores count as not found."""
    everything = [rank.best_rank for rank in ranks]
    possible = [rank.best_rank for rank in ranks if rank.has_positive]
    return {
        "n_tasks": len({rank.key.annotation_id for rank in ranks}),
        "n_steps": len(ranks),
        "n_with_positive": len(possible),
        "n_ranked": sum(not rank.failure for rank in ranks),
        "recall_at_k": {str(k): recall_at_k(everything, k) for k in RECALL_AT},
        "recall_at_k_with_positive": {str(k): recall_at_k(possible, k) for k in RECALL_AT},
        "mrr_at_50": reciprocal_rank(everything),
        "mrr_at_50_with_positive": reciprocal_rank(possible),
        "ties_across_cut": sum(rank.is_tied for rank in ranks),
        "texts": sum(rank.n_texts for rank in ranks),
        "failures": dict(sorted(Counter(rank.failure for rank in ranks if rank.failure).items())),
    }


def reciprocal_rank(best_ranks: Sequence[int | None], depth: int = CUT) -> float:
    """Mean over steps of 1 / (rank of the best positive, from 1); 0 if it is not among the first `depth`."""
    if not best_ranks:
        return 0.0
    return sum(1 / (rank + 1) for rank in best_ranks if rank is not None and rank < depth) / len(best_ranks)


def curve(ranks: Sequence[StepRank]) -> list[CurvePoint]:
    """Recall for k = 1, 2, ... The steps of a task must be next to each other."""
    everything = [rank.best_rank for rank in ranks]
    possible = [rank.best_rank for rank in ranks if rank.has_positive]
    tasks = [[rank.best_rank for rank in steps] for _, steps in groupby(ranks, key=lambda rank: rank.key.annotation_id)]
    points = []
    for k in range(1, CURVE_TO + 1):
        macro = sum(recall_at_k(steps, k) for steps in tasks) / max(1, len(tasks))
        points.append(CurvePoint(k, recall_at_k(everything, k), recall_at_k(possible, k), macro))
    return points


def read_curve(text: str) -> list[CurvePoint]:
    """The reverse of `curve_csv`. Raises ValueError for any other file."""
    try:
        rows = list(csv.DictReader(text.splitlines()))
        names = ("recall", "recall_with_positive", "step_sr_ceiling_macro")
        points = [CurvePoint(int(row["k"]), *(float(row[name]) for name in names)) for row in rows]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no column {error}") from None
    if not points or [point.k for point in points] != list(range(1, len(points) + 1)):
        raise ValueError("not k = 1, 2, ...")
    return points


def curve_csv(points: Sequence[CurvePoint]) -> str:
    """The curve as CSV. `recall` and `step_sr_ceiling_micro` are one figure under the two names that people look
    for."""
    lines = ["k,recall,recall_with_positive,step_sr_ceiling_micro,step_sr_ceiling_macro"]
    for point in points:
        values = (point.recall, point.recall_with_positive, point.recall, point.step_sr_ceiling_macro)
        lines.append(",".join([str(point.k), *(f"{value:.6f}" for value in values)]))
    return "\n".join(lines) + "\n"


# --- the curve as a picture ---

INCHES = (9.6, 6)
DOTS_PER_INCH = 150
INK, FAINT, GRID, CUT_LINE = "#1d2433", "#667085", "#e4e7ec", "#b8c7e6"
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
    axes.axvline(CUT, color=CUT_LINE, linewidth=1, zorder=1)
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
    if len(points) >= CUT:
        # the value where the pipeline cuts
        share, colour = 100 * points[CUT - 1].recall, LINES[-1].colour
        axes.axvline(CUT, color=CUT_LINE, linewidth=1, zorder=1)
        axes.plot(
            CUT, share, "o", color=colour, markersize=8, markeredgecolor="white", markeredgewidth=1.5, clip_on=False
        )
        label = f"{percent(points[CUT - 1].recall)} % at k = {CUT}"
        axes.annotate(label, (CUT, share), (8, -16), textcoords="offset points", color=colour)
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

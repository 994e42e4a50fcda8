"""Figures of finished runs as files. matplotlib is loaded when one is drawn."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from seeact_offline.files.markdown import percent
from seeact_offline.scoring.report import AVERAGES, counted
from seeact_offline.tables import figure_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (9.6, 5.6)
DOTS_PER_INCH = 150
INK, FAINT, GRID = "#1d2433", "#667085", "#e4e7ec"
COLOURS = ("#1f6feb", "#d9730d", "#12825b", "#8250df", "#c2255c", "#0b7285", "#846a00", "#475467")
"""One a run, in order; after the last they begin anew, and another style tells the runs apart."""
MARKERS = "osD^vPX*"
LINES, HATCHES = ("-", "--", ":", "-."), ("", "//", "..", "xx")
"""Styles of lines and bars, each for as many runs as there are colours."""
LONGEST = 96
"""Characters of a label."""
NAMED_CHANGES = 3
"""Changed settings that stand at a break of a line."""
UNITS = {"cost_usd": "USD a task", "calls": "calls a task"}
_FORMATS = {".png": "png", ".pdf": "pdf", ".svg": "svg"}
ENDINGS = tuple(_FORMATS)
_NO_DATE: Mapping[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}
"""Left out of a file, so that the same figures give the same bytes."""


def picture(kind: str, paths: Sequence[Path], ending: str) -> bytes:
    """The figure of finished runs as a file with this ending, one of ENDINGS. Raises InputError."""
    return drawn(FIGURES[kind].draw, FIGURES[kind].gather(paths), ending)


def drawn(draw: Callable[[Mapping[str, Any]], Figure], values: Mapping[str, Any], ending: str) -> bytes:
    """A figure of these values as a file with this ending, one of ENDINGS."""
    import matplotlib

    buffer, form = io.BytesIO(), _FORMATS[ending]
    with matplotlib.rc_context({"svg.hashsalt": draw.__name__, "text.parse_math": False, "pdf.fonttype": 42}):
        draw(values).savefig(buffer, format=form, dpi=DOTS_PER_INCH, metadata=_NO_DATE[form])
    return buffer.getvalue()


def _new(title: str, about: str) -> tuple[Figure, Axes]:
    """`about`: the data, as a line below the title."""
    # not pyplot, which keeps every figure and may look for a screen
    from matplotlib.figure import Figure

    figure = Figure(INCHES, facecolor="white", layout="constrained")
    axes = figure.subplots()
    lines = below_title(axes, about)
    axes.set_title(fill(shortened(title), 80), loc="left", fontsize=14, color=INK, pad=14 + 13 * lines)
    axes.tick_params(labelcolor=FAINT, color=INK)
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.set_axisbelow(True)
    return figure, axes


def below_title(axes: Axes, about: str, width: int = 120) -> int:
    """Writes the data of a picture above its axes; returns the number of lines. `width`: characters of a line."""
    text = fill(printable(" ".join(about.split())), width)
    axes.annotate(
        text, (0, 1), (0, 10), xycoords="axes fraction", textcoords="offset points", fontsize=9.5, color=FAINT
    )
    return text.count("\n") + 1


def _percent_upwards(axes: Axes, label: str) -> None:
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20), [f"{share} %" for share in range(0, 101, 20)])
    axes.set_ylabel(label, color=FAINT)
    axes.grid(axis="y", color=GRID)
    axes.tick_params(axis="y", length=0)


def printable(text: str) -> str:
    """Leaves out what cannot be drawn."""
    return "".join(c for c in text.encode(errors="replace").decode() if c.isprintable())


def shortened(text: str) -> str:
    """Puts a text on one line, and cuts one that is too long. Halves of surrogate pairs cannot be drawn, nor what
    controls a terminal."""
    visible = printable(text)
    return visible if len(visible) <= LONGEST else f"{visible[:LONGEST]} ..."


class Style(NamedTuple):
    """The look of a run: runs of one colour differ in all else."""

    colour: str
    marker: str
    line: str
    hatch: str

    @classmethod
    def of(cls, number: int) -> Style:
        """The style of the run of this number, from 0."""
        round_ = number // len(COLOURS)
        marker = MARKERS[(number + round_) % len(MARKERS)]
        return cls(COLOURS[number % len(COLOURS)], marker, LINES[round_ % len(LINES)], HATCHES[round_ % len(HATCHES)])


def _legend(figure: Figure, labels: Sequence[str]) -> None:
    """Two columns where the labels leave room for them."""
    columns = 2 if max(map(len, labels)) <= LONGEST // 2 else 1
    figure.legend(loc="outside lower center", frameon=False, labelcolor=INK, ncols=columns)


def draw_difficulty(values: Mapping[str, Any]) -> Figure:
    figure, axes = _new("Step SR by the number of actions of the task", values["about"])
    runs, bands = values["runs"], values["bands"]
    width = 0.8 / len(runs)
    for number, run in enumerate(runs):
        bars = [(place, run["bands"][band]) for place, band in enumerate(bands) if run["bands"][band]["n_tasks"]]
        at = [place - 0.4 + width * (number + 0.5) for place, _ in bars]
        metrics = [metric for _, metric in bars]
        heights = [100 * metric["value"] for metric in metrics]
        style = Style.of(number)
        axes.bar(
            at, heights, 0.9 * width, color=style.colour, hatch=style.hatch, edgecolor="white", linewidth=0,
            label=shortened(run["label"]),
        )  # fmt: skip
        axes.errorbar(at, heights, interval_ends(metrics), fmt="none", ecolor=INK, elinewidth=1, capsize=3)
    tasks = [_range([run["bands"][band]["n_tasks"] for run in runs]) for band in bands]
    axes.set_xticks(range(len(bands)), [f"{band}\n{count}" for band, count in zip(bands, tasks, strict=True)])
    axes.set_xlim(-0.5, len(bands) - 0.5)
    axes.set_xlabel("actions of the task", color=FAINT)
    axes.tick_params(axis="x", length=0)
    _percent_upwards(axes, _quoted(run["bands"][band]["average"] for run in runs for band in bands))
    _legend(figure, [shortened(run["label"]) for run in values["runs"]])
    return figure


def interval_ends(metrics: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[float]]:
    """Lengths of each interval below and above its figure, in percent; 0 where it is not known."""
    intervals = [(metric["value"], *(metric["ci95"] or (metric["value"],) * 2)) for metric in metrics]
    below = [100 * max(0.0, value - low) for value, low, _ in intervals]
    return below, [100 * max(0.0, high - value) for value, _, high in intervals]


def _quoted(averages: Iterable[str]) -> str:
    return f"Step SR, {' or '.join(dict.fromkeys(averages))} average, 95 % interval"


def _range(counts: list[int]) -> str:
    return counted(counts[0], "task") if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)} tasks"


def draw_waterfall(values: Mapping[str, Any]) -> Figure:
    figure, axes = _new(f"Where steps are lost: {values['label']}", values["about"])
    losses, left = values["losses"], 100.0
    axes.bar(0, 100, 0.7, color=FAINT)
    for place, loss in enumerate(losses, 1):
        lost = 100 * loss["share"]
        axes.bar(place, lost, 0.7, bottom=left - lost, color=COLOURS[1])
        axes.plot([place - 1.35, place + 0.35], [left, left], color=FAINT, linewidth=0.8)
        _number(axes, place, left, f"-{percent(loss['share'])}")
        left -= lost
    last = len(losses) + 1
    axes.plot([last - 1.35, last + 0.35], [left, left], color=FAINT, linewidth=0.8)
    axes.bar(last, 100 * values["rest"], 0.7, color=COLOURS[0])
    _number(axes, last, 100 * values["rest"], percent(values["rest"]))
    names = [
        "all steps",
        *(f"{loss['cause'].replace('_', ' ')} ({loss['steps']})" for loss in losses),
        values["measure"],
    ]
    # as many characters as fit below a bar
    width = 118 // len(names)
    axes.set_xticks(range(len(names)), [fill(name, width, break_long_words=False) for name in names], fontsize=9)
    axes.set_xlabel("cause (steps)", color=FAINT)
    axes.tick_params(axis="x", length=0)
    _percent_upwards(axes, f"{values['average']}, {AVERAGES[values['average']]}")
    # room for the number above a full bar
    axes.set_ylim(0, 106)
    return figure


def _number(axes: Axes, at: float, height: float, text: str) -> None:
    axes.annotate(text, (at, height), (0, 3), textcoords="offset points", ha="center", fontsize=9, color=INK)


def draw_recall(values: Mapping[str, Any]) -> Figure:
    figure, axes = _new("Recall of the ranker", values["about"])
    curves = values["curves"]
    labels = [
        shortened(f"{curve['label']}: {percent(curve['recall'][-1])} % at {len(curve['recall'])}") for curve in curves
    ]
    for number, (curve, label) in enumerate(zip(curves, labels, strict=True)):
        shares = [100 * share for share in curve["recall"]]
        style = Style.of(number)
        axes.plot(range(1, len(shares) + 1), shares, style.line, color=style.colour, linewidth=2, label=label)
    axes.set_xlim(1, max(2, *(len(curve["recall"]) for curve in curves)))
    axes.set_xlabel("candidates offered, k", color=FAINT)
    _percent_upwards(axes, "steps whose right element is among them")
    _legend(figure, labels)
    return figure


def draw_cost(values: Mapping[str, Any]) -> Figure:
    figure, axes = _new(f"Step SR against {UNITS[values['unit']]}", values["about"])
    for number, run in enumerate(values["runs"]):
        metric, style = run["step_success_rate"], Style.of(number)
        axes.errorbar(
            [run["a_task"]], [100 * metric["value"]], interval_ends([metric]), fmt=style.marker, color=style.colour,
            markersize=8, capsize=3, elinewidth=1.2, label=shortened(run["label"]),
        )  # fmt: skip
    axes.set_xlim(left=0)
    axes.margins(x=0.1)
    axes.set_xlabel(UNITS[values["unit"]], color=FAINT)
    _percent_upwards(axes, _quoted(run["step_success_rate"]["average"] for run in values["runs"]))
    _legend(figure, [shortened(run["label"]) for run in values["runs"]])
    return figure


def draw_over_time(values: Mapping[str, Any]) -> Figure:
    from matplotlib.dates import ConciseDateFormatter

    figure, axes = _new("Step SR over time", values["about"])
    lines = values["lines"]
    for number, line in enumerate(lines):
        points, style = line["points"], Style.of(number)
        begins = [0, *(place for place, point in enumerate(points) if point["changed"])]
        for begin, end in itertools.pairwise([*begins, len(points)]):
            part = points[begin:end]
            axes.errorbar(
                [point["date"] for point in part], [100 * point["value"] for point in part], interval_ends(part),
                fmt=f"{style.marker}{style.line}", color=style.colour, markersize=7, capsize=3,
                elinewidth=1.2, label="_nolegend_" if begin else shortened(line["label"]),
            )  # fmt: skip
            if begin:
                _break(axes, points[begin - 1], points[begin], style.colour)
        for point in points:
            if point["label"]:
                at = point["date"], 100 * point["value"]
                axes.annotate(
                    shortened(point["label"]), at, (7, 5), textcoords="offset points", fontsize=8, color=style.colour
                )
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
    axes.margins(x=0.06)
    axes.set_xlabel("begin of the run (UTC)", color=FAINT)
    _percent_upwards(axes, _quoted(point["average"] for line in lines for point in line["points"]))
    _legend(figure, [shortened(line["label"]) for line in lines])
    return figure


def _break(axes: Axes, before: Mapping[str, Any], after: Mapping[str, Any], colour: str) -> None:
    """Marks the place between two points where settings change, with what changes."""
    at = before["date"] + (after["date"] - before["date"]) / 2
    axes.axvline(at, color=colour, linestyle=":", linewidth=1.2)
    more = len(after["changed"]) - NAMED_CHANGES
    names = [*after["changed"][:NAMED_CHANGES], *([f"{more} more"] if more > 0 else [])]
    words = "\n".join(fill(shortened(name), 40) for name in names)
    axes.annotate(
        words, (at, 1), (-3, -3), xycoords=("data", "axes fraction"), textcoords="offset points", rotation=90, ha="right",
        va="top", fontsize=8, color=colour,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure."""

    gather: Callable[[Sequence[Path]], Mapping[str, Any]]
    """Its values, from run folders and folders of them."""
    draw: Callable[[Mapping[str, Any]], Figure]


FIGURES: Mapping[str, FigureKind] = {
    "difficulty": FigureKind(figure_data.difficulty, draw_difficulty),
    "waterfall": FigureKind(figure_data.waterfall, draw_waterfall),
    "recall": FigureKind(figure_data.recall, draw_recall),
    "cost": FigureKind(figure_data.cost, draw_cost),
    "over-time": FigureKind(figure_data.over_time, draw_over_time),
}

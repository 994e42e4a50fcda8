"""The learning curve as a picture: the loss of every log, and the held-out accuracy of every evaluation."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

INCHES = (9.6, 5)
DOTS_PER_INCH = 120
INK, FAINT, GRID = "#1d2433", "#667085", "#e4e7ec"
LOSS, HELD_OUT, ANSWERS = "#98a2b3", "#1f6feb", "#d9730d"


def learning_curve_png(history: Sequence[Mapping[str, float]], title: str) -> bytes:
    """Draws the Trainer's log as PNG; the same history and title give the same bytes."""
    # not pyplot, which keeps every figure and may look for a screen
    from matplotlib.figure import Figure

    figure = Figure(INCHES, facecolor="white")
    figure.subplots_adjust(left=0.09, right=0.91, top=0.88, bottom=0.13)
    loss = figure.subplots()
    share = loss.twinx()
    _line(loss, history, "loss", LOSS, "training loss")
    _line(loss, history, "eval_loss", HELD_OUT, "loss, tasks held out", "o--")
    _line(share, history, "eval_letter_accuracy", HELD_OUT, "right option, tasks held out", "o-", 100)
    _line(share, history, "eval_answer_accuracy", ANSWERS, "whole answer, tasks held out", "o-", 100)
    loss.set_xlabel("steps of the optimizer", color=FAINT)
    loss.set_ylabel("loss a token", color=FAINT)
    loss.set_ylim(bottom=0)
    share.set_ylim(0, 100)
    share.set_ylabel("%", color=FAINT)
    loss.grid(axis="y", color=GRID)
    for axes in (loss, share):
        axes.spines["top"].set_visible(False)
        axes.tick_params(labelcolor=FAINT)
    title = title.encode(errors="replace").decode()
    loss.set_title(title, loc="left", fontsize=13, color=INK, pad=14, parse_math=False)
    handles = [*loss.get_lines(), *share.get_lines()]
    if handles:
        loss.legend(handles=handles, loc="upper center", frameon=False, labelcolor=INK, ncols=2)
    buffer = io.BytesIO()
    # matplotlib's version must not get into the file
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def _line(
    axes: object,
    history: Sequence[Mapping[str, float]],
    name: str,
    colour: str,
    label: str,
    style: str = "-",
    times: float = 1,
) -> None:
    points = [(entry["step"], times * entry[name]) for entry in history if name in entry]
    if points:
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, style, color=colour, label=label)  # type: ignore[attr-defined]

"""The learning curve as a picture: the loss of every log, and the held-out accuracy of every evaluation."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

INCHES = (9.6, 5)
DOTS_PER_INCH = 120
INK, FAINT, GRID = "#1d2433", "#667085", "#e4e7ec"
LOSS, HELD_OUT, LETTERS, ANSWERS = "#98a2b3", "#1f6feb", "#12825b", "#d9730d"

SHARES = {
    "eval_letter_accuracy": (LETTERS, "right option, tasks held out"),
    "eval_answer_accuracy": (ANSWERS, "whole answer, tasks held out"),
}
"""Entries of the log that are drawn in percent: their colours and names."""


def learning_curve_png(history: Sequence[Mapping[str, float]], title: str) -> bytes:
    """Draws the Trainer's log as PNG, losses and shares in a panel each; the same history and title give the same bytes."""
    # not pyplot, which keeps every figure and may look for a screen
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    has_shares = any(name in entry for entry in history for name in SHARES)
    figure = Figure(INCHES, facecolor="white", layout="constrained")
    panels = figure.subplots(1 + has_shares, sharex=True, squeeze=False)[:, 0]
    loss = panels[0]
    drawn = [
        _line(loss, history, "loss", LOSS, "training loss"),
        _line(loss, history, "eval_loss", HELD_OUT, "loss, tasks held out", "s--"),
    ]
    loss.set_ylabel("loss a token", color=FAINT)
    loss.set_ylim(bottom=0)
    if has_shares:
        share = panels[1]
        drawn += [_line(share, history, name, colour, label, "o-", 100) for name, (colour, label) in SHARES.items()]
        share.set_ylim(0, 103)
        share.set_ylabel("%", color=FAINT)
    panels[-1].set_xlabel("steps of the optimizer", color=FAINT)
    loss.set_xlim(left=0)
    # whole steps alone
    loss.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not any(drawn):
        loss.set_axis_off()
        loss.text(0.5, 0.5, "no loss was logged", color=FAINT, ha="center", transform=loss.transAxes)
    for axes in panels:
        axes.grid(axis="y", color=GRID)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelcolor=FAINT)
    title = title.encode(errors="replace").decode()
    loss.set_title(title, loc="left", fontsize=13, color=INK, pad=14, parse_math=False)
    if any(axes.get_lines() for axes in panels):
        figure.legend(loc="outside lower center", frameon=False, labelcolor=INK, ncols=2)
    buffer = io.BytesIO()
    # matplotlib's version must not get into the file
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def _line(
    axes: Any,
    history: Sequence[Mapping[str, float]],
    name: str,
    colour: str,
    label: str,
    style: str = "-",
    times: float = 1,
) -> bool:
    """Draws what the log has under this name; False where that is nothing."""
    points = {entry["step"]: times * entry[name] for entry in history if name in entry}
    if points:
        # a line of one point cannot be seen
        axes.plot(
            [*points],
            [*points.values()],
            style if len(points) > 1 else style.strip("-") or "o",
            color=colour,
            label=label,
        )
    return bool(points)

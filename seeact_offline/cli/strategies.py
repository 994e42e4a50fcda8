"""The options of the grounding strategies."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline.grounding import MAX_SIDE
from seeact_offline.runs.config import BATCHINGS, COORDINATES, MARK_KINDS, MARK_POSITIONS


def add_arguments(asked: argparse._ActionsContainer) -> None:
    """An option that only some groundings have is None unless it is given."""
    asked.add_argument(
        "--turns", type=int, choices=(1, 2), default=2, help="1: both turns in one message (default: %(default)s)"
    )
    asked.add_argument("--no-image", action="store_true", help="pruned HTML in the picture's place")
    add_picture_argument(asked)
    asked.add_argument(
        "--batching", choices=BATCHINGS, default=BATCHINGS[0],
        help="choice, annotation: turn 1 for every group, or once a step on the whole page (default: %(default)s)",
    )  # fmt: skip
    asked.add_argument("--marks", choices=MARK_KINDS, help="annotation: kind of label (default: number)")
    asked.add_argument(
        "--mark-position", choices=MARK_POSITIONS, help="annotation: where a label goes (default: bottom-left)"
    )
    asked.add_argument(
        "--mark-turn1", action="store_true", default=None, help="annotation: the marked picture in turn 1 too"
    )
    asked.add_argument(
        "--fuzzy-threshold", type=_percent, metavar="PERCENT", help="attributes: how alike two texts must be at least"
    )
    asked.add_argument("--coordinates", choices=COORDINATES, help="pixel: how a place is written (default: absolute)")
    asked.add_argument("--oracle-file", type=Path, metavar="FILE", help="oracle: the elements a person chose, JSONL")
    asked.add_argument("--ungrounded", action="store_true", help="turn 1 only: score its operation and value alone")


def add_picture_argument(asked: argparse._ActionsContainer) -> None:
    asked.add_argument(
        "--max-image-side", type=_side, default=MAX_SIDE, metavar="N",
        help="longest side of a picture sent, in pixels; larger ones are made smaller (default: %(default)s)",
    )  # fmt: skip


def _side(text: str) -> int:
    return int(_within(text, 16, 100_000, whole=True))


def _percent(text: str) -> float:
    return _within(text, 0, 100)


def _within(text: str, least: int, most: int, whole: bool = False) -> float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        kind = "whole number" if whole else "number"
        raise argparse.ArgumentTypeError(f"expected a {kind} from {least} to {most}, got {text}")
    return value

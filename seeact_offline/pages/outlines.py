"""A page's candidates drawn on its picture, for people to look at. No model is ever sent this."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seeact_offline.pages.marks import Marks, Rect, label_size, place_clear
from seeact_offline.records import Box

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

GREEN, RED, BLUE = (0, 140, 60), (215, 0, 0), (60, 100, 255)
_WIDTHS = {BLUE: 1, RED: 2, GREEN: 4}
"""Pixels of a line. In the order in which boxes are drawn, so that the right ones lie on top."""
_RANKS = Marks(text_size=14, padding=3)


@dataclass(frozen=True, slots=True)
class Outline:
    """One candidate."""

    box: Box
    """Page pixels."""
    is_positive: bool
    rank: int | None = None
    """Rank from 0; None where it is not offered."""

    @property
    def colour(self) -> tuple[int, int, int]:
        if self.is_positive:
            return GREEN
        return BLUE if self.rank is None else RED


def draw_outlines(image: Image.Image, outlines: Sequence[Outline]) -> Image.Image:
    """A copy of the RGB picture of the page: positives green, others that are offered red, the rest blue, and their
    ranks beside those that have one. What lies outside the picture is left out."""
    from PIL import ImageDraw

    drawn = image.copy()
    pen = ImageDraw.Draw(drawn)
    parts = ((outline, visible(outline.box, image.size)) for outline in outlines)
    # the pixels that each box touches
    seen = [
        (outline, Rect(math.floor(part.x), math.floor(part.y), math.ceil(part.right), math.ceil(part.bottom)))
        for outline, part in parts
        if part is not None
    ]
    for colour, width in _WIDTHS.items():
        for outline, rect in seen:
            if outline.colour == colour:
                # around the box: its content stays visible
                corners = (rect.x0 - width, rect.y0 - width, rect.x1 + width - 1, rect.y1 + width - 1)
                pen.rectangle(corners, outline=colour, width=width)
    _write_ranks(pen, seen, image.size)
    return drawn


def visible(box: Box, page: tuple[int, int]) -> Box | None:
    """The part of a box that lies on the page; None for a box without area or wholly outside."""
    x0, y0 = max(box.x, 0.0), max(box.y, 0.0)
    x1, y1 = min(box.right, float(page[0])), min(box.bottom, float(page[1]))
    return Box(x0, y0, x1 - x0, y1 - y0) if box.w > 0 and box.h > 0 and x1 > x0 and y1 > y0 else None


def _write_ranks(pen: ImageDraw.ImageDraw, seen: Sequence[tuple[Outline, Rect]], size: tuple[int, int]) -> None:
    """The best ranked first, so that they keep the corner of their box where several would stand at the same."""
    from PIL import ImageFont

    font = ImageFont.load_default(_RANKS.text_size)
    ranked = sorted((rank, rect, outline.colour) for outline, rect in seen if (rank := outline.rank) is not None)
    sizes = [label_size(str(rank), _RANKS) for rank, _, _ in ranked]
    spots = place_clear([rect for _, rect, _ in ranked], sizes, size, "top-left").spots
    for (rank, _, colour), spot in zip(ranked, spots, strict=True):
        pen.rectangle((spot.x0, spot.y0, spot.x1 - 1, spot.y1 - 1), fill=colour)
        pen.text((spot.x0 + _RANKS.padding, spot.y1 - _RANKS.padding), str(rank), fill="white", font=font, anchor="ls")

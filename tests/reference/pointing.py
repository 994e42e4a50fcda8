"""Slow, obvious geometry: which element lies under a point."""

from __future__ import annotations


def element_at(point: tuple[float, float], boxes: list[tuple[str, float, float, float, float]]) -> str | None:
    """Boxes as id, left, top, width, height in document order: the least area, and of equals the last."""
    best: tuple[str, float] | None = None
    for node, left, top, width, height in boxes:
        if width <= 0 or height <= 0:
            continue
        if point[0] < left or point[0] > left + width:
            continue
        if point[1] < top or point[1] > top + height:
            continue
        if best is None or width * height <= best[1]:
            best = (node, width * height)
    return best[0] if best else None

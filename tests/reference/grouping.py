"""Groups of candidates, taken off the top of a list one at a time, as SeeAct's released code makes them."""

from __future__ import annotations


def groups_of(ids: list[str], size: int) -> list[list[str]]:
    """`size` 17: 16, then 17s, then the rest; any other: equal groups while more than one is left."""
    left, groups = list(ids), []
    if size == 17:
        take = 16
        while left:
            groups.append([left.pop(0) for _ in range(min(take, len(left)))])
            take = 17
    else:
        while len(left) > 1:
            groups.append([left.pop(0) for _ in range(min(size, len(left)))])
    return groups


def rows_shown(boxes: list[tuple[float, float, float, float]], height: int) -> int:
    """How many rows of the page a group is shown: 1,024 px more above and below, as far as the page goes."""
    first = min(y for _, y, _, _ in boxes) - 1024
    last = max(y + h for _, y, _, h in boxes) + 1024
    return max(0, min(height, round(last)) - max(0, round(first)))

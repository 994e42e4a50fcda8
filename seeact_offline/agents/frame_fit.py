"""The numbers that places are written in, as the places themselves tell: the size of the picture, and which of x and y comes first.

A place lies in the box of the right element for an interval of picture sizes. Right places share a size; wrong ones share none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from operator import itemgetter

from seeact_offline.agents import Agent, find_agent
from seeact_offline.agents.screens import Frame, Point, Resize, Rule, Shown, Size
from seeact_offline.records import Box

FAR_BETTER, LEAST_GAIN = 0.1, 3
"""Share and number of the places by which more must be right in another frame than moved by one distance. By chance it is 2 at most."""
LIMITS = range(200, 1 << 24)
"""Limits of a rule, in pixels of a picture or of its side. With fewer, `linear` leaves a tall picture no width."""
SCALES = (1000, 999, 100, 1)
"""Scales of frames that agents have."""
RULES: Mapping[Rule, str] = {
    "smart": "smart({factor},1,{limit})",
    "linear": "linear(1,{limit})",
    "fit": "fit({limit},{limit})",
}
"""Rules by which a server may scale a picture, and how agents are declared with them. The sizes that they give grow with the limit."""
Interval = tuple[float, float]
"""The least and the greatest number."""


@dataclass(frozen=True, slots=True)
class WrittenPlace:
    """A place as it is written."""

    numbers: Point
    shown: Shown
    boxes: tuple[Box, ...]
    """Boxes of the right element on the page; at least one."""
    is_right: bool
    """True if it lies on the right element as the run reads it."""

    def hits(self, frame: Frame) -> bool:
        """Tells whether it lies on the right element in this frame."""
        place = self.shown.to_page(self.numbers, frame)
        return any(box.contains(*place) for box in self.boxes)

    def sizes(self, y_first: bool) -> tuple[Interval, Interval]:
        """The widths and the heights of a picture with which it is within the first box."""
        (left, top, right, bottom), box = self.shown.part, self.boxes[0]
        x, y = self.numbers[::-1] if y_first else self.numbers
        sides = (x, box.x - left, box.right - left, right - left), (y, box.y - top, box.bottom - top, bottom - top)
        widths, heights = (
            (number * side / last if last > 0 else inf, number * side / first if first > 0 else inf)
            for number, first, last, side in sides
        )
        return widths, heights


def better_frame(places: Sequence[WrittenPlace], agent: Agent) -> Agent | None:
    """The agent that reads as this one, but in the frame that the places tell; None where they tell no other. `agent`: reads the run."""
    # the same place for the same element tells nothing new
    places = [*dict.fromkeys(places)]
    names = [f"{name}:{agent.name.rpartition(':')[2]}" for name in _frame_names(places, agent.view.resize.factor)]
    agents = [find_agent(name)[0] for name in names]
    fits = [(one, sum(place.hits(one.frame) for place in places)) for one in agents]
    best, n_right = max(fits, key=itemgetter(1))
    least = max(sum(place.is_right for place in places), _n_moved(places, agent.frame))
    return best if n_right - least > max(least, FAR_BETTER * len(places), LEAST_GAIN) else None


def _frame_names(places: Sequence[WrittenPlace], factor: int) -> Iterator[str]:
    """Yields the frames that explain most places, the likeliest first, as agents are declared with them: a known scale, RULES, and one size of
    all pictures, with x and with y first."""
    for frame in ("px", "pxyx"):
        sizes = [place.sizes(frame == "pxyx") for place in places]
        shared = _shared_both(sizes)
        yield from (frame.replace("px", str(n)) for n in SCALES if all(_holds(sides, (n, n)) for sides in shared))
        for rule, name in RULES.items():
            limits = [_limits(rule, factor, place.shown.sent, both) for place, both in zip(places, sizes, strict=True)]
            yield f"{frame}/{name.format(factor=factor, limit=_middle(_shared(limits)))}"
        width, height = map(_middle, shared)
        yield f"{frame}/exact({width},{height})"


def _n_moved(places: Sequence[WrittenPlace], frame: Frame) -> int:
    """The number of places that one distance would move onto the right element: a model that always clicks beside it is in no other frame."""
    moves = []
    for place in places:
        (x, y), box = place.shown.to_page(place.numbers, frame), place.boxes[0]
        moves.append(((box.x - x, box.right - x), (box.y - y, box.bottom - y)))
    across, down = _shared_both(moves)
    return sum(_holds(one, across) and _holds(other, down) for one, other in moves)


def _limits(rule: Rule, factor: int, sent: Size, sizes: Sequence[Interval]) -> Interval:
    """The limits with which a picture gets one of these widths and heights."""

    def sides(limit: int) -> Iterator[tuple[int, Interval]]:
        return zip(Resize(rule, factor, 1, limit, (limit, limit)).apply(sent), sizes, strict=True)

    low = bisect_left(LIMITS, True, key=lambda limit: all(side >= least for side, (least, _) in sides(limit)))
    end = bisect_left(LIMITS, True, key=lambda limit: any(side > most for side, (_, most) in sides(limit)))
    return LIMITS.start + low, LIMITS.start + end - 1


def _shared_both(pairs: Sequence[tuple[Interval, Interval]]) -> tuple[Interval, Interval]:
    """The numbers that most of the first intervals share, and those that most of the second ones beside them do."""
    first = _shared([one for one, _ in pairs])
    return first, _shared([other for one, other in pairs if _holds(one, first)])


def _shared(intervals: Sequence[Interval]) -> Interval:
    """The numbers that most of the intervals share."""
    edges = sorted((edge, is_end) for low, high in intervals if low <= high for is_end, edge in enumerate((low, high)))
    counts = list(accumulate(-1 if is_end else 1 for _, is_end in edges))
    best = max(range(len(counts)), key=counts.__getitem__, default=None)
    return (LIMITS.start,) * 2 if best is None else (edges[best][0], edges[best + 1][0])


def _holds(interval: Interval, inside: Interval) -> bool:
    return interval[0] <= inside[0] and inside[1] <= interval[1]


def _middle(interval: Interval) -> int:
    return max(1, round(sum(min(end, LIMITS[-1]) for end in interval) / 2))

"""The frame that places tell, right and wrong ones of the bundled sample."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from seeact_offline.agents import find_agent
from seeact_offline.agents.frame_fit import WrittenPlace, better_frame
from seeact_offline.agents.screens import Point, Shown
from seeact_offline.dataset import open_split
from seeact_offline.records import Box, StepKey
from tests.right_answers import right_replies

right = cache(right_replies)
Beside = Callable[[Point, random.Random], Point]


@cache
def boxes() -> dict[StepKey, tuple[Box, ...]]:
    return {step.key: step.truth.boxes for step in open_split("sample", "cross_website").steps()}


def elsewhere(place: Point, rng: random.Random) -> Point:
    return rng.uniform(0, 1280), rng.uniform(0, 5000)


def places(written: str, read: str, share: float = 1.0, n: int = 60, beside: Beside = elsewhere) -> list[WrittenPlace]:
    """Right places as one agent writes them and another reads them; all but a share are beside."""
    (writer, _), (reader, _), rng = find_agent(written), find_agent(read), random.Random(7)
    found = []
    for key, (shown, reply) in list(right(written, "cross_website").items())[:n]:
        shown = Shown.whole(shown.page, reader.view.resize.apply(shown.page))
        numbers = writer.read(reply)[0].point
        assert numbers is not None
        if rng.random() >= share:
            x, y = beside(boxes()[key][0].center, rng)
            numbers = shown.from_page((min(max(x, 0), shown.page[0]), min(max(y, 0), shown.page[1])), writer.frame)
        place = WrittenPlace(numbers, shown, boxes()[key], is_right=False)
        found.append(replace(place, is_right=place.hits(reader.frame)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize(
    ("written", "read", "named"),
    [
        ("px/smart(28,3136,1003520):qwen2.5-vl", "qwen2.5-vl", "px/smart(28,1,"),
        ("px/linear(3136,2116800):uitars-1.5", "uitars-1.5", "px/linear(1,"),
        ("px/fit(1568,1568):qwen2.5-vl", "qwen2.5-vl", "px/fit(15"),
        ("px/exact(1000,500):qwen2.5-vl", "qwen2.5-vl", "px/exact("),
        ("1:qwen2.5-vl", "qwen2.5-vl", "1:qwen2.5-vl"),
        ("1000:qwen2.5-vl", "qwen2.5-vl", "1000:qwen2.5-vl"),
        ("1000yx:qwen3-vl", "qwen3-vl", "1000yx:qwen3-vl"),
        ("pxyx/smart(28,3136,12845056):qwen2.5-vl", "qwen2.5-vl", "pxyx/smart(28,1,"),
        ("1000yx:point_2d", "px/smart(28):point_2d", "1000yx:point_2d"),
    ],
)
def test_places_tell_their_frame(written: str, read: str, named: str, share: float) -> None:
    shown = places(written, read, share)
    better = better_frame(shown, find_agent(read)[0])
    assert better is not None
    assert better.name.startswith(named)
    assert sum(place.hits(better.frame) for place in shown) >= share * len(shown) - 8


BESIDE: dict[str, Beside] = {
    "anywhere": elsewhere,
    "always at one place": lambda place, rng: (640, 20),
    "near the element": lambda place, rng: (place[0] + rng.gauss(0, 100), place[1] + rng.gauss(0, 100)),
    "above the element": lambda place, rng: (place[0], place[1] - rng.uniform(20, 60)),
    "left of the element": lambda place, rng: (place[0] - rng.uniform(60, 160), place[1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.4, 0.1])
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("agent", ["qwen2.5-vl", "qwen3-vl"])
def test_a_run_in_the_right_frame_is_not_accused(agent: str, beside: Beside, share: float) -> None:
    for n in (12, 60):
        assert better_frame(places(agent, agent, share, n, beside), find_agent(agent)[0]) is None


@pytest.mark.parametrize(("n", "times"), [(3, 1), (1, 40)])
def test_few_places_are_no_frame(n: int, times: int) -> None:
    shown = places("1000yx:qwen3-vl", "qwen3-vl", n=n)
    assert better_frame(shown * times, find_agent("qwen3-vl")[0]) is None

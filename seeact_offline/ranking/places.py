"""Where on the page a candidate lies, and whether it takes clicks, in words that a ranker can read before its text.

The published texts say nothing of either, so a picture that is clicked reads like one that is not. The words are few, so
that a few hundred steps show each of them often: `[x4] [y8] [w3] [h1] [click]` is 480 to 640 pixels from the left, 800 to
1,131 from the top, about 64 wide and 16 high, and takes clicks. Real pages in the data sets are 1,280 pixels wide.
"""

from __future__ import annotations

import math
import re

from seeact_offline.records import Box, Candidate

ACROSS, LAST_ACROSS = 160, 9
# pixels of a band; 0 is left of the page, 9 right of its 1,280
FIRST_DOWN, LAST_DOWN = 100, 13
# pixels of the first band; then there are two for each doubling; 0 is above the page
LEAST_SIZE, LAST_SIZE = 8, 8
# pixels that are no longer told apart; a band for each doubling
CLICKABLE = "[click]"
CONTROLS = frozenset("a button input select summary textarea".split())
# tags that take clicks whether or not the page listens to them
PLACE = re.compile(r"(?:\[[xywh]\d+\] ){4}(?:\[click\] )?|\[click\] ")


def takes_clicks(candidate: Candidate) -> bool:
    return candidate.is_clickable or candidate.tag in CONTROLS


def place_words(candidate: Candidate) -> str:
    """With a space at the end; empty where the row does not say where it lies and nothing says that it takes clicks."""
    words = [] if candidate.box is None else _box_words(candidate.box)
    if takes_clicks(candidate):
        words.append(CLICKABLE)
    return "".join(f"{word} " for word in words)


def split_place(text: str) -> tuple[str, str]:
    """The place words that a text begins with, and the text without them."""
    found = PLACE.match(text)
    end = found.end() if found else 0
    return text[:end], text[end:]


def _box_words(box: Box) -> list[str]:
    return [f"[x{_across(box.x)}]", f"[y{_down(box.y)}]", f"[w{_size(box.w)}]", f"[h{_size(box.h)}]"]


def _across(x: float) -> int:
    return int(_within(0, x // ACROSS + 1, LAST_ACROSS))


def _down(y: float) -> int:
    if y < FIRST_DOWN:
        return int(y >= 0)
    return int(_within(2, 2 + math.floor(2 * math.log2(y / FIRST_DOWN)), LAST_DOWN))


def _size(pixels: float) -> int:
    return int(_within(0, round(math.log2(max(pixels, 1) / LEAST_SIZE)), LAST_SIZE))


def _within(least: float, value: float, most: float) -> float:
    return max(least, min(value, most))

"""The dialogue of a web agent about one step, as a list of what is said: nothing shared with the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

BAD = {"no mark": "format_error", "no action": "no_act", "bad label": "bad_label"}
ENDS = {"back": "left_page", "answer": "answered_early"}


@dataclass
class Played:
    """How a step went."""

    tops: list[int] = field(default_factory=list)
    """Of the window at each turn."""
    is_corrected: list[bool] = field(default_factory=list)
    """Whether the turn's question follows a bad reply."""
    failure: str | None = None
    format_errors: int = 0
    bad_labels: int = 0
    recovered: bool = False


def play(said: Sequence[str], page: int, window: int, scroll: int, turns: int) -> Played:
    """`said`: the kind of each reply; `page`, `window` and `scroll`: heights in pixels."""
    played, top = Played(), 0
    for number in range(turns):
        kind = said[number]
        played.tops.append(top)
        played.is_corrected.append(number > 0 and said[number - 1] in BAD)
        if kind == "down":
            lowest = page - window if page > window else 0
            top = top + scroll if top + scroll < lowest else lowest
            played.failure = "scrolled"
        elif kind == "up":
            top = top - scroll if top > scroll else 0
            played.failure = "scrolled"
        elif kind in BAD:
            played.failure = BAD[kind]
            played.bad_labels += kind == "bad label"
            played.format_errors += kind != "bad label"
        elif kind in ENDS:
            played.failure = ENDS[kind]
            return played
        else:
            played.failure = None
            played.recovered = any(one in BAD for one in said[:number])
            return played
    return played

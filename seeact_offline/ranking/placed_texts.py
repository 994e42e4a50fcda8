"""A candidate's text with what the published one leaves out: where it lies, whether it takes clicks, what comes before it.

Of what comes before a candidate the published texts know siblings alone, so a form's button is as good as alone where each
field has a box of its own. Whoever fills in a form goes on where they were, so a placed text names the last two controls
before the candidate, whatever boxes they are in::

    [x1] [y9] [w4] [h2] [click] ancestors: /html
    after: /select topic Damaged baggage/textarea message
    target: (button id=0 Send message )
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from seeact_offline.dom import Page
from seeact_offline.ranking.places import place_words, split_place, takes_clicks
from seeact_offline.records import Candidate

AFTER, TARGET = "\nafter: ", "\ntarget: "
N_CONTROLS, N_WORDS = 2, 4
# named before a candidate, and words of each
OPENING = re.compile(r"\((\w+)(?: id=\d+)?")
MARKS = re.compile(r"[()/]")


class Parts(NamedTuple):
    """A text of either form, taken apart. `str` puts it together again."""

    place: str
    # place words, with a space at the end
    ancestors: str
    # what comes next, `ancestors: ...`
    after: str
    # controls
    target: str

    def __str__(self) -> str:
        after = AFTER + self.after if self.after else ""
        return f"{self.place}{self.ancestors}{after}{TARGET}{self.target}"

    @property
    def published(self) -> str:
        """The text as published."""
        return f"{self.ancestors}{TARGET}{self.target}"


class Placement(NamedTuple):
    """What a placed text has more than the published one."""

    first: str
    # place words
    after: str
    # controls

    def of(self, text: str) -> str:
        """`text`: the published one."""
        ancestors, _, target = text.partition(TARGET)
        return str(Parts(self.first, ancestors, self.after, target))


class _Control(NamedTuple):
    position: int
    end: int
    # one past the last node inside it
    said: str


def split_text(text: str) -> Parts:
    place, text = split_place(text)
    before, _, target = text.partition(TARGET)
    ancestors, _, after = before.partition(AFTER)
    return Parts(place, ancestors, after, target)


def placements(candidates: Sequence[Candidate], texts: Mapping[str, str], page: Page) -> dict[str, Placement]:
    """By backend_node_id, in the order of the candidates. `texts`: the published ones of all of them."""
    targets = {c.backend_node_id: texts[c.backend_node_id].partition(TARGET)[2] for c in candidates}
    controls = sorted(
        _Control(*page.span(candidate.backend_node_id), said)
        for candidate in candidates
        if takes_clicks(candidate) and (said := _said(targets[candidate.backend_node_id]))
    )
    starts = [control.position for control in controls]
    found = {}
    for candidate in candidates:
        node = candidate.backend_node_id
        position = page.position(node)
        found[node] = Placement(place_words(candidate), _last(controls, bisect_left(starts, position), position))
    return found


def _said(target: str) -> str:
    """`/tag words`, empty where there are no words."""
    opening = OPENING.match(target)
    words = MARKS.sub(" ", OPENING.sub(" ", target)).split()[:N_WORDS]
    return f"/{opening[1]} {' '.join(words)}" if opening and words else ""


def _last(controls: Sequence[_Control], n: int, limit: int) -> str:
    """The last of the first `n` that end by `limit`, in document order, none inside another."""
    said: list[str] = []
    while n and len(said) < N_CONTROLS:
        n -= 1
        if controls[n].end <= limit:
            said.append(controls[n].said)
            limit = controls[n].position
    return "".join(reversed(said))

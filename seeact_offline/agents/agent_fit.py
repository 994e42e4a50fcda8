"""Finds the agent that wrote some replies: every agent's language and frame is tried on them, and the shares that it
reads and places are compared.

A language is judged by the replies that its own reader takes. What decides between two frames is the data: a frame that
is not the model's puts places beside every element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from seeact_offline.agents import GROUNDERS, GUI_MODELS, Act, Agent, Unreadable
from seeact_offline.agents.agent_record import View, bare_reply, read_parts
from seeact_offline.agents.reply_pictures import SIZES, shown_of
from seeact_offline.agents.screens import Shown, Size
from seeact_offline.files.formats import as_number
from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.records import Box
from seeact_offline.scoring.report import counted

MOST_NAMED = 6
"""Agents of a row that a sentence names."""
FIGURES = {
    "own": "own language", "read": "read", "on_page": "places on the page", "on_candidate": "on a candidate",
    "element": "on the right element", "texts": "types or selects",
}  # fmt: skip
"""Figures of `AgentFit` -> their names in tables."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """A reply, and what is known of the picture that it is about."""

    text: str
    geometry: Mapping[str, Any] = field(default_factory=dict)
    """Any of SIZES and PARTS of `reply_pictures`."""
    page: Size | None = None
    right: Sequence[Box] | None = None
    """Boxes of the right element on the page; None where the step is not known."""
    candidates: Sequence[Box] = ()
    """Empty where they are not known."""

    @property
    def has_size(self) -> bool:
        return self.page is not None or all(as_number(self.geometry.get(name)) is not None for name in SIZES)


@dataclass(frozen=True, slots=True)
class AgentFit:
    """Figures of an agent over the replies, and of all others that have the same."""

    agents: tuple[str, ...]
    own: float
    """Share of the replies that its own reader takes."""
    read: float
    """Share that is read at all."""
    on_page: float | None
    """Share of the places that lie within its frame; None where there is none, or the pictures' sizes are not known."""
    on_candidate: float | None
    """Share of the places that lie on a candidate; None where the pages are not known."""
    element: float | None
    """Share of the replies whose place is in the box of the right element; None where the steps are not known."""
    texts: float
    """Share of the replies that it reads as typing or selecting."""

    @property
    def rank(self) -> tuple[float, ...]:
        """The better of two fits has the greater one: first what of the language is read, then where the places lie.
        Both figures of the data count: a weak model is on few right elements in any frame."""
        # a frame of unknown size may hold all places: it comes behind one that does
        held = 0.999 if self.on_page is None else self.on_page
        return self.own, self.texts, (self.on_candidate or 0.0) + (self.element or 0.0), held, self.read

    def named(self) -> str:
        more = ", ..." if len(self.agents) > MOST_NAMED else ""
        return ", ".join(self.agents[:MOST_NAMED]) + more

    def lead(self, other: AgentFit) -> str:
        """The first figures by which this one is ahead of another, in points; empty where those that are known for both
        are equal."""
        for names in (("own",), ("texts",), ("on_candidate", "element"), ("on_page",), ("read",)):
            pairs = [(FIGURES[name], getattr(self, name), getattr(other, name)) for name in names]
            points = [
                f"{percent(mine - theirs)} points ({name})"
                for name, mine, theirs in pairs
                if None not in (mine, theirs) and mine != theirs
            ]
            if points:
                return " and ".join(points)
        return ""


@dataclass(frozen=True, slots=True)
class AgentFits:
    """The agents from the best to the worst."""

    rows: Sequence[AgentFit]
    n_replies: int

    @property
    def best(self) -> AgentFit | None:
        """None where no agent reads anything."""
        return self.rows[0] if self.rows and self.rows[0].read else None

    def row_of(self, agent: str) -> AgentFit | None:
        return next((row for row in self.rows if agent in row.agents), None)

    def table(self) -> Table:
        """One row for the agents that cannot be told apart; those that read nothing are named below."""
        silent = [name for row in self.rows if not row.read for name in row.agents]
        rows = [
            (", ".join(row.agents), *(percent(getattr(row, name)) for name in FIGURES)) for row in self.rows if row.read
        ]
        notes = [f"Percent of {counted(self.n_replies, 'reply', 'replies')}, or of the places in them."]
        if silent:
            notes.append(f"Nothing is read by {', '.join(silent)}.")
        return Table(header=("agent", *FIGURES.values()), rows=rows, notes=notes)

    def sentence(self) -> str:
        """The best fit, and its lead."""
        if self.best is None:
            return f"no agent reads any of the {self.n_replies:,} replies"
        following = next((row for row in self.rows[1:] if row.read), self.best)
        lead = self.best.lead(following)
        return f"best fit: {self.best.named()}" + (f", ahead of {following.named()} by {lead}" if lead else "")


def _way(agent: Agent) -> tuple[Any, ...]:
    """Tells apart agents that read and place alike."""
    reader: Any = agent.reader
    if isinstance(reader, partial):
        reader = reader.func, reader.args, repr(sorted(reader.keywords.items()))
    return (
        reader, tuple(sorted(agent.verbs.items())), agent.reads_others,
        agent.frame, agent.view.resize, agent.view.part, tuple(sorted(agent.fold.endings.items())),
    )  # fmt: skip


class _Reading(NamedTuple):
    """A reply in one language."""

    acts: tuple[Act, ...]
    """None of them: it cannot be read."""
    is_own: bool


def _read(agent: Agent, bare: str, reply: str) -> _Reading:
    try:
        return _Reading(read_parts(agent.reader, bare), is_own=True)
    except Unreadable:
        pass
    try:
        return _Reading(agent.read(reply), is_own=False)
    except Unreadable:
        return _Reading((), is_own=False)


def agent_fits(replies: Iterable[RawReply]) -> AgentFits:
    """Tries every agent and grounder on the replies. Those of one language and frame are computed once."""
    ways: dict[tuple[Any, ...], list[str]] = {}
    agents = {name: doors[name] for doors in (GUI_MODELS, GROUNDERS) for name in doors}
    for name, agent in agents.items():
        ways.setdefault(_way(agent), []).append(name)
    tallies: dict[tuple[Any, ...], Counter[str]] = {way: Counter() for way in ways}
    n = 0
    for reply in replies:
        n += 1
        bare = bare_reply(reply.text)
        readings: dict[Any, _Reading] = {}
        pictures: dict[View, Shown] = {}
        for way, names in ways.items():
            agent = agents[names[0]]
            if way[0] not in readings:
                readings[way[0]] = _read(agent, bare, reply.text)
            if agent.view not in pictures:
                pictures[agent.view] = shown_of(reply.geometry, agent, reply.page)[0]
            _count(tallies[way], readings[way[0]], agent, reply, pictures[agent.view])
    rows: dict[AgentFit, list[str]] = {}
    for way, names in ways.items():
        rows.setdefault(_fit(tallies[way], n), []).extend(names)
    order = {name: position for position, name in enumerate(agents)}
    fits = [replace(fit, agents=tuple(sorted(names, key=order.__getitem__))) for fit, names in rows.items()]
    return AgentFits(sorted(fits, key=lambda fit: fit.rank, reverse=True), n)


def _count(tally: Counter[str], reading: _Reading, agent: Agent, reply: RawReply, shown: Shown) -> None:
    """Adds a reply as an agent reads it."""
    tally["steps"] += reply.right is not None
    if not reading.acts:
        return
    tally["read"] += 1
    tally["own"] += reading.is_own
    tally["texts"] += any(act.kind in ("type", "select") for act in reading.acts)
    answer = agent.answer(reading.acts, shown)
    is_outside = answer.failure == "point_outside"
    if answer.place is None and not is_outside:
        return
    tally["places"] += 1
    tally["sized"] += reply.has_size or agent.frame.scale is not None
    tally["on_page"] += not is_outside
    tally["known"] += bool(reply.candidates)
    if answer.place is not None:
        tally["on_candidate"] += any(box.contains(*answer.place) for box in reply.candidates)
        tally["right"] += any(box.contains(*answer.place) for box in reply.right or ())


def _fit(tally: Counter[str], n: int) -> AgentFit:
    places = tally["places"]
    return AgentFit(
        (), tally["own"] / max(n, 1), tally["read"] / max(n, 1),
        tally["on_page"] / places if places and tally["sized"] == places else None,
        tally["on_candidate"] / places if places and tally["known"] == places else None,
        tally["right"] / tally["steps"] if tally["steps"] else None,
        tally["texts"] / max(n, 1),
    )  # fmt: skip

"""A step's page as a web agent sees it: window by window, with the element that each label leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from seeact_offline.agents import Agent, Answer
from seeact_offline.agents.gui_agent import landed, list_of_entry
from seeact_offline.grounding.pixel import elements
from seeact_offline.pages.pointing import element_at
from seeact_offline.records import Message
from seeact_offline.web_agents.observations import Label, Observation, Observe, Scene
from seeact_offline.web_agents.web_actions import Grammar


@dataclass(frozen=True, slots=True)
class WebAgent:
    """A web agent: its window and language, what it is shown, and how its dialogue is led."""

    agent: Agent
    grammar: Grammar
    observations: Mapping[str, Observe]
    """Observations by name, the usual one first."""
    clip: Callable[[Sequence[Message], bool], tuple[Message, ...]]
    """Clips a dialogue; True: as released, with its accidents."""
    head: str = ""
    """Stands above each observation of a dialogue; empty: no dialogue, every question stands alone."""
    correction: Literal["alone", "above", "last action"] = "last action"
    """Place of a correction: in a message of its own, above the next observation, or in place of the last action."""
    names_elements: bool = False
    """True: a label is its element; False: the place that it points at decides."""
    presses_enter: bool = False
    """True if its typing ends with Enter, which its language does not say."""


@dataclass(frozen=True, slots=True)
class SeenWindow:
    """A window of a page."""

    shown: Observation
    leads: Mapping[str, str | None] = field(repr=False)
    """Label -> the element that an action on it is judged by."""


@dataclass(frozen=True, slots=True)
class Target:
    """The first window that shows the right element, if any does."""

    n_scrolls: int
    seen: SeenWindow
    label: str | None = None
    cause: str = ""
    """Reason why no window shows it: `not_marked` or `target_cut_off`."""
    reply: str = ""
    """The ideal reply once it is in view; where it is out of reach, one with the right operation."""
    hits: bool = False
    """Tells whether that reply, read and mapped to the page within the turns there are, leads to a positive."""


class PageWindows:
    """A step's page as an agent sees it, window by window."""

    def __init__(self, web: WebAgent, observe: Observe, scene: Scene) -> None:
        self.scene, self.step = scene, scene.step
        self._web, self._observe = web, observe
        self._boxes = elements(scene.step, scene.page)
        self._tags = {one.backend_node_id: one.tag for one in scene.step.candidates}
        self._seen: dict[int, SeenWindow] = {}
        self._last = max(0, scene.size[1] - web.agent.view.size[1])

    @property
    def tops(self) -> list[int]:
        """The windows that scrolling down leads to."""
        return [*range(0, self._last, self._web.agent.view.step), self._last]

    def scrolled(self, top: int, direction: str | None) -> int:
        step = self._web.agent.view.step
        return min(max(top + (-step if direction == "up" else step), 0), self._last)

    def at(self, top: int) -> SeenWindow:
        if top not in self._seen:
            width, height = self._web.agent.view.size
            window = (0, top, min(width, self.scene.size[0]), min(top + height, self.scene.size[1]))
            shown = self._observe(self.scene, window)
            leads = {name: self._lead(one) for name, one in shown.labels.items() if one.is_shown or one.is_cut}
            self._seen[top] = SeenWindow(shown, leads)
        return self._seen[top]

    def landed(self, label: Label, answer: Answer) -> tuple[str | None, Answer]:
        """The element that an answer with this label means, and the answer. Typing into a list selects."""
        answer = replace(answer, place=label.place)
        if self._web.names_elements:
            node, answer = list_of_entry(self.step, self.scene.page, label.id, answer)
        else:
            node, answer = landed(self.step, self.scene.page, answer)
        if answer.op == "TYPE" and self._tags.get(node or "") == "select":
            answer = replace(answer, op="SELECT")
        return node, answer

    def _lead(self, label: Label) -> str | None:
        node = label.id if self._web.names_elements else label.place and element_at(label.place, self._boxes)
        return self.landed(label, Answer("CLICK"))[0] if self._tags.get(node or "") == "option" else node

    def find(self) -> Target:
        """The first window with a positive; the first of all where none has any."""
        positives = self.step.truth.positives
        cause = "not_marked" if positives else ""
        for n_scrolls, top in enumerate(self.tops):
            seen = self.at(top)
            labels = seen.shown.labels
            right = [name for name, node in seen.leads.items() if node in positives]
            # a label of its own comes before one of what merely lies at its place
            right = sorted(right, key={name: one.id not in positives for name, one in labels.items()}.__getitem__)
            if shown := next((name for name in right if labels[name].is_shown), None):
                return Target(n_scrolls, seen, shown)
            cause = "target_cut_off" if right else cause
        return Target(0, self.at(0), cause=cause)

    def is_lenient_hit(self, label: Label) -> bool:
        """Tells whether it is around or inside of a positive, or its place is in the box of one."""
        page, truth = self.scene.page, self.step.truth
        if label.place is not None and any(box.contains(*label.place) for box in truth.boxes):
            return True
        spans = [page.span(node) for node in truth.positives if node in page.ids]
        own = page.span(label.id) if label.id in page.ids else (-1, -1)
        return any(a <= own[0] < b or own[0] <= a < own[1] for a, b in spans)

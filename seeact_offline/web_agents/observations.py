"""Observations of web agents: what a window onto a recorded page shows, what each label in it stands for, and a page window by window.

WebVoyager sees a marked window with a list of texts, or a tree; VisualWebArena one of five observations; OpenWebVoyager a tree beside
the plain window. Marks and trees are those of `marks` and `trees`, with the fall-backs of `screen_page`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from seeact_offline.agents import Agent, Answer
from seeact_offline.agents.gui_agent import landed, list_of_entry
from seeact_offline.agents.screens import Point, Rectangle
from seeact_offline.dataset.recorded import AccessibilityTree
from seeact_offline.grounding.pixel import elements
from seeact_offline.models.tokens import cut_words
from seeact_offline.pages.dom import Page
from seeact_offline.pages.pointing import element_at
from seeact_offline.pages.screenshots import Crop, PagePicture, encode
from seeact_offline.records import PNG, Box, CropBox, ImageFormat, Message, Picture, Step
from seeact_offline.web_agents import marks, trees
from seeact_offline.web_agents.marks import Mark
from seeact_offline.web_agents.page_trees import fill_boxes, html_of_page, tree_of_page, tree_of_recording
from seeact_offline.web_agents.screen_page import screen_of
from seeact_offline.web_agents.trees import TreeNode, TreeText
from seeact_offline.web_agents.web_actions import Grammar

if TYPE_CHECKING:
    from PIL import Image

Draw = Callable[["Image.Image", Sequence[Mark]], "Image.Image"]
Captions = Mapping[str, str]
"""Id of a picture -> its caption."""


class MarkedWindow:
    """A window's picture with marks drawn on it, a `Picture`."""

    def __init__(self, crop: Crop, drawn: Sequence[Mark], draw: Draw) -> None:
        self.crop, self._marks, self._draw = crop, tuple(drawn), draw

    @property
    def key(self) -> str:
        drawn = repr([(mark.label, mark.rects) for mark in self._marks if mark.is_drawn])
        return f"{self.crop.key}+{self._draw.__name__}:{hashlib.sha256(drawn.encode()).hexdigest()[:16]}"

    @property
    def box(self) -> CropBox:
        return self.crop.box

    @property
    def size(self) -> tuple[int, int]:
        return self.crop.size

    def image(self) -> Image.Image:
        return self._draw(self.crop.image(), self._marks)

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        return encode(self.image(), image_format)


@dataclass(frozen=True, slots=True)
class Label:
    """The element and place that a label stands for."""

    id: str
    """`backend_node_id` of what it names."""
    place: Point | None
    """The place that an action on it points at, in pixels of the page; None for what has no box."""
    words: str = ""
    """Its line of the observation without the label, where lines tell what there is."""
    is_shown: bool = True
    """False: it can be neither seen nor read, though an action may name it."""
    is_cut: bool = False
    """True if it is not shown because the observation was too long."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The texts and picture of a window that an agent is shown."""

    window: Rectangle
    text: str
    picture: Picture | None
    labels: Mapping[str, Label] = field(repr=False)
    is_cut: bool = False
    """True if the text was too long, and is shown up to MAX_TOKENS."""


class Scene:
    """A step's page, from which the observations of its windows are made."""

    def __init__(
        self,
        step: Step,
        page: Page,
        picture: PagePicture,
        captions: Captions | None = None,
        cut: Callable[[str, int], str] = cut_words,
    ) -> None:
        """`captions`: None where pictures go without. `cut`: a text and a number of tokens -> the text up to there. Raises RowError
        `bad_recording` or `bad_screenshot`."""
        self.step, self.page, self.picture, self.cut = step, page, picture, cut
        self.size = picture.size
        screen = screen_of(step, page)
        self.address, self.title, self.fall_backs = screen.address, screen.title, screen.fall_backs
        self._alts: dict[str, str] = {}
        if captions is not None:
            pictures = (one for one in screen.elements if one.tag == "img")
            self._alts = {
                one.id: trees.caption_text(one.attributes.get("alt", ""), captions.get(one.id)) for one in pictures
            }
        self.elements = tuple(
            replace(one, attributes={**one.attributes, "alt": self._alts[one.id]}) if one.id in self._alts else one
            for one in screen.elements
        )

    @cached_property
    def tree(self) -> TreeNode:
        """The recorded tree; for a row without one, that of the cleaned HTML."""
        recorded = self.step.recorded.read(AccessibilityTree) if self.step.recorded else None
        if recorded is None or not recorded.nodes:
            return tree_of_page(self.page, self._boxes, self.title, self._alts)
        return tree_of_recording(recorded.nodes, fill_boxes(self.page, self._boxes), self._alts)

    @cached_property
    def html(self) -> TreeNode:
        return html_of_page(self.page, self._boxes)

    @cached_property
    def _boxes(self) -> dict[str, Box]:
        # the first of those that share an id is not a part of it
        return {one.id: one.box for one in reversed(self.elements) if one.box is not None}

    def crop(self, window: Rectangle) -> Crop:
        return self.picture.crop(CropBox(*window))


Observe = Callable[[Scene, Rectangle], Observation]


def observe_webvoyager(scene: Scene, window: Rectangle) -> Observation:
    """WebVoyager's marked window and list of texts."""
    found = marks.webvoyager(scene.elements, window)
    picture = MarkedWindow(scene.crop(window), found, marks.draw_webvoyager)
    return Observation(window, marks.webvoyager_list(found), picture, _labels_of(found, window))


def observe_webvoyager_text(scene: Scene, window: Rectangle) -> Observation:
    """WebVoyager's tree."""
    printed = trees.print_webvoyager(scene.tree, _box(window))
    return Observation(window, printed.text, None, _labels_in(printed, printed.text))


def observe_open(scene: Scene, window: Rectangle) -> Observation:
    """OpenWebVoyager's tree and plain window. Its actions point at the middle of what the window shows of a box."""
    printed = trees.print_open(scene.tree, _box(window))
    labels = _labels_in(printed, printed.text)
    for name, node in printed.nodes.items():
        if node.box is not None:
            left, right = max(node.box.x, window[0]), min(node.box.right, window[2])
            top, bottom = max(node.box.y, window[1]), min(node.box.bottom, window[3])
            # in the window's pixels, as halves are rounded down
            x, y = left - window[0] + max(0, right - left) // 2, top - window[1] + max(0, bottom - top) // 2
            labels[name] = replace(labels[name], place=(x + window[0], y + window[1]))
    return Observation(window, printed.text, scene.crop(window), labels)


def observe_som(scene: Scene, window: Rectangle) -> Observation:
    """VisualWebArena's marked window and list; the tree in place of an empty list, as released."""
    found = marks.visualwebarena(scene.elements, window)
    text = marks.visualwebarena_list(found) or trees.print_arena(scene.tree, _box(window)).text
    picture = MarkedWindow(scene.crop(window), found, marks.draw_visualwebarena)
    shown = scene.cut(text, trees.MAX_TOKENS)
    return Observation(window, shown, picture, _labels_of(found, window), shown != text)


def observe_tree(scene: Scene, window: Rectangle) -> Observation:
    """VisualWebArena's tree alone."""
    return _arena(scene, window, trees.print_arena(scene.tree, _box(window)))


def observe_tree_and_picture(scene: Scene, window: Rectangle) -> Observation:
    """The same beside the plain window."""
    return replace(observe_tree(scene, window), picture=scene.crop(window))


def observe_html(scene: Scene, window: Rectangle) -> Observation:
    """VisualWebArena's HTML."""
    return _arena(scene, window, trees.print_html(scene.html, _box(window)))


def _arena(scene: Scene, window: Rectangle, printed: TreeText) -> Observation:
    headed = printed.below(f"Tab 0 (current): {scene.title}")
    text = scene.cut(headed.text, trees.MAX_TOKENS)
    return Observation(window, text, None, _labels_in(headed, text), text != headed.text)


def _box(window: Rectangle) -> Box:
    left, top, right, bottom = window
    return Box(left, top, right - left, bottom - top)


def _labels_of(found: Sequence[Mark], window: Rectangle) -> dict[str, Label]:
    return {
        str(mark.label): Label(
            mark.element_id, (mark.center[0] + window[0], mark.center[1] + window[1]), is_shown=mark.is_drawn
        )
        for mark in found
        if mark.label is not None
    }


def _labels_in(printed: TreeText, text: str) -> dict[str, Label]:
    """The labels of a tree. `text`: what is shown of it."""
    labels = {}
    for name, node in printed.nodes.items():
        is_shown = printed.shows(name, text)
        place = None if node.box is None else node.box.center
        labels[name] = Label(node.id, place, printed.words(name), is_shown, not is_shown and printed.shows(name))
    return labels


# --- window by window ---


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

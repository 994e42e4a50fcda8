"""Compares a data set with real pages and tasks: one pass over its steps, without decoding pictures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

from seeact_offline.pages.dom import Page
from seeact_offline.pages.element_texts import ElementTexts
from seeact_offline.pages.element_types import LINK
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import RowError, Step

FOLD = 1000
"""Page pixels from the top below which a target counts as low."""

_WORD = re.compile(r"[^\W_]{3,}")


@dataclass(frozen=True, slots=True)
class StepFigures:
    """The part of one step that a profile needs."""

    annotation_id: str
    task_words: int
    elements: int
    page_height: int | None
    """None where no picture can be opened."""
    boxes: int
    """Candidates with a box, on a page whose picture can be opened."""
    boxes_off_page: int
    is_select: bool
    positives: int
    is_link: bool
    is_below_fold: bool
    shares_word: bool


@dataclass(frozen=True, slots=True)
class DatasetProfile:
    """The figures of one split; shares from 0 to 1. None over nothing. The target of a step is its first positive.

    Shares of steps are of all steps: one without a target has none that is a link, lies low or shares a word.
    """

    elements_a_page: float | None
    """Mean number of candidates listed, positive or not."""
    page_height: float | None
    """Median height of the pictures, in pixels."""
    boxes_off_page: float | None
    """Share of the candidates' boxes that lie wholly outside the picture: right or bottom edge at 0 or before, left edge
    at its width or beyond, or top edge at its height or beyond."""
    tasks_of_1_to_4_actions: float | None
    """Share of tasks with up to four rows."""
    tasks_of_10_or_more_actions: float | None
    """Share of tasks with ten rows or more."""
    select: float | None
    """Share of steps whose operation is SELECT."""
    several_positives: float | None
    """Share of steps with more than one positive."""
    no_positive: float | None
    """Share of steps without any positive."""
    link_targets: float | None
    """Share of steps whose target has the tag `a` or the role `link`."""
    targets_below_1000_px: float | None
    """Share of steps whose target's box begins below the first 1,000 pixels of the page."""
    task_words: float | None
    """Mean number of words of a task, as parted by spaces."""
    targets_sharing_a_word: float | None
    """Share of steps with a word of three or more letters or digits, upper case aside, both in the task and in the target's
    texts (`pages.element_texts`: visible words, label, options, `aria-label`, `placeholder`, ...)."""


class RealFigure(NamedTuple):
    """The range of a figure over real data, from the paper and the published rows of Mind2Web."""

    title: str
    low: float
    high: float
    is_share: bool = True
    remark: str = ""


REAL = {
    "elements_a_page": RealFigure("elements a page", 494, 612, is_share=False),
    "page_height": RealFigure("median page height, px", 4000, 8000, is_share=False, remark="one page: 7,412"),
    "boxes_off_page": RealFigure("boxes off page", 0.28, 0.28, remark="one page"),
    "tasks_of_1_to_4_actions": RealFigure("tasks of 1-4 actions", 0.27, 0.41),
    "tasks_of_10_or_more_actions": RealFigure("tasks of 10+ actions", 0.11, 0.27),
    "select": RealFigure("SELECT", 0.02, 0.07),
    "several_positives": RealFigure("several positives", 0.01, 0.04),
    "no_positive": RealFigure("no positive", 0.04, 0.06),
    "link_targets": RealFigure("link targets", 0.14, 0.27),
    "targets_below_1000_px": RealFigure("target below 1,000 px", 0.11, 0.15),
    "task_words": RealFigure("task words", 12, 15, is_share=False),
    "targets_sharing_a_word": RealFigure("target shares a word with the task", 0.48, 0.52),
}
"""Figures of real pages and tasks, by field of `DatasetProfile`."""


def step_figures(step: Step) -> StepFigures:
    """Reads what the row, its page and the picture's header say. Faulty rows count with what they have."""
    size = None
    if step.screenshot is not None:
        with suppress(RowError):
            size = PagePicture(step.screenshot).size
    boxes = [c.box for c in step.candidates if c.box is not None] if size else []
    positives = [c for c in step.candidates if c.is_positive]
    target = positives[0] if positives else None
    kind, texts = _type_and_texts(step.cleaned_html, target.backend_node_id) if target else ("", ())
    return StepFigures(
        annotation_id=step.annotation_id,
        task_words=len(step.task.split()),
        elements=len(step.candidates),
        page_height=size[1] if size else None,
        boxes=len(boxes),
        boxes_off_page=sum(box.is_off(size) for box in boxes) if size else 0,
        is_select=step.operation.op == "SELECT",
        positives=len(positives),
        is_link=target is not None and (target.tag == "a" or kind == LINK),
        is_below_fold=target is not None and target.box is not None and target.box.y > FOLD,
        shares_word=not _words(step.task).isdisjoint(_words(" ".join(texts))),
    )


def dataset_profile(steps: Iterable[StepFigures]) -> DatasetProfile:
    """Sums up the steps of one split."""
    steps = list(steps)
    actions = Counter(step.annotation_id for step in steps)
    task_words = {step.annotation_id: step.task_words for step in steps}
    heights = [step.page_height for step in steps if step.page_height is not None]
    boxes = sum(step.boxes for step in steps)
    return DatasetProfile(
        elements_a_page=_mean([step.elements for step in steps]),
        page_height=median(heights) if heights else None,
        boxes_off_page=sum(step.boxes_off_page for step in steps) / boxes if boxes else None,
        tasks_of_1_to_4_actions=_mean([count <= 4 for count in actions.values()]),
        tasks_of_10_or_more_actions=_mean([count >= 10 for count in actions.values()]),
        select=_mean([step.is_select for step in steps]),
        several_positives=_mean([step.positives > 1 for step in steps]),
        no_positive=_mean([step.positives == 0 for step in steps]),
        link_targets=_mean([step.is_link for step in steps]),
        targets_below_1000_px=_mean([step.is_below_fold for step in steps]),
        task_words=_mean(list(task_words.values())),
        targets_sharing_a_word=_mean([step.shares_word for step in steps]),
    )


def _type_and_texts(cleaned_html: str, backend_node_id: str) -> tuple[str, tuple[str, ...]]:
    """Type and texts of an element; empty where the page cannot be read or lacks it."""
    try:
        page = Page(cleaned_html)
        node = page.position(backend_node_id)
    except RowError:
        return "", ()
    elements = ElementTexts(list(page.nodes()))
    return elements.type_of(node), elements.of(node)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _mean(values: Sequence[int]) -> float | None:
    return fmean(values) if values else None

"""The figures of a data set, in one pass over its steps without decoding pictures: the SeeAct paper's Table 1
(`dataset_stats`), and how like real pages and tasks it is (`dataset_profile`).

The paper's domains are the hub's subdomains: its train split has 17 of them, and 3 in the column `domain`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, NamedTuple

from seeact_offline.models.tokens import Size, full_size_visual_tokens, visual_tokens
from seeact_offline.pages.dom import Page
from seeact_offline.pages.element_texts import ElementTexts
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.pages.wording import LINK
from seeact_offline.records import RowError, Step

FOLD = 1000
"""Page pixels from the top below which a target counts as low."""

_WORD = re.compile(r"[^\W_]{3,}")


# --- Table 1 ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """The figures of one split. An average is None if no row has the value."""

    split: str
    tasks: int
    steps: int
    domains: int
    """Distinct values of the column `domain`."""
    subdomains: int
    """The paper calls them domains."""
    websites: int
    actions_a_task: float | None
    """Rows per task."""
    elements_a_page: float | None
    """Candidates listed, positive or not."""
    html_tokens_a_page: float | None
    """Tokens of `cleaned_html`, over the rows that have it."""
    visual_tokens: float | None
    """Tokens by the published rule, over the rows whose picture can be opened."""
    visual_tokens_at_full_size: float | None
    """The same tiles over the page at full size, without the two downscales."""
    faulty_rows: int
    faults: Mapping[str, int]
    """Number of rows per fault; a row may have several."""


def dataset_stats(steps: Iterable[Step], split: str, count_tokens: Callable[[str], int]) -> DatasetStats:
    """Computes the figures of a split in one pass that keeps ids, names and counts only. A missing name is no other
    domain."""
    seen: dict[str, set[Any]] = {name: set() for name in ("tasks", "domains", "subdomains", "websites")}
    elements: list[int] = []
    html_tokens: list[int] = []
    sizes: list[Size] = []
    counts: Counter[str] = Counter()
    faulty_rows = 0
    for step in steps:
        faults = {fault.name for fault in step.faults}
        seen["tasks"].add(step.annotation_id)
        seen["domains"].update([step.domain] if step.domain else [])
        seen["subdomains"].update([(step.domain, step.subdomain)] if step.subdomain else [])
        seen["websites"].update([step.website] if step.website else [])
        elements.append(len(step.candidates))
        if step.cleaned_html.strip():
            html_tokens.append(count_tokens(step.cleaned_html))
        if step.screenshot is not None:
            try:
                sizes.append(PagePicture(step.screenshot).size)
            except RowError as error:
                faults.add(error.name)
        counts.update(faults)
        faulty_rows += bool(faults)
    tasks = len(seen["tasks"])
    return DatasetStats(
        split=split,
        tasks=tasks,
        steps=len(elements),
        domains=len(seen["domains"]),
        subdomains=len(seen["subdomains"]),
        websites=len(seen["websites"]),
        actions_a_task=len(elements) / tasks if tasks else None,
        elements_a_page=_mean(elements),
        html_tokens_a_page=_mean(html_tokens),
        visual_tokens=_mean([visual_tokens(size) for size in sizes]),
        visual_tokens_at_full_size=_mean([full_size_visual_tokens(size) for size in sizes]),
        faulty_rows=faulty_rows,
        faults=dict(sorted(counts.items())),
    )


# --- likeness to real data -------------------------------------------------------------------------------------------


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


class Likeness(NamedTuple):
    """One figure of a data set, and its range over real data, from the paper and the published rows of Mind2Web."""

    title: str
    low: float
    high: float
    of: Callable[[Sequence[StepFigures]], float | None]
    """From 0 to 1 where it is a share; None over nothing."""
    is_share: bool = True
    remark: str = ""


def _steps(value: Callable[[StepFigures], int]) -> Callable[[Sequence[StepFigures]], float | None]:
    """The mean over all steps: a step without a target has none that is a link, lies low or shares a word."""
    return lambda steps: _mean([value(step) for step in steps])


def _tasks(value: Callable[[int], bool]) -> Callable[[Sequence[StepFigures]], float | None]:
    """The share of tasks, by their number of rows."""
    return lambda steps: _mean([value(n) for n in Counter(step.annotation_id for step in steps).values()])


def _page_height(steps: Sequence[StepFigures]) -> float | None:
    heights = [step.page_height for step in steps if step.page_height is not None]
    return median(heights) if heights else None


def _boxes_off_page(steps: Sequence[StepFigures]) -> float | None:
    """The share of boxes that lie wholly outside the picture: right or bottom edge at 0 or before, left edge at its
    width or beyond, or top edge at its height or beyond."""
    boxes = sum(step.boxes for step in steps)
    return sum(step.boxes_off_page for step in steps) / boxes if boxes else None


LIKENESS = {
    # candidates listed, positive or not
    "elements_a_page": Likeness("elements a page", 494, 612, _steps(lambda step: step.elements), is_share=False),
    "page_height": Likeness(
        "median page height, px", 4000, 8000, _page_height, is_share=False, remark="one page: 7,412"
    ),
    "boxes_off_page": Likeness("boxes off page", 0.28, 0.28, _boxes_off_page, remark="one page"),
    "tasks_of_1_to_4_actions": Likeness("tasks of 1-4 actions", 0.27, 0.41, _tasks(lambda n: n <= 4)),
    "tasks_of_10_or_more_actions": Likeness("tasks of 10+ actions", 0.11, 0.27, _tasks(lambda n: n >= 10)),
    "select": Likeness("SELECT", 0.02, 0.07, _steps(lambda step: step.is_select)),
    "several_positives": Likeness("several positives", 0.01, 0.04, _steps(lambda step: step.positives > 1)),
    "no_positive": Likeness("no positive", 0.04, 0.06, _steps(lambda step: step.positives == 0)),
    # the target, a step's first positive, has the tag `a` or the role `link`
    "link_targets": Likeness("link targets", 0.14, 0.27, _steps(lambda step: step.is_link)),
    "targets_below_1000_px": Likeness("target below 1,000 px", 0.11, 0.15, _steps(lambda step: step.is_below_fold)),
    # as parted by spaces
    "task_words": Likeness(
        "task words", 12, 15, lambda steps: _mean(list({s.annotation_id: s.task_words for s in steps}.values())), is_share=False
    ),
    # a word of three or more letters or digits, upper case aside, both in the task and in the target's texts (`ElementTexts`)
    "targets_sharing_a_word": Likeness(
        "target shares a word with the task", 0.48, 0.52, _steps(lambda step: step.shares_word)
    ),
}  # fmt: skip


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


def dataset_profile(steps: Iterable[StepFigures]) -> dict[str, float | None]:
    """The figures of LIKENESS over the steps of one split."""
    steps = list(steps)
    return {name: figure.of(steps) for name, figure in LIKENESS.items()}


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

"""A step made ready for questions, and its right answer with what page and picture add to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec

from seeact_offline.grounding import PreparedStep
from seeact_offline.pages.dom import Page, page_of
from seeact_offline.pages.kinship import find_kin
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.ranking import Scores, check_candidates, top_k
from seeact_offline.records import RowError, Step, StepError, Truth

LONGEST = 80
"""Characters of an element's text."""
OF_PICTURES = frozenset({"no_screenshot", "bad_screenshot"})
"""Faults of a row that do no harm where no picture is shown."""
_NO_SCREENSHOT = "the row has no screenshot"


def prepare(step: Step, scores: Scores | None, k: int, needs_picture: bool = True) -> PreparedStep:
    """Parses a step, and ranks its candidates where there are scores. Raises StepError (RowError for what the row gets
    wrong, with the ranks that it has)."""
    try:
        _check(step, needs_picture)
    except RowError as error:
        with suppress(StepError):
            if scores is not None:
                error.ranked = tuple(candidate.backend_node_id for candidate in top_k(step, scores, k))
        raise
    page = page_of(step)
    if step.has_page:
        check_candidates(step, page)
    ranked = () if scores is None else top_k(step, scores, k, page)
    return PreparedStep(step, page, PagePicture(step.screenshot or _Missing()), ranked)


def _check(step: Step, needs_picture: bool) -> None:
    """Raises RowError for a row that no question can be made of."""
    for fault in step.faults:
        if needs_picture or fault.name not in OF_PICTURES:
            raise RowError(fault.name, fault.detail)
    if not step.candidates:
        raise RowError("no_candidates", "the row lists no candidate")
    if step.screenshot is None and needs_picture:
        raise RowError("no_screenshot", _NO_SCREENSHOT)


class _Missing:
    """The screenshot of a row without one, for questions that show none."""

    def read(self) -> bytes:
        raise RowError("no_screenshot", _NO_SCREENSHOT)


def target_of(step: Step, read: Callable[[], Page]) -> Truth:
    """`step.truth` with what its picture and page add, as far as they can be read; `read` gives the page."""
    truth, size = step.truth, picture_size(step)
    try:
        near = find_kin(read(), step.candidates, size)
        words = element_text(read(), truth.target)
    except Exception:
        # a page that we never met must not end a run; that this step could not be asked is said in its prediction
        near, words = {}, ""
    return msgspec.structs.replace(truth, picture_size=size, kin=near, element_text=words)


def picture_size(step: Step) -> tuple[int, int] | None:
    """Width and height of the step's screenshot in pixels; None where there is none that can be opened."""
    with suppress(RowError):
        return None if step.screenshot is None else PagePicture(step.screenshot).size
    return None


def element_text(page: Page, node: str | None) -> str:
    """The page's text of an element, in at most LONGEST characters; empty for none and
    for one that is not on the page."""
    if node is None or node not in page.ids:
        return ""
    written = page.ranker_text(node).split("\ntarget: ", 1)[-1].replace(" id=0", "", 1)
    words = " ".join(written.removeprefix("(").removesuffix(")").split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 3]}..."

"""The right answer at a step, with what its page and picture add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from seeact_offline.pages.dom import Page
from seeact_offline.pages.kinship import find_kin
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import RowError, Step, Truth

LONGEST = 80
"""Characters of an element's text."""


def target_of(step: Step, read: Callable[[], Page]) -> Truth:
    """`step.truth` with what its picture and page add, as far as they can be read; `read` gives the page."""
    size = _picture_size(step)
    truth = step.truth
    try:
        near = find_kin(read(), step.candidates, size)
        words = element_text(read(), truth.target)
    except Exception:
        # a page that we never met must not end a run; that this step could not be asked is said in its prediction
        near, words = {}, ""
    return replace(truth, picture_size=size, kin=near, element_text=words)


def element_text(page: Page, node: str | None) -> str:
    """What the page says of an element, in at most LONGEST characters; empty for none and for one that is not on it."""
    if node is None or node not in page.ids:
        return ""
    written = page.ranker_text(node).split("\ntarget: ", 1)[-1].replace(" id=0", "", 1)
    words = " ".join(written.removeprefix("(").removesuffix(")").split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 3]}..."


def _picture_size(step: Step) -> tuple[int, int] | None:
    try:
        return None if step.screenshot is None else PagePicture(step.screenshot).size
    except RowError:
        return None

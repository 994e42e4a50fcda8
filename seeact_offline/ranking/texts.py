"""The texts that a ranker reads of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seeact_offline.pages.dom import Page
from seeact_offline.records import RowError, Step, StepKey

TEXT_VERSION = 2
"""Version of the candidate texts: scores of one version do not hold for another."""


@dataclass(frozen=True, slots=True)
class RankerInput:
    """A step as a ranker reads it."""

    key: StepKey
    query: str
    texts: Mapping[str, str]
    """backend_node_id -> its text (`candidate_texts`), in the row's order."""
    places: Mapping[str, int]
    """backend_node_id -> place in document order."""

    @property
    def in_document_order(self) -> list[str]:
        return sorted(self.texts, key=lambda node: self.places[node])


def candidate_texts(step: Step, page: Page | None = None) -> dict[str, str]:
    """backend_node_id -> `ancestors: ...\\ntarget: ...`, the cross-encoder's text for each candidate of the step.

    >>> from seeact_offline import load_steps
    >>> step = next(load_steps("sample", "train"))
    >>> (right,) = (one.backend_node_id for one in step.candidates if one.is_positive)
    >>> print(candidate_texts(step)[right])
    ancestors: /html/div tabpanel/div radiogroup/label One way
    target: (input id=0 radio trip oneway )
    """
    page = page or Page(step.cleaned_html)
    return {c.backend_node_id: page.ranker_text(c.backend_node_id) for c in step.candidates}


def ranker_query(step: Step) -> str:
    """The text that the cross-encoder reads with each candidate: the task and the last three actions."""
    return f"task is: {step.task}\nPrevious actions: {'; '.join(step.history[-3:])}"


def ranker_input(step: Step, page: Page | None = None) -> RankerInput:
    """Raises RowError for a page that cannot be parsed or lacks a candidate."""
    page = page or Page(step.cleaned_html)
    texts = candidate_texts(step, page)
    return RankerInput(step.key, ranker_query(step), texts, {node: page.position(node) for node in texts})


def check_candidates(step: Step, page: Page) -> None:
    """Raises RowError if a candidate is not in the page, its id occurs more than once, or describing it would take too
    long."""
    ids = {candidate.backend_node_id for candidate in step.candidates}
    absent = ids - page.ids
    if absent:
        raise RowError(
            "missing_candidate", f"{len(absent)} of {len(ids)} candidates are not in the HTML, e.g. {min(absent)}"
        )
    repeated = ids & page.duplicate_ids
    if repeated:
        raise RowError(
            "duplicate_id", f"{len(repeated)} candidate ids occur more than once in the HTML, e.g. {min(repeated)}"
        )
    page.check_describable(ids)

"""What a ranker reads of a step, the scores it gives, and the top-k that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from seeact_offline.pages.dom import Page
from seeact_offline.records import InputError, RankedCandidate, RowError, Step, StepError

TEXT_VERSION = 2
"""Version of the candidate texts: scores of one version do not hold for another."""

StepScores = Mapping[str, tuple[float, int | None]]
"""backend_node_id -> (score, rank from 0 or None where ranks are not known)."""


class Ranker(Protocol):
    """What the package `ranker` offers: it scores texts.

    It may also have `digest` (what its scores depend on; its name if there is none) and `truncated` (texts cut so far).
    """

    @property
    def name(self) -> str: ...

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Shape `(len(texts),)`, higher is better."""


@runtime_checkable
class StagedRanker(Protocol):
    """A ranker that works in two parts, so that the first can be done for one step while the model scores another."""

    def encode(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> Any: ...

    def predict(self, encoded: Any) -> list[np.ndarray]: ...


class Scores(Protocol):
    """Ranker scores of steps: from a file, or made when asked for."""

    @property
    def digest(self) -> str:
        """A short text that identifies what the scores depend on."""

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        """The step's scores, or None if there are none. `page`: the step's page, if it is already parsed."""


@dataclass(frozen=True, slots=True)
class Described:
    """A step in words, as a ranker reads it."""

    query: str
    texts: Mapping[str, str]
    """backend_node_id -> what a ranker reads of it (`candidate_texts`), in the row's order."""
    places: Mapping[str, int]
    """backend_node_id -> place in document order."""


def candidate_texts(step: Step, page: Page | None = None) -> dict[str, str]:
    """backend_node_id -> `ancestors: ...\\ntarget: ...`, what the cross-encoder reads of each candidate of the step."""
    page = page or Page(step.cleaned_html)
    return {c.backend_node_id: page.ranker_text(c.backend_node_id) for c in step.candidates}


def ranker_query(step: Step) -> str:
    """What the cross-encoder reads with each candidate: the task and the last three actions."""
    return f"task is: {step.task}\nPrevious actions: {'; '.join(step.history[-3:])}"


def describe(step: Step, page: Page | None = None) -> Described:
    """Raises RowError for a page that cannot be parsed or lacks a candidate."""
    page = page or Page(step.cleaned_html)
    texts = candidate_texts(step, page)
    places = {node: page.position(node) for node in texts}
    return Described(ranker_query(step), texts, places)


def check_candidates(step: Step, page: Page) -> None:
    """Raises RowError if a candidate is not in the page, its id occurs more than once, or describing it would take too long."""
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


def begin_scoring(ranker: Ranker, described: Described) -> Callable[[], np.ndarray]:
    """Does the work that needs no model; calling the result does the rest. Raises StepError `unrankable` for refused texts."""
    query, texts = described.query, list(described.texts.values())
    if not isinstance(ranker, StagedRanker):
        return lambda: ranker.score(query, texts)
    try:
        encoded = ranker.encode([(query, texts)])
    except ValueError as error:
        raise StepError("unrankable", str(error)) from error
    return lambda: ranker.predict(encoded)[0]


def rank_described(ranker: Ranker, described: Described, scoring: Callable[[], np.ndarray]) -> StepScores:
    """Scores and ranks, best first. Equal scores rank in document order, which gives nothing away. Raises InputError."""
    try:
        scores = scoring()
    except ValueError as error:
        raise InputError("ranker", f"scores from {ranker.name}", str(error)) from error
    if not np.isfinite(scores).all():
        raise InputError("ranker", "finite scores", f"NaN or infinity from {ranker.name}")
    scored = dict(zip(described.texts, scores.tolist(), strict=True))
    order = sorted(scored, key=lambda node: (-scored[node], described.places[node]))
    return {node: (scored[node], rank) for rank, node in enumerate(order)}


def ranker_digest(ranker: Ranker) -> str:
    """What the ranker's scores depend on, wherever it lies and whatever its name: its files and its number format."""
    parts = getattr(ranker, "digest", ranker.name), getattr(ranker, "dtype", "")
    return " ".join(part for part in parts if part)


class LiveScores:
    """Scores that a ranker makes when a step is asked for."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    @property
    def digest(self) -> str:
        return f"{ranker_digest(self.ranker)}, texts {TEXT_VERSION}"

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        described = describe(step, page)
        return rank_described(self.ranker, described, begin_scoring(self.ranker, described))


def top_k(step: Step, scores: Scores, k: int, page: Page | None = None) -> tuple[RankedCandidate, ...]:
    """The step's k best candidates, best first. Raises StepError `no_scores` if the file lacks the step or a candidate.

    Ranks in the file decide; without ranks, descending score, with ties in the row's order (as in the published ranks).
    """
    known = scores.of(step, page)
    if known is None:
        raise StepError("no_scores", "the score file has no scores for this step")
    ids = [c.backend_node_id for c in step.candidates]
    if not known.keys() >= set(ids):
        missing = [node for node in ids if node not in known]
        raise StepError(
            "no_scores", f"the score file lacks {len(missing)} of {len(ids)} candidates, first {missing[0]}"
        )
    if all(known[node][1] is not None for node in ids):
        ids.sort(key=lambda node: (known[node][1], -known[node][0]))
    else:
        ids.sort(key=lambda node: -known[node][0])
    return tuple(RankedCandidate(node, known[node][0], place) for place, node in enumerate(ids[:k]))


def tie_across_cut(step: Step, scores: Scores, k: int) -> bool:
    """Whether the k-th and the next candidate have equal scores, so that the tie-break decides which is offered."""
    known = scores.of(step) or {}
    return is_tied_at(k, (known[c.backend_node_id][0] for c in step.candidates if c.backend_node_id in known))


def is_tied_at(k: int, scores: Iterable[float]) -> bool:
    """Whether the k-th highest score equals the next one."""
    ordered = sorted(scores, reverse=True)
    return len(ordered) > k and ordered[k - 1] == ordered[k]

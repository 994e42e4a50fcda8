"""A split through a ranker, step by step: describing and tokenising overlap with the model's work, nothing is scored twice.

Scores go into a journal: a first line that names the configuration, then one line per step.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from seeact_offline.dataset import Split
from seeact_offline.files.journal import Journal, Line
from seeact_offline.pages.dom import Page
from seeact_offline.ranking.files import FileScores, Origin, ScoreRow
from seeact_offline.ranking.scores import (
    Described,
    Ranker,
    StepScores,
    begin_scoring,
    check_candidates,
    describe,
    rank_described,
    ranker_digest,
)
from seeact_offline.records import InputError, RowError, Step, StepError, StepKey, Truth

AHEAD = 4
"""Steps described before the model is ready for them."""
T = TypeVar("T")
U = TypeVar("U")
UNKNOWN = "no_scores", "the score file has no scores for this step"
HARMLESS = frozenset({"no_screenshot", "bad_screenshot", "bad_box", "bad_operation"})
"""Faults of a row that leave what a ranker reads intact."""


class Scored(NamedTuple):
    """A step's scores as the journal keeps them."""

    scores: StepScores
    """Every candidate has a rank; best first."""
    truncated: int
    """Texts that were cut to the model's length."""


@dataclass(frozen=True, slots=True)
class RankedStep:
    """What became of one step."""

    truth: Truth
    scored: Scored | None
    failure: str = ""
    """Why there are no scores; empty if there are."""
    detail: str = ""
    resumed: bool = False
    """Whether an earlier run scored it."""


class ScoreJournal:
    """Scores so far, on disk: a line that says what makes them, then one line per step. Use as a context manager."""

    def __init__(self, path: Path, origin: Origin) -> None:
        self._journal = Journal(path)
        self._origin = origin
        self._offsets: dict[StepKey, int] = {}

    def __enter__(self) -> ScoreJournal:
        """Raises InputError for a file of another configuration."""
        path = self._journal.path
        try:
            lines = self._journal.lines()
            header = next(lines, None)
            if header is not None:
                _check_header(header.text, self._origin, path)
                self._offsets = {_key(line, path): line.offset for line in lines}
            self._journal.__enter__()
        except OSError as error:
            raise InputError("out", "a file that can be written", f"{path}: {error.strerror}") from None
        if header is None:
            self._journal.append(json.dumps(asdict(self._origin)))
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.__exit__()

    def __contains__(self, key: StepKey) -> bool:
        return key in self._offsets

    @property
    def keys(self) -> frozenset[StepKey]:
        """The steps in the journal."""
        return frozenset(self._offsets)

    def of(self, key: StepKey) -> Scored:
        """Raises KeyError for a step that is not in the journal."""
        _, truncated, pairs = json.loads(self._journal.at(self._offsets[key]))
        return Scored({node: (score, rank) for rank, (node, score) in enumerate(pairs)}, truncated)

    def rows(self, keys: Iterable[StepKey]) -> Iterator[ScoreRow]:
        """All scores of these steps, in this order."""
        for key in keys:
            if key in self:
                scores = self.of(key).scores
                yield from (ScoreRow(key, node, score, rank or 0) for node, (score, rank) in scores.items())

    def append(self, key: StepKey, scored: Scored) -> None:
        """Adds one line and hands it to the operating system before returning."""
        pairs = [[node, score] for node, (score, _) in scored.scores.items()]
        self._offsets[key] = self._journal.append(json.dumps([list(key), scored.truncated, pairs]))


@dataclass(frozen=True, slots=True)
class DescribedStep:
    """A step, described as far as possible without a ranker. Plain values, which can be sent to another process."""

    truth: Truth
    described: Described | None = None
    """None if there is nothing to score: the step is faulty or already scored."""
    failure: str = ""
    detail: str = ""
    """What is wrong with the step."""
    known: bool = False
    """Whether an earlier run scored it."""


class Engine(Protocol):
    """A ranker and the workers that run it."""

    @property
    def digest(self) -> str:
        """What the ranker's scores depend on, as from `ranker_digest`."""

    def rank(self, split: Split, journal: ScoreJournal) -> Iterator[RankedStep]:
        """Every step in any order, with its scores; new ones are in the journal. Raises InputError."""


class LocalEngine:
    """This process: one thread prepares steps, another runs the model."""

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    @property
    def digest(self) -> str:
        return ranker_digest(self._ranker)

    def rank(self, split: Split, journal: ScoreJournal) -> Iterator[RankedStep]:
        return rank_steps(split.steps(), self._ranker, journal)


def rank_steps(steps: Iterable[Step], ranker: Ranker, journal: ScoreJournal) -> Iterator[RankedStep]:
    """Every step in order, with scores from the journal or the ranker. Raises InputError if the ranker fails."""
    for ranked in score_steps((describe_step(step, step.key in journal) for step in steps), ranker):
        yield keep(ranked, journal)


def describe_step(step: Step, known: bool = False) -> DescribedStep:
    """Never raises: what is wrong with the step is in the result."""
    if known:
        return DescribedStep(step.truth, known=True)
    try:
        return DescribedStep(step.truth, _described(step))
    except Exception as error:
        # a page unlike any we have met: one step must not end a ranking of thousands
        return _faulty(step.truth, error)


def score_steps(described: Iterable[DescribedStep], ranker: Ranker) -> Iterator[RankedStep]:
    """Every step in order. Each is one call of the model, so a score depends on no other step and on no engine.

    A thread of their own draws steps and prepares them for the model. Raises InputError if the ranker fails.
    """
    for ready in _ahead(iter(described), lambda step: _made_ready(step, ranker)):
        step = ready.step
        if step.described is None or ready.scoring is None:
            yield RankedStep(step.truth, None, step.failure, step.detail, resumed=step.known)
        else:
            yield RankedStep(step.truth, Scored(rank_described(ranker, step.described, ready.scoring), ready.truncated))


def keep(ranked: RankedStep, journal: ScoreJournal) -> RankedStep:
    """Adds new scores to the journal, or fills in those that the journal already has."""
    if ranked.resumed:
        return replace(ranked, scored=journal.of(ranked.truth.key))
    if ranked.scored is not None:
        journal.append(ranked.truth.key, ranked.scored)
    return ranked


def reread_steps(steps: Iterable[Step], scores: FileScores) -> Iterator[RankedStep]:
    """Every step in order, with its scores from a finished file."""
    left_out = scores.origin.left_out if scores.origin else {}
    for step in steps:
        known = scores.of(step)
        if known is not None:
            yield RankedStep(step.truth, Scored(known, 0), resumed=True)
        else:
            yield RankedStep(step.truth, None, *left_out.get(str(step.key), UNKNOWN))


@dataclass(frozen=True, slots=True)
class _Ready:
    """A step, and the work that remains for its scores."""

    step: DescribedStep
    scoring: Callable[[], np.ndarray] | None = None
    """None if there is nothing to score."""
    truncated: int = 0


def _made_ready(step: DescribedStep, ranker: Ranker) -> _Ready:
    if step.described is None:
        return _Ready(step)
    try:
        before = getattr(ranker, "truncated", 0)
        scoring = begin_scoring(ranker, step.described)
        return _Ready(step, scoring, getattr(ranker, "truncated", 0) - before)
    except Exception as error:
        # as in `describe_step`
        return _Ready(_faulty(step.truth, error))


def _faulty(truth: Truth, error: Exception) -> DescribedStep:
    if isinstance(error, StepError):
        return DescribedStep(truth, failure=error.name, detail=error.detail)
    # a page unlike any we have met: one step must not end a long run
    return DescribedStep(truth, failure="internal_error", detail=f"{type(error).__name__}: {error}")


def _described(step: Step) -> Described:
    fault = next((fault for fault in step.faults if fault.name not in HARMLESS), None)
    if fault is not None:
        raise RowError(fault.name, fault.detail)
    if not step.candidates:
        raise RowError("no_candidates", "the row lists no candidate")
    page = Page(step.cleaned_html)
    check_candidates(step, page)
    return describe(step, page)


def _ahead(items: Iterator[T], work: Callable[[T], U]) -> Iterator[U]:
    """Draws items and works on them in order, in one thread of its own, a few before they are needed."""

    def draw() -> tuple[U, ...]:
        return tuple(work(item) for item in islice(items, 1))

    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Future[tuple[U, ...]]] = deque(pool.submit(draw) for _ in range(AHEAD))
        try:
            while drawn := waiting.popleft().result():
                waiting.append(pool.submit(draw))
                yield from drawn
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _key(line: Line, path: Path) -> StepKey:
    try:
        (annotation_id, action_uid), _, _ = json.loads(line.text)
    except (ValueError, TypeError):
        got = f"line {line.number} of {path}, which is none; delete the file to begin anew"
        raise InputError("out", "lines of ours", got) from None
    return StepKey(annotation_id, action_uid)


def _check_header(line: str, ours: Origin, path: Path) -> None:
    try:
        theirs = Origin(**json.loads(line))
    except (ValueError, TypeError):
        raise InputError("out", "a journal of scores", f"{path}, which is none; name another file") from None
    differing = [
        field.name
        for field in fields(Origin)
        if field.compare and getattr(theirs, field.name) != getattr(ours, field.name)
    ]
    if differing:
        name = differing[0]
        raise InputError(
            "out",
            "scores of this configuration",
            f"{path} with those of another configuration ({', '.join(differing)} differ: {name} was {getattr(theirs, name)!r:.80}"
            f" and is now {getattr(ours, name)!r:.80}); name another file",
        )

"""A split through a ranker, step by step: describing and tokenising overlap with the model's work, nothing is scored
twice.

Scores go into a journal: a first line that names the configuration, then one line per step.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Protocol

from seeact_offline.dataset import Split
from seeact_offline.files.whole import Journal, Line
from seeact_offline.pages.dom import Page
from seeact_offline.ranking.rankers import StepRanker
from seeact_offline.ranking.score_files import Origin, ScoreRow, StepScores
from seeact_offline.ranking.texts import RankerInput, check_candidates, ranker_input
from seeact_offline.records import InputError, RowError, Step, StepError, StepKey, Truth

AHEAD = 4
"""Steps described before the model is ready for them."""
HARMLESS = frozenset({"no_screenshot", "bad_screenshot", "bad_box", "bad_operation"})
"""Faults of a row that leave a ranker's texts intact."""


@dataclass(frozen=True, slots=True)
class StepDescription:
    """A step, described as far as possible without a ranker. Plain values, which can be sent to another process."""

    truth: Truth
    texts: RankerInput | None = None
    """None if there is nothing to score: the step is faulty or already scored."""
    failure: str = ""
    detail: str = ""
    """The step's fault."""
    is_scored: bool = False
    """An earlier run scored it."""


@dataclass(frozen=True, slots=True)
class StepRanking:
    """The scores of one step, or the reason why it has none."""

    truth: Truth
    scores: StepScores | None
    """Every candidate has a rank; best first."""
    truncated: int = 0
    """Texts that were cut to the model's length."""
    failure: str = ""
    """Empty if there are scores."""
    detail: str = ""
    resumed: bool = False
    """An earlier run scored it."""


class ScoreJournal:
    """The scores so far, on disk: a line that says what makes them, then one line per step. Use as a context
    manager."""

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
            raise InputError("out", sentence=f"cannot write {path}: {error.strerror}") from None
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

    def of(self, key: StepKey) -> tuple[StepScores, int]:
        """The scores of a step, and the number of its texts that were cut. Raises KeyError for a step that is not in
        the journal."""
        _, truncated, pairs = json.loads(self._journal.at(self._offsets[key]))
        return {node: (score, rank) for rank, (node, score) in enumerate(pairs)}, truncated

    def rows(self, keys: Iterable[StepKey]) -> Iterator[ScoreRow]:
        """All scores of these steps, in this order."""
        for key in keys:
            if key in self:
                scores, _ = self.of(key)
                yield from (ScoreRow(key, node, score, rank or 0) for node, (score, rank) in scores.items())

    def keep(self, ranking: StepRanking) -> StepRanking:
        """Adds new scores as one line, handed to the operating system before this returns; fills in those that it
        already has."""
        key = ranking.truth.key
        if ranking.resumed:
            scores, truncated = self.of(key)
            return replace(ranking, scores=scores, truncated=truncated)
        if ranking.scores is not None:
            pairs = [[node, score] for node, (score, _) in ranking.scores.items()]
            self._offsets[key] = self._journal.append(json.dumps([list(key), ranking.truncated, pairs]))
        return ranking


class Engine(Protocol):
    """A ranker and the workers that run it."""

    @property
    def digest(self) -> str:
        """Identifies what the ranker's scores depend on, as `StepRanker.digest`."""

    def rank(self, split: Split, journal: ScoreJournal) -> Iterator[StepRanking]:
        """Every step in any order, with its scores; new ones are in the journal. Raises InputError."""


class LocalEngine:
    """This process: one thread prepares steps, another runs the model."""

    def __init__(self, ranker: StepRanker) -> None:
        self._ranker = ranker

    @property
    def digest(self) -> str:
        return self._ranker.digest

    def rank(self, split: Split, journal: ScoreJournal) -> Iterator[StepRanking]:
        """Every step in order."""
        descriptions = (describe_step(step, step.key in journal) for step in split.steps())
        return map(journal.keep, score_steps(descriptions, self._ranker))


def describe_step(step: Step, is_scored: bool = False) -> StepDescription:
    """Never raises: the step's fault is in the result."""
    if is_scored:
        return StepDescription(step.truth, is_scored=True)
    try:
        fault = next((fault for fault in step.faults if fault.name not in HARMLESS), None)
        if fault is not None:
            raise RowError(fault.name, fault.detail)
        if not step.candidates:
            raise RowError("no_candidates", "the row lists no candidate")
        page = Page(step.cleaned_html)
        check_candidates(step, page)
        return StepDescription(step.truth, ranker_input(step, page))
    # a page unlike any met before must not end a ranking of thousands of steps
    except Exception as error:
        return StepDescription(step.truth, None, *_failure(error))


def score_steps(descriptions: Iterable[StepDescription], ranker: StepRanker) -> Iterator[StepRanking]:
    """Every step in order. Each is one call of the model, so a score depends on no other step and on no engine.

    A thread of its own draws steps and prepares them for the model. Raises InputError if the ranker fails.
    """
    steps = iter(descriptions)

    def prepare_next() -> Callable[[], StepRanking] | None:
        step = next(steps, None)
        return None if step is None else _prepare(step, ranker)

    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Future[Callable[[], StepRanking] | None]] = deque(
            pool.submit(prepare_next) for _ in range(AHEAD)
        )
        try:
            while finish := waiting.popleft().result():
                waiting.append(pool.submit(prepare_next))
                yield finish()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _prepare(step: StepDescription, ranker: StepRanker) -> Callable[[], StepRanking]:
    """Does the work that needs no model; calling the result does the rest."""
    ranking = StepRanking(step.truth, None, 0, step.failure, step.detail, step.is_scored)
    if step.texts is None:
        return lambda: ranking
    before = ranker.truncated
    try:
        finish = ranker.begin(step.texts)
    # nor one that a ranker cannot read
    except Exception as error:
        failure, detail = _failure(error)
        failed = replace(ranking, failure=failure, detail=detail)
        return lambda: failed
    truncated = ranker.truncated - before
    return lambda: replace(ranking, scores=finish(), truncated=truncated)


def _failure(error: Exception) -> tuple[str, str]:
    """Gives the failure's name and detail."""
    if isinstance(error, StepError):
        return error.name, error.detail
    return "internal_error", f"{type(error).__name__}: {error}"


def _key(line: Line, path: Path) -> StepKey:
    try:
        (annotation_id, action_uid), _, _ = json.loads(line.text)
    except (ValueError, TypeError):
        raise InputError(
            "out", sentence=f"line {line.number} of {path} is damaged; delete the file to start over"
        ) from None
    return StepKey(annotation_id, action_uid)


def _check_header(line: str, ours: Origin, path: Path) -> None:
    try:
        theirs = Origin(**json.loads(line))
    except (ValueError, TypeError):
        raise InputError("out", sentence=f"{path} is no journal of scores; name another file") from None
    differing = [
        field.name
        for field in fields(Origin)
        if field.compare and getattr(theirs, field.name) != getattr(ours, field.name)
    ]
    if differing:
        name = differing[0]
        raise InputError(
            "out",
            sentence=f"{path} holds scores of another configuration ({', '.join(differing)} differ: {name} was {getattr(theirs, name)!r:.80} and is now {getattr(ours, name)!r:.80}); name another file",
        )

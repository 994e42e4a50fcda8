"""A split through a ranker, step by step: describing and tokenising overlap with the model's work, nothing is scored twice.

What is scored lies in a part file from then on: a first line that names the configuration, then a line a step.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from seeact_offline.dataset import load_steps
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
HARMLESS = frozenset({"no_screenshot", "bad_screenshot", "bad_box", "bad_operation"})
"""Faults of a row that leave what a ranker reads whole."""


class Scored(NamedTuple):
    """A step's scores as they are kept."""

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
    """Why there are no scores."""
    detail: str = ""
    resumed: bool = False
    """Scored by an earlier run."""


class ScoreJournal:
    """Scores so far, on disk. Use as a context manager: appends inside."""

    def __init__(self, path: Path, origin: Origin) -> None:
        self._path = path
        self._header = asdict(origin)
        self._places: dict[StepKey, int] = {}
        # where a step's line begins
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ScoreJournal:
        """Raises InputError for a file of another configuration."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+b")
        except OSError as error:
            raise InputError(
                f"--out: expected a file that can be written, got {self._path}: {error.strerror}"
            ) from None
        try:
            self._find_lines(self._file)
        except InputError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __contains__(self, key: StepKey) -> bool:
        return key in self._places

    @property
    def keys(self) -> frozenset[StepKey]:
        """The steps that are here."""
        return frozenset(self._places)

    def of(self, key: StepKey) -> Scored:
        """Raises KeyError for a step that is not here."""
        file = self._opened()
        file.seek(self._places[key])
        _, truncated, pairs = json.loads(file.readline())
        return Scored({node: (score, rank) for rank, (node, score) in enumerate(pairs)}, truncated)

    def rows(self, keys: Iterable[StepKey]) -> Iterator[ScoreRow]:
        """All that is kept of these steps, in this order."""
        for key in keys:
            if key in self:
                scores = self.of(key).scores
                yield from (ScoreRow(key, node, score, rank or 0) for node, (score, rank) in scores.items())

    def append(self, key: StepKey, scored: Scored) -> None:
        """Adds one line and hands it to the operating system before it returns."""
        file = self._opened()
        place = file.seek(0, os.SEEK_END)
        values = [list(key), scored.truncated, [[node, score] for node, (score, _) in scored.scores.items()]]
        file.write(json.dumps(values).encode("ascii") + b"\n")
        file.flush()
        self._places[key] = place

    def _find_lines(self, file: IO[bytes]) -> None:
        file.seek(0)
        header = file.readline()
        if not header.endswith(b"\n"):
            file.truncate(0)
            file.write(json.dumps(self._header).encode("ascii") + b"\n")
            file.flush()
            return
        _check_header(header, self._header, self._path)
        place = file.tell()
        for number, line in enumerate(iter(file.readline, b""), 2):
            if not line.endswith(b"\n") or b"\0" in line:
                # torn by a crash: what comes after, if anything, is scored again
                file.truncate(place)
                break
            self._places[_key(line, number, self._path)] = place
            place += len(line)

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            raise RuntimeError("the part file is not open")
        return self._file


@dataclass(frozen=True, slots=True)
class DescribedStep:
    """A step as far as it goes without a ranker. Plain values, which may be sent to another process."""

    truth: Truth
    described: Described | None = None
    # None where there is nothing to score: the step is at fault, or known already
    failure: str = ""
    detail: str = ""
    """What is wrong with the step."""
    known: bool = False
    """Scored by an earlier run."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which steps are ranked."""

    dataset: str
    split: str
    limit: int | None
    """Of tasks."""


class Engine(Protocol):
    """A ranker, and who does its work."""

    @property
    def digest(self) -> str:
        """What the ranker's scores depend on, as `ranker_digest` says it."""

    def rank(self, selection: Selection, part: ScoreJournal) -> Iterator[RankedStep]:
        """Every step in any order, with its scores; new ones are in the part file. Raises InputError."""


class LocalEngine:
    """This process: one thread makes steps ready, another runs the model."""

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    @property
    def digest(self) -> str:
        return ranker_digest(self._ranker)

    def rank(self, selection: Selection, part: ScoreJournal) -> Iterator[RankedStep]:
        steps = load_steps(selection.dataset, selection.split, limit=selection.limit)
        return rank_steps(steps, self._ranker, part)


def rank_steps(steps: Iterable[Step], ranker: Ranker, part: ScoreJournal) -> Iterator[RankedStep]:
    """Every step in order, with its scores from the part file or the ranker. Raises InputError when the ranker fails."""
    for ranked in score_steps((describe_step(step, step.key in part) for step in steps), ranker):
        yield keep(ranked, part)


def describe_step(step: Step, known: bool = False) -> DescribedStep:
    """Never raises: what is wrong with the step is in the outcome."""
    if known:
        return DescribedStep(step.truth, known=True)
    try:
        return DescribedStep(step.truth, _described(step))
    except Exception as error:
        # a page that we never met: one step must not end a ranking of thousands
        return _faulty(step.truth, error)


def score_steps(described: Iterable[DescribedStep], ranker: Ranker) -> Iterator[RankedStep]:
    """Every step in order, one call of the model a step: so a score depends on no other step, and on no engine.

    Steps are drawn and made ready for the model in a thread of their own. Raises InputError when the ranker fails.
    """
    for ready in _ahead(iter(described), lambda step: _made_ready(step, ranker)):
        step = ready.step
        if step.described is None or ready.scoring is None:
            yield RankedStep(step.truth, None, step.failure, step.detail, resumed=step.known)
        else:
            yield RankedStep(step.truth, Scored(rank_described(ranker, step.described, ready.scoring), ready.truncated))


def keep(ranked: RankedStep, part: ScoreJournal) -> RankedStep:
    """Adds the scores to the part file, or fills in what the file knows of a step that was not scored again."""
    if ranked.resumed:
        return replace(ranked, scored=part.of(ranked.truth.key))
    if ranked.scored is not None:
        part.append(ranked.truth.key, ranked.scored)
    return ranked


def reread_steps(steps: Iterable[Step], scores: FileScores) -> Iterator[RankedStep]:
    """Every step in order, with its scores from a finished file."""
    for step in steps:
        known = scores.of(step)
        if known is not None:
            yield RankedStep(step.truth, Scored(known, 0), resumed=True)
            continue
        try:
            _described(step)
            yield RankedStep(step.truth, None, "no_scores", "the score file has no scores for this step")
        except StepError as error:
            yield RankedStep(step.truth, None, error.name, error.detail)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A step, and what is left to do for its scores."""

    step: DescribedStep
    scoring: Callable[[], np.ndarray] | None = None
    # None where there is nothing to score
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
    # a page that we never met: one step must not end a long run
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
    """Items are drawn and worked on in one thread of their own, in order, a few before they are needed."""

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


def _key(line: bytes, number: int, path: Path) -> StepKey:
    try:
        (annotation_id, action_uid), _, _ = json.loads(line)
    except (ValueError, TypeError):
        raise InputError(f"--out: line {number} of {path} is no line of ours: delete the file to begin anew") from None
    return StepKey(annotation_id, action_uid)


def _check_header(line: bytes, ours: Mapping[str, Any], path: Path) -> None:
    try:
        theirs = Origin(**json.loads(line))
    except (ValueError, TypeError):
        raise InputError(f"--out: {path} is no part file of ours; name another file") from None
    if theirs != Origin(**ours):
        differing = [
            name
            for name, value in ours.items()
            if name not in {"ranker", "texts_truncated"} and getattr(theirs, name) != value
        ]
        name = differing[0]
        raise InputError(
            f"--out: {path} holds scores of another configuration ({', '.join(differing)} differ: {name} was {getattr(theirs, name)!r:.80}"
            f" and is now {ours[name]!r:.80}); name another file"
        )

"""The stages of a ranking on Ray: reading -> describing (CPU) -> scoring (each worker with a ranker).

What travels from one to the next is a handful of pickled steps, or the error that ends the run.
"""

from __future__ import annotations

import pickle
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from seeact_offline.ranking import StepRanker
from seeact_offline.ranking.pipeline import StepDescription, StepRanking, describe_step, score_steps
from seeact_offline.ranking.rankers import set_model_threads
from seeact_offline.records import InputError, Step, StepKey

if TYPE_CHECKING:
    import pyarrow as pa

Opener = Callable[[str], StepRanker]

COLUMN = "steps"


@dataclass(frozen=True, slots=True)
class ReadStage:
    """A part of the split -> its steps, a few at a time."""

    steps_at_once: int

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        steps: Iterator[Step] = _content(batch).steps()
        try:
            while some := tuple(islice(steps, self.steps_at_once)):
                yield block(some)
        except InputError as error:
            yield block(error)


def _unless_refused(batch: pa.Table, work: Callable[[Any], tuple[Any, ...]]) -> pa.Table:
    """Runs a stage on the steps; passes on an error that ends the run, from this stage or an earlier one."""
    steps = _content(batch)
    if isinstance(steps, InputError):
        return batch
    try:
        return block(work(steps))
    except InputError as error:
        return block(error)


@dataclass(frozen=True, slots=True)
class DescribeStage:
    """The settings of a describing worker."""

    known: frozenset[StepKey]
    """Steps that an earlier run scored."""
    register: Any


class Describer:
    """Steps -> described steps."""

    def __init__(self, stage: DescribeStage) -> None:
        self._stage = stage

    def __call__(self, batch: pa.Table) -> pa.Table:
        def describe(steps: Sequence[Step]) -> tuple[StepDescription, ...]:
            _begin(self._stage.register, "describing", steps[0].key)
            return tuple(describe_step(step, step.key in self._stage.known) for step in steps)

        return _unless_refused(batch, describe)


@dataclass(frozen=True, slots=True)
class ScoreStage:
    """The settings of a scoring worker."""

    opener: Opener
    ranker: str
    digest: str
    """Digest of the ranker that every worker must have."""
    threads: int | None
    register: Any

    def open(self) -> StepRanker:
        """Raises InputError if the ranker is not the first worker's."""
        if self.threads is not None:
            set_model_threads(self.threads)
        ranker = self.opener(self.ranker)
        if ranker.digest != self.digest:
            raise InputError(
                "ranker",
                sentence=f"{self.ranker} is another one on {socket.gethostname()}; put the same files on every machine",
            )
        return ranker


class Scorer:
    """Described steps -> scores. One object per worker, which keeps its ranker."""

    def __init__(self, stage: ScoreStage) -> None:
        self._stage = stage

    def __call__(self, batch: pa.Table) -> pa.Table:
        def score(steps: Sequence[StepDescription]) -> tuple[StepRanking, ...]:
            _begin(self._stage.register, "scoring", steps[0].truth.key)
            return tuple(score_steps(steps, self.ranker))

        return _unless_refused(batch, score)

    @cached_property
    def ranker(self) -> StepRanker:
        """Opened on first use: Ray would answer an error in the constructor by trying again."""
        return self._stage.open()


class Register:
    """Counts how often each piece of work was begun. An actor, so that it outlives the workers."""

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._begun: Counter[tuple[str, StepKey]] = Counter()

    def begin(self, stage: str, first: StepKey) -> str:
        """The reason why the work must not be begun again; empty if it may."""
        self._begun[stage, first] += 1
        if self._begun[stage, first] <= self._attempts:
            return ""
        return f"{stage} the steps from {first} on killed {self._attempts} workers; all that is scored is kept"

    def n_lost(self) -> int:
        """Counts how often work was begun again."""
        return sum(n - 1 for n in self._begun.values())


def _begin(register: Any, stage: str, first: StepKey) -> None:
    """Raises InputError when the work has cost too many workers already."""
    import ray

    problem = ray.get(register.begin.remote(stage, first))
    if problem:
        raise InputError("engine", sentence=problem)


def worker_digest(opener: Opener, ranker: str) -> str | InputError:
    """The digest of the ranker, or the error that keeps it from being used."""
    try:
        return opener(ranker).digest
    except InputError as error:
        return error


def block(content: Any) -> pa.Table:
    """One row: Ray moves rows about without looking into them."""
    import pyarrow as pa

    return pa.table({COLUMN: pa.array([pickle.dumps(content, protocol=5)], pa.large_binary())})


def _content(batch: pa.Table) -> Any:
    return pickle.loads(batch.column(COLUMN)[0].as_py())


def unpacked(piece: bytes) -> Iterable[StepRanking]:
    """The steps in it. Raises InputError where it holds what ends the run."""
    content = pickle.loads(piece)
    if isinstance(content, InputError):
        raise content
    return tuple(content)

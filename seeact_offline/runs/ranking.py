"""Ranking: the candidates of a split through a ranker, into a score file that the next run finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from seeact_offline.dataset import Split, open_split
from seeact_offline.files.markdown import percent
from seeact_offline.files.whole import write_whole
from seeact_offline.ranking import (
    TEXT_VERSION,
    FileScores,
    Origin,
    Ranker,
    default_ranker,
    open_ranker,
    read_scores,
    write_official,
    write_scores,
)
from seeact_offline.ranking.files import ParquetScores
from seeact_offline.ranking.recall import CUT, PUBLISHED_RANKERS, PUBLISHED_RECALL_AT_50, StepRank, step_rank, summary
from seeact_offline.ranking.splits import Engine, LocalEngine, RankedStep, ScoreJournal, reread_steps
from seeact_offline.records import InputError, ScoreFileError, StepKey
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.selection import extent
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted

Format = Literal["parquet", "official"]
SUFFIXES: dict[Format, tuple[str, ...]] = {"parquet": (".parquet",), "official": (".pkl", ".pickle")}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankConfig:
    """What is ranked, by what, and where. The fields are those of `EvalConfig`."""

    dataset: Any = "sample"
    split: str = "cross_task"
    limit: int | None = None
    ranker: str | None = None
    dtype: str = "auto"
    backend: str = "auto"
    engine: str = "local"
    address: str | None = None
    score_workers: int | None = None
    describe_workers: int | None = None
    gpus_per_worker: float | None = None

    @classmethod
    def of(cls, config: EvalConfig) -> RankConfig:
        return cls(**{option.name: getattr(config, option.name) for option in fields(cls)})

    @property
    def ranker_name(self) -> str:
        return self.ranker or default_ranker()


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a ranked split comes to."""

    results: dict[str, Any]
    """For programs: recall@k, ties, failures, what made the scores."""
    ranks: Sequence[StepRank]
    """Of each step, in the split's order."""


def rank(config: RankConfig, out: Path, watch: Watch | None = None, format: Format = "parquet") -> Ranking:
    """Scores the candidates of a split into the file `out`. A killed run goes on from `out`.partial.jsonl.

    A step that cannot be ranked is left out of the file and named in `results`. Raises InputError.
    """
    watch = watch or Watch()
    _check_out(out, format)
    split = open_split(config.dataset, config.split, limit=config.limit)
    with open_engine(config, watch) as engine:
        origin = origin_of(config, split, engine)
        watch.note(f"{extent(split, config.dataset)}, ranker {config.ranker_name}, out {out}")
        finished = _finished(out, origin, watch)
        if finished is None:
            ranks, written = rank_into(out, split, engine, origin, watch, format=format)
        else:
            ranks, written = (
                [step_rank(step) for step in reread_steps(split.steps(), finished)],
                finished.origin or origin,
            )
    for key, (failure, detail) in written.left_out.items():
        watch.note(f"step {key} is left out: {failure}: {detail}")
    return Ranking(_results(config, out, written, ranks), ranks)


def ranker_opener(dtype: str, backend: str) -> Callable[[str], Ranker]:
    """Opens a ranker by its name."""
    return partial(open_ranker, dtype=dtype, backend=backend)


def origin_of(config: RankConfig, split: Split, engine: Engine) -> Origin:
    """What scores of this split, made by this ranker, are known by."""
    return Origin(split.fingerprint, split.name, split.limit, engine.digest, TEXT_VERSION, config.ranker_name)


def rank_into(
    out: Path,
    split: Split,
    engine: Engine,
    origin: Origin,
    watch: Watch,
    *,
    format: Format = "parquet",
    old: ParquetScores | None = None,
) -> tuple[list[StepRank], Origin]:
    """Scores the steps of the split that the journal beside `out` lacks, and writes the score file, whole or not at all.

    `old`: scores of other steps, which go into the file too. Returns the split's ranks in its order, and what the file says
    of its origin. Raises InputError.
    """
    path = journal_of(out)
    with ScoreJournal(path, origin) as journal:
        resumed = sum(key in journal for key in split.keys)
        if resumed:
            done = "step is done already and is not", "steps are done already and are not"
            watch.note(f"{counted(resumed, *done)} scored again")
        ranks, found = _rank_all(split, engine, journal, watch)
        left_out = {**(old.origin.left_out if old and old.origin else {}), **found.left_out}
        left_out = {key: left_out[key] for key in sorted(left_out) if key not in found.ranked}
        origin = replace(origin, texts_truncated=found.truncated, left_out=left_out)
        keys = [*split.keys, *sorted(journal.keys - frozenset(split.keys))]
        rows = chain(old.rows(without=frozenset(keys)) if old else (), journal.rows(keys))
        write = write_official if format == "official" else partial(write_scores, origin=origin)
        write_whole(out, lambda draft: write(draft, rows))
    path.unlink()
    return ranks, origin


def journal_of(out: Path) -> Path:
    """Where the scores of a ranking that goes on are."""
    return out.with_name(out.name + ".partial.jsonl")


@dataclass
class _Found:
    """What a ranking comes to so far."""

    truncated: int = 0
    ranked: set[str] = field(default_factory=set)
    left_out: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, step: RankedStep) -> None:
        if step.scored is None:
            self.left_out[str(step.truth.key)] = step.failure, step.detail
        else:
            self.ranked.add(str(step.truth.key))
            self.truncated += step.scored.truncated


def _rank_all(split: Split, engine: Engine, journal: ScoreJournal, watch: Watch) -> tuple[list[StepRank], _Found]:
    ranks: dict[StepKey, StepRank] = {}
    found, hits = _Found(), 0
    with watch.ranking(len(split.keys), split.name) as progress:
        for step in engine.rank(split, journal):
            rank = ranks[step.truth.key] = step_rank(step)
            found.add(step)
            hits += rank.best_rank is not None and rank.best_rank < CUT
            progress.advance(f"recall@{CUT} {percent(hits / len(ranks))}", step.resumed)
    return [ranks[key] for key in split.keys], found


@contextmanager
def open_engine(config: RankConfig, watch: Watch) -> Iterator[Engine]:
    """Raises InputError where the ranker or Ray cannot be used."""
    if config.engine == "local":
        named = [
            name
            for name in ("address", "score_workers", "describe_workers", "gpus_per_worker")
            if getattr(config, name) is not None
        ]
        if named:
            raise InputError(named[0], "engine ray beside it", "local")
        yield LocalEngine(ranker_opener(config.dtype, config.backend)(config.ranker_name))
        return
    from seeact_offline.engines.ray import Workers
    from seeact_offline.engines.ray import open_engine as open_ray

    workers = Workers(config.address, config.score_workers, config.describe_workers, config.gpus_per_worker)
    with open_ray(config.ranker_name, workers, ranker_opener(config.dtype, config.backend)) as engine:
        crew = engine.crew
        watch.note(
            f"Ray: {crew.describe} describing and {crew.score} scoring workers, {crew.gpus_each:g} GPUs each of the latter"
        )
        yield engine


def _check_out(out: Path, format: Format) -> None:
    """Readers tell the formats apart by the ending."""
    expected = SUFFIXES[format]
    if out.suffix not in expected:
        raise InputError("out", f"a file that ends in {' or '.join(expected)} for format {format}", str(out))
    if format == "official" and out.exists():
        raise InputError("out", "a file that is not there yet, as a pickle cannot say what made it", str(out))


def _finished(out: Path, origin: Origin, watch: Watch) -> FileScores | None:
    """The scores of a run that came to its end, of this very configuration. Raises InputError for another file."""
    if not out.exists():
        return None
    try:
        scores = read_scores(out)
    except ScoreFileError:
        raise InputError("out", "a score file, or none yet", f"{out}, which is another; name another file") from None
    if scores.origin != origin:
        got = f"{out} with those of another data set, split or ranker; name another file"
        raise InputError("out", "scores of this configuration", got)
    watch.note(f"{out} is finished already; nothing is scored again")
    return scores


def _results(config: RankConfig, out: Path, origin: Origin, ranks: Sequence[StepRank]) -> dict[str, Any]:
    return {
        "schema": 1,
        "dataset": config.dataset,
        "dataset_fingerprint": origin.dataset_fingerprint,
        "split": origin.split,
        "limit": origin.limit,
        "ranker": config.ranker_name,
        "ranker_digest": origin.ranker_digest,
        "text_version": origin.text_version,
        "out": str(out),
        **summary(ranks),
        "texts_truncated": origin.texts_truncated or 0,
        "published_recall_at_50": (
            PUBLISHED_RECALL_AT_50.get(origin.split) if config.ranker_name in PUBLISHED_RANKERS else None
        ),
        "steps_left_out": [str(one.key) for one in ranks if one.failure],
    }

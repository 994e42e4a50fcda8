"""Ranking: the candidates of a split through a ranker, into a score file that the next run finds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from seeact_offline.dataset import canonical_split, fingerprint, load_steps, step_keys
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
from seeact_offline.ranking.recall import CUT, PUBLISHED_RECALL_AT_50, StepRank, step_rank, summary
from seeact_offline.ranking.splits import Engine, LocalEngine, RankedStep, ScoreJournal, Selection, reread_steps
from seeact_offline.records import InputError, ScoreFileError, StepKey
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.watch import Watch

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
        return cls(**{field.name: getattr(config, field.name) for field in fields(cls)})

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
    split = canonical_split(config.split)
    _check_out(out, format)
    keys = step_keys(config.dataset, split, limit=config.limit)
    with _open_engine(config, watch) as engine:
        origin = _origin(config, engine)
        watch.note(f"{len(keys)} steps of {config.dataset} ({split}), ranker {config.ranker_name}, out {out}")
        finished = _finished(out, origin, watch)
        if finished is not None:
            ranks, truncated = _reread(config, split, finished, watch)
        else:
            ranks, truncated = _rank(config, out, format, keys, engine, origin, watch)
    return Ranking(_results(config, out, origin, ranks, truncated), ranks)


def ranker_opener(dtype: str, backend: str) -> Callable[[str], Ranker]:
    """Opens a ranker by its name."""
    return partial(open_ranker, dtype=dtype, backend=backend)


def kept_scores(config: RankConfig, folder: Path, watch: Watch) -> Path:
    """The score file of these very scores in `folder`: made only where it is not there yet."""
    split = canonical_split(config.split)
    with _open_engine(config, watch) as engine:
        origin = _origin(config, engine)
        name = hashlib.sha256(repr(origin).encode()).hexdigest()[:32]
        out = folder / f"{split}-{name}.parquet"
        out.parent.mkdir(parents=True, exist_ok=True)
        if not out.exists():
            keys = step_keys(config.dataset, split, limit=config.limit)
            _rank(config, out, "parquet", keys, engine, origin, watch)
    return out


def _origin(config: RankConfig, engine: Engine) -> Origin:
    split = canonical_split(config.split)
    return Origin(
        fingerprint(config.dataset, split), split, config.limit, engine.digest, TEXT_VERSION, config.ranker_name
    )


@contextmanager
def _open_engine(config: RankConfig, watch: Watch) -> Iterator[Engine]:
    """Raises InputError where the ranker or Ray cannot be used."""
    if config.engine == "local":
        named = [
            name
            for name in ("address", "score_workers", "describe_workers", "gpus_per_worker")
            if getattr(config, name) is not None
        ]
        if named:
            raise InputError(f"--{named[0].replace('_', '-')}: expected --engine ray beside it, got --engine local")
        yield LocalEngine(ranker_opener(config.dtype, config.backend)(config.ranker_name))
        return
    from seeact_offline.engines.ray import Workers, open_engine

    workers = Workers(config.address, config.score_workers, config.describe_workers, config.gpus_per_worker)
    with open_engine(config.ranker_name, workers, ranker_opener(config.dtype, config.backend)) as engine:
        crew = engine.crew
        watch.note(
            f"Ray: {crew.describe} describing and {crew.score} scoring workers, {crew.gpus_each:g} GPUs each of the latter"
        )
        yield engine


def _check_out(out: Path, format: Format) -> None:
    """Readers tell the formats apart by the ending."""
    expected = SUFFIXES[format]
    if out.suffix not in expected:
        raise InputError(
            f"--out: expected a file that ends in {' or '.join(expected)} for --format {format}, got {out}"
        )
    if format == "official" and out.exists():
        raise InputError(
            f"--out: expected a file that is not there yet, as a pickle cannot say what made it; got {out}"
        )


def _finished(out: Path, origin: Origin, watch: Watch) -> FileScores | None:
    """The scores of a run that came to its end, of this very configuration. Raises InputError for another file."""
    if not out.exists():
        return None
    try:
        scores = read_scores(out)
    except ScoreFileError:
        raise InputError(f"--out: {out} is there already and is no score file; name another file") from None
    if scores.origin != origin:
        raise InputError(f"--out: {out} holds scores of another data set, split or ranker; name another file")
    watch.note(f"{out} is finished already; nothing is scored again")
    return scores


def _reread(config: RankConfig, split: str, finished: FileScores, watch: Watch) -> tuple[list[StepRank], int]:
    steps = load_steps(config.dataset, split, limit=config.limit)
    ranks = [_told(step, watch) for step in reread_steps(steps, finished)]
    return ranks, (finished.origin.texts_truncated or 0) if finished.origin else 0


def _rank(
    config: RankConfig, out: Path, format: Format, keys: Sequence[StepKey], engine: Engine, origin: Origin, watch: Watch
) -> tuple[list[StepRank], int]:
    """Scores what is not scored yet, and writes the score file."""
    ranks: list[StepRank] = []
    truncated = found = 0
    path = out.with_name(out.name + ".partial.jsonl")
    selection = Selection(config.dataset, origin.split, config.limit)
    with ScoreJournal(path, origin) as part:
        resumed = sum(key in part for key in keys)
        if resumed:
            watch.note(f"{resumed} steps are done already and are not scored again")
        with watch.ranking(len(keys), origin.split) as progress:
            for step in engine.rank(selection, part):
                rank = _told(step, watch)
                ranks.append(rank)
                truncated += step.scored.truncated if step.scored else 0
                found += rank.best_rank is not None and rank.best_rank < CUT
                progress.advance(f"recall@{CUT} {100 * found / len(ranks):.1f}", step.resumed)
        _write(out, format, part, keys, replace(origin, texts_truncated=truncated))
    path.unlink()
    places = {key: place for place, key in enumerate(keys)}
    return sorted(ranks, key=lambda rank: places[rank.key]), truncated


def _told(step: RankedStep, watch: Watch) -> StepRank:
    """The step's figures, and a remark on one that could not be ranked."""
    if step.failure:
        watch.note(f"step {step.truth.key} is left out: {step.failure}: {step.detail}")
    return step_rank(step)


def _write(out: Path, format: Format, part: ScoreJournal, keys: Sequence[StepKey], origin: Origin) -> None:
    """The score file, whole or not at all."""
    rows = part.rows(keys)

    def write(path: Path) -> None:
        if format == "official":
            write_official(path, rows)
        else:
            write_scores(path, rows, origin)

    write_whole(out, write)


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """A file whole or not at all."""
    draft = path.with_name(path.name + ".tmp")
    write(draft)
    os.replace(draft, path)


def _results(
    config: RankConfig, out: Path, origin: Origin, ranks: Sequence[StepRank], truncated: int
) -> dict[str, Any]:
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
        "texts_truncated": truncated,
        "published_recall_at_50": PUBLISHED_RECALL_AT_50.get(origin.split),
        "steps_left_out": [str(one.key) for one in ranks if one.failure],
    }

"""The ranking stage of a run: a score file that was named, or the one that a ranker's scores are kept in.

Kept scores are score files like any other, in `$SEEACT_CACHE` (the user's cache folder): one for a split, its version and a
ranker. A run ranks the steps that the file lacks and adds them, so that nothing is ranked twice, whatever `limit` and `tasks`
leave of the split. The folder may be deleted at any time; a damaged file is made anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock, Timeout

from seeact_offline.dataset import Split
from seeact_offline.files.places import cache_folder
from seeact_offline.pages.dom import Page
from seeact_offline.ranking import (
    TEXT_VERSION,
    FileScores,
    LiveScores,
    Origin,
    Scores,
    StepScores,
    check_dataset,
    check_match,
    read_scores,
)
from seeact_offline.ranking.files import ParquetScores
from seeact_offline.ranking.splits import Engine, ScoreJournal
from seeact_offline.records import InputError, ScoreFileError, Step, StepError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.ranking import RankConfig, journal_of, open_engine, origin_of, rank_into, ranker_opener
from seeact_offline.runs.watch import Watch

PASSING = frozenset({"internal_error"})
"""Failures of a step that ranking it again may not meet."""


@dataclass(frozen=True, slots=True)
class RankingStage:
    """Where the scores of a run come from."""

    digest: str
    """What they depend on: a ranker and its texts, or a file's content."""
    scores: Callable[[], Scores]
    """Ranks what is not ranked yet. Raises InputError."""


def ranking_stage(config: EvalConfig, split: Split, watch: Watch) -> RankingStage:
    """Of the score file, checked against the split, or of the ranker. Raises InputError."""
    if config.scores is not None:
        scores = _read_scores(config, config.scores, split, watch)
        return RankingStage(scores.digest, lambda: scores)
    ranking = RankConfig.of(config)
    with open_engine(ranking, watch) as engine:
        if config.engine == "local":
            return RankingStage(_digest(engine), partial(kept_scores, ranking, split, engine, watch))
        # only Ray's workers know what their ranker's scores depend on, and starting it takes long: all is done at once
        kept = kept_scores(ranking, split, engine, watch)
        return RankingStage(kept.digest, lambda: kept)


def live_scores(config: EvalConfig) -> Scores:
    """For a step that is in no split: of the score file, or made when they are asked for and not kept. Raises InputError."""
    if config.scores is not None:
        return read_scores(config.scores)
    return LiveScores(ranker_opener(config.dtype, config.backend)(RankConfig.of(config).ranker_name))


def _read_scores(config: EvalConfig, path: Path, split: Split, watch: Watch) -> FileScores:
    scores = read_scores(path)
    matched = check_match(scores, split.keys, str(path))
    check_dataset(scores, split, str(path))
    if matched < len(split.keys):
        watch.note(
            f"the score file has {matched} of {len(split.keys)} steps; the others cannot be asked and count as failures"
        )
    return scores


@dataclass(frozen=True, slots=True)
class KeptScores:
    """A ranker's scores in a file, known by the ranker: which other steps the file holds makes no difference."""

    file: FileScores
    digest: str

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        """Raises StepError for a step that could not be ranked."""
        known, origin = self.file.of(step, page), self.file.origin
        if known is None and origin is not None and str(step.key) in origin.left_out:
            raise StepError(*origin.left_out[str(step.key)])
        return known


def kept_scores(config: RankConfig, split: Split, engine: Engine, watch: Watch) -> KeptScores:
    """Ranks the steps that are not kept yet. Where nothing can be kept, all, with a remark. Raises InputError."""
    origin = replace(origin_of(config, split, engine), limit=None)
    path = _place(split, origin.ranker_digest, origin.text_version)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path, watch)
    except OSError as error:
        watch.note(f"scores are not kept: {path} cannot be used: {error.strerror or error}")
        with TemporaryDirectory(prefix="seeact-scores-") as folder:
            return KeptScores(_completed(Path(folder) / path.name, split, engine, origin, watch), _digest(engine))
    try:
        return KeptScores(_completed(path, split, engine, origin, watch), _digest(engine))
    finally:
        lock.release()


def kept_before(split: Split, scores_digest: str) -> FileScores | None:
    """The scores that a run of this `scores_digest` left; None where they are not kept, or no longer."""
    ranker, _, version = scores_digest.rpartition(", texts ")
    path = _place(split, ranker, int(version)) if version.isdecimal() else None
    try:
        return None if path is None or not path.exists() else ParquetScores(path)
    except ScoreFileError:
        return None


def _place(split: Split, ranker_digest: str, text_version: int) -> Path:
    name = hashlib.sha256(repr((split.content_digest, ranker_digest, text_version)).encode()).hexdigest()[:32]
    return cache_folder() / "scores" / f"{split.name}-{name}.parquet"


def _digest(engine: Engine) -> str:
    return f"{engine.digest}, texts {TEXT_VERSION}"


def _locked(path: Path, watch: Watch) -> FileLock:
    """Nobody else ranks into the file meanwhile. Raises OSError where there can be no lock."""
    lock = FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        watch.note("another run is ranking this split with this ranker: waiting for its scores")
        lock.acquire()
    return lock


def _completed(path: Path, split: Split, engine: Engine, origin: Origin, watch: Watch) -> FileScores:
    """The score file, with every step of the split that can be ranked."""
    old = _readable(path, watch)
    known = _known(old)
    missing = {key.annotation_id for key in split.keys if str(key) not in known}
    if missing or old is None:
        _drop_damaged(journal_of(path), origin)
        rank_into(path, split.only(missing), engine, origin, watch, old=old)
        old = ParquetScores(path)
    return old


def _known(scores: FileScores | None) -> frozenset[str]:
    """The steps that need not be ranked: they are, or it was found that they cannot be."""
    if scores is None or scores.origin is None:
        return frozenset()
    lasting = (key for key, (failure, _) in scores.origin.left_out.items() if failure not in PASSING)
    return scores.keys | frozenset(lasting)


def _readable(path: Path, watch: Watch) -> ParquetScores | None:
    if not path.exists():
        return None
    try:
        return ParquetScores(path)
    except ScoreFileError as error:
        watch.note(f"the kept scores are damaged and are made anew: {error}")
        return None


def _drop_damaged(journal: Path, origin: Origin) -> None:
    try:
        with ScoreJournal(journal, origin):
            pass
    except InputError:
        journal.unlink(missing_ok=True)

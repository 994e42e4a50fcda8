"""The ranking stage: the candidates of a split through a ranker, into a score file; and the scores of a run.

A run takes its scores from a file that the user names, or keeps a ranker's scores in `$SEEACT_CACHE` (the user's cache folder):
one score file for a split, its version and a ranker. It ranks the steps that the file lacks and adds them, so nothing is ranked
twice, whatever `limit` and `tasks` leave of the split. The folder may be deleted at any time; a damaged file is made anew. The
bundled sample brings such files of its default ranker. Any other data needs a ranking that was chosen.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from filelock import FileLock, Timeout

from seeact_offline.dataset import TEST_SPLITS, Split, open_split
from seeact_offline.dataset.sources import is_on_hub, is_recut
from seeact_offline.files.digest import cache_folder
from seeact_offline.files.markdown import percent
from seeact_offline.files.whole import write_whole
from seeact_offline.pages.dom import Page
from seeact_offline.ranking import (
    TEXT_VERSION,
    AnyRanker,
    FileScores,
    LiveScores,
    Origin,
    Scores,
    StepScores,
    check_dataset,
    open_ranker,
    parts_of,
    read_scores,
    write_official,
    write_scores,
)
from seeact_offline.ranking.pipeline import CountedScores, Engine, LocalEngine, ScoreJournal, StepRanking
from seeact_offline.ranking.rankers import PUBLISHED, is_score_file, lacks_published, pinned, scores_digest
from seeact_offline.ranking.recall import CUT, PUBLISHED_RECALL_AT_50, StepRank, step_rank, summary
from seeact_offline.ranking.score_files import ParquetScores
from seeact_offline.records import InputError, ScoreFileError, Step, StepError, StepKey
from seeact_offline.runs.config import EvalConfig, RankingOptions
from seeact_offline.runs.engines import LOCAL, RANKING_ENGINES, Workers
from seeact_offline.runs.selection import dataset_name, extent
from seeact_offline.runs.strategy_opening import open_strategy
from seeact_offline.runs.watch import Watch
from seeact_offline.sample import SCORES
from seeact_offline.scoring.report import counted

SAMPLE, SAMPLE_RANKER = "sample", "bundled+bm25"
"""The bundled data, and the ranker of its candidates where no other is named."""
Format = Literal["parquet", "official"]
SUFFIXES: dict[Format, tuple[str, ...]] = {"parquet": (".parquet",), "official": (".pkl", ".pickle")}
JOURNAL = ".partial.jsonl"
"""Ending of the file in which a score file grows."""
TRANSIENT = frozenset({"internal_error"})
"""Failures of a step that may not recur when it is ranked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankConfig(RankingOptions):
    """The data, the ranker and the engine of a ranking."""

    @classmethod
    def of(cls, config: EvalConfig) -> RankConfig:
        return cls(**{name.name: getattr(config, name.name) for name in fields(cls)})

    @property
    def ranker_name(self) -> str:
        """The ranker that was named, or the default one of the data."""
        return self.ranker or (SAMPLE_RANKER if self._is_sample else PUBLISHED)

    @property
    def pinned_ranker(self) -> str:
        """The ranker's name with the commit of the hub. Raises HubError."""
        return pinned(self.ranker_name)

    @property
    def _is_sample(self) -> bool:
        return isinstance(self.dataset, str) and self.dataset == SAMPLE

    def check_chosen(self) -> None:
        """Raises InputError for data for which no ranker is named, where the published one cannot be had. A name that is none of a
        data set is refused later, as such.
        """
        if self.ranker is not None or self._is_sample or not is_data(self.dataset):
            return
        lacking = lacks_published()
        if lacking:
            name = self.dataset if isinstance(self.dataset, str | Path) else f"a {type(self.dataset).__name__}"
            wanted = f"name `scores` FILE or `ranker` NAME (such as {SAMPLE_RANKER})"
            raise InputError("ranker", sentence=f"there is no ranking for {name}: {wanted}; {lacking}")

    def open_ranker(self) -> AnyRanker:
        """Raises InputError."""
        return open_ranker(self.pinned_ranker, self.dtype, self.backend)


def is_data(dataset: Any) -> bool:
    """Tells whether there can be such data, without reading them."""
    return not isinstance(dataset, str | Path) or os.path.exists(dataset) or is_on_hub(dataset)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The outcome of ranking a split."""

    results: dict[str, Any]
    """Results for programs: recall@k, ties, failures, and the origin of the scores."""
    ranks: Sequence[StepRank]
    """The rank of each step, in the split's order."""


@dataclass(frozen=True, slots=True)
class RankingStage:
    """The source of a run's scores."""

    digest: str
    """Identifies what they depend on: a ranker and its texts, or a file's content."""
    scores: Callable[[], Scores]
    """Ranks the steps that are not ranked yet. Raises InputError."""


@dataclass(frozen=True, slots=True)
class KeptScores:
    """A ranker's scores in a file, identified by the ranker: the other steps in the file make no difference."""

    file: FileScores
    digest: str

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        """Raises StepError for a step that could not be ranked."""
        known, origin = self.file.of(step, page), self.file.origin
        if known is None and origin is not None and str(step.key) in origin.left_out:
            raise StepError(*origin.left_out[str(step.key)])
        return known


def rank(config: RankConfig, out: Path, watch: Watch | None = None, format: Format = "parquet") -> Ranking:
    """Scores the candidates of a split into the file `out`. A killed run resumes from `out`.partial.jsonl.

    A step that cannot be ranked is left out of the file and named in `results`. Raises InputError.
    """
    watch = watch or Watch()
    # readers tell the formats apart by the ending
    endings = SUFFIXES[format]
    if out.suffix not in endings:
        raise InputError("out", f"a file that ends in {' or '.join(endings)} for format {format}", str(out))
    if format == "official" and out.exists():
        raise InputError(
            "out", sentence=f"{out} exists, and a pickle cannot say what made it; name another file for `out`"
        )
    config.check_chosen()
    split = open_split(config.dataset, config.split, limit=config.limit)
    split.check_pages("dataset", "a ranker")
    _check_score_files(config, split, watch)
    with open_engine(config, watch) as engine:
        origin = _origin(config, split, engine)
        watch.note(f"{extent(split)}, ranker {config.pinned_ranker}, out {out}")
        finished = _finished(out, origin, watch)
        if finished is None:
            ranks, origin = _rank_into(out, split, engine, origin, watch, format=format)
        else:
            ranks, origin = _ranks_in(finished, split), finished.origin or origin
    for key, (failure, detail) in origin.left_out.items():
        watch.note(f"step {key} is left out: {failure}: {detail}")
    return Ranking(_results(dataset_name(split.dataset), out, origin, ranks), ranks)


def ranking_stage(config: EvalConfig, split: Split, watch: Watch) -> RankingStage:
    """Takes scores from the score file, checked against the split, or from the ranker. Raises InputError."""
    if config.scores is not None:
        scores = _read_scores(config.scores, split, watch)
        return RankingStage(scores.digest, lambda: scores)
    ranking = RankConfig.of(config)
    _check_score_files(ranking, split, watch)
    with open_engine(ranking, watch) as engine:
        if config.engine == LOCAL:
            return RankingStage(scores_digest(engine.digest), partial(kept_scores, ranking, split, engine, watch))
        # only Ray's workers know what their ranker's scores depend on, and starting it takes long: all is done at once
        kept = kept_scores(ranking, split, engine, watch)
        return RankingStage(kept.digest, lambda: kept)


def live_scores(config: EvalConfig) -> Scores:
    """Scores for a step that is in no split: from the score file, or made on request and not kept. Raises InputError."""
    check_ranking(config)
    return LiveScores(RankConfig.of(config).open_ranker()) if config.scores is None else read_scores(config.scores)


def check_ranking(config: EvalConfig) -> None:
    """Raises InputError for data without a ranking that was chosen, where the grounding needs one. Data of pictures alone is refused once it
    is open, by a sentence of its own."""
    if config.scores is None and open_strategy(config).grounding.needs_ranking and not is_recut(config.dataset):
        RankConfig.of(config).check_chosen()


def kept_scores(config: RankConfig, split: Split, engine: Engine, watch: Watch) -> KeptScores:
    """Ranks the steps whose scores are not kept yet; if the cache cannot be used, all of them, with a note. Raises InputError."""
    origin = replace(_origin(config, split, engine), limit=None)
    path = _cache_file(split, origin.ranker_digest, origin.text_version)
    shipped = SCORES / path.name
    if shipped.is_file():
        return KeptScores(ParquetScores(shipped), scores_digest(engine.digest))
    lock = FileLock(path.with_suffix(".lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            watch.note("another run is ranking this split with this ranker: waiting for its scores")
            lock.acquire()
    except OSError as error:
        watch.note(f"scores are not kept: {path} cannot be used: {error.strerror or error}")
        with TemporaryDirectory(prefix="seeact-scores-") as folder:
            made = _complete(Path(folder) / path.name, split, engine, origin, watch, is_kept=False)
            return KeptScores(made, scores_digest(engine.digest))
    try:
        return KeptScores(_complete(path, split, engine, origin, watch), scores_digest(engine.digest))
    finally:
        lock.release()


def kept_before(split: Split, digest: str) -> FileScores | None:
    """The kept scores that a run with this `scores_digest` left; None if there are none any more."""
    ranker, _, version = digest.rpartition(", texts ")
    path = _cache_file(split, ranker, int(version)) if version.isdecimal() and len(version) < 10 else None
    if path is None:
        return None
    try:
        found = next((one for one in (SCORES / path.name, path) if one.exists()), None)
        return None if found is None else ParquetScores(found)
    except ScoreFileError:
        return None


def ship_scores(folder: Path, watch: Watch) -> list[Path]:
    """Ranks the test splits of the bundled sample with the default ranker into the files that the sample brings."""
    config, paths = RankConfig(), []
    for name in TEST_SPLITS:
        split = open_split(config.dataset, name)
        with open_engine(config, watch) as engine:
            origin = _origin(config, split, engine)
            path = folder / _cache_file(split, origin.ranker_digest, origin.text_version).name
            for old in folder.glob(f"{name}-*.parquet"):
                old.unlink()
            _rank_into(path, split, engine, origin, watch)
        paths.append(path)
    return paths


@contextmanager
def open_engine(config: RankConfig, watch: Watch) -> Iterator[Engine]:
    """Raises InputError if the ranker or Ray cannot be used."""
    if config.engine == LOCAL:
        for name in ("address", "score_workers", "describe_workers", "gpus_per_worker"):
            if getattr(config, name) is not None:
                raise InputError(name, sentence=f"`{name}` needs `engine` ray")
        yield LocalEngine(config.open_ranker())
        return
    workers = Workers(config.address, config.score_workers, config.describe_workers, config.gpus_per_worker)
    opener = partial(open_ranker, dtype=config.dtype, backend=config.backend)
    with RANKING_ENGINES[config.engine](config.pinned_ranker, workers, opener, watch.note) as engine:
        watch.note(str(engine.crew))
        yield engine


def _origin(config: RankConfig, split: Split, engine: Engine) -> Origin:
    """Identifies scores of this split, made by this ranker."""
    name = config.pinned_ranker
    parts = parts_of(name)
    fused = parts if len(parts) > 1 else ()
    return Origin(split.fingerprint, split.name, split.limit, engine.digest, TEXT_VERSION, name, parts=fused)


def _check_score_files(config: RankConfig, split: Split, watch: Watch) -> None:
    """Raises ScoreFileError for a score file among the rankers that scores none of the steps, or was made from other data."""
    for part in filter(is_score_file, parts_of(config.ranker_name)):
        _read_scores(Path(part), split, watch)


def _rank_into(
    out: Path,
    split: Split,
    engine: Engine,
    origin: Origin,
    watch: Watch,
    *,
    format: Format = "parquet",
    old: ParquetScores | None = None,
    is_kept: bool = True,
) -> tuple[list[StepRank], Origin]:
    """Scores the steps of the split that the journal beside `out` lacks, and writes the score file, whole or not at all.

    `old`: scores of other steps, which go into the file too. `is_kept`: an interrupted run finds the journal again. Returns the split's ranks in its order, and the file's origin.
    Raises InputError.
    """
    left_out = {**old.origin.left_out} if old is not None and old.origin is not None else {}
    ranks: dict[StepKey, StepRank] = {}
    truncated = hits = 0
    journal_path = out.with_name(out.name + JOURNAL)
    with ScoreJournal(journal_path, origin) as journal:
        resumed = sum(key in journal for key in split.keys)
        if resumed:
            done = "step is done already and is not", "steps are done already and are not"
            watch.note(f"{counted(resumed, *done)} scored again")
        try:
            with watch.ranking(len(split.keys), split.name) as progress:
                for step in engine.rank(split, journal):
                    key, rank = step.truth.key, step_rank(step)
                    ranks[key] = rank
                    left_out.pop(str(key), None)
                    if step.scored is None:
                        left_out[str(key)] = step.failure, step.detail
                    else:
                        truncated += step.scored.truncated
                    hits += rank.best_rank is not None and rank.best_rank < CUT
                    progress.advance(f"recall@{CUT} {percent(hits / len(ranks))}", step.resumed)
        except KeyboardInterrupt:
            if is_kept:
                n_done = sum(key in journal for key in split.keys)
                watch.note(f"{n_done} of {counted(len(split.keys), 'step')} scored, kept in {journal_path}")
            raise
        origin = replace(origin, texts_truncated=truncated, left_out=dict(sorted(left_out.items())))
        keys = [*split.keys, *sorted(journal.keys - frozenset(split.keys))]
        rows = chain(old.rows(without=frozenset(keys)) if old else (), journal.rows(keys))
        write = write_official if format == "official" else partial(write_scores, origin=origin)
        write_whole(out, lambda draft: write(draft, rows))
    journal_path.unlink()
    return [ranks[key] for key in split.keys], origin


def _ranks_in(finished: FileScores, split: Split) -> list[StepRank]:
    """Every step's rank, in order, from a finished file."""
    left_out = finished.origin.left_out if finished.origin else {}
    unknown = "no_scores", "the score file has no scores for this step"
    ranks = []
    for step in split.steps():
        scores = finished.of(step)
        scored = None if scores is None else CountedScores(scores, 0)
        reason = ("", "") if scores is not None else left_out.get(str(step.key), unknown)
        ranks.append(step_rank(StepRanking(step.truth, scored, *reason, resumed=True)))
    return ranks


def _finished(out: Path, origin: Origin, watch: Watch) -> FileScores | None:
    """The scores of a finished run of the same configuration. Raises InputError for another file."""
    if not out.exists():
        return None
    try:
        scores = read_scores(out)
    except ScoreFileError:
        raise InputError("out", sentence=f"{out} is no score file; name another file for `out`") from None
    if scores.origin != origin:
        raise InputError(
            "out", sentence=f"{out} holds scores of another data set, split or ranker; name another file for `out`"
        )
    watch.note(f"{out} is finished already; nothing is scored again")
    return scores


def _results(dataset: str, out: Path, origin: Origin, ranks: Sequence[StepRank]) -> dict[str, Any]:
    return {
        "schema": 1,
        "dataset": dataset,
        "dataset_fingerprint": origin.dataset_fingerprint,
        "split": origin.split,
        "limit": origin.limit,
        "ranker": origin.ranker,
        "ranker_digest": origin.ranker_digest,
        "text_version": origin.text_version,
        "out": str(out),
        **summary(ranks),
        "texts_truncated": origin.texts_truncated or 0,
        "published_recall_at_50": (
            PUBLISHED_RECALL_AT_50.get(origin.split) if origin.ranker.partition("@")[0] == PUBLISHED else None
        ),
        "steps_left_out": [str(one.key) for one in ranks if one.failure],
    }


def _read_scores(path: Path, split: Split, watch: Watch) -> FileScores:
    """Raises ScoreFileError for a file that scores none of the steps, or was made from other data."""
    scores, keys = read_scores(path), split.keys
    matched = sum(str(key) in scores.keys for key in keys)
    if keys and not matched:
        raise ScoreFileError(
            "scores",
            "scores of the steps asked for",
            f"0 of {len(keys)} steps among the {len(scores.keys)} in {path} (first step asked for: {keys[0]})",
        )
    check_dataset(scores, split, str(path))
    if matched < len(keys):
        watch.note(
            f"the score file has {matched} of {len(keys)} steps; the others cannot be asked and count as failures"
        )
    return scores


def _cache_file(split: Split, ranker_digest: str, text_version: int) -> Path:
    name = hashlib.sha256(repr((split.content_digest, ranker_digest, text_version)).encode()).hexdigest()[:32]
    return cache_folder() / "scores" / f"{split.name}-{name}.parquet"


def _complete(
    path: Path, split: Split, engine: Engine, origin: Origin, watch: Watch, is_kept: bool = True
) -> FileScores:
    """The score file with every step of the split that can be ranked: the missing ones are ranked."""
    old, settled = None, frozenset[str]()
    if path.exists():
        try:
            old = ParquetScores(path)
        except ScoreFileError as error:
            watch.note(f"the kept scores are damaged and are made anew: {error}")
    if old is not None and old.origin is not None:
        lasting = (key for key, (failure, _) in old.origin.left_out.items() if failure not in TRANSIENT)
        settled = old.keys | frozenset(lasting)
    missing = {key.annotation_id for key in split.keys if str(key) not in settled}
    if old is None or missing:
        journal = path.with_name(path.name + JOURNAL)
        try:
            with ScoreJournal(journal, origin):
                pass
        except InputError:
            # damaged, or of another configuration
            journal.unlink(missing_ok=True)
        _rank_into(path, split.only(missing), engine, origin, watch, old=old, is_kept=is_kept)
        old = ParquetScores(path)
    return old

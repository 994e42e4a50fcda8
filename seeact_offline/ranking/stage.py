"""The ranking stage: the candidates of a split through a ranker, into a score file; and the scores of a run.

A run takes its scores from a file that the user names, or keeps a ranker's scores in `$SEEACT_CACHE` (the user's cache
folder): one score file for a split, its version and a ranker. It ranks the steps that the file lacks and adds them, so
nothing is ranked twice, whatever `limit` and `tasks` leave of the split. The folder may be deleted at any time; a
damaged file is made anew. The bundled sample brings such files of its default ranker. Any other data needs a ranking
that was chosen.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol

from filelock import FileLock, Timeout

from seeact_offline.dataset import TEST_SPLITS, Split, open_split
from seeact_offline.dataset.split import is_on_hub
from seeact_offline.files.digest import cache_folder
from seeact_offline.files.extensions import Doors
from seeact_offline.files.markdown import percent
from seeact_offline.files.options import FROM_0, POSITIVE, option
from seeact_offline.files.whole import write_whole
from seeact_offline.pages.dom import Page
from seeact_offline.ranking.pipeline import Engine, LocalEngine, ScoreJournal, StepRanking
from seeact_offline.ranking.rankers import (
    BACKENDS,
    DTYPES,
    PUBLISHED,
    StepRanker,
    is_score_file,
    lacks_published,
    open_ranker,
    parts_of,
    pinned,
    scores_digest,
)
from seeact_offline.ranking.recall import CUT, PUBLISHED_RECALL_AT_50, StepRank, step_rank, summary
from seeact_offline.ranking.score_files import (
    FileScores,
    Origin,
    ParquetScores,
    Scores,
    StepScores,
    check_dataset,
    read_scores,
    write_official,
    write_scores,
)
from seeact_offline.ranking.texts import TEXT_VERSION
from seeact_offline.records import InputError, ScoreFileError, Step, StepError, StepKey
from seeact_offline.sample import SCORES
from seeact_offline.scoring.report import counted, first_tasks

SAMPLE, SAMPLE_RANKER = "sample", "bundled+bm25"
"""The bundled data, and the ranker of its candidates where no other is named."""
Format = Literal["parquet", "official"]
SUFFIXES: dict[Format, tuple[str, ...]] = {"parquet": (".parquet",), "official": (".pkl", ".pickle")}
JOURNAL = ".partial.jsonl"
"""Ending of the file in which a score file grows."""
TRANSIENT = frozenset({"internal_error"})
"""Failures of a step that may not recur when it is ranked again."""
LOCAL = "local"
"""Names this process among engines."""
RANKING_ENGINES = Doors({"ray": "seeact_offline.cluster.ray:open_engine"})
"""Name -> function of a ranker's name, `Workers`, an opener of rankers and a function that hears of lost workers, which
opens a `ranking.pipeline.Engine`."""
ENGINES = (LOCAL, *RANKING_ENGINES)
DATA, RANKING, EXECUTION = "data", "ranking, grounding and prompts", "execution"
"""Groups of options."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The cluster to work on, and the number of workers; None: as many as there is room for."""

    address: str | None = None
    """HOST:PORT of a cluster, or auto; None: one of our own on this machine, which ends with the run."""
    score: int | None = None
    """Workers with a model each: a ranker, or the model that is asked."""
    describe: int | None = None
    gpus_each: float | None = None
    """GPUs, or a share of one, for every worker with a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankConfig:
    """The data, the ranker and the engine: options of a ranking as well as of a run."""

    # fmt: off
    dataset: Any = option(
        "sample", "a folder of parquet or JSONL files, one such file, SeeClick's or ShowUI's files, or OWNER/NAME[@REVISION] of the hub (default: {default})",
        group=DATA, metavar="DIR|FILE|HUB_ID", is_basic=True,
    )
    """Also a `datasets` object."""
    split: str = option(
        "cross_task", "train, cross_task, cross_website, cross_domain, or all: the three test splits (default: {default})",
        group=DATA, is_basic=True,
    )
    limit: int | None = option(
        None, "use only the first N tasks", group=DATA, number=POSITIVE, metavar="N_TASKS", is_basic=True
    )

    ranker: str | None = option(
        None, "bm25, bundled, a checkpoint, a score file, or several fused by rank"
        " (default: bundled+bm25 for the sample, else the published DeBERTa)",
        group=RANKING, metavar="NAME|DIR|HUB_ID|FILE[+...]", is_basic=True,
    )
    dtype: str = option(
        "auto", "number format of a checkpoint: auto is float32 on a CPU and bfloat16 on a GPU; mixed is bfloat16 with float32 "
        "near the cut, which nearly always gives the best 50 of float32 (default: {default})",
        group=RANKING, choices=DTYPES,
    )
    backend: str = option(
        "auto", "implementation of a checkpoint's forward pass (default: {default})", group=RANKING, choices=BACKENDS
    )

    engine: str = option(
        "local", "run in this process or on Ray workers, with the same output files (default: {default})",
        group=EXECUTION, choices=ENGINES,
    )
    address: str | None = option(
        None, "address of a Ray cluster, or auto (default: a new Ray on this machine)", group=EXECUTION, metavar="HOST:PORT"
    )
    score_workers: int | None = option(
        None, "number of workers that hold a model: first the ranker, then the evaluated model",
        group=EXECUTION, number=POSITIVE, metavar="N",
    )
    describe_workers: int | None = option(
        None, "number of workers that read pages for the ranker", group=EXECUTION, number=POSITIVE, metavar="N"
    )
    gpus_per_worker: float | None = option(
        None, "GPUs, or share of one, for each worker with a model (default: 1 for a checkpoint or hf/, if there are GPUs)",
        group=EXECUTION, number=FROM_0, metavar="X",
    )
    # fmt: on

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
        """Raises InputError for data for which no ranker is named, where the published one cannot be had. A name that
        is none of a data set is refused later, as such.
        """
        dataset = self.dataset
        if self.ranker is not None or self._is_sample:
            return
        is_data = not isinstance(dataset, str | Path) or os.path.exists(dataset) or is_on_hub(dataset)
        if is_data and (lacking := lacks_published()):
            wanted = f"name `scores` FILE or `ranker` NAME (such as {SAMPLE_RANKER})"
            raise InputError("ranker", sentence=f"there is no ranking for {dataset_name(dataset)}: {wanted}; {lacking}")

    def open_ranker(self) -> StepRanker:
        """Raises InputError."""
        return open_ranker(self.pinned_ranker, self.dtype, self.backend)


class RankListener(Protocol):
    """Hears of each step that is ranked."""

    def advance(self, figures: str, resumed: bool = False) -> None:
        """`figures`: how it has gone so far, in words."""


class RankWatch(Protocol):
    """Hears of a ranking; see `runs.watch.Watch`."""

    def note(self, text: str) -> None: ...

    def ranking(self, total: int, label: str) -> AbstractContextManager[RankListener]: ...


class _Silent:
    """Hears nothing."""

    def note(self, text: str) -> None:
        pass

    def ranking(self, total: int, label: str) -> AbstractContextManager[RankListener]:
        return nullcontext(self)

    def advance(self, figures: str, resumed: bool = False) -> None:
        pass


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
        scores, origin = self.file.of(step, page), self.file.origin
        if scores is None and origin is not None and str(step.key) in origin.left_out:
            raise StepError(*origin.left_out[str(step.key)])
        return scores


def rank(config: RankConfig, out: Path, watch: RankWatch | None = None, format: Format = "parquet") -> Ranking:
    """Scores the candidates of a split into the file `out`. A killed run resumes from `out`.partial.jsonl.

    A step that cannot be ranked is left out of the file and named in `results`. Raises InputError.
    """
    watch = watch or _Silent()
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


def ranking_stage(config: RankConfig, scores: Path | None, split: Split, watch: RankWatch) -> RankingStage:
    """Takes scores from the score file, checked against the split, or from the ranker. Raises InputError."""
    if scores is not None:
        file = _read_scores(scores, split, watch)
        return RankingStage(file.digest, lambda: file)
    _check_score_files(config, split, watch)
    with open_engine(config, watch) as engine:
        if config.engine == LOCAL:
            return RankingStage(scores_digest(engine.digest), partial(kept_scores, config, split, engine, watch))
        # only Ray's workers know what their ranker's scores depend on, and starting it takes long: all is done at once
        kept = kept_scores(config, split, engine, watch)
        return RankingStage(kept.digest, lambda: kept)


def kept_scores(config: RankConfig, split: Split, engine: Engine, watch: RankWatch) -> KeptScores:
    """Ranks the steps whose scores are not kept yet; if the cache cannot be used, all of them, with a note. Raises
    InputError."""
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
    if not version.isdecimal() or len(version) >= 10:
        return None
    path = _cache_file(split, ranker, int(version))
    existing = [place for place in (SCORES / path.name, path) if place.exists()]
    try:
        return ParquetScores(existing[0]) if existing else None
    except ScoreFileError:
        return None


def ship_scores(folder: Path, watch: RankWatch) -> list[Path]:
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
def open_engine(config: RankConfig, watch: RankWatch) -> Iterator[Engine]:
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


def _check_score_files(config: RankConfig, split: Split, watch: RankWatch) -> None:
    """Raises ScoreFileError for a score file among the rankers that scores none of the steps, or was made from other
    data."""
    for part in filter(is_score_file, parts_of(config.ranker_name)):
        _read_scores(Path(part), split, watch)


def _rank_into(
    out: Path,
    split: Split,
    engine: Engine,
    origin: Origin,
    watch: RankWatch,
    *,
    format: Format = "parquet",
    old: ParquetScores | None = None,
    is_kept: bool = True,
) -> tuple[list[StepRank], Origin]:
    """Scores the steps of the split that the journal beside `out` lacks, and writes the score file, whole or not at
    all.

    `old`: scores of other steps, which go into the file too. `is_kept`: an interrupted run finds the journal again.
    Returns the split's ranks in its order, and the file's origin. Raises InputError.
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
                    if step.scores is None:
                        left_out[str(key)] = step.failure, step.detail
                    truncated += step.truncated
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
        failure, detail = ("", "") if scores is not None else left_out.get(str(step.key), unknown)
        ranks.append(step_rank(StepRanking(step.truth, scores, 0, failure, detail, resumed=True)))
    return ranks


def _finished(out: Path, origin: Origin, watch: RankWatch) -> FileScores | None:
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
        "steps_left_out": [str(rank.key) for rank in ranks if rank.failure],
    }


def _read_scores(path: Path, split: Split, watch: RankWatch) -> FileScores:
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
    path: Path, split: Split, engine: Engine, origin: Origin, watch: RankWatch, is_kept: bool = True
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


def dataset_name(dataset: object) -> str:
    """The data set as results name it: the path or id, or an object's kind."""
    return str(dataset) if isinstance(dataset, str | Path) else f"a {type(dataset).__name__}"


def extent(split: Split) -> str:
    """The extent of a split in words: its steps, and its tasks, which are what a limit counts."""
    n = len(split.tasks)
    return f"{counted(len(split.keys), 'step')} of {dataset_name(split.dataset)} ({split.name}), {first_tasks(n) if split.limit == n else counted(n, 'task')}"

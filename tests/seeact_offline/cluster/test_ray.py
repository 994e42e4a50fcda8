"""A split ranked by the workers of a real Ray on this machine, some of which are killed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pytest

from ranker import LexicalRanker
from seeact_offline.cluster.ray import ClusterSize, RankWorkers, RayEngine, open_engine, rank_workers
from seeact_offline.dataset import Split, open_split
from seeact_offline.ranking import Origin, write_scores
from seeact_offline.ranking.pipeline import Engine, LocalEngine, ScoreJournal
from seeact_offline.records import InputError
from seeact_offline.runs.engines import Workers
from tests.mortal_ranker import open_mortal
from tests.pages import synthetic_rows, write_parquet

ORIGIN = Origin("0", "cross_task", None, "x", 1)


@pytest.fixture(scope="module")
def connected() -> Iterator[RayEngine]:
    """One Ray for all tests here, with a worker for each stage."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seeact_offline.cluster.ray.OBJECT_STORE_BYTES", 100 << 20)
        with open_engine("bm25", Workers(score=1, describe=1)) as engine:
            yield engine


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    """Twelve steps in two files, those of a task not in order."""
    folder = tmp_path_factory.mktemp("data")
    rows = list(synthetic_rows(4, 3, 12, seed=1))
    write_parquet(rows[::2], folder / "data" / "test_task-00000-of-00002.parquet")
    write_parquet(rows[1::2], folder / "data" / "test_task-00001-of-00002.parquet")
    return open_split(str(folder), "cross_task")


def score_file(engine: Engine, split: Split, path: Path) -> bytes:
    """The bytes of a whole run."""
    with ScoreJournal(path.with_suffix(".journal"), ORIGIN) as journal:
        done = list(engine.rank(split, journal))
        assert sorted(step.truth.key for step in done) == sorted(split.keys)
        write_scores(path, journal.rows(split.keys))
    return path.read_bytes()


def mortal(connected: RayEngine, folder: Path, dies_at: int, lives: int = 1, attempts: int = 3) -> RayEngine:
    return RayEngine(f"{folder}:{dies_at}:{lives}", connected.crew, open_mortal, 2, attempts)


def calls(folder: Path) -> list[str]:
    """The process of every call of a mortal ranker that came to its end."""
    return (folder / "calls").read_text().split()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_worker_changes_no_byte(connected: RayEngine, split: Split, tmp_path: Path) -> None:
    found = score_file(mortal(connected, tmp_path, dies_at=5), split, tmp_path / "ray.parquet")
    assert found == score_file(LocalEngine(LexicalRanker()), split, tmp_path / "local.parquet")
    assert (tmp_path / "death0").exists()
    assert len(set(calls(tmp_path))) == 2


@pytest.mark.slow
def test_a_run_that_ended_early_goes_on_and_may_do_so_on_ray(
    connected: RayEngine, split: Split, tmp_path: Path
) -> None:
    local = LocalEngine(LexicalRanker())
    with ScoreJournal(tmp_path / "s.journal", ORIGIN) as journal:
        known = {step.truth.key for step in islice(local.rank(split, journal), 5)}
        rest = list(mortal(connected, tmp_path, dies_at=0).rank(split, journal))
        assert {step.truth.key for step in rest if step.resumed} == known
    assert len(calls(tmp_path)) == 12 - 5
    assert score_file(local, split, tmp_path / "s.parquet") == score_file(local, split, tmp_path / "t.parquet")


@pytest.mark.slow
def test_work_that_ends_every_worker_ends_the_run(connected: RayEngine, split: Split, tmp_path: Path) -> None:
    engine = mortal(connected, tmp_path, dies_at=1, lives=99, attempts=1)
    with (
        ScoreJournal(tmp_path / "s.journal", ORIGIN) as journal,
        pytest.raises(
            InputError, match=r"^engine: expected workers .*, got 1 that ended while scoring the steps from task-"
        ),
    ):
        list(engine.rank(split, journal))


@pytest.mark.slow
def test_a_ranker_that_cannot_be_opened_on_a_worker_is_one_sentence(connected: RayEngine) -> None:
    with pytest.raises(InputError, match=r"^ranker: expected bundled, bm25, .* got no such folder$"):
        _ = RayEngine("no such folder", connected.crew).digest


# --- who does the work -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "room", "ranker", "crew"),
    [
        (Workers(), ClusterSize(3, 0, 1), "DIR", RankWorkers(1, 1, 0)),
        (Workers(), ClusterSize(16, 1, 1), "DIR", RankWorkers(1, 14, 1)),
        (Workers(), ClusterSize(16, 1, 1), "bm25", RankWorkers(1, 14, 0)),
        (Workers(), ClusterSize(64, 0, 4), "DIR", RankWorkers(4, 59, 0)),
        (Workers(gpus_each=0.5), ClusterSize(64, 8, 2), "DIR", RankWorkers(16, 47, 0.5)),
        (Workers(score=2, describe=3), ClusterSize(64, 8, 2), "DIR", RankWorkers(2, 3, 1)),
    ],
)
def test_who_is_not_asked_for_is_as_many_as_there_is_room_for(
    workers: Workers, room: ClusterSize, ranker: str, crew: RankWorkers
) -> None:
    assert rank_workers(workers, room, ranker) == crew


@pytest.mark.parametrize(
    ("workers", "named"),
    [
        (Workers(score=3, gpus_each=1), "gpus_per_worker"),
        (Workers(score=8), "score_workers"),
        (Workers(describe=8), "describe_workers"),
    ],
)
def test_more_workers_than_there_is_room_for_are_refused(workers: Workers, named: str) -> None:
    with pytest.raises(InputError, match=f"^{named}: expected workers that fit "):
        rank_workers(workers, ClusterSize(8, 2, 1), "bm25")

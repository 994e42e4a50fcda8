"""Kept scores: nothing is ranked twice, and nothing that has changed is taken from before."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from ranker import LexicalRanker
from seeact_offline.dataset import TEST_SPLITS, Split, open_split
from seeact_offline.ranking import LiveScores, ScoreRow, Scores, open_ranker, write_scores
from seeact_offline.ranking.stage import ranking_stage
from seeact_offline.records import ScoreFileError, StepError, StepKey
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.watch import Watch
from tests.pages import synthetic_rows, write_jsonl, write_parquet

Rows = list[dict[str, Any]]


class Counted:
    """Stands in for `LexicalRanker.score`: how often it was called, and when somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.calls = 0
        self.stops_at: int | None = None
        self._score = LexicalRanker.score

    def __call__(self, query: str, texts: Sequence[str]) -> np.ndarray:
        if self.calls == self.stops_at:
            raise KeyboardInterrupt
        self.calls += 1
        return self._score(LexicalRanker(), query, texts)


class Noted(Watch):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def ranker(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr(LexicalRanker, "score", lambda self, query, texts: counted(query, texts))
    return counted


@pytest.fixture
def rows() -> Rows:
    """Three tasks of two steps."""
    return list(synthetic_rows(3, 2, 8, seed=7))


@pytest.fixture
def data(tmp_path: Path, rows: Rows) -> Path:
    return write_parquet(rows, tmp_path / "rows.parquet")


@pytest.fixture
def kept(own_cache: Path) -> Path:
    return own_cache / "scores"


def scores_of(
    data: Path, *, limit: int | None = None, tasks: Collection[str] | None = None, watch: Watch | None = None
) -> Scores:
    split = open_split(data, "cross_task", limit=limit, tasks=tasks)
    return ranking_stage(EvalConfig(dataset=data, ranker="bm25"), None, split, watch or Watch()).scores()


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def all_of(scores: Scores, split: Split) -> list[object]:
    return [scores.of(step) for step in split.steps()]


def test_kept_scores_are_those_that_the_ranker_gives(data: Path) -> None:
    split = open_split(data, "cross_task")
    assert all_of(scores_of(data), split) == all_of(LiveScores(open_ranker("bm25")), split)


def test_what_is_kept_is_not_ranked_again(data: Path, ranker: Counted) -> None:
    first, second = scores_of(data), scores_of(data)
    assert ranker.calls == 6
    assert all_of(first, open_split(data, "cross_task")) == all_of(second, open_split(data, "cross_task"))


def test_nothing_is_ranked_before_it_is_asked_for(data: Path, ranker: Counted) -> None:
    ranking_stage(EvalConfig(dataset=data, ranker="bm25"), None, open_split(data, "cross_task"), Watch())
    assert ranker.calls == 0


def test_a_larger_limit_ranks_only_what_is_new(data: Path, ranker: Counted, kept: Path) -> None:
    scores_of(data, limit=1)
    whole = scores_of(data)
    assert ranker.calls == 6
    assert None not in all_of(whole, open_split(data, "cross_task"))
    assert len(files(kept)) == 1


def test_some_tasks_are_ranked_without_the_others(data: Path, rows: Rows, ranker: Counted) -> None:
    scores_of(data, tasks=[rows[-1]["annotation_id"]])
    assert ranker.calls == 2


def test_the_digest_is_the_rankers_and_not_the_files(data: Path) -> None:
    digest = ranking_stage(
        EvalConfig(dataset=data, ranker="bm25"), None, open_split(data, "cross_task"), Watch()
    ).digest
    assert scores_of(data, limit=1).digest == scores_of(data).digest == digest == LiveScores(open_ranker("bm25")).digest


@pytest.fixture
def killed(data: Path, ranker: Counted) -> None:
    """A ranking was killed after four of six steps."""
    ranker.stops_at, watch = 4, Noted()
    with pytest.raises(KeyboardInterrupt):
        scores_of(data, watch=watch)
    ranker.stops_at = None
    assert re.fullmatch(r"\d of 6 steps scored, kept in \S+\.partial\.jsonl", watch.notes[-1])


@pytest.mark.usefixtures("killed")
@pytest.mark.parametrize("limits", [[None], [1, None]], ids=["at once", "after a smaller one"])
def test_a_killed_ranking_resumes(data: Path, ranker: Counted, kept: Path, limits: list[int | None]) -> None:
    for limit in limits:
        scores_of(data, limit=limit)
    assert ranker.calls == 6
    assert not list(kept.glob("*.jsonl"))


def test_an_edited_page_is_ranked_again(data: Path, rows: Rows, ranker: Counted) -> None:
    """Though the split's fingerprint does not see it."""
    data = data.with_suffix(".jsonl")
    before = write_jsonl(rows, data) and open_split(data, "cross_task").fingerprint
    scores_of(data)
    for row in rows:
        row["cleaned_html"] = row["cleaned_html"].replace("div", "dib")
    write_jsonl(rows, data)
    assert open_split(data, "cross_task").fingerprint == before
    scores_of(data)
    assert ranker.calls == 12


@pytest.mark.parametrize("is_stream", [False, True])
def test_an_edited_table_or_stream_is_ranked_again(rows: Rows, ranker: Counted, is_stream: bool) -> None:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list([{**row, "screenshot": None} for row in rows])
    edited = table.map(lambda row: {"cleaned_html": row["cleaned_html"] + " "})
    for data, calls in ((table, 6), (table, 6), (edited, 12)):
        scores_of(data.to_iterable_dataset() if is_stream else data)
        assert ranker.calls == calls


def test_a_damaged_file_is_made_anew(data: Path, ranker: Counted, kept: Path) -> None:
    scores_of(data)
    files(kept)[0].write_bytes(b"no parquet at all" * 100)
    watch = Noted()
    scores_of(data, watch=watch)
    assert ranker.calls == 12
    assert "damaged" in watch.notes[0]


@pytest.mark.slow
def test_a_flipped_bit_of_a_score_is_no_other_score(data: Path, kept: Path) -> None:
    right = all_of(scores_of(data), open_split(data, "cross_task"))
    content = bytearray(files(kept)[0].read_bytes())
    for place in range(40, len(content) // 2, 37):
        files(kept)[0].write_bytes(bytes(content[:place]) + bytes([content[place] ^ 8]) + bytes(content[place + 1 :]))
        assert all_of(scores_of(data), open_split(data, "cross_task")) == right


@pytest.mark.usefixtures("killed")
def test_a_damaged_journal_is_begun_anew(data: Path, ranker: Counted, kept: Path) -> None:
    next(kept.glob("*.jsonl")).write_text("{}\nnothing\n")
    scores_of(data)
    assert ranker.calls == 4 + 6


def test_where_nothing_can_be_kept_all_is_ranked(data: Path, ranker: Counted, own_cache: Path) -> None:
    (own_cache / "scores").write_text("a file where the folder should be")
    watch = Noted()
    for _ in range(2):
        assert None not in all_of(scores_of(data, watch=watch), open_split(data, "cross_task"))
    assert ranker.calls == 12
    ranker.stops_at = 14
    with pytest.raises(KeyboardInterrupt):
        scores_of(data, watch=watch)
    assert all(note.startswith("scores are not kept: ") for note in watch.notes)


def test_a_step_that_cannot_be_ranked_says_why_and_is_not_tried_again(data: Path, rows: Rows, ranker: Counted) -> None:
    rows[0]["cleaned_html"] = "<html></html>"
    write_parquet(rows, data)
    for _ in range(2):
        with pytest.raises(StepError, match="are not in the HTML"):
            scores_of(data).of(next(open_split(data, "cross_task").steps()))
    assert ranker.calls == 5


def test_a_split_of_which_nothing_can_be_ranked_is_no_error(data: Path, rows: Rows) -> None:
    for row in rows:
        row["cleaned_html"] = ""
    write_parquet(rows, data)
    scores_of(data)
    assert scores_of(data) is not None


def test_a_score_file_of_other_steps_says_how_many_matched(data: Path, tmp_path: Path) -> None:
    write_scores(tmp_path / "s.parquet", [ScoreRow(StepKey("x", "y"), "1", 0.5, 0)])
    with pytest.raises(ScoreFileError, match="0 of 6 steps among the 1 in"):
        ranking_stage(EvalConfig(dataset=data), tmp_path / "s.parquet", open_split(data, "cross_task"), Watch())


@pytest.fixture
def held(data: Path, kept: Path) -> Iterator[FileLock]:
    """Another run that ranks into the file."""
    scores_of(data, limit=1)
    with FileLock(files(kept)[0].with_suffix(".lock")) as lock:
        yield lock


def test_two_runs_at_once_rank_one_after_the_other(data: Path, held: FileLock, ranker: Counted) -> None:
    watch, found = Noted(), []
    waiting = threading.Thread(target=lambda: found.append(scores_of(data, watch=watch)))
    waiting.start()
    waiting.join(0.5)
    assert (ranker.calls, found) == (2, [])
    held.release()
    waiting.join(30)
    assert (ranker.calls, len(found)) == (6, 1)
    assert "another run is ranking" in watch.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["cross_task", *(pytest.param(name, marks=pytest.mark.nightly) for name in TEST_SPLITS if name != "cross_task")],
)
def test_the_sample_brings_the_scores_of_its_test_splits(name: str, ranker: Counted) -> None:
    """A first run once spent most of its time on ranking what never changes."""
    split = open_split("sample", name)
    shipped = ranking_stage(EvalConfig(split=name), None, split, Watch()).scores()
    assert ranker.calls == 0
    steps = list(open_split("sample", name, limit=1).steps())
    live = LiveScores(open_ranker("bundled+bm25"))
    assert [shipped.of(step) for step in steps[:2]] == [live.of(step) for step in steps[:2]]
    assert None not in all_of(shipped, split)

"""Score files in and out, the top-k that they give, what is kept between runs, and what an unsafe pickle meets."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.dataset import load_steps
from seeact_offline.ranking import (
    LiveScores,
    Origin,
    ScoreRow,
    candidate_texts,
    open_ranker,
    ranker_query,
    rankers,
    read_scores,
    schema,
    top_k,
    write_official,
    write_scores,
)
from seeact_offline.ranking.pipeline import StepRanking
from seeact_offline.ranking.rankers import CheckpointRanker, TextRanker
from seeact_offline.ranking.recall import CUT, StepRank, curve, curve_csv, reciprocal_rank, step_rank, summary
from seeact_offline.records import Candidate, InputError, Operation, ScoreFileError, Step, StepError, StepKey

KEY = StepKey("task", "step")


def step(*ids: str, key: StepKey = KEY) -> Step:
    candidates = tuple(Candidate(i, "a", None, n == 0) for n, i in enumerate(ids))
    return Step(
        *key, "do it", ("one", "two", "three", "four"), "site", "domain", "<a/>", Operation("CLICK"), candidates, None
    )


def pickled(path: Path, content: object) -> Path:
    path.write_bytes(pickle.dumps(content))
    return path


def test_candidate_texts_of_the_real_step_equal_the_golden_file(shared_step) -> None:
    golden = json.loads((shared_step / "golden_mindact.json").read_text())
    real = next(load_steps(shared_step, "cross_domain"))
    assert candidate_texts(real) == golden["docs"]
    assert ranker_query(real) == golden["query"]


def test_published_scores_give_the_published_ranks(shared_step) -> None:
    real = next(load_steps(shared_step, "cross_domain"))
    with (shared_step / "scores_all_data.pkl").open("rb") as file:
        ranks = pickle.load(file)["ranks"][str(real.key)]
    ranked = top_k(real, read_scores(shared_step / "scores_all_data.pkl"), 468)
    assert {c.backend_node_id: c.rank for c in ranked} == ranks


def test_published_scores_without_ranks_give_the_same_order(shared_step, tmp_path) -> None:
    real = next(load_steps(shared_step, "cross_domain"))
    with (shared_step / "scores_all_data.pkl").open("rb") as file:
        content = pickle.load(file)
    bare = read_scores(pickled(tmp_path / "s.pkl", {"scores": content["scores"]}))
    assert top_k(real, bare, 468) == top_k(real, read_scores(shared_step / "scores_all_data.pkl"), 468)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.text("0123456789", min_size=1, max_size=4), st.floats(-5, 5)),
        min_size=1,
        max_size=20,
        unique_by=lambda x: x[0],
    )
)
def test_a_written_score_file_reads_back(tmp_path_factory, entries) -> None:
    path = tmp_path_factory.mktemp("scores") / "s.parquet"
    write_scores(path, [ScoreRow(KEY, node, score, rank) for rank, (node, score) in enumerate(entries)])
    assert read_scores(path).of(step()) == {node: (score, rank) for rank, (node, score) in enumerate(entries)}


def test_steps_may_be_mixed_in_a_score_file(tmp_path) -> None:
    other = StepKey("task", "other")
    rows = [ScoreRow(KEY, "1", 0.5, 0), ScoreRow(other, "1", 0.25, 0), ScoreRow(KEY, "2", 0.1, 1)]
    write_scores(tmp_path / "s.parquet", rows)
    scores = read_scores(tmp_path / "s.parquet")
    assert (scores.of(step()), scores.of(step(key=other))) == ({"1": (0.5, 0), "2": (0.1, 1)}, {"1": (0.25, 0)})


def test_equal_scores_without_ranks_keep_the_row_order(tmp_path) -> None:
    scores = read_scores(pickled(tmp_path / "s.pkl", {"scores": {str(KEY): {"a": 0.5, "b": 0.9, "c": 0.5}}}))
    assert [c.backend_node_id for c in top_k(step("c", "a", "b"), scores, 3)] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("scores", "reason"),
    [({"x_y": {"a": 0.5}}, "no_scores"), ({str(KEY): {"a": 0.5}}, "lacks 1 of 2 candidates, first b")],
    ids=["no step", "no candidate"],
)
def test_a_lack_of_scores_is_a_named_failure(tmp_path, scores, reason) -> None:
    with pytest.raises(StepError, match=reason):
        top_k(step("a", "b"), read_scores(pickled(tmp_path / "s.pkl", {"scores": scores})), 5)


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_with_code_is_refused_and_not_run(tmp_path) -> None:
    path = pickled(tmp_path / "s.pkl", {"scores": {str(KEY): {"a": Evil(tmp_path / "made")}}})
    with pytest.raises(ScoreFileError, match="mkdir"):
        read_scores(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content",
    [
        [1],
        {"ranks": {}},
        {"scores": 5},
        {"scores": {"k": [1]}},
        {"scores": {"k": {"a": "x"}}},
        {"scores": {"k": {"a": float("nan")}}},
    ],
)
def test_a_pickle_of_another_shape_is_refused(tmp_path, content) -> None:
    with pytest.raises(ScoreFileError, match=r"^scores: expected"):
        read_scores(pickled(tmp_path / "s.pkl", content))


@pytest.mark.parametrize("data", [b"", b"garbage", pickle.dumps({"scores": {}})[:-3]])
def test_a_damaged_pickle_is_refused(tmp_path, data) -> None:
    (tmp_path / "s.pkl").write_bytes(data)
    with pytest.raises(ScoreFileError, match="cannot be read"):
        read_scores(tmp_path / "s.pkl")


def test_a_missing_score_file_is_named(tmp_path) -> None:
    with pytest.raises(ScoreFileError, match=r"no file at .*nothing\.parquet"):
        read_scores(tmp_path / "nothing.parquet")


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"a": [1]}), "annotation_id"),
        (pa.table([["a"], ["b"], ["1"], [float("nan")], [0]], schema=schema()), "finite"),
    ],
    ids=["other columns", "not finite"],
)
def test_a_parquet_file_that_holds_no_scores_is_refused(tmp_path, table, reason) -> None:
    pq.write_table(table, tmp_path / "s.parquet")
    with pytest.raises(ScoreFileError, match=reason):
        read_scores(tmp_path / "s.parquet")


# --- the origin of a file ------------------------------------------------------------------------------------------------

ORIGIN = Origin("0123456789abcdef", "cross_task", None, "bm25", 1, "bm25", 3)


def test_a_score_file_says_what_made_it(tmp_path) -> None:
    write_scores(tmp_path / "s.parquet", [ScoreRow(KEY, "1", 0.5, 0)], ORIGIN)
    found = read_scores(tmp_path / "s.parquet").origin
    assert (found, found.ranker, found.texts_truncated) == (ORIGIN, "bm25", 3)


def test_a_score_file_without_metadata_says_nothing(tmp_path) -> None:
    write_scores(tmp_path / "s.parquet", [ScoreRow(KEY, "1", 0.5, 0)])
    assert read_scores(tmp_path / "s.parquet").origin is None


def test_metadata_of_another_kind_say_nothing(tmp_path) -> None:
    with_note = schema().with_metadata({b"seeact_offline": b"[1]"})
    pq.write_table(pa.table([["a"], ["b"], ["1"], [0.5], [0]], schema=with_note), tmp_path / "s.parquet")
    assert read_scores(tmp_path / "s.parquet").origin is None


def test_a_written_official_pickle_reads_back(tmp_path) -> None:
    write_official(tmp_path / "s.pkl", [ScoreRow(KEY, "2", 0.5, 0), ScoreRow(KEY, "1", 0.25, 1)])
    assert read_scores(tmp_path / "s.pkl").of(step()) == {"2": (0.5, 0), "1": (0.25, 1)}


# --- rankers ---------------------------------------------------------------------------------------------------------


class LengthRanker:
    """Longer targets score higher."""

    name = "length"

    def __init__(self) -> None:
        self.calls = 0

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        self.calls += 1
        return np.array([len(text.split("target:")[-1]) for text in texts], dtype=np.float32)


PAGE = '<a backend_node_id="0"><p backend_node_id="1" title="one"/><p backend_node_id="2" title="longer"/><p backend_node_id="3" title="two"/></a>'


def on_page(html: str = PAGE) -> Step:
    return replace(step("3", "2", "1"), cleaned_html=html)


def test_equal_scores_of_our_own_rank_in_document_order() -> None:
    ranked = top_k(on_page(), LiveScores(TextRanker(LengthRanker())), 3)
    assert [c.backend_node_id for c in ranked] == ["2", "1", "3"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_ranker_that_gives_no_number_stops_the_run(value: float) -> None:
    ranker = LengthRanker()
    ranker.score = lambda query, texts: np.full(len(texts), value)
    with pytest.raises(InputError, match=r"^ranker: expected finite scores"):
        LiveScores(TextRanker(ranker)).of(on_page())


class RefusingCheckpoint:
    """Its model fails, or its tokenizer does."""

    name, digest, dtype, truncated = "broken", "broken-1", "float32", 0

    def __init__(self, part: str) -> None:
        self.part = part

    def encode(self, pairs: object) -> object:
        if self.part == "encode":
            raise ValueError("query: expected at most 9 tokens")
        return pairs

    def predict(self, encoded: object) -> list[np.ndarray]:
        raise ValueError("model: broken")


def test_a_step_whose_texts_are_refused_is_a_named_failure() -> None:
    with pytest.raises(StepError, match="unrankable: query: expected"):
        LiveScores(CheckpointRanker(RefusingCheckpoint("encode"))).of(on_page())


def test_a_model_that_fails_stops_the_run() -> None:
    with pytest.raises(InputError, match=r"^ranker: expected scores from broken, got model: broken"):
        LiveScores(CheckpointRanker(RefusingCheckpoint("predict"))).of(on_page())


@pytest.mark.parametrize("name", ["oracle", "/no/such/folder", "a/b/c", "./none"])
def test_a_name_that_is_no_ranker_is_refused_with_those_that_are(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match=r"^ranker: expected bundled, bm25, a score file, a folder or a hub id OWNER/NAME, or several "
    ):
        open_ranker(name)


@pytest.mark.parametrize("name", ["", ".."])
def test_a_folder_without_a_checkpoint_is_refused_by_the_file_that_it_lacks(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^ranker: expected a readable config\.json in "):
        open_ranker(name)


def test_a_bundled_ranker_without_weights_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(rankers.resources, "files", lambda package: tmp_path)
    with pytest.raises(
        InputError, match=r"^ranker: expected bm25, .*, got bundled, which has no weights in this installation"
    ):
        open_ranker("bundled")


# --- recall ----------------------------------------------------------------------------------------------------------


def rank_of(task: str, best: int | None, has_positive: bool = True) -> StepRank:
    return StepRank(StepKey(task, "s"), best, has_positive, False, 100, "")


@pytest.mark.parametrize(("best", "tied"), [(CUT, True), (CUT - 1, False), (CUT + 1, False)])
def test_a_tie_counts_across_the_cut_alone(best: int, tied: bool) -> None:
    """`best` texts score higher than the rest, and the last of them as high as the next."""
    values = [1.0] * (best - 1) + [0.5, 0.5] + [0.1 - place / 1000 for place in range(9)]
    scores = {str(place): (value, place) for place, value in enumerate(values)}
    assert step_rank(StepRanking(step("0").truth, scores)).is_tied == tied


RANKS = [rank_of("a", 0), rank_of("a", 4), rank_of("a", None, False), rank_of("b", 60)]


def test_recall_counts_steps_without_a_positive_as_not_found() -> None:
    found = summary(RANKS)
    assert found["recall_at_k"] == {"1": 0.25, "3": 0.25, "5": 0.5, "10": 0.5, "20": 0.5, "50": 0.5, "100": 0.75}
    assert found["recall_at_k_with_positive"]["100"] == 1


def test_mrr_goes_no_deeper_than_the_cut() -> None:
    assert reciprocal_rank([0, 4, None, 60]) == pytest.approx((1 + 1 / 5) / 4)


def test_a_split_without_steps_has_figures_of_zero() -> None:
    assert (summary([])["recall_at_k"]["50"], summary([])["mrr_at_50"], curve([])[49].recall) == (0, 0, 0)


def test_the_ceiling_is_averaged_over_tasks() -> None:
    points = curve(RANKS)
    assert (points[4].recall, points[4].step_sr_ceiling_macro) == (0.5, pytest.approx(1 / 3))
    assert points[99].step_sr_ceiling_macro == pytest.approx((2 / 3 + 1) / 2)


def test_the_curve_has_a_line_for_every_k() -> None:
    lines = curve_csv(curve(RANKS)).splitlines()
    assert lines[0] == "k,recall,recall_with_positive,step_sr_ceiling_micro,step_sr_ceiling_macro"
    assert [line.split(",")[0] for line in lines[1:]] == [str(k) for k in range(1, 101)]
    assert lines[5] == "5,0.500000,0.666667,0.500000,0.333333"

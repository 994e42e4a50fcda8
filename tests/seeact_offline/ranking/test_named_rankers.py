"""Fusions of rankers and score files: their ranks, their metadata, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import seeact_offline as so
from seeact_offline.ranking import LiveScores, ScoreRow, open_ranker, parts_of, read_scores, write_scores
from seeact_offline.ranking.rankers import FileRanker, FusedRanker, StepRanker, TextRanker
from seeact_offline.ranking.stage import RankConfig
from seeact_offline.records import Candidate, InputError, Operation, RowError, ScoreFileError, Step, StepKey
from seeact_offline.results.estimate import dry_run
from tests.hub_server import HubServer
from tests.lazily import safetensors_torch, torch
from tests.pages import synthetic_rows, write_parquet
from tests.ranker.test_cross_encoder import make_checkpoint

KEY = StepKey("task", "step")
PAGE = '<a backend_node_id="0"><p backend_node_id="1" title="one"/><p backend_node_id="2" title="two"/><p backend_node_id="3" title="six"/></a>'


def step() -> Step:
    candidates = tuple(Candidate(i, "p", None, False) for i in "321")
    made = Step(*KEY, "do it", (), "site", "domain", PAGE, Operation("CLICK"), candidates, None)
    return replace(made, cleaned_html=PAGE)


class Titles:
    """Gives each title a score."""

    def __init__(self, name: str, **scores: float) -> None:
        self.name, self.scores = name, scores

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        targets = [text.split("target:")[1] for text in texts]
        return np.array([next(s for title, s in self.scores.items() if title in text) for text in targets], dtype=float)


def titles(name: str, **scores: float) -> TextRanker:
    return TextRanker(Titles(name, **scores))


def ranked(*parts: StepRanker) -> list[str]:
    return list(LiveScores(FusedRanker("a+b", parts)).of(step()))


def score_file(path: Path, *scores: tuple[str, float], key: StepKey = KEY) -> Path:
    write_scores(path, [ScoreRow(key, node, score, rank) for rank, (node, score) in enumerate(scores)])
    return path


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"one": 3, "two": 2, "six": 1}, {"one": 30, "two": 20, "six": 10}, "123"),
        ({"one": 3, "two": 2, "six": 1}, {"one": 1, "two": 3, "six": 2}, "213"),
        ({"one": 1, "two": 2, "six": 3}, {"one": 3, "two": 2, "six": 1}, "132"),
        ({"one": 0, "two": 0, "six": 0}, {"one": 0, "two": 0, "six": 0}, "123"),
    ],
    ids=["agreed", "by the sum", "ends beat the middle, ties in document order", "ties of parts in document order"],
)
def test_a_fusion_ranks_by_the_ranks_of_its_parts(
    first: dict[str, float], second: dict[str, float], expected: str
) -> None:
    assert "".join(ranked(titles("a", **first), titles("b", **second))) == expected


def test_a_score_file_is_a_part_like_any_other(tmp_path: Path) -> None:
    file = FileRanker(score_file(tmp_path / "s.parquet", ("3", 9.0), ("1", 5.0), ("2", 1.0)))
    assert ranked(file, titles("b", one=1, two=2, six=3)) == ["3", "1", "2"]


def test_a_step_that_a_part_lacks_is_a_named_failure(tmp_path: Path) -> None:
    file = FileRanker(score_file(tmp_path / "s.parquet", ("3", 9.0), key=StepKey("task", "other")))
    with pytest.raises(RowError, match="no_scores"):
        ranked(titles("b", one=1, two=2, six=3), file)


def test_what_a_fusion_depends_on_are_its_parts(tmp_path: Path) -> None:
    digests = {open_ranker(name).digest for name in ("bm25+bm25", "bundled+bm25", "bm25+bundled")}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("name", "parts"),
    [("bm25", ("bm25",)), ("a/b+bm25+c.pkl", ("a/b", "bm25", "c.pkl")), ("here+there", ("here+there",))],
)
def test_a_name_with_a_plus_is_a_fusion_unless_it_exists(
    name: str, parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here+there").mkdir()
    assert parts_of(name) == parts


@pytest.mark.parametrize("name", ["bm25+", "+bm25", "bm25++bm25", "+"])
def test_a_plus_without_a_ranker_on_both_sides_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^ranker: expected a ranker on both sides of each \+"):
        open_ranker(name)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_parquet(list(synthetic_rows(2, 2, 8, seed=4)), folder / "data" / "test_task-00000-of-00001.parquet")
    return folder


def test_the_fused_score_file_names_its_parts_and_is_one_itself(data: Path, tmp_path: Path) -> None:
    for name in ("bm25", "bundled"):
        so.rank(RankConfig(dataset=data, ranker=name), tmp_path / f"{name}.parquet")
    live = so.rank(RankConfig(dataset=data, ranker="bundled+bm25"), tmp_path / "live.parquet")
    files = f"{tmp_path / 'bundled.parquet'}+{tmp_path / 'bm25.parquet'}"
    from_files = so.rank(RankConfig(dataset=data, ranker=files), tmp_path / "files.parquet")
    metadata = pq.read_schema(tmp_path / "live.parquet").metadata[b"seeact_offline"]
    assert json.loads(metadata)["parts"] == ["bundled", "bm25"]
    assert read_scores(tmp_path / "files.parquet").origin.parts == tuple(files.split("+"))
    assert live.ranks == from_files.ranks
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("live", "files")]
    assert tables[0].equals(tables[1])


def test_a_part_made_from_other_data_is_refused(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_parquet(list(synthetic_rows(2, 2, 8, seed=5)), other / "data" / "test_task-00000-of-00001.parquet")
    so.rank(RankConfig(dataset=other, ranker="bm25"), tmp_path / "other.parquet")
    with pytest.raises(ScoreFileError, match=r"^scores: expected scores of "):
        so.rank(RankConfig(dataset=data, ranker=f"bm25+{tmp_path / 'other.parquet'}"), tmp_path / "s.parquet")


# --- checkpoints of the hub --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_a_checkpoint_of_the_hub_is_used_at_its_commit_also_offline(
    hub: HubServer, data: Path, tmp_path: Path, weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_checkpoint(tmp_path / "checkpoint")
    if weights != "model.safetensors":
        torch.save(safetensors_torch.load_file(folder / "model.safetensors"), folder / weights)
        (folder / "model.safetensors").unlink()
    content = {path.name: path.read_bytes() for path in folder.iterdir()}
    old = hub.publish("models", "owner/ranker", content)
    hub.publish("models", "owner/ranker", content | {"README.md": b"later", "other/model.safetensors": b"unused"})
    named = {"main": "owner/ranker@main", "old": f"owner/ranker@{old}"}
    for name, ranker in named.items():
        so.evaluate(dataset=data, ranker=ranker, model="builtin/lexical", out=tmp_path / name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.stop()
    so.evaluate(dataset=data, ranker="owner/ranker", model="builtin/lexical", out=tmp_path / "offline")
    manifests = {name: json.loads((tmp_path / name / "manifest.json").read_text()) for name in (*named, "offline")}
    assert manifests["old"]["settings"]["ranker"] == named["old"]
    assert manifests["main"]["settings"]["ranker"] == manifests["offline"]["settings"]["ranker"] != named["old"]
    assert len({manifest["identity"]["scores_digest"] for manifest in manifests.values()}) == 1
    assert "other/model.safetensors" not in hub.sent


# --- a ranking that nobody chose -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "begin",
    [
        lambda folder, out: so.evaluate(dataset=folder, out=out),
        lambda folder, out: so.evaluate(dataset=folder, grounding="annotation", out=out),
        lambda folder, out: so.rank(RankConfig(dataset=folder), out / "s.parquet"),
        lambda folder, out: dry_run(dataset=folder, out=out),
    ],
    ids=["evaluate", "annotation", "rank", "dry_run"],
)
def test_data_without_a_ranking_is_refused_before_anything_is_read(begin, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    # reading them would be another error
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "test_task-00000-of-00001.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError) as refused:
        begin(tmp_path, tmp_path / "out")
    assert str(refused.value).startswith(
        f"there is no ranking for {tmp_path}: name `scores` FILE or `ranker` NAME (such as bundled+bm25); "
    )
    assert not (tmp_path / "out").exists()


def test_a_misspelt_data_set_is_named_before_its_ranking() -> None:
    with pytest.raises(InputError, match=r"^dataset: .*did you mean sample\?"):
        so.evaluate(dataset="sampel")


def test_a_grounding_that_ranks_nothing_needs_no_ranking(data: Path, tmp_path: Path) -> None:
    assert so.evaluate(dataset=data, grounding="pixel", out=tmp_path).results["ranker"] is None


def test_the_published_ranker_is_the_default_where_it_can_be_had(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("seeact_offline.ranking.rankers.checkpoint_folder", asked.append)
    config = RankConfig(dataset=data)
    config.check_chosen()
    assert asked == [config.ranker_name] == ["osunlp/MindAct_CandidateGeneration_deberta-v3-base"]


def test_the_sample_is_ranked_by_both_of_its_rankers() -> None:
    assert RankConfig().ranker_name == "bundled+bm25"

"""`rank`: a split into a score file, killed and resumed, and what `eval` makes of it."""

from __future__ import annotations

import csv
import io
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ranker import LexicalRanker
from seeact_offline.dataset import load_steps
from seeact_offline.ranking import LiveScores, open_ranker, read_scores
from tests.pages import synthetic_rows
from tests.seeact_offline.cli.test_bad_rows import BAD
from tests.seeact_offline.conftest import RESULT_FILES, Cli, Outcome, Sample, contents, make_sample, read_json

ROWS = list(synthetic_rows(2, 2, 8, seed=4))
HARMLESS = {"no_screenshot", "bad_screenshot", "bad_box", "bad_operation"}


def data_words(dataset: Path) -> tuple[str, ...]:
    return ("--dataset", str(dataset), "--split", "cross_task", "--ranker", "bm25")


def rank(cli: Cli, dataset: Path, out: Path, *words: object) -> Outcome:
    return cli("rank", *data_words(dataset), "--out", out, *words)


def figures(outcome: Outcome) -> dict[str, Any]:
    return {name: value for name, value in json.loads(outcome.out).items() if name != "out"}


class Interrupted:
    """Stands in for `LexicalRanker.score`: after so many steps somebody presses Ctrl-C."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.calls = 0
        self._score = LexicalRanker.score

    def __call__(self, query: str, texts: Sequence[str]) -> np.ndarray:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        self.calls += 1
        return self._score(LexicalRanker(), query, texts)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Interrupted:
    stub = Interrupted(5)
    monkeypatch.setattr(LexicalRanker, "score", lambda self, query, texts: stub(query, texts))
    return stub


# --- what it leaves --------------------------------------------------------------------------------------------------


def test_the_score_file_holds_what_the_ranker_gives(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    assert rank(cli, sample.dataset, tmp_path / "s.parquet").status == 0
    scores, live = read_scores(tmp_path / "s.parquet"), LiveScores(open_ranker("bm25"))
    for step in load_steps(sample.dataset, "cross_task"):
        assert scores.of(step) == live.of(step)


def test_nothing_but_the_score_file_is_left(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    rank(cli, sample.dataset, tmp_path / "out" / "s.parquet")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["s.parquet"]


def test_the_official_format_holds_the_same_in_plain_dictionaries(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    rank(cli, sample.dataset, tmp_path / "s.parquet")
    rank(cli, sample.dataset, tmp_path / "s.pkl", "--format", "official")
    content = pickle.loads((tmp_path / "s.pkl").read_bytes())
    step = next(load_steps(sample.dataset, "cross_task"))
    expected = read_scores(tmp_path / "s.parquet").of(step)
    assert content["scores"][str(step.key)] == {node: score for node, (score, _) in expected.items()}
    assert content["ranks"][str(step.key)] == {node: place for node, (_, place) in expected.items()}


def test_recall_is_what_eval_reports_for_the_same_ranks(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    found = json.loads(rank(cli, sample.dataset, tmp_path / "s.parquet", "--json").out)
    cli("eval", *sample.words, "--scores", tmp_path / "s.parquet", "--out", tmp_path / "run")
    recall = read_json(tmp_path / "run" / "results.json")["recall_at_k"]
    assert {k: found["recall_at_k"][k] for k in recall} == recall


def test_json_has_the_figures_and_what_made_them(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    found = json.loads(rank(cli, sample.dataset, tmp_path / "s.parquet", "--json").out)
    assert list(found["recall_at_k"]) == ["1", "3", "5", "10", "20", "50", "100"]
    assert (found["ranker"], found["split"], found["n_steps"], found["n_ranked"]) == ("bm25", "cross_task", 12, 12)
    assert (found["published_recall_at_50"], found["ties_across_cut"], found["texts"]) == (None, 0, 144)


def test_the_published_figure_stands_beside_the_published_ranker_alone(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "| published" not in rank(cli, sample.dataset, tmp_path / "s.parquet").out
    monkeypatch.setattr("seeact_offline.ranking.stage.PUBLISHED", "bm25")
    out = rank(cli, sample.dataset, tmp_path / "s.parquet").out
    published = next(line for line in out.splitlines() if line.startswith("| published"))
    assert "88.9" in published


def test_a_limit_counts_tasks(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    rank(cli, sample.dataset, tmp_path / "s.parquet", "--limit", 2)
    assert len(read_scores(tmp_path / "s.parquet").keys) == 6


def test_ties_across_the_cut_are_counted(cli: Cli, tall_sample: Sample, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(LexicalRanker, "score", lambda self, query, texts: np.zeros(len(texts)))
    found = json.loads(rank(cli, tall_sample.dataset, tmp_path / "s.parquet", "--json").out)
    assert found["ties_across_cut"] == 4


@pytest.mark.slow
def test_the_curve_is_a_table_and_a_picture(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    found = json.loads(rank(cli, sample.dataset, tmp_path / "s.parquet", "--curve", "--json").out)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.curve.csv").read_text())))
    assert float(rows[4]["recall"]) == pytest.approx(found["recall_at_k"]["5"], abs=1e-6)
    with Image.open(tmp_path / "s.curve.png") as picture:
        assert picture.size == (1440, 900)
    assert found["curve"] == {
        name: str(tmp_path / f"s.curve.{ending}")
        for name, ending in (("table", "csv"), ("picture", "png"), ("pdf", "pdf"), ("svg", "svg"))
    }


@pytest.mark.slow
def test_another_rankers_curve_is_drawn_beside_it(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    rank(cli, sample.dataset, tmp_path / "other.parquet", "--curve")
    rank(cli, sample.dataset, tmp_path / "s.parquet", "--curve", "--beside", tmp_path / "other.curve.csv")
    drawn, alone = ((tmp_path / f"{name}.curve.svg").read_text() for name in ("s", "other"))
    assert ("<!-- other" in drawn, "<!-- other" in alone) == (True, False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--beside", "x.curve.csv"), "--beside needs --curve"),
        (("--curve", "--beside", "nowhere.curve.csv"), "--beside: expected a .curve.csv that"),
    ],
)
def test_a_curve_that_cannot_be_drawn_is_refused_before_ranking(
    cli: Cli, sample: Sample, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    assert rank(cli, sample.dataset, tmp_path / "s.parquet", *words).error.startswith(f"error: {sentence}")
    assert not (tmp_path / "s.parquet").exists()


# --- killed, torn, resumed -------------------------------------------------------------------------------------------


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(
    cli: Cli, sample: Sample, tmp_path: Path, interrupted: Interrupted
) -> None:
    assert rank(cli, sample.dataset, tmp_path / "a.parquet").status == 130
    assert not (tmp_path / "a.parquet").exists()
    interrupted.left = 1000
    resumed = rank(cli, sample.dataset, tmp_path / "a.parquet", "--json")
    assert (resumed.status, interrupted.calls) == (0, 12)
    whole = rank(cli, sample.dataset, tmp_path / "b.parquet", "--json")
    assert figures(resumed) == figures(whole)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


TORN: dict[str, Callable[[bytes], bytes]] = {
    "in its first line": lambda content: content[:10],
    "in a later line": lambda content: content[:400],
    "in its last line": lambda content: content[:-20],
    "NUL bytes": lambda content: content + b"\0" * 300,
    "a line of NUL bytes": lambda content: content + b"\0" * 300 + b"\n",
}


@pytest.mark.parametrize("tear", TORN.values(), ids=TORN)
def test_a_torn_part_file_loses_no_more_than_its_last_line(
    cli: Cli, sample: Sample, tmp_path: Path, interrupted: Interrupted, tear: Callable[[bytes], bytes]
) -> None:
    rank(cli, sample.dataset, tmp_path / "a.parquet")
    part = tmp_path / "a.parquet.partial.jsonl"
    part.write_bytes(tear(part.read_bytes()))
    interrupted.left = 1000
    assert rank(cli, sample.dataset, tmp_path / "a.parquet").status == 0
    rank(cli, sample.dataset, tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize(
    ("added", "words", "sentence"),
    [("", ("--limit", 2), "limit was None and is now 2"), ("nonsense\n", (), "line 7 of")],
)
def test_a_part_file_that_is_damaged_or_of_another_configuration_is_refused(
    cli: Cli,
    sample: Sample,
    tmp_path: Path,
    interrupted: Interrupted,
    added: str,
    words: tuple[object, ...],
    sentence: str,
) -> None:
    rank(cli, sample.dataset, tmp_path / "a.parquet")
    part = tmp_path / "a.parquet.partial.jsonl"
    part.write_text(part.read_text() + added)
    outcome = rank(cli, sample.dataset, tmp_path / "a.parquet", *words)
    assert outcome.status == 2
    assert sentence in outcome.err


def test_a_finished_file_is_read_and_left_alone(
    cli: Cli, sample: Sample, tmp_path: Path, interrupted: Interrupted
) -> None:
    interrupted.left = 12
    first = rank(cli, sample.dataset, tmp_path / "a.parquet", "--json")
    before = (tmp_path / "a.parquet").stat().st_mtime_ns
    again = rank(cli, sample.dataset, tmp_path / "a.parquet", "--json")
    assert (again.status, figures(again)) == (0, figures(first))
    assert (tmp_path / "a.parquet").stat().st_mtime_ns == before


def test_a_file_of_another_run_is_not_overwritten(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    rank(cli, sample.dataset, tmp_path / "a.parquet", "--limit", 1)
    before = (tmp_path / "a.parquet").read_bytes()
    outcome = rank(cli, sample.dataset, tmp_path / "a.parquet")
    assert (outcome.status, (tmp_path / "a.parquet").read_bytes()) == (2, before)


@pytest.mark.parametrize(
    ("name", "words"), [("s.csv", ()), ("s.pkl", ()), ("s.parquet", ("--format", "official")), ("s", ())]
)
def test_a_file_whose_ending_is_of_another_format_is_refused(
    cli: Cli, sample: Sample, tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    assert "--out: expected a file that ends in" in rank(cli, sample.dataset, tmp_path / name, *words).error


def test_an_official_file_that_is_there_is_not_overwritten(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "s.pkl").write_bytes(b"precious")
    assert "--out" in rank(cli, sample.dataset, tmp_path / "s.pkl", "--format", "official").error
    assert (tmp_path / "s.pkl").read_bytes() == b"precious"


# --- rows at fault ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "spoil"), BAD.values(), ids=BAD.keys())
def test_a_bad_row_is_named_and_skipped_where_the_ranker_would_read_it(
    cli: Cli, tmp_path: Path, name: str, spoil: Any
) -> None:
    bad = spoil({**ROWS[1], "action_uid": "uid-bad"})
    data = make_sample(tmp_path, [ROWS[0], bad, *ROWS[2:]], scored=ROWS)
    outcome = rank(cli, data.dataset, tmp_path / "s.parquet", "--json")
    found = json.loads(outcome.out)
    if name in HARMLESS:
        assert (outcome.status, found["failures"], found["n_ranked"]) == (0, {}, 4)
    else:
        assert (outcome.status, found["failures"], found["n_ranked"]) == (1, {name: 1}, 3)
        assert "uid-bad" in outcome.err
        assert [key.endswith("_uid-bad") for key in found["steps_left_out"]] == [True]


# --- eval ------------------------------------------------------------------------------------------------------------


def test_a_score_file_of_another_data_set_is_refused(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    """The steps have the same ids, so that only the fingerprint tells."""
    rows = list(synthetic_rows(4, 3, 12, seed=1))
    other = make_sample(tmp_path, [{**row, "confirmed_task": "something else"} for row in rows])
    rank(cli, other.dataset, tmp_path / "s.parquet")
    error = cli("eval", *sample.words, "--scores", tmp_path / "s.parquet", "--out", tmp_path / "run").error
    assert "--scores" in error
    assert "another data set" in error


@pytest.mark.parametrize("split", ["cross_task", "all"])
def test_scores_of_a_file_data_set_serve_whatever_the_split_is_called(
    cli: Cli, sample: Sample, tmp_path: Path, split: str
) -> None:
    file = next((sample.dataset / "data").iterdir())
    assert (
        cli("rank", "--dataset", file, "--split", split, "--ranker", "bm25", "--out", tmp_path / "s.parquet").status
        == 0
    )
    words = ("--dataset", file, "--split", "cross_domain", "--scores", tmp_path / "s.parquet")
    assert cli("eval", *words, "--out", tmp_path / "run").status == 0


def test_eval_and_show_rank_by_themselves_to_the_same_bytes_with_and_without_kept_scores(
    cli: Cli, sample: Sample, tmp_path: Path, own_cache: Path, interrupted: Interrupted
) -> None:
    interrupted.left = 1000
    for name in ("fresh", "kept"):
        assert cli("eval", *data_words(sample.dataset), "--top-k", 6, "--out", tmp_path / name).status == 0
    assert cli("show", *data_words(sample.dataset)).status == 0
    assert interrupted.calls == 12
    assert contents(tmp_path / "fresh", RESULT_FILES) == contents(tmp_path / "kept", RESULT_FILES)
    assert len(list((own_cache / "scores").glob("*.parquet"))) == 1
    assert read_json(tmp_path / "kept" / "results.json")["ranker"] == "bm25"


@pytest.mark.parametrize("verb", ["eval", "show", "rank"])
def test_a_folder_that_is_no_checkpoint_is_refused(cli: Cli, sample: Sample, tmp_path: Path, verb: str) -> None:
    (tmp_path / "empty").mkdir()
    out = {"rank": ("--out", tmp_path / "s.parquet")}.get(verb, ())
    error = cli(verb, "--dataset", sample.dataset, "--ranker", tmp_path / "empty", *out).error
    assert "--ranker" in error


@pytest.mark.slow
def test_a_checkpoint_folder_ranks_and_is_known_by_its_files(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.ranker.test_cross_encoder import make_checkpoint

    named = ("--dataset", sample.dataset, "--limit", 1)
    folders = [make_checkpoint(tmp_path / name) for name in ("one", "two")]
    found = []
    for folder in folders:
        out = folder.with_suffix(".parquet")
        outcome = cli("rank", *named, "--ranker", folder, "--out", out, "--json")
        assert outcome.status == 0, outcome.err
        found.append(json.loads(outcome.out))
    assert found[0]["ranker_digest"] == found[1]["ranker_digest"]
    assert (found[0]["ranker"], found[0]["n_ranked"]) == (str(folders[0]), 3)
    assert read_scores(tmp_path / "one.parquet").origin == read_scores(tmp_path / "two.parquet").origin

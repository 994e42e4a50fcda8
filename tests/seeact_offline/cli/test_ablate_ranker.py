"""The ranker ablation: recall, ceilings and paired figures of score files and fusions, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from seeact_offline.cli import main
from seeact_offline.ranking import read_scores, write_scores
from tests.annexes import needs
from tests.seeact_offline.conftest import Cli, Sample, read_json, read_lines

FOUR = ("--top-k", 4, "--group-size", 4)


@pytest.fixture(scope="module")
def turned(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's scores in the opposite order: the last are first."""
    path = tmp_path_factory.mktemp("turned") / "turned.parquet"
    rows = list(read_scores(sample.scores).rows())
    last = {row.key: max(one.rank for one in rows if one.key == row.key) for row in rows}
    write_scores(path, [row._replace(score=-row.score, rank=last[row.key] - row.rank) for row in rows])
    return path


@pytest.fixture(scope="module")
def names(sample: Sample, turned: Path) -> list[str]:
    return [str(sample.scores), str(turned), f"{sample.scores}+{turned}+bm25"]


def words_of(sample: Sample, *words: object) -> list[str]:
    data = ("--dataset", sample.dataset, "--split", "cross_task")
    return list(map(str, ("ablate", "--over", "ranker", *data, *FOUR, *words)))


@pytest.fixture(scope="module")
def made(sample: Sample, names: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ablation") / "run"
    assert main(words_of(sample, "--rankers", ",".join(names), "--model", "builtin/oracle", "--out", out)) == 0
    return out


def test_each_row_has_its_own_ranking(made: Path, names: list[str]) -> None:
    rows = read_json(made / "table.json")["rows"]
    assert [row["ranker"] for row in rows] == names
    assert [row["folder"] for row in rows] == ["scores.parquet", "turned.parquet", "scores.parquet-turned.parquet-bm25"]
    tops = [read_lines(made / row["folder"] / "predictions.jsonl")[0]["ranked"] for row in rows]
    assert not {*tops[0]} & {*tops[1]}


def test_the_oracle_reaches_each_rankings_ceiling(made: Path) -> None:
    for row in read_json(made / "table.json")["rows"]:
        assert row["element_accuracy"] == row["ceiling"]
        steps = read_lines(made / row["folder"] / "steps.jsonl")
        assert row["ceiling"]["micro"] == sum(step["best_rank"] is not None for step in steps) / len(steps)
        # no more than four are offered
        assert row["recall_at_10"] == row["recall_at_20"] == row["ceiling"]


def test_rows_are_compared_step_by_step_with_the_first(made: Path) -> None:
    table = read_json(made / "table.json")
    baseline = next(row for row in table["rows"] if row["folder"] == table["baseline"])
    for row in table["rows"]:
        if row is baseline:
            assert row["difference_to_baseline"] is None
        else:
            gap = row["difference_to_baseline"]["ceiling"]["macro"]
            assert gap == pytest.approx(row["ceiling"]["macro"] - baseline["ceiling"]["macro"])


def test_the_table_reads_again_from_its_runs(cli: Cli, made: Path, tmp_path: Path) -> None:
    folders = [made / row["folder"] for row in read_json(made / "table.json")["rows"]]
    assert cli("tables", "--table", "rankers", *folders, "--out", tmp_path / "table.csv").status == 0
    ours, theirs = (list(csv.DictReader((f / "table.csv").read_text().splitlines())) for f in (tmp_path, made))
    figures = ("ranker", "step_success_rate", "recall_at_10", "ceiling", "ceiling_low")
    assert [[one[name] for name in figures] for one in ours] == [[one[name] for name in figures] for one in theirs]
    assert "Recall@10" in (made / "table.md").read_text()


def test_a_second_call_asks_and_ranks_nothing(cli: Cli, sample: Sample, made: Path, names: list[str]) -> None:
    words = words_of(sample, "--rankers", ",".join(names), "--model", "builtin/oracle", "--out", made)
    assert "36 of 36 are done already" in cli(*words).err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "--over ranker needs --rankers"),
        (
            ("--rankers", "bm25", "--ranker", "bm25"),
            "--ranker cannot be combined with --over ranker; name it in --rankers",
        ),
        (("--rankers", "bm25", "--scores", "x.pkl"), "--scores cannot be combined with --over ranker"),
        (("--rankers", "bm25,bm25"), "two of --rankers are named bm25"),
        (("--rankers", "bm25,absent.pkl"), "no file at absent.pkl"),
        pytest.param(
            ("--rankers", "bm25", "--observations", "tree"),
            "--observations needs --over observation",
            marks=needs("web_agents"),
        ),
    ],
)
def test_rows_that_cannot_be_are_refused(cli: Cli, sample: Sample, words: tuple[str, ...], named: str) -> None:
    assert named in cli(*words_of(sample, *words)).error

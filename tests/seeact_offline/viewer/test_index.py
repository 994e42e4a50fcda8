"""The list of steps, against the run's own table; runs of other steps, older ones and those that still go on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.files.whole import Journal
from seeact_offline.runs.run import Run
from seeact_offline.scoring import step_scores
from seeact_offline.scoring.waterfall import CAUSES
from seeact_offline.viewer import run_data
from seeact_offline.viewer.site import Site
from tests.seeact_offline.viewer.conftest import read_json


def index_of(*runs: Path) -> dict[str, Any]:
    return read_json(Site(runs, baseline=runs[0]), "index.json")


def rows_of(index: dict[str, Any], run: int = 0) -> list[dict[str, Any]]:
    """The columns as rows, the slow and obvious way."""
    cells, found = index["cells"][run], []
    for i in range(index["n"]):
        row = {name: index["numbers"][name][i] for name in index["numbers"]}
        for name, column in index["coded"].items():
            row[name] = column["values"][column["row"][i]] if column["row"][i] >= 0 else None
        for name, column in cells.items():
            coded = isinstance(column, dict)
            place = column["row"][i] if coded else i
            row[name] = (column["values"] if coded else column)[place] if place >= 0 else None
        row["action_uid"] = index["action_uids"][i]
        row["annotation_id"] = index["tasks"]["annotation_ids"][index["tasks"]["row"][i]]
        row["task"] = index["tasks"]["texts"][index["tasks"]["row"][i]]
        found.append(row)
    return found


def unfinished(run: Path, to: Path, n: int) -> Path:
    """The run as it was after so many steps."""
    shutil.copytree(run, to)
    for name in ("results.json", "steps.jsonl", "report.md"):
        (to / name).unlink()
    for name in ("predictions.jsonl", "targets.jsonl"):
        lines = (to / name).read_text().splitlines(keepends=True)
        (to / name).write_text("".join(lines[:n]))
    return to


@pytest.mark.slow
def test_columns_are_those_of_the_runs_table(sample_run: Path) -> None:
    rows, table = rows_of(index_of(sample_run)), Run(sample_run).to_pandas("steps")
    assert len(rows) == len(table)
    costs = {prediction.key: prediction.usage.cost_usd for prediction in Run(sample_run).predictions()}
    for row, expected in zip(rows, table.to_dict("records"), strict=True):
        for name in ("annotation_id action_uid website domain n_actions n_before n_candidates outcome").split():
            assert row[name] == expected[name], name
        assert (row["element"], row["success"]) == (expected["element"], expected["success"])
        assert row["f1"] == pytest.approx(expected["operation_f1"], abs=5e-4)
        assert row["rank"] == (None if expected["best_rank"] != expected["best_rank"] else expected["best_rank"])
        assert (row["failure"], row["op"]) == (expected["failure"], expected["target_op"])
        assert row["cost"] == costs[expected["annotation_id"], expected["action_uid"]]


def test_tasks_are_named_in_their_words_and_results_are_as_they_are(sample_run: Path) -> None:
    words = {step.annotation_id: step.task for step in so.load_steps("sample", "cross_task", limit=2)}
    index = index_of(sample_run)
    run = index["runs"][0]
    assert {row["annotation_id"]: row["task"] for row in rows_of(index)} == words
    assert run["results"] == Run(sample_run).results
    assert (run["finished"], run["progress"], run["problems"]) == (True, None, [])
    assert index["comparison"] is None
    assert set(index["cells"][0]["outcome"]["values"]) <= index["outcomes"].keys()
    assert CAUSES.keys() <= index["outcomes"].keys()


def test_headlines_are_the_averages_that_the_protocol_quotes(sample_run: Path, tmp_path: Path) -> None:
    results = Run(sample_run).results
    for protocol, average, interval in (("seeact", "macro", "ci95"), ("inspect-evals", "micro", "micro_ci95")):
        run = tmp_path / protocol
        shutil.copytree(sample_run, run)
        (run / "results.json").write_text(json.dumps(results | {"protocol": protocol}))
        shown = index_of(run)["runs"][0]["headlines"]["step_success_rate"]
        figure = results["step_success_rate"]
        assert [shown[name] for name in ("average", "value", "ci95")] == [average, figure[average], figure[interval]]


def test_a_run_says_where_its_replies_come_from(sample_run: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_run, tmp_path / "run")
    manifest = json.loads((sample_run / "manifest.json").read_text())
    replies = {"replies": 9, "from_store": 9, "oldest": "2026-11-16", "sent": 0, "spent_usd": 0.0}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest | {"replies": replies}))
    shown = [index_of(run)["runs"][0]["replies"] for run in (sample_run, tmp_path / "run")]
    assert shown == [None, "9 of 9 replies from the store, oldest 2026-11-16; 0 sent, 0 USD spent"]


def test_a_step_is_called_by_a_digest_of_its_ids(sample_run: Path) -> None:
    import hashlib

    index = index_of(sample_run)
    row = rows_of(index)[0]
    digest = hashlib.sha256(f"{row['annotation_id']}_{row['action_uid']}".encode()).hexdigest()
    assert index["keys"][0] == digest[:16]
    assert len(set(index["keys"])) == index["n"]


# --- several ---


@pytest.mark.slow
def test_runs_of_other_steps_stand_side_by_side(sample_run: Path, other_run: Path) -> None:
    index = index_of(other_run, sample_run)
    n = len(Run(other_run).predictions())
    assert index["n"] == len(Run(sample_run).predictions()) > n
    assert [row["outcome"] is None for row in rows_of(index)] == [False] * n + [True] * (index["n"] - n)


def test_the_difference_is_that_of_compare(sample_run: Path, other_run: Path) -> None:
    found = so.compare(sample_run, other_run, intersect=True)
    comparison = index_of(sample_run, other_run)["comparison"]
    assert comparison["problem"] is None
    (pair,) = comparison["pairs"]
    assert (pair["a"], pair["b"]) == (0, 1)
    for expected in found.pairs:
        shown = pair["metrics"][expected.metric]
        assert (shown["difference"], shown["ci95"]) == (
            expected.gap.macro,
            expected.gap.ci95 and list(expected.gap.ci95),
        )
        assert (shown["n_steps"], shown["n_tasks"]) == (found.n_steps, found.n_tasks)


def test_runs_that_cannot_be_compared_are_shown_all_the_same(sample_run: Path, other_run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(other_run, other)
    results = json.loads((other / "results.json").read_text())
    (other / "results.json").write_text(json.dumps({**results, "protocol": "mindact"}))
    index = index_of(sample_run, other)
    assert index["comparison"]["pairs"] == []
    assert index["comparison"]["problem"].startswith("These runs cannot be compared: ")
    assert len(index["cells"]) == 2


# --- unfinished and old ---


@pytest.mark.parametrize("n", [0, 4, None], ids=["none", "four", "all"])
def test_an_unfinished_run_is_scored_and_counted_so_far(sample_run: Path, tmp_path: Path, n: int | None) -> None:
    results, whole = Run(sample_run).results, rows_of(index_of(sample_run))
    n = len(whole) if n is None else n
    index = index_of(unfinished(sample_run, tmp_path / "run", n))
    run, progress = index["runs"][0], index["runs"][0]["progress"]
    assert rows_of(index) == whole[:n]
    assert (run["finished"], run["results"]) == (False, None)
    assert (progress["done"], progress["of"], progress["failed"]) == (n, len(whole), 0)
    assert (progress["failures"], progress["cost_usd"]) == ({}, 0.0)
    if n == len(whole):
        figures = {
            "element_accuracy": "element_accuracy",
            "operation_f1": "operation_f1",
            "step_success": "step_success_rate",
        }
        assert all(progress[name] == pytest.approx(results[whole]["macro"]) for name, whole in figures.items())
    assert (progress["element_accuracy"] is None) == (n == 0)


def test_failed_steps_are_counted_by_name(sample_run: Path, tmp_path: Path) -> None:
    run = unfinished(sample_run, tmp_path / "run", 4)
    lines = [json.loads(line.text) for line in Journal(run / "predictions.jsonl").lines()]
    lines[0] |= {"ran": False, "failure": "timeout", "groups": [], "element_id": None}
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    progress = index_of(run)["runs"][0]["progress"]
    assert (progress["done"], progress["failed"], progress["failures"]) == (4, 1, {"timeout": 1})


def test_a_line_that_is_being_written_is_not_read_yet(sample_run: Path, tmp_path: Path) -> None:
    run = unfinished(sample_run, tmp_path / "run", 3)
    with (run / "predictions.jsonl").open("a") as file:
        file.write('{"annotation_id": "half a li')
    assert index_of(run)["n"] == 3


@pytest.mark.parametrize(("change", "n_scored"), [("grown", 2), ("replaced", 5), ("other answers", 5)])
def test_only_new_lines_of_a_running_run_are_scored(
    sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, n_scored: int
) -> None:
    whole = (sample_run / "predictions.jsonl").read_text().splitlines(keepends=True)
    run = unfinished(sample_run, tmp_path / "run", 5)
    (run / "predictions.jsonl").write_text("".join(whole[:3]))
    before = run_data.read_run(run)
    if change == "grown":
        with (run / "predictions.jsonl").open("a") as file:
            file.writelines(whole[3:5])
    else:
        lines = whole[:5] if change == "replaced" else [line.replace("CLICK", "HOVER") for line in whole[:5]]
        (run / "new").write_text("".join(lines))
        (run / "new").replace(run / "predictions.jsonl")
    asked: list[int] = []
    score = step_scores.score_steps
    monkeypatch.setattr(
        step_scores, "score_steps", lambda some, *rest: (asked.append(len(some.predictions)), score(some, *rest))[1]
    )
    again = run_data.read_run(run, before)
    assert sum(asked) == n_scored
    assert again == run_data.read_run(run)
    assert list(again.rows) == list(again.predictions)


def test_a_finished_run_that_is_asked_more_is_unfinished(sample_run: Path, tmp_path: Path) -> None:
    """Results of fewer steps than there are predictions are from before."""
    run = tmp_path / "run"
    shutil.copytree(sample_run, run)
    lines = (run / "steps.jsonl").read_text().splitlines(keepends=True)
    (run / "steps.jsonl").write_text("".join(lines[:-1]))
    assert index_of(run)["runs"][0]["finished"] is False


def test_the_list_of_a_finished_run_parses_no_prediction(sample_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    lines = (run / "predictions.jsonl").read_text().splitlines()
    (run / "predictions.jsonl").write_text("\n".join([*lines[:-1], "no JSON"]) + "\n")
    assert rows_of(index_of(run)) == rows_of(index_of(sample_run))
    key = index_of(run)["keys"][0]
    step = read_json(Site([run]), f"step/{key}.json")
    assert any("The files of run cannot be read: " in problem for problem in step["problems"])


def test_a_cost_that_the_scores_do_not_have_is_named_by_the_check(sample_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    lines = [json.loads(line.text) for line in Journal(run / "predictions.jsonl").lines()]
    lines[0]["usage"]["cost_usd"] = 0.5
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (check,) = read_json(Site([run]), "checks.json")["runs"]
    assert "steps.jsonl: line 1: cost_usd is 0.0, scored again it is 0.5" in check["differences"]


def test_a_run_from_before_some_fields_is_listed(sample_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sample_run, run)
    (run / "targets.jsonl").unlink()
    kept = ("annotation_id", "action_uid", "element", "operation_f1", "success", "outcome", "predicted", "target")
    lines = [json.loads(line.text) for line in Journal(run / "steps.jsonl").lines()]
    (run / "steps.jsonl").write_text("".join(json.dumps({n: line[n] for n in kept}) + "\n" for line in lines))
    rows = rows_of(index_of(run))
    assert {(row["website"], row["rank"], row["n_actions"]) for row in rows} == {(None, None, 0)}
    assert [row["outcome"] for row in rows] == [line["outcome"] for line in lines]


def test_damage_is_one_sentence_with_its_line(sample_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sample_run, run)
    (run / "steps.jsonl").write_text('{"annotation_id": "a", "action_uid": 7}\n')
    with pytest.raises(so.records.InputError, match=r"line 1 of .*steps\.jsonl"):
        Site([run])

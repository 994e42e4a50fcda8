"""What a run keeps of its steps beside figures: the task, the place in it, the split, and what elements say."""

from __future__ import annotations

from pathlib import Path

import pytest

import seeact_offline as so
from seeact_offline.cli import main
from seeact_offline.dataset import load_steps
from seeact_offline.records import Step, Truth
from seeact_offline.runs.folder import RunFolder, read_target, target_line
from seeact_offline.runs.run import Run
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.conftest import read_json, read_lines


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All three test splits, each of a task of two steps; the model picks wrong elements."""
    folder = tmp_path_factory.mktemp("kept")
    for number, split in enumerate(("test_task", "test_website", "test_domain")):
        rows = [
            {**row, "annotation_id": f"{split}-{row['annotation_id']}"} for row in synthetic_rows(1, 2, 12, seed=number)
        ]
        write_parquet(rows, folder / "data" / f"{split}-00000-of-00001.parquet")
    return so.evaluate(dataset=folder, split="all", ranker="bm25", group_size=4, out=folder / "run")


def test_a_line_of_a_step_says_which_it_is(run: Run) -> None:
    rows = read_lines(run.path / "steps.jsonl")
    assert [(row["split"], row["index"]) for row in rows] == [
        (split, index) for split in ("cross_task", "cross_website", "cross_domain") for index in (0, 1)
    ]
    assert all(row["task"] and row["website"] and row["domain"] and row["target"]["op"] for row in rows)


def test_a_line_of_a_step_has_the_words_of_the_right_and_the_chosen_element(run: Run) -> None:
    rows = read_lines(run.path / "steps.jsonl")
    assert all(row["target"]["element_text"] for row in rows)
    assert all(bool(row["predicted"]["element_text"]) == bool(row["predicted"]["element_id"]) for row in rows)


def test_the_report_shows_a_failed_step_in_words(run: Run) -> None:
    failed = next(row for row in read_lines(run.path / "steps.jsonl") if row["outcome"] == "wrong_element")
    (line,) = [line for line in run.report().splitlines() if failed["action_uid"] in line]
    assert failed["target"]["element_text"] in line
    assert failed["predicted"]["element_text"] in line


def test_all_reports_each_split(run: Run) -> None:
    parts = read_json(run.path / "results.json")["by_split"]
    assert {split: (part["n_tasks"], part["n_steps"]) for split, part in parts.items()} == dict.fromkeys(
        ("cross_task", "cross_website", "cross_domain"), (1, 2)
    )
    assert "## Each split" in run.report()


def test_scoring_again_loses_nothing(run: Run) -> None:
    before = [(run.path / name).read_bytes() for name in ("steps.jsonl", "results.json", "report.md")]
    assert main(["score", str(run.path)]) == 0
    assert [(run.path / name).read_bytes() for name in ("steps.jsonl", "results.json", "report.md")] == before


def test_a_target_from_before_is_read() -> None:
    truth = Truth(
        "a", "b", op="CLICK", value="", positives=frozenset("1"), task="t", index=2, split="train", element_text="x"
    )
    assert read_target(target_line(truth)) == truth
    old = '{"annotation_id": "a", "action_uid": "b", "op": "CLICK", "value": "", "positives": ["1"]}'
    found = read_target(old)
    assert (found.task, found.index, found.split, found.element_text) == ("", None, "", "")


def test_steps_runs_and_predictions_show_themselves_in_a_line(run: Run) -> None:
    step: Step = next(iter(load_steps("sample", "cross_task", limit=1)))
    prediction = next(iter(RunFolder(run.path).load().values()))
    assert all(len(repr(one)) <= 120 and "\n" not in repr(one) for one in (step, prediction, Run(Path("runs/a"))))
    assert step.website in repr(step)


def test_a_screenshot_shows_itself_in_a_notebook() -> None:
    step: Step = next(iter(load_steps("sample", "cross_task", limit=1)))
    shown = step.screenshot._repr_png_() or step.screenshot._repr_jpeg_()  # type: ignore[union-attr]
    assert shown.startswith((b"\x89PNG", b"\xff\xd8"))

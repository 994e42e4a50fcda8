"""Table 5: rows of an ablation or of any runs by annotation, what is refused, and the table as people read it."""

from __future__ import annotations

import csv
import html
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError, Prediction, Truth, Usage
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.markings import Marking
from seeact_offline.scoring.assembling import ScoringInput, assemble
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import PROTOCOLS
from seeact_offline.scoring.report import NOT_THE_PAPERS
from seeact_offline.tables import TableDocument, build_table
from seeact_offline.tables.ablation import ablation_table
from seeact_offline.tables.document import ENDINGS, Form
from tests.finished_runs import figure, make_run
from tests.reference import paired

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
SETTINGS = {
    "split": "cross_task", "grounding": "annotation", "model": "openai/x_1", "ranker": "scores/s.parquet", "protocol": "seeact",
    "top_k": 50, "merge": None, "seed": 0, "limit": None, "dataset": "osunlp/Multimodal-Mind2Web", "dataset_fingerprint": "f00d",
}  # fmt: skip
TRUTHS = [Truth(f"t{i // 2}", f"s{i}", op="TYPE", value="new york", positives=frozenset({"1"})) for i in range(8)]
RIGHT = {
    Marking("number", "bottom-left"): (1, 1, 1, 0, 1, 1, 0, 1),
    Marking("letter", "bottom-left"): (1, 0, 0, 0, 1, 1, 0, 0),
    Marking("number", "top-right"): (0, 1, 1, 1, 0, 1, 1, 0),
    Marking("number", "bottom-left", in_turn1=True): (1, 1, 1, 0, 1, 0, 0, 1),
}


def predictions(marking: Marking) -> list[Prediction]:
    """Right where RIGHT says so; the first row pays for turn 1, and in the second one step never ran."""
    first, failing = marking == next(iter(RIGHT)), marking.kind == "letter"
    usage = Usage(4, 400, 40, 160, 0.04) if first else Usage(2, 200, 20, 80, 0.02)
    notes = {} if first or marking.in_turn1 else {"reply_reused": 2}
    return [
        Prediction(*t.key, "1" if right else "2", "TYPE", "new york", ranked=("2", "1"), usage=usage, notes=notes, ran=not (failing and i == 1), failure="timeout" if failing and i == 1 else None)
        for i, (t, right) in enumerate(zip(TRUTHS, RIGHT[marking], strict=True))
    ]  # fmt: skip


def write_run(folder: Path, marking: Marking, n_steps: int = 8, **options: Any) -> None:
    """A finished row over the first steps."""
    marks = {"marks": marking.kind, "mark_position": marking.position, "mark_turn1": marking.in_turn1 or None}
    settings = SETTINGS | marks | options
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "identity": {}, "settings": settings}))
    said, right = predictions(marking)[:n_steps], TRUTHS[:n_steps]
    with RunFolder(folder) as run:
        for prediction, truth in zip(said, right, strict=True):
            run.append(prediction, truth)
    made = assemble(ScoringInput(settings, said, right, complete=True), PROTOCOLS["seeact"])
    RunFolder(folder).write_scores(made.rows, made.results, "")


def ablation(
    folder: Path, sizes: Iterable[int] = (8, 8, 8, 8), complete: bool = True, **options: Any
) -> dict[str, Any]:
    """`table.json` of as many rows of RIGHT as there are sizes: the steps that each has."""
    names = []
    for marking, n_steps in zip(RIGHT, sizes, strict=False):
        write_run(folder / marking.name, marking, n_steps, **options)
        names.append(marking.name)
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "identity": {}, "settings": SETTINGS | options}))
    table = ablation_table("5", folder, names, complete)
    (folder / "table.json").write_text(json.dumps(table))
    return table


def document(folder: Path, sizes: Iterable[int] = (8, 8, 8, 8), complete: bool = True, **options: Any) -> TableDocument:
    ablation(folder, sizes, complete, **options)
    return build_table(5, [folder], folder)


# --- figures ---


def test_the_papers_figures_are_beside_ours(tmp_path: Path) -> None:
    rows = {row["folder"]: row["paper"] for row in ablation(tmp_path)["rows"]}
    assert rows["number-bottom-left"] == dict(zip(METRICS, (0.27, 0.737, 0.243), strict=True))
    assert rows["number-bottom-left-marked"] == dict(zip(METRICS, (0.266, 0.739, 0.223), strict=True))
    assert rows["number-top-right"] is None


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "html"])
def test_no_figure_of_the_paper_is_beside_the_sample(tmp_path: Path, form: Form) -> None:
    made = ablation(tmp_path, dataset="sample")
    assert [row["paper"] for row in made["rows"]] == [None] * 4
    text = (
        build_table(5, [tmp_path], tmp_path)
        .text(form)
        .replace(NOT_THE_PAPERS, "")
        .replace(html.escape(NOT_THE_PAPERS), "")
    )
    assert "paper" not in text.lower()
    assert "Step SR" in text or form == "csv"


def test_differences_are_row_minus_the_first_and_paired_by_task(tmp_path: Path) -> None:
    made = ablation(tmp_path)
    assert made["baseline"] == "number-bottom-left"
    assert [row["difference_to_baseline"] is None for row in made["rows"]] == [True, False, False, False]
    for marking, row in list(zip(RIGHT, made["rows"], strict=True))[1:]:
        ours, first = ([r[i : i + 2] for i in range(0, 8, 2)] for r in (RIGHT[marking], RIGHT[next(iter(RIGHT))]))
        gap = row["difference_to_baseline"]["element_accuracy"]
        assert gap["macro"] == pytest.approx(paired.macro(ours) - paired.macro(first))
        # four tasks
        assert gap["ci95"] is None


def test_costs_are_of_the_rows_and_in_all(tmp_path: Path) -> None:
    made = ablation(tmp_path)
    assert [row["usage"]["calls"] for row in made["rows"]] == [32, 16, 16, 16]
    assert made["usage"]["calls"] == 80
    assert made["usage"]["cost_usd"] == pytest.approx(0.8)
    assert [row["replies_reused"] for row in made["rows"]] == [0, 16, 16, 0]


def test_a_row_that_was_stopped_leaves_the_steps_that_all_rows_have(tmp_path: Path) -> None:
    stopped, alike = tmp_path / "stopped", tmp_path / "alike"
    for folder in (stopped, alike):
        folder.mkdir()
    assert ablation(stopped, (8, 6, 8, 8), complete=False) == ablation(alike, (6, 6, 6, 6), complete=False)


def test_a_table_of_no_step_is_a_table(tmp_path: Path) -> None:
    made = document(tmp_path, (8, 0, 8, 8), complete=False)
    assert "0 steps of 0 tasks in every row, not all that were asked for" in made.markdown()


# --- any runs ---


def marked(folder: Path, kind: str, **results: Any) -> Path:
    marks = {"marks": kind, "mark_position": "bottom-left", "mark_turn1": None}
    return make_run(folder, grounding="annotation", **marks, **results)


def test_runs_by_annotation_are_rows_with_their_difference_to_the_first(tmp_path: Path) -> None:
    runs = [marked(tmp_path / "a", "number"), marked(tmp_path / "b", "letter", step_sr=0.75)]
    first, second = csv.DictReader(build_table(5, runs, tmp_path).text("csv").splitlines())
    assert [(row["kind"], row["turn1"], row["failed_steps"], row["folder"]) for row in (first, second)] == [
        ("number", "plain", "1", "a"), ("letter", "plain", "1", "b"),
    ]  # fmt: skip
    assert first["step_success_rate_paper"] == "0.243"
    assert [row["step_success_rate_difference"] for row in (first, second)] == ["", "0.0"]


def test_the_first_row_is_the_baseline_whichever_is_the_best(tmp_path: Path) -> None:
    runs = [
        marked(tmp_path / kind, kind, step_success_rate=figure(one)) for kind, one in (("letter", 0.2), ("number", 0.4))
    ]
    assert (
        "## Differences: row minus the first, letter, bottom-left, plain turn 1\n"
        in build_table(5, runs, tmp_path).markdown()
    )


@pytest.mark.parametrize(
    ("other", "expected"),
    [({"model": "b"}, "runs of one model"), ({"split": "cross_domain"}, "runs of one split"),
     ({"protocol": "mindact"}, "runs of one protocol"), ({"steps": 3}, "runs over the same steps")],
)  # fmt: skip
def test_runs_that_do_not_compare_are_refused(tmp_path: Path, other: dict[str, Any], expected: str) -> None:
    runs = [marked(tmp_path / "a", "number"), marked(tmp_path / "b", "letter", **other)]
    with pytest.raises(InputError, match=f"^runs: expected {expected}"):
        build_table(5, runs)


def test_runs_by_other_groundings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^runs: expected runs by annotation"):
        build_table(5, [make_run(tmp_path / "a")])


# --- what people read ---


@pytest.mark.parametrize("form", ["markdown", "csv", "latex"])
def test_the_table_reads_as_its_snapshot(tmp_path: Path, form: Form) -> None:
    """After a change that was meant: SNAPSHOTS=write python -m pytest tests/seeact_offline/tables/test_markup.py"""
    path = SNAPSHOTS / f"markup_table{ENDINGS[form]}"
    text = re.sub("[0-9a-f]{64}", "SHA256", document(tmp_path).text(form))
    if os.environ.get("SNAPSHOTS") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_one_row_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    assert "nothing to compare" in document(tmp_path, [8]).markdown()


def test_no_difference_is_written_with_a_minus(tmp_path: Path) -> None:
    runs = [marked(tmp_path / kind, kind) for kind in ("number", "letter")]
    assert "-0.0" not in build_table(5, runs).markdown()


def test_the_page_in_html_has_all_three_tables(tmp_path: Path) -> None:
    assert document(tmp_path).html().count("<table>") == 3


def test_a_model_of_any_name_stays_a_text_in_latex(tmp_path: Path) -> None:
    made = document(tmp_path, model="a&b\\input{x}").latex()
    assert r"\multicolumn{6}{c}{a\&b\textbackslash{}input\{x\}}" in made

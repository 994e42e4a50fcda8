"""The rows of the markup ablation, what is refused, the paper's figures, and the table as people read it."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.pages.marks import MarkKind, MarkPosition
from seeact_offline.records import InputError, Operation, Prediction, StepKey, Truth, Usage
from seeact_offline.runs import markup_ablation as ablation
from seeact_offline.runs.markup_ablation import Marking
from seeact_offline.scoring.protocols import PROTOCOLS
from seeact_offline.tables import TABLES
from seeact_offline.tables.drawing import Drawing
from tests.reference import paired

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
KINDS: tuple[MarkKind, ...] = ("number", "letter", "double-letter")
POSITIONS: tuple[MarkPosition, ...] = ("bottom-left", "bottom-center")
SETTINGS = {"split": "cross_task", "model": "openai/x_1", "ranker": "scores/s.parquet", "protocol": "seeact"}
TRUTHS = [Truth(StepKey(f"t{i // 2}", f"s{i}"), Operation("TYPE", "new york"), frozenset({"1"})) for i in range(8)]
RIGHT = {
    Marking("number", "bottom-left"): (1, 1, 1, 0, 1, 1, 0, 1),
    Marking("letter", "bottom-left"): (1, 0, 0, 0, 1, 1, 0, 0),
    Marking("number", "top-right"): (0, 1, 1, 1, 0, 1, 1, 0),
    Marking("number", "bottom-left", in_turn1=True): (1, 1, 1, 0, 1, 0, 0, 1),
}


def predictions(cell: Marking) -> list[Prediction]:
    """Right where RIGHT says so; the first cell pays for turn 1, and in the second one step never ran."""
    first, failing = cell == next(iter(RIGHT)), cell.kind == "letter"
    usage = Usage(4, 400, 40, 160, 0.04) if first else Usage(2, 200, 20, 80, 0.02)
    notes = () if first or cell.in_turn1 else (("reply_reused", 2),)
    return [
        Prediction(
            t.key, (), "1" if right else "2", "TYPE", "new york", ("2", "1"), usage, notes=notes,
            ran=not (failing and i == 1), failure="timeout" if failing and i == 1 else None,
        )
        for i, (t, right) in enumerate(zip(TRUTHS, RIGHT[cell], strict=True))
    ]  # fmt: skip


def table(cells: list[Marking] | None = None, truths: int = len(TRUTHS), complete: bool = True) -> dict[str, Any]:
    results = [
        ablation.cell_result(cell, predictions(cell)[:truths], TRUTHS[:truths], PROTOCOLS["seeact"], 50, 0)
        for cell in cells or RIGHT
    ]
    return ablation.markup_table(results, SETTINGS, complete, 0)


def drawn(made: dict[str, Any], remark: str = "") -> Drawing:
    return TABLES["table5"](made, remark)


# --- rows ---


def test_the_papers_rows_are_the_usual_ones() -> None:
    assert ablation.cells_of(KINDS, POSITIONS, "paper") == list(ablation.paper_table5())


@pytest.mark.parametrize(("turn1", "count"), [("plain", 6), ("marked", 6), ("both", 12), ("paper", 7)])
def test_rows_are_the_combinations_asked_for(turn1: ablation.Turn1, count: int) -> None:
    cells = ablation.cells_of(KINDS, POSITIONS, turn1)
    assert len({cell.name for cell in cells}) == len(cells) == count


def test_cells_with_a_plain_turn_1_come_first_for_they_pay_for_what_is_shared() -> None:
    marked = [cell.in_turn1 for cell in ablation.cells_of(KINDS, POSITIONS, "both")]
    assert marked == sorted(marked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((27, "first", 50), "got 27 by group_size 27; use kinds number,double-letter or another group_size"),
        ((17, "single", 50), "got 50 by top_k 50 with merge single; use .* or another top_k"),
        ((1, "final-round", 50), "got 49 by group_size 1, as the final round of top_k 50"),
    ],
)
def test_more_marks_than_letters_are_refused_with_what_to_use(asked: tuple[int, Any, int], said: str) -> None:
    with pytest.raises(InputError, match=f"^kinds: expected at most 26 .* for letter, {said}"):
        ablation.check_cells([Marking("letter", "center")], *asked)


@pytest.mark.parametrize("asked", [(26, "final-round", 50), (30, "single", 26), (1, "first", 50)])
def test_as_many_marks_as_letters_are_fine(asked: tuple[int, Any, int]) -> None:
    ablation.check_cells([Marking("letter", "center"), Marking("number", "center")], *asked)


def test_more_than_all_pairs_leaves_numbers() -> None:
    with pytest.raises(InputError, match=r"^kinds: .* for double-letter, .* use kinds number or another group_size"):
        ablation.check_cells([Marking("double-letter", "center")], 700, "first", 50)


# --- figures ---


def test_the_papers_figures_are_beside_ours() -> None:
    rows = {row["folder"]: row["paper"] for row in table()["rows"]}
    names = ablation.METRICS
    assert rows["number-bottom-left"] == dict(zip(names, (0.27, 0.737, 0.243), strict=True))
    assert rows["number-bottom-left-marked"] == dict(zip(names, (0.266, 0.739, 0.223), strict=True))
    assert rows["number-top-right"] is None


def test_differences_are_to_the_best_row_and_paired_by_task() -> None:
    made = table()
    assert made["best"] == "number-bottom-left"
    assert [row["difference_to_best"] is None for row in made["rows"]] == [True, False, False, False]
    for cell, row in list(zip(RIGHT, made["rows"], strict=True))[1:]:
        ours, best = ([r[i : i + 2] for i in range(0, 8, 2)] for r in (RIGHT[cell], RIGHT[next(iter(RIGHT))]))
        gap = row["difference_to_best"]["element_accuracy"]
        assert gap["macro"] == pytest.approx(paired.macro(ours) - paired.macro(best))
        # four tasks
        assert gap["ci95"] is None


def test_costs_are_of_the_rows_and_in_all() -> None:
    made = table()
    assert [row["usage"]["calls"] for row in made["rows"]] == [32, 16, 16, 16]
    assert made["usage"]["calls"] == 80
    assert made["usage"]["cost_usd"] == pytest.approx(0.8)
    assert [row["replies_reused"] for row in made["rows"]] == [0, 16, 16, 0]


def test_a_table_of_no_step_is_a_table() -> None:
    made = table(truths=0, complete=False)
    assert (made["n_steps"], made["rows"][1]["difference_to_best"]["step_success_rate"]["macro"]) == (0, 0.0)
    assert "not all that were asked for" in drawn(made).markdown()


# --- what people read ---


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("markup_table.md", drawn(table(), "Made up.").markdown()),
        ("markup_table.csv", drawn(table()).csv()),
        ("markup_table.tex", drawn(table(), "Made up.").latex()),
    ],
)
def test_the_table_reads_as_its_snapshot(name: str, text: str) -> None:
    """After a change that was meant: SNAPSHOTS=write python -m pytest tests/seeact_offline/runs/test_markup_ablation.py"""
    if os.environ.get("SNAPSHOTS") == "write":
        (SNAPSHOTS / name).write_text(text)
    assert text == (SNAPSHOTS / name).read_text()


def test_every_csv_line_has_every_column() -> None:
    lines = list(csv.DictReader(drawn(table()).csv().splitlines()))
    assert {len(line) for line in lines} == {37}
    assert (lines[0]["step_success_rate_difference"], lines[2]["step_success_rate_paper"]) == ("", "")


def test_one_row_has_nothing_to_be_compared_with() -> None:
    assert "nothing to compare" in drawn(table([Marking("number", "bottom-left")])).markdown()


def test_no_difference_is_written_with_a_minus() -> None:
    assert "-0.0" not in drawn(table([Marking("number", "bottom-left")] * 2)).markdown()


def test_the_page_in_html_has_all_three_tables() -> None:
    assert drawn(table()).html().count("<table>") == 3


def test_a_model_of_any_name_stays_a_text_in_latex() -> None:
    made = table() | {"model": "a&b\\input{x}"}
    assert r"\multicolumn{6}{c}{a\&b\textbackslash{}input\{x\}}" in drawn(made).latex()

"""What people read: a report as a whole, and untrusted text in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.cli.output import printable
from seeact_offline.records import Box, Operation, Prediction, Reply, StepKey, Truth, Usage
from seeact_offline.scoring import report as tables
from seeact_offline.scoring import steps as scoring
from seeact_offline.scoring.protocols import PROTOCOLS, find_protocol
from seeact_offline.scoring.results import results_json

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "report.md"
SETTINGS = {
    "split": "cross_task", "grounding": "choice", "model": "openai/x", "ranker": "scores/s.parquet", "protocol": "seeact", "prompts": "seeact",
    "merge": "final-round", "top_k": 50, "group_size": 17, "seed": 0, "limit": None, "dataset": "data|set", "dataset_fingerprint": "abc",
}  # fmt: skip


def results() -> tuple[dict, list[dict]]:
    truths = [Truth(StepKey(f"t{i // 2}", f"s{i}"), Operation("TYPE", "new york"), frozenset({"1"})) for i in range(4)]
    said = [
        ("1", "new york", None),
        ("2", "<b>new</b> | `york`", None),
        (None, "", "no_final_answer"),
        ("1", "new york", None),
    ]
    predictions = [
        Prediction(
            t.key,
            (Reply(0, ("1", "2"), ("", ""), e, "TYPE", v, f),),
            e,
            "TYPE",
            v,
            ("2", "1"),
            Usage(2, 100, 10, 40, 0.01),
            f,
        )
        for t, (e, v, f) in zip(truths, said, strict=True)
    ]
    scores, summary = scoring.summarise(predictions, truths, PROTOCOLS["seeact"], 50, 0)
    made = results_json(summary, SETTINGS)
    made["merge_spread"] = scoring.merge_spread(predictions, truths, PROTOCOLS["seeact"], "final-round")
    return made, scoring.rows(scores, predictions, truths)


def test_the_report_reads_as_its_snapshot() -> None:
    assert tables.report(*results()) == SNAPSHOT.read_text()


def test_no_markup_of_a_models_text_reaches_the_report() -> None:
    report = tables.report(*results())
    assert "<b>" not in report
    assert "&lt;b&gt;new&lt;/b&gt; \\| \\`york\\`" in report


@given(st.text())
def test_a_cell_is_one_line_without_live_markup(text: str) -> None:
    cell = tables.cell(text)
    assert "\n" not in cell
    assert "<" not in cell
    assert all(cell[i - 1] == "\\" for i, c in enumerate(cell) if c in "`*[]|#")


@given(st.text())
def test_no_control_character_reaches_the_terminal(text: str) -> None:
    assert all(c.isprintable() or c in "\n\t" or ord(c) > 0x9F for c in printable(text))


def test_an_escape_sequence_is_made_visible() -> None:
    assert printable("\x1b[31mred\u202e") == "\\u001b[31mred\\u202e"


def test_tables_line_up() -> None:
    assert len({len(line) for line in tables.table(("a", "bb"), [("ccc", "d")]).splitlines()}) == 1


@pytest.mark.parametrize(("value", "shown"), [(0.4567, "45.7"), (1.0, "100.0"), (None, "-")])
def test_percentages_have_one_decimal(value: float | None, shown: str) -> None:
    assert tables.percent(value) == shown


def report_of(predictions: list[Prediction], truths: list[Truth], grounded: bool = True) -> str:
    protocol = find_protocol("seeact", grounded=grounded)
    scores, summary = scoring.summarise(predictions, truths, protocol, None, 0)
    return tables.report(results_json(summary, SETTINGS), scoring.rows(scores, predictions, truths))


def pointed() -> tuple[list[Prediction], list[Truth]]:
    keys = [StepKey(f"t{i}", "s") for i in range(4)]
    truths = [Truth(key, Operation("CLICK"), frozenset({"1"}), (Box(0, 0, 10, 10),)) for key in keys]
    known = [("1", True), ("2", True), ("2", False), ("1", True)]
    predictions = [
        Prediction(
            key, (), element, "CLICK", "", point=(5.0, 5.0), reachable=reachable, notes=(("picture_resized", 1),)
        )
        for key, (element, reachable) in zip(keys, known, strict=True)
    ]
    return predictions, truths


def test_the_report_says_how_much_of_the_gap_is_the_groundings_own() -> None:
    report = report_of(*pointed())
    assert "Of 100 %, the grounding itself, with the ranker" in report
    assert "allows answers that know the right element 75.0 % Element Accuracy" in report
    assert "25.0 points of the gap to a perfect score are its own" in report


def test_the_report_shows_points_and_notes_and_no_recall_where_nothing_is_ranked() -> None:
    report = report_of(*pointed())
    assert "| Point in box     | 100.0 |" in report
    assert "| picture_resized | 4     | a picture was made smaller" in report
    assert "recall@" not in report
    assert "| out_of_reach" in report


def test_the_report_of_a_run_without_elements_has_dashes_for_them() -> None:
    predictions, truths = pointed()
    report = report_of([replace(p, element_id=None, point=None, reachable=None) for p in predictions], truths, False)
    assert "| Element Accuracy | -     | -" in report
    assert "| Step SR          | -     | -" in report
    assert "| success | 4     | right operation |" in report
    assert "the grounding itself" not in report

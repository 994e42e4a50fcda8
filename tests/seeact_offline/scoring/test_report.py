"""What people read: a report as a whole, and untrusted text in it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

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


NOTES = {"picture_resized": "a picture was made smaller"}


def report_of(predictions: list[Prediction], truths: list[Truth], grounded: bool = True) -> str:
    protocol = find_protocol("seeact", grounded=grounded)
    scores, summary = scoring.summarise(predictions, truths, protocol, None, 0)
    return tables.report(results_json(summary, SETTINGS), scoring.rows(scores, predictions, truths), NOTES)


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


# --- what nobody has told the report of ---


def test_an_unknown_note_is_counted_after_the_known_ones() -> None:
    made = tables.report(results()[0] | {"notes": {"a_new_note": 3, "picture_resized": 1}}, [], NOTES)
    assert "| picture_resized | 1     | a picture was made smaller" in made
    assert re.search(r"\| picture_resized .*\n\| a_new_note      \| 3     \|  +\|\n", made)


def test_notes_of_which_none_is_known_are_counted() -> None:
    assert "| a_new_note | 3     |         |" in tables.report(results()[0] | {"notes": {"a_new_note": 3}}, [], NOTES)


def test_the_meanings_of_notes_may_be_given() -> None:
    made = results()[0] | {"notes": {"a_new_note": 3}}
    meanings = {"a_new_note": "something new"}
    assert "| a_new_note | 3     | something new |" in tables.report(made, [], meanings)
    assert "| a_new_note    | 3     | something new |" in tables.short(made, meanings)


def test_an_unknown_outcome_is_counted_by_its_name() -> None:
    made = tables.report(results()[0] | {"waterfall": {"success": 3, "fell_asleep": 1}}, [])
    assert "| fell_asleep | 1     |                                |" in made


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.25, "0.25"),
        ({"deep": [1, 2]}, '{"deep": \\[1, 2\\]}'),
        (["a", "b|c"], '\\["a", "b\\|c"\\]'),
        ("x" * 81, "x" * 80 + " ..."),
    ],
)
def test_an_unknown_setting_is_shown_by_its_name(value: object, shown: str) -> None:
    made = tables.report(results()[0] | {"patience": value}, [])
    assert re.search(rf"\| patience +\| {re.escape(shown)} +\|\n\| tasks ", made)


def test_a_setting_that_does_not_apply_is_left_out() -> None:
    assert "patience" not in tables.report(results()[0] | {"patience": None}, [])


def test_no_figure_is_taken_for_a_setting() -> None:
    made = results()[0] | dict.fromkeys(("complete", "choice_prompts_digest"), True)
    made |= {"shuffle_spread": None, "without_flagged": None, "batching_price": None}
    assert tables.report(made, results()[1]) == SNAPSHOT.read_text()


def test_steps_beyond_those_listed_are_counted() -> None:
    made, steps = results()
    assert tables.report(made, steps * 30).endswith("|\n\n10 more in `steps.jsonl`.\n")

"""What people read: a report as a whole, and untrusted text in it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seeact_offline.files.markdown import percent
from seeact_offline.records import Box, Prediction, Reply, StepKey, Truth, Usage
from seeact_offline.scoring import report as tables
from seeact_offline.scoring.assembling import ScoringInput, assemble
from seeact_offline.scoring.protocols import PROTOCOLS, find_protocol
from seeact_offline.scoring.results import Results
from seeact_offline.tables.figures import draw_waterfall

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "report.md"
SETTINGS = {
    "split": "cross_task", "grounding": "choice", "model": "openai/x", "ranker": "scores/s.parquet", "protocol": "seeact", "prompts": "seeact",
    "merge": "final-round", "top_k": 50, "group_size": 17, "seed": 0, "limit": None, "dataset": "data|set", "dataset_fingerprint": "abc",
}  # fmt: skip


def results() -> tuple[dict, list[dict]]:
    truths = [Truth(f"t{i // 2}", f"s{i}", op="TYPE", value="new york", positives=frozenset({"1"})) for i in range(4)]
    said = [
        ("1", "new york", None),
        ("2", "<b>new</b> | `york`", None),
        (None, "", "no_final_answer"),
        ("1", "new york", None),
    ]
    predictions = [
        Prediction(
            *t.key,
            e,
            "TYPE",
            v,
            groups=(Reply(0, ("1", "2"), ("", ""), e, "TYPE", v, f),),
            ranked=("2", "1"),
            usage=Usage(2, 100, 10, 40, 0.01),
            failure=f,
        )
        for t, (e, v, f) in zip(truths, said, strict=True)
    ]
    made = assemble(ScoringInput(SETTINGS, predictions, truths, complete=True), PROTOCOLS["seeact"])
    return made.results.entries, made.rows


def report_from(entries: dict, steps: list[dict], notes: Mapping[str, str] = tables.UNKNOWN) -> str:
    return tables.report(Results.read(entries), steps, notes)


def test_the_report_reads_as_its_snapshot() -> None:
    """After a change that was meant: SNAPSHOTS=write python -m pytest tests/seeact_offline/scoring/test_report.py"""
    made = report_from(*results())
    if os.environ.get("SNAPSHOTS") == "write":
        SNAPSHOT.write_text(made)
    assert made == SNAPSHOT.read_text()


def test_no_markup_of_a_models_text_reaches_the_report() -> None:
    report = report_from(*results())
    assert "<b>" not in report
    assert "&lt;b&gt;new&lt;/b&gt; \\| \\`york\\`" in report


UNRANKED = SETTINGS | dict.fromkeys(("ranker", "merge", "top_k", "group_size"))
NOTES = {"picture_resized": "a picture was made smaller"}


def report_of(
    predictions: list[Prediction], truths: list[Truth], grounded: bool = True, settings: Mapping[str, Any] = UNRANKED
) -> str:
    protocol = find_protocol("seeact", grounded=grounded)
    made = assemble(ScoringInput(settings, predictions, truths, complete=True), protocol)
    return tables.report(made.results, made.rows, NOTES)


def pointed() -> tuple[list[Prediction], list[Truth]]:
    keys = [StepKey(f"t{i}", "s") for i in range(4)]
    truths = [Truth(*key, op="CLICK", value="", positives=frozenset({"1"}), boxes=(Box(0, 0, 10, 10),)) for key in keys]
    known = [("1", True), ("2", True), ("2", False), ("1", True)]
    predictions = [
        Prediction(*key, element, "CLICK", "", point=(5.0, 5.0), reachable=reachable, notes={"picture_resized": 1})
        for key, (element, reachable) in zip(keys, known, strict=True)
    ]
    return predictions, truths


def test_the_report_says_how_much_of_the_gap_is_the_groundings_own() -> None:
    report = report_of(*pointed())
    assert "A perfect model would reach 75.0 % Element Accuracy (micro 75.0 %):" in report
    assert "the grounding itself loses the other 25.0 points." in report
    assert "Rows at fault count among these." in report


def test_the_report_shows_points_and_notes_and_no_recall_where_nothing_is_ranked() -> None:
    report = report_of(*pointed())
    assert "| Point in box     | 100.0 |" in report
    assert "| picture_resized | 4     | a picture was made smaller" in report
    assert "recall@" not in report
    assert "| page_not_read | 2     |" in report


def test_the_report_of_a_run_without_elements_has_dashes_for_them() -> None:
    predictions, truths = pointed()
    report = report_of([replace(p, element_id=None, point=None, reachable=None) for p in predictions], truths, False)
    assert "| Element Accuracy | -     | -" in report
    assert "| Step SR          | -     | -" in report
    assert re.search(r"\| right operation \| 4     \| 100.0 \| 100.0 \| right operation \|", report)
    assert "the grounding itself" not in report


# --- where steps are lost ---


def lossy() -> tuple[list[Prediction], list[Truth]]:
    """Seven steps of one task, each lost to something else but one."""
    keys = [StepKey("t", f"s{i}") for i in range(7)]
    kin: dict[Any, frozenset[str]] = {"same_text": frozenset({"2"}), "neighbour": frozenset()}
    truths = [Truth(*key, op="TYPE", value="new york", positives=frozenset({"1"}), kin=kin) for key in keys]
    picked = ("1", "2", "3", "1", "1", "1", None)
    operations = [("TYPE", "new york")] * 3 + [("CLICK", ""), ("TYPE", ""), ("TYPE", "york"), ("TYPE", "new york")]
    ranked = [("1", "2", "3")] * 6 + [("2", "3")]
    said = [
        Prediction(
            *key,
            pick,
            *done,
            groups=(Reply(0, nodes, ("", ""), pick, *done),),
            ranked=nodes,
            usage=Usage(2, 100, 10, 0, None),
        )
        for key, pick, done, nodes in zip(keys, picked, operations, ranked, strict=True)
    ]
    return said, truths


def section(report: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    (body,) = re.findall(rf"^## {title}\n\n(.*?)\n\n", report, re.MULTILINE | re.DOTALL)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[2:]]


SECTIONS = {
    "Where steps are lost": [
        "all steps, 7, 100.0", "ranker_miss, 1, -14.3", "wrong_element, 2, -28.6", "wrong_op, 1, -14.3",
        "missing_value, 1, -14.3", "wrong_value, 1, -14.3", "success, 1, 14.3",
    ],
    "Wrong elements": ["same_text, 1, it reads the same as a right one", "other, 1, another, or a place where no element is"],
    # one seventh, and one sixth of a seventh
    "What if": [
        "the ranker had missed nothing, and every step that it lost had succeeded, 1, 28.6",
        "the ranker had missed nothing, and the steps that it lost had succeeded as often as those whose target was offered, 1, 16.7",
        "every answer without the right element had named it, with its operation as it is, 2, 42.9",
        "every value that is missing or wrong had been right, 2, 42.9",
    ],
    "Ranker budget": [f"{k}, 85.7, 85.7" for k in (5, 10, 20, 30, 50)],
}  # fmt: skip


@pytest.mark.parametrize("title", SECTIONS)
def test_losses_are_shown_in_tables_of_their_own(title: str) -> None:
    table = section(report_of(*lossy(), settings=SETTINGS), title)
    assert [", ".join(row[:3]) for row in table] == SECTIONS[title]


def test_errors_of_annotation_are_those_of_runs_that_mark_pictures() -> None:
    report = report_of(*lossy(), settings=SETTINGS | {"marks": "number"})
    errors = {row[0]: row[1] for row in section(report, "Errors of annotation")}
    assert errors == {"made_up": "0", "mislinked": "2", "na_although_marked": "0", "unread": "0", "no_error": "1"}
    assert "Pictures of 3 steps (all wrong steps whose page has a right element" in report
    assert "Errors of annotation" not in report_of(*lossy(), settings=SETTINGS)


def test_a_picture_whose_target_is_not_marked_is_told_from_one_whose_mark_was_missed() -> None:
    predictions, truths = lossy()
    oracle = {truth.key: truth.key.action_uid == "s1" for truth in truths}
    made = assemble(
        ScoringInput(SETTINGS | {"marks": "number"}, predictions, truths, complete=True, oracle=oracle),
        PROTOCOLS["seeact"],
    )
    assert (made.results.annotation_errors or {})["population"] == "oracle_right"
    assert ((made.results.annotation_errors or {})["n_steps"], (made.results.annotation_errors or {})["mislinked"]) == (
        1,
        1,
    )
    assert "(steps that the oracle grounding gets right and this run wrong)" in tables.report(made.results, made.rows)


@pytest.mark.parametrize("shares", [(0.06857, 0.10369, 0.20379), (0.0125, 1 - 0.9875, 0.3), (1 / 3, 1 / 3, 1 / 6)])
def test_points_of_the_waterfall_are_rounded_as_everywhere_else(shares: Sequence[float]) -> None:
    lost = dict(zip(("no_positive", "ranker_miss", "wrong_op"), shares, strict=True))
    done = results()[0]["step_success_rate"] | {"macro": 1 - sum(shares)}
    made = results()[0] | {
        "waterfall": {cause: {"steps": 1, "macro": share, "micro": share} for cause, share in lost.items()},
        "step_success_rate": done,
    }
    printed = {row[0]: row[2] for row in section(report_from(made, []), "Where steps are lost")}
    assert printed == {
        "all steps": "100.0",
        **{cause: f"-{percent(share)}" for cause, share in lost.items()},
        "success": percent(done["macro"]),
    }
    drawn = {
        "about": "sample",
        "label": "",
        "losses": [{"cause": c, "share": s, "steps": 1} for c, s in lost.items()],
        "rest": done["macro"],
    }
    (axes,) = draw_waterfall({**drawn, "measure": "Step SR", "average": "macro"}).axes
    assert [text.get_text() for text in axes.texts][1:] == list(printed.values())[1:]


def test_what_eval_prints_has_the_waterfall_too() -> None:
    made = assemble(ScoringInput(SETTINGS, *lossy(), complete=True), PROTOCOLS["seeact"])
    printed = tables.short(made.results)
    assert "| all steps     | 7     | 100.0 |" in printed
    assert re.search(
        r"\| the ranker had missed nothing, and every step that it lost had succeeded +\| 1     \| 28.6  \|", printed
    )


def test_a_step_that_did_not_run_is_counted_whatever_it_is_lost_to() -> None:
    predictions, truths = lossy()
    broken = [replace(p, element_id=None, ran=False, failure="timeout") for p in predictions]
    made = assemble(ScoringInput(SETTINGS, broken, truths, complete=True), PROTOCOLS["seeact"]).results.entries
    assert made["n_not_run"] == 7
    assert {cause: one["steps"] for cause, one in made["waterfall"].items()} == {"ranker_miss": 1, "call_failed": 6}


def test_the_report_says_how_each_interval_was_made() -> None:
    made = results()[0]
    assert "Intervals: Korn and Graubard's on the effective number of steps." in report_from(made, [])


def test_what_a_protocol_averages_otherwise_is_said() -> None:
    said = report_from(results()[0] | {"protocol": "seeclick"}, [])
    assert "Operation F1: averages the steps of CLICK, TYPE and SELECT each" in said
    assert "Element Accuracy and Step SR: quotes the mean over steps." in said
    assert "Tasks: counts 0 for each action" in report_from(results()[0] | {"protocol": "uground"}, [])


def test_steps_that_the_protocol_leaves_out_are_counted_and_do_not_fail() -> None:
    # no truth has a picture, so that there is no box to click in
    made = assemble(ScoringInput(SETTINGS, *lossy(), complete=True), PROTOCOLS["seeclick"])
    report = tables.report(made.results, made.rows)
    assert made.results.left_out == 7
    assert "The protocol leaves out 7 steps: they are in no figure." in report
    assert "Steps that failed" not in report


# --- what nobody has told the report of ---


@pytest.mark.parametrize(
    ("notes", "row"),
    [
        ({"a_new_note": 3, "picture_resized": 1}, r"\| picture_resized \| 1     \| a picture was made smaller"),
        ({"a_new_note": 3, "picture_resized": 1}, r"\| picture_resized .*\n\| a_new_note      \| 3     \|  +\|\n"),
        ({"a_new_note": 3}, r"\| a_new_note \| 3     \|         \|"),
    ],
    ids=["known", "unknown after known", "unknown alone"],
)
def test_notes_are_counted_with_their_meaning_where_it_is_known(notes: dict[str, int], row: str) -> None:
    assert re.search(row, report_from(results()[0] | {"notes": notes}, [], NOTES))


def test_an_unknown_cause_is_counted_by_its_name() -> None:
    lost = {"fell_asleep": {"steps": 2, "macro": 0.5, "micro": 0.5}}
    made = report_from(results()[0] | {"waterfall": lost}, [])
    assert re.search(r"\| fell_asleep \| 2     \| -50.0 \| -50.0 \|  +\|\n\| success ", made)


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
    made = report_from(results()[0] | {"patience": value}, [])
    assert re.search(rf"\| patience +\| {re.escape(shown)} +\|\n\| tasks ", made)


def test_a_setting_that_does_not_apply_is_left_out() -> None:
    assert "patience" not in report_from(results()[0] | {"patience": None}, [])


def test_no_figure_is_taken_for_a_setting() -> None:
    made = results()[0] | dict.fromkeys(("complete", "choice_prompts_digest"), True)
    made |= {"shuffle_spread": None, "without_flagged": None, "batching_price": None}
    assert report_from(made, results()[1]) == SNAPSHOT.read_text()


def test_steps_beyond_those_listed_are_counted() -> None:
    made, steps = results()
    assert report_from(made, steps * 30).endswith("|\n\n10 more in `steps.jsonl`.\n")


# --- sentences ---


def changed(**values: Any) -> str:
    made, steps = results()
    return report_from({**made, **values}, steps)


def test_the_sample_says_that_its_figures_are_not_the_papers() -> None:
    said = [tables.NOT_THE_PAPERS in changed(dataset=name) for name in ("sample", "mine")]
    assert said == [True, False]


@pytest.mark.parametrize(("n_tasks", "said"), [(1, "Caution: 1 task only."), (9, "Caution: 9 tasks only."), (10, "")])
def test_under_ten_tasks_there_is_a_caution(n_tasks: int, said: str) -> None:
    text = changed(n_tasks=n_tasks)
    assert ("Caution: " in text) == bool(said)
    assert said in text


def test_recall_says_over_which_steps_it_is() -> None:
    assert "Recall over all 4 steps; steps without a right candidate count as misses." in changed()


def test_tokens_that_nobody_told_are_not_reported() -> None:
    usage = {
        "calls": 3,
        "prompt_tokens": 90,
        "completion_tokens": 9,
        "image_tokens": 0,
        "cost_usd": None,
        "unreported": 1,
    }
    text = changed(usage=usage)
    lines = [line.split("|")[1:3] for line in text.splitlines() if "tokens  " in line or "tokens |" in line]
    assert [(name.strip(), said.strip()) for name, said in lines][-3:] == [
        ("prompt tokens", "90"), ("completion tokens", "9"), ("image tokens", "not reported"),
    ]  # fmt: skip
    assert "Of 1 call the server did not say what was used." in text


def test_a_run_without_calls_used_no_tokens() -> None:
    none = dict.fromkeys(("calls", "prompt_tokens", "completion_tokens", "image_tokens", "cost_usd"), 0)
    assert "not reported" not in changed(usage=none, ranker_budget=None)


def test_a_failed_step_reads_in_words_where_they_are_known() -> None:
    made, steps = results()
    known = {"predicted": {"element_text": "button Cancel"}, "target": {"element_text": "button | Book"}}
    rows = [{**row, **{name: row[name] | words for name, words in known.items()}} for row in steps]
    lines = report_from(made, rows).partition("## Steps that failed")[2].splitlines()
    assert all("button Cancel (" in line and "button \\| Book (" in line for line in lines[4:] if line.startswith("|"))


def test_one_is_not_several() -> None:
    assert [tables.counted(n, "step") for n in (0, 1, 2, 1234)] == ["0 steps", "1 step", "2 steps", "1,234 steps"]
    assert [tables.counted(n, "row has", "rows have") for n in (1, 2)] == ["1 row has", "2 rows have"]


def lopsided(protocol: str) -> dict[str, Any]:
    """Two tasks, of three steps and of one; the long one is right in one step, the other is right."""
    tasks = ["a", "a", "a", "b"]
    truths = [
        Truth(t, str(i), op="CLICK", value="", positives=frozenset({"1"}), split=f"split_{t}")
        for i, t in enumerate(tasks)
    ]
    predictions = [Prediction(*t.key, "1" if i in (0, 3) else "2", "CLICK", "") for i, t in enumerate(truths)]
    settings = SETTINGS | {"merge": None, "protocol": protocol}
    return assemble(ScoringInput(settings, predictions, truths, complete=True), PROTOCOLS[protocol]).results.entries


@pytest.mark.parametrize(
    ("protocol", "average", "value"), [("seeact", "macro", 2 / 3), ("inspect-evals", "micro", 0.5)]
)
def test_report_and_card_name_the_average_that_the_protocol_quotes(protocol: str, average: str, value: float) -> None:
    made = lopsided(protocol)
    line = next(one for one in tables.short(Results.read(made)).splitlines() if one.startswith("| Step SR"))
    assert [cell.strip() for cell in line.split("|")][2:-1:2] == ["66.7", "50.0", average]
    part = {
        name: made[name] for name in ("n_tasks", "n_steps", "element_accuracy", "operation_f1", "step_success_rate")
    }
    each = tables.short(Results.read(made | {"by_split": {"one": part}}))
    assert f"{100 * value:.1f} {average} (" in next(one for one in each.splitlines() if one.startswith("| one"))
    card = pytest.importorskip("seeact_offline.training.card")
    assert f"{100 * value:.1f} {average} (" in card._headline(made, "step_success_rate")


@pytest.mark.parametrize("protocol", ["seeact", "inspect-evals"])
def test_the_spread_over_orders_is_of_the_quoted_average(protocol: str) -> None:
    truths = [Truth(t, str(i), op="CLICK", value="", positives=frozenset({"1"})) for i, t in enumerate("aaab")]
    orders = [
        [Prediction(*t.key, "1" if i in right else "2", "CLICK", "") for i, t in enumerate(truths)]
        for right in ((0,), (3,))
    ]
    made = assemble(
        ScoringInput(SETTINGS | {"merge": None}, orders[0], truths, complete=True, orders=orders),
        PROTOCOLS[protocol],
    ).results.entries
    values = made["shuffle_spread"]["step_success_rate"]["values"]
    assert values == pytest.approx([1 / 6, 1 / 2] if protocol == "seeact" else [1 / 4, 1 / 4])
    assert f"| Step SR          | {'macro' if protocol == 'seeact' else 'micro'} " in report_from(made, [])


def test_replies_that_were_read_are_not_among_those_that_could_not_be() -> None:
    failures = ("no_act", "scrolled", "point_outside")
    truths = [Truth(name, "s", op="CLICK", value="", positives=frozenset({"1"})) for name in failures]
    said = [
        Prediction(*t.key, None, "", "", groups=(Reply(0, (), ("",), None, "", "", t.key[0]),), failure=t.key[0])
        for t in truths
    ]
    report = report_of(said, truths)
    assert section(report, "Replies that could not be read") == [["no_act", "1"]]
    rest = "Replies that were read and lack an act, a place on the picture or a value"
    assert section(report, rest) == [["point_outside", "1"], ["scrolled", "1"]]
    assert [row[0] for row in section(report, "Where steps are lost")[1:-1]] == [
        "unreadable_reply", "did_not_act", "place_outside",
    ]  # fmt: skip

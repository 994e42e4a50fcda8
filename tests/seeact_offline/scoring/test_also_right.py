"""Other right answers, which count in figures of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import seeact_offline as so
from seeact_offline.cli import main
from seeact_offline.records import Box, InputError, OtherAnswer, Prediction, Truth
from seeact_offline.results.recompute import rescore
from seeact_offline.results.verifying import verify
from seeact_offline.runs.folder import read_target, target_line
from seeact_offline.runs.run import Run
from seeact_offline.scoring.also_right import read_also_right, second_figure
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.protocols import find_protocol
from tests.pages import synthetic_rows, write_jsonl
from tests.seeact_offline.conftest import read_lines

SEEACT = find_protocol("seeact", grounded=True)


def said(number: int, element: str | None, op: str = "CLICK", value: str = "", **more: Any) -> Prediction:
    return Prediction(f"t{number}", "s", element, op, value, **more)


def truth(number: int, *others: OtherAnswer, op: str = "CLICK", value: str = "") -> Truth:
    return Truth(f"t{number}", "s", op=op, value=value, positives=frozenset({"1"}), target="1", also_right=others)


@pytest.mark.parametrize(
    ("answer", "others", "earned"),
    [
        # element, Operation F1, success
        (said(0, "2"), (), (0, 1, 0)),
        (said(0, "2"), (OtherAnswer(("2", "3")),), (1, 1, 1)),
        (said(0, "4"), (OtherAnswer(("2", "3")),), (0, 1, 0)),
        (said(0, "1", "TYPE", "NYC"), (OtherAnswer(op="TYPE", value="NYC"),), (1, 1, 1)),
        # the other operation belongs to its own element
        (said(0, "1", "TYPE", "NYC"), (OtherAnswer(("2",), "TYPE", "NYC"),), (1, 0, 0)),
        (said(0, "2", "TYPE", "NYC"), (OtherAnswer(("2",)), OtherAnswer(("2",), "TYPE", "NYC")), (1, 1, 1)),
        # what is right as annotated stays so
        (said(0, "1"), (OtherAnswer(("2",), "TYPE", "NYC"),), (1, 1, 1)),
        (said(0, "2", ran=False, failure="timeout"), (OtherAnswer(("2",)),), (0, 0, 0)),
    ],
)
def test_the_best_of_the_right_answers_counts(
    answer: Prediction, others: tuple[OtherAnswer, ...], earned: tuple[int, int, int]
) -> None:
    # another step, so that one has another answer in each case
    answers = LabelledPredictions([answer, said(1, "1")], [truth(0, *others), truth(1, OtherAnswer(("9",)))])
    found = second_figure(answers, SEEACT)
    figures = (found.element_accuracy, found.operation_f1, found.step_success_rate)
    assert tuple(2 * figure.macro - 1 for figure in figures) == earned
    assert found.n_steps == 1 + bool(others)
    before = answers.credits(SEEACT).success[0]
    assert found.n_gained == earned[2] - before


def test_a_place_is_right_in_the_box_of_another_element() -> None:
    others = OtherAnswer(("2",), boxes=(Box(100, 100, 20, 20),))
    right = replace(truth(0, others), boxes=(Box(0, 0, 10, 10),))
    protocol = find_protocol("uground", grounded=True)
    answers = LabelledPredictions([said(0, None, point=(110.0, 105.0))], [right])
    assert second_figure(answers, protocol).element_accuracy.macro == 1.0


def test_steps_without_other_answers_have_no_second_figure() -> None:
    assert second_figure(LabelledPredictions([said(0, "2")], [truth(0)]), SEEACT) is None


# --- the file ---


def test_a_file_is_read_with_its_answers(tmp_path: Path) -> None:
    line = {
        "annotation_id": "t",
        "action_uid": "s",
        "also_right": [{"element_ids": ["2"]}, {"op": "TYPE", "value": "x"}],
        "note": "n",
    }
    (tmp_path / "also.jsonl").write_text(json.dumps(line) + "\n")
    (found,) = read_also_right(tmp_path / "also.jsonl").values()
    assert [*found.also_right] == [OtherAnswer(("2",)), OtherAnswer(op="TYPE", value="x")]
    assert json.loads(found.line) == line


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({}, "element_ids, op or both"),
        ({"element_ids": ["2"], "op": "HOVER"}, "op to be one of CLICK"),
        ({"element_ids": ["2"], "value": "x"}, "the op of a value"),
        ({"element_ids": "2"}, "element_ids"),
        ({"ids": ["2"]}, "ids"),
    ],
)
def test_a_wrong_line_is_refused_by_its_number(tmp_path: Path, entry: dict[str, Any], wanted: str) -> None:
    row = {"annotation_id": "t", "action_uid": "s", "also_right": [entry]}
    (tmp_path / "also.jsonl").write_text("\n" + json.dumps(row))
    with pytest.raises(InputError, match=rf"^also_right: expected .*{wanted}.*line 2"):
        read_also_right(tmp_path / "also.jsonl")


def test_a_target_reads_back_with_its_other_answers_and_has_no_entry_without_them() -> None:
    one = truth(0, OtherAnswer(("2",), "TYPE", "x", (Box(1, 2, 3, 4),)))
    assert read_target(target_line(one)) == one
    assert "also_right" not in target_line(truth(0))


# --- runs ---


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return list(synthetic_rows(3, 2, 8, seed=3))


def evaluated(folder: Path, rows: list[dict[str, Any]]) -> Run:
    data = write_jsonl(rows, folder / "data.jsonl")
    return so.evaluate(dataset=data, split="cross_task", ranker="bm25", model="builtin/lexical", out=folder / "run")


def test_a_file_adds_a_second_figure_and_leaves_the_first_as_it_is(
    tmp_path: Path, rows: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    run = evaluated(tmp_path, rows)
    lost = next(row for row in read_lines(run.path / "steps.jsonl") if row["outcome"] == "wrong_element")
    wrong = next(p for p in run.predictions() if p.key.action_uid == lost["action_uid"])
    other = {"element_ids": [wrong.element_id], "op": wrong.op, "value": wrong.value}
    lines = [
        {**wrong.key._asdict(), "also_right": [other]},
        {"annotation_id": "no", "action_uid": "step", "also_right": [other]},
    ]
    file = tmp_path / "also.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = rescore(run.path, also_right=file, out=tmp_path / "again")
    second = again.results["also_right"]
    assert (second["n_steps"], second["n_gained"], second["of_file"]) == (1, 1, 1)
    first = again.results["step_success_rate"]
    assert second["step_success_rate"]["micro"] == pytest.approx(first["micro"] + 1 / 6)
    same = again.results.keys() - {"also_right"}
    assert {name: again.results[name] for name in same} == {name: run.results[name] for name in same}
    assert "also_right" not in run.results
    assert "## With other right answers" in again.report()
    assert main(["score", str(run.path), "--also-right", str(file)]) == 0
    assert "1 step has other right answers, by which 1 more succeed." in capsys.readouterr().out
    assert verify(run.path, also_right=file).differences == ()
    left = verify(run.path)
    assert (left.differences, any("--also-right" in text for text in left.not_proved)) == ((), True)
    assert main(["score", str(run.path), "--protocol", "seeact,mindact", "--also-right", str(file)]) == 2


def test_a_column_of_the_data_adds_a_second_figure(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    plain = evaluated(tmp_path / "plain", rows)
    answers = {p.key.action_uid: p for p in plain.predictions()}
    others = [
        {**row, "also_right": json.dumps([{"element_ids": [said.element_id], "op": said.op, "value": said.value}])}
        if (said := answers[row["action_uid"]]).element_id is not None
        else {**row, "also_right": None}
        for row in rows
    ]
    run = evaluated(tmp_path / "column", others)
    second = run.results["also_right"]
    named = sum(one.element_id is not None for one in answers.values())
    assert (second["n_steps"], second["of_file"], second["step_success_rate"]["micro"]) == (
        named,
        0,
        pytest.approx(named / 6),
    )
    for metric in ("element_accuracy", "operation_f1", "step_success_rate"):
        assert run.results[metric] == plain.results[metric]
    # kept with the run
    assert rescore(run.path, out=tmp_path / "again").results["also_right"] == second
    assert verify(run.path).differences == ()


@pytest.mark.parametrize("column", ["{", "[1]", '{"element_ids": ["1"]}', '[{"op": "FLY"}]', 7])
def test_a_column_that_cannot_be_read_is_a_fault_of_its_row(
    tmp_path: Path, rows: list[dict[str, Any]], column: object
) -> None:
    lines = [{**row, "screenshot": None, "also_right": column} for row in rows[:1]]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (step,) = so.load_steps(str(tmp_path / "data.jsonl"), "cross_task")
    assert any(fault.name == "bad_operation" and "also_right" in fault.detail for fault in step.faults)


def test_boxes_of_the_columns_elements_come_from_the_page(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    other = json.loads(rows[0]["neg_candidates"][0])["backend_node_id"]
    line = {**rows[0], "screenshot": None, "also_right": [{"element_ids": [other]}]}
    (tmp_path / "data.jsonl").write_text(json.dumps(line) + "\n")
    (step,) = so.load_steps(str(tmp_path / "data.jsonl"), "cross_task")
    box = next(c.box for c in step.candidates if c.backend_node_id == other)
    assert step.truth.also_right == (OtherAnswer((other,), boxes=(box,)),)

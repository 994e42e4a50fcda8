"""UGround's samples, plans and answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seeact_offline.importers.importer import ImportedAnswers
from seeact_offline.records import Box, InputError
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.protocols import find_protocol
from seeact_offline.scoring.step_scores import summarise
from tests.conftest import SHARED_DATA
from tests.reference import uground as reference
from tests.seeact_offline.importers.files import problems, read_as, write_lines

SAMPLE = {
    "annotation_id": "t", "action_uid": "a", "website": "w", "domain": "d", "operation": "TYPE", "value": "10203",
    "bbox": [[10, 900, 20, 30]], "previous_actions": ["x", "y"], "total_steps": 3, "split": "task",
    "target_blocks": {"1": [[10, 100, 20, 30]]},
}  # fmt: skip
PLAN = {
    "annotation_id": "t", "action_uid": "a", "ans_block": 1, "gpt_action": "TYPE", "gpt_value": "10203",
    "description": "a field",
}  # fmt: skip
ANSWER = {"id": "t_a", "bbox": [[10, 100, 20, 30]], "scale": 1.05, "output": "(21, 115.5)"}


def imported(tmp_path: Path, samples: list[Any], plans: list[Any], answers: list[Any] | None = None) -> ImportedAnswers:
    paths = {
        "samples": write_lines(tmp_path / "samples.jsonl", samples),
        "plan": write_lines(tmp_path / "plan.jsonl", plans),
    }
    if answers is not None:
        paths["answers"] = write_lines(tmp_path / "answers.jsonl", answers)
    return read_as("uground", **paths)


def figures(found: ImportedAnswers, **rules: Any) -> Any:
    """Under `uground`, with these of its rules changed."""
    truths = found.truths or ()
    predictions = [found.answers[str(truth.key)](truth) for truth in truths]
    protocol = replace(find_protocol("uground", grounded=found.is_grounded), **rules)
    return summarise(LabelledPredictions(predictions, truths), protocol, top_k=0)[1]


def only(
    tmp_path: Path, *, sample: dict[str, Any] | None = None, plan: dict[str, Any] | None = None, **answer: Any
) -> Any:
    """The prediction and truth of the one step, with these fields changed."""
    found = imported(tmp_path, [SAMPLE | (sample or {})], [PLAN | (plan or {})], [ANSWER | answer])
    (truth,) = found.truths or ()
    return found.answers["t_a"](truth), truth


# --- the published figure ---


@pytest.fixture(scope="module")
def published() -> Path:
    folder = SHARED_DATA / "uground"
    if not folder.is_dir():
        pytest.skip("UGround's plans are not here: ../shared/data/uground, beside the checkout, does not exist")
    return folder


def test_gpt_4o_plans_reach_the_published_figure(published: Path) -> None:
    found = read_as(
        "uground", samples=published / "cross_task_blocks.jsonl", plan=published / "gpt4o_cross_task_plan.jsonl"
    )
    summary = figures(found)
    assert f"{100 * summary.operation_f1.macro:.2f}" == "70.82"
    unpadded = figures(found, length=find_protocol("seeact").length)
    assert f"{100 * unpadded.operation_f1.macro:.2f}" == "70.91"
    assert (summary.n_tasks, summary.n_steps) == (177, 1338)
    assert summary.element_accuracy is None


@pytest.mark.slow
def test_the_published_figure_is_the_references(published: Path) -> None:
    samples, plans = (
        [json.loads(line) for line in (published / name).read_text().splitlines()]
        for name in ("cross_task_blocks.jsonl", "gpt4o_cross_task_plan.jsonl")
    )
    assert f"{100 * float(reference.macro(samples, plans, [])['f1']):.2f}" == "70.82"
    assert f"{100 * float(reference.macro(samples, plans, [], pad=False)['f1']):.2f}" == "70.91"


def test_actions_without_a_row_are_failures_of_their_task(published: Path, tmp_path: Path) -> None:
    """Answered in the middle of the first target box, so that GPT-4o's plans decide: one task more had no second failure."""
    samples = [json.loads(line) for line in (published / "cross_task_blocks.jsonl").read_text().splitlines()]
    middles = [
        {
            "id": f"{one['annotation_id']}_{one['action_uid']}",
            "bbox": boxes,
            "scale": 1,
            "output": [x + w / 2, y + h / 2],
        }
        for one in samples
        for boxes in one["target_blocks"].values()
        for x, y, w, h in boxes[:1]
    ]
    answers = write_lines(tmp_path / "answers.jsonl", middles)
    found = read_as(
        "uground",
        samples=published / "cross_task_blocks.jsonl",
        plan=published / "gpt4o_cross_task_plan.jsonl",
        answers=answers,
    )
    padded, unpadded = (
        figures(found, **rules).task_success_rate for rules in ({}, {"length": find_protocol("seeact").length})
    )
    assert {name: f"{100 * share:.2f}" for name, share in padded.items()} == {"offline0": "9.04", "offline1": "35.03"}
    assert {name: f"{100 * share:.2f}" for name, share in unpadded.items()} == {"offline0": "9.04", "offline1": "35.59"}


# --- any files ---


_words = st.sampled_from(["CLICK", "TYPE", "SCROLL DOWN", "None", "none", "a", "B", "()", "2 x", ""])
_point = st.tuples(st.integers(0, 50), st.integers(80, 140))


@st.composite
def _files(draw: st.DrawFn) -> tuple[list[Any], list[Any], list[Any]]:
    samples, plans, answers = [], [], []
    for task in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 3))
        for i in range(n):
            key = {"annotation_id": f"t{task}", "action_uid": f"a{i}"}
            blocks = draw(
                st.sampled_from([{}, {"0": [[10, 100, 20, 30]]}, {"0": [[0, 0, 5, 5]], "1": [[10, 90, 9, 9]]}])
            )
            samples.append({**key, "operation": draw(st.sampled_from(["CLICK", "TYPE"])), "value": draw(_words),
                            "bbox": [[1, 2, 3, 4]] if blocks else [], "total_steps": n + draw(st.integers(0, 2)),
                            "target_blocks": blocks})  # fmt: skip
            for _ in range(draw(st.integers(0, 2))):
                plans.append({**key, "ans_block": draw(st.integers(0, 2)), "gpt_action": draw(_words), "gpt_value": draw(_words),
                              "description": draw(st.sampled_from(["it", "", "None"]))})  # fmt: skip
            for _ in range(draw(st.integers(0, 2))):
                x, y = draw(_point)
                answers.append({"id": f"t{task}_a{i}", "bbox": [[10, 100, 20, 30]], "scale": draw(st.sampled_from([1, 1.05])),
                                "output": f"({x}, {y})"})  # fmt: skip
    return samples, plans, answers


@pytest.mark.slow
@settings(max_examples=40)
@given(files=_files())
def test_any_files_give_what_the_reference_gives(files: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    samples, plans, answers = files
    plans, answers = plans or [PLAN], answers or [ANSWER]
    found = imported(tmp_path_factory.mktemp("files"), samples, plans, answers)
    summary, wanted = figures(found), reference.macro(samples, plans, answers)
    ours = (summary.element_accuracy, summary.operation_f1, summary.step_success_rate)
    assert [one.macro for one in ours] == pytest.approx([float(wanted[m]) for m in reference.METRICS])
    whole = [float(reference.offline(samples, plans, answers, allowed)) for allowed in (0, 1)]
    assert list(summary.task_success_rate.values()) == pytest.approx(whole)


_any_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["t", "a", "t_a", "(1, 2)"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["0", "1", "x"]), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=50)
@given(changed=st.dictionaries(st.sampled_from(sorted({*SAMPLE, *PLAN, *ANSWER})), _any_value, max_size=6))
def test_no_value_of_a_field_ends_an_import(changed: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    files = ([whole, whole | changed] for whole in (SAMPLE, PLAN, ANSWER))
    summary = figures(imported(tmp_path_factory.mktemp("files"), *files))
    assert 0 <= summary.operation_f1.macro <= 1


# --- steps ---


def test_operation_and_value_stay_as_given(tmp_path: Path) -> None:
    prediction, truth = only(tmp_path, plan={"gpt_action": "SCROLL DOWN", "gpt_value": "None"})
    assert (prediction.op, prediction.value) == ("SCROLL DOWN", "None")
    assert (truth.operation.op, truth.operation.value) == ("TYPE", "10203")


def test_a_sample_is_a_truth(tmp_path: Path) -> None:
    _, truth = only(tmp_path)
    assert truth.key == ("t", "a")
    assert (truth.website, truth.domain, truth.n_actions, truth.n_before) == ("w", "d", 3, 2)
    assert len(truth.positives) == 1


def test_the_point_is_in_the_blocks_pixels(tmp_path: Path) -> None:
    prediction, truth = only(tmp_path)
    assert prediction.point == pytest.approx((20, 110))
    assert truth.boxes == (Box(10, 100, 20, 30),)


@pytest.mark.parametrize(
    ("output", "point"),
    [
        *(
            (one, (20, 110))
            for one in ("(21, 115.5)", "[21, 115.5]", "21, 115.5", "21,115.5", [21, 115.5], ["21", "115.5"])
        ),
        *((one, (0, 0)) for one in ("", "()", "[]", [])),
    ],
)
def test_outputs_are_texts_or_lists_and_an_empty_one_is_the_corner(
    tmp_path: Path, output: object, point: tuple[int, int]
) -> None:
    prediction, _ = only(tmp_path, output=output)
    assert prediction.point == pytest.approx(point)
    assert dict(prediction.notes).get("empty_output", 0) == (point == (0, 0))


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ({"output": None}, "no_output"),
        ({"output": "here"}, "unreadable_output"),
        ({"output": "(1, 2, 3)"}, "unreadable_output"),
        ({"output": {"x": 1}}, "unreadable_output"),
        ({"output": True}, "unreadable_output"),
        ({"output": "(nan, 3)"}, "bad_point"),
        ({"output": [float("inf"), 3]}, "bad_point"),
        ({"scale": 0}, "bad_scale"),
        ({"scale": None}, "bad_scale"),
        ({"scale": float("nan")}, "bad_scale"),
    ],
)
def test_an_unreadable_answer_is_a_wrong_element(tmp_path: Path, answer: dict[str, Any], failure: str) -> None:
    prediction, _ = only(tmp_path, **answer)
    assert (prediction.point, prediction.failure) == (None, failure)
    assert prediction.ran


def test_an_unreadable_answer_keeps_its_operation(tmp_path: Path) -> None:
    summary = figures(imported(tmp_path, [SAMPLE | {"total_steps": 1}], [PLAN], [ANSWER | {"output": "?"}]))
    assert (summary.element_accuracy.macro, summary.operation_f1.macro) == (0, 1)


@pytest.mark.parametrize(
    ("plan", "note"),
    [
        ({"ans_block": 0}, "block_without_target"),
        ({"ans_block": -1}, "block_without_target"),
        ({"description": ""}, "no_description"),
        ({"description": "None"}, "no_description"),
        ({"description": None}, "no_description"),
    ],
)
def test_what_was_not_asked_is_wrong_whatever_is_answered(tmp_path: Path, plan: dict[str, Any], note: str) -> None:
    prediction, _ = only(tmp_path, plan=plan)
    assert prediction.point is None
    assert dict(prediction.notes)[note] == 1
    assert prediction.reachable is False


def test_fields_that_a_plan_lacks_are_no_reason(tmp_path: Path) -> None:
    bare = {name: PLAN[name] for name in ("annotation_id", "action_uid", "gpt_action", "gpt_value")}
    found = imported(tmp_path, [SAMPLE], [bare], [ANSWER])
    (truth,) = found.truths or ()
    assert found.answers["t_a"](truth).point == pytest.approx((20, 110))


def test_nulls_and_numbers_are_texts(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        [SAMPLE | {"value": 10203, "website": None}],
        [PLAN | {"gpt_value": 10203, "ans_block": "1"}, PLAN | {"action_uid": 5, "gpt_action": None}],
    )
    (truth,) = found.truths or ()
    prediction = found.answers["t_a"](truth)
    assert (prediction.value, truth.operation.value, truth.website) == ("10203", "10203", "")
    assert problems(found) == ["unknown_step"]


def test_ids_may_be_numbers(tmp_path: Path) -> None:
    ids = {"annotation_id": 1, "action_uid": 2}
    found = imported(tmp_path, [SAMPLE | ids], [PLAN | ids])
    assert (list(found.answers), problems(found)) == (["1_2"], [])


def test_a_step_without_a_plan_has_nothing(tmp_path: Path) -> None:
    samples = [SAMPLE | {"total_steps": 2}, SAMPLE | {"action_uid": "b", "total_steps": 2}]
    found = imported(tmp_path, samples, [PLAN], [ANSWER])
    summary = figures(found)
    assert (summary.element_accuracy.macro, summary.operation_f1.macro) == (0.5, 0.5)
    assert summary.failures == {"no_plan": 1}


def test_the_first_of_two_plans_counts(tmp_path: Path) -> None:
    found = imported(tmp_path, [SAMPLE], [PLAN, PLAN | {"gpt_action": "CLICK"}])
    (truth,) = found.truths or ()
    assert found.answers["t_a"](truth).op == "TYPE"
    assert problems(found) == ["duplicate_step"]


def test_plans_and_answers_of_no_sample_are_named(tmp_path: Path) -> None:
    found = imported(tmp_path, [SAMPLE], [PLAN, PLAN | {"action_uid": "z"}], [ANSWER, ANSWER | {"id": "q"}])
    assert problems(found) == ["unknown_step", "unknown_step"]
    assert "t_z in line 2 of plan.jsonl" in [problem.where for problem in found.problems]


def test_a_torn_last_line_is_told_from_a_bad_one(tmp_path: Path) -> None:
    found = imported(tmp_path, [SAMPLE], [PLAN, "{", "[]", {"gpt_action": "CLICK"}])
    assert problems(found) == ["bad_row"] * 3
    path = tmp_path / "plan.jsonl"
    path.write_text(f"{json.dumps(PLAN)}\n{json.dumps(PLAN)[:40]}")
    assert problems(read_as("uground", samples=tmp_path / "samples.jsonl", plan=path)) == ["torn_line"]


def test_answers_without_ids_are_the_plans_own(tmp_path: Path) -> None:
    """The first row decides; the boxes of a plan's row are the page's, so the block's are taken."""
    row = PLAN | {"output": "(21, 115.5)", "scale": 1.05, "bbox": SAMPLE["bbox"]}
    found = imported(tmp_path, [SAMPLE], [row], [row])
    (truth,) = found.truths or ()
    assert truth.boxes == (Box(10, 100, 20, 30),)
    assert found.answers["t_a"](truth).point == pytest.approx((20, 110))


def test_a_task_is_as_long_as_its_last_row_says(tmp_path: Path) -> None:
    samples = [SAMPLE | {"total_steps": 9}, SAMPLE | {"action_uid": "b", "total_steps": "4"}]
    assert [truth.n_actions for truth in imported(tmp_path, samples, [PLAN]).truths or ()] == [4, 4]


def test_an_unknown_length_pads_nothing(tmp_path: Path) -> None:
    found = imported(tmp_path, [SAMPLE | {"total_steps": None}], [PLAN])
    assert problems(found) == ["unknown_length"]
    assert figures(found).operation_f1.macro == 1


def test_a_box_that_is_no_box_is_left_out(tmp_path: Path) -> None:
    _, truth = only(tmp_path, bbox=[[1, 2], [10, 100, 20, 30], [float("nan"), 1, 2, 3]])
    assert truth.boxes == (Box(10, 100, 20, 30),)


# --- wrong files ---


def test_samples_in_the_place_of_plans_are_refused(tmp_path: Path) -> None:
    samples = write_lines(tmp_path / "samples.jsonl", [SAMPLE])
    with pytest.raises(InputError, match=r"plan: expected plans of UGround.*looks like a file of UGround"):
        read_as("uground", samples=samples, plan=samples)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    samples = write_lines(tmp_path / "samples.jsonl", [SAMPLE])
    with pytest.raises(InputError, match=r"none\.jsonl does not exist$"):
        read_as("uground", samples=samples, plan=tmp_path / "none.jsonl")

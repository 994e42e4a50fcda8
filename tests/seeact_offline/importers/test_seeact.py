"""SeeAct's predictions with their queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError
from tests.seeact_offline.importers.files import problems, read_as, said, write_lines

STEP = {"annotation_id": "t", "action_uid": "a", "confirmed_task": "x"}


def query(ids: str, **more: Any) -> dict[str, Any]:
    return STEP | {"choices": [[node, f"<a> {node}"] for node in ids]} | more


def answer(group: int, letter: str, action: str = "CLICK", value: str = "None") -> dict[str, Any]:
    final = f"ELEMENT: {letter}\n\nACTION: {action}\n\nVALUE: {value}"
    return {"multichoice_id": group, "gpt_output": ["I look.", final], "prompt": ["", "", ""]}


def step(folder: Path, queries: list[Any], answers: list[Any]) -> Path:
    write_lines(folder / "queries.jsonl", queries)
    write_lines(folder / "prediction-text_choice.jsonl", answers)
    return folder


def test_replies_are_read_and_merged(tmp_path: Path) -> None:
    """With three choices, D is none of them."""
    step(tmp_path, [query("123"), query("456")], [answer(0, "D"), answer(1, "B", "TYPE", "new york")])
    prediction = said(read_as("seeact", run=tmp_path), "t_a")
    assert (prediction.element_id, prediction.op, prediction.value) == ("5", "TYPE", "new york")
    assert [group.offered for group in prediction.groups] == [("1", "2", "3"), ("4", "5", "6")]


def test_of_several_picks_the_first_groups_counts(tmp_path: Path) -> None:
    step(tmp_path, [query("123"), query("456")], [answer(1, "A"), answer(0, "B")])
    found = read_as("seeact", run=tmp_path)
    assert said(found, "t_a").element_id == "2"
    assert found.settings["merge"] == "first"


def test_the_published_step_succeeds(shared_step: Path, tmp_path: Path) -> None:
    replies = [json.loads(line) for line in (shared_step / "replies_choice.jsonl").read_text().splitlines()]
    groups = json.loads((shared_step / "expected_groups.json").read_text())
    ids = [[choice[0] for choice in group["choices"]] for group in groups]
    key = {name: replies[0][name] for name in ("annotation_id", "action_uid")}
    step(
        tmp_path,
        [key | {"choices": [[node, ""] for node in group]} for group in ids],
        [{"multichoice_id": reply["group"], "gpt_output": reply["replies"]} for reply in replies],
    )
    prediction = said(read_as("seeact", run=tmp_path), "_".join(key.values()))
    assert (prediction.element_id, prediction.op) == ("8635", "CLICK")
    assert [group.element_id for group in prediction.groups] == ["8635", None, None]


def test_a_folder_of_steps_is_read(tmp_path: Path) -> None:
    for uid in "ab":
        step(tmp_path / f"t_{uid}", [query("12", action_uid=uid)], [answer(0, "A")])
    assert list(read_as("seeact", run=tmp_path).answers) == ["t_a", "t_b"]


def test_a_file_of_predictions_is_read_with_its_queries(tmp_path: Path) -> None:
    step(tmp_path, [query("12")], [answer(0, "A")])
    assert said(read_as("seeact", run=tmp_path / "prediction-text_choice.jsonl"), "t_a").element_id == "1"


def test_a_step_without_ids_goes_by_its_folder(tmp_path: Path) -> None:
    step(tmp_path / "t_z", [{"choices": [["1", ""]]}], [answer(0, "A")])
    assert list(read_as("seeact", run=tmp_path).answers) == ["t_z"]


def test_a_line_may_be_a_text_of_json(tmp_path: Path) -> None:
    step(tmp_path, [json.dumps(json.dumps(query("12")))], [json.dumps(json.dumps(answer(0, "B")))])
    assert said(read_as("seeact", run=tmp_path), "t_a").element_id == "2"


def test_ranks_order_what_was_offered(tmp_path: Path) -> None:
    ranks = {"pos_candidates": [{"backend_node_id": "1", "rank": 5}],
             "neg_candidates": [json.dumps({"backend_node_id": "2", "rank": 0}), {"backend_node_id": "9", "rank": 1}]}  # fmt: skip
    step(tmp_path, [query("12", **ranks)], [answer(0, "A")])
    assert said(read_as("seeact", run=tmp_path), "t_a").ranked == ("2", "1")


def test_ranks_of_some_steps_are_ranks_of_none(tmp_path: Path) -> None:
    ranks = {"pos_candidates": [{"backend_node_id": "1", "rank": 0}, {"backend_node_id": "2", "rank": 1}]}
    step(tmp_path / "t_a", [query("12", **ranks)], [answer(0, "A")])
    step(tmp_path / "t_b", [query("12", action_uid="b")], [answer(0, "A")])
    assert said(read_as("seeact", run=tmp_path), "t_a").ranked == ()


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    step(
        tmp_path,
        [query("12"), query("34")],
        [answer(0, "A"), answer(0, "B"), answer(7, "A"), {"multichoice_id": 1, "gpt_output": []}, "{"],
    )
    found = read_as("seeact", run=tmp_path)
    assert problems(found) == ["bad_row", "bad_row", "duplicate_group", "unknown_group"]
    assert dict(said(found, "t_a").notes) == {"unanswered_group": 1}


def test_a_reply_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    step(tmp_path, [query("12")], [{"multichoice_id": 0, "gpt_output": ["?", "I cannot help with that."]}])
    assert said(read_as("seeact", run=tmp_path), "t_a").failure == "no_final_answer"


def test_groups_without_choices_name_no_element(tmp_path: Path) -> None:
    step(tmp_path, [STEP], [answer(0, "B")])
    prediction = said(read_as("seeact", run=tmp_path), "t_a")
    assert (prediction.element_id, prediction.op) == (None, "CLICK")
    assert dict(prediction.notes) == {"no_choices": 1}


def test_two_experiments_are_refused(tmp_path: Path) -> None:
    step(tmp_path, [query("12")], [answer(0, "A")])
    write_lines(tmp_path / "prediction-4api.jsonl", [answer(0, "A")])
    with pytest.raises(InputError, match="one experiment"):
        read_as("seeact", run=tmp_path)


def test_predictions_without_queries_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "prediction-x.jsonl", [answer(0, "A")])
    with pytest.raises(InputError, match=r"queries\.jsonl"):
        read_as("seeact", run=path)


def test_another_file_or_folder_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "plan.jsonl", [{"gpt_action": "CLICK"}])
    for run, error in ((path, "looks like a file of UGround"), (tmp_path, "no format known here")):
        with pytest.raises(InputError, match=error):
            read_as("seeact", run=run)

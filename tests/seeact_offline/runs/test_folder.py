"""Files of a run: what is written is read back, old lines are still read, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.files.formats import FormatError
from seeact_offline.records import Call, CallRecord, InputError, Prediction, Reply, StepKey, Truth, Usage
from seeact_offline.runs.folder import (
    FLAGGED,
    Manifest,
    RunFolder,
    prediction_line,
    read_manifest,
    read_prediction,
)

REPLY = Reply(0, ("1", "2"), ("plan", "answer"), "1", "TYPE", "x")
NEW = {"point", "notes", "reachable"}
PREDICTIONS = st.builds(
    Prediction,
    annotation_id=st.text(max_size=3),
    action_uid=st.text(max_size=3),
    groups=st.sampled_from([(), (REPLY,)]),
    element_id=st.none() | st.text(max_size=3),
    op=st.sampled_from(["", "CLICK"]),
    value=st.text(max_size=5),
    ranked=st.sampled_from([(), ("1", "2")]),
    usage=st.just(Usage(1, 2, 3)),
    failure=st.none() | st.just("timeout"),
    ran=st.booleans(),
    point=st.none() | st.tuples(st.floats(0, 9e3), st.floats(0, 9e3)),
    notes=st.dictionaries(st.text(max_size=4), st.integers(1, 9), max_size=3),
    reachable=st.none() | st.booleans(),
    failed_in=st.sampled_from([None, "row", "call", "reply"]),
)


@given(PREDICTIONS)
def test_a_prediction_is_read_back_as_it_was(prediction: Prediction) -> None:
    assert read_prediction(prediction_line(prediction)) == prediction


def test_fields_that_a_grounding_does_not_give_are_not_written() -> None:
    plain = Prediction("a", "b", "1", "TYPE", "x", groups=(REPLY,))
    assert NEW.isdisjoint(json.loads(prediction_line(plain)))


def test_each_new_field_is_written_alone() -> None:
    key = StepKey("a", "b")
    for more in ({"point": (1.0, 2.0)}, {"notes": {"x": 1}}, {"reachable": False}):
        assert NEW & json.loads(prediction_line(Prediction(*key, None, "", "", **more))).keys() == more.keys()


def test_a_stage_is_written_where_the_name_does_not_say_it() -> None:
    key = StepKey("a", "b")
    for name, stage, written in (("bad_box", "row", None), ("timeout", "call", None), ("torn", "row", "row")):
        line = prediction_line(Prediction(*key, None, "", "", failure=name, ran=False, failed_in=stage))
        assert json.loads(line).get("stage") == written
        assert read_prediction(line).stage == stage


def test_a_line_from_before_these_fields_is_read() -> None:
    old = (
        '{"annotation_id": "a", "action_uid": "b", "element_id": "1", "op": "CLICK", "value": "", "failure": null, "detail": "",'
        ' "ran": true, "usage": {"calls": 2, "prompt_tokens": 0, "completion_tokens": 0, "image_tokens": 0, "cost_usd": 0.0},'
        ' "ranked": ["1"], "groups": []}'
    )
    prediction = read_prediction(old)
    assert (prediction.point, prediction.notes, prediction.reachable) == (None, {}, None)
    assert prediction_line(prediction) == old


def test_texts_that_no_file_can_hold_as_they_are_come_back_all_the_same() -> None:
    """A model's reply may hold half of a surrogate pair, which stricter readers of JSON refuse."""
    reply = Reply(0, (), ("\ud83d",), None, "", "\udc00")
    prediction = Prediction("a", "b", None, "", "\ud83d", groups=(reply,))
    assert read_prediction(prediction_line(prediction)) == prediction


@pytest.mark.parametrize("cost", [0, 2, 0.5, None])
def test_a_line_is_written_again_as_it_was(cost: float | None) -> None:
    line = prediction_line(Prediction("a", "b", None, "", "", usage=Usage(cost_usd=cost)))
    assert prediction_line(read_prediction(line)) == line


ROW = json.loads(prediction_line(Prediction("a", "b", None, "", "", groups=(REPLY,))))


def lacking(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def with_group(**changed: Any) -> dict[str, Any]:
    return ROW | {"groups": [ROW["groups"][0] | changed]}


DAMAGED = {
    "point of one number": (ROW | {"point": [1]}, r"expected point to be a list of length 2, got \[1\]"),
    "point of letters": (ROW | {"point": "ab"}, "expected point to be a list or null, got 'ab'"),
    "list of notes": (ROW | {"notes": [1]}, r"expected notes to be an object, got \[1\]"),
    "note of letters": (ROW | {"notes": {"x": "y"}}, r"expected notes\[...\] to be a whole number, got a text"),
    "number as op": (ROW | {"op": 3}, "expected op to be a text, got 3"),
    "nothing for ran": (ROW | {"ran": None}, "expected ran to be true or false, got None"),
    "no usage": (lacking(ROW, "usage"), "expected the fields .* usage, .*got 'annotation_id, .*"),
    "other usage": (ROW | {"usage": {"calls": "2"}}, "expected usage.calls to be a whole number, got '2'"),
    "usage of a later version": (ROW | {"usage": {"x": 2}}, "expected no field x in usage, got 'x'"),
    "group of a later version": (with_group(x=1), r"expected no field x in groups\[0\], got 'group, .*"),
    "reply without end": (with_group(replies="text"), r"expected groups\[0\].replies to be a list, got 'text'"),
    "text as groups": (ROW | {"groups": ""}, "expected groups to be a list, got ''"),
    "no object": ([1], r"expected an object, got \[1\]"),
    "no JSON": ("{torn", "expected a JSON object, got '{torn'"),
}


@pytest.mark.parametrize(("row", "problem"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_line_is_an_error_that_loading_names(row: Any, problem: str, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    text = row if isinstance(row, str) else json.dumps(row)
    run.predictions.write_text(f"{json.dumps(ROW)}\n{text}\n{json.dumps(ROW)}\n")
    with pytest.raises(
        InputError, match=f"^out: {problem} in line 2 of .*predictions.jsonl, which is no prediction of ours$"
    ):
        run.load()


def test_a_field_of_a_later_version_is_left_out() -> None:
    later = {"later": 1, "calls": 2, "captions": 3}
    assert read_prediction(json.dumps(ROW | later)) == read_prediction(json.dumps(ROW))


@pytest.mark.parametrize("name", ROW)
def test_a_line_without_a_field_that_every_line_has_is_refused(name: str) -> None:
    """Though a prediction can be made without most of them."""
    with pytest.raises(FormatError, match=rf"^expected the fields (.*, )?{name}\b.*, got "):
        read_prediction(json.dumps(lacking(ROW, name)))


@pytest.mark.parametrize("name", ["group", "turn", "attempts", "seconds"])
def test_a_call_without_its_place_or_attempts_is_refused(name: str, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    row = {"annotation_id": "a", "action_uid": "b", "group": 0, "turn": 1, "attempts": 1, "seconds": 0.5}
    run.timings.write_text(f"{json.dumps(row)}\n{json.dumps(lacking(row, name))}\n")
    with pytest.raises(
        InputError, match=rf"^out: expected the fields .*{name}.* in line 2 of .*calls\.jsonl, which says"
    ):
        run.load(with_calls=True)


NO_MANIFEST = "in .*manifest.json, which is no manifest of ours"
NO_SETTINGS = "in .*manifest.json, which does not say how its run was set up"
SETTINGS = {
    "split": "test_task",
    "dataset": "sample",
    "dataset_fingerprint": "f",
    "limit": None,
    "protocol": "seeact",
    "merge": None,
    "top_k": None,
    "seed": 0,
}


def a_manifest(folder: Path, content: Any) -> Path:
    (folder / "manifest.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_a_manifest_is_given_back_with_all_that_it_holds(tmp_path: Path) -> None:
    content = {"identity": {"seed": 0}, "settings": SETTINGS | {"later": 1}, "later": {"x": "\ud83d"}}
    assert RunFolder(a_manifest(tmp_path, content)).content() == content


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{torn", f"expected a JSON object, got '{{torn' {NO_MANIFEST}"),
        ([], rf"expected an object, got \[\] {NO_MANIFEST}"),
        ({"settings": SETTINGS}, f"expected the fields identity, got 'settings' {NO_MANIFEST}"),
        ({"identity": None}, f"expected identity to be an object, got None {NO_MANIFEST}"),
        ({"identity": {}}, f"expected the fields split, .*, got none {NO_SETTINGS}"),
        (
            {"identity": {}, "settings": lacking(SETTINGS, "seed")},
            f"expected the fields .*, seed, got 'split, .* {NO_SETTINGS}",
        ),
        (
            {"identity": {}, "settings": SETTINGS | {"limit": "3"}},
            f"expected limit to be a whole number or null, got '3' {NO_SETTINGS}",
        ),
    ],
)
def test_a_manifest_that_is_none_is_refused_in_one_sentence(tmp_path: Path, content: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f"^out: {problem}$"):
        read_manifest(a_manifest(tmp_path, content))


def test_settings_take_the_place_of_those_that_a_manifest_lacks(tmp_path: Path) -> None:
    run = RunFolder(a_manifest(tmp_path, {"schema": 1, "identity": {"seed": 0}}))
    run.claim(Manifest(identity={"seed": 0}, settings=SETTINGS))
    assert run.content() == {"schema": 1, "identity": {"seed": 0}, "settings": SETTINGS}


def test_a_folder_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    content = {"schema": 1, "identity": {"dataset_fingerprint": "f"}, "settings": {}}
    folder.manifest.write_text(json.dumps(content))
    with pytest.raises(
        InputError, match=r"an earlier development version in .*, without data_digest; name another folder"
    ):
        folder.check({"dataset_fingerprint": "f", "data_digest": "d"})


def test_flagged_steps_are_read_back(tmp_path: Path) -> None:
    keys = frozenset({StepKey("a", "b"), StepKey("a", "\ud83d")})
    RunFolder(tmp_path).remember_flagged(keys)
    assert RunFolder(tmp_path).flagged() == keys


def test_a_flagged_line_that_names_no_step_is_refused(tmp_path: Path) -> None:
    (tmp_path / FLAGGED).write_text('{"annotation_id": "a", "action_uid": 3}\n')
    with pytest.raises(
        InputError,
        match=r"^out: expected action_uid to be a text, got 3 in line 1 of .*flagged.jsonl, which names no step$",
    ):
        RunFolder(tmp_path).flagged()


# --- what calls took ---


def test_what_calls_took_has_a_file_of_its_own(tmp_path: Path) -> None:
    """Their seconds differ from run to run, and predictions must not."""
    calls = tuple(Call(0, turn, CallRecord(2, 0.5, f"r{turn}")) for turn in (1, 2))
    prediction = Prediction("a", "b", None, "", "", calls=calls)
    with RunFolder(tmp_path) as out:
        out.append(prediction, Truth(*prediction.key, op="CLICK", value="", positives=frozenset()))
    lines = [json.loads(line) for line in out.timings.read_text().splitlines()]
    assert [(line["turn"], line["attempts"], line["request_id"]) for line in lines] == [(1, 2, "r1"), (2, 2, "r2")]
    assert "seconds" not in out.predictions.read_text()


def test_a_run_that_calls_nobody_has_no_such_file(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as out:
        key = StepKey("a", "b")
        out.append(Prediction(*key, None, "", ""), Truth(*key, op="CLICK", value="", positives=frozenset()))
    assert not out.timings.exists()

"""`replay/FILE`: recorded replies, word for word."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from seeact_offline.models import ModelOptions, open_model
from seeact_offline.models.replay import LAYOUTS
from seeact_offline.records import CallError, Completion, ModelSpecError, Operation, Request, Step, Usage

ROW = {"annotation_id": "a", "action_uid": "u"}
GROUP = {**ROW, "group": 0, "replies": ["first", "second"]}


def request(group: int = 0, turn: int = 1, offered: tuple[str, ...] = (), uid: str = "u") -> Request:
    step = Step("a", uid, "Buy tea", (), "shop", "Shopping", "<html/>", Operation("CLICK"), (), None)
    return Request((), step.key, group, turn, offered)


def recorded(path: Path, *rows: object, end: str = "\n") -> Path:
    path.write_text("\n".join(map(json.dumps, rows)) + end, encoding="utf-8")
    return path


def ask(path: Path, asked: Request) -> Completion:
    return asyncio.run(open_model(f"replay/{path}", ModelOptions()).complete(asked))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recorded.jsonl"


def test_each_turn_gets_its_reply(path: Path) -> None:
    recorded(path, GROUP, {**GROUP, "group": 1, "replies": ["third", "fourth"]})
    asked = [request(group, turn) for group in (0, 1) for turn in (1, 2)]
    assert [ask(path, one).text for one in asked] == ["first", "second", "third", "fourth"]


def test_a_predictions_file_is_read(path: Path) -> None:
    groups = [{"group": 3, "offered": ["x", "y"], "replies": ["one", "two"], "element_id": "x"}]
    recorded(path, {**ROW, "groups": groups, "op": "CLICK", "failure": None})
    assert ask(path, request(3, 2, ("x", "y"))).text == "two"


def test_a_replayed_call_is_counted_and_costs_nothing(path: Path) -> None:
    assert ask(recorded(path, GROUP), request()).usage == Usage(calls=1, cost_usd=0.0)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (request(uid="v"), "step a_v, group 0, turn 1"),
        (request(group=7), "step a_u, group 7, turn 1"),
        (request(turn=3), "step a_u, group 0, turn 3"),
    ],
)
def test_what_was_not_recorded_is_a_failure_that_names_it(path: Path, asked: Request, named: str) -> None:
    with pytest.raises(CallError, match=named) as caught:
        ask(recorded(path, GROUP), asked)
    assert caught.value.name == "no_recorded_reply"


def test_replies_to_other_choices_are_refused(path: Path) -> None:
    recorded(path, {**GROUP, "offered": ["x", "y", "z"]})
    with pytest.raises(CallError, match=r"3 choices, now 2 .* choice 1: y then, q now") as caught:
        ask(path, request(offered=("x", "q")))
    assert caught.value.name == "recording_mismatch"


def test_replies_to_fewer_choices_are_refused(path: Path) -> None:
    recorded(path, {**GROUP, "offered": ["x"]})
    with pytest.raises(CallError, match="choice 1: nothing then, y now"):
        ask(path, request(offered=("x", "y")))


def test_a_recording_that_names_no_choices_is_trusted(path: Path) -> None:
    assert ask(recorded(path, GROUP), request(offered=("x", "y"))).text == "first"


def test_the_last_of_equal_rows_wins(path: Path) -> None:
    recorded(path, GROUP, {**GROUP, "replies": ["newer"]})
    assert ask(path, request()).text == "newer"


def test_a_later_prediction_replaces_all_groups_of_the_step(path: Path) -> None:
    recorded(path, {**ROW, "groups": [GROUP, {**GROUP, "group": 1}]}, {**ROW, "groups": [GROUP]})
    with pytest.raises(CallError, match="no_recorded_reply"):
        ask(path, request(group=1))


def test_a_torn_last_line_is_left_out(path: Path) -> None:
    path.write_bytes(json.dumps(GROUP).encode() + b'\n{"annotation_id": "a", "text": "\xc3')
    assert ask(path, request()).text == "first"


def test_a_last_line_without_its_end_counts(path: Path) -> None:
    assert ask(recorded(path, GROUP, end=""), request()).text == "first"


def test_a_reply_may_hold_half_of_a_surrogate_pair(path: Path) -> None:
    assert ask(recorded(path, {**GROUP, "replies": ["\ud83d"]}), request()).text == "\ud83d"


def test_empty_lines_are_left_out(path: Path) -> None:
    path.write_text("\n" + json.dumps(GROUP) + "\n\n")
    assert ask(path, request()).text == "first"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{torn", "expected a JSON object"),
        ("3", "expected an object, got 3"),
        ('{"annotation_id": "a"}', "expected the fields .*action_uid.*, got 'annotation_id'"),
        (json.dumps(ROW), "expected the fields .*group, .*, got 'annotation_id, action_uid'"),
        (json.dumps({**ROW, "group": 0}), "expected the fields .*replies.*, got 'annotation_id, action_uid, group'"),
        (json.dumps({**ROW, "group": "0", "replies": []}), "expected group to be a whole number, got '0'"),
        (json.dumps({**GROUP, "replies": "text"}), "expected replies to be a list, got 'text'"),
        (json.dumps({**GROUP, "offered": [1]}), r"expected offered\[0\] to be a text, got 1"),
        (json.dumps({**GROUP, "annotation_id": 1}), "expected annotation_id to be a text, got 1"),
        (json.dumps({**ROW, "groups": {}}), "expected groups to be a list, got {}"),
        (json.dumps({**ROW, "groups": [1]}), r"expected groups\[0\] to be an object, got 1"),
        (json.dumps({**ROW, "groups": [{"group": 0}]}), r"expected the field replies in groups\[0\], got 'group'"),
    ],
)
def test_a_line_of_neither_layout_is_named(path: Path, line: str, complaint: str) -> None:
    path.write_text(f"{json.dumps(GROUP)}\n{line}\n")
    with pytest.raises(ModelSpecError) as caught:
        open_model(f"replay/{path}", ModelOptions())
    expected, got = caught.value.expected, caught.value.got
    assert expected.endswith(f" ({LAYOUTS})")
    assert got.endswith(f" in line 2 of {path}")
    assert re.match(complaint, f"expected {expected.removesuffix(f' ({LAYOUTS})')}, got {got}")


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(ModelSpecError, match=r"^model: .*readable file, got .*recorded\.jsonl: No such file"):
        open_model(f"replay/{path}", ModelOptions())


def test_a_folder_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(ModelSpecError, match="readable file"):
        open_model(f"replay/{tmp_path}", ModelOptions())


def test_an_empty_file_is_no_recording(path: Path) -> None:
    path.touch()
    with pytest.raises(ModelSpecError, match="holds none"):
        open_model(f"replay/{path}", ModelOptions())


def test_the_published_replies_are_read(shared_step: Path) -> None:
    path = shared_step / "replies_choice.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    model = open_model(f"replay/{path}", ModelOptions())
    for row in rows:
        step = Step(row["annotation_id"], row["action_uid"], "", (), "", "", "", Operation("CLICK"), (), None)
        for turn in (1, 2):
            completion = asyncio.run(model.complete(Request((), step.key, row["group"], turn, ("x",))))
            assert completion.text == row["replies"][turn - 1]

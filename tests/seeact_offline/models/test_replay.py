"""`replay/FILE`: recorded replies, word for word."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
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


def lines(*rows: object, end: str = "\n") -> bytes:
    return ("\n".join(map(json.dumps, rows)) + end).encode()


def ask(path: Path, asked: Request) -> Completion:
    return asyncio.run(open_model(f"replay/{path}", ModelOptions()).complete(asked))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recorded.jsonl"


NEXT = {**GROUP, "group": 1, "replies": ["third", "fourth"]}
STEP_LINE = {**ROW, "groups": [{**GROUP, "offered": ["x", "y"], "element_id": "x"}], "op": "CLICK", "failure": None}
READ = {
    "the reply of each turn": (lines(GROUP, NEXT), request(turn=2), "second"),
    "the reply of each group": (lines(GROUP, NEXT), request(1, 2), "fourth"),
    "a predictions file": (lines(STEP_LINE), request(offered=("x", "y")), "first"),
    "a recording that names no choices": (lines(GROUP), request(offered=("x", "y")), "first"),
    "the last of equal rows": (lines(GROUP, {**GROUP, "replies": ["newer"]}), request(), "newer"),
    "a torn last line": (lines(GROUP) + b'{"annotation_id": "a", "text": "\xc3', request(), "first"),
    "a last line without its end": (lines(GROUP, end=""), request(), "first"),
    "half of a surrogate pair": (lines({**GROUP, "replies": ["\ud83d"]}), request(), "\ud83d"),
    "empty lines": (b"\n" + lines(GROUP) + b"\n", request(), "first"),
}


@pytest.mark.parametrize(("content", "asked", "text"), READ.values(), ids=READ.keys())
def test_a_recorded_reply_is_given_back(path: Path, content: bytes, asked: Request, text: str) -> None:
    path.write_bytes(content)
    assert ask(path, asked).text == text


def test_a_replayed_call_is_counted_and_costs_nothing(path: Path) -> None:
    path.write_bytes(lines(GROUP))
    assert ask(path, request()).usage == Usage(calls=1, cost_usd=0.0)


NOT_RECORDED = {
    "another step": (lines(GROUP), request(uid="v"), "no_recorded_reply: .*step a_v, group 0, turn 1"),
    "another group": (lines(GROUP), request(group=7), "no_recorded_reply: .*step a_u, group 7, turn 1"),
    "another turn": (lines(GROUP), request(turn=3), "no_recorded_reply: .*step a_u, group 0, turn 3"),
    "a group that a later prediction lacks": (
        lines({**ROW, "groups": [GROUP, NEXT]}, {**ROW, "groups": [GROUP]}),
        request(group=1),
        "no_recorded_reply",
    ),
    "other choices": (
        lines({**GROUP, "offered": ["x", "y", "z"]}),
        request(offered=("x", "q")),
        "recording_mismatch: .*3 choices, now 2 .* choice 1: y then, q now",
    ),
    "fewer choices": (lines({**GROUP, "offered": ["x"]}), request(offered=("x", "y")), "choice 1: nothing then, y now"),
}


@pytest.mark.parametrize(("content", "asked", "failure"), NOT_RECORDED.values(), ids=NOT_RECORDED.keys())
def test_what_was_not_recorded_is_a_failure_that_names_it(
    path: Path, content: bytes, asked: Request, failure: str
) -> None:
    path.write_bytes(content)
    with pytest.raises(CallError, match=failure):
        ask(path, asked)


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


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: None, r"cannot read .*recorded\.jsonl: No such file"),
        (Path.mkdir, "cannot read"),
        (Path.touch, r"recorded\.jsonl holds no recorded replies"),
    ],
    ids=["missing", "a folder", "empty"],
)
def test_what_is_no_recording_is_named(path: Path, make: Callable[[Path], None], complaint: str) -> None:
    make(path)
    with pytest.raises(ModelSpecError, match=complaint):
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

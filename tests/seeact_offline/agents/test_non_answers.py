"""Replies that decide on nothing are no acts, and replies that decide are read, however they are wrapped or hedged.

`data/` holds both kinds, by reader, written without a look at the readers; `expect` is what a person reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.agents import find_agent
from seeact_offline.agents.acts import Unreadable
from seeact_offline.agents.screens import Shown
from seeact_offline.grounding.pixel import read_operation
from seeact_offline.pages.pointing import centre, shown_point
from seeact_offline.records import ReplyError, letter
from seeact_offline.replies import parse_grounding_reply
from seeact_offline.replies.points import read_point
from tests.conftest import SHARED_DATA

DATA = Path(__file__).parent / "data"
PAGE = Shown.whole((1280, 2000))
LETTERS = [letter(index) for index in range(16)]
NUMBERS = [str(number) for number in range(1, 18)]
FAMILIES = ("qwen3-vl", "qwen2.5-vl", "uitars-1.5", "osatlas", "opencua", "uground-grounder")
"""Agents that read each reply of a GUI model: a grounder last."""


def rows(path: Path, reader: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in found if row["reader"] == reader and not row.get("debatable")]


def picks(reply: str, grounding: str, labels: list[str]) -> str | None:
    read = parse_grounding_reply(reply, grounding, len(labels), labels=labels)
    return None if read.choice is None or read.failure else f"{labels[read.choice]} {read.op} {read.value}".strip()


def describes(reply: str) -> str | None:
    read = parse_grounding_reply(reply, "attributes", 0)
    acts = read.failure is None and not read.picked_none
    return f"{read.element_type.upper()} {read.element_text} {read.op} {read.value}".strip() if acts else None


def points(reply: str) -> str | None:
    pointed, (op, value, failure) = read_point(reply), read_operation(reply)
    if not pointed.numbers or ("ACTION" in reply and failure):
        return None
    try:
        shown_point(pointed.numbers, "absolute", PAGE.page)
    except ReplyError:
        return None
    return f"{tuple(centre(pointed.numbers))} {op} {value}".strip()


def acts(reply: str, name: str) -> str | None:
    agent, _ = find_agent(name)
    try:
        read = agent.read(reply)
    except Unreadable:
        return None
    return None if agent.answer(read, PAGE).failure else str(read)


READERS: Mapping[str, Mapping[str, Callable[[str], str | None]]] = {
    "choice": {"choice": lambda reply: picks(reply, "choice", LETTERS)},
    "annotation": {
        "numbers": lambda reply: picks(reply, "annotation", NUMBERS),
        "letters": lambda reply: picks(reply, "annotation", LETTERS),
    },
    "attributes": {"attributes": describes},
    "pixel": {"pixel": points},
    "gui": {name: lambda reply, name=name: acts(reply, name) for name in FAMILIES},  # type: ignore[misc]
}


@pytest.mark.parametrize("path", [DATA / "non_answers.jsonl", SHARED_DATA / "replies" / "non_answers.jsonl"])
@pytest.mark.parametrize("reader", READERS)
def test_what_decides_on_nothing_is_no_act(reader: str, path: Path) -> None:
    if not path.is_file():
        pytest.skip(f"no replies here: {path} does not exist")
    asked = rows(path, reader)
    for name, read in READERS[reader].items():
        taken = {row["reply"]: act for row in asked if (act := read(row["reply"])) is not None}
        # a person knows more than words say: a place `somewhere below`, a question that is typed
        assert len(taken) <= 0.05 * len(asked), (name, taken)


@pytest.mark.parametrize("reader", READERS)
def test_what_is_decided_is_read(reader: str) -> None:
    differing = []
    for row in rows(DATA / "answers.jsonl", reader):
        reply, expect = row["reply"], row["expect"]
        said = f"{expect.get('op')} {expect.get('value') or ''}".strip()
        match reader:
            case "choice":
                pair = picks(reply, reader, LETTERS), f"{expect['choice']} {said}"
            case "annotation":
                labels = LETTERS if expect["mark"].isalpha() else NUMBERS
                pair = picks(reply, reader, labels), f"{expect['mark']} {said}"
            case "attributes":
                pair = describes(reply), f"{expect['type'].upper()} {expect['text']} {said}"
            case "pixel":
                pair = points(reply), f"{tuple(map(float, expect['point']))} {said}"
            case _:
                pair = str(acted(reply, expect["agent"])), str(expect["acts"])
        if pair[0] != pair[1]:
            differing.append((reply, *pair))
    assert differing == []


def acted(reply: str, name: str) -> list[list[Any]]:
    """Kind, place and text of each act; a double click is a click, and only what is typed or chosen has a text."""
    kinds = {"double": "click", "right": "click"}
    return [
        [
            kinds.get(act.kind, act.kind),
            act.place if isinstance(act.place, str) else None if act.point is None else list(act.point),
            act.text if act.kind in ("click", "type", "select") else None,
        ]
        for act in find_agent(name)[0].read(reply)
    ]

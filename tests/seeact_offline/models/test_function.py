"""A function of Python is known by its code: a changed one is another model, and one that keeps count is the same."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seeact_offline.models.provider import code_of

HEAD = """
import itertools, json, threading
from collections import Counter

"""
FUNCTION = """
def model(messages):
    return "A"
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str | None]:
    """The digest of `model` in a module of this text."""
    numbers = itertools.count()

    def load(text: str) -> str | None:
        path = tmp_path / f"module{next(numbers)}.py"
        path.write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location("written", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return code_of(module.model)

    return load


OTHERS = {
    "another text": FUNCTION.replace('"A"', '"B"'),
    "another default": FUNCTION.replace("messages", "messages, text='A'"),
    "an async one": FUNCTION.replace("def", "async def"),
    "a constant": 'REPLY = "A"\ndef model(messages):\n    return REPLY',
    "another constant": 'REPLY = "B"\ndef model(messages):\n    return REPLY',
    "a table": 'REPLIES = {1: "A"}\ndef model(messages):\n    return REPLIES[1]',
    "another table": 'REPLIES = {1: "B"}\ndef model(messages):\n    return REPLIES[1]',
    "another function of its module": 'def reply():\n    return "A"\ndef model(messages):\n    return reply()',
    "that one changed": 'def reply():\n    return "B"\ndef model(messages):\n    return reply()',
    "a class of its module": 'class Reply:\n    text = "A"\ndef model(messages):\n    return Reply.text',
    "that one changed too": 'class Reply:\n    text = "B"\ndef model(messages):\n    return Reply.text',
    "a lambda": 'model = lambda messages: "A"',
    "another lambda": 'model = lambda messages: "B"',
    "the first of two": 'model, other = lambda messages: "C", lambda messages: "D"',
    "the second of two": 'other, model = lambda messages: "C", lambda messages: "D"',
}


def test_another_code_is_another_function(code: Callable[[str], str | None]) -> None:
    found = [code(text) for text in (FUNCTION, *OTHERS.values())]
    assert None not in found
    assert len(set(found)) == len(found)


SAME = {
    "as it was": FUNCTION,
    "with a comment": FUNCTION.replace("return", "# always\n    return"),
    "further down": "import os\n\n\n" + FUNCTION,
    "beside another one": FUNCTION + '\n\ndef other():\n    return "B"\n',
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME.keys())
def test_what_a_function_does_not_do_is_no_part_of_its_code(code: Callable[[str], str | None], text: str) -> None:
    assert code(text) == code(FUNCTION) is not None


def closing(text: str, default: str = "a") -> Callable[..., str]:
    def model(messages: Any, prefix: str = default) -> str:
        return prefix + text

    return model


def calling(inner: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(inner)
    def model(messages: Any) -> str:
        return inner(messages)

    return model


PAIRS = {
    "closures": (closing("A"), closing("B")),
    "defaults": (closing("A", "a"), closing("A", "b")),
    "wrapped functions": (calling(closing("A")), calling(closing("B"))),
    "partial functions": (functools.partial(closing("A"), prefix="a"), functools.partial(closing("A"), prefix="b")),
    "tables": (closing({"a": ("A", None)}["a"][0]), closing({"a": ("B", None)}["a"][0])),
}


@pytest.mark.parametrize(("one", "two"), PAIRS.values(), ids=PAIRS.keys())
def test_what_a_function_holds_is_part_of_its_code(one: Callable[..., str], two: Callable[..., str]) -> None:
    assert code_of(one) is not None
    assert code_of(one) == code_of(one)
    assert code_of(one) != code_of(two)


# --- functions that keep count ---


def counters() -> dict[str, Callable[[], str]]:
    """Of one name each, all of which change something when they are called."""
    n, calls, by_name, seen, ids, lock = 0, list[int](), Counter[str](), set[int](), itertools.count(), threading.Lock()
    table = {"n": 0}

    def nonlocally() -> str:
        nonlocal n
        n += 1
        return "A"

    def locked() -> str:
        with lock:
            table["n"] += 1
        return "A"

    def inside() -> str:
        nonlocally()
        seen.add(len(seen))
        return "A"

    def by_default(made: list[str] = []) -> str:  # noqa: B006
        made.append("A")
        return made[0]

    def on_itself() -> str:
        by_name.update(on_itself=1)
        return f"{next(ids)}"

    return {
        "nonlocal": nonlocally,
        "list": lambda: calls.append(1) or "A",  # type: ignore[func-returns-value]
        "lock": locked,
        "by another function": inside,
        "default": by_default,
        "counter": on_itself,
        "global": globally,
    }


CALLS: list[int] = []


def globally() -> str:
    CALLS.append(1)
    return "A"


@pytest.mark.parametrize("function", counters().values(), ids=counters().keys())
def test_a_function_that_keeps_count_stays_the_same(function: Callable[[], str]) -> None:
    before = code_of(function)
    function()
    assert code_of(function) == before is not None


# --- what cannot be known ---


class Answering:
    def __call__(self, messages: Any) -> str:
        return "A"

    def answer(self, messages: Any) -> str:
        return "A"


def holding(held: Any) -> Callable[..., str]:
    def model(messages: Any) -> str:
        held.n = held.n + 1
        return str(held.text)

    return model


def from_nowhere() -> Any:
    names: dict[str, Any] = {}
    exec(FUNCTION, names)
    return names["model"]


UNKNOWN = {
    "an object": Answering(),
    "a method": Answering().answer,
    "a function with an object": holding(SimpleNamespace(text="A", n=0)),
    "a function without source": from_nowhere(),
    "a function of C": len,
}


@pytest.mark.parametrize("given", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_can_change_without_being_seen_to_has_no_known_code(given: Any) -> None:
    assert code_of(given) is None

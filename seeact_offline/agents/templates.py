"""Replies from templates: how an agent's language writes a click, a typing and a selection."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from seeact_offline.agents.screens import Point

Writer = Callable[[str, str, Point | str | None], str]
"""Operation, value, and place in numbers of the frame or a label -> a reply."""
_PARTS = re.compile(r"\b(?:VALUE|X|Y)\b")


def in_json(text: str) -> str:
    """The text as JSON, between quotes."""
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Template:
    """Writes a reply with one answer. In its texts `X` and `Y` stand for the numbers of a place, `VALUE` for a text.

    >>> Template("click(X, Y)", "type('VALUE')", joined="; ")("TYPE", "Rome", (5, 6))
    "click(5, 6); type('Rome')"
    """

    click: str
    typing: str = ""
    """Empty: it has no words for typing."""
    selecting: str = ""
    around: str = "{}"
    joined: str | None = "\n"
    """Text between a click and a typing that has no place of its own; None: typing is written without a click."""
    quoted: Callable[[str], str] = str
    """Writes a text as the language does."""
    digits: int | None = None
    """Digits behind the point of every number; None: as it is."""

    def __call__(self, op: str, value: str, place: Point | str | None) -> str:
        """The reply. Without a place, what needs one is left out."""
        call = {"TYPE": self.typing, "SELECT": self.selecting}.get(op) or self.click
        clicks_first = op == "TYPE" and bool(self.typing) and self.joined is not None and "X" not in call
        calls = [self.click, call] if clicks_first else [call]
        parts = {"VALUE": self.quoted(value)}
        if isinstance(place, tuple):
            parts |= dict(
                zip("XY", (str(n) if self.digits is None else f"{n:.{self.digits}f}" for n in place), strict=True)
            )
        calls = [call for call in calls if "X" in parts or "X" not in call] or ["none"]
        written = (_PARTS.sub(lambda part: parts.get(part[0], part[0]), call) for call in calls)
        return self.around.replace("{}", (self.joined or "").join(written))

    @property
    def example(self) -> str:
        """A click and a typing, each on a line, with X and Y for numbers; in one block of code where there is one."""
        calls = [self.click, *([self.typing.replace("VALUE", self.quoted(""))] if self.typing else [])]
        blocks = ["\n".join(calls)] if "\n" in self.around else calls
        return "\n".join(self.around.replace("{}", block) for block in blocks)

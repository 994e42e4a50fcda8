"""Calls and JSON in a model's text, read tolerantly: `click(x=1, y=2)`, `{"action": "left_click", "coordinate": [1,
2]}`."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

_NAME = re.compile(r"(?<![\w.])(?:(?![A-Za-z_])[\w.])*+(?P<name>[A-Za-z_][\w.]*+)\s*+\(")
"""A name and the bracket that opens a call. It is looked for once in a run of letters, not from each of them."""
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(?!=)")
_PREFIX = re.compile(r"[rRfFuU](?=['\"])")
"""The letter before a text in Python's quotes."""
_CURLY = re.compile(r"[\u201c\u2018](?P<text>[^\u201c\u201d\u2018\u2019\n]*+)[\u201d\u2019]\s*+(?=[,)])")
_NUMBER = re.compile(r"(?<![A-Za-z_\d.])[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?+")
_PERCENT = re.compile(r"\d\s?[%\uff05]")
_ENDS_TEXT = re.compile(r"\s*(?:[)\]}]|,\s*(?:[A-Za-z_]\w*\s*=|['\"\d(\[<-])|$)")
"""Characters after the quote that ends a text, which tell it from an apostrophe inside."""
_CONSTANTS = {"true": True, "false": False, "null": None}
_LONG_NUMBER = re.compile(r"0[xXoObB][0-9a-fA-F_]{1000}")
"""A number that Python reads, as it is not decimal, and then writes for nobody: it writes 4,300 digits at most."""
_WORDS = re.compile(r"'(?:\\.?|[^'\\])*+(?:'|\Z)|\"(?:\\.?|[^\"\\])*+(?:\"|\Z)|\b(true|false|null)\b", re.DOTALL)
"""Words of JSON, and the texts in quotes in which they stay as they are."""
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(?=\s*:)")
_CLOSERS = {"{": "}", "[": "]", "(": ")"}
MOST_NUMBER = 1e9
# values are walked through by recursion, which Python ends after a few hundred levels
MOST_DEPTH = 50
MOST_VALUES = 200
"""Brackets of one reply that are looked at."""
MOST_UNCLOSED = 20
"""Those of them that nothing closes: each is looked at up to the end of the reply."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it is written."""

    name: str
    """Name without blanks; dots are kept."""
    positional: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)
    start: int = 0
    """Position in the text where it begins."""
    end: int = 0
    """Position behind its closing bracket."""
    is_tight: bool = True
    """False where blanks stand before its bracket, as in prose: `search (top right)`."""

    @property
    def verb(self) -> str:
        """The last part of the name, in lower case."""
        return self.name.rpartition(".")[2].lower()

    def text(self, *names: str, at: int = 0) -> str | None:
        """The first of these arguments that is given, or the positional one; None for neither."""
        argument = next((self.named[name] for name in names if name in self.named), None)
        return argument if argument is not None else self.positional[at] if len(self.positional) > at else None


def calls_in(text: str) -> list[Call]:
    """All calls in their order, those inside the arguments of another left out. A call that is cut short ends with the
    text."""
    calls, at = [], 0
    while (match := _NAME.search(text, at)) is not None:
        positional, named, at = _arguments(text, match.end())
        is_tight = match.end("name") + 1 == match.end()
        calls.append(Call(match["name"], tuple(positional), named, match.start("name"), at, is_tight))
    return calls


def _arguments(text: str, at: int) -> tuple[list[str], dict[str, str], int]:
    """Positional and named arguments from behind the opening bracket, and where the call ends."""
    positional: list[str] = []
    named: dict[str, str] = {}
    while at < len(text):
        keyword = _KEYWORD.match(text, at)
        begin = at
        value, at = _argument(text, keyword.end() if keyword else at)
        if keyword:
            named[keyword.group(1)] = value
        elif text[begin:at].strip():
            positional.append(value)
        if at >= len(text) or text[at] == ")":
            return positional, named, at + 1
        at += 1
    return positional, named, at


def _argument(text: str, at: int) -> tuple[str, int]:
    """One argument, without its quotes, and where the comma or bracket behind it is."""
    while at < len(text) and text[at].isspace():
        at += 1
    if (prefix := _PREFIX.match(text, at)) is not None:
        at = prefix.end()
    if at < len(text) and text[at] in "'\"":
        value, at = _quoted(text, at)
        while at < len(text) and text[at] not in ",)":
            at += 1
        return value, at
    curly = _CURLY.match(text, at)
    if curly is not None:
        return curly["text"], curly.end()
    open_brackets: list[str] = []
    start = at
    while at < len(text) and (open_brackets or text[at] not in ",)"):
        if text[at] in _CLOSERS:
            open_brackets.append(_CLOSERS[text[at]])
        elif open_brackets and text[at] == open_brackets[-1]:
            open_brackets.pop()
        at += 1
    return text[start:at].strip(), at


def _quoted(text: str, at: int) -> tuple[str, int]:
    """A text in quotes with its escapes resolved, and where it ends. A quote that is not followed by an end is part of
    it."""
    quote = text[at] * (3 if text.startswith(text[at] * 3, at) and text.find(text[at] * 3, at + 3) > 0 else 1)
    at = start = at + len(quote)
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text.startswith(quote, at) and _ENDS_TEXT.match(text, at + len(quote)):
            return unescape(text[start:at]), at + len(quote)
        at += 1
    return unescape(text[start:]), len(text)


def unquoted(text: str) -> str:
    """The text without the straight quotes around all of it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def unescape(text: str) -> str:
    """Resolves backslashes before quotes, backslashes and the letters n, t and r; others stay as they are."""
    return re.sub(r"\\([\\'\"ntr])", lambda match: _ESCAPES.get(match.group(1), match.group(1)), text)


def escape(text: str, quote: str = "'") -> str:
    """The reverse of `unescape` for a text in these quotes."""
    text = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def closed(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first match that has its last group. Such a pattern takes the rest of the line where nothing closes what it
    has opened, for then nothing closes what is opened further on: to look from each opening again would take time
    quadratic in the text."""
    return next((match for match in pattern.finditer(text) if match[pattern.groups] is not None), None)


def number(text: str | None) -> float | None:
    """The number that the whole text is; None for another text."""
    if text is None or not _NUMBER.fullmatch(text.strip()):
        return None
    value = float(text)
    return value if isfinite(value) and abs(value) <= MOST_NUMBER else None


def place_in(text: str) -> tuple[float, float] | tuple[float, float, float, float] | None:
    """The two or four numbers in a text; None for another count, and for shares in per cent, which no frame has."""
    return (
        None if _PERCENT.search(text, 0, 200) else place_of([float(digits) for digits in _NUMBER.findall(text[:200])])
    )


def place_of(numbers: Any) -> tuple[float, float] | tuple[float, float, float, float] | None:
    """A point or a box of two or four numbers, which may be texts, nested in one list, or named x and y; None for
    anything else."""
    if isinstance(numbers, str):
        return place_in(numbers)
    if isinstance(numbers, dict):
        numbers = [numbers.get("x"), numbers.get("y")]
    if not isinstance(numbers, list | tuple):
        return None
    if len(numbers) == 1:
        return place_of(numbers[0])
    values = [number(str(entry)) if isinstance(entry, int | float | str) else None for entry in numbers]
    finite = [value for value in values if value is not None]
    if len(finite) != len(numbers):
        return None
    if len(finite) == 2:
        return finite[0], finite[1]
    return (finite[0], finite[1], finite[2], finite[3]) if len(finite) == 4 else None


def json_in(text: str) -> Iterator[Any]:
    """The objects and lists that a text holds, outermost ones only. JSON5's quotes and commas are read, and missing
    brackets added."""
    return (value for _, _, value in json_spans(text))


def json_spans(text: str) -> Iterator[tuple[int, int, Any]]:
    """The values of `json_in`, each behind the positions where it begins and ends."""
    at = n_unclosed = 0
    for _ in range(MOST_VALUES):
        places = [place for place in (text.find(bracket, at) for bracket in "{[") if place >= 0]
        if not places:
            return
        start = min(places)
        end, written, is_closed = _value_at(text, start)
        n_unclosed += not is_closed
        if n_unclosed > MOST_UNCLOSED:
            return
        # models break lines inside texts
        value = loads(written) or ("\n" in written and loads(written.replace("\n", " ")))
        is_value = isinstance(value, dict | list | tuple)
        if is_value:
            yield start, end, value
        at = end if is_value else start + 1


def loads(text: str) -> Any:
    """The value of JSON, or of Python's or JSON5's way of writing it; None for anything else."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    python = _WORDS.sub(lambda match: str(_CONSTANTS[match[1]]) if match[1] else match[0], text)
    for written in (text, python, _BARE_KEY.sub(r"\1'\2'", python)):
        try:
            return ast.literal_eval(parse(written))
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return None


def parse(text: str, mode: str = "eval") -> Any:
    """The syntax tree of a Python expression, without the warnings that Python has about a model's text. Raises as
    `ast.parse`, also for a number of 1,000 digits that are not decimal."""
    if _LONG_NUMBER.search(text):
        raise ValueError("a number of more digits than Python writes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text.lstrip(" \t"), mode=mode)


def _value_at(text: str, start: int) -> tuple[int, str, bool]:
    """Returns where the value that opens at `start` ends, the value with the closing brackets that its opening ones
    want, and False where nothing closes it: `{"coordinate": [1, 2}}` lacks one, and has one of another kind."""
    stack: list[str] = []
    written: list[str] = []
    at, quote = start, ""
    while at < len(text):
        character = text[at]
        if quote:
            character = text[at : at + 2] if character == "\\" else character
            quote = "" if character == quote else quote
        elif character == '"' or (character == "'" and text[at - 1] in "{[,: "):
            quote = character
        elif character in "{[":
            stack.append(_CLOSERS[character])
            if len(stack) > MOST_DEPTH:
                return start + 1, "", True
        elif character in "}]" and character in stack:
            while stack[-1] != character:
                written.append(stack.pop())
            stack.pop()
        elif character in "}]":
            character = ""
        at += len(character) or 1
        written.append(character)
        if not stack:
            return at, "".join(written), True
    return len(text), "".join([*written, quote, *reversed(stack)]), False

"""Other people's values and lines: nothing is trusted, and each unreadable one is a named problem."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from seeact_offline.files.formats import FormatError, as_number, read_json
from seeact_offline.files.named import LARGE, read_named
from seeact_offline.importers.importer import Problem, Source
from seeact_offline.records import Box


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row of a file, with the step that it names."""

    key: str
    """`ANNOTATION-ID_ACTION-UID`."""
    where: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The rows of a file in its order, and the problems of lines that were left out."""

    rows: list[SourceRow]
    problems: list[Problem]

    def first_of_each(self) -> tuple[dict[str, SourceRow], list[Problem]]:
        """Step -> its first row; the problems with a `duplicate_step` for each further one."""
        first: dict[str, SourceRow] = {}
        again = []
        for row in self.rows:
            if first.setdefault(row.key, row) is not row:
                again.append(Problem("duplicate_step", f"{row.key} again in {row.where}"))
        return first, [*self.problems, *again]


def step_of(values: Mapping[str, Any]) -> str:
    """The step that a row names by `annotation_id` and `action_uid`; empty if it names none."""
    ids = [text(values.get(name)) for name in ("annotation_id", "action_uid")]
    return "_".join(ids) if all(ids) else ""


def json_rows(source: Source, key: Callable[[Mapping[str, Any]], str] = step_of, *, unwrap: bool = False) -> SourceRows:
    """The objects of a file of JSON lines. `key`: the step that a row names; a row that names none is a `bad_row`.

    `unwrap`: a line may be a text that itself holds the object's JSON.
    """
    rows, problems = [], []
    for line in lines(source):
        where = f"line {line.number} of {source.path.name}"
        try:
            value = read_json(line.text)
            value = read_json(value) if unwrap and isinstance(value, str) else value
        except FormatError:
            problems.append(Problem("torn_line" if line.is_torn else "bad_row", where))
            continue
        named = key(value) if isinstance(value, dict) else ""
        problems += [] if line.is_utf8 else [Problem("not_utf8", where)]
        if named:
            rows.append(SourceRow(named, where, value))
        else:
            problems.append(Problem("bad_row", where))
    return SourceRows(rows, problems)


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of a file."""

    number: int
    """The line's number, from 1."""
    text: str
    """Text without the line's end; bytes that are not UTF-8 are replaced."""
    is_torn: bool
    """True if it is the last one and has no end."""
    is_utf8: bool


def lines(source: Source) -> Iterator[TextLine]:
    """The lines that hold anything; of a file that is one list of objects, each as a line. Raises InputError for a file
    that cannot be read."""
    content = read_named(source.argument, source.path, largest=LARGE)
    raw_lines = content.split(b"\n")
    if content.lstrip()[:1] == b"[":
        with suppress(FormatError):
            values = read_json(content)
            if all(isinstance(value, dict) for value in values):
                raw_lines = [json.dumps(value).encode() for value in values] + [b""]
    for number, line in enumerate(raw_lines, 1):
        if line.strip():
            words, is_utf8 = decoded(line)
            yield TextLine(number, words, number == len(raw_lines), is_utf8)


def json_or_none(text: str) -> Any:
    """The value of a JSON text; None for another text."""
    try:
        return read_json(text)
    except FormatError:
        return None


def decoded(content: bytes) -> tuple[str, bool]:
    """The text, and whether all of it is UTF-8; other bytes are replaced."""
    try:
        return content.decode(), True
    except UnicodeDecodeError:
        return content.decode(errors="replace"), False


def text(value: object) -> str:
    """Any JSON value as a text; null is the empty one."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def reply_text(value: Any) -> str:
    """The text of a reply, which may be an answer of OpenAI's, Anthropic's or Ollama's server, a message, its parts, or
    a dialogue, whose last turn of the assistant counts. Thoughts are left out; calls of tools stay JSON, as does what a
    model says itself.

    >>> reply_text({"choices": [{"message": {"role": "assistant", "content": [{"type": "text", "text": "B"}]}}]})
    'B'
    """
    with suppress(FormatError):
        value = read_json(value) if isinstance(value, str) and '"role"' in value else value
    match value:
        case {"choices": [first, *_]} | {"message": {"role": _} as first}:
            parts = [first]
        case {"output": [*parts]}:
            pass
        case {"role": "assistant", "content": content}:
            parts = [*(content if isinstance(content, list) else [content]), *(value.get("tool_calls") or [])]
        case [{"role": _}, *_] if all(isinstance(turn, dict) and "role" in turn for turn in value):
            parts = [turn for turn in value if turn["role"] == "assistant"][-1:]
        case [str() | {"type": _}, *_]:
            parts = value
        case {"type": "text" | "output_text", "text": words}:
            return text(words)
        case {"type": "thinking" | "redacted_thinking" | "reasoning"}:
            return ""
        case _:
            return text(value)
    return "\n".join(filter(None, map(reply_text, parts)))


def numbers(value: object) -> tuple[float, ...] | None:
    """The numbers of a list, or of a text such as `(1, 2)`, `[1, 2]` or `1,2`; None for anything else."""
    if isinstance(value, str):
        bare = value.strip()
        if bare[:1] + bare[-1:] in ("()", "[]"):
            bare = bare[1:-1]
        value = bare.split(",") if bare.strip() else []
    if not isinstance(value, list | tuple):
        return None
    parsed = [as_number(part) for part in value]
    return None if None in parsed else tuple(number for number in parsed if number is not None)


def is_finite(values: tuple[float, ...]) -> bool:
    return all(math.isfinite(value) for value in values)


def box(value: object) -> Box | None:
    """x, y, width, height; None for anything else."""
    sides = numbers(value)
    return Box(*sides) if sides is not None and len(sides) == 4 and is_finite(sides) else None

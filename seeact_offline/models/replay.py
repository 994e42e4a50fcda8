"""Replies recorded earlier, given back word for word: `replay/FILE`.

Each line of FILE is a JSON object of one of two layouts; texts are one a turn:

- a step, as in our `predictions.jsonl`: `{annotation_id, action_uid, groups: [{group, replies, offered}, ...]}`
- a group: `{annotation_id, action_uid, group, replies, offered?}`

`offered` are the ids of the elements in the order of their letters. A recording made with other choices is refused: its
letters would mean other elements.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from seeact_offline.records import CallError, Completion, ModelSpecError, Request, StepKey, Usage


@dataclass(frozen=True, slots=True)
class Recording:
    """One group's recorded conversation."""

    replies: tuple[str, ...]
    """One a turn."""
    offered: tuple[str, ...] | None
    # None where the recording does not say


@dataclass(frozen=True, slots=True)
class _Line:
    key: StepKey
    groups: dict[int, Recording]
    whole: bool
    # True: all groups of the step; False: one of them


class ReplayModel:
    """Answers from a recording, by step, group and turn; where a file says something twice, the last counts."""

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises ModelSpecError when there is none, or naming the first line that is not understood."""
        self._path = path
        self._steps: dict[StepKey, dict[int, Recording]] = {}
        for line in _read(path):
            if line.whole:
                self._steps[line.key] = line.groups
            else:
                self._steps.setdefault(line.key, {}).update(line.groups)
        if not self._steps:
            raise ModelSpecError(f"--model replay/FILE must name a file of recorded replies; {path} holds none")

    async def complete(self, request: Request) -> Completion:
        """Raises CallError `no_recorded_reply` or `recording_mismatch`."""
        recording = self._steps.get(request.key, {}).get(request.group)
        if recording is None or not 1 <= request.turn <= len(recording.replies):
            where = f"step {request.key}, group {request.group}, turn {request.turn}"
            raise CallError("no_recorded_reply", f"{self._path} holds no reply for {where}")
        if recording.offered is not None and recording.offered != request.offered:
            raise CallError("recording_mismatch", _difference(recording.offered, request))
        return Completion(recording.replies[request.turn - 1], Usage(calls=1))

    async def aclose(self) -> None:
        """Nothing is held open."""


def _difference(recorded: tuple[str, ...], request: Request) -> str:
    pairs = enumerate(zip_longest(recorded, request.offered, fillvalue="nothing"))
    place, (then, now) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
    return (
        f"group {request.group} of step {request.key} was recorded with {len(recorded)} choices, now "
        f"{len(request.offered)} are offered; the first difference is choice {place}: {then} then, {now} now"
    )


def _read(path: Path) -> Iterator[_Line]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield from _parsed(line, f"{path}, line {number}")
    except OSError as error:
        raise ModelSpecError(
            f"--model replay/FILE must name a readable file; {path} is not: {error.strerror or error}"
        ) from error


def _parsed(line: bytes, where: str) -> Iterator[_Line]:
    """Nothing for an empty line, and for one without an end: a run killed while it wrote leaves a torn last line."""
    if not line.strip():
        return
    try:
        row = json.loads(line)
    except ValueError as error:
        if not line.endswith(b"\n"):
            return
        raise ModelSpecError(f"{where}: expected a JSON object, got something else: {error}") from error
    try:
        yield _line(row)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelSpecError(
            f"{where}: expected annotation_id, action_uid and either groups or group and replies; {_complaint(error)}"
        ) from error


def _complaint(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _line(row: object) -> _Line:
    """Raises KeyError, TypeError or ValueError for a row of neither layout."""
    if not isinstance(row, dict):
        raise TypeError(f"got a {type(row).__name__}")
    key = StepKey(_text(row, "annotation_id"), _text(row, "action_uid"))
    whole = "groups" in row
    groups = row["groups"] if whole else [row]
    if not isinstance(groups, list):
        raise TypeError("groups is not a list")
    return _Line(key, dict(_group(group) for group in groups), whole)


def _group(group: Mapping[str, object]) -> tuple[int, Recording]:
    if not isinstance(group, dict):
        raise TypeError("a group is not an object")
    number = group["group"]
    if not isinstance(number, int):
        raise TypeError(f"group is {number!r}, not a whole number")
    offered = group.get("offered")
    known = None if offered is None else _texts(offered, "offered")
    return number, Recording(_texts(group["replies"], "replies"), known)


def _text(row: Mapping[str, object], name: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is not a text")
    return value


def _texts(values: object, name: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{name} is not a list of texts")
    return tuple(values)

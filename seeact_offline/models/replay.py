"""Replies recorded earlier, given back word for word: `replay/FILE`.

Each line of FILE is a JSON object of one of two layouts; texts are one a turn:

- a step, as in our `predictions.jsonl`: `{annotation_id, action_uid, groups: [{group, replies, offered}, ...]}`
- a group: `{annotation_id, action_uid, group, replies, offered?}`

`offered` are the ids of the elements in the order of their letters. A recording made with other choices is refused: its
letters would mean other elements.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import open_regular
from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.records import CallError, Completion, Model, ModelSpecError, Request, StepKey, Usage

LAYOUTS = "a line holds annotation_id, action_uid and either groups or group and replies"


class Recording(msgspec.Struct, frozen=True):
    """One group's recorded conversation."""

    group: int
    replies: tuple[str, ...]
    """One a turn."""
    offered: tuple[str, ...] | None = None
    """None where the recording does not say."""
    failure: str | None = None
    """The fault of the last reply, or how the model declined; None: none, or the recording does not say."""


class _StepLine(msgspec.Struct):
    annotation_id: str
    action_uid: str
    groups: tuple[Recording, ...]


class _GroupLine(Recording, frozen=True, kw_only=True):
    annotation_id: str
    action_uid: str


class ReplayModel(Model):
    """Answers from a recording, by step, group and turn."""

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises ModelSpecError for a missing file, and names the first line that is not understood."""
        self._path = path
        self._steps = read_recordings(path)
        if not self._steps:
            sentence = f"{path} holds no recorded replies; name another file for `model` replay/FILE"
            raise ModelSpecError("model", sentence=sentence)

    async def complete(self, request: Request) -> Completion:
        """Raises CallError `no_recorded_reply` or `recording_mismatch`."""
        recording = self._steps.get(request.key, {}).get(request.group)
        if recording is None or not 1 <= request.turn <= len(recording.replies):
            where = f"step {request.key}, group {request.group}, turn {request.turn}"
            raise CallError("no_recorded_reply", f"{self._path} holds no reply for {where}")
        if recording.offered is not None and recording.offered != request.offered:
            then, now = recording.offered, request.offered
            pairs = enumerate(zip_longest(then, now, fillvalue="nothing"))
            place, (was, is_now) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
            detail = (
                f"group {request.group} of step {request.key} was recorded with {len(then)} choices, now {len(now)} are offered;"
                f" the first difference is choice {place}: {was} then, {is_now} now"
            )
            raise CallError("recording_mismatch", detail)
        return Completion(recording.replies[request.turn - 1], Usage(calls=1))


def read_recordings(path: Path) -> dict[StepKey, dict[int, Recording]]:
    """Reads recordings by step and group; where a file says something twice, the last counts. Raises ModelSpecError."""
    steps: dict[StepKey, dict[int, Recording]] = {}
    try:
        with open_regular(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                row: object = ...
                try:
                    row = read_json(line)
                    if isinstance(row, dict) and "groups" in row:
                        step = typed(row, _StepLine)
                        steps[StepKey(step.annotation_id, step.action_uid)] = {part.group: part for part in step.groups}
                    else:
                        group = typed(row, _GroupLine)
                        steps.setdefault(StepKey(group.annotation_id, group.action_uid), {})[group.group] = group
                except FormatError as error:
                    # the last line of a run that was killed while it wrote; one that lacks nothing but its end counts
                    if row is not ... or line.endswith(b"\n"):
                        got = f"{error.got} in line {number} of {path}"
                        raise ModelSpecError("model", f"{error.expected} ({LAYOUTS})", got) from None
    except OSError as error:
        raise ModelSpecError("model", sentence=f"cannot read {path}: {error.strerror or error}") from error
    return steps


def _identity(name: str, options: ModelOptions) -> dict[str, str]:
    """A recording is known by its content."""
    digest = ""
    with suppress(OSError), open_regular(Path(name)) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"model": "replay", "recording_digest": digest}


PROVIDER = Provider(
    usage=("FILE",), open=lambda name, options: ReplayModel(Path(name)), identity=_identity, is_free=True, is_file=True
)

"""Trajectories as files: a folder of `trajectories.jsonl` and `pictures/`,
written and read one trajectory at a time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
from filelock import FileLock, Timeout

from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.known_files import LINES
from seeact_offline.files.named import open_regular, read_rows
from seeact_offline.files.redaction import redact
from seeact_offline.files.whole import write_whole
from seeact_offline.records import Box, Fault, InputError, RowError, Screenshot
from seeact_offline.trajectories.trajectory import Trajectory, TrajectoryStep, Verdict

PICTURES = "pictures"
SIGNATURES = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpg"), (b"RIFF", "webp"))
"""First bytes of a picture -> the ending of its file."""


class _StepLine(msgspec.Struct, frozen=True, omit_defaults=True):
    action: str = ""
    thought: str = ""
    address: str | None = None
    screenshot: str | None = None
    """Path below the folder."""
    reply: str = ""
    place: Box | None = None
    """Left, top, width and height."""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `trajectories.jsonl`: the fields of `Trajectory`."""

    id: str
    task_id: str
    task: str
    steps: tuple[_StepLine, ...] = ()
    answer: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    agent: str = ""
    website: str = ""
    constructed: str = ""
    faults: tuple[Fault, ...] = ()
    schema: Literal[1] = 1


def write_trajectories(folder: Path, trajectories: Iterable[Trajectory]) -> int:
    """Writes trajectories to a folder in order, equal pictures once; returns their number.
    A picture that cannot be read becomes a fault."""
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)

    def write(draft: Path) -> int:
        with draft.open("wb") as file:
            return sum(file.write(_line(folder, trajectory) + b"\n") > 0 for trajectory in trajectories)

    return write_whole(folder / LINES, write)


def read_trajectories(folder: Path) -> Iterator[Trajectory]:
    """Yields the trajectories of a folder in order, with people's verdicts on them. Raises InputError for a line that
    is not a trajectory, and for an id that comes twice."""
    yield from with_people(folder, _lines(folder))


def _lines(folder: Path) -> Iterator[Trajectory]:
    seen: set[str] = set()
    try:
        file = open_regular(folder / LINES)
    except OSError:
        raise InputError("trajectories", f"a folder with {LINES}", str(folder)) from None
    with file:
        for number, line in enumerate(file, 1):
            if line.strip():
                text = line.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace")
                yield _read(folder, text, f"line {number} of {folder / LINES}", seen)


def _read(folder: Path, line: str, where: str, seen: set[str]) -> Trajectory:
    """Reads a line, the last one too where no line feed ends it, and adds its id to `seen`. Raises InputError."""
    try:
        row = decoded(line, _Line)
    except FormatError as error:
        raise InputError("trajectories", error.expected, f"{error.got} in {where}") from None
    if not row.id.strip():
        raise InputError("trajectories", "an id", f"an empty one in {where}")
    if row.id in seen:
        raise InputError("trajectories", "every id once", f"{row.id!r:.60} again in {where}")
    seen.add(row.id)
    steps = []
    for step in row.steps:
        picture = None if step.screenshot is None else StoredScreenshot(None, step.screenshot, folder)
        steps.append(TrajectoryStep(step.action, step.thought, step.address, picture, step.reply, step.place))
    fields = {name: getattr(row, name) for name in row.__struct_fields__ if name not in ("steps", "schema")}
    return Trajectory(steps=tuple(steps), **fields)


def _line(folder: Path, trajectory: Trajectory) -> bytes:
    steps, faults = [], list(trajectory.faults)
    for step in trajectory.steps:
        name = None
        if step.screenshot is not None:
            try:
                name = _kept(folder, step.screenshot)
            except RowError as error:
                faults.append(Fault(error.name, error.detail))
        steps.append(_StepLine(step.action, step.thought, step.address, name, step.reply, step.place))
    fields = {name: getattr(trajectory, name) for name in _Line.__struct_fields__ if name != "schema"}
    row = _Line(**fields | {"steps": tuple(steps), "faults": tuple(faults)})
    try:
        return redact(msgspec.json.encode(row).decode()).encode()
    except UnicodeEncodeError:
        # a model's text may hold a lone surrogate, which only `json` writes
        return redact(json.dumps(msgspec.to_builtins(row))).encode()


def _kept(folder: Path, picture: Screenshot) -> str:
    """Writes a picture under its digest, unless it is there; returns its path below the folder."""
    data = picture.read()
    ending = next((ending for start, ending in SIGNATURES if data.startswith(start)), "bin")
    name = f"{PICTURES}/{hashlib.sha256(data).hexdigest()[:32]}.{ending}"
    if not (folder / name).exists():
        write_whole(folder / name, lambda draft: draft.write_bytes(data))
    return name


# --- people's verdicts: a line of JSON a verdict, which `agreement` reads as labels ---

PEOPLE = "people.jsonl"
NOBODY = "person"
"""The judge of a verdict whose giver has no name."""
WAIT_S = 10.0
"""Seconds to wait for another program that is writing a verdict."""


class PersonVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's verdict on an episode; its fields are those of a label."""

    trajectory: str
    judge: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """The person."""
    verdict: bool
    detail: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    source: Literal["person"] = "person"


class _Key(NamedTuple):
    trajectory: str
    judge: str


def keep_verdict(folder: Path, trajectory: str, judge: str, verdict: bool | None, detail: str = "") -> None:
    """Writes a person's verdict in place of an earlier one; None removes that. Once it returns, the verdict is on disk.

    Raises InputError where the file cannot be written, and then nothing has changed.
    """
    path, key = folder / PEOPLE, _Key(trajectory, judge)
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=WAIT_S):
            kept = {other: line for other, line in _read_people(path).items() if other != key}
            if verdict is not None:
                kept[key] = PersonVerdict(trajectory, judge, verdict, detail, "person")
            rows = [{**msgspec.to_builtins(line), "source": line.source} for line in kept.values()]
            # a lone surrogate, which only `json` writes, may be in an id
            data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
            write_whole(path, lambda draft: draft.write_bytes(data))
    except Timeout:
        raise InputError("verdict", sentence=f"another program is writing {path}; try again") from None
    except OSError as error:
        raise InputError("verdict", sentence=f"cannot write {path}: {os.strerror(error.errno or 0)}") from None


def with_people(folder: Path, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
    """Adds people's verdicts, which are kept in the folder, to its trajectories."""
    people: dict[str, list[Verdict]] = {}
    for verdict in _read_people(folder / PEOPLE).values():
        people.setdefault(verdict.trajectory, []).append(
            Verdict(verdict.judge, verdict.verdict, "person", verdict.detail)
        )
    for trajectory in trajectories:
        yield replace(trajectory, verdicts=(*trajectory.verdicts, *people.get(trajectory.id, ())))


def _read_people(path: Path) -> Mapping[_Key, PersonVerdict]:
    """The last verdict of each person on each episode. Raises InputError naming a line that is none."""
    rows = read_rows("verdict", path, PersonVerdict) if path.is_file() else ()
    return {_Key(verdict.trajectory, verdict.judge): verdict for verdict, _ in rows}

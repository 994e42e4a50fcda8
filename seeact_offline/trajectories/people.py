"""People's verdicts on the episodes of a folder, in a file of its own: a line of JSON a verdict, which `agreement` reads as labels."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
from filelock import FileLock, Timeout

from seeact_offline.files.named import read_rows
from seeact_offline.files.whole import write_whole
from seeact_offline.records import InputError
from seeact_offline.trajectories.trajectory import Trajectory, Verdict

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


def read_people(folder: Path) -> list[PersonVerdict]:
    """The verdicts of a folder, the last of a person on an episode. Raises InputError naming a line that is none."""
    return list(_read(folder / PEOPLE).values())


def keep_verdict(folder: Path, trajectory: str, judge: str, verdict: bool | None, detail: str = "") -> None:
    """Writes a person's verdict in place of an earlier one; None removes that. Once it returns, the verdict is on disk.

    Raises InputError where the file cannot be written, and then nothing has changed.
    """
    path, key = folder / PEOPLE, _Key(trajectory, judge)
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=WAIT_S):
            kept = {other: line for other, line in _read(path).items() if other != key}
            if verdict is not None:
                kept[key] = PersonVerdict(trajectory, judge, verdict, detail, "person")
            data = "".join(f"{_line(line)}\n" for line in kept.values()).encode()
            write_whole(path, lambda draft: draft.write_bytes(data))
    except Timeout:
        raise InputError("verdict", sentence=f"another program is writing {path}; try again") from None
    except OSError as error:
        raise InputError("verdict", sentence=f"cannot write {path}: {os.strerror(error.errno or 0)}") from None


def with_people(folder: Path, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
    """Adds people's verdicts, which are kept in the folder, to its trajectories."""
    people: dict[str, list[Verdict]] = {}
    for one in read_people(folder):
        people.setdefault(one.trajectory, []).append(Verdict(one.judge, one.verdict, "person", one.detail))
    for trajectory in trajectories:
        yield replace(trajectory, verdicts=(*trajectory.verdicts, *people.get(trajectory.id, ())))


def _read(path: Path) -> Mapping[_Key, PersonVerdict]:
    rows = read_rows("verdict", path, PersonVerdict) if path.is_file() else ()
    return {_Key(one.trajectory, one.judge): one for one, _ in rows}


def _line(one: PersonVerdict) -> str:
    # a lone surrogate, which only `json` writes, may be in an id
    return json.dumps({**msgspec.to_builtins(one), "source": one.source})

"""A folder of recorded tasks. Each finished task is a line on disk, so that a stopped recording is resumed; the data set is made of them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seeact_offline.dataset import SPLITS, canonical_split
from seeact_offline.dataset.recorded import FINAL_SCREENSHOT
from seeact_offline.dataset.writing import StepRecord, to_row, write_hub_parquet
from seeact_offline.files.whole import Journal
from seeact_offline.recorder.browser import RecordOptions
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import InputError

PARTIAL = "recording.partial.jsonl"
"""A file in the data set's folder until every task of the script is recorded."""


class RecordingFolder:
    """The tasks of one script, recorded into one folder. A context manager, open for keeping tasks inside."""

    def __init__(self, out: Path, tasks: Sequence[TaskScript], options: RecordOptions, force: bool = False) -> None:
        """`force`: records all tasks over those in the folder. Raises InputError for a folder that holds anything but a recording of
        these tasks."""
        self._out, self._tasks, self._options, self._force = out, tasks, options, force
        self._splits = {task.annotation_id: canonical_split(task.split) for task in tasks}
        if not SPLITS.keys() >= set(self._splits.values()):
            raise InputError("split", f"one of {', '.join(SPLITS)}", "all")
        self._journal = Journal(out / PARTIAL)
        self._places, self._begun = ({}, {}) if force else self._find_kept()
        """The byte at which the line of each finished task begins, and of each that stopped at a step, by its key."""

    def __enter__(self) -> RecordingFolder:
        if self._force:
            self._journal.path.unlink(missing_ok=True)
        self._journal.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.__exit__()

    def __contains__(self, task: TaskScript) -> bool:
        """Tells whether the task is recorded as the script has it, and with these options."""
        return self._key(task) in self._places

    def keep(self, task: TaskScript, steps: Sequence[StepRecord], is_whole: bool = True) -> None:
        """Writes a task to disk. `is_whole`: False for one that stopped at a step, which is recorded again the next time."""
        rows = [_with_pictures(to_row(step), lambda content: base64.b64encode(content).decode()) for step in steps]
        line = {"annotation_id": task.annotation_id, "key": self._key(task), "rows": rows}
        places, mark = (self._places, {}) if is_whole else (self._begun, {"stopped": True})
        places[self._key(task)] = self._journal.append(json.dumps(line | mark))

    def write(self) -> dict[Path, int]:
        """Writes the tasks recorded so far as a data set. File of each split -> its steps. Removes their lines once all are recorded."""
        written = {}
        recorded = [task for task in self._tasks if self._place(task) is not None]
        for split in dict.fromkeys(self._splits[task.annotation_id] for task in recorded):
            path = self._out / "data" / f"{SPLITS[split]}-00000-of-00001.parquet"
            written[path] = write_hub_parquet(self._rows(split), path)
        if all(task in self for task in self._tasks):
            self._journal.__exit__()
            self._journal.path.unlink()
        return written

    def _rows(self, split: str) -> Iterator[dict[str, Any]]:
        for task in self._tasks:
            place = self._place(task)
            if place is not None and self._splits[task.annotation_id] == split:
                line = json.loads(self._journal.at(place))
                yield from (_with_pictures(row, base64.b64decode) for row in line["rows"])

    def _place(self, task: TaskScript) -> int | None:
        """The byte at which the task's line begins; None where no step of it is recorded."""
        return self._places.get(self._key(task), self._begun.get(self._key(task)))

    def _find_kept(self) -> tuple[dict[str, int], dict[str, int]]:
        """Key of each finished task, and of each that stopped at a step -> the byte at which its line begins."""
        out = self._out
        if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not self._journal.path.is_file())):
            raise InputError("out", sentence=f"{out} holds something already; name a new folder, or use `force`")
        places: dict[str, int] = {}
        begun: dict[str, int] = {}
        known = {task.annotation_id for task in self._tasks}
        for line in self._journal.lines():
            try:
                found = json.loads(line.text)
                kept = begun if found.get("stopped") else places
                kept[str(found["key"])], name = line.offset, found["annotation_id"]
            except (ValueError, TypeError, KeyError, AttributeError):
                raise InputError(
                    "out",
                    sentence=f"line {line.number} of {self._journal.path} is damaged; name a new folder, or use `force`",
                ) from None
            if name not in known:
                raise InputError(
                    "out", sentence=f"{out} holds another script's task {name}; name a new folder, or use `force`"
                )
        return places, begun

    def _key(self, task: TaskScript) -> str:
        return hashlib.sha256(repr((task, self._options)).encode("utf-8", "backslashreplace")).hexdigest()


def _with_pictures(row: dict[str, Any], change: Any) -> dict[str, Any]:
    """The row with the bytes of its pictures changed."""
    pictures = {name: row[name] for name in ("screenshot", FINAL_SCREENSHOT) if row.get(name)}
    return row | {name: picture | {"bytes": change(picture["bytes"])} for name, picture in pictures.items()}

"""SeeClick's and ShowUI's Mind2Web: a JSON file of actions with a box each, beside a folder of pictures -> rows in the
hub's columns.

Both have new pictures, screens instead of whole pages, and nothing else of a page. A row has no HTML, and one
candidate: the right box.

Sources: njucckevin/SeeClick 0ef37ac: agent_tasks/mind2web_test.py; showlab/ShowUI 21ed7cb: prepare/hf_mind2web.py,
data/dset_mind2web.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from seeact_offline.dataset.readers import Files
from seeact_offline.dataset.rows import REQUIRED_COLUMNS, Row, as_text
from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import LARGE, read_named
from seeact_offline.records import DatasetError

BOX = "box"
"""The `backend_node_id` of a row's one candidate."""
LAYOUTS = "SeeClick's mind2web_data_*.json or ShowUI's hf_*.json"
_NAMES = ("mind2web_data_{}.json", "hf_{}.json")
_ALL_TESTS = "hf_test_full.json"
"""ShowUI's file of the three test splits, whose rows name theirs."""
_PLACES = ("", "data", "metadata")
"""Folders in a data set's folder that may hold these files."""
_PICTURES = ("ming2web_images", "mind2web_images", "mind2web_imgs", "images")
"""Names of the folder of pictures: in SeeClick's archive, without its spelling, in SeeClick's readme, and ShowUI's."""
_COLUMNS = (*REQUIRED_COLUMNS, "subdomain", "target_action_reprs")


@dataclass(frozen=True, slots=True)
class RecutFile(Files):
    """One file of either layout. Its content tells which."""

    split: str
    """The hub's name of the split whose rows are read where rows name theirs; empty: all rows."""
    has_pages: ClassVar[bool] = False

    def columns(self) -> list[str]:
        self._rows()
        return list(_COLUMNS)

    def count(self) -> int:
        return len(self._rows())

    def picture_paths(self) -> Iterator[str]:
        for row in self._rows():
            yield row["screenshot"]["path"]

    def light(self, columns: Sequence[str]) -> Iterator[Row]:
        for row in self._rows():
            yield {name: row.get(name) for name in columns}

    def rows(self, columns: Sequence[str], order: Sequence[int]) -> Iterator[Row]:
        rows = self._rows()
        for position in order:
            yield {name: rows[position].get(name) for name in columns}

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """Raises DatasetError for a file that cannot be read, or of another layout."""
        (path,) = self.paths
        try:
            stamp = path.stat()
        except OSError as error:
            raise DatasetError("dataset", sentence=f"cannot read {path}: {error.strerror}") from None
        rows = _rows_of(path, (stamp.st_mtime_ns, stamp.st_size))
        return [row for row in rows if not self.split or row["split"] in ("", self.split)]


def open_recut(path: Path, split: str) -> RecutFile:
    """Opens a file of either layout. `split`: see `RecutFile`. Raises DatasetError where no folder of pictures is near
    it."""
    return RecutFile(f"{split or 'the rows'} of {path}", _picture_folder(path), (path,), split)


def find_recut(folder: Path, split: str) -> Path | None:
    """The file of a split, by the hub's name, in a folder of either layout; None: there is none. Raises DatasetError
    for two."""
    places = [folder / place for place in _PLACES]
    files = [path for place in places for name in _NAMES if (path := place / name.format(split)).is_file()]
    if len(files) > 1:
        raise DatasetError(
            "dataset", sentence=f"{folder} has {split} as {files[0].name} and as {files[1].name}; name one file"
        )
    if not files and split.startswith("test_"):
        files = [path for place in places if (path := place / _ALL_TESTS).is_file()]
    return files[0] if files else None


def _picture_folder(file: Path) -> Path:
    for place in (file.parent, file.resolve().parent.parent):
        for name in _PICTURES:
            # an archive that was unpacked into a folder of its own
            for folder in (place / name / _PICTURES[0], place / name):
                if folder.is_dir():
                    return folder
    raise DatasetError(
        "dataset", sentence=f"{file} needs a folder of pictures, {', '.join(_PICTURES)}, beside it or one folder up"
    )


@lru_cache(maxsize=6)
def _rows_of(path: Path, stamp: tuple[int, int]) -> Sequence[Mapping[str, Any]]:
    """The rows of a file, of which pages and repeated histories are let go. Cached while `stamp`, time and size, stays
    the same."""
    try:
        entries = read_json(read_named("dataset", path, largest=LARGE, kind=DatasetError))
    except FormatError as error:
        raise DatasetError("dataset", LAYOUTS, f"{path}: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise DatasetError("dataset", LAYOUTS, f"{path}, which is no list of tasks or steps")
    first = entries[0] if isinstance(entries[0], dict) else {}
    is_of_tasks = "actions" in first
    if not is_of_tasks and "step" not in first:
        names = ", ".join(map(str, first)) or "no object"
        raise DatasetError("dataset", LAYOUTS, f"{path}, whose first entry has {names[:200]}")
    needed: Mapping[str, type] = {"actions": list} if is_of_tasks else {"step": dict}
    for number, entry in enumerate(entries):
        for name, kind in needed.items():
            if not isinstance(entry, dict) or not isinstance(entry.get(name), kind):
                raise DatasetError("dataset", LAYOUTS, f"{path}, whose entry {number} has no {name}")
    return _rows_of_tasks(entries) if is_of_tasks else _rows_of_steps(entries)


def _rows_of_tasks(tasks: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """SeeClick's rows."""
    rows = []
    for task in tasks:
        actions = [action if isinstance(action, dict) else {} for action in task["actions"]]
        texts = task.get("action_reprs")
        if not isinstance(texts, list):
            texts = [_text(action.get("operation")) for action in actions]
        for index, action in enumerate(actions):
            row = _row(task, as_text(task.get("annotation_id")), as_text(action.get("action_uid")), action)
            rows.append(
                row
                | {"confirmed_task": task.get("confirmed_task"), "action_reprs": texts, "target_action_index": index}
            )
    return rows


def _rows_of_steps(steps: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """ShowUI's rows. Earlier actions are those that its file keeps, which lacks actions without a picture."""
    rows, longest = [], dict[str, list[Any]]()
    for step in steps:
        before = step.get("repr_history")
        own, text = as_text(step.get("step_repr")), as_text(step.get("annot_id"))
        row = _row(step, text, as_text(step.get("action_uid")), step["step"], as_text(step.get("img_url")))
        row |= {"confirmed_task": step.get("task"), "split": as_text(step.get("split")), "target_action_reprs": own}
        if isinstance(before, list):
            row |= {"action_reprs": [*before, own], "target_action_index": len(before)}
            longest[text] = max(longest.get(text, []), row["action_reprs"], key=len)
        rows.append(row)
    for row in rows:
        # the task's last row lists all its actions
        listed = longest.get(row["annotation_id"], [])
        if row.get("action_reprs") == listed[: len(row.get("action_reprs", ()))]:
            row["action_reprs"] = listed
    return rows


def _row(
    entry: Mapping[str, Any], task: str, step: str, action: Mapping[str, Any], picture: str = ""
) -> dict[str, Any]:
    """The columns that both layouts fill alike. `entry`: names the website; `action`: has the operation and the box."""
    return {
        "annotation_id": task,
        "action_uid": step,
        "website": entry.get("website"),
        "domain": entry.get("domain"),
        "subdomain": entry.get("subdomain"),
        "operation": action.get("operation"),
        "pos_candidates": [_candidate(action.get("bbox"))],
        "neg_candidates": [],
        "screenshot": {"bytes": None, "path": picture or f"{task}-{step}.jpg"},
        "split": "",
    }


def _candidate(box: object) -> dict[str, Any]:
    """An action without a box, which the released evaluations skip, has one that cannot be read."""
    sides = [box.get(name) for name in ("x", "y", "width", "height")] if isinstance(box, dict) else "no bbox"
    return {"backend_node_id": BOX, "tag": "", "attributes": {"bounding_box_rect": sides}}


def _text(operation: object) -> str:
    """An earlier action of a file without the data set's own texts."""
    fields = operation if isinstance(operation, dict) else {}
    value = as_text(fields.get("value"))
    return f"{as_text(fields.get('op'))}{f': {value}' if value else ''}"

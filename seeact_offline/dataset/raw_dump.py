"""Mind2Web task files and the screenshots of its raw dump -> parquet in the hub's layout.

The input, as Mind2Web's data card describes it and SeeAct's own `screenshot_generation.py` reads it:

- task files, each a JSON list of tasks with `annotation_id`, `website`, `domain`, `subdomain`, `confirmed_task`,
  `action_reprs` and `actions`; an action has `action_uid`, `raw_html`, `cleaned_html`, `operation`, `pos_candidates`
  and `neg_candidates`. The released files have about 600 MB each.
- `<dump>/<annotation_id>/processed/screenshot.json`, a JSON list of objects with `action_uid` and, under `before` and
  `after`, a base64 `screenshot`. The page of an action is the one `before` it.

Memory holds one task, the screenshots of its actions, and one row group at a time. A task or screenshot of more than
MAX_ENTRY_BYTES, MAX_DEPTH or MAX_COMMAS is left out unparsed.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from seeact_offline.dataset import SPLITS, canonical_split
from seeact_offline.dataset.readers import first_line
from seeact_offline.dataset.rows import decode_base64
from seeact_offline.dataset.writing import write_row_groups
from seeact_offline.files.named import open_regular
from seeact_offline.records import DatasetError, InputError

PROBLEMS = {
    "broken_file": "a JSON file that cannot be read to its end; what came before is kept",
    "bad_task": "a task that cannot be read, without a usable annotation_id, or whose actions are no list; left out",
    "duplicate_task": "an annotation_id seen before; left out",
    "no_dump_folder": "a task without screenshots in the dump; rows without picture",
    "action_count": "a task with more or fewer action texts than actions",
    "bad_action": "an action without action_uid; left out",
    "bad_screen": "an entry of a task's screenshots that cannot be read; left out",
    "no_screenshot": "an action that the task's screenshots lack; row without picture",
    "bad_base64": "a screenshot that is no base64; row without picture",
}
GROUP_BYTES = 32 << 20
"""Bytes of a row group before compression; a real row has some 3 MB."""
CHUNK_BYTES = 1 << 20
"""Bytes read at once."""
MAX_ENTRY_BYTES = 256 << 20
"""Bytes of one task, or of one action's screenshots; released ones have about 6 MB."""
MAX_DEPTH = 100
"""Depth of lists and objects in one entry."""
MAX_COMMAS = 10_000_000
"""Commas of one entry, those in texts included: parsed, a short value takes many times its own bytes."""
MAX_NAME_BYTES = 255
"""Bytes of an annotation_id, which names a folder."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
# to the next comma or bracket, or to a string that continues after the bytes read; within an entry only brackets count
_BETWEEN = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+", re.DOTALL)
_WITHIN = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+", re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ID = re.compile(rb'"annotation_id"\s*:\s*"([\w.-]{1,80})"', re.ASCII)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something missing or wrong that does not end the conversion."""

    name: str
    """One of PROBLEMS."""
    where: str
    """File, task, action."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.where}" + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True, slots=True)
class SplitReport:
    """The outcome of converting one split."""

    split: str
    """Its name as users type it."""
    path: Path | None
    """The file written; None if there was no row."""
    tasks: int
    rows: int
    pictures: int
    """Rows that have a picture."""
    problems: Mapping[str, int]


class BrokenJson(Exception):
    """The file is not the expected JSON. `byte`: position in the file, from 0."""

    def __init__(self, byte: int, reason: str) -> None:
        super().__init__(f"byte {byte}: {reason}")
        self.byte = byte


def convert(
    dump: Path,
    tasks: Path,
    out: Path,
    split: str | None = None,
    on_problem: Callable[[Problem], None] = lambda problem: None,
    group_bytes: int = GROUP_BYTES,
) -> list[SplitReport]:
    """Writes `out/data/<split>-00000-of-00001.parquet`, one file per split, each whole or not at all.

    `dump`: the folder that holds the tasks' folders, or the one above it, named `raw_dump` in the release. `split`: the
    split of all files; None takes it from the nearest folder named like a split. `on_problem` is called at each
    problem. Raises DatasetError when there is no task file, or the split of one is unknown.
    """
    folder = dump / "task" if (dump / "task").is_dir() else dump
    seen: set[str] = set()
    reports = []
    for name, paths in task_files(tasks, split).items():
        part = _SplitConversion(folder, seen, on_problem)
        path = out / "data" / f"{SPLITS[name]}-00000-of-00001.parquet"
        written = write_rows(part.rows(paths), path, group_bytes)
        reports.append(SplitReport(name, path if written else None, part.tasks, written, part.pictures, part.problems))
    return reports


def task_files(tasks: Path, split: str | None = None) -> dict[str, list[Path]]:
    """Split -> its JSON files, `train_2` before `train_10`. Raises DatasetError as `convert` does."""
    if split is not None and split not in {*SPLITS, *SPLITS.values()}:
        raise DatasetError("split", f"one of {', '.join(SPLITS)}", repr(split))

    def natural(path: Path) -> list[tuple[int, str]]:
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", str(path))]

    files: dict[str, list[Path]] = {}
    for path in sorted(tasks.rglob("*.json"), key=natural):
        files.setdefault(canonical_split(split) if split else _split_of(path, tasks), []).append(path)
    if not files:
        raise DatasetError("tasks", f".json files in {tasks} or below", "none")
    return {name: files[name] for name in SPLITS if name in files}


def write_rows(rows: Iterable[Row], path: Path, group_bytes: int = GROUP_BYTES) -> int:
    """Writes rows in groups of about `group_bytes`, as they come, like `write_row_groups`. Without rows, it writes no
    file."""
    left = iter(rows)
    first = list(islice(left, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    if not first:
        return 0
    # pages and pictures hardly ever repeat, so a dictionary of them would only cost memory
    return write_row_groups(_groups(chain(first, left), group_bytes), path, compression="zstd", use_dictionary=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a JSON file that is a list."""

    number: int
    """Its place in the list, from 0."""
    value: Any
    """The parsed entry; None if it has a fault."""
    fault: str = ""
    """The reason why it cannot be used; later entries can."""
    hint: str = ""
    """The probable annotation_id of an entry with a fault."""


def read_items(path: Path, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Entry]:
    """Yields the entries of a JSON file that is one list.

    Raises InputError for a file that cannot be opened, OSError, and BrokenJson after the entries before the fault.
    """
    try:
        opened = open_regular(path)
    except OSError as error:
        raise InputError("tasks", sentence=f"cannot read {path}: {error.strerror}") from None
    with opened as file:
        for number, (begin, content, fault) in enumerate(_split_list(file, chunk_bytes)):
            yield _parse_entry(number, begin, content, fault)


def _split_list(file: BinaryIO, chunk_bytes: int) -> Iterator[tuple[int, bytes, str]]:
    """Yields what stands between the commas of the outer list: the position of its first byte, its bytes, and its
    fault."""
    buffer, depth, deepest, scanned, fault = _list_start(file), 0, 0, 0, ""
    n_entries = 0
    while True:
        # doubling the buffer keeps a long string from being searched too often
        chunk = file.read(max(chunk_bytes, len(buffer)))
        buffer, begin = buffer + chunk, 0
        while True:
            skipped = (_WITHIN if depth else _BETWEEN).match(buffer, scanned)
            scanned = skipped.end() if skipped else scanned
            if scanned == len(buffer) or buffer[scanned] == ord('"'):
                break
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark := chr(buffer[scanned]), 0)
            deepest = max(deepest, depth)
            scanned += 1
            if depth > 0 or (depth == 0 and mark != ","):
                continue
            content = buffer[begin : scanned - 1]
            place = file.tell() - len(buffer) + begin
            if depth == 0 or n_entries or content.strip() or fault:
                yield place, content, fault or _find_excess(content, deepest)
                n_entries += 1
            begin, deepest, fault = scanned, 0, ""
            if depth < 0:
                _check_end(file, buffer[scanned - 1 :])
                return
        if not chunk:
            raise BrokenJson(file.tell(), "the file ends within the list")
        buffer, scanned = buffer[begin:], scanned - begin
        if len(buffer) > MAX_ENTRY_BYTES:
            fault = f"more than {MAX_ENTRY_BYTES >> 20} MB"
            # keeps what is needed to continue: the first quote of an unfinished string, and a backslash at its end
            rest = buffer[scanned:]
            buffer, scanned = rest[:1] + b"\\" * ((len(rest) - len(rest.rstrip(b"\\"))) % 2), 0


def _parse_entry(number: int, begin: int, content: bytes, fault: str) -> Entry:
    """Parses one entry. Raises BrokenJson if it is not JSON."""
    if not fault:
        try:
            value = json.loads(text := content.decode())
            if _SURROGATE.search(content):
                json.dumps(value, ensure_ascii=False).encode()
            return Entry(number, value)
        except json.JSONDecodeError as error:
            raise BrokenJson(begin + len(text[: error.pos].encode()), error.msg) from None
        except UnicodeDecodeError as error:
            fault = f"byte {begin + error.start} of the file is no UTF-8"
        except UnicodeEncodeError as error:
            fault = f"half a character: {ascii(error.object[error.start])[1:-1]}"
        except ValueError as error:
            fault = first_line(error).rstrip(".")
    named = _ID.search(content)
    return Entry(number, None, fault, named[1].decode() if named else "")


class _SplitConversion:
    """Converts one split: yields rows and counts problems."""

    def __init__(self, dump: Path, seen: set[str], on_problem: Callable[[Problem], None]) -> None:
        """`seen`: annotation_ids of all splits, to which those of this one are added."""
        self._dump, self._seen, self._on_problem = dump, seen, on_problem
        self.problems: Counter[str] = Counter()
        self.tasks = 0
        self.pictures = 0

    def rows(self, paths: Iterable[Path]) -> Iterator[Row]:
        for path in paths:
            for entry in self._entries(path, str(path)):
                if self._usable(entry, path):
                    self.tasks += 1
                    yield from self._task_rows(entry.value)

    def _entries(self, path: Path, where: str) -> Iterator[Entry]:
        """Yields the entries of a file, up to its fault if it has one."""
        n_read = 0
        try:
            for entry in read_items(path):
                yield entry
                n_read += 1
        except BrokenJson as error:
            self._report("broken_file", where, f"{error}; {n_read} entries before it were read")
        except InputError as error:
            self._report("broken_file", where, str(error))
        except OSError as error:
            self._report("broken_file", where, f"cannot be read: {error.strerror or error}")

    def _usable(self, entry: Entry, path: Path) -> bool:
        task, where = entry.value, f"{path}, entry {entry.number}"
        name = task.get("annotation_id") if isinstance(task, dict) else None
        if entry.fault:
            self._report("bad_task", f"{where}{', task ' if entry.hint else ''}{entry.hint}", entry.fault)
        elif not isinstance(name, str) or not name or not isinstance(task.get("actions"), list):
            self._report("bad_task", where, f"annotation_id is {name!r:.80}")
        elif len(name.encode()) > MAX_NAME_BYTES:
            expected = f"at most {MAX_NAME_BYTES} bytes, as it names a folder"
            self._report(
                "bad_task", f"{where}, task {name:.80}...", f"annotation_id of {len(name):,} characters; {expected}"
            )
        elif name in self._seen:
            self._report("duplicate_task", f"{path}, task {name}")
        else:
            self._seen.add(name)
            return True
        return False

    def _task_rows(self, task: Mapping[str, Any]) -> Iterator[Row]:
        name, actions, raw = task["annotation_id"], task["actions"], task.get("action_reprs")
        texts = [_text(text) or "" for text in raw] if isinstance(raw, list) else []
        if len(actions) != len(texts):
            self._report("action_count", f"task {name}", f"{len(actions)} actions, {len(texts)} texts")
        uids = [action.get("action_uid") if isinstance(action, dict) else None for action in actions]
        pictures = self._screenshots(name, {uid for uid in uids if isinstance(uid, str)})
        for index, (uid, action) in enumerate(zip(uids, actions, strict=True)):
            if not isinstance(uid, str) or not uid:
                self._report("bad_action", f"task {name}, action {index}", f"action_uid is {uid!r}")
                continue
            picture = self._picture(pictures, name, uid)
            self.pictures += picture is not None
            yield _row(task, action, index, texts, picture)

    def _screenshots(self, name: str, wanted: set[str]) -> dict[str, str] | None:
        """Returns the base64 texts of the wanted actions' pages; None if the dump has nothing for this task."""
        path = self._dump / name / "processed" / "screenshot.json"
        # an id is a name inside this folder and must not lead out of it
        if Path(name).name != name or name == ".." or not os.path.isfile(path):
            self._report("no_dump_folder", f"task {name}", f"no {path}")
            return None
        texts: dict[str, str] = {}
        for entry in self._entries(path, f"task {name}, {path}"):
            if entry.fault:
                self._report("bad_screen", f"task {name}, {path}, entry {entry.number}", entry.fault)
            screen = entry.value if isinstance(entry.value, dict) else {}
            uid, before = screen.get("action_uid"), screen.get("before")
            text = before.get("screenshot") if isinstance(before, dict) else None
            if isinstance(uid, str) and uid in wanted and isinstance(text, str) and text:
                texts.setdefault(uid, text)
        return texts

    def _picture(self, pictures: Mapping[str, str] | None, name: str, uid: str) -> bytes | None:
        if pictures is None:
            return None
        if uid not in pictures:
            self._report("no_screenshot", f"task {name}, action {uid}")
            return None
        try:
            return decode_base64(pictures[uid])
        except ValueError as error:
            self._report("bad_base64", f"task {name}, action {uid}", first_line(error).rstrip("."))
            return None

    def _report(self, name: str, where: str, detail: str = "") -> None:
        self.problems[name] += 1
        self._on_problem(Problem(name, where, detail))


def _row(
    task: Mapping[str, Any], action: Mapping[str, Any], index: int, texts: list[str], picture: bytes | None
) -> Row:
    """Returns a row of the hub's layout: operation and candidates are the task file's, as JSON strings."""
    return {
        "action_uid": action["action_uid"],
        "raw_html": _text(action.get("raw_html")),
        "cleaned_html": _text(action.get("cleaned_html")),
        "operation": _text(action.get("operation")),
        "pos_candidates": _candidates(action.get("pos_candidates")),
        "neg_candidates": _candidates(action.get("neg_candidates")),
        **{name: _text(task.get(name)) for name in ("website", "domain", "subdomain", "annotation_id")},
        "confirmed_task": _text(task.get("confirmed_task")),
        "screenshot": None if picture is None else {"bytes": picture, "path": None},
        "action_reprs": texts,
        "target_action_index": str(index),
        "target_action_reprs": texts[index] if index < len(texts) else "",
    }


def _candidates(raw: object) -> list[str | None]:
    """Candidates as JSON strings, with attributes as JSON strings inside; some files hold those as an object."""
    candidates = list(raw) if isinstance(raw, list) else []
    for place, candidate in enumerate(candidates):
        if isinstance(candidate, dict) and isinstance(candidate.get("attributes"), dict):
            candidates[place] = {**candidate, "attributes": json.dumps(candidate["attributes"])}
    return [_text(candidate) for candidate in candidates]


def _text(value: object) -> str | None:
    """Null stays null, text stays text, anything else becomes its JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _groups(rows: Iterable[Row], group_bytes: int) -> Iterator[list[Row]]:
    """Yields rows in lists of about this many bytes, so that row groups have one size whatever the pages'."""
    group: list[Row] = []
    size = 0
    for row in rows:
        group.append(row)
        texts = (row["raw_html"], row["cleaned_html"], *row["pos_candidates"], *row["neg_candidates"])
        size += sum(len(text or "") for text in texts) + len((row["screenshot"] or {}).get("bytes", b""))
        if size >= group_bytes:
            yield group
            group, size = [], 0
    if group:
        yield group


def _split_of(path: Path, tasks: Path) -> str:
    """Returns the split that the nearest folder is named like, up to `tasks` itself."""
    names = {*SPLITS, *SPLITS.values()}
    folders = [tasks.resolve().name, *path.relative_to(tasks).parts[:-1]]
    named = [folder for folder in folders if folder in names]
    if not named:
        raise DatasetError(
            "split",
            f"{path} in a folder named like a split ({', '.join(SPLITS.values())})",
            "no such folder; name the split, or keep other JSON files out of the folder",
        )
    return canonical_split(named[-1])


def _list_start(file: BinaryIO) -> bytes:
    """Returns the first bytes after the list's bracket. Raises BrokenJson for a file that is not a list."""
    head = file.read(256)
    first = head.lstrip()[:1]
    if first != b"[":
        got = f"got {first.decode('ascii', 'replace')!r}" if first else "found nothing"
        raise BrokenJson(len(head) - len(head.lstrip()), f"expected a list, which begins with '[', {got}")
    return head[head.index(b"[") + 1 :]


def _check_end(file: BinaryIO, rest: bytes) -> None:
    """Raises BrokenJson unless `rest`, the bytes read from the last bracket on, ends the list and the file."""
    if rest[:1] != b"]":
        raise BrokenJson(file.tell() - len(rest), "expected ']'")
    rest = rest[1:]
    while not rest.strip():
        rest = file.read(CHUNK_BYTES)
        if not rest:
            return
    raise BrokenJson(file.tell() - len(rest.lstrip()), "more after the end of the list")


def _find_excess(content: bytes, deepest: int) -> str:
    """Names the limit that an entry exceeds; empty if none."""
    if len(content) > MAX_ENTRY_BYTES:
        return f"more than {MAX_ENTRY_BYTES >> 20} MB"
    if deepest > MAX_DEPTH:
        return f"more than {MAX_DEPTH} lists and objects within each other"
    return f"more than {MAX_COMMAS:,} commas" if content.count(b",") > MAX_COMMAS else ""

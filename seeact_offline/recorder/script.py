"""Tasks and their actions on pages, from scripts in YAML or JSON, checked before a browser is started, and what the
recorded acts change in the state of a bundled site, value by value.

A site's script keeps its state (`siteState` of each site); `state.js` adds the fields that were filled in. A check is
made by playing the recorded acts, and lies beside the tasks in `checks.json`.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import json

from seeact_offline.dataset.recorded import Condition
from seeact_offline.files.formats import FormatError, typed
from seeact_offline.files.named import read_settings, read_values
from seeact_offline.recorder.origins import Origin
from seeact_offline.records import OPERATIONS, InputError, Operation

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATE = (Path(__file__).parent / "state.js").read_text(encoding="utf-8")
"""A script that must run before the page's own."""
CHECKS = "checks.json"
"""File of a site's checks: task -> its changes."""
Value = str | int | float | bool
Changes = Mapping[str, Value | None]
"""Path -> the value after it; None where there is no value any more."""


def read_state(page: Page) -> dict[str, Value]:
    """The state of a page now, by path; empty for a page without `STATE`."""
    text = page.evaluate("() => window.__readState ? window.__readState() : '{}'")
    return flatten(json.decode(text))


def flatten(state: object) -> dict[str, Value]:
    """Path -> value. The order of a list does not count: its elements are paths, and their number the value. Values
    that are empty (false, 0, "", null) count as none, so that a switch that was put on and off again has not changed.

    >>> flatten({"cart": ["tea", "tea", {"id": 3}], "view": "home", "gift": False})
    {'cart["tea"]': 2, 'cart[{"id":3}]': 1, 'view': 'home'}
    """
    return dict(_leaves("", state))


def _leaves(path: str, value: object) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        elements = Counter(json.encode(element, order="sorted").decode() for element in value)
        for element, number in elements.items():
            yield f"{path}[{element}]", number
    elif value:
        assert isinstance(value, str | int | float)
        yield path, value


@dataclass(frozen=True, slots=True)
class Free:
    """Paths of a state whose value may vary, as patterns (`order.id`, `cart.*`)."""

    paths: tuple[str, ...] = ()
    """Patterns of paths that do not count at all."""
    own_words: tuple[str, ...] = ()
    """Patterns of paths at which any text will do, but an empty one."""


NOTHING_FREE = Free()


def changes(
    before: Mapping[str, Value], after: Mapping[str, Value], free: Free = NOTHING_FREE
) -> dict[str, Value | None]:
    """Differences between two states, sorted by path."""
    changed = {}
    for path in sorted(before.keys() | after.keys()):
        value = after.get(path)
        if value != before.get(path) and not any(fnmatchcase(path, pattern) for pattern in free.paths):
            changed[path] = True if value and any(fnmatchcase(path, pattern) for pattern in free.own_words) else value
    return changed


def load_checks(folder: Path) -> dict[str, dict[str, Value | None]]:
    """Task's id -> its changes, of the site in this folder."""
    path = folder / CHECKS
    return json.decode(path.read_bytes(), type=dict[str, dict[str, Value | None]])


# --- scripts ---

RECORDED_AS = {"CLICK": "CLICK", "TYPE": "TYPE", "SELECT": "SELECT", "HOVER": "CLICK", "ENTER": "CLICK"}
"""Action -> the operation that a row names."""
NAMESPACE = uuid.UUID("6f0c2f4e-6f9d-5a0e-9b51-6f2f2c1a7d10")
"""Namespace of the ids in recordings: the same script gives the same ids."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a task."""

    operation: Operation
    selector: str
    """A selector in Playwright's syntax; it must match exactly one visible element."""
    frame: str | None
    """Selector of the iframe to look in; None for the page itself."""


@dataclass(frozen=True, slots=True)
class TaskScript:
    """One task: its start, its actions, and the facts that its rows repeat."""

    annotation_id: str
    task: str
    split: str
    website: str
    domain: str
    subdomain: str
    start: str
    """URL, or path of an HTML file."""
    served: Path | None
    """Folder that is served over HTTP while recording; `start` is then a path below it."""
    actions: tuple[Action, ...]
    """The recorded actions; empty for a task that is only to be acted on."""
    answer: str | None = None
    """The final answer of a task that asks for one."""
    check: tuple[Condition, ...] = ()
    """Conditions that hold on the page after the last action, and not on an earlier one; empty for none."""
    changes: Changes | None = None
    """Changes of the state of a bundled site, which judge in place of the conditions; None elsewhere."""
    free: Free = NOTHING_FREE
    accepts_dialogs: bool = False
    """True if `confirm` and `prompt` are accepted, the latter with its own text; else they are dismissed."""

    @property
    def is_checked(self) -> bool:
        """False for a task that another has to judge."""
        return bool(self.check) or self.changes is not None

    def action_uid(self, index: int) -> str:
        return str(uuid.uuid5(NAMESPACE, f"{self.annotation_id}/{index}"))


def load_script(path: Path, default_split: str = "train", needs_steps: bool = True) -> list[TaskScript]:
    """The tasks of a script. `needs_steps`: False for tasks that are only to be acted on.
    Raises InputError naming the task and the wrong field."""
    content = read_settings("script", path)
    common = {name: content.get(name) for name in ("website", "domain", "subdomain", "start", "serve")}
    tasks = content.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise InputError("script", f"a list of tasks under 'tasks' in {path}", f"{tasks!r:.60}")
    return [
        _script_task({**common, "split": default_split, **_mapping(task, path, i)}, path, i, needs_steps)
        for i, task in enumerate(tasks)
    ]


def _mapping(task: object, path: Path, i: int) -> dict[str, Any]:
    if not isinstance(task, dict):
        raise InputError("script", f"names and values for task {i} of {path}", f"a {type(task).__name__}")
    return task


def _script_task(fields: Mapping[str, Any], path: Path, i: int, needs_steps: bool) -> TaskScript:
    where = f"task {i} of {path}"
    task = _text(fields, "task", where)
    steps = fields.get("steps", None if needs_steps else [])
    if not isinstance(steps, list) or (needs_steps and not steps):
        raise InputError("script", f"a list of steps in {where}", f"{steps!r:.60}")
    start, served = _start(_text(fields, "start", where), fields.get("serve"), path.parent)
    host = urlsplit(start).hostname
    website = host if host and fields.get("website") is None else _text(fields, "website", where)
    return TaskScript(
        annotation_id=str(fields.get("id") or uuid.uuid5(NAMESPACE, f"{website}/{task}")),
        task=task,
        split=str(fields["split"]),
        website=website,
        domain=str(fields.get("domain") or "unknown"),
        subdomain=str(fields.get("subdomain") or fields.get("domain") or "unknown"),
        start=start,
        served=served,
        actions=tuple(_action(_mapping(step, path, n), f"step {n} of {where}") for n, step in enumerate(steps)),
        answer=None if fields.get("answer") is None else _text(fields, "answer", where),
        check=_check(fields["check"], where) if "check" in fields else (),
        free=Free(tuple(fields.get("free") or ()), tuple(fields.get("own_words") or ())),
        accepts_dialogs=_dialogs(fields.get("dialogs", "dismiss"), where),
    )


def _check(conditions: object, where: str) -> tuple[Condition, ...]:
    if not isinstance(conditions, list) or not conditions:
        raise InputError("script", f"a list of conditions under 'check' in {where}", f"{conditions!r:.60}")
    read = []
    for n, condition in enumerate(conditions):
        try:
            read.append(typed(condition, Condition))
        except FormatError as error:
            raise InputError("script", error.expected, f"{error.got} in condition {n} of {where}") from None
    return tuple(read)


def _dialogs(answer: object, where: str) -> bool:
    if answer not in ("accept", "dismiss"):
        raise InputError("script", f"'dialogs' to be accept or dismiss in {where}", f"{answer!r:.60}")
    return answer == "accept"


def _start(start: str, serve: object, folder: Path) -> tuple[str, Path | None]:
    """The start, and the folder to serve for it. Paths are relative to the script's folder."""
    if "://" in start:
        if not start.startswith("file:"):
            Origin.of(start, "script")
        return start, None
    if serve:
        served = (folder / str(serve)).resolve()
        if not served.is_dir():
            raise InputError("script", "'serve' to be a folder", f"none at {served}")
        return start, served
    name, mark, fragment = start.partition("#")
    page = (folder / name).resolve()
    if page.is_dir():
        return f"index.html{mark}{fragment}", page
    if not page.is_file():
        raise InputError("script", "'start' to be a URL, an HTML file or a folder", f"nothing at {page}")
    return f"{page.as_uri()}{mark}{fragment}", None


def _action(step: Mapping[Any, Any], where: str) -> Action:
    name = str(step.get("op", "")).upper()
    if name not in RECORDED_AS:
        raise InputError("script", f"'op' to be one of {', '.join(RECORDED_AS)} in {where}", f"{step.get('op')!r:.60}")
    value = step.get("value")
    needs_value = RECORDED_AS[name] in OPERATIONS[1:]
    if needs_value == (value is None or str(value) == ""):
        raise InputError("script", f"{'a' if needs_value else 'no'} 'value' for {name} in {where}", f"{value!r:.60}")
    operation = Operation(RECORDED_AS[name], "" if value is None else str(value), name)
    # YAML 1.1 reads a bare `on` as true
    selector = next((step[name] for name in ("selector", "on", True) if name in step), None)
    return Action(
        operation,
        _text({"selector": selector}, "selector", where),
        None if step.get("frame") is None else str(step["frame"]),
    )


def _text(fields: Mapping[str, Any], name: str, where: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError("script", f"a text under '{name}' in {where}", f"{value!r:.60}")
    return value


# --- tasks for websites as others publish them ---

_HOST = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?(/\S*)?")


class _PublishedTask(msgspec.Struct, frozen=True):
    """A task for websites as others publish them: SeeAct's 90 online tasks (OSU-NLP-Group/SeeAct 70c49b9,
    data/online_tasks/merged_online_90_tasks.json), and Online-Mind2Web's 300 (osunlp/Online-Mind2Web,
    Online_Mind2Web.json), which also have `reference_length` and `level`."""

    task_id: str
    confirmed_task: str
    website: str
    """A URL, or the host of one."""


def load_tasks(path: Path) -> list[TaskScript]:
    """The tasks of a script, whose steps may be missing, or of a published JSON list.
    Raises InputError naming the task and what is wrong."""
    content = read_values("script", path)
    if not isinstance(content, list):
        return load_script(path, needs_steps=False)
    tasks = [_published_task(fields, f"task {number} of {path}") for number, fields in enumerate(content)]
    ids = [task.annotation_id for task in tasks]
    if twice := next((name for name in ids if ids.count(name) > 1), None):
        raise InputError("script", "every task_id once", f"{twice!r:.60} again in {path}")
    return tasks


def _published_task(fields: Any, where: str) -> TaskScript:
    try:
        task = typed(fields, _PublishedTask)
    except FormatError as error:
        raise InputError("script", error.expected, f"{error.got} in {where}") from None
    # some of SeeAct's tasks name a host alone
    start = f"https://{task.website}" if _HOST.fullmatch(task.website) else task.website
    if not (task.task_id.strip() and task.confirmed_task.strip()):
        raise InputError("script", "texts under task_id and confirmed_task", f"an empty one in {where}")
    try:
        website = Origin.of(start, "script").host
    except InputError:
        raise InputError("script", "a URL or a host under 'website'", f"{task.website!r:.60} in {where}") from None
    return TaskScript(
        task.task_id, task.confirmed_task, "train", website, "unknown", "unknown", start, served=None, actions=()
    )

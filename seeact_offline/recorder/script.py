"""Task scripts: tasks and their actions on pages, as YAML or JSON, checked before a browser is started."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seeact_offline.dataset.recorded import Condition
from seeact_offline.files.formats import FormatError, typed
from seeact_offline.files.named import read_settings
from seeact_offline.recorder.origins import Origin
from seeact_offline.recorder.site_states import NOTHING_FREE, Changes, Free
from seeact_offline.records import OPERATIONS, InputError, Operation

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
    """The tasks of a script. `needs_steps`: False for tasks that are only to be acted on. Raises InputError naming the task and the wrong
    field."""
    content = read_settings("script", path)
    common = {name: content.get(name) for name in ("website", "domain", "subdomain", "start", "serve")}
    tasks = content.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise InputError("script", f"a list of tasks under 'tasks' in {path}", f"{tasks!r:.60}")
    return [
        _task({**common, "split": default_split, **_mapping(task, path, i)}, path, i, needs_steps)
        for i, task in enumerate(tasks)
    ]


def _mapping(task: object, path: Path, i: int) -> dict[str, Any]:
    if not isinstance(task, dict):
        raise InputError("script", f"names and values for task {i} of {path}", f"a {type(task).__name__}")
    return task


def _task(fields: Mapping[str, Any], path: Path, i: int, needs_steps: bool) -> TaskScript:
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

"""Tasks for websites as others publish them: SeeAct's 90 online tasks, and Online-Mind2Web's 300.

Sources: OSU-NLP-Group/SeeAct 70c49b9, data/online_tasks/merged_online_90_tasks.json; osunlp/Online-Mind2Web, Online_Mind2Web.json, whose
tasks also have `reference_length` and `level`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from seeact_offline.files.formats import FormatError, typed
from seeact_offline.files.named import read_values
from seeact_offline.recorder.origins import Origin
from seeact_offline.recorder.script import TaskScript, load_script
from seeact_offline.records import InputError

_HOST = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?(/\S*)?")


class _PublishedTask(msgspec.Struct, frozen=True):
    task_id: str
    confirmed_task: str
    website: str
    """A URL, or the host of one."""


def load_tasks(path: Path) -> list[TaskScript]:
    """The tasks of a script, whose steps may be missing, or of a published JSON list. Raises InputError naming the task and what is wrong."""
    content = read_values("script", path)
    if not isinstance(content, list):
        return load_script(path, needs_steps=False)
    tasks = [_task(fields, f"task {number} of {path}") for number, fields in enumerate(content)]
    ids = [task.annotation_id for task in tasks]
    if twice := next((name for name in ids if ids.count(name) > 1), None):
        raise InputError("script", "every task_id once", f"{twice!r:.60} again in {path}")
    return tasks


def _task(fields: Any, where: str) -> TaskScript:
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

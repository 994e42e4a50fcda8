"""Tasks that can be acted on: the bundled sites, or a task script of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seeact_offline.dataset import TEST_SPLITS, canonical_split
from seeact_offline.dataset.split import draw_tasks
from seeact_offline.live.miniwob import MINIWOB, RECIPES, SEEDS, episodes_of, html_folder, task_scripts
from seeact_offline.recorder.origins import ANYWHERE, Origin
from seeact_offline.recorder.published_tasks import load_tasks
from seeact_offline.recorder.sample_building import site_names, site_tasks
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig

BUNDLED = "sites"
"""Names the bundled sites."""


def live_tasks(
    source: str, config: EvalConfig, allowed: frozenset[Origin] = frozenset(), is_recorded: bool = False
) -> list[TaskScript]:
    """The tasks of a source that the configuration selects, in the order of their scripts. `allowed`: origins that the user named. `is_recorded`:
    only tasks with recorded acts will do. Raises InputError for a source without tasks, and for a task that cannot be acted on."""
    if source == BUNDLED:
        every = [task for name in site_names() for task in site_tasks(name)]
    elif Path(source).is_file():
        every = load_tasks(Path(source))
    else:
        raise InputError("places", f"{BUNDLED}, {MINIWOB}, or a file of tasks", repr(source))
    split = canonical_split(config.split)
    splits = TEST_SPLITS if split == "all" else (split,)
    # a file of one's own need not name splits
    named = [task for task in every if canonical_split(task.split) in splits] if source == BUNDLED else every
    tasks = _selected(named, config)
    if not tasks:
        raise InputError("split", f"a split of {source} with tasks", config.split)
    for task in tasks:
        if is_recorded and not task.actions:
            raise InputError("model", sentence=f"builtin/oracle needs steps; task {task.task!r:.80} has none")
        is_reached = task.served or task.start.startswith("file:") or ANYWHERE in allowed
        if not is_reached and (origin := Origin.of(task.start, "places")) not in allowed:
            sentence = f"task {task.task!r:.80} starts on {origin}; name it by `allow_origin` to act there"
            raise InputError("allow_origin", sentence=sentence)
    return tasks


def miniwob_episodes(config: EvalConfig, n_seeds: int | None, is_recorded: bool) -> list[TaskScript]:
    """The episodes of MiniWoB++ that the configuration selects by their tasks; `n_seeds` of each. One that is drawn twice stands twice.

    `is_recorded`: only tasks with recorded acts will do. Raises InputError for an unknown task, and where the pages are not installed.
    """
    folder = html_folder()
    tasks = _selected(task_scripts(folder), config)
    if is_recorded and any(task.annotation_id not in RECIPES for task in tasks):
        sentence = f"builtin/oracle has recorded acts for {', '.join(RECIPES)} alone; name some of them by `tasks`"
        raise InputError("tasks", sentence=sentence)
    return episodes_of(tasks, folder, n_seeds or SEEDS)


def _selected(tasks: Sequence[TaskScript], config: EvalConfig) -> list[TaskScript]:
    """The tasks that `tasks`, `limit` and `sample` leave. Raises InputError for an id that no task has."""
    known = {task.annotation_id: task for task in tasks}
    wanted = config.task_ids
    if wanted is not None:
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise InputError("tasks", "ids of tasks", f"{len(unknown)} that no task has, {unknown[0]} first")
        known = {name: task for name, task in known.items() if name in wanted}
    if config.sample is not None:
        drawn = set(draw_tasks({name: task.website for name, task in known.items()}, config.sample, config.seed))
        known = {name: task for name, task in known.items() if name in drawn}
    return [*known.values()][: config.limit]

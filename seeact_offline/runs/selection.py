"""Selects the tasks of a run, and its steps that are asked: those without an answer, those that failed
to run, or some that are named."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from seeact_offline.dataset import Split, open_split
from seeact_offline.files.named import read_text
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig


def selected_split(config: EvalConfig) -> Split:
    """Opens the split with the tasks that the configuration takes. Raises DatasetError."""
    split = open_split(config.dataset, config.split, limit=config.limit, tasks=config.task_ids)
    return split if config.sample is None else split.drawn(config.sample, config.seed)


def step_ids(ids: str | Collection[str]) -> tuple[str, ...]:
    """Ids of steps (`annotation_id_action_uid`): given one by one, separated by commas,
    or as `@FILE` with one per line.

    Raises InputError for a file that cannot be read, and where there is none.
    """
    if isinstance(ids, str):
        wanted = "a file with the id of a step a line"
        ids = read_text("step", Path(ids[1:]), wanted).splitlines() if ids[:1] == "@" else ids.split(",")
    step_keys = tuple(dict.fromkeys(text.strip() for text in ids if text.strip()))
    if not step_keys:
        raise InputError("step", "at least one id of a step, annotation_id_action_uid", "none")
    return step_keys

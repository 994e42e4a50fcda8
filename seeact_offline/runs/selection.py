"""Selects the tasks of a run, and its steps that are asked: those without an answer, those that failed to run, or some that are named."""

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


def step_ids(given: str | Collection[str]) -> tuple[str, ...]:
    """Ids of steps (`annotation_id_action_uid`): given one by one, separated by commas, or as `@FILE` with one a line.

    Raises InputError for a file that cannot be read, and where there is none.
    """
    if isinstance(given, str):
        wanted = "a file with the id of a step a line"
        given = read_text("step", Path(given[1:]), wanted).splitlines() if given[:1] == "@" else given.split(",")
    found = tuple(dict.fromkeys(text.strip() for text in given if text.strip()))
    if not found:
        raise InputError("step", "at least one id of a step, annotation_id_action_uid", "none")
    return found

"""Files of replies whose agent is not known: every agent is tried on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seeact_offline.agents.agent_fit import AgentFits, RawReply, agent_fits
from seeact_offline.dataset import open_split
from seeact_offline.importers.answer_table import IDS, table_rows
from seeact_offline.importers.importer import Source
from seeact_offline.importers.reading import json_or_none, lines, reply_text, step_of
from seeact_offline.pages.pointing import is_usable
from seeact_offline.records import InputError, Step
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.prepare import picture_size

MOST_STEPS = 500
"""Steps of a file that are looked at, evenly spread, where their pages are known: reading those takes longer than
reading a reply in all languages."""


def fit_file(path: Path, dataset: Any = None, split: str | None = None) -> AgentFits:
    """Tries every agent on the replies of a file: a table of `annotation_id`, `action_uid` and `reply`, JSON lines with
    `reply`, or plain lines. `dataset`, `split`: where the steps are known. Raises InputError, for a file without
    replies among others."""
    rows = read_replies(path)
    if dataset is None and split is None:
        return agent_fits(RawReply(row["reply"], row) for row in rows)
    if dataset is None or split is None:
        lacks, named = ("split", "dataset") if split is None else ("dataset", "split")
        raise InputError(lacks, sentence=f"`{named}` needs `{lacks}`: together they say which steps the replies are to")
    first: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        first.setdefault(step_of(row), row)
    opened = open_split(dataset, split)
    keys = [key for key in opened.keys if str(key) in first]
    if not keys:
        raise InputError("run", sentence=f"{path} names no step of {split} of {dataset} by {' and '.join(IDS)}")
    chosen = {*keys[:: -(-len(keys) // MOST_STEPS)]}
    with rare_collections():
        return agent_fits(_of_step(first[str(step.key)], step) for step in opened.steps(chosen))


def _of_step(row: Mapping[str, Any], step: Step) -> RawReply:
    boxes = [candidate.box for candidate in step.candidates if candidate.box is not None and is_usable(candidate.box)]
    return RawReply(row["reply"], row, picture_size(step), step.truth.boxes, boxes)


def read_replies(path: Path) -> list[Mapping[str, Any]]:
    """The rows of a file, each with the text of a `reply` that is not empty. Raises InputError."""
    if not path.is_file():
        raise InputError("run", sentence=f"{path} is no file; name a file of replies")
    source = Source("run", path)
    written = [line.text for line in lines(source)]
    values = [json_or_none(line) for line in written]
    rows: list[Mapping[str, Any]]
    if any(isinstance(value, dict) and "reply" in value for value in values):
        rows = [value for value in values if isinstance(value, dict) and "reply" in value]
    elif written and {*IDS, "reply"} <= {name.strip().strip('"').lower() for name in written[0].split(",")}:
        rows = [row.values for row in table_rows(source, (*IDS, "reply")).rows]
    else:
        rows = [
            {"reply": value if isinstance(value, str) else line} for line, value in zip(written, values, strict=True)
        ]
    rows = [{**row, "reply": reply} for row in rows if (reply := reply_text(row["reply"])).strip()]
    if not rows:
        raise InputError("run", sentence=f"{path} holds no replies")
    return rows

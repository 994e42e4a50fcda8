"""Prediction files of SeeClick's and ShowUI's evaluations on Mind2Web: their step results, each with the model's reply.

Results may lie in lists and objects of any depth, by task or by split, in one JSON text or one per line. A step is
named by its picture, `ANNOTATION-ID-ACTION-UID.jpg`. Replies are read as the released evaluations read them.

Sources: njucckevin/SeeClick 0ef37ac: agent_tasks/mind2web_test.py; showlab/ShowUI 21ed7cb: main/eval_mind2web.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from seeact_offline.agents import GUI_MODELS
from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import LARGE, read_named
from seeact_offline.importers.importer import ImportedAnswers, Importer, Problem, Source, WrongFormat
from seeact_offline.importers.raw_replies import answer_to
from seeact_offline.importers.reading import SourceRow, SourceRows, decoded, json_or_none, text

REPLIES = {"seeclick": ("sentence", "pred"), "showui": ("sentence",)}
"""Format -> the names of its replies."""


def read(sources: Mapping[str, Source], name: str) -> ImportedAnswers:
    """Reads step results. `name`: the name of the format, which is the agent's."""
    source = sources["run"]
    results = _rows(source, REPLIES[name])
    if not results.rows:
        wanted = "img_path, or annot_id and action_uid, beside " + " or ".join(REPLIES[name])
        raise WrongFormat(source, f"step results with {wanted}", "without any")
    first, problems = results.first_of_each()
    answers = {key: answer_to(row.values["reply"], GUI_MODELS[name], {}, strict=True) for key, row in first.items()}
    return ImportedAnswers(answers, problems, settings={"agent": name, "strict": True})


def _rows(source: Source, names: Sequence[str]) -> SourceRows:
    """The step results of a file, their reply as `reply`."""
    content, is_utf8 = decoded(read_named(source.argument, source.path, largest=LARGE))
    problems = [] if is_utf8 else [Problem("not_utf8", source.path.name)]
    rows = []
    for place, value in _values(content, problems, source.path.name):
        for number, result in enumerate(_results(value, names), 1):
            where = f"{place}, result {number}"
            key = _step_of(result)
            if key:
                reply = next(result[name] for name in names if name in result)
                # ShowUI keeps the batch of one that it decodes
                reply = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply
                rows.append(SourceRow(key, where, {"reply": text(reply)}))
            else:
                problems.append(Problem("bad_row", where))
    return SourceRows(rows, problems)


def _values(content: str, problems: list[Problem], name: str) -> Iterator[tuple[str, Any]]:
    """The values of a file with their places: its one JSON text, else a value a line; adds lines that are none to the
    problems."""
    if (value := json_or_none(content)) is not None:
        yield name, value
        return
    lines = content.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"line {number} of {name}"
            try:
                yield where, read_json(line)
            except FormatError:
                problems.append(Problem("torn_line" if number == len(lines) else "bad_row", where))


def _results(value: Any, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The objects with a reply, wherever they lie."""
    if isinstance(value, dict) and any(name in value for name in names):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _results(inner, names)


def _step_of(result: Mapping[str, Any]) -> str:
    """The step that a result is about; empty where it names none."""
    meta = result.get("meta")
    for named in (meta if isinstance(meta, dict) else {}, result):
        ids = [text(named.get("annot_id")), text(named.get("action_uid"))]
        if all(ids):
            return "_".join(ids)
    picture = PurePosixPath(text(result.get("img_path")).replace("\\", "/")).name.rpartition(".")[0]
    task = text(result.get("annot_id"))
    if task and picture.startswith(f"{task}-"):
        return f"{task}_{picture[len(task) + 1 :]}"
    # both ids of Mind2Web are UUIDs
    parts = picture.split("-")
    half = len(parts) // 2
    return "_".join(["-".join(parts[:half]), "-".join(parts[half:])]) if parts[0] and len(parts) == 2 * half else ""


def _looks(first: Any, *, has_task: bool) -> bool:
    """`has_task`: true of SeeClick's results, which name the task's id; ShowUI's have a number in its place."""
    results = _results(first, REPLIES["seeclick"])
    return any("img_path" in result and ("annot_id" in result) is has_task for result in results)


SEECLICK = Importer(
    name="seeclick",
    what="step results of SeeClick's Mind2Web evaluation",
    protocol="seeclick",
    read=partial(read, name="seeclick"),
    looks=partial(_looks, has_task=True),
)
SHOWUI = replace(
    SEECLICK,
    name="showui",
    what="step results of ShowUI's Mind2Web evaluation",
    protocol="showui",
    read=partial(read, name="showui"),
    looks=partial(_looks, has_task=False),
)

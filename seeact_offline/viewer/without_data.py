"""What may be given away of a run on data that must not be: ids, places, scores and counts. No task, page, prompt, reply or value.

Fields are named one by one, so that one that is added later stays out until it is named here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LEFT_OUT = (
    "Tasks, pages, pictures, prompts, replies and values are left out of this copy: the data set's terms may not let them be"
    " given away."
)
STEP = ("key", "annotation_id", "action_uid", "website", "domain", "index", "n_actions")
RUN = ("outcome", "cause", "element", "f1", "success", "rank", "failure", "ran", "notes", "usage")
GROUP = ("group", "final", "offered", "labels", "crop", "calls")
READ = ("element_id", "op", "failure")


def index_without_data(index: Mapping[str, Any]) -> dict[str, Any]:
    """`index.json` without the texts of tasks."""
    tasks = index["tasks"]
    return {**index, "tasks": {**tasks, "texts": ["" for _ in tasks["texts"]]}}


def step_without_data(step: Mapping[str, Any]) -> dict[str, Any]:
    """`step/KEY.json` of the same shape."""
    truth = step["truth"]
    return {
        **_some(step, STEP),
        "task": "",
        "history": [],
        "subdomain": "",
        "truth": {**_some(truth, ("op", "original_op", "target", "positives")), "value": None},
        "picture": None,
        "elements": [_element(one) for one in step["elements"] if one["rank"] is not None or one["positive"]],
        "runs": [None if run is None else _run(run) for run in step["runs"]],
        "problems": [LEFT_OUT],
    }


def _element(element: Mapping[str, Any]) -> dict[str, Any]:
    kept = _some(element, ("id", "rank", "score", "positive"))
    return {**kept, "tag": "", "box": None, "text": "", "path": ""}


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    predicted = {**_some(run["predicted"], ("element_id", "op", "point")), "value": None}
    return {
        **_some(run, RUN),
        "detail": "",
        "relabelled": run["relabelled"] and {**run["relabelled"], "note": "", "annotator": ""},
        "predicted": predicted,
        "groups": [_group(one) for one in run["groups"]],
    }


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    turns: Sequence[Any] = group["images"]
    nothing = {"system": None, "examples": [], "prompts": None, "images": [None for _ in turns], "replies": []}
    return {**_some(group, GROUP), **nothing, "parsed": {**_some(group["parsed"], READ), "value": None, "detail": ""}}


def _some(whole: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: whole[name] for name in names}

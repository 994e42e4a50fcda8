"""What may be given away of a run: nothing that says where it lies on this machine; of data that must not be published, ids,
places, scores and counts alone. No task, page, prompt, reply or value of these.

Fields are named one by one, so that one that is added later stays out until it is named here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seeact_offline.models import PROVIDERS

LEFT_OUT = (
    "Tasks, pages, pictures, prompts, replies and values are left out of this copy: the data set's terms may not let them be"
    " given away."
)
STEP = ("key", "annotation_id", "action_uid", "website", "domain", "index", "n_actions")
RUN = ("outcome", "cause", "element", "f1", "success", "rank", "failure", "ran", "notes", "usage")
GROUP = ("group", "final", "offered", "labels", "crop", "calls")
READ = ("element_id", "op", "failure")
FACTS = ("grounding", "model", "split", "protocol", "ranker")
RESULTS = ("n_tasks", "n_steps", "element_accuracy", "operation_f1", "step_success_rate", "task_success_rate", "usage")
SEPARATOR = re.compile(r"[/\\]")
LOCAL = re.compile(r"^[.~]|(?<![\w/])/|\\")
"""What a path on this machine has, and an id on the hub has not."""


# --- without paths ---


def bare_names(index: Mapping[str, Any]) -> dict[str, str]:
    """What each run is called -> the same without its folder, numbered where two are called alike."""
    names = [run["name"] for run in index["runs"]]
    bare = [SEPARATOR.split(name)[-1] for name in names]
    return {
        name: f"{short} ({place})" if bare.count(short) > 1 else short
        for place, (name, short) in enumerate(zip(names, bare, strict=True), 1)
    }


def index_without_paths(index: Mapping[str, Any]) -> dict[str, Any]:
    """`index.json`; of results on other data than the sample only RESULTS."""
    names, comparison = bare_names(index), index["comparison"]
    problem = comparison and comparison["problem"]
    return {
        **index,
        "title": " | ".join(names.values()),
        "runs": [_run_without_paths(run, names, bool(index["is_sample"])) for run in index["runs"]],
        "comparison": comparison and {**comparison, "problem": problem and _sentence(problem, names)},
    }


def _run_without_paths(run: Mapping[str, Any], names: Mapping[str, str], is_sample: bool) -> dict[str, Any]:
    results = run["results"]
    kept = {name: results[name] for name in (results if is_sample else RESULTS) if name in results} if results else None
    return {
        **run,
        "name": names[run["name"]],
        **{name: _bare(run[name]) for name in FACTS},
        "results": _bare(kept),
        "problems": [_sentence(problem, names) for problem in run["problems"]],
    }


def step_without_paths(step: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """`step/KEY.json`. `names`: as `bare_names` gives them."""
    runs = [run and {**run, "detail": run["detail"] if run["ran"] else _bare(run["detail"])} for run in step["runs"]]
    return {**step, "runs": runs, "problems": [_sentence(problem, names) for problem in step["problems"]]}


def _bare(value: Any) -> Any:
    """A value of JSON in which texts that are paths of this machine are their last parts alone."""
    if isinstance(value, dict):
        return {_bare(name): _bare(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_bare(inner) for inner in value]
    if not isinstance(value, str):
        return value
    provider, _, rest = value.partition("/")
    if _is_local(value):
        return _last(value)
    is_file = provider in PROVIDERS and PROVIDERS[provider].is_file
    return f"{provider}/{_last(rest)}" if rest and (is_file or _is_local(rest)) else value


def _is_local(text: str) -> bool:
    try:
        return LOCAL.search(text) is not None or Path(text).exists()
    except (OSError, ValueError):
        return False


def _last(path: str) -> str:
    return SEPARATOR.split(path.rstrip("/\\"))[-1]


def _sentence(problem: str, names: Mapping[str, str]) -> str:
    """Without its reason where that names a path."""
    for name, bare in names.items():
        problem = problem.replace(name, bare)
    head = problem.partition(": ")[0]
    return (
        problem if not SEPARATOR.search(problem) else "This cannot be shown." if SEPARATOR.search(head) else f"{head}."
    )


# --- without data ---


def index_without_data(index: Mapping[str, Any]) -> dict[str, Any]:
    """`index.json` without paths and the texts of tasks."""
    tasks = index["tasks"]
    return {**index_without_paths(index), "tasks": {**tasks, "texts": ["" for _ in tasks["texts"]]}}


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

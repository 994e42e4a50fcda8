"""A site as a folder of files, which any web server can serve, without a program behind it.

It names no path of this machine. Without data, it holds ids, places, scores and counts alone: no task, page, prompt,
reply or value. What it holds is named field by field, so that a field that is added later stays out until it is named
here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.files.whole import write_whole
from seeact_offline.models import PROVIDERS
from seeact_offline.records import InputError
from seeact_offline.viewer.index import FACTS
from seeact_offline.viewer.site import CHECKS, Site
from seeact_offline.viewer.site_files import json_file

if TYPE_CHECKING:
    from seeact_offline.viewer.trajectory_site import TrajectorySite

LIST = "bundle.json"
"""Lists the files of a bundle, so that it can be written anew and nothing else is ever removed."""
ROBOTS = "User-agent: *\nDisallow: /\n"
LEFT_OUT = (
    "Tasks, pages, pictures, prompts, replies and values are left out of this copy: the data set's terms may not let "
    "them be given away."
)
STEP = ("key", "annotation_id", "action_uid", "website", "domain", "index", "n_actions")
RUN = ("outcome", "cause", "element", "f1", "success", "rank", "failure", "ran", "notes", "usage")
GROUP = ("group", "final", "offered", "labels", "crop", "window", "calls")
RESULTS = (
    "n_tasks", "n_steps", "element_accuracy", "operation_f1", "step_success_rate", "task_success_rate", "usage",
    "waterfall", "ceiling", "recall_at_k",
)  # fmt: skip
"""Results of a run on other data than the sample."""
SETTINGS = (
    *FACTS,
    "agent",
    "prompts",
    "merge",
    "top_k",
    "group_size",
    "seed",
    "limit",
    "sample",
    "temperature",
    "turns",
    "no_image",
)
"""Settings of a run: no address of a server and no file."""
_OURS = re.compile(
    r"(?:[\w-]+\.(?:html|css|js|svg|json|txt))|(?:(?:step|episode)/[0-9a-f]{16}\.json)|(?:img/[0-9a-f-]+\.webp)"
)
_SEPARATOR = re.compile(r"[/\\]")
_LOCAL = re.compile(r"^[.~]|(?<![\w/])/|\\")
"""Matches paths of this machine, and no id of the hub."""


def write_bundle(
    site: Site | TrajectorySite, out: Path, *, with_data: bool = False, heard: Callable[[str], None] = lambda name: None
) -> int:
    """Writes all of the site's files and `robots.txt`, and returns how many. Data of the sample are never left out.

    `heard`: is told the name of each file once it is written.

    Raises InputError for a folder of something else, and for trajectories without `with_data`: they are data alone.
    """
    with_data = with_data or site.is_sample
    if not (with_data or isinstance(site, Site)):
        sentence = "trajectories are tasks and pictures alone; add `with_data` where they may be given away"
        raise InputError("with_data", sentence=sentence)
    old, written, bare = _listed(out), ["robots.txt"], dict[str, str]()
    # listed first, so that one that was interrupted can be written anew
    _write_list(out, old)
    for name in site.names(pictures=with_data):
        file = site.get(name)
        if file is None or (name == "replies.json" and not with_data):
            continue
        content = file.content
        if isinstance(site, Site) and (name in ("index.json", CHECKS) or name.startswith("step/")):
            value = json.loads(content)
            if name == "index.json":
                bare, value = bare_names(value), public_index(value, with_data)
            elif name == CHECKS:
                # what differs would be told in values and paths
                value = {"runs": [check and {**check, "differences": [], "not_proved": []} for check in value["runs"]]}
            else:
                value = public_step(value, bare, with_data)
            content = json_file(value).content
        _write(out / name, content)
        written.append(name)
        heard(name)
    _write(out / "robots.txt", ROBOTS.encode())
    for name in old - set(written):
        (out / name).unlink(missing_ok=True)
    _write_list(out, written)
    return len(written)


def _write_list(out: Path, names: Iterable[str]) -> None:
    _write(out / LIST, json.dumps({"schema": 1, "files": sorted(names)}, indent=1).encode())


def _listed(out: Path) -> set[str]:
    """The files of the bundle that is in the folder. Raises InputError."""
    if out.exists() and not out.is_dir():
        raise InputError("bundle", sentence=f"{out} is a file; name a folder")
    if not out.exists() or not any(out.iterdir()):
        return set()
    try:
        named: Any = json.loads((out / LIST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(
            "bundle", sentence=f"{out} holds other files; name a new folder, an empty one, or one with a bundle"
        ) from None
    # only names that a bundle may have: another program may have written the list
    listed = named if isinstance(named, list) else []
    return {name for name in listed if isinstance(name, str) and _OURS.fullmatch(name)}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda draft: draft.write_bytes(content))


# --- the index ---


def bare_names(index: Mapping[str, Any]) -> dict[str, str]:
    """Name of each run -> the same without its folder, with a number where two have the same."""
    names = [run["name"] for run in index["runs"]]
    bare = [_SEPARATOR.split(name)[-1] for name in names]
    return {
        name: f"{short} ({place})" if bare.count(short) > 1 else short
        for place, (name, short) in enumerate(zip(names, bare, strict=True), 1)
    }


def public_index(index: Mapping[str, Any], with_data: bool) -> dict[str, Any]:
    """`index.json` without paths and, without data, without the texts of tasks."""
    names, comparison, tasks = bare_names(index), index["comparison"], index["tasks"]
    problem = comparison and comparison["problem"]
    return {
        **index,
        "with_data": with_data,
        "title": " | ".join(names.values()),
        "tasks": tasks if with_data else {**tasks, "texts": ["" for _ in tasks["texts"]]},
        "runs": [_public_run(run, names, bool(index["is_sample"])) for run in index["runs"]],
        "comparison": comparison and {**comparison, "problem": problem and _sentence(problem, names)},
    }


def _public_run(run: Mapping[str, Any], names: Mapping[str, str], is_sample: bool) -> dict[str, Any]:
    results = run["results"]
    if results and not is_sample:
        results = {name: results[name] for name in RESULTS if name in results}
    return {
        **run,
        "name": names[run["name"]],
        **{name: _bare(run[name]) for name in FACTS},
        "settings": _bare({name: run["settings"][name] for name in SETTINGS if name in run["settings"]}),
        "results": results and _bare(results),
        "problems": [_sentence(problem, names) for problem in run["problems"]],
    }


def _bare(value: Any) -> Any:
    """A value of JSON in which only the last part of each path of this machine is left."""
    if isinstance(value, dict):
        return {_bare(name): _bare(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_bare(inner) for inner in value]
    if not isinstance(value, str):
        return value
    provider, _, rest = value.partition("/")
    if _is_local(value):
        return _last_part(value)
    is_file = provider in PROVIDERS and PROVIDERS[provider].is_file
    return f"{provider}/{_last_part(rest)}" if rest and (is_file or _is_local(rest)) else value


def _is_local(text: str) -> bool:
    try:
        return _LOCAL.search(text) is not None or Path(text).exists()
    except (OSError, ValueError):
        return False


def _last_part(path: str) -> str:
    return _SEPARATOR.split(path.rstrip("/\\"))[-1]


def _sentence(problem: str, names: Mapping[str, str]) -> str:
    """A problem without its reason, where that names a path."""
    for name, bare in names.items():
        problem = problem.replace(name, bare)
    head = problem.partition(": ")[0]
    if not _SEPARATOR.search(problem):
        return problem
    return "This cannot be shown." if _SEPARATOR.search(head) else f"{head}."


# --- steps ---


def public_step(step: Mapping[str, Any], names: Mapping[str, str], with_data: bool) -> dict[str, Any]:
    """`step/KEY.json` without paths and, without data, of the same shape. `names`: as `bare_names` gives them."""
    if with_data:
        runs = [
            run and {**run, "detail": run["detail"] if run["ran"] else _bare(run["detail"])} for run in step["runs"]
        ]
        return {**step, "runs": runs, "problems": [_sentence(problem, names) for problem in step["problems"]]}
    truth = step["truth"]
    return {
        **{name: step[name] for name in STEP},
        "task": "",
        "history": [],
        "subdomain": "",
        "truth": {**{name: truth[name] for name in ("op", "original_op", "target", "positives")}, "value": None},
        "picture": None,
        "elements": [
            {
                **{name: element[name] for name in ("id", "rank", "score", "positive")},
                **{"tag": "", "text": "", "path": "", "box": None},
            }
            for element in step["elements"]
            if element["rank"] is not None or element["positive"]
        ],
        "runs": [run and _run_without_data(run) for run in step["runs"]],
        "problems": [LEFT_OUT],
    }


def _run_without_data(run: Mapping[str, Any]) -> dict[str, Any]:
    predicted, note = run["predicted"], run["relabelled"]
    return {
        **{name: run[name] for name in RUN},
        "detail": "",
        "answer_sha256": None,
        "relabelled": note and {**note, "note": "", "annotator": ""},
        "also_right": run["also_right"],
        "predicted": {**{name: predicted[name] for name in ("element_id", "op", "point")}, "value": None},
        "groups": [_group_without_data(group) for group in run["groups"]],
    }


def _group_without_data(group: Mapping[str, Any]) -> dict[str, Any]:
    parsed = group["parsed"]
    return {
        **{name: group[name] for name in GROUP},
        **{"act": "", "system": None, "examples": [], "prompts": None, "replies": []},
        "images": [None for _ in group["images"]],
        "parsed": {**{name: parsed[name] for name in ("element_id", "op", "failure")}, "value": None, "detail": ""},
    }

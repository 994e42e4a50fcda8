"""What the paper's tables show of finished runs, as plain values: figures by method and split, the paper's beside them, and
where each comes from. `tables/` draws it. Opens no data set and no page, but for Table 1 where a data set is named.

Methods are matched with the paper's rows by grounding and model, where these are the same beyond doubt (`paper/`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec

from seeact_offline.files.digest import file_digest
from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import read_regular
from seeact_offline.records import DatasetError, InputError
from seeact_offline.runs.finished import NOT_RUN
from seeact_offline.runs.folder import read_manifest, read_results, read_steps
from seeact_offline.scoring import aggregate
from seeact_offline.scoring.inference import wilson
from seeact_offline.scoring.paired import METRICS as SCORES
from seeact_offline.scoring.paired import UNKNOWN
from seeact_offline.scoring.protocols import PROTOCOLS, Protocol, headline
from seeact_offline.scoring.results import Results
from seeact_offline.scoring.step_scores import StepRow
from seeact_offline.scoring.waterfall import LEFT_OUT

NUMBERS = (1, 2, 3, 4, 5)
"""Of the paper's tables."""
METRICS = tuple(SCORES)
OFFLINE = ("offline0", "offline1")
FIGURES = {2: METRICS, 3: METRICS[2:], 4: OFFLINE}
SPLITS = ("cross_task", "cross_website", "cross_domain")
POOLED = "pooled"
SAMPLE = "sample"
GRID = "grid.json"
ABLATION = "table.json"
_EXPECTED = "a run folder with a results.json, or a folder of such"
_NAMED = frozenset({"split", "grounding", "model", "dataset", "dataset_fingerprint", "limit", "tasks"})
"""Settings that tell no two methods apart, or stand in a method's name anyway."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A finished run, as far as tables need it."""

    path: Path
    named: str
    """Its path as the table names it."""
    sha256: str
    """Of its `results.json`."""
    results: Results
    settings: Mapping[str, Any]
    """Of its manifest, with the protocol of its results."""
    steps_digest: str
    """Of the keys of the steps that count, in any order."""

    @property
    def protocol(self) -> Protocol:
        """The usual one where it is not known."""
        return PROTOCOLS.get(self.results.protocol, PROTOCOLS["seeact"])

    @property
    def method(self) -> str:
        return f"{self.results.grounding}, {self.results.model}"


def tabulate(
    number: int,
    named: Sequence[Path],
    base: Path | None = None,
    dataset: str | None = None,
    by: str | None = None,
    stderr: bool = False,
) -> dict[str, Any]:
    """The content of one of the paper's tables, all shares as fractions.

    `named`: run folders, folders of them, for Table 5 also one folder of `ablate-markup`; for Table 1 one file with what
    `stats --json` prints, or none and a `dataset`, which is then counted. `base`: the folder that paths are given relative
    to, the working folder unless given. `by`: `website` or `domain`, for Tables 2 and 3. `stderr`: whether standard errors are
    shown.

    Raises InputError for what is no such thing, and for runs that have no place in one table.
    """
    base = base or Path.cwd()
    if by is not None and number not in (2, 3):
        raise InputError("by", "table 2 or 3 with it", f"table {number}")
    if stderr and number == 1:
        raise InputError("stderr", "a table of runs with it", "table 1")
    if number == 1 and dataset is not None:
        return _counted(dataset)
    if number == 1:
        return _table1(_only(named, "one file with the output of `stats --json`"), base)
    if number == 5 and len(named) == 1 and (named[0] / ABLATION).is_file():
        return _ablation(named[0], base) | {"stderr": stderr}
    found, unfinished = _found(named)
    runs = [_read(path, base) for path in found]
    made = _markup(runs) if number == 5 else _by_method(number, runs, by)
    notes = [f"Without results yet, and not in the table: {', '.join(_relative(path, base) for path in unfinished)}."]
    made["notes"] = [*made["notes"], *(notes if unfinished else [])]
    return made | {"by": by, "stderr": stderr} | _traced(number, [run.named for run in runs], runs)


def find_runs(named: Sequence[Path]) -> list[Path]:
    """The run folders that these are or hold, each once, in order. Raises InputError where there is none."""
    return _found(named)[0]


# --- runs ---


def _found(named: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Run folders, and those beside them that have no results."""
    if not named:
        raise InputError("runs", _EXPECTED, "none")
    found: dict[Path, Path] = {}
    unfinished: list[Path] = []
    for path in named:
        folders = [path] if (path / "results.json").is_file() else _children(path)
        done = [folder for folder in folders if (folder / "results.json").is_file()]
        unfinished += [folder for folder in folders if folder not in done]
        if not done:
            raise InputError("runs", _EXPECTED, str(path))
        found |= {folder.resolve(): folder for folder in done if folder.resolve() not in found}
    return list(found.values()), unfinished


def _children(path: Path) -> list[Path]:
    """The folders of runs in a folder: in the order of its grid, if it is one, else by name."""
    folders = {child.name: child for child in sorted(path.glob("*/")) if (child / "manifest.json").is_file()}
    if (path / GRID).is_file():
        names = [cell["folder"] for cell in _json(path / GRID).get("cells", [])]
        return [folders[name] for name in names if name in folders]
    return list(folders.values())


def _read(path: Path, base: Path) -> _Run:
    """Raises InputError for files that are not those of a run."""
    manifest, found = read_manifest(path), read_results(path)
    settings = {**manifest.settings, "protocol": found.protocol}
    keys = sorted(line.key for line in _counted_lines(path))
    digest = hashlib.sha256(json.dumps(keys).encode()).hexdigest()
    return _Run(path, _relative(path, base), file_digest(path / "results.json"), found, settings, digest)


def _counted_lines(run: Path) -> list[StepRow]:
    """The steps that count. Raises InputError."""
    return [line for line in read_steps(run).values() if line.outcome != LEFT_OUT]


def _json(path: Path) -> dict[str, Any]:
    try:
        content = read_json(read_regular(path))
    except FormatError as error:
        raise InputError("runs", error.expected, f"{error.got} in {path}") from None
    except OSError as error:
        raise InputError("runs", "a readable file", f"{path}: {error.strerror}") from None
    if not isinstance(content, dict):
        raise InputError("runs", "a JSON object", str(path))
    return content


def _relative(path: Path, base: Path) -> str:
    return Path(os.path.relpath(path, base)).as_posix()


def _only(named: Sequence[Path], expected: str) -> Path:
    if len(named) != 1:
        raise InputError("runs", expected, f"{len(named)} paths")
    return named[0]


# --- where figures come from ---


def _traced(number: int, inputs: Sequence[str], runs: Sequence[_Run]) -> dict[str, Any]:
    """`inputs`: what the table is made again of, so no folder that runs may be added to."""
    return {
        "table": number,
        "inputs": list(inputs),
        "runs": [_source(run) for run in runs],
        "is_sample": any(run.settings.get("dataset") == SAMPLE for run in runs),
    }


def _source(run: _Run) -> dict[str, Any]:
    """What identifies a run, and what its figures rest on."""
    results = run.results
    return {
        "run": run.named,
        "results_sha256": run.sha256,
        "split": results.split,
        **{name: run.settings.get(name) for name in ("dataset", "dataset_fingerprint", "protocol", "seed")},
        "n_tasks": results.n_tasks,
        "n_steps": results.n_steps,
        "not_run": results.n_not_run,
        "left_out": results.left_out,
        "complete": results.complete,
    }


# --- Tables 2 to 4 ---


def _by_method(number: int, runs: Sequence[_Run], by: str | None) -> dict[str, Any]:
    """Runs that differ in their seed alone are one row."""
    methods: dict[str, dict[str, list[_Run]]] = defaultdict(lambda: defaultdict(list))
    for run, label in zip(runs, _labels(runs, pooled="seed"), strict=True):
        methods[label][run.results.split].append(run)
    seen = {run.results.split for run in runs}
    splits = [*(split for split in SPLITS if split in seen), *sorted(seen - set(SPLITS))]
    rows = [
        _row(number, label, {split: _of_one_data(found[split]) for split in splits if split in found}, by)
        for label, found in methods.items()
    ]
    notes = _incomparable(runs, number)
    return {
        "schema": 1,
        "metrics": FIGURES[number],
        "splits": [POOLED] if number == 4 else splits,
        "rows": rows,
        "paper": paper_table(number),
        "settings": _settings_of_all(runs),
        "comparable": not notes,
        "notes": notes,
    }


def _row(number: int, method: str, found: Mapping[str, Sequence[_Run]], by: str | None) -> dict[str, Any]:
    """`found`: the method's runs by split, those of one split of several seeds."""
    runs = [run for some in found.values() for run in some]
    if number == 4:
        cells, traced = {POOLED: _pooled(runs)}, {POOLED: [run.named for run in runs]}
    else:
        parts = [(split, some, group) for split, some in found.items() for group in _groups(some, by)]
        cells = {_key(split, group): _cell(number, some, by, group) for split, some, group in parts}
        traced = {_key(split, group): [run.named for run in some] for split, some, group in parts}
    return {"method": method, "cells": cells, "splits": list(found), "paper": _paper_row(number, runs), "runs": traced}


def _key(split: str, group: str | None) -> str:
    """The name of a cell."""
    return split if group is None else f"{split}, {group}"


def _of_one_data(runs: list[_Run]) -> list[_Run]:
    """Raises InputError for runs of a cell that are over other steps or data."""
    first = runs[0]
    for run in runs:
        if (run.steps_digest, run.settings.get("dataset_fingerprint")) != (
            first.steps_digest, first.settings.get("dataset_fingerprint")
        ):  # fmt: skip
            raise InputError("runs", "runs of one cell over the same steps", f"{first.named} and {run.named}")
    return runs


def _settings_of_all(runs: Sequence[_Run]) -> dict[str, Any]:
    """Those that have one value in all runs, but those that a row names anyway."""
    named = {"split", "grounding", "model", "limit", "tasks"}
    first = {name: value for name, value in runs[0].settings.items() if value is not None and name not in named}
    return {name: value for name, value in first.items() if all(run.settings.get(name) == value for run in runs)}


def _labels(runs: Sequence[_Run], pooled: str = "") -> list[str]:
    """Each run's method, with the settings that part runs which would otherwise stand in one cell. Raises InputError.

    `pooled`: a setting in which runs of one cell differ.
    """
    names = {name for run in runs for name in run.settings} - _NAMED - {pooled}
    rivals = {run.method: [other for other in runs if other.method == run.method] for run in runs}
    parted = {
        method: sorted(name for name in names if len({json.dumps(run.settings.get(name)) for run in found}) > 1)
        for method, found in rivals.items()
        if len({run.results.split for run in found}) < len(found)
    }
    labels = [
        ", ".join([run.method, *(f"{name} {run.settings.get(name)}" for name in parted.get(run.method, ()))])
        for run in runs
    ]
    taken: dict[tuple[str, str, str], _Run] = {}
    for run, label in zip(runs, labels, strict=True):
        other = taken.setdefault((label, run.results.split, json.dumps(run.settings.get(pooled))), run)
        if other is not run:
            got = f"{other.named} and {run.named}, both {label} on {run.results.split}"
            raise InputError("runs", "one run a cell of the table", got)
    return labels


def _groups(runs: Sequence[_Run], by: str | None) -> list[str | None]:
    """Websites or domains of the runs' steps, in order of their names; one None without `by`."""
    if by is None:
        return [None]
    return sorted({getattr(line, by) or UNKNOWN for line in read_steps(runs[0].path).values()})


def _cell(number: int, runs: Sequence[_Run], by: str | None, group: str | None) -> dict[str, Any]:
    if by is None:
        figures = {name: _over_seeds([_figure(run, name) for run in runs]) for name in FIGURES[number]}
        return figures | _sizes(runs[:1]) | {"not_run": _sizes(runs)["not_run"]}
    parts = [
        (run, [line for line in read_steps(run.path).values() if (getattr(line, by) or UNKNOWN) == group])
        for run in runs
    ]
    figures = {name: _over_seeds([_figure_of(run, lines, name) for run, lines in parts]) for name in FIGURES[number]}
    counted = [line for line in parts[0][1] if line.outcome != LEFT_OUT]
    return figures | {
        "n_tasks": len({line.annotation_id for line in counted}),
        "n_steps": len(counted),
        "not_run": sum(line.outcome in NOT_RUN for _, lines in parts for line in lines),
        "left_out": len(parts[0][1]) - len(counted),
    }


def _over_seeds(figures: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The mean, with the sample standard deviation and the number of runs, where there are several."""
    known = [figure for figure in figures if figure is not None]
    if len(known) < 2 or len(known) < len(figures):
        return figures[0] if len(figures) == 1 else None
    means = {name: fmean(figure[name] for figure in known) for name in ("macro", "micro", "value")}
    spread = {"sd": stdev(figure["value"] for figure in known), "n_runs": len(known)}
    return {**known[0], **means, **spread, "ci95": None, "se": None, "method": "seeds"}


def _figure(run: _Run, name: str) -> dict[str, Any] | None:
    """Both averages, and of the one that the protocol quotes its name, value, interval and standard error."""
    found = getattr(run.results, name)
    return None if found is None else _with_headline(run.results.protocol, name, asdict(found))


def _figure_of(run: _Run, lines: Sequence[StepRow], name: str) -> dict[str, Any] | None:
    """The figure over these steps alone, averaged as the run's protocol does."""
    if getattr(run.results, name) is None:
        return None
    counted = [line for line in lines if line.outcome != LEFT_OUT]
    average = run.protocol.averaging_of_f1 if name == "operation_f1" else run.protocol.averaging
    values = [getattr(line, SCORES[name]) or 0.0 for line in counted]
    found = average([line.truth for line in counted]).metric(values, run.settings.get("seed", 0))
    return _with_headline(run.results.protocol, name, asdict(found))


def _with_headline(protocol: str, name: str, figure: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: figure[key] for key in ("macro", "micro", "method")}, **headline(protocol, name, figure)}


def _sizes(runs: Sequence[_Run]) -> dict[str, Any]:
    results = [run.results for run in runs]
    return {
        "n_tasks": sum(one.n_tasks for one in results),
        "n_steps": sum(one.n_steps for one in results),
        "not_run": sum(one.n_not_run for one in results),
        "left_out": sum(one.left_out for one in results),
    }


def _pooled(runs: Sequence[_Run]) -> dict[str, Any]:
    """Whole tasks of all splits together, each task counting the same. Raises InputError for splits of other seeds."""
    seeds: dict[Any, list[_Run]] = defaultdict(list)
    for run in runs:
        seeds[run.settings.get("seed")].append(run)
    one, *others = seeds.values()
    for other in others:
        if [run.results.split for run in other] != [run.results.split for run in one]:
            raise InputError(
                "runs", "runs of the same seeds on every split of a row", f"other seeds of {other[0].method}"
            )
    sizes = _sizes(one) | {"not_run": _sizes(runs)["not_run"]}
    return {
        name: _over_seeds([_share(some, name, sizes["n_tasks"]) for some in seeds.values()]) for name in OFFLINE
    } | sizes


def _share(runs: Sequence[_Run], name: str, n_tasks: int) -> dict[str, Any] | None:
    """None where a run asks for no element, so that no task is done or not."""
    shares = [run.results.task_success_rate.get(name) for run in runs]
    if None in shares or not n_tasks:
        return None
    done = sum(round((share or 0.0) * run.results.n_tasks) for share, run in zip(shares, runs, strict=True))
    share = done / n_tasks
    se = (share * (1 - share) / n_tasks) ** 0.5
    shared = {"value": share, "ci95": list(wilson(share, n_tasks)), "se": se, "method": "wilson"}
    return {"macro": share, "micro": share, "average": "share of tasks", **shared}


def _incomparable(runs: Sequence[_Run], number: int) -> list[str]:
    """What parts runs that stand in one table, a sentence each."""
    notes = []
    protocols = _grouped((run.results.protocol, run.named) for run in runs)
    if len(protocols) > 1:
        notes.append(f"Scored by different protocols, whose figures do not compare: {_listed(protocols)}.")
    for split in dict.fromkeys(run.results.split for run in runs):
        beside = [run for run in runs if run.results.split == split]
        data = _grouped((str(run.settings.get("dataset_fingerprint")), run.named) for run in beside)
        steps = _grouped((run.steps_digest, f"{run.named} ({run.results.n_steps})") for run in beside)
        if len(data) > 1:
            notes.append(f"Of different data on {split}: {_listed(data)}.")
        elif len(steps) > 1:
            notes.append(f"Over different steps of {split}: {'; '.join(map(', '.join, steps.values()))}.")
    if number == 4:
        parts = _grouped((run.method, run.results.split) for run in runs)
        if len({tuple(sorted(set(splits))) for splits in parts.values()}) > 1:
            notes.append(f"Pooled over different splits: {_listed(parts)}.")
    cut = [run.named for run in runs if not run.results.complete]
    return [*notes, *([f"Not all steps that were asked for: {', '.join(cut)}."] if cut else [])]


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for group, member in pairs:
        groups[group].append(member)
    return groups


def _listed(groups: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{group}: {', '.join(members)}" for group, members in groups.items())


# --- the paper ---


@cache
def paper_table(number: int) -> dict[str, Any]:
    """A table of the paper, in percent, with its source."""
    return dict(json.loads((files("seeact_offline") / "paper" / f"table{number}.json").read_text(encoding="utf-8")))


def _paper_row(number: int, runs: Sequence[_Run]) -> dict[str, Any] | None:
    """The paper's row of the same method; None where there is none beyond doubt, on the bundled sample, or for another pool."""
    results, splits = runs[0].results, {run.results.split for run in runs}
    if results.no_image or any(run.settings.get("dataset") == SAMPLE for run in runs):
        return None
    if number == 4 and splits != set(SPLITS):
        return None
    model = results.model.rsplit("/", 1)[-1].casefold()
    rows = paper_table(number)["rows"]
    return next((row for row in rows if row["grounding"] == results.grounding and model in row["models"]), None)


# --- Table 5 ---


def _ablation(folder: Path, base: Path) -> dict[str, Any]:
    """`table.json` of `ablate-markup`, and the runs that are its rows."""
    table = _json(folder / ABLATION)
    if not isinstance(table.get("rows"), list) or "best" not in table:
        raise InputError("runs", f"a {ABLATION} of ablate-markup", str(folder / ABLATION))
    runs = [_read(folder / row["folder"], base) for row in table["rows"]]
    return table | {"notes": []} | _traced(5, [_relative(folder, base)], runs)


def _markup(runs: Sequence[_Run]) -> dict[str, Any]:
    """Runs by annotation as rows of the ablation's table. Raises InputError for runs that cannot be its rows."""
    from seeact_offline.runs.markup_ablation import Marking, paper_table5

    for run in runs:
        if run.results.marks is None:
            raise InputError(
                "runs", "runs by annotation, or a folder of ablate-markup", f"{run.named}, by {run.results.grounding}"
            )
    first = runs[0]
    for name, what in (("split", "split"), ("model", "model"), ("protocol", "protocol")):
        other = next((run for run in runs if getattr(run.results, name) != getattr(first.results, name)), None)
        if other is not None:
            got = f"{getattr(first.results, name)} in {first.named} and {getattr(other.results, name)} in {other.named}"
            raise InputError("runs", f"runs of one {what}", got)
    if len({run.steps_digest for run in runs}) > 1:
        sizes = ", ".join(f"{run.named} ({run.results.n_steps})" for run in runs)
        raise InputError("runs", "runs over the same steps", sizes)
    cells = [Marking(run.results.marks, run.results.mark_position, bool(run.results.mark_turn1)) for run in runs]  # type: ignore[arg-type]
    rows = [_markup_row(run, cell.turn1, paper_table5().get(cell)) for run, cell in zip(runs, cells, strict=True)]
    best = max(runs, key=lambda run: (_figure(run, "step_success_rate") or {"value": 0.0})["value"])
    usage = {name: [run.results.usage[name] for run in runs] for name in first.results.usage}
    return {
        "schema": 1,
        **first.settings,
        "n_tasks": first.results.n_tasks,
        "n_steps": first.results.n_steps,
        "complete": all(run.results.complete for run in runs),
        "best": best.named,
        "rows": rows,
        "usage": {name: None if None in amounts else sum(amounts) for name, amounts in usage.items()},
        "notes": [],
    }


def _markup_row(run: _Run, turn1: str, paper: Mapping[str, float] | None) -> dict[str, Any]:
    results = run.results
    return {
        "kind": results.marks,
        "position": results.mark_position,
        "turn1": turn1,
        "folder": run.named,
        **{name: asdict(getattr(results, name)) for name in METRICS},
        "difference_to_best": None,
        "paper": None if paper is None else dict(paper),
        "usage": results.usage,
        "replies_reused": results.notes.get("reply_reused", 0),
        "failed_steps": results.n_not_run,
        "unreadable_replies": sum(results.reply_failures.values()),
    }


# --- Table 1 ---


class _Stats(msgspec.Struct):
    """One split as `stats --json` has it. An average is None if no row has the value."""

    tasks: int
    steps: int
    subdomains: int
    websites: int
    actions_a_task: float | None
    elements_a_page: float | None
    html_tokens_a_page: float | None
    visual_tokens_at_full_size: float | None
    faulty_rows: int


class _StatsFile(msgspec.Struct):
    tokenizer: str
    splits: dict[str, _Stats]


def _table1(path: Path, base: Path) -> dict[str, Any]:
    """From what `stats --json` printed into a file."""
    try:
        found = typed(_json(path), _StatsFile)
    except FormatError as error:
        raise InputError(
            "runs", f"what `stats --json` prints, with {error.expected}", f"{error.got} in {path}"
        ) from None
    named = _relative(path, base)
    source = {"run": named, "results_sha256": file_digest(path)}
    return _sized(found) | {"inputs": [named], "runs": [source], "is_sample": False}


def _counted(dataset: str) -> dict[str, Any]:
    """By a pass over every split that the data set has. Raises InputError where it has none."""
    from seeact_offline.dataset import SPLITS as ALL_SPLITS
    from seeact_offline.dataset import open_split
    from seeact_offline.dataset.stats import dataset_stats
    from seeact_offline.ranking.tokenizers import open_tokenizer

    tokenizer, last = open_tokenizer("words"), list(ALL_SPLITS)[-1]
    splits: dict[str, _Stats] = {}
    sources: list[dict[str, Any]] = []
    for name in ALL_SPLITS:
        try:
            split = open_split(dataset, name)
        except DatasetError as error:
            if error.argument != "split" or (name == last and not splits):
                raise
            continue
        splits[name] = msgspec.convert(asdict(dataset_stats(split.steps(), name, tokenizer.count)), _Stats)
        sources.append(
            {"run": dataset, "results_sha256": None, "split": name, "dataset_fingerprint": split.fingerprint}
        )
    found = _StatsFile(tokenizer.name, splits)
    return _sized(found) | {"inputs": [], "dataset_counted": dataset, "runs": sources, "is_sample": dataset == SAMPLE}


def _sized(found: _StatsFile) -> dict[str, Any]:
    paper = paper_table(1)
    return {"schema": 1, "table": 1, **msgspec.to_builtins(found), "paper": paper, "notes": []}


# --- figures ---

BANDS = {"1-4": (1, 4), "5-9": (5, 9), "10-18": (10, 18), "above 18": (19, None)}
"""How hard a task is: the actions that it takes. The first three are the bands of the paper's Figure 3."""


def difficulty(named: Sequence[Path]) -> dict[str, Any]:
    """Step SR of each run by the number of actions of the task; bands without a task of any run are left out.

    Raises InputError for runs that do not say how many actions their tasks take.
    """
    runs = [_read(path, Path.cwd()) for path in find_runs(named)]
    lines = [_counted_lines(run.path) for run in runs]
    if not any(line.n_actions for found in lines for line in found):
        raise InputError("runs", "runs whose steps.jsonl says n_actions", f"{runs[0].named}; score it again")
    labels = _labels_with_split(runs)
    bands = [_bands(run, found) for run, found in zip(runs, lines, strict=True)]
    present = [band for band in BANDS if any(found[band]["n_tasks"] for found in bands)]
    known = [{"run": r.named, "label": label, "bands": b} for r, label, b in zip(runs, labels, bands, strict=True)]
    return {"bands": present, "runs": known}


def waterfall(named: Sequence[Path]) -> dict[str, Any]:
    """Where one run loses its steps: shares of Step SR, in the average that its protocol quotes. Raises InputError for several runs, or one without elements."""
    runs = [_read(path, Path.cwd()) for path in find_runs(named)]
    if len(runs) != 1:
        raise InputError("runs", "one run, whose losses are drawn", f"{len(runs)} of them")
    results = _json(runs[0].path / "results.json")
    causes = results.get("waterfall")
    if not isinstance(causes, dict) or not all(isinstance(loss, dict) for loss in causes.values()):
        raise InputError("runs", "a run whose results say what each cause costs", f"{runs[0].named}; score it again")
    average = runs[0].protocol.average_of("step_success_rate")
    losses = [{"cause": cause, "share": loss[average], "steps": loss["steps"]} for cause, loss in causes.items()]
    measure = "right operations" if runs[0].results.step_success_rate is None else "Step SR"
    done = results.get("step_success_rate")
    rest = done[average] if done else 1.0 - sum(loss["share"] for loss in losses)
    return {
        "label": _labels_with_split(runs)[0],
        "losses": losses,
        "rest": rest,
        "measure": measure,
        "average": average,
    }


def recall(named: Sequence[Path]) -> dict[str, Any]:
    """Share of the steps of each split whose right element is among the first k ranked, for every k that was asked for; what
    runs over the same ranking have in common stands once. Raises InputError where nothing was ranked.
    """
    curves: dict[tuple[str, tuple[float, ...]], dict[str, Any]] = {}
    for path in find_runs(named):
        run = _read(path, Path.cwd())
        if run.settings.get("top_k"):
            label, shares = f"{run.settings.get('ranker')}, {run.results.split}", _recall(run)
            curves.setdefault((label, tuple(shares)), {"label": label, "recall": shares})
    if not curves:
        raise InputError("runs", "runs that rank candidates", "none")
    return {"curves": list(curves.values())}


def cost(named: Sequence[Path]) -> dict[str, Any]:
    """What a task costs and Step SR. In calls where some run's price is not known, or none paid anything."""
    runs = [run for path in find_runs(named) if (run := _read(path, Path.cwd())).results.step_success_rate]
    if not runs:
        raise InputError("runs", "runs that ask for an element", "none")
    prices = [run.results.usage.get("cost_usd") for run in runs]
    unit = "cost_usd" if None not in prices and any(prices) else "calls"
    return {
        "unit": unit,
        "runs": [
            {
                "run": run.named,
                "label": label,
                "a_task": run.results.usage[unit] / max(1, run.results.n_tasks),
                "step_success_rate": _figure(run, "step_success_rate"),
            }
            for run, label in zip(runs, _labels_with_split(runs), strict=True)
        ],
    }


def _labels_with_split(runs: Sequence[_Run]) -> list[str]:
    """With the average too that a run's protocol quotes, where these differ."""
    parting = [
        [run.results.split for run in runs],
        [run.protocol.average_of("step_success_rate") for run in runs],
    ]
    told = [one for one in parting if len(set(one)) > 1]
    return [", ".join(parts) for parts in zip(_labels(runs), *told, strict=True)]


def _bands(run: _Run, lines: Sequence[StepRow]) -> dict[str, dict[str, Any]]:
    return {
        band: _band(run, [line for line in lines if least <= line.n_actions <= (most or line.n_actions)])
        for band, (least, most) in BANDS.items()
    }


def _band(run: _Run, lines: Sequence[StepRow]) -> dict[str, Any]:
    figure = _figure_of(run, lines, "step_success_rate") or {}
    return {"n_tasks": len({line.annotation_id for line in lines}), **figure}


def _recall(run: _Run) -> list[float]:
    """For k = 1, 2, ... Steps without a right element count as missed."""
    ranks = [line.best_rank for line in _counted_lines(run.path)]
    return [aggregate.recall_at_k(ranks, k) for k in range(1, run.settings["top_k"] + 1)]

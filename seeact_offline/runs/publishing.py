"""Publishes a run: ids, scores and hashes, never pages, prompts, replies, tasks or typed values.

The test sets must not be redistributed in plain text; a hash of each prediction lets whoever holds the run show later that it
is the one that was scored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.dataset import SPLITS, open_split
from seeact_offline.files.digest import file_digest
from seeact_offline.files.journal import Journal
from seeact_offline.files.redaction import redact
from seeact_offline.files.whole import replace_text
from seeact_offline.records import InputError, StepKey
from seeact_offline.scoring.protocols import headline

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

METRICS = ("element_accuracy", "operation_f1", "step_success_rate")
TASK_METRICS = ("offline0", "offline1")
STEP_FIELDS = ("annotation_id", "action_uid", "element", "operation_f1", "success", "outcome")
"""What is exported of a line of `steps.jsonl`."""
_NAMED = ("grounding", "model", "ranker", "top_k", "merge", "protocol", "seed", "dataset_fingerprint")
"""Settings that an entry's notes name."""


@dataclass(frozen=True, slots=True)
class ExportFiles:
    """The files of an export."""

    entries: Path
    """`.eval_results/seeact-offline.yaml`, to be put into a model's repository as it is."""
    steps: Path
    """`steps.jsonl`: a step a line, with the fields STEP_FIELDS and `prediction_sha256`."""


def export(run: Path, out: Path, dataset_id: str | None = None) -> ExportFiles:
    """Writes a finished run's scores into `out`. The same run gives the same bytes.

    `dataset_id`: the benchmark's id on the hub; None: the data set that the run names, which must then be one of the hub.
    Raises InputError where it is not, for steps of the bundled sample, which is on no hub, for a run without results and for
    one whose files are of different steps.
    """
    from huggingface_hub import eval_result_entries_to_yaml

    results, rows = _read_results(run), list(_steps(run))
    _refuse_sample(rows, dataset_id)
    entries = eval_result_entries_to_yaml(list(_entries(run, results, dataset_id or _hub_id(results))))
    made = ExportFiles(out / ".eval_results" / "seeact-offline.yaml", out / "steps.jsonl")
    steps = "".join(f"{json.dumps(row)}\n" for row in rows)
    for path, text in ((made.entries, _yaml(entries)), (made.steps, steps)):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, redact(text))
    return made


def _read_results(run: Path) -> dict[str, Any]:
    if not (run / "results.json").is_file():
        raise InputError("run", "a finished run with a results.json", str(run))
    return dict(json.loads((run / "results.json").read_text(encoding="utf-8")))


def _refuse_sample(rows: Sequence[Mapping[str, Any]], dataset_id: str | None) -> None:
    """By the steps' ids, as a copy of the sample may go by any name. Raises InputError."""
    ours = {key for split in SPLITS for key in open_split("sample", split).keys}
    taken = sum(_key(row) in ours for row in rows)
    if taken:
        got = f"{taken} of {len(rows)} steps of the bundled sample, whose figures are no other data set's"
        raise InputError(
            "dataset_id", "a run on the data set that is named", f"{got} ({dataset_id})" if dataset_id else got
        )


def _hub_id(results: Mapping[str, Any]) -> str:
    """The run's data set where its name has the form of a hub id and is no folder here. Raises InputError."""
    named = str(results.get("dataset", ""))
    if named.count("/") != 1 or named.startswith((".", "/")) or Path(named).exists():
        raise InputError("dataset_id", "the data set's id on the hub, as the run's own is none", repr(named))
    return named


def _entries(run: Path, results: Mapping[str, Any], dataset_id: str) -> Iterator[EvalResultEntry]:
    """One a figure, in per cent: the averages that the protocol quotes, and the shares of tasks done."""
    from huggingface_hub import EvalResultEntry

    notes = _notes(run, results)
    protocol = results.get("protocol", "")
    found = {name: headline(protocol, name, results[name]) for name in METRICS if results.get(name) is not None}
    values = {name: (one["value"], _said(one)) for name, one in found.items()}
    values |= {name: (results["task_success_rate"].get(name), "") for name in TASK_METRICS}
    for name, (value, said) in values.items():
        if value is not None:
            yield EvalResultEntry(
                dataset_id, f"{results['split']}/{name}", round(100 * value, 2), notes=f"{said}{notes}"
            )


def _said(found: Mapping[str, Any]) -> str:
    """The average's name and its interval, where that is known."""
    interval = (
        "" if found["ci95"] is None else "95 % interval {:.2f} to {:.2f}; ".format(*(100 * x for x in found["ci95"]))
    )
    return f"{found['average']} average; {interval}"


def _notes(run: Path, results: Mapping[str, Any]) -> str:
    """How many steps, under which settings, and the hashes of the files that the figures stand for."""
    made_of = [f"{results['n_tasks']} tasks, {results['n_steps']} steps"]
    made_of += [f"{name} {results[name]}" for name in _NAMED if results.get(name) is not None]
    made_of += [f"{name} sha256 {file_digest(run / name)}" for name in ("results.json", "predictions.jsonl")]
    return "; ".join(made_of)


def _yaml(entries: list[dict[str, Any]]) -> str:
    import yaml

    return str(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=10_000))


def _steps(run: Path) -> Iterator[dict[str, Any]]:
    """Raises InputError where a step's score has no prediction."""
    hashes = {}
    for line in Journal(run / "predictions.jsonl").lines():
        hashes[_key(json.loads(line.text))] = hashlib.sha256(line.text.encode()).hexdigest()
    for line in Journal(run / "steps.jsonl").lines():
        row = json.loads(line.text)
        key = _key(row)
        if key not in hashes:
            raise InputError("run", "a prediction for every step that was scored", f"none for {key} in {run}")
        yield {name: row[name] for name in STEP_FIELDS} | {"prediction_sha256": hashes[key]}


def _key(row: Mapping[str, Any]) -> StepKey:
    return StepKey(row["annotation_id"], row["action_uid"])

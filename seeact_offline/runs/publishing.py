"""Publishes a run: ids, scores and hashes, never pages, prompts, replies, tasks or typed values.

The test sets must not be redistributed in plain text. The hash of each prediction lets the owner of the run show later
that it is the one that was scored.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seeact_offline.dataset import SPLITS, open_split
from seeact_offline.files.digest import file_digest
from seeact_offline.files.redaction import redact
from seeact_offline.files.whole import Journal, replace_text
from seeact_offline.records import InputError, StepKey
from seeact_offline.runs.folder import read_prediction, read_results, read_steps
from seeact_offline.scoring.results import Results

STEP_FIELDS = ("annotation_id", "action_uid", "element", "operation_f1", "success", "outcome")
"""The fields of a line of `steps.jsonl` that are exported."""
_IN_NOTES = ("grounding", "model", "ranker", "top_k", "merge", "protocol", "seed", "dataset_fingerprint")
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

    `dataset_id`: the benchmark's id on the hub; None: the data set that the run names, which must then be one of the
    hub. Raises InputError where it is not, for steps of the bundled sample, which is on no hub, for a run without
    results and for one whose files are of different steps.
    """
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    if not (run / "results.json").is_file():
        raise InputError("run", sentence=f"{run} has no results.json; finish the run, or score it")
    results = read_results(run)
    steps = _steps(run)
    # by the steps' ids, as a copy of the sample may go by any name
    of_sample = {key for split in SPLITS for key in open_split("sample", split).keys} & steps.keys()
    if of_sample:
        got = f"{len(of_sample)} of {len(steps)} steps of the bundled sample, whose figures are no other data set's"
        named = f" ({dataset_id})" if dataset_id else ""
        raise InputError("dataset_id", "a run on the data set that is named", got + named)
    if not dataset_id:
        # results name the commit too
        dataset_id = (results.dataset or "").partition("@")[0]
        if dataset_id.count("/") != 1 or dataset_id.startswith((".", "/")) or Path(dataset_id).exists():
            raise InputError(
                "dataset_id",
                sentence=f"name the data set on the hub with `dataset_id`, as the run is on {dataset_id!r}",
            )
    entries = eval_result_entries_to_yaml(_entries(run, results, dataset_id))
    made = ExportFiles(out / ".eval_results" / "seeact-offline.yaml", out / "steps.jsonl")
    texts = {
        made.entries: yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=10_000),
        made.steps: "".join(f"{json.dumps(row)}\n" for row in steps.values()),
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, redact(text))
    return made


def _steps(run: Path) -> dict[StepKey, dict[str, Any]]:
    """Collects the scores of each step, with the digest of its prediction. Raises InputError where a
    step's score has no prediction."""
    hashes = {}
    for line in Journal(run / "predictions.jsonl").lines():
        hashes[read_prediction(line.text).key] = hashlib.sha256(line.text.encode()).hexdigest()
    rows = {}
    for key, step in read_steps(run).items():
        if key not in hashes:
            raise InputError("run", "a prediction for every step that was scored", f"none for {key} in {run}")
        rows[key] = {name: getattr(step, name) for name in STEP_FIELDS} | {"prediction_sha256": hashes[key]}
    return rows


def _entries(run: Path, results: Results, dataset_id: str) -> list[Any]:
    """Entries of figures in per cent: the averages that the protocol quotes, and the shares of tasks done. The notes
    name the settings and the hashes of the files that the figures stand for."""
    from huggingface_hub import EvalResultEntry

    parts = [f"{results.n_tasks} tasks, {results.n_steps} steps"]
    parts += [f"{name} {value}" for name in _IN_NOTES if (value := results.settings.get(name)) is not None]
    parts += [f"{name} sha256 {file_digest(run / name)}" for name in ("results.json", "predictions.jsonl")]
    values: dict[str, tuple[float | None, str]] = {}
    for name, quoted in results.headlines.items():
        interval = ""
        if quoted["ci95"] is not None:
            interval = "95 % interval {:.2f} to {:.2f}; ".format(*(100 * bound for bound in quoted["ci95"]))
        values[name] = quoted["value"], f"{quoted['average']} average; {interval}"
    values |= {name: (results.task_success_rate.get(name), "") for name in ("offline0", "offline1")}
    return [
        EvalResultEntry(
            dataset_id, f"{results.split}/{name}", round(100 * value, 2), notes=f"{start}{'; '.join(parts)}"
        )
        for name, (value, start) in values.items()
        if value is not None
    ]

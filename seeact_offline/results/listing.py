"""Run folders at a glance: status, date, model and figures, from `manifest.json` and `results.json` alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from seeact_offline.files.formats import FormatError, check_finite, read_json, typed
from seeact_offline.files.markdown import one_line
from seeact_offline.files.named import read_regular
from seeact_offline.files.whole import Journal
from seeact_offline.records import InputError
from seeact_offline.runs.folder import Made, RunFolder, read_results, worded
from seeact_offline.scoring.metrics import METRICS

FIGURES: Mapping[str, str] = {**METRICS, "success": "Success"}
"""Figure -> title: those of recorded steps, and that of episodes."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run folder."""

    name: str
    """Path below the folder that was listed."""
    status: str
    """finished, unfinished or unreadable."""
    date: str = ""
    """Time at which it began, in ISO 8601; empty where that is not known."""
    model: str = ""
    asked_by: str = ""
    """The grounding, or the agent."""
    split: str = ""
    steps: int = 0
    """Steps of a finished run, or those that an unfinished one has done; tasks, where it is of episodes."""
    figures: Mapping[str, float | None] = field(default_factory=dict)
    """Figure -> what its protocol quotes, a fraction."""
    problem: str = ""
    """A sentence on why it cannot be read; empty for none."""


def listed_run(path: Path, name: str) -> ListedRun:
    """Reads a folder, and never raises for one that is damaged."""
    folder = RunFolder(path)
    try:
        manifest = folder.content() if folder.manifest.is_file() else {}
        with worded(f"made of {folder.manifest}"):
            made = typed(manifest.get("made") or {}, Made)
        named = manifest.get("settings") or {}
        of = {key: value for key, value in named.items() if isinstance(value, str)}
        asked_by = of.get("agent") or of.get("grounding", "")
        date, model, split = made.date, of.get("model", ""), of.get("split", "")
        run = ListedRun(name, "unfinished", date, model, asked_by, split)
        if (path / "results.json").is_file():
            return _finished(run, path)
        done = next((file for file in (folder.predictions, path / "episodes.jsonl") if file.is_file()), None)
        return run if done is None else replace(run, steps=sum(1 for _ in Journal(done).lines()))
    except (InputError, FormatError, OSError, LookupError, AttributeError, TypeError, ValueError) as error:
        return ListedRun(name, "unreadable", problem=one_line(str(error)))


def _finished(run: ListedRun, path: Path) -> ListedRun:
    content = read_json(read_regular(path / "results.json"))
    if isinstance(content, dict) and "success" in content and "n_steps" not in content:
        check_finite(content)
        return replace(
            run, status="finished", steps=content["n_tasks"], figures={"success": content["success"]["macro"]}
        )
    results = read_results(path)
    return replace(
        run,
        status="finished",
        # `score --out` writes no manifest
        model=run.model or results.model,
        asked_by=run.asked_by or results.grounding,
        split=run.split or results.split,
        steps=results.n_steps,
        figures={metric: headline["value"] for metric, headline in results.headlines.items()},
    )

"""Builds the bundled sample: records the tasks of every site, and sorts them into the splits that its scripts name."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from seeact_offline.dataset import SPLITS
from seeact_offline.dataset.writing import to_row, write_hub_parquet
from seeact_offline.recorder.browser import CLOCK, VIEWPORT_HEIGHT, VIEWPORT_WIDTH
from seeact_offline.recorder.proving import Prover
from seeact_offline.recorder.recording import Recorder, RecordOptions
from seeact_offline.recorder.script import CHECKS, TaskScript, load_checks, load_script
from seeact_offline.records import InputError
from seeact_offline.sample import FONTS, SITES

ORIGIN = "recorded.json"
OPTIONS = RecordOptions(picture="tiff", colours=24, raw_html=False, fonts=FONTS)
ROWS_AT_ONCE = 256
"""Rows of a row group: some 40 MB of pictures to read."""

INCOMPLETE, WITHOUT_PICTURE = ("train", "cross_domain"), 150
"""Every 150th row of these splits has no picture, as some of the real data.
First runs are on the others, where every step can be asked."""


def site_names() -> list[str]:
    """The websites of the sample, in the order of their rows."""
    return sorted(path.parent.name for path in SITES.glob("*/tasks.yaml"))


def site_tasks(name: str) -> list[TaskScript]:
    """The tasks of a site, each with the changes that judge it."""
    checks = load_checks(SITES / name)
    return [replace(task, changes=checks[task.task]) for task in load_script(SITES / name / "tasks.yaml")]


def write_checks(names: Sequence[str], say: Callable[[str], None]) -> None:
    """Plays the tasks of these sites, and writes what they change beside them."""
    with Prover(OPTIONS) as prover:
        for name in names:
            checks = {task.task: prover.changes(task) for task in load_script(SITES / name / "tasks.yaml")}
            path = SITES / name / CHECKS
            path.write_text(json.dumps(checks, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            say(f"{path}: {len(checks)} tasks")


def record_site(name: str, browser: str | None = None, tasks: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """Split -> rows of one site, in the order of its script. `tasks`: at most so many."""
    rows: dict[str, list[dict[str, Any]]] = {}
    with Recorder(replace(OPTIONS, browser=browser)) as recorder:
        for task in load_script(SITES / name / "tasks.yaml")[:tasks]:
            rows.setdefault(task.split, []).extend(map(to_row, recorder.record(task)))
    return rows


def build(names: Sequence[str], out: Path, say: Callable[[str], None], workers: int = 2) -> None:
    """Records the sites, some at a time, and writes one parquet file per split.
    Raises InputError for an unknown site."""
    sites = site_names()
    unknown = next((name for name in names if name not in sites), None)
    if unknown is not None:
        raise InputError("site", f"one of {', '.join(sites)}", unknown)
    splits: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for name, rows in zip(names, pool.map(record_site, names), strict=True):
            say(f"{name}: " + ", ".join(f"{len(steps)} steps of {split}" for split, steps in rows.items()))
            for split, steps in rows.items():
                splits[split].extend(steps)
    for split, steps in splits.items():
        if split in INCOMPLETE:
            for row in steps[WITHOUT_PICTURE - 1 :: WITHOUT_PICTURE]:
                row["screenshot"] = None
        if steps:
            path = out / "data" / f"{SPLITS[split]}-00000-of-00001.parquet"
            written = write_hub_parquet(steps, path, ROWS_AT_ONCE)
            say(f"{path}: {written} steps, {path.stat().st_size / 1e6:.2f} MB")
    write_origin(out)


def write_origin(out: Path) -> None:
    """Records the browser that drew the pages: another one would lay them out a little differently."""
    with Recorder(OPTIONS) as recorder:
        origin = {"browser": recorder.version, "viewport": [VIEWPORT_WIDTH, VIEWPORT_HEIGHT], "clock": CLOCK}
    (out / ORIGIN).write_text(json.dumps(origin, indent=2) + "\n")

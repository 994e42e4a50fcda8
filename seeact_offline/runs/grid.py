"""A grid of runs: every model with every grounding on every split, each cell a run folder of its own in one folder.

The tables read such a folder as it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from seeact_offline.dataset import TEST_SPLITS, canonical_split
from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import read_regular
from seeact_offline.files.whole import replace_text
from seeact_offline.grounding.strategies import find_strategy
from seeact_offline.models import model_name
from seeact_offline.models.budget import Ledger
from seeact_offline.records import InputError
from seeact_offline.runs.ask import run_coroutine
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.model_settings import model_settings
from seeact_offline.runs.opening import OpenRun, numbered_folder, open_run, run_folder, safe_name
from seeact_offline.runs.run import Run
from seeact_offline.runs.strategy_opening import open_strategy, without_ignored
from seeact_offline.runs.watch import Watch

INDEX = "grid.json"
NAME = "grid"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a grid."""

    folder: str
    """Name of its folder inside the grid's."""
    model: str
    grounding: str
    split: str


@dataclass(frozen=True, slots=True)
class Grid:
    """The outcome of a grid."""

    path: Path
    cells: tuple[Cell, ...]
    runs: tuple[Run, ...]
    """Finished runs in the order of the cells; fewer than these where a cost limit was reached."""

    @property
    def n_left(self) -> int:
        """Cells that were not begun, because a cost limit was reached."""
        return len(self.cells) - len(self.runs)

    @property
    def n_failed(self) -> int:
        """Steps that failed to run, in all cells and their repeats."""
        return sum(run.n_failed + run.failed_repeats for run in self.runs)

    @property
    def complete(self) -> bool:
        return not self.n_left and all(run.record.complete for run in self.runs)


def evaluate_grid(
    config: EvalConfig,
    *,
    models: Sequence[Any],
    groundings: Sequence[str],
    out: Path | None = None,
    watch: Watch | None = None,
) -> Grid:
    """Runs every model with every grounding, split by split; `all` is the three test splits, each in a run of its own.

    `config`: what the cells have in common; an option that only some groundings have goes to these, and
    `max_cost` is for the whole grid. `grid.json` lists the cells in order. A grid that was stopped resumes from
    its folder, and cells can be added to a finished one. Raises InputError, for an option or model that cannot
    be used before anything is asked.
    """
    watch = watch or Watch()
    cells = _cells(config, models, groundings)
    path = Path(out) if out is not None else run_folder(config, f"{len(cells)}-cells", NAME).path
    configs = _configs(config, cells, path)
    if out is None and config.out is None and path.exists():
        suits = partial(_suits, runs=[open_run(cell_config, Watch()) for cell_config in configs])
        path = numbered_folder(RunFolder(path), suits, watch).path
        configs = _configs(config, cells, path)
    for cell_config in configs:
        open_strategy(cell_config)
        model = model_settings(cell_config, RunFolder(path))
        run_coroutine(model.source.open(replace(model.options, cache=None)).aclose())
    path.mkdir(parents=True, exist_ok=True)
    _write_index(path / INDEX, [cell for cell, _ in cells])
    runs: list[Run] = []
    spent: dict[Path, float] = {}
    if config.max_cost is not None:
        model = model_settings(configs[0], RunFolder(path))
        spent = {folder: model.ledger(RunFolder(folder)).spent for folder in path.glob("*/")}
    for number, cell_config in enumerate(configs, 1):
        watch.note(f"cell {number} of {len(configs)}: {cell_config.out}")
        others = sum(usd for folder, usd in spent.items() if folder != cell_config.out)
        left = None if config.max_cost is None else max(0.0, config.max_cost - others)
        try:
            runs.append(evaluate(cell_config.changed(max_cost=left), watch=watch))
        except InputError as error:
            if error.argument != "max_cost" or not runs:
                raise
            watch.note(f"stopped at max_cost {config.max_cost}: {len(configs) - len(runs)} cells have no answered step")
            break
        price = model_settings(cell_config, RunFolder(path)).options.price
        spent[runs[-1].path] = Ledger(RunFolder(runs[-1].path).ledger, price).spent
    return Grid(path, tuple(cell for cell, _ in cells), tuple(runs))


def _cells(config: EvalConfig, models: Sequence[Any], groundings: Sequence[str]) -> list[tuple[Cell, Any]]:
    """Each cell with its model. Raises InputError where two have one name."""
    split = canonical_split(config.split)
    splits = TEST_SPLITS if split == "all" else (split,)
    cells = []
    for model, grounding, split_name in product(models, groundings, splits):
        name = model_name(model)
        cells.append((Cell(safe_name(f"{split_name}-{grounding}-{name}"), name, grounding, split_name), model))
    folders = [cell.folder for cell, _ in cells]
    twice = next((folder for folder in folders if folders.count(folder) > 1), None)
    if twice is not None:
        raise InputError("model", sentence=f"two cells are named {twice}; name models and groundings that differ")
    return cells


def _configs(config: EvalConfig, cells: Sequence[tuple[Cell, Any]], path: Path) -> list[EvalConfig]:
    """The configuration of each cell in the grid's folder."""
    configs = []
    for cell, model in cells:
        # without the options that its grounding does not have
        option_names = {option.name for option in find_strategy(cell.grounding).options}
        own: dict[str, Any] = {name: None for name in config.grounding_options if name not in option_names}
        own |= {"model": model, "grounding": cell.grounding, "split": cell.split, "out": path / cell.folder}
        configs.append(without_ignored(config.changed(**own)))
    return configs


def _suits(folder: RunFolder, runs: Sequence[OpenRun]) -> bool:
    """True where these runs could be in the folder, and no other cells are."""
    names = [run.folder.path.name for run in runs]
    others = [path.parent.name for path in folder.path.glob("*/manifest.json") if path.parent.name not in names]
    cells = zip(names, runs, strict=True)
    return not others and all(
        RunFolder(folder.path / name).suits(run.manifest.identity, run.split.keys) for name, run in cells
    )


def _write_index(path: Path, cells: Sequence[Cell]) -> None:
    """Keeps the cells that were there before. Raises InputError for another file."""
    folders, earlier = {cell.folder for cell in cells}, []
    if path.exists():
        try:
            before = list(read_json(read_regular(path))["cells"])
        except (FormatError, KeyError, TypeError):
            raise InputError("out", f"a folder whose {INDEX} is of a grid", str(path)) from None
        earlier = [cell for cell in before if cell.get("folder") not in folders]
    index = {"schema": 1, "cells": [*earlier, *map(asdict, cells)]}
    replace_text(path, json.dumps(index, indent=2) + "\n")

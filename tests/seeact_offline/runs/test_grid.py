"""A grid: which cells it has, that it goes on from its folder, and that each option goes to the cells that have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import Completion, InputError, Request, Usage
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.grid import Grid, evaluate_grid
from seeact_offline.runs.watch import Watch
from seeact_offline.tables.methods import method_table
from seeact_offline.tables.table_input import TableInput
from tests.pages import synthetic_rows, write_parquet


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One task of one step in each test split."""
    folder = tmp_path_factory.mktemp("data")
    for split in ("test_task", "test_website", "test_domain"):
        write_parquet(synthetic_rows(1, 1, 6, seed=1), folder / f"{split}-00000-of-00001.parquet")
    return folder


class Paid:
    """Chooses none and costs a cent a call."""

    asked = 0

    async def complete(self, request: Request) -> Completion:
        Paid.asked += 1
        return Completion("ELEMENT: Z\nACTION: CLICK\nVALUE: None", Usage(calls=1, cost_usd=0.01))

    async def aclose(self) -> None:
        pass


def grid(dataset: Path, out: Path, watch: Watch | None = None, **options: Any) -> Grid:
    named = {"models": ["builtin/oracle"], "groundings": ["choice"]} | {
        name: options.pop(name) for name in ("models", "groundings") if name in options
    }
    config = EvalConfig(dataset=dataset, ranker="bm25", out=out).changed(**options)
    return evaluate_grid(config, **named, watch=watch)


@pytest.mark.slow
def test_cells_are_models_by_groundings_by_test_splits(dataset: Path, tmp_path: Path) -> None:
    made = grid(
        dataset,
        tmp_path,
        split="all",
        models=["builtin/oracle", "builtin/lexical"],
        groundings=["choice", "annotation"],
    )
    assert (len(made.cells), made.complete, made.n_failed) == (12, True, 0)
    assert [cell.folder for cell in made.cells][:2] == [
        "cross_task-choice-builtin-oracle",
        "cross_website-choice-builtin-oracle",
    ]
    assert all((tmp_path / cell.folder / "results.json").is_file() for cell in made.cells)
    rows = method_table(TableInput("2", [tmp_path], tmp_path)).rows
    assert [row.method for row in rows] == [
        "choice, builtin/oracle", "annotation, builtin/oracle", "choice, builtin/lexical", "annotation, builtin/lexical",
    ]  # fmt: skip
    assert all(len(row.cells) == 3 for row in rows)


def test_one_split_is_one_cell_a_method(dataset: Path, tmp_path: Path) -> None:
    assert [cell.split for cell in grid(dataset, tmp_path, split="test_website").cells] == ["cross_website"]


def test_an_option_goes_to_the_groundings_that_have_it(dataset: Path, tmp_path: Path) -> None:
    options = {"marks": "number", "top_k": 5, "merge": "first"}
    made = grid(dataset, tmp_path, groundings=["choice", "annotation", "pixel"], **options)
    settings = [run.manifest["settings"] for run in made.runs]
    assert [(one.get("marks"), one["top_k"]) for one in settings] == [(None, 5), ("number", 5), (None, None)]


def test_a_grid_goes_on_from_its_folder(dataset: Path, tmp_path: Path) -> None:
    class Heard(Watch):
        def __init__(self) -> None:
            self.notes: list[str] = []

        def note(self, text: str) -> None:
            self.notes.append(text)

    grid(dataset, tmp_path)
    heard = Heard()
    made = grid(dataset, tmp_path, heard, models=["builtin/oracle", "builtin/lexical"])
    assert sum("done already" in note for note in heard.notes) == 1
    assert len(made.runs) == 2


def test_the_index_keeps_cells_of_an_earlier_call(dataset: Path, tmp_path: Path) -> None:
    grid(dataset, tmp_path)
    grid(dataset, tmp_path, models=["builtin/lexical"])
    cells = json.loads((tmp_path / "grid.json").read_text())["cells"]
    assert [cell["model"] for cell in cells] == ["builtin/oracle", "builtin/lexical"]


def test_nothing_is_asked_where_one_cell_cannot_be_used(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^model: "):
        grid(dataset, tmp_path / "a", models=["builtin/oracle", "nobody/x"])
    with pytest.raises(InputError, match=r"^`no_image` cannot be combined with `grounding` annotation"):
        grid(dataset, tmp_path / "b", groundings=["choice", "annotation"], no_image=True)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_cells_of_one_name_are_refused(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^two cells are named .*; name models and groundings that differ"):
        grid(dataset, tmp_path, models=["builtin/oracle", "builtin/oracle"])


def test_the_cost_limit_is_for_the_whole_grid(dataset: Path, tmp_path: Path) -> None:
    from seeact_offline.models import Price

    Paid.asked = 0
    made = grid(dataset, tmp_path, models=[Paid()], split="all", max_cost=0.03, price=Price(1, 1))
    assert (len(made.runs), made.n_left, made.complete) == (1, 2, False)
    # two calls of the first cell, and one that leaves nothing for the next step of the second
    assert Paid.asked == 3
    # the kept replies of all cells count where their ledgers are lost
    for ledger in tmp_path.glob("*/spending.jsonl"):
        ledger.write_bytes(b"")
    grid(dataset, tmp_path, models=[Paid()], split="all", max_cost=0.03, price=Price(1, 1))
    assert Paid.asked == 3

"""The paper's tables, and other people's: each module builds one from finished runs.

A table from outside the package is a function in any file, named as `FILE.py:NAME` or by an entry point of the group
`seeact_offline.tables`::

    def steps(runs: Sequence[TableRun]) -> Table:
        return Table(title="Steps", header=("run", "steps"), rows=[(run.name, run.results.n_steps) for run in runs])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from seeact_offline.files.extensions import Doors, entry_point_names, load_named
from seeact_offline.files.table import Table
from seeact_offline.records import InputError
from seeact_offline.scoring.report import NOT_THE_PAPERS
from seeact_offline.tables import ablation, data_sets, methods
from seeact_offline.tables.document import Provenance, TableDocument
from seeact_offline.tables.table_input import NEWEST, SAMPLE, TableInput, TableRun, find_runs, is_live

__all__ = ["TABLES", "Table", "TableDocument", "TableKind", "TableRun", "build_table", "find_table"]

ENTRY_POINTS = "seeact_offline.tables"
"""The entry points of tables."""


@dataclass(frozen=True, slots=True)
class TableKind:
    """A kind of table."""

    build: Callable[[TableInput], TableDocument]
    options: frozenset[str] = frozenset()
    """The fields of the input beyond its runs that it uses: of `dataset`, `by` and `stderr`."""


LIVE = Doors({"4": "seeact_offline.live.live_gap:build"})
"""Builders of the tables that hold folders of episodes, of the annex that leaves such folders."""


def _offline_or_live(request: TableInput) -> TableDocument:
    holds_episodes = "4" in LIVE and any(map(is_live, find_runs(request.paths)))
    return LIVE["4"](request) if holds_episodes else methods.build(request)


TABLES: dict[str, TableKind] = {
    "1": TableKind(data_sets.build, frozenset({"dataset"})),
    "2": TableKind(methods.build, frozenset({"by", "stderr"})),
    "3": TableKind(methods.build, frozenset({"by", "stderr"})),
    "4": TableKind(_offline_or_live, frozenset({"stderr"})),
    "5": TableKind(ablation.build, frozenset({"stderr"})),
    "6": TableKind(methods.build, frozenset({"stderr"})),
    "observations": TableKind(ablation.build, frozenset({"stderr"})),
    "rankers": TableKind(ablation.build, frozenset({"stderr"})),
}
"""Tables by number, those up to 5 as in the paper, or by name. To add one, write a module that builds it, and a line
here."""


def find_table(name: str) -> TableKind:
    """The table of this number in the paper, `FILE.py:NAME` or entry point. Raises InputError."""
    if name in TABLES:
        return TABLES[name]
    builder = load_named(name, ENTRY_POINTS, "table")
    if builder is None:
        names = ", ".join([*TABLES, *entry_point_names(ENTRY_POINTS)])
        raise InputError("table", f"one of {names}, or FILE.py:NAME", name)
    if not callable(builder.value):
        raise InputError("table", "a function from finished runs to a Table", f"{builder.value!r:.80} of {name}")
    return TableKind(lambda request: _outside(builder.value, request))


def build_table(
    name: str | int,
    paths: Sequence[Path],
    base: Path | None = None,
    *,
    dataset: str | None = None,
    by: str | None = None,
    stderr: bool = False,
    which: str = NEWEST,
) -> TableDocument:
    """A table of finished runs: `name` is a number in the paper, `FILE.py:NAME` or an entry point.

    `paths`: run folders and folders of them; for Table 1 a file of `stats --json`, or none and a `dataset`, which is
    then counted. `base`: the folder that paths are given relative to, the working folder by default. `by`: `website` or
    `domain`. `stderr`: whether standard errors are shown. `which`: the run that stands for several which differ in
    their date alone: `newest`, `oldest`, or a date, until which the newest is taken. Raises InputError for runs that
    have no place in one table, and for options that the table does not use.
    """
    request = TableInput(str(name), paths, base or Path.cwd(), dataset, by, stderr, which)
    kind = find_table(request.table)
    for option in ("dataset", "by", "stderr"):
        if getattr(request, option) and option not in kind.options:
            users = [other for other, kind_of_other in TABLES.items() if option in kind_of_other.options]
            raise InputError(option, sentence=f"`{option}` needs `table` {' or '.join(users)}")
    document = kind.build(request)
    sources = document.provenance.runs if document.provenance else []
    is_sample = any(SAMPLE in (source.get("dataset"), source["run"] if dataset else None) for source in sources)
    return replace(document, remark=NOT_THE_PAPERS) if is_sample else document


def _outside(build: Callable[[Sequence[TableRun]], Table], request: TableInput) -> TableDocument:
    """A document of one table from outside the package, with its sources."""
    made = build(request.all_runs)
    if not isinstance(made, Table):
        raise InputError(
            "table", f"a function that returns a {Table.__module__}.Table", f"{made!r:.80} of {request.table}"
        )
    title = made.title or request.table
    provenance = Provenance(
        table=request.table,
        inputs=[run.name for run in request.all_runs],
        runs=[run.source for run in request.all_runs],
    )
    return TableDocument(title=title, tables=[replace(made, title="")], provenance=provenance)

"""Table 1 of the paper: a data set's splits in figures, as `stats --json` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from seeact_offline.files.digest import file_digest
from seeact_offline.files.formats import typed
from seeact_offline.files.table import Table
from seeact_offline.records import DatasetError, InputError
from seeact_offline.scoring.paper_tables import paper_table
from seeact_offline.tables.document import NO_FIGURE, Provenance, TableDocument, values_table
from seeact_offline.tables.table_input import SAMPLE, TableInput, read_typed, relative

COLUMNS = {
    "tasks": ("tasks", "tasks"),
    "subdomains": ("domains", "domains"),
    "websites": ("websites", "websites"),
    "actions_a_task": ("actions a task", "avg_actions"),
    "visual_tokens_at_full_size": ("visual tokens", "avg_visual_tokens"),
    "elements_a_page": ("elements a page", "avg_elements"),
    "html_tokens_a_page": ("HTML tokens", "avg_html_tokens"),
}
"""Each figure's name in `stats`, its title, and its name in the paper's table."""


class SplitCounts(msgspec.Struct, frozen=True):
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


class DataSetCounts(msgspec.Struct, frozen=True):
    """The output of `stats --json`."""

    tokenizer: str
    splits: dict[str, SplitCounts]
    dataset: str = ""
    """Empty where that is not known."""

    def paper(self, split: str) -> Mapping[str, Any]:
        """The paper's figures of a split; empty where it has none, and beside the bundled sample."""
        figures: Mapping[str, Any] = {} if self.dataset == SAMPLE else paper_table(1)["splits"].get(split, {})
        return figures


def build(request: TableInput) -> TableDocument:
    """Raises InputError for a file that `stats --json` did not print, DatasetError for a data set without splits."""
    counts, provenance = _read(request) if request.dataset is None else _count(request, request.dataset)
    return TableDocument(
        title="Table 1: Data sets", tables=[_page(counts)], values=_values(counts, provenance), provenance=provenance
    )


def _read(request: TableInput) -> tuple[DataSetCounts, Provenance]:
    if len(request.paths) != 1:
        raise InputError("runs", "one file with the output of `stats --json`", f"{len(request.paths)} paths")
    name = relative(request.paths[0], request.base)
    try:
        counts = read_typed(request.paths[0], DataSetCounts)
    except InputError as error:
        if error.sentence:
            raise
        raise InputError("runs", f"the output of `stats --json`, with {error.expected}", error.got) from None
    source = {"run": name, "results_sha256": file_digest(request.paths[0]), "dataset": counts.dataset or None}
    return counts, Provenance(table=request.table, inputs=[name], runs=[source])


def _count(request: TableInput, dataset: str) -> tuple[DataSetCounts, Provenance]:
    """Counts in a pass over every split that the data set has."""
    from seeact_offline.dataset import SPLITS, open_split
    from seeact_offline.dataset.summary import dataset_stats
    from seeact_offline.ranking.tokenizers import open_tokenizer

    tokenizer, last = open_tokenizer("words"), list(SPLITS)[-1]
    splits: dict[str, SplitCounts] = {}
    sources: list[dict[str, Any]] = []
    for name in SPLITS:
        try:
            split = open_split(dataset, name)
        except DatasetError as error:
            if error.argument != "split" or (name == last and not splits):
                raise
            continue
        splits[name] = typed(asdict(dataset_stats(split.steps(), name, tokenizer.count)), SplitCounts)
        named = {"split": name, "dataset_fingerprint": split.fingerprint}
        sources.append({"run": dataset, "results_sha256": None, **named})
    provenance = Provenance(table=request.table, inputs=[], dataset=dataset, runs=sources)
    return DataSetCounts(tokenizer.name, splits, dataset), provenance


# --- drawing ---


def _page(counts: DataSetCounts) -> Table:
    """A row a split, and under it the paper's."""
    paper = paper_table(1)
    rows: list[tuple[object, ...]] = []
    parts: list[int] = []
    for split, ours in counts.splits.items():
        parts.append(len(rows))
        rows.append((split, *(_amount(getattr(ours, name)) for name in COLUMNS), ours.steps, ours.faulty_rows))
        if theirs := counts.paper(split):
            amounts = [_amount(theirs[name]) for _, name in COLUMNS.values()]
            rows.append((f"{split}, paper", *amounts, NO_FIGURE, NO_FIGURE))
    notes = [
        *([f"Paper: {paper['source']}."] if any(map(counts.paper, counts.splits)) else []),
        "Domains are the hub's subdomains; visual tokens are those of the page at full size.",
        f"HTML tokens are by the tokenizer {counts.tokenizer}; figures by different tokenizers do not compare.",
        "Rows with faults are counted all the same.",
    ]
    header = ("split", *(title for title, _ in COLUMNS.values()), "steps", "with faults")
    return Table(header=header, rows=rows, notes=notes, parts=parts)


def _values(counts: DataSetCounts, provenance: Provenance) -> Table:
    """A line a split, the paper's figures beside ours, empty where there are none."""
    lines = []
    for split, ours in counts.splits.items():
        paper = counts.paper(split)
        figures = {name: getattr(ours, name) for name in (*COLUMNS, "steps", "faulty_rows")}
        theirs = {f"{name}_paper": paper.get(of_paper) for name, (_, of_paper) in COLUMNS.items()}
        sources: Sequence[Mapping[str, Any]] = [run for run in provenance.runs if run.get("split", split) == split]
        lines.append(
            {"split": split, **figures, **theirs, "tokenizer": counts.tokenizer, **provenance.columns(sources)}
        )
    return values_table(lines)


def _amount(value: float | None) -> str:
    if value is None:
        return NO_FIGURE
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"

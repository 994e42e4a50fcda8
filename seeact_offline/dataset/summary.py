"""The figures of the SeeAct paper's Table 1, for any data set: one pass over its steps, without decoding pictures.

The paper's domains are the hub's subdomains: its train split has 17 of them, and 3 in the column `domain`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from seeact_offline.models.tokens import Size, full_size_visual_tokens, visual_tokens
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import RowError, Step


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """The figures of one split. An average is None if no row has the value."""

    split: str
    tasks: int
    steps: int
    domains: int
    """Distinct values of the column `domain`."""
    subdomains: int
    """The paper calls them domains."""
    websites: int
    actions_a_task: float | None
    """Rows per task."""
    elements_a_page: float | None
    """Candidates listed, positive or not."""
    html_tokens_a_page: float | None
    """Tokens of `cleaned_html`, over the rows that have it."""
    visual_tokens: float | None
    """Tokens by the published rule, over the rows whose picture can be opened."""
    visual_tokens_at_full_size: float | None
    """The same tiles over the page at full size, without the two downscales."""
    faulty_rows: int
    faults: Mapping[str, int]
    """Number of rows per fault; a row may have several."""


@dataclass(frozen=True, slots=True)
class PaperStats:
    """One split in the paper's Table 1."""

    tasks: int
    domains: int
    websites: int
    avg_actions: float
    avg_visual_tokens: int
    avg_elements: int
    avg_html_tokens: int


def dataset_stats(steps: Iterable[Step], split: str, count_tokens: Callable[[str], int]) -> DatasetStats:
    """Computes the figures of a split in one pass that keeps ids, names and counts only. A missing name is no other domain."""
    seen: dict[str, set[Any]] = {name: set() for name in ("tasks", "domains", "subdomains", "websites")}
    elements: list[int] = []
    html_tokens: list[int] = []
    sizes: list[Size] = []
    counts: Counter[str] = Counter()
    faulty_rows = 0
    for step in steps:
        faults = {fault.name for fault in step.faults}
        seen["tasks"].add(step.annotation_id)
        seen["domains"].update([step.domain] if step.domain else [])
        seen["subdomains"].update([(step.domain, step.subdomain)] if step.subdomain else [])
        seen["websites"].update([step.website] if step.website else [])
        elements.append(len(step.candidates))
        if step.cleaned_html.strip():
            html_tokens.append(count_tokens(step.cleaned_html))
        if step.screenshot is not None:
            try:
                sizes.append(PagePicture(step.screenshot).size)
            except RowError as error:
                faults.add(error.name)
        counts.update(faults)
        faulty_rows += bool(faults)
    tasks = len(seen["tasks"])
    return DatasetStats(
        split=split,
        tasks=tasks,
        steps=len(elements),
        domains=len(seen["domains"]),
        subdomains=len(seen["subdomains"]),
        websites=len(seen["websites"]),
        actions_a_task=len(elements) / tasks if tasks else None,
        elements_a_page=_mean(elements),
        html_tokens_a_page=_mean(html_tokens),
        visual_tokens=_mean([visual_tokens(size) for size in sizes]),
        visual_tokens_at_full_size=_mean([full_size_visual_tokens(size) for size in sizes]),
        faulty_rows=faulty_rows,
        faults=dict(sorted(counts.items())),
    )


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


@cache
def paper_table1() -> Mapping[str, PaperStats]:
    """The paper's Table 1 by split. Source: SeeAct, arXiv 2401.01614v2."""
    text = (files("seeact_offline") / "paper" / "table1.json").read_text(encoding="utf-8")
    return {split: PaperStats(**figures) for split, figures in json.loads(text)["splits"].items()}

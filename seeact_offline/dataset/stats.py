"""The figures of the SeeAct paper's Table 1, for any data set: one pass over its steps, without decoding pictures.

What the paper calls domains are the hub's subdomains: its train split has 17 of them, and 3 in the column `domain`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import RowError, Step
from seeact_offline.tokens import Size, full_size_visual_tokens, visual_tokens


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """One split in figures. An average is None if no row has the value to average."""

    split: str
    tasks: int
    steps: int
    domains: int
    """Values of the column `domain`."""
    subdomains: int
    """What the paper calls domains."""
    websites: int
    actions_a_task: float | None
    """Rows per task."""
    elements_a_page: float | None
    """Candidates listed, positive or not."""
    html_tokens_a_page: float | None
    """In `cleaned_html`, over the rows that have it."""
    visual_tokens: float | None
    """By the published rule, over the rows whose picture can be opened."""
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
    """The figures of a split, in one pass that keeps only ids and names."""
    totals = _Totals()
    for step in steps:
        totals.add(step, count_tokens)
    return totals.finished(split)


@cache
def paper_table1() -> Mapping[str, PaperStats]:
    """The paper's Table 1 by split. Source: SeeAct, arXiv 2401.01614v2."""
    text = (files("seeact_offline") / "paper" / "table1.json").read_text(encoding="utf-8")
    return {split: PaperStats(**figures) for split, figures in json.loads(text)["splits"].items()}


@dataclass(slots=True)
class _Mean:
    total: int = 0
    count: int = 0

    def add(self, value: int) -> None:
        self.total += value
        self.count += 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class _Totals:
    """The totals of a split so far."""

    tasks: set[str] = field(default_factory=set)
    domains: set[str] = field(default_factory=set)
    subdomains: set[tuple[str, str]] = field(default_factory=set)
    websites: set[str] = field(default_factory=set)
    elements: _Mean = field(default_factory=_Mean)
    html_tokens: _Mean = field(default_factory=_Mean)
    visual: _Mean = field(default_factory=_Mean)
    visual_full: _Mean = field(default_factory=_Mean)
    faulty_rows: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, step: Step, count_tokens: Callable[[str], int]) -> None:
        faults = {fault.name for fault in step.faults}
        self.tasks.add(step.annotation_id)
        self._add_site(step)
        self.elements.add(len(step.candidates))
        if step.cleaned_html.strip():
            self.html_tokens.add(count_tokens(step.cleaned_html))
        if step.screenshot is not None:
            try:
                self._add_picture(PagePicture(step.screenshot).size)
            except RowError as error:
                faults.add(error.name)
        self.faults.update(faults)
        self.faulty_rows += bool(faults)

    def _add_site(self, step: Step) -> None:
        """A missing name does not count as another domain."""
        if step.domain:
            self.domains.add(step.domain)
        if step.subdomain:
            self.subdomains.add((step.domain, step.subdomain))
        if step.website:
            self.websites.add(step.website)

    def _add_picture(self, size: Size) -> None:
        self.visual.add(visual_tokens(size))
        self.visual_full.add(full_size_visual_tokens(size))

    def finished(self, split: str) -> DatasetStats:
        steps, tasks = self.elements.count, len(self.tasks)
        return DatasetStats(
            split=split,
            tasks=tasks,
            steps=steps,
            domains=len(self.domains),
            subdomains=len(self.subdomains),
            websites=len(self.websites),
            actions_a_task=steps / tasks if tasks else None,
            elements_a_page=self.elements.value,
            html_tokens_a_page=self.html_tokens.value,
            visual_tokens=self.visual.value,
            visual_tokens_at_full_size=self.visual_full.value,
            faulty_rows=self.faulty_rows,
            faults=dict(sorted(self.faults.items())),
        )

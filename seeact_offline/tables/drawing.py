"""The forms that a table of the paper takes: a page of tables for people, one table for a paper, and the bare values."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seeact_offline.files.markdown import cell, one_line
from seeact_offline.files.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A finished table in every format. All texts are plain, as in `Table`."""

    title: str
    remark: str = ""
    """A sentence that must stand above the figures."""
    lead: Sequence[str] = ()
    """Other sentences above the figures."""
    tables: Sequence[Table]
    """The page, in Markdown and HTML, from top to bottom; the table with the figures comes first."""
    figures: Table | None = None
    """For LaTeX; None: the first of `tables`."""
    values: Table | None = None
    """For CSV; None: the first of `tables`."""

    def markdown(self) -> str:
        remark = [cell(self.remark)] if self.remark else []
        return "\n\n".join([f"# {cell(self.title)}", *remark, self.body()]) + "\n"

    def body(self) -> str:
        """The page as Markdown, without its title and remark."""
        return "\n\n".join([*map(cell, self.lead), *(table.markdown() for table in self.tables)])

    def csv(self) -> str:
        return (self.values or self.tables[0]).csv()

    def latex(self) -> str:
        return (self.figures or self.tables[0]).latex()

    def html(self) -> str:
        said = [f"<p>{html.escape(one_line(text))}</p>" for text in (self.remark, *self.lead) if text]
        title = f"<h1>{html.escape(one_line(self.title))}</h1>"
        return "\n".join([title, *said, *(table.html() for table in self.tables)])


Draw = Callable[[Mapping[str, Any], str], Drawing]
"""From finished results and a remark that must stand above the figures (may be empty)."""

"""The forms that a table of the paper takes: a page of tables for people, one table for a paper, and the bare
values."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from seeact_offline.files.markdown import cell, one_line, percent
from seeact_offline.files.table import Table, tex
from seeact_offline.scoring.report import AVERAGES, METHODS, averaging
from seeact_offline.scoring.run_figures import Figure

Form = Literal["markdown", "latex", "csv", "html"]
ENDINGS: Mapping[Form, str] = {"markdown": ".md", "latex": ".tex", "csv": ".csv", "html": ".html"}
BLOCK = "seeact-offline table "
"""The text before the JSON by which `tables --check` makes a table again."""
MADE_OF = "made_of"
"""The column of a CSV with the same."""
HASH = "results_sha256"
ORIGIN = "run"
"""The column that says which runs a row comes from: in a CSV their paths, elsewhere their numbers in the provenance."""
NO_FIGURE = "-"
_SOURCE = ("split", "dataset", "dataset_fingerprint", "protocol", "seed")
_DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,graphicx,siunitx}
\usepackage[landscape,margin=15mm]{geometry}
\pagestyle{empty}
\begin{document}
\noindent\textbf{%s}\par\bigskip
\noindent\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%%
%s}\par\bigskip
\footnotesize
%s
\end{document}
"""
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>%s</title>
<style>body{font-family:sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}th,td{padding:.3em .8em;text-align:left;border-bottom:1px solid #ccc}</style>
%s
</html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The sources of a table's figures."""

    table: str
    inputs: Sequence[str]
    """The paths that `--check` makes the table again from."""
    dataset: str | None = None
    """The data set of Table 1; else None."""
    by: str | None = None
    stderr: bool = False
    runs: Sequence[Mapping[str, Any]]
    """Each run's path, hash of its results, data, protocol and seed."""
    settings: Collection[str] = ()
    """Settings that a note names for all runs."""

    @property
    def block(self) -> str:
        """One line of ASCII that no comment of Markdown, HTML or LaTeX ends in."""
        hashes = [{"run": run["run"], HASH: run[HASH]} for run in self.runs]
        number = int(self.table) if self.table.isdecimal() else self.table
        made_of = {"table": number, "inputs": list(self.inputs), "dataset": self.dataset, "runs": hashes}
        made_of |= {"by": self.by, "stderr": self.stderr}
        text = json.dumps(made_of)
        return BLOCK + "".join(f"\\u{ord(c):04x}" if c in "<>&" else c for c in text)

    @property
    def sentences(self) -> list[str]:
        """One a run: its path, hash and data, without the settings that a note names for all runs."""
        made = []
        for run in self.runs:
            facts = [
                f"{name} {run[name]}" for name in _SOURCE if run.get(name) is not None and name not in self.settings
            ]
            made.append(f"{run['run']}: {', '.join([*([f'sha256 {run[HASH]}'] if run[HASH] else []), *facts])}")
        return made

    def columns(self, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The columns of a CSV's line whose figures come from these runs; the last says what the whole table was made
        of."""
        texts = [{name: "" if value is None else str(value) for name, value in run.items()} for run in runs]
        shown = {name: ";".join(run.get(name, "") for run in texts) for name in (ORIGIN, HASH, *_SOURCE[1:])}
        made_of = {"inputs": list(self.inputs), "dataset": self.dataset, "by": self.by}
        return {"table": self.table, **shown, MADE_OF: json.dumps(made_of)}

    def numbers(self, names: Sequence[str]) -> str:
        """The numbers of these runs in the list of sources."""
        listed = [run["run"] for run in self.runs]
        return ", ".join(str(listed.index(name) + 1) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDocument:
    """A finished table in every format. All texts are plain, as in `Table`."""

    title: str
    remark: str = ""
    """A sentence that must stand above the figures."""
    lead: Sequence[str] = ()
    """Other sentences above the figures."""
    tables: Sequence[Table]
    """The page, in Markdown and HTML, from top to bottom; the table with the figures comes first."""
    figures: Table | None = None
    """The table for LaTeX; None: the first of `tables`."""
    values: Table | None = None
    """The table for CSV; None: the first of `tables`."""
    screen: Table | None = None
    """The table for a terminal; None: the whole page."""
    provenance: Provenance | None = None
    """None for a table that is not made again."""

    def text(self, form: Form, standalone: bool = False) -> str:
        """`standalone`: LaTeX and HTML as whole documents."""
        makers: dict[Form, Callable[[], str]] = {
            "markdown": self.markdown,
            "csv": (self.values or self.tables[0]).csv,
            "latex": self.latex_document if standalone else self.latex,
            "html": self.html_document if standalone else self.html,
        }
        return makers[form]()

    def markdown(self) -> str:
        remark = [cell(self.remark)] if self.remark else []
        block, sources = [], []
        if self.provenance is not None:
            block = [f"<!-- {self.provenance.block} -->"]
            lines = [f"{number}. {cell(text)}" for number, text in enumerate(self.provenance.sentences, 1)]
            sources = ["## Provenance", "\n".join(lines)]
        return "\n\n".join([*block, f"# {cell(self.title)}", *remark, self.body(), *sources]) + "\n"

    def body(self) -> str:
        """The page as Markdown, without its title and remark."""
        return "\n\n".join([*map(cell, self.lead), *(table.markdown() for table in self.tables)])

    def screen_text(self) -> str:
        """The page for a terminal, as Markdown: without provenance, which is for files."""
        if self.screen is None:
            shown = self.body()
        else:
            shown = "\n\n".join([*map(cell, self.lead), self.screen.markdown()])
        return "\n\n".join([f"# {cell(self.title)}", *([cell(self.remark)] if self.remark else []), shown])

    def latex(self) -> str:
        sources: list[str] = []
        if self.provenance is not None:
            sources = [f"% {text}" for text in (self.provenance.block, *map(one_line, self.provenance.sentences))]
        return "\n".join([*sources, self._figures.latex()])

    def latex_document(self) -> str:
        """A page for `pdflatex`."""
        paragraphs = [f"\\noindent {tex(text)}\\par" for text in self._figures.notes]
        return _DOCUMENT % (tex(self.title), self.latex(), "\n".join(paragraphs))

    def html(self) -> str:
        lead = [f"<p>{html.escape(one_line(text))}</p>" for text in (self.remark, *self.lead) if text]
        title = f"<h1>{html.escape(one_line(self.title))}</h1>"
        block, sources = [], []
        if self.provenance is not None:
            block = [f"<!-- {self.provenance.block} -->"]
            items = "".join(f"<li>{html.escape(one_line(text))}</li>" for text in self.provenance.sentences)
            sources = [f"<details><summary>Provenance</summary><ol>{items}</ol></details>", ""]
        return "\n".join([*block, title, *lead, *(table.html() for table in self.tables), *sources])

    def html_document(self) -> str:
        return _PAGE % (html.escape(one_line(self.title)), self.html())

    @property
    def _figures(self) -> Table:
        """The table for LaTeX, with the remark as its first note."""
        table = self.figures or self.tables[0]
        return replace(table, notes=[self.remark, *table.notes]) if self.remark else table


def values_table(lines: Sequence[Mapping[str, Any]]) -> Table:
    """The frame of a CSV: a line a figure or row, each with the same names."""
    return Table(header=list(lines[0]), rows=[list(line.values()) for line in lines])


def figure_cells(figure: Figure | None, stderr: bool, interval: str = "", sd: bool = False) -> list[str]:
    """A headline in percent, its interval and, if asked for, its standard error and its standard deviation over seeds;
    `-` where there is none.

    `interval`: how value and interval stand in one cell; empty: in a cell each.
    """
    value, spread = percent(figure.value if figure else None), ""
    if figure is not None and figure.ci95 is not None:
        spread = (interval or "[{}, {}]").format(*map(percent, figure.ci95))
    cells = [f"{value} {spread}".strip()] if interval else [value, spread]
    se, deviation = (figure.se, figure.sd) if figure else (None, None)
    errors = [*([se] if stderr else []), *([deviation] if sd else [])]
    return [*cells, *map(percent, errors)]


def figure_columns(stderr: bool, sd: bool = False) -> list[str]:
    """The headers of `figure_cells` in cells each, but for the first, which is the metric's own."""
    return ["95 % interval", *error_columns(stderr, sd)]


def error_columns(stderr: bool, sd: bool) -> list[str]:
    return [*(["SE"] if stderr else []), *(["sd"] if sd else [])]


def best_of(figures: Sequence[Figure | None]) -> int | None:
    """The place of the figure whose interval lies above those of all others; None where there is none."""
    known = [(place, figure.ci95 or (0.0, 1.0)) for place, figure in enumerate(figures) if figure is not None]
    place, (low, _) = max(known, key=lambda pair: pair[1][0], default=(None, (0.0, 1.0)))
    others = [high for other, (_, high) in known if other != place]
    return place if others and low > max(others) else None


def named_averages(quotes: Sequence[tuple[str, str]]) -> str:
    """The average, or where metrics differ, each average with its metrics. `quotes`: metric and average."""
    metrics_of: dict[str, dict[str, None]] = {}
    for metric, average in quotes:
        metrics_of.setdefault(average, {})[metric] = None
    if len(metrics_of) == 1:
        return next(iter(metrics_of))
    return "; ".join(f"{average}: {', '.join(metrics)}" for average, metrics in metrics_of.items())


def averages_in_words(quotes: Sequence[tuple[str, str]], protocols: Sequence[str]) -> str:
    """Sentences on the averages that a table shows, `quotes` (metric and average), and on how these protocols
    differ."""
    meanings = " ".join(
        f"{average.capitalize()}: {AVERAGES[average]}." for average in dict.fromkeys(a for _, a in quotes)
    )
    rules = [f"{name}:{words}" for name in protocols if (words := averaging(name))]
    alike = len(set(quotes)) == len(dict(quotes))
    return " ".join(
        [f"The protocol's own averages, {named_averages(quotes) if alike else 'named in each row'}.", meanings, *rules]
    )


def interval_of(figures: Sequence[Figure]) -> str:
    """The methods by which the intervals of these figures were made, in words."""
    methods = dict.fromkeys(figure.method for figure in figures if figure.ci95 is not None)
    return ", or ".join(METHODS.get(method, method) for method in methods) or "none"

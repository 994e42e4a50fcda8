"""The forms that a table of the paper takes: a page of tables for people, one table for a paper, and the bare values."""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from seeact_offline.files.markdown import cell, one_line, percent
from seeact_offline.files.table import Table, tex
from seeact_offline.scoring.report import AVERAGES, METHODS, averaging

Form = Literal["markdown", "latex", "csv", "html"]
ENDINGS: Mapping[Form, str] = {"markdown": ".md", "latex": ".tex", "csv": ".csv", "html": ".html"}
BLOCK = "seeact-offline table "
"""What stands before the JSON by which `tables --check` makes a table again."""
MADE_OF = "made_of"
"""The column of a CSV with the same."""
HASH = "results_sha256"
ORIGIN = "run"
"""The column that says which runs a row comes from: in a CSV their paths, elsewhere their numbers in the provenance."""
NO_FIGURE = "-"
_SAID = ("split", "dataset", "dataset_fingerprint", "protocol", "seed")
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
    """Where a table's figures come from."""

    table: int
    inputs: Sequence[str]
    """The paths that it was made of."""
    dataset: str | None
    """For Table 1 of a data set; else None."""
    by: str | None = None
    stderr: bool = False
    runs: Sequence[Mapping[str, Any]]
    """Each run's path, hash of its results, data, protocol and seed."""
    said: Collection[str] = ()
    """Settings that a note says of all runs."""

    @property
    def block(self) -> str:
        """One line of ASCII that no comment of Markdown, HTML or LaTeX ends in."""
        hashes = [{"run": run["run"], HASH: run[HASH]} for run in self.runs]
        made_of = {"table": self.table, "inputs": list(self.inputs), "dataset": self.dataset, "runs": hashes}
        made_of |= {"by": self.by, "stderr": self.stderr}
        text = json.dumps(made_of)
        return BLOCK + "".join(f"\\u{ord(c):04x}" if c in "<>&" else c for c in text)

    @property
    def sentences(self) -> list[str]:
        return [_sentence(run, self.said) for run in self.runs]


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
    provenance: Provenance | None = None
    """None where nobody needs to make the table again."""

    def text(self, form: Form, standalone: bool = False) -> str:
        """`standalone`: LaTeX and HTML as whole documents."""
        makers: dict[Form, Callable[[], str]] = {
            "markdown": self.markdown,
            "csv": self.csv,
            "latex": self.latex_document if standalone else self.latex,
            "html": self.html_document if standalone else self.html,
        }
        return makers[form]()

    def markdown(self) -> str:
        remark = [cell(self.remark)] if self.remark else []
        block, traced = [], []
        if self.provenance is not None:
            block = [f"<!-- {self.provenance.block} -->"]
            lines = [f"{number}. {cell(text)}" for number, text in enumerate(self.provenance.sentences, 1)]
            traced = ["## Provenance", "\n".join(lines)]
        return "\n\n".join([*block, f"# {cell(self.title)}", *remark, self.body(), *traced]) + "\n"

    def body(self) -> str:
        """The page as Markdown, without its title and remark."""
        return "\n\n".join([*map(cell, self.lead), *(table.markdown() for table in self.tables)])

    def csv(self) -> str:
        return (self.values or self.tables[0]).csv()

    def latex(self) -> str:
        if self.provenance is None:
            return self._figures.latex()
        traced = [f"% {text}" for text in (self.provenance.block, *map(one_line, self.provenance.sentences))]
        return "\n".join([*traced, self._figures.latex()])

    def latex_document(self) -> str:
        """What `pdflatex` makes a page of."""
        paragraphs = [f"\\noindent {tex(text)}\\par" for text in self._figures.notes]
        return _DOCUMENT % (tex(self.title), self.latex(), "\n".join(paragraphs))

    def html(self) -> str:
        said = [f"<p>{html.escape(one_line(text))}</p>" for text in (self.remark, *self.lead) if text]
        title = f"<h1>{html.escape(one_line(self.title))}</h1>"
        block, traced = [], []
        if self.provenance is not None:
            block = [f"<!-- {self.provenance.block} -->"]
            items = "".join(f"<li>{html.escape(one_line(text))}</li>" for text in self.provenance.sentences)
            traced = [f"<details><summary>Provenance</summary><ol>{items}</ol></details>", ""]
        return "\n".join([*block, title, *said, *(table.html() for table in self.tables), *traced])

    def html_document(self) -> str:
        return _PAGE % (html.escape(one_line(self.title)), self.html())

    @property
    def _figures(self) -> Table:
        return self.figures or self.tables[0]


Draw = Callable[[Mapping[str, Any], str], Drawing]
"""From finished results and a remark that must stand above the figures (may be empty)."""


def provenance(results: Mapping[str, Any]) -> Provenance | None:
    """That of what `runs.tabling` made; None for other results."""
    if "inputs" not in results:
        return None
    return Provenance(
        table=results["table"],
        inputs=results["inputs"],
        dataset=results.get("dataset_counted"),
        by=results.get("by"),
        stderr=results.get("stderr", False),
        runs=results["runs"],
        said=results.get("settings", ()),
    )


def provenance_columns(results: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """For the line of a CSV whose figures come from these runs; the last says what the whole table was made of."""
    known = [{name: "" if value is None else str(value) for name, value in run.items()} for run in runs]
    shown = {name: ";".join(run.get(name, "") for run in known) for name in (ORIGIN, HASH, *_SAID[1:])}
    made_of = {"inputs": results["inputs"], "dataset": results.get("dataset_counted"), "by": results.get("by")}
    return {"table": results["table"], **shown, MADE_OF: json.dumps(made_of)}


def numbers_of(results: Mapping[str, Any], paths: Sequence[str]) -> str:
    """The numbers of these runs in the provenance."""
    known = [run["run"] for run in results["runs"]]
    return ", ".join(str(known.index(path) + 1) for path in paths)


def figure_cells(figure: Mapping[str, Any] | None, stderr: bool, interval: str = "") -> list[str]:
    """A headline in percent, its interval and, if `stderr`, its standard error; `-` where there is none.

    `interval`: how value and interval stand in one cell; empty: in a cell each. Several runs have their standard deviation and
    number in place of the interval.
    """
    found = figure or dict.fromkeys(("value", "ci95", "se"))
    value, spread = percent(found["value"]), ""
    if found["ci95"] is not None:
        spread = (interval or "[{}, {}]").format(*map(percent, found["ci95"]))
    elif "sd" in found:
        spread = ("({})" if interval else "{}").format(f"sd {percent(found['sd'])}, n {found['n_runs']}")
    cells = [f"{value} {spread}".strip()] if interval else [value, spread]
    return [*cells, *([percent(found["se"])] if stderr else [])]


def figure_columns(stderr: bool) -> list[str]:
    """The headers of `figure_cells` in cells each, but for the first, which is the metric's own."""
    return ["95 % interval", *(["SE"] if stderr else [])]


def best_cells(
    rows: Sequence[Sequence[str]], columns: Sequence[int], alike: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Row and column of the highest numbers of each column, as they are printed, among rows that say the same in the columns
    `alike`; none where one row alone has any.
    """
    known: dict[tuple[object, ...], dict[tuple[int, int], float]] = {}
    for (number, row), column in itertools.product(enumerate(rows), columns):
        if row[column] != NO_FIGURE:
            known.setdefault((column, *(row[i] for i in alike)), {})[number, column] = float(row[column])
    several = [values for values in known.values() if len(values) > 1]
    return [place for values in several for place, value in values.items() if value == max(values.values())]


def named_averages(quotes: Sequence[tuple[str, str]]) -> str:
    """The average, or where metrics differ, each average with its metrics. `quotes`: metric and average."""
    found: dict[str, dict[str, None]] = {}
    for metric, average in quotes:
        found.setdefault(average, {})[metric] = None
    return next(iter(found)) if len(found) == 1 else "; ".join(f"{name}: {', '.join(of)}" for name, of in found.items())


def averages_in_words(quotes: Sequence[tuple[str, str]], protocols: Sequence[str]) -> str:
    """Sentences on the averages that a table shows, `quotes` (metric and average), and on how these protocols differ."""
    meanings = " ".join(
        f"{average.capitalize()}: {AVERAGES[average]}." for average in dict.fromkeys(a for _, a in quotes)
    )
    rules = [f"{name}:{words}" for name in protocols if (words := averaging(name))]
    alike = len(set(quotes)) == len(dict(quotes))
    return " ".join(
        [f"The protocol's own averages, {named_averages(quotes) if alike else 'named in each row'}.", meanings, *rules]
    )


def interval_of(figures: Sequence[Mapping[str, Any]]) -> str:
    """How the intervals of these figures were made, in words."""
    words = {"wilson": "Wilson's on the number of tasks", **METHODS}
    ways = dict.fromkeys(figure.get("method", "bootstrap") for figure in figures if "sd" not in figure)
    return ", or ".join(words.get(way, way) for way in ways) or "none"


def _sentence(run: Mapping[str, Any], said: Collection[str]) -> str:
    """What identifies one run, but for what is `said` of all."""
    known = [f"{name} {run[name]}" for name in _SAID if run.get(name) is not None and name not in said]
    digest = [f"sha256 {run[HASH]}"] if run[HASH] else []
    return f"{run['run']}: {', '.join([*digest, *known])}"

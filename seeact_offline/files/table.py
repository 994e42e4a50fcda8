"""A table as Markdown, CSV, LaTeX and HTML. Cells, titles and notes may be other people's text: each format escapes them."""

from __future__ import annotations

import csv
import html
import io
import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from seeact_offline.files.markdown import cell, one_line, printable
from seeact_offline.files.markdown import table as grid

_LATEX = {c: f"\\{c}" for c in "{}&%$#_"} | {
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip
_LATEX_LETTERS = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ–—‘’“”…")
"""Letters beyond ASCII that pdflatex sets in any font encoding."""
_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")
"""The beginning of a cell that a spreadsheet may run as a formula (OWASP, CSV injection)."""
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a header, and the notes that belong to them. All texts are plain, without markup."""

    title: str = ""
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    """Each has as many cells as the header; None is an empty cell."""
    notes: Sequence[str] = ()
    """Sentences below the table."""
    above: Sequence[tuple[str, int]] = ()
    """A line above the header: each text and how many columns it spans. Empty: no such line."""
    n_labels: int = 1
    """The number of columns, from the first, that name a row; LaTeX aligns the others right."""
    numbers: Collection[int] = ()
    """Columns, from 0, that LaTeX sets by siunitx."""
    best: Collection[tuple[int, int]] = ()
    """Row and column, from 0, of the cells that LaTeX sets bold."""
    parts: Collection[int] = ()
    """Rows, from 0, that begin another part of the table; LaTeX draws a line above each."""
    remarks: Sequence[str] = ()
    """One a row, which LaTeX alone writes, as a comment behind it. Empty: none."""

    def markdown(self) -> str:
        """A heading, the table, and one paragraph for each note."""
        rows = [[cell(_text(one)) for one in row] for row in self.rows]
        heading = [f"## {cell(self.title)}"] if self.title else []
        return "\n\n".join([*heading, grid([*map(cell, self._full_header())], rows), *map(cell, self.notes)])

    def csv(self) -> str:
        """Header and rows; no title and no notes. A text that a spreadsheet would take for a formula gets an apostrophe, and
        characters that steer a terminal are spelt out."""
        return "".join(map(_csv_line, [self._full_header(), *self.rows]))

    def latex(self) -> str:
        """A `tabular` with booktabs' lines, with title and notes as comments above it."""
        comments = [f"% {one_line(text)}" for text in (self.title, *self.notes) if text]
        above: list[str] = []
        if self.above:
            # an empty text becomes as many empty cells as it spans; the others have a line under them
            spans = [[f"\\multicolumn{{{n}}}{{c}}{{{tex(text)}}}"] if text else [""] * n for text, n in self.above]
            ends = itertools.accumulate(n for _, n in self.above)
            rules = [
                f"\\cmidrule(lr){{{end - n + 1}-{end}}}"
                for (text, n), end in zip(self.above, ends, strict=True)
                if text
            ]
            above = [_tex_line([one for span in spans for one in span]), "".join(rules)]
        columns = "".join(self._tex_column(place) for place in range(len(self.header)))
        rows: list[str] = []
        for number, (row, remark) in enumerate(itertools.zip_longest(self.rows, self.remarks, fillvalue="")):
            rows += ["\\midrule"] if number in self.parts and number else []
            cells = [self._tex_cell(number, column, one) for column, one in enumerate(row)]
            rows.append(_tex_line(cells) + (f" % {one_line(remark)}" if remark else ""))
        packages = "booktabs,siunitx" if self.numbers else "booktabs"
        return "\n".join(
            [
                *comments,
                f"% needs \\usepackage{{{packages}}}",
                f"\\begin{{tabular}}{{{columns}}}",
                "\\toprule",
                *above,
                _tex_line([self._tex_cell(-1, column, one) for column, one in enumerate(self.header)]),
                "\\midrule",
                *rows,
                "\\bottomrule",
                "\\end{tabular}",
                "",
            ]
        )

    def _tex_column(self, place: int) -> str:
        if place not in self.numbers:
            return "l" if place < self.n_labels else "r"
        found = [text.partition(".") for row in self.rows if _NUMBER.fullmatch(text := _text(row[place]))]
        whole, rest = (max((len(one[part]) for one in found), default=1) for part in (0, 2))
        return f"S[table-format={whole}.{rest},detect-weight,mode=text]"

    def _tex_cell(self, row: int, column: int, value: object) -> str:
        """siunitx reads numbers alone; braces keep everything else from it."""
        text, bold = tex(value), (row, column) in self.best
        if column not in self.numbers:
            return f"\\textbf{{{text}}}" if bold else text
        if _NUMBER.fullmatch(_text(value)):
            return f"\\bfseries {text}" if bold else text
        return f"{{{text}}}" if text else ""

    def html(self) -> str:
        """A `table` with its title as caption, and one paragraph for each note."""
        caption = [f"<caption>{_html(self.title)}</caption>"] if self.title else []
        above = "".join(f'<th colspan="{columns}">{_html(text)}</th>' for text, columns in self.above)
        head = [f"<tr>{above}</tr>"] if above else []
        return "\n".join(
            [
                "<table>",
                *caption,
                "<thead>",
                *head,
                _html_row("th", self.header),
                "</thead>",
                "<tbody>",
                *(_html_row("td", row) for row in self.rows),
                "</tbody>",
                "</table>",
                *(f"<p>{_html(note)}</p>" for note in self.notes),
                "",
            ]
        )

    def _full_header(self) -> list[str]:
        """The header joined with the line above it, for formats in which a cell cannot span columns."""
        above = [text for text, columns in self.above for _ in range(columns)] or [""] * len(self.header)
        return [f"{over}: {name}" if over else name for over, name in zip(above, self.header, strict=True)]


def _text(value: object) -> str:
    return "" if value is None else one_line(value)


def _csv_line(cells: Sequence[object]) -> str:
    texts = ["" if one is None else str(one) for one in cells]
    harmless = [f"'{one}" if _FORMULA.match(one) and not _NUMBER.fullmatch(one) else one for one in texts]
    out = io.StringIO()
    # the default line end, \r\n, makes the writer quote a lone \r too
    csv.writer(out).writerow(map(printable, harmless))
    return out.getvalue().removesuffix("\r\n") + "\n"


def tex(value: object) -> str:
    """Any text as harmless LaTeX, on one line. What pdflatex has no letter for is named by its code."""
    return "".join(
        _LATEX.get(c, c) if c.isascii() or c in _LATEX_LETTERS else f"[U+{ord(c):04X}]" for c in _text(value)
    )


def _tex_line(cells: Sequence[str]) -> str:
    line = " ".join(" & ".join(cells).split())
    # a bracket or star that begins a line would be read as the argument of the \\ before it
    return f"{'{}' if line[:1] in ('[', '*') else ''}{line} \\\\"


def _html(value: object) -> str:
    return html.escape(_text(value))


def _html_row(tag: str, cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_html(one)}</{tag}>" for one in cells) + "</tr>"

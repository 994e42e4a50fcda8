"""A table in each format: what it looks like, and that no cell can be more than a text."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.files.markdown import one_line
from seeact_offline.files.table import Table

TABLE = Table(
    title="Marks & labels",
    header=("kind", "Element", "SR", "SR"),
    above=[("", 1), ("ours_1", 2), ("Paper", 1)],
    rows=[("number", 0.5, "50.0 [0.0, 100.0]", None), ("*letter*", 1, "<b>", "24 %")],
    notes=["Percent.", "Made\nup."],
)
MARKDOWN = r"""## Marks &amp; labels

| kind       | ours_1: Element | ours_1: SR          | Paper: SR |
|------------|-----------------|---------------------|-----------|
| number     | 0.5             | 50.0 \[0.0, 100.0\] |           |
| \*letter\* | 1               | &lt;b&gt;           | 24 %      |

Percent.

Made up."""
CSV = """kind,ours_1: Element,ours_1: SR,Paper: SR
number,0.5,"50.0 [0.0, 100.0]",
*letter*,1,<b>,24 %
"""
LATEX = r"""% Marks & labels
% Percent.
% Made up.
\begin{tabular}{lrrr}
\hline
& \multicolumn{2}{c}{ours\_1} & \multicolumn{1}{c}{Paper} \\
kind & Element & SR & SR \\
\hline
number & 0.5 & 50.0 [0.0, 100.0] & \\
{}*letter* & 1 & \textless{}b\textgreater{} & 24 \% \\
\hline
\end{tabular}
"""
HTML = """<table>
<caption>Marks &amp; labels</caption>
<thead>
<tr><th colspan="1"></th><th colspan="2">ours_1</th><th colspan="1">Paper</th></tr>
<tr><th>kind</th><th>Element</th><th>SR</th><th>SR</th></tr>
</thead>
<tbody>
<tr><td>number</td><td>0.5</td><td>50.0 [0.0, 100.0]</td><td></td></tr>
<tr><td>*letter*</td><td>1</td><td>&lt;b&gt;</td><td>24 %</td></tr>
</tbody>
</table>
<p>Percent.</p>
<p>Made up.</p>
"""
TEXTS = st.text(st.sampled_from("ab \\{}&%$#_^~<>|[*\"',;=\n\r\t\x1b\u202e\u2028é猫") | st.characters(codec="utf-8"))
ESCAPED = re.compile(r"\\[{}&%$#_]|\\text(backslash|asciicircum|asciitilde|less|greater|bar)\{\}")


def one_cell(text: str) -> Table:
    return Table(header=("what",), rows=[(text,)])


@pytest.mark.parametrize(
    ("made", "expected"),
    [(TABLE.markdown(), MARKDOWN), (TABLE.csv(), CSV), (TABLE.latex(), LATEX), (TABLE.html(), HTML)],
    ids=["markdown", "csv", "latex", "html"],
)
def test_a_table_reads_as_written_down_here(made: str, expected: str) -> None:
    assert made == expected


def test_a_table_without_title_and_notes_is_the_table_alone() -> None:
    bare = one_cell("x")
    assert bare.markdown().startswith("| what |")
    assert bare.latex().startswith("\\begin{tabular}")
    assert bare.html().startswith("<table>\n<thead>\n<tr><th>what</th>")


@given(TEXTS)
def test_no_cell_of_markdown_is_more_than_a_text(text: str) -> None:
    lines = one_cell(text).markdown().split("\n")
    assert len(lines) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 2


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=4))
def test_csv_gives_back_every_value_as_it_was(rows: list[list[str]]) -> None:
    made = Table(header=("a", "b"), rows=rows).csv()
    assert list(csv.reader(io.StringIO(made, newline=""))) == [["a", "b"], *rows]


@given(TEXTS)
def test_no_cell_of_latex_is_more_than_a_text(text: str) -> None:
    lines = one_cell(text).latex().split("\n")
    assert len(lines) == 8
    row = lines[4].removesuffix("\\\\").removeprefix("{}")
    assert not set(ESCAPED.sub("", row)) & set("\\{}&%$#_^~<>|")


@pytest.mark.parametrize("text", ["[1ex]", "* x"])
def test_the_end_of_a_latex_line_takes_no_cell_for_its_argument(text: str) -> None:
    assert f"\n{{}}{text} \\\\\n" in one_cell(text).latex()


@given(TEXTS)
def test_no_note_leaves_its_latex_comment(text: str) -> None:
    made = Table(header=("what",), rows=[], title=text, notes=[text]).latex()
    assert all(line.startswith("% ") for line in made.partition("\\begin{tabular}")[0].splitlines())


class Cells(HTMLParser):
    """The texts of the cells as a browser would show them, and every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@given(TEXTS)
def test_no_cell_of_html_is_more_than_a_text(text: str) -> None:
    made = Cells(one_cell(text).html())
    assert made.tags == ["table", "thead", "tr", "th", "tbody", "tr", "td"]
    assert "".join(made.texts).split() == ["what", *one_line(text).split()]

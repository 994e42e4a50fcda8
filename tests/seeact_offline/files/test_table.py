"""A table in each format: what it looks like, and that no cell can be more than a text."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.files.markdown import one_line, printable
from seeact_offline.files.table import Table

TABLE = Table(
    title="Marks & labels",
    header=("kind", "Element", "SR", "SR"),
    above=[("", 1), ("ours_1", 2), ("Paper", 1)],
    rows=[("number", 0.5, "50.0 [0.0, 100.0]", None), ("*letter*", 1, "<b>", "24 %")],
    notes=["Percent.", "Made\nup."],
    parts=[1],
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
% needs \usepackage{booktabs}
\begin{tabular}{lrrr}
\toprule
& \multicolumn{2}{c}{ours\_1} & \multicolumn{1}{c}{Paper} \\
\cmidrule(lr){2-3}\cmidrule(lr){4-4}
kind & Element & SR & SR \\
\midrule
number & 0.5 & 50.0 [0.0, 100.0] & \\
\midrule
{}*letter* & 1 & \textless{}b\textgreater{} & 24 \% \\
\bottomrule
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
LETTERS = set("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ–—‘’“”…")
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
    assert bare.latex().startswith("% needs \\usepackage{booktabs}\n\\begin{tabular}")
    assert bare.html().startswith("<table>\n<thead>\n<tr><th>what</th>")


@given(TEXTS)
def test_no_cell_of_markdown_is_more_than_a_text(text: str) -> None:
    lines = one_cell(text).markdown().split("\n")
    assert len(lines) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 2


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=4))
def test_csv_gives_back_every_value_as_it_was_or_as_a_visible_text(rows: list[list[str]]) -> None:
    made = Table(header=("a", "b"), rows=rows).csv()
    read = list(csv.reader(io.StringIO(made, newline="")))
    assert [len(row) for row in read] == [2] * (len(rows) + 1)
    pairs = [pair for row, was in zip(read[1:], rows, strict=True) for pair in zip(row, was, strict=True)]
    assert all(now in (printable(was), printable(f"'{was}")) for now, was in pairs)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", made)


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x (-1)", "@sum", "\tx", "\rx", "\nx", " =1", "＝1", "--1", "-"])
def test_no_cell_of_csv_is_a_formula(text: str) -> None:
    assert next(csv.reader(io.StringIO(one_cell(text).csv().partition("\n")[2], newline=""))) == [printable(f"'{text}")]


@pytest.mark.parametrize("value", ["-1", "+2.5", "-1e-05", -0.25, -3, "a=b", "1-2", ""])
def test_a_number_of_csv_stays_one(value: object) -> None:
    made = Table(header=("what", "n"), rows=[(value, 1)]).csv()
    assert list(csv.reader(io.StringIO(made)))[1] == [str(value), "1"]


@given(TEXTS)
def test_no_cell_of_latex_is_more_than_a_text(text: str) -> None:
    lines = one_cell(text).latex().split("\n")
    assert len(lines) == 9
    row = lines[5].removesuffix("\\\\").removeprefix("{}")
    assert not set(ESCAPED.sub("", row)) & set("\\{}&%$#_^~<>|")


@given(TEXTS)
def test_latex_holds_only_what_pdflatex_can_set(text: str) -> None:
    """Tried with pdflatex: these letters compile in any font encoding."""
    assert {c for c in one_cell(text).latex() if not c.isascii()} <= LETTERS


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

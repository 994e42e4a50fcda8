"""Documents in every format, tables from outside the package, and the tables that people read."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.files.table import Table
from seeact_offline.records import InputError
from seeact_offline.tables import TableDocument, build_table
from seeact_offline.tables.document import ENDINGS, Form
from tests.finished_runs import figure, make_run

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


@pytest.fixture
def toy() -> TableDocument:
    table = Table(header=("model", "steps"), rows=[("openai/x_1", 4)])
    return TableDocument(title="Steps & models", remark="Made up.", lead=["All of them."], tables=[table])


def test_a_document_is_the_same_table_in_every_format(toy: TableDocument) -> None:
    assert toy.markdown().startswith("# Steps &amp; models\n\nMade up.\n\nAll of them.\n\n| model      | steps |\n")
    assert toy.markdown() == f"# Steps &amp; models\n\nMade up.\n\n{toy.body()}\n"
    assert toy.text("csv") == "model,steps\nopenai/x_1,4\n"
    assert toy.latex().startswith("% Made up.\n")
    assert "\nopenai/x\\_1 & 4 \\\\\n" in toy.latex()
    assert toy.html().startswith("<h1>Steps &amp; models</h1>\n<p>Made up.</p>\n<p>All of them.</p>\n<table>")
    assert "<td>openai/x_1</td><td>4</td>" in toy.html()


def test_latex_and_csv_may_have_tables_of_their_own() -> None:
    page, figures, values = (Table(header=(name,), rows=[]) for name in ("page", "figures", "values"))
    document = TableDocument(title="Toy", tables=[page], figures=figures, values=values)
    assert "figures" in document.latex()
    assert document.text("csv") == "values\n"


def test_whole_documents_hold_the_table_as_it_is_without_them(toy: TableDocument) -> None:
    assert toy.latex() in toy.text("latex", standalone=True)
    assert toy.html() in toy.text("html", standalone=True)


# --- a table from outside the package ---


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("table = 3", "table: expected a function from finished runs to a Table, got 3 of "),
        (
            "def table(runs): return 3",
            "table: expected a function that returns a seeact_offline.files.table.Table, got 3",
        ),
        ("other = 3", "table: expected the name of an object in "),
    ],
)
def test_a_file_without_such_a_function_is_one_sentence(tmp_path: Path, code: str, expected: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(InputError, match=f"^{expected}"):
        build_table(f"{tmp_path}/mine.py:table", [make_run(tmp_path / "a")])


def test_an_unknown_table_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^table: expected one of 1, 2, 3, 4, 5, 6, observations, rankers, or FILE\.py:NAME, got 7"
    ):
        build_table(7, [make_run(tmp_path / "a")])


# --- Tables 2 to 4 ---


def runs_of_a_paper(folder: Path) -> list[Path]:
    """One method that the paper has, on two splits, and one of a name that is trouble in every format."""
    splits = ("cross_task", "cross_website")
    known = [make_run(folder / split, split=split, step_sr=0.25) for split in splits]
    return [*known, make_run(folder / "other", model="=a|b_<c>&\\d", step_sr=0.75, left_out=2, n_tasks=60)]


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_a_table_reads_as_its_snapshot(tmp_path: Path, number: int, form: Form) -> None:
    """After a change that was meant: SNAPSHOTS=write python -m pytest tests/seeact_offline/tables/test_tables.py"""
    made = build_table(number, runs_of_a_paper(tmp_path), tmp_path).text(form)
    path = SNAPSHOTS / f"table{number}{ENDINGS[form]}"
    if os.environ.get("SNAPSHOTS") == "write":
        path.write_text(made)
    assert made == path.read_text()


def test_every_figure_of_a_csv_names_its_run_and_hash(tmp_path: Path) -> None:
    made = build_table(2, runs_of_a_paper(tmp_path), tmp_path)
    assert made.provenance is not None
    lines = list(csv.DictReader(io.StringIO(made.text("csv"))))
    hashes = {run["run"]: run["results_sha256"] for run in made.provenance.runs}
    assert len(lines) == 9
    assert all(hashes[line["run"]] == line["results_sha256"] for line in lines)
    assert (lines[2]["metric"], lines[2]["value"], lines[2]["paper"]) == ("step_success_rate", "0.25", "0.402")


def test_a_pooled_figure_names_all_its_runs(tmp_path: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(build_table(4, runs_of_a_paper(tmp_path), tmp_path).text("csv"))))
    assert lines[0]["run"] == "cross_task;cross_website"
    assert len(lines[0]["results_sha256"].split(";")) == 2


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_no_name_of_a_folder_ends_the_comment_that_holds_it(tmp_path: Path, form: Form) -> None:
    run = make_run(tmp_path / "a --><script>")
    made = build_table(2, [run], tmp_path).text(form)
    assert made.partition("\n")[0].count("-->") == 1
    assert "<script>" not in made


def test_latex_sets_figures_by_siunitx_and_the_best_of_each_column_bold(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / str(share), model=str(share), step_sr=share) for share in (0.25, 0.75, 0.5)]
    made = build_table(3, runs, tmp_path, stderr=True).latex()
    rows = [line for line in made.splitlines() if line.startswith("choice, ")]
    assert [line.count("\\bfseries") for line in rows] == [0, 1, 0]
    assert r"& \bfseries 75.0 & [65.0, 85.0] & 5.0 \\" in rows[1]
    assert made.count("S[table-format=") == 2
    assert r"Method & {Step SR} & 95 \% interval & {SE}" in made


@pytest.mark.parametrize("other", [{"protocol": "mindact"}, {"steps": 3}], ids=["protocol", "steps"])
def test_nothing_is_bold_among_runs_that_do_not_compare(tmp_path: Path, other: dict[str, Any]) -> None:
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", model="b", step_sr=0.5, **other)]
    assert "bfseries" not in build_table(3, runs, tmp_path).latex()


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_standard_errors_have_a_column_where_they_are_asked_for(tmp_path: Path, form: Form) -> None:
    run = make_run(tmp_path / "a", step_success_rate=figure(0.131, micro=0.143))
    with_it, without = (build_table(3, [run], tmp_path, stderr=asked).text(form) for asked in (True, False))
    assert "SE" in with_it
    assert "5.0" in with_it
    assert with_it.count("SE") > without.count("SE")


def test_domains_are_rows_without_the_papers(tmp_path: Path) -> None:
    made = build_table(2, [make_run(tmp_path / "a")], tmp_path, by="domain")
    assert "| cross_task, Shopping | " in made.markdown()
    assert "GPT-4V" not in made.markdown() + made.latex()


MACRO, MICRO = ("13.1", "0.131"), ("14.3", "0.143")
"""A figure whose averages differ, in percent and as a fraction."""


@pytest.mark.parametrize("form", ["markdown", "latex", "html", "csv"])
def test_rows_name_their_averages_where_protocols_quote_different_ones(tmp_path: Path, form: Form) -> None:
    shares = figure(0.131, micro=0.143)
    runs = [
        make_run(tmp_path / name, model=name, protocol=name, step_success_rate=shares)
        for name in ("seeact", "inspect-evals")
    ]
    made = build_table(3, runs, tmp_path).text(form)
    lines = {line for line in made.splitlines() if ("choice, " in line and "steps of" not in line)}
    for name, average, texts in (("seeact", "macro", MACRO), ("inspect-evals", "micro", MICRO)):
        row = next(line for line in lines if f"choice, {name}" in line)
        assert average in row
        assert any(text in row for text in texts)


@pytest.mark.parametrize("number", [3, 5])
@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_a_table_shows_the_average_that_its_protocol_quotes(tmp_path: Path, number: int, form: Form) -> None:
    figures = dict.fromkeys(("element_accuracy", "operation_f1", "step_success_rate"), figure(0.131, micro=0.143))
    marks = {"grounding": "annotation", "marks": "number", "mark_position": "bottom-left", "mark_turn1": None}
    run = make_run(tmp_path / "a", protocol="inspect-evals", **figures, **marks)
    made = build_table(number, [run], tmp_path).text(form)
    assert "micro" in made
    assert any(text in made for text in MICRO)
    assert not any(text in made for text in MACRO)


# --- Table 1 ---


@pytest.fixture
def stats(tmp_path: Path) -> Path:
    """As `stats --json` prints them."""
    split = {
        "split": "cross_task", "tasks": 3, "steps": 9, "domains": 2, "subdomains": 2, "websites": 1, "actions_a_task": 3.0,
        "elements_a_page": 150.5, "html_tokens_a_page": None, "visual_tokens": 765.0, "visual_tokens_at_full_size": 2000.0,
        "faulty_rows": 1, "faults": {}, "paper": None,
    }  # fmt: skip
    path = tmp_path / "stats.json"
    path.write_text(json.dumps({"tokenizer": "words", "splits": {"cross_task": split, "mine": split}}))
    return path


def test_table_1_sets_the_papers_row_below_a_split_of_its_name(stats: Path) -> None:
    table = build_table(1, [stats]).tables[0]
    assert [row[0] for row in table.rows] == ["cross_task", "cross_task, paper", "mine"]
    assert list(table.rows[0]) == ["cross_task", "3", "2", "1", "3.0", "2,000", "150", "-", 9, 1]
    assert list(table.rows[1][1:5]) == ["177", "17", "64", "7.6"]

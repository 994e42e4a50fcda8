"""Whether a table in a file is still what its runs give, in every format, whatever else the file holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seeact_offline.records import InputError
from seeact_offline.tables import build_table
from seeact_offline.tables.checking import CellChange, Changes, changes, written
from seeact_offline.tables.document import ENDINGS, Form
from tests.finished_runs import make_run

FORMS: tuple[Form, ...] = tuple(ENDINGS)


def text(folder: Path, form: Form, number: str | int = 2, standalone: bool = False) -> str:
    return build_table(number, [folder], folder).text(form, standalone)


def moved(old: str, new: str, form: Form) -> tuple[CellChange, ...]:
    found = changes(old, new, form)
    assert (found.missing, found.unknown) == ((), ())
    return found.moved


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name, step_sr in (("a", 0.25), ("b", 0.5)):
        make_run(tmp_path / name, model=f"openai/{name}", step_sr=step_sr)
    return tmp_path


@pytest.mark.parametrize("form", FORMS)
def test_a_table_says_what_it_was_made_of(runs: Path, form: Form) -> None:
    (found,) = written(text(runs, form), "x")
    assert (found.form, found.table, found.inputs, found.dataset) == (form, "2", ("a", "b"), None)
    assert {run: len(digest or "") for run, digest in found.hashes.items()} == {"a": 64, "b": 64}


@pytest.mark.parametrize("form", FORMS)
def test_a_changed_figure_is_the_cell_that_moved(runs: Path, form: Form) -> None:
    old, new = {"csv": ("0.25", "0.35")}.get(form, ("25.0", "35.0"))
    made = text(runs, form)
    (cell,) = moved(made.replace(old, new, 1), made, form)
    assert (new in cell.was, old in cell.now) == (True, True)
    assert "choice, openai/a" in cell.place


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_exchanged_labels_are_found(runs: Path, form: Form) -> None:
    made = text(runs, form)
    swapped = made.replace("openai/a ", "@@").replace("openai/b ", "openai/a ").replace("@@", "openai/b ")
    swapped = swapped.replace("openai/a<", "@@").replace("openai/b<", "openai/a<").replace("@@", "openai/b<")
    assert len(moved(swapped, made, form)) == 2


def lines_of(made: str, of: str) -> list[str]:
    """The rows of the table that hold the text."""
    return [line for line in made.splitlines(keepends=True) if of in line and not line.startswith(("%", "<!--", "1."))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_row_that_is_gone_is_one_row_missing(runs: Path, form: Form, number: int) -> None:
    made = text(runs, form, number)
    first = lines_of(made, "choice, openai/a")[0]
    found = changes(made.replace(first, ""), made, form)
    assert (found.moved, len(found.missing), found.unknown) == ((), 1, ())
    assert found.missing[0].startswith("row choice, openai/a")


@pytest.mark.parametrize("form", FORMS)
def test_a_row_that_no_run_gives_is_named(runs: Path, form: Form) -> None:
    made = text(runs, form)
    line = lines_of(made, "choice, openai/a")[0]
    found = changes(made.replace(line, line + line.replace("openai/a", "made up")), made, form)
    assert (found.moved, found.missing, len(found.unknown)) == ((), (), 1)
    assert "made up" in found.unknown[0]


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_row_under_another_label_is_matched_by_its_runs(runs: Path, form: Form, number: int) -> None:
    made = text(runs, form, number)
    first, second = (lines_of(made, f"choice, openai/{name}")[0] for name in "ab")
    relabelled = second.replace("choice, openai/b", "Ours").replace("50.0", "99.9").replace("0.0", "9.9")
    found = changes(made.replace(first, "").replace(second, relabelled), made, form)
    assert (found.missing, found.unknown) == (
        ("row choice, openai/a" + (", cross_task" if form != "latex" else ""),),
        (),
    )
    assert {(cell.was, cell.now) for cell in found.moved} >= {("Ours", "choice, openai/b")}
    assert len(found.moved) > 1


def test_a_column_that_is_gone_is_named_once() -> None:
    made = "| a | b | c |\n|---|---|---|\n| x | 1.0 | 2.0 |\n| y | 3.0 | 4.0 |\n"
    cut = "| a | c |\n|---|---|\n| x | 2.0 |\n| y | 4.0 |\n"
    assert changes(cut, made, "markdown") == Changes(missing=("column b",), n_cells=4)


def reordered(made: str) -> str:
    first, last = lines_of(made, "choice, openai/a"), lines_of(made, "choice, openai/b")
    return made.replace("".join(last), "").replace("".join(first), "".join([*last, *first]))


def without_run_numbers(made: str) -> str:
    return made.replace(r" \\ % run 1", r" \\").replace(r" \\ % run 2", r" \\ % mine")


def emphasised(markup: str) -> Callable[[str], str]:
    """Sets a figure and a label in bold type."""
    return lambda made: made.replace("25.0", markup.format("25.0"), 1).replace(LABEL, markup.format(LABEL), 1)


LABEL = "choice, openai/a"
EMPHASIS = {
    "markdown": ("**{}**", "__{}__"),
    "html": ("<b>{}</b>", "<strong class='x'>{}</strong>"),
    "latex": ("\\textbf{{{}}}", "\\bfseries {}", "{{\\bf {}}}", "$\\mathbf{{{}}}$"),
}
HARMLESS = [
    *((form, reordered) for form in FORMS),
    ("latex", without_run_numbers),
    *((form, emphasised(markup)) for form, several in EMPHASIS.items() for markup in several),
]


@pytest.mark.parametrize(("form", "edit"), HARMLESS)
def test_edits_that_move_no_figure_are_no_change(runs: Path, form: Form, edit: Callable[[str], str]) -> None:
    made = text(runs, form)
    assert edit(made) != made
    found = changes(edit(made), made, form)
    assert not found
    assert found.n_cells > 10


@pytest.mark.parametrize("form", ["latex", "html"])
def test_a_whole_document_is_read_as_its_table(runs: Path, form: Form) -> None:
    made = text(runs, form, standalone=True)
    assert [found.form for found in written(made, "x")] == [form]
    assert moved(made, text(runs, form), form) == ()


def test_several_tables_between_other_text_are_read_one_by_one(runs: Path) -> None:
    made = "\\section{x}\n" + text(runs, "latex") + "\nWords & more \\\\\n" + text(runs, "latex", number=3)
    found = written(made, "x")
    assert [one.table for one in found] == ["2", "3"]
    assert [moved(one.text, text(runs, "latex", one.table), "latex") for one in found] == [(), ()]


def test_columns_below_a_common_title_are_told_apart(runs: Path) -> None:
    made = text(runs, "latex")
    (cell,) = moved(made.replace("25.0", "35.0", 1), made, "latex")
    assert cell.place == "choice, openai/a, Cross-Task: Step SR"


@pytest.mark.parametrize(
    "other", ["", "| a |\n", "a,b\n1,2\n", "% seeact-offline table {}\n", "<!-- seeact-offline table {torn"]
)
def test_a_file_without_such_a_table_is_one_sentence(other: str) -> None:
    with pytest.raises(InputError, match=r"^check: expected a table that `tables` wrote.* got paper\.md"):
        written(other, "paper.md")

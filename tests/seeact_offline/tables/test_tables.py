"""The tables by name: one more is a function that draws it, and a line of TABLES."""

from __future__ import annotations

import pytest

from seeact_offline.files.table import Table
from seeact_offline.tables import TABLES
from seeact_offline.tables.drawing import Drawing


def toy(results, remark: str = "") -> Drawing:
    """Steps by model."""
    table = Table(header=("model", "steps"), rows=[(results["model"], results["n_steps"])])
    return Drawing(title="Steps & models", remark=remark, lead=["All of them."], tables=[table])


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawing:
    monkeypatch.setitem(TABLES, "toy", toy)
    return TABLES["toy"]({"model": "openai/x_1", "n_steps": 4}, "Made up.")


def test_a_registered_table_is_drawn_as_markdown(drawn: Drawing) -> None:
    assert drawn.markdown().startswith("# Steps &amp; models\n\nMade up.\n\nAll of them.\n\n| model      | steps |\n")


def test_a_registered_table_is_drawn_as_csv(drawn: Drawing) -> None:
    assert drawn.csv() == "model,steps\nopenai/x_1,4\n"


def test_a_registered_table_is_drawn_as_latex(drawn: Drawing) -> None:
    assert "\nopenai/x\\_1 & 4 \\\\\n" in drawn.latex()


def test_a_registered_table_is_drawn_as_html(drawn: Drawing) -> None:
    made = drawn.html()
    assert made.startswith("<h1>Steps &amp; models</h1>\n<p>Made up.</p>\n<p>All of them.</p>\n<table>")
    assert "<td>openai/x_1</td><td>4</td>" in made


def test_latex_and_csv_may_have_tables_of_their_own() -> None:
    page, figures, values = (Table(header=(name,), rows=[]) for name in ("page", "figures", "values"))
    drawing = Drawing(title="Toy", tables=[page], figures=figures, values=values)
    assert "figures" in drawing.latex()
    assert drawing.csv() == "values\n"


def test_the_body_is_the_page_without_title_and_remark(drawn: Drawing) -> None:
    assert drawn.markdown() == f"# Steps &amp; models\n\nMade up.\n\n{drawn.body()}\n"

"""Texts of strangers made harmless, for Markdown and for the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.files.markdown import cell, percent, printable, table


@given(st.text())
def test_a_cell_is_one_line_without_live_markup(text: str) -> None:
    made = cell(text)
    assert "\n" not in made
    assert "<" not in made
    assert all(made[i - 1] == "\\" for i, c in enumerate(made) if c in "`*[]|#")


@given(st.text())
def test_no_control_character_reaches_the_terminal(text: str) -> None:
    assert all(c.isprintable() or c in "\n\t" or ord(c) > 0x9F for c in printable(text))


def test_an_escape_sequence_is_made_visible() -> None:
    assert printable("\x1b[31mred\u202e") == "\\u001b[31mred\\u202e"


def test_tables_line_up() -> None:
    assert len({len(line) for line in table(("a", "bb"), [("ccc", "d")]).splitlines()}) == 1


@pytest.mark.parametrize(("value", "shown"), [(0.4567, "45.7"), (1.0, "100.0"), (None, "-")])
def test_percentages_have_one_decimal(value: float | None, shown: str) -> None:
    assert percent(value) == shown


@given(st.integers(1, 2000), st.data())
def test_a_percentage_is_the_same_whichever_way_the_fraction_was_computed(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    ways = [k / n, k * (1 / n), 1 - (n - k) / n, sum([1 / n] * k), (k / n + 3) / 2 * 2 - 3]
    assert len({percent(way) for way in ways}) == 1
    assert abs(float(percent(k / n)) - 100 * k / n) <= 0.05 + 1e-9

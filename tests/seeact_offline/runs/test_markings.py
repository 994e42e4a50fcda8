"""Ways of marking: which there are, and which need more labels than they have."""

from __future__ import annotations

from typing import Any

import pytest

from seeact_offline.pages.marks import MarkKind, MarkPosition
from seeact_offline.records import InputError
from seeact_offline.runs.markings import Marking, Turn1, check_markings, markings_of, paper_markings

KINDS: tuple[MarkKind, ...] = ("number", "letter", "double-letter")
POSITIONS: tuple[MarkPosition, ...] = ("bottom-left", "bottom-center")


def test_the_papers_rows_are_the_default_ones() -> None:
    assert markings_of(KINDS, POSITIONS, "paper") == list(paper_markings())


@pytest.mark.parametrize(("turn1", "count"), [("plain", 6), ("marked", 6), ("both", 12), ("paper", 7)])
def test_rows_are_the_combinations_asked_for(turn1: Turn1, count: int) -> None:
    markings = markings_of(KINDS, POSITIONS, turn1)
    assert len({one.name for one in markings}) == len(markings) == count


def test_markings_with_a_plain_turn_1_come_first_for_they_pay_for_what_is_shared() -> None:
    in_turn1 = [one.in_turn1 for one in markings_of(KINDS, POSITIONS, "both")]
    assert in_turn1 == sorted(in_turn1)


@pytest.mark.parametrize(
    ("kind", "asked", "error"),
    [
        ("letter", (27, "first", 50), "got 27 by group_size 27; use kinds number,double-letter or another group_size"),
        ("letter", (17, "single", 50), "got 50 by top_k 50 with merge single; use .* or another top_k"),
        ("letter", (1, "final-round", 50), "got 49 by group_size 1, as the final round of top_k 50"),
        ("double-letter", (700, "first", 50), "use kinds number or another group_size"),
    ],
)
def test_more_marks_than_labels_are_refused_with_what_to_use(
    kind: MarkKind, asked: tuple[int, Any, int], error: str
) -> None:
    with pytest.raises(InputError, match=f"^kinds: expected at most .* for {kind}, .*{error}"):
        check_markings([Marking(kind, "center")], *asked)


@pytest.mark.parametrize("asked", [(26, "final-round", 50), (30, "single", 26), (1, "first", 50)])
def test_as_many_marks_as_letters_are_fine(asked: tuple[int, Any, int]) -> None:
    check_markings([Marking("letter", "center"), Marking("number", "center")], *asked)

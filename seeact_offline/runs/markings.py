"""Ways of marking: kinds of label, where they lie, and whether turn 1 shows them. Each is a row of Table 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from seeact_offline.merging import split_groups
from seeact_offline.pages.marks import MARK_KINDS, MarkKind, MarkPosition, mark_capacity
from seeact_offline.records import InputError, MergeRule
from seeact_offline.scoring.paper_tables import paper_table

Turn1 = Literal["paper", "plain", "marked", "both"]


@dataclass(frozen=True, slots=True)
class Marking:
    """One way of marking."""

    kind: MarkKind
    position: MarkPosition
    in_turn1: bool = False
    """True if turn 1 shows the marked picture too."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.kind}-{self.position}" + ("-marked" if self.in_turn1 else "")

    @property
    def turn1(self) -> str:
        """The picture of turn 1."""
        return "marked" if self.in_turn1 else "plain"


def markings_of(kinds: Sequence[MarkKind], positions: Sequence[MarkPosition], turn1: Turn1) -> list[Marking]:
    """Every combination, those with a plain turn 1 first. `paper`: marked in turn 1 where the paper's Table 5 is.

    >>> [marking.name for marking in markings_of(["number"], ["bottom-left"], "both")]
    ['number-bottom-left', 'number-bottom-left-marked']
    """
    plain = [Marking(kind, position) for kind in kinds for position in positions]
    marked = [Marking(marking.kind, marking.position, in_turn1=True) for marking in plain]
    if turn1 == "paper":
        marked = [marking for marking in marked if marking in paper_markings()]
    return [*(plain if turn1 != "marked" else ()), *(marked if turn1 != "plain" else ())]


def check_markings(markings: Sequence[Marking], group_size: int, merge: MergeRule, top_k: int) -> None:
    """Raises InputError for a kind with fewer labels than one picture may need; the error says what to use instead."""
    most, why = group_size, f"group_size {group_size}"
    if merge == "single":
        most, why = top_k, f"top_k {top_k} with merge single"
    elif merge == "final-round" and (n_groups := len(split_groups([""] * top_k, group_size))) > group_size:
        most, why = n_groups, f"{why}, as the final round of top_k {top_k} holds a pick of every group"
    for kind in dict.fromkeys(marking.kind for marking in markings):
        capacity = mark_capacity(kind)
        if capacity is not None and most > capacity:
            others = [other for other in MARK_KINDS if (mark_capacity(other) or most) >= most]
            raise InputError(
                "kinds",
                f"at most {capacity} elements in one picture for {kind}",
                f"{most} by {why}; use kinds {','.join(others)} or another {why.split()[0]}",
            )


@cache
def paper_markings() -> Mapping[Marking, Mapping[str, float]]:
    """Marking -> the paper's figures by metric, as fractions (arXiv 2401.01614v2, Table 5)."""
    table = paper_table(5)
    return {
        Marking(row["kind"], row["position"], row["turn1"] == "marked"): {
            name: round(figure / 100, 4) for name, figure in zip(table["columns"], row["figures"], strict=True)
        }
        for row in table["rows"]
    }

"""Labelled fields -> the answers that they form, and the final one of these. Fields of two answers are never mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from seeact_offline.replies.fields import ACTION, ELEMENT, TEXT, TYPE, VALUE, Field
from seeact_offline.replies.operation import operation_in

_MAX_GAP = 10
"""Most lines of other text between two fields of one answer."""
_LAST_BLOCKS = 200
"""Most answers that are looked at: the final one stands at the end, and a megabyte of answers must not take long."""


@dataclass(frozen=True, slots=True)
class Block:
    """The fields of one answer, by name."""

    fields: dict[str, Field]

    def text(self, name: str) -> str:
        field = self.fields.get(name)
        return field.text if field else ""

    def says(self, name: str) -> bool:
        """Tells whether the field is there and holds more than punctuation."""
        return self.text(name).strip("*_`~-|\"' ") != ""

    @property
    def empty(self) -> bool:
        return not any(self.says(name) for name in self.fields)

    @property
    def has_element(self) -> bool:
        return any(self.says(name) for name in (ELEMENT, TYPE, TEXT))

    @property
    def complete(self) -> bool:
        return self.has_element and self.says(ACTION)

    @property
    def capitals(self) -> bool:
        return all(field.capitals for field in self.fields.values())


def group_fields(fields: Sequence[Field]) -> list[Block]:
    """The answers that the fields form: one ends where a field repeats, or where the next field is far away."""
    groups: list[list[Field]] = [[]]
    for field in fields:
        group = groups[-1]
        names = [other.name for other in group]
        if group and field.row - group[-1].row > _MAX_GAP:
            groups.append([])
        elif field.name in names:
            cut = _widest_gap([*group[names.index(field.name) :], field]) + names.index(field.name)
            groups[-1], rest = group[:cut], group[cut:]
            groups.append(rest)
        groups[-1].append(field)
    return [Block({field.name: field for field in group}) for group in groups if group]


def _widest_gap(fields: Sequence[Field]) -> int:
    """Finds the cut between a field and its repetition (first and last): the position at which the later answer begins.

    It begins at the repetition, unless a wider gap of lines separates two fields before it: then the fields after that gap
    already belong to the later answer. ELEMENT usually comes first, so its cut is only moved for a gap that is wider by more
    than two lines; VALUE comes last, so everything after the first one belongs to the second answer. A change to labels in
    capitals counts as three lines.
    """
    if fields[-1].name == VALUE:
        return 1
    gaps = [after.row - before.row + 3 * (after.capitals and not before.capitals) for before, after in pairwise(fields)]
    slack = 2 if fields[-1].name == ELEMENT else 0
    widest = max(range(len(gaps)), key=lambda k: (gaps[k], k))
    return 1 + (widest if gaps[widest] > gaps[-1] + slack else len(gaps) - 1)


def final_block(blocks: Sequence[Block], picks: Callable[[Block], bool]) -> Block:
    """The last complete answer; if there is none, the last with an element; if there is none, the last, which may be empty.

    `picks` says whether an answer's element can be read. Two kinds are skipped: a later answer that cannot be read and has
    labels in small letters (an explanation of the one before), and an unreadable one if a later, incomplete one has a
    readable element.
    """
    blocks = blocks[-_LAST_BLOCKS:]
    complete = [k for k, block in enumerate(blocks) if block.complete]
    if not complete:
        with_element = [block for block in blocks if block.has_element]
        return [Block({}), *blocks, *with_element][-1]
    chosen = complete[-1]
    for k in reversed(complete):
        block = blocks[k]
        if block.capitals or (picks(block) and operation_in(block.text(ACTION))):
            chosen = k
            break
    if not picks(blocks[chosen]):
        later = [block for block in blocks[chosen + 1 :] if block.has_element and picks(block)]
        return later[-1] if later else blocks[chosen]
    return blocks[chosen]

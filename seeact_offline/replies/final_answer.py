"""Reads a model's final answer: its text -> the fields, or the name of what could not be read. Nothing is ever guessed.

The text is free: an analysis, then lines such as ``ELEMENT: H``, ``ACTION: CLICK``, ``VALUE: None``, laid out as the
model likes (markdown, JSON, tables, quotes, full-width letters, all on one line, ...). It is read in four steps:

1. `fields` finds the labelled fields. Labels in running text only count if no ELEMENT is found without them.
2. The fields are grouped into answers: one ends where a field repeats.
3. The last complete answer is taken as a whole: fields of two answers are never mixed.
4. `decided` looks at the words around it, and `field_values` reads each field.

Every regular expression takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from seeact_offline.records import GroundingReply
from seeact_offline.replies.answer_text import plain_answer
from seeact_offline.replies.decided import DECLINED, SEVERAL, set_aside, takes_back
from seeact_offline.replies.field_values import operation_in, picked_letter, picked_mark, says_none, value_in
from seeact_offline.replies.fields import ACTION, ALSO, ELEMENT, TEXT, TYPE, VALUE, Field, find_fields, split_lines


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of final answer."""

    fields: tuple[str, ...]
    pick: Callable[[str, Sequence[str]], int | str] | None
    """ELEMENT field and labels -> index of the option, the number of labels for "none of them", or a failure's name.
    None where the element is described."""


_KINDS = {
    "choice": _Kind((ELEMENT, ACTION, VALUE), lambda element, labels: picked_letter(element, len(labels))),
    "annotation": _Kind((ELEMENT, ACTION, VALUE), picked_mark),
    "attributes": _Kind((ELEMENT, TYPE, TEXT, ACTION, VALUE), None),
}
GROUNDINGS = tuple(_KINDS)

PARSE_FAILURES = (
    # no labelled field at all: an empty text, or only the echo of the prompt's format
    "no_final_answer",
    # ACTION or VALUE, but no ELEMENT
    "missing_element",
    # ELEMENT is not exactly one of the offered letters or marks, and does not say "none"
    "unknown_choice",
    # different elements, and nothing says which
    "several",
    # an answer that the words in it or around it deny, take back, quote or only suppose
    "declined",
    # attributes: an element without its type
    "missing_element_type",
    # attributes: an element without its text
    "missing_element_text",
    # an element, but no ACTION
    "missing_action",
    # ACTION is not exactly one of CLICK, TYPE, SELECT
    "unknown_action",
    # TYPE or SELECT without a VALUE
    "missing_value",
)


def parse_grounding_reply(text: str, grounding: str, n_choices: int, *, labels: Sequence[str] = ()) -> GroundingReply:
    """Reads the final answer from a model's text. Never raises because of `text`.

    `n_choices` options were lettered from A; the letter after them means "none of them". `failure` is one of
    PARSE_FAILURES or None; fields that could be read are given all the same. "None of them" needs no action or value.
    For `annotation` the options carry `labels` instead (default: 1, 2, ...), and NA means "none of them". For
    `attributes` the element is described, `choice` stays None and `n_choices` is not used.

    >>> reply = parse_grounding_reply("The fare it is.\\n\\nELEMENT: B\\nACTION: TYPE\\nVALUE: Vienna", "choice", 3)
    >>> reply.choice, reply.op, reply.value, reply.failure
    (1, 'TYPE', 'Vienna', None)
    >>> parse_grounding_reply("ELEMENT: D\\nACTION: CLICK", "choice", 3).picked_none
    True
    >>> parse_grounding_reply("I would rather not say.", "choice", 3).failure
    'no_final_answer'
    """
    if grounding not in GROUNDINGS:
        raise ValueError(f"grounding must be one of {', '.join(GROUNDINGS)}, got {grounding!r}")
    if n_choices < 0:
        raise ValueError(f"n_choices must be 0 or more, got {n_choices}")
    labels = labels or [str(number) for number in range(1, n_choices + 1)]
    if len(labels) != n_choices:
        raise ValueError(f"labels must be n_choices = {n_choices} texts, got {len(labels)}")

    kind = _KINDS[grounding]

    def picks(block: Block) -> bool:
        return block.says(TEXT) if kind.pick is None else isinstance(kind.pick(block.text(ELEMENT), labels), int)

    block, aside = final_fields(text, kind.fields, picks)
    if block.empty:
        return GroundingReply(choice=None, failure="no_final_answer")
    if kind.pick is None:
        return _read_description(block, aside)
    pick, read = kind.pick(block.text(ELEMENT), labels), _read_operation(block)
    if pick == n_choices:
        return replace(read, picked_none=True, failure=None)
    if not block.has_element:
        return replace(read, failure="missing_element")
    if isinstance(pick, str) or aside:
        return replace(read, failure=pick if isinstance(pick, str) else aside)
    return replace(read, choice=pick)


def action_field(text: str) -> str:
    """The ACTION of the final answer as it is written; empty for none.

    >>> action_field("All is done.\\n\\nELEMENT: D\\nACTION: TERMINATE\\nVALUE: None")
    'TERMINATE'
    """
    return final_fields(text, picks=lambda block: block.says(ACTION))[0].text(ACTION)


def final_fields(
    text: str, names: Collection[str] = (ELEMENT, ACTION, VALUE), picks: Callable[[Block], bool] = lambda block: True
) -> tuple[Block, str | None]:
    """The fields of the final answer, and the failure's name where the words around it set it aside.

    An answer in running text counts if no other has an element, and `picks` can read its own.
    """
    lines = split_lines(plain_answer(text))
    block = final_block(group_fields(find_fields(lines, names)), picks)
    if not block.has_element:
        loose = final_block(group_fields(find_fields(lines, names, loose=True)), picks)
        block = loose if loose.has_element and picks(loose) else block
    if block.empty:
        return block, None
    ordered = sorted(block.fields.values(), key=lambda field: (field.line, field.start))
    before, after = lines.before(ordered[0]), lines.after(max(ordered, key=lambda field: field.last))
    return block, set_aside(before, len(before)) or (DECLINED if takes_back(after) else None)


_TYPES_LISTED = re.compile(r"\w\W*(?:\bor\b|[/,|])\W*\w")
_TEXTS_LISTED = re.compile(rf"[\"\u201d]\W*\bor\b\W*[\"\u201c]|{re.escape(ALSO)}")


def _read_description(block: Block, aside: str | None) -> GroundingReply:
    read, kind, text = _read_operation(block), value_in(block.text(TYPE)), value_in(block.text(TEXT))
    named = block.text(ELEMENT) if ELEMENT in block.fields else block.text(TYPE)
    if not text and says_none(named):
        return replace(read, picked_none=True, failure=None)
    failure = read.failure
    if not block.has_element:
        failure = "missing_element"
    elif not kind:
        failure = "missing_element_type"
    elif not text:
        failure = "missing_element_text"
    elif aside or _TYPES_LISTED.search(kind) or _TEXTS_LISTED.search(text):
        return replace(read, failure=aside or SEVERAL)
    return replace(read, failure=failure, element_type=kind, element_text=text)


def _read_operation(block: Block) -> GroundingReply:
    """Operation and value, with the failure of the reply if its element can be read."""
    op = operation_in(block.text(ACTION))
    field = block.fields.get(VALUE)
    value = "" if field is None else value_in(field.text, op)
    if field is not None and field.below and op == "CLICK":
        # a click has no value: the text below its empty VALUE line is an explanation
        value = ""
    failure = "missing_value" if op != "CLICK" and not value else None
    if not op:
        failure = "unknown_action" if block.says(ACTION) else "missing_action"
    return GroundingReply(None, op, value, failure)


# --- fields of one answer ---

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

    It begins at the repetition, unless a wider gap of lines separates two fields before it: then the fields after that
    gap already belong to the later answer. ELEMENT usually comes first, so its cut is only moved for a gap that is
    wider by more than two lines; VALUE comes last, so everything after the first one belongs to the second answer. A
    change to labels in capitals counts as three lines.
    """
    if fields[-1].name == VALUE:
        return 1
    gaps = [after.row - before.row + 3 * (after.capitals and not before.capitals) for before, after in pairwise(fields)]
    slack = 2 if fields[-1].name == ELEMENT else 0
    widest = max(range(len(gaps)), key=lambda k: (gaps[k], k))
    return 1 + (widest if gaps[widest] > gaps[-1] + slack else len(gaps) - 1)


def final_block(blocks: Sequence[Block], picks: Callable[[Block], bool]) -> Block:
    """The last complete answer; if there is none, the last with an element; if there is none, the last, which may be
    empty.

    `picks` says whether an answer's element can be read. Two kinds are skipped: a later answer that cannot be read and
    has labels in small letters (an explanation of the one before), and an unreadable one if a later, incomplete one has
    a readable element.
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

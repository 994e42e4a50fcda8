"""A model's text -> the fields of its answer, or the name of what could not be read. Nothing is ever guessed.

The text is free: an analysis, then lines such as ``ELEMENT: H``, ``ACTION: CLICK``, ``VALUE: None``, laid out as the
model likes (markdown, JSON, tables, quotes, full-width letters, all on one line, ...). It is read in four steps:

1. `fields` finds the labelled fields, and `labels` the labels on a line. Labels in running text only count if no ELEMENT
   is found without them.
2. `blocks` groups the fields into answers: one ends where a field repeats.
3. The last complete answer is taken as a whole: fields of two answers are never mixed.
4. `element` and `operation` each read one field.

Every regular expression takes time linear in the length of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seeact_offline.records import GroundingReply
from seeact_offline.replies.blocks import Block, final_block, group_fields
from seeact_offline.replies.element import picked_letter, picked_mark, says_none
from seeact_offline.replies.fields import find_fields, split_lines
from seeact_offline.replies.labels import ACTION, ELEMENT, TEXT, TYPE, VALUE
from seeact_offline.replies.operation import operation_in, value_in

_FIELDS = {
    "choice": (ELEMENT, ACTION, VALUE),
    "annotation": (ELEMENT, ACTION, VALUE),
    "attributes": (ELEMENT, TYPE, TEXT, ACTION, VALUE),
}
GROUNDINGS = tuple(_FIELDS)

PARSE_FAILURES = (
    # no labelled field at all: an empty text, or only the echo of the prompt's format
    "no_final_answer",
    # ACTION or VALUE, but no ELEMENT
    "missing_element",
    # ELEMENT is not exactly one of the offered letters or marks, and does not say "none"
    "unknown_choice",
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
    """
    if grounding not in GROUNDINGS:
        raise ValueError(f"grounding must be one of {', '.join(GROUNDINGS)}, got {grounding!r}")
    if n_choices < 0:
        raise ValueError(f"n_choices must be 0 or more, got {n_choices}")
    labels = labels or [str(number) for number in range(1, n_choices + 1)]
    if len(labels) != n_choices:
        raise ValueError(f"labels must be n_choices = {n_choices} texts, got {len(labels)}")

    def pick(block: Block) -> int | None:
        element = block.text(ELEMENT)
        return picked_mark(element, labels) if grounding == "annotation" else picked_letter(element, n_choices)

    def picks(block: Block) -> bool:
        return block.says(TEXT) if grounding == "attributes" else pick(block) is not None

    block = _answer(text, grounding, picks)
    if block is None or block.empty:
        return GroundingReply(choice=None, failure="no_final_answer")
    if grounding == "attributes":
        return _read_attributes(block)
    return _read_choice(block, pick(block), n_choices)


def _answer(text: str, grounding: str, picks: Callable[[Block], bool]) -> Block | None:
    """The final answer. If it has no element, one in running text counts, provided that `picks` can read its element."""
    lines, names = split_lines(text), _FIELDS[grounding]
    block = final_block(group_fields(find_fields(lines, names)), picks)
    if block is not None and block.has_element:
        return block
    loose = final_block(group_fields(find_fields(lines, names, loose=True)), picks)
    return loose if loose is not None and loose.has_element and picks(loose) else block


def _read_choice(block: Block, pick: int | None, n_choices: int) -> GroundingReply:
    operation = _read_operation(block)
    op, value = operation.op, operation.value
    if pick is None:
        failure = "unknown_choice" if block.has_element else "missing_element"
        return GroundingReply(choice=None, op=op, value=value, failure=failure)
    if pick == n_choices:
        return GroundingReply(choice=None, op=op, value=value, picked_none=True)
    return GroundingReply(choice=pick, op=op, value=value, failure=operation.failure)


def _read_attributes(block: Block) -> GroundingReply:
    operation = _read_operation(block)
    op, value, failure = operation.op, operation.value, operation.failure
    kind, text = value_in(block.text(TYPE)), value_in(block.text(TEXT))
    named = block.text(ELEMENT) if ELEMENT in block.fields else block.text(TYPE)
    if not text and says_none(named):
        return GroundingReply(choice=None, op=op, value=value, picked_none=True)
    if not block.has_element:
        failure = "missing_element"
    elif not kind:
        failure = "missing_element_type"
    elif not text:
        failure = "missing_element_text"
    return GroundingReply(choice=None, op=op, value=value, failure=failure, element_type=kind, element_text=text)


@dataclass(frozen=True, slots=True)
class _Operation:
    """What an answer wants to do with its element."""

    op: str
    """One of OPERATIONS, or empty."""
    value: str
    failure: str | None
    """The reply's failure, provided that its element can be read."""


def _read_operation(block: Block) -> _Operation:
    op = operation_in(block.text(ACTION))
    field = block.fields.get(VALUE)
    value = "" if field is None else value_in(field.text, op)
    if field is not None and field.below and op == "CLICK":
        # a click has no value: the text below its empty VALUE line is an explanation
        value = ""
    if not op:
        return _Operation(op, value, "unknown_action" if block.says(ACTION) else "missing_action")
    return _Operation(op, value, "missing_value" if op != "CLICK" and not value else None)

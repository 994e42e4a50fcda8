"""Reads a model's final answer: its text -> the fields, or the name of what could not be read. Nothing is ever guessed.

The text is free: an analysis, then lines such as ``ELEMENT: H``, ``ACTION: CLICK``, ``VALUE: None``, laid out as the
model likes (markdown, JSON, tables, quotes, full-width letters, all on one line, ...). It is read in four steps:

1. `fields` finds the labelled fields. Labels in running text only count if no ELEMENT is found without them.
2. `blocks` groups the fields into answers: one ends where a field repeats.
3. The last complete answer is taken as a whole: fields of two answers are never mixed.
4. `decided` looks at the words around it, and `element` and `operation` each read one field.

Every regular expression takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from seeact_offline.records import GroundingReply
from seeact_offline.replies.answer_text import plain_answer
from seeact_offline.replies.blocks import Block, final_block, group_fields
from seeact_offline.replies.decided import DECLINED, SEVERAL, set_aside, takes_back
from seeact_offline.replies.element import picked_letter, picked_mark, says_none
from seeact_offline.replies.fields import ACTION, ALSO, ELEMENT, TEXT, TYPE, VALUE, find_fields, split_lines
from seeact_offline.replies.operation import operation_in, value_in


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of final answer."""

    fields: tuple[str, ...]
    pick: Callable[[str, Sequence[str]], int | str] | None
    """ELEMENT field and labels -> index of the option, the number of labels for "none of them", or a failure's name. None where the
    element is described."""


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

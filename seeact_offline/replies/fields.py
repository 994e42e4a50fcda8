"""A model's text -> its labelled fields, in order: what follows each label, as the model wrote it.

That is usually the rest of the label's line. It may also be the line below, a cell of a table that has labels in its
head row, or a JSON or Python string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest

from seeact_offline.replies import words
from seeact_offline.replies.labels import (
    ACTION,
    ELEMENT,
    MENTION,
    TEXT,
    TYPE,
    VALUE,
    Label,
    begins_with_label,
    label_alone,
    labels_on,
    table_head,
)

_LAST_LABELS = 10_000
"""Most labels that are looked at: the final answer stands at the end, and a megabyte of labels must not take long."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a text. All three have the same length."""

    written: Sequence[str]
    """The lines as the model wrote them."""
    plain: Sequence[str]
    """The lines in plain form, each as long as in `written`."""
    rows: Sequence[int]
    """Number of non-empty lines before each line."""


@dataclass(frozen=True, slots=True)
class Field:
    """A label and what follows it."""

    name: str
    """Name of its label, as in `Label`."""
    text: str
    """The text as written, without surrounding white space."""
    row: int
    """Number of non-empty lines before its label."""
    capitals: bool
    """True if the label is in capitals, as the prompt asks, or is a quoted key."""
    closed: bool = False
    """True if the text certainly ends there (quoted, a table's cell, another label follows): it may then be empty."""
    below: bool = False
    """True if the text stands on a line below the label."""


def split_lines(text: str) -> Lines:
    """The lines of a text, from the first label that is looked at."""
    mentions = [found.start() for found in MENTION.finditer(words.plain(text))]
    start = mentions[-_LAST_LABELS] if len(mentions) > _LAST_LABELS else 0
    written = text[start:].splitlines()
    plain = words.plain("\n".join(written)).split("\n") if written else []
    rows: list[int] = []
    row = 0
    for line in plain:
        rows.append(row)
        row += not line.isspace() and line != ""
    return Lines(written, plain, rows)


def find_fields(lines: Lines, names: Collection[str], loose: bool = False) -> list[Field]:
    """All fields with these names, in order. `loose` also accepts labels in the middle of running text."""
    fields: list[Field] = []
    # names in the answer that is being read
    open_names: set[str] = set()
    for i, line in enumerate(lines.plain):
        if not MENTION.search(line):
            continue
        for field in _fields_of_line(lines, i, open_names, loose):
            is_echo = _ECHO[field.name].search(words.plain(field.text[:300])) is not None
            if field.name not in names or is_echo:
                continue
            if field.name in open_names:
                open_names.clear()
            open_names.add(field.name)
            fields.append(_from_below(field, lines, i, fields))
    return fields


def _fields_of_line(lines: Lines, i: int, open_names: Set[str], loose: bool) -> Iterator[Field]:
    head, alone = table_head(lines.plain[i]), label_alone(lines.plain[i])
    if head:
        yield from _table_fields(lines, i, head)
    elif alone:
        yield Field(alone, "", lines.rows[i], capitals=True)
    else:
        yield from _labelled_fields(lines, i, open_names, loose)


def _table_fields(lines: Lines, i: int, head: Sequence[str]) -> Iterator[Field]:
    """A table with the labels as its head: the first row with words is the answer."""
    for j in range(i + 1, min(i + 4, len(lines.plain))):
        cells = lines.written[j].strip().strip("|").split("|")
        if any(char.isalnum() for char in lines.plain[j]):
            for name, cell in zip(head, cells, strict=False):
                yield Field(name, cell.strip(), lines.rows[j], capitals=True, closed=True)
            return


def _labelled_fields(lines: Lines, i: int, open_names: Set[str], loose: bool) -> Iterator[Field]:
    written, first = lines.written[i], lines.plain[i].lstrip()[:1]
    labels = labels_on(lines.plain[i], open_names, loose)
    for label, following in zip_longest(labels, labels[1:]):
        quoted = label.text_end is not None
        if quoted:
            text = _literal(written[label.end : label.text_end])
        else:
            text = _cut(written, label, len(written) if following is None else following.start, first)
        closed = quoted or following is not None
        yield Field(label.name, text, lines.rows[i], label.capitals or quoted, closed)


def _from_below(field: Field, lines: Lines, i: int, before: Sequence[Field]) -> Field:
    """The field, with the text of a following line if its own line has none.

    A VALUE may be empty on purpose, so only the very next line counts, unless the whole answer is laid out this way.
    """
    if field.closed or field.text.strip("*_`~| \t"):
        return field
    may_skip = field.name != VALUE or (bool(before) and before[-1].below)
    for j in range(i + 1, min(i + 4, len(lines.plain))):
        if any(char.isalnum() for char in lines.plain[j]):
            if begins_with_label(lines.plain[j]):
                break
            return Field(field.name, lines.written[j].strip(), field.row, field.capitals, below=True)
        if not may_skip:
            break
    return field


# --- the text after a label ------------------------------------------------------------------------------------------

_TOKENS = re.compile(
    r"(?:</(?:s|answer|final_answer|output|response)>|<\|[^<>|]{1,30}\|>|<end_of_turn>|<br ?/?>)\s{0,9}$"
)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_WRAPPERS = {
    **{mark: mark for mark in "*_`"},
    **{quote: words.CLOSING_QUOTES[quote] for quote in "\"'\u201c\u2018\u300c"},
}


def _literal(written: str) -> str:
    """The text that a JSON or Python literal stands for."""
    literal = written.strip()
    if literal[:1] == '"':
        try:
            return str(json.loads(literal, strict=False)).strip()
        except ValueError:
            return literal
    if literal[:1] == "'":
        return re.sub(r"\\(.)", r"\1", literal[1:-1]).strip()
    return literal


def _cut(written: str, label: Label, stop: int, first: str) -> str:
    """The text between a label and `stop`, without punctuation that wraps label and text together.

    `first` is the line's first character that is not white space, in plain form.
    """
    text = written[label.end : stop].strip()
    if stop < len(written):
        text = text.rstrip("*_#([{ \t").rstrip(",;|\uff0c\u3001\uff1b \t")
    elif first == "|":
        text = text.rstrip("| \t")
    token = _TOKENS.search(text, max(0, len(text) - 60))
    text = text[: token.start()].rstrip() if token else text
    text = _without_wrapping(text, written[max(0, label.start - 8) : label.start], label.close)
    closer = _BRACKETS.get(first, "")
    if closer and text.endswith(closer) and text.count(closer) > text.count(first):
        text = text[:-1]
    return text.strip()


def _without_wrapping(text: str, left: str, close: str) -> str:
    """`text` without the ends of emphasis or quotes that opened left of the label: `**VALUE:** x`, `"VALUE: x"`."""
    ends = ""
    for char in reversed(left):
        if char not in _WRAPPERS:
            break
        ends += _WRAPPERS[char]
    if not ends or close.strip():
        return text
    if text.startswith(ends):
        return text[len(ends) :].lstrip()
    return text[: -len(ends)].rstrip() if text.endswith(ends) else text


# --- the prompt's own words ------------------------------------------------------------------------------------------

_PICKED = r"(?-i:[A-Z]{1,2}|\d{1,4})\W*$"
_ASKING = rf"^\W*please (?!(?:choose|select) (?:(?:option|choice|element|letter|mark) )?\W{{0,3}}{_PICKED})(?:provide|specify|describe|choose|select|give)\b"
_LETTER_OF = (
    r"^\W*(?:(?:the|one|a|an|your|single|upper-?case|capital) ){0,4}(?:letter|label|number|mark) (?:of|from|for) "
    rf"(?:the|your) (?![\w ]{{3,26}} (?:is|would be)\W{{1,3}}{_PICKED})"
    r"[\w ]{3,30}(?:\W*$|\((?!(?:[A-Za-z]{1,3}|\d{1,4})\)))"
)
# The prompt's own format lines, written back: they describe an answer but are not one.
_ECHO = {
    ELEMENT: re.compile(f"{_LETTER_OF}|{_ASKING}", re.IGNORECASE),
    TYPE: re.compile(_ASKING, re.IGNORECASE),
    TEXT: re.compile(_ASKING, re.IGNORECASE),
    ACTION: re.compile(r"^(?=.*\bCLICK\b)(?=.*\bTYPE\b)(?=.*\bSELECT\b)", re.DOTALL),
    VALUE: re.compile(
        r"^(?=.*\bTYPE\b)(?=.*\bSELECT\b)|^\W*(?:[Pp]rovide|[Ss]pecify|[Ww]rite)\b[\w ]{0,40}\bACTION\b", re.DOTALL
    ),
}

"""A model's text -> its labelled fields, in order: what follows ``ELEMENT:``, ``ACTION:`` or ``VALUE:``, as the model
wrote it.

That is usually the rest of the label's line. It may also be the line below, a cell of a table that has labels in its
head row, or a value of a JSON object. A label counts where it begins its line, and anywhere if it is in capitals and
not inside quotes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import zip_longest

from seeact_offline.replies.calls import json_spans
from seeact_offline.replies.words import CLOSING_QUOTES, DASHES, NUMBERING, plain

ELEMENT, TYPE, TEXT, ACTION, VALUE = "ELEMENT", "ELEMENT TYPE", "ELEMENT TEXT", "ACTION", "VALUE"
LABELS = (ELEMENT, TYPE, TEXT, ACTION, VALUE)
_FREE = (VALUE, TEXT)
"""Fields of free text: what follows on their line is theirs, unless it is plainly another label."""
MENTION = re.compile("ELEMENT|ACTION|VALUE|LETTER OF", re.IGNORECASE)
"""Every text with a label has one of these words."""
_LAST_LABELS = 10_000
"""Most labels that are looked at: the final answer stands at the end, and a megabyte of labels must not take long."""
ALSO = " | "
"""Stands between the entries of a list or table under one label."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a text. All three have the same length."""

    written: Sequence[str]
    """The lines as the model wrote them, a JSON object with labels as keys as a line a key."""
    plain: Sequence[str]
    """The lines in plain form, each as long as in `written`."""
    rows: Sequence[int]
    """Number of non-empty lines before each line."""

    def before(self, field: Field) -> str:
        """The text before a field's label, as far as its lead may reach."""
        above = self.plain[max(0, field.line - 8) : field.line]
        return "\n".join([*above, self.plain[field.line][: field.start]])

    def after(self, field: Field) -> str:
        """The lines behind that of a field."""
        return "\n".join(self.plain[field.last + 1 : field.last + 40])


@dataclass(frozen=True, slots=True)
class Label:
    """A label on a line."""

    name: str
    """One of ELEMENT, TYPE, TEXT, ACTION and VALUE."""
    capitals: bool
    """True if it is written in capitals, as the prompt asks."""
    start: int
    """Position at which its name begins."""
    end: int
    """Position at which the text that it labels begins."""
    close: str
    """The punctuation between its name and the colon."""


@dataclass(frozen=True, slots=True)
class Field:
    """A label and what follows it."""

    name: str
    """Name of its label, as in `Label`."""
    text: str
    """The text as written, without surrounding white space."""
    line: int
    """Index of the line of its label."""
    row: int
    """Number of non-empty lines before its label."""
    capitals: bool
    """True if the label is in capitals, as the prompt asks."""
    closed: bool = False
    """True if the text certainly ends there (a table's cell, another label follows): it may then be empty."""
    below: bool = False
    """True if the text stands on a line below the label."""
    start: int = 0
    """Position of its label on its line."""
    last: int = -1
    """Index of the last line of its text."""


def split_lines(text: str) -> Lines:
    """The lines of a text, from the first label that is looked at."""
    mentions = [match.start() for match in MENTION.finditer(plain(text))]
    start = mentions[-_LAST_LABELS] if len(mentions) > _LAST_LABELS else 0
    written = _with_json_as_lines(text[start:]).splitlines()
    plainly = plain("\n".join(written)).split("\n") if written else []
    rows: list[int] = []
    row = 0
    for line in plainly:
        rows.append(row)
        row += not line.isspace() and line != ""
    return Lines(written, plainly, rows)


def _with_json_as_lines(text: str) -> str:
    """The text with each value of JSON whose objects have labels as keys written as lines of labels."""
    if not re.search(r"[\"'][^\"'\n]{0,20}[\"']\s*:", text):
        return text
    parts, at = [], 0
    for start, end, value in json_spans(text):
        if answers := list(_json_answers(value)):
            named = [(key, ALSO.join(dict.fromkeys(answer.get(key, "") for answer in answers))) for key in LABELS]
            lines = (f"{key}: {text}\n" for key, text in named if any(key in answer for answer in answers))
            parts += [text[at:start].rstrip("`[ \n"), "\n", *lines, "\n"]
            at = end
    return "".join([*parts, text[at:]])


def _json_answers(value: object, depth: int = 0) -> Iterator[dict[str, str]]:
    """Yields the fields of each object that has labels as keys."""
    if isinstance(value, dict) and depth < 5:
        named = {_name(str(key)): _json_text(inside) for key, inside in value.items() if not isinstance(inside, dict)}
        if named.keys() & {ELEMENT, ACTION}:
            yield named
            return
    for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        if isinstance(inside, dict | list | tuple) and depth < 5:
            yield from _json_answers(inside, depth + 1)


def _json_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ALSO.join(map(_json_text, value))
    return "None" if value is None else " ".join(str(value).splitlines())


def find_fields(lines: Lines, names: Collection[str], loose: bool = False) -> list[Field]:
    """All fields with these names, in order. `loose` also accepts labels in the middle of running text."""
    fields: list[Field] = []
    # names in the answer that is being read
    open_names: set[str] = set()
    for i, line in enumerate(lines.plain):
        if not MENTION.search(line):
            continue
        for field in _fields_of_line(lines, i, open_names, loose):
            is_echo = _ECHO[field.name].search(plain(field.text[:300])) is not None
            if field.name not in names or is_echo:
                continue
            if field.name == ELEMENT and fields and _is_listed(fields[-1], field):
                fields[-1] = replace(fields[-1], text=f"{fields[-1].text}{ALSO}{field.text}", last=field.last)
                continue
            if field.name in open_names:
                open_names.clear()
            open_names.add(field.name)
            fields.append(_from_below(field, lines, i, fields))
    return fields


def _is_listed(before: Field, field: Field) -> bool:
    """Tells whether two lines of the same label follow each other, and name different labels of the page."""
    both = before.name == field.name and before.capitals and field.capitals and field.row == before.row + 1
    return both and before.text != field.text and all(_LISTED.fullmatch(plain(line.text)) for line in (before, field))


def _fields_of_line(lines: Lines, i: int, open_names: Set[str], loose: bool) -> Iterator[Field]:
    head, alone = _table_head(lines.plain[i]), _label_alone(lines.plain[i])
    if head:
        yield from _table_fields(lines, i, head)
    elif alone:
        yield Field(alone, "", i, lines.rows[i], capitals=True, last=i)
    else:
        yield from _labelled_fields(lines, i, open_names, loose)


def _table_fields(lines: Lines, i: int, head: Sequence[str]) -> Iterator[Field]:
    """A table with the labels as its head: its rows with words are answers, all of them in one field."""
    rows = []
    last = i + 1
    while last < min(i + 12, len(lines.plain)) and "|" in lines.plain[last]:
        if any(char.isalnum() for char in lines.plain[last]):
            rows.append(lines.written[last].strip().strip("|").split("|"))
        last += 1
    for name, *cells in zip(head, *rows[:5], strict=False):
        text = ALSO.join(dict.fromkeys(cell.strip() for cell in cells))
        yield Field(name, text, i, lines.rows[i], capitals=True, closed=True, last=last - 1)


def _labelled_fields(lines: Lines, i: int, open_names: Set[str], loose: bool) -> Iterator[Field]:
    written, first = lines.written[i], lines.plain[i].lstrip()[:1]
    labels = labels_on(lines.plain[i], open_names, loose)
    for label, following in zip_longest(labels, labels[1:]):
        text = _cut(written, label, len(written) if following is None else following.start, first)
        yield Field(
            label.name, text, i, lines.rows[i], label.capitals, closed=following is not None, start=label.start, last=i
        )


_LISTED = re.compile(rf"[\W_]*(?:{NUMBERING})?[\W_]*(?:[A-Z]{{1,2}}|\d{{1,4}})(?![\w.,:/]\d)[\W_]*")
"""A line that is one label more, and nothing else."""


def _from_below(field: Field, lines: Lines, i: int, before: Sequence[Field]) -> Field:
    """The field with the text of the lines below: of the next one with words where its own has none, and of those that
    list further labels.

    A VALUE may be empty on purpose, so only the very next line counts, unless the whole answer is laid out this way.
    """
    if field.closed:
        return field
    may_skip = field.name != VALUE or (bool(before) and before[-1].below)
    rest = [j for j in range(i + 1, min(i + 5, len(lines.plain))) if any(char.isalnum() for char in lines.plain[j])]
    if not field.text.strip("*_`~| \t"):
        if not rest or begins_with_label(lines.plain[rest[0]]) or (rest[0] > i + 1 and not may_skip) or rest[0] > i + 3:
            return field
        text = re.sub(rf"^\W*{NUMBERING}(?=\W*\w)", "", lines.written[rest[0]].strip())
        field = replace(field, text=text, below=True, last=rest.pop(0))
    for j in rest if field.name == ELEMENT else ():
        if j > field.last + 1 or not _LISTED.fullmatch(lines.plain[j]):
            break
        field = replace(field, text=f"{field.text}{ALSO}{re.sub(NUMBERING, '', lines.written[j]).strip()}", last=j)
    return field


# --- labels on a line ------------------------------------------------------------------------------------------------

_LABEL = re.compile(
    r"""(?<![^\W_])
    (?P<name>ELEMENT[ _]{1,3}TYPE | ELEMENT[ _]{1,3}TEXT | ELEMENT | ACTION | VALUE
        | (?:THE[ ])?(?:UPPERCASE[ ]|CAPITAL[ ])?LETTER[ ]OF[ ](?:YOUR|MY)[ ]CHOICE)
    (?:[ _](?:choice|letter|option|id)\b)?
    (?:[ ]{0,3}\([^()]{1,40}\))?
    (?P<close>[\s*_`~"'\u201d\u2019\u300d)\]]{0,12})
    (?P<sep>:{1,2} | =(?!=) | \| | ->|=>|\u2192 | (?<=\s)"""
    rf"[{DASHES}](?=\s))",
    re.VERBOSE | re.IGNORECASE,
)
_QUOTES_IT = re.compile(r"\w\W{0,3}[\"\u201c\u300c](?:[^\"\u201d\u300d]{0,200}[\s*_`])?[*_`]{0,3}\Z")
"""Words, and the quote that opens behind them, in which a label stands."""


def labels_on(line: str, open_names: Set[str], loose: bool) -> list[Label]:
    """The labels on a line in plain form, in order.

    `open_names`: the fields that the answer being read already has. With `loose`, labels in running text count too.
    """
    in_table = line.lstrip()[:1] == "|"
    labels: list[Label] = []
    for match in _LABEL.finditer(line):
        if match["sep"] == "|" and not in_table:
            continue
        if not labels and _QUOTES_IT.search(line, max(0, match.start() - 220), match.start()):
            return []
        if _is_label(match, line, labels, open_names, loose):
            labels.append(
                Label(_name(match["name"]), match["name"].isupper(), match.start(), match.end(), match["close"])
            )
    return labels


def _is_label(match: re.Match[str], line: str, before: Sequence[Label], open_names: Set[str], loose: bool) -> bool:
    """Tells whether the word at `match` labels a field; `before` are the labels to its left on the line."""
    name, capitals = _name(match["name"]), match["name"].isupper()
    if before:
        if name in {label.name for label in before[-5:]}:
            return False
        if before[-1].name in _FREE and not loose:
            return capitals and name not in open_names
        return loose or capitals == before[-1].capitals
    begins = _begins_line(match, line)
    if match["sep"] in DASHES:
        return capitals and begins
    return begins or capitals or loose


def _name(label: str) -> str:
    name = re.sub(r"[\s_]+", " ", label).upper()
    return ELEMENT if "LETTER" in name else name


_LEAD = re.compile(
    r"(?:(?:the |my )?final answer(?: is)? ?|(?:the )?answer(?: is)? ?)?"
    r"(?:(?:final|my|chosen|selected|target|next|correct)(?: |$)){0,2}",
    re.IGNORECASE,
)
_NOT_WORDS = re.compile(r"[\W\d_]+")
_ALONE = re.compile(
    rf"\s{{0,9}}(?:{NUMBERING}|[-+>] ?)?(?P<dress>(?:[#*_]{{1,6}} {{0,3}})?)"
    r"(?P<name>ELEMENT(?: TYPE| TEXT)?|ACTION|VALUE)[*_:]{0,6}\s{0,9}",
    re.IGNORECASE,
)


def begins_with_label(line: str) -> bool:
    """Tells whether the line begins another field."""
    label = _LABEL.search(line)
    return _ALONE.fullmatch(line) is not None or (label is not None and _begins_line(label, line))


def _label_alone(line: str) -> str | None:
    """The name of a label alone on its line, in capitals, as a heading or in bold; None for other lines."""
    alone = _ALONE.fullmatch(line)
    return _name(alone["name"]) if alone and (line.isupper() or alone["dress"]) else None


def _table_head(line: str) -> list[str]:
    """The labels in the head row of a table, at least two; empty for any other line."""
    if "|" not in line or len(line) > 200:
        return []
    cells = [re.sub(r"[\W_]+", " ", cell).strip().upper() for cell in line.strip(" |").split("|")]
    return cells if len(cells) > 1 and all(cell in LABELS for cell in cells) else []


def _begins_line(match: re.Match[str], line: str) -> bool:
    """Tells whether only punctuation, numbers and words such as `final answer` stand before the label."""
    if match.start() > 200:
        return False
    return _LEAD.fullmatch(_NOT_WORDS.sub(" ", line[: match.start()]).strip()) is not None


# --- the text after a label ------------------------------------------------------------------------------------------

_TOKENS = re.compile(
    r"(?:</(?:s|answer|final_answer|output|response)>|<\|[^<>|]{1,30}\|>|<end_of_turn>|<br ?/?>)\s{0,9}$"
)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_WRAPPERS = {
    **{mark: mark for mark in "*_`"},
    **{quote: CLOSING_QUOTES[quote] for quote in "\"'\u201c\u2018\u300c"},
}


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

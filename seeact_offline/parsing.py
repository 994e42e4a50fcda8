"""A model's text -> the fields of its answer, or the name of what could not be read. Nothing is ever guessed.

The text is free: an analysis, then lines such as ``ELEMENT: H``, ``ACTION: CLICK``, ``VALUE: None``, in whatever dress
the model likes (markdown, JSON, tables, quotes, full-width letters, all on one line, ...). It is read in four steps:

1. `_scan` finds the labelled fields. A label counts where a line begins with it, or anywhere when in capitals; only
   when no ELEMENT is found so does a label in running text count (`loose`).
2. `_blocks` groups fields to answers: a block ends where a field repeats.
3. `_final` takes the last complete block, as a whole: fields of two blocks are never mixed.
4. `_pick`, `_operation`, `_value` read one field each.

Labels are looked for in a copy of the line with every character replaced by its plain form (`_plain`), of the same
length, so that a value can be cut from the line as the model wrote it. Every expression is linear in the text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from seeact_offline.records import OPERATIONS, GroundingReply, letter

__all__ = ["GROUNDINGS", "PARSE_FAILURES", "GroundingReply", "letter", "letter_index", "parse_grounding_reply"]

GROUNDINGS = ("choice", "annotation", "attributes")

PARSE_FAILURES = (
    "no_final_answer",  # no labelled field at all (an empty text; only the echo of the prompt's format)
    "missing_element",  # ACTION or VALUE, but no ELEMENT
    "unknown_choice",  # ELEMENT is not exactly one of the offered letters or marks, and does not say "none"
    "missing_element_type",  # attributes: an element without its type
    "missing_element_text",  # attributes: an element without its text
    "missing_action",  # an element, but no ACTION
    "unknown_action",  # ACTION is not exactly one of CLICK, TYPE, SELECT
    "missing_value",  # TYPE or SELECT without a VALUE
)

_ELEMENT, _TYPE, _TEXT, _ACTION, _VALUE = "ELEMENT", "ELEMENT TYPE", "ELEMENT TEXT", "ACTION", "VALUE"
_NAMES = {
    "choice": (_ELEMENT, _ACTION, _VALUE),
    "annotation": (_ELEMENT, _ACTION, _VALUE),
    "attributes": (_ELEMENT, _TYPE, _TEXT, _ACTION, _VALUE),
}
_FREE = (_VALUE, _TEXT)
# fields of any text: what follows on their line is theirs unless it is plainly another label
_MAX_GAP = 10
# lines of other text between two fields of one answer
_LAST_LABELS, _LAST_BLOCKS = 10_000, 200
# how many are looked at: the final answer stands at the end, and a megabyte of labels must not take long


# --- letters ---------------------------------------------------------------------------------------------------------


def letter_index(label: str) -> int:
    """The option that a label means, the inverse of `letter`: A -> 0, AA -> 26. Either case."""
    if not re.fullmatch("[A-Za-z]+", label):
        raise ValueError(f"label must be letters from A to Z, got {label!r}")
    index = 0
    for char in label.upper():
        index = index * 26 + ord(char) - ord("A") + 1
    return index - 1


# --- the entry -------------------------------------------------------------------------------------------------------


def parse_grounding_reply(text: str, grounding: str, n_choices: int, *, labels: Sequence[str] = ()) -> GroundingReply:
    """Read the final answer from a model's text. Never raises on account of `text`.

    `n_choices` options were lettered from A; the letter after them means "none of them". `failure` is one of
    PARSE_FAILURES or None; fields that could be read stand beside it. With "none of them" no action or value is
    needed. For `annotation` the options carry `labels` instead (default: 1, 2, ...), and NA means "none of them". For
    `attributes` the element is described, `choice` stays None and `n_choices` is not used.
    """
    if grounding not in GROUNDINGS:
        raise ValueError(f"grounding must be one of {', '.join(GROUNDINGS)}, got {grounding!r}")
    if n_choices < 0:
        raise ValueError(f"n_choices must be 0 or more, got {n_choices}")
    labels = labels or [str(number) for number in range(1, n_choices + 1)]
    if len(labels) != n_choices:
        raise ValueError(f"labels must be n_choices = {n_choices} texts, got {len(labels)}")

    def pick(element: str) -> int | None:
        return _pick_mark(element, labels) if grounding == "annotation" else _pick(element, n_choices)

    def picks(block: _Block) -> bool:
        return block.says(_TEXT) if grounding == "attributes" else pick(block.text(_ELEMENT)) is not None

    lines = _Lines(text)
    block = _final(_blocks(_scan(lines, grounding)), picks)
    if block is None or not block.has_element:
        found = _final(_blocks(_scan(lines, grounding, loose=True)), picks)
        if found is not None and found.has_element and picks(found):
            block = found
    if block is None or block.empty:
        return GroundingReply(choice=None, failure="no_final_answer")
    if grounding == "attributes":
        return _read_attributes(block)
    return _read_choice(block, pick(block.text(_ELEMENT)), n_choices)


def _read_choice(block: _Block, pick: int | None, n_choices: int) -> GroundingReply:
    op, value, problem = _read_operation(block)
    if pick is None:
        failure = "unknown_choice" if block.has_element else "missing_element"
        return GroundingReply(choice=None, op=op, value=value, failure=failure)
    if pick == n_choices:
        return GroundingReply(choice=None, op=op, value=value, picked_none=True)
    return GroundingReply(choice=pick, op=op, value=value, failure=problem)


def _read_attributes(block: _Block) -> GroundingReply:
    op, value, problem = _read_operation(block)
    kind, text = _value(block.text(_TYPE)), _value(block.text(_TEXT))
    named = block.text(_ELEMENT) if _ELEMENT in block.fields else block.text(_TYPE)
    if not text and _NONE.match(_opened(_plain(named[:600]))):
        return GroundingReply(choice=None, op=op, value=value, picked_none=True)
    if not block.has_element:
        problem = "missing_element"
    elif not kind:
        problem = "missing_element_type"
    elif not text:
        problem = "missing_element_text"
    return GroundingReply(choice=None, op=op, value=value, failure=problem, element_type=kind, element_text=text)


def _read_operation(block: _Block) -> tuple[str, str, str | None]:
    """Operation, value, and the failure that they would be if an element is picked."""
    op = _operation(block.text(_ACTION))
    field = block.fields.get(_VALUE)
    value = "" if field is None else _value(field.text, op)
    if field is not None and field.below and op == "CLICK":
        value = ""  # a click has no value: what stands under its empty VALUE line is an explanation
    if not op:
        return op, value, "unknown_action" if block.says(_ACTION) else "missing_action"
    return op, value, "missing_value" if op != "CLICK" and not value else None


# --- lines -----------------------------------------------------------------------------------------------------------

_COLONS = {"\u2236": ":", "\ua789": ":", "\u02d0": ":"}
# look-alikes that Unicode does not fold
_INVISIBLE = dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad", " ")
_FOLDED = {**_COLONS, **_INVISIBLE}


@lru_cache(maxsize=4096)
def _plain_char(char: str) -> str:
    folded = _FOLDED.get(char) or unicodedata.normalize("NFKC", char)
    return folded if len(folded) == 1 else char


def _plain(text: str) -> str:
    """The text in compatibility form, of the same length: full-width, bold and no-break characters become plain."""
    return text if text.isascii() else "".join(map(_plain_char, text))


_MENTION = re.compile("ELEMENT|ACTION|VALUE|LETTER OF", re.IGNORECASE)


class _Lines:
    """The text's lines, as written and plain, and how many lines with something on them precede each."""

    def __init__(self, text: str) -> None:
        labels = [found.start() for found in _MENTION.finditer(_plain(text))]
        start = labels[-_LAST_LABELS] if len(labels) > _LAST_LABELS else 0
        self.written = text[start:].splitlines()
        self.plain = _plain("\n".join(self.written)).split("\n") if self.written else []
        self.rows: list[int] = []
        row = 0
        for line in self.plain:
            self.rows.append(row)
            row += not line.isspace() and line != ""


# --- fields ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the text."""

    written: str
    plain: str
    first: str
    # the first character that is not white space


@dataclass(frozen=True, slots=True)
class _Field:
    """A label and what follows it."""

    name: str
    text: str
    # as written, without white space around
    row: int
    # how many lines with something on them come before
    capitals: bool
    # the label is in capitals or is a quoted key, as the prompt asks
    closed: bool = False
    # the text ends for certain (quoted, a table's cell, another label follows): it may be empty
    below: bool = False
    # the text stands on a line under the label


_LABEL = re.compile(
    r"""(?<![^\W_])
    (?P<name>ELEMENT[ _]{1,3}TYPE | ELEMENT[ _]{1,3}TEXT | ELEMENT | ACTION | VALUE
        | (?:THE[ ])?(?:UPPERCASE[ ]|CAPITAL[ ])?LETTER[ ]OF[ ](?:YOUR|MY)[ ]CHOICE)
    (?:[ _](?:choice|letter|option|id)\b)?
    (?:[ ]{0,3}\([^()]{1,40}\))?
    (?P<close>[\s*_`~"'\u201d\u2019\u300d)\]]{0,12})
    (?P<sep>:{1,2} | =(?!=) | \| | ->|=>|\u2192 | (?<=\s)[-\u2013\u2014](?=\s))""",
    re.VERBOSE | re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:the |my )?final answer(?: is)? ?|(?:the )?answer(?: is)? ?)?"
    r"(?:(?:final|my|chosen|selected|target|next|correct)(?: |$)){0,2}",
    re.IGNORECASE,
)
_NOT_WORDS = re.compile(r"[\W\d_]+")
_QUOTES = "\"'\u201c\u201d\u2018\u2019"


def _name(label: str) -> str:
    name = re.sub(r"[\s_]+", " ", label).upper()
    return _ELEMENT if "LETTER" in name else name


def _scan(lines: _Lines, grounding: str, loose: bool = False) -> list[_Field]:
    """All labelled fields in order. `loose` also takes labels from the middle of running text."""
    known = _NAMES[grounding]
    fields: list[_Field] = []
    open_names: set[str] = set()  # those of the answer being read
    for i, line in enumerate(lines.plain):
        if not _MENTION.search(line):
            continue
        for field in _line_fields(lines, i, open_names, loose):
            if field.name not in known or _is_echo(field):
                continue
            if field.name in open_names:
                open_names.clear()
            open_names.add(field.name)
            fields.append(_from_below(field, lines, i, fields))
    return fields


def _line_fields(lines: _Lines, i: int, open_names: set[str], loose: bool) -> Iterator[_Field]:
    plain = lines.plain[i]
    header, alone = _header(plain), _ALONE.fullmatch(plain)
    if header:
        yield from _table_fields(lines, i, header)
    elif alone and (plain.isupper() or alone["dress"]):
        yield _Field(_name(alone["name"]), "", lines.rows[i], capitals=True)
    else:
        yield from _labelled(lines, i, open_names, loose)


_ALONE = re.compile(
    r"\s{0,9}(?:\d{1,2}[.)] ?|[-+>] ?)?(?P<dress>(?:[#*_]{1,6} {0,3})?)"
    r"(?P<name>ELEMENT(?: TYPE| TEXT)?|ACTION|VALUE)[*_:]{0,6}\s{0,9}",
    re.IGNORECASE,
)
# a label with a line to itself, in capitals or as a heading or in bold


def _header(plain: str) -> list[str]:
    """The labels in the head row of a table of at least two; empty for any other line."""
    if "|" not in plain or len(plain) > 200:
        return []
    cells = [re.sub(r"[\W_]+", " ", cell).strip().upper() for cell in plain.strip(" |").split("|")]
    return cells if len(cells) > 1 and all(cell in _NAMES["attributes"] for cell in cells) else []


def _table_fields(lines: _Lines, i: int, header: Sequence[str]) -> Iterator[_Field]:
    """A table with the labels as its head: the first row with words is the answer."""
    for j in range(i + 1, min(i + 4, len(lines.plain))):
        cells = lines.written[j].strip().strip("|").split("|")
        if any(char.isalnum() for char in lines.plain[j]):
            for name, cell in zip(header, cells, strict=False):
                yield _Field(name, cell.strip(), lines.rows[j], capitals=True, closed=True)
            return


def _labelled(lines: _Lines, i: int, open_names: set[str], loose: bool) -> Iterator[_Field]:
    line = _Line(lines.written[i], lines.plain[i], lines.plain[i].lstrip()[:1])
    labels: list[re.Match[str]] = []
    ends: list[int | None] = []  # where a quoted text ends; None for text that goes on to the next label
    for match in _LABEL.finditer(line.plain):
        if labels and match.start() < (ends[-1] or 0):
            continue
        if _is_label(match, line, labels, open_names, loose):
            labels.append(match)
            ends.append(_quoted_end(match, line.plain))
    for k, match in enumerate(labels):
        end, last = ends[k], k + 1 == len(labels)
        stop = len(line.written) if last else labels[k + 1].start()
        text = _cut(line, match, stop) if end is None else _quoted(line.written[match.end() : end])
        capitals = match["name"].isupper() or end is not None
        yield _Field(_name(match["name"]), text, lines.rows[i], capitals, closed=end is not None or not last)


def _is_label(
    match: re.Match[str], line: _Line, before: Sequence[re.Match[str]], open_names: set[str], loose: bool
) -> bool:
    """Whether the word at `match` labels a field; `before` are the labels to its left on the line."""
    name, capitals, sep = _name(match["name"]), match["name"].isupper(), match["sep"]
    if _is_key(match, line.plain):
        return True
    if sep == "|" and line.first != "|":
        return False
    if before:
        return _is_later_label(name, capitals, before, open_names, loose)
    begins = _begins_line(match, line.plain)
    if sep in "-\u2013\u2014":
        return capitals and begins
    return begins or capitals or loose


def _begins_line(match: re.Match[str], plain: str) -> bool:
    """Whether nothing but signs, numbers and words such as `final answer` stands before the label."""
    if match.start() > 200:
        return False
    return _LEAD.fullmatch(_NOT_WORDS.sub(" ", plain[: match.start()]).strip()) is not None


def _begins_with_label(plain: str) -> bool:
    found = _LABEL.search(plain)
    return _ALONE.fullmatch(plain) is not None or (found is not None and _begins_line(found, plain))


def _is_key(match: re.Match[str], plain: str) -> bool:
    """Whether the label is a quoted key, as in JSON."""
    left, right = plain[max(0, match.start() - 1) : match.start()], match["close"].strip()[:1]
    return match["sep"][0] == ":" and left != "" and left in _QUOTES and right != "" and right in _QUOTES


def _is_later_label(
    name: str, capitals: bool, before: Sequence[re.Match[str]], open_names: set[str], loose: bool
) -> bool:
    on_line = {_name(match["name"]) for match in before[-5:]}
    if name in on_line:
        return False
    if _name(before[-1]["name"]) in _FREE and not loose:
        return capitals and name not in open_names
    return loose or capitals == before[-1]["name"].isupper()


_SINGLE_QUOTED = re.compile(r"\s*'(?:[^'\\]|\\.)*'")
_BARE = re.compile(r"\s*[^\s,}\"'][^,}\"']{0,300}(?=[,}]|$)")
_JSON = json.JSONDecoder(strict=False)


def _quoted_end(match: re.Match[str], plain: str) -> int | None:
    """Where the JSON or Python text after a quoted key ends. None when there is no such key or text."""
    if not _is_key(match, plain):
        return None
    start = match.end()
    while plain[start : start + 1] == " ":
        start += 1
    if plain[start : start + 1] == '"':
        try:
            return _JSON.raw_decode(plain, start)[1]
        except ValueError:
            return None
    found = _SINGLE_QUOTED.match(plain, start) or _BARE.match(plain, start)
    return found.end() if found else None


def _quoted(written: str) -> str:
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


_TOKENS = re.compile(
    r"(?:</(?:s|answer|final_answer|output|response)>|<\|[^<>|]{1,30}\|>|<end_of_turn>|<br ?/?>)\s{0,9}$"
)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def _cut(line: _Line, match: re.Match[str], stop: int) -> str:
    """What a label is followed by, up to the next label, without the signs that wrap label and text together."""
    text = line.written[match.end() : stop].strip()
    if stop < len(line.written):
        text = text.rstrip("*_#([{ \t").rstrip(",;|\uff0c\u3001\uff1b \t")
    elif line.first == "|":
        text = text.rstrip("| \t")
    token = _TOKENS.search(text, max(0, len(text) - 60))
    text = text[: token.start()].rstrip() if token else text
    text = _without_wrapping(text, line.written[max(0, match.start() - 8) : match.start()], match["close"])
    closer = _BRACKETS.get(line.first, "")
    if closer and text.endswith(closer) and text.count(closer) > text.count(line.first):
        text = text[:-1]
    return text.strip()


_WRAPPERS = {**dict(zip("*_`\"'", "*_`\"'", strict=True)), "\u201c": "\u201d", "\u2018": "\u2019", "\u300c": "\u300d"}


def _without_wrapping(text: str, left: str, close: str) -> str:
    """Drop from `text` the ends of emphasis or quotes that opened left of the label: `**VALUE:** x`, `"VALUE: x"`."""
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


def _from_below(field: _Field, lines: _Lines, i: int, before: Sequence[_Field]) -> _Field:
    """The field, with the text of a following line when its own line has none.

    A VALUE may be empty on purpose, so that only the very next line counts, unless the answer is laid out this way.
    """
    if field.closed or field.text.strip("*_`~| \t"):
        return field
    may_skip = field.name != _VALUE or (bool(before) and before[-1].below)
    for j in range(i + 1, min(i + 4, len(lines.plain))):
        if any(char.isalnum() for char in lines.plain[j]):
            if _begins_with_label(lines.plain[j]):
                break
            return _Field(field.name, lines.written[j].strip(), field.row, field.capitals, below=True)
        if not may_skip:
            break
    return field


_ASKING = r"^\W*please (?:provide|specify|describe|choose|select|give)\b"
_LETTER_OF = (
    r"^\W*(?:(?:the|one|a|an|your|single|upper-?case|capital) ){0,4}(?:letter|label|number|mark) (?:of|from|for) "
    r"(?:the|your) [\w ]{3,30}(?:\W*$|\((?!(?:[A-Za-z]{1,3}|\d{1,4})\)))"
)
# The prompt's own format lines, written back: they describe an answer and are none.
_ECHO = {
    _ELEMENT: re.compile(f"{_LETTER_OF}|{_ASKING}", re.IGNORECASE),
    _TYPE: re.compile(_ASKING, re.IGNORECASE),
    _TEXT: re.compile(_ASKING, re.IGNORECASE),
    _ACTION: re.compile(r"^(?=.*\bCLICK\b)(?=.*\bTYPE\b)(?=.*\bSELECT\b)", re.DOTALL),
    _VALUE: re.compile(
        r"^(?=.*\bTYPE\b)(?=.*\bSELECT\b)|^\W*(?:[Pp]rovide|[Ss]pecify|[Ww]rite)\b[\w ]{0,40}\bACTION\b", re.DOTALL
    ),
}


def _is_echo(field: _Field) -> bool:
    return _ECHO[field.name].search(_plain(field.text[:300])) is not None


# --- blocks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Block:
    """The fields of one answer, by name."""

    fields: dict[str, _Field]

    def text(self, name: str) -> str:
        field = self.fields.get(name)
        return field.text if field else ""

    def says(self, name: str) -> bool:
        """Whether there is more than signs."""
        return self.text(name).strip("*_`~-|\"' ") != ""

    @property
    def empty(self) -> bool:
        return not any(self.says(name) for name in self.fields)

    @property
    def has_element(self) -> bool:
        return any(self.says(name) for name in (_ELEMENT, _TYPE, _TEXT))

    @property
    def complete(self) -> bool:
        return self.has_element and self.says(_ACTION)

    @property
    def capitals(self) -> bool:
        return all(field.capitals for field in self.fields.values())


def _blocks(fields: Sequence[_Field]) -> list[_Block]:
    """Group fields to answers: a block ends where a field repeats, or long before the next field."""
    groups: list[list[_Field]] = [[]]
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
    return [_Block({field.name: field for field in group}) for group in groups if group]


def _widest_gap(fields: Sequence[_Field]) -> int:
    """Where to cut between a field and its repetition (first and last): the later answer's first position.

    Right before the repetition, unless the lines between two other fields are more: then the field in between already
    belongs to the later answer. ELEMENT mostly comes first, so that moving its cut takes more; VALUE comes last, so
    that all after the first one belongs to the second. A change to labels in capitals counts as some lines.
    """
    if fields[-1].name == _VALUE:
        return 1
    gaps = [after.row - before.row + 3 * (after.capitals and not before.capitals) for before, after in pairwise(fields)]
    slack = 2 if fields[-1].name == _ELEMENT else 0
    widest = max(range(len(gaps)), key=lambda k: (gaps[k], k))
    return 1 + (widest if gaps[widest] > gaps[-1] + slack else len(gaps) - 1)


def _final(blocks: Sequence[_Block], picks: Callable[[_Block], bool]) -> _Block | None:
    """The answer: the last complete block, in its absence the last with an element, in its absence the last.

    Passed over: a later block with labels in small letters that does not read as an answer (an explanation of the one
    before), and an unreadable block when a later, incomplete one has a readable element.
    """
    blocks = blocks[-_LAST_BLOCKS:]
    complete = [k for k, block in enumerate(blocks) if block.complete]
    if not complete:
        with_element = [block for block in blocks if block.has_element]
        return with_element[-1] if with_element else blocks[-1] if blocks else None
    chosen = complete[-1]
    for k in reversed(complete):
        block = blocks[k]
        if block.capitals or (picks(block) and _operation(block.text(_ACTION))):
            chosen = k
            break
    if not picks(blocks[chosen]):
        later = [block for block in blocks[chosen + 1 :] if block.has_element and picks(block)]
        return later[-1] if later else blocks[chosen]
    return blocks[chosen]


# --- the element's letter --------------------------------------------------------------------------------------------

_MARKUP = re.compile(r"\\[a-z]{1,10}\{|</?(?:b|strong)>")
_INTRO = re.compile(
    r"(?:(?:the|my|final|best|correct|matching|chosen|selected|upper-?case|capital|of|your|is|would be|choice|option"
    r"|letter|element|answer|match)\b[\s:#*_`\"'(\[{=\u201c\u2018\u300c-]*){1,9}",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"(?:(?:option|choice|element|answer)\W{1,3})?(?:none|neither|n/?a|n\.a|null|nil)(?![a-z0-9])"
    r"|(?:no|nothing|not)\b[\w ]{0,20}\b(?:match|matches|matching|applicable|available|found|listed|present)\b"
    r"|(?:the|my|target)\b[\w ]{0,30}\bis not (?:listed|present|available|among|in the list|one of)\b",
    re.IGNORECASE,
)
_NONE_SENTENCE = re.compile(r"[.:\s-]*none of (?:the|these|those)\b", re.IGNORECASE)
_LABEL_ALONE = re.compile(r"[A-Za-z]{1,3}(?![A-Za-z0-9])")
_SECOND = re.compile(
    r"[\W_]{0,6}(?:or|and|and/or|&|/|\+|,|;|vs\.?)[\W_]{0,6}(?:option |choice |element )?"
    r"(?:[A-Z]{1,2}(?=\W*$|[.:)]|[\s/]{0,3}(?:[,;(/]|or\b|and\b))|none\b)"
)
_ALTERNATIVE = re.compile(
    r"\bor (?:option |choice |element |letter )?[(\"'*]{0,3}(?:[A-Z]{1,2}(?=\W*$|[.:)(\"'*])|none\b)"
)
_EXPLAINS = re.compile(r"\s*(?:is|since|because|which|as|matches|seems|appears)\b")


def _opened(plain: str) -> str:
    """Without what may stand before the answer. `<` stays: it may begin a piece of HTML."""
    text = _MARKUP.sub("", plain)
    text = re.sub(r"^[^\w<]+|^_+", "", text).lstrip("_*` ")
    tagged = re.match(r"<([A-Z]{1,3})>", text)
    return tagged[1] + text[tagged.end() :] if tagged else text


def _pick(text: str, n_choices: int) -> int | None:
    """The option that the text names: an index, `n_choices` for "none of them", None when it is not clear."""
    plain = _opened(_plain(text[:600]))
    intro = _INTRO.match(plain)
    rest = plain[intro.end() :] if intro else plain
    if (_NONE.match(plain) or _NONE.match(rest)) and not _is_offered(rest, n_choices):
        return n_choices
    label = _LABEL_ALONE.match(rest)
    if label is None:
        return None
    tail = rest[label.end() :]
    if _SECOND.match(tail) or _ALTERNATIVE.search(tail) or not _ends_label(label[0], tail, intro[0] if intro else ""):
        return None
    index = letter_index(label[0])
    if index != n_choices and _NONE_SENTENCE.match(tail):
        return n_choices if index > n_choices else None  # the letter and the words say different things
    return index if index <= n_choices else None


def _is_offered(rest: str, n_choices: int) -> bool:
    """Whether all that is said is an offered letter (with many options, NA is one)."""
    word = rest.rstrip("*_`~.\"')]} ")
    return re.fullmatch("[A-Z]{1,3}", word) is not None and letter_index(word) <= n_choices


def _ends_label(label: str, tail: str, intro: str) -> bool:
    """Whether a letter followed by `tail` is a label, not a word (`A button`, `I think`, `X-ray`)."""
    if label.isupper() and re.search(r"(?:option|choice|letter)\W{0,6}$", intro, re.IGNORECASE):
        return True
    bare = tail.lstrip("*_`~")
    after = bare.lstrip()
    if not after:
        return True
    if after[0].isalnum() and ord(after[0]) < 0x2E80:  # a letter of a script that puts spaces between words
        return intro != "" and label.isupper() and label not in ("A", "I") and _EXPLAINS.match(bare) is not None
    if after[0] in "&+@%$" or (label in ("I", "i") and after[0] == ","):
        return False
    if label in ("A", "I", "a", "i") and bare[0].isspace():
        return _follows_no_article(label, after)
    return _NOT_LABEL.match(bare) is None


_NOT_LABEL = re.compile(r"[.'\u2019-](?:[a-z]|[A-Z0-9](?![a-z]))|-\w|[/&+@#%$]")


def _follows_no_article(label: str, after: str) -> bool:
    """False for `A "Search" button` or `a (blue) link`: words after the quote say that the letter is an article."""
    if label.islower() or after[0] in ",/&+@#%$":
        return False
    wrapped = re.match(r"""["'\u201c\u2018(`*]+[^"'\u201d\u2019)`*]*["'\u201d\u2019)`*]+\s*(\w)?""", after)
    return wrapped is None or wrapped[1] is None


# --- the element's mark ----------------------------------------------------------------------------------------------

_MARK_INTRO = re.compile(
    r"(?:(?:the|my|final|best|correct|matching|chosen|selected|of|your|is|would be|with|as|has|having|carrying|in|red"
    r"|answer|mark|box|label|labell?ed|marked|number|numbered|no\.|letters?|element)(?![^\W_])"
    r"[\s:#*_`\"'(\[{=\u201c\u2018\u300c-]*){1,12}",
    re.IGNORECASE,
)
_MARK_ALONE = re.compile(r"(?:[A-Za-z]{1,3}|\d{1,6})(?![A-Za-z0-9])")
_NO_MARK = re.compile(
    r"(?:there is |it has |it is )?(?:no|not)\b[\sa-z]{0,20}\b(?:mark|marks|marked|box|boxed|label|labell?ed)\b",
    re.IGNORECASE,
)
_SECOND_MARK = re.compile(
    r"[\W_]{0,6}(?:or|and|and/or|to|&|/|\+|,|;|vs\.?)[\W_]{0,6}"
    r"(?:(?:the|mark|box|label|number|element|no\.)\s){0,3}[\W_]{0,3}"
    r"(?:\d|[A-Z]{1,2}(?=\W*$|[.:)\"'\]]|[\s/]{0,3}(?:[,;(/]|or\b|and\b))|none\b|NA\b|N/A)"
)
_ALTERNATIVE_MARK = re.compile(
    r"\bor (?:(?:the|mark|box|label|number|element) ){0,3}[(\"'*\[]{0,3}"
    r"(?:\d{1,4}|[A-Z]{1,2}|none|NA|N/A)(?=\W*$|[.:)(\"'*\]])"
)


def _pick_mark(text: str, labels: Sequence[str]) -> int | None:
    """The mark that the text names: an index of `labels`, their number for "none", None when it is not clear.

    As with letters, the label stands first, after words such as `the box labelled` at most: in any other place it may be
    part of the element's own text.
    """
    plain = re.sub(r"^<(\d{1,6})>", r"\1", _opened(_plain(text[:600])))
    intro = _MARK_INTRO.match(plain)
    rest = plain[intro.end() :] if intro else plain
    if any(pattern.match(words) for pattern in (_NONE, _NO_MARK) for words in (plain, rest)):
        return len(labels)
    found = _mark_first(plain, "", labels)  # AS, IS and IN are labels too
    return found if found is not None or intro is None else _mark_first(rest, intro[0], labels)


def _mark_first(words: str, intro: str, labels: Sequence[str]) -> int | None:
    label = _MARK_ALONE.match(words)
    if label is None:
        return None
    tail = words[label.end() :]
    if _SECOND_MARK.match(tail) or _ALTERNATIVE_MARK.search(tail) or not _ends_mark(label[0], tail, intro):
        return None
    return {name: i for i, name in enumerate(labels)}.get(label[0].upper())


def _ends_mark(label: str, tail: str, intro: str) -> bool:
    """Whether a label followed by `tail` is a mark, not a word, an amount or a time (`12 items`, `12.50`, `12:30`)."""
    if not label.isdigit():
        return _ends_label(label, tail, intro)
    bare = tail.lstrip("*_`~")
    after = bare.lstrip()
    if re.match(r"[.:,/\u2013\u2014-]\d", bare) or after[:1] in ("%", "$", "+", "\u20ac"):
        return False
    if after[:1].isalnum() and ord(after[0]) < 0x2E80:
        return _EXPLAINS.match(bare) is not None
    return True


# --- the action ------------------------------------------------------------------------------------------------------

_VERB = "|".join(OPERATIONS)
_ACTION_WORD = re.compile(
    r"(?:(?:the|action|operation|is|to|be|perform|choose|a|an)\b\W{0,3}){0,4}(?P<op>" + _VERB + r")(?![A-Z0-9])",
    re.IGNORECASE,
)
_SECOND_ACTION = re.compile(
    r"[\W_]{0,6}(?:(?:on|it|an?|the|text|option)\b[\W_]{0,6}){0,3}(?:(?:or|and|then)\b|[/,&+;|>\u2192])[\W_]{0,6}"
    r"(?:then\b\W{0,6})?"
    r"(?:" + _VERB + r"|PRESS|HOVER|SCROLL|ENTER|HOLD|WAIT|HIT|SUBMIT)\b",
    re.IGNORECASE,
)


def _operation(text: str) -> str:
    """One of OPERATIONS, or empty when the text does not name exactly one."""
    plain = re.sub(r"^[\W_]+", "", _MARKUP.sub("", _plain(text[:400])))
    found = _ACTION_WORD.match(plain)
    if found is None or _SECOND_ACTION.match(plain, found.end()):
        return ""
    return found["op"].upper()


# --- the value -------------------------------------------------------------------------------------------------------

_MATES = {
    '"': '"',
    "'": "'",
    "\u201c": "\u201d",
    "\u201d": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u2018": "\u2019",
    "\u00ab": "\u00bb",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "\u300a": "\u300b",
    "\uff02": "\uff02",
}
_EMPHASIS = ("***", "**", "__", "```", "`", "~~", "*", "_")
_NO_VALUE = re.compile(
    r"[\s({\[<]*(?:none|n/?a|null|not applicable|no value)[\s)}\]>]*[.\u3002]?|[-\u2013\u2014]*",
    re.IGNORECASE,
)
_NO_VALUE_BECAUSE = re.compile(r"[(\[]?(?:none|n/?a|null)\b\s*[(\[,.;:\u2013\u2014-]", re.IGNORECASE)
_ASIDE = re.compile(r"\s*(?:[.,;\u3002]?\s*$|[.,]?\s*[(\[\uff08]|[.,]?\s+[-\u2013\u2014]+\s)")


def _value(text: str, op: str = "") -> str:
    """The value as written, without emphasis and one outer pair of quotes; empty when the text says that there is none.

    What follows a closing quote in brackets or after a dash is an explanation; without quotes nothing tells value and
    explanation apart, and all is kept. Only for a CLICK does `None (because ...)` mean none.
    """
    value = _without_emphasis(_unquoted(_without_emphasis(text)))
    if len(value) <= 40 and _NO_VALUE.fullmatch(_plain(value)):
        return ""
    if op == "CLICK" and _NO_VALUE_BECAUSE.match(_plain(value)):
        return ""
    return value


_EDGE = " \t\r\n\u00a0\u200b\u200e\u200f\u2060\ufeff"


def _without_emphasis(text: str) -> str:
    value = text.strip().strip(_EDGE)
    for _ in range(3):
        stripped = _peeled(value)
        if stripped == value:
            break
        value = stripped
    return value


def _peeled(value: str) -> str:
    """One pair of emphasis marks less, or one whose partner is not there."""
    for mark in _EMPHASIS:
        if len(value) > 2 * len(mark) and value.startswith(mark) and value.endswith(mark):
            inner = value[len(mark) : -len(mark)]
            return inner.strip(_EDGE) if mark not in inner else value
    for mark in ("**", "`"):
        if value.count(mark) == 1 and value.startswith(mark):
            return value[len(mark) :].strip(_EDGE)
        if value.count(mark) == 1 and value.endswith(mark):
            return value[: -len(mark)].strip(_EDGE)
    return value


def _unquoted(value: str) -> str:
    """The inside of quotes that span the value, or all of it but an explanation."""
    mates = _MATES.get(value[:1])
    if not mates:
        return value
    for end in range(1, len(value)):
        after = value[end + 1 : end + 2]
        if value[end] in mates and not (value[end] in "'\u2019" and after.isalnum()):
            return value[1:end].strip(_EDGE) if _ASIDE.match(value, end + 1) else value
    return value

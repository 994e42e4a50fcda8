"""Finds the labels of an answer's fields, such as ``ELEMENT:``, on one line of a model's text.

A label counts where it begins the line, and anywhere if it is in capitals or is a quoted key, as in JSON. Every
function is given the line in plain form (`words.plain`), so the positions found also hold for the line as written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from seeact_offline.replies.words import DASHES, NUMBERING, QUOTES

ELEMENT, TYPE, TEXT, ACTION, VALUE = "ELEMENT", "ELEMENT TYPE", "ELEMENT TEXT", "ACTION", "VALUE"
_LABELS = (ELEMENT, TYPE, TEXT, ACTION, VALUE)
_FREE = (VALUE, TEXT)
"""Fields of free text: what follows on their line is theirs, unless it is plainly another label."""
MENTION = re.compile("ELEMENT|ACTION|VALUE|LETTER OF", re.IGNORECASE)
"""Every text with a label has one of these words."""


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
    text_end: int | None
    """End of the JSON or Python string after a quoted key; None for text that continues to the next label."""


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


def labels_on(plain: str, open_names: Set[str], loose: bool) -> list[Label]:
    """The labels on a line, in order.

    `open_names`: the fields that the answer being read already has. With `loose`, labels in running text count too.
    """
    in_table = plain.lstrip()[:1] == "|"
    labels: list[Label] = []
    for match in _LABEL.finditer(plain):
        in_quotes = labels and match.start() < (labels[-1].text_end or 0)
        if in_quotes or (match["sep"] == "|" and not in_table):
            continue
        if _is_label(match, plain, labels, open_names, loose):
            name, capitals = _name(match["name"]), match["name"].isupper()
            labels.append(Label(name, capitals, match.start(), match.end(), match["close"], _text_end(match, plain)))
    return labels


def _is_label(match: re.Match[str], plain: str, before: Sequence[Label], open_names: Set[str], loose: bool) -> bool:
    """Tells whether the word at `match` labels a field; `before` are the labels to its left on the line."""
    capitals = match["name"].isupper()
    if _is_key(match, plain):
        return True
    if before:
        return _is_later_label(_name(match["name"]), capitals, before, open_names, loose)
    begins = _begins_line(match, plain)
    if match["sep"] in DASHES:
        return capitals and begins
    return begins or capitals or loose


def _is_later_label(name: str, capitals: bool, before: Sequence[Label], open_names: Set[str], loose: bool) -> bool:
    """Tells whether a word labels a field although there are other labels to its left."""
    if name in {label.name for label in before[-5:]}:
        return False
    if before[-1].name in _FREE and not loose:
        return capitals and name not in open_names
    return loose or capitals == before[-1].capitals


def _name(label: str) -> str:
    name = re.sub(r"[\s_]+", " ", label).upper()
    return ELEMENT if "LETTER" in name else name


# --- where a line begins ---------------------------------------------------------------------------------------------

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


def begins_with_label(plain: str) -> bool:
    """Tells whether the line begins another field."""
    found = _LABEL.search(plain)
    return _ALONE.fullmatch(plain) is not None or (found is not None and _begins_line(found, plain))


def label_alone(plain: str) -> str | None:
    """The name of a label alone on its line, in capitals, as a heading or in bold; None for other lines."""
    alone = _ALONE.fullmatch(plain)
    return _name(alone["name"]) if alone and (plain.isupper() or alone["dress"]) else None


def table_head(plain: str) -> list[str]:
    """The labels in the head row of a table, at least two; empty for any other line."""
    if "|" not in plain or len(plain) > 200:
        return []
    cells = [re.sub(r"[\W_]+", " ", cell).strip().upper() for cell in plain.strip(" |").split("|")]
    return cells if len(cells) > 1 and all(cell in _LABELS for cell in cells) else []


def _begins_line(match: re.Match[str], plain: str) -> bool:
    """Tells whether only punctuation, numbers and words such as `final answer` stand before the label."""
    if match.start() > 200:
        return False
    return _LEAD.fullmatch(_NOT_WORDS.sub(" ", plain[: match.start()]).strip()) is not None


# --- quoted keys -----------------------------------------------------------------------------------------------------

_SINGLE_QUOTED = re.compile(r"\s*'(?:[^'\\]|\\.)*'")
_UNQUOTED = re.compile(r"\s*[^\s,}\"'][^,}\"']{0,300}(?=[,}]|$)")
_JSON = json.JSONDecoder(strict=False)


def _is_key(match: re.Match[str], plain: str) -> bool:
    """Tells whether the label is a quoted key, as in JSON."""
    left, right = plain[max(0, match.start() - 1) : match.start()], match["close"].strip()[:1]
    return match["sep"][0] == ":" and left != "" and left in QUOTES and right != "" and right in QUOTES


def _text_end(match: re.Match[str], plain: str) -> int | None:
    """End of the JSON or Python string after a quoted key; None if there is no such key or string."""
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
    found = _SINGLE_QUOTED.match(plain, start) or _UNQUOTED.match(plain, start)
    return found.end() if found else None

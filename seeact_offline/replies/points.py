"""A model's text -> the place on a picture that it points at, and from there to an element. Nothing is ever guessed.

How a point is *written* is recognised: tags (``<point>12 34</point>``, ``<points x="12" y="34">``, ``<box>...</box>``,
``<|box_start|>(1,2),(3,4)<|box_end|>``), brackets (``[[12,34]]``, ``[1,2,3,4]``), ``(12, 34)``, ``x=12, y=34`` and
JSON. What its numbers *mean* is not: pixels, fractions and thousandths look alike, so the scale is agreed beforehand
and a number beyond it is a failure. Four numbers are the left, top, right and bottom of a box, which counts by its
centre.

The last ELEMENT or POINT line decides; without such a line, the text must name exactly one place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seeact_offline.pages.pointing import centre
from seeact_offline.replies.answer_text import answer_text
from seeact_offline.replies.decided import DECLINED, SEVERAL, denies, is_decided, sentence_at, takes_back
from seeact_offline.replies.words import MAX_READ, NO_ELEMENT, folded

POINT_FAILURES = (
    # neither a place nor a word for "none"
    "no_point",
    # more than one place, and nothing says which is the answer
    SEVERAL,
    # a place that the words around it deny, take back or only suppose
    DECLINED,
    # a box whose right or bottom edge comes first: its numbers mean something else
    "reversed_box",
    # a number beyond the agreed scale
    "point_outside",
)


@dataclass(frozen=True, slots=True)
class PointReply:
    """A place as a model wrote it."""

    numbers: tuple[float, ...] = ()
    """x, y; or left, top, right, bottom; in the agreed coordinates."""
    says_none: bool = False
    """True only when the text really says that there is no such element."""
    failure: str | None = None
    """One of POINT_FAILURES, or None."""
    detail: str = ""
    """The text found instead of a place; empty without a failure."""


# --- reading ---------------------------------------------------------------------------------------------------------


def read_point(text: str) -> PointReply:
    """The place that a reply names. Never raises because of `text`."""
    plain = folded(answer_text(text)[-MAX_READ:])
    for segment in reversed(list(_answers(plain))):
        reply = _read_segment(segment)
        if reply is not None:
            is_set_aside = reply.numbers and (takes_back(plain, segment.end) or takes_back(segment.line))
            return PointReply(failure=DECLINED, detail=segment.line[:80]) if is_set_aside else reply
    if bare := _BARE.fullmatch(plain.strip()):
        return _one_of([_numbers(bare["n"])]) or PointReply()
    places = _points(plain)[-_MOST_PLACES:]
    places = [place for place in places if _fills_line(plain, place)] or places
    decided = [place for place in places if is_decided(sentence_at(plain, place.start))]
    if places and (not decided or takes_back(plain)):
        return PointReply(failure=DECLINED, detail=sentence_at(plain, places[-1].start).strip()[:80])
    return _one_of([place.numbers for place in decided]) or PointReply(
        failure="no_point", detail="no point or box in the reply"
    )


_MOST_PLACES = 50
"""Places of a reply whose sentences are looked at."""


class _Segment(NamedTuple):
    """The text after an ELEMENT or POINT label."""

    line: str
    """The rest of its line."""
    whole: str
    """All up to the next label or empty line."""
    end: int
    """Position behind the line."""


class _Place(NamedTuple):
    """The numbers of a point or box, and where they stand."""

    start: int
    end: int
    numbers: tuple[float, ...]


def _fills_line(plain: str, place: _Place) -> bool:
    """Tells whether a line holds nothing else than a place."""
    start, end = plain.rfind("\n", 0, place.start) + 1, plain.find("\n", place.end)
    around = plain[start : place.start] + plain[place.end : len(plain) if end < 0 else end]
    return len(around) < 200 and not any(map(str.isalnum, around))


_COLON = r"""[\s*_`"'\])]{0,8}[:=]"""
_LABEL = re.compile(rf"(?<![\w<|])(?P<name>ELEMENT|POINT){_COLON}(?!=)", re.IGNORECASE)
_NEXT_LABEL = re.compile(rf"\b(?:ELEMENT|POINT|ACTION|OPERATION|VALUE){_COLON}|\n\s*\n", re.IGNORECASE)
_DRESS = re.compile(r"(?:[\W\d_]|final|answer|the|my|is|target){0,40}", re.IGNORECASE)


def _answers(plain: str) -> Iterator[_Segment]:
    """Yields the text after each ELEMENT or POINT label."""
    line_start = 0
    for label in _LABEL.finditer(plain):
        line_start = max(line_start, plain.rfind("\n", line_start, label.start()) + 1)
        key = plain[label.start() - 1 : label.start()] in ('"', "'") and label["name"].upper() == "ELEMENT"
        if not (key or label["name"].isupper() or _DRESS.fullmatch(plain, line_start, label.start())):
            continue
        rest = plain[label.end() : label.end() + 400]
        begin = len(rest) - len(rest.lstrip())
        following = _NEXT_LABEL.search(rest, begin)
        whole = rest[: following.start()] if following else rest
        line = whole.lstrip().partition("\n")[0]
        yield _Segment(line, whole, label.end() + begin + len(line))


_NONE = re.compile(
    rf"""[\s"'*_`(\[{{<]*(?:{NO_ELEMENT}|no (?:such |matching )?element|not (?:on|in|visible|present|shown|available)|outside (?:of )?the)"""
    r"(?![a-z0-9])",
    re.IGNORECASE,
)
_NUMBER = r"(?<![A-Za-z_])[-+]?(?:\d++(?:\.\d++)?+|\.\d++)(?![\d.]{0,40}%)"
_BARE = re.compile(rf"[\s\"'*_`]*(?P<n>{_NUMBER}(?:[,;\s]{{1,4}}{_NUMBER}){{1,3}})[\s\"'*_`.]*")


def _read_segment(segment: _Segment) -> PointReply | None:
    """Reads the line; if it says nothing, the whole passage."""
    for text in (segment.line, segment.whole):
        bare = _BARE.fullmatch(text)
        places = _points(text)
        if not bare and places and denies(text[: places[0].start]):
            return PointReply(failure=DECLINED, detail=text.strip()[:80])
        reply = _one_of([_numbers(bare["n"])] if bare else [place.numbers for place in places])
        if reply is not None:
            return reply
        if _NONE.match(text):
            return PointReply(says_none=True)
    return None


def _one_of(points: Sequence[tuple[float, ...]]) -> PointReply | None:
    """The only place named, or None; a failure for several different places, and for numbers that make no place."""
    if not points:
        return None
    odd = next((numbers for numbers in points if len(numbers) not in (2, 4)), None)
    if odd is not None:
        return PointReply(failure="no_point", detail=f"expected 2 or 4 numbers, got {_shown(odd)}")
    # a box together with its own centre is one place
    different = {centre(numbers): numbers for numbers in points}
    if len(different) > 1:
        shown = ", ".join(map(_shown, list(different.values())[:3]))
        return PointReply(failure=SEVERAL, detail=f"{len(different)} places: {shown}")
    numbers = points[0]
    if len(numbers) == 4 and (numbers[2] < numbers[0] or numbers[3] < numbers[1]):
        return PointReply(failure="reversed_box", detail=f"expected left, top, right, bottom, got {_shown(numbers)}")
    return PointReply(numbers)


_PAIR = rf"{_NUMBER}\s*,\s*{_NUMBER}"
_GAP = r"""["'\s]{0,4}[:=]["'\s]{0,4}"""
_AND = r"""["'\s]{0,4}(?:px|pixels)?["'\s]{0,4}[,;]?\s*(?:and\s+)?["']?"""
# <point x="1" y="2">words</point>, <points x1="1" y1="2" x2="3" y2="4">words</points>
_ATTRIBUTES = re.compile(r"<points?\b(?P<attributes>[^<>]{3,400})/?>(?:[^<>]{0,200}</points?>)?", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"\b(?P<axis>[xy])\d*\s*=\s*[\"']?\s*(?P<n>{_NUMBER})", re.IGNORECASE)
_COORDS = re.compile(r"\bcoords\s*=\s*[\"'](?P<n>[\d.\s]*)")
# the clearest notations first: what one has read is taken out before the next one looks
_NOTATIONS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    # in tags: <point>1 2</point>, <box>(1,2),(3,4)</box>, <|box_start|>(1,2),(3,4)<|box_end|>
    (
        re.compile(
            r"<\|?(?:point|points|box|bbox)(?:_start)?\|?>(?P<inside>[^<>]{3,200})(?:<[/|]{0,2}(?:point|points|box|bbox)(?:_end)?\|?>)?",
            re.IGNORECASE,
        ),
        lambda match: re.sub(r"(?i)\b[xy]\d?\s*[=:]", " ", match["inside"]),
    ),
    # x1=1, y1=2, x2=3, y2=4 before x=1, y=2
    (
        re.compile(
            rf"\bx_?(?:1|min){_GAP}({_NUMBER}){_AND}y_?(?:1|min){_GAP}({_NUMBER}){_AND}"
            rf"x_?(?:2|max){_GAP}({_NUMBER}){_AND}y_?(?:2|max){_GAP}({_NUMBER})",
            re.IGNORECASE,
        ),
        lambda match: " ".join(match.groups()),
    ),
    (
        re.compile(rf"\bx{_GAP}({_NUMBER}){_AND}y{_GAP}({_NUMBER})", re.IGNORECASE),
        lambda match: " ".join(match.groups()),
    ),
    (re.compile(rf"\[\s*(?:\[\s*)?(?P<n>{_PAIR}(?:\s*,\s*{_PAIR})?)\s*\](?:\s*\])?"), lambda match: match["n"]),
    (re.compile(rf"\(\s*(?P<n>{_PAIR}(?:\s*,\s*{_PAIR})?)\s*\)"), lambda match: match["n"]),
)


def _points(plain: str) -> list[_Place]:
    """Every point and box in the text, in order."""
    places = [
        _Place(match.start(), match.end(), pair)
        for match in _ATTRIBUTES.finditer(plain)
        for pair in _attribute_pairs(match)
    ]
    plain = _ATTRIBUTES.sub(lambda match: match[0] if not _attribute_pairs(match) else " " * len(match[0]), plain)
    for pattern, numbers in _NOTATIONS:

        def taken(match: re.Match[str], numbers: Callable[[re.Match[str]], str] = numbers) -> str:
            values = _numbers(numbers(match))
            if len(values) >= 2:
                places.append(_Place(match.start(), match.end(), values))
            return " " * len(match[0])

        plain = pattern.sub(taken, plain)
    return sorted(places)


def _attribute_pairs(match: re.Match[str]) -> list[tuple[float, ...]]:
    """Pairs each x with its y. Numbered ones are points, never the corners of a box. `coords` has the picture's number,
    then each point's with x and y."""
    if (coords := _COORDS.search(match["attributes"])) is not None:
        numbers = _numbers(coords["n"])
        return list(zip(numbers[2::3], numbers[3::3], strict=False))
    axes: dict[str, list[float]] = {"x": [], "y": []}
    for attribute in _ATTRIBUTE.finditer(match["attributes"]):
        axes[attribute["axis"].lower()].append(float(attribute["n"]))
    return list(zip(axes["x"], axes["y"], strict=False))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in re.findall(_NUMBER, text))


def _shown(numbers: Sequence[float]) -> str:
    return f"({', '.join(f'{number:g}' for number in numbers)})"

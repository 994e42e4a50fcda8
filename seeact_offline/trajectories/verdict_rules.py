"""Reads a judge's reply: the verdict in it, by the rules of the judge that was asked.

The rules of `webvoyager` and `openwebvoyager` are those of the released code (MinorJerry/WebVoyager at 5a78967,
evaluation/auto_eval.py, and MinorJerry/OpenWebVoyager at e907cef, exploration_feedback.py), which look for one text
inside another: UNSUCCESSFUL holds SUCCESS, and is a success for them. So are those of `agenttrek` and `autonomouseval`
(OSU-NLP-Group/Online-Mind2Web at ccdeb0d, src/utils.py).
`strict` reads a verdict only where the word stands on its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from seeact_offline.records import InputError
from seeact_offline.replies.answer_text import without_thoughts

_VERDICT = re.compile(r"(?<![\w-])(?P<negated>NOT\s+)?SUCCESS(?![\w-])")
_SPLIT = re.compile(r"(?<![\w-])NOT[\s*_`\"'-]{1,8}SUCCESS(?![\w-])")
"""A verdict on two lines, or with marks between its words, such as `**NOT** SUCCESS` and `NOT_SUCCESS`."""
_STATUS = re.compile(
    r"(?P<own>^[ \t*_`\"'“‘#>{<(\[|•–-]{0,12}(?:[0-9]{1,3}[.)][ \t*_`]{0,4})?(?:(?:final|overall|task)\s)?)?"
    r"(?P<key>(?<=[{,\s])\\?\"(?=status\\?\"))?status[*_`\"\\]{0,4}\s?[:：]",
    re.MULTILINE,
)
"""`own`: it begins its line; `key`: it is the key of an object."""
_STATUS_WORD = re.compile(
    r"(?P<failure>fail|un-?succe|\bnot?\b[^.,;]{0,80}succe)"
    r"|(?P<partial>\b(?:partial(?:ly)?|incomplete|limited|almost|nearly|mostly)\s+(?:a\s)?succe)|succe(?:ss|ed)\w*"
)
_NO_SUCCESS_BEHIND = re.compile(
    r"(?P<words>[^.;:!?,(–—]{0,80}?)(?:\b(?:not|never|cannot|impossible|unlikely|unclear)\b|n['’]t\b)"
    r"|[\s*_`\"'”’)]{0,8}(?:\?|[:=]\W{0,8}(?:no|none|not|false)\b(?!\s{1,4}\w))"
    r"|[\s*_`\"'”’),(–—-]{1,8}(?:but\s)?(?:only\s)?(?:in\s)?part(?:ial(?:ly)?)?\b"
)
"""Words behind a success that deny it, but for reasons such as "because it did not stop"."""
_OTHER_WORDS = re.compile(
    r"[.;!?]|\(.|\b(?:incomplete|unfinished|pending|unclear|unknown|but|though|although|while|because|since|as|where"
    r"|when|said|says|show|shows|showed|read|reads)\b"
)
"""Between a status and a success that is another's."""
_NUMBERED = re.compile(r"\s{0,8}[*_]{0,2}[0-9]{1,3}[.):][*_]{0,2}(?![0-9])")
"""The beginning of a numbered line, such as `1. `, `2)` and `**3.** `; 1.5 is none."""
_BULLET = re.compile(r"\s{0,8}[-*•–]\s")
_DECORATION = " \t\r*_`\"'“”‘’()[]{}<>#>~|-–—"
"""Characters around a verdict that say nothing."""
_ENDS = re.compile(r"[\n.:;!]|(?<=\?)")
"""Ends of a part in which a verdict can stand alone: a line, a sentence, a heading before a colon.
A question keeps its mark."""
_ALTERNATIVE = re.compile(r"[\s*_`\"']*(?:/|or\b)", re.IGNORECASE)
_CLAUSE_ENDS = re.compile(r"[,(–—]|\s-|\b(?:because|since|as|and|but|although)\b", re.IGNORECASE)
"""Ends of the words behind a verdict that can deny it; reasons follow."""
_UNSURE = re.compile(
    r"\b(?:not|no|never|nor|neither|cannot|without|unless|if|whether|either|or|impossible|unable"
    r"|(?:far|short|lack)\s{1,4}(?:from|of))\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
"""Words before a verdict that deny it or make it depend on something."""
_FAILURE = r"(?:(?:a\s{1,4})?fail(?:ure|ed)|un-?successful|not\s{1,4}(?:a\s{1,4})?success(?:ful)?)(?![\w-])"
_FAILED = re.compile(
    # named a verdict
    r"\b(?:verdict|judge?ment|conclusion|decision|final\s(?:answer|status|result))\b[\s*_`\"'“‘:：=(\[-]{0,8}"
    rf"(?:(?:is|was|must\sbe)\b[\s*_`\"'“‘:：(\[-]{{0,8}})?{_FAILURE}"
    # the only words of a line, or the first ones
    rf"|^[ \t*_`\"'“‘#>(\[-]{{0,8}}{_FAILURE}[ \t*_`\"'”’)\]]{{0,8}}(?:$|[.;!]|:(?!\s{{0,4}}(?:none|no|0)\b))",
    re.IGNORECASE | re.MULTILINE,
)
"""A verdict of failure in words that were not asked for."""
_DENIED = re.compile(
    # `SUCCESS: no`
    r"(?<![\w-])success[\s*_`\"'”’)\]]{0,8}[:：=?][\s*_`\"'“‘(\[]{0,8}"
    r"(?:no|none|false|not(?:\s(?:met|yet|achieved|reached))?)(?![\w-])(?!\s{1,4}\w)"
    # `PARTIAL SUCCESS`, `SUCCESS (in part)`
    r"|\b(?:partial(?:ly)?|incomplete|limited|almost|nearly|mostly)[\s*_`\"'“‘-]{1,4}(?:a\s)?success(?![\w-])"
    r"|(?<![\w-])success[\s*_`(,–—-]{1,4}(?:only\s)?(?:in\s)?part(?:ial(?:ly)?)?\b"
    rf"|\b(?:task(?:\s(?:has|is|was))?|(?:it|this|that)\s(?:is|was))\s{_FAILURE}(?=\s{{0,4}}(?:[.!,;\n]|\Z))",
    re.IGNORECASE,
)
"""A success that is said to be none or one in part, or a failure in a sentence.
A verdict behind it is another matter."""


def read_verdict(text: str | None, judge: str) -> bool | None:
    """Reads the verdict of a reply without its thoughts by a judge's rules: True for success,
    None where the reply holds no verdict.

    `text`: None for a reply without a text, which counts as an empty one. Raises InputError for an unknown judge.

    >>> read_verdict("The cart is empty. Verdict: NOT SUCCESS", "strict"), read_verdict("Was it a SUCCESS?", "strict")
    (False, None)
    >>> read_verdict("UNSUCCESSFUL", "webvoyager")  # as released: it holds SUCCESS
    True
    """
    if judge not in READERS:
        raise InputError("judge", f"one of {', '.join(READERS)}", repr(judge))
    return READERS[judge](without_thoughts(text or ""))


def _webvoyager(text: str) -> bool | None:
    if "NOT SUCCESS" in text:
        return False
    return True if "SUCCESS" in text else None


def _strict(text: str) -> bool | None:
    """A part of the reply that is nothing but the verdict counts;
    without one, all mentions must agree, none denied or conditional.

    A success beside a failure in other words is open.
    """
    text = _SPLIT.sub("NOT SUCCESS", text)
    parts = _ENDS.split(text)
    mentioned = _alone(parts)
    if not mentioned:
        for part in parts:
            in_part = list(_VERDICT.finditer(part))
            if in_part and _is_open(part, in_part):
                return None
            mentioned += in_part
    verdicts = {mention["negated"] is None for mention in mentioned}
    if len(verdicts) > 1 or (True in verdicts and _is_denied_elsewhere(text)):
        return None
    return verdicts.pop() if verdicts else None


def _alone(parts: list[str]) -> list[re.Match[str]]:
    """The verdicts that are all of their part."""
    return [match for part in parts if (match := _VERDICT.fullmatch(part.strip(_DECORATION)))]


def _is_denied_elsewhere(text: str) -> bool:
    """True where a success stands beside a failure in other words."""
    if _FAILED.search(text):
        return True
    ends = [denial.end() for denial in _DENIED.finditer(text)]
    return bool(ends) and not _alone(_ENDS.split(text[ends[-1] :]))


def _is_open(part: str, mentioned: list[re.Match[str]]) -> bool:
    """True for a part that asks for a verdict, denies one or makes it depend on something."""
    last = mentioned[-1]
    behind = _CLAUSE_ENDS.split(part[last.end() :])[0] if last["negated"] is None else ""
    unsure = _UNSURE.search(part[: last.start()]) or _UNSURE.search(behind)
    return bool(unsure) or part.endswith("?") or any(_ALTERNATIVE.match(part, mention.end()) for mention in mentioned)


def _webjudge(text: str) -> bool | None:
    """The first word of success or failure behind the last `Status:` that begins its line,
    on that line or the next. `Status:` may be bold.

    Where none begins a line, the last key `"status"` of an object counts; without one, the last `Status:` with such a
    word, if no line below it says otherwise.
    """
    text = text.lower()
    statuses = list(_STATUS.finditer(text))
    ends = [*(status.start() for status in statuses), len(text)][1:]
    readings = [_verdict_of_line(text[status.end() : end]) for status, end in zip(statuses, ends, strict=True)]
    for kind in ("own", "key"):
        for status, (_, verdict) in zip(reversed(statuses), reversed(readings), strict=True):
            if status[kind] is not None:
                return verdict
    for end, (length, verdict) in zip(reversed(ends), reversed(readings), strict=True):
        if length is not None:
            below = {other["failure"] is None for other in _STATUS_WORD.finditer(text, end - length)}
            return None if verdict is None or (not verdict) in below else verdict
    return None


def _verdict_of_line(text: str) -> tuple[int | None, bool | None]:
    """The verdict in the first line of a text, and how much text there is below;
    None for both in one without a word of success or failure."""
    line, _, below = text.lstrip(_DECORATION + "\n").partition("\n")
    word = _STATUS_WORD.search(line)
    if word is None:
        return None, None
    is_open: object = _ALTERNATIVE.match(line, word.end())
    if word["failure"] is None:
        before = line[: word.start()]
        is_open = is_open or word["partial"] or _UNSURE.search(before) or _OTHER_WORDS.search(before)
        is_open = is_open or _denies(line[word.end() :])
    return len(below), None if is_open else word["failure"] is None


def _denies(behind: str) -> bool:
    """Tells whether the words behind a success deny it; reasons for it do not."""
    denial = _NO_SUCCESS_BEHIND.match(behind)
    return denial is not None and _CLAUSE_ENDS.search(denial["words"] or "") is None


def _released_status(text: str) -> bool:
    """`success` anywhere between the first `status:` and the next, so that "unsuccessful" is a success;
    all else is a failure."""
    parts = text.lower().split("status:", 2)
    return len(parts) > 1 and "success" in parts[1]


def read_points(text: str) -> tuple[str, ...]:
    r"""The points that a reply lists: its numbered lines, or else those with bullets;
    lines below one without a mark belong to it.

    A reply without such lines is one point, an empty one none.

    >>> read_points("Key points:\n1. Size M\n2. The cheapest,\n   in black")
    ('Size M', 'The cheapest, in black')
    """
    lines = without_thoughts(text).split("\n")
    for mark in (_NUMBERED, _BULLET):
        points: list[list[str]] = []
        for line in lines:
            if (match := mark.match(line)) is not None:
                points.append([line[match.end() :]])
            elif points:
                points[-1].append(line)
        if points:
            return tuple(filter(None, (" ".join(" ".join(point).split()).strip("*_ ") for point in points)))
    whole = " ".join(" ".join(lines).split())
    return (whole,) if whole else ()


READERS: dict[str, Callable[[str], bool | None]] = {
    "webvoyager": _webvoyager,
    # a reply without a verdict counts as a failure
    "openwebvoyager": lambda text: _webvoyager(text) is True,
    "strict": _strict,
    "webjudge": _webjudge,
    # of the reply to one point
    "webjudge-keypoints": _webjudge,
    "agenttrek": _released_status,
    "autonomouseval": _released_status,
}
"""Judge -> its reading of a reply. To add one, write a function, and a line here."""

"""The ACTION field -> an operation, and the VALUE field (or other free text) -> the text that it means."""

from __future__ import annotations

import re

from seeact_offline.replies.words import CLOSING_QUOTES, DASHES, MARKUP, NO_VALUE, NOTHING, OPERATION, plain

# --- the operation ---------------------------------------------------------------------------------------------------

_ACTION = re.compile(
    rf"(?:(?:the|action|operation|is|to|be|perform|choose|a|an)\b\W{{0,3}}){{0,4}}(?P<op>{OPERATION})(?![A-Z0-9])",
    re.IGNORECASE,
)
_SECOND_ACTION = re.compile(
    r"[\W_]{0,6}(?:(?:on|it|an?|the|text|option)\b[\W_]{0,6}){0,3}(?:(?:or|and|then)\b|[/,&+;|>\u2192])[\W_]{0,6}"
    r"(?:then\b\W{0,6})?"
    rf"(?:{OPERATION}|PRESS|HOVER|SCROLL|ENTER|HOLD|WAIT|HIT|SUBMIT)\b",
    re.IGNORECASE,
)
_DENIED_ACTION = re.compile(
    r"\W*(?:(?:is|was|would be|can|should|does)(?:\b\W*not\b|n['\u2019]t\b)|not\b|impossible\b)", re.IGNORECASE
)


def operation_in(text: str) -> str:
    """One of OPERATIONS; empty unless the text names exactly one, and does not deny it."""
    words = re.sub(r"^[\W_]+", "", MARKUP.sub("", plain(text[:400])))
    found = _ACTION.match(words)
    if found is None or any(doubt.match(words, found.end()) for doubt in (_SECOND_ACTION, _DENIED_ACTION)):
        return ""
    return found["op"].upper()


# --- the value -------------------------------------------------------------------------------------------------------

_NO_VALUE = re.compile(rf"{NO_VALUE}[\s)}}\]>]*[.\u3002]?|[{DASHES}]*|\?+", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"\W*(?:unknown|unclear|unspecified|not (?:visible|known|given|specified|provided|legible|readable|shown|stated|available)|tbd|to be determined)\W*"
    r"|\W*I can(?:not|['\u2019]t) (?:read|see|make out|tell|determine)\b.*"
    r"|\W*please (?:provide|specify|enter|insert|describe|give)\b.*"
    r"|[\[(<{](?:the|your|my|his|her|their|user|users|insert|enter|provide|please|to be|name of) [^\[\](){}<>]*\w\W?[\])>}]"
    r"|[\[<{](?:[A-Za-z0-9]+[ _-])*(?:here|value|text|name|code|date|number|address|email|password|city|query|input|string)[\]>}]",
    re.IGNORECASE | re.DOTALL,
)
"""Words that stand in for a text which the model does not say."""
_NO_VALUE_BECAUSE = re.compile(rf"[(\[]?(?:{NOTHING})\b\s*[{DASHES}(\[,.;:]", re.IGNORECASE)
_ASIDE = re.compile(rf"\s*(?:[.,;\u3002]?\s*$|[.,]?\s*[(\[\uff08]|[.,]?\s+[{DASHES}]+\s)")
_EMPHASIS = ("***", "**", "__", "```", "`", "*", "_")
_EDGE = " \t\r\n\u00a0\u200b\u200e\u200f\u2060\ufeff"


def value_in(text: str, op: str = "") -> str:
    """The value as written, without emphasis and one outer pair of quotes; empty if the text says that there is none.

    Text in brackets or after a dash behind a closing quote is an explanation; without quotes nothing separates value and
    explanation, so everything is kept. Only for a CLICK does `None (because ...)` mean none.
    """
    value = _without_emphasis(_unquoted(_without_emphasis(text)))
    if (len(value) <= 40 and _NO_VALUE.fullmatch(plain(value))) or is_placeholder(value):
        return ""
    if op == "CLICK" and _NO_VALUE_BECAUSE.match(plain(value)):
        return ""
    return value


def is_placeholder(value: str) -> bool:
    """Tells whether a text stands in for one that the model does not say: `[the user's zip code]`, `Unknown`, `?`."""
    return len(value) <= 200 and _PLACEHOLDER.fullmatch(plain(value)) is not None


def _without_emphasis(text: str) -> str:
    value = text.strip().strip(_EDGE)
    for _ in range(3):
        stripped = _peeled(value)
        if stripped == value:
            break
        value = stripped
    return value


def _peeled(value: str) -> str:
    """The value without one pair of emphasis marks, or without one mark that has no partner."""
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
    """The inside of the quotes around the value, ignoring an explanation after them."""
    closing = CLOSING_QUOTES.get(value[:1])
    if not closing:
        return value
    for end in range(1, len(value)):
        after = value[end + 1 : end + 2]
        if value[end] in closing and not (value[end] in "'\u2019" and after.isalnum()):
            return value[1:end].strip(_EDGE) if _ASIDE.match(value, end + 1) else value
    return value

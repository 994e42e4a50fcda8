"""The fields of an answer -> what they mean: ELEMENT an option's letter, a mark or none of them, ACTION an operation,
VALUE a text.

A letter or mark stands first, at most behind words such as `the correct choice is` or `the box labelled`: anywhere else
it may be a word, or part of the element's own text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seeact_offline.replies.decided import DECLINED, SEVERAL
from seeact_offline.replies.words import CLOSING_QUOTES, DASHES, MARKUP, NO_ELEMENT, NO_VALUE, NOTHING, OPERATION, plain

UNKNOWN = "unknown_choice"
"""The failure of a text that names none of the options."""
_MAX_LENGTH = 600
"""Characters of the field that are read."""


def letter_index(label: str) -> int:
    """The option that a label means, in either case; the inverse of `letter`: A -> 0, AA -> 26."""
    if not re.fullmatch("[A-Za-z]+", label):
        raise ValueError(f"label must be letters from A to Z, got {label!r}")
    index = 0
    for char in label.upper():
        index = index * 26 + ord(char) - ord("A") + 1
    return index - 1


# --- none of them ----------------------------------------------------------------------------------------------------

_NONE = re.compile(
    rf"(?:(?:option|choice|element|answer)\W{{1,3}})?(?:{NO_ELEMENT}|neither)(?![a-z0-9])"
    r"|(?:no|nothing|not)\b[\w ]{0,20}\b(?:match|matches|matching|applicable|available|found|listed|present)\b"
    r"|(?:the|my|target)\b[\w ]{0,30}\bis not (?:listed|shown|visible|present|available|among|in the list|one of)\b",
    re.IGNORECASE,
)


def says_none(text: str) -> bool:
    """Tells whether a description of the element says that there is none."""
    return _NONE.match(_opened(text)) is not None


def _opened(text: str) -> str:
    """The plain form, without what may come before the answer. `<` stays, as it may begin a piece of HTML."""
    opened = MARKUP.sub("", plain(text[:_MAX_LENGTH]))
    opened = re.sub(r"^[^\w<]+|^_+", "", opened).lstrip("_*` ")
    tagged = re.match(r"<([A-Z]{1,3})>", opened)
    return tagged[1] + opened[tagged.end() :] if tagged else opened


# --- words around letters and marks ----------------------------------------------------------------------------------

_INTRO_WORDS = (
    "the|my|for|final|best|correct|matching|chosen|selected|of|your|it is|it's|is|would be|element|answer|choice|option|match"
    "|(?:most )?likely|probably|(?:please )?(?:select|choose|pick)|I(?:'d|'ll| would| will)? (?:choose|select|pick|go with)"
)
_INTRO_SIGNS = r"[\s:#*_`\"'(\[{=\u201c\u2018\u300c-]*"
# what follows a letter or number that is the answer, and no word of the page's
_EXPLAINS = re.compile(
    r"\s*(?:is|was|because|since|which|as|matches|fits|seems|appears|looks|would|should|over|rather than|instead of"
    r"|unlike|although|though|even though|but)\b"
)
_EXPLAINS_I = re.compile(r"\s*(?:is|because|matches|fits|seems|appears|looks|over|rather than|instead of)\b")
"""Words that explain `I`, which is a pronoun before the others."""
_EXPLAINS_LETTER = re.compile(rf"{_EXPLAINS.pattern}|\s*(?:(?:and )?not|best|better|most likely|while|given|due to)\b")
"""Words that explain other letters than `A` and `I`."""
_BAD = (
    r"(?:not|wrong|incorrect|avoid\w*|fail\w*|invalid|tried|already|never|excluded|ruled out|rejected|cannot|unavailable|disabled"
    r"|gr[ea]yed out|hidden|a mistake|an ad(?:vert\w*)?)\b"
)
_DENIED = re.compile(
    r"\W*(?:is|was|has|does|did|would|should|can|could|looks|seems|appears|must)(?:n['\u2019]t\b|\b"
    r"(?:(?!\b(?:but|because|since|as|although|though|while|than|of|that|which)\b)[^.;,])*?(?:n['\u2019]t|\b"
    + _BAD
    + "))"
    r"|.*?\b(?:none of (?:the|these|them|those)(?! others?\b)|no (?:option|element|choice|mark) (?:is|fits|match\w*)"
    r"|would have been|but (?:it|that|this)(?:['\u2019]s| is| was| seems| looks) (?:\w+ )?" + _BAD + ")",
    re.IGNORECASE | re.DOTALL,
)
_DENIED_BESIDE = re.compile(
    r"\W*\((?:no|wrong|incorrect|invalid|not (?:right|correct|it|this|visible))\)|\W*[-\u2013\u2014?]\s*no(?:[,.:]|\W*$)"
)
"""Words that say of a label that it is not the answer, or that there is none."""
_LABELS = r"\W{1,3}(?:(?:the|option|choice|element|letter|mark|box|label|number) ){0,2}\W{0,2}(?:[A-Z]{1,2}|\d{1,4})\b"
_REJECTED = re.compile(
    rf"\b(?:than|instead of|over|not|neither|unlike|as opposed to){_LABELS}(?:\W{{0,3}}(?:,|\bor\b|\band\b|\bnor\b){_LABELS})*"
    rf"|\b(?:although|though|while|(?<!well )as|because|since){_LABELS}"
)
"""Others, named only to say that they are not the answer: `rather than M, N or O`, `although G is similar`."""
_QUOTED_WORDS = re.compile(
    r"\((?!\s*(?:or|and|and/or|maybe|perhaps|could|possibly|alternatively)\b)[^()]*\)|<[^<>]*>|\"[^\"]*\"|\u201c[^\u201d]*\u201d"
)
"""Words about an element, which may hold letters and numbers of their own."""
_OTHER = re.compile(
    r"(?:[,;?>\u2192\u3001\uff0c\uff1b\u6216\u548c\u4e0e\u304b]|\u8fd8\u662f|\.{2,}|\u2026|(?<!\w)[/|&+]|[\])}]\s*(?=[\[({])|\b(?:or|and|and/or|vs|then|be|plus|but|else|as well as|alternatively|option"
    r"|choice|ou|oder|und|et|o|y|e)\b)[\W_]{0,6}(?:(?:the|option|choice|element|letter|mark|box|label|number|no\.|possibly|perhaps|maybe) ){0,3}[\W_]{0,3}"
    r"(?:(?-i:[A-Z]{1,2})|\d{1,4}|none|NA|N/A)(?=[.,;:)(\"'*\]?%/|\u3001\u3040-\u30ff\u4e00-\u9fff]|\W*$|\s(?:or|and|also|too|as well|is|was|matches|would|could|seems|looks|fits|might|may)\b)",
    re.IGNORECASE,
)
"""Another label, behind a sign or word that sets it beside the first."""


def _doubt(tail: str) -> str | None:
    """The failure where what follows a label denies it, or names another that may be meant as well."""
    if _DENIED_BESIDE.match(tail):
        return DECLINED
    bare = _REJECTED.sub("", _QUOTED_WORDS.sub(" ", tail))
    if _OTHER.search(bare):
        return SEVERAL
    return DECLINED if _DENIED.match(bare) and not _SIGN.match(tail) else None


_SIGN = re.compile(r"\s*[.:)\]|\uff1a\u3002-]")
"""What separates a label from words of the page."""


def _goes_on(after: str) -> bool:
    """Tells whether the text continues with a character of a script that puts spaces between words."""
    return after[:1].isalnum() and ord(after[0]) < 0x2E80


# --- letters ---------------------------------------------------------------------------------------------------------

_INTRO = re.compile(rf"(?:(?:{_INTRO_WORDS}|upper-?case|capital|letter)\b{_INTRO_SIGNS}){{1,9}}", re.IGNORECASE)
_LETTER = re.compile(r"[A-Za-z]{1,3}(?![A-Za-z0-9])")
_NONE_SENTENCE = re.compile(
    r"[.:\s-]*none of (?:the|these|those)\b|[\W_]*(?:i\.e\.?[\W_]*)?none of the other options match", re.IGNORECASE
)
"""Words of the option that stands for none, behind a letter. In brackets others may explain a choice: `H (none of the
others fit)`."""
_NOT_LABEL = re.compile(r"[.'\u2019-](?:[a-z]|[A-Z0-9](?![a-z]))|-\w|[/&+@#%$]")
# words after the quote show that the letter is an article, as in `A "Search" button`
_QUOTED = re.compile(r"""["'\u201c\u2018(`*]+[^"'\u201d\u2019)`*]*["'\u201d\u2019)`*]+\s*(\w)?""")


def picked_letter(text: str, n_choices: int) -> int | str:
    """The option that the text names: an index, or `n_choices` for "none of them"; else the name of the failure."""
    words = _opened(text)
    intro = _INTRO.match(words)
    rest = words[intro.end() :] if intro else words
    if _NONE.match(words) or _NONE.match(rest):
        word = rest.rstrip("*_`~.\"')]} ")
        # with many options, NA is one
        if re.fullmatch("[A-Z]{1,3}", word) is None or letter_index(word) > n_choices:
            return n_choices
    label = _LETTER.match(rest)
    if label is None:
        return UNKNOWN
    tail = rest[label.end() :]
    if not _ends_letter(label[0], tail, intro[0] if intro else ""):
        return UNKNOWN
    index = letter_index(label[0])
    if doubt := _doubt(tail):
        return doubt
    if index != n_choices and _NONE_SENTENCE.match(tail):
        # the letter and the words contradict each other, unless the letter is beyond all that were offered
        return n_choices if index > n_choices else SEVERAL
    return index if index <= n_choices else UNKNOWN


def _ends_letter(label: str, tail: str, intro: str) -> bool:
    """Tells whether letters followed by `tail` are a label and not a word (`A button`, `I think`, `X-ray`)."""
    if label.isupper() and re.search(r"(?:option|choice|letter)\W{0,6}$", intro, re.IGNORECASE):
        return True
    bare = tail.lstrip("*_`~")
    after = bare.lstrip()
    if not after:
        return True
    if _goes_on(after):
        explains = {"A": _EXPLAINS, "I": _EXPLAINS_I}.get(label, _EXPLAINS_LETTER)
        return label.isupper() and explains.match(bare) is not None
    if after[0] in "&+@%$" or (label in ("I", "i") and after[0] == ","):
        return False
    if label in ("A", "I", "a", "i") and bare[0].isspace():
        # an article, as in `A "Search" button` or `a (blue) link`
        if label.islower() or after[0] in ",/&+@#%$":
            return False
        quoted = _QUOTED.match(after)
        return quoted is None or quoted[1] is None
    return _NOT_LABEL.match(bare) is None


# --- marks -----------------------------------------------------------------------------------------------------------

_MARK_INTRO = re.compile(
    rf"(?:(?:{_INTRO_WORDS}|target|with|as|has|having|carrying|in|red|mark|box|label|labell?ed|marked|number|numbered|no\."
    rf"|letters?)(?![^\W_]){_INTRO_SIGNS}){{1,12}}",
    re.IGNORECASE,
)
_MARK = re.compile(r"(?:[A-Za-z]{1,3}|\d{1,6})(?![A-Za-z0-9])")
_NO_MARK = re.compile(
    r"(?:(?:the|my|this|that|it|i|there|target|element|button|link|field)\b[\w ,'\u2019-]{0,80}?)?"
    r"(?<![^\W_])(?:(?:no|not|cannot|lacks?|missing|without)\b|\w{2,6}n['\u2019]t\b|(?=un(?:mark|label|box|letter|number)))[\w ]{0,30}?"
    r"(?<![^\W_])(?:un)?(?:mark|box|bounding|label|letter|number|annotat|highlight)\w*\b"
    r"(?-i:(?!.*\b(?!NA\b|A \b|I\b)(?:[A-Z]{1,2}|\d{1,4})\b))",
    re.IGNORECASE | re.DOTALL,
)
"""No label is named after it: `not marked with B but with C`."""
_NUMBER_GOES_ON = re.compile(rf"[{DASHES}.:,/]\d")


def picked_mark(text: str, labels: Sequence[str]) -> int | str:
    """The mark that the text names: an index of `labels`, or their number for "none"; else the name of the failure."""
    words = re.sub(r"^<(\d{1,6})>", r"\1", _opened(text))
    intro = _MARK_INTRO.match(words)
    rest = words[intro.end() :] if intro else words
    if any(pattern.match(part) for pattern in (_NONE, _NO_MARK) for part in (words, rest)):
        return len(labels)
    # AS, IS and IN are labels too
    first = _mark_first(words, "", labels)
    return first if first != UNKNOWN or intro is None else _mark_first(rest, intro[0], labels)


def _mark_first(words: str, intro: str, labels: Sequence[str]) -> int | str:
    """The mark at the start of `words`, which follow `intro`."""
    label = _MARK.match(words)
    if label is None:
        return UNKNOWN
    tail = words[label.end() :]
    if not _ends_mark(label[0], tail, intro):
        return UNKNOWN
    index = {name: i for i, name in enumerate(labels)}.get(label[0].upper())
    return _doubt(tail) or (UNKNOWN if index is None else index)


def _ends_mark(label: str, tail: str, intro: str) -> bool:
    """Tells whether a label before `tail` is a mark and not a word, an amount or a time (`12 items`, `12.50`,
    `12:30`)."""
    if not label.isdigit():
        return _ends_letter(label, tail, intro)
    bare = tail.lstrip("*_`~")
    after = bare.lstrip()
    if _NUMBER_GOES_ON.match(bare) or after[:1] in ("%", "$", "+", "\u20ac"):
        return False
    return not _goes_on(after) or _EXPLAINS.match(bare) is not None


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
    action = _ACTION.match(words)
    if action is None or any(doubt.match(words, action.end()) for doubt in (_SECOND_ACTION, _DENIED_ACTION)):
        return ""
    return action["op"].upper()


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

    Text in brackets or after a dash behind a closing quote is an explanation; without quotes nothing separates value
    and explanation, so everything is kept. Only for a CLICK does `None (because ...)` mean none.
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

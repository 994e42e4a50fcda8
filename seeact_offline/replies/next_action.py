"""The first turn's free text -> the operation that it decides on. Nothing is ever guessed.

Models write the decision as labelled lines (``ACTION: TYPE`` / ``VALUE: 10203``) or as prose (``the next step is to
select "2" from the Guests list``), after pages of analysis that name other operations too. Read in this order:

1. Labelled lines: the last ACTION (or operation) with the VALUE that follows it.
2. Prose: the text under the last heading that announces the decision (such as `Next Action`), or the whole text if there
   is none. The decision is its last sentence that names an operation and is an order or says `next step`, `should` or
   `will`, unless it is about what comes later (`After that, click Search`); within a sentence the first operation is
   the next one.

Words of prose: click, press, tap, tick -> CLICK; type, enter, fill in -> TYPE; SELECT in capitals, and select, choose,
pick from a drop-down or list that the sentence names -> SELECT. To select or choose anything else is to click it: where
UGround's published GPT-4o plans (cross_task) say so without naming a list, the model itself went on to call 208 of 226
a CLICK and 7 a SELECT; where they name one, 37 of 53 a CLICK and 16 a SELECT, so this remains the weakest rule here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from seeact_offline.replies.answer_text import plain_answer
from seeact_offline.replies.words import MAX_READ, NO_VALUE, NUMBERING, OPERATION, STRAIGHT_QUOTES, folded

NEXT_ACTION_FAILURES = (
    # the text decides on none
    "no_operation",
    # it decides on something else, such as scrolling
    "unknown_action",
    # TYPE or SELECT without a value
    "missing_value",
)
_MAX_VERBS = 50
"""Verbs of one sentence that are looked at."""


@dataclass(frozen=True, slots=True)
class NextAction:
    """The operation that a text decides on."""

    op: str = ""
    """One of OPERATIONS, or empty."""
    value: str = ""
    failure: str | None = None
    """One of NEXT_ACTION_FAILURES, or None."""


def parse_next_action(text: str) -> NextAction:
    """Reads the operation that a turn-1 text decides on. Never raises because of `text`."""
    # curly quotes made straight and emphasis removed, so that one expression reads all texts
    plain = re.sub(r"\*{1,3}|_{2,3}|`{1,3}|\x00", "", folded(plain_answer(text)[-MAX_READ:]).translate(STRAIGHT_QUOTES))
    return _labelled(plain) or _prose(plain) or NextAction(failure="no_operation")


# --- labelled lines --------------------------------------------------------------------------------------------------

_LINE_START = rf"[^\w\n]{{0,12}}(?:{NUMBERING})?"
_ACTION_LINE = re.compile(
    rf"^{_LINE_START}"
    r"""(?:(?:the|my|next|final|corresponding|required|chosen|recommended)[ ]){0,3}
    (?:action|operation)(?:[ ](?:type|to[ ](?:take|perform|be[ ](?:taken|performed))))?["']?[ \t]*+(?:\([^()\n]{0,40}\)[ \t]*+)?+[:=-]
    \s{0,4}(?P<rest>[^\n]{0,400})""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_VALUE_LINE = re.compile(
    r"""(?:^[^\w\n]{0,12}|[,;|][ ]{0,3}["']?|\s(?=VALUE))(?:(?:the|input|typed|text)[ ]){0,2}value["']?[ \t]*[:=]\s{0,4}(?P<rest>[^\n]{0,1000})""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_OP = re.compile(rf"[\s\"'({{\[<]*(?P<op>{OPERATION})(?P<more>[^\n]*)", re.IGNORECASE)
_END = re.compile(r"""["'>)}\]\s.,;]*(?:$|[|]|,?\s*["']?(?:element|value|target)\b)""", re.IGNORECASE)
_OTHER = re.compile(
    r"[\s\"'({\[<]*(?:scroll|hover|wait|go back|navigate|press|none|no action|stop|terminate)", re.IGNORECASE
)


def _labelled(plain: str) -> NextAction | None:
    """The plan of the last ACTION line that begins with an operation's name; the text after the name is read as
    prose."""
    for line in reversed(list(_ACTION_LINE.finditer(plain))):
        operation = _OP.match(line["rest"])
        if operation and _END.match(operation["more"]):
            begin = line.start("rest") + operation.end("op")
            # the first VALUE line after the operation, else the last one before it
            stated = _VALUE_LINE.search(plain, begin)
            stated = stated or next(iter([*_VALUE_LINE.finditer(plain, 0, begin)][-1:]), None)
            return _with_value(operation["op"].upper(), "" if stated is None else _cleaned(stated["rest"]))
        if operation:
            sentences = list(_sentences(line["rest"]))
            return _read(sentences[0], sentences)
        if _OTHER.match(line["rest"]) and line["rest"].isupper():
            return NextAction(failure="unknown_action")
    return None


_NO_VALUE = re.compile(rf"{NO_VALUE}\b[^\w]*|[\W_]*", re.IGNORECASE)


def _cleaned(text: str) -> str:
    value = text.strip()
    quoted = re.match(r"""(["'])(.*?)\1(?=\s*(?:[,.;}\]|(]|$))""", value)
    value = quoted[2] if quoted else value.rstrip("}],").strip()
    return "" if _NO_VALUE.fullmatch(value) else value.strip()


def _with_value(op: str, value: str) -> NextAction:
    if op == "CLICK":
        return NextAction(op)
    return NextAction(op, value, None if value else "missing_value")


# --- prose -----------------------------------------------------------------------------------------------------------

_HEADING = re.compile(
    rf"(?:^|(?<=[.!?][ ])){_LINE_START}"
    r"[^\n.!?:]{0,40}\b(?:next (?:action|step|move)|what comes next"
    r"|final (?:answer|decision|action)|decision|conclusion|action to (?:take|perform))\b"
    r"(?!\W*(?:is|are|would|should|will|to|could|must|might|can)\b)[^\n.!?:]{0,40}?(?:[:)\]]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_DECIDES = re.compile(
    r"\b(?:next|first) (?:logical |immediate |required |necessary |target )?(?:action|step|move|target element|operation|thing)\b|\bI(?:'ll| will| would| should| need to| must| have to)\b"
    r"|\b(?:should|must|needs? to|has to|have to|will) (?:now |then |first )?(?:be )?(?:to )?[a-z]+|\b(?:corresponding|required|appropriate) (?:operation|action)\b"
    r"|\btherefore\b|\bthus\b|\bso I\b|\blet's\b|\bdecided\b|\bthe (?:action|operation)\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"\W*(?:then|after (?:that|this|which|typing|clicking|selecting|entering|doing)|afterwards?|later|subsequently|once\b|following (?:this|that)|finally|"
    r"upon|when (?:this|that) is|only then|in the (?:next|following) step|from there)\b",
    re.IGNORECASE,
)
_UNDONE = re.compile(
    r"\b(?:already|previously|has been|have been|was|were|had|do(?:es)? not (?:need|have)|don't|doesn't|no need|not necessary|instead of|rather than|cannot|can't|could"
    r"|might|without|before)\b[^,;.]{0,60}$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One sentence, with its quoted texts set aside."""

    masked: str
    """The sentence with a mark in place of each quoted text."""
    quotes: tuple[str, ...]
    """The quoted texts, in order."""


def _prose(plain: str) -> NextAction | None:
    headings = list(_HEADING.finditer(plain))
    for passage in ([plain[headings[-1].end() :]] if headings else []) + [plain]:
        sentences = list(_sentences(passage))
        decisions = [s for s in sentences if _first_operation(s) is not None]
        chosen = _chosen(decisions, is_conclusion=passage is not plain)
        if chosen is not None:
            return _read(chosen, sentences)
        if any(re.search(r"\bscroll|\bhover\b", s.masked, re.IGNORECASE) for s in sentences[-3:]):
            return NextAction(failure="unknown_action")
    return None


def _chosen(decisions: list[_Sentence], is_conclusion: bool) -> _Sentence | None:
    """The last sentence that decides; outside a conclusion, sentences that say so come first."""
    now = [s for s in decisions if not _LATER.match(s.masked)] or decisions
    # an order counts: `Click the button`, `TYPE "x" into ...`, `In the list, select "2"`
    begins = re.compile(r"(?:^[\W\d_]*|,\s*)$")
    firsts = [(s, _first_operation(s)) for s in now]
    saying = [
        s for s, verb in firsts if _DECIDES.search(s.masked) or (verb and begins.search(s.masked[: verb.start()]))
    ]
    pool = saying or (now if is_conclusion else [])
    return pool[-1] if pool else None


# stands for a quoted text: what a sentence decides is read without the words that it quotes
_MARK = "\x00"
_QUOTED = re.compile(
    r"""(?<!\w)"(?P<double>[^"\n]{1,300})"|(?<![\w\x00])'(?P<single>[^'\n]{1,300}(?:'\w[^'\n]{0,300}){0,3})'(?!\w)"""
)
_STOP = re.compile(r"(?<=[.!?;])\s+|(?<=[.!?]\x00)\s+(?=[A-Z])|\n+")


def _sentences(text: str) -> Iterator[_Sentence]:
    quotes: list[str] = []

    def set_aside(match: re.Match[str]) -> str:
        quotes.append(match["double"] or match["single"])
        # a full stop inside the quotes still ends the sentence if a capital follows
        return ("." if quotes[-1][-1] in ".!?" else "") + _MARK

    taken = 0
    for sentence in _STOP.split(_QUOTED.sub(set_aside, text)):
        count = sentence.count(_MARK)
        if sentence.strip():
            yield _Sentence(sentence.strip(), tuple(quotes[taken : taken + count]))
        taken += count


_VERBS = re.compile(
    r"""(?<![\w-])(?:
    (?P<CLICK>click(?:ing)?|press(?:ing)?|tap(?:ping)?|tick(?:ing)?|check(?:ing)?(?=[ ](?:the|off)\b[^,.;]{0,60}\b(?:box|checkbox|option))|toggl(?:e|ing))
    | (?P<TYPE>typ(?:e|ing)(?![ ](?:of|is)\b)|enter(?:ing)?(?![ ](?:key|button)\b)|input(?:ting)?(?=[ ](?:\x00|the[ ](?:text|value|zip|name|date|number|word|term)))|fill(?:ing)?(?:[ ](?:in|out))?)
    | (?P<SELECT>select(?:ing)?(?![ ](?:menu|box|field|list|element|drop-?down)\b)|choos(?:e|ing)|pick(?:ing)?)
    )(?![\w-])""",
    re.IGNORECASE | re.VERBOSE,
)
_NOUN_BEFORE = re.compile(
    r"\b(?:the|this|that|a|an|which|what|element|page|event|room|car|of|by|search|press|hit|your|its)\s*$",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(?:drop-?down|combo-?box|select(?:ion)? (?:box|menu|list|element|field)|list ?box|(?:from|in) (?:the )?(?:[\w\x00]+ ){0,3}(?:list|menu))\b",
    re.IGNORECASE,
)


def _first_operation(sentence: _Sentence) -> re.Match[str] | None:
    """The first operation to be done, in capitals if any is: not a noun, and nothing that is done already or ruled
    out."""
    named = islice(_VERBS.finditer(sentence.masked), _MAX_VERBS)
    verbs = [m for m in named if _is_verb(m, sentence.masked)]
    capitals = [m for m in verbs if m[0].isupper()]
    return next(iter(capitals or verbs), None)


def _is_verb(match: re.Match[str], masked: str) -> bool:
    before = masked[max(0, match.start() - 80) : match.start()]
    if _UNDONE.search(before):
        return False
    if match[0].isupper():
        return True
    if match[0].endswith("ing") and re.search(r"\b(?:for|after|before|while|of|without|\w+ed)\s*$", before):
        return False
    return not _NOUN_BEFORE.search(before) or (match[0].endswith("ing") and before.rstrip().endswith("by"))


def _read(sentence: _Sentence, sentences: list[_Sentence]) -> NextAction:
    """The operation that the sentence decides on, with a value from it or else from any of `sentences`."""
    verb = _first_operation(sentence)
    if verb is None or verb.lastgroup is None:
        return NextAction(failure="no_operation")
    op = verb.lastgroup
    if op == "SELECT" and not verb[0].isupper() and not _LIST.search(sentence.masked):
        op = "CLICK"
    if op == "CLICK":
        return NextAction(op)
    value = _value_in(sentence, verb)
    return _with_value(op, value or _stated_value(sentences))


_NAMES_FIELD = re.compile(
    r"\b(?:in|into|on|onto|from|of|to|under|at|for|within|labell?ed|named|called|titled|field|box|dropdown)\s+(?:(?:the|a|an|its|field|box|dropdown|option|menu|list)\s+)*$",
    re.IGNORECASE,
)
_FIELD_AFTER = re.compile(
    r"\s*(?:input |text |search |entry )?(?:field|box|input|bar|drop-?down|list|menu|section)\b", re.IGNORECASE
)
_UNQUOTED = re.compile(
    r"\s+(?:(?:in|out)\s+)?(?P<the>(?:the\s+)?(?:(?:text|value|option|words?|term|zip code|zip|number|date|name|city|location)\s+)?)"
    r"(?P<value>[^\x00,;:]{1,80}?)\s+(?:in|into|from|as|for|on|under|to)\b(?:\s|$)"
)
_DESCRIBES = re.compile(r"(?:the|a|an|it|this|that|your|my|in|into|on|from|with|some|all|as)\b", re.IGNORECASE)
_AS = re.compile(r"[^\x00]{0,60}\b(?:as|with)\s+(?P<value>[^\x00,;:]{1,60}?)[.!]?\s*$")


def _value_in(sentence: _Sentence, verb: re.Match[str]) -> str:
    """The first quoted text after the verb that does not name a field; else the words between verb and `into the
    ...`."""
    masked, after = sentence.masked, verb.end()
    marks = [m.start() for m in re.finditer(_MARK, masked)]
    for quoted, mark in zip(sentence.quotes, marks, strict=False):
        names_field = _NAMES_FIELD.search(masked[after:mark]) or _FIELD_AFTER.match(masked, mark + 1)
        if mark > after and not names_field:
            return _without_stop(quoted)
    for words in (_UNQUOTED.match(masked, after), _AS.match(masked, after)):
        if words is None or _DESCRIBES.match(words["value"]):
            continue
        # `10203` or `New York`, but not `the departure date`
        if not words.groupdict().get("the", "the") or re.search(r"[A-Z\d]", words["value"]):
            return words["value"].strip()
    return ""


def _without_stop(quoted: str) -> str:
    """Drops the sentence's own comma or full stop, which some writers put inside the quotes."""
    return re.sub(r"(?<=\w\w)[.,]$", "", quoted.strip())


_STATED = re.compile(
    r"\b(?:value|text|option|entry)(?:\s+(?:to\s+(?:type|enter|select|choose|input|pick|be\s+\w+)|entered|typed|selected|chosen))?\s*(?:is|would be|should be|will be|:|=)\s*"
    r"(?:(?:the|text|value|option)\s+)*(?P<value>\x00|[^\s,;.\x00][^,;\n\x00]{0,80}?(?=[,;.]?\s*$))",
    re.IGNORECASE,
)


def _stated_value(sentences: list[_Sentence]) -> str:
    """The value in the last sentence like `the value to type is "10203"`."""
    for sentence in reversed(sentences):
        stated = _STATED.search(sentence.masked)
        if stated:
            nth = sentence.masked[: stated.start("value")].count(_MARK)
            value = sentence.quotes[nth] if stated["value"] == _MARK else stated["value"]
            return "" if _NO_VALUE.fullmatch(value) else _without_stop(value)
    return ""

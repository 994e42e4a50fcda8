"""Notations: which calls, and places, a reply has, and where; below them the one place that accepts them.

A notation finds acts in a text; `acts_in` tries them all, clearest first. It reads what is documented for models of
2025 and 2026: QwenLM/Qwen3.8#125 and vllm-project/vllm#42021 (XML), trycua/cua loops/uitars2.py and glm45v.py (boxes),
QwenLM/Qwen3-VL (JSON between tags), zai-org/CogAgent, Tongyi-MAI/MAI-UI, stepfun-ai/gelab-zero parser_0920_summary.py,
inclusionAI/UI-Venus navigation/utils.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from textwrap import dedent
from typing import Any

from seeact_offline.agents.acts import CLICKS, Act, Kind, Unreadable
from seeact_offline.agents.verbs import TYPED, Declined, Several, UnknownAct, WrittenAct, act_of, acts_in_value, kind_of
from seeact_offline.replies.calls import calls_in, json_in, json_spans, loads, parse, place_of, unquoted
from seeact_offline.replies.decided import DECLINED, SEVERAL, set_aside, stands_alone, takes_back
from seeact_offline.replies.field_values import is_placeholder
from seeact_offline.replies.points import read_point as find_point

Verbs = Mapping[str, Kind] | None
"""Verbs of one model -> the kind of act that each asks for."""
MOST_CALLS = 50

# --- parts of a reply ---

_BOXES = (
    ("<|begin_of_box|>", "<|end_of_box|>"), ("<answer>", "</answer>"), ("<action>", "</action>"), ("\\boxed{", "}"),
    ("grounded operation:", "\n<<"),
)  # fmt: skip
_FENCED = re.compile(r"^```\w*[ \t]*\n(?P<code>.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE)
_ANCHOR = re.compile(
    r"^[ \t>*#-]*+(?:\d{1,3}[.)][ \t]*)?(?:next )?actions?[ \t*]*[:\uff1a]", re.IGNORECASE | re.MULTILINE
)
_ONLY_CALLS = re.compile(r"\s*+[A-Za-z_][\w.]*+\([^\n]*\)\s*+")


def boxes(text: str) -> Iterator[str]:
    """Yields what stands in the last box or answer tag of each kind, and in those that stand right before it, then the
    whole text. An empty one is the answer: there is none.

    >>> list(boxes("Memory: <|begin_of_box|>B<|end_of_box|>"))
    ['B', 'Memory: <|begin_of_box|>B<|end_of_box|>']
    """
    lower = text.lower()
    for begin, end in _BOXES:
        starts: list[int] = []
        start = lower.rfind(begin)
        while start >= 0 and len(starts) < MOST_CALLS:
            starts.insert(0, start)
            adjoins = lower[max(0, start - 40) : start].rstrip().endswith(end)
            start = lower.rfind(begin, 0, start) if adjoins else -1
        if starts:
            ends = [lower.find(end, start) for start in starts]
            inside = (text[start + len(begin) : None if at < 0 else at] for start, at in zip(starts, ends, strict=True))
            yield (content := "\n".join(inside))
            if not content.strip():
                return
    yield text


def _behind_actions(text: str) -> int | None:
    """Position behind the last `Action:`, or the first of those that only calls part from it; None for none."""
    anchors = list(_ANCHOR.finditer(text))[-MOST_CALLS:]
    start = None
    for anchor, following in zip(reversed(anchors), [None, *reversed(anchors)], strict=False):
        if following is not None and not _ONLY_CALLS.fullmatch(text, anchor.end(), following.start()):
            break
        start = anchor.end()
    return start


def executed(code: str) -> str:
    """The calls of Python code that run whatever happens, one per line: none that is only defined, compared, handled
    or commented out.

    A text that is no code, or only a value, stays as it is.

    >>> executed("try:\\n    click(1, 2)  # not click(3, 4)\\nexcept Exception:\\n    click(5, 6)")
    'click(1, 2)'
    """
    source = dedent(code).lstrip(" \t")
    try:
        statements = parse(source, "exec").body
        calls = list(islice(_running(statements), MOST_CALLS))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return code
    if all(isinstance(statement, ast.Expr) for statement in statements) and not calls:
        return code
    return "\n".join(ast.get_source_segment(source, call) or "" for call in calls)


def _running(statements: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    for statement in statements:
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign) and isinstance(
            value, ast.Call | ast.Await | ast.Tuple
        ):
            yield value
        elif isinstance(statement, ast.For | ast.While | ast.With | ast.Try):
            yield from _running(statement.body)
            yield from _running(getattr(statement, "finalbody", ()))
        elif isinstance(statement, ast.Return | ast.Raise):
            return


# --- notations ---

Reading = Sequence[WrittenAct]
"""Acts of one part of a reply, with their positions in the reply."""
_HEAD = re.compile(
    r"<(?:\w+:)?(?:function|invoke)(?:\s*=\s*|\s+name\s*=\s*)[\"']?(?P<function>[\w.-]{1,80})[\"']?\s*>"
    r"|(?:\bfunctions\.|\[TOOL_CALLS\])(?P<token>[\w-]{1,80})(?::\d{1,4})?"
    r"(?:\s*(?:<\|[a-z_]{1,40}\|>|\[ARGS\])(?:json)?){1,3}\s*(?=\{)"
    r"|<tool_call>\s*(?P<bare>[\w.-]{1,80})\s*(?=<arg_key>)",
    re.IGNORECASE,
)
"""The head of a call: in XML; between tokens, `functions.NAME:0<|tool_call_argument_begin|>` of Kimi-K2,
`functions.NAME <|message|>` of gpt-oss, `[TOOL_CALLS]NAME[ARGS]` of Mistral; or with keys and values of GLM."""
_PARAMETER = re.compile(
    r"<(?:\w+:)?parameter(?:\s*=\s*|\s+name\s*=\s*)[\"']?(?P<name>[\w.-]{1,80})[\"']?[^<>]{0,80}>", re.IGNORECASE
)
_END = re.compile(r"</(?:\w{1,20}:)?(?:parameter|function|invoke)>", re.IGNORECASE)
_CALL_END = re.compile(r"</(?:\w{1,20}:)?(?:function|invoke|tool_call|arg_value)>|<\|[a-z_]{1,40}\|>", re.IGNORECASE)
_ARGUMENT = re.compile(
    r"<arg_key>(?P<name>[^<]{1,80})</arg_key>\s*<arg_value>(?P<value>.*?)(?:</arg_value>|\Z)", re.DOTALL
)
_ELEMENT = re.compile(r"<(?P<verb>[A-Za-z_]{3,30})(?P<given>(?:\s+[\w-]{1,30}\s*=\s*\"[^\"<>]{0,500}\"){1,12})\s*/?>")
_GIVEN = re.compile(r"([\w-]{1,30})\s*=\s*\"([^\"]*)\"")


def _in_xml(text: str, own: Verbs) -> Iterator[Reading]:
    """Calls such as `<function=NAME><parameter=NAME>value</parameter></function>`, with attributes, or with
    `<arg_key>`. Ends may be missing."""
    acts = []
    heads = list(_HEAD.finditer(text))[:MOST_CALLS]
    for head, following in zip_longest(heads, heads[1:]):
        inside = text[head.end() : following.start() if following else len(text)]
        if head["bare"]:
            inside = inside.partition("</tool_call>")[0]
            pairs = [(argument["name"].strip(), argument["value"]) for argument in _ARGUMENT.finditer(inside)]
            arguments: Mapping[str, Any] = {name: _value(name, value) for name, value in pairs}
        else:
            arguments = _parameters(inside) or next((value for value in json_in(inside) if isinstance(value, dict)), {})
        end = max((match.end() for match in _CALL_END.finditer(inside)), default=len(inside)) + head.end()
        name = head["function"] or head["token"] or head["bare"]
        acts.append(replace(_with_verb(name, arguments), start=head.start(), end=end))
    for element in list(_ELEMENT.finditer(text))[:MOST_CALLS]:
        arguments = dict(_GIVEN.findall(element["given"]))
        verb = (
            arguments.pop("type", arguments.pop("name", "")) if element["verb"].lower() == "action" else element["verb"]
        )
        if kind_of(verb, own) is not None:
            acts.append(WrittenAct(verb, arguments, start=element.start(), end=element.end()))
    yield [replace(act, stands=stands_alone(text, act.start, act.end, is_tagged=True)) for act in acts]


def _parameters(text: str) -> dict[str, Any]:
    heads = list(_PARAMETER.finditer(text))
    parameters = {}
    for head, following in zip_longest(heads, heads[1:]):
        inside = text[head.end() : following.start() if following else len(text)]
        end = _END.search(inside)
        parameters[head["name"]] = _value(head["name"], inside[: end.start()] if end else inside)
    return parameters


def _value(name: str, written: str) -> Any:
    """The value of a parameter, without the line feeds around it; what is typed stays as it is written, as does all but
    lists and objects."""
    # a line feed at the end may be spelt, and means Enter
    text = written.strip("\r\n").removesuffix("\\n") if written.strip() else ""
    value = loads(text.strip()) if text.strip()[:1] in ("[", "{", "(") and name.lower() not in TYPED else None
    return text if value is None else value


def _with_verb(name: str, arguments: Mapping[str, Any]) -> WrittenAct:
    """The call, whose verb may be an argument."""
    action = arguments.get("action")
    if isinstance(action, str) and action.strip():
        return WrittenAct(action.strip(), {key: value for key, value in arguments.items() if key != "action"})
    return WrittenAct(name, arguments)


def _in_json(text: str, own: Verbs) -> Iterator[Reading]:
    """Calls as JSON, or in Python's or JSON5's way of writing it: those between the first tag of a call and the last,
    those of the last fence that has any, then those of the whole text."""
    start = text.find("<tool_call>")
    if start >= 0:
        end = text.rfind("</tool_call>")
        yield _of_json(text, start, end if end > start else len(text), own, is_tagged=True)
    for fence in reversed(list(_FENCED.finditer(text))[-MOST_CALLS:]):
        yield _of_json(text, fence.start("code"), fence.end("code"), own)
    yield _of_json(text, 0, len(text), own)


def _of_json(text: str, first: int, last: int, own: Verbs, is_tagged: bool = False) -> Reading:
    acts = []
    for start, end, value in json_spans(text[first:last]):
        stands = stands_alone(text, first + start, first + end, is_tagged)
        acts += [replace(act, start=first + start, end=first + end, stands=stands) for act in acts_in_value(value, own)]
    return acts


def _in_python(text: str, own: Verbs) -> Iterator[Reading]:
    """Calls such as `click(start_box='(1,2)')`, with or without a module: those behind the last `Action:`, those that
    run in the last block of code that has any, then those of the whole text."""
    if (start := _behind_actions(text)) is not None:
        yield _of_python(text, start, own)
    for fence in reversed(list(_FENCED.finditer(text))[-MOST_CALLS:]):
        acts = _of_python(executed(fence["code"]), 0, own)
        yield [replace(act, start=fence.start(), end=fence.end()) for act in acts]
    yield _of_python(_FENCED.sub(lambda fence: " " * len(fence[0]), text), 0, own)


def _of_python(text: str, start: int, own: Verbs) -> Reading:
    acts = []
    for call in calls_in(text[start:]):
        act = WrittenAct(call.name, call.named) if kind_of(call.name, own) else _with_verb(call.name, call.named)
        first, last = start + call.start, start + call.end
        acts.append(
            replace(
                act,
                positional=[_argument(argument) for argument in call.positional],
                start=first,
                end=last,
                stands=call.is_tight and stands_alone(text, first, last),
            )
        )
    return acts


def _argument(written: str) -> Any:
    value = loads(written) if written[:1] in ("[", "(", "{") else None
    return written if value is None else value


_FIELD = re.compile(r"(?:^|\t)[ ]*(?P<name>[A-Za-z_]\w{0,30})[ ]*[:=][ ]*(?P<value>[^\t\n]*)", re.MULTILINE)
_NO_ARGUMENTS = ("action", "action_type", "explain", "summary")


def _in_fields(text: str, own: Verbs) -> Iterator[Reading]:
    """Names and values, one pair per line or with tabs between: `action:CLICK<tab>point:1,2`."""
    matches = list(_FIELD.finditer(text))
    fields = {match["name"].lower(): match["value"].strip() for match in matches}
    verb = fields.get("action") or fields.get("action_type") or ""
    if verb and (kind_of(verb, own) or re.fullmatch(r"[A-Za-z_ ]{1,30}", verb)):
        named = {name: value for name, value in fields.items() if name not in _NO_ARGUMENTS}
        yield [WrittenAct(verb, named, start=matches[0].start(), end=matches[-1].end())]


_LINE = re.compile(
    r"^[ \t>*#-]*+(?:\d{1,3}[.)][ \t]*)?"
    r"(?:(?P<anchor>(?i:(?:grounded |next )?operation|(?:next )?actions?))[ \t*]*:[ \t*]*)?"
    r"(?P<verb>[A-Za-z][A-Za-z_]{2,30})\b[ \t:*]*+(?P<rest>[^\n]*)",
    re.MULTILINE,
)
_PAIR = re.compile(r"(?:^(?:at\s+)?|[\[(])\s*(?:x\s*[=:]\s*)?-?[\d.]++\s*[,\s]\s*(?:y\s*[=:]\s*)?-?\.?\d")
"""Two numbers in a bracket, or at the beginning of what a line says."""
_BARE = re.compile(
    r"[.!]?|[\"'\[(].*[\"'\])][.!]?|(?:at )?[\[(]?[\d\s.,:=xy-]+[\])]?"
    r"|(?:up|down|left|right)\b.{0,40}|[A-Za-z]+(?: ?\+ ?[\w ]+)?",
    re.IGNORECASE,
)
"""Matches the words behind a verb that is an act: none, a text in quotes or brackets, numbers, a direction, a key."""
_ARROW = re.compile(
    r"-> *(?P<verb>[A-Z]{3,12})(?:: *(?P<text>[^\n]{0,500}?))?(?: at the box *(?P<box>\[\[[\d, ]{3,60}\]\]))"
)
"""An operation as CogAgent-18B writes it on web pages."""
_POINT = re.compile(r"<point>[^<]*+</point>|<\|box_start\|>[^<]*+<\|box_end\|>|\[\[[^\[\]]*+\]\]", re.IGNORECASE)
_PLACED = (*CLICKS, "select", "drag", "scroll")


def _in_lines(text: str, own: Verbs) -> Iterator[Reading]:
    """Lines that begin with a verb in capitals: `CLICK <point>[[1,2]]</point>`, `TYPE [text]`, `click 1 2` behind
    `Action:`."""
    acts = [
        WrittenAct(arrow["verb"], {"text": arrow["text"] or "", "box": arrow["box"]}, (), arrow.start(), arrow.end())
        for arrow in _ARROW.finditer(text)
    ]
    anchored = _behind_actions(text)
    for line in _LINE.finditer(text):
        kind = kind_of(line["verb"].replace(" ", "_"), own)
        is_behind = line["anchor"] or (anchored is not None and line.start() >= anchored)
        # a word of the prose may look like a verb, but not in capitals
        if kind is None or not (is_behind or line["verb"].isupper()):
            continue
        rest = line["rest"].strip()
        tagged = _POINT.search(rest)
        words = _POINT.sub("", rest).strip()
        pair = _PAIR.search(words)
        place = place_of(tagged[0]) if tagged else place_of(words[pair.start() :]) if pair and kind in _PLACED else None
        # a sentence on the act, not the act
        is_act = place is not None if kind in CLICKS else line["verb"].isupper()
        if not (is_act or (kind not in CLICKS and _BARE.fullmatch(words))):
            continue
        bare = unquoted(words.rstrip(".") if kind == "scroll" else words)
        bare = bare if bare != words else unquoted(words.removeprefix("[").removesuffix("]"))
        named: dict[str, Any] = {} if place is None else {"point": place}
        if words and kind not in CLICKS and not (kind == "select" and not tagged and pair):
            named["direction" if kind == "scroll" else "text"] = (
                bare.strip("[]. ").lower() if kind == "scroll" else bare
            )
        acts.append(WrittenAct(line["verb"], named, (), line.start(), line.end()))
    yield acts


Notation = Callable[[str, Verbs], Iterator[Reading]]
NOTATIONS: Mapping[str, Notation] = {
    "xml": _in_xml,
    "json": _in_json,
    "python": _in_python,
    "fields": _in_fields,
    "lines": _in_lines,
}
"""Notations of calls by name, the clearest first."""

# --- accepting acts ---


def acts_in(text: str, notations: Iterable[str] = tuple(NOTATIONS), verbs: Verbs = None, sign: str = "") -> list[Act]:
    """The acts of the first of these notations that has any.

    Where all notations are tried, a reply that is a place and nothing else is a click. `verbs`: what the model's own
    verbs ask for, beside those that many models have. `sign`: a pattern without which the reply is in another language.
    Raises UnknownAct where the text calls something that is not known, NoMarks, Declined, Several, Unreadable.
    """
    names = list(notations)
    if sign and not re.search(sign, text):
        raise Unreadable(f"expected a call, written as {' or '.join(names)}")
    refused: Unreadable | None = None
    for name in names:
        try:
            for reading in NOTATIONS[name](text, verbs):
                if acts := _accepted(text, reading[:MOST_CALLS], verbs):
                    return acts
        except Declined:
            raise
        except Unreadable as error:
            refused = refused or error
    if refused is None and set(names) == set(NOTATIONS):
        return [lone_place(text)]
    raise refused or Unreadable(f"expected a call, written as {' or '.join(names)}")


def _accepted(text: str, reading: Reading, verbs: Verbs) -> list[Act]:
    """The acts of a reading that count. Raises UnknownAct for calls of which none is known, Declined and Several for
    acts that are set aside."""
    standing = [written for written in reading if written.stands]
    acts = [(written, act) for written in standing if (act := act_of(written, verbs)) is not None]
    if not acts:
        if standing:
            raise UnknownAct(f"no table knows {standing[0].verb[:60]!r}")
        return []
    aside = set_aside(text, acts[0][0].start)
    if aside == SEVERAL:
        raise Several("several acts, and nothing that chooses from them")
    if aside or takes_back(text, acts[-1][0].end):
        raise Declined("the words around the act set it aside")
    return [
        replace(act, text=None) if act.kind in ("type", "select") and is_placeholder(act.text or "") else act
        for _, act in acts
    ]


_TAGS = re.compile(
    r"<points?\b[^<>]{1,200}>[^<>]{0,200}</points?>|<\|?/?(?:point|points|box|bbox)(?:_start|_end)?\|?[^<>]{0,200}>"
    r"|<ref>[^<]*+</ref>|```\w*",
    re.IGNORECASE,
)
_NAMED = re.compile(r"<ref>[^<]*+</ref>", re.IGNORECASE)
"""The name of the element in a box (InternVL), whose numbers are no place."""


def lone_place(text: str) -> Act:
    """A click at the place that is all that a reply says, as when a model answers like a grounder. Raises
    Unreadable."""
    values = list(json_in(text))
    is_object = len(values) == 1 and _is_all(text) and any(isinstance(item, dict) for item in (values[0], *values[0]))
    if is_object or not any(map(str.isalpha, re.sub(r"\b[xy]\b", "", _TAGS.sub("", text)))):
        return place_in_reply(text)
    raise Unreadable("expected a call, or a place alone")


def _is_all(text: str) -> bool:
    """Tells whether a value of JSON is all of a text, but for a fence."""
    bare = _TAGS.sub("", text).strip()
    return bare[:1] in ("{", "[") and bare[-1:] in ("}", "]")


def place_in_reply(text: str) -> Act:
    """A click at the only place that a grounder's reply names, however it is written. Raises Unreadable.

    >>> place_in_reply('{"point_2d": [640, 360], "label": "Search"}').place
    (640.0, 360.0)
    >>> place_in_reply("<point>12 34</point>").place
    (12.0, 34.0)
    """
    text = _FENCED.sub(lambda fence: executed(fence["code"]), _NAMED.sub("", text))
    acts: Sequence[Act | None] = ()
    if _is_all(text) or _HEAD.search(text) or "<tool_call>" in text:
        try:
            acts = acts_in(text, ("xml", "json"))
        except Unreadable as error:
            if error.name != Unreadable.name:
                raise
            items = (
                item for value in json_in(text) for item in (value if isinstance(value, list | tuple) else [value])
            )
            acts = [act_of(WrittenAct("click", item)) for item in items if isinstance(item, dict)]
    places = {act.place for act in acts if act is not None and act.place is not None}
    if len(places) > 1:
        raise Several(f"{len(places)} places")
    if places:
        return Act("click", places.pop())
    pointed = find_point(text)
    if pointed.failure in (SEVERAL, DECLINED):
        raise (Several if pointed.failure == SEVERAL else Declined)(pointed.detail)
    place = place_of(pointed.numbers) if pointed.failure is None and pointed.numbers and not acts else None
    if place is None:
        raise Unreadable("expected one place")
    return Act("click", place)

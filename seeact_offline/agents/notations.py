"""Notations: how calls, and places, are written, below the verbs of any agent.

A notation finds actions in a text; `acts_in` tries them all, clearest first. It reads what is documented for models of 2025 and 2026:
QwenLM/Qwen3.8#125 and vllm-project/vllm#42021 (XML), trycua/cua loops/uitars2.py and glm45v.py (boxes), QwenLM/Qwen3-VL (JSON between tags),
zai-org/CogAgent, Tongyi-MAI/MAI-UI, stepfun-ai/gelab-zero parser_0920_summary.py, inclusionAI/UI-Venus navigation/utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from seeact_offline.agents.acts import CLICKS, Act, Kind, Unreadable
from seeact_offline.agents.calls import calls_in, json_in, loads, place_of, unquoted
from seeact_offline.agents.verbs import TYPED, NoMarks, Said, UnknownAct, act_of, kind_of, said_in_value
from seeact_offline.replies.points import read_point as find_point

_WRAPS = tuple(
    (begin, end)
    for begin, end in (
        ("<|begin_of_box|>", "<|end_of_box|>"), ("<answer>", "</answer>"), ("<action>", "</action>"), ("\\boxed{", "}"),
        ("grounded operation:", "\n<<"),
    )
)  # fmt: skip
_FUNCTION = re.compile(
    r"<(?:\w+:)?(?:function|invoke)(?:\s*=\s*|\s+name\s*=\s*)[\"']?(?P<name>[\w.-]{1,80})[\"']?\s*>", re.IGNORECASE
)
_PARAMETER = re.compile(
    r"<(?:\w+:)?parameter(?:\s*=\s*|\s+name\s*=\s*)[\"']?(?P<name>[\w.-]{1,80})[\"']?[^<>]{0,80}>", re.IGNORECASE
)
_END = re.compile(r"</(?:\w{1,20}:)?(?:parameter|function|invoke)>", re.IGNORECASE)
_ARGUMENT = re.compile(
    r"<arg_key>(?P<name>[^<]{1,80})</arg_key>\s*<arg_value>(?P<value>.*?)(?:</arg_value>|\Z)", re.DOTALL
)
_TOKENS = re.compile(
    r"(?:\bfunctions\.|\[TOOL_CALLS\])(?P<name>[\w-]{1,80})(?::\d{1,4})?(?:\s*(?:<\|[a-z_]{1,40}\|>|\[ARGS\])(?:json)?){1,3}\s*(?=\{)"
)
"""The head of a call between tokens: `functions.NAME:0<|tool_call_argument_begin|>` of Kimi-K2, `functions.NAME <|message|>` of gpt-oss, `[TOOL_CALLS]NAME[ARGS]` of
Mistral."""
_FENCED = re.compile(r"^```\w*[ \t]*\n(?P<code>.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE)
_ARGUMENTS_OF = re.compile(r"<tool_call>\s*(?P<name>[\w.-]{1,80})\s*(?=<arg_key>)")
_FIELD = re.compile(r"(?:^|\t)[ ]*(?P<name>[A-Za-z_]\w{0,30})[ ]*[:=][ ]*(?P<value>[^\t\n]*)", re.MULTILINE)
_NO_ARGUMENTS = ("action", "action_type", "explain", "summary")
_LINE = re.compile(
    r"^[ \t>*#-]*+(?:\d{1,3}[.)][ \t]*)?(?:(?P<anchor>(?i:(?:grounded |next )?operation|(?:next )?actions?))[ \t*]*:[ \t*]*)?"
    r"(?P<verb>[A-Za-z][A-Za-z_]{2,30})\b[ \t:*]*+(?P<rest>[^\n]*)",
    re.MULTILINE,
)
_PAIR = re.compile(r"(?:^(?:at\s+)?|[\[(])\s*(?:x\s*[=:]\s*)?-?[\d.]++\s*[,\s]\s*(?:y\s*[=:]\s*)?-?\.?\d")
"""Two numbers in a bracket, or at the beginning of what a line says."""
_BARE = re.compile(
    r"[.!]?|[\"'\[(].*[\"'\])][.!]?|(?:at )?[\[(]?[\d\s.,:=xy-]+[\])]?|(?:up|down|left|right)\b.{0,40}|[A-Za-z]+(?: ?\+ ?[\w ]+)?",
    re.IGNORECASE,
)
"""What stands behind a verb in small letters where it is an action: nothing, a text in quotes or brackets, numbers, a direction, a key."""
_ARROW = re.compile(
    r"-> *(?P<verb>[A-Z]{3,12})(?:: *(?P<text>[^\n]{0,500}?))?(?: at the box *(?P<box>\[\[[\d, ]{3,60}\]\]))"
)
"""An operation as CogAgent-18B writes it on web pages."""
_ELEMENT = re.compile(r"<(?P<verb>[A-Za-z_]{3,30})(?P<given>(?:\s+[\w-]{1,30}\s*=\s*\"[^\"<>]{0,500}\"){1,12})\s*/?>")
_GIVEN = re.compile(r"([\w-]{1,30})\s*=\s*\"([^\"]*)\"")
_POINT_TAG = re.compile(r"</?(?:point|box|bbox)>|<\|box_(?:start|end)\|>", re.IGNORECASE)
_NAMED = re.compile(r"<ref>[^<]*+</ref>", re.IGNORECASE)
"""The name of what a box is around (InternVL), whose numbers are no place."""
_DRESS = re.compile(r"<\|box_(?:start|end)\|>")
_ANCHOR = re.compile(
    r"^[ \t>*#-]*+(?:\d{1,3}[.)][ \t]*)?(?:next )?actions?[ \t*]*[:\uff1a]", re.IGNORECASE | re.MULTILINE
)
_ONLY_CALLS = re.compile(r"\s*+[A-Za-z_][\w.]*+\([^\n]*\)\s*+")
_ENDS_LINE = re.compile(r"[\s`*.;,)\]}]*+(?:\Z|(?<=\n)|[<#]|[A-Za-z_][\w.]*+\()")
"""Signs behind a call, up to the end of its line, a tag, a remark or the next call."""
MOST_CALLS = 50


def unwrapped(text: str, wraps: Iterable[tuple[str, str]] = _WRAPS) -> Iterator[str]:
    """Yields what stands in the last box or answer tag of each kind, and in those that stand right before it, then the whole text.

    >>> list(unwrapped("Memory: <|begin_of_box|>B<|end_of_box|>"))
    ['B', 'Memory: <|begin_of_box|>B<|end_of_box|>']
    """
    lower = text.lower()
    for begin, end in wraps:
        starts: list[int] = []
        start = lower.rfind(begin)
        while start >= 0 and len(starts) < MOST_CALLS:
            starts.insert(0, start)
            adjoins = lower[max(0, start - 40) : start].rstrip().endswith(end)
            start = lower.rfind(begin, 0, start) if adjoins else -1
        if starts:
            ends = [lower.find(end, start) for start in starts]
            inside = (text[start + len(begin) : None if at < 0 else at] for start, at in zip(starts, ends, strict=True))
            yield "\n".join(inside)
    yield text


def said_in_json(text: str) -> list[Said]:
    """Every call that the text holds as JSON, or in Python's or JSON5's way of writing it, those in tags or fences where they hold any."""
    for part in _marked(text):
        if found := [said for value in json_in(part) for said in said_in_value(value)]:
            return found
    return []


def _marked(text: str) -> Iterator[str]:
    """Yields what stands between the first tag of a call and the last, then what stands in fences, then the whole text: prose may show a call."""
    start = text.find("<tool_call>")
    if start >= 0:
        end = text.rfind("</tool_call>")
        yield text[start : end if end > start else len(text)]
    if "```" in text:
        yield "\n".join(one["code"] for one in _FENCED.finditer(text))
    yield text


def said_in_xml(text: str) -> list[Said]:
    """Calls such as `<function=NAME><parameter=NAME>value</parameter></function>`, with attributes, or with `<arg_key>`. Ends may be missing."""
    found = []
    heads = list(_FUNCTION.finditer(text))[:MOST_CALLS]
    for head, following in zip_longest(heads, heads[1:]):
        inside = text[head.end() : following.start() if following else len(text)]
        given = _parameters(inside) or next((one for one in json_in(inside) if isinstance(one, dict)), {})
        found.append(_with_verb(head["name"], given))
    heads = list(_TOKENS.finditer(text))[:MOST_CALLS]
    for head, following in zip_longest(heads, heads[1:]):
        inside = text[head.end() : following.start() if following else len(text)]
        found.append(_with_verb(head["name"], next((one for one in json_in(inside) if isinstance(one, dict)), {})))
    for element in list(_ELEMENT.finditer(text))[:MOST_CALLS]:
        given = dict(_GIVEN.findall(element["given"]))
        verb = given.pop("type", given.pop("name", "")) if element["verb"].lower() == "action" else element["verb"]
        if kind_of(verb) is not None:
            found.append(Said(verb, given))
    for head in list(_ARGUMENTS_OF.finditer(text))[:MOST_CALLS]:
        inside = text[head.end() :].partition("</tool_call>")[0]
        found.append(
            _with_verb(
                head["name"],
                {(name := one["name"].strip()): _value(name, one["value"]) for one in _ARGUMENT.finditer(inside)},
            )
        )
    return found


def _parameters(text: str) -> dict[str, Any]:
    heads = list(_PARAMETER.finditer(text))
    found = {}
    for head, following in zip_longest(heads, heads[1:]):
        inside = text[head.end() : following.start() if following else len(text)]
        end = _END.search(inside)
        found[head["name"]] = _value(head["name"], inside[: end.start()] if end else inside)
    return found


def _value(name: str, written: str) -> Any:
    """The value of a parameter, without the line feeds around it; what is typed stays as it is written, as does all but lists and objects."""
    # a line feed at the end may be spelt, and means Enter
    said = written.strip("\r\n").removesuffix("\\n") if written.strip() else ""
    value = loads(said.strip()) if said.strip()[:1] in ("[", "{", "(") and name.lower() not in TYPED else None
    return said if value is None else value


def _with_verb(name: str, given: Mapping[str, Any]) -> Said:
    """The call, whose verb may be an argument."""
    action = given.get("action")
    if isinstance(action, str) and action.strip():
        return Said(action.strip(), {key: one for key, one in given.items() if key != "action"})
    return Said(name, given)


def said_in_python(text: str) -> list[Said]:
    """Calls such as `click(start_box='(1,2)')`, with or without a module: those in tags or fences, or behind the last `Action:`, where they hold any
    that is known. Only those that end their line are surely meant."""
    text = _DRESS.sub("", text)
    for part in [*_behind_actions(text), *_marked(text)]:
        found = _said_in_calls(part)
        if any(kind_of(said.verb) for said in found):
            break
    return found


def _behind_actions(text: str) -> Iterator[str]:
    """Yields what stands behind the last `Action:`, and behind those that only calls part from it."""
    anchors = list(_ANCHOR.finditer(text))[-MOST_CALLS:]
    for anchor, following in zip(reversed(anchors), [None, *reversed(anchors)], strict=False):
        if following is not None and not _ONLY_CALLS.fullmatch(text, anchor.end(), following.start()):
            break
        start = anchor.end()
    if anchors:
        yield text[start:]


def _said_in_calls(text: str) -> list[Said]:
    found = []
    for call in calls_in(text):
        line = text.rfind("\n", 0, call.start) + 1
        before = text[line : call.start].strip(" \t`*>[;,")
        begins = not before or before.endswith((":", "\uff1a", ")", ".")) or bool(call.named)
        is_call = call.is_tight and begins and _ENDS_LINE.match(text, call.end) is not None
        said = _with_verb(call.name, call.named) if kind_of(call.name) is None else Said(call.name, call.named)
        found.append(replace(said, positional=[_argument(one) for one in call.positional], is_call=is_call))
    return found


def _argument(written: str) -> Any:
    value = loads(written) if written[:1] in ("[", "(", "{") else None
    return written if value is None else value


def said_in_lines(text: str) -> list[Said]:
    """Lines that begin with a verb in capitals: `CLICK <point>[[1,2]]</point>`, `TYPE [text]`, `click 1 2` behind `Action:`."""
    found = [Said(arrow["verb"], {"text": arrow["text"] or "", "box": arrow["box"]}) for arrow in _ARROW.finditer(text)]
    for line in _LINE.finditer(text):
        # a word of the prose may look like a verb, but not in capitals
        if kind_of(line["verb"]) is None or not (line["anchor"] or line["verb"].isupper()):
            continue
        rest = _POINT_TAG.sub(" ", line["rest"]).strip()
        pair = _PAIR.search(rest)
        place = place_of(rest[pair.start() :]) if pair and "[" + rest != line["rest"] else None
        named: dict[str, Any] = {} if place is None else {"point": place}
        kind = kind_of(line["verb"])
        # a sentence on the action, not the action
        if not (line["verb"].isupper() or (kind in CLICKS and place) or _BARE.fullmatch(rest)):
            continue
        if kind not in (*CLICKS, "select", "drag", "scroll"):
            bare = unquoted(rest)
            named = {"text": bare if bare != rest else rest.removeprefix("[").removesuffix("]")} if rest else {}
        found.append(Said(line["verb"], named, is_call=bool(named) or (kind not in CLICKS and not rest)))
    return found


def said_in_fields(text: str) -> list[Said]:
    """Names and values, a line each or with tabs between: `action:CLICK<tab>point:1,2`."""
    fields = {one["name"].lower(): one["value"].strip() for one in _FIELD.finditer(text)}
    verb = fields.get("action") or fields.get("action_type") or ""
    if not verb or (kind_of(verb) is None and not re.fullmatch(r"[A-Za-z_ ]{1,30}", verb)):
        return []
    return [Said(verb, {name: value for name, value in fields.items() if name not in _NO_ARGUMENTS})]


Notation = Callable[[str], Sequence[Said]]
NOTATIONS: Mapping[str, Notation] = {
    "xml": said_in_xml,
    "json": said_in_json,
    "python": said_in_python,
    "fields": said_in_fields,
    "lines": said_in_lines,
}
"""Notations of calls by name, the clearest first."""


def acts_in(
    text: str, notations: Iterable[str] = tuple(NOTATIONS), verbs: Mapping[str, Kind] | None = None
) -> list[Act]:
    """The acts of the first of these notations that has any, in the last box or answer tag before the rest of the text.

    Where all notations are tried, a reply that is a place and nothing else is a click. `verbs`: what the model's own verbs ask for, beside
    those that many models have. Raises UnknownAct where the text calls something that is not known, NoMarks, Unreadable.
    """
    refused: Unreadable | None = None
    names = list(notations)
    for part in unwrapped(text):
        for name in names:
            try:
                acts, unknown = _known(NOTATIONS[name](part), verbs)
            except NoMarks as error:
                refused = refused or error
                continue
            if acts:
                return acts
            if unknown:
                refused = refused or UnknownAct(f"no table knows {unknown[:60]!r}")
    if refused is None and set(names) == set(NOTATIONS):
        return [lone_place(text)]
    raise refused or Unreadable(f"expected a call, written as {' or '.join(names)}")


def _known(found: Sequence[Said], verbs: Mapping[str, Kind] | None) -> tuple[list[Act], str]:
    """The acts, and the name of the first call that is not known. A click without a place that may be prose is none."""
    acts, unknown = [], ""
    for said in found[:MOST_CALLS]:
        act = act_of(said, verbs)
        if act is None:
            unknown = unknown or (said.verb if said.is_call else "")
        elif said.is_call or act.place is not None:
            acts.append(act)
    # words of the prose before a call may look like one
    n_words = next((n for n, act in enumerate(acts) if act.kind in CLICKS and act.place is not None), 0)
    return [act for n, act in enumerate(acts) if n >= n_words or act.kind not in CLICKS], unknown


_TAGS = re.compile(
    r"<points?\b[^<>]{1,200}>[^<>]{0,200}</points?>|<\|?/?(?:point|points|box|bbox)(?:_start|_end)?\|?[^<>]{0,200}>|<ref>[^<]*+</ref>|```\w*",
    re.IGNORECASE,
)


def lone_place(text: str) -> Act:
    """A click at the place that is all that a reply says, as when a model answers like a grounder. Raises Unreadable."""
    for part in unwrapped(text):
        values = [one for value in json_in(part) for one in (value if isinstance(value, list | tuple) else [value])]
        is_object = len(values) == 1 and isinstance(values[0], dict)
        if is_object or not any(map(str.isalpha, re.sub(r"\b[xy]\b", "", _TAGS.sub("", part)))):
            with suppress(Unreadable):
                return place_in_reply(part, is_object)
    raise Unreadable("expected a call, or a place alone")


def place_in_reply(text: str, in_json: bool = False) -> Act:
    """A click at the only place that a grounder's reply names, however it is written; `in_json`: as JSON alone. Raises Unreadable.

    >>> place_in_reply('{"point_2d": [640, 360], "label": "Search"}').place, place_in_reply("<point>12 34</point>").place
    ((640.0, 360.0), (12.0, 34.0))
    """
    for part in unwrapped(_NAMED.sub("", text)):
        for value in json_in(part):
            one = value[0] if isinstance(value, list | tuple) and value and isinstance(value[0], dict) else value
            for said in said_in_value(one):
                if (act := act_of(said)) is None:
                    raise UnknownAct(f"no table knows {said.verb[:60]!r}")
                if act.place is not None:
                    return Act("click", act.place)
            if isinstance(one, dict) and (act := act_of(Said("click", one))) is not None and act.place is not None:
                return act
        if in_json:
            continue
        pointed = find_point(part)
        place = place_of(pointed.numbers) if pointed.failure is None and pointed.numbers else None
        if place is not None:
            return Act("click", place)
    raise Unreadable("expected one place")

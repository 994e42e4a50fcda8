"""Notations: how calls, and places, are written, below the verbs of any agent.

A notation finds actions in a text; `acts_in` tries them all, clearest first. It reads what is documented for models of 2025 and 2026:
QwenLM/Qwen3.8#125 and vllm-project/vllm#42021 (XML), trycua/cua loops/uitars2.py and glm45v.py (boxes), QwenLM/Qwen3-VL (JSON between tags),
zai-org/CogAgent, Tongyi-MAI/MAI-UI, stepfun-ai/gelab-zero parser_0920_summary.py, inclusionAI/UI-Venus navigation/utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from seeact_offline.agents.acts import CLICKS, Act, Kind, Unreadable
from seeact_offline.agents.calls import calls_in, json_in, loads, place_of
from seeact_offline.agents.verbs import NoMarks, Said, UnknownAct, act_of, kind_of, said_in_value
from seeact_offline.replies.points import read_point as find_point

_WRAPS = tuple(
    (begin, end)
    for begin, end in (
        ("<|begin_of_box|>", "<|end_of_box|>"), ("<answer>", "</answer>"), ("<action>", "</action>"), ("\\boxed{", "}"),
    )
)  # fmt: skip
_FUNCTION = re.compile(
    r"<(?:\w+:)?(?:function|invoke)(?:\s*=\s*|\s+name\s*=\s*)[\"']?(?P<name>[\w.-]{1,80})[\"']?\s*>", re.IGNORECASE
)
_PARAMETER = re.compile(
    r"<(?:\w+:)?parameter(?:\s*=\s*|\s+name\s*=\s*)[\"']?(?P<name>[\w.-]{1,80})[\"']?[^<>]{0,80}>", re.IGNORECASE
)
_END = re.compile(r"</(?:\w{1,20}:)?(?:parameter|function|invoke)>", re.IGNORECASE)
_ARGUMENT = re.compile(r"<arg_key>(?P<name>[^<]{1,80})</arg_key>\s*<arg_value>(?P<value>[^<]*+)(?:</arg_value>)?")
_ARGUMENTS_OF = re.compile(r"<tool_call>\s*(?P<name>[\w.-]{1,80})\s*(?=<arg_key>)")
_FIELD = re.compile(r"(?:^|\t)[ ]*(?P<name>[A-Za-z_]\w{0,30})[ ]*[:=][ ]*(?P<value>[^\t\n]*)", re.MULTILINE)
_LINE = re.compile(
    r"^[ \t>*#-]*+(?:\d{1,3}[.)][ \t]*)?(?P<verb>[A-Z][A-Z_]{2,30})\b[ \t:*]*+(?P<rest>[^\n]*)", re.MULTILINE
)
_ANCHOR = re.compile(
    r"(?:^|\n)[ \t>*#]*(?:Grounded Operation|Operation|Actions?|Action_Type)[ \t*]*[:=][ \t*]*", re.IGNORECASE
)
_POINT_TAG = re.compile(r"</?(?:point|box|bbox)>|<\|box_(?:start|end)\|>", re.IGNORECASE)
_DRESS = re.compile(r"<\|box_(?:start|end)\|>|<\|im_end\|>|\[EOS\]")
MOST_CALLS = 50


def unwrapped(text: str, wraps: Iterable[tuple[str, str]] = _WRAPS) -> Iterator[str]:
    """Yields what stands in the last box or answer tag of each kind, then the whole text.

    >>> list(unwrapped("Memory: <|begin_of_box|>B<|end_of_box|>"))
    ['B', 'Memory: <|begin_of_box|>B<|end_of_box|>']
    """
    lower = text.lower()
    for begin, end in wraps:
        start = lower.rfind(begin)
        if start >= 0:
            inside = text[start + len(begin) :]
            yield inside[:found] if (found := inside.lower().find(end)) >= 0 else inside
    yield text


def said_in_json(text: str) -> list[Said]:
    """Every call that the text holds as JSON, or in Python's or JSON5's way of writing it."""
    return [said for value in json_in(text) for said in said_in_value(value)]


def said_in_xml(text: str) -> list[Said]:
    """Calls such as `<function=NAME><parameter=NAME>value</parameter></function>`, with attributes, or with `<arg_key>`. Ends may be missing."""
    found = []
    heads = list(_FUNCTION.finditer(text))[:MOST_CALLS]
    for head, following in zip_longest(heads, heads[1:]):
        inside = text[head.end() : following.start() if following else len(text)]
        found.append(_with_verb(head["name"], _parameters(inside)))
    for head in list(_ARGUMENTS_OF.finditer(text))[:MOST_CALLS]:
        inside = text[head.end() :].partition("</tool_call>")[0]
        found.append(
            _with_verb(head["name"], {one["name"].strip(): _value(one["value"]) for one in _ARGUMENT.finditer(inside)})
        )
    return found


def _parameters(text: str) -> dict[str, Any]:
    heads = list(_PARAMETER.finditer(text))
    found = {}
    for head, following in zip_longest(heads, heads[1:]):
        inside = text[head.end() : following.start() if following else len(text)]
        end = _END.search(inside)
        found[head["name"]] = _value(inside[: end.start()] if end else inside)
    return found


def _value(written: str) -> Any:
    """The value of a parameter; a text that is no number, list or object stays as it is, without the line feeds around it."""
    said = written.strip("\r\n") if written.strip() else ""
    value = loads(said.strip()) if said.strip()[:1] in ("[", "{", "(") else None
    return said if value is None else value


def _with_verb(name: str, given: Mapping[str, Any]) -> Said:
    """The call, whose verb may be an argument."""
    action = given.get("action")
    if isinstance(action, str) and action.strip():
        return Said(action.strip(), {key: one for key, one in given.items() if key != "action"})
    return Said(name, given)


def said_in_python(text: str) -> list[Said]:
    """Calls such as `click(start_box='(1,2)')`, with or without a module. Only those after `Action:`, or that make up a line, are surely meant."""
    found = []
    text = _DRESS.sub("", text)
    for call in calls_in(text):
        line = text.rfind("\n", 0, call.start) + 1
        before = text[line : call.start].strip(" \t`*>[;,")
        is_call = not before or before.endswith((":", ")", ".")) or bool(call.named)
        found.append(Said(call.name, call.named, [_argument(one) for one in call.positional], is_call))
    return found


def _argument(written: str) -> Any:
    value = loads(written) if written[:1] in ("[", "(", "{") else None
    return written if value is None else value


def said_in_lines(text: str) -> list[Said]:
    """Lines that begin with a verb in capitals: `CLICK <point>[[1,2]]</point>`, `TYPE [text]`, `click 1 2` behind `Action:`."""
    found = []
    for line in _LINE.finditer(text):
        if kind_of(line["verb"]) is None:
            continue
        rest = _POINT_TAG.sub(" ", line["rest"]).strip()
        named = {"point": rest} if place_of(rest) is not None and "[" + rest != line["rest"] else {}
        kind = kind_of(line["verb"])
        if kind not in (*CLICKS, "select", "drag", "scroll"):
            named = {"text": rest.removeprefix("[").removesuffix("]")} if rest else {}
        found.append(Said(line["verb"], named, is_call=bool(named) or not rest))
    return found


def said_in_fields(text: str) -> list[Said]:
    """Names and values, a line each or with tabs between: `action:CLICK<tab>point:1,2`."""
    fields = {one["name"].lower(): one["value"].strip() for one in _FIELD.finditer(text)}
    verb = fields.get("action") or fields.get("action_type") or ""
    if not verb or (kind_of(verb) is None and not re.fullmatch(r"[A-Za-z_ ]{1,30}", verb)):
        return []
    return [
        Said(
            verb,
            {
                name: value
                for name, value in fields.items()
                if name not in ("action", "action_type", "explain", "summary")
            },
        )
    ]


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

    `verbs`: what the model's own verbs ask for, beside those that many models have. Raises UnknownAct where the text calls something that
    is not known, NoMarks, Unreadable.
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
    return acts, unknown


def place_in_reply(text: str) -> Act:
    """A click at the only place that a grounder's reply names, however it is written. Raises Unreadable.

    >>> place_in_reply('{"point_2d": [640, 360], "label": "Search"}').place, place_in_reply("<point>12 34</point>").place
    ((640.0, 360.0), (12.0, 34.0))
    """
    for part in unwrapped(text):
        for value in json_in(part):
            one = value[0] if isinstance(value, list | tuple) and value and isinstance(value[0], dict) else value
            for said in said_in_value(one):
                if (act := act_of(said)) is not None and act.place is not None:
                    return Act("click", act.place)
            if isinstance(one, dict) and (act := act_of(Said("click", one))) is not None and act.place is not None:
                return act
        pointed = find_point(part)
        place = place_of(pointed.numbers) if pointed.failure is None and pointed.numbers else None
        if place is not None:
            return Act("click", place)
    raise Unreadable("expected one place")

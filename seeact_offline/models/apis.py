"""The two APIs of OpenAI in which a conversation can be put: chat completions, which every compatible server has, and
responses.

Messages: the system text; then user messages whose picture, if any, is the content part after the text, as in SeeAct's
released code (`src/demo_utils/inference_engine.py`); several in a row are parts of one; the model's own earlier replies
as the assistant's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from seeact_offline.models.provider import ModelOptions
from seeact_offline.records import Message, ModelSpecError, Usage


@dataclass(frozen=True, slots=True)
class ApiReply:
    """A reply, in either API."""

    text: object
    """A text; a server that breaks the rules may send anything else."""
    refusal: str | None
    stopped_by: object
    """The reason for its end, in the server's words."""
    error: object = None
    """The error that stands beside the text, in the choice or in the body; None for none."""
    thoughts: bool = False
    """True where the model's thoughts came apart from the text."""


@dataclass(frozen=True, slots=True)
class Api:
    """The words of one of them."""

    path: str
    conversation: str
    """The field that holds the messages."""
    names: Mapping[str, str]
    """Our options, as the server calls them."""
    own: Mapping[str, Any]
    """Further parameters that are always sent."""
    text_type: str
    """The `type` of a content part that is a text."""
    picture: Callable[[str, Mapping[str, str]], dict[str, Any]]
    """The content part of a picture: its URL, and how closely to look at it, as `{"detail": ...}` or nothing."""
    read: Callable[[Any], ApiReply | None]
    """None for a body that is no reply."""

    def messages(
        self, messages: Sequence[Message], url: str, look: Mapping[str, str], with_system: bool = True
    ) -> list[dict[str, Any]]:
        """The conversation, with this URL for each picture. What one role says in a row is one message of several
        parts.

        Without `with_system`, the system's text stands in front of the first other message's, as `hf/` has it.
        """
        if not with_system:
            system = "\n\n".join(message.text for message in messages if message.role == "system")
            others = [message for message in messages if message.role != "system"]
            if not others:
                messages = [replace(message, role="user") for message in messages]
            else:
                messages = [replace(others[0], text=f"{system}\n\n{others[0].text}"), *others[1:]] if system else others
        return [
            self._message(role, list(turns), url, look)
            for role, turns in groupby(messages, lambda message: message.role)
        ]

    def _message(self, role: str, turns: Sequence[Message], url: str, look: Mapping[str, str]) -> dict[str, Any]:
        if len(turns) == 1 and turns[0].picture is None:
            return {"role": role, "content": sendable(turns[0].text)}
        parts: list[dict[str, Any]] = []
        for message in turns:
            if message.text or len(turns) == 1:
                parts.append({"type": self.text_type, "text": sendable(message.text)})
            if message.picture is not None:
                parts.append(self.picture(url, look))
        return {"role": role, "content": parts}


def find_api(options: ModelOptions, is_openai: bool) -> Api:
    """The API that `model_args` name. Raises ModelSpecError for another name."""
    asked = options.model_args.get("api", "chat")
    apis = {"chat": OPENAI_CHAT if is_openai else CHAT, "responses": RESPONSES}
    if asked not in apis:
        raise ModelSpecError("model_args", "api=chat or api=responses", f"api={asked}")
    return apis[asked]


# --- chat completions ---


def _read_chat(body: Any) -> ApiReply | None:
    choices = _of(body, "choices")
    listed = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    choice = next((choice for choice in listed if _of(choice, "index") == 0), listed[0] if listed else None)
    blocked = _of(_of(body, "promptFeedback"), "blockReason")
    if choice is None and isinstance(blocked, str):
        # Gemini, of a prompt that it does not answer
        choice = {"finish_reason": f"content_filter: {blocked}"}
    message, error = _of(choice, "message"), find_fault(choice) or (choice and find_fault(body))
    reason = _of(choice, "finish_reason")
    if not (isinstance(message, dict) or error or reason):
        return None
    content, calls = _of(message, "content"), _of(message, "tool_calls")
    refusals = [_text(_of(part, "refusal")) for part in content] if isinstance(content, list) else []
    text, older = _joined(content), _of(message, "function_call")
    functions = [_of(call, "function") for call in calls] if isinstance(calls, list) else []
    functions = functions or ([older] if isinstance(older, dict) else [])
    if functions and isinstance(text, str | None):
        text = _with_calls(
            text, [{"name": _of(call, "name"), "arguments": _of(call, "arguments")} for call in functions]
        )
    if isinstance(reason, dict):
        # SGLang's own form, with a message for what went wrong
        error, reason = error or (reason if reason.get("message") else None), reason.get("type")
    thoughts = bool(_of(message, "reasoning_content") or _of(message, "reasoning"))
    refusal = _text(_of(message, "refusal")) or next(filter(None, refusals), None)
    return ApiReply(text, refusal, reason, error, thoughts)


def _joined(content: Any) -> Any:
    """The text of a content in parts, thoughts left out; any other content as it is."""
    if not isinstance(content, list):
        return content
    texts = [part if isinstance(part, str) else _of(part, "text") for part in content]
    kinds = [_of(part, "type") for part in content]
    return "".join(
        text for text, kind in zip(texts, kinds, strict=True) if isinstance(text, str) and kind not in _THOUGHTS
    )


def is_stream(content: bytes) -> bool:
    """True for the beginning of an event stream: a field of an event, or a comment."""
    return bool(re.match(rb"(\xef\xbb\xbf)?\s*(data|event|id|retry)?:", content[:100]))


def read_events(content: bytes) -> Any:
    """The body that the pieces of a stream make up, in the layout of a whole reply; None for a stream without any.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    """
    events, data, kind = list[Any](), list[bytes](), b""
    for line in (*content.removeprefix(b"\xef\xbb\xbf").splitlines(), b""):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            kind = value.strip()
        elif not line and data:
            try:
                event = json.loads(b"\n".join(data))
            except (ValueError, RecursionError):
                # `[DONE]`, or the words of a server that gives up
                event = {}
            if kind == b"error" or _of(event, "type") == "error":
                event = {"error": _of(event, "error") or event or b"\n".join(data).decode("utf-8", "replace")}
            events.append(event)
            data, kind = [], b""
    if not any(events):
        return None
    whole = [event["response"] for event in events if isinstance(_of(event, "response"), dict)]
    errors = [error for event in events if (error := _of(event, "error"))]
    if whole:
        done = [event for event in events if _of(event, "type") == "response.output_item.done"]
        items = [item for event in done if (item := _of(event, "item"))]
        output = {"output": items} if items and not whole[-1].get("output") else {}
        return whole[-1] | output | ({"error": errors[-1]} if errors else {})
    kept = ("error", "service_tier", "promptFeedback")
    body = {name: event[name] for event in events for name in kept if _of(event, name)}
    pieces = [choice for event in events for choice in _of(event, "choices") or [] if _of(choice, "index") in (0, None)]
    usages = [usage for part in (*events, *pieces) if isinstance(usage := _of(part, "usage"), dict)]
    # some count again with each piece, some the prompt first and the reply last
    body["usage"] = {}
    for name, value in (pair for usage in usages for pair in usage.items()):
        if (_count(value) or 0) >= (_count(body["usage"].get(name)) or 0):
            body["usage"][name] = value
    # a whole message stands for the pieces before it
    last = max((place for place, piece in enumerate(pieces) if _of(_of(piece, "message"), "content")), default=0)
    deltas = [_of(piece, "delta") or _of(piece, "message") for piece in pieces]
    if pieces and _of(_of(pieces[last], "message"), "content"):
        deltas = [_of(pieces[last], "message"), *deltas[last + 1 :]]
    message = {
        name: "".join(filter(None, (_text(_joined(_of(delta, name))) for delta in deltas)))
        for name in ("content", "reasoning_content", "refusal")
    }
    calls = _merged_calls(call for delta in deltas for call in _of(delta, "tool_calls") or [])
    reasons = [reason for piece in pieces if (reason := _of(piece, "finish_reason"))]
    faults = [error for piece in pieces if (error := _of(piece, "error"))]
    if pieces:
        # a stream that ends without a reason was cut off
        choice = {"message": {**message, "tool_calls": calls}, "finish_reason": reasons[-1] if reasons else "aborted"}
        body["choices"] = [choice | ({"error": faults[-1]} if faults else {})]
    return body


def _merged_calls(pieces: Iterable[Any]) -> list[Any]:
    """The calls of tools whose arguments came in pieces."""
    calls: dict[Any, dict[str, list[str]]] = {}
    key: Any = None
    for piece in pieces:
        named = [value for name in ("index", "id") if (value := _of(piece, name)) is not None]
        key = named[0] if named else key
        parts = calls.setdefault(str(key), {"name": [], "arguments": []})
        for name, texts in parts.items():
            texts.append(_text(_of(_of(piece, "function"), name)) or "")
    return [{"function": {name: "".join(texts) for name, texts in parts.items()}} for parts in calls.values()]


def _with_calls(text: str | None, calls: Sequence[Any]) -> str:
    """The text of a reply, and each call of a tool as a line of JSON behind it, as models write them that have no
    tools."""
    lines = [text] if text and text.strip() else []
    for call in calls:
        if isinstance(call, dict) and isinstance(call.get("arguments"), str):
            # arguments are JSON in a text
            with suppress(ValueError, RecursionError):
                call = call | {"arguments": json.loads(call["arguments"])}
        lines.append(json.dumps(call, ensure_ascii=False))
    return "\n".join(lines)


CHAT = Api(
    path="/chat/completions",
    conversation="messages",
    names={"max_tokens": "max_tokens", "temperature": "temperature", "seed": "seed"},
    own={},
    text_type="text",
    picture=lambda url, look: {"type": "image_url", "image_url": {"url": url, **look}},
    read=_read_chat,
)
# OpenAI's newer models refuse `max_tokens`; other servers often know nothing else
OPENAI_CHAT = replace(CHAT, names={**CHAT.names, "max_tokens": "max_completion_tokens"})


# --- responses ---


def _read_response(body: Any) -> ApiReply | None:
    output = _of(body, "output")
    if not isinstance(output, list):
        return None
    # a commentary goes before the answer, and is none
    messages = [entry for entry in output if _of(entry, "type") == "message" and _of(entry, "phase") != "commentary"]
    contents = [_of(entry, "content") for entry in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    texts = [_of(part, "text") for part in parts if _of(part, "type") == "output_text"]
    refusals = [_of(part, "refusal") for part in parts if _of(part, "type") == "refusal"]
    calls = [entry for entry in output if _of(entry, "type") in ("computer_call", "function_call")]
    text = "".join(text for text in texts if isinstance(text, str))
    reason = _of(_of(body, "incomplete_details"), "reason")
    return ApiReply(
        text=_with_calls(text, calls) if calls else text,
        refusal=_text(refusals[0]) if refusals else None,
        stopped_by=reason or _of(body, "status"),
        error=find_fault(body),
        thoughts=any(_of(entry, "type") == "reasoning" for entry in output),
    )


RESPONSES = Api(
    path="/responses",
    conversation="input",
    names={"max_tokens": "max_output_tokens", "temperature": "temperature"},
    # the server is not to keep them
    own={"store": False},
    text_type="input_text",
    picture=lambda url, look: {"type": "input_image", "image_url": url, **look},
    read=_read_response,
)


# --- both ---

_THOUGHTS = frozenset({"thinking", "reasoning", "redacted_thinking", "reasoning_text"})
"""Types of content parts that are no answer."""
MOST_TOKENS, MOST_REPLY = 2_000_000, 500_000
"""Tokens of the longest context, and of the longest reply, that servers offer: a count beyond that is a server's
mistake."""
_MOST_USD = 1000.0
"""A bill for one call beyond that is one too."""
# xAI counts bills in ticks of 1e-10 USD
_TICKS = 10**10
_DECIMAL = re.compile(r"\d{1,9}(\.\d{1,20})?(e-\d{1,2})?", re.IGNORECASE)
_TIER_CHARS = 40


def sendable(text: str) -> str:
    """JSON rows can hold halves of surrogate pairs, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_tier(body: Any) -> str:
    """The service tier in which a server says that it has answered; empty where it does not say."""
    tier = _of(body, "service_tier") or _of(_of(body, "usage"), "service_tier")
    return tier.lower()[:_TIER_CHARS] if isinstance(tier, str) else ""


def read_usage(body: Any) -> Usage:
    """Reads what a body of either API, of a reply or an error, says that the call has used: its cost is None, its
    tokens are unreported, where the server does not say."""
    usage = _of(body, "usage")
    counts = (
        {name: count for name, value in usage.items() if (count := _count(value)) is not None}
        if isinstance(usage, dict)
        else {}
    )
    asked, replied = ("prompt", "completion") if counts.get("prompt_tokens") else ("input", "output")
    prompt, completion, total = (counts.get(f"{name}_tokens") for name in (asked, replied, "total"))
    if completion is None and prompt is not None and total is not None:
        completion = max(0, total - prompt)
    if prompt is None or completion is None or completion > MOST_REPLY:
        return Usage(1, cost_usd=_named_cost(body), unreported=1)
    images = _count(_of(_of(usage, f"{asked}_tokens_details"), "image_tokens"))
    thoughts = _count(_of(_of(usage, f"{replied}_tokens_details"), "reasoning_tokens"))
    if total is not None and total - prompt <= MOST_REPLY:
        # xAI, Gemini and gateways count thoughts beside the reply, OpenAI in it: only the total tells
        completion = max(completion, total - prompt)
    elif thoughts is not None and completion < thoughts <= MOST_REPLY:
        completion += thoughts
    return Usage(1, prompt, completion, images or 0, _named_cost(body))


def _named_cost(body: Any) -> float | None:
    """The bill in the reply: OpenRouter's `cost`, with what the provider of one's own key takes besides; DeepInfra's
    `estimated_cost`, Perplexity's `total_cost`, xAI's ticks of 1e-10 USD. The largest where there are several."""
    usage = _of(body, "usage")
    cost = _of(usage, "cost")
    charged = _usd(_of(cost, "total_cost") if isinstance(cost, dict) else cost)
    upstream = _usd(_of(_of(usage, "cost_details"), "upstream_inference_cost"))
    ticks = _of(usage, "cost_in_usd_ticks")
    named = [
        charged,
        upstream,
        _usd(_of(usage, "estimated_cost")),
        _usd(ticks / _TICKS) if isinstance(ticks, int | float) and ticks <= _MOST_USD * _TICKS else None,
    ]
    if _of(usage, "is_byok") is True and charged is not None and upstream is not None:
        named.append(charged + upstream)
    return max((cost for cost in named if cost is not None), default=None)


def _usd(value: Any) -> float | None:
    """A number of dollars, which some gateways write as a text."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= _MOST_USD else None


def _count(value: Any) -> int | None:
    """A number of tokens that one call can have, which some gateways write as a text or with a decimal point; None for
    anything else."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value):
        value = int(value)
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def find_fault(value: Any) -> Any:
    """The `error` of a body or a choice; None for one that says nothing."""
    error = _of(value, "error")
    says = (
        [entry for entry in error.values() if entry not in (0, "0", "success")] if isinstance(error, dict) else [error]
    )
    return error if any(says) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None

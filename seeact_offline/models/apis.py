"""The two APIs of OpenAI in which a conversation can be put: chat completions, which every compatible server has, and responses.

Messages: the system text; then user messages whose picture, if any, is the content part after the text, as in SeeAct's
released code (`src/demo_utils/inference_engine.py`); several in a row are parts of one; the model's own earlier replies as the assistant's.
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
from seeact_offline.records import Message, ModelSpecError


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that a call has used, by the server's count."""

    prompt: int
    completion: int
    """Tokens of the reply, with its thoughts."""
    images: int
    """The part of `prompt` that was pictures; 0 where the server does not say."""


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """The server's words on what a call has used, in the body of a reply or of an error."""

    tokens: Tokens | None
    """None where the server does not say."""
    cost: float | None = None
    """USD that the server says the call has cost; None where it does not say."""
    tier: str = ""
    """The service tier that it says it has answered in; empty where it does not say."""


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
        """The conversation, with this URL for each picture. What one role says in a row is one message of several parts.

        Without `with_system`, the system's text stands in front of the first other message's, as `hf/` has it.
        """
        messages = messages if with_system else _system_folded(messages)
        return [self._message(role, list(said), url, look) for role, said in groupby(messages, lambda one: one.role)]

    def _message(self, role: str, said: Sequence[Message], url: str, look: Mapping[str, str]) -> dict[str, Any]:
        if len(said) == 1 and said[0].picture is None:
            return {"role": role, "content": sendable(said[0].text)}
        parts: list[dict[str, Any]] = []
        for message in said:
            if message.text or len(said) == 1:
                parts.append({"type": self.text_type, "text": sendable(message.text)})
            if message.picture is not None:
                parts.append(self.picture(url, look))
        return {"role": role, "content": parts}


def find_api(options: ModelOptions, is_openai: bool) -> Api:
    """The API that `model_args` name. Raises ModelSpecError for another name."""
    asked = options.model_args.get("api", "chat")
    known = {"chat": OPENAI_CHAT if is_openai else CHAT, "responses": RESPONSES}
    if asked not in known:
        raise ModelSpecError("model_args", "api=chat or api=responses", f"api={asked}")
    return known[asked]


# --- chat completions ---


def _read_chat(body: Any) -> ApiReply | None:
    choices = _of(body, "choices")
    listed = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    choice = next((choice for choice in listed if _of(choice, "index") == 0), listed[0] if listed else None)
    blocked = _of(_of(body, "promptFeedback"), "blockReason")
    if choice is None and isinstance(blocked, str):
        # Gemini, of a prompt that it does not answer
        choice = {"finish_reason": f"content_filter: {blocked}"}
    message, error = _of(choice, "message"), _fault(choice) or (choice and _fault(body))
    reason = _of(choice, "finish_reason")
    if not (isinstance(message, dict) or error or reason):
        return None
    text, calls = _joined(_of(message, "content")), _of(message, "tool_calls")
    if isinstance(calls, list) and calls and isinstance(text, str | None):
        functions = [_of(call, "function") for call in calls]
        text = _with_calls(
            text, [{"name": _of(call, "name"), "arguments": _of(call, "arguments")} for call in functions]
        )
    if isinstance(reason, dict):
        # SGLang's own form, with a message for what went wrong
        error, reason = error or (reason if reason.get("message") else None), reason.get("type")
    thoughts = bool(_of(message, "reasoning_content") or _of(message, "reasoning"))
    return ApiReply(text, _text(_of(message, "refusal")), reason, error, thoughts)


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
        elif not line:
            # what is no JSON, as `[DONE]`, is no piece of the reply
            with suppress(ValueError, RecursionError):
                event = json.loads(b"\n".join(data))
                events.append({"error": event} if kind == b"error" and not _of(event, "error") else event)
            data, kind = [], b""
    if not events:
        return None
    whole = [event["response"] for event in events if isinstance(_of(event, "response"), dict)]
    if whole:
        return whole[-1]
    body: dict[str, Any] = {
        name: event[name] for event in events for name in ("usage", "error", "service_tier") if _of(event, name)
    }
    pieces = [choice for event in events for choice in _of(event, "choices") or [] if _of(choice, "index") in (0, None)]
    deltas = [_of(piece, "delta") or _of(piece, "message") for piece in pieces]
    message = {
        name: "".join(filter(None, (_text(_joined(_of(delta, name))) for delta in deltas)))
        for name in ("content", "reasoning_content", "refusal")
    }
    calls = _merged_calls(call for delta in deltas for call in _of(delta, "tool_calls") or [])
    reasons = [reason for piece in pieces if (reason := _of(piece, "finish_reason"))]
    errors = [error for piece in pieces if (error := _of(piece, "error"))]
    if pieces:
        # a stream that ends without a reason was cut off
        choice = {"message": {**message, "tool_calls": calls}, "finish_reason": reasons[-1] if reasons else "aborted"}
        body["choices"] = [choice | ({"error": errors[-1]} if errors else {})]
    return body


def _merged_calls(pieces: Iterable[Any]) -> list[Any]:
    """The calls of tools whose arguments came in pieces."""
    calls: dict[Any, dict[str, Any]] = {}
    for piece in pieces:
        function = calls.setdefault(_of(piece, "index"), {"function": {"name": "", "arguments": ""}})["function"]
        for name in function:
            function[name] += _text(_of(_of(piece, "function"), name)) or ""
    return list(calls.values())


def _with_calls(text: str | None, calls: Sequence[Any]) -> str:
    """The text of a reply, and each call of a tool as a line of JSON behind it, as models write them that have no tools."""
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
        error=_fault(body),
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
MOST_TOKENS = 10_000_000
"""Tokens of the longest context of any model: a count beyond that is a server's mistake."""
_TICKS = 10**10
_DECIMAL = re.compile(r"\d{1,9}(\.\d{1,20})?(e-\d{1,2})?", re.IGNORECASE)
_TIER_CHARS = 40


def _system_folded(messages: Sequence[Message]) -> list[Message]:
    told = "\n\n".join(message.text for message in messages if message.role == "system")
    rest = [message for message in messages if message.role != "system"]
    if not told or not rest:
        return rest or [replace(message, role="user") for message in messages]
    return [replace(rest[0], text=f"{told}\n\n{rest[0].text}"), *rest[1:]]


def sendable(text: str) -> str:
    """JSON rows can hold halves of surrogate pairs, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_usage(body: Any) -> ReportedUsage:
    """Reads what a body of either API says that the call has used."""
    usage = _of(body, "usage")
    asked, replied = ("prompt", "completion") if _of(usage, "prompt_tokens") is not None else ("input", "output")
    prompt, completion, total = (_of(usage, f"{name}_tokens") for name in (asked, replied, "total"))
    tokens = None
    if _is_count(prompt) and _is_count(completion):
        images = _of(_of(usage, f"{asked}_tokens_details"), "image_tokens")
        thoughts = _of(_of(usage, f"{replied}_tokens_details"), "reasoning_tokens")
        if _is_count(total):
            # xAI, Gemini and gateways count thoughts beside the reply, OpenAI in it: only the total tells
            completion = max(completion, total - prompt)
        elif _is_count(thoughts) and thoughts > completion:
            completion += thoughts
        tokens = Tokens(prompt, completion, images if _is_count(images) else 0)
    return ReportedUsage(tokens, _named_cost(body), _tier(body))


def _named_cost(body: Any) -> float | None:
    """The bill in the reply: OpenRouter's `cost`, with what the provider of one's own key takes besides; DeepInfra's `estimated_cost`,
    Perplexity's `total_cost`, xAI's ticks of 1e-10 USD. The largest where there are several."""
    usage = _of(body, "usage")
    cost = _of(usage, "cost")
    charged = _usd(_of(cost, "total_cost") if isinstance(cost, dict) else cost)
    upstream = _usd(_of(_of(usage, "cost_details"), "upstream_inference_cost"))
    ticks = _usd(_of(usage, "cost_in_usd_ticks"))
    named = [charged, upstream, _usd(_of(usage, "estimated_cost")), None if ticks is None else ticks / _TICKS]
    if _of(usage, "is_byok") is True and charged is not None and upstream is not None:
        named.append(charged + upstream)
    return max((one for one in named if one is not None), default=None)


def _usd(value: Any) -> float | None:
    """A number of dollars, which some gateways write as a text."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 10**15 else None


def _tier(body: Any) -> str:
    tier = _of(body, "service_tier") or _of(_of(body, "usage"), "service_tier")
    return tier.lower()[:_TIER_CHARS] if isinstance(tier, str) else ""


def _is_count(value: object) -> bool:
    """True for a number of tokens that one call can have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _fault(value: Any) -> Any:
    """The `error` of a body or a choice; None for one that says nothing."""
    error = _of(value, "error")
    return None if not error or (isinstance(error, dict) and not any(error.values())) else error


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None

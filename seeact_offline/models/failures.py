"""Why an attempt gave no answer, and what would help: to ask again, to wait, or nothing at all.

What servers say of it is untrusted: details are one line, of limited length, without secrets.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from seeact_offline.files.redaction import redact_reported
from seeact_offline.models.http_client import ReplyTooLarge
from seeact_offline.records import CallError, Usage

DETAIL_CHARS = 300
_LONGEST = 100_000
"""Characters that are looked at: far more than are shown, so that no secret is cut in two where it can be seen."""
Remedy = Literal["wait", "ask_again", "none", "stop"]
"""wait: asked again for as long as may be waited; ask_again: a few times; none: never; stop: no other call gets through either."""

BLANK_RETRIES = 2
MALFORMED_RETRIES = 5
POLICY_CODES = frozenset({"content_filter", "content_policy_violation"})
_NO_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_NO_QUOTA_WORDS = ("credit balance is too low", "billing hard limit")
"""How servers without such codes say it; Anthropic's under status 400."""
_NO_MODEL_CODES = frozenset({"model_not_found", "DeploymentNotFound"})
_MAY_BE_BILLED = frozenset({408, 500, 502, 504, *range(520, 528)})
"""Statuses that leave open whether the model has done its work: it failed in the middle of it, or a gateway lost sight of it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One attempt that gave no answer."""

    name: str
    """As counted in the results."""
    detail: str
    remedy: Remedy = "none"
    most: int | None = None
    """How often a call is asked again because of such failures; None: no limit of its own."""
    hopeless: bool = False
    """Whether it says that every call will fail, as long as none has got through."""
    unreachable: bool = False
    """Whether there was no connection at all."""
    retry_after_s: float | None = None
    """What the server asks to be waited."""
    usage: Usage = field(default_factory=Usage)
    status: int | None = None
    body: Any = None
    """Of an error, parsed; None where it is not JSON."""
    unbilled: bool = False
    """Whether the attempt cannot have cost anything: it reached no server, or the server refused it."""

    @property
    def error(self) -> CallError:
        return CallError(self.name, self.detail, self.usage)

    @property
    def answered(self) -> bool:
        """Whether it is the model's own doing."""
        return self.error.answered


def scrubbed(detail: str) -> str:
    """One line of at most DETAIL_CHARS characters without secrets: servers like to quote what they refuse."""
    return redact_reported(detail[:_LONGEST])[:DETAIL_CHARS]


def malformed(what: str) -> Failure:
    """A success of which no sense can be made."""
    return Failure("api_error", scrubbed(what), "ask_again", MALFORMED_RETRIES)


def truncated(text: object, limit: str) -> str:
    """The detail of a reply that was cut off, with how it began."""
    begun = " ".join(text[:_LONGEST].split()) if isinstance(text, str) else ""
    return scrubbed(f"the reply did not fit in {limit}" + (f"; it began: {begun}" if begun else ""))


def blank(finish: object, usage: Usage) -> Failure:
    """A reply without text, which is the model's own when it keeps saying so."""
    detail = scrubbed(f"the server sent no text (finish reason {finish})")
    return Failure("empty_reply", detail, "ask_again", BLANK_RETRIES, usage=usage)


def of_status(status: int, headers: Mapping[str, str], content: bytes) -> Failure:
    """An answer with a status other than success."""
    return replace(_of_status(status, headers, content), unbilled=status not in _MAY_BE_BILLED)


def _of_status(status: int, headers: Mapping[str, str], content: bytes) -> Failure:
    body = _parsed(content)
    said = _message(body) or content[:2000].decode("utf-8", "replace")
    detail = scrubbed(f"Error code: {status} - {said.rstrip('.')}")
    codes = error_codes(body)
    if codes & POLICY_CODES:
        return Failure("refused", detail, status=status, body=body)
    if status == 402 or codes & _NO_QUOTA_CODES or any(words in detail for words in _NO_QUOTA_WORDS):
        return Failure("no_quota", detail, "stop", status=status, body=body)
    if status == 401:
        return Failure("auth_failed", detail, "stop", status=status, body=body)
    if status == 403:
        # also the word of a filter before the server that dislikes one page
        return Failure("forbidden", detail, hopeless=True, status=status, body=body)
    if 300 <= status < 400:
        where = headers.get("location", "nowhere")
        moved = scrubbed(f"the server redirects to {where}, where no key is sent: name the right base_url")
        return Failure("redirected", moved, hopeless=True, status=status, body=body)
    named = {408: "timeout", 409: "server_error", 425: "server_error", 429: "rate_limited"}
    if status >= 500 or status in named:
        name = named.get(status, "server_error")
        return Failure(name, detail, "wait", retry_after_s=_retry_after(headers), status=status, body=body)
    missing = status == 404 or bool(codes & _NO_MODEL_CODES)
    return Failure("bad_request", detail, hopeless=missing, status=status, body=body)


def of_body(body: object, headers: Mapping[str, str]) -> Failure | None:
    """An error that comes as a success; None for a body that names none."""
    error = body.get("error") if isinstance(body, dict) else None
    if not error:
        return None
    codes = error_codes(body)
    numbers = [int(code) for code in codes if code.isdecimal() and len(code) == 3 and code >= "400"]
    if numbers or codes & (_NO_QUOTA_CODES | POLICY_CODES | _NO_MODEL_CODES):
        # it came as a success, which may be billed as one
        return _of_status(min(numbers, default=400), headers, json.dumps(body).encode())
    return malformed(f"an error as a success: {_message(body) or error}")


def of_exception(error: Exception) -> Failure:
    """What the SDK raises for an attempt without an answer, or lets through. Only its kind and words are kept: it may quote
    the key."""
    cause = error.__cause__ or error
    kind = type(cause).__name__
    detail = scrubbed(f"{str(error).rstrip('.')}: {cause}" if cause is not error and str(cause) else str(error) or kind)
    unreachable = kind in ("ConnectError", "ConnectTimeout")
    if isinstance(cause, ReplyTooLarge):
        return Failure("reply_too_large", str(cause))
    if kind == "DecodingError":
        return malformed(f"a body that cannot be unpacked: {cause}")
    name = "timeout" if isinstance(error, TimeoutError) or "Timeout" in kind else "connection_failed"
    return Failure(name, detail, "wait", unreachable=unreachable, unbilled=unreachable)


def error_codes(body: object) -> set[str]:
    """`code` and `type` of an error in OpenAI's layout, or in a list of one as Google has it."""
    error = _error(body)
    return {str(error[name]) for name in ("code", "type") if isinstance(error.get(name), str | int)}


def words(value: object) -> Iterator[str]:
    """Every text inside an error's body; of names of fields none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from words(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from words(entry)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _error(body: object) -> Mapping[str, Any]:
    first = body[0] if isinstance(body, list) and body else body
    error = first.get("error") if isinstance(first, dict) else None
    if isinstance(error, dict):
        return error
    return first if isinstance(first, dict) else {}


def _message(body: object) -> str | None:
    message = _error(body).get("message")
    return message if isinstance(message, str) and message else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from milliseconds, seconds or a date; None for none that makes sense."""
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", text):
            return float(text) / divisor
    try:
        seconds = parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None

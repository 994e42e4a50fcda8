"""Names the failures of attempts, and says which are worth asking again.

Servers' words are untrusted: details are one line, of limited length, without secrets.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any

from seeact_offline.files.redaction import redact_reported
from seeact_offline.models import server_words
from seeact_offline.records import CallError, Usage

DETAIL_CHARS = 300
_LONGEST = 100_000
"""Characters that are looked at: far more than are shown, so that no secret is cut in two where it can be seen."""
BLANK_RETRIES = 2
MALFORMED_RETRIES = 4
RETRIES: Mapping[str, float] = {
    **dict.fromkeys(("timeout", "server_error", "rate_limited", "connection_failed"), math.inf),
    "api_error": MALFORMED_RETRIES,
    "empty_reply": BLANK_RETRIES,
}
"""Times that a call is asked again after failures of these names, as long as may be waited; after any other it is not."""
STOPPING = frozenset({"no_quota", "auth_failed"})
"""Failures with which no other call gets through either."""
_BY_STATUS = {
    **{401: "auth_failed", 402: "no_quota", 403: "forbidden", 408: "timeout", 429: "rate_limited"},
    # 424: a model behind the server; 498: no capacity at Groq
    **dict.fromkeys((409, 423, 424, 425, 449, 498, 499), "server_error"),
}
_TLS_ADVICE = (
    (
        re.compile(
            r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|record layer failure|wrong version number|UNKNOWN_PROTOCOL"
        ),
        "the port speaks no TLS: write http:// in --base-url",
    ),
    (
        re.compile("CERTIFICATE_VERIFY_FAILED"),
        "name the authority that signed the server's certificate in SSL_CERT_FILE",
    ),
)
"""What the words of the TLS library mean -> what to do."""
UNREAD = Usage(calls=1, cost_usd=None, unreported=1)
"""A call that was answered, and of which nobody can read what it used."""
_MAY_BE_BILLED = frozenset({408, 500, 502, 504, *range(520, 528)})
"""Statuses that leave open whether the model has done its work: it failed in the middle of it, or a gateway lost sight of it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One attempt that gave no answer."""

    name: str
    """The name that results count it by."""
    detail: str
    hopeless: bool = False
    """Every call will fail like this, as long as none has got through."""
    unreachable: bool = False
    """There was no connection at all."""
    retry_after_s: float | None = None
    """The pause that the server asks for."""
    usage: Usage = field(default_factory=Usage)
    status: int | None = None
    body: Any = None
    """The parsed body of an error; None where it is not JSON."""
    unbilled: bool = False
    """The attempt cannot have cost anything: it reached no server, or the server refused it."""

    @property
    def retries(self) -> float:
        """Times that the call is asked again; see `RETRIES`."""
        return RETRIES.get(self.name, 0)

    @property
    def stops(self) -> bool:
        """True if no other call gets through either; see `STOPPING`."""
        return self.name in STOPPING

    @property
    def error(self) -> CallError:
        """The error for the step."""
        return CallError(self.name, self.detail, self.usage)


def scrubbed(detail: str) -> str:
    """One line of at most DETAIL_CHARS characters without secrets: servers like to quote what they refuse."""
    return redact_reported(detail[:_LONGEST])[:DETAIL_CHARS]


def advised(detail: str, advice: str) -> str:
    """The detail with the sentence that helps behind it, which is never what is cut."""
    if not advice:
        return scrubbed(detail)
    return f"{scrubbed(detail)[: DETAIL_CHARS - len(advice) - 2].rstrip(' .')}; {advice}"


def malformed(what: str) -> Failure:
    """A success that makes no sense."""
    return Failure("api_error", scrubbed(what), usage=UNREAD)


def truncated(text: object, limit: str) -> str:
    """The detail of a reply that was cut off, with its beginning."""
    begun = " ".join(text[:_LONGEST].split()) if isinstance(text, str) else ""
    return scrubbed(f"the reply did not fit in {limit}" + (f"; it began: {begun}" if begun else ""))


def of_status(status: int, headers: Mapping[str, str], content: bytes, came_as_success: bool = False) -> Failure:
    """An answer with a status other than success, or one that was meant (`came_as_success`: it may be billed as one)."""
    try:
        body: Any = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    text = content[:2000].decode("utf-8", "replace")
    said = f"Error code: {status} - {(_message(body) or text).rstrip('.')}"
    error = text if body is None else body
    other = "redirected" if 300 <= status < 400 else "server_error" if status >= 500 else "bad_request"
    named = None if other == "redirected" else server_words.cause(status, error, error_codes(body))
    name = named or _BY_STATUS.get(status, other)
    if name == "redirected":
        said = f"the server redirects to {headers.get('location', 'nowhere')}, where no key is sent: name the right base_url"
    refused = name == "bad_request"
    return Failure(
        name,
        advised(said, server_words.remedy(status, error) if refused else ""),
        # 403 is also the word of a filter before the server that dislikes one page
        hopeless=name in ("forbidden", "redirected")
        or (refused and (status == 404 or server_words.is_missing(error) or server_words.is_plain_to_tls(error))),
        retry_after_s=_retry_after(headers) if name in RETRIES else None,
        status=status,
        body=body,
        unbilled=not came_as_success and (refused or status not in _MAY_BE_BILLED),
    )


def of_body(body: object, headers: Mapping[str, str]) -> Failure | None:
    """An error that comes as a success; None for a body that names none."""
    if not isinstance(body, dict):
        return None
    # some gateways have no object around code and message
    bare = body if "code" in body and ("msg" in body or "message" in body) else None
    error = body.get("error") or body.get("base_resp") or bare
    if not error:
        return None
    codes = error_codes(body)
    numbers = [int(code) for code in codes if code.isdecimal() and len(code) == 3 and code >= "400"]
    name = server_words.cause(min(numbers, default=200), error, codes)
    if name or numbers:
        failure = of_status(min(numbers, default=400), headers, json.dumps(body).encode(), came_as_success=True)
        return replace(failure, name=name) if name else failure
    return malformed(f"an error as a success: {_message(body) or error}")


def of_torn_reply(error: object, reason: object, text: object, headers: Mapping[str, str]) -> Failure:
    """A reply that the server broke off, with the `error` beside it if there is one: whatever its text, it is no answer."""
    begun = f"; it began: {text[:80]}" if isinstance(text, str) and text.strip() else ""
    named = of_body({"error": error}, headers) if error else None
    why = named.detail if named else f"finish reason {reason}"
    name = named.name if named and named.name not in ("api_error", "bad_request") else "server_error"
    if named and server_words.cause(200, error) == "bad_request":
        name = "bad_request"
    pause = _retry_after(headers) if name in RETRIES else None
    return Failure(name, scrubbed(f"the server broke the reply off: {why}{begun}"), retry_after_s=pause)


def of_exception(error: Exception) -> Failure:
    """An error that the SDK raises or lets through for an attempt without an answer. Only its kind and words are kept: it may
    quote the key."""
    cause = error.__cause__ or error
    kind = type(cause).__name__
    detail = f"{str(error).rstrip('.')}: {cause}" if cause is not error and str(cause) else str(error) or kind
    unreachable = kind in ("ConnectError", "ConnectTimeout")
    if kind == "ReplyTooLarge":
        return Failure("reply_too_large", str(cause), usage=UNREAD)
    if kind == "DecodingError":
        return malformed(f"a body that cannot be unpacked: {cause}")
    name = "timeout" if isinstance(error, TimeoutError) or "Timeout" in kind else "connection_failed"
    advice = next((advice for pattern, advice in _TLS_ADVICE if pattern.search(detail)), "")
    return Failure(name, advised(detail, advice), unreachable=unreachable, unbilled=unreachable)


def error_codes(body: object) -> set[str]:
    """`code` and `type` of an error in OpenAI's layout, or in a list of one as Google has it."""
    error = _error(body)
    return {str(error[name]) for name in ("code", "type", "status_code") if isinstance(error.get(name), str | int)}


def words(value: object) -> Iterator[str]:
    """Every text inside an error's body, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from words(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from words(entry)


def _error(body: object) -> Mapping[str, Any]:
    first = body[0] if isinstance(body, list) and body else body
    error = (first.get("error") or first.get("base_resp")) if isinstance(first, dict) else None
    if isinstance(error, dict):
        return error
    return first if isinstance(first, dict) else {}


def _message(body: object) -> str | None:
    """The error's own sentence: in OpenAI's layout, or as a text in its place (xAI, FastAPI, LM Studio)."""
    error = _error(body)
    texts = [error.get(name) for name in ("message", "error", "detail", "status_msg", "msg")]
    return next((text for text in texts if isinstance(text, str) and text), None)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from milliseconds, seconds or a date, which counts from the server's own `Date`: its clock may be wrong, or ours. None
    for none that makes sense."""
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", text):
            return float(text) / divisor
    until, now = (_timestamp(headers.get(name, "")) for name in ("retry-after", "date"))
    if until is None:
        return None
    return max(0.0, until - (time.time() if now is None else now))


def _timestamp(date: str) -> float | None:
    """Seconds since 1970; None for what is no date."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None

"""Names the failures of attempts, and says which are worth asking again.

Servers' words are untrusted: details are one line, of limited length, without secrets.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any

from seeact_offline.files.redaction import redact_reported
from seeact_offline.models import servers
from seeact_offline.records import CallError, Usage

DETAIL_CHARS = 300
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
SOON_S = 60.0
"""Longest pause after which a limit of a day, or of credit, is waited for: some servers let it flow, others end it at midnight."""
HINTS: Mapping[str, str] = {
    "no-image": "the model takes no pictures: add --no-image, or name one that does",
    "fewer": "send fewer pictures: lower --history-pictures",
    "smaller": "make pictures smaller: --max-image-side 1024, or --image-format jpeg:75",
    "format": "try another --image-format, such as png",
    "context": "question and reply together do not fit: lower --max-tokens, or send less (--top-k, --group-size, --history-pictures)",
    "tls": "the port speaks TLS: write https:// in --base-url",
}
"""The options of ours that help, by the names that the table gives them."""
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
    said: servers.ServerError | None = None
    """The server's error, taken apart; None where there was none."""
    finding: servers.Finding | None = None
    """The row of the table that fits it; None where none does."""
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
    def refuses(self) -> frozenset[str]:
        """Names of parameters and ways to ask that the server certainly does not take."""
        return self.finding.refuses if self.finding else frozenset()

    def with_advice(self, advice: str) -> Failure:
        """Returns it with the sentence that helps behind its detail; as it is where that is empty."""
        return replace(self, detail=advised(self.detail, advice)) if advice else self

    @property
    def error(self) -> CallError:
        """The error for the step."""
        return CallError(self.name, self.detail, self.usage)


def scrubbed(detail: str) -> str:
    """One line of at most DETAIL_CHARS characters without secrets: servers like to quote what they refuse."""
    # the whole is looked at, so that no secret is cut in two where it can be seen
    return redact_reported(detail)[:DETAIL_CHARS]


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
    begun = scrubbed(text) if isinstance(text, str) else ""
    return scrubbed(f"the reply did not fit in {limit}" + (f"; it began: {begun}" if begun else ""))


def of_status(
    status: int, headers: Mapping[str, str], content: bytes, came_as_success: bool = False, usage: Usage | None = None
) -> Failure:
    """An answer with a status other than success, or one that was meant (`came_as_success`). `usage`: what the server says it has used."""
    try:
        body: Any = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    text = content.decode("utf-8", "replace")
    error = servers.read_error(status, text if body is None else body)
    finding = servers.find(error)
    row = None if finding is None else finding.row
    means = (
        row.means
        if row
        else "redirected"
        if 300 <= status < 400
        else "server_error"
        if status >= 500
        else "bad_request"
    )
    said = f"Error code: {status} - {(servers.sentence_of(body) or text).rstrip('.')}"
    if means == "at_limit":
        pause = _named_pause(headers, error.sentences)
        means = "no_quota" if pause is None or pause > SOON_S else "rate_limited"
    elif means == "redirected":
        said = f"the server redirects to {headers.get('location', 'nowhere')}, where no key is sent: name the right base_url"
    # some servers lose a model for a moment
    lost = "server_error" if status >= 500 else "bad_request"
    name = lost if means == "no_such_model" else "bad_request" if means == "otherwise" else means
    return Failure(
        name,
        advised(said, HINTS.get(row.hint, "") if row else ""),
        # 403 is also the word of a filter before the server that dislikes one page
        hopeless=means in ("forbidden", "redirected", "no_such_model") or (name == "bad_request" and status == 404),
        retry_after_s=_retry_after(headers) if name in RETRIES else None,
        usage=usage or Usage(),
        status=status,
        said=error,
        finding=finding,
        unbilled=usage is None and _is_unbilled(name, status, came_as_success),
    )


def _is_unbilled(name: str, status: int, came_as_success: bool) -> bool:
    """True where the model has done no work: the server refused to begin."""
    if came_as_success:
        return name in ("auth_failed", "no_quota", "rate_limited", "bad_request")
    return name == "bad_request" or status not in _MAY_BE_BILLED


def of_body(body: object, headers: Mapping[str, str], usage: Usage | None = None) -> Failure | None:
    """An error that comes as a success; None for a body that names none. `usage`: what the body says it has used."""
    if not isinstance(body, dict):
        return None
    # some gateways have no object around code and message
    is_bare = ("code" in body and ("msg" in body or "message" in body)) or "error_code" in body
    error = body.get("error") or body.get("base_resp") or (body if is_bare else None)
    if not error:
        return None
    own = [str(error.get(field)) for field in ("code", "status", "error_code")] if isinstance(error, dict) else []
    status = next((int(code) for code in own if re.fullmatch("[45][0-9][0-9]", code)), 200)
    content = json.dumps(error).encode()
    if status != 200 or servers.find(servers.read_error(200, error)):
        return of_status(status, headers, content, True, usage)
    failure = malformed(f"an error as a success: {servers.sentence_of(error) or error}")
    return failure if usage is None else replace(failure, usage=usage)


def of_torn_reply(error: object, reason: object, text: object, headers: Mapping[str, str]) -> Failure:
    """A reply that the server broke off, with the `error` beside it if there is one: whatever its text, it is no answer."""
    begun = f"; it began: {scrubbed(text)[:80]}" if isinstance(text, str) and text.strip() else ""
    named = of_body({"error": error}, headers) if error else None
    why = named.detail if named else f"finish reason {reason}"
    # a status alone says little: the request was good enough for the reply to begin
    is_known = named is not None and (named.name == "rate_limited" or servers.find(servers.read_error(200, error)))
    name = named.name if named and is_known else "server_error"
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


_PAUSE = re.compile(
    r"(?:try again|retry|wait)(?: in| after| for)? (?:(\d{1,3})h)?(?:(\d{1,3})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?) ?(ms|s|seconds?)\b)?"
)


def _named_pause(headers: Mapping[str, str], sentences: Iterable[str]) -> float | None:
    """Seconds that the server asks to wait, in a header or in words such as "try again in 9m38.5s"; None where it does not say."""
    if (pause := _retry_after(headers)) is not None:
        return pause
    for hours, minutes, seconds, unit in (match for sentence in sentences for match in _PAUSE.findall(sentence)):
        if hours or minutes or seconds:
            return 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(seconds or 0) / (1000 if unit == "ms" else 1)
    return None


def _timestamp(date: str) -> float | None:
    """Seconds since 1970; None for what is no date."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None

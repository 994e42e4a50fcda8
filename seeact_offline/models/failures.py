"""Names the failures of attempts, and says which are worth asking again.

Which failure stands behind a code or an exact phrase of a server, `servers.csv` says. A row is looked up by the error's
codes and types first, then by a phrase within one of its own sentences; a status alone comes last. Nothing is guessed
from words that no row has: such an error is what its status says, and nothing lasting follows from it. What a request
has quoted back is not read, and of each sentence no more than the beginning: pages must not decide what becomes of a
run. Servers' words are untrusted: details are one line, of limited length, without secrets.
"""

from __future__ import annotations

import csv
import json
import math
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from seeact_offline.files.redaction import redact_reported
from seeact_offline.records import CallError, Usage

TABLE = Path(__file__).with_name("servers.csv")
_CODES = frozenset({"code", "type", "status", "status_code", "reason", "error_code", "err_code"})
_SENTENCES = ("message", "msg", "error", "detail", "status_msg", "error_msg", "title", "raw", "quotaId")
"""Fields that hold words of the server, the likeliest first."""
_QUOTED = frozenset({"input", "flagged_input", "failed_generation", "prompt"})
"""Fields in which a server quotes the request or a reply."""
# no more of an error than this is read: a server may quote a page in it, as long and as nested as its author likes
_SENTENCE_CHARS = 600
_MOST_TEXTS = 40
_DEPTH = 12
_LONG_QUOTE = re.compile(r"'[^']{200,}'|\"[^\"]{200,}\"|`[^`]{200,}`|(?<==)'[^']{20,}'")
"""Rather a page than a name; after `=`, what a library shows of the request."""
_ANY_CHARS, _NAME = r"[^\n]{0,160}?", r"(?P<name>[\w.\[\]]{1,80})"
_LASTING = frozenset({"no_quota", "at_limit", "auth_failed", "refused", "no_such_model", "otherwise"})
"""Meanings that outlive the call. Their phrases begin a clause: within one they are as likely words of a page."""
_CLAUSE = r"(?:^|(?<=[.:;!>)\]}] )|(?<=[>{(:])|(?<= - ))"


class Row(NamedTuple):
    """One behaviour of a server."""

    provider: str
    """The servers that are known for it."""
    status: str
    """HTTP statuses, with spaces between them; empty for any below 500, and of a refusal but 429: those say that it is
    the server's day."""
    code: str
    """A code or type, or `FIELD=CODE` where the same code means another thing elsewhere; empty for any."""
    phrase: str
    """Words within a sentence: `*` stands for up to 160 characters, `{}` for the name of a parameter; empty for any."""
    means: str
    """The failure's name; `at_limit`: `no_quota`, unless the server asks to wait for a moment; `no_such_model`: no call
    will get through; `otherwise`: ask without what `hint` names."""
    hint: str
    """The key of a sentence of `failures.HINTS`; of `otherwise`, the parameter or way to ask that is refused."""
    source: str
    day: str


@dataclass(frozen=True, slots=True)
class ServerError:
    """The parts of a server's error that are looked up."""

    status: int
    codes: frozenset[str]
    """Codes and types, plain and as `field=code`, in `_plain` spelling."""
    sentences: tuple[str, ...]
    """Sentences of the server, in lower case."""
    parameters: tuple[str, ...]
    """Names that it gives in a field of their own: OpenAI's `param`, FastAPI's `loc`."""


class Finding(NamedTuple):
    """A row that fits an error."""

    row: Row
    parameters: Collection[str]
    """The names that stand in the place of `{}`, or in a field of their own."""

    @property
    def refuses(self) -> frozenset[str]:
        """Names of parameters and ways to ask that the server does not take."""
        if self.row.means != "otherwise":
            return frozenset()
        return frozenset(self.parameters if self.row.hint == "{}" else [self.row.hint])


def read_error(status: int, body: object) -> ServerError:
    """Takes an error apart. `body`: parsed JSON, or a text that is none."""
    codes, sentences, parameters = set[str](), list[str](), list[str]()
    for name, text in _texts(body, "error", _DEPTH):
        if name in _CODES:
            # of `Kind.Detail` the kind counts too
            codes |= {_plain(text), _plain(text.partition(".")[0]), f"{_plain(name)}={_plain(text)}"}
        elif name == "param":
            parameters.append(text.rpartition(".")[2])
        elif name in _SENTENCES and len(sentences) < _MOST_TEXTS:
            sentence = _LONG_QUOTE.sub("", re.sub(r"https?://\S+", "", text[: 10 * _SENTENCE_CHARS]))
            sentences.append(" ".join(sentence.lower().split())[:_SENTENCE_CHARS])
    return ServerError(status, frozenset(codes), tuple(sentences), tuple(parameters))


def sentence_of(body: object) -> str:
    """The error's own sentence, in whichever field the server has it; empty for none."""
    by_field: dict[str, str] = {}
    for name, text in _texts(body, "error", _DEPTH):
        if text.strip():
            by_field.setdefault(name, text)
    return next((by_field[name] for name in _SENTENCES if name in by_field), "")


def find(error: ServerError) -> Finding | None:
    """The row for an error; None where no row has its status, codes or words."""
    for row in _ranked():
        usual = error.status < 500 and (row.means, error.status) != ("refused", 429)
        if not (str(error.status) in row.status.split() if row.status else usual):
            continue
        if row.code and _plain_code(row.code) not in error.codes:
            continue
        pattern = _pattern(row.phrase, row.means in _LASTING)
        matches = [match for sentence in error.sentences for match in pattern.finditer(sentence)]
        if row.phrase and not matches:
            continue
        names = [name.rpartition(".")[2] for match in matches if (name := match.groupdict().get("name"))]
        finding = Finding(row, [*names, *error.parameters])
        # one that names nothing is of no use
        if row.means != "otherwise" or finding.refuses:
            return finding
    return None


def ending(reason: object) -> str:
    """Names the end that a finish reason tells of: `done`, `truncated`, `refused`, `empty_reply`, `server_error`;
    `unknown` without a row.

    Of two parts the second says more, as in `content_filter: SAFETY`.

    >>> [ending(reason) for reason in ("MAX_TOKENS", "content_filter: hate", "abort", "end_turn", "whim", None)]
    ['truncated', 'refused', 'server_error', 'done', 'unknown', 'done']
    """
    text = str("" if reason is None else reason)[:_SENTENCE_CHARS]
    if not text:
        return "done"
    first, _, second = text.partition(":")
    parts = (_plain(part).removeprefix("finishreason") for part in (text, second, first))
    return next((_endings()[part] for part in parts if part in _endings()), "unknown")


@cache
def rows() -> tuple[Row, ...]:
    """The table, in its order."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(Row(**row) for row in csv.DictReader(file))


@cache
def _ranked() -> list[Row]:
    """Rows of errors: first those by code and phrase, then by code, by phrase, by status alone."""
    errors = [row for row in rows() if not row.code.startswith("finish_reason=")]
    return sorted(errors, key=lambda row: (not row.code, not row.phrase))


@cache
def _endings() -> Mapping[str, str]:
    named = (row for row in rows() if row.code.startswith("finish_reason="))
    return {_plain(row.code.partition("=")[2]): row.means for row in named}


@cache
def _pattern(phrase: str, begins_clause: bool) -> re.Pattern[str]:
    text = re.escape(phrase.lower()).replace(r"\*", _ANY_CHARS).replace(r"\{\}", _NAME)
    return re.compile((_CLAUSE if begins_clause else r"(?<![^\W_])") + text)


@cache
def _plain_code(code: str) -> str:
    return "=".join(map(_plain, code.split("=")))


def _plain(code: str) -> str:
    """One spelling for `InsufficientQuota`, `insufficient_quota` and `insufficient quota`."""
    return re.sub(r"[\W_]+", "", code[:_SENTENCE_CHARS]).lower()


def _texts(value: Any, field: str, depth: int) -> Iterator[tuple[str, str]]:
    """The texts and numbers of an error, each with the field that holds it. An error that another server has sent on
    stands in it as JSON."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            if name == "loc" and isinstance(entry, list):
                yield from (("param", str(part)) for part in entry[:_DEPTH])
            elif name not in _QUOTED and depth:
                yield from _texts(entry, str(name), depth - 1)
    elif isinstance(value, list):
        for entry in value[:_MOST_TEXTS] if depth else ():
            yield from _texts(entry, field, depth - 1)
    elif isinstance(value, str):
        start = value.find("{") if field in _SENTENCES and depth else -1
        try:
            inner = json.loads(value[start:]) if start >= 0 else None
        except (ValueError, RecursionError):
            inner = None
        yield field, value[:start] if inner else value
        if inner:
            yield from _texts(inner, field, depth - 1)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield field, str(value)[:20]


# --- failures, by name ---

# a detail is one line of a report, and servers like to quote what they refuse
DETAIL_CHARS = 300
# few: each blank reply is paid for, and it is the model's own where it keeps saying so
BLANK_RETRIES = 2
MALFORMED_RETRIES = 4
RETRIES: Mapping[str, float] = {
    **dict.fromkeys(("timeout", "server_error", "rate_limited", "connection_failed"), math.inf),
    "api_error": MALFORMED_RETRIES,
    "empty_reply": BLANK_RETRIES,
}
"""Times that a call is asked again after failures of these names, as long as may be waited; after any other it is
not."""
STOPPING = frozenset({"no_quota", "auth_failed"})
"""Failures with which no other call gets through either."""
SOON_S = 60.0
"""Longest pause after which a limit of a day, or of credit, is waited for: some servers let it flow, others end it at
midnight."""
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
"""Statuses that leave open whether the model has done its work: it failed in the middle of it, or a gateway lost sight
of it."""


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
    parsed_error: ServerError | None = None
    """The server's error, taken apart; None where there was none."""
    finding: Finding | None = None
    """The row of the table that fits it; None where none does."""
    unbilled: bool = False
    """The attempt cannot have cost anything: it reached no server, or the server refused it."""

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
    """An answer with a status other than success, or one that was meant (`came_as_success`). `usage`: what the server
    says it has used."""
    try:
        body: Any = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    text = content.decode("utf-8", "replace")
    error = read_error(status, text if body is None else body)
    finding = find(error)
    row = None if finding is None else finding.row
    by_status = "server_error" if status >= 500 else "bad_request"
    means = row.means if row else "redirected" if 300 <= status < 400 else by_status
    detail = f"Error code: {status} - {(sentence_of(body) or text).rstrip('.')}"
    if means == "at_limit":
        pause = _named_pause(headers, error.sentences)
        means = "no_quota" if pause is None or pause > SOON_S else "rate_limited"
    elif means == "redirected":
        target = headers.get("location", "nowhere")
        detail = f"the server redirects to {target}, where no key is sent: name the right base_url"
    # some servers lose a model for a moment
    name = {"no_such_model": by_status, "otherwise": "bad_request"}.get(means, means)
    # the model has done no work where the server refused to begin
    refusals = ("auth_failed", "no_quota", "rate_limited", "bad_request")
    is_refusal = name in refusals if came_as_success else name == "bad_request" or status not in _MAY_BE_BILLED
    return Failure(
        name,
        advised(detail, HINTS.get(row.hint, "") if row else ""),
        # 403 is also the word of a filter before the server that dislikes one page
        hopeless=means in ("forbidden", "redirected", "no_such_model") or (name == "bad_request" and status == 404),
        retry_after_s=_retry_after(headers) if name in RETRIES else None,
        usage=usage or Usage(),
        status=status,
        parsed_error=error,
        finding=finding,
        unbilled=usage is None and is_refusal,
    )


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
    if status != 200 or find(read_error(200, error)):
        return of_status(status, headers, content, True, usage)
    failure = malformed(f"an error as a success: {sentence_of(error) or error}")
    return failure if usage is None else replace(failure, usage=usage)


def of_torn_reply(error: object, reason: object, text: object, headers: Mapping[str, str]) -> Failure:
    """A reply that the server broke off, with the `error` beside it if there is one: whatever its text, it is no
    answer."""
    begun = f"; it began: {scrubbed(text)[:80]}" if isinstance(text, str) and text.strip() else ""
    named = of_body({"error": error}, headers) if error else None
    why = named.detail if named else f"finish reason {reason}"
    # a status alone says little: the request was good enough for the reply to begin
    is_known = named is not None and (named.name == "rate_limited" or find(read_error(200, error)))
    name = named.name if named and is_known else "server_error"
    pause = _retry_after(headers) if name in RETRIES else None
    return Failure(name, scrubbed(f"the server broke the reply off: {why}{begun}"), retry_after_s=pause)


def of_exception(error: Exception) -> Failure:
    """An error that the SDK raises or lets through for an attempt without an answer. Only its kind and words are kept:
    it may quote the key."""
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
    """Seconds, from milliseconds, seconds or a date, which counts from the server's own `Date`: its clock may be wrong,
    or ours. None for none that makes sense."""
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
    """Seconds that the server asks to wait, in a header or in words such as "try again in 9m38.5s"; None where it does
    not say."""
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

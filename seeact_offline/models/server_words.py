"""Reads the words of servers: how a reply ended, what an error means, and which option helps.

Servers that speak OpenAI's API agree on its fields and on nothing else, so each rule is a pattern over every text of an error (codes,
types and messages alike, as lower-case words), not a list of codes. What a request has quoted back (`input`) is not read, and no more
than the beginning of each text: pages must not decide what becomes of a run. docs/servers.md lists the behaviours.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

_LONGEST = 600
"""Characters of each text that are read."""
_LONGEST_ALL = 6_000
"""Characters of all texts together."""
_QUOTED = frozenset({"input", "flagged_input"})
"""Fields in which a server quotes the request."""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


# --- how a reply ended ---

_ENDINGS: Mapping[str, re.Pattern[str]] = {
    # Gemini says RECITATION and SPII, Bedrock guardrail_intervened, Zhipu sensitive
    "refused": _any(
        "filter|sensitiv|safety|block|prohibit|recitation|spii|refus|moderat|guardrail|policy|inspection|flag"
    ),
    "server_error": _any(
        "error|abort|cancel|fail|network|insufficient|resource|time_?out|deadline|interrupt|malformed|unavailable|overload|disconnect|unexpected|rate_limit",
        "in_progress|queued|incomplete|pending",
    ),
    "truncated": _any("length|tokens?_?limit|context", r"max_?(\w+_)?tokens"),
    "done": re.compile(
        r"|none|null|stop(_?(str|sequence|token|word)s?)?|eos(_token)?|end(_(turn|of_\w+))?|(tool|function)_?(calls?|use)|completed?|finish(ed)?|success"
    ),
}


def ending(reason: object) -> str:
    """Names the end that a finish reason tells of: `done`, `truncated`, `refused`, `server_error`; `unknown` for any other.

    >>> [ending(reason) for reason in ("MAX_TOKENS", "content_filter: hate", "abort", "end_turn", "whim")]
    ['truncated', 'refused', 'server_error', 'done', 'unknown']
    """
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", str("" if reason is None else reason)[:_LONGEST]).lower()
    text = text.removeprefix("finish_reason_")
    if _ENDINGS["done"].fullmatch(text):
        return "done"
    return next((name for name, pattern in _ENDINGS.items() if name != "done" and pattern.search(text)), "unknown")


# --- what an error means ---

_MONEY = _any(
    r"insufficient (\w+ ){0,2}(quota|balance|funds|credits?)",
    r"(quota|balance|credits?|funds) ((is|are|has|have|been|was) ){0,3}(too low|insufficient|not enough|depleted|exhausted|used up|negative|overdue|empty)",
    r"out of (\w+ )?(credits?|funds|quota|balance)",
    r"(used|spent|exhausted|consumed)( up)? (all|your|the|its) (\w+ ){0,4}(credits?|quota|allocation|balance)",
    # OpenRouter says of a moderated call that no credits were charged
    r"(not|n't) have (any |enough |sufficient )?(\w+ ){0,2}(credits?|balance|funds)\b|(have|has|with) no (\w+ )?(credits?|balance|funds)\b",
    r"no (more |remaining |available )(credits?|balance|funds)\b|not enough (credits?|balance|funds)\b",
    r"(requires?|purchase|buy) (more |additional )?credits|exceeded (your|the) current quota|current quota error",
    r"(spend(ing)?|billing|budget|usage|hard|monthly|weekly)( \w+){0,2} (limit|cap|quota|budget)s?\b[^.]{0,40}(reached|exceeded|hit|exhausted)",
    r"(reached|exceeded|hit|exhausted)\b[^.]{0,40}(spend(ing)?|billing|budget|usage|monthly|weekly)( \w+){0,2} (limit|cap|quota|budget|allowance|credits)",
    r"account\b[^.]{0,60}(suspended|overdue|arrears|past due|not active|inactive|deactivated|disabled|locked)",
    r"arrear|overdue|good standing|payment required|past due|past invoices|recharge|\btop up\b|unpaid",
    r"billing (not active|is not|disabled|account)|requires billing",
    r"free (tier|quota|allocation|trial) (of (\w+ ){1,4})?((has|have|is) )?(been )?(exhausted|used up|exceeded|expired|ended|only)",
    "欠费|余额|额度不足|额度已|充值|资源包|套餐",
)
_DAILY = _any(r"per (day|week|month)\b|\bdaily\b|\b[rt]pd\b|requests? a day|今日|每日", r"\blimit:? 0\b(?!\.)")
_SOON = _any(
    r"per (min|sec)|\b[rt]p[ms]\b|(retry|try again|wait) (in|after|for) [\d.]|retry info|rate limit (reached|exceeded)"
)
"""A limit that passes in a moment, whatever else the server says of plans and billing."""
_NO_KEY = _any(
    r"api ?key\b[^.]{0,30}(not valid|invalid|expired|revoked|disabled|not found|missing|wrong|leaked)",
    r"(invalid|expired|missing|malformed|no) (\w+ ){0,2}api ?key\b|(valid|obtain an) api ?key|invalid authentication",
    "authentication (fail|error)|令牌|身份验证",
)
_MODERATED = _any(
    r"content (management |moderation )?(policy|filter)|moderation|flagged|data inspection|inappropriate|prohibited content|high risk",
    r"(?<!case )sensitive|responsible ai|safety(?! (setting|identifier))|unsafe|guardrail|policy violation",
    r"violat\w+ (\w+ ){0,4}(polic\w+|guidelines|terms)|敏感|不安全|违规|审核",
)
_BUSY = _any(
    r"overloaded|loading model|at capacity|访问量过大|繁忙",
    r"(model|server|service|engine|system|upstream|provider)\b[^.]{0,40}(is busy|is loading|(currently|still|being) load|warming|not ready)",
)
_NO_PATH = _any(r"unexpected endpoint|(unknown|no such) (endpoint|route|path)|(endpoint|route|path) not found")
_NO_MODEL = _any(r"(model|deployment)\b[^.]{0,60}not (found|exist|available)|invalid model\b|模型不存在")
_NO_SYSTEM = _any(
    r"\b(system|developer)\b[^.]{0,60}(not (supported|enabled|allowed|permitted)|unsupported|invalid|unknown|unexpected)",
    r"(not support|unsupported|only|unknown|unexpected|invalid|not allow)[^.]{0,80}\b(system|developer)\b",
    r"roles must alternate|input should be 'user' or 'assistant'",
)
_STREAMS = _any(
    r"\bstream\b[^.]{0,30}(must|should|has to|needs to) be (set to )?true|(only|must|please)\b[^.]{0,40}\bstream(ing)?\b",
    r"non streaming\b|(not|n't) be support\w* when\W+stream|stream ?= ?\W?(false|true)|streaming (is )?required|非流式",
)
_ROLES = re.compile(r"\broles?\b|message|prompt|instruction")


class _Remedy(NamedTuple):
    """An option that helps against an error."""

    says: re.Pattern[str]
    lasts: bool
    """True where status 500 changes nothing: the same request fails again."""
    hint: str


_TO_TLS = _Remedy(
    _any(r"http request[^.]{0,40}https (port|server)"), False, "the port speaks TLS: write https:// in --base-url"
)
_LARGE_PICTURE = _Remedy(
    _any(
        r"image\b[^.]{0,80}(exceeds|too (large|big)|max allowed size|larger than|dimension|pixels)|image (size|dimensions)",
        r"(payload|entity|body|request) (is )?too large|maximum (image|request|payload|body) (size|bytes)",
    ),
    False,
    "make pictures smaller: --max-image-side 1024, or --image-format jpeg:75",
)
_REMEDIES = (
    _TO_TLS,
    _Remedy(
        _any(
            r"too many (\w+ ){0,2}(images|pictures|media)|too much media|at most \d+ image|only (supports? )?(one|1|a single) image|multiple images",
            r"\d+ images?,? ((were|are|is) )?(provided|given|exceed|>)|(max|maximum)( number)?( of)? (\d+ )?images|images per (request|prompt)",
        ),
        True,
        "send fewer pictures: lower --history-pictures",
    ),
    _Remedy(
        _any(
            r"context (length|window|size|limit)|exceed context|max model len|num ctx|\bn ctx\b|maximum (\w+ )?(prompt|input|sequence) length",
            r"(prompt|input|sequence|message)s?( \([^)]*\))? (is |are )?too (long|large)|prompt contains[^.]{0,60}too (long|large)",
            r"too many (input |prompt )?tokens|reduce the length|range of (input length|max tokens)|token count[^.]{0,60}exceeds",
            r"request too large[^.]{0,200}tokens|tokens? \+ \W*max new tokens|(fewer|less) than \d+ tokens|longer than the (\w+ ){0,4}context",
            r"max (\w+ )?tokens\b[^.]{0,60}(too (large|high|big)|at most|exceed|greater than|less than|cannot be)",
            "上下文|输入过长",
        ),
        True,
        "question and reply together do not fit: lower --max-tokens, or send less (--top-k, --group-size, --history-pictures)",
    ),
    _LARGE_PICTURE,
    _Remedy(
        _any(
            r"unsupported image|(image|media|mime) (type|format)|(decode|process|load|parse)\b[^.]{0,20} image|invalid image\b"
        ),
        False,
        "try another --image-format, such as png",
    ),
    _Remedy(
        _any(
            r"unknown variant\W{1,3}image|missing data required for image|mmproj|not a (multimodal|vision)|untagged enum chat completion request content",
            r"(image|vision|multimodal|visual)\b[^.]{0,60}(not (currently )?support|unsupported|not (allowed|enabled|available|accepted))",
            r"(not|n't|no endpoints found that) support\w*\b[^.]{0,40}(image|vision|multimodal|visual)|text only|only (supports? )?text",
            r"content\b[\s\S]{0,60}(must|should) be a (valid )?string|content\b[^.]{0,20}expected a string|image url is only supported|does not accept images|不支持(图片|图像|视觉)",
        ),
        True,
        "the model takes no pictures: add --no-image, or name one that does",
    ),
)
_SIZE = _any("large|big|exceed|limit|size|length|bytes|image")
"""Words of a server, or a gateway before it, that answers 413 (Content Too Large) in its own way."""
_MAY_LAST = (500, 501, 502)
"""Statuses under which some servers refuse a request that no repetition will make good."""


def said_by(error: object) -> str:
    """Joins the texts of an error as lower-case words: `InsufficientQuota`, `insufficient_quota` and `Insufficient quota` read the same.

    >>> said_by({"code": "API_KEY_INVALID", "message": "See https://example.org/billing"})
    'api key invalid\\nsee  '
    """
    texts = [re.sub(r"https?://\S+", " ", text[:_LONGEST]) for text in _texts(error)]
    split = (re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_-]", " ", text) for text in texts[:40])
    return "\n".join(split).lower()[:_LONGEST_ALL]


def _texts(error: object) -> Iterator[str]:
    if isinstance(error, str):
        yield error
    elif isinstance(error, Mapping):
        for name, entry in error.items():
            if name not in _QUOTED:
                yield from _texts(entry)
    elif isinstance(error, list):
        for entry in error[:40]:
            yield from _texts(entry)


def cause(status: int, error: object, codes: Collection[str] = ()) -> str | None:
    """Names the failure that an error's own words tell of; None where they say no more than its status.

    `status`: 200 for an error that comes as a success. `codes`: of the error, as texts: those that are numbers say nothing as words.
    """
    said = said_by(error)
    is_fault = status >= 500
    if status in (200, 400, 401, 403) and _NO_KEY.search(said):
        return "auth_failed"
    if status not in (404, 408, 413, 422):
        is_daily = status in (200, 402, 403, 429) and _DAILY.search(said)
        # Zhipu: no balance, the day's or the week's calls are used up
        numbered = {"1113", "1304", "1308", "1309", "1310"} & set(codes)
        if is_daily or numbered or (_MONEY.search(said) and not _SOON.search(said)):
            return "no_quota"
    # Zhipu's number for what its filter dislikes
    if status not in (401, 402, 404, 408, 413, 429) and (_MODERATED.search(said) or "1301" in codes):
        return "refused"
    if status == 200 and _NO_PATH.search(said):
        return "bad_request"
    if status == 200 or status in _MAY_LAST or (status == 429 and "too large" in said):
        lasting = any(remedy.lasts and remedy.says.search(said) for remedy in _REMEDIES)
        return "bad_request" if lasting or refuses_system(error) else None
    return "server_error" if not is_fault and status not in (401, 402, 429) and _BUSY.search(said) else None


def is_missing(error: object) -> bool:
    """True where the server has no such model or path."""
    said = said_by(error)
    return bool(_NO_MODEL.search(said) or _NO_PATH.search(said))


def is_plain_to_tls(error: object) -> bool:
    """True where http:// was sent to a port of https://."""
    return bool(_TO_TLS.says.search(said_by(error)))


def refuses_system(error: object) -> bool:
    """True where the server takes no system message."""
    said = said_by(error)
    return bool(_NO_SYSTEM.search(said) and _ROLES.search(said))


def only_streams(error: object) -> bool:
    """True where the server answers piece by piece or not at all."""
    return bool(_STREAMS.search(said_by(error)))


def remedy(status: int, error: object) -> str:
    """Names the option of ours that helps against a refused request; empty for none."""
    said = said_by(error)
    fitting = (entry.hint for entry in _REMEDIES if entry.says.search(said))
    return next(fitting, _LARGE_PICTURE.hint if status == 413 and (_SIZE.search(said) or not said) else "")

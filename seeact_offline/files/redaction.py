"""Removes the secrets of this process from everything that is written or printed.

Code that receives a secret (an API key, the user in a server's URL, the values of its query) hides it here before using it.
`redact` then replaces it in any text, even percent-encoded or escaped as in JSON. `redact_reported` is for others' reports,
above all a server's errors: it also removes text that looks like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

BLOT = "***"
SHORTEST = 8
"""Characters of the shortest secret to replace: shorter keys are dummies for local servers, or parts of ordinary words."""
REPORTED_CHARS = 4000

_hidden: set[str] = set()
_LIKELY = re.compile(
    r"\bsk-[\w*.-]+"  # OpenAI's keys, whole or masked by the server
    r"|(?<=://)[^@\s\"'<>]{1,300}(?=@)"  # user:password@ in a URL, with anything else before the @
    r"|(?<=authorization)[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic)\s+)?[^\s\"',}]+"
    r"|(?<=bearer)\s+[^\s\"',}]+"
    r"|(?<=[?&])[\w.-]{0,40}(?:key|token|secret|password|sig|auth|code)[\w.-]{0,40}=[^&\s\"'<>]+",
    re.IGNORECASE,
)


def hide(secret: str, shortest: int = SHORTEST) -> None:
    """Makes `redact` replace this text from now on, if it has at least `shortest` characters."""
    if len(secret) >= shortest:
        _hidden.add(secret)


def redact(text: str) -> str:
    """Returns the text with BLOT in place of every hidden secret."""
    return _pattern(frozenset(_hidden)).sub(BLOT, text) if _hidden else text


def redact_reported(text: str) -> str:
    """Redacts as `redact` does, and likely secrets too; the text becomes one line, cut at REPORTED_CHARS."""
    # cut after the first search, which would miss half of a secret, and before the second, which is slow
    return _LIKELY.sub(BLOT, " ".join(redact(text).split())[:REPORTED_CHARS])


def redact_values(value: Any) -> Any:
    """Redacts every text inside lists and dictionaries that will become JSON, as `redact` does; keys stay."""
    if not _hidden:
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return [redact_values(entry) for entry in value]
    if isinstance(value, Mapping):
        return {name: redact_values(entry) for name, entry in value.items()}
    return value


@cache
def _pattern(secrets: frozenset[str]) -> re.Pattern[str]:
    # the longest first: one secret may be the beginning of another
    ordered = sorted(secrets, key=lambda secret: (-len(secret), secret))
    return re.compile("|".join("".join(map(_spelled, secret)) for secret in ordered))


def _spelled(character: str) -> str:
    """Returns a pattern for the character: plain, percent-encoded once or more often, or escaped as in JSON."""
    encoded = "".join(f"%(?:25){{0,3}}{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\{{1,8}}u{units[i : i + 4]}" for i in range(0, len(units), 4))
    # before the plain character, so that no part of an escaped backslash or percent sign remains at a secret's end
    quoted = rf"\\{{1,8}}{re.escape(character)}|" if character in "\"\\/'" else ""
    return f"(?:(?i:{encoded}|{escaped})|{quoted}{re.escape(character)})"

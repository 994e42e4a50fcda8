"""The server that a base URL names, without secrets: such a URL can hold a user's password, a key in its query, or one
in its path.

Server, key and options of a model are variables of the process, else of the file `.env` in the working folder. Of the
file only NAMES and what begins with PREFIX are read, and it never overrides the process. A folder may be somebody
else's, so its file cannot send a key of the process to a server of its own: see `find_server`.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from seeact_offline.files.digest import PREFIX
from seeact_offline.files.named import read_named
from seeact_offline.files.redaction import BLOT, hide, redact_reported
from seeact_offline.records import InputError, ModelSpecError

NAMES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY")
LONGEST_FILE = 100_000
"""Bytes; of a longer one nothing is read."""
LONGEST_LINE = 4_000
_LINE = re.compile(
    r"""\s*(?:export\s+)?(?P<name>\w+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>.*?))\s*(?:(?<=\s)\#.*)?"""
)
"""`NAME=value`, the value bare or in quotes, perhaps with `export` before it and a comment after a blank."""


def variable(name: str) -> str:
    """Returns the value without blanks around it; empty where it is set nowhere."""
    return os.environ.get(name, "").strip() or from_file(name)


def from_file(name: str) -> str:
    """The value in `.env`; empty where that file has none, or where the process has one already."""
    if not (name in NAMES or name.startswith(PREFIX)) or os.environ.get(name, "").strip():
        return ""
    try:
        lines = read_named(".env", Path(".env"), largest=LONGEST_FILE).decode("utf-8", "replace").splitlines()
    except InputError:
        return ""
    matches = [_LINE.fullmatch(line) for line in lines if len(line) <= LONGEST_LINE]
    assignments = [match for match in matches if match is not None and match["name"] == name]
    if not assignments:
        return ""
    # the last one counts, as in a shell
    last = assignments[-1]
    return (last["double"] or last["single"] or last["bare"] or "").strip()


# --- addresses ---

OPENAI_URL = "https://api.openai.com/v1"
VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
AZURE_KEY_VARIABLE = "AZURE_OPENAI_API_KEY"
NO_KEY = "no-key-needed"
SHORTEST_PASSWORD = 4
LONGEST_URL = 4_000
"""Characters: looking for secrets takes time that grows with their square."""
_VERSION = re.compile(r"[\d.]+(-[\d.]+)*(-?(preview|beta|alpha|rc)\d*)?|v\d+|true|false")
"""A query's value that is no secret; Azure's `api-version=2024-10-21` is one. Page texts and answers hold such words
too."""
_RANDOM = re.compile(r"(?=[a-zA-Z]*\d)(?=\d*[a-zA-Z])[a-zA-Z0-9]{16,}")
"""A run of letters and digits in a path that nobody would choose as a name."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server that requests are sent to."""

    url: str
    """URL for the SDK: with user and password where there are any, without query."""
    query: tuple[tuple[str, str], ...]
    """Names and values that every request's URL ends with."""
    host: str
    address: str
    """The URL as it may be shown: without user, password and query, secrets in the path blotted out."""
    is_default: bool
    """No URL was named anywhere."""

    @property
    def is_openai(self) -> bool:
        return self.host == urlsplit(OPENAI_URL).hostname

    @property
    def is_azure(self) -> bool:
        return self.host.endswith(".azure.com")


def find_server(base_url: str | None) -> Server:
    """The server of `base_url`, else of the environment variable OPENAI_BASE_URL (or `.env`), else OpenAI's own.

    Every secret of the URL, and the API keys of the environment, are hidden from then on. Raises ModelSpecError for an
    unusable URL, for one from the command line that holds a user (others on the machine can read command lines), and
    for one of `.env` where the key is the environment's: the author of that file would be sent it.
    """
    for name in (KEY_VARIABLE, AZURE_KEY_VARIABLE):
        hide(variable(name))
    from_environment = variable(VARIABLE)
    if base_url is None:
        check_key_goes_with(VARIABLE)
    url = base_url if base_url is not None else from_environment or OPENAI_URL
    parts = _split(url, "base_url" if base_url is not None else VARIABLE)
    _hide_all(parts)
    if base_url is not None and "@" in parts.netloc:
        raise ModelSpecError(
            "base_url",
            "a URL without user and password, which others can read off a command line",
            f"{_safe(url)}; put the whole URL into the environment variable {VARIABLE} instead",
        )
    bare = parts._replace(query="", fragment="")
    return Server(
        url=bare.geturl(),
        query=tuple(parse_qsl(parts.query, keep_blank_values=True)),
        host=parts.hostname or "",
        address=_safe(bare._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()),
        is_default=base_url is None and not from_environment,
    )


def check_key_goes_with(name: str) -> None:
    """Raises ModelSpecError where this variable, an address, is in `.env` alone and the key is the environment's."""
    has_key = any(variable(key) and not from_file(key) for key in (KEY_VARIABLE, AZURE_KEY_VARIABLE))
    if has_key and from_file(name):
        raise ModelSpecError(
            name,
            sentence=f"{name} is in .env alone, and the API key is not; put both into .env, or both into the environment",
        )


def azure_key(server: Server) -> str:
    """Azure's own variable, whose key goes into Azure's own header; empty where it is not set, and for other
    servers."""
    return variable(AZURE_KEY_VARIABLE) if server.is_azure else ""


def find_key(server: Server) -> str:
    """The key of the environment. A server of one's own may need none, but the SDK insists on sending one."""
    return azure_key(server) or variable(KEY_VARIABLE) or NO_KEY


def address_of(base_url: str | None) -> str | None:
    """`Server.address`; None where no URL was named, or one that `find_server` refuses."""
    try:
        server = find_server(base_url)
    except ModelSpecError:
        return None
    return None if server.is_default else server.address


def _split(url: str, argument: str) -> SplitResult:
    if len(url) > LONGEST_URL:
        raise ModelSpecError(argument, f"a URL of at most {LONGEST_URL:,} characters", f"one of {len(url):,}")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    # an @ further on belongs to a password with a slash or a question mark, which ends the host too early
    if not usable or "@" in url.partition(parts.netloc)[2]:
        raise ModelSpecError(argument, "a URL like http://localhost:8000/v1", repr(_safe(url)))
    return parts


def _hide_all(parts: SplitResult) -> None:
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if user or password:
        hide(f"{user}:{password}")
        hide(base64.b64encode(f"{user}:{password}".encode()).decode())
        # a user alone is a token
        hide(password or user, SHORTEST_PASSWORD)
    for pair in filter(None, parts.query.split("&")):
        name, _, value = pair.partition("=")
        if value and not _VERSION.fullmatch(value):
            hide(f"{name}={value}", 1)
            hide(unquote(value))
    for run in _RANDOM.findall(parts.path):
        hide(run)


def _safe(url: str) -> str:
    """The URL as it can be shown, well-formed or not: nothing before its last @, no query, no key in its path."""
    shown, mark = (re.split("[?#]", url)[0], f"?{BLOT}") if re.search("[?#]", url) else (url, "")
    scheme = re.match(r"[\w+.-]{0,20}://", shown)
    head = scheme[0] if scheme else ""
    _, user, rest = shown[len(head) :].rpartition("@")
    return head + (f"{BLOT}@" if user else "") + _RANDOM.sub(BLOT, redact_reported(rest)) + mark

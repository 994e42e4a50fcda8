"""Reads the table of servers' behaviours, `servers.csv`: which failure stands behind a code or an exact phrase of a server.

A row is looked up by the error's codes and types first, then by a phrase within one of its own sentences; a status alone comes last.
Nothing is guessed from words that no row has: such an error is what its status says, and nothing lasting follows from it. What a
request has quoted back is not read, and of each sentence no more than the beginning: pages must not decide what becomes of a run.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("servers.csv")
_CODES = frozenset({"code", "type", "status", "status_code", "reason", "error_code", "err_code"})
_SENTENCES = ("message", "msg", "error", "detail", "status_msg", "error_msg", "title", "raw", "quotaId")
"""Fields that hold words of the server, the likeliest first."""
_QUOTED = frozenset({"input", "flagged_input", "failed_generation", "prompt"})
"""Fields in which a server quotes the request or a reply."""
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
    """HTTP statuses, with spaces between them; empty for any below 500, and of a refusal but 429: those say that it is the server's day."""
    code: str
    """A code or type, or `FIELD=CODE` where the same code means another thing elsewhere; empty for any."""
    phrase: str
    """Words within a sentence: `*` stands for up to 160 characters, `{}` for the name of a parameter; empty for any."""
    means: str
    """The failure's name; `at_limit`: `no_quota`, unless the server asks to wait for a moment; `no_such_model`: no call will get through;
    `otherwise`: ask without what `hint` names."""
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
    for field, text in _texts(body, "error", _DEPTH):
        if field in _CODES:
            # of `Kind.Detail` the kind counts too
            codes |= {_plain(text), _plain(text.partition(".")[0]), f"{_plain(field)}={_plain(text)}"}
        elif field == "param":
            parameters.append(text.rpartition(".")[2])
        elif field in _SENTENCES and len(sentences) < _MOST_TEXTS:
            sentence = _LONG_QUOTE.sub("", re.sub(r"https?://\S+", "", text[: 10 * _SENTENCE_CHARS]))
            sentences.append(" ".join(sentence.lower().split())[:_SENTENCE_CHARS])
    return ServerError(status, frozenset(codes), tuple(sentences), tuple(parameters))


def sentence_of(body: object) -> str:
    """The error's own sentence, in whichever field the server has it; empty for none."""
    by_field: dict[str, str] = {}
    for field, text in _texts(body, "error", _DEPTH):
        if text.strip():
            by_field.setdefault(field, text)
    return next((by_field[field] for field in _SENTENCES if field in by_field), "")


def find(error: ServerError) -> Finding | None:
    """The row for an error; None where no row has its status, codes or words."""
    for rows in _by_rank():
        for row in rows:
            usual = error.status < 500 and (row.means, error.status) != ("refused", 429)
            if not (str(error.status) in row.status.split() if row.status else usual):
                continue
            if row.code and _plain_code(row.code) not in error.codes:
                continue
            matches = [
                match
                for sentence in error.sentences
                for match in _pattern(row.phrase, row.means in _LASTING).finditer(sentence)
            ]
            if row.phrase and not matches:
                continue
            names = [name.rpartition(".")[2] for match in matches if (name := match.groupdict().get("name"))]
            finding = Finding(row, [*names, *error.parameters])
            # one that names nothing is of no use
            if row.means != "otherwise" or finding.refuses:
                return finding
    return None


def ending(reason: object) -> str:
    """Names the end that a finish reason tells of: `done`, `truncated`, `refused`, `empty_reply`, `server_error`; `unknown` without a row.

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
def _by_rank() -> tuple[tuple[Row, ...], ...]:
    """Rows of errors: those by code and phrase, by code, by phrase, by status alone."""
    errors = [row for row in rows() if not row.code.startswith("finish_reason=")]
    ranks = ((True, True), (True, False), (False, True), (False, False))
    return tuple(tuple(row for row in errors if (bool(row.code), bool(row.phrase)) == rank) for rank in ranks)


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
    """The texts and numbers of an error, each with the field that holds it. An error that another server has sent on stands in it as JSON."""
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

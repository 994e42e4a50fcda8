"""The parameters of a request: those that the user chose, and those that we send of our own accord.

Nothing is guessed from a model's name. A server that refuses one of ours is asked without it from then on; one
that the user chose is the user's to change. OpenAI's chat completions know the limit of new tokens by two names, and each
server takes one or both: refused under one name, it is sent under the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from seeact_offline.models.failures import Failure, error_codes, words
from seeact_offline.models.provider import ModelOptions
from seeact_offline.models.server_words import only_streams, refuses_system
from seeact_offline.records import ModelSpecError

if TYPE_CHECKING:
    from seeact_offline.models.apis import Api

DETAIL = "detail"
"""The parameter of a picture: sent inside the messages, and left out like any other."""
API = "api"
SYSTEM = "system"
"""The role: where it is refused, its text goes into the user's turn."""
STREAM = "stream"
"""Whole replies: a model that has none is asked to send its reply in pieces."""
_FORMS = {SYSTEM: "system -> user", STREAM: "stream=false -> true"}
"""Ways to ask that are no parameters, and what takes their place."""
_OURS = frozenset({"messages", "model", "input", "stream", "stream_options", "n"})
"""Parameters that are ours alone: they make the request and its answer what they are."""
_TWINS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TIER = "service_tier"
_REFUSED = re.compile(
    r"unsupported|(?:not|n't) support|not allowed|not permitted|not available|unknown|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)"
    r"|no longer|deprecated|cannot find|invalid (?:parameter|argument|value)|does not (?:take|accept|allow)|only the default|must be"
    r"|only\b.{0,40}\b(?:allowed|supported|accepted|valid)|(?:may|can) only be|should be|not be set|out of range|not valid|only supports?\b"
    r"|不支持|只支持|只能|参数(?:非法|有误|错误|无效)|不合法",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(r"context|too (?:large|long|many)|reduce the length", re.IGNORECASE)
"""A request that does not fit: no reason to leave a parameter out of all others."""
_REFUSED_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})


def read_model_args(texts: Sequence[str]) -> dict[str, Any]:
    """`name=value` each; a value that is JSON is read as such, any other is a text. Raises ModelSpecError."""
    found: dict[str, Any] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not (mark and name.strip()):
            raise ModelSpecError("model_args", "NAME=VALUE", repr(text))
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found


class Parameters:
    """The parameters that are sent now, and those that were dropped."""

    def __init__(self, options: ModelOptions, api: Api) -> None:
        """Sends the options of `api` unless `model_args` say otherwise; a parameter that is None is not sent.

        Raises ModelSpecError for `model_args` that cannot be.
        """
        chosen = {name: value for name, value in options.model_args.items() if name != API}
        for name in chosen:
            if name in _OURS:
                raise ModelSpecError("model_args", f"parameters other than {', '.join(sorted(_OURS))}", name)
            same = [option for option, known in api.names.items() if known == name or _TWINS.get(known) == name]
            if same and same[0] in options.typed:
                raise ModelSpecError("model_args", sentence=f"`model_args`: use {same[0]} or {name}, not both")
        ours = {name: getattr(options, option) for option, name in api.names.items()} | dict(api.own)
        has_limit = bool(_TWINS.keys() & chosen.keys())
        kept = {name: value for name, value in ours.items() if not (has_limit and name in _TWINS)}
        self.sent: Mapping[str, Any] = {k: v for k, v in {**kept, **chosen}.items() if v is not None}
        """Replaced, never changed: a request under way still holds the old ones."""
        self.dropped: tuple[str, ...] = ()
        """The parameters that the server refused, in order; `max_tokens -> max_completion_tokens` for another name."""
        not_typed = {
            name for option, name in (*api.names.items(), ("image_detail", DETAIL)) if option not in options.typed
        }
        self._refusable = (not_typed | api.own.keys()) - chosen.keys()
        self._renamable = _TWINS.keys() & (ours.keys() - chosen.keys())
        self._gone: set[str] = set()
        self._limits = _TWINS.keys() if api.conversation == "messages" else {"max_output_tokens"}

    @property
    def reply_limit(self) -> float:
        """Most tokens of a reply, by what is sent: the largest where several limits are. Infinite where the API knows none of them, or
        one is no number of tokens."""
        sent = {name: self.sent[name] for name in _LIMITS if name in self.sent}
        are_counts = all(isinstance(one, int) and not isinstance(one, bool) and one > 0 for one in sent.values())
        return max(sent.values()) if are_counts and self._limits & sent.keys() else inf

    @property
    def tier(self) -> str:
        """The service tier that is asked for; empty for none."""
        return str(self.sent.get(_TIER, "")).lower()

    @property
    def sends_detail(self) -> bool:
        return DETAIL not in self._gone

    @property
    def sends_system(self) -> bool:
        return SYSTEM not in self._gone

    @property
    def streams(self) -> bool:
        """True once the server has said that it answers in pieces alone."""
        return STREAM in self._gone

    def give_way(self, sent: Collection[str], failure: Failure) -> bool:
        """Drops a parameter of ours that the server refuses, among those that were `sent` (DETAIL, SYSTEM and STREAM among them).
        True: ask again."""
        # some servers refuse under 500 what they will never take, such as a role that the model's template does not know
        if failure.status not in (400, 422) and failure.name != "bad_request":
            return False
        for name in sent:
            if name in self._refusable | self._renamable | self._gone | _FORMS.keys() and _refuses(name, failure):
                if name not in self._gone:
                    self._leave_out(name)
                return True
        return False

    def _leave_out(self, name: str) -> None:
        """Sends it no more, or by its other name as long as that one was not refused."""
        self._gone.add(name)
        if name in _FORMS:
            self.dropped = (*self.dropped, _FORMS[name])
            return
        if name not in self._renamable:
            self.sent = {other: value for other, value in self.sent.items() if other != name}
            self.dropped = (*self.dropped, name)
            return
        twin = _TWINS[name]
        self.sent = {twin if other == name else other: value for other, value in self.sent.items()}
        self.dropped = (*self.dropped, f"{name} -> {twin}")
        if name in self._refusable:
            self._refusable.add(twin)


def _refuses(name: str, failure: Failure) -> bool:
    """True if the server says that it does not take this parameter."""
    said = [*words(failure.body)] or [failure.detail]
    if name in _FORMS:
        return (refuses_system if name == SYSTEM else only_streams)(failure.body or failure.detail)
    if any(_TOO_LONG.search(text) for text in said):
        return False
    if name in _TWINS and any(re.search(rf"\buse\W+{_TWINS[name]}\b", text, re.IGNORECASE) for text in said):
        return True
    spelt = re.compile(
        rf"(?:['\"`]|\.){name}['\"`]|\b{name}(?=\s*[:=])|(?:parameter|argument|field|supplied|key|property)s?:? {name}\b"
        rf"|(?<![\w'])(?:invalid )?{name}(?: (?:may|must|can|should|is|does|value|parameter|argument|setting)\b|\s*参数)",
        re.IGNORECASE,
    )
    named = any(text == name or text.endswith(f".{name}") or spelt.search(text) for text in said)
    refused = bool(error_codes(failure.body) & _REFUSED_CODES) or any(map(_REFUSED.search, said))
    return named and refused

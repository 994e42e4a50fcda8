"""The parameters of a request: those that the user chose, and those that we send of our own accord.

Nothing is guessed from a model's name. A server that refuses one of ours is asked without it from then on; one that the
user chose is the user's to change. OpenAI's chat completions know the limit of new tokens by two names, and each server
takes one or both: refused under one name, it is sent under the other.

As this changes every later call, it needs certainty: a row of the table of servers; or a request that was refused in
words that name the parameter, was answered without it, and another that is then refused for it again. And nothing is
left out for good that the server has ever taken: then a request is tried without it, and only that one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from seeact_offline.models.failures import Failure
from seeact_offline.models.provider import ModelOptions
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
COUNTS = "stream_options"
"""The wish for counts of tokens at the end of a stream."""
_LABELS = {SYSTEM: "system -> user", STREAM: "stream=false -> true"}
"""Ways to ask that are no parameters, and what takes their place."""
_OURS = frozenset({"messages", "model", "input", "stream", "stream_options", "n"})
"""Parameters that are ours alone: they make the request and its answer what they are."""
_TWINS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TIER = "service_tier"


def read_model_args(texts: Sequence[str]) -> dict[str, Any]:
    """`name=value` each; a value that is JSON is read as such, any other is a text. Raises ModelSpecError."""
    values: dict[str, Any] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not (mark and name.strip()):
            raise ModelSpecError("model_args", "NAME=VALUE", repr(text))
        try:
            values[name.strip()] = json.loads(value)
        except ValueError:
            values[name.strip()] = value
    return values


@dataclass(frozen=True, slots=True)
class Form:
    """One way to put a request."""

    sent: Mapping[str, Any]
    """The parameters."""
    gone: tuple[str, ...] = ()
    """Names of all that was left out, in order; of the limit of new tokens, the name under which it was refused."""
    labels: tuple[str, ...] = ()
    """The same for people: `max_tokens -> max_completion_tokens` for another name."""
    limits: Collection[str] = ()
    """Names under which the API knows a limit of new tokens."""

    def without(self, name: str, is_renamed: bool) -> Form:
        """The form without one of its parameters or ways to ask. `is_renamed`: it goes by its other name from now
        on."""
        twin = _TWINS[name] if is_renamed else ""
        label = f"{name} -> {twin}" if twin else _LABELS.get(name, name)
        sent = {twin if key == name else key: value for key, value in self.sent.items() if twin or key != name}
        return Form(sent, (*self.gone, name), (*self.labels, label), self.limits)

    @property
    def reply_limit(self) -> float:
        """Most tokens of a reply: the largest where several limits are sent. Infinite where the API knows none of them,
        or one is no number of tokens."""
        sent = {name: self.sent[name] for name in _LIMITS if name in self.sent}
        are_counts = all(
            isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 for limit in sent.values()
        )
        return max(sent.values()) if are_counts and sent.keys() & set(self.limits) else inf

    @property
    def tier(self) -> str:
        """The service tier that is asked for; empty for none."""
        return str(self.sent.get(_TIER, "")).lower()


class Parameters:
    """The form of requests now, and what of it may change."""

    def __init__(self, options: ModelOptions, api: Api) -> None:
        """Sends the options of `api` unless `model_args` say otherwise; a parameter that is None is not sent.

        Raises ModelSpecError for `model_args` that cannot be.
        """
        chosen = {name: value for name, value in options.model_args.items() if name != API}
        for name in chosen:
            if name in _OURS:
                raise ModelSpecError("model_args", f"parameters other than {', '.join(sorted(_OURS))}", name)
            same = [option for option, sent in api.names.items() if sent == name or _TWINS.get(sent) == name]
            if same and same[0] in options.typed:
                raise ModelSpecError("model_args", sentence=f"`model_args`: use {same[0]} or {name}, not both")
        ours = {name: getattr(options, option) for option, name in api.names.items()} | dict(api.own)
        has_limit = bool(_TWINS.keys() & chosen.keys())
        kept = {name: value for name, value in ours.items() if not (has_limit and name in _TWINS)}
        sent = {name: value for name, value in {**kept, **chosen}.items() if value is not None}
        limits = _TWINS.keys() if api.conversation == "messages" else {"max_output_tokens"}
        self.form = Form(sent, limits=tuple(limits))
        """Replaced, never changed: a request under way still holds the old one."""
        not_typed = {
            name for option, name in (*api.names.items(), ("image_detail", DETAIL)) if option not in options.typed
        }
        self._refusable = (not_typed | api.own.keys() | {SYSTEM, STREAM, COUNTS}) - chosen.keys()
        self._renamable = _TWINS.keys() & (ours.keys() - chosen.keys())
        self._suspected: frozenset[str] = frozenset()
        """Names that a server's words have blamed, and without which it then answered."""
        self._taken: set[str] = set()
        """Names of what stood in requests that were answered."""

    def give_way(self, parts: Collection[str], failure: Failure) -> bool:
        """Leaves out for good what the server certainly does not take of the `parts` of a request. True: ask again."""
        refused = (failure.refuses | (self._suspected & set(_blamed(parts, failure)))) - self._taken
        for name in parts:
            # another call may have been told so meanwhile
            if name in refused and name in self.form.gone:
                return True
            if name in refused and self.leave_out(name):
                return True
        return False

    def leave_out(self, name: str) -> bool:
        """Sends it no more, or by its other name as long as that was not refused; False for one of the user's."""
        if (left := self._left(self.form, name)) is not None:
            self.form = left
        return left is not None

    def control(self, form: Form, parts: Collection[str], failure: Failure) -> Form | None:
        """The form without what the server's words blame, for a trial that changes no other call; None where they blame
        nothing of ours."""
        forms = (self._left(form, name) for name in _blamed(parts, failure))
        # without any limit of new tokens, a call may cost anything
        return next((left for left in forms if left is not None and left.reply_limit <= form.reply_limit), None)

    def note_answer(self, form: Form, parts: Collection[str]) -> None:
        """Notes that a request of these parts was answered: none of them is to blame, what its form leaves out may
        be."""
        self._suspected = frozenset(form.gone) - set(self.form.gone)
        self._taken |= set(parts)

    def _left(self, form: Form, name: str) -> Form | None:
        """The form without this name, or with its twin; None where it is the user's."""
        twin = _TWINS.get(name, "")
        first = twin if twin in form.gone else name
        if name in self._renamable and twin not in form.gone:
            return form.without(name, is_renamed=True)
        return form.without(name, is_renamed=False) if first in self._refusable else None


def _blamed(parts: Collection[str], failure: Failure) -> list[str]:
    """The parts of a refused request that the server's words name: in a row of the table, or where no row fits."""
    if failure.status not in (400, 422) or failure.parsed_error is None or (failure.finding and not failure.refuses):
        return []
    named = failure.refuses or set(failure.parsed_error.parameters)
    sentences = () if failure.refuses else failure.parsed_error.sentences
    return [name for name in parts if name in named or any(_NAMED[name].search(sentence) for sentence in sentences)]


class _Patterns(dict[str, re.Pattern[str]]):
    """The ways in which a sentence names a part of a request as the cause of a refusal."""

    def __missing__(self, name: str) -> re.Pattern[str]:
        verbs = "may|must|can|should|is|does|value|parameter|argument|setting"
        spelt = rf"['\"`]{name}['\"`]|(?:parameter|argument|field|property)s?:? {name}\b|(?<![\w'])(?:invalid )?{name}(?: (?:{verbs})\b|\s*参数)"
        return self.setdefault(name, re.compile(spelt))


_NAMED = _Patterns(
    {
        SYSTEM: re.compile(
            r"\b(system|developer)\W+(\w+\W+)?(roles?|messages?|prompts?|instructions?)\b|\brole\W+(\w+\W+)?(system|developer)\b"
        ),
        STREAM: re.compile(
            r"\bstream(ing)?\b[^.]{0,40}\b(only|must|required?|supported|true)\b|\b(only|must|requires?|supports?)\b[^.]{0,40}\bstream(ing)?\b"
        ),
    }
)

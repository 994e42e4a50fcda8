"""OpenAI's models, and any other server that speaks its API, through the openai SDK. See docs/servers.md.

An attempt is one call of the SDK, which is told not to repeat it: `retrying` decides what is asked again, `breaker`
when the run stops, and `failures` names the failures.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import secrets
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from seeact_offline.files.redaction import redact
from seeact_offline.models import failures
from seeact_offline.models.address import KEY_VARIABLE, NO_KEY, Server, address_of, find_key, find_server
from seeact_offline.models.apis import ApiReply, find_api, is_stream, read_events, read_tier, read_usage
from seeact_offline.models.budget import Price
from seeact_offline.models.client import ServerModel
from seeact_offline.models.failures import Failure, ending
from seeact_offline.models.http_client import CONNECT_S, ReplyTooLarge, check_environment, library, open_client
from seeact_offline.models.parameters import COUNTS, DETAIL, STREAM, SYSTEM, Form, Parameters
from seeact_offline.models.prices import LISTED_HOSTS
from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.models.tokens import PromptCounts, possible_rules, rule_named
from seeact_offline.records import (
    CallRecord,
    Completion,
    ImageFormat,
    InputError,
    ModelSpecError,
    Picture,
    Request,
    Usage,
    did_you_mean,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class DataUrls:
    """Encodes each picture once while it is held: turn 2 shows the picture of turn 1 again, and equal crops have equal
    keys."""

    def __init__(self, image_format: ImageFormat) -> None:
        self._format = image_format
        self._urls: dict[str, Future[bytes]] = {}
        # more would not be done sooner, and each holds a page's pixels meanwhile
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1, "pictures")

    async def get(self, picture: Picture, coming: Sequence[Picture] = ()) -> bytes:
        """The URL in ASCII, encoded in a thread, for pages are large; `coming` follow there, while their page is
        decoded. Raises what `picture.encoded` raises."""
        url = self._urls.get(picture.key)
        if url is None:
            new = {each.key: each for each in (picture, *coming) if each.key not in self._urls}
            urls: dict[str, Future[bytes]] = {key: Future() for key in new}
            for key, each in new.items():
                weakref.finalize(each, self._urls.pop, key, None).atexit = False
            self._urls |= urls
            self._threads.submit(self._encode, [(each, urls[key]) for key, each in new.items()])
            url = urls[picture.key]
        # shielded: a step that is given up must not fail another that waits for the same picture
        return await asyncio.shield(asyncio.wrap_future(url))

    def _encode(self, pictures: list[tuple[Picture, Future[bytes]]]) -> None:
        for picture, url in pictures:
            try:
                content = base64.b64encode(picture.encoded(self._format))
                url.set_result(b"data:%b;base64,%b" % (self._format.mime.encode(), content))
            # any error is passed on, to those who wait for this picture
            except BaseException as error:
                self._urls.pop(picture.key, None)
                url.set_exception(error)


# --- the model ---

_PICTURE = secrets.token_hex(16)
"""Stands for a picture's URL while a request becomes JSON, so that megabytes of base64 are not looked through for
characters to escape. No page can know it."""
MOST_LISTED = 12
"""Most of a server's models that an error names."""
_REQUEST_ID_CHARS = 200
_REASON_CHARS = 60
DEAREST_TIER = 2.5
"""Times the usual price that a service tier without a price of its own is taken to cost."""


class OpenAIModel(ServerModel):
    """One model on one server. Belongs to the event loop that first asks it; close it in the same loop."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        """Raises ModelSpecError for an unusable base URL, for parameters that cannot be, and for a key that is
        missing."""
        self._name = name
        self._options = options
        self._server = find_server(options.base_url)
        self._key = _api_key(self._server)
        check_environment(self._server.host)
        self.api = find_api(options, self._server.is_openai)
        self.parameters = Parameters(options, self.api)
        self._asked_with = dict(self.parameters.form.sent)
        self.pictures = DataUrls(options.image_format)
        self.server = self._server.address
        self._client: AsyncOpenAI | None = None
        self._has_spoken = False
        """True once the server has answered in HTTP, whatever it said."""
        self._prompts = PromptCounts()
        self._odd_endings: Counter[str] = Counter()
        self._n_trials = 0
        """Replies to requests without a part that the server may have refused."""
        self._unpriced_tier = ""
        """A service tier in which the server has answered, though it may cost more and has no price."""

    @property
    def identity(self) -> dict[str, object]:
        """Everything that replies depend on except the messages. Holds no secret."""
        return {
            "model": f"openai/{self._name}",
            "base_url": self._server.address,
            **self._asked_with,
            **_shown(self._options),
        }

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters of ours that the server refused, and that were left out from then on."""
        return self.parameters.form.labels

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for the user on the options given, and on what the server has done since."""
        remarks = [*self._prompts.remarks]
        if "image_detail" in self._options.typed and not (self._server.is_openai or self._server.is_azure):
            remarks.insert(0, f"image_detail is OpenAI's own: {self._server.address} may ignore it")
        if self._n_trials > len(self.dropped):
            remarks.append(f"replies to requests without a parameter that the server blamed once: {self._n_trials}")
        if self._odd_endings:
            named = ", ".join(f"{reason} ({count})" for reason, count in sorted(self._odd_endings.items()))
            remarks.append(f"replies that ended for a reason that is not known, and were taken as they are: {named}")
        return tuple(remarks)

    @property
    def reply_limit(self) -> float:
        """Most tokens of a reply, by what is sent now; infinite where that says nothing."""
        return self.parameters.form.reply_limit

    async def prepare(self, request: Request) -> Callable[[], Awaitable[Completion | Failure]]:
        """Encodes the pictures; the result makes one attempt. Raises the RowError of a picture that cannot be
        encoded."""
        pictures = [message.picture for message in request.messages if message.picture is not None]
        urls = [await self.pictures.get(picture, request.coming) for picture in pictures]
        return lambda: self._attempt(request, urls)

    async def aclose(self) -> None:
        """Safe to call twice."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _attempt(self, request: Request, urls: list[bytes]) -> Completion | Failure:
        """One attempt; one more for each parameter that the server makes us leave out, or that its words blame. Raises
        InputError where there is a limit of what may be spent, and the attempt could cost anything."""
        trial: Form | None = None
        refusal: Failure | None = None
        while True:
            form = trial or self.parameters.form
            if self._options.budget is not None and self._options.budget.is_limited:
                check_bounded(form, self._options.price, self._unpriced_tier)
            outcome = await self._post(self.body(request, urls, form))
            if isinstance(outcome, Completion):
                self._prompts.add(request.messages, outcome.usage.prompt_tokens)
                self.parameters.note_answer(form, self.refusable(request, form))
                self._n_trials += trial is not None
                return outcome
            parts = self.refusable(request, form)
            if self.parameters.give_way(parts, outcome):
                trial = None
                continue
            trial = self.parameters.control(form, parts, outcome)
            if trial is None:
                # where the trial is refused too, the first words are what the user has to read
                is_refused_too = outcome.name == "bad_request" and outcome.unbilled
                return refusal if refusal is not None and is_refused_too else outcome
            refusal = refusal or outcome

    def refusable(self, request: Request, form: Form) -> list[str]:
        """Names of all of this request that a server may refuse: parameters, and ways to ask."""
        streams = STREAM in form.gone
        forms = {
            DETAIL: any(message.picture is not None for message in request.messages),
            SYSTEM: any(message.role == SYSTEM for message in request.messages),
            STREAM: True,
            COUNTS: streams and self.api.conversation == "messages",
        }
        return [*form.sent, *(name for name, is_sent in forms.items() if is_sent and name not in form.gone)]

    async def _post(self, body: bytes) -> Completion | Failure:
        from openai import APIStatusError, OpenAIError

        try:
            async with asyncio.timeout(self._options.timeout_s):
                response = await self._opened().post(self.api.path, cast_to=library().Response, content=body)
        except APIStatusError as error:
            self._has_spoken = True
            failure = failures.of_status(error.status_code, error.response.headers, error.response.content)
            if not (failure.hopeless and failure.name == "bad_request") or self._server.is_azure:
                return failure
            if models := await self._other_models():
                return replace(failure, detail=failure.detail + models)
            # no models at this address either
            return failure.with_advice(self._path_advice())
        except (OpenAIError, TimeoutError, ReplyTooLarge) as error:
            # only its words: a traceback must not print the SDK's own error, which may quote the key
            failure = failures.of_exception(error)
            # an answer that is no HTTP, or silence where TLS is usual
            speaks_tls = "illegal" in failure.detail or urlsplit(self._server.url).port in (443, 8443)
            hung_up = failure.name == "connection_failed" and not failure.unreachable and not self._has_spoken
            is_likely = hung_up and speaks_tls and self._server.url.startswith("http:")
            return failure.with_advice("if the port speaks TLS, write https:// in --base-url" if is_likely else "")
        self._has_spoken = True
        outcome = self.read(response.content, response.headers)
        # a success is billed, whether or not it can be read, but for an error in its place
        is_refused = isinstance(outcome, Failure) and outcome.unbilled
        return outcome if outcome.usage.calls or is_refused else replace(outcome, usage=failures.UNREAD)

    def _path_advice(self) -> str:
        """Names a likely fault of the address; empty where it has a version in it, as `/v1`."""
        path = urlsplit(self._server.url).path
        if path.rstrip("/").endswith(self.api.path):
            return f"leave {self.api.path} off --base-url"
        return "" if re.search(r"/v\d", path) or "/openai" in path else "--base-url may lack /v1 at its end"

    async def _other_models(self) -> str:
        """The names of the server's models, in words, for a model that it does not have; empty where it does not list
        them."""
        from openai import OpenAIError

        try:
            async with asyncio.timeout(CONNECT_S):
                listed = await self._opened().get("/models", cast_to=library().Response)
            rows = json.loads(listed.content)["data"]
            names = [str(row["id"]) for row in rows]
        except (OpenAIError, TimeoutError, ReplyTooLarge, ValueError, LookupError, TypeError, RecursionError):
            return ""
        more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
        shown = failures.scrubbed(", ".join(names[:MOST_LISTED]) or "none")
        return f"; it has {shown}{more}{failures.scrubbed(did_you_mean(self._name, ', '.join(names)))}"

    def body(self, request: Request, urls: list[bytes], form: Form) -> bytes:
        """The JSON of a request, `urls` in the place of its pictures."""
        look = {} if DETAIL in form.gone else {DETAIL: str(self._options.image_detail)}
        messages = self.api.messages(request.messages, _PICTURE, look, SYSTEM not in form.gone)
        streamed: dict[str, Any] = {"stream": True} if STREAM in form.gone else {}
        if streamed and self.api.conversation == "messages" and COUNTS not in form.gone:
            streamed[COUNTS] = {"include_usage": True}
        text = json.dumps({"model": self._name, self.api.conversation: messages, **form.sent, **streamed})
        first, *others = text.encode("ascii").split(_PICTURE.encode("ascii"))
        return b"".join([first, *(part for url, rest in zip(urls, others, strict=True) for part in (url, rest))])

    def read(self, content: bytes, headers: Mapping[str, str]) -> Completion | Failure:
        """Reads the body of a success. Nothing of it is sure to be as documented."""
        who = self._server.address
        try:
            # some servers send pieces where a whole reply was asked for
            streams = is_stream(content) or headers.get("content-type", "").startswith("text/event-stream")
            body = read_events(content) if streams else json.loads(content)
        except (ValueError, RecursionError, AttributeError, TypeError) as error:
            beginning = failures.scrubbed(content.decode("utf-8", "replace"))[:80]
            detail = f"{who} answered with something that is not JSON: {error}: {beginning}"
            return failures.malformed(detail).with_advice(self._path_advice())
        reported, reply = read_usage(body), self.api.read(body)
        usage = self._priced(reported, read_tier(body), bool(reply and reply.text))
        if reply is not None:
            return self._outcome(reply, usage, headers)
        detail = f"{who} answered with something that is not a chat completion: {failures.scrubbed(content.decode('utf-8', 'replace'))[:200]}"
        failure = failures.of_body(body, headers, None if reported == failures.UNREAD else usage)
        if failure is None:
            return replace(failures.malformed(detail), usage=usage)
        is_missing = failure.hopeless and failure.name == "bad_request"
        return failure.with_advice(self._path_advice() if is_missing else "")

    def _outcome(self, reply: ApiReply, usage: Usage, headers: Mapping[str, str]) -> Completion | Failure:
        end = ending(reply.stopped_by)
        if reply.error or end == "server_error":
            return replace(failures.of_torn_reply(reply.error, reply.stopped_by, reply.text, headers), usage=usage)
        if reply.refusal or end == "refused":
            by = "" if reply.stopped_by in (None, "content_filter") else f" ({reply.stopped_by})"
            detail = failures.scrubbed(reply.refusal or f"stopped by the server's content filter{by}")
            return Failure("refused", detail, usage=usage)
        is_blank = reply.text is None or (isinstance(reply.text, str) and not reply.text.strip())
        thought = "; it wrote thoughts alone: raise --max-tokens" if reply.thoughts and is_blank else ""
        if end == "truncated":
            detail = failures.truncated(reply.text, "the limit of new tokens (max_tokens)")
            return Failure("truncated", detail + thought, usage=usage)
        if is_blank or end == "empty_reply":
            # a blank reply is the model's own when it keeps saying so
            detail = failures.scrubbed(f"the server sent no text (finish reason {reply.stopped_by})") + thought
            return Failure("empty_reply", detail, usage=usage)
        if not isinstance(reply.text, str):
            return replace(failures.malformed(f"the reply's content is a {type(reply.text).__name__}"), usage=usage)
        named = headers.get("x-request-id") or headers.get("request-id")
        request_id = failures.scrubbed(named)[:_REQUEST_ID_CHARS] if named else None
        reason = failures.scrubbed(str(reply.stopped_by))[:_REASON_CHARS] if end == "unknown" else None
        if reason is not None:
            self._odd_endings[reason] += 1
        return Completion(redact(reply.text), usage, CallRecord(request_id=request_id, finish_reason=reason))

    def _priced(self, usage: Usage, tier: str, has_text: bool) -> Usage:
        """The usage with its cost: the larger of what the server names and what its tokens cost in the tier in which it
        has answered. Every call has a prompt, so a server that counts nothing has not said what was used."""
        price = self._options.price
        if not usage.prompt_tokens or (has_text and not usage.completion_tokens):
            return msgspec.structs.replace(usage, cost_usd=usage.cost_usd or None, unreported=1)
        if price is None:
            return usage
        own = price.in_tier(tier)
        if own is None:
            self._unpriced_tier = tier
        cost = (own or price).of(usage.prompt_tokens, usage.completion_tokens) * (1.0 if own else DEAREST_TIER)
        return msgspec.structs.replace(usage, cost_usd=max(cost, usage.cost_usd or 0.0))

    def _opened(self) -> AsyncOpenAI:
        """The client, made on first use: it belongs to the running loop."""
        if self._client is None:
            self._client = open_client(self._server, self._key, self._options.timeout_s)
        return self._client


def _api_key(server: Server) -> str:
    """The key of the environment. Raises ModelSpecError for one that is missing, or that no header can carry."""
    key = find_key(server)
    if key == NO_KEY and server.is_default:
        raise ModelSpecError(
            "model",
            sentence="`model` openai/NAME needs an API key in the environment variable OPENAI_API_KEY, or the `base_url` of a server that needs none",
        )
    if not (key.isascii() and key.isprintable()):
        raise ModelSpecError(KEY_VARIABLE, "printable ASCII", "other characters")
    if key[0] in "'\"" and key[-1] == key[0]:
        raise ModelSpecError(KEY_VARIABLE, "the key alone", "one in quotation marks")
    return key


def check_bounded(form: Form, price: Price | None, answered_in: str = "") -> None:
    """Raises InputError for a call that may cost anything. `answered_in`: a service tier without a price, of an earlier
    reply."""
    if form.reply_limit == inf:
        got = "none is sent (-M), or the server takes none"
        raise InputError(
            "max_cost",
            sentence=f"`max_cost` needs a limit of new tokens, without which a call may cost anything; {got}",
        )
    if price is not None and (answered_in or price.in_tier(form.tier) is None):
        wanted = f"a price of the service tier {(answered_in or form.tier)!r}, in a file for --price"
        raise InputError(
            "max_cost", sentence=f"`max_cost` needs {wanted}{', as the server answers in it' if answered_in else ''}"
        )


def _check_spending(options: ModelOptions) -> None:
    parameters = Parameters(options, find_api(options, find_server(options.base_url).is_openai))
    check_bounded(parameters.form, options.price)


def _identity(name: str, options: ModelOptions) -> dict[str, Any]:
    """A server counts by its address and what it is asked with."""
    asked = {"temperature": options.temperature, "max_tokens": options.max_tokens, **_shown(options)}
    more = {"model_args": dict(options.model_args)} if options.model_args else {}
    return {"model": f"openai/{name}", "base_url": address_of(options.base_url), **asked, **more}


def _shown(options: ModelOptions) -> dict[str, str]:
    """The form in which pictures are sent. Identities made before there was a choice lack it: PNG files before the
    text."""
    return {"image_detail": options.image_detail, "image_format": str(options.image_format)}


PROVIDER = Provider(
    usage=("NAME",),
    open=OpenAIModel,
    identity=_identity,
    options=(
        *("base_url", "max_tokens", "temperature", "image_detail", "image_format", "model_args", "typed"),
        *("timeout_s", "max_retries", "max_wait_s", "fail_on_error", "concurrency", "rpm", "tpm", "seed"),
    ),
    takes_batches=True,
    server=address_of,
    is_listed=lambda base_url: find_server(base_url).host in LISTED_HOSTS,
    image_rule=lambda name, options: rule_named(name),
    picture_rules=possible_rules,
    reports_cost=True,
    check_spending=_check_spending,
)

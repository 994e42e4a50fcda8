"""OpenAI's models, and any other server that speaks its API, through the openai SDK. See docs/servers.md.

An attempt is one call of the SDK, which is told not to repeat it: `retrying` decides what is asked again, `breaker` when the run stops,
and `failures` names the failures.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seeact_offline.files.redaction import redact
from seeact_offline.models import failures
from seeact_offline.models.address import KEY_VARIABLE, NO_KEY, Server, address_of, azure_key, find_server
from seeact_offline.models.apis import ApiReply, find_api
from seeact_offline.models.data_urls import BUDGET, DataUrls
from seeact_offline.models.environment import variable
from seeact_offline.models.failures import Failure
from seeact_offline.models.http_client import (
    CONNECT_S,
    ReplyTooLarge,
    bounded_client,
    check_environment,
    environment_settings,
    library,
)
from seeact_offline.models.image_tokens import rule_named
from seeact_offline.models.parameters import DETAIL, Parameters
from seeact_offline.models.prices import LISTED_HOSTS
from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.records import CallRecord, Completion, ModelSpecError, Request, Usage, did_you_mean

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_PICTURE = secrets.token_hex(16)
"""Stands for a picture's URL while a request becomes JSON, so that megabytes of base64 are not looked through for characters to
escape. No page can know it."""
MOST_LISTED = 12
"""Most of a server's models that an error names."""
_REQUEST_ID_CHARS = 200
_URL_CHARS = 2_000_000
"""Characters of pictures' URLs that are kept for each call in flight: turn 2 shows the picture of turn 1 again."""


class OpenAIModel:
    """One model on one server. Belongs to the event loop that first asks it; close it in the same loop."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        """Raises ModelSpecError for an unusable base URL, for parameters that cannot be, and for a key that is missing."""
        self._name = name
        self._options = options
        self._server = find_server(options.base_url)
        self._key = _api_key(self._server)
        check_environment(self._server.host)
        self.api = find_api(options, self._server.is_openai)
        self.parameters = Parameters(options, self.api)
        self._asked_with = dict(self.parameters.sent)
        self.pictures = DataUrls(options.image_format, max(BUDGET, options.concurrency * _URL_CHARS))
        self.server = self._server.address
        self._client: AsyncOpenAI | None = None

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
        return self.parameters.dropped

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for the user on the options given."""
        if "image_detail" not in self._options.typed or self._server.is_openai or self._server.is_azure:
            return ()
        return (f"image_detail is OpenAI's own: {self._server.address} may ignore it",)

    async def prepare(self, request: Request) -> Callable[[], Awaitable[Completion | Failure]]:
        """Encodes the pictures; the result makes one attempt. Raises the RowError of a picture that cannot be encoded."""
        urls = [await self.pictures.get(message.picture) for message in request.messages if message.picture is not None]
        return lambda: self._attempt(request, urls)

    async def aclose(self) -> None:
        """Safe to call twice."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _attempt(self, request: Request, urls: list[str]) -> Completion | Failure:
        """One attempt; one more for each parameter that the server makes us leave out."""
        while True:
            sent = self.parameters.sent
            with_detail = self.parameters.sends_detail
            outcome = await self._post(self.body(request, urls, sent, with_detail))
            refusable = [*sent, DETAIL] if with_detail and urls else [*sent]
            if not (isinstance(outcome, Failure) and self.parameters.give_way(refusable, outcome)):
                return outcome

    async def _post(self, body: bytes) -> Completion | Failure:
        from openai import APIStatusError, Omit, OpenAIError

        client, azure = self._opened(), azure_key(self._server)
        headers: Any = {"api-key": azure, "Authorization": Omit()} if azure else {}
        try:
            async with asyncio.timeout(self._options.timeout_s):
                response = await client.post(
                    self.api.path, cast_to=library().Response, content=body, options={"headers": headers}
                )
        except APIStatusError as error:
            failure = failures.of_status(error.status_code, error.response.headers, error.response.content)
            is_missing = failure.hopeless and failure.name == "bad_request" and not azure
            return replace(failure, detail=failure.detail + await self._other_models()) if is_missing else failure
        except (OpenAIError, TimeoutError, ReplyTooLarge) as error:
            # only its words: a traceback must not print the SDK's own error, which may quote the key
            return failures.of_exception(error)
        return self.read(response.content, response.headers)

    async def _other_models(self) -> str:
        """The names of the server's models, in words, for a model that it does not have; empty where it does not list them."""
        from openai import OpenAIError

        try:
            async with asyncio.timeout(CONNECT_S):
                listed = await self._opened().get("/models", cast_to=library().Response)
            rows = json.loads(listed.content)["data"]
            names = [str(row["id"]) for row in rows]
        except (OpenAIError, TimeoutError, ReplyTooLarge, ValueError, LookupError, TypeError, RecursionError):
            return ""
        more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
        shown = failures.scrubbed(", ".join(name[:100] for name in names[:MOST_LISTED]) or "none")
        return f"; it has {shown}{more}{failures.scrubbed(did_you_mean(self._name, ', '.join(names)))}"

    def body(self, request: Request, urls: list[str], sent: Mapping[str, Any], with_detail: bool) -> bytes:
        """The JSON of a request, `urls` in the place of its pictures."""
        look = {DETAIL: str(self._options.image_detail)} if with_detail else {}
        messages = self.api.messages(request.messages, _PICTURE, look)
        text = json.dumps({"model": self._name, self.api.conversation: messages, **sent})
        first, *others = text.encode("ascii").split(_PICTURE.encode("ascii"))
        return b"".join(
            [first, *(part for url, rest in zip(urls, others, strict=True) for part in (url.encode(), rest))]
        )

    def read(self, content: bytes, headers: Mapping[str, str]) -> Completion | Failure:
        """Reads the body of a success. Nothing of it is sure to be as documented."""
        who = self._server.address
        try:
            body = json.loads(content)
        except (ValueError, RecursionError) as error:
            found = content[:80].decode("utf-8", "replace")
            return failures.malformed(f"{who} answered with something that is not JSON: {error}: {found}")
        said = self.api.read(body)
        if said is None:
            detail = f"{who} answered with something that is not a chat completion: {content[:200].decode('utf-8', 'replace')}"
            return failures.of_body(body, headers) or failures.malformed(detail)
        return self._outcome(said, headers)

    def _outcome(self, said: ApiReply, headers: Mapping[str, str]) -> Completion | Failure:
        usage = Usage(calls=1, cost_usd=None, unreported=1)
        if (tokens := said.tokens) is not None:
            usage = Usage(1, tokens.prompt, tokens.completion, tokens.images, None)
        if said.refusal or said.stopped_by == "content_filter":
            detail = failures.scrubbed(said.refusal or "stopped by the server's content filter")
            return Failure("refused", detail, usage=usage)
        if said.stopped_by == "length":
            detail = failures.truncated(said.text, "the limit of new tokens (max_tokens)")
            return Failure("truncated", detail, usage=usage)
        if said.text is None or (isinstance(said.text, str) and not said.text.strip()):
            # a blank reply is the model's own when it keeps saying so
            detail = failures.scrubbed(f"the server sent no text (finish reason {said.stopped_by})")
            return Failure("empty_reply", detail, usage=usage)
        if not isinstance(said.text, str):
            return failures.malformed(f"the reply's content is a {type(said.text).__name__}")
        named = headers.get("x-request-id") or headers.get("request-id")
        request_id = failures.scrubbed(named)[:_REQUEST_ID_CHARS] if named else None
        return Completion(redact(said.text), usage, CallRecord(request_id=request_id))

    def _opened(self) -> AsyncOpenAI:
        """The client, made on first use: it belongs to the running loop, and its import takes most of a second."""
        if self._client is None:
            from openai import AsyncOpenAI, Timeout

            timeout = Timeout(self._options.timeout_s, connect=min(CONNECT_S, self._options.timeout_s))
            self._client = AsyncOpenAI(
                api_key=self._key,
                base_url=self._server.url,
                default_query=dict(self._server.query),
                timeout=timeout,
                max_retries=0,
                http_client=bounded_client(timeout=timeout, **environment_settings(self._server.host)),
            )
        return self._client


def _api_key(server: Server) -> str:
    """The key from the environment. A server of one's own may need none, but the SDK insists on sending one."""
    key = azure_key(server) or variable(KEY_VARIABLE)
    if not key and server.is_default:
        raise ModelSpecError(
            "model",
            "an API key for openai/NAME in the environment variable OPENAI_API_KEY, or base_url of a server that needs none",
            "neither",
        )
    if not (key.isascii() and key.isprintable()):
        raise ModelSpecError(KEY_VARIABLE, "printable ASCII", "other characters")
    return key or NO_KEY


def _identity(name: str, options: ModelOptions) -> dict[str, Any]:
    """A server counts by its address and what it is asked with."""
    asked = {"temperature": options.temperature, "max_tokens": options.max_tokens, **_shown(options)}
    more = {"model_args": dict(options.model_args)} if options.model_args else {}
    return {"model": f"openai/{name}", "base_url": address_of(options.base_url), **asked, **more}


def _shown(options: ModelOptions) -> dict[str, str]:
    """The form in which pictures are sent. Identities made before there was a choice lack it: PNG files before the text."""
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
)

"""OpenAI's models, and any other server that speaks its chat completions API, through the openai SDK.

Messages: the system text; then user messages whose picture, if any, is the content part after the text, as in SeeAct's
released code (`src/demo_utils/inference_engine.py`); the model's own earlier replies as the assistant's. The SDK retries what
may pass (429, 5xx, lost connections, timeouts) and waits for as long as the server asks; what is left becomes a CallError,
named in `_failure_name`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seeact_offline.files.redaction import redact, redact_reported
from seeact_offline.models.address import Server, address_of, find_server
from seeact_offline.models.cache import CachedModel
from seeact_offline.models.data_urls import DataUrls
from seeact_offline.models.provider import ModelOptions, Price, Provider
from seeact_offline.records import CallError, Completion, Message, Model, ModelSpecError, Request, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion

DETAIL_CHARS = 300
_CONNECT_S = 10.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FIXED_TEMPERATURE = re.compile(r"(o\d|gpt-5)")
"""Reasoning models: they refuse any temperature but their own."""
_POLICY_CODES = ("content_filter", "content_policy_violation")


class OpenAIModel:
    """One model on one server. Belongs to the event loop that first asks it; close it in the same loop."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        """Raises ModelSpecError for a base URL that is none, and where OpenAI itself is asked without a key."""
        self._name = name
        self._options = options
        self._server = find_server(options.base_url)
        self._key = _api_key(self._server)
        self._pictures = DataUrls(options.image_format)
        self._client: AsyncOpenAI | None = None

    @property
    def identity(self) -> dict[str, object]:
        """All that replies depend on beside the messages. Holds no secret."""
        return {
            "model": f"openai/{self._name}",
            "base_url": self._server.address,
            **self._sampling(),
            **_shown(self._options),
        }

    async def complete(self, request: Request) -> Completion:
        """Asks once, retries included. Raises CallError, and the RowError of a picture that cannot be encoded."""
        from openai import OpenAIError

        messages: Any = [await self._encoded(message) for message in request.messages]
        settings: Any = self._sampling()
        try:
            reply = await self._opened().chat.completions.create(model=self._name, messages=messages, **settings)
        except OpenAIError as error:
            failure = CallError(_failure_name(error), _scrubbed(_explained(error)))
        except ValueError as error:
            failure = CallError("api_error", _scrubbed(f"the server's answer is not JSON: {error}"))
        else:
            return self._read(reply)
        # raised outside of the handlers: a traceback must not print the SDK's own error, which may quote the key
        raise failure

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _opened(self) -> AsyncOpenAI:
        """The client, made on first use: it belongs to the running loop, and its import takes most of a second."""
        if self._client is None:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

            # a proxy set for the outside world does not reach this machine's own servers
            local = self._server.host in _LOOPBACK
            timeout = Timeout(self._options.timeout_s, connect=min(_CONNECT_S, self._options.timeout_s))
            self._client = AsyncOpenAI(
                api_key=self._key,
                base_url=self._server.url,
                default_query=dict(self._server.query),
                timeout=timeout,
                max_retries=self._options.max_retries,
                http_client=DefaultAsyncHttpxClient(trust_env=False, timeout=timeout) if local else None,
            )
        return self._client

    def _sampling(self) -> dict[str, object]:
        """OpenAI's newer models refuse `max_tokens`; other servers often know nothing else."""
        limit = "max_completion_tokens" if self._server.is_openai else "max_tokens"
        sampling: dict[str, object] = {limit: self._options.max_tokens, "seed": self._options.seed}
        fixed = _FIXED_TEMPERATURE.match(self._name.rpartition("/")[2])
        if self._options.temperature is not None and not fixed:
            sampling["temperature"] = self._options.temperature
        return sampling

    async def _encoded(self, message: Message) -> dict[str, object]:
        text = _sendable(message.text)
        if message.picture is None:
            return {"role": message.role, "content": text}
        image = {"url": await self._pictures.get(message.picture), "detail": self._options.image_detail}
        parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": image}]
        return {"role": message.role, "content": parts}

    def _read(self, reply: ChatCompletion) -> Completion:
        """The reply's text and cost. The SDK checks no types: what is not as documented is a failure, not a crash."""
        choices = getattr(reply, "choices", None)
        choice = choices[0] if choices else None
        message = getattr(choice, "message", None)
        if choice is None or message is None:
            detail = f"{self._server.address} answered with something that is not a chat completion: {reply}"
            raise CallError("api_error", _scrubbed(detail))
        finish = choice.finish_reason
        usage = _usage(reply.usage, self._options.price)
        if message.refusal or finish == "content_filter":
            raise CallError("refused", _scrubbed(message.refusal or "stopped by the server's content filter"), usage)
        if finish == "length":
            raise CallError("truncated", f"the reply did not fit in max_tokens {self._options.max_tokens}", usage)
        if not isinstance(message.content, str) or not message.content.strip():
            raise CallError("empty_reply", f"the server sent no text (finish reason {finish})", usage)
        return Completion(redact(message.content), usage)


def _sendable(text: str) -> str:
    """JSON rows can hold halves of surrogate pairs, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _api_key(server: Server) -> str:
    """The key from the environment. A server of one's own may need none, but the SDK insists on sending one."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and server.is_default:
        raise ModelSpecError(
            "model",
            "an API key for openai/NAME in the environment variable OPENAI_API_KEY, or base_url of a server that needs none",
            "neither",
        )
    if not (key.isascii() and key.isprintable()):
        raise ModelSpecError("OPENAI_API_KEY", "printable ASCII", "other characters")
    return key or "no-key-needed"


def _usage(usage: CompletionUsage | None, price: Price | None) -> Usage:
    """What one call cost; its price in USD is not known when the server counts nothing or no price is given."""
    if usage is None:
        return Usage(calls=1, cost_usd=None)
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    images = getattr(usage.prompt_tokens_details, "image_tokens", None) or 0
    cost = None if price is None else (prompt * price.prompt + completion * price.completion) / 1_000_000
    return Usage(1, prompt, completion, images, cost)


def _failure_name(error: Exception) -> str:
    """The failure as counted in the results."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return "timeout"
    if isinstance(error, openai.APIConnectionError):
        return "connection_failed"
    if not isinstance(error, openai.APIStatusError):
        return "api_error"
    if error.code in _POLICY_CODES:
        return "refused"
    return _status_name(error.status_code)


def _status_name(status: int) -> str:
    named = {401: "auth_failed", 403: "auth_failed", 408: "timeout", 429: "rate_limited"}
    if status in named:
        return named[status]
    return "server_error" if status >= 500 else "bad_request"


def _explained(error: Exception) -> str:
    """The SDK's sentence, with the cause of a lost connection or the body of an answer that it did not understand."""
    body = getattr(error, "body", None)
    known = isinstance(body, dict) and bool(body.get("message"))
    causes: Sequence[object] = [error.__cause__, None if known else body]
    return ": ".join([str(error).rstrip("."), *(str(cause) for cause in causes if cause)])


def _scrubbed(detail: str) -> str:
    """One line of at most DETAIL_CHARS characters without secrets: servers like to quote what they refuse."""
    return redact_reported(detail)[:DETAIL_CHARS]


def _open(name: str, options: ModelOptions) -> Model:
    model = OpenAIModel(name, options)
    return model if options.cache is None else CachedModel(model, options.cache, model.identity)


def _identity(name: str, options: ModelOptions) -> dict[str, Any]:
    """A server counts by its address and what it is asked with."""
    asked = {"temperature": options.temperature, "max_tokens": options.max_tokens, **_shown(options)}
    return {"model": f"openai/{name}", "base_url": address_of(options.base_url), **asked}


def _shown(options: ModelOptions) -> dict[str, str]:
    """How pictures are sent. Identities made before there was a choice lack these: PNG files before the text."""
    return {"image_detail": options.image_detail, "image_format": str(options.image_format)}


PROVIDER = Provider(
    usage=("NAME",),
    open=_open,
    identity=_identity,
    options=(
        *("base_url", "max_tokens", "temperature", "image_detail", "image_format"),
        *("timeout_s", "max_retries", "price", "seed"),
    ),
)

"""The openai SDK's client for servers that may be broken or hostile. Live calls and batches share it.

A reply is read whole before the SDK sees it, and no further than MAX_REPLY_BYTES of its unpacked body: an endless
stream, or a small one that unpacks to gigabytes, costs no more memory than that. A file that is streamed is bounded by
its caller, with `pieces`. A redirect is not followed, for it could lead the key, and the pages, to another host.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from seeact_offline.files.redaction import redact_reported
from seeact_offline.models.address import Server, azure_key
from seeact_offline.records import ModelSpecError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MAX_REPLY_BYTES = 8_000_000
CONNECT_S = 10.0
_PROXIES = ("all_proxy", "https_proxy", "http_proxy")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""This machine's own servers, which a proxy set for the outside world does not reach."""
_PACKED = ("content-encoding", "content-length", "transfer-encoding")
"""Headers of a body as it was sent, which no longer hold once it is read and unpacked."""


class ReplyTooLarge(Exception):
    """A body of more bytes than are read, or one that may be."""


def open_client(server: Server, key: str, timeout_s: float) -> AsyncOpenAI:
    """The server's client, which repeats no call. It belongs to the running loop; its import takes most of a second."""
    from openai import AsyncOpenAI, Timeout

    timeout, azure = Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)), azure_key(server)

    async def name_key(request: Any) -> None:
        if azure:
            request.headers["api-key"] = azure
            request.headers.pop("Authorization", None)

    hooks = {"request": [name_key]}
    return AsyncOpenAI(
        api_key=key,
        base_url=server.url,
        default_query=dict(server.query),
        timeout=timeout,
        max_retries=0,
        http_client=bounded_client(timeout=timeout, trust_env=server.host not in LOOPBACK, event_hooks=hooks),
    )


def bounded_client(**settings: Any) -> Any:
    """A client for `AsyncOpenAI(http_client=...)`. `send` raises ReplyTooLarge, and what the SDK's own client
    raises."""
    from openai import DefaultAsyncHttpxClient

    class BoundedClient(DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            response = await super().send(request, **{**options, "stream": True})
            if options.get("stream") and response.is_success:
                return response
            content = bytearray()
            try:
                async for piece in pieces(response, MAX_REPLY_BYTES):
                    content += piece
            finally:
                await response.aclose()
            headers = [(name, value) for name, value in response.headers.multi_items() if name not in _PACKED]
            return type(response)(
                response.status_code, headers=headers, content=bytes(content), request=response.request
            )

    # calls in flight are limited before they come here; the SDK would close all but 100 idle connections
    return BoundedClient(follow_redirects=False, limits=library().Limits(), **settings)


def library() -> Any:
    """httpx or httpx2, whichever the SDK uses."""
    from openai import DefaultAsyncHttpxClient

    return sys.modules[DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]]


def check_environment(host: str) -> None:
    """Opens a client once. Raises ModelSpecError naming the variable of proxies or certificates with which none can be
    opened."""
    if host in LOOPBACK:
        return
    try:
        bounded_client()
    except ImportError:
        got = f"a SOCKS proxy, which needs the package socksio: run {sys.executable} -m pip install socksio"
        raise ModelSpecError(_proxies("socks"), "a proxy that can be used", got) from None
    except OSError as error:
        names = [name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ]
        names = [name for name in names if not os.path.exists(os.environ[name])] or names
        got = ", ".join(os.environ[name] for name in names)
        raise ModelSpecError(
            " or ".join(names) or "certificates", "certificates", f"{got}: {error.strerror or error}"
        ) from None
    except ValueError as error:
        raise ModelSpecError(_proxies(""), "the URL of an HTTP or SOCKS proxy", redact_reported(str(error))) from None


def _proxies(scheme: str) -> str:
    """The variables that name a proxy whose URL begins so."""
    named = {name: url for name, url in os.environ.items() if name.lower() in _PROXIES}
    return " or ".join(name for name, url in named.items() if url.lower().startswith(scheme)) or "a proxy"


async def pieces(response: Any, most: int) -> AsyncIterator[bytes]:
    """The unpacked body as it comes. Raises ReplyTooLarge for one of more than `most` bytes."""
    announced = response.headers.get("content-length", "")
    if announced.isdecimal() and len(announced) < 20 and int(announced) > most:
        raise ReplyTooLarge(f"a body of {announced} bytes; {most} are read at most")
    if "," in response.headers.get("content-encoding", ""):
        # older httpx unpacks a piece of 64 kB whole: a thousandfold is bearable, a thousandfold of that is not
        raise ReplyTooLarge("a body packed more than once, which may unpack to any size")
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > most:
            raise ReplyTooLarge(f"a body of more than {most} bytes")
        yield piece

"""The HTTP client under the openai SDK, for servers that may be broken or hostile.

A reply is read whole before the SDK sees it, and no further than MAX_REPLY_BYTES of its unpacked body: an endless stream, or a
small one that unpacks to gigabytes, costs no more memory than that. A redirect is not followed, for it could lead the key,
and the pages, to another host.
"""

from __future__ import annotations

import sys
from typing import Any

MAX_REPLY_BYTES = 8_000_000
CONNECT_S = 10.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PACKED = ("content-encoding", "content-length", "transfer-encoding")
"""Headers of a body as it was sent, which no longer hold once it is read and unpacked."""


class ReplyTooLarge(Exception):
    """A body of more than MAX_REPLY_BYTES, or one that may be."""


def bounded_client(**settings: Any) -> Any:
    """A client for `AsyncOpenAI(http_client=...)`. `send` raises ReplyTooLarge, and what the SDK's own client raises."""
    from openai import DefaultAsyncHttpxClient

    class BoundedClient(DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            options["stream"] = True
            response = await super().send(request, **options)
            try:
                content = await _read(response)
            finally:
                await response.aclose()
            headers = [(name, value) for name, value in response.headers.multi_items() if name not in _PACKED]
            return type(response)(response.status_code, headers=headers, content=content, request=response.request)

    return BoundedClient(follow_redirects=False, **settings)


def library() -> Any:
    """httpx or httpx2, whichever the SDK uses."""
    from openai import DefaultAsyncHttpxClient

    return sys.modules[DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]]


def environment_settings(host: str) -> dict[str, Any]:
    """Settings of a client: a proxy set for the outside world does not reach this machine's own servers."""
    return {"trust_env": False} if host in _LOOPBACK else {}


async def _read(response: Any) -> bytes:
    announced = response.headers.get("content-length", "")
    if announced.isdecimal() and len(announced) < 20 and int(announced) > MAX_REPLY_BYTES:
        raise ReplyTooLarge(f"a body of {announced} bytes; {MAX_REPLY_BYTES} are read at most")
    if "," in response.headers.get("content-encoding", ""):
        # older httpx unpacks a piece of 64 kB whole: a thousandfold is bearable, a thousandfold of that is not
        raise ReplyTooLarge("a body packed more than once, which may unpack to any size")
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_REPLY_BYTES:
            raise ReplyTooLarge(f"a body of more than {MAX_REPLY_BYTES} bytes")
    return bytes(body)

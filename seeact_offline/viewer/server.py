"""Serves a site on this machine alone, and decides which requests may read and write.

A page of another website must not read or write here: a request must name this host (against names that are made to
point at this machine), and a write must come from this page and carry the token of the start-up link. The browser is
told to run no script and to load nothing from elsewhere.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

from seeact_offline.files.extras import install_command
from seeact_offline.records import InputError
from seeact_offline.viewer.site_files import File

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

LOG = logging.getLogger(__name__)
PACKAGES = ("starlette", "uvicorn")
LOOPBACK = "127.0.0.1"
POLICY = "; ".join([
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:", "connect-src 'self'",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    "trusted-types 'none'",
])  # fmt: skip
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers of every answer."""
TOKEN = "X-Seeact-Token"
MAX_BODY = 64_000
"""Most bytes of one write."""
AT_ONCE = 2
"""Answers made at the same time."""
IDLE = 5.0
"""Seconds after which a connection ends that has no request under way, or only part of one."""
PICTURES_FOR = "private, max-age=3600"
"""A picture's name is made from what it shows."""


class FileSource(Protocol):
    """Files by name, of which some can be written to."""

    def get(self, name: str) -> File | None: ...

    def post(self, name: str, body: Mapping[str, Any]) -> tuple[int, Any]: ...


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a site."""

    host: str
    port: int
    bound: str = LOOPBACK
    """The address of `host`."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Known to those who have the start-up link."""

    @property
    def hosts(self) -> frozenset[str]:
        """Names of this machine in requests: browsers write an address in one way only, and a name in ASCII."""
        ascii_host = self.host.encode("idna").decode().lower()
        names = {LOOPBACK, "localhost", "[::1]", _bracketed(self.bound), _bracketed(ascii_host)}
        bare = names if self.port == 80 else set[str]()
        return frozenset({f"{name}:{self.port}" for name in names} | bare)

    @property
    def url(self) -> str:
        return f"http://{_bracketed(self.host)}:{self.port}/"

    @property
    def link(self) -> str:
        """The token stands after the `#`, which browsers keep to themselves."""
        return f"{self.url}#token={self.token}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextmanager
def serving(site: FileSource, *, host: str = LOOPBACK, port: int = 0) -> Iterator[Address]:
    """Serves the site in a thread, as long as the context lasts. `port`: 0 for any that is free.

    Raises InputError for a port or host that is not available, and where a package is missing.
    """
    for package in PACKAGES:
        if find_spec(package) is None:
            hint = install_command("view")
            raise InputError("view", sentence=f"the viewer needs the package {package}: run {hint}")
    import uvicorn

    with _listening(host, port) as listener:
        bound, port = listener.getsockname()[:2]
        address = Address(host, port, bound)
        config = uvicorn.Config(
            _app(site, address),
            http=_http_protocol(),
            ws="none",
            timeout_keep_alive=ceil(IDLE),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="viewer", daemon=True)
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join(timeout=5)


def _http_protocol() -> type[asyncio.Protocol]:
    """uvicorn's protocol with a limit: by itself it waits for ever for a first request and for the rest of one."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Bounded(H11Protocol):
        _end: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._end = self.loop.call_later(IDLE, transport.close)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            is_asked = self.cycle is not None and not self.cycle.response_complete
            if is_asked and self._end is not None:
                self._end.cancel()
                self._end = None
            elif not is_asked and self._end is None:
                self._end = self.loop.call_later(IDLE, self.transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self._end is not None:
                self._end.cancel()

    return Bounded


def _listening(host: str, port: int) -> socket.socket:
    """Accepts connections at once, so that an early browser waits. Raises InputError."""
    where = f"{host}:{port}"
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        refused: OSError | OverflowError | None = None
        # a name may have several addresses, some of them of this machine
        for family, _, _, _, address in addresses:
            try:
                listener = socket.create_server(address, family=family, backlog=64)
                # asyncio sets it for sockets that name their protocol alone: without it, an answer's body waits 40 ms
                # for its head
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return listener
            except OSError as error:
                refused = error
    except UnicodeError:
        raise InputError("host", "a name or an address", where) from None
    except (OSError, OverflowError) as error:
        refused = error
    is_taken = isinstance(refused, OverflowError) or getattr(refused, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
    why = getattr(refused, "strerror", None) or refused
    raise InputError(
        "port" if is_taken else "host", sentence=f"cannot listen at {where}: {why}; name another `port` or `host`"
    )


def _app(site: FileSource, address: Address) -> ASGIApp:
    from anyio import CapacityLimiter
    from anyio.to_thread import run_sync
    from starlette.exceptions import HTTPException
    from starlette.requests import Request

    # pictures that a page asks for at once are made one after another, so that the first is there soon
    in_thread = partial(run_sync, limiter=CapacityLimiter(AT_ONCE))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            answer = await _answer(request, site, address, in_thread)
        except HTTPException as refusal:
            answer = _response(refusal.status_code, {"error": refusal.detail})
        except Exception:
            # every answer has to carry the headers below
            LOG.exception("%s cannot be answered", request.url.path)
            answer = _response(500, {"error": "this cannot be shown; the terminal says why"})
        await answer(scope, receive, send)

    return app


def _response(status: int, content: File | Mapping[str, Any], cache: str = "no-store") -> Response:
    from starlette.responses import Response

    file = content if isinstance(content, File) else File(json.dumps(content).encode(), "application/json")
    return Response(file.content, status, {**HEADERS, "Cache-Control": cache}, file.mime)


async def _answer(request: Request, site: FileSource, address: Address, in_thread: Any) -> Response:
    """`in_thread`: runs a function in a thread. Raises HTTPException."""
    from starlette.exceptions import HTTPException

    hosts = request.headers.getlist("host")
    # a server on all addresses is also named by the address that was reached, which no other name can point at
    reached, port = request.scope["server"]
    if len(hosts) != 1 or hosts[0].lower() not in address.hosts | {f"{_bracketed(reached)}:{port}"}:
        raise HTTPException(421, "this host is not served here")
    name = str(request.scope["path"]).removeprefix("/")
    if request.method == "GET":
        file = await in_thread(site.get, name or "index.html")
        if file is None:
            raise HTTPException(404, "there is nothing under this name")
        return _response(200, file, PICTURES_FOR if name.startswith("img/") else "no-store")
    if request.method == "POST":
        body = await _read_body(request, hosts[0], address)
        status, value = await in_thread(site.post, name, body)
        return _response(status, value)
    raise HTTPException(405, "only GET is answered here")


async def _read_body(request: Request, host: str, address: Address) -> dict[str, Any]:
    """The JSON object to write. Raises HTTPException for a request that may not write, and for any other body."""
    from starlette.exceptions import HTTPException

    if request.headers.getlist("origin") != [f"http://{host}"]:
        raise HTTPException(403, "only this page may write here")
    if not secrets.compare_digest(request.headers.get(TOKEN, "").encode(), address.token.encode()):
        raise HTTPException(403, "the link that was printed at the start is needed to write here")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "what is written has to be application/json")
    content = b""
    try:
        async with asyncio.timeout(IDLE):
            async for part in request.stream():
                content += part
                if len(content) > MAX_BODY:
                    raise HTTPException(413, f"no more than {MAX_BODY} bytes can be written at once")
    except TimeoutError:
        raise HTTPException(408, "the rest of the body did not come") from None
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise HTTPException(400, "what is written has to be a JSON object")
    return body

"""Reach and settings of a browser: origins, folders that are served over HTTP, the environment's proxy,
and the settings that websites see."""

from __future__ import annotations

import functools
import http
import http.server
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies_environment, url2pathname

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import read_text
from seeact_offline.files.redaction import hide
from seeact_offline.records import InputError

PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """A scheme, a host and a port."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str, argument: str) -> Origin:
        """The origin of a URL of http or https. Raises InputError about `argument` for any other."""
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode()
            port = parts.port or PORTS[parts.scheme]
        except (ValueError, KeyError):
            host = ""
        # anything else could be a rule of its own for the browser
        if not _HOST.fullmatch(host):
            raise InputError(argument, "a URL of http or https with a host", repr(url)[:200])
        return cls(parts.scheme, host, port)

    @property
    def place(self) -> str:
        """Host and port, as the browser's rules spell them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place.removesuffix(f':{PORTS[self.scheme]}')}"


ANYWHERE = Origin("", "*", 0)
"""Stands for every origin."""
REACHES_ALL = (
    "any origin is allowed: pages and acts reach every address, of this machine's networks too, and what a page shows"
    " goes to the model"
)


def origins_of(urls: Iterable[str], argument: str) -> frozenset[Origin]:
    """The origins of URLs; `*` is ANYWHERE. Raises InputError about `argument`."""
    return frozenset(ANYWHERE if url == ANYWHERE.host else Origin.of(url, argument) for url in urls)


@contextmanager
def served(start: str, folder: Path | None, port: int = 0) -> Iterator[str]:
    """The address to open. A file is served by a local server while the context lasts:
    a page of a `file:` URL could read other files.
    `folder`: the folder to serve; `start` is then a path below it. `port`: the server's if it is free;
    else, and for 0, any."""
    if start.startswith("file:"):
        parts = urlsplit(start)
        above, _, name = parts.path.rpartition("/")
        folder, start = Path(url2pathname(above) or "/"), urlunsplit(("", "", name, parts.query, parts.fragment))
    if folder is None:
        yield start
        return
    handler = functools.partial(_FolderHandler, directory=str(folder.resolve()))
    with _server(handler, port) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/{start.lstrip('/')}"
        finally:
            server.shutdown()


def _server(handler: Callable[..., _FolderHandler], port: int) -> http.server.ThreadingHTTPServer:
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        # somebody else has it by now
        return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


class _FolderHandler(http.server.SimpleHTTPRequestHandler):
    """Serves the regular files of its folder. Symbolic links that lead out of it are not found."""

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        path = Path(self.translate_path(self.path))
        with suppress(OSError, ValueError):
            read = [path, *(path / name for name in ("index.html", "index.htm") if (path / name).exists())]
            if all(
                file.resolve().is_relative_to(self.directory) and (file.is_file() or file.is_dir()) for file in read
            ):
                return super().send_head()
        self.send_error(http.HTTPStatus.NOT_FOUND)
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing: only cli does."""


# --- settings for websites ---

SHORTEST_SECRET = 16
"""Characters of the shortest stored value that counts as a secret;
ids of sessions are longer, and shorter values are words."""


@dataclass(frozen=True, slots=True)
class BrowserOptions:
    """Settings of a browser. The defaults are those of a recording."""

    headed: bool = False
    """True shows its window."""
    user_agent: str | None = None
    """None: the browser's own."""
    locale: str = "en-US"
    geolocation: tuple[float, float] | None = None
    """Latitude and longitude in degrees, which pages may ask for; None: they may not."""
    storage_state: Path | None = None
    """A file of Playwright's storage state, such as a login, with which every episode begins."""
    trace: bool = False
    """True keeps Playwright's trace of each episode."""

    @property
    def identity(self) -> dict[str, object]:
        """The settings by which pages may differ, without the defaults;
        of a storage state no more than that there is one."""
        names = [
            setting.name
            for setting in fields(self)
            if setting.name != "trace" and getattr(self, setting.name) != setting.default
        ]
        return {name: True if name == "storage_state" else getattr(self, name) for name in names}

    def of_context(self) -> dict[str, Any]:
        """Arguments for a browser context. Raises InputError for a storage state that cannot be used;
        no secret is in its text."""
        own: dict[str, Any] = {"locale": self.locale}
        if self.user_agent is not None:
            own["user_agent"] = self.user_agent
        if self.geolocation is not None:
            latitude, longitude = self.geolocation
            own |= {
                "geolocation": {"latitude": latitude, "longitude": longitude},
                "permissions": ["geolocation"],
            }
        if self.storage_state is not None:
            own["storage_state"] = read_storage_state(self.storage_state)
        return own

    def check(self) -> None:
        """Raises InputError for what cannot be used on this machine, and for a trace of a login."""
        if self.trace and self.storage_state:
            why = "`trace` keeps the cookies that are sent; it cannot be combined with `storage_state`"
            raise InputError("trace", sentence=why)
        self.of_context()
        if self.headed and sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
            raise InputError("headed", sentence="`headed` needs a display: set DISPLAY, or run under xvfb-run")


class _Cookie(msgspec.Struct, frozen=True):
    name: str
    value: str
    domain: str
    path: str


class _Entry(msgspec.Struct, frozen=True):
    name: str
    value: str


class _Storage(msgspec.Struct, frozen=True, rename="camel"):
    origin: str
    local_storage: tuple[_Entry, ...] = ()


class _StorageState(msgspec.Struct, frozen=True):
    cookies: tuple[_Cookie, ...] = ()
    origins: tuple[_Storage, ...] = ()


def read_storage_state(path: Path) -> dict[str, Any]:
    """The storage state of a file; hides its secrets from all that is written.
    Raises InputError without a word of its content."""
    text = read_text("storage_state", path, "a JSON file of Playwright's storage state")
    try:
        values = read_json(text)
        state = typed(values, _StorageState)
    except FormatError as error:
        expected = f"Playwright's storage state, {error.expected}"
        raise InputError("storage_state", expected, f"something else in {path}") from None
    stored = [cookie.value for cookie in state.cookies]
    for value in (*stored, *(entry.value for storage in state.origins for entry in storage.local_storage)):
        hide(value, SHORTEST_SECRET)
    return dict(values)


def read_geolocation(text: str) -> tuple[float, float]:
    """Latitude and longitude of `LAT,LON`. Raises ValueError.

    >>> read_geolocation("40.7,-74")
    (40.7, -74.0)
    """
    try:
        latitude, longitude = map(float, text.split(","))
    except ValueError:
        latitude = longitude = float("nan")
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise ValueError(f"expected LAT,LON in degrees, such as 40.7,-74.0, got {text}")
    return latitude, longitude


def environment_proxy() -> dict[str, str] | None:
    """The proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, without the hosts of NO_PROXY, as Playwright takes it;
    None for none."""
    named = getproxies_environment()
    url = named.get("https") or named.get("http") or named.get("all")
    if not url:
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    hide(password)
    login = {"username": user, "password": password} if user else {}
    bypass = ",".join(filter(None, ("127.0.0.1", named.get("no", ""))))
    return {"server": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", "bypass": bypass, **login}

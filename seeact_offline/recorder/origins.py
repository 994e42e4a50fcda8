"""Places of recorded pages: an origin that the user named, or a folder that is served over HTTP."""

from __future__ import annotations

import functools
import http
import http.server
import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

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
REACHES_ALL = "any origin is allowed: pages and acts reach every address, of this machine's networks too, and what a page shows goes to the model"


def origins_of(urls: Iterable[str], argument: str) -> frozenset[Origin]:
    """The origins of URLs; `*` is ANYWHERE. Raises InputError about `argument`."""
    return frozenset(ANYWHERE if url == ANYWHERE.host else Origin.of(url, argument) for url in urls)


@contextmanager
def served(start: str, folder: Path | None, port: int = 0) -> Iterator[str]:
    """The address to open. A file is served by a local server while the context lasts: a page of a `file:` URL could read other files.
    `folder`: the folder to serve; `start` is then a path below it. `port`: the server's if it is free; else, and for 0, any."""
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
            if all(one.resolve().is_relative_to(self.directory) and (one.is_file() or one.is_dir()) for one in read):
                return super().send_head()
        self.send_error(http.HTTPStatus.NOT_FOUND)
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing: only cli does."""

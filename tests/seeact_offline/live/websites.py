"""Websites on this machine under names of their own, with what the open web has: a banner, a slow server, redirects, popups, a login."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

STYLE = """<style>body { margin: 0; font: 16px sans-serif } .at { position: absolute; left: 20px; width: 200px; height: 30px }
#banner { position: fixed; inset: 0; background: #eee }</style>"""
SHOP = f"""<title>Shop</title>{STYLE}
<button class=at style="top: 40px" onclick="fetch('/account').then(() => setTimeout(() => {{ location = '/slow' }}, 100))">Slow</button>
<a class=at style="top: 80px" href="//news.localhost:PORT/" target=_blank>News</a>
<a class=at style="top: 120px" href="/pay">Pay</a>
<div id=banner><button class=at style="top: 200px" onclick="document.cookie = 'seen=yes'; this.parentNode.remove()">Accept all</button></div>
<script>if (document.cookie.includes('seen=yes')) document.getElementById('banner').remove();</script>"""
ME = f"""<title>Me</title>{STYLE}<p id=told></p><script>
const tell = (place) => {{ document.getElementById('told').textContent = [navigator.userAgent, navigator.language, place, new Date().toISOString().slice(0, 10)].join(' | '); }};
navigator.geolocation.getCurrentPosition(({{ coords }}) => tell(`${{coords.latitude}},${{coords.longitude}}`), () => tell('nowhere'));
</script>"""
SLOW_S = 1.5
SECRET = "s3cret-session-of-Ann-0123456789"


@dataclass
class Websites:
    """A server of several websites, by the names in its requests."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    """Addresses that were asked for."""

    def at(self, path: str = "/", name: str = "shop.localhost") -> str:
        return f"http://{name}:{self.port}{path}"

    def answer(self, host: str, path: str, cookies: str) -> tuple[int, str, str]:
        """Status, body and address of a redirect."""
        name = host.partition(":")[0]
        if path == "/slow":
            time.sleep(SLOW_S)
            return 200, "<title>Slow</title><h1>It came at last</h1>", ""
        if path == "/pay":
            return 302, "", self.at("/", "pay.localhost")
        if path == "/me":
            return 200, ME, ""
        if path == "/account":
            if f"session={SECRET}" not in cookies:
                return 200, "<title>Account</title><h1>Hello nobody</h1>", ""
            # as careless as some
            leak = f"<script>history.replaceState(null, '', '?session={SECRET}')</script>"
            return 200, f"<title>Account</title><h1>Hello Ann</h1><a href='/?session={SECRET}'>Shop</a>{leak}", ""
        if name in ("pay.localhost", "news.localhost"):
            return 200, f"<title>{name}</title><h1>This is {name}</h1>", ""
        return 200, SHOP.replace("PORT", str(self.port)), ""


@contextmanager
def websites() -> Iterator[Websites]:
    sites = Websites()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # a proxy is asked for the whole address
            sites.asked.append(self.path if "://" in self.path else f"http://{self.headers['Host']}{self.path}")
            path = "/" if "://" in self.path else self.path
            status, body, address = sites.answer(self.headers["Host"], path, self.headers.get("Cookie", ""))
            content = body.encode()
            self.send_response(status)
            if address:
                self.send_header("Location", address)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            # a browser that is closed waits for nothing
            with suppress(OSError):
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        sites.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield sites
        finally:
            server.shutdown()


def write_tasks(path: Path, *tasks: dict[str, Any]) -> Path:
    """A script of these tasks."""
    path.write_text(json.dumps({"tasks": list(tasks)}))
    return path


def write_login(path: Path) -> Path:
    """A stored login at the shop."""
    cookie = {
        "name": "session", "value": SECRET, "domain": "shop.localhost", "path": "/", "expires": -1, "httpOnly": True,
        "secure": False, "sameSite": "Lax",
    }  # fmt: skip
    path.write_text(json.dumps({"cookies": [cookie], "origins": []}))
    return path

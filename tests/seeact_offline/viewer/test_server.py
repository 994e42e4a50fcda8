"""Requests that the real server answers and refuses, and the headers of every answer."""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPResponse
from typing import Any

import pytest

from seeact_offline.files.extras import install_command
from seeact_offline.records import InputError
from seeact_offline.viewer import server
from seeact_offline.viewer.server import Address, serving
from seeact_offline.viewer.site_files import File
from tests.seeact_offline.viewer.conftest import ask

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


class OneStep:
    """A site of few names that remembers what it was asked for and what was written."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.written: list[tuple[str, Mapping[str, Any]]] = []

    def get(self, name: str) -> File | None:
        self.asked.append(name)
        if name == "broken":
            raise RuntimeError("a page that we never met")
        known = {
            "index.html": "text/html; charset=utf-8",
            "step/a.json": "application/json",
            "img/a.webp": "image/webp",
        }
        return File(name.encode(), known[name]) if name in known else None

    def post(self, name: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        self.written.append((name, body))
        return 200, {"saved": True}


@pytest.fixture
def site() -> OneStep:
    return OneStep()


@pytest.fixture
def address(site: OneStep) -> Iterator[Address]:
    with serving(site) as found:
        yield found


def write(address: Address, body: bytes = b"{}", **changed: str | None) -> HTTPResponse:
    """As the page itself would; a header that is None is left out."""
    usual = {
        "Origin": f"http://127.0.0.1:{address.port}",
        "X_Seeact_Token": address.token,
        "Content_Type": "application/json",
    }
    headers = {name: value for name, value in (usual | changed).items() if value is not None}
    return ask(address, "/cause/a", "POST", body, **headers)


# --- looking ---


def test_the_page_is_served_at_the_root(address: Address) -> None:
    answer = ask(address, "/")
    assert (answer.status, answer.content) == (200, b"index.html")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("method", "path", "host", "status"),
    [
        *[
            ("GET", path, None, status)
            for path, status in (("/", 200), ("/step/a.json", 200), ("/none", 404), ("/broken", 500))
        ],
        ("GET", "/", "evil.example", 421),
        *[(method, "/", None, 405) for method in ("HEAD", "PUT", "DELETE", "OPTIONS")],
        ("POST", "/", None, 403),
    ],
)
def test_every_answer_and_refusal_carries_the_headers_and_no_details(
    address: Address, method: str, path: str, host: str | None, status: int
) -> None:
    answer = ask(address, path, method, **({} if host is None else {"Host": host}))
    assert answer.status == status
    assert b"never met" not in answer.content
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_this_machine_by_its_own_names_is_served(address: Address, host: str) -> None:
    assert ask(address, "/", Host=host.format(port=address.port)).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_another_host_is_not_served_here(address: Address, site: OneStep, host: str) -> None:
    """A name that somebody makes point at this machine would otherwise be of one origin with it."""
    assert ask(address, "/step/a.json", Host=host.format(port=address.port)).status == 421
    assert site.asked == []


def test_json_is_never_stored_and_pictures_are(address: Address) -> None:
    assert ask(address, "/step/a.json").headers["Cache-Control"] == "no-store"
    assert ask(address, "/img/a.webp").headers["Cache-Control"] == "private, max-age=3600"


# --- writing ---


def test_the_page_itself_may_write(address: Address, site: OneStep) -> None:
    answer = write(address, b'{"cause": "wrong_op"}')
    assert (answer.status, json.loads(answer.content)) == (200, {"saved": True})
    assert site.written == [("cause/a", {"cause": "wrong_op"})]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "https://127.0.0.1"}, 403),
        ({"X_Seeact_Token": None}, 403),
        ({"X_Seeact_Token": "guess"}, 403),
        ({"X_Seeact_Token": "gu\xe9ss"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": None}, 415),
        ({"Host": "evil.example"}, 421),
    ],
)
def test_nobody_else_may_write(address: Address, site: OneStep, changed: dict[str, str | None], status: int) -> None:
    assert write(address, **changed).status == status
    assert site.written == []


def test_the_origin_has_to_be_the_one_that_was_asked(address: Address, site: OneStep) -> None:
    assert write(address, Host=f"localhost:{address.port}").status == 403
    assert write(address, Host=f"localhost:{address.port}", Origin=f"http://localhost:{address.port}").status == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff", b'{"a":' * 10_000])
def test_what_is_no_json_object_is_not_written(address: Address, site: OneStep, body: bytes) -> None:
    assert write(address, body).status == 400
    assert site.written == []


def test_no_more_than_64_kb_are_taken(address: Address, site: OneStep) -> None:
    assert write(address, b'{"a": "' + b"x" * 64_000 + b'"}').status == 413
    assert site.written == []


# --- connections without a request ---

HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    "sent",
    [b"", b"G", HEAD, HEAD + b"\r\n", HEAD + b"\r\n" + HEAD, HEAD + b"Content-Length: 9\r\n\r\n", b"\x16\x03\x01"],
    ids=["nothing", "a letter", "half a head", "one request", "one and a half", "half a body", "TLS"],
)
def test_an_idle_connection_ends(site: OneStep, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(server, "IDLE", 0.1)
    with serving(site) as address, socket.create_connection(("127.0.0.1", address.port), timeout=60) as connection:
        connection.sendall(sent)
        while connection.recv(65_536):
            pass
        assert ask(address, "/").status == 200


def test_a_body_that_does_not_end_is_refused(site: OneStep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE", 0.1)
    with serving(site) as address, socket.create_connection(("127.0.0.1", address.port), timeout=60) as connection:
        head = (
            f"POST /cause/a HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\nOrigin: http://127.0.0.1:{address.port}\r\n"
        )
        head += f"X-Seeact-Token: {address.token}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
        connection.sendall(head.encode())
        answered = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert answered.startswith(b"HTTP/1.1 408 ")
        assert site.written == []


def test_a_page_that_takes_long_to_make_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is idle only while nothing is asked."""
    monkeypatch.setattr(server, "IDLE", 0.1)
    released = threading.Event()

    class Slow(OneStep):
        def get(self, name: str) -> File | None:
            released.wait(0.5)
            return super().get(name)

    with serving(Slow()) as address:
        assert ask(address, "/").status == 200


# --- the address ---


@pytest.mark.parametrize(
    ("host", "asked", "status"),
    [
        ("localhost", "localhost", 200),
        ("LOCALHOST", "localhost", 200),
        ("seeact.example", "seeact.example", 200),
        ("SeeAct.example", "seeact.example", 200),
        ("bücher.example", "xn--bcher-kva.example", 200),
        ("seeact.example", "127.0.0.1", 200),
        ("seeact.example", "evil.example", 421),
        ("localhost", "seeact.example", 421),
        ("127.1", "127.0.0.1", 200),
        ("0", "0.0.0.0", 200),
        ("0.0.0.0", "127.0.0.1", 200),
        ("0.0.0.0", "evil.example", 421),
    ],
)
def test_the_name_that_was_given_is_the_one_that_is_served(
    site: OneStep, monkeypatch: pytest.MonkeyPatch, host: str, asked: str, status: int
) -> None:
    """A browser asks by the name of the link, in its own spelling."""
    found = socket.getaddrinfo

    def resolve(name: str, *how: Any, **more: Any) -> Any:
        return found("127.0.0.1" if "example" in name else name, *how, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with serving(site, host=host) as address:
        assert ask(address, "/", Host=f"{asked}:{address.port}").status == status


def test_the_first_address_of_a_name_that_this_machine_has_is_taken(
    site: OneStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = socket.getaddrinfo("192.0.2.1", 0, type=socket.SOCK_STREAM) + socket.getaddrinfo(
        "127.0.0.1", 0, type=socket.SOCK_STREAM
    )
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with serving(site, host="seeact.example") as address:
        assert address.bound == "127.0.0.1"


@pytest.mark.parametrize("host", ["a" * 64, "x..y", "", "http://localhost", "192.0.2.1"])
def test_what_is_no_name_of_this_machine_is_one_sentence(site: OneStep, host: str) -> None:
    with (
        pytest.raises(
            InputError, match=r"^host: expected a name or an address|^cannot listen at .*name another `port` or `host`"
        ),
        serving(site, host=host),
    ):
        pass


def test_the_link_keeps_the_token_behind_the_hash(address: Address) -> None:
    assert address.link == f"http://127.0.0.1:{address.port}/#token={address.token}"
    assert len(address.token) >= 32


def test_every_start_has_a_token_of_its_own(site: OneStep) -> None:
    with serving(site) as one, serving(site) as other:
        assert one.token != other.token


def test_a_port_in_use_is_one_sentence(site: OneStep) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(InputError, match=rf"^cannot listen at 127\.0\.0\.1:{port}: "),
            serving(site, port=port),
        ):
            pass


def test_the_port_is_free_again_afterwards(site: OneStep) -> None:
    with serving(site) as address:
        ask(address, "/")
    with serving(site, port=address.port) as again:
        assert again.port == address.port


def test_a_missing_package_is_one_sentence(site: OneStep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(InputError, match=rf"starlette: run {re.escape(install_command('view'))}"), serving(site):
        pass

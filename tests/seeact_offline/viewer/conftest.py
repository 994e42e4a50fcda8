"""Finished runs of the sample, and the server in front of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.viewer.server import Address, serving
from seeact_offline.viewer.site import Site
from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import Tab, chromium, open_tab

Ask = Callable[..., HTTPResponse]


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in baseline on two tasks of the sample. Not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEACT_CACHE", str(tmp_path_factory.mktemp("cache")))
        return so.evaluate(limit=2, ranker="bm25", out=tmp_path_factory.mktemp("runs") / "lexical").path


@pytest.fixture(scope="session")
def other_run(sample_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The oracle on the first of these tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEACT_CACHE", str(tmp_path_factory.mktemp("cache")))
        out = tmp_path_factory.mktemp("runs") / "oracle"
        return so.evaluate(limit=1, model="builtin/oracle", ranker="bm25", out=out).path


@pytest.fixture(scope="session")
def sample_site(sample_run: Path) -> Site:
    return Site([sample_run])


@pytest.fixture
def served(sample_site: Site) -> Iterator[Address]:
    with serving(sample_site) as address:
        yield address


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One for all tests, but not for those elsewhere, which may start one of their own."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def toy_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """`toy_url(n_runs=2)`: the address of a toy site, which is written and served once."""
    with ExitStack() as servers:

        @functools.cache
        def url(**options: int) -> str:
            site = toy_site.write_site(tmp_path_factory.mktemp("site") / "toy", **options)
            return servers.enter_context(toy_site.serve(site))

        yield url


@pytest.fixture(scope="package")
def shared_tab(browser: Any) -> Iterator[Tab]:
    with open_tab(browser, "") as tab:
        yield tab


@pytest.fixture
def tab(shared_tab: Tab, url: str) -> Tab:
    """An empty page; each file says by its fixture `url` which site it shows."""
    shared_tab.clear()
    shared_tab.url = url
    return shared_tab


def read_json(site: Any, name: str) -> dict[str, Any]:
    """The JSON of a site's file."""
    return dict(json.loads(site.get(name).content))


def ask(address: Address, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> HTTPResponse:
    """One request, sent as it is written; `headers` with underscores for dashes. The answer is read already: `.content`."""
    connection = HTTPConnection("127.0.0.1", address.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Host": f"127.0.0.1:{address.port}", **named}.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        answer.content = answer.read()  # type: ignore[attr-defined]
        return answer
    finally:
        connection.close()

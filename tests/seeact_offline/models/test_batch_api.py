"""The calls of a batch, on a server that cuts them off, drips, or is Azure's."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.models import ModelOptions
from seeact_offline.models.batch import BatchApi
from seeact_offline.records import ModelStopped
from tests.batch_server import BatchServer
from tests.chat_server import Answer
from tests.seeact_offline.models.asking import quick

NAME = "seeact-1.jsonl"
URL = "/v1/chat/completions"
MOST = 1_000_000
Work = Callable[[BatchApi], Awaitable[Any]]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quick(monkeypatch)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def requests() -> Path:
    line = {"custom_id": "k", "method": "POST", "url": URL, "body": {"model": "m", "messages": []}}
    path = Path("requests.jsonl")
    path.write_text(json.dumps(line) + "\n")
    return path


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer(lambda body: "Hi.") as server:
        yield server


async def at_once(seconds: float) -> None:
    """Sleeps for no time."""


def run(server: BatchServer, work: Work, **options: Any) -> Any:
    async def opened() -> Any:
        given = ModelOptions(**{"base_url": server.base_url, "timeout_s": 0.3, "max_wait_s": 0.5, **options})
        async with aclosing(BatchApi(given, at_once)) as api:
            return await work(api)

    return asyncio.run(opened())


def everything(requests: Path) -> Work:
    """From the upload to the reply, which the result is."""

    async def work(api: BatchApi) -> str:
        batch = await api.begin(await api.upload(requests, NAME, perhaps_there=False), URL, perhaps_there=False)
        await api.download((await api.wait(batch)).files["output"], Path("output.jsonl"), MOST)
        row = json.loads(Path("output.jsonl").read_text())
        return str(row["response"]["body"]["choices"][0]["message"]["content"])

    return work


def drip(*last: bytes) -> Answer:
    """A byte each twentieth of a second, for ever or until the last ones."""
    return Answer(chunks=itertools.chain(itertools.repeat(b" ", 8 if last else 10_000), last), gap_s=0.05)


def from_call(number: int, server: BatchServer, answer: Callable[[], Answer], n_calls: int = 1) -> None:
    """That many calls from this one on are answered so, after the server has done what they ask."""
    counter = itertools.count(1)

    def others(method: str, path: str, content: bytes) -> Answer:
        usual = server._endpoint(method, path, content)
        return answer() if number <= next(counter) < number + n_calls else usual

    server._others = others


# --- cut off ---


@pytest.mark.parametrize("at", range(1, 6))
def test_a_server_that_hangs_up_after_any_call_has_each_file_and_batch_once(
    at: int, requests: Path, server: BatchServer
) -> None:
    """Upload, beginning, two looks, download."""
    from_call(at, server, lambda: Answer(hang_up=True))
    assert run(server, everything(requests)) == "Hi."
    assert len(server.uploads) == len(server.batches) == 1


# --- dripping ---


@pytest.mark.parametrize("at", [1, 2, 3, 5])
def test_a_call_that_drips_is_cut_off_and_made_again(at: int, requests: Path, server: BatchServer) -> None:
    from_call(at, server, drip)
    began = time.monotonic()
    assert run(server, everything(requests)) == "Hi."
    assert time.monotonic() - began < 1.5
    assert len(server.uploads) == len(server.batches) == 1


@pytest.mark.parametrize("at", [1, 2, 3, 5])
def test_a_server_that_only_drips_ends_the_run(at: int, requests: Path, server: BatchServer) -> None:
    from_call(at, server, drip, 99)
    began = time.monotonic()
    with pytest.raises(ModelStopped, match=r"expected an answer from http://.*, got timeout: "):
        run(server, everything(requests))
    assert time.monotonic() - began < 2
    assert not Path("output.jsonl").exists()


def test_an_upload_has_longer_the_larger_it_is(requests: Path, server: BatchServer) -> None:
    requests.write_bytes(requests.read_bytes().rstrip() + b" " * 100_000)
    server.faults = {"POST /files": [drip(b'{"id": "f"}')]}
    assert run(server, lambda api: api.upload(requests, NAME, perhaps_there=False)) == "f"


def download(file_id: str = "f", most: int = MOST) -> Work:
    return lambda api: api.download(file_id, Path("output.jsonl"), most)


def test_a_download_has_as_long_as_it_comes_fast_enough(server: BatchServer) -> None:
    line = b'{"x": "' + b"y" * 99_990 + b'"}\n'
    server.faults = {"GET /files": [Answer(chunks=itertools.repeat(line, 9), gap_s=0.06)]}
    run(server, download())
    assert Path("output.jsonl").read_bytes() == line * 9
    assert server.calls == ["GET /files/f/content"]


# --- what comes ---


def test_no_more_of_a_file_is_fetched_than_may_be(server: BatchServer) -> None:
    server.faults = {"GET /files": [Answer(chunks=itertools.repeat(b"{}\n" * 10_000))]}
    with pytest.raises(ModelStopped, match="reply_too_large: a body of more than 1000000 bytes"):
        run(server, download())
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (Answer(body=b"<html>", headers={"Content-Type": "text/html"}), "api_error: .* answered with no file of a batch: <html>"),
        (Answer(body=b"xx", headers={"Content-Encoding": "gzip"}), "api_error: a body that cannot be unpacked"),
        (Answer(body=b"{" * 9_000, cut=True), "connection_failed: "),
        (Answer("gone", status=404), "bad_request: Error code: 404 - gone"),
        (Answer("", status=302, headers={"Location": "http://127.0.0.1:9/"}), "redirected: "),
    ],
)  # fmt: skip
def test_what_is_no_file_is_not_written(answer: Answer, named: str, server: BatchServer) -> None:
    server.faults = {"GET /files": [answer] * 99}
    with pytest.raises(ModelStopped, match=named):
        run(server, download())
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("made", ["", ".", "..", "\ud800", 7, None])
def test_an_id_that_can_stand_in_no_path_is_none(made: Any, requests: Path, server: BatchServer) -> None:
    server.faults = {"POST /files": [Answer(body=json.dumps({"id": made}).encode())]}
    # the file is there all the same
    assert run(server, everything(requests)) == "Hi."
    assert len(server.uploads) == 1


def test_a_pause_that_the_server_asks_for_is_kept(server: BatchServer) -> None:
    server.faults = {"GET /batches": [Answer("slow down", 429, {"retry-after": "700"})]}
    with pytest.raises(ModelStopped, match=r"rate_limited: .* \(it asks to wait 700 s, max_wait is 0\)"):
        run(server, lambda api: api.wait("b"))


# --- Azure ---


@pytest.fixture
def azure(server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a server of Azure's, for which `server` stands in as a proxy."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-0123456789")
    monkeypatch.setenv("HTTP_PROXY", server.base_url.removesuffix("/v1"))
    monkeypatch.delenv("NO_PROXY", raising=False)
    return "http://shop.openai.azure.com/openai/v1"


def test_azure_has_read_a_file_before_its_batch_begins(azure: str, requests: Path, server: BatchServer) -> None:
    server.file_states = [{"status": status} for status in ("pending", "running", "processed")]
    assert run(server, everything(requests), base_url=azure) == "Hi."
    (file,), (batch,) = server.uploads, server.batches.values()
    assert server.calls[:5] == ["POST /files", *[f"GET /files/{file}"] * 3, "POST /batches"]
    # its documentation: the lines say which API, and this endpoint alone is taken
    assert batch["endpoint"] == "/chat/completions"
    assert json.loads(server.contents[file])["url"] == URL
    assert {headers["api-key"] for headers in server.other_headers} == {"azure-0123456789"}
    assert not any("authorization" in headers for headers in server.other_headers)


@pytest.mark.parametrize("state", [{}, {"status": None}, {"status": "uploaded"}, {"status": "Processed"}])
def test_a_file_that_is_not_said_to_be_unread_is_taken_at_once(
    state: dict[str, Any], azure: str, requests: Path, server: BatchServer
) -> None:
    server.file_states = [state]
    assert run(server, everything(requests), base_url=azure) == "Hi."
    assert len(server.calls) == 6


def test_a_file_that_azure_cannot_read_has_no_batch(azure: str, requests: Path, server: BatchServer) -> None:
    server.file_states = [{"status": "Error", "status_details": "line 1 is no JSON"}]
    with pytest.raises(ModelStopped, match=r"expected a file that http://shop.* can read, got line 1 is no JSON"):
        run(server, everything(requests), base_url=azure)
    assert server.batches == {}

"""A real HTTP server on this machine that speaks the part of OpenAI's API that the project uses, well or badly.

with ChatServer(lambda body: "ELEMENT: A") as server:
    ...  # ask server.base_url, then look at server.requests

It runs on asyncio in a thread of its own. Chat completions and responses are answered by the script; any other path by
`others`, where a test brings one.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

PROMPT_TOKENS = 100
IMAGE_TOKENS = 40
"""Of each picture, on top of PROMPT_TOKENS."""
COMPLETION_TOKENS = 10
_THREADS = 128
"""Scripts that wait do so in threads: so many at once."""
_RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: closing drops what is not sent, and the client's next read fails."""


@dataclass(frozen=True)
class Answer:
    """What the server sends back to one request."""

    text: str | None = ""
    """The reply, or the error's message when status is not 200."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    finish_reason: str = "stop"
    refusal: str | None = None
    code: str | None = None
    """Of an error."""
    param: str | None = None
    """Of an error."""
    with_usage: bool = True
    body: bytes | None = None
    """Sent as it is, in place of all of the above."""
    chunks: Iterable[bytes] | None = None
    """Sent one by one, in place of a body of known length; may be endless."""
    gap_s: float = 0.0
    """Between two chunks."""
    cut: bool = False
    """The connection is reset in the middle of the body."""
    hang_up: bool = False
    """The connection is reset in place of an answer."""


Script = Callable[[dict[str, Any]], Answer | str] | Callable[[dict[str, Any]], Awaitable[Answer | str]]
Other = Callable[[str, str, bytes], Answer]


@dataclass(frozen=True)
class _Call:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    content: bytes


class ChatServer:
    """`answer` gets each request's parsed body and returns the reply, as a text or an Answer; it is called in threads, or on
    the server's loop if it is a coroutine function. `others(method, path, content)` answers for any other path.
    """

    def __init__(self, answer: Script, others: Other | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        # bodies, in order of arrival
        self.headers: list[dict[str, str]] = []
        # of the same requests, names in lower case
        self.other_headers: list[dict[str, str]] = []
        # of requests for any other path
        self.paths: list[str] = []
        # of the same requests, with their queries
        self.n_completed = 0
        # calls answered in full with a reply
        self.most_at_once = 0
        # calls in flight
        self._at_once = 0
        self._answer, self._others = answer, others
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.base_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._loop = asyncio.new_event_loop()
        self._main: asyncio.Task[None] = self._loop.create_task(self._listen())
        self._threads = ThreadPoolExecutor(_THREADS)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gone, as after a crash. Safe to call twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._main.cancel)
            self._thread.join()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._main)
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _listen(self) -> None:
        async with await asyncio.start_server(self._connected, sock=self._socket, limit=1 << 20) as server:
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # or every answer waits 40 ms for the client's acknowledgement
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # clients that give up are part of the tests
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not writer.is_closing():
                call = await _read(reader)
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
                try:
                    await self._respond(call, writer)
                finally:
                    self._at_once -= 1
        writer.close()

    async def _respond(self, call: _Call, writer: asyncio.StreamWriter) -> None:
        path = call.path.partition("?")[0]
        if not path.endswith(("/v1/chat/completions", "/v1/responses")):
            self.other_headers.append(call.headers)
            other = Answer(f"no such path: {call.path}", status=404)
            await _send(writer, self._others(call.method, call.path, call.content) if self._others else other, {}, path)
            return
        body = json.loads(call.content)
        with self._lock:
            self.paths.append(call.path)
            self.requests.append(body)
            self.headers.append(call.headers)
        answer = await self._asked(body)
        await asyncio.sleep(answer.delay_s)
        await _send(writer, answer, body, path)
        self.n_completed += answer.status == 200 and not (answer.cut or answer.hang_up)

    async def _asked(self, body: dict[str, Any]) -> Answer:
        if inspect.iscoroutinefunction(self._answer) or inspect.iscoroutinefunction(type(self._answer).__call__):
            answer = await cast("Awaitable[Answer | str]", self._answer(body))
        else:
            answer = cast("Answer | str", await self._loop.run_in_executor(self._threads, self._answer, body))
        return Answer(answer) if isinstance(answer, str) else answer


async def _read(reader: asyncio.StreamReader) -> _Call:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return _Call(method, path, headers, content)


async def _send(writer: asyncio.StreamWriter, answer: Answer, body: dict[str, Any], path: str) -> None:
    if answer.hang_up:
        _reset(writer)
        return
    headers = {"Content-Type": "application/json", **answer.headers}
    content = b"" if answer.chunks is not None else rendered(answer, body, path)
    size = {"Transfer-Encoding": "chunked"} if answer.chunks is not None else {"Content-Length": str(len(content))}
    lines = [f"{name}: {value}" for name, value in {**size, **headers}.items()]
    writer.write("\r\n".join([f"HTTP/1.1 {answer.status} Scripted", *lines, "", ""]).encode("latin-1"))
    if answer.chunks is not None:
        for chunk in answer.chunks:
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
            await asyncio.sleep(answer.gap_s)
        writer.write(b"0\r\n\r\n")
    writer.write(content[: len(content) // 2] if answer.cut else content)
    await writer.drain()
    if answer.cut:
        # what is written must have left before the reset drops the rest
        await asyncio.sleep(0.02)
        _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


def script(*answers: Answer | str | int) -> Callable[[dict[str, Any]], Answer | str]:
    """Gives the answers in turn, the last one again and again; a number is an error of that status."""
    lock = threading.Lock()
    left = list(answers)

    def answer(body: dict[str, Any]) -> Answer | str:
        with lock:
            given = left.pop(0) if len(left) > 1 else left[0]
        return Answer(f"scripted {given}", status=given) if isinstance(given, int) else given

    return answer


def rendered(answer: Answer, body: dict[str, Any], path: str = "/v1/chat/completions") -> bytes:
    """The response's body, in OpenAI's layout."""
    if answer.body is not None:
        return answer.body
    if answer.status != 200:
        error = {"message": answer.text, "type": "scripted", "code": answer.code, "param": answer.param}
        return json.dumps({"error": error}).encode()
    content = _response(answer, body) if path.endswith("/responses") else _completion(answer, body)
    return json.dumps(content).encode()


def _completion(answer: Answer, body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    content: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason, "logprobs": None}],
    }
    if answer.with_usage:
        images = _images(body["messages"], "image_url")
        content["usage"] = {
            "prompt_tokens": PROMPT_TOKENS + images,
            "completion_tokens": COMPLETION_TOKENS,
            "total_tokens": PROMPT_TOKENS + images + COMPLETION_TOKENS,
            "prompt_tokens_details": {"image_tokens": images},
        }
    return content


def _response(answer: Answer, body: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": answer.text, "annotations": []}
    if answer.refusal is not None:
        part = {"type": "refusal", "refusal": answer.refusal}
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = reasons.get(answer.finish_reason)
    content: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [part]},
        ],
    }
    if answer.with_usage:
        content["usage"] = {
            "input_tokens": PROMPT_TOKENS,
            "output_tokens": COMPLETION_TOKENS,
            "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
        }
    return content


def _images(messages: list[dict[str, Any]], kind: str) -> int:
    contents = [message["content"] for message in messages if isinstance(message["content"], list)]
    return IMAGE_TOKENS * sum(bool(part["type"] == kind) for content in contents for part in content)

"""A chat completion server that only waits: one process, one loop, hardly any work of its own.

python scripts/benchmarks/slow_server.py 0.2 [FOLDER]

Prints its base URL, and its counts as JSON when its standard input ends. Writes all bodies to FOLDER, if given.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
from pathlib import Path

PLAN = ("I look at the page and then at what was done before. " * 40)[:2000]
FINAL = "The first one fits.\n\nELEMENT: A\nACTION: CLICK\nVALUE: None"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_FIRST_BUFFER = 1 << 20
_TAIL = 1 << 16
"""Bytes at the end of a body, after the picture, that hold its last messages."""


class Counts:
    """Counts the server's requests and answers them."""

    def __init__(self, latency_s: float, folder: Path | None) -> None:
        self.calls = 0
        self.at_once = 0
        self.most_at_once = 0
        self.bytes = 0
        self._latency_s, self._folder = latency_s, folder

    def take(self, body: memoryview, transport: asyncio.Transport) -> None:
        self.calls += 1
        self.bytes += len(body)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self._folder is not None:
            (self._folder / f"{self.calls:06}.json").write_bytes(body)
        is_turn2 = b'"assistant"' in bytes(body[-_TAIL:])
        asyncio.get_running_loop().call_later(self._latency_s, self._reply, transport, ANSWERS[is_turn2])

    def _reply(self, transport: asyncio.Transport, answer: bytes) -> None:
        self.at_once -= 1
        transport.write(answer)


class Connection(asyncio.BufferedProtocol):
    """Takes one request after the other and reads all bodies into the same memory."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._buffer = bytearray(_FIRST_BUFFER)
        self._filled = 0
        # where the body begins; 0 until the head is complete
        self._body = 0
        self._end = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        missing = max(self._end, self._filled + 1) - len(self._buffer)
        if missing > 0:
            self._buffer += bytes(missing)
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if not self._body and (head := self._buffer.find(b"\r\n\r\n", 0, self._filled)) >= 0:
            length = _LENGTH.search(self._buffer, 0, head)
            self._body = head + 4
            self._end = self._body + (int(length[1]) if length else 0)
        if self._body and self._filled >= self._end:
            self._counts.take(memoryview(self._buffer)[self._body : self._end], self._transport)
            self._filled = self._body = self._end = 0


def _answer(text: str) -> bytes:
    """The complete response."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 3000, "completion_tokens": len(text) // 4, "total_tokens": 3000 + len(text) // 4}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "slow", "choices": [choice], "usage": usage}
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


ANSWERS = {False: _answer(PLAN), True: _answer(FINAL)}
"""Responses to turn 1 (False) and turn 2 (True)."""


async def serve(latency_s: float, folder: Path | None) -> None:
    counts, loop = Counts(latency_s, folder), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(counts), "127.0.0.1", 0, backlog=512)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = used.ru_utime + used.ru_stime
    print(
        json.dumps({"calls": counts.calls, "most_at_once": counts.most_at_once, "bytes": counts.bytes, "cpu_s": cpu_s})
    )


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))

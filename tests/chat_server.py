"""A real HTTP server on this machine that speaks the part of OpenAI's chat completions API that the project uses.

with ChatServer(lambda body: "ELEMENT: A") as server:
    ...  # ask server.base_url, then look at server.requests
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

PROMPT_TOKENS = 100
IMAGE_TOKENS = 40
"""Of each picture, on top of PROMPT_TOKENS."""
COMPLETION_TOKENS = 10


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
    with_usage: bool = True
    body: bytes | None = None
    """Sent as it is, in place of all of the above."""


class ChatServer:
    """`answer` gets each request's parsed body and returns the reply, as a text or an Answer. Safe for many at once."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer | str]) -> None:
        self.requests: list[dict[str, Any]] = []
        # bodies, in order of arrival
        self.headers: list[dict[str, str]] = []
        # of the same requests, names in lower case
        self.paths: list[str] = []
        # of the same requests, with their queries
        self._answer = answer
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def reply(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Answer:
        """Keeps the request and asks the script."""
        if not path.partition("?")[0].endswith("/v1/chat/completions"):
            return Answer(f"no such path: {path}", status=404)
        with self._lock:
            self.paths.append(path)
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in headers.items()})
        answer = self._answer(body)
        answer = Answer(answer) if isinstance(answer, str) else answer
        self._closing.wait(answer.delay_s)
        return answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            """Or every answer waits 40 ms for the client's acknowledgement."""
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = chat.reply(self.path, dict(self.headers), body)
                content = rendered(answer, body)
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Tests read `requests` instead."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """The default of 5 makes clients that come all at once wait for a second."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that give up are part of the tests; anything else is shown as usual."""
        import sys

        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def script(*answers: Answer | str | int) -> Callable[[dict[str, Any]], Answer | str]:
    """Gives the answers in turn, the last one again and again; a number is an error of that status."""
    lock = threading.Lock()
    left = list(answers)

    def answer(body: dict[str, Any]) -> Answer | str:
        with lock:
            given = left.pop(0) if len(left) > 1 else left[0]
        return Answer(f"scripted {given}", status=given) if isinstance(given, int) else given

    return answer


def rendered(answer: Answer, body: dict[str, Any]) -> bytes:
    """The response's body, in OpenAI's layout."""
    if answer.body is not None:
        return answer.body
    if answer.status != 200:
        return json.dumps({"error": {"message": answer.text, "type": "scripted", "code": answer.code}}).encode()
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    content: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason, "logprobs": None}],
    }
    if answer.with_usage:
        content["usage"] = _usage(body)
    return json.dumps(content).encode()


def _usage(body: dict[str, Any]) -> dict[str, Any]:
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    images = IMAGE_TOKENS * sum(part["type"] == "image_url" for content in contents for part in content)
    prompt = PROMPT_TOKENS + images
    return {
        "prompt_tokens": prompt,
        "completion_tokens": COMPLETION_TOKENS,
        "total_tokens": prompt + COMPLETION_TOKENS,
        "prompt_tokens_details": {"image_tokens": images},
    }

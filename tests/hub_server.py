"""A hub on this machine: data sets and models at commits, as the hub's own client asks for them, and the faults of a real one.

with HubServer(folder) as hub:
    commit = hub.publish("datasets", "owner/pages", {"data/train-00000-of-00001.parquet": content})
    ...  # with HF_ENDPOINT=hub.url; then look at hub.requests and hub.sent
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlparse

_STORED_APART = (".parquet", ".safetensors", ".bin")
"""Endings of the files whose checksum the hub tells."""


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """An answer in place of the one that was asked for."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    paths: str = ""
    """Part of the paths that are refused."""
    times: int = 10**6


class HubServer:
    """The server, in a thread of its own."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.requests: list[str] = []
        """Method and path of each."""
        self.sent: Counter[str] = Counter()
        """File -> bytes of it that were sent."""
        self.tokens: set[str | None] = set()
        self.refusal: Refusal | None = None
        self.cut: set[str] = set()
        """Files whose next whole answer ends in its middle."""
        self.spoiled: set[str] = set()
        """Files that are sent with another byte in their middle."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def publish(self, kind: str, name: str, files: Mapping[str, bytes], branch: str = "main") -> str:
        """Adds a commit of exactly these files. Returns it."""
        repo = self.repos.setdefault(f"{kind}/{name}", Repo())
        listed = "".join(f"{path} {_sha256(content)}\n" for path, content in sorted(files.items()))
        commit = hashlib.sha1(listed.encode()).hexdigest()
        repo.commits[commit] = dict(files)
        repo.branches[branch] = commit
        return commit

    def __enter__(self) -> Self:
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self) -> None:
        hub, path = self.hub, urlparse(self.path).path
        hub.requests.append(f"{self.command} {path}")
        hub.tokens.add(self.headers.get("Authorization"))
        refusal = hub.refusal
        if refusal is not None and path != "/" and refusal.paths in path and refusal.times:
            hub.refusal = Refusal(refusal.status, refusal.headers, refusal.paths, refusal.times - 1)
            self._json({"error": "refused"}, refusal.status, refusal.headers)
        elif path == "/":
            self._json({})
        elif match := re.match(r"/api/(datasets|models)/([^/]+/[^/]+)/(revision|tree|paths-info)/([^/]+)", path):
            self._api(*map(unquote, match.groups()))
        elif match := re.match(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.*)$", path):
            self._file((match[1] or "models/")[:-1], match[2], unquote(match[3]), unquote(match[4]))
        else:
            self._json({"error": "not found"}, 404, {})

    do_GET = do_HEAD = do_POST = answer

    def _api(self, kind: str, name: str, asked: str, revision: str) -> None:
        repo = self.hub.repos.get(f"{kind}/{name}")
        if repo is None:
            # as of the real one: who may not see it is told the same
            return self._json({"error": "Repository not found"}, 401, {"X-Error-Code": "RepoNotFound"})
        commit = repo.branches.get(revision, revision)
        if commit not in repo.commits:
            return self._json({"error": "Invalid rev id"}, 404, {"X-Error-Code": "RevisionNotFound"})
        files = repo.commits[commit]
        if asked == "paths-info":
            body = self.rfile.read(int(self.headers["Content-Length"]))
            paths = json.loads(body)["paths"] if body.startswith(b"{") else parse_qs(body.decode())["paths"]
            return self._json([self._entry(path, files[path]) for path in paths if path in files])
        if asked == "tree":
            entries = [self._entry(path, content) for path, content in files.items()]
            folders = {path.rpartition("/")[0] for path in files} - {""}
            return self._json(
                [*entries, *({"type": "directory", "oid": commit, "size": 0, "path": one} for one in folders)]
            )
        self._json(
            {
                "id": name,
                "sha": commit,
                "private": False,
                "tags": [],
                "siblings": [{"rfilename": path} for path in files],
            }
        )

    def _entry(self, path: str, content: bytes) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "oid": "b" * 40, "size": len(content), "path": path}
        if path.endswith(_STORED_APART):
            entry["lfs"] = {"oid": _sha256(content), "size": len(content), "pointerSize": 130}
        return entry

    def _file(self, kind: str, name: str, revision: str, path: str) -> None:
        repo = self.hub.repos.get(f"{kind}/{name}", Repo())
        commit = repo.branches.get(revision, revision)
        content = repo.commits.get(commit, {}).get(path)
        if content is None:
            return self._json(
                {"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}
            )
        begin, end = 0, len(content)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if asked:
            begin = int(asked[1]) if asked[1] else end - int(asked[2])
            end = min(int(asked[2]) + 1, end) if asked[1] and asked[2] else end
        part = content[begin:end]
        if path in self.hub.spoiled and not asked:
            half = len(part) // 2
            part = part[:half] + bytes([part[half] ^ 1]) + part[half + 1 :]
        self.send_response(206 if asked else 200)
        etag = f'"{_sha256(content)}"'
        for header, value in {
            "ETag": etag, "X-Linked-ETag": etag, "X-Linked-Size": len(content), "X-Repo-Commit": commit,
            "Accept-Ranges": "bytes", "Content-Length": len(part),
            **({"Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"} if asked else {}),
        }.items():  # fmt: skip
            self.send_header(header, str(value))
        self.end_headers()
        if self.command != "GET":
            return
        if path in self.hub.cut and not asked:
            self.hub.cut.remove(path)
            part = part[: len(part) // 2]
            self.close_connection = True
        self.wfile.write(part)
        self.hub.sent[path] += len(part)

    def _json(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {
            **(headers or {}),
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""OpenAI's files and batches endpoints, on the real HTTP server of `chat_server`.

with BatchServer(lambda body: "ELEMENT: A") as server:
    ...  # ask server.base_url, then look at server.uploads and server.batches

A batch is carried out when it is looked at for the second time: the first time it is `in_progress`.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.chat_server import Answer, ChatServer, rendered

Carry = Callable[[dict[str, Any]], Answer | str | None]
"""From a request's body to what becomes of it; None: it was not begun before the batch expired."""
_PART = re.compile(rb'name="(?P<name>\w+)"(?:; filename="(?P<file>[^"]*)")?.*?\r\n\r\n(?P<content>.*)', re.DOTALL)


class BatchServer(ChatServer):
    """`answer` for live calls as in ChatServer; `carry` for those of batches, the same unless given."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer | str], carry: Carry | None = None) -> None:
        super().__init__(answer, self._endpoint)
        self.uploads: dict[str, dict[str, Any]] = {}
        # files by id, as the API shows them; those that batches made are not among them
        self.batches: dict[str, dict[str, Any]] = {}
        # by id
        self.contents: dict[str, bytes] = {}
        # of all files
        self.calls: list[str] = []
        # methods and paths, in order of arrival
        self.faults: dict[str, list[Answer]] = {}
        # `METHOD /path` without what stands behind the first part of the path -> what the next such calls get for an answer,
        # after the server has done what they ask
        self.fails: list[str] = []
        # reasons for which the next batches fail as a whole
        self.file_states: list[dict[str, Any]] = []
        # fields that uploaded files have at the next looks at one
        self._carry: Carry = carry or answer

    def close(self) -> None:
        super().close()
        # a server that is closed before its loop has begun never listened
        self._socket.close()

    def _endpoint(self, method: str, path: str, content: bytes) -> Answer:
        parts = urlsplit(path).path.partition("/v1/")[2].split("/")
        call = f"{method} /{'/'.join(parts)}"
        self.calls.append(call)
        answer = self._answered(method, parts, parse_qs(urlsplit(path).query), content)
        faults = self.faults.get(f"{method} /{parts[0]}", [])
        return faults.pop(0) if faults else answer

    def _answered(self, method: str, parts: list[str], query: Mapping[str, list[str]], content: bytes) -> Answer:
        match method, *parts:
            case "POST", "files":
                return _shown(self._upload(content))
            case "POST", "batches":
                return _shown(self._begin(json.loads(content)))
            case "GET", "files" | "batches" as kind:
                return self._list(self.uploads if kind == "files" else self.batches, query)
            case "GET", "files", file, "content" if file in self.contents:
                return Answer(body=self.contents[file], headers={"Content-Type": "application/octet-stream"})
            case "GET", "files", file if file in self.uploads:
                return _shown(self.uploads[file] | (self.file_states.pop(0) if self.file_states else {}))
            case "GET", "batches", batch if batch in self.batches:
                return _shown(self._look(self.batches[batch]))
        return Answer("no such thing", status=404)

    def _upload(self, content: bytes) -> dict[str, Any]:
        boundary = content.partition(b"\r\n")[0]
        found = [_PART.search(part) for part in content.split(boundary)[1:-1]]
        parts = {match["name"].decode(): match for match in found if match is not None}
        assert parts["purpose"]["content"].strip() == b"batch"
        body = parts["file"]["content"].removesuffix(b"\r\n")
        made = self._file(body)
        self.uploads[made] = {
            "id": made, "object": "file", "bytes": len(body), "filename": parts["file"]["file"].decode(), "purpose": "batch",
        }  # fmt: skip
        return self.uploads[made]

    def _begin(self, wanted: dict[str, Any]) -> dict[str, Any]:
        made = f"batch_{uuid.uuid4().hex}"
        self.batches[made] = {"id": made, "object": "batch", "status": "validating", "errors": None, **wanted}
        return self.batches[made]

    def _look(self, batch: dict[str, Any]) -> dict[str, Any]:
        if batch["status"] == "validating":
            batch["status"] = "in_progress"
        elif batch["status"] == "in_progress" and self.fails:
            batch |= {"status": "failed", "errors": {"data": [{"code": "x", "message": self.fails.pop(0)}]}}
        elif batch["status"] == "in_progress":
            self._carry_out(batch)
        return batch

    def _carry_out(self, batch: dict[str, Any]) -> None:
        lines = [json.loads(line) for line in self.contents[batch["input_file_id"]].splitlines()]
        # in any order
        results = carried_out(reversed(lines), self._carry)
        good = [row for row in results if row["response"] and row["response"]["status_code"] == 200]
        bad = [row for row in results if row not in good]
        batch["status"] = "expired" if any(row["response"] is None for row in bad) else "completed"
        for name, rows in (("output_file_id", good), ("error_file_id", bad)):
            if rows:
                batch[name] = self._file(jsonl(rows))

    def _file(self, content: bytes) -> str:
        made = f"file-{uuid.uuid4().hex}"
        self.contents[made] = content
        return made

    @staticmethod
    def _list(entries: Mapping[str, dict[str, Any]], query: Mapping[str, list[str]]) -> Answer:
        """Two at a time, so that a list has pages."""
        ids = list(entries)
        begin = ids.index(query["after"][0]) + 1 if "after" in query else 0
        page = [entries[name] for name in ids[begin : begin + 2]]
        return _shown({"object": "list", "data": page, "has_more": begin + 2 < len(ids)})


def carried_out(lines: Any, carry: Carry) -> list[dict[str, Any]]:
    """The rows of an output and an error file, in OpenAI's form."""
    results = []
    for line in lines:
        assert line["method"] == "POST"
        answer = carry(line["body"])
        answer = Answer(answer) if isinstance(answer, str) else answer
        row: dict[str, Any] = {"id": f"batch_req_{len(results)}", "custom_id": line["custom_id"], "response": None}
        if answer is None:
            said = "This request could not be executed before the completion window expired."
            row["error"] = {"code": "batch_expired", "message": said}
        else:
            body = json.loads(rendered(answer, line["body"], line["url"]))
            row |= {"response": {"status_code": answer.status, "request_id": "r", "body": body}, "error": None}
        results.append(row)
    return results


def jsonl(rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _shown(value: Mapping[str, Any]) -> Answer:
    return Answer(body=json.dumps(value).encode())

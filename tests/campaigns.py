"""Runs that meet all that can go wrong between them and a server, and what became of every step.

The command runs in processes of its own. The server's replies carry a digest of the request that they answer, so that a reply
that went to another step, group or turn is found.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from seeact_offline.models.retrying import FIRST_PAUSE_S
from seeact_offline.ranking import ScoreRow, write_scores
from seeact_offline.records import StepKey
from tests.chat_server import COMPLETION_TOKENS, IMAGE_TOKENS, PROMPT_TOKENS, Answer, ChatServer
from tests.pages import synthetic_rows, write_parquet

REPO = Path(__file__).resolve().parents[1]
KEY = "sk-campaign-0123456789abcdefSECRET"
TIMEOUT_S = 1.0
"""Of the command's calls; a slow drip takes longer."""
STEPS_PER_TASK = 3
DECLINED = 0.03
"""Share of requests that the model refuses or that a content filter stops: answers like any other, not faults."""
LONGEST_S = 500.0
"""Of one command."""

COMMAND = "import sys; from seeact_offline.models import retrying as r; r.FIRST_PAUSE_S = {}; from seeact_offline.cli import main; sys.exit(main())"

Line = Mapping[str, Any]

# --- what is asked, and how ---


def make_steps(folder: Path, n_tasks: int, seed: int = 1) -> Path:
    """A data set of `n_tasks` tasks and made-up scores; gives the folder back."""
    rows = list(synthetic_rows(n_tasks, STEPS_PER_TASK, 12, seed))
    write_parquet(rows, folder / "data" / "test_task-00000-of-00001.parquet")
    scores = []
    for row in rows:
        key = StepKey(row["annotation_id"], row["action_uid"])
        ids = [json.loads(text)["backend_node_id"] for text in (*row["pos_candidates"], *row["neg_candidates"])]
        drawn = sorted(((Random(f"{key}/{node}").random(), node) for node in ids), reverse=True)
        scores += [ScoreRow(key, node, score, rank) for rank, (score, node) in enumerate(drawn)]
    write_scores(folder / "scores.parquet", scores)
    return folder


@dataclass(frozen=True)
class Asking:
    """How the command is called."""

    data: Path
    """As `make_steps` leaves it."""
    cache: Path
    concurrency: int = 8
    first_pause_s: float = FIRST_PAUSE_S
    """Seconds before a failed request is sent again for the first time, at most."""

    def words(self, server: ChatServer, out: Path, *more: object) -> list[str]:
        return [
            *("eval", "--dataset", str(self.data), "--split", "cross_task", "--scores", f"{self.data}/scores.parquet"),
            *("--top-k", "6", "--group-size", "3", "--model", "openai/test", "--base-url", server.base_url),
            *("--timeout", str(TIMEOUT_S), "--concurrency", str(self.concurrency), "--cache", str(self.cache)),
            *("--out", str(out), *map(str, more)),
        ]

    def start(self, server: ChatServer, out: Path, *more: object) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(REPO), "OPENAI_API_KEY": KEY}
        command = [sys.executable, "-c", COMMAND.format(self.first_pause_s), *self.words(server, out, *more)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=self.data
        )

    def run(self, server: ChatServer, out: Path, *more: object) -> Ended:
        with self.start(server, out, *more) as process:
            return ended(process)


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended by itself."""

    status: int
    printed: str
    """On both of its outputs."""


def ended(process: subprocess.Popen[str]) -> Ended:
    printed, complaints = process.communicate(timeout=LONGEST_S)
    return Ended(process.returncode, printed + complaints)


def lines(out: Path) -> list[Line]:
    """Those of the predictions."""
    return [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]


def digest(body: Line) -> str:
    """What a reply must carry to answer this request."""
    return hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()[:16]


def answer(body: Line) -> Answer | str:
    """A plan, and then an element and a value; now and then the model declines. All depends on the request alone."""
    mark = digest(body)
    if Random(mark).random() < DECLINED:
        refusal = f"I cannot help with {mark}."
        return Random(mark).choice([Answer(refusal=refusal), Answer("I", finish_reason="content_filter")])
    plan = f"The plan of request {mark}."
    return (
        plan
        if len(body["messages"]) < 4
        else f"{plan}\nELEMENT: {'AB'[int(mark, 16) % 2]}\nACTION: TYPE\nVALUE: {mark}"
    )


# --- servers ---


def _drip() -> Iterator[bytes]:
    while True:
        yield b" "


_HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
FAULTS: Mapping[str, Answer] = {
    "429": Answer("slow down", status=429),
    "429 with Retry-After": Answer("slow down", status=429, headers={"Retry-After": "0.2"}),
    "500": Answer("oops", status=500),
    "502": Answer(status=502, body=_HTML, headers={"Content-Type": "text/html"}),
    "503": Answer("busy", status=503),
    "529": Answer("overloaded", status=529),
    "no answer": Answer(hang_up=True),
    "cut short": Answer("cut", cut=True),
    "malformed JSON": Answer(body=b'{"choices": [{"message": '),
    "empty body": Answer(body=b""),
    "HTML": Answer(body=_HTML, headers={"Content-Type": "text/html"}),
    "error as a success": Answer(body=b'{"error": {"message": "upstream failed", "type": "server_error"}}'),
    "no choices": Answer(body=b'{"id": "1", "object": "chat.completion", "choices": []}'),
    "blank": Answer("  "),
    "slow drip": Answer(chunks=_drip(), gap_s=TIMEOUT_S / 10),
}
"""By what people call it. A slow drip is one for all: it never ends."""


class FaultyServer(ChatServer):
    """Answers, but fails `share` of all requests, in every way there is, and now and then takes no connection."""

    def __init__(self, share: float, seed: int = 0, refuses: bool = True) -> None:
        super().__init__(self._reply)
        self.faults: Counter[str] = Counter()
        # by name
        self._share, self._seed, self._refuses = share, seed, refuses
        self._times: Counter[str] = Counter()

    async def _reply(self, body: dict[str, Any]) -> Answer | str:
        await asyncio.sleep(0.01)
        mark = digest(body)
        self._times[mark] += 1
        drawn = Random(f"{self._seed}/{mark}/{self._times[mark]}")
        if drawn.random() >= self._share:
            return answer(body)
        name = drawn.choice(list(FAULTS))
        self.faults[name] += 1
        return FAULTS[name]

    async def _listen(self) -> None:
        """For a moment every second, connections are refused. Those that are open go on."""
        while True:
            server = await asyncio.start_server(self._connected, sock=self._socket, limit=1 << 20)
            async with server:
                await asyncio.sleep(1.0 if self._refuses else LONGEST_S)
                address = self._socket.getsockname()
                server.close()
                self.faults["refused for a moment"] += 1
                await asyncio.sleep(0.2)
                self._socket = socket.create_server(address, backlog=512)


@contextmanager
def slow_server(latency_s: float) -> Iterator[ChatServer]:
    """Without faults."""

    async def reply(body: dict[str, Any]) -> Answer | str:
        await asyncio.sleep(latency_s)
        return answer(body)

    with ChatServer(reply) as server:
        yield server


# --- faults ---


@dataclass(frozen=True, slots=True)
class Fates:
    """What became of the steps."""

    n_steps: int
    right: int
    """As in a run that nothing disturbed, reply by reply."""
    failed: Counter[str]
    """Named failures."""
    lost: int
    doubled: int
    wrong: int
    """With a reply that does not belong there, or another outcome."""
    faults: Counter[str]
    """What the server did."""
    requests: int


def fault_campaign(
    folder: Path,
    n_tasks: int,
    share: float = 0.3,
    seed: int = 0,
    concurrency: int = 16,
    first_pause_s: float = FIRST_PAUSE_S,
) -> Fates:
    """One run against a faulty server beside one, call after call, against a good one."""
    data = make_steps(folder / "data", n_tasks)
    with slow_server(0) as server:
        undisturbed = Asking(data, folder / "cache-whole", concurrency=1).run(server, folder / "whole")
    assert undisturbed.status == 0, undisturbed.printed
    with FaultyServer(share, seed) as faulty:
        got = Asking(data, folder / "cache", concurrency, first_pause_s).run(faulty, folder / "run")
    assert (folder / "run" / "results.json").exists(), got.printed
    return fates(lines(folder / "whole"), lines(folder / "run"), faulty.faults, len(faulty.requests))


def fates(expected: Sequence[Line], got: Sequence[Line], faults: Counter[str], requests: int) -> Fates:
    """`expected`: the predictions that nothing disturbed."""
    times = Counter(_key(line) for line in got)
    by_key = {_key(line): line for line in got}
    pairs = [(line, by_key[_key(line)]) for line in expected if _key(line) in by_key]
    same = [_outcome(line) == _outcome(found) for line, found in pairs]
    named = [not same_ and _is_named_failure(line, found) for same_, (line, found) in zip(same, pairs, strict=True)]
    return Fates(
        n_steps=len(expected),
        right=sum(same),
        failed=Counter(found["failure"] for is_named, (_, found) in zip(named, pairs, strict=True) if is_named),
        lost=len(expected) - len(pairs),
        doubled=sum(n - 1 for n in times.values()) + len(times.keys() - {_key(line) for line in expected}),
        wrong=len(pairs) - sum(same) - sum(named),
        faults=faults,
        requests=requests,
    )


def _key(line: Line) -> tuple[str, str]:
    return line["annotation_id"], line["action_uid"]


def _outcome(line: Line) -> dict[str, Any]:
    """All but the usage: what was asked twice is paid for twice."""
    return {name: value for name, value in line.items() if name != "usage"}


def _is_named_failure(expected: Line, got: Line) -> bool:
    """Whether the step says how it failed, and every reply that it holds is the one that belongs there."""
    right = {(group["group"], turn): text for group in expected["groups"] for turn, text in enumerate(group["replies"])}
    held = {(group["group"], turn): text for group in got["groups"] for turn, text in enumerate(group["replies"])}
    # where a group's answer is missing, a later question may be another one
    known = {place: text for place, text in held.items() if place in right}
    named = bool(got["failure"]) or any(group["failure"] for group in got["groups"])
    return named and all(right[place] == text for place, text in known.items())


# --- kills ---


@dataclass(frozen=True, slots=True)
class Survival:
    """A run that was killed again and again, beside one that was left in peace."""

    kills: int
    identical: bool
    """Whether its predictions end up the same, byte by byte."""
    calls: int
    """Completed by the server in all."""
    calls_in_peace: int
    in_flight: int
    """Calls that the server had not answered yet, or just answered, when the run was killed: of all kills together."""

    @property
    def again(self) -> int:
        """Calls that were completed more than once."""
        return self.calls - self.calls_in_peace


def kill_campaign(
    folder: Path, n_tasks: int, kills: int, seed: int = 0, latency_s: float = 0.05, concurrency: int = 8
) -> Survival:
    """Kills the command at random moments: after so many more requests, and then a little later."""
    data = make_steps(folder / "data", n_tasks)
    with slow_server(latency_s) as server:
        assert Asking(data, folder / "cache-whole", concurrency).run(server, folder / "whole").status == 0
        in_peace = server.n_completed
    drawn, asking, n_killed, in_flight = Random(seed), Asking(data, folder / "cache", concurrency), 0, 0
    with slow_server(latency_s) as server:
        for _ in range(kills):
            wanted = len(server.requests) + drawn.randrange(max(1, in_peace // kills))
            with asking.start(server, folder / "run") as process:
                was_killed = _kill(process, server, wanted, drawn.uniform(0, 2 * latency_s))
            n_killed += was_killed
            # a call is in flight as long as its reply is not in the store: a little longer than for the server
            in_flight += concurrency * was_killed
        last = asking.run(server, folder / "run")
        assert last.status == 0, last.printed
        calls = server.n_completed
    same = (folder / "run" / "predictions.jsonl").read_bytes() == (folder / "whole" / "predictions.jsonl").read_bytes()
    return Survival(n_killed, same, calls, in_peace, in_flight)


def _kill(process: subprocess.Popen[str], server: ChatServer, wanted: int, later_s: float) -> bool:
    """Kills it `later_s` after the server has seen so many requests; False where it has ended before."""
    reading = threading.Thread(target=process.communicate, daemon=True)
    reading.start()
    until(lambda: len(server.requests) >= wanted or process.poll() is not None)
    time.sleep(later_s)
    process.send_signal(signal.SIGKILL)
    status = process.wait(LONGEST_S)
    # before its outputs are closed
    reading.join(LONGEST_S)
    return status == -signal.SIGKILL


def until(happened: Callable[[], object]) -> None:
    ends = time.monotonic() + LONGEST_S
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.002)


# --- the bill ---


@dataclass(frozen=True, slots=True)
class Bill:
    """A run with a cost limit that was killed again and again."""

    cap: float
    billed: float
    """USD, by the server's own count."""
    kills: int
    n_steps: int
    """Steps with results at the end."""


class BillingServer(FaultyServer):
    """Bills each request that it has worked on, whatever became of the answer: all but those that it turned away."""

    TURNED_AWAY = (429, 503, 529)

    def __init__(self, share: float, seed: int) -> None:
        super().__init__(share, seed)
        # USD, at PRICE
        self.billed = 0.0

    async def _reply(self, body: dict[str, Any]) -> Answer | str:
        found = await super()._reply(body)
        if not isinstance(found, Answer) or found.status not in self.TURNED_AWAY:
            images = sum(isinstance(message["content"], list) for message in body["messages"])
            tokens = PROMPT_TOKENS + IMAGE_TOKENS * images
            self.billed += (tokens * PRICE[0] + COMPLETION_TOKENS * PRICE[1]) / 1e6
        return found


PRICE = (1.0, 1000.0)
"""USD per million prompt and completion tokens: a cent a call."""


def bill_campaign(
    folder: Path,
    n_tasks: int,
    cap: float,
    kills: int,
    seed: int = 0,
    share: float = 0.3,
    first_pause_s: float = FIRST_PAUSE_S,
) -> Bill:
    """A run that is killed `kills` times at random moments and then left to its end, against a faulty server."""
    asking = Asking(make_steps(folder / "data", n_tasks), folder / "cache", first_pause_s=first_pause_s)
    drawn, n_killed = Random(seed), 0
    limit = ("--max-cost", cap, "--price", "{},{}".format(*PRICE), "--max-tokens", COMPLETION_TOKENS)
    with BillingServer(share, seed) as server:
        for _ in range(kills):
            wanted = len(server.requests) + drawn.randrange(max(1, round(100 * cap / kills)))
            with asking.start(server, folder / "run", *limit) as process:
                n_killed += _kill(process, server, wanted, drawn.uniform(0, 0.05))
        last = asking.run(server, folder / "run", *limit)
    assert last.status in (0, 1, 2), last.printed
    results = folder / "run" / "results.json"
    return Bill(cap, server.billed, n_killed, json.loads(results.read_text())["n_steps"] if results.exists() else 0)


# --- paid once ---


@dataclass(frozen=True, slots=True)
class Payments:
    """What the server counted."""

    calls: int
    needed: int
    """Calls of one run of everything."""
    again: int
    """Calls beyond those of one run of everything, or other ones."""


def pilot_campaign(folder: Path, n_tasks: int, pilots: Sequence[int]) -> Payments:
    """Pilots of so many tasks in one folder, then all of them there; and again in another folder, which costs nothing."""
    data = make_steps(folder / "data", n_tasks)
    needed = _needed(data, folder)
    asking = Asking(data, folder / "cache")
    with slow_server(0) as server:
        for n in pilots:
            assert asking.run(server, folder / "run", "--limit", n).status == 0
        assert asking.run(server, folder / "run").status == 0
        assert asking.run(server, folder / "other", "--merge", "first").status == 0
    return _payments(server, needed)


@dataclass(frozen=True, slots=True)
class Rivalry:
    """Two processes on one folder."""

    refused: str
    """What the second said; empty where it was let in."""
    status: int
    """Of the first."""
    payments: Payments


def rival_campaign(folder: Path, n_tasks: int) -> Rivalry:
    """A second process comes while the first is asking."""
    data = make_steps(folder / "data", n_tasks)
    needed, asking = _needed(data, folder), Asking(data, folder / "cache", concurrency=1)
    with slow_server(0.05) as server, asking.start(server, folder / "run") as first:
        until(lambda: server.requests)
        second = asking.run(server, folder / "run")
        status = ended(first).status
    refused = second.printed if second.status == 2 else ""
    return Rivalry(refused, status, _payments(server, needed))


def _needed(data: Path, folder: Path) -> Counter[str]:
    """The requests of one run of everything."""
    with slow_server(0) as server:
        assert Asking(data, folder / "cache-whole").run(server, folder / "whole").status == 0
    return _counted(server)


def _payments(server: ChatServer, needed: Counter[str]) -> Payments:
    return Payments(server.n_completed, needed.total(), (_counted(server) - needed).total())


def _counted(server: ChatServer) -> Counter[str]:
    return Counter(json.dumps(body, sort_keys=True) for body in server.requests)


# --- secrets ---


def secret_campaign(folder: Path, n_tasks: int) -> list[str]:
    """Places where the key is found after a run against a server that repeats it in replies, errors and headers."""
    data = make_steps(folder / "data", n_tasks)

    def reply(body: dict[str, Any]) -> Answer | str:
        drawn = Random(digest(body)).random()
        headers = {"x-request-id": f"id-{KEY}"}
        if drawn < 0.2:
            return Answer(f"Incorrect use of {KEY}", status=400, headers=headers)
        said = answer(body)
        return Answer(f"You sent Bearer {KEY}.\n{said}", headers=headers) if isinstance(said, str) else said

    with ChatServer(reply) as server:
        got = Asking(data, folder / "cache").run(server, folder / "run")
        assert any(KEY in headers.get("authorization", "") for headers in server.headers)
    assert (folder / "run" / "results.json").exists(), got.printed
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = [str(path.relative_to(folder)) for path in files if KEY.encode() in path.read_bytes()]
    return found + (["what was printed"] if KEY in got.printed else [])

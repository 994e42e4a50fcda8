"""`eval` asks a slow server nearly as fast as a bare loop of the openai SDK, and encodes each picture once."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.frame import ROOT, SEED, CommandCost, Line, candidate_ids, measure_verb, run_python, scratch_folder

CONCURRENCY = 64
BARE_STEPS = 80
"""Steps whose requests the bare loop sends: memory holds that many bodies at once."""
SPLITS = ("test_task", "test_website", "test_domain")
MOST_TIMES_BARE = 1.4
MOST_TIMES_BARE_OF_REAL = 1.05
"""Where calls take REAL_S or longer, as those of real servers do, and two cores have time to spare."""
REAL_S = 2.0

COUNT_ENCODED = """
import atexit, json
from collections import Counter
from seeact_offline.pages.screenshots import Crop
times, encoded = Counter(), Crop.encoded
def count(crop, *options):
    times[crop.key] += 1
    return encoded(crop, *options)
Crop.encoded = count
atexit.register(lambda: json.dump(times, open(%r, 'w')))
"""
"""Writes how often each picture was encoded, by its key."""
ENCODE = f"""
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
sys.path.insert(0, {str(ROOT)!r})
from seeact_offline.dataset import load_steps
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import JPEG_95, CropBox
boxes = {{}}
for key in json.load(open(sys.argv[2])):
    digest, box = key.split('@')[0].split(':')
    boxes.setdefault(digest, []).append(CropBox(*map(int, box.split(','))))
def work(page):
    for box in boxes.get(page.digest, ()):
        page.crop(box).encoded(JPEG_95)
pages = [PagePicture(step.screenshot) for step in load_steps(sys.argv[1], 'cross_task')]
began = time.perf_counter()
with ThreadPoolExecutor(2) as pool:
    while pages:
        batch, pages = pages[-100:], pages[:-100]
        list(pool.map(work, batch))
        batch.clear()
print(time.perf_counter() - began)
"""
"""Encodes the same pictures and does nothing else; each screenshot is decoded once."""
BARE = f"""
import asyncio, json, sys, time
from pathlib import Path
from openai import AsyncOpenAI
bodies = [json.loads(path.read_bytes()) for path in sorted(Path(sys.argv[2]).iterdir())]
async def main():
    queue = iter(bodies)
    async with AsyncOpenAI(api_key='none', base_url=sys.argv[1], max_retries=0, timeout=600) as client:
        async def ask():
            for body in queue:
                (await client.chat.completions.create(**body)).choices[0].message.content
        began = time.perf_counter()
        await asyncio.gather(*(ask() for _ in range({CONCURRENCY})))
        print(time.perf_counter() - began)
asyncio.run(main())
"""


def measure(options: argparse.Namespace) -> list[Line]:
    """Runs choice grounding against a server in a process of its own, 64 calls at once.

    The steps are those of the sample's test splits, repeated under other ids. Two lower bounds are measured too:
    calls x latency / concurrency, and the time in which two threads encode the same pictures; and a bare loop of the
    openai SDK over the same requests.
    """
    n_steps, latency_s = options.engine_steps, options.latency
    with scratch_folder(options.dir) as scratch:
        bodies = scratch / "bodies"
        bodies.mkdir()
        _ask(scratch / "bare", BARE_STEPS, latency_s, bodies)
        n_bare = len(list(bodies.iterdir()))
        with slow_server(latency_s) as bare_server:
            bare_s = float(run_python(BARE, bare_server.base_url, bodies))
        cost, server = _ask(scratch / "full", n_steps, latency_s)
        times = json.loads((scratch / "full" / "times.json").read_text())
        encoding_s = float(run_python(ENCODE, scratch / "full", scratch / "full" / "times.json"))
    calls = server.seen["calls"]
    waiting_s, bare_s = calls * latency_s / CONCURRENCY, bare_s * calls / n_bare
    most = MOST_TIMES_BARE if latency_s < REAL_S else MOST_TIMES_BARE_OF_REAL
    print(
        f"engine: {n_steps} steps, {calls} calls, {server.seen['bytes'] / calls / 1e3:.0f} kB each,"
        f" {len(times)} pictures, at most {server.seen['most_at_once']} calls at once, {latency_s * 1000:.0f} ms"
    )
    return [
        Line("eval, whole command", cost.wall_s, "s"),
        Line("calls x latency / concurrency", waiting_s, "s"),
        Line("encoding the pictures, 2 threads", encoding_s, "s"),
        Line("bare SDK loop, for as many calls", bare_s, "s"),
        Line("eval to the bare SDK loop", cost.wall_s / bare_s, "", at_most=most),
        Line("processor time of eval", cost.cpu_s, "s"),
        Line("processor time of the server", server.seen["cpu_s"], "s"),
        Line("most often that a picture was encoded", max(times.values()), "", at_most=2),
        Line("peak memory of eval", cost.peak_mb, "MB", at_most=1000),
    ]


@dataclass
class SlowServer:
    """The server's process."""

    base_url: str
    seen: dict[str, Any] = field(default_factory=dict)
    """The counts that it prints at its end."""


@contextmanager
def slow_server(latency_s: float, keep: Path | None = None) -> Iterator[SlowServer]:
    """`keep`: a folder for all bodies."""
    path = Path(__file__).with_name("slow_server.py")
    command = [sys.executable, str(path), str(latency_s), *([] if keep is None else [str(keep)])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        server = SlowServer(process.stdout.readline().strip())
        try:
            yield server
        finally:
            process.stdin.close()
            server.seen |= json.loads(process.stdout.read())


def _ask(folder: Path, n: int, latency_s: float, keep: Path | None = None) -> tuple[CommandCost, SlowServer]:
    _write_split(islice(_repeat_rows(), n), folder)
    words = ["--model", "openai/slow", "--concurrency", CONCURRENCY, "--cache", folder / "cache"]
    with slow_server(latency_s, keep) as server:
        prelude = COUNT_ENCODED % str(folder / "times.json")
        data = [
            "--split",
            "cross_task",
            "--dataset",
            folder,
            "--scores",
            folder / "scores.parquet",
            "--out",
            folder / "run",
        ]
        cost = measure_verb(["eval", *data, *words, "--base-url", server.base_url], prelude)
    results = json.loads((folder / "run" / "results.json").read_text())
    if results["n_steps"] != n or results["n_not_run"]:
        raise SystemExit(f"expected {n} steps to run, {results['n_not_run']} of {results['n_steps']} did not")
    return cost, server


def _write_split(rows: Iterable[dict[str, Any]], folder: Path) -> None:
    """Writes the rows as a split, with random scores in `scores.parquet`."""
    from seeact_offline.ranking import ScoreRow, write_scores
    from seeact_offline.records import StepKey
    from tests.pages import write_parquet

    scores: list[ScoreRow] = []

    def pass_on() -> Iterator[dict[str, Any]]:
        for row in rows:
            key = StepKey(row["annotation_id"], row["action_uid"])
            drawn = sorted((Random(f"{SEED}/{key}/{node}").random(), node) for node in candidate_ids(row))[::-1]
            scores.extend(ScoreRow(key, node, score, rank) for rank, (score, node) in enumerate(drawn))
            yield row

    write_parquet(pass_on(), folder / "data" / "test_task-00000-of-00001.parquet")
    write_scores(folder / "scores.parquet", scores)


def _repeat_rows() -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    hub = ROOT / "seeact_offline" / "sample" / "hub" / "data"
    tables = [pq.read_table(path) for split in SPLITS for path in sorted(hub.glob(f"{split}-*.parquet"))]
    # choice grounding cannot ask about a row without a screenshot
    rows = [row for table in tables for row in table.to_pylist() if row["screenshot"] is not None]
    for number, row in enumerate(cycle(rows)):
        round_ = number // len(rows)
        # bytes after a picture's end are ignored, but make it another picture
        picture = row["screenshot"]["bytes"] + f" {number}".encode()
        yield {
            **row,
            "annotation_id": f"{row['annotation_id']}-{round_}",
            "action_uid": f"{row['action_uid']}-{round_}",
            "screenshot": {"bytes": picture, "path": None},
        }

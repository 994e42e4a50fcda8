"""The viewer on a run of 15,000 steps: how soon there is a list and a step, how large the index and the server are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from benchmarks.measuring import ROOT, Line, scratch_folder
from tests.seeact_offline.viewer.browsing import Visit, chromium, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser

STEPS, TASKS = 15_000, 2_000
OFFERED, GROUPS, REPLY = 17, 3, "The next action is to press the button that says so. " * 12
PAGE_ELEMENTS = 240
"""Of a page as tall as a real one: 7,400 px."""
SHOWN = 5
"""Steps that are opened."""


def bench_viewer(inside: Path | None) -> list[Line]:
    """In Chromium, by its own clock, on the server that the command starts. The slowest counts."""
    with scratch_folder(inside) as folder, chromium() as browser:
        return [*_list(browser, folder / "run"), *_steps(browser, folder / "pages")]


@dataclass(frozen=True, slots=True)
class Server:
    """`view`, as a process of its own."""

    url: str
    process: subprocess.Popen[str]

    @property
    def memory_mib(self) -> float:
        """The most that it ever had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def get(self, name: str) -> bytes:
        with urlopen(self.url + name) as answer:
            return bytes(answer.read())


@contextmanager
def _serving(run: Path) -> Iterator[Server]:
    words = [sys.executable, str(ROOT / "scripts" / "view.py"), str(run), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        link = process.stdout.readline()
        try:
            yield Server(link.partition("#")[0], process)
        finally:
            process.terminate()


def _list(browser: Browser, run: Path) -> list[Line]:
    _write_run(run)
    began = time.perf_counter()
    with _serving(run) as server:
        up = time.perf_counter() - began
        visits = [_first_list(browser, server.url) for _ in range(3)]
        filters = _filters(browser, server.url)
        size, memory = len(server.get("index.json")), server.memory_mib
    return [
        Line("until the server is up", up, "s"),
        Line("first list once it is up", visits[0], "ms", at_most=500),
        Line("  the browser warm", min(visits[1:]), "ms"),
        Line("a filter, the slowest of twelve", max(filters), "ms", at_most=50),
        Line("  the middle one", sorted(filters)[len(filters) // 2], "ms"),
        Line("index.json", size / 1e6, "MB", at_most=3),
        Line("server with 15,000 steps", memory, "MiB", at_most=400),
    ]


def _first_list(browser: Browser, url: str) -> float:
    """Milliseconds from asking for the page to the rows."""
    with visiting(browser, url) as visit:
        visit.list()
        return float(visit.page.evaluate("performance.getEntriesByName('seeact:list')[0].startTime"))


def _filters(browser: Browser, url: str) -> list[float]:
    """Milliseconds of each change, its rows drawn."""
    words = ["s", "si", "sit", "site1", "site13", "site136"]
    queries = [f"?q={word}" for word in words] + [f"?f.website=site{n}" for n in range(3)]
    queries += ["?f.outcome=success", "?sort=cost", "?min.rank=10"]
    with visiting(browser, url) as visit:
        visit.list()
        for query in queries:
            visit.page.evaluate("to => { location.hash = to; }", f"#/{query}")
            visit.page.wait_for_timeout(100)
        taken = visit.page.evaluate("performance.getEntriesByName('seeact:filter').map(one => one.duration)")
    return [float(one) for one in taken[-len(queries) :]]


def _steps(browser: Browser, folder: Path) -> list[Line]:
    """Until the step and the top of its page are there, which is what a person waits for."""
    import seeact_offline as so
    from tests.pages import synthetic_rows, write_parquet

    write_parquet(
        synthetic_rows(2 * SHOWN, 2, PAGE_ELEMENTS, seed=0), folder / "data" / "test_task-00000-of-00001.parquet"
    )
    run = so.evaluate(dataset=str(folder), ranker="bm25", out=folder / "run").path
    with _serving(run) as server, visiting(browser, server.url) as visit:
        # every other one: the page asks for the next step beforehand
        keys = json.loads(server.get("index.json"))["keys"][::2]
        visit.list()
        cold = [_open(visit, key) for key in keys]
        warm = [_open(visit, key) for key in keys]
        memory = server.memory_mib
    return [
        Line("a step and the top of its page, cold", max(cold), "ms", at_most=400),
        Line("  warm", max(warm), "ms", at_most=100),
        Line("server with pages", memory, "MiB", at_most=400),
    ]


def _open(visit: Visit, key: str) -> float:
    """Milliseconds."""
    began = visit.page.evaluate(
        "to => { performance.clearMeasures(); performance.clearResourceTimings(); location.hash = to; return performance.now(); }",
        f"#/step/{key}",
    )
    visit.until(
        "performance.getEntriesByName('seeact:step').length && [...document.images].some(one => one.complete && one.naturalWidth)"
    )
    ended = visit.page.evaluate(
        "Math.max(performance.getEntriesByName('seeact:step')[0].startTime + performance.getEntriesByName('seeact:step')[0].duration,"
        " ...performance.getEntriesByType('resource').filter(one => one.name.includes('/img/')).slice(0, 1).map(one => one.responseEnd))"
    )
    # until the next one, which the page asks for by itself, is there too
    visit.page.wait_for_timeout(700)
    return float(ended - began)


def _write_run(run: Path) -> None:
    """Files of the size that a run of a chat model leaves; its data set is nowhere."""
    run.mkdir(parents=True)
    settings = {
        "split": "all", "grounding": "choice", "model": "openai/gpt-4o", "ranker": "bundled", "protocol": "seeact",
        "dataset": "osunlp-is-not-here", "dataset_fingerprint": "0" * 16, "merge": "final-round", "top_k": 50, "seed": 0,
        "limit": None,
    }  # fmt: skip
    (run / "manifest.json").write_text(json.dumps({"schema": 1, "identity": {}, "settings": settings}))
    (run / "results.json").write_text(json.dumps({**settings, "n_steps": STEPS, "n_tasks": TASKS, "complete": True}))
    with (run / "predictions.jsonl").open("w") as said, (run / "steps.jsonl").open("w") as scored:
        for prediction, score in _lines():
            said.write(json.dumps(prediction) + "\n")
            scored.write(json.dumps(score) + "\n")


def _lines() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for i in range(STEPS):
        key = {
            "annotation_id": f"{i % TASKS:08x}-0000-4000-8000-000000000000",
            "action_uid": f"{i:08x}-0000-4000-8000-000000000000",
        }
        ids = [str(i + n) for n in range(GROUPS * OFFERED)]
        groups = [
            {"group": n, "offered": ids[n * OFFERED : (n + 1) * OFFERED], "replies": [REPLY, REPLY], "element_id": ids[0],
             "op": "CLICK", "value": "", "failure": None, "detail": "", "is_final_round": False}
            for n in range(GROUPS)
        ]  # fmt: skip
        usage = {
            "calls": 6,
            "prompt_tokens": 9000,
            "completion_tokens": 300,
            "image_tokens": 0,
            "cost_usd": 0.01 + i / 1e6,
        }
        said = {"element_id": ids[0], "op": "CLICK", "value": "", "failure": None, "detail": "", "ran": True}
        yield (
            {**key, **said, "usage": usage, "ranked": ids, "groups": groups},
            {
                **key, "website": f"site{i % 137}", "domain": f"domain{i % 5}", "n_actions": 2 + i % 20, "n_before": i % 20,
                "n_candidates": 100 + i % 900, "element": float(i % 2), "operation_f1": round((i % 7) / 6, 6),
                "success": float(i % 3 == 0), "outcome": "success" if i % 3 == 0 else "wrong_element", "best_rank": i % 50,
                "failure": None, "detail": "", "predicted": {"element_id": ids[0], "op": "CLICK", "value": ""},
                "target": {"element_ids": [ids[1]], "op": "CLICK", "value": ""},
            },
        )  # fmt: skip

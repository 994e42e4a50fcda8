"""The viewer on a run of 15,000 steps: the time to a list and to a step, and the size of index and server."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from benchmarks.data import write_run
from benchmarks.frame import ROOT, Line, scratch_folder
from tests.seeact_offline.viewer.browsing import Tab, chromium, open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

N_STEPS = 15_000
PAGE_ELEMENTS = 240
"""Elements of a page as tall as a real one: 7,400 px."""
SHOWN = 5
"""Number of steps that are opened."""


def measure(options: argparse.Namespace) -> list[Line]:
    """Opens the server that `view` starts in Chromium, by the browser's own clock. The slowest counts."""
    with scratch_folder(options.dir) as folder, chromium() as browser:
        return [*_list(browser, folder / "run"), *_steps(browser, folder / "pages")]


@dataclass(frozen=True, slots=True)
class Server:
    """`view`, as a process of its own."""

    url: str
    process: subprocess.Popen[str]

    @property
    def memory_mib(self) -> float:
        """Its peak."""
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
    write_run(run, N_STEPS)
    began = time.perf_counter()
    with _serving(run) as server:
        up = time.perf_counter() - began
        tabs = [_first_list(browser, server.url) for _ in range(3)]
        filters = _filters(browser, server.url)
        size, memory = len(server.get("index.json")), server.memory_mib
    return [
        Line("until the server is up", up, "s"),
        Line("first list once it is up", tabs[0], "ms", at_most=500),
        Line("  the browser warm", min(tabs[1:]), "ms"),
        Line("a filter, the slowest of twelve", max(filters), "ms", at_most=50),
        Line("  the middle one", sorted(filters)[len(filters) // 2], "ms"),
        Line("index.json", size / 1e6, "MB", at_most=3),
        Line("server with 15,000 steps", memory, "MiB", at_most=400),
    ]


def _first_list(browser: Browser, url: str) -> float:
    """Milliseconds from the page's request to its rows."""
    with open_tab(browser, url) as tab:
        tab.list()
        return float(tab.page.evaluate("performance.getEntriesByName('seeact:list')[0].startTime"))


def _filters(browser: Browser, url: str) -> list[float]:
    """Milliseconds from each change to its rows."""
    words = ["s", "si", "sit", "site1", "site13", "site136"]
    queries = [f"?q={word}" for word in words] + [f"?f.website=site{n}" for n in range(3)]
    queries += ["?f.outcome=success", "?sort=cost", "?min.rank=10"]
    with open_tab(browser, url) as tab:
        tab.list()
        for query in queries:
            tab.page.evaluate("to => { location.hash = to; }", f"#/{query}")
            tab.page.wait_for_timeout(100)
        taken = tab.page.evaluate("performance.getEntriesByName('seeact:filter').map(one => one.duration)")
    return [float(one) for one in taken[-len(queries) :]]


def _steps(browser: Browser, folder: Path) -> list[Line]:
    """Measures until the step and the top of its page are visible."""
    import seeact_offline as so
    from tests.pages import synthetic_rows, write_parquet

    write_parquet(
        synthetic_rows(2 * SHOWN, 2, PAGE_ELEMENTS, seed=0), folder / "data" / "test_task-00000-of-00001.parquet"
    )
    run = so.evaluate(dataset=str(folder), ranker="bm25", out=folder / "run").path
    with _serving(run) as server, open_tab(browser, server.url) as tab:
        # every other one: the page asks for the next step beforehand
        keys = json.loads(server.get("index.json"))["keys"][::2]
        tab.list()
        # the list asks for its first step by itself
        tab.page.wait_for_timeout(700)
        cold = [_open(tab, key) for key in keys]
        warm = [_open(tab, key) for key in keys]
        memory = server.memory_mib
    return [
        Line("a step and the top of its page, cold", max(cold), "ms", at_most=400),
        Line("  warm", max(warm), "ms", at_most=100),
        Line("server with pages", memory, "MiB", at_most=400),
    ]


def _open(tab: Tab, key: str) -> float:
    """Milliseconds."""
    began = tab.page.evaluate(
        "to => { performance.clearMeasures(); performance.clearResourceTimings(); location.hash = to; return performance.now(); }",
        f"#/step/{key}",
    )
    tab.until(
        "performance.getEntriesByName('seeact:step').length && [...document.images].some(one => one.complete && one.naturalWidth)"
    )
    ended = tab.page.evaluate(
        "Math.max(performance.getEntriesByName('seeact:step')[0].startTime + performance.getEntriesByName('seeact:step')[0].duration,"
        " ...performance.getEntriesByType('resource').filter(one => one.name.includes('/img/')).slice(0, 1).map(one => one.responseEnd))"
    )
    # until the next one, which the page asks for by itself, is there too
    tab.page.wait_for_timeout(700)
    return float(ended - began)

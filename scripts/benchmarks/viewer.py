"""The viewer of a run of 15,000 steps is there at once, and a filter changes within two frames."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from benchmarks.big_runs import write_data, write_run
from benchmarks.frame import ROOT, Line, scratch_folder

STARTS = 7
"""Starts of the command, of which the least of each figure counts."""
VISITS = 3
"""Visits of the list, of which the least time of each change counts."""
LOOK_S = 1.0
"""Seconds for which a person looks at the list before opening a step."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FACETS = ("outcome", "failure", "op", "rank", "domain", "website")
WORDS = ("click", "e", "the cheapest", "nothing has this")
SORTS = ("task", "-rank", "f1")
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
CLICK = "box => box.click()"
SORT = "(choice, id) => { choice.value = id; choice.dispatchEvent(new Event('change')); }"
SEARCH = "(box, word) => { box.value = word; box.dispatchEvent(new Event('input')); }"
TYPED_S = 0.1
"""Seconds after which the page has taken a typed word."""


class Start(NamedTuple):
    """Seconds and megabytes of one start of the command."""

    index_s: float
    """From the start of the command to the answer of the list."""
    step_s: float
    """First answer of a step, which was asked for `LOOK_S` after the list, or at once."""
    picture_s: float
    """First answer of a picture of that step."""
    peak_mb: float


def measure(options: argparse.Namespace) -> list[Line]:
    """Starts the viewer on a run, on the same run with another beside it, and visits the list in Chromium."""
    with scratch_folder(options.dir) as scratch:
        write_data(scratch / "data")
        runs = [write_run(scratch / f"top{k}", "--top-k", k, data=scratch / "data") for k in (50, 46)]
        starts = [_start(runs[:1], LOOK_S) for _ in range(STARTS)]
        hasty = [_start(runs[:1], 0) for _ in range(STARTS)]
        both_s = min(_start(runs, 0).index_s for _ in range(STARTS))
        changes, checked_mb = _visits(runs[0])
    for name, seconds in changes.items():
        print(f"viewer: {name:<32}{1000 * seconds:>8.1f} ms")
    return [
        Line("list, from the command's start", min(start.index_s for start in (*starts, *hasty)), "s", at_most=0.4),
        Line("list of two runs", both_s, "s"),
        Line("a step, a second after the list", min(start.step_s for start in starts), "s", at_most=0.2),
        Line("its picture", min(start.picture_s for start in starts), "s", at_most=0.2),
        Line("a step, at once after the list", min(start.step_s for start in hasty), "s"),
        Line("peak of list, step and picture", min(start.peak_mb for start in starts) / 1.048576, "MiB", at_most=250),
        Line("the same with the check of the run", checked_mb / 1.048576, "MiB"),
        Line(
            "a filter's longest task",
            1000 * max(changes[name] for name in changes if name not in SORTS),
            "ms",
            at_most=30,
        ),
        Line("the same of a new order", 1000 * max(map(changes.__getitem__, SORTS)), "ms"),
    ]


@contextmanager
def _serving(runs: list[Path]) -> Iterator[tuple[str, int]]:
    """Yields the address and the process of the command, once it prints the first."""
    command = [sys.executable, "-m", "seeact_offline.cli", "view", "--no-browser", *map(str, runs)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().partition("#")[0], process.pid
    finally:
        process.terminate()
        process.wait()


def _start(runs: list[Path], look_s: float) -> Start:
    began = time.perf_counter()
    with _serving(runs) as (url, process):
        keys = _fetched(f"{url}index.json")["keys"]
        index_s = time.perf_counter() - began
        time.sleep(look_s)
        began = time.perf_counter()
        step = _fetched(f"{url}step/{keys[4 * len(keys) // 5]}.json")
        step_s = time.perf_counter() - began
        began = time.perf_counter()
        with urlopen(url + step["picture"]["parts"][0]["src"]) as answer:
            answer.read()
        return Start(index_s, step_s, time.perf_counter() - began, _peak_mb(process))


def _fetched(url: str) -> Any:
    with urlopen(url) as answer:
        return json.loads(answer.read())


def _peak_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024 / 1e6


# --- filters ---


def _visits(run: Path) -> tuple[dict[str, float], float]:
    """Seconds of the longest task of each change, the least over all visits; and the peak after the run's check."""
    from playwright.sync_api import sync_playwright

    from seeact_offline.recorder.browser import find_chromium

    changes: dict[str, float] = {}
    with _serving([run]) as (url, process), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(None), args=FLAGS)
        for _ in range(VISITS):
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.goto(url)
            # nothing else goes on once the run is checked
            page.wait_for_selector(".check.good, .check.part, .check.bad", timeout=120_000)
            page.wait_for_timeout(500)
            for name, seconds in _visit(browser, page):
                changes[name] = min(changes.get(name, seconds), seconds)
            page.close()
        peak_mb = _peak_mb(process)
        browser.close()
    return changes, peak_mb


def _visit(browser: Any, page: Any) -> Iterator[tuple[str, float]]:
    for facet in FACETS:
        for place in (0, 1):
            for act in ("choose", "clear"):
                box = page.locator(f"[data-facet={facet}] input").nth(place)
                yield f"{act} {facet} {place + 1}", _longest_task(browser, page, box, CLICK)
    for word in (*WORDS, ""):
        yield f"search {word!r}", _longest_task(browser, page, page.locator("input.search"), SEARCH, word)
    for sort in SORTS:
        yield sort, _longest_task(browser, page, page.locator(".sorter select"), SORT, sort)


def _longest_task(browser: Any, page: Any, control: Any, change: str, value: str | None = None) -> float:
    """Seconds of the longest task of the page's main thread from the change to the second frame after it."""
    browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"])
    control.evaluate(change, value)
    page.wait_for_timeout(1000 * TYPED_S)
    page.evaluate(FRAMES)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        event
        for event in events
        if event["name"] == "RunTask" and "dur" in event and (event["pid"], event["tid"]) in threads
    ]
    return float(max(event["dur"] for event in tasks)) / 1e6

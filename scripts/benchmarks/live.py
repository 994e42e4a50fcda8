"""Two browsers finish nearly twice as many episodes as one, and a window is seen without a whole page's cost."""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

from benchmarks.frame import Line, measure_verb, scratch_folder, timed

TASKS, LOOKS = 8, 5
WORDS = (
    "browse",
    "sites",
    "--agent",
    "visualwebarena",
    "--model",
    "builtin/oracle",
    "--split",
    "all",
    "--sample",
    TASKS,
)


def measure(options: argparse.Namespace) -> list[Line]:
    """Lets the oracle act on a task of each of eight websites, with one and with two browsers; then looks at
    the start of each in three ways."""
    with scratch_folder(options.dir) as scratch:
        one_s, two_s = (measure_verb([*WORDS, "--concurrency", n, "--out", scratch / str(n)]).wall_s for n in (1, 2))
    window, rows, whole = _looks()
    return [
        Line(f"{TASKS} episodes, one browser", one_s, "s"),
        Line(f"{TASKS} episodes, two browsers", two_s, "s"),
        Line("times faster with two", one_s / two_s, "x", at_least=1.4),
        Line("picture of a window, median", 1000 * window, "ms"),
        Line("a window as a row, median", 1000 * rows, "ms"),
        Line("a whole page as a row, median", 1000 * whole, "ms"),
    ]


def _looks() -> tuple[float, float, float]:
    """Seconds for a window's picture, for the window as a row and for the whole page as a row,
    each the median over all looks."""
    from playwright.sync_api import sync_playwright

    from seeact_offline.live.acting_places import BUNDLED, live_tasks
    from seeact_offline.live.pages import LiveSession
    from seeact_offline.live.speakers import WINDOW
    from seeact_offline.recorder.browser import find_chromium, launch
    from seeact_offline.recorder.origins import Origin, served
    from seeact_offline.runs.config import EvalConfig
    from seeact_offline.sample import FONTS

    seconds: dict[str, list[float]] = {"window": [], "row": [], "whole": []}
    with sync_playwright() as playwright:
        for task in live_tasks(BUNDLED, EvalConfig(split="all", sample=TASKS)):
            with served(task.start, task.served) as start:
                browser = launch(playwright, find_chromium(None), frozenset({Origin.of(start, "start")}), FONTS)
                with LiveSession(browser, task, start, WINDOW, frozenset()) as session:
                    session.rest()
                    looks: dict[str, Any] = {
                        "window": session.picture,
                        "row": lambda session=session: session.observe("look", ()),
                        "whole": lambda session=session: session.observe("look", (), whole=True),
                    }
                    for name, look in looks.items():
                        seconds[name] += [timed(look).wall_s for _ in range(LOOKS)]
                browser.close()
    return median(seconds["window"]), median(seconds["row"]), median(seconds["whole"])

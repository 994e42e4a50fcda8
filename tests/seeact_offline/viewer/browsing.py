"""Debian's Chromium on the viewer's pages, with everything that it complains about."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from seeact_offline.recorder.browser import NAMES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REAL_BROWSER = [
    pytest.mark.skipif(
        not any(map(shutil.which, NAMES)), reason=f"no Chromium: none of {', '.join(NAMES)} is on the PATH"
    ),
    pytest.mark.timeout(180),
]
FLAGS = ["--disable-gpu", "--disable-background-networking", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
REPORTS = """
window.reports = [];
document.addEventListener('securitypolicyviolation', (event) => reports.push(`${event.violatedDirective}: ${event.sample}`));
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """One page, and what went wrong on it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.said: list[str] = []
        page.on(
            "console", lambda message: self.said.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog {dialog.message}"), dialog.dismiss()))

    @property
    def faults(self) -> list[str]:
        """Errors, dialogs, and the browser's own reports on the security policy."""
        return [*self.said, *self.page.evaluate("window.reports")]

    def list(self, query: str = "") -> Page:
        self.page.goto(f"{self.url}#/{query}")
        self.page.wait_for_selector(".results")
        return self.page

    def step(self, key: str, query: str = "") -> Page:
        self.page.goto(f"{self.url}#/step/{key}{query}")
        self.page.wait_for_selector(".answer")
        return self.page

    def until(self, condition: str, seconds: float = 15) -> None:
        """Waits until a JavaScript expression holds: from outside, as the page's policy forbids to evaluate text inside."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"not within {seconds:g} s: {condition}"
            self.page.wait_for_timeout(30)

    def texts(self, selector: str) -> list[str]:
        """What the nodes show, those of an SVG too."""
        return list(
            self.page.locator(selector).evaluate_all("all => all.map(one => (one.innerText ?? one.textContent).trim())")
        )


@contextmanager
def visiting(browser: Browser, url: str, *, width: int = 1280, **context: Any) -> Iterator[Visit]:
    """A fresh page of its own; `context`: of Playwright's `new_context`."""
    opened = browser.new_context(viewport={"width": width, "height": 860}, **context)
    opened.set_default_timeout(30_000)
    opened.add_init_script(REPORTS)
    try:
        yield Visit(opened.new_page(), url)
    finally:
        opened.close()

"""Chromium on the viewer's pages, with everything that it complains about."""

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
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page

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


class Tab:
    """One page, and its errors."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.errors: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._dismiss)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _dismiss(self, dialog: Dialog) -> None:
        self.errors.append(f"dialog {dialog.message}")
        dialog.dismiss()

    @property
    def faults(self) -> list[str]:
        """Errors, dialogs, and the browser's own reports on the security policy."""
        return [*self.errors, *self.page.evaluate("window.reports")]

    def list(self, query: str = "") -> Page:
        self.page.goto(f"{self.url}#/{query}")
        self.page.wait_for_selector(".results")
        return self.page

    def step(self, key: str, query: str = "") -> Page:
        self.page.goto(f"{self.url}#/step/{key}{query}")
        self.page.wait_for_selector(".answer")
        return self.page

    def clear(self) -> None:
        """Leaves the page, and forgets its errors and what it stored."""
        if self.page.url.startswith("http"):
            self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.page.goto("about:blank")
        self.errors.clear()

    def until(self, condition: str, seconds: float = 15) -> None:
        """Waits until a JavaScript expression holds: from outside, as the page's policy forbids to evaluate text inside."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"not within {seconds:g} s: {condition}"
            self.page.wait_for_timeout(30)

    def texts(self, selector: str) -> Any:
        """The text of each node, also of an SVG's."""
        return self.page.locator(selector).evaluate_all(
            "all => all.map(one => (one.innerText ?? one.textContent).trim())"
        )

    def keys(self) -> Any:
        """The keys of the steps in the list, from top to bottom."""
        ordered = "rows.sort((a, b) => a.getAttribute('aria-rowindex') - b.getAttribute('aria-rowindex'))"
        return self.page.locator(".window .row").evaluate_all(f"rows => {ordered}.map(row => row.dataset.key)")


@contextmanager
def open_tab(browser: Browser, url: str, *, width: int = 1280, **context: Any) -> Iterator[Tab]:
    """A fresh page of its own; `context`: of Playwright's `new_context`."""
    opened = browser.new_context(viewport={"width": width, "height": 860}, **context)
    opened.set_default_timeout(30_000)
    opened.add_init_script(REPORTS)
    try:
        yield Tab(opened.new_page(), url)
    finally:
        opened.close()

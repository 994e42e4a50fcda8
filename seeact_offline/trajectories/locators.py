"""Applies a task's locator to a stored page.

The whole page and `func:get_query_text(__page__, 'css')`, also as `_lowercase`, are read here. JavaScript is run by the
recorder's Chromium, as the released code has it run: `document.`, `[...document.` and `lambda:`. All others raise
Unscored `unsupported_locator`, as JavaScript does where there is no browser,
and where it asks for what a stored page does not hold.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from seeact_offline.records import InputError
from seeact_offline.trajectories.answer_rules import Unscored

if TYPE_CHECKING:
    from lxml import html as lxml_html

    from seeact_offline.recorder.browser import Chromium

MAX_CHARACTERS = 20_000_000
MAX_TAGS = 500_000
LONGEST = 2000
"""Characters of a selector or an expression."""
EXPRESSIONS = ("document.", "[...document.")
"""Beginnings of a locator that is an expression of JavaScript."""
DEADLINE_S = 20.0
"""Seconds that an expression may take before the browser is ended."""
_QUERY = re.compile(
    r"""func:get_query_text(?P<lower>_lowercase)?\(__page__,\s*(?P<quote>["'])(?P<css>.*)(?P=quote)\)\s*""", re.DOTALL
)
_NOT_READ = re.compile(r":(?:hover|active|focus|visited|target|scope|contains)\b|!=")
"""Selectors that a stored page cannot decide, and those that no browser reads."""
_NOT_STORED = re.compile(
    r":(?:hover|active|focus|visited|target|contains)\b|content(?:Document|Window)|(?:local|session)Storage"
    r"|cookie|fetch|XMLHttpRequest|getComputedStyle|getBoundingClientRect|\.(?:offset|client|scroll)[A-Z]"
    r"|await\b|import\b|\bset(?:Timeout|Interval)\b"
)
"""Frames, sizes, requests and times: what they give on a stored page says nothing of the page that was left."""
_RESTORE = """() => {
    for (const field of document.querySelectorAll("[input_value]"))
        if ("value" in field) field.value = field.getAttribute("input_value");
    for (const box of document.querySelectorAll("input[input_checked]"))
        box.checked = box.getAttribute("input_checked") === "true";
    for (const option of document.querySelectorAll("option[option_selected]"))
        if (option.getAttribute("option_selected") !== "false") option.selected = true;
}"""
"""Brings fields into the state that the recorder's attributes name."""
FAILED = object()
"""The value of an expression that raises in the browser, such as a property of null."""


@dataclass(frozen=True)
class StoredPage:
    """A page as it was left: its address and its HTML."""

    address: str
    html: str = field(repr=False)
    _values: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Expression -> its value: all rule sets ask for the same."""

    @cached_property
    def tree(self) -> lxml_html.HtmlElement | None:
        """The parsed page; None for a page without an element.
        Raises Unscored `no_state` for a page that is too large."""
        from lxml import etree, html

        self.check_size()
        try:
            parser = html.HTMLParser(no_network=True, encoding="utf-8", huge_tree=True)
            tree = html.document_fromstring(self.html.encode("utf-8", "replace"), parser=parser)
        except (etree.ParserError, etree.XMLSyntaxError, ValueError):
            return None
        for element in tree.iter("pre", "textarea", "listing"):
            # a line feed behind the tag is not part of the text
            element.text = element.text and element.text.removeprefix("\n")
        for table in tree.iter("table"):
            _add_bodies(table)
        return tree

    def check_size(self) -> None:
        """Raises Unscored `no_state` for a page that is too large."""
        if len(self.html) > MAX_CHARACTERS or self.html.count("<") > MAX_TAGS:
            raise Unscored("no_state", f"the page at {self.address:.60} is too large")

    def evaluate(self, code: str) -> Any:
        """The value of an expression of JavaScript, or FAILED. Raises Unscored.
        Needs a browser and the extra `record`."""
        if code not in self._values:
            self._values[code] = BROWSER.evaluate(self, code)
        return self._values[code]

    def select(self, css: str) -> list[Any]:
        """The elements that a selector matches, in order of the page. Raises Unscored. Needs the extra `rewards`."""
        from cssselect import HTMLTranslator, SelectorError
        from lxml import etree

        if len(css) > LONGEST or _NOT_READ.search(css):
            raise Unscored("unsupported_locator", f"selector {css!r:.80}")
        # as in browsers, the end of the selector closes an open bracket
        closed = css + "]" * (css.count("[") - css.count("]"))
        try:
            path = HTMLTranslator().css_to_xpath(closed, prefix="descendant-or-self::")
            return [] if self.tree is None else list(self.tree.xpath(path))
        except (SelectorError, etree.XPathError, RecursionError):
            raise Unscored("unsupported_locator", f"selector {css!r:.80}") from None


def _add_bodies(table: Any) -> None:
    """Puts rows that lie in no part of their table into a body, as browsers do."""
    body = None
    for part in list(table):
        if part.tag == "tr":
            if body is None:
                body = table.makeelement("tbody")
                part.addprevious(body)
            body.append(part)
        elif isinstance(part.tag, str):
            body = None


def locate(page: StoredPage, locator: str) -> str | None:
    """The text that a locator finds, as the released code passes it on;
    None where it says that the page is wrong. Raises Unscored."""
    if not locator.strip():
        return page.html
    if query := _QUERY.fullmatch(locator):
        elements = page.select(query["css"].replace("\\'", "'").replace('\\"', '"'))
        text = elements[0].text_content() if elements else ""
        return text.lower() if query["lower"] else text
    is_function = locator.startswith("lambda:")
    if not is_function and not locator.startswith(EXPRESSIONS):
        raise _unsupported(locator)
    value = page.evaluate(locator.removeprefix("lambda:").strip())
    if value is FAILED or (is_function and not value):
        # an empty result of a function fails at once
        return None if is_function else ""
    return str(value)


class PageBrowser:
    """Evaluates expressions on stored pages in a browser that reaches no network and runs no script of the page.

    Any thread may ask: the browser stays in a thread of its own. It starts with the first expression.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._chromium: Chromium | None = None
        self._tab: Any = None
        self._page: StoredPage | None = None

    def evaluate(self, page: StoredPage, code: str) -> Any:
        """The value as Playwright hands it over, or FAILED. Raises Unscored for what cannot be evaluated here."""
        page.check_size()
        if len(code) > LONGEST or _NOT_STORED.search(code):
            raise _unsupported(code)
        self._thread = self._thread or ThreadPoolExecutor(1)
        return self._thread.submit(self._evaluate, page, code).result()

    def close(self) -> None:
        """Ends the browser; the next expression starts another."""
        if self._thread is not None and self._chromium is not None:
            self._thread.submit(self._chromium.close).result()
        self._thread = self._chromium = self._tab = None

    def _evaluate(self, page: StoredPage, code: str) -> Any:
        from seeact_offline.recorder.browser import Chromium, Deadline, find_chromium

        try:
            self._chromium = self._chromium or Chromium(find_chromium(), None)
            browser = self._chromium.reaching(frozenset())
        except InputError as error:
            raise Unscored("unsupported_locator", f"{code!r:.100} needs a browser: {error}") from None
        from playwright.sync_api import Error

        self._page, is_shown = page, False
        with Deadline(browser, DEADLINE_S) as deadline:
            try:
                if self._tab is None or self._tab.is_closed():
                    self._tab = browser.new_context(service_workers="block").new_page()
                    self._tab.route("**/*", self._serve)
                # always anew: an expression may change the page
                address = page.address if page.address.startswith(("http://", "https://")) else "http://page.invalid/"
                self._tab.goto(address, wait_until="domcontentloaded")
                self._tab.evaluate(_RESTORE)
                is_shown = True
                return self._tab.evaluate(code)
            except Error as error:
                if is_shown and not deadline.passed:
                    return FAILED
                # the next page gets a browser of its own
                self._chromium.close()
                self._chromium = self._tab = None
                why = "no end" if deadline.passed else str(error)
                raise Unscored("unsupported_locator", f"{code!r:.100} in a browser: {why}"[:200]) from None

    def _serve(self, route: Any) -> None:
        """Answers with the page, which may run no script, and with nothing else."""
        if route.request.is_navigation_request() and route.request.frame.parent_frame is None and self._page:
            policy = {"Content-Security-Policy": "script-src 'none'"}
            route.fulfill(body=self._page.html, content_type="text/html; charset=utf-8", headers=policy)
        else:
            route.abort()


BROWSER = PageBrowser()
"""The browser of this process."""


def _unsupported(code: str) -> Unscored:
    return Unscored("unsupported_locator", f"{code!r:.100}")

"""Chromium, driven through Playwright.

Pages are untrusted, and a model is sent what they show. The browser resolves no host but those of the origins that the
user named, so that a page reaches no others by frames, redirects, sockets or workers. Files are served over HTTP,
because a page of a `file:` URL may read other files.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from seeact_offline.dataset.recorded import Condition
from seeact_offline.files.extras import install_command
from seeact_offline.recorder.origins import ANYWHERE, Origin, environment_proxy
from seeact_offline.recorder.script import Action, TaskScript
from seeact_offline.records import InputError, StepError

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Locator, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--disable-gpu", "--disable-background-networking", "--font-render-hinting=none", "--disable-lcd-text",
    "--force-color-profile=srgb", "--disable-component-update", "--no-first-run",
    "--disable-partial-raster",
)  # fmt: skip
"""--disable-partial-raster: a tile that is redrawn in part gets other grey edges than one that is drawn whole,
and timing decides between the two."""
VIEWPORT_WIDTH, VIEWPORT_HEIGHT = 1280, 720
CLOCK = "2026-03-12T10:00:00"
"""The current time, for pages."""
_POSITIVES = (Path(__file__).parent / "positives.js").read_text(encoding="utf-8")
UNSEEN = """
(() => {
  const add = EventTarget.prototype.addEventListener;
  // while the recorder reads the page out, it scrolls, and scrolls back
  for (const kind of ['scroll', 'scrollend']) {
    add.call(window, kind, (event) => { if (window.__recorderScrolls) event.stopImmediatePropagation(); }, true);
  }
})();
"""
"""Keeps a page from noticing that it is read out."""
INIT = f"""{UNSEEN}
(() => {{
  // its packets to other machines need no host to be resolved
  delete window.RTCPeerConnection;
  delete window.webkitRTCPeerConnection;
  let state = 1;
  Math.random = () => (state = (state * 48271) % 2147483647) / 2147483647;
}})();
"""
_VALUES = """(elements) => elements.map(
  (el) => el.tagName === 'SELECT' ? (el.selectedOptions[0]?.label ?? '') : String(el.value ?? ''))"""
_REST = """(most_ms) => Promise.race([
  document.fonts.ready.then(() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r())))),
  new Promise(r => setTimeout(r, most_ms)),
])"""
REST_S = 5.0
"""Seconds for which a page's network, and then its frames, are waited for at most."""


class Chromium:
    """A browser of its own Playwright, both of the thread that asks for it first."""

    def __init__(self, path: str, fonts: Path | None, headed: bool = False) -> None:
        self._path, self._fonts, self._headed = path, fonts, headed
        self._playwright: Any = None
        self._browser: Any = None
        self.reachable: frozenset[Origin] = frozenset()

    def reaching(self, origins: frozenset[Origin]) -> Any:
        """A browser that sends requests to these origins alone: the last one,
        or a new one where that has ended or reaches others.

        Raises InputError where none can be started.
        """
        if self._playwright is None:
            try:
                from playwright.sync_api import sync_playwright
            except ImportError:
                hint = install_command("record")
                raise InputError("browser", sentence=f"a browser needs the package playwright: run {hint}") from None
            self._playwright = sync_playwright().start()
        wanted = frozenset({ANYWHERE}) if ANYWHERE in origins else origins
        if self._browser is None or wanted != self.reachable or not self._browser.is_connected():
            if self._browser is not None:
                self._browser.close()
            try:
                self._browser = launch(self._playwright, self._path, wanted, self._fonts, self._headed)
            except BaseException:
                # any error is passed on; only Playwright's process must not stay behind
                self._playwright.stop()
                self._playwright = None
                raise
            self.reachable = wanted
        return self._browser

    def close(self) -> None:
        if self._playwright is None:
            return
        from playwright.sync_api import Error

        # Ctrl-C in a terminal has ended Playwright's driver too
        with suppress(Error):
            if self._browser is not None:
                self._browser.close()
            self._playwright.stop()


def launch(playwright: Any, path: str, reachable: frozenset[Origin], fonts: Path | None, headed: bool = False) -> Any:
    """Starts a browser that sends requests to these origins alone. Raises InputError where it does not start."""
    from playwright.sync_api import Error

    # Chromium's sandbox does not work for root; other users keep it, because pages are untrusted
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    environment = dict(os.environ) | ({"FONTCONFIG_FILE": str(fonts)} if fonts else {})
    is_open = ANYWHERE in reachable
    # the first rule that fits counts; a proxy would resolve hosts by itself
    rules = ",".join([*sorted(f"MAP {origin.place} {origin.place}" for origin in reachable), "MAP * ~NOTFOUND"])
    walls = [] if is_open else ["--no-proxy-server", f"--host-resolver-rules={rules}"]
    try:
        return playwright.chromium.launch(
            executable_path=path,
            args=[*FLAGS, *walls],
            chromium_sandbox=not is_root,
            env=environment,
            headless=not headed,
            proxy=environment_proxy() if is_open else None,
        )
    except Error as error:
        reason = " ".join(error.message.split())[:200]
        raise InputError("browser", sentence=f"the browser at {path} does not start: {reason}") from None


@contextmanager
def fresh_page(browser: Any, script: str) -> Iterator[Page]:
    """A page in a fresh profile, in which time stands still. `script`: runs before a page's own."""
    from playwright.sync_api import Error

    viewport = {"width": VIEWPORT_WIDTH, "height": VIEWPORT_HEIGHT}
    context = browser.new_context(viewport=viewport, locale="en-US", timezone_id="UTC")
    try:
        page = context.new_page()
        page.clock.set_fixed_time(CLOCK)
        page.add_init_script(script)
        yield page
    finally:
        # the browser may be gone
        with suppress(Error):
            context.close()


class Deadline:
    """Kills the browser unless it is restarted in time: nothing else ends a page whose script never returns.
    A context manager."""

    def __init__(self, browser: Any, seconds: float) -> None:
        self.passed = False
        self._seconds = seconds
        processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        self._pid = next(int(process["id"]) for process in processes if process["type"] == "browser")

    def __enter__(self) -> Deadline:
        self._timer = threading.Timer(self._seconds, self._kill)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def pause(self) -> None:
        """Counts no time until it is restarted."""
        self._timer.cancel()

    def restart(self) -> None:
        self._timer.cancel()
        self.__enter__()

    def _kill(self) -> None:
        self.passed = True
        with suppress(OSError):
            os.kill(self._pid, getattr(signal, "SIGKILL", signal.SIGTERM))


class ConditionResult(NamedTuple):
    """A condition evaluated on a page."""

    holds: bool
    found: object


def find_chromium(path: str | None = None) -> str:
    """Path of the browser. Raises InputError with the command that installs one."""
    executable = shutil.which(path) if path else next((p for p in map(shutil.which, NAMES) if p), None)
    if executable is None:
        where = f"at {path}" if path else f"on the PATH ({', '.join(NAMES)})"
        raise InputError("browser", sentence=f"no browser found {where}; install one: apt-get install chromium")
    return executable


def find(page: Page, action: Action) -> Locator:
    """Waits for the element of an action. Raises StepError unless exactly one is visible."""
    scope = page.frame_locator(action.frame) if action.frame else page
    matches = scope.locator(action.selector).filter(visible=True)
    matches.first.wait_for(state="visible")
    n = matches.count()
    if n != 1:
        raise StepError("ambiguous", f"expected one visible element for {action.selector}, found {n}")
    return matches


def carry_out(target: Locator, action: Action) -> None:
    """Carries out an action on its element."""
    done: dict[str, Callable[[], object]] = {
        "CLICK": lambda: target.click(),
        "TYPE": lambda: target.fill(action.operation.value),
        "SELECT": lambda: target.select_option(label=action.operation.value),
        "HOVER": lambda: target.hover(),
        "ENTER": lambda: target.press("Enter"),
    }
    done[action.operation.original_op]()


def evaluate(page: Page, condition: Condition) -> ConditionResult:
    """Looks on a page for what a condition names: an address, elements, values or texts."""
    if condition.selector is None:
        address = urlunsplit(("", "", *urlsplit(page.url)[2:]))
        return ConditionResult(str(condition.url) in address, address)
    matches = page.locator(condition.selector).filter(visible=True)
    if condition.visible is not None:
        n = matches.count()
        return ConditionResult(bool(n) == condition.visible, f"{n} visible elements")
    if condition.value is not None:
        values = matches.evaluate_all(_VALUES)
        return ConditionResult(condition.value in values, values)
    texts = [" ".join(text.split()) for text in matches.all_inner_texts()]
    wanted = " ".join(str(condition.text).split())
    return ConditionResult(any(wanted in text for text in texts), texts)


def accepts_dialog(dialog: Any, task: TaskScript) -> bool:
    """Tells whether a page's dialog is accepted, as the task says. A page can always be left."""
    return task.accepts_dialogs or dialog.type == "beforeunload"


def answer_dialog(dialog: Any, is_accepted: bool) -> None:
    dialog.accept(dialog.default_value) if is_accepted else dialog.dismiss()


def settle(page: Page) -> None:
    """Waits until the page has loaded, its network is quiet and two frames were drawn in its fonts;
    the last two for at most `REST_S` each."""
    from playwright.sync_api import TimeoutError as TooLong

    page.wait_for_load_state("load")
    with suppress(TooLong):
        page.wait_for_load_state("networkidle", timeout=1000 * REST_S)
    page.evaluate(_REST, 1000 * REST_S)


def same_box(target: Locator, session: CDPSession) -> list[int]:
    """Backend node ids of the target and of all other elements with its box."""
    target.evaluate("(el) => { window.__recorderTarget = el; }")
    handle = session.send("Runtime.evaluate", {"expression": "window.__recorderTarget"})["result"]["objectId"]
    array = session.send("Runtime.callFunctionOn", {"functionDeclaration": _POSITIVES, "objectId": handle})
    if "exceptionDetails" in array:
        reason = array["exceptionDetails"].get("exception", {}).get("description", "")
        raise StepError("script_failed", str(reason)[:200])
    asked = {"objectId": array["result"]["objectId"], "ownProperties": True}
    items = session.send("Runtime.getProperties", asked)["result"]
    objects = [item["value"]["objectId"] for item in items if item["name"].isdigit()]
    return [int(session.send("DOM.describeNode", {"objectId": o})["node"]["backendNodeId"]) for o in objects]

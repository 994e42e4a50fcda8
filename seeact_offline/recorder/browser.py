"""Chromium, driven through Playwright: one task at a time, one `StepRecord` an action.

Pages are untrusted, and a model is sent what they show. The browser resolves no host but those of the origins that the user named, so
that a page reaches no others by frames, redirects, sockets or workers. Files are served over HTTP, because a page of a `file:` URL
may read other files.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from msgspec import json, structs

from seeact_offline.dataset.recorded import FINAL_SCREENSHOT, RECORDED_COLUMNS, Check, Condition, FinalState, PageState
from seeact_offline.dataset.writing import ElementRecord, StepRecord
from seeact_offline.files.extras import install_command
from seeact_offline.pages.screenshots import open_picture
from seeact_offline.recorder.browser_options import environment_proxy
from seeact_offline.recorder.cleaning import Node, candidate_attributes, clean, cleaned_html, raw_html, xml_text
from seeact_offline.recorder.few_colours import in_few_colours
from seeact_offline.recorder.observing import MEASURE, accessibility_tree, layout
from seeact_offline.recorder.origins import ANYWHERE, Origin, served
from seeact_offline.recorder.script import Action, TaskScript
from seeact_offline.recorder.snapshot import STYLES, snapshot_tree
from seeact_offline.records import Box, InputError, StepError

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, CDPSession, Locator, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--disable-gpu", "--disable-background-networking", "--font-render-hinting=none", "--disable-lcd-text",
    "--force-color-profile=srgb", "--disable-component-update", "--no-first-run",
    "--disable-partial-raster",
)  # fmt: skip
"""--disable-partial-raster: a tile that is redrawn in part gets other grey edges than one that is drawn whole, and timing decides
between the two."""
VIEWPORT_WIDTH, VIEWPORT_HEIGHT = 1280, 720
CLOCK = "2026-03-12T10:00:00"
"""The current time, for pages."""
NAME_CHARS = 80
"""Most characters of an element's name in an action text."""
NAMELESS_ROLES = frozenset(
    {"", "generic", "none", "presentation", "StaticText", "LabelText", "Canvas", "Iframe", "ignored"}
)
"""Accessibility roles that add nothing to the tag."""
_FINAL_COLUMNS = frozenset({"final_state", FINAL_SCREENSHOT})
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
_FALLBACK_NAME = """(el) => el.getAttribute('aria-label') || (el.tagName === 'SELECT' ? '' : el.innerText) || el.placeholder ||
  el.title || el.name || ''"""
"""The name of an element that the accessibility tree does not name; the text of a list would be all its options."""
_VALUES = """(elements) => elements.map(
  (el) => el.tagName === 'SELECT' ? (el.selectedOptions[0]?.label ?? '') : String(el.value ?? ''))"""
_REST = """(most_ms) => Promise.race([
  document.fonts.ready.then(() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r())))),
  new Promise(r => setTimeout(r, most_ms)),
])"""
REST_S = 5.0
"""Seconds for which a page's network, and then its frames, are waited for at most."""


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Options of a recording."""

    browser: str | None = None
    """Path of a Chromium; None: the first one on the PATH."""
    picture: str = "jpeg"
    """jpeg, webp, png or tiff."""
    quality: int = 80
    """Quality of jpeg and webp, 1 to 100."""
    colours: int = 256
    """Number of colours that a tiff keeps, the most frequent ones, 1 to 256."""
    raw_html: bool = True
    """False leaves the column empty to save space."""
    timeout_s: float = 15.0
    """Seconds for an element to appear, and for a page to load."""
    deadline_s: float = 45.0
    """Seconds for a step as a whole; then the browser is killed and the task fails."""
    allow_origins: tuple[str, ...] = ()
    """Origins besides that of the task's start to which pages may send requests, as `https://host` or `http://host:port`."""
    fonts: Path | None = None
    """A fontconfig file that chooses the fonts; None: the system's."""
    columns: tuple[str, ...] = RECORDED_COLUMNS
    """The optional columns to write."""


class RecordFailed(StepError):
    """A task that could not be recorded to its end; `steps` are those before the one that failed."""

    def __init__(self, detail: str, steps: Sequence[StepRecord]) -> None:
        super().__init__("record_failed", detail)
        self.steps = steps


class Recorder:
    """Records tasks. A context manager that keeps Playwright running while it is open."""

    def __init__(self, options: RecordOptions) -> None:
        """Raises InputError with the command that installs a missing browser."""
        self._options = options
        self._allowed = frozenset(Origin.of(url, "allow_origin") for url in options.allow_origins)
        self._chromium = Chromium(find_chromium(options.browser), options.fonts)
        self.refused: set[str] = set()
        """Origins to which pages could not send their requests, so far."""

    def __enter__(self) -> Recorder:
        self._browser = self._chromium.reaching(self._allowed)
        return self

    def __exit__(self, *_: object) -> None:
        self._chromium.close()

    @property
    def version(self) -> str:
        """The browser's version."""
        return str(self._browser.version)

    def record(self, task: TaskScript) -> list[StepRecord]:
        """All steps of one task, in a fresh profile. Raises RecordFailed naming the failed step, counted from 1."""
        with served(task.start, task.served) as start:
            self._browser = self._chromium.reaching(self._allowed | {Origin.of(start, "start")})
            try:
                with Deadline(self._browser, self._options.deadline_s) as deadline:
                    return self._steps(task, start, deadline)
            except RecursionError:
                raise StepError("record_failed", f"task {task.task!r:.100}: a page that is nested too deeply") from None

    def _note_refused(self, url: str) -> None:
        with suppress(InputError):
            origin = Origin.of(url, "start")
            self.refused |= set() if origin in self._chromium.reachable else {str(origin)}

    def _steps(self, task: TaskScript, start: str, deadline: Deadline) -> list[StepRecord]:
        from playwright.sync_api import Error

        states: list[_PageState] = []
        final: _Capture | None = None
        number, viewport = 0, {"width": VIEWPORT_WIDTH, "height": VIEWPORT_HEIGHT}
        context: BrowserContext | None = None
        try:
            context = self._browser.new_context(viewport=viewport, locale="en-US", timezone_id="UTC")
            context.on("requestfailed", lambda request: self._note_refused(request.url))
            page = context.new_page()
            page.on("dialog", lambda dialog: answer_dialog(dialog, accepts_dialog(dialog, task)))
            page.set_default_timeout(1000 * self._options.timeout_s)
            page.clock.set_fixed_time(CLOCK)
            page.add_init_script(INIT)
            session = context.new_cdp_session(page)
            page.goto(start)
            for number in range(len(task.actions)):
                action = task.actions[number]
                states.append(self._state(page, session, action, task.check))
                carry_out(find(page, action), action)
                deadline.restart()
            if task.check or not _FINAL_COLUMNS.isdisjoint(self._options.columns):
                final = self._capture(page, session, task.check)
                for condition, result in zip(task.check, final.checked, strict=True):
                    if not result.holds:
                        reason = f"expected {condition} after it, got {str(result.found)[:100] or 'nothing'}"
                        raise StepError("check_failed", reason)
        except (Error, StepError) as error:
            reason = error.detail if isinstance(error, StepError) else " ".join(error.message.split())[:300]
            if deadline.passed:
                reason = f"not done within {self._options.deadline_s:g} s"
            refused = f"; no requests were sent to {', '.join(sorted(self.refused))[:200]}" if self.refused else ""
            place = f"step {min(number + 1, len(task.actions))} of {len(task.actions)} of task {task.task!r:.100}"
            is_check = isinstance(error, StepError) and error.name == "check_failed"
            done = [] if is_check else self._records(task, start, states[:number], None)
            raise RecordFailed(f"{place}: {reason}{refused}", done) from None
        finally:
            # the browser may be gone
            with suppress(Error):
                if context is not None:
                    context.close()
        return self._records(task, start, states, final)

    def _records(
        self, task: TaskScript, start: str, states: Sequence[_PageState], final: _Capture | None
    ) -> list[StepRecord]:
        """The rows of these pages. `final`: the page after the last action."""
        # numbered by first appearance: a node keeps its id from page to page, but the browser's own numbers depend on timing
        ids: dict[int, int] = {}
        for capture in [*(one.capture for one in states), *([final] if final else [])]:
            for node in capture.tree.walk():
                node.backend_node_id = ids.setdefault(node.backend_node_id, len(ids) + 1)
        for one in states:
            one.hit[:] = [ids.get(node, -1) for node in one.hit]
        # the port of a folder that is served here is another one each time
        base = "" if start == task.start else urlunsplit((*urlsplit(start)[:2], "", "", ""))
        actions = tuple(one.action_text for one in states)
        finals = [*[None] * (len(states) - 1), final]
        return [
            self._record(task, i, one, actions, self._recorded(task, one.capture, finals[i], ids, base))
            for i, one in enumerate(states)
        ]

    def _capture(self, page: Page, session: CDPSession, check: tuple[Condition, ...]) -> _Capture:
        """The page at rest, scrolled to its top."""
        settle(page)
        page.evaluate("() => scrollTo(0, 0)")
        columns = self._options.columns
        return _Capture(
            picture=page.screenshot(full_page=True, animations="disabled", caret="hide", type="png"),
            tree=snapshot_tree(session.send("DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES)})),
            checked=tuple(evaluate(page, condition) for condition in check),
            state=PageState(page.url, *page.evaluate("() => [[innerWidth, innerHeight], [scrollX, scrollY]]")),
            measured=page.evaluate(MEASURE) if "layout" in columns else [],
            accessible=session.send("Accessibility.getFullAXTree")["nodes"] if "accessibility_tree" in columns else [],
        )

    def _state(self, page: Page, session: CDPSession, action: Action, check: tuple[Condition, ...]) -> _PageState:
        """The page before the action, and the elements that the action hits."""
        capture = self._capture(page, session, check)
        if check and all(capture.holds):
            raise StepError("check_failed", "expected a check that does not hold before this action, got one that does")
        target = find(page, action)
        target.scroll_into_view_if_needed()
        hit = [] if action.frame else same_box(target, session)
        return _PageState(capture, hit, action_text(target, session, hit, action))

    def _recorded(
        self, task: TaskScript, capture: _Capture, final: _Capture | None, ids: Mapping[int, int], base: str
    ) -> dict[str, object]:
        """The optional columns of a step. `final`: the page after the task's last action, for that step alone."""
        made: dict[str, Callable[[], object]] = {
            "page_state": lambda: structs.replace(capture.state, address=capture.state.address.removeprefix(base)),
            "layout": lambda: layout(capture.tree, capture.measured),
            "accessibility_tree": lambda: accessibility_tree(capture.accessible, ids, base),
        }
        if task.check:
            made["check"] = lambda: Check(task.check, capture.holds, final.holds if final else None)
        if final:
            encoded, size = _encode(final.picture, self._options)
            made["final_state"] = lambda: FinalState(
                final.state.address.removeprefix(base), cleaned_html(clean(final.tree, Box(0, 0, *size))), task.answer
            )
        columns: dict[str, object] = {
            name: json.encode(made[name]()).decode() if name in made else None for name in self._options.columns
        }
        if FINAL_SCREENSHOT in columns and final:
            columns[FINAL_SCREENSHOT] = {"bytes": encoded, "path": None}
        return columns

    def _record(
        self, task: TaskScript, index: int, state: _PageState, actions: tuple[str, ...], recorded: Mapping[str, object]
    ) -> StepRecord:
        encoded, size = _encode(state.capture.picture, self._options)
        page = clean(state.capture.tree, Box(0, 0, *size))
        return StepRecord(
            annotation_id=task.annotation_id,
            action_uid=task.action_uid(index),
            task=task.task,
            website=task.website,
            domain=task.domain,
            subdomain=task.subdomain,
            index=index,
            actions=actions,
            operation=task.actions[index].operation,
            raw_html=raw_html(state.capture.tree) if self._options.raw_html else "",
            cleaned_html=cleaned_html(page),
            elements=tuple(element_records(page, state.hit)),
            screenshot=encoded,
            recorded=recorded,
        )


class Chromium:
    """A browser of its own Playwright, both of the thread that asks for it first."""

    def __init__(self, path: str, fonts: Path | None, headed: bool = False) -> None:
        self._path, self._fonts, self._headed = path, fonts, headed
        self._playwright: Any = None
        self._browser: Any = None
        self.reachable: frozenset[Origin] = frozenset()

    def reaching(self, origins: frozenset[Origin]) -> Any:
        """A browser that sends requests to these origins alone: the last one, or a new one where that has ended or reaches others.

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
    try:
        return playwright.chromium.launch(
            executable_path=path,
            args=[*FLAGS, *([] if is_open else _walls(reachable))],
            chromium_sandbox=not is_root,
            env=environment,
            headless=not headed,
            proxy=environment_proxy() if is_open else None,
        )
    except Error as error:
        reason = " ".join(error.message.split())[:200]
        raise InputError("browser", sentence=f"the browser at {path} does not start: {reason}") from None


def _walls(reachable: frozenset[Origin]) -> list[str]:
    """Flags that keep requests to other origins from being sent. A proxy would resolve hosts by itself."""
    # the first rule that fits counts
    rules = ",".join([*sorted(f"MAP {one.place} {one.place}" for one in reachable), "MAP * ~NOTFOUND"])
    return ["--no-proxy-server", f"--host-resolver-rules={rules}"]


class Deadline:
    """Kills the browser unless it is restarted in time: nothing else ends a page whose script never returns. A context manager."""

    def __init__(self, browser: Any, seconds: float) -> None:
        self.passed = False
        self._seconds = seconds
        known = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        self._pid = next(int(one["id"]) for one in known if one["type"] == "browser")

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


class _Result(NamedTuple):
    """A condition evaluated on a page."""

    holds: bool
    found: object


@dataclass(frozen=True, slots=True)
class _Capture:
    """A page as it is at one time."""

    picture: bytes
    """PNG of the whole page."""
    tree: Node
    checked: tuple[_Result, ...]
    """Result of each condition of the task's check."""
    state: PageState
    """State with the whole address."""
    measured: list[dict[str, Any]]
    """Empty unless it is written, as is the following."""
    accessible: list[dict[str, Any]]

    @property
    def holds(self) -> tuple[bool, ...]:
        return tuple(result.holds for result in self.checked)


@dataclass(frozen=True, slots=True)
class _PageState:
    """One page before an action."""

    capture: _Capture
    hit: list[int]
    """Backend node ids that the action hits, the element acted on first; empty inside a frame."""
    action_text: str


def find_chromium(path: str | None = None) -> str:
    """Path of the browser. Raises InputError with the command that installs one."""
    found = shutil.which(path) if path else next((p for p in map(shutil.which, NAMES) if p), None)
    if found is None:
        where = f"at {path}" if path else f"on the PATH ({', '.join(NAMES)})"
        raise InputError("browser", sentence=f"no browser found {where}; install one: apt-get install chromium")
    return found


def find(page: Page, action: Action) -> Locator:
    scope = page.frame_locator(action.frame) if action.frame else page
    found = scope.locator(action.selector).filter(visible=True)
    found.first.wait_for(state="visible")
    n = found.count()
    if n != 1:
        raise StepError("ambiguous", f"expected one visible element for {action.selector}, found {n}")
    return found


def carry_out(target: Locator, action: Action) -> None:
    done: dict[str, Callable[[], object]] = {
        "CLICK": lambda: target.click(),
        "TYPE": lambda: target.fill(action.operation.value),
        "SELECT": lambda: target.select_option(label=action.operation.value),
        "HOVER": lambda: target.hover(),
        "ENTER": lambda: target.press("Enter"),
    }
    done[action.operation.original_op]()


def evaluate(page: Page, condition: Condition) -> _Result:
    if condition.selector is None:
        address = urlunsplit(("", "", *urlsplit(page.url)[2:]))
        return _Result(str(condition.url) in address, address)
    found = page.locator(condition.selector).filter(visible=True)
    if condition.visible is not None:
        n = found.count()
        return _Result(bool(n) == condition.visible, f"{n} visible elements")
    if condition.value is not None:
        values = found.evaluate_all(_VALUES)
        return _Result(condition.value in values, values)
    texts = [" ".join(text.split()) for text in found.all_inner_texts()]
    wanted = " ".join(str(condition.text).split())
    return _Result(any(wanted in text for text in texts), texts)


def accepts_dialog(dialog: Any, task: TaskScript) -> bool:
    """Tells whether a page's dialog is accepted, as the task says. A page can always be left."""
    return task.accepts_dialogs or dialog.type == "beforeunload"


def answer_dialog(dialog: Any, is_accepted: bool) -> None:
    dialog.accept(dialog.default_value) if is_accepted else dialog.dismiss()


def settle(page: Page) -> None:
    """Waits until the page has loaded, its network is quiet and two frames were drawn in its fonts; the last two for at most `REST_S` each."""
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


def action_text(target: Locator, session: CDPSession, hit: list[int], action: Action) -> str:
    """`[role]  name -> OP: value`, as in the data set."""
    role = name = ""
    if hit:
        asked = {"backendNodeId": hit[0], "fetchRelatives": False}
        node: dict[str, Any] = next(iter(session.send("Accessibility.getPartialAXTree", asked)["nodes"]), {})
        role, name = (str(node.get(field, {}).get("value", "")) for field in ("role", "name"))
    if role in NAMELESS_ROLES:
        role = str(target.evaluate("(el) => el.tagName.toLowerCase()"))
    name = name or str(target.evaluate(_FALLBACK_NAME))
    value = f": {action.operation.value}" if action.operation.value else ""
    return f"[{role}]  {xml_text(name)[:NAME_CHARS].strip()} -> {action.operation.original_op}{value}"


def element_records(page: Node, hit: list[int]) -> Iterator[ElementRecord]:
    """Every element of the cleaned page as a candidate, in document order; the elements hit are the positives."""
    places = {node: place for place, node in enumerate(hit)}
    first_hit = True
    for node in page.walk():
        if not node.tag or node.box is None:
            continue
        is_positive = node.backend_node_id in places
        yield ElementRecord(
            backend_node_id=str(node.backend_node_id),
            tag=node.tag,
            box=node.box,
            attributes=candidate_attributes(node),
            is_positive=is_positive,
            is_original=places.get(node.backend_node_id) == 0,
            is_top_level=is_positive and first_hit,
        )
        first_hit = first_hit and not is_positive


def _encode(png: bytes, options: RecordOptions) -> tuple[bytes, tuple[int, int]]:
    """The picture in the format asked for, and its size in pixels."""
    picture = open_picture(png).convert("RGB")
    if options.picture == "png":
        return png, picture.size
    out = io.BytesIO()
    if options.picture == "tiff":
        in_few_colours(picture, options.colours).save(out, "TIFF", compression="packbits")
        return out.getvalue(), picture.size
    settings: dict[str, Any] = {"method": 6} if options.picture == "webp" else {"optimize": True}
    picture.save(out, options.picture.upper(), quality=options.quality, **settings)
    return out.getvalue(), picture.size

"""A live page: one browser context an episode, and what is seen of its active tab, as a row that `read_step` reads.

Observing changes nothing that a page notices: the window's own picture, scrolled where it is, with running animations,
the DOM and the accessibility tree through the DevTools protocol, and rectangles measured as the recorder measures them.
Only a whole page's picture makes Chromium resize the window once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit

from msgspec.json import decode, encode

from seeact_offline.dataset.recorded import PageState
from seeact_offline.dataset.rows import RowPosition, read_step
from seeact_offline.dataset.writing import StepRecord, to_row
from seeact_offline.pages.screenshots import open_picture
from seeact_offline.recorder.browser import CLOCK, INIT, UNSEEN, accepts_dialog, answer_dialog, settle
from seeact_offline.recorder.cleaning import Node, clean, cleaned_html
from seeact_offline.recorder.observing import MEASURE, STYLES, accessibility_tree, layout, snapshot_tree
from seeact_offline.recorder.origins import ANYWHERE, BrowserOptions, Origin
from seeact_offline.recorder.proving import is_done
from seeact_offline.recorder.recording import element_records
from seeact_offline.recorder.script import STATE, TaskScript, read_state
from seeact_offline.records import Box, InputError, Operation, Step, StepError, StepKey

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page, Request

TIMEOUT_S = 10.0
"""Seconds for a page to load, and for one act."""
START_S = 30.0
"""Seconds for a website to answer."""
PAUSE_MS = 1000
"""Milliseconds that pass before a website is at rest: scripts do what an act asks for some time later."""
TABS_MS = 3000
"""Milliseconds for a tab that was opened to begin to load."""
TRIES = 5
"""Times that a state check is tried: a page that is being replaced destroys the context in which it is evaluated."""
_MEASURE = f"(inWindow) => JSON.stringify([({MEASURE})(inWindow), [innerWidth, innerHeight], [scrollX, scrollY]])"
"""Returns a text, which Playwright hands over 30 times as fast as the objects."""
T = TypeVar("T")
_ACTING, _STILL = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("acting.js", "still.js"))


def refusal(address: str) -> str:
    """The reason why an address is not opened."""
    return f"the address {address[:80]} is refused, as its origin was not named"


class NodeKey(NamedTuple):
    """An element of a tab, in the browser's numbers."""

    tab: int
    backend: int


@dataclass(frozen=True, slots=True)
class PageView:
    """A view of the active tab at one time."""

    record: StepRecord
    """The row, without what is right."""
    png: bytes
    size: tuple[int, int]
    """Width and height of the picture in pixels."""
    address: str
    """Address without the host of a folder that is served here, whose port is another one each time."""
    ids: Mapping[NodeKey, int]
    """The browser's numbers -> ids of the row."""
    tab: int
    names: Mapping[str, tuple[str, str]]
    """Id -> role and name in the accessibility tree."""

    def step(self, hit: Sequence[int] = (), operation: Operation | None = None) -> Step:
        """The row as it is read; arguments as of `row`."""
        of = self.record
        place = RowPosition(StepKey(of.annotation_id, of.action_uid), of.index, of.index)
        return read_step(self.row(hit, operation), place)

    def row(self, hit: Sequence[int] = (), operation: Operation | None = None) -> dict[str, Any]:
        """The row of the hub's layout. `hit`: the browser's numbers of the elements that are right, the one acted on
        first; none where they are not known."""
        places = {self.ids.get(NodeKey(self.tab, node), -1): place for place, node in enumerate(hit)}
        elements = tuple(
            replace(element, is_positive=True, is_original=places[int(element.backend_node_id)] == 0)
            if int(element.backend_node_id) in places
            else element
            for element in self.record.elements
        )
        return to_row(replace(self.record, elements=elements, operation=operation or Operation("CLICK")))

    def node(self, element: str) -> NodeKey | None:
        """The browser's number of an element of the row."""
        return next((key for key, number in self.ids.items() if str(number) == element), None)


class LiveSession:
    """One episode in a fresh profile. A context manager."""

    def __init__(
        self,
        browser: Any,
        task: TaskScript,
        start: str,
        size: tuple[int, int],
        allowed: frozenset[Origin],
        clock_runs: bool = False,
        settings: BrowserOptions = BrowserOptions(),  # noqa: B008
        trace: Path = Path(),
    ) -> None:
        """`start`: the address to open. `allowed`: origins that an act may lead to, besides that of the start; with
        ANYWHERE time and chance are those of the world. `clock_runs`: the time does not stand still, so that pages may
        change by themselves, and are at rest once they have stopped. `trace`: file for Playwright's trace, where it is
        kept."""
        self.task, self.start, self.size = task, start, size
        self.base = "" if start == task.start else urlunsplit((*urlsplit(start)[:2], "", "", ""))
        self._clock_runs = clock_runs
        self._allowed = allowed | {Origin.of(start, "start")}
        self._trace = trace if settings.trace else None
        self.events: list[str] = []
        """Events that nobody asked for, in words: dialogs, tabs, downloads."""
        self.boxes: Mapping[int, Box] = {}
        """The browser's numbers -> boxes of the window as it was last observed; empty once it was acted on."""
        self.saw_change = False
        """True once an agent's last place was refused, as it had changed."""
        self._numbers: dict[NodeKey, int] = {}
        self._tabs: list[Page] = []
        self._sessions: dict[int, CDPSession] = {}
        self._known: list[Page] = []
        self._targets = browser.new_browser_cdp_session()
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            timezone_id="UTC",
            accept_downloads=False,
            **settings.of_context(),
        )
        self.context.set_default_timeout(1000 * TIMEOUT_S)
        is_open = ANYWHERE in allowed
        self._pause_ms = PAUSE_MS if is_open else 0
        if clock_runs:
            self.context.clock.install(time=CLOCK)
        elif not is_open:
            self.context.clock.set_fixed_time(CLOCK)
        self.context.add_init_script(UNSEEN if is_open else INIT + STATE)
        self.context.on("page", self._opened)
        self.context.on("requestfailed", self._failed)

    def __enter__(self) -> LiveSession:
        from playwright.sync_api import Error
        from playwright.sync_api import TimeoutError as TooLong

        if self._trace:
            self.context.tracing.start(screenshots=True, snapshots=True)
        self.context.new_page()
        self.events.clear()
        try:
            self.page.goto(self.start, wait_until="commit", timeout=1000 * START_S)
            with suppress(TooLong):
                self.page.wait_for_load_state("load")
            self._before = read_state(self.page)
        except Error as error:
            self.__exit__()
            raise Error("; ".join([*self.events, error.message])) from None
        return self

    def __exit__(self, *_: object) -> None:
        from playwright.sync_api import Error

        # the browser may be gone
        with suppress(Error):
            if self._trace:
                self.context.tracing.stop(path=self._trace)
            self.context.close()
            self._targets.detach()

    def _opened(self, page: Page) -> None:
        self._known.append(page)
        self._tabs.append(page)
        self.events.append(f"tab {len(self._tabs)} opened")
        page.on("dialog", self._dialog)
        page.on("close", self._closed)
        page.on("download", lambda download: self.events.append("a download was refused"))
        page.on("filechooser", lambda chooser: self.events.append("the page asked for a file and was given none"))

    def _closed(self, page: Page) -> None:
        if page in self._tabs:
            self.events.append(f"tab {self._tabs.index(page) + 1} closed")
            self._tabs.remove(page)

    def _dialog(self, dialog: Any) -> None:
        is_accepted = accepts_dialog(dialog, self.task)
        self.events.append(f"{dialog.type} {'accepted' if is_accepted else 'dismissed'}: {dialog.message:.200}")
        answer_dialog(dialog, is_accepted)

    def _failed(self, request: Request) -> None:
        from playwright.sync_api import Error

        # a tab that was never shown has no frame yet
        with suppress(Error):
            if request.frame.parent_frame:
                return
        if request.is_navigation_request() and not self.may_go(request.url):
            self.events.append(refusal(request.url))

    @property
    def page(self) -> Page:
        """The active tab: the one that was opened or chosen last."""
        if not self._tabs:
            # its last one was closed
            self.context.new_page()
            self.page.goto(self.start)
        return self._tabs[-1]

    def focus(self, number: int) -> bool:
        """Makes a tab the active one, counted from 0; False where there is none of this number."""
        if not 0 <= number < len(self._tabs):
            return False
        self._tabs.append(self._tabs.pop(number))
        self.page.bring_to_front()
        return True

    @property
    def tab(self) -> int:
        """The number of the active tab in the order in which they were opened."""
        return self._known.index(self.page)

    @property
    def devtools(self) -> CDPSession:
        if self.tab not in self._sessions:
            self._sessions[self.tab] = self.context.new_cdp_session(self.page)
        return self._sessions[self.tab]

    @property
    def is_alive(self) -> bool:
        """False once the browser has ended."""
        return bool(self.context.browser and self.context.browser.is_connected())

    def script(self, name: str, *values: object, on: str | None = None, by_value: bool = True) -> Any:
        """Calls a function of acting.js on an object of the page, or on its document; returns its value, or an object's
        number. Raises Playwright's Error."""
        from playwright.sync_api import Error

        on = on or self.devtools.send("Runtime.evaluate", {"expression": "document"})["result"]["objectId"]
        arguments = [{"value": value} for value in (name, *values)]
        asked = {"objectId": on, "functionDeclaration": _ACTING, "arguments": arguments, "returnByValue": by_value}
        answer = self.devtools.send("Runtime.callFunctionOn", asked)
        if "exceptionDetails" in answer:
            raise Error(str(answer["exceptionDetails"].get("exception", {}).get("description", "a script failed")))
        return answer["result"].get("value" if by_value else "objectId")

    def may_go(self, address: str) -> bool:
        """Tells whether an address is of an origin that was named."""
        try:
            return not self._allowed.isdisjoint({Origin.of(address, "address"), ANYWHERE})
        except InputError:
            return False

    def rest(self) -> None:
        """Waits until the page is at rest, as long as that may take; one that never is, is taken as it is."""
        from playwright.sync_api import TimeoutError as TooLong

        for _ in range(TRIES):
            page = self.page
            page.wait_for_timeout(self._pause_ms)
            with suppress(TooLong):
                settle_quietly(page)
                if self._clock_runs:
                    page.evaluate(_STILL)
            self._await_tabs()
            # a tab may have been opened meanwhile
            if page == self.page:
                return

    def _await_tabs(self) -> None:
        """Waits for tabs that the browser has opened, and of which Playwright tells only once they have begun to
        load."""
        own = self.devtools.send("Target.getTargetInfo")["targetInfo"].get("browserContextId")
        for _ in range(TABS_MS // 50):
            targets = self._targets.send("Target.getTargets")["targetInfos"]
            opened = [
                target for target in targets if target["type"] == "page" and target.get("browserContextId") == own
            ]
            if len(opened) <= len(self.context.pages):
                return
            self.page.wait_for_timeout(50)

    def is_done(self) -> bool:
        """Tells whether the task's check holds on the active tab. Raises Playwright's Error where that cannot be found
        out."""
        return self.tried(lambda: is_done(self.task, self.page, self._before))

    def tried(self, work: Callable[[], T]) -> T:
        """The result of `work`, which is tried again where the page is being replaced. Raises Playwright's Error."""
        from playwright.sync_api import Error

        for attempt in range(TRIES):
            try:
                return work()
            except (Error, StepError):
                if attempt == TRIES - 1:
                    raise
                self.rest()
        raise AssertionError

    @property
    def address(self) -> str:
        """The address of the active tab, without the host of a folder that is served here."""
        return self.page.url.removeprefix(self.base)

    def picture(self, whole: bool = False) -> bytes:
        """A PNG of the window, or of the whole page."""
        return self.page.screenshot(type="png", full_page=whole)

    def observe(self, uid: str, history: Sequence[str], whole: bool = False) -> PageView:
        """Looks at the active tab. `uid`: the step's id. `history`: the actions so far, as they are told. `whole`: the
        whole page, not only its window."""
        return self.tried(lambda: self._observe(uid, history, whole))

    def _observe(self, uid: str, history: Sequence[str], whole: bool) -> PageView:
        page, tab = self.page, self.tab
        png = self.picture(whole)
        tree = snapshot_tree(self.devtools.send("DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES)}))
        measured, window, scroll = decode(page.evaluate(_MEASURE, not whole))
        accessible = self.devtools.send("Accessibility.getFullAXTree")["nodes"]
        size = open_picture(png).size
        if not whole:
            _shift(tree, measured, scroll)
        numbers = {}
        self.boxes = {} if whole else {node.backend_node_id: node.box for node in tree.walk() if node.tag and node.box}
        for node in tree.walk():
            key = NodeKey(tab, node.backend_node_id)
            node.backend_node_id = self._numbers.setdefault(key, len(self._numbers) + 1)
            numbers[key.backend] = node.backend_node_id
        address = self.address
        read = accessibility_tree(accessible, numbers, self.base)
        made = {
            "page_state": PageState(address, window, scroll),
            "layout": layout(tree, measured),
            "accessibility_tree": read,
        }
        return page_view(self.task, uid, history, tree, png, size, made, address, self._numbers, tab)


def page_view(
    task: TaskScript, uid: str, history: Sequence[str], tree: Node, png: bytes, size: tuple[int, int],
    made: Mapping[str, Any], address: str, numbers: Mapping[NodeKey, int], tab: int,
) -> PageView:  # fmt: skip
    """The view of a page whose elements have the row's ids, with boxes in pixels of the picture. `history`: the actions
    so far. `made`: the recorded columns by name, `accessibility_tree` among them. `numbers`: as of `PageView.ids`."""
    cleaned = clean(tree, Box(0, 0, *size))
    record = StepRecord(
        annotation_id=task.annotation_id, action_uid=uid, task=task.task, website=task.website, domain=task.domain,
        subdomain=task.subdomain, index=len(history), actions=(*history, ""), operation=Operation("CLICK"), raw_html="",
        cleaned_html=cleaned_html(cleaned), elements=tuple(element_records(cleaned, [])), screenshot=png,
        recorded={name: encode(value).decode() for name, value in made.items()},
    )  # fmt: skip
    nodes = made["accessibility_tree"].nodes
    names = {node.id: (node.role, node.name) for node in reversed(nodes) if node.id is not None}
    return PageView(record, png, size, address, dict(numbers), tab, names)


def settle_quietly(page: Page) -> None:
    """Waits as the recorder does. A page that is replaced meanwhile is waited for again."""
    from playwright.sync_api import Error
    from playwright.sync_api import TimeoutError as TooLong

    for attempt in range(TRIES):
        try:
            return settle(page)
        except TooLong:
            raise
        except Error:
            if attempt == TRIES - 1 or page.is_closed():
                raise
            page.wait_for_timeout(100)


def _shift(tree: Node, measured: Sequence[dict[str, Any]], scroll: Sequence[float]) -> None:
    """Makes the window's upper left corner the origin of all boxes."""
    left, top = scroll
    if not (left or top):
        return
    for node in tree.walk():
        if node.box is not None:
            node.box = Box(node.box.x - left, node.box.y - top, node.box.w, node.box.h)
    for element in measured:
        for rect in element["rects"]:
            x, y, w, h = rect["box"]
            rect["box"] = [round(x - left, 2), round(y - top, 2), w, h]

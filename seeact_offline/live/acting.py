"""Carries out acts in a live page.

Rules that no agent's language states: typing replaces what the field holds; typing or choosing on a native `select` chooses the option of
that label, or the one most like it, as a click on the place of an entry changes nothing in Chromium; a click on a `select` gives it the focus alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from seeact_offline.agents.acts import Kind
from seeact_offline.agents.screens import Point
from seeact_offline.live.pages import LiveSession, NodeKey

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle, Page

WAIT_MS = 1000
"""Milliseconds that an agent's waiting takes; settling comes on top."""
SCROLL = 500.0
"""Pixels of a scroll of which the agent says no size."""
FORMATTED = frozenset({"date", "time", "month", "week", "datetime-local", "color", "range"})
"""Types of fields whose value is set, as what is typed depends on the browser's language."""
KEYS: Mapping[str, str] = {
    "ctrl": "Control", "control": "Control", "cmd": "Meta", "command": "Meta", "meta": "Meta", "win": "Meta", "alt": "Alt", "option": "Alt",
    "shift": "Shift", "enter": "Enter", "return": "Enter", "esc": "Escape", "escape": "Escape", "tab": "Tab", "space": "Space", "backspace": "Backspace",
    "delete": "Delete", "del": "Delete", "home": "Home", "end": "End", "pageup": "PageUp", "page_up": "PageUp", "pagedown": "PageDown",
    "page_down": "PageDown", "up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft", "right": "ArrowRight", "arrowup": "ArrowUp",
    "arrowdown": "ArrowDown", "arrowleft": "ArrowLeft", "arrowright": "ArrowRight",
}  # fmt: skip
"""Names of keys that agents write, in lower case -> Playwright's."""
_AT = "([x, y]) => { let e = document.elementFromPoint(x, y), i; while (e?.shadowRoot && (i = e.shadowRoot.elementFromPoint(x, y)) && i !== e) e = i; return e; }"
_FOCUSED = "() => { let e = document.activeElement; while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement; return e; }"
_KIND = """(e) => e.tagName === 'SELECT' ? 'select' : e.tagName === 'INPUT' ? e.type : e.tagName === 'TEXTAREA' ? 'text' : e.isContentEditable ? 'editable' : ''"""
_SELECT_OF = "(e) => e.closest?.('select') ?? null"
_LABELS = "(e) => [...e.options].map((o) => o.label.trim().replace(/\\s+/g, ' '))"
_SCROLLED = """([x, y, dx, dy]) => {
  const root = document.scrollingElement ?? document.documentElement;
  const moves = (e) => {
    const before = [e.scrollLeft, e.scrollTop];
    e.scrollBy({left: dx, top: dy, behavior: 'instant'});
    return e.scrollLeft !== before[0] || e.scrollTop !== before[1];
  };
  if (x === null && moves(root)) return true;
  let e = document.elementFromPoint(x ?? innerWidth / 2, y ?? innerHeight / 2);
  for (; e && e !== root; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflow) && moves(e)) return true;
  return moves(root);
}"""


class ActFailed(Exception):
    """An act that cannot be carried out. Its text says why."""


@dataclass(frozen=True, slots=True)
class Deed:
    """An act with its place in the window."""

    kind: Kind
    point: Point | None = None
    """Pixels of the window."""
    node: NodeKey | None = None
    """The element that was named; None where only a point is known."""
    text: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """As of `Act`; `to` in pixels of the window."""


def carry_out(session: LiveSession, deed: Deed) -> None:
    """Carries out one act on the active tab. Raises ActFailed."""
    from playwright.sync_api import Error

    act = _ACTS.get(deed.kind)
    if act is None:
        raise ActFailed(f"nothing is known of an act {deed.kind!r}")
    try:
        act(session, deed)
    except Error as error:
        if not session.context.browser or not session.context.browser.is_connected():
            raise
        raise ActFailed(" ".join(error.message.split())[:200]) from None


def _place(session: LiveSession, deed: Deed) -> Point:
    """The point in the window; an element that is not in it is scrolled there. Raises ActFailed."""
    width, height = session.size
    if deed.point is not None and 0 <= deed.point[0] < width and 0 <= deed.point[1] < height:
        return deed.point
    if deed.node is None or deed.node.tab != session.tab:
        raise ActFailed("expected a place in the window" if deed.point else "expected a place")
    node = {"backendNodeId": deed.node.backend}
    session.devtools.send("DOM.scrollIntoViewIfNeeded", node)
    quads = session.devtools.send("DOM.getContentQuads", node)["quads"]
    if not quads:
        raise ActFailed("the element has no place")
    xs, ys = quads[0][::2], quads[0][1::2]
    return sum(xs) / 4, sum(ys) / 4


def _element_at(page: Page, point: Point) -> ElementHandle | None:
    found = page.evaluate_handle(_AT, list(point)).as_element()
    frame = found.content_frame() if found else None
    if found is not None and frame is not None and (box := found.bounding_box()):
        inner = frame.evaluate_handle(_AT, [point[0] - box["x"], point[1] - box["y"]]).as_element()
        return inner or found
    return found


def _select_at(session: LiveSession, deed: Deed) -> ElementHandle | None:
    """The native list at the deed's place, or that of the entry which it names."""
    if deed.node is not None and deed.node.tab == session.tab:
        answer = session.devtools.send("DOM.resolveNode", {"backendNodeId": deed.node.backend})
        called = {
            "objectId": answer["object"]["objectId"],
            "functionDeclaration": "function () { window.__actingOn = this.closest?.('select') ?? null; }",
        }
        session.devtools.send("Runtime.callFunctionOn", called)
        found = session.page.evaluate_handle(
            "() => { const e = window.__actingOn; delete window.__actingOn; return e; }"
        )
        if (element := found.as_element()) is not None:
            return element
    if deed.point is None:
        return None
    element = _element_at(session.page, deed.point)
    return None if element is None else element.evaluate_handle(_SELECT_OF).as_element()


def _choose(handle: ElementHandle, text: str) -> None:
    """Chooses the option of this label, or the one most like it. Raises ActFailed where none is like it."""
    handle.select_option(index=entry_like(handle.evaluate(_LABELS), text))


def entry_like(labels: Sequence[str], text: str) -> int:
    """The place of the label that says this, or of the one most like it. Raises ActFailed where none is like it."""
    wanted = " ".join(text.split())
    alike = [SequenceMatcher(None, wanted.lower(), label.lower()).ratio() for label in labels]
    best = labels.index(wanted) if wanted in labels else max(range(len(labels)), key=alike.__getitem__, default=None)
    if best is None or (wanted not in labels and alike[best] < 0.3):
        raise ActFailed(f"the list has no entry like {wanted[:40]!r}")
    return best


def _click(session: LiveSession, deed: Deed) -> None:
    if deed.node is not None and (entry := _entry(session, deed.node)) is not None:
        handle = _select_at(session, deed)
        assert handle is not None
        _choose(handle, entry)
        return
    point = _place(session, deed)
    element = _element_at(session.page, point)
    if deed.kind == "click" and element is not None and element.evaluate(_KIND) == "select":
        element.focus()
        return
    mouse = session.page.mouse
    if deed.kind == "hover":
        mouse.move(*point)
    elif deed.kind == "double":
        mouse.dblclick(*point)
    else:
        mouse.click(*point, button="right" if deed.kind == "right" else "left")


def _entry(session: LiveSession, node: NodeKey) -> str | None:
    """The label of an entry of a list; None for any other element."""
    if node.tab != session.tab:
        return None
    answer = session.devtools.send("DOM.resolveNode", {"backendNodeId": node.backend})
    asked = {
        "objectId": answer["object"]["objectId"],
        "functionDeclaration": "function () { return this.tagName === 'OPTION' && this.closest('select')?.size <= 1 ? this.label : null; }",
        "returnByValue": True,
    }
    value = session.devtools.send("Runtime.callFunctionOn", asked)["result"].get("value")
    return None if value is None else str(value)


def _type(session: LiveSession, deed: Deed) -> None:
    text, enter = deed.text.removesuffix("\n"), bool(deed.extra.get("enter")) or deed.text.endswith("\n")
    handle = _select_at(session, deed)
    if handle is not None:
        return _choose(handle, text)
    if deed.point is not None or deed.node is not None:
        session.page.mouse.click(*_place(session, deed))
    focused = session.page.evaluate_handle(_FOCUSED).as_element()
    if focused is not None and (frame := focused.content_frame()) is not None:
        focused = frame.evaluate_handle(_FOCUSED).as_element()
    kind = focused.evaluate(_KIND) if focused is not None else ""
    if focused is not None and kind == "select":
        return _choose(focused, text)
    if not kind:
        raise ActFailed("no text field has the focus")
    assert focused is not None
    if kind in FORMATTED:
        focused.fill(text)
    else:
        focused.evaluate("(e) => e.isContentEditable ? getSelection().selectAllChildren(e) : e.select?.()")
        if text:
            session.page.keyboard.type(text)
        else:
            session.page.keyboard.press("Backspace")
    if enter:
        session.page.keyboard.press("Enter")


def _select(session: LiveSession, deed: Deed) -> None:
    handle = _select_at(session, deed)
    if handle is None:
        # a list that the page draws itself opens by a click
        return _click(session, Deed("click", deed.point, deed.node))
    _choose(handle, deed.text)


def _clear(session: LiveSession, deed: Deed) -> None:
    _type(session, Deed("type", deed.point, deed.node))


def _press(session: LiveSession, deed: Deed) -> None:
    session.page.keyboard.press(keys_of(deed))


def keys_of(deed: Deed) -> str:
    """The keys that a deed presses together, in Playwright's names. Raises ActFailed."""
    keys = str(deed.extra.get("keys") or deed.text)
    # some languages put names in a list, a blank or a plus sign between them
    parts = [part.strip().strip("'\"") for part in keys.strip("[]").replace(",", "+").replace(" ", "+").split("+")]
    names = [KEYS.get(part.lower(), part) for part in parts if part]
    if not names:
        raise ActFailed("expected the name of a key")
    return "+".join(names)


def _scroll(session: LiveSession, deed: Deed) -> None:
    direction = str(deed.extra.get("direction") or deed.text or "down")
    size = float(deed.extra.get("pixels") or SCROLL)
    to = deed.extra.get("to")
    if to is not None and deed.point is not None:
        # a finger that moves up scrolls down
        dx, dy = deed.point[0] - to[0], deed.point[1] - to[1]
    else:
        dx = {"left": -size, "right": size}.get(direction, 0.0)
        dy = {"up": -size, "down": size}.get(direction, 0.0)
    x, y = deed.point or (None, None)
    if not session.page.evaluate(_SCROLLED, [x, y, dx, dy]):
        raise ActFailed(f"nothing scrolls {direction} any further")


def _drag(session: LiveSession, deed: Deed) -> None:
    to = deed.extra.get("to")
    if to is None:
        raise ActFailed("expected the place where the drag ends")
    mouse = session.page.mouse
    mouse.move(*_place(session, deed))
    mouse.down()
    mouse.move(*to, steps=5)
    mouse.up()


def _back(session: LiveSession, deed: Deed) -> None:
    forward = "forward" in (deed.text, deed.extra.get("direction"))
    moved = session.page.go_forward() if forward else session.page.go_back()
    if moved is None:
        raise ActFailed(f"there is no page to go {'forward' if forward else 'back'} to")


def _goto(session: LiveSession, deed: Deed) -> None:
    # an agent's home is a search engine, which is no named origin: the task's start stands for it
    address = urljoin(session.page.url, deed.text.strip()) if deed.text.strip() else session.start
    if not session.may_go(address):
        raise ActFailed(f"{address[:80]} is on an origin that was not named")
    session.page.goto(address)


def _tab(session: LiveSession, deed: Deed) -> None:
    if deed.text == "new":
        session.context.new_page()
    elif deed.text == "close":
        session.page.close()
    elif not deed.text.isdecimal() or not session.focus(int(deed.text)):
        raise ActFailed(f"there is no tab {deed.text[:20]!r}")


def _wait(session: LiveSession, deed: Deed) -> None:
    session.page.wait_for_timeout(WAIT_MS)


_ACTS: Mapping[str, Callable[[LiveSession, Deed], None]] = {
    **dict.fromkeys(("click", "double", "right", "hover"), _click),
    "type": _type, "select": _select, "clear": _clear, "press": _press, "scroll": _scroll, "drag": _drag, "back": _back, "goto": _goto,
    "tab": _tab, "wait": _wait, "zoom": _wait,
}  # fmt: skip

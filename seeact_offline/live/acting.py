"""Carries out acts in a live page.

Rules that no agent's language states: typing replaces what the field holds; typing or choosing on a native `select`
chooses the option of that label, or the one most like it, as a click on the place of an entry changes nothing in
Chromium; a click on a `select` gives it the focus alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any
from urllib.parse import urljoin

from seeact_offline.agents.acts import Kind
from seeact_offline.agents.screens import Point
from seeact_offline.live.pages import LiveSession, NodeKey, refusal

WAIT_MS = 1000
"""Milliseconds that an agent's waiting takes; settling comes on top."""
SCROLL = 500.0
"""Pixels of a scroll of which the agent says no size."""
FORMATTED = frozenset({"date", "time", "month", "week", "datetime-local", "color", "range"})
"""Types of fields whose value is set, as what is typed depends on the browser's language."""
KEYS: Mapping[str, str] = {
    "ctrl": "Control", "control": "Control", "cmd": "Meta", "command": "Meta", "meta": "Meta", "win": "Meta",
    "alt": "Alt", "option": "Alt", "shift": "Shift", "enter": "Enter", "return": "Enter", "esc": "Escape",
    "escape": "Escape", "tab": "Tab", "space": "Space", "backspace": "Backspace", "delete": "Delete", "del": "Delete",
    "home": "Home", "end": "End", "pageup": "PageUp", "page_up": "PageUp", "pagedown": "PageDown",
    "page_down": "PageDown", "up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft", "right": "ArrowRight",
    "arrowup": "ArrowUp", "arrowdown": "ArrowDown", "arrowleft": "ArrowLeft", "arrowright": "ArrowRight",
}  # fmt: skip
"""Names of keys that agents write, in lower case -> Playwright's."""


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
    """Further arguments, as in `Act`; `to` in pixels of the window."""


def carry_out(session: LiveSession, deed: Deed) -> None:
    """Carries out one act on the active tab. Raises ActFailed; what fails has changed nothing but the scroll position
    and the focus."""
    from playwright.sync_api import Error

    act = _ACTS.get(deed.kind)
    if act is None:
        raise ActFailed(f"nothing is known of an act {deed.kind!r}")
    try:
        act(session, deed)
    except Error as error:
        if not session.is_alive:
            raise
        raise ActFailed(" ".join(error.message.split())[:200]) from None
    finally:
        # what comes next on this page is the agent's own doing
        session.boxes = {}


@dataclass(frozen=True, slots=True)
class _Aim:
    """The target of an act, as it is now."""

    point: Point
    element: str | None
    """The browser's number of the object; None for a place with nothing in it."""
    labels: Sequence[str] | None = None
    """Labels of the native list that the element is or is in."""
    entry: int | None = None
    """Index of the element where it is an entry of a closed native list."""
    is_list: bool = False


def _aim(session: LiveSession, deed: Deed) -> _Aim:
    """Finds the element that is named, wherever it is now, or what is at an agent's place. Raises ActFailed."""
    point, element = deed.point, _named(session, deed.node)
    if element is None:
        width, height = session.size
        if point is None or not (0 <= point[0] < width and 0 <= point[1] < height):
            raise ActFailed("expected a place in the window" if point else "expected a place")
        element = session.script("at", *point, by_value=False)
        if element is None:
            return _Aim(point, None)
        _check_place(session, point, element)
    answer = session.script("aim", deed.kind, point, deed.node is not None, on=element)
    if "problem" in answer:
        raise ActFailed(answer["problem"])
    return _Aim(tuple(answer["point"]), element, answer["labels"], answer["entry"], answer["isList"])


def _named(session: LiveSession, node: NodeKey | None) -> str | None:
    """The element of this number; None for none. Raises ActFailed where it has gone."""
    from playwright.sync_api import Error

    if node is None:
        return None
    if node.tab != session.tab:
        raise ActFailed("the element is in another tab")
    try:
        return str(session.devtools.send("DOM.resolveNode", {"backendNodeId": node.backend})["object"]["objectId"])
    except Error:
        raise ActFailed("the element is no longer on the page") from None


def _check_place(session: LiveSession, point: Point, element: str) -> None:
    """Raises ActFailed where an agent's place shows something else than when the page was observed. Where it has
    changed again at the next try, as on a page that never rests, the act is carried out, and the change is an event."""
    here = {key: box for key, box in session.boxes.items() if box.contains(*point)}
    if not here:
        return
    outer = session.script("outer", on=element, by_value=False)
    now = session.devtools.send("DOM.describeNode", {"objectId": outer})["node"]["backendNodeId"]
    then = min(here, key=lambda key: here[key].w * here[key].h)
    # a text may be met outside of its element's box
    was_here = now in here or (now in session.boxes and not session.script("holds", *point, on=outer))
    with suppress(ActFailed):
        if was_here and session.script("holds", *point, on=_named(session, NodeKey(session.tab, then))):
            session.saw_change = False
            return
    change = f"the place has changed since it was seen: now {session.script('words', on=element)}"
    session.saw_change = not session.saw_change
    if session.saw_change:
        raise ActFailed(change)
    session.events.append(change)


def _do(session: LiveSession, name: str, value: object, element: str | None) -> None:
    if problem := session.script(name, value, on=element):
        raise ActFailed(problem)


def entry_like(labels: Sequence[str], text: str) -> int:
    """The place of the label that says this, or of the one most like it. Raises ActFailed where none is like it."""
    wanted = " ".join(text.split())
    alike = [SequenceMatcher(None, wanted.lower(), label.lower()).ratio() for label in labels]
    best = labels.index(wanted) if wanted in labels else max(range(len(labels)), key=alike.__getitem__, default=None)
    if best is None or (wanted not in labels and alike[best] < 0.3):
        raise ActFailed(f"the list has no entry like {wanted[:40]!r}")
    return best


def _click(session: LiveSession, deed: Deed) -> None:
    aim, mouse = _aim(session, deed), session.page.mouse
    if deed.kind == "hover":
        mouse.move(*aim.point)
    elif aim.entry is not None:
        _do(session, "choose", aim.entry, aim.element)
    elif deed.kind == "click" and aim.is_list:
        session.script("focus", on=aim.element)
    elif deed.kind == "double":
        mouse.dblclick(*aim.point)
    else:
        mouse.click(*aim.point, button="right" if deed.kind == "right" else "left")


def _write(session: LiveSession, deed: Deed) -> None:
    """Types into a field, clears it, or chooses in a list."""
    text = "" if deed.kind == "clear" else deed.text.removesuffix("\n")
    keyboard = session.page.keyboard
    if deed.point is not None or deed.node is not None or deed.kind == "select":
        aim = _aim(session, deed)
        if aim.labels is not None:
            return _do(session, "choose", entry_like(aim.labels, text), aim.element)
        session.page.mouse.click(*aim.point)
        if deed.kind == "select":
            # a list that the page draws itself has opened
            return
    focused = session.script("focused", by_value=False)
    kind = focused and session.script("kind", on=focused)
    if not kind:
        raise ActFailed("no text field has the focus")
    own = session.script("aim", deed.kind, [0, 0], False, on=focused)
    if "problem" in own:
        raise ActFailed(own["problem"])
    if kind == "select":
        return _do(session, "choose", entry_like(own["labels"], text), focused)
    if kind in FORMATTED:
        _do(session, "set", text, focused)
    else:
        session.script("mark", on=focused)
        keyboard.type(text) if text else keyboard.press("Backspace")
    if deed.kind == "type" and (deed.extra.get("enter") or deed.text.endswith("\n")):
        keyboard.press("Enter")


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
    size, to = float(deed.extra.get("pixels") or SCROLL), deed.extra.get("to")
    if to is not None and deed.point is not None:
        # a finger that moves up scrolls down
        way = deed.point[0] - to[0], deed.point[1] - to[1]
    else:
        way = {"left": -size, "right": size}.get(direction, 0.0), {"up": -size, "down": size}.get(direction, 0.0)
    point = deed.point or (session.size[0] / 2, session.size[1] / 2)
    element = _named(session, deed.node) or session.script("at", *point, by_value=False)
    if not (element and session.script("scroll", *way, not (deed.point or deed.node), on=element)):
        raise ActFailed(f"nothing scrolls {direction} any further")


def _drag(session: LiveSession, deed: Deed) -> None:
    to = deed.extra.get("to")
    if to is None:
        raise ActFailed("expected the place where the drag ends")
    mouse = session.page.mouse
    mouse.move(*_aim(session, deed).point)
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
        raise ActFailed(refusal(address))
    session.page.goto(address)


def _tab(session: LiveSession, deed: Deed) -> None:
    if deed.text == "new":
        session.context.new_page()
    elif deed.text == "close":
        session.page.close()
    elif not deed.text.isdecimal() or not session.focus(int(deed.text)):
        raise ActFailed(f"there is no tab {deed.text[:20]!r}")


_ACTS: Mapping[str, Callable[[LiveSession, Deed], None]] = {
    **dict.fromkeys(("click", "double", "right", "hover"), _click),
    **dict.fromkeys(("type", "select", "clear"), _write), "scroll": _scroll, "drag": _drag,
    "press": lambda session, deed: session.page.keyboard.press(keys_of(deed)),
    "back": _back, "goto": _goto, "tab": _tab,
    **dict.fromkeys(("wait", "zoom"), lambda session, deed: session.page.wait_for_timeout(WAIT_MS)),
}  # fmt: skip

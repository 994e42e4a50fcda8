"""A BrowserGym observation as a live page's view, and what an agent does there as BrowserGym's calls.

Sources: BrowserGym 0.14 (core/observation.py, core/env.py, core/action/functions.py). Taking an observation writes attributes on every
element of the page; they are taken off again here. What they add to the accessibility tree stays: nameless groups. The picture may be larger than the window (MiniWoB's by half); a point is in the
picture's pixels, as BrowserGym's calls take it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin, urlsplit

from seeact_offline.dataset.recorded import PageState
from seeact_offline.live.acting import FORMATTED, ActFailed, Deed, entry_like, keys_of, scroll_of
from seeact_offline.live.pages import NodeKey, PageView, page_view
from seeact_offline.recorder.cleaning import Node, xml_text
from seeact_offline.recorder.observing import accessibility_tree
from seeact_offline.recorder.script import TaskScript
from seeact_offline.recorder.snapshot import snapshot_tree
from seeact_offline.records import Box

BID = "bid"
MARKS = ("browsergym_", "aria-roledescription")
VALUED = frozenset({"button", "reset", "submit", "image", "hidden", "checkbox", "radio"})
"""Types of fields whose `value` the page itself wrote, but for an empty one and the `on` that stands for none."""
SCROLLBAR = 20
"""Pixels by which a scrollbar may make a window lower."""
FIELDS = ("select", "input", "textarea", "button")
SELECT_ALL = "Meta+a" if sys.platform == "darwin" else "Control+a"
INFEASIBLE = frozenset({"n/a", "infeasible", "fail", "failure"})
"""Last words that say that a task cannot be done."""


@dataclass(frozen=True, slots=True)
class GymPage:
    """An observation as it is shown to an agent."""

    view: PageView
    tree: Node
    """The page with boxes in the picture's pixels and without marks."""
    bids: Mapping[int, str]
    """The row's ids -> BrowserGym's."""
    focused: str
    """BrowserGym's id of the element that has the focus; empty for none."""
    window: tuple[float, float]
    """Width and height that the page has, in the picture's pixels."""

    @property
    def lost(self) -> float:
        """Rows of the picture that are no longer in the window, where no click arrives; 0 for none."""
        lost = self.view.size[1] - self.window[1]
        return lost if lost > SCROLLBAR * self.view.size[0] / self.window[0] else 0.0


def task_of(observation: Mapping[str, Any]) -> tuple[str, int]:
    """The task's words, and the number of its pictures, which are not shown."""
    parts = observation["goal_object"]
    words = [part["text"] for part in parts if part["type"] == "text"]
    return "\n".join(words), len(parts) - len(words)


def page_of_observation(
    observation: Mapping[str, Any], numbers: dict[NodeKey, int], uid: str, task: str, history: Sequence[str]
) -> GymPage:
    """Reads an observation. `numbers`: the ids that elements of this episode have; new ones are added. `history`: the actions so far,
    as they are told."""
    from PIL import Image

    file = io.BytesIO()
    picture = Image.fromarray(observation["screenshot"])
    picture.save(file, "PNG")
    document, tab = observation["dom_object"]["documents"][0], int(observation["active_page_index"][0])
    # the first box is the window's
    _, _, width, height = document["layout"]["bounds"][0]
    scale = picture.width / width
    left, top = document["scrollOffsetX"], document["scrollOffsetY"]
    tree, ids, bids = snapshot_tree(observation["dom_object"]), {}, {}
    for node in tree.walk():
        key = NodeKey(tab, node.backend_node_id)
        ids[key.backend] = node.backend_node_id = numbers.setdefault(key, len(numbers) + 1)
        if node.box is not None:
            box = node.box
            node.box = Box((box.x - left) * scale, (box.y - top) * scale, box.w * scale, box.h * scale)
        if BID in node.attributes:
            bids[node.backend_node_id] = node.attributes[BID]
            node.attributes = _unmarked(node)
    address = observation["url"]
    script = TaskScript(
        annotation_id="gym", task=task, split="test", website=urlsplit(address).hostname or "page", domain="", subdomain="", start=address,
        served=None, actions=(),
    )  # fmt: skip
    made = {
        "page_state": PageState(address, (round(width * scale), round(height * scale)), (left * scale, top * scale)),
        "accessibility_tree": accessibility_tree(observation["axtree_object"]["nodes"], ids, ""),
    }
    view = page_view(script, uid, history, tree, file.getvalue(), picture.size, made, address, numbers, tab)
    return GymPage(view, tree, bids, observation["focused_element_bid"], (width * scale, height * scale))


def _unmarked(node: Node) -> dict[str, str]:
    """An element's attributes without what was written on it. What a field holds was written over its `value` too, and is known besides."""
    kept = {name: one for name, one in node.attributes.items() if name != BID and not name.startswith(MARKS)}
    value, kind = kept.get("value"), kept.get("type", "text").lower()
    written = {
        "input": kind not in VALUED or value == "on",
        "textarea": True,
        "select": True,
        "li": value == "0",
        "option": node.tag == "option" and xml_text(value or "") == xml_text("".join(one.text for one in node.walk())),
    }
    if not value or written.get(node.tag, False):
        kept.pop("value", None)
    return kept


# --- what is done ---


def calls(page: GymPage, deeds: Sequence[Deed], home: str) -> str:
    """BrowserGym's calls for deeds, a line each. `home`: the address of an agent's home page. Raises ActFailed."""
    return "\n".join(line for deed in deeds for line in _calls(page, deed, home)) or "noop()"


def _calls(page: GymPage, deed: Deed, home: str) -> Iterator[str]:
    kind, text = deed.kind, deed.text.strip()
    if kind in ("click", "double", "right", "hover"):
        yield _pointing(page, deed)
    elif kind in ("type", "select", "clear"):
        yield from _writing(page, deed)
    elif kind == "press":
        yield _call("keyboard_press", keys_of(deed))
    elif kind == "scroll":
        yield _scrolling(page, deed)
    elif kind == "drag":
        if deed.point is None or "to" not in deed.extra:
            raise ActFailed("expected the places where the drag begins and ends")
        yield _call("mouse_drag_and_drop", *_rounded(deed.point), *_rounded(deed.extra["to"]))
    elif kind == "back":
        yield "go_forward()" if "forward" in (text, deed.extra.get("direction")) else "go_back()"
    elif kind == "goto":
        yield _call("goto", urljoin(page.view.address, text) if text else home)
    elif kind == "tab":
        if text not in ("new", "close") and not text.isdecimal():
            raise ActFailed(f"there is no tab {text[:20]!r}")
        yield {"new": "new_tab()", "close": "tab_close()"}.get(text) or _call("tab_focus", int(text))
    elif kind in ("stop", "answer"):
        yield _call("report_infeasible" if text.lower() in INFEASIBLE else "send_msg_to_user", text or "done")
    elif kind in ("wait", "zoom"):
        yield "noop()"
    else:
        raise ActFailed(f"nothing is known of an act {kind!r}")


def _pointing(page: GymPage, deed: Deed) -> str:
    element, named = _element(page, deed)
    lists = [one for one in _selects(page) if element is not None and element in one.walk()]
    if element is not None and element.tag == "option" and lists:
        return _call("select_option", page.bids[lists[0].backend_node_id], _label(element))
    if element is not None and deed.kind == "click" and element.tag == "select":
        return _call("focus", page.bids[element.backend_node_id])
    place: tuple[object, ...] = () if deed.point is None else _rounded(deed.point)
    if named is not None:
        place = (page.bids[named.backend_node_id],)
    elif not place:
        raise ActFailed("expected a place")
    by_bid, by_place = _POINTING[deed.kind]
    return _call(by_place if named is None else by_bid, *place, *(("right",) if deed.kind == "right" else ()))


_POINTING = {
    "click": ("click", "mouse_click"), "right": ("click", "mouse_click"), "double": ("dblclick", "mouse_dblclick"), "hover": ("hover", "mouse_move"),
}  # fmt: skip
"""Kind -> call on an element, and at a place."""


def _writing(page: GymPage, deed: Deed) -> Iterator[str]:
    text, enters = deed.text.removesuffix("\n"), bool(deed.extra.get("enter")) or deed.text.endswith("\n")
    element = _element(page, deed)[0]
    listed = next((one for one in _selects(page) if element is not None and element in one.walk()), None)
    if listed is not None:
        entries = [_label(one) for one in listed.walk() if one.tag == "option"]
        yield _call("select_option", page.bids[listed.backend_node_id], entries[entry_like(entries, text)])
        return
    if deed.kind == "select":
        # a list that the page draws itself opens by a click
        yield _pointing(page, replace(deed, kind="click"))
        return
    if element is not None and element.attributes.get("type") in FORMATTED:
        yield _call("fill", page.bids[element.backend_node_id], text)
    else:
        if deed.point is not None or deed.node is not None:
            yield _pointing(page, replace(deed, kind="click"))
        yield _call("keyboard_press", SELECT_ALL)
        yield _call("keyboard_type", text) if text else _call("keyboard_press", "Backspace")
    if enters:
        yield _call("keyboard_press", "Enter")


def _scrolling(page: GymPage, deed: Deed) -> str:
    # an agent's step is of its own window, which may be larger than this one
    _, *way = scroll_of(deed, page.view.size)
    place = deed.point or (page.view.size[0] / 2, min(page.view.size[1], page.window[1]) / 2)
    return _call("scroll_at", *_rounded(place), *_rounded(way))


def _element(page: GymPage, deed: Deed) -> tuple[Node | None, Node | None]:
    """The field, button or element that a deed acts on, as far as that is known, and the one that it names. Raises ActFailed where it takes no such act."""
    with_bids = [one for one in page.tree.walk() if one.backend_node_id in page.bids]
    number = None if deed.node is None else page.view.ids.get(deed.node)
    named = next((one for one in with_bids if one.backend_node_id == number), None)
    element = named
    if named is None and deed.point is not None:
        at = [one for one in with_bids if one.tag in FIELDS and one.box is not None and one.box.contains(*deed.point)]
        # the last one is drawn above the others
        element = at[-1] if at else None
    elif named is None:
        element = next(
            (one for one in with_bids if page.focused and page.bids[one.backend_node_id] == page.focused), None
        )
    has = {} if element is None or element.tag not in FIELDS or deed.kind == "hover" else element.attributes
    if "disabled" in has or has.get("aria-disabled") == "true":
        raise ActFailed("the element is disabled")
    if has.get("type") == "file":
        raise ActFailed("a page is given no file here")
    if "readonly" in has and deed.kind in ("type", "clear"):
        raise ActFailed("the field is read-only")
    return element, named


def _selects(page: GymPage) -> Iterator[Node]:
    return (one for one in page.tree.walk() if one.tag == "select" and one.backend_node_id in page.bids)


def _label(option: Node) -> str:
    return option.attributes.get("label") or xml_text("".join(below.text for below in option.walk()))


def _rounded(point: Sequence[float]) -> tuple[float, float]:
    return round(float(point[0]), 1), round(float(point[1]), 1)


def _call(name: str, *values: object) -> str:
    """A call as BrowserGym reads it.

    >>> _call("fill", "a12", "it's")
    'fill(\\'a12\\', "it\\'s")'
    """
    return f"{name}({', '.join(map(repr, values))})"

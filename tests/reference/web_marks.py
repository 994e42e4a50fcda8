"""Slow, obvious set-of-mark rules: every pair of elements is looked at, and the table of texts goes through pandas."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seeact_offline.web_agents.screen_page import ScreenElement
from tests.lazily import pandas

Window = tuple[int, int, int, int]
Elements = Sequence[ScreenElement]


@dataclass
class Found:
    """A mark as these rules find it."""

    label: int | None
    place: int
    rects: list[tuple[float, float, float, float]]
    """Left, top, right and bottom in the window."""
    entry: str


def ancestors(elements: Elements, place: int) -> list[int]:
    parent = elements[place].parent
    return [] if parent is None else [parent, *ancestors(elements, parent)]


def is_inside(elements: Elements, inner: int, outer: int) -> bool:
    return inner == outer or outer in ancestors(elements, inner)


def is_html(elements: Elements, place: int) -> bool:
    for above in [place, *ancestors(elements, place)]:
        if elements[above].tag == "foreignobject" and above != place:
            return True
        if elements[above].tag in ("svg", "math"):
            return False
    return True


def rounded(number: float) -> int:
    """To the nearest whole number, halves away from zero, as Chromium rounds the point of a hit test."""
    return int(math.copysign(math.floor(abs(number) + 0.5), number))


# --- WebVoyager ---


def webvoyager(elements: Elements, window: Window) -> list[Found]:
    left, top, right, bottom = window
    width, height = right - left, bottom - top
    every = range(len(elements))
    items: dict[int, list[tuple[float, float, float, float]]] = {}
    for place, element in enumerate(elements):
        seen = []
        for number, (x, y, w, h) in enumerate(element.rects):
            x, y = x - left, y - top
            if element.on_top is None:
                met = element.visibility == "visible"
            else:
                top_place = element.on_top[number]
                met = top_place is not None and is_inside(elements, top_place, place)
            if met and 0 <= rounded(x + w / 2) < width and 0 <= rounded(y + h / 2) < height:
                seen.append((max(0, x), max(0, y), min(width, x + w), min(height, y + h)))
        tag = element.tag.upper() if is_html(elements, place) else element.tag
        wanted = tag in "INPUT TEXTAREA SELECT BUTTON A IFRAME VIDEO LI TD OPTION".split()
        area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in seen)
        if (wanted or element.has_onclick or element.cursor == "pointer") and area >= 20:
            items[place] = seen

    def is_button(e: ScreenElement) -> bool:
        kind, role = e.attributes.get("type", ""), e.attributes.get("role")
        return (
            e.tag == "button"
            or e.tag == "a"
            or (e.tag == "input" and kind.lower() == "button")
            or (e.tag == "div" and role == "button")
        )

    first = [
        p
        for p in items
        if not any(q in items and is_button(elements[q]) and q != p and is_inside(elements, p, q) for q in every)
    ]
    second = []
    for p in first:
        parent = elements[p].parent
        only = sum(e.parent == parent for e in elements) == 1
        wraps = (
            parent is not None and elements[parent].tag == "span" and elements[parent].attributes.get("role") and only
        )
        if not (wraps and is_html(elements, parent or 0) and parent in first):
            second.append(p)
    third = [p for p in second if not any(q != p and is_inside(elements, q, p) for q in second)]
    return [Found(label, p, items[p], webvoyager_entry(label, elements[p])) for label, p in enumerate(third)]


def webvoyager_entry(label: int, element: ScreenElement) -> str:
    """By the table: the first row whose condition holds."""
    spaces = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    text = re.sub(f"[{spaces}][{spaces}]+", " ", element.text.strip(spaces))
    tag, name = element.tag, element.attributes.get("aria-label") or ""
    kind = element.attributes.get("type", "").lower()
    if tag == "button" and kind not in ("submit", "reset", "button"):
        kind = "submit"
    others = "hidden url date month week time datetime-local number range color checkbox radio file submit image reset button"
    if tag == "input" and kind not in ("search", "password", "email", "tel", *others.split()):
        kind = "text"
    listed = (tag == "input" and kind in ("text", "search", "password", "email", "tel")) or tag == "textarea"
    listed = listed or (tag == "button" and kind in ("submit", "button"))
    if text == "":
        return "" if not listed else f'[{label}]: <{tag}> "{name}";' if name else f'[{label}]: <{tag}> "";'
    if len(text) >= 200 or ("<img" in text and "src=" in text):
        return ""
    both = name != "" and name != text
    if tag in ("button", "input", "textarea"):
        return f'[{label}]: <{tag}> "{text}", "{name}";' if both else f'[{label}]: <{tag}> "{text}";'
    return f'[{label}]: "{text}", "{name}";' if both else f'[{label}]: "{text}";'


# --- VisualWebArena ---


def interactable(elements: Elements, place: int) -> bool:
    e = elements[place]
    a = e.attributes
    around = [elements[i] for i in ancestors(elements, place)]
    holds_picture = any(o.tag == "img" and i != place and is_inside(elements, i, place) for i, o in enumerate(elements))
    classes = a.get("class", "").split(" ")
    return any(
        [
            e.tag == "a" and "href" in a and not holds_picture,
            e.tag == "img" and any(o.tag == "a" and "href" in o.attributes for o in around),
            e.tag == "button",
            e.tag == "input" and a.get("type", "text").lower() != "hidden",
            e.tag == "textarea",
            e.tag == "select",
            "tabindex" in a and a["tabindex"] != "-1",
            a.get("contenteditable") == "true",
            a.get("role") in ("button", "link", "checkbox", "menuitem", "tab"),
            a.get("draggable") == "true",
            "btn" in classes,
            e.tag == "a" and a.get("href") in ("/notifications", "/submit"),
            all(word in classes for word in ("fa", "fa-star", "is-rating-item")),
        ]
    )


def is_text(elements: Elements, place: int) -> bool:
    e = elements[place]
    if e.parent is None or interactable(elements, e.parent) or elements[e.parent].tag == "style":
        return False
    if e.tag == "div":
        return all(o.parent != place for o in elements)
    return e.tag in "p span h1 h2 h3 h4 h5 h6 li article".split()


def table_of(elements: Elements) -> tuple[str, list[int]]:
    """The table as text, and the place of each row's element."""
    out, places = io.StringIO(), []
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow("ID Element Top Right Bottom Left Width Height Alt TextContent Interactable".split())
    for place, e in enumerate(elements):
        if not interactable(elements, place) and not is_text(elements, place):
            continue
        shown = [(x, y, x + w, y + h) for x, y, w, h in e.rects if w != 0 or h != 0]
        if not shown:
            continue
        left, top = min(r[0] for r in shown), min(r[1] for r in shown)
        right, bottom = max(r[2] for r in shown), max(r[3] for r in shown)
        if right == left or bottom == top:
            continue
        name = e.tag.upper() if is_html(elements, place) else e.tag
        texts = [e.attributes.get("alt", "").replace('"', ""), e.text.replace('"', "")]
        box = [top, right, bottom, left, right - left, bottom - top]
        writer.writerow([len(places) + 1, name, *box, *texts, str(interactable(elements, place)).lower()])
        places.append(place)
    return out.getvalue(), places


def visualwebarena(elements: Elements, window: Window) -> tuple[list[Found], list[str]]:
    """Rows in the window, and the lines of the list."""
    text, places = table_of(elements)
    return rows_in_window(text, places, window)


def rows_in_window(table: str, places: Sequence[int], window: Window) -> tuple[list[Found], list[str]]:
    # as text, or a table without a word would be one of numbers
    frame = pandas.read_csv(io.StringIO(table), dtype={"Alt": str, "TextContent": str})
    left, top, right, bottom = window
    found: list[Found] = []
    lines: list[str] = []
    said: set[str] = set()
    number = 0
    for place, (_, row) in zip(places, frame.iterrows(), strict=True):
        x0, y0, x1, y1 = row["Left"] - left, row["Top"] - top, row["Right"] - left, row["Bottom"] - top
        if x1 < 0 or y1 < 0 or x0 > right - left or y0 > bottom - top:
            continue
        if row["Width"] * row["Height"] > 0.8 * ((right - left) * (bottom - top)):
            continue
        content = words(row)
        box = (x0, y0, x1, y1)
        if not row["Interactable"]:
            line = f"[] [StaticText] [{content}]"
            if content == "" or content in said or (content.startswith(".") and "{" in content):
                line = ""
            else:
                said.add(content)
                lines.append(line)
            found.append(Found(None, place, [box], line))
            continue
        number += 1
        if row["Width"] < 8 or row["Height"] < 8:
            found.append(Found(number, place, [box], ""))
            continue
        line = f"[{number}] [{row['Element']}] [{content}]"
        lines.append(line)
        if content in said:
            lines = [other for other in lines if other.strip() != content]
        said.add(content)
        found.append(Found(number, place, [box], line))
    return found, lines


def words(row: Any) -> str:
    said = row["Alt"] if row["Element"] == "IMG" and pandas.notna(row["Alt"]) else ""
    if pandas.isna(row["TextContent"]):
        return str(said)
    return str(said) + str(row["TextContent"]).strip().replace("\n", "").replace("\t", "")[:200]


def label_corners(boxes: Sequence[tuple[str, tuple[float, float, float, float]]], width: int, height: int) -> list[Any]:
    """Where the labels' texts go, one after the other."""
    taken: list[tuple[float, float, float, float]] = []
    corners: list[tuple[float, float]] = []
    for text, (left, t, r, b) in boxes:
        tries = [
            (left - 16, t - 16),
            (left, t - 16),
            (r, t - 16),
            (r - 20, t - 16),
            (left - 16, b),
            (left, b),
            (r - 20, b),
        ]
        for x, y in tries:
            spot = (x - 2, y - 2, x + 9.59375 * len(text) + 2, y + 18)
            inside = spot[0] >= 0 and spot[1] >= 0 and spot[2] <= width and spot[3] <= height
            hit = any(
                not (spot[2] < o[0] + 4 or spot[0] > o[2] - 4 or spot[1] > o[3] - 4 or spot[3] < o[1] + 4)
                for o in taken
            )
            if inside and not hit:
                break
        taken.append(spot)
        corners.append((x, y))
    return corners

"""The released printing of accessibility trees, over a table of nodes that a filter rewrites: nothing shared with the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Node = dict[str, Any]
"""id, role, name (None for none), properties as pairs, box of left, top, width and height or None, dom, children as ids."""
Table = dict[str, Node]
Printed = tuple[str, dict[str, str]]
"""The text, and printed id -> id of the node that an action on it means."""
IGNORED = ["focusable", "editable", "readonly", "level", "settable", "multiline", "invalid"]
OPEN_IGNORED = [*IGNORED, "hiddenRoot", "hidden", "controls", "labelledby", "describedby"]
BLANK_ROLES = "generic img list strong paragraph banner navigation Section LabelText Legend listitem".split()


def window_filter(table: Table, window: tuple[float, float, float, float], threshold: float) -> Table:
    """Takes nodes out one by one, each leaving its children in its place."""
    left, top, width, height = window
    table = {name: {**node, "children": list(node["children"])} for name, node in table.items()}
    root = next(iter(table))
    for name in list(table):
        node = table[name]
        if name == root:
            continue
        keeps = False
        if node["dom"] and node["box"] and node["box"][2] and node["box"][3]:
            x, y, w, h = node["box"]
            right, bottom = min(x - left + w, width), min(y - top + h, height)
            area = max(right - max(x - left, 0), 0) * max(bottom - max(y - top, 0), 0)
            keeps = not area / w * h < threshold
        if not keeps:
            parent = next(other for other in table.values() if name in other["children"])
            at = parent["children"].index(name)
            parent["children"][at : at + 1] = node["children"]
            del table[name]
    return table


def said(node: Node, printed: str, ignored: list[str]) -> tuple[str, bool]:
    words = [f"[{printed}] {node['role']} {node['name']!r}"]
    words += [f"{key}: {value}" for key, value in node["properties"] if key not in ignored and value is not None]
    return " ".join(words), len(words) > 1


def arena(table: Table) -> Printed:
    ids: dict[str, str] = {}

    def visit(name: str, depth: int) -> list[str]:
        node, lines, indents = table[name], [], False
        if node["role"] is not None and node["name"] is not None:
            line, has_properties = said(node, name, IGNORED)
            is_blank = node["name"].strip() == ""
            drops = is_blank and (
                (not has_properties and node["role"] in BLANK_ROLES) or (has_properties and node["role"] == "listitem")
            )
            if not drops:
                lines.append("\t" * depth + line)
                if node["dom"]:
                    ids[name] = name
                    indents = True
        for child in node["children"]:
            lines += visit(child, depth + 1 if indents else depth)
        return lines

    return "\n".join(visit(next(iter(table)), 0)), ids


def clean(text: str, says: Callable[[str], str]) -> str:
    kept: list[str] = []
    for line in text.split("\n"):
        if "statictext" in line.lower():
            words = says(line)
            if not words or words in "".join(f"{previous}\0" for previous in kept[-3:]):
                continue
        kept.append(line)
    return "\n".join(kept)


def after_static_text(line: str) -> str:
    """What follows `[digits] StaticText `, at the first place where it stands."""
    for at, character in enumerate(line):
        digits, closed, rest = line[at + 1 :].partition("] StaticText ")
        if character == "[" and closed and digits.isdecimal() and rest:
            return rest
    return ""


def arena_says(line: str) -> str:
    return after_static_text(line)[1:-1]


def voyager_says(line: str) -> str:
    rest = after_static_text(line)
    if not rest.startswith("'"):
        return ""
    words, quote, _ = rest[1:].partition("'")
    return words if quote else ""


def visualwebarena(table: Table) -> Printed:
    text, ids = arena(table)
    return clean(text, arena_says), ids


def webvoyager(table: Table) -> Printed:
    text, ids = arena(table)
    return clean(text, voyager_says), ids


def openwebvoyager(table: Table) -> Printed:
    ids: dict[str, str] = {}
    lines: list[str] = []

    def visit(name: str, depth: int, above: str) -> None:
        node = table[name]
        text = (node["name"] or "").strip()
        drops = node["role"] in (None, "gridcell") or not text
        if node["role"] in ("StaticText", "heading", "image", "generic"):
            drops = drops or text in above
        if not drops:
            ids[str(len(ids) + 1)] = name
            lines.append("\t" * depth + said(node, str(len(ids)), OPEN_IGNORED)[0])
        for child in node["children"]:
            if len(ids) > 300:
                return
            visit(child, depth if drops else depth + 1, above if drops else node["name"])

    visit(next(iter(table)), 0, "root")
    return "\n".join(lines), ids


def html(table: Table) -> Printed:
    order = list(table)
    ids: dict[str, str] = {}

    def visit(name: str, depth: int) -> str:
        node = table[name]
        attributes = " ".join(f'{key}="{" ".join(value.split())}"' for key, value in node["properties"])
        value = " ".join((node["name"] or "").split())
        text = ""
        if attributes or value:
            number = str(order.index(name))
            ids[number] = name
            text = (
                "\t" * depth + f"[{number}] <{node['role']}" + (f" {attributes}" if attributes else "") + f"> {value}\n"
            )
        for child in node["children"]:
            text += visit(child, depth + 1 if text and (attributes or value) else depth)
        return text

    return visit(order[0], 0), ids

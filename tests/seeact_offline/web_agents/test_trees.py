"""Printed accessibility trees against the slow printer, line by line, and the rules that look like accidents."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from seeact_offline.records import Box
from seeact_offline.web_agents.trees import (
    MAX_LINES,
    TreeNode,
    caption_text,
    print_arena,
    print_html,
    print_open,
    print_webvoyager,
)
from tests.reference import web_trees

WINDOW = Box(0, 100, 200, 300)
PRINTERS = {
    "visualwebarena": (print_arena, web_trees.visualwebarena, 0.6),
    "webvoyager": (print_webvoyager, web_trees.webvoyager, 0.6),
    "openwebvoyager": (print_open, web_trees.openwebvoyager, 0.8),
    "html": (print_html, web_trees.html, 0.6),
}
ROLES = (
    "generic", "img", "image", "list", "strong", "paragraph", "banner", "navigation", "Section", "LabelText", "Legend", "listitem", "link",
    "button", "heading", "gridcell", "StaticText", "StaticText", "StaticText", "textbox", None,
)  # fmt: skip
NAMES = (
    "",
    " ",
    "\n",
    "Sign in",
    "Sign",
    "in",
    "it's",
    'it\'s "in"',
    '"in"',
    "root",
    "oo",
    "tab\there",
    "StaticText 'x'",
    "\xe9",
    None,
)
PROPERTIES = (
    ("focusable", True), ("level", 2), ("focused", True), ("expanded", False), ("checked", "mixed"), ("required", None), ("valuemin", 0.0),
    ("valuemax", 2.5), ("controls", "x"), ("hidden", False), ("url", "http://a.com/"), ("roledescription", "a\nb"),
)  # fmt: skip


def random_tree(rng: random.Random, for_html: bool) -> web_trees.Table:
    table: web_trees.Table = {}
    tokens = [rng.choice(["a", "Sign in", "\n"]) for _ in range(3)]

    def grow(depth: int, is_root: bool = False) -> str:
        name = str(len(table) + 10)
        node: web_trees.Node = {"children": [], "dom": is_root or rng.random() < 0.95}
        table[name] = node
        node["box"] = (
            None if rng.random() < 0.1 else tuple(rng.choice([0, 0.5, 1, 20, 100, 150, 250, 500]) for _ in range(4))
        )
        if for_html:
            node["role"] = rng.choice(["DIV", "#text", "A"])
            node["name"] = rng.choice(["", *tokens, " a  b "])
            node["properties"] = tuple((key, rng.choice(tokens)) for key in rng.sample(["id", "alt"], rng.randrange(3)))
        else:
            node["role"] = "RootWebArea" if is_root else rng.choice(ROLES)
            node["name"] = rng.choice(NAMES)
            node["properties"] = tuple(rng.sample(PROPERTIES, rng.choice([0, 0, 1, 3])))
        for _ in range(rng.randrange(4) if depth < 6 else 0):
            node["children"].append(grow(depth + 1))
        return name

    grow(0, is_root=True)
    return table


def tree_of(table: web_trees.Table, name: str | None = None) -> TreeNode:
    name = next(iter(table)) if name is None else name
    node = table[name]
    children = tuple(tree_of(table, child) for child in node["children"])
    box = Box(*node["box"]) if node["box"] else None
    return TreeNode(name, node["role"], node["name"], node["properties"], children, box, node["dom"])


@pytest.mark.slow
@pytest.mark.parametrize("printer", PRINTERS)
def test_trees_are_printed_as_the_slow_printer_does(printer: str) -> None:
    rng = random.Random(printer)
    ours, theirs, threshold = PRINTERS[printer]
    for _ in range(1_000):
        table = random_tree(rng, printer == "html")
        for window in (None, WINDOW):
            given = table if window is None else web_trees.window_filter(table, window, threshold)
            # the number of a whole float is that of the browser's protocol
            text, ids = theirs(given)
            printed = ours(tree_of(table), window)
            assert printed.text == text.replace("valuemin: 0.0", "valuemin: 0"), table
            assert {name: node.id for name, node in printed.nodes.items()} == ids


@pytest.mark.parametrize("printer", PRINTERS)
def test_ends_are_those_of_the_lines(printer: str) -> None:
    rng = random.Random(printer)
    for _ in range(200):
        table = random_tree(rng, printer == "html")
        root = tree_of(table)
        bare = PRINTERS[printer][0](root)
        for printed, begin in ((bare, 0), (bare.below("Tab 0 (current): x"), 20)):
            for name, end in printed.ends.items():
                line = printed.text[printed.text[:end].rindex(f"[{name}] ") : end]
                assert end >= begin
                assert "\n" not in line.replace("a\nb", "")
                assert printed.text[end : end + 1] in ("", "\n")


@pytest.mark.parametrize("printer", PRINTERS)
def test_every_printed_id_can_be_acted_on(printer: str) -> None:
    rng = random.Random(printer)
    for _ in range(300):
        table = random_tree(rng, printer == "html")
        printed = PRINTERS[printer][0](tree_of(table), WINDOW)
        assert printed.ends.keys() <= printed.nodes.keys()
        root = next(iter(table))
        assert all(node.box is not None for node in printed.nodes.values() if node.id != root)


def leaf(number: int, role: str | None, name: str | None, *properties: tuple[str, Any], **more: Any) -> TreeNode:
    return TreeNode(str(number), role, name, properties, **more)


def root_of(*children: TreeNode) -> TreeNode:
    return TreeNode("1", "RootWebArea", "Shop", (("focusable", True), ("focused", True)), children)


def lines(children: Sequence[TreeNode]) -> list[str]:
    return print_arena(root_of(*children)).text.split("\n")[1:]


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ([leaf(2, "link", "it's", ("level", 1))], ['\t[2] link "it\'s"']),
        ([leaf(2, "checkbox", "a", ("checked", "false"), ("required", False))], ["\t[2] checkbox 'a' checked: false required: False"]),
        ([leaf(2, "slider", "a", ("valuemin", 0.0), ("valuemax", 2.5))], ["\t[2] slider 'a' valuemin: 0 valuemax: 2.5"]),
        ([leaf(2, "generic", " ", ("focusable", True))], []),
        ([leaf(2, "generic", " ", ("focused", True))], ["\t[2] generic ' ' focused: True"]),
        ([leaf(2, "listitem", "", ("focused", True))], []),
        ([leaf(2, "image", "")], ["\t[2] image ''"]),
        ([leaf(2, None, "a"), leaf(3, "link", None)], []),
        # children of what is left out move up a level
        ([leaf(2, "list", "", children=(leaf(3, "link", "a"),))], ["\t[3] link 'a'"]),
        # no element behind it: printed, and its children are not indented
        ([leaf(2, "menu", "a", has_element=False, children=(leaf(3, "link", "b"),))], ["\t[2] menu 'a'", "\t[3] link 'b'"]),
        # a text that one of the three lines above says
        ([leaf(2, "link", "Sign in"), leaf(3, "StaticText", "Sign")], ["\t[2] link 'Sign in'"]),
        ([*(leaf(n, "link", "abcd"[n - 2]) for n in range(2, 6)), leaf(6, "StaticText", "a")], [*(f"\t[{n}] link '{'abcd'[n - 2]}'" for n in range(2, 6)), "\t[6] StaticText 'a'"]),
        ([leaf(2, "StaticText", "")], []),
        ([leaf(2, "link", "the StaticText role")], []),
        ([leaf(2, "StaticText", "a", ("focused", True))], ["\t[2] StaticText 'a' focused: True"]),
    ],
)  # fmt: skip
def test_lines_of_visualwebarena(children: list[TreeNode], expected: list[str]) -> None:
    assert lines(children) == expected


def test_what_is_cleaned_away_can_still_be_acted_on() -> None:
    printed = print_arena(root_of(leaf(2, "link", "Sign in"), leaf(3, "StaticText", "Sign")))
    assert (printed.nodes["3"].name, printed.shows("3"), printed.shows("2"), printed.shows("9")) == (
        "Sign",
        False,
        True,
        False,
    )


@pytest.mark.parametrize(("name", "is_kept"), [("q", True), ("it's q", False), ('it\'s "q"', True), ('"q"', True)])
def test_webvoyager_loses_texts_in_double_quotes(name: str, is_kept: bool) -> None:
    printed = print_webvoyager(root_of(leaf(2, "StaticText", name)))
    assert printed.text.split("\n")[1:] == [f"\t[2] StaticText {name!r}"] * is_kept


@pytest.mark.parametrize(
    ("box", "arena", "openweb"),
    [
        (Box(0, 0, 100, 20), False, False),
        (Box(0, 99, 100, 20), True, True),
        # as printed, the figure is the overlap times the height by the width
        (Box(0, 90, 1000, 10.01), False, False),
        (Box(-99, 150, 100, 1), False, False),
        (Box(0, 150, 100, 0.8), True, False),
        (Box(0, 150, 100, 0), False, False),
        (Box(199.9, 399.9, 100, 100), False, False),
        (Box(199, 399, 100, 100), True, True),
        (None, False, False),
    ],
)
def test_what_a_window_shows(box: Box | None, arena: bool, openweb: bool) -> None:
    root = root_of(leaf(2, "link", "a", box=box, children=(leaf(3, "link", "b", box=Box(0, 150, 10, 10)),)))
    for printer, is_shown in ((print_arena, arena), (print_open, openweb)):
        names = [line.split("'")[1] for line in printer(root, WINDOW).text.split("\n")[1:]]
        assert names == ["a"] * is_shown + ["b"]


def test_openwebvoyager_numbers_its_lines_and_stops_behind_300() -> None:
    inner = leaf(
        5, "link", "Sign in", ("controls", "x"), children=(leaf(6, "StaticText", " Sign "), leaf(7, "button", "Sign"))
    )
    printed = print_open(root_of(leaf(4, "gridcell", "a"), leaf(8, "heading", "root"), inner))
    assert (
        printed.text
        == "[1] RootWebArea 'Shop' focused: True\n\t[2] heading 'root'\n\t[3] link 'Sign in'\n\t\t[4] button 'Sign'"
    )
    assert [node.id for node in printed.nodes.values()] == ["1", "8", "5", "7"]
    many = print_open(root_of(*(leaf(n, "link", f"n{n}") for n in range(2, 400))))
    assert len(many.nodes) == len(many.text.split("\n")) == MAX_LINES


def test_the_html_counts_the_nodes_that_it_leaves_out() -> None:
    text = TreeNode("3", "#text", " Sign \n in ")
    root = TreeNode(
        "1", "HTML", "", (), (TreeNode("2", "A", "", (("alt", "a  b"), ("role", "")), (text,)), TreeNode("4", "P", ""))
    )
    printed = print_html(root)
    assert printed.text == '[1] <A alt="a b" role=""> \n\t[2] <#text> Sign in\n'
    assert {name: node.id for name, node in printed.nodes.items()} == {"1": "2", "2": "3"}


def test_a_deep_tree_is_printed() -> None:
    node = leaf(9_999, "link", "a")
    for number in range(9_998, 1, -1):
        node = TreeNode(str(number), "generic", "", (), (node,))
    assert print_arena(root_of(node)).text.endswith("\n\t[9999] link 'a'")


@pytest.mark.parametrize(
    ("alt", "caption", "expected"),
    [
        ("", "a dog", ", description: a dog"),
        ("Rex", " a d\xf6g ", "Rex, description: a dg"),
        ("a dog here", "a dog", "a dog here"),
        ("Rex", None, "Rex"),
    ],
)
def test_captions(alt: str, caption: str | None, expected: str) -> None:
    assert caption_text(alt, caption) == expected


def test_a_cut_tree_shows_the_lines_that_are_whole() -> None:
    printed = print_arena(root_of(leaf(2, "link", "a"), leaf(3, "link", "b"))).below("Tab 0 (current): Shop")
    end = printed.ends["2"]
    shown = [(printed.shows("2", printed.text[:at]), printed.shows("3", printed.text[:at])) for at in (end - 1, end)]
    assert shown == [(False, False), (True, False)]
    assert printed.shows("3", printed.text)

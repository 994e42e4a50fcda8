"""Accessibility trees of cleaned pages and of recorded trees: roles, names, properties, places, and ids that can be acted on."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.recorded import AccessibleNode
from seeact_offline.pages.dom import Page
from seeact_offline.records import Box
from seeact_offline.sample import DATA
from seeact_offline.web_agents.page_trees import fill_boxes, html_of_page, tree_of_page, tree_of_recording
from seeact_offline.web_agents.trees import TreeNode, print_arena, print_html, print_open, print_webvoyager
from tests.reference import page_trees as reference

WINDOW = Box(0, 0, 1280, 2048)


def page_of(body: str) -> Page:
    return Page(f'<html backend_node_id="1">{body}</html>')


def outline(node: TreeNode, depth: int = 0) -> list[str]:
    """What is below a node: a tab for each level, role, name and properties. Without texts that repeat the name above."""
    lines = []
    for child in node.children:
        if child.role == "StaticText" and (child.name or "") in (node.name or ""):
            continue
        properties = "".join(f" {name}: {value}" for name, value in child.properties)
        lines += ["\t" * depth + f"{child.role} {child.name!r}{properties}", *outline(child, depth + 1)]
    return lines


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<a><text>Sign\n in</text></a>", ["link 'Sign in'"]),
        ("<div><span><text>a</text></span></div>", ["StaticText 'a'"]),
        ("<div aria_label='b'><text>a</text></div>", ["generic 'b'", "\tStaticText 'a'"]),
        ("<div aria-label='b'/>", ["generic 'b'"]),
        ("<div title='b'/>", []),
        ("<button title='b'/>", ["button 'b'"]),
        ("<a><img alt='b'/><text>a</text></a>", ["link 'b a'", "\timage 'b'"]),
        ("<img/><img alt=''/><img alt='a'/>", ["image ''", "image 'a'"]),
        ("<svg aria_label='a'><text>b</text></svg>", ["image 'a'"]),
        ("<h2><text>a</text></h2>", ["heading 'a'"]),
        # a role that is known wins, the first of several
        ("<div role='tab'><text>a</text></div>", ["tab 'a' selected: False"]),
        ("<div role='main-nav button link'><text>a</text></div>", ["button 'a'"]),
        ("<ul role='presentation'><a><text>a</text></a></ul>", ["link 'a'"]),
        ("<nav role='none'><main/></nav>", ["main ''"]),
        # fields
        ("<input placeholder='a' title='b'/>", ["textbox 'b' required: False"]),
        ("<input type='search' placeholder='a'/>", ["searchbox 'a'"]),
        ("<input type='hidden' name='a'/>", []),
        ("<input type='submit'/><input type='button' value='a'/>", ["button 'Submit'", "button 'a'"]),
        ("<input type='checkbox' input_checked='true'/>", ["checkbox '' checked: true"]),
        ("<input type='radio' input_checked='false'/>", ["radio '' checked: false"]),
        ("<label><text>a</text><input/></label>", ["LabelText ''", "\tStaticText 'a'", "\ttextbox 'a' required: False"]),
        ("<label><input type='checkbox'/><text>a</text></label>", ["checkbox 'a' checked: false"]),
        ("<label for='x'><text>a</text></label><input id='x'/>", ["LabelText ''", "\tStaticText 'a'", "textbox 'a' required: False"]),
        ("<b id='x'><text>a</text></b><input aria_labelledby='x' aria_label='c'/>", ["StaticText 'a'", "textbox 'a' required: False"]),
        ("<input input_value='Rome'/>", ["textbox '' required: False", "\tStaticText 'Rome'"]),
        ("<input type='password' input_value='x'/>", ["textbox '' required: False"]),
        ("<textarea><text>Rome</text></textarea>", ["textbox '' required: False", "\tStaticText 'Rome'"]),
        (
            "<select aria_label='c'><option option_selected='true'><text>a</text></option><optgroup label='g'><option><text>b</text></option></optgroup></select>",
            ["combobox 'c' hasPopup: menu expanded: False", "\toption 'a' selected: True", "\tgroup 'g'", "\t\toption 'b' selected: False"],
        ),
        # landmarks
        ("<header><text>a</text></header><footer/>", ["banner ''", "\tStaticText 'a'", "contentinfo ''"]),
        ("<section><footer/><section aria_label='s'><text>a</text></section></section>", ["sectionfooter ''", "region 's'", "\tStaticText 'a'"]),
        ("<fieldset><legend><text>a</text></legend></fieldset>", ["group 'a'", "\tLegend ''", "\t\tStaticText 'a'"]),
        ("<table><caption><text>c</text></caption><tbody><tr><td><text>a</text></td></tr></tbody></table>", ["table 'c'", "\tcaption ''", "\t\tStaticText 'c'", "\trow ''", "\t\tcell 'a'"]),
        # words that stand directly in an element
        ("<p>a<b>b</b></p>", ["paragraph ''", "\tStaticText 'a'", "\tStaticText 'b'"]),
    ],
)  # fmt: skip
def test_nodes_of_a_page(body: str, expected: list[str]) -> None:
    assert outline(tree_of_page(page_of(body), {})) == expected


def test_an_id_of_thousands_of_digits_is_an_id() -> None:
    tree = tree_of_page(page_of(f"<a backend_node_id='{'9' * 4301}'><text>in</text></a>"), {})
    assert outline(tree) == ["link 'in'"]


def test_captions_name_images_and_what_holds_them() -> None:
    page = page_of("<a><img backend_node_id='2' alt='Rex'/></a>")
    text = print_arena(tree_of_page(page, {}, alts={"2": "Rex, description: a dog"})).text
    assert "link 'Rex, description: a dog'" in text


def test_places_of_a_page() -> None:
    page = page_of(
        "<body backend_node_id='2'><div backend_node_id='3'><a backend_node_id='4'><text backend_node_id='5'>a</text></a><b backend_node_id='6'/></div>"
        "<select backend_node_id='7'><option backend_node_id='8'><text>b</text></option></select><p><text backend_node_id='9'>c</text></p></body>"
    )
    boxes = {"4": Box(10, 10, 20, 5), "6": Box(50, 0, 10, 40), "7": Box(0, 50, 5, 5), "8": Box(0, 50, 5, 5)}
    filled = fill_boxes(page, boxes)
    around = Box(0, 0, 60, 55)
    assert filled == {
        "1": around, "2": around, "3": Box(10, 0, 50, 40), "4": boxes["4"], "5": boxes["4"], "6": boxes["6"], "7": boxes["7"], "9": around,
    }  # fmt: skip
    nodes = {node.id: node.box for node in tree_of_page(page, boxes).walk()}
    assert nodes == {
        "1": around,
        "4": boxes["4"],
        "5": boxes["4"],
        "7": boxes["7"],
        "8": None,
        "9": around,
        "10": around,
    }


def test_a_recorded_tree() -> None:
    nodes = [
        AccessibleNode(0, "RootWebArea", None, "Shop", properties={"focused": True}),
        AccessibleNode(1, "link", "4", "a", properties={"focusable": True}),
        AccessibleNode(2, "image", "5", "Rex"),
        AccessibleNode(1, "slider", "6", "b", properties={"valuemax": 10.0}),
        AccessibleNode(2, "StaticText", None, "3"),
        AccessibleNode(1, "option", "7", "c"),
    ]
    boxes = {"4": Box(10, 10, 20, 5), "6": Box(0, 50, 5, 5)}
    root = tree_of_recording(nodes, boxes, {"5": "Rex, description: a dog"})
    assert print_arena(root).text.split("\n") == [
        "[8] RootWebArea 'Shop' focused: True",
        "\t[4] link 'a'",
        "\t\t[5] image 'Rex, description: a dog'",
        "\t[6] slider 'b' valuemax: 10",
        "\t\t[9] StaticText '3'",
        "\t[7] option 'c'",
    ]
    assert [node.box for node in root.walk()] == [
        Box(0, 10, 30, 45),
        boxes["4"],
        boxes["4"],
        boxes["6"],
        boxes["6"],
        None,
    ]
    with pytest.raises(ValueError, match="root"):
        tree_of_recording([], boxes)


def test_the_html_of_a_page() -> None:
    page = page_of(
        "<body backend_node_id='2'><a backend_node_id='3' role='tab'><text backend_node_id='4'>a\n b</text></a></body>"
    )
    printed = print_html(html_of_page(page, {}))
    assert printed.text == '[2] <A role="tab"> \n\t[3] <#text> a b\n'
    assert {name: node.id for name, node in printed.nodes.items()} == {"2": "3", "3": "4"}


@pytest.fixture(scope="module")
def pages() -> Sequence[tuple[Page, dict[str, Box]]]:
    steps = list(load_steps(DATA, "test_website"))[::25]
    assert len(steps) > 2
    return [
        (Page(step.cleaned_html), {c.backend_node_id: c.box for c in step.candidates if c.box is not None})
        for step in steps
    ]


@pytest.mark.slow
def test_every_printed_id_of_the_sample_can_be_acted_on(pages: Sequence[tuple[Page, dict[str, Box]]]) -> None:
    for page, boxes in pages:
        tree = tree_of_page(page, boxes, "Shop")
        for printed in (
            print_arena(tree, WINDOW),
            print_webvoyager(tree, WINDOW),
            print_open(tree, WINDOW),
            print_html(html_of_page(page, boxes), WINDOW),
        ):
            assert len(printed.ends) > 20
            assert printed.ends.keys() <= printed.nodes.keys()
            assert all(node.box is not None for node in printed.nodes.values())


def test_ids_are_those_of_the_page_and_no_two_nodes_share_one(pages: Sequence[tuple[Page, dict[str, Box]]]) -> None:
    for page, boxes in pages:
        ids = [node.id for node in tree_of_page(page, boxes).walk()]
        known = {node.backend_node_id for node in page.nodes()}
        assert len(ids) == len(set(ids))
        fresh = set(ids) - known
        assert all(int(one) > max(map(int, known)) for one in fresh)


def test_a_new_id_is_not_that_of_what_has_no_node() -> None:
    page = page_of("<input backend_node_id='2' value='Rome'/><div backend_node_id='9'/>")
    nodes = [AccessibleNode(0, "RootWebArea", None, "Shop"), AccessibleNode(1, "link", "4", "a")]
    assert [node.id for node in tree_of_page(page, {}).walk()] == ["1", "2", "10"]
    assert [node.id for node in tree_of_recording(nodes, {"9": Box(0, 0, 5, 5)}).walk()] == ["10", "4"]


def test_a_page_far_deeper_than_pages_are_has_a_tree() -> None:
    depth = 200
    body = "<ul aria_label='a'>" * depth + "<a><text>x</text></a>" + "</ul>" * depth
    assert print_arena(tree_of_page(page_of(body), {})).text.count("\n") == depth + 1


TEXTS = ["a", " b  c ", "", "Rome"]
ATTRIBUTES = {
    "aria_label": ["x", "y z"], "title": ["t"], "alt": ["", "cat"], "type": ["search", "password", "checkbox", "submit", "hidden"],
    "value": ["v"], "placeholder": ["p"], "role": ["presentation", "tab", "button"], "input_checked": ["true", "false"], "option_selected": ["true"],
}  # fmt: skip
OF_TAGS = {
    **{tag: ["aria_label", "title", "role"] for tag in "a div p ul li h2 nav header section main button".split()},
    "img": ["alt", "title", "aria_label"], "label": ["title"], "select": ["aria_label", "title"], "option": ["option_selected"],
    "input": ["aria_label", "title", "type", "value", "placeholder", "input_checked"], "text": [],
}  # fmt: skip
CHILDLESS = ("img", "input", "text")


@st.composite
def bodies(draw: st.DrawFn, depth: int = 0, tags: Sequence[str] = ()) -> str:
    """Markup without ids, which are given in document order afterwards."""
    tag = draw(st.sampled_from(tags or [tag for tag in OF_TAGS if tag != "option"]))
    named = draw(st.lists(st.sampled_from(OF_TAGS[tag]), max_size=2, unique=True)) if OF_TAGS[tag] else []
    attributes = "".join(f' {name}="{draw(st.sampled_from(ATTRIBUTES[name]))}"' for name in named)
    inside = ""
    if tag in ("text", "option"):
        text = draw(st.sampled_from(TEXTS))
        inside = text if tag == "text" else f"<text>{text}</text>"
    elif tag not in CHILDLESS and depth < 4:
        below = ["option"] if tag == "select" else ()
        inside = "".join(draw(st.lists(bodies(depth + 1, below), max_size=3)))
    return f"<{tag}{attributes}>{inside}</{tag}>"


def as_reference(node: TreeNode, known: Collection[str]) -> dict[str, Any]:
    return {
        "id": node.id if node.id in known else None,
        "role": node.role,
        "name": node.name,
        "properties": list(node.properties),
        "box": None if node.box is None else tuple(node.box),
        "children": [as_reference(child, known) for child in node.children],
    }


@pytest.mark.slow
@given(parts=st.lists(bodies(), min_size=1, max_size=4), data=st.data())
def test_the_tree_of_a_page_is_that_of_the_slow_recursion(parts: list[str], data: st.DataObject) -> None:
    numbers = count(1)
    html = re.sub(
        r"<(\w+)", lambda tag: f'<{tag[1]} backend_node_id="{next(numbers)}"', f"<html>{''.join(parts)}</html>"
    )
    n = next(numbers)
    sides = st.integers(0, 50)
    drawn = data.draw(
        st.dictionaries(st.integers(1, n).map(str), st.builds(Box, sides, sides, sides, sides), max_size=6)
    )
    tree = tree_of_page(Page(html), drawn, "Shop")
    expected = reference.Page(html, {name: tuple(box) for name, box in drawn.items()}).tree("Shop")
    known = {str(number) for number in range(1, n)}
    assert as_reference(tree, known) == expected
    # every printed id can be acted on: it is a node's, and each has a place if any is known
    for printed in (print_arena(tree), print_webvoyager(tree), print_open(tree)):
        assert printed.ends.keys() <= printed.nodes.keys()
        assert {node.id for node in printed.nodes.values()} <= {node.id for node in tree.walk()}

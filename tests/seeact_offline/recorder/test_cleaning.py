"""The cleaning rules, each on a small tree, and what they promise for any tree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seeact_offline.pages.dom import Page
from seeact_offline.recorder.cleaning import Node, clean, cleaned_html, icon_words, raw_html
from seeact_offline.recorder.observing import snapshot_tree
from seeact_offline.records import Box, StepError
from tests.examples import often

PAGE = Box(0, 0, 1280, 2000)
BOX = Box(10, 10, 100, 20)
_ids = iter(range(1, 10**9))


def el(
    tag: str,
    *children: Node | str,
    box: Box | None = BOX,
    clickable: bool = False,
    visible: bool = True,
    **attributes: str,
) -> Node:
    """An element with a box; texts become text nodes; underscores in attribute names stand for hyphens."""
    nodes = [Node(next(_ids), "", text=c, box=box) if isinstance(c, str) else c for c in children]
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return Node(next(_ids), tag, attributes=named, box=box, visible=visible, clickable=clickable, children=nodes)


def tags(*body: Node) -> str:
    """A cleaned body as nested tags: `a(b,"text")`."""

    def shown(node: Node) -> str:
        if not node.tag:
            return f'"{node.text}"'
        inner = ",".join(map(shown, node.children))
        return f"{node.tag}({inner})" if inner else node.tag

    root = clean(el("html", el("head", el("title", "T")), el("body", *body)), PAGE)
    return shown(root).removeprefix("html(body").removesuffix(")").removeprefix("(").removesuffix(")")


def hidden() -> Node:
    """An invisible element of an invisible text and a visible paragraph."""
    node = el("div", el("p", "seen"), visible=False)
    node.children.insert(0, Node(1, "", text="unseen", box=BOX, visible=False))
    return node


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ([el("script", "x"), el("style", "y"), el("p", "gone", box=None), el("p", "stays")], 'p("stays")'),
        ([hidden()], 'p("seen")'),
        ([el("a", "skip", box=Box(0, -999, 50, 20)), el("a", "next", box=Box(1400, 0, 50, 20))], 'a("next")'),
        ([el("div", el("div", el("button", "Go")))], 'button("Go")'),
        ([el("div", el("a", "1"), el("a", "2"))], 'div(a("1"),a("2"))'),
        ([el("div", el("a", "1"), aria_label="Menu")], 'div(a("1"))'),
        ([el("div", clickable=True), el("div")], "div"),
        ([el("iframe", clickable=True), el("canvas", clickable=True), el("canvas", title="Map")], "canvas"),
    ],
    ids=[
        "scripts, styles and what has no layout go", "what is not visible gives its place to what is", "above the page goes, beside it stays",
        "wrappers of one go", "a wrapper of two stays", "a wrapper with a salient attribute stays",
        "a bare element that listens to clicks stays", "frames and canvases without a word go",
    ],
)  # fmt: skip
def test_what_is_left_of_a_page(body: list[Node], left: str) -> None:
    assert tags(*body) == left


def test_options_of_a_closed_list_stay_where_the_list_is() -> None:
    root = clean(el("html", el("select", el("option", "One", box=None), box=Box(5, 6, 7, 8))), PAGE)
    option = next(node for node in root.walk() if node.tag == "option")
    assert (option.box, [child.text for child in option.children]) == (Box(5, 6, 7, 8), ["One"])


def test_a_container_without_an_area_is_where_its_content_is() -> None:
    one, two = el("a", "1", box=Box(0, 0, 10, 10)), el("a", "2", box=Box(50, 40, 10, 10))
    root = clean(el("html", el("ul", one, two, box=Box(0, 0, 0, 0))), PAGE)
    assert next(node for node in root.walk() if node.tag == "ul").box == Box(0, 0, 60, 50)


def test_only_salient_attributes_are_written() -> None:
    link = el("a", "Go", href="/x", class_="big", aria_label="Go there", title="", onclick="f()")
    assert 'aria_label="Go there">' in cleaned_html(clean(el("html", link), PAGE))
    assert "href" not in cleaned_html(clean(el("html", link), PAGE))


def test_what_a_field_holds_now_is_written() -> None:
    field = el("input", name="zip")
    field.live["input_value"] = "10203"
    assert 'name="zip" input_value="10203"' in cleaned_html(clean(el("html", field), PAGE))


def test_an_svg_is_its_icon_words_and_title() -> None:
    svg = el("svg", el("title", "Find"), el("path", d="M0 0"), class_="icon icon-arrow-left fa-lg")
    out = cleaned_html(clean(el("html", el("button", svg)), PAGE))
    assert 'title="Find" class="arrow left lg"/>' in out
    assert "path" not in out


def test_icon_words_come_from_a_referred_symbol_too() -> None:
    assert icon_words(el("svg", el("use", href="#icon-shoppingCart"))) == "shopping cart"


def test_text_sits_in_text_nodes_with_white_space_collapsed() -> None:
    assert ">a b &lt; c</text>" in cleaned_html(clean(el("html", el("p", " a\n b  < c ")), PAGE))


def test_raw_html_keeps_everything_and_adds_ids_and_boxes() -> None:
    out = raw_html(el("html", el("img", class_="x"), el("p", "a<b", onclick='f("x")'), box=None))
    assert '<img class="x" backend_node_id=' in out
    assert 'bounding_box_rect="10,10,100,20"' in out
    assert "a&lt;b</p>" in out
    assert "</img>" not in out


TEXT = st.text(max_size=12)
BOXES = st.one_of(
    st.none(), st.builds(Box, *[st.floats(-50, 1500) for _ in range(2)], *[st.floats(0, 900) for _ in range(2)])
)
LEAF = st.builds(lambda t, b: Node(next(_ids), "", text=t, box=b), TEXT, BOXES)
TREES = st.recursive(
    LEAF,
    lambda inner: st.builds(
        lambda tag, children, attributes, box, clickable: Node(
            next(_ids), tag, attributes=attributes, box=box, clickable=clickable, children=children
        ),
        st.sampled_from(["div", "a", "svg", "select", "option", "canvas", "script", "my-tag", "o:p", "button"]),
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["class", "title", "aria-label", "value", "x:y"]), TEXT, max_size=3),
        BOXES,
        st.booleans(),
    ),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=often(100))
@given(st.lists(TREES, max_size=4))
def test_any_page_becomes_well_formed_and_every_element_has_a_box_on_the_page_or_beside_it(body: list[Node]) -> None:
    root = clean(Node(next(_ids), "html", box=PAGE, children=body), PAGE)
    elements = [node for node in root.walk() if node.tag]
    assert Page(cleaned_html(root)).ids == {str(node.backend_node_id) for node in elements}
    assert all(node.box is not None and node.box.w > 0 and node.box.h > 0 for node in elements)
    assert all(node.box.y < 2000 and node.box.bottom > 0 for node in elements)


def test_a_page_that_is_being_replaced_is_named() -> None:
    marks = {"index": [], "value": []}
    names = ("inputValue", "textValue", "inputChecked", "optionSelected", "isClickable", "shadowRootType")
    nodes = {
        "nodeType": [9],
        "backendNodeId": [1],
        "nodeName": [0],
        "parentIndex": [-1],
        "attributes": [[]],
        **dict.fromkeys(names, marks),
    }
    layout = {"nodeIndex": [], "bounds": [], "styles": []}
    with pytest.raises(StepError, match="no html element"):
        snapshot_tree({"strings": ["#document"], "documents": [{"nodes": nodes, "layout": layout}]})

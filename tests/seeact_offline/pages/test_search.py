"""Finding elements by a type and a text."""

from __future__ import annotations

import itertools
import re
import time
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from seeact_offline.dataset import load_steps
from seeact_offline.pages.dom import Page
from seeact_offline.pages.search import TIERS, PageSearch, descriptions
from seeact_offline.pages.wording import asked_type, collapsed, element_type, normalised
from tests.examples import often
from tests.reference import searching as reference
from tests.seeact_offline.pages.attribute_cases import CASES, Case, search_says


def search(body: str, *candidates: str, threshold: float = 80.0, unseen: str = "") -> PageSearch:
    """Over a page whose ids are given as `#1` in its tags. Without `candidates` every element is one, and can be seen."""
    page = Page(
        f'<html backend_node_id="0"><body>{body}</body></html>'.replace("#", "backend_node_id=").replace("|", '"')
    )
    return PageSearch(page.nodes(), candidates or page.ids, threshold, page.ids - set(unseen.split()))


def texts(body: str, node: str) -> tuple[str, ...]:
    return next(e.texts for e in search(body).elements if e.backend_node_id == node)


def ids(body: str, kind: str, text: str, *candidates: str) -> tuple[str, ...]:
    return search(body, *candidates).find(kind, text).ids


# --- types ---


@pytest.mark.parametrize(
    ("tag", "attributes", "expected"),
    [
        ("button", {}, "BUTTON"), ("a", {}, "LINK"), ("a", {"role": "button"}, "BUTTON"),
        ("div", {"role": "Tab extra"}, "BUTTON"), ("div", {"aria_role": "combobox"}, "SELECTBOX"),
        ("div", {"role": "banner"}, ""), ("a", {"role": "banner"}, "LINK"), ("select", {}, "SELECTBOX"),
        ("textarea", {"role": "combobox"}, "TEXTBOX"), ("input", {}, "TEXTBOX"),
        ("input", {"type": "text", "role": "combobox"}, "TEXTBOX"), ("input", {"type": "SUBMIT"}, "BUTTON"),
        ("input", {"type": "checkbox"}, "BUTTON"), ("input", {"type": "hidden"}, ""),
        ("input", {"type": "no-such"}, "TEXTBOX"), ("span", {}, ""),
    ],
)  # fmt: skip
def test_an_element_has_the_type_of_its_tag_role_and_input_type(tag, attributes, expected) -> None:
    assert element_type(tag, attributes) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("BUTTON", "BUTTON"), ("button (submit)", "BUTTON"), ("INPUT FIELD", "TEXTBOX"), ("Search bar", "TEXTBOX"),
        ("text-box", "TEXTBOX"), ("dropdown", "SELECTBOX"), ("Drop-down list", "SELECTBOX"),
        ("combo box", "SELECTBOX"), ("icon", "BUTTON"), ("check box", "BUTTON"), ("radio button", "BUTTON"),
        ("a link", "LINK"), ("<a>", "LINK"), ("BUTTON or LINK", ""), ("thing", ""), ("", ""), ("**" * 1_000_000, ""),
    ],
)  # fmt: skip
def test_a_reply_names_a_type_in_many_words(written, expected) -> None:
    assert asked_type(written) == expected


GO = "<text>Go</text>"
FOUND = {
    # the type asked goes before others with the same text; look-alikes and untyped elements are found without it
    "the type asked": (f"<a #|1|>{GO}</a><button #|2|>{GO}</button><div #|3|>{GO}</div>", "BUTTON", "Go", "2"),
    "another type asked": (f"<a #|1|>{GO}</a><button #|2|>{GO}</button><div #|3|>{GO}</div>", "LINK", "Go", "1"),
    "look-alikes": (f"<a #|1|>{GO}</a><div #|2|>{GO}</div><input #|3| value=|Go|/>", "BUTTON", "Go", "1 2"),
    "a text box is no button": ("<input #|1| placeholder=|Search|/>", "BUTTON", "Search", ""),
    "a button is no text box": ("<button #|1|><text>Search</text></button>", "TEXTBOX", "Search", ""),
    "an unknown type": (f"<a #|1|>{GO}</a><button #|2|>{GO}</button>", "gizmo", "Go", "1 2"),
    "an option of a list": ("<select #|1|><option #|2|><text>S</text></option></select>", "SELECTBOX", "S", "1"),
    # tiers
    "a worse tier adds nothing": (
        "<button #|1|><text>Search</text></button><button #|2|><text>search</text></button>", "BUTTON", "Search", "1",
    ),
    "words as wholes": ("<button #|1|><text>Cartography of the whole wide world</text></button>", "BUTTON", "cart", ""),
    "a sign": ("<button #|1|><text>+</text></button><button #|2|><text>−</text></button>", "BUTTON", "+", "1"),
    "a sign of full width": ("<button #|1|><text>+</text></button><button #|2|><text>−</text></button>", "BUTTON", "＋", "1"),
    # nested matches
    "a button and the words in it": (f"<li #|1|><button #|2|><span #|3|>{GO}</span></button></li>", "BUTTON", "Go", "2"),
    "a typed match between others": (f"<li #|1|><button #|2|><span #|3|>{GO}</span></button></li>", "gizmo", "Go", "2"),
    "a look-alike between others": (f"<li #|1|><button #|2|><span #|3|>{GO}</span></button></li>", "LINK", "Go", "2"),
    "of untyped ones the inner": (f"<div #|1|><div #|2|>{GO}</div></div>", "BUTTON", "Go", "2"),
    "the shorter text": (
        "<div #|1|><h3 #|2|><text>Deluxe room sea view</text></h3><p #|3|><text>two beds</text></p></div>",
        "BUTTON", "deluxe room", "2",
    ),
    "side by side, in document order": (
        "".join(f"<li><button #|{n}|>{GO}</button></li>" for n in range(60, 0, -1)),
        "BUTTON", "Go", " ".join(str(n) for n in range(60, 0, -1)),
    ),
    "one id twice": (f"<button #|1|>{GO}</button>" * 2, "BUTTON", "Go", "1"),
    # what may come
    "an empty text": ("<button #|1|/><button #|2|><text> </text></button>", "BUTTON", "", ""),
    "white space": ("<button #|1|/><button #|2|><text> </text></button>", "BUTTON", "   \n", ""),
    "a no-break space": ("<button #|1|/><button #|2|><text> </text></button>", "BUTTON", "\u00a0", ""),
    "markup": (f"<button #|1|><text>{escape('<b>Go</b> & come')}</text></button>", "BUTTON", "<b>Go</b> & come", "1"),
    "a huge text on the page": (f"<button #|1|><text>{'word ' * 100_000}</text></button>", "BUTTON", "word " * 5000, "1"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "text", "expected"), FOUND.values(), ids=FOUND)
def test_a_type_and_a_text_lead_to_elements(body: str, kind: str, text: str, expected: str) -> None:
    assert ids(body, kind, text) == tuple(expected.split())


# --- texts ---


SHOWN = {
    **{
        f"{attribute} of an input": (f"<input #|1| {attribute}=| To  do |/>", "To do")
        for attribute in ("alt", "aria_label", "aria-label", "placeholder", "value", "title")
    },
    "own and inner words": ("<label #|1|><text>Spanish</text><em><text>2</text></em></label>", "Spanish|Spanish 2"),
    "a picture in it": ("<a #|1|><img alt=|Home|/><text>page</text></a>", "page|Home page"),
    "a label around": ("<label><text>From</text><input #|1|/></label>", "From"),
    "a label before": ("<label><span><text>From</text></span></label><input #|1|/>", "From"),
    "a label after a box": ("<input type=|checkbox| value=|on| #|1|/><label><text>From</text></label>", "From"),
    "a label's for": ("<p><label for=|f|><text>From</text></label></p><p><input id=|f| #|1|/></p>", "From"),
    "labelledby": ("<b id=|n|><text>From</text></b><p><input aria_labelledby=|n| #|1|/></p>", "From"),
    "labelledby with a hyphen": (
        "<b id=|n|><text>From</text></b><p><input aria-labelledby=|n| #|1|/></p><label><text>To</text></label>", "From",
    ),
    "a label around a list": (
        "<label><text>Size</text><select #|1|><option><text>S</text></option></select></label>", "S|Size",
    ),
    "a label of another field": ("<label><text>From</text><input/></label><input #|1|/>", ""),
    "a list, by its selected option first": (
        "<select #|1|><option><text>S</text></option><option #|2| option_selected=|true|><text>M</text></option></select>", "M|S",
    ),
    "the value of a box": ("<input #|1| type=|checkbox| value=|on| input_value=|on|/>", ""),
    "a large element": (f"<div #|1|><text>Menu</text><p><text>{'word ' * 60}</text></p></div>", "Menu"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), SHOWN.values(), ids=SHOWN)
def test_an_element_has_the_texts_on_it_in_it_and_beside_it(body: str, expected: str) -> None:
    assert texts(body, "1") == tuple(filter(None, expected.split("|")))


# --- tiers ---


@pytest.mark.parametrize(
    ("written", "tier"),
    [
        ("Add to cart", "exact"),
        ("  Add\n to cart", "exact"),
        ("ADD TO CART!", "normalised"),
        ("\uff21dd to \uff43art", "normalised"),
        ("to cart", "contained"),
        ("Add to cart now please sir", "contained"),
        ("Ad to carrt", "fuzzy"),
        ("o cart please", None),
        ("Add to cart " + "word " * 9, None),
    ],
)
def test_the_first_tier_that_finds_something_counts(written, tier) -> None:
    found = search("<button #|1|><text>Add to cart</text></button>").find("BUTTON", written)
    assert (found.tier, found.ids) == (tier, ("1",) if tier else ())


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ("Select all", "Deselect all"), ("Deselect all", "Select all"),
        ("Select all", "De-select all"), ("De-select all", "Select all"), ("Select all checkbox", "Deselect all"),
        ("Select all", "All departments"), ("Select account", "Delete account"), ("Link account", "Delete account"),
        ("Toggle dark theme", "Remove dark theme"), ("Check all", "Uncheck all"), ("Unsubscribe", "Subscribe"),
        ("Show all reviews", "Hide all reviews"), ("Enable notifications", "Disable notifications"),
        ("Increase quantity", "Decrease quantity"), ("Expand all sections", "Collapse all sections"),
        ("Log in with your email address", "Log out with your email address"), ("Check in date", "Check out date"),
        ("Minimum price", "Maximum price"), ("Women's shoes", "Men's shoes"), ("Employer", "Employee"),
        ("Accept cookies", "Don't accept cookies"), ("No smoking", "Smoking"),
        ("Sort by price low to high", "Sort by price high to low"), ("Tuesday", "Thursday"), ("10:00 AM", "10:00 PM"),
        ("10:00 AM EST", "10:00 AM EDT"), ("April 13", "April 14"), ("1st floor", "2nd floor"),
        ("Part II", "Part III"), ("Size XL", "Size XXL"), ("Size 9", "Size 9.5"), ("$1,199.00", "$1,299.00"),
        ("$199.00", "$1,199.00"), ("Room 1", "Room 2"), ("Room 1...", "Room 10"), ("Gate A", "Gate B"),
        ("10203", "10204"),
    ],
)  # fmt: skip
def test_an_opposite_or_another_number_is_never_found(asked, other) -> None:
    assert ids(f"<button #|1|><text>{other}</text></button>", "gizmo", asked) == ()


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Select account", "Account"), ("Select account", "Select an account"),
        ("Select the Size dropdown", "Size"), ("Checkbox labeled Free parking", "Free parking (82)"),
        ("Sign up", "Don't have an account? Sign up"), ("Sign up", "Signup"), ("E-mail adress", "Email address"),
        ("Add to the cart", "Add to cart"), ("Serach flights", "Search flights"), ("Organise trip", "Organize trip"),
        ("Recieve 2 offers", "Receive 2 offers"), ("$1,199", "$1,199.00"), ("10:00AM", "10:00 a.m."),
        ("April 1", "April 1, 2024"), ("Non-refundable", "Nonrefundable"),
    ],
)  # fmt: skip
def test_a_description_or_a_typing_error_hides_nothing(asked, text) -> None:
    assert ids(f"<button #|1|><text>{text}</text></button>", "gizmo", asked) == ("1",)


def test_a_text_is_cut_at_a_thousand_characters() -> None:
    assert len(collapsed("x" * 5000)) == 1000


def test_the_threshold_decides_what_is_similar() -> None:
    body = "<button #|1|><text>Add to cart</text></button>"
    assert search(body, threshold=95.0).find("BUTTON", "Ad to carrt").ids == ()
    assert search(body, threshold=50.0).find("BUTTON", "Ad to carrt").ids == ("1",)


def test_marks_of_other_scripts_part_no_words() -> None:
    assert normalised("\u0939\u093f\u0928\u094d\u0926\u0940") == "\u0939\u093f\u0928\u094d\u0926\u0940"


def test_apostrophes_part_no_words() -> None:
    assert normalised("Women\u2019s") == normalised("women's") == "womens"


# --- which elements ---


def test_what_is_no_candidate_is_not_found() -> None:
    body = "<button #|1|><text>Go</text></button><button #|2|><text>Go</text></button>"
    assert ids(body, "BUTTON", "Go", "2") == ("2",)


def test_words_of_what_is_no_candidate_count_for_what_holds_it() -> None:
    assert ids("<button #|1|><span #|2|><text>Go</text></span></button>", "BUTTON", "Go", "1") == ("1",)


# --- what can be seen ---


def test_what_can_be_seen_goes_first_in_every_tier() -> None:
    body = "<a #|1|><text>Sign in</text></a><a #|2|><text>Sign in or register</text></a>"
    found = search(body, unseen="1").find("LINK", "Sign in")
    assert (found.ids, found.tier, found.seen) == (("2",), "contained", True)


def test_what_cannot_be_seen_is_found_where_nothing_else_fits() -> None:
    body = "<a #|1|><text>Sign in</text></a><button #|2|><text>Register</text></button>"
    found = search(body, unseen="1").find("LINK", "sign in")
    assert (found.ids, found.tier, found.seen) == (("1",), "normalised", False)


def test_an_element_around_what_can_be_seen_can_be_seen() -> None:
    body = "<a #|1|><img #|2| alt=|Home|/></a><a #|3|><text>Home</text></a>"
    assert search(body, unseen="1").find("LINK", "Home").ids == ("1", "3")


# --- cases ---

UNSOLVED = {
    "captions in a row above the fields",
    "a short text without its accent",
    "a row of labels above a row of fields",
    "a box beside a drawing that says something",
    "a list of which only the name says what it is",
    "a list made of a button",
    "a paragraph before a field",
}
"""Seven of 111, among them those about rows of a table, and about buttons that stand for lists."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_model_says_leads_where_a_person_would_point(case: Case) -> None:
    assert (search_says(case) == case.expected) == (case.name not in UNSOLVED)


# --- what may come ---


@pytest.mark.parametrize("written", ["word " * 400_000, "x" * 2_000_000, "\u00e9" * 2_000_000, " " * 2_000_000])
def test_a_huge_text_costs_little(written) -> None:
    began = time.process_time()
    assert ids("<button #|1|><text>Go</text></button>", "BUTTON", written) == ()
    assert time.process_time() - began < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "<text>w</text><i/>" * 20_000 + "<input/>" * 20_000,
        "<input type=|checkbox|/>" * 20_000 + "<i/>" * 20_000,
        "<div><input/><label><text>w</text></label></div>" * 10_000,
        "<div>" * 1_500 + "<svg name=|x|/>" * 20_000 + "</div>" * 1_500,
    ],
    ids=["fields after words", "boxes before nothing", "floating labels", "icons in many wrappers"],
)
def test_labels_and_icons_of_a_huge_page_are_found_in_time_linear_in_it(body) -> None:
    numbers = itertools.count(1)
    page = Page(
        re.sub(
            r"<(\w+)",
            lambda tag: f'{tag[0]} backend_node_id="{next(numbers)}"',
            f"<html>{body}</html>".replace("|", '"'),
        )
    )
    began = time.process_time()
    PageSearch(page.nodes(), page.ids).find("TEXTBOX", "no such text on it")
    assert time.process_time() - began < 4


# --- what one who knows the answer would say ---


def test_a_text_that_leads_to_the_target_alone_goes_first() -> None:
    body = "<a #|1| title=|Second page|><text>Next</text></a><a #|2|><text>Next</text></a>"
    best = descriptions(search(body), ["1"])[0]
    assert (best.type, best.text, best.reaches, best.result.ids) == ("LINK", "Second page", True, ("1",))


def test_a_target_among_others_is_reached_up_to_the_limit() -> None:
    body = "".join(f"<button #|{n}|><text>Choose</text></button>" for n in range(1, 6))
    assert [descriptions(search(body), ["4"], limit)[0].reaches for limit in (None, 4, 3)] == [True, True, False]


def test_a_target_that_a_typed_twin_hides_is_not_reached() -> None:
    body = "<span #|1|><text>Go</text></span><button #|2|><text>Go</text></button>"
    assert [d.reaches for d in descriptions(search(body), ["1"])] == [False]


def test_a_target_without_words_has_no_description() -> None:
    assert descriptions(search("<button #|1|><svg class=|icon|/></button>"), ["1"]) == []


def test_any_of_several_targets_will_do() -> None:
    body = "<button #|1|><svg #|2| title=|Close|/></button>"
    assert descriptions(search(body), ["2", "1"])[0].result.ids == ("1",)


# --- against the slow search ---

WORDS = st.sampled_from(
    [
        "go",
        "Go",
        "GO!",
        "to",
        "cart",
        "carts",
        "Go to",
        "\uff27o",
        "caf\u00e9",
        "+",
        "women's",
        "goTo",
        "icon_go",
        "select",
        "a",
        "no",
        "9",
        "9.50",
        "9.00",
        "un-go",
        "\u00d7",
        "",
    ]
)
SHORT_TEXT = st.lists(WORDS, max_size=4).map(" ".join)
WORDING = ["go", "cart", '"Go"', "'to'", "(go)", "[to]", "the", "select", "no", "9", "button", "\u2026", "..."]
ASKED = st.one_of(SHORT_TEXT, st.lists(st.sampled_from(WORDING), max_size=4).map(" ".join))
TAGS = ["div", "span", "button", "a", "input", "select", "option", "label", "textarea", "svg", "img", "li", "i"]
NAMES = [
    "alt", "aria_label", "placeholder", "value", "input_value", "title", "id", "for", "aria_labelledby", "name", "class",
]  # fmt: skip
ROLES = st.sampled_from(["button", "combobox", "listbox", "textbox", "link", "banner"])
KINDS = st.sampled_from(["text", "submit", "checkbox", "radio", "hidden", "search"])
KIND_ASKED = st.sampled_from(["BUTTON", "TEXTBOX", "SELECTBOX", "LINK", "input field", "gizmo", "dropdown button"])


@st.composite
def pages(draw: st.DrawFn) -> str:
    """A small page of few words, so that things match; ids by the way are words, too."""
    count = 0

    def node(depth: int) -> str:
        nonlocal count
        count += 1
        number = count
        if depth and draw(st.integers(0, 2)) == 0:
            return f'<text backend_node_id="{number}">{escape(draw(SHORT_TEXT))}</text>'
        tag = draw(st.sampled_from(TAGS))
        named = draw(st.dictionaries(st.sampled_from(NAMES), SHORT_TEXT, max_size=2))
        named |= {"role": draw(ROLES)} if draw(st.integers(0, 4)) == 0 else {}
        named |= {"type": draw(KINDS)} if tag == "input" and draw(st.booleans()) else {}
        named |= {"option_selected": "true"} if tag == "option" and draw(st.booleans()) else {}
        attributes = "".join(f' {name}="{escape(value)}"' for name, value in named.items())
        inside = "".join(node(depth + 1) for _ in range(draw(st.integers(0, 3)) if depth < 4 else 0))
        return f'<{tag} backend_node_id="{number}"{attributes}>{inside}</{tag}>'

    return f'<html backend_node_id="0">{"".join(node(0) for _ in range(draw(st.integers(1, 4))))}</html>'


@pytest.mark.slow
@settings(max_examples=often(200))
@given(pages(), KIND_ASKED, ASKED, st.sampled_from([50.0, 80.0]), st.data())
def test_the_search_equals_the_slow_one(html: str, kind: str, text: str, threshold: float, data: st.DataObject) -> None:
    page = Page(html)
    left_out = data.draw(st.sets(st.sampled_from(sorted(page.ids)), max_size=2))
    candidates = page.ids - left_out
    seen = data.draw(st.none() | st.sets(st.sampled_from(sorted(page.ids))))
    found = PageSearch(page.nodes(), candidates, threshold, seen).find(kind, text)
    expected, tier = reference.find(html, candidates, kind, text, threshold, seen)
    assert (list(found.ids), found.tier) == (expected, tier)


@pytest.mark.slow
@settings(max_examples=often(200))
@given(pages())
def test_the_texts_of_every_element_equal_those_found_slowly(html: str) -> None:
    page, root = Page(html), etree.fromstring(html)
    slow = {e.get("backend_node_id"): tuple(dict.fromkeys(reference.texts(root, e))) for e in root.iter()}
    found = PageSearch(page.nodes(), page.ids).elements
    assert {e.backend_node_id: e.texts for e in found} == {e.backend_node_id: slow[e.backend_node_id] for e in found}


@given(st.text(max_size=40))
def test_normalising_equals_the_slow_way_and_is_stable(text: str) -> None:
    assert normalised(text) == reference.plain(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_and_type_make_the_search_fail(kind: str, text: str) -> None:
    found = search("<button #|1|><text>Go</text></button>").find(kind, text)
    assert found.tier is None or found.tier in TIERS


# --- real pages ---


def test_the_target_of_the_real_step_is_among_the_two_search_buttons(shared_step) -> None:
    step = next(load_steps(shared_step, "cross_domain"))
    page = Page(step.cleaned_html)
    found = PageSearch(page.nodes(), [c.backend_node_id for c in step.candidates]).find("BUTTON", "Search")
    assert found.ids == ("8635", "10628")


@pytest.mark.slow
def test_the_first_search_of_a_page_of_600_elements_is_made_at_once() -> None:
    steps = [step for step in load_steps("sample", "cross_task") if not step.faults]
    page = max((Page(step.cleaned_html) for step in steps), key=len)
    assert len(page) > 500

    def first() -> float:
        began = time.process_time()
        PageSearch(page.nodes(), page.ids).find("BUTTON", "no such text on it")
        return time.process_time() - began

    assert min(first() for _ in range(15)) < 0.1

"""Texts that also say where a candidate lies and which controls come before it: their form, and who reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from seeact_offline.dom import Page
from seeact_offline.ranking import CachedScores, LiveScores, candidate_texts, opening
from seeact_offline.ranking.placed_texts import Parts, placements, split_text
from seeact_offline.ranking.places import CONTROLS
from seeact_offline.ranking.scores import PLACED, PLAIN, describe, text_form
from seeact_offline.records import Box, Candidate, InputError, Operation, Step

LINE = st.text("ab /()[]:\n", max_size=12).filter(lambda text: "\n" not in text)


PLACES = st.sampled_from(["", "[click] ", "[x1] [y2] [w3] [h4] ", "[x1] [y2] [w3] [h4] [click] "])


@given(PLACES, LINE, LINE, LINE)
def test_a_text_comes_apart_and_is_put_together_again(place: str, around: str, after: str, target: str) -> None:
    parts = Parts(place, f"ancestors: {around}", after, target)
    assert split_text(str(parts)) == parts
    assert parts.published == f"ancestors: {around}\ntarget: {target}"


@given(st.text(max_size=40))
def test_a_text_of_no_known_form_comes_apart_too(text: str) -> None:
    assert "".join(split_text(text)) in (text, *(text.replace(name, "", 1) for name in ("\nafter: ", "\ntarget: ")))


def after(html: str, *, clickable: Sequence[str] = ()) -> list[str]:
    """What comes before each candidate, all elements with an id being candidates."""
    elements = [element for element in etree.fromstring(html).iter() if "backend_node_id" in element.attrib]
    found = [Candidate(e.get("backend_node_id"), e.tag, None, False, e.tag in clickable) for e in elements]
    page = Page(html)
    texts = {c.backend_node_id: page.ranker_text(c.backend_node_id) for c in found}
    return [split_text(told.of(texts[node])).after for node, told in placements(found, texts, page).items()]


def numbered(html: str) -> str:
    """`<a>` becomes `<a backend_node_id="1">`, and so on."""
    root = etree.fromstring(html)
    for number, element in zip(count(1), root.iter(), strict=False):
        element.set("backend_node_id", str(number))
    return etree.tostring(root).decode()


def test_the_last_two_controls_are_named_whatever_boxes_they_are_in() -> None:
    html = numbered(
        '<html><div><input name="first"/></div><div><input name="second"/></div><p><select name="third"/></p>'
        '<div><button title="Send it"/></div></html>'
    )
    assert after(html)[-1] == "/input second/select third"


def test_a_control_has_four_words_and_no_marks() -> None:
    html = numbered('<html><a title="one/two three four five"/><button title="go"/></html>')
    assert after(html)[-1] == "/a one two three four"


def test_what_takes_no_clicks_is_no_control() -> None:
    html = numbered('<html><p title="said"/><a title="link"/><i title="end"/></html>')
    assert after(html)[-1] == "/a link"
    assert after(html, clickable=["p"])[-1] == "/p said/a link"


def test_a_control_without_words_is_passed_over() -> None:
    assert after(numbered('<html><a title="link"/><button/><i/></html>'))[-1] == "/a link"


def test_neither_what_is_around_nor_what_is_inside_comes_before() -> None:
    html = numbered('<html><a title="outer"><button title="own"><a title="inner"/></button></a></html>')
    assert after(html) == ["", "", "", ""]


def test_of_controls_in_one_another_the_inner_one_is_named() -> None:
    html = numbered('<html><a title="first"/><a title="outer"><button title="inner"/></a><i/></html>')
    assert after(html)[-1] == "/a first/button inner"


TREES = st.recursive(
    st.sampled_from(["<a/>", "<p/>", '<a title="x"/>', '<b title="y"/>', '<select title="z"/>']),
    lambda inner: st.tuples(st.sampled_from(["p", 'a title="u"', 'b title="v"', "i"]), st.lists(inner, max_size=4)).map(
        lambda made: f"<{made[0]}>{''.join(made[1])}</{made[0][0]}>"
    ),
    max_leaves=14,
)


@given(TREES)
def test_controls_are_those_that_xpath_finds(tree: str) -> None:
    html = numbered(f"<html>{tree}</html>")
    root = etree.fromstring(html)
    page = Page(html)
    texts = {str(i + 1): page.ranker_text(str(i + 1)) for i in range(len(list(root.iter())))}
    order = {node: place for place, node in enumerate(root.iter())}

    def before(node: etree._Element) -> etree._Element | None:
        """Of those that end before it, the one that begins last."""
        found = [n for n in node.xpath("preceding::*[@title]") if n.tag in CONTROLS | {"b"}]
        return max(found, key=order.__getitem__, default=None)

    for node, said in zip(root.iter(), after(html, clickable=["b"]), strict=True):
        last = before(node)
        second = None if last is None else before(last)
        named = [n for n in (second, last) if n is not None]
        tags = [part.split()[0] for part in said.split("/")[1:]]
        assert tags == [n.tag for n in named]
        for n, part in zip(named, said.split("/")[1:], strict=True):
            assert split_text(texts[n.get("backend_node_id")]).target.startswith(
                f"({part.split()[0]} id=0 {part.split()[1]}"
            )


class Recorder:
    """A ranker that keeps what it was asked."""

    name = "recorder"

    def __init__(self, form: str | None = None) -> None:
        self.texts: list[str] = []
        if form is not None:
            self.text_form = form

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        return np.zeros(len(texts), dtype=np.float32)


def page() -> Step:
    html = '<html backend_node_id="1"><a backend_node_id="2"><text backend_node_id="3">Go</text></a><i backend_node_id="4"/></html>'
    found = (Candidate("2", "a", Box(0, 0, 64, 16), True, is_clickable=True), Candidate("4", "i", None, False))
    return Step("task", "step", "do it", (), "site", "domain", html, Operation("CLICK"), found, None)


@pytest.mark.parametrize("form", [None, PLAIN])
def test_a_ranker_reads_the_published_texts_unless_it_says_otherwise(form: str | None) -> None:
    ranker = Recorder(form)
    LiveScores(ranker).of(page())
    assert ranker.texts == list(candidate_texts(page()).values())


def test_a_ranker_of_placed_texts_reads_what_the_others_leave_out() -> None:
    ranker = Recorder(PLACED)
    LiveScores(ranker).of(page())
    plain = list(candidate_texts(page()).values())
    assert ranker.texts == [f"[x1] [y1] [w3] [h1] [click] {plain[0]}", plain[1].replace("\n", "\nafter: /a Go\n")]


def test_each_candidate_has_both_forms() -> None:
    described = describe(page())
    assert described.in_form(PLAIN) == candidate_texts(page())
    assert described.in_form(PLACED).keys() == described.in_form(PLAIN).keys()


def test_another_form_is_one_sentence() -> None:
    with pytest.raises(
        InputError, match=r"--ranker: expected a checkpoint whose text_form is plain or placed, .* 'sideways'$"
    ):
        text_form(Recorder("sideways"))


def test_a_checkpoint_of_another_form_is_refused_when_it_is_opened(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr("ranker.CrossEncoderRanker", lambda *args, **options: Recorder("sideways"))
    with pytest.raises(InputError, match="sideways"):
        opening.open_ranker(str(tmp_path))


def test_what_moved_is_scored_again(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("SEEACT_CACHE", str(tmp_path))
    ranker = Recorder(PLACED)
    step = page()
    link = dataclasses.replace(step.candidates[0], box=Box(800, 0, 64, 16))
    moved = dataclasses.replace(step, candidates=(link, *step.candidates[1:]))
    for one in (step, step, moved):
        CachedScores(LiveScores(ranker), "f", "train").of(one)
    assert len(ranker.texts) == 4

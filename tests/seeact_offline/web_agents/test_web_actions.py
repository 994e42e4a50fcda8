"""The action grammars of web agents: what they write they read, and the strict readers read what the released code does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.agents.acts import Act, Unreadable
from seeact_offline.web_agents.web_actions import GRAMMARS, Grammar, remembered
from tests.reference.web_actions import READERS

GRAMMAR = pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=lambda grammar: grammar.name)
LABELS = st.integers(0, 10**6).map(str)
MARKS = ("Thought:", "Action:", "Observation:", "Click ", "Type ", "Scroll ", "```")
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="[]"), min_size=1).filter(
    lambda text: (
        text.isprintable()
        and text == text.strip()
        and ord(max(text)) < 130_000
        and not any(mark in text for mark in MARKS)
    )
)


def read(grammar: str, reply: str, strict: bool = False) -> tuple[Any, ...]:
    """Kind, place and text; the name of the failure for none."""
    try:
        (act,) = (GRAMMARS[grammar].read_strictly if strict else GRAMMARS[grammar].read)(reply)
    except Unreadable as error:
        return (error.name,)
    return act.kind, act.place, act.text


def acts(grammar: Grammar) -> st.SearchStrategy[Act]:
    directions = st.sampled_from(["up", "down"])
    common = [
        st.builds(Act, st.just("click"), LABELS),
        st.builds(Act, st.just("answer"), st.none(), WORDS),
        st.builds(Act, st.just("scroll"), st.none(), directions),
        st.just(Act("back")),
    ]
    if grammar.name != "visualwebarena":
        return st.one_of(
            *common,
            st.builds(Act, st.just("type"), LABELS, WORDS),
            st.builds(Act, st.just("scroll"), LABELS, directions),
            st.sampled_from([Act("wait"), Act("goto")]),
        )
    return st.one_of(
        *common,
        st.builds(Act, st.sampled_from(["hover", "clear"]), LABELS),
        st.builds(Act, st.just("type"), LABELS, st.builds(str.__add__, WORDS, st.sampled_from(["", "\n"]))),
        st.builds(Act, st.just("press"), st.none(), st.sampled_from(["Enter", "Meta+a", "ctrl+PageDown"])),
        st.builds(Act, st.just("goto"), st.none(), WORDS),
        st.builds(Act, st.just("tab"), st.none(), st.one_of(st.sampled_from(["new", "close"]), LABELS)),
        st.sampled_from([Act("back", None, "forward"), Act("answer", None, "")]),
    )


@pytest.mark.slow
@GRAMMAR
@given(data=st.data())
def test_what_a_grammar_writes_both_readers_read(grammar: Grammar, data: st.DataObject) -> None:
    act = data.draw(acts(grammar))
    reply = grammar.reply(act, "the box is empty")
    assert grammar.read(reply) == grammar.read_strictly(reply) == [act]


@pytest.mark.parametrize(
    "text", ["a]b", "a [b] c", "[x", "x]", "[", "]", "Click [5]", "Thought: b", "Action: Click [3]", "a\n\nb", ""]
)
@GRAMMAR
def test_the_tolerant_reader_reads_texts_that_the_released_one_does_not(grammar: Grammar, text: str) -> None:
    act = Act("type", "3", text)
    assert grammar.read(grammar.reply(act)) == [act]


def test_a_choice_in_a_list_is_typed_or_clicked() -> None:
    act = Act("select", "3", "Blue")
    assert {name: grammar.write(act) for name, grammar in GRAMMARS.items()} == {
        "webvoyager": "Type [3]; [Blue]",
        "webvoyager-text": "Type [3]; [Blue]",
        "openwebvoyager": "Type [3]; [Blue]",
        "visualwebarena": "click [3]",
    }


@GRAMMAR
def test_an_act_without_words_in_the_language_is_refused(grammar: Grammar) -> None:
    for act in (Act("drag", "3"), Act("click"), Act("type", None, "x")):
        with pytest.raises(ValueError, match="no words"):
            grammar.write(act)


def voyager(action: str) -> str:
    return f"Thought: a\nAction: {action}"


@pytest.mark.parametrize(
    ("action", "strict", "tolerant"),
    [
        ("Click [3]", ("click", "3", None), None),
        ("Click 3", ("click", "3", None), None),
        ("Click [03]", ("click", "3", None), None),
        ("Click [\uff13]", ("click", "3", None), None),
        ("click [3]", ("no_act",), ("click", "3", None)),
        ("Click  [3]", ("no_act",), ("click", "3", None)),
        ("Click[3]", ("no_act",), ("click", "3", None)),
        ("Click [a]", ("no_act",), None),
        ("click [1a]", ("no_act",), None),
        ("click [1.5]", ("no_act",), None),
        ("click [12, 13]", ("no_act",), None),
        ("click 12, 13", ("no_act",), None),
        ("click on [12], the link", ("no_act",), ("click", "12", None)),
        ("type [1a]; [x]", ("no_act",), None),
        ("type [12, 13]; [x]", ("no_act",), None),
        ("type 12, 13", ("no_act",), ("type", "12", "13")),
        # the released code clicks what it finds
        ("Click [1a]", ("click", "1", None), None),
        ("DoubleClick [6]", ("click", "6", None), None),
        ("I will Click [9]", ("click", "9", None), None),
        ("Type [2]; [a [b] c]", ("type", "2", "a [b"), ("type", "2", "a [b] c")),
        ("Type [2]; [a\nb]", ("type", "2", "a\nb"), None),
        ("Type [2];\n[a]", ("no_act",), ("type", "2", "a")),
        ("Type [2]; []", ("type", "2", "]"), ("type", "2", "")),
        ("Type [2]", ("no_act",), None),
        ("Type [2];", ("no_act",), None),
        ("Type [2]; Click [5]", ("click", "5", None), ("type", "2", "Click [5]")),
        ("Type [2]; [a] and Click [5]", ("click", "5", None), ("type", "2", "a")),
        ("Type 22 33", ("type", "22", "33"), None),
        ("Type 2; a b\n\nThis searches.", ("type", "2", "a b\n\nThis searches."), ("type", "2", "a b")),
        ("Scroll [WINDOW]; [down]", ("scroll", None, "down"), None),
        ("Scroll [5]; downwards", ("scroll", "5", "down"), None),
        ("Scroll down", ("no_act",), ("scroll", None, "down")),
        ("Waiting", ("wait", None, None), None),
        ("I Wait", ("no_act",), None),
        ("GoBack", ("back", None, None), None),
        ("Google", ("goto", None, None), None),
        ("ANSWER; [a]", ("answer", None, "a"), None),
        ("ANSWER: a", ("no_act",), ("answer", None, "a")),
        ("ANSWER; Click [3] first", ("click", "3", None), ("answer", None, "Click [3] first")),
        ("", ("no_act",), None),
    ],
)  # fmt: skip
def test_actions_of_webvoyager(action: str, strict: tuple[Any, ...], tolerant: tuple[Any, ...] | None) -> None:
    assert read("webvoyager", voyager(action), strict=True) == strict
    assert read("webvoyager", voyager(action)) == (strict if tolerant is None else tolerant)


@pytest.mark.parametrize(
    ("reply", "strict", "tolerant"),
    [
        ("Action: Click [3]", ("format_error",), ("click", "3", None)),
        ("thought: a\naction: Click [3]", ("format_error",), ("click", "3", None)),
        ("Thought: Click [3]", ("format_error",), None),
        ("Click [3]", ("format_error",), None),
        ("Sure. Thought: a Action: Click [3]", ("click", "3", None), None),
        ("Action: Click [3] Thought: Click [4]", ("click", "4", None), ("click", "3", None)),
        ("Thought: a Thought: b Action: Click [3]", ("no_act",), ("click", "3", None)),
        ("Thought: a Observation: Click [2] Action: Click [3]", ("click", "2", None), ("click", "3", None)),
        ("Thought: a\n**Action:** Click [3]", ("click", "3", None), None),
        ("Thought: a\nAction: `Click [3]`", ("click", "3", None), None),
        ("Thought: a Action: Click [1]\nObservation: b\nThought: c\nAction: Click [2]", ("click", "1", None), None),
    ],
)  # fmt: skip
def test_replies_of_webvoyager(reply: str, strict: tuple[Any, ...], tolerant: tuple[Any, ...] | None) -> None:
    assert read("webvoyager", reply, strict=True) == strict
    assert read("webvoyager", reply) == (strict if tolerant is None else tolerant)


@pytest.mark.parametrize(
    ("grammar", "action", "strict"),
    [
        ("openwebvoyager", "Restart", ("goto", None, None)),
        ("openwebvoyager", "Google", ("no_act",)),
        ("openwebvoyager", "ANSWER: a", ("answer", None, "a")),
        ("webvoyager", "Restart", ("no_act",)),
        ("webvoyager-text", "Click [03]", ("click", "03", None)),
    ],
)
def test_what_differs_between_the_variants(grammar: str, action: str, strict: tuple[Any, ...]) -> None:
    assert read(grammar, voyager(action), strict=True) == strict


@pytest.mark.parametrize(
    ("reply", "strict", "tolerant"),
    [
        ("So ```click [1]```", ("click", "1", None), None),
        ("```click[1]``` or ```click [2]```", ("click", "1", None), None),
        ("Not ```this``` but ```click [2]```", ("no_act",), ("click", "2", None)),
        ("```\nclick [1]\n```", ("click", "1", None), None),
        ("```click  [1]```", ("no_act",), ("click", "1", None)),
        ("```click 1```", ("no_act",), ("click", "1", None)),
        ("```click [1a]```", ("no_act",), None),
        ("```click [1.5]```", ("no_act",), None),
        ("```click [12, 13]```", ("no_act",), None),
        ("```click (12, 13)```", ("no_act",), None),
        ("```click 12, 13```", ("no_act",), None),
        ("```hover [1a]```", ("no_act",), None),
        ("```click [1], the link```", ("click", "1", None), None),
        ("```type [1a] [x] [0]```", ("no_act",), None),
        ("```type [12, 13] [x] [0]```", ("no_act",), None),
        ("```type 12, 13```", ("no_act",), ("type", "12", "13\n")),
        ("```Click [1]```", ("no_act",), ("click", "1", None)),
        ("```python\nclick [1]\n```", ("no_act",), ("click", "1", None)),
        ("`click [1]`", ("format_error",), ("click", "1", None)),
        ("I click.\nclick [1]", ("format_error",), ("click", "1", None)),
        ("I click [1].", ("format_error",), None),
        ("``````", ("no_act",), None),
        ("```hover [1]```", ("hover", "1", None), None),
        ("```clear [1]```", ("clear", "1", None), None),
        ("```type [5] [a] [0]```", ("type", "5", "a"), None),
        ("```type [5] [a]```", ("type", "5", "a\n"), None),
        ("```type [5] [0]```", ("no_act",), ("type", "5", "0\n")),
        ("```type [5] [hello] [2]```", ("type", "5", "hello] [2\n"), ("type", "5", "hello\n")),
        ("```type [5] []```", ("no_act",), ("type", "5", "\n")),
        ("```type [5] [] [0]```", ("no_act",), ("type", "5", "")),
        ("```type [5]```", ("no_act",), None),
        ("```type [5] [a\nb]```", ("no_act",), ("type", "5", "a\nb\n")),
        ("```type [5] [a\tb]```", ("type", "5", "a b\n"), ("type", "5", "a\tb\n")),
        ("```type [5] [a\x80b]```", ("no_act",), ("type", "5", "a\x80b\n")),
        ("```press [ctrl+PAGEdown+x]```", ("press", None, "ctrl+PageDown+x"), None),
        ("```scroll down```", ("scroll", None, "down"), None),
        ("```scroll [upwards```", ("scroll", None, "up"), None),
        ("```scroll [ down]```", ("no_act",), ("scroll", None, "down")),
        ("```scroll down [x]```", ("no_act",), ("scroll", None, "down")),
        ("```goto [http://a.com/[x]]```", ("goto", None, "http://a.com/[x]"), None),
        ("```tab_focus [01]```", ("tab", None, "1"), None),
        ("```new_tab please```", ("tab", None, "new"), None),
        ("```close_tab```", ("tab", None, "close"), None),
        ("```go_back```", ("back", None, None), None),
        ("```go_forward [x]```", ("back", None, "forward"), None),
        ("```stop [a] because [b```", ("answer", None, "a"), None),
        ("```stop [a] because [b]```", ("answer", None, "a] because [b"), ("answer", None, "a")),
        ("```stop```", ("answer", None, ""), None),
        ("```stop it```", ("answer", None, ""), ("answer", None, "it")),
        ("```upload [5] [a]```", ("no_act",), None),
    ],
)  # fmt: skip
def test_replies_of_visualwebarena(reply: str, strict: tuple[Any, ...], tolerant: tuple[Any, ...] | None) -> None:
    assert read("visualwebarena", reply, strict=True) == strict
    assert read("visualwebarena", reply) == (strict if tolerant is None else tolerant)


PIECES = {
    "webvoyager": (
        "Thought:", "Action:", "Observation:", "Thought: a\nAction: ", "Click ", "Type ", "Scroll ", "WINDOW", "up", "down", "Wait", "GoBack",
        "Google", "Restart", "ANSWER", "[", "]", "[", "]", ";", " ", ": ", "; ", "\n", "3", "07", "\u0663", "words", "]; [",
        "Click [3", "Type [3]; [a", "Scroll [WINDOW]; [up", "ANSWER; [a",
    ),
    "visualwebarena": (
        "```", "```", "click", "hover", "clear", "type", "press", "scroll", "goto", "tab_focus", "new_tab", "close_tab", "go_back", "go_forward",
        "stop", "[", "]", "[", "]", "] [", " [0]", " [1]", " ", "  ", "\n", "\t", "3", "07", "words", "+", "ENTER", "up", "down", "`", "\x80",
        "click [3", "type [3] [a", "type [3] [a] [1]", "scroll [up", "stop [a", "press [enter",
    ),
}  # fmt: skip


@GRAMMAR
def test_the_strict_reader_reads_what_the_released_one_does(grammar: Grammar) -> None:
    rng, kinds = random.Random(grammar.name), set()
    pieces = PIECES.get(grammar.name, PIECES["webvoyager"])
    forms = ("Thought: a Action: {}", "{}") if pieces is PIECES["webvoyager"] else ("```{}```", "{}")
    for _ in range(8_000):
        reply = rng.choice(forms).format("".join(rng.choice(pieces) for _ in range(rng.randrange(1, 12))))
        expected = READERS[grammar.name](reply)
        assert read(grammar.name, reply, strict=True) == expected, reply
        tolerant = read(grammar.name, reply)
        assert len(tolerant) == 3 or len(expected) == 1, reply
        kinds.add(expected[0])
    assert kinds >= {"format_error", "no_act", "click", "type", "scroll", "answer", "back"}


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ("click [3]", "click [3] where [3] is link 'Home'"),
        ("hover [3]", "hover [3] where [3] is link 'Home'"),
        ("type [3] [New York] [0]", "type [3] [New York] where [3] is link 'Home'"),
        ("type [3] [New York]", "type [3] [New York\n] where [3] is link 'Home'"),
        ("scroll down", "scroll [down]"),
        ("press [ENTER]", "press [Enter]"),
        ("goto [a.b]", "goto [a.b]"),
        ("tab_focus [2]", "page_focus [2]"),
        ("new_tab", "new_tab"),
        ("close_tab", "close_tab"),
        ("go_back", "go_back"),
        ("go_forward", "go_forward"),
        ("stop [Rome]", "stop [Rome]"),
        ("stop", "stop []"),
    ],
)
def test_visualwebarenas_line_of_the_action_before(action: str, line: str) -> None:
    (act,) = GRAMMARS["visualwebarena"].read(f"```{action}```")
    assert remembered(act, "link 'Home'") == line
    assert remembered(act) == line.replace(" is link 'Home'", "")

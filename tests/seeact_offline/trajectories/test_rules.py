"""Each rule on an answer or address: its table of quirks, and hypothesis against a slow re-implementation."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from seeact_offline.records import Message
from seeact_offline.trajectories import RULES, RuleSet, Unscored
from seeact_offline.trajectories.answer_rules import is_similar, ssim
from tests.examples import often
from tests.reference import rewards as slow

VWA, WA, CORRECTED = RULES["visualwebarena"], RULES["webarena"], RULES["corrected"]
QUIRKS = [
    # rule, answer, reference: passes under visualwebarena, webarena, corrected
    ("exact_match", "Yes", "yes", (1, 1, 1)),
    ("exact_match", "'Yes'", '"yes"', (1, 1, 1)),
    ("exact_match", "''yes''", "yes", (0, 0, 0)),
    ("exact_match", "'yes\"", "yes", (0, 0, 0)),
    ("exact_match", " yes", "yes", (0, 1, 0)),
    ("exact_match", "' yes'", "yes", (0, 0, 0)),
    ("exact_match", "'", "", (1, 1, 1)),
    ("exact_match", 5, "5", (1, 1, 1)),
    ("must_include", "it is 10", "0", (0, 0, 0)),
    ("must_include", "it is 10", ["10"], (1, 1, 1)),
    ("must_include", "it is 100", ["10"], (0, 1, 0)),
    ("must_include", "it is 10.", ["0", "1"], (0, 1, 0)),
    ("must_include", "5", ["5"], (1, 1, 1)),
    ("must_include", "it costs $279.49.", "279.49", (1, 1, 1)),
    ("must_include", "it costs $279.49. cheap", "$279.49", (1, 1, 1)),
    ("must_include", "redder shoes", "red shoes", (0, 0, 0)),
    ("must_include", "a red shoestring", "red shoe", (1, 1, 1)),
    ("must_include", "wi-fi here", "wi-fi", (1, 1, 1)),
    ("must_include", "blue", ["red |OR| blue"], (1, 0, 1)),
    ("must_include", "blue", ["red|OR|blue"], (0, 0, 0)),
    ("must_include", "anything", [""], (1, 1, 1)),
    ("must_include", "", [], (1, 1, 1)),
    ("must_include", "don't", "n't", (1, 1, 1)),
    ("must_include", "The answer is 'Kayak'.", "Kayak", (0, 1, 0)),
    ("must_include", "rooms 8–9", "8", (0, 0, 0)),
    ("must_include", "'8' rooms", "8", (1, 1, 1)),
    ("must_exclude", "it is 10", "0", (1, 1, 1)),
    ("must_exclude", "it is 0", "0", (0, 0, 0)),
    ("must_exclude", "red |or| blue", ["red |OR| blue"], (0, 0, 0)),
    ("must_exclude", "blue", ["red |OR| blue"], (1, 1, 1)),
    ("one_of", "it is 10", ["7", "0"], (1, 1, 1)),
    ("one_of", "it is 10", ["7"], (0, 0, 0)),
    ("one_of", "x", [], (0, 0, 0)),
    ("required_values", "1,234", [">= 1000", "< 2000"], (1, 1, 1)),
    ("required_values", "700", ["< 700"], (1, 1, 0)),
    ("required_values", "700", ["> 700"], (1, 1, 0)),
    ("required_values", "700", ["<= 700", ">= 700", "== 700"], (1, 1, 1)),
    ("required_values", "701", ["< 700 |OR| > 900", "> 0"], (0, 0, 0)),
    ("required_values", "901", ["< 700 |OR| > 900"], (1, 1, 1)),
    ("required_values", "12.5", ["> 0"], (0, 0, 0)),
    ("required_values", "$12", ["> 0"], (0, 0, 0)),
    ("required_values", "'12'", [">0"], (1, 1, 1)),
    ("url_match", "http://localhost:9980/", "http://127.0.0.1:9980", (1, 0, 1)),
    ("url_match", "http://a.test/x//", "http://a.test/x/", (0, 1, 0)),
    ("url_match", "http://a.test/x?b=1&a=2", "http://a.test/x?a=2&b=1", (0, 1, 0)),
    ("url_match", "http://a.test/x?a=2&b=1&c=3", "http://a.test/x?a=2&b=1", (0, 1, 0)),
    ("url_match", "https://a.test/x", "http://a.test/x", (0, 1, 0)),
    ("url_match", "http://a.test/x/y", "http://a.test/x", (0, 1, 0)),
    ("url_match", "http://a.test/x", "http://b.test |OR| http://a.test/x", (1, 1, 1)),
    ("url_match", "http://a.test/x?a=1", "http://a.test/x?a=2 |OR| http://b.test/?a=1", (0, 1, 0)),
    ("url_match", "http://a.test/x#part", "http://a.test/x", (0, 1, 0)),
    ("url_match", "http://a.test/x?a=1", "http://a.test/x/?a=1", (0, 0, 0)),
    ("url_match", "http://a.test/x/?a=1", "http://a.test/x?a=1", (0, 1, 0)),
    ("url_match", "http://a.test/x?a=1/", "http://a.test/x?a=1", (1, 1, 1)),
    ("url_match", "http://a.test/x/#part", "http://a.test/x/", (0, 1, 0)),
    ("url_match", "http://a.test/x", "http://a.test/x/#part", (0, 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "answer", "reference", "expected"), QUIRKS)
def test_quirks(rule: str, answer: str | int, reference: str | list[str], expected: tuple[int, int, int]) -> None:
    assert tuple(int(rules[rule](answer, reference)) for rules in (VWA, WA, CORRECTED)) == expected


@pytest.mark.parametrize(
    ("address", "note", "expected"),
    [
        ("http://a.test/x/y?q=1", "GOLD in PRED", 1.0),
        ("http://a.test/x/y", "EXACT", 0.0),
        ("http://a.test/x/", "EXACT", 1.0),
        ("http://a.test/x", None, 1.0),
        ("http://a.test/x", "gold in pred", None),
    ],
)
def test_url_notes(address: str, note: str | None, expected: float | None) -> None:
    if expected is None:
        with pytest.raises(Unscored, match="bad_task"):
            VWA.url_match(address, "http://a.test/x", note)
    else:
        assert VWA.url_match(address, "http://a.test/x", note) == expected


@pytest.mark.parametrize("reference", [["about 5"], ["> x"], [5], 5, {"a": 1}])
def test_a_task_that_does_not_say_what_is_required_is_no_zero(reference: object) -> None:
    with pytest.raises(Unscored, match="bad_task"):
        VWA["required_values"]("5", reference)


WRONG_TYPES = [
    ("exact_match", None, "none"), ("exact_match", "5", 5), ("exact_match", "x", ["x"]), ("exact_match", 2.0, "2.0"),
    ("must_include", None, ["x"]), ("must_include", 5, ["5"]), ("must_include", "x", {"x": 1}), ("must_exclude", None, ["x"]),
    ("one_of", None, ["x"]), ("one_of", "x", [None]), ("required_values", None, ["> 1"]), ("required_values", 2.0, ["> 1"]),
    ("url_match", None, "http://a.test"), ("url_match", "http://a.test", None), ("url_match", "http://a.test", ["http://a.test"]),
]  # fmt: skip


@pytest.mark.parametrize("rules", RULES.values(), ids=lambda rules: rules.name)
@pytest.mark.parametrize(("rule", "answer", "reference"), WRONG_TYPES)
def test_what_is_no_text_is_not_scored(rules: RuleSet, rule: str, answer: object, reference: object) -> None:
    with pytest.raises(Unscored, match="bad_task"):
        rules[rule](answer, reference)


PIECES = st.lists(st.sampled_from(["a", "B", "ab", "red", "10", "0", " ", "  ", "'", '"']), max_size=6).map("".join)
WORDS = st.lists(st.sampled_from(["a", "B", "ab", "red", "10", "0"]), max_size=5).map(" ".join)
ENTRIES = st.lists(st.lists(WORDS, min_size=1, max_size=2).map(" |OR| ".join), max_size=3)


@given(PIECES, PIECES)
def test_exact_match_is_the_slow_one(answer: str, reference: str) -> None:
    assert VWA.exact_match(answer, reference) == slow.exact_match(answer, reference)
    assert WA.exact_match(answer, reference) == slow.exact_match(answer, reference, strip=True)


@given(WORDS, ENTRIES)
def test_rules_on_words_are_the_slow_ones(answer: str, entries: list[str]) -> None:
    assert VWA.must_include(answer, entries) == slow.must_include(answer, entries)
    assert WA.must_include(answer, entries) == slow.must_include_webarena(answer, entries)
    plain = [entry for entry in entries if "|" not in entry]
    assert VWA.must_exclude(answer, plain) == slow.must_exclude(answer, plain)
    assert VWA.one_of(answer, entries) == slow.one_of(answer, entries)


@given(
    st.one_of(st.integers(-3, 3).map(str), st.sampled_from(["1,0", "x", "", " 2 ", "'3'", "1.0"])),
    st.lists(st.tuples(st.sampled_from(["<", ">", "<=", ">=", "=="]), st.integers(-3, 3)), max_size=3),
)
def test_required_values_are_the_slow_ones(answer: str, entries: list[tuple[str, float]]) -> None:
    written = [f"{sign} {limit}" for sign, limit in entries]
    assert VWA.required_values(answer, written) == slow.required_values(answer, entries, strict=False)
    assert CORRECTED.required_values(answer, written) == slow.required_values(answer, entries, strict=True)


ADDRESSES = st.builds(
    lambda host, path, slash, query, end: (
        f"http://{host}/{'/'.join(path)}{slash}{'?' if query else ''}{'&'.join(query)}{end}"
    ),
    st.sampled_from(["localhost", "127.0.0.1", "a.test"]),
    st.lists(st.sampled_from(["x", "y"]), max_size=2),
    st.sampled_from(["", "/"]),
    st.lists(st.sampled_from(["a=1", "a=2", "b=1", "b=%20"]), max_size=2),
    st.sampled_from(["", "/", "//"]),
)


@settings(max_examples=often(300))
@given(ADDRESSES, st.lists(ADDRESSES, min_size=1, max_size=2), st.sampled_from(["EXACT", "GOLD in PRED"]))
def test_url_match_is_the_slow_one(address: str, references: list[str], note: str) -> None:
    written = " |OR| ".join(references)
    assert VWA.url_match(address, written, note) == slow.url_match(address, references, note)
    assert WA.url_match(address, written, "GOLD in PRED") == slow.url_match_webarena(address, references)


@pytest.mark.parametrize(
    ("reply", "fuzzy", "same"),
    [
        ("correct", 1, None), ("Correct.", 1, None), ("incorrect", 0, None), ("partially correct", 0, None),
        ("The answer is not correct", 1, None), ("uncorrect", 1, None), ("It is correct, not incorrect", 0, None),
        ("same", None, 1), ("Different", None, 0), ("the same, not different", None, 0), ("yes", None, None), (None, None, None),
    ],
)  # fmt: skip
def test_replies_of_a_judge(reply: str | None, fuzzy: int | None, same: int | None) -> None:
    for rule, expected in ((VWA.fuzzy_match, fuzzy), (VWA.ua_match, same)):
        if expected is None:
            with pytest.raises(Unscored, match="no_verdict"):
                rule("a", "b", "task", lambda messages: reply)
        else:
            assert rule("a", "b", "task", lambda messages: reply) == expected


def test_a_judge_is_told_task_reference_and_answer_as_they_are() -> None:
    asked: list[tuple[Message, ...]] = []

    def ask(messages: tuple[Message, ...]) -> str:
        asked.append(messages)
        return "correct same"

    for rule in (VWA.fuzzy_match, VWA.ua_match):
        rule("{intent} an answer", "a {reference}", "the task", ask)
        text = asked[-1][-1].text
        assert text.index("the task") < text.index("a {reference}") < text.index("{intent} an answer")
    assert len(asked) == 2


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(7, 12), st.integers(7, 12))
def test_similarity_is_the_slow_one(seed: int, width: int, height: int) -> None:
    draw = np.random.default_rng(seed)
    first = draw.integers(0, 256, (height, width))
    second = np.clip(first + draw.integers(-40, 41, first.shape), 0, 255)
    expected = slow.ssim(first.tolist(), second.tolist())
    assert ssim(png(first), png(second)) == pytest.approx(expected, abs=1e-9)


def test_similarity_of_pictures() -> None:
    draw = np.random.default_rng(0)
    page, small = draw.integers(0, 256, (40, 60, 3)), np.full((10, 10), 200)
    assert ssim(png(page), png(page)) == pytest.approx(1.0)
    assert is_similar(png(page), png(page)) == 1.0
    assert is_similar(png(small), png(page)) == 0.0
    assert is_similar(png(page), png(page), threshold=1.0) == 0.0
    for bad in (b"", b"GIF89a", png(np.zeros((6, 6)))):
        with pytest.raises(Unscored, match="missing_picture"):
            ssim(bad, bad)

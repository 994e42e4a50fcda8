"""Picture tokens by the providers' rules: their own examples, and slow re-implementations."""

from __future__ import annotations

from itertools import product
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.models import ModelOptions, find_model
from seeact_offline.models.tokens import (
    MOST_PATCHES,
    RULES,
    Size,
    count_words,
    cut_words,
    full_size_visual_tokens,
    patches,
    visual_tokens,
)
from seeact_offline.records import IMAGE_DETAILS, ImageDetail

SIDES = st.integers(1, 9000)
SIZES = st.tuples(SIDES, SIDES)


def count(model: str, size: Size, detail: ImageDetail = "high") -> int:
    rule = find_model(f"openai/{model}").image_rule(ModelOptions())
    assert rule is not None
    return rule.count(size, detail)


# --- what the providers say themselves -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-4o-mini", (1024, 1024), 2833 + 4 * 5667),
        ("gpt-5", (1024, 1024), 70 + 4 * 140),
        ("o3", (1024, 1024), 75 + 4 * 150),
        # 1452 patches
        ("gpt-4.1-mini", (1800, 2400), 2353),
        ("o4-mini", (1024, 1024), ceil(1024 * 1.72)),
        # as billed: https://community.openai.com/t/1344040
        ("gpt-5-mini", (256, 256), 77),
        ("gpt-5-mini", (1280, 720), 1104),
        ("gpt-5-mini", (2048, 768), 1844),
        ("claude-sonnet-4-5", (1000, 1000), 36 * 36),
        ("gemini-2.5-pro", (384, 384), 258),
        ("gemini-2.5-pro", (960, 540), 6 * 258),
        ("gemini-3.5-flash", (1280, 5000), 1120),
    ],
)
def test_examples(model: str, size: Size, tokens: int) -> None:
    assert count(model, size) == tokens


def test_low_detail_costs_the_base_where_tiles_are_counted() -> None:
    assert [count(model, (4096, 8192), "low") for model in ("gpt-4o", "gpt-4o-mini", "gpt-5")] == [85, 2833, 70]


def test_no_detail_makes_patches_cheaper() -> None:
    assert len({count("gpt-5-mini", (1280, 4000), detail) for detail in IMAGE_DETAILS}) == 1


# --- against slow re-implementations ---------------------------------------------------------------------------------


@given(SIZES)
def test_gpt_4o_counts_as_the_rule_of_tokens(size: Size) -> None:
    assert count("gpt-4o", size) == visual_tokens(size) <= 1445


@given(SIZES)
def test_tiles_of_a_small_picture_are_those_at_full_size(size: Size) -> None:
    small = min(size[0], 2048), min(size[1], 768)
    assert visual_tokens(small) == full_size_visual_tokens(small)


@given(SIZES)
def test_patches_are_all_where_they_are_few_and_never_too_many(size: Size) -> None:
    whole = sum(1 for _ in product(range(0, size[0], 32), range(0, size[1], 32)))
    assert patches(size) == whole if whole <= MOST_PATCHES else 0 < patches(size) <= MOST_PATCHES


@given(st.tuples(st.integers(200, 3000), st.integers(200, 3000)))
def test_claude_sees_the_largest_picture_within_its_limits(size: Size) -> None:
    """Tries every length of the longer side."""
    longest, best = max(size), 0
    for pixels in range(min(longest, 1568), 0, -1):
        width, height = (max(1, round(side * pixels / longest)) for side in size)
        tokens = ceil(width / 28) * ceil(height / 28)
        if tokens <= 1568:
            best = tokens
            break
    assert count("claude-sonnet-4-5", size) == best


@given(SIZES)
def test_a_newer_claude_sees_at_least_as_much(size: Size) -> None:
    assert count("claude-sonnet-4-5", size) <= count("claude-opus-4-7", size) <= 4784


@given(SIZES, st.sampled_from(sorted(RULES)), st.sampled_from(IMAGE_DETAILS))
def test_every_picture_costs_something(size: Size, model: str, detail: ImageDetail) -> None:
    assert count(model, size, detail) > 0


# --- which rule ------------------------------------------------------------------------------------------------------


def test_a_day_at_the_end_of_a_name_makes_no_other_rule() -> None:
    for name, dated in (("gpt-4o", "gpt-4o-2024-08-06"), ("gpt-4o-mini", "gpt-4o-mini-2024-07-18")):
        rules = {find_model(f"openai/{model}").image_rule(ModelOptions()) for model in (name, dated)}
        assert len(rules - {None}) == len(rules) == 1


@pytest.mark.parametrize(
    "model", ["openai/qwen", "hf/gpt-4o", "openai/gpt-4o-audio", "builtin/lexical", "openai/gpt-5.4"]
)
def test_no_rule_is_guessed(model: str) -> None:
    assert find_model(model).image_rule(ModelOptions()) is None


@given(st.text("ab1 .\n", max_size=30), st.integers(0, 20))
def test_a_cut_keeps_the_beginning_and_as_many_words_as_it_may(text: str, limit: int) -> None:
    cut = cut_words(text, limit)
    assert text.startswith(cut)
    assert count_words(cut) == min(limit, count_words(text))
    assert cut == text or count_words(text) > limit

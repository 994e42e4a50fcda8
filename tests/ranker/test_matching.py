"""Learning which tokens two texts share, before learning what is right."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest

from ranker.heads import MATCH, add_heads, drop_heads
from ranker.matching import matching_loss, shared_tokens, teach_matching
from ranker.pairs import PairEncoder, PairGroup, TokenSwap
from ranker.small import SmallModel, build_small
from ranker.tokenizer import train_tokenizer
from ranker.training import SMALL, train
from ranker.training_pass import run

WORDS = "red green blue black white small large round square flat soft hard cold warm old new".split()
GROUPS = [
    PairGroup(f"find {a} and {b}", (f"box {a}",), tuple(f"box {word}" for word in WORDS if word not in {a, b}))
    for a, b in itertools.pairwise(WORDS)
]
SETTINGS = dataclasses.replace(
    SMALL, epochs=1, negatives=3, swap_kept=4, max_tokens=40, matching_steps=40, bf16=False, threads=1
)
SHAPE = SmallModel(vocab_size=400, hidden_size=32, layers=2, heads=2, intermediate_size=32, max_tokens=40, dropout=0.0)


@pytest.fixture
def tokenizer() -> Any:
    return train_tokenizer([text for group in GROUPS for text in (group.query, *group.texts)], 400, 40)


def _encoder(tokenizer: Any, model: Any) -> PairEncoder:
    return PairEncoder(tokenizer, model.config, "query-text", 40)


def test_shared_tokens_are_those_that_stand_in_both_texts(tokenizer: Any) -> None:
    encoder = _encoder(tokenizer, build_small(SHAPE, tokenizer))
    row = encoder.row("find red and green", "box red")
    shorter = encoder.row("find", "box")

    found = shared_tokens([row, shorter], encoder).tolist()

    assert found[0] == [-1, 0, 1, 0, 0, -1, 0, 1, -1]
    assert found[1] == [-1, 0, -1, 0, -1, -1, -1, -1, -1]


def test_teaching_lowers_the_loss_on_words_that_are_disguised(tokenizer: Any) -> None:
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = build_small(SHAPE, tokenizer)
    encoder = _encoder(tokenizer, model)
    add_heads(model, {MATCH: 1})
    told: list[str] = []
    settings = dataclasses.replace(SETTINGS, matching_steps=100)

    teach_matching(model, encoder, GROUPS, TokenSwap(GROUPS, encoder, 4), settings, told.append)

    rows = [encoder.row(group.query, text) for group in GROUPS for text in group.texts]
    with torch.inference_mode():
        tokens = run(model.eval(), encoder.tensors(rows), bf16=False).tokens
        after = float(matching_loss(model, tokens, shared_tokens(rows, encoder)))
    assert after < 0.35, "an untaught head is at 0.69, saying `no` everywhere at 0.4 or more"
    assert told[-1].startswith("matching, step 100 of 100: loss ")


def test_the_head_is_not_saved_with_the_model(tmp_path: Path) -> None:
    from safetensors import safe_open

    train(GROUPS, tmp_path / "out", SETTINGS, base=SHAPE)

    with safe_open(tmp_path / "out" / "model.safetensors", "np") as weights:
        assert not [name for name in weights.keys() if "match" in name]  # noqa: SIM118


def test_dropping_a_head_that_is_not_there_does_nothing(tokenizer: Any) -> None:
    drop_heads(build_small(SHAPE, tokenizer))


def test_a_tag_and_a_word_spelt_alike_are_two_tokens(tokenizer: Any) -> None:
    box = tokenizer("(box id=3 box)", add_special_tokens=False)["input_ids"]
    assert box[-1] == tokenizer("box", add_special_tokens=False)["input_ids"][0]
    assert box[0] != box[-1]


def test_running_numbers_and_stops_are_dropped(tokenizer: Any) -> None:
    assert tokenizer.tokenize("Box id=3: RED, new.") == ["box", "red", "new"]


def test_words_are_cut_after_six_letters(tokenizer: Any) -> None:
    assert tokenizer.tokenize("marketplace") == tokenizer.tokenize("market")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("21st", ["21"]),
        ("08:00", ["8", "0"]),
        ("10", ["10"]),
        ("2026", ["20", "26"]),
        ("$1,499", ["$", "1", "49", "9"]),
    ],
)
def test_a_number_under_100_is_one_token_seen_or_not(tokenizer: Any, text: str, tokens: list[str]) -> None:
    assert tokenizer.tokenize(text)[: len(tokens)] == tokens

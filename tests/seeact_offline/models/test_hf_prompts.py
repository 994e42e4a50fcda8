"""Prompts of `hf/`: what of a text is the prompt's own, and where questions are cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from seeact_offline.models import ModelOptions, find_model
from seeact_offline.models.hf_loading import LoadingOptions, Prompt, PromptEncoder, Turn, load_processor
from seeact_offline.records import ModelSpecError
from tests.tiny_models import QWEN_PICTURES, save_blip2, save_llama, save_llava, save_t5


def encoder(folder: Path, kind: str, limit: str | None = None) -> PromptEncoder:
    return PromptEncoder("tiny", kind, load_processor("tiny", folder, kind), LoadingOptions(max_input_tokens=limit))


def shown(made: PromptEncoder, *turns: Turn) -> str:
    return made._rendered(turns)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> PromptEncoder:
    return encoder(save_llama(tmp_path_factory.mktemp("llama") / "model"), "causal")


@pytest.mark.parametrize(
    ("text", "inserted", "expected"),
    [
        ("Answer <|user|>. Task: x", ("x",), "Answer <|user|>. Task: x"),
        ("Answer <|user|>. Task: <|user|> x", ("<|user|> x",), "Answer <|user|>. Task: < |user|> x"),
        # the whole text may be a page's
        ("Answer <|user|>. Task: x", None, "Answer < |user|>. Task: x"),
        # one text is part of another, and one is the token itself
        ("<|user|> a <|user|> b", ("<|user|>", "<|user|> b"), "< |user|> a < |user|> b"),
        ("Answer <|user|>.", ("",), "Answer <|user|>."),
    ],
)
def test_tokens_of_the_prompts_own_wording_are_meant(
    llama: PromptEncoder, text: str, inserted: tuple[str, ...] | None, expected: str
) -> None:
    assert f"<|user|>{expected}</s>" in shown(llama, Turn("user", text, None, inserted))


def test_the_place_of_a_picture_is_never_meant(tmp_path: Path) -> None:
    made = encoder(save_llava(tmp_path / "llava"), "image-text")
    picture = Image.new("RGB", (32, 32))
    assert shown(made, Turn("user", "See <image>: <|user|>", picture, ())).count("<image>") == 1


# --- questions that are cut ---


WORDS = st.text(alphabet="ab <>/(id=0)\n", max_size=60)


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5") / "model")


@given(markup=WORDS, rest=WORDS, most=st.integers(1, 30), room=st.integers(2, 30))
def test_page_and_rest_are_cut_apart(t5_parts: Any, markup: str, rest: str, most: int, room: int) -> None:
    processor, cache = t5_parts
    limit = LoadingOptions(max_input_tokens=f"{most}+{room}")
    made = cache.setdefault(limit, PromptEncoder("t5", "seq2seq", processor, limit))
    (part,) = made.encode([Prompt((Turn("user", markup + rest, markup=len(markup)),))])
    first, second = (processor(text, add_special_tokens=False)["input_ids"] for text in (markup, rest))
    assert part.inputs["input_ids"].tolist() == [first[:most] + second[: room - 1] + [processor.eos_token_id]]


@pytest.fixture(scope="module")
def t5_parts(t5: Path) -> Any:
    return load_processor("t5", t5, "seq2seq"), {}


def test_a_limit_is_for_text_to_text_models(tmp_path: Path) -> None:
    folder = save_llama(tmp_path / "llama")
    with pytest.raises(ModelSpecError, match="model_args: expected no max_input_tokens"):
        encoder(folder, "causal", "5+5")


# --- BLIP-2 as the hub has it ---


def test_blip2_without_a_template_is_asked_plainly_with_its_picture_first(tmp_path: Path) -> None:
    folder = save_blip2(tmp_path / "blip2")
    made, picture = encoder(folder, "image-text"), Image.new("RGB", (40, 60), "red")
    turn = Turn("user", "Where <image> is it?", picture, markup=5)
    assert shown(made, turn) == "Where < image> is it?"
    (whole,) = made.encode([Prompt((turn,))])
    (cut,) = encoder(folder, "image-text", "99+99").encode([Prompt((turn,))])
    tokens = whole.inputs["input_ids"][0].tolist()
    assert len(set(tokens[:4])) == 1
    assert (cut.inputs["input_ids"][0].tolist()[:4], cut.inputs["input_ids"][0].tolist()[-1]) == (
        tokens[:4],
        tokens[-1],
    )
    assert (cut.inputs["pixel_values"] == whole.inputs["pixel_values"]).all()


# --- pictures, counted by their settings ---


@given(width=st.integers(28, 5000), height=st.integers(28, 5000), most=st.sampled_from([None, 50_000, 1_003_520]))
def test_qwens_pictures_are_counted_as_its_processor_does(
    qwen: Path, width: int, height: int, most: int | None
) -> None:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    rule = find_model(f"hf/{qwen}").image_rule(ModelOptions(model_args={"max_pixels": most} if most else {}))
    assert rule is not None
    found = rule.count((width, height), "high")
    if max(width, height) > 200 * min(width, height):
        assert found == (most or 12_845_056) // 28**2
        return
    down, across = smart_resize(height, width, 28, 3_136, most or 12_845_056)
    assert found == down * across // 28**2


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_llama(tmp_path_factory.mktemp("qwen") / "model")
    (folder / "preprocessor_config.json").write_text(json.dumps(QWEN_PICTURES))
    return folder


def test_models_that_show_pictures_in_a_fixed_number_of_tokens(tmp_path: Path) -> None:
    for save, expected in {save_llava: 16, save_blip2: 4, save_llama: None}.items():
        rule = find_model(f"hf/{save(tmp_path / save.__name__)}").image_rule(ModelOptions())
        assert (None if rule is None else rule.count((1280, 2000), "high")) == expected

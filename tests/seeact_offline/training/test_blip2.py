"""BLIP-2: a tiny one with random weights, opened, trained on the sample's pages, saved and asked through `hf/`."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from seeact_offline.dataset import load_steps, open_split
from seeact_offline.grounding import MAX_SIDE
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.models import ModelOptions, open_model
from seeact_offline.pages.screenshots import PagePicture, encode, group_crop
from seeact_offline.records import PNG, Completion, ImageFormat, InputError, Message, Request, RowError, Step, StepKey
from seeact_offline.training import bases
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.blip2 import BASELINE, Blip2, Collator, open_blip2, vision_tokens
from seeact_offline.training.flan_t5 import IGNORED
from seeact_offline.training.mindact_rows import MultiChoice
from seeact_offline.training.recipe import Recipe, Running
from seeact_offline.training.trainer import save_model
from seeact_offline.training.training_rows import (
    PagePictures,
    Pictures,
    Span,
    kept_pictures,
    parts_of,
    prepare,
    span_of,
)
from seeact_offline.training.tuning import FineTuningResult, fine_tune
from tests.lazily import peft, safetensors_torch, torch
from tests.seeact_offline.training.conftest import of_card, write_dataset
from tests.seeact_offline.training.conftest import rows_of as rows_of_split
from tests.seeact_offline.training.test_flan_t5 import Killed, KilledAt
from tests.tiny_models import as_on_hub, save_blip2, save_llava, save_t5

pytestmark = pytest.mark.slow

TRAINED = ("query_tokens", "qformer.", "language_projection.", "language_model.")
QUESTION = "TASK: Find a flight. A. None of the above B. <a id=0> Search C. <button id=1> Book"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_blip2(tmp_path_factory.mktemp("models") / "blip2")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the same shape and tokenizer as the language part of `base`, with other weights."""
    return save_t5(tmp_path_factory.mktemp("models") / "t5", seed=7)


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    # a task has more than 4
    return list(islice(load_steps("sample", "train", limit=1), 4))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Pictures:
    return Pictures(kept_pictures(open_split("sample", "train", limit=1), tmp_path_factory.mktemp("kept")))


@pytest.fixture(scope="module")
def tuned(base: Path, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> FineTuningResult:
    """From data to card."""
    out = tmp_path_factory.mktemp("tuned") / "model"
    return fine_tune(asked(base, dataset, out, evaluate=("cross_task",), eval_ranker="bm25"))


# 6 steps to train on, of a task more that is held out: 6 of the optimizer an epoch
RECIPE = Recipe(
    epochs=2, draws=4, batch=4, learning_rate=5e-2, weight_decay=0.1, max_context=96, max_question=96, held_out=0.05
)


def asked(base: Path, dataset: Path, out: Path, **options: Any) -> FineTuning:
    usual = {
        "recipe": RECIPE,
        "running": Running(log_every=1, save_every=6, gradient_checkpointing=True, threads=1),
        "own": {"side": 48},
        "evaluate": (),
    }
    return FineTuning(out, "blip2", str(base), dataset=dataset, **{**usual, **options})


def rows_of(opened: Blip2, steps: Sequence[Step]) -> list[dict[str, Any]]:
    tokenizer = opened.processor.tokenizer
    rows = []
    for step in steps:
        span = span_of(step, [step.candidates[0].backend_node_id])
        asked, answer = tokenizer(f"{QUESTION} {step.task}"), tokenizer(f"B.\nAction: {step.operation.op}")
        key = {"annotation_id": step.key.annotation_id, "action_uid": step.key.action_uid}
        rows.append({"input_ids": asked["input_ids"], "labels": answer["input_ids"], **key, **span._asdict()})
    return rows


def ask(folder: Path, text: str, picture: Image.Image) -> str:
    class Conversations:
        key, size = "", picture.size

        def encoded(self, image_format: ImageFormat = PNG) -> bytes:
            return encode(picture, image_format)

    async def run() -> Completion:
        model = open_model(f"hf/{folder}", ModelOptions(max_tokens=50, image_format=PNG))
        try:
            return await model.complete(Request((Message("user", text, Conversations()),), StepKey("a", "b"), 0, 1))
        finally:
            await model.aclose()

    return asyncio.run(run()).text


# --- opening ---


def test_a_picture_of_2048_pixels_is_21317_tokens() -> None:
    assert vision_tokens(2048, 14) == 21_317


def test_positions_for_another_side_are_those_that_the_encoder_itself_interpolates(base: Path) -> None:
    plain, wider = open_blip2(base), open_blip2(base, side=56)
    assert (plain.side, wider.side) == (32, 56)
    assert (plain.picture_tokens, wider.picture_tokens) == (17, 50)
    pixels = torch.randn(2, 3, 56, 56, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = plain.model.eval().vision_model(pixels, interpolate_pos_encoding=True).last_hidden_state
        got = wider.model.eval().vision_model(pixels).last_hidden_state
    assert torch.equal(got, wanted)


def test_a_side_that_no_whole_number_of_patches_fills_is_taken(base: Path) -> None:
    opened = open_blip2(base, side=45)
    assert opened.picture_tokens == 26
    with torch.no_grad():
        seen = opened.model.vision_model(torch.zeros(1, 3, 45, 45)).last_hidden_state
    assert seen.shape[1] == 26


def test_the_language_part_is_that_of_the_t5_named_and_all_else_is_the_bases(base: Path, t5: Path) -> None:
    from transformers import T5ForConditionalGeneration

    plain, opened = open_blip2(base).model.state_dict(), open_blip2(base, language=t5).model
    language = T5ForConditionalGeneration.from_pretrained(t5).state_dict()
    assert all(torch.equal(opened.language_model.state_dict()[name], language[name]) for name in language)
    for name, weights in opened.state_dict().items():
        assert torch.equal(weights, plain[name]) == (not name.startswith("language_model.")) or weights.std() == 0, name


def test_a_language_part_without_a_picture_s_row_gets_the_bases(base: Path, t5: Path, tmp_path: Path) -> None:
    from transformers import T5ForConditionalGeneration

    short = T5ForConditionalGeneration.from_pretrained(t5)
    n_tokens = short.config.vocab_size - 1
    short.resize_token_embeddings(n_tokens)
    shutil.copytree(t5, tmp_path / "short", ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    short.save_pretrained(tmp_path / "short")
    plain, opened = (
        open_blip2(base, **own).model.language_model.get_input_embeddings().weight
        for own in ({}, {"language": tmp_path / "short"})
    )
    assert torch.equal(opened[:n_tokens], short.get_input_embeddings().weight)
    assert torch.equal(opened[n_tokens:], plain[n_tokens:])


def refusal(argument: str, *given: Any, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        open_blip2(*given, **options)
    assert caught.value.argument == argument
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_base_that_is_no_blip2_with_a_t5_is_refused(t5: Path, tmp_path: Path) -> None:
    assert "of type t5" in refusal("base", t5).got
    assert "of type llava" in refusal("base", save_llava(tmp_path / "llava")).got
    refusal("base", tmp_path / "none")


def test_a_language_part_of_another_kind_or_shape_is_refused(base: Path, tmp_path: Path, t5: Path) -> None:
    assert "of type blip-2" in refusal("language", base, language=base).got
    other = Path(shutil.copytree(t5, tmp_path / "gated"))
    settings = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**settings, "feed_forward_proj": "gated-gelu"}))
    assert "gated-gelu" in refusal("language", base, language=other).got


def test_a_language_part_that_scales_its_outputs_is_refused_where_the_base_s_does_not(t5: Path, tmp_path: Path) -> None:
    """As T5 does whose embeddings are tied, and FLAN-T5 does not."""
    untied = as_on_hub(save_blip2(tmp_path / "untied"))
    assert refusal("language", untied, language=t5).expected == "scale_decoder_outputs False, as in the base"


def test_a_language_part_with_another_tokenizer_is_refused(base: Path, tmp_path: Path, t5: Path) -> None:
    other = Path(shutil.copytree(t5, tmp_path / "other"))
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (other / file).write_text((other / file).read_text("utf-8").replace("<|user|>", "<|human|>"), "utf-8")
    assert "<|human|>" in refusal("language", base, language=other).got


def test_a_side_below_a_patch_is_refused(base: Path) -> None:
    refusal("side", base, side=7)


def test_the_token_of_a_picture_is_one_that_no_page_may_spell_out(base: Path) -> None:
    assert "<image>" in open_blip2(base).processor.tokenizer.all_special_tokens


# --- batches ---


def test_a_batch_is_what_the_processor_makes_of_the_texts_and_pictures(
    base: Path, steps: Sequence[Step], pictures: Pictures
) -> None:
    opened = open_blip2(base)
    rows = rows_of(opened, steps)
    batch = Collator(opened.processor, pictures)(rows)
    texts = [f"{QUESTION} {step.task}" for step in steps]
    parts = [group_of(step, [step.candidates[0].backend_node_id]) for step in steps]
    wanted = opened.processor(text=texts, images=parts, padding=True, return_tensors="pt")
    assert set(batch) == {*wanted, "labels"}
    for name in wanted:
        assert torch.equal(batch[name], wanted[name]), name
    for row, labels in zip(rows, batch["labels"].tolist(), strict=True):
        assert labels == row["labels"] + [IGNORED] * (len(labels) - len(row["labels"]))


def group_of(step: Step, ids: Sequence[str]) -> Image.Image:
    """As a question cuts it."""
    assert step.screenshot is not None
    page = PagePicture(step.screenshot)
    boxes = [c.box for c in step.candidates if c.backend_node_id in ids and c.box is not None]
    return page.crop(group_crop(boxes, page.size), MAX_SIDE).image()


def test_a_group_is_shown_with_the_pixels_that_a_question_shows(steps: Sequence[Step], pictures: Pictures) -> None:
    for step in steps:
        ids = [candidate.backend_node_id for candidate in step.candidates[:5]]
        got, wanted = pictures.group(step.key, span_of(step, ids)), group_of(step, ids)
        assert got.size == wanted.size
        assert ImageChops.difference(got, wanted).getbbox() is None


def test_pages_are_read_in_another_process_too(steps: Sequence[Step], pictures: Pictures) -> None:
    sent = pickle.loads(pickle.dumps(pictures))
    assert steps[0].key in sent
    assert StepKey("not", "there") not in sent
    assert sent.page(steps[0].key).digest == pictures.page(steps[0].key).digest


def test_a_step_with_no_whole_picture_is_not_kept(steps: Sequence[Step]) -> None:
    class Short:
        def read(self) -> bytes:
            return encode(Image.effect_noise((200, 100), 50))[:-2000]

    class Part:
        def steps(self) -> Iterator[Step]:
            yield replace(steps[0], screenshot=None)
            yield replace(steps[1], screenshot=Short())
            yield steps[2]

    (made,) = PagePictures().steps(Part())  # type: ignore[arg-type]
    assert made.batch is not None
    assert made.batch["step"].to_pylist() == [str(steps[2].key)]


def test_a_group_with_a_candidate_that_has_no_box_is_refused(steps: Sequence[Step]) -> None:
    step = replace(steps[0], candidates=(replace(steps[0].candidates[0], box=None), *steps[0].candidates[1:]))
    with pytest.raises(RowError, match="missing_box"):
        span_of(step, [candidate.backend_node_id for candidate in step.candidates[:2]])
    assert isinstance(span_of(step, [step.candidates[1].backend_node_id]), Span)


def test_a_file_that_holds_no_pages_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pictures.arrow").write_bytes(b"something else")
    with pytest.raises(InputError, match="pictures"):
        StepKey("a", "b") in Pictures(tmp_path)  # noqa: B015


# --- training ---


def test_the_loss_falls_and_answers_are_measured_on_the_way(tuned: FineTuningResult) -> None:
    losses = [entry["loss"] for entry in tuned.history if "loss" in entry]
    assert len(losses) == 12
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])
    assert [entry["step"] for entry in tuned.history if "eval_letter_accuracy" in entry] == [6, 12]


def test_the_vision_encoder_stays_bit_for_bit_and_all_else_is_trained(tuned: FineTuningResult, base: Path) -> None:
    before, after = (open_blip2(base, side=48).model.state_dict(), open_blip2(tuned.folder).model.state_dict())
    assert set(before) == set(after)
    for name, weights in after.items():
        frozen = name.startswith("vision_model.")
        assert frozen or name.startswith(TRAINED)
        assert torch.equal(weights, before[name]) == frozen, name


def test_the_full_elimination_shows_each_group(tuned: FineTuningResult) -> None:
    (results,) = tuned.results
    assert (results["grounding"], results["layout"], results["group_picture"]) == ("mindact", "seq2seq", True)
    assert (results["n_steps"], results["n_not_run"]) == (2, 0)


def test_the_card_says_what_sees(tuned: FineTuningResult) -> None:
    assert "not the paper's CLIP ViT-L/14" in (tuned.folder / "README.md").read_text()
    assert of_card(tuned.folder)["side"] == "48"


@pytest.mark.nightly
def test_a_training_that_was_ended_goes_on_to_the_same_weights(
    tuned: FineTuningResult, base: Path, dataset: Path, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        fine_tune(asked(base, dataset, tmp_path), KilledAt(8))
    fine_tune(asked(base, dataset, tmp_path, resume=True))
    left, wanted = (folder / "model.safetensors" for folder in (tmp_path, tuned.folder))
    assert left.read_bytes() == wanted.read_bytes()


# peft asks by the old name
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.nightly), "bfloat16"])
def test_with_lora_only_matrices_beside_the_language_part_are_trained(
    base: Path, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """In bfloat16 as on a GPU, too."""
    monkeypatch.setattr(bases, "running_dtype", lambda loading: dtype)
    recipe, running = (
        replace(RECIPE, epochs=1, lora=4),
        Running(gradient_checkpointing=True, attention="eager", threads=1),
    )
    out = fine_tune(asked(base, dataset, tmp_path, recipe=recipe, running=running)).folder
    adapter = safetensors_torch.load_file(out / "adapter" / "adapter_model.safetensors")
    assert all(weights.abs().max() > 0 for weights in adapter.values())
    before, after = (open_blip2(folder, side=48, dtype=dtype).model.state_dict() for folder in (base, out))
    changed = [name for name, weights in before.items() if not torch.equal(after[name], weights)]
    assert len(changed) == len(adapter) // 2
    assert all(name.startswith("language_model.") for name in changed)
    # weights that were quantised in training are loaded anew to be merged: the same sums
    again = peft.PeftModel.from_pretrained(open_blip2(base, side=48, dtype=dtype).model, out / "adapter")
    save_model(again, tmp_path / "again", reload=lambda: open_blip2(base, side=48, dtype=dtype).model)
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()


def test_attention_is_that_asked_for_in_every_part(base: Path, t5: Path, tmp_path: Path) -> None:
    running = Running(attention="eager")
    model = BASELINE.load(FineTuning(tmp_path, "blip2", str(base), running=running, own={"language": t5}))
    parts = (model, model.vision_model, model.qformer, model.language_model)
    assert {part.config._attn_implementation for part in parts} == {"eager"}


def test_going_on_with_pictures_of_another_side_is_refused(tuned: FineTuningResult, base: Path, dataset: Path) -> None:
    with pytest.raises(InputError, match="side 40 where it was 48"):
        fine_tune(asked(base, dataset, tuned.folder, own={"side": 40}, resume=True))


def test_steps_without_a_picture_or_a_box_are_counted(dataset: Path, tmp_path: Path, base: Path) -> None:
    rows = list(rows_of_split("train"))
    rows[0] = {**rows[0], "screenshot": None}
    split = open_split(write_dataset(tmp_path / "data", train=rows), "train")
    pictures = kept_pictures(split, tmp_path)
    maker = MultiChoice(
        RECIPE,
        open_pack("seeact", "mindact", variant="seq2seq"),
        open_blip2(base).processor.tokenizer,
        pictures=pictures,
    )
    made = prepare(parts_of(split), maker, tmp_path / "made", {}, 1)
    assert made.left_out == {"no_screenshot": 1}
    assert made.steps == len(rows) - 1


def test_a_folder_that_was_trained_answers_through_hf_as_the_model_does(
    tuned: FineTuningResult, steps: Sequence[Step], pictures: Pictures
) -> None:
    page = pictures.group(steps[0].key, span_of(steps[0], [steps[0].candidates[0].backend_node_id]))
    text = f"{QUESTION} {steps[0].task}"
    # whose language part has settings of its own, which `generate` would go by
    saved = open_blip2(tuned.folder)
    inputs = saved.processor(text=[text], images=[page], return_tensors="pt")
    with torch.no_grad():
        ids = saved.model.eval().generate(**inputs, generation_config=saved.model.generation_config)[0]
    wanted = saved.processor.tokenizer.decode(ids, skip_special_tokens=True)
    assert wanted.strip()
    assert ask(tuned.folder, text, page) == wanted

"""A tiny LLaVA, fine-tuned with LoRA by TRL on SeeAct's own questions, merged, saved and asked by `eval`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset import Split
from seeact_offline.models.hf_loading import LoadingOptions, Prompt, PromptEncoder, Turn
from seeact_offline.ranking.stage import RankConfig, rank
from seeact_offline.records import InputError, Step
from seeact_offline.runs import config as configs
from seeact_offline.runs.strategy_opening import questions
from seeact_offline.training import vlm
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.recipe import Recipe, Running
from seeact_offline.training.training_rows import Pictures, kept_pictures, parts_of
from seeact_offline.training.tuning import FineTuningResult, fine_tune
from seeact_offline.training.vlm import ChoiceQuestions, checked_template, shown_questions
from tests.lazily import safetensors_torch, torch
from tests.seeact_offline.training.conftest import of_card
from tests.seeact_offline.training.test_flan_t5 import Killed, KilledAt
from tests.tiny_models import CHAT, save_blip2, save_llama, save_llava

# groups of 4: every step has some without a right element
CONFIG = configs.EvalConfig(grounding="choice", turns=1, group_size=4)
# 4 steps to train on: 2 of the optimizer an epoch
RECIPE = replace(vlm.BASELINE.recipe, epochs=4, batch=2, learning_rate=1e-2, lora=4, held_out=0.1)
RUNNING = Running(log_every=1, save_every=4, threads=1)

# trl 1.16.0 asks by the old name
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llava(tmp_path_factory.mktemp("models") / "llava")


@pytest.fixture(scope="module")
def maker(dataset: Path, train_split: Split, tmp_path_factory: pytest.TempPathFactory) -> ChoiceQuestions:
    folder = tmp_path_factory.mktemp("made")
    scores = folder / "scores.parquet"
    rank(RankConfig(dataset=dataset, split="train", ranker="bm25"), scores)
    return ChoiceQuestions(CONFIG, RECIPE, scores, kept_pictures(train_split, folder))


@dataclass(frozen=True)
class Part:
    """Of a split: these steps."""

    found: Sequence[Step]

    def steps(self) -> Iterator[Step]:
        return iter(self.found)


def rows(maker: ChoiceQuestions, steps: Iterable[Step]) -> list[dict[str, Any]]:
    made = maker.steps(Part(list(steps)))  # type: ignore[arg-type]
    return [row for one in made if one.batch is not None for row in one.batch.to_pylist()]


# --- questions ---


def test_the_questions_are_those_of_eval_with_the_right_answers(maker: ChoiceQuestions, train_split: Split) -> None:
    made = {
        (row["action_uid"], row["question"]): row for part in parts_of(train_split) for row in rows(maker, part.steps())
    }
    for step in train_split.steps():
        for question in questions(step, CONFIG.changed(scores=maker.scores)):
            row = made.pop((step.action_uid, question.turns[0]), None)
            # every group with a right element is asked about
            assert row is not None or step.truth.positives.isdisjoint(question.offered)
            if row is not None:
                assert (row["system"], (row["answer"],)) == (question.system, question.ideal)
    assert made == {}


@pytest.mark.parametrize(("share", "n_wrong"), [(0.0, 0), (0.5, 1)])
def test_the_share_of_questions_without_a_right_element_is_the_recipe_s(
    maker: ChoiceQuestions, train_split: Split, share: float, n_wrong: int
) -> None:
    maker = replace(maker, recipe=replace(RECIPE, none_share=share))
    for step in list(train_split.steps())[:3]:
        asked = questions(step, CONFIG.changed(scores=maker.scores))
        right = [one.turns[0] for one in asked if not step.truth.positives.isdisjoint(one.offered)]
        assert len([row for row in rows(maker, [step]) if row["question"] not in right]) == n_wrong


def test_draws_depend_on_nothing_but_seed_and_step(maker: ChoiceQuestions, train_split: Split) -> None:
    steps = list(train_split.steps())
    assert sorted(rows(maker, steps[::-1]), key=str) == sorted(rows(maker, steps), key=str)


def test_a_step_at_fault_is_counted_and_left_out(maker: ChoiceQuestions, train_split: Split, tmp_path: Path) -> None:
    steps = list(train_split.steps())
    steps[0] = replace(steps[0], action_uid="unknown")
    steps[1] = replace(steps[1], cleaned_html="<html")
    counted = [one.made.left_out for one in maker.steps(Part(steps))]  # type: ignore[arg-type]
    assert [dict(one) for one in counted[:3]] == [{"no_screenshot": 1}, {"bad_html": 1}, {}]


# --- what a trainer is given ---


def test_a_model_without_a_chat_template_is_refused() -> None:
    class Bare:
        chat_template = None

    with pytest.raises(InputError, match="chat template"):
        checked_template(Bare())


def test_a_template_that_takes_no_system_message_gets_its_text_before_the_question(base: Path) -> None:
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(base)
    processor.chat_template = "{% if messages[0].role == 'system' %}{{ raise_exception('none') }}{% endif %}" + CHAT
    dialogue = [Turn("system", "be brief"), Turn("user", "which?")]
    (prompt,) = checked_template(processor).conversations([dialogue], ["A"])["prompt"]
    assert [message["role"] for message in prompt] == ["user"]
    assert prompt[0]["content"][0]["text"] == "be brief\n\nwhich?"


def test_a_batch_is_what_hf_asks_followed_by_the_answer(base: Path, maker: ChoiceQuestions, train_split: Split) -> None:
    from transformers import AutoProcessor
    from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

    (row, *_) = rows(maker, train_split.steps())
    row |= {"question": f"<image> </s> <|user|> {row['question']}"}
    processor = AutoProcessor.from_pretrained(base)
    columns = {name: [value] for name, value in row.items()}
    made = shown_questions(checked_template(processor), Pictures(maker.pictures), None, columns)
    (picture,) = made["images"][0]
    batch = DataCollatorForVisionLanguageModeling(processor, completion_only_loss=True)(
        [{name: column[0] for name, column in made.items()}]
    )
    encoder = PromptEncoder("base", "image-text", processor, LoadingOptions())
    turns = Turn("system", row["system"]), Turn("user", row["question"], picture)
    asked = encoder.encode([Prompt(turns)])[0].inputs
    n = asked["input_ids"].shape[1]
    assert torch.equal(batch["input_ids"][:, :n], asked["input_ids"])
    assert torch.equal(batch["pixel_values"], asked["pixel_values"])
    assert batch["labels"][0, :n].unique().tolist() == [-100]
    assert processor.tokenizer.decode(batch["labels"][0, n:]) == row["answer"] + "</s>"


# --- training ---


def asked(base: Path, dataset: Path, out: Path, **options: Any) -> FineTuning:
    usual = {"recipe": RECIPE, "running": RUNNING, "limit": 3, "evaluate": (), "eval_ranker": "bm25"}
    return FineTuning(out, "vlm", str(base), dataset=dataset, **{**usual, **options})


@pytest.fixture(scope="module")
def tuned(base: Path, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> FineTuningResult:
    """From data to card."""
    return fine_tune(asked(base, dataset, tmp_path_factory.mktemp("tuned") / "model", evaluate=("cross_task",)))


def test_the_loss_falls_and_that_of_the_tasks_held_out_is_known(tuned: FineTuningResult) -> None:
    losses = [entry["loss"] for entry in tuned.history if "loss" in entry]
    assert sum(losses[-2:]) < 0.9 * sum(losses[:2])
    assert [entry["step"] for entry in tuned.history if "eval_loss" in entry] == [4, 8]


def test_the_adapter_is_trained_and_the_weights_below_it_are_the_base_s(tuned: FineTuningResult, base: Path) -> None:
    """What is left is the base, as it was, with the adapter merged in."""
    from peft import PeftModel
    from transformers import AutoModelForImageTextToText

    adapter = safetensors_torch.load_file(tuned.folder / "adapter" / "adapter_model.safetensors")
    assert all(weights.abs().max() > 0 for weights in adapter.values())
    before, untouched = (AutoModelForImageTextToText.from_pretrained(base) for _ in range(2))
    merged = PeftModel.from_pretrained(untouched, tuned.folder / "adapter").merge_and_unload().state_dict()
    left = AutoModelForImageTextToText.from_pretrained(tuned.folder).state_dict()
    assert all(torch.equal(left[name], merged[name]) for name in left)
    changed = [name for name, weights in before.state_dict().items() if not torch.equal(left[name], weights)]
    assert len(changed) == len(adapter) // 2


def test_the_folder_is_asked_by_eval_as_it_was_trained(tuned: FineTuningResult) -> None:
    (results,) = tuned.results
    assert (results["grounding"], results["turns"]) == ("choice", 1)
    assert (results["n_steps"], results["n_not_run"]) == (2, 0)
    assert results["usage"]["image_tokens"] == 16 * results["usage"]["calls"] > 0


def test_the_card_names_what_counts_and_nothing_else(tuned: FineTuningResult) -> None:
    card = of_card(tuned.folder)
    assert (card["lora"], card["grounding"]) == ("4", "choice")
    assert "draws" not in card
    assert card["step"] == "loss held out"


@pytest.mark.nightly
def test_a_training_that_was_ended_goes_on_to_the_same_weights(
    tuned: FineTuningResult, base: Path, dataset: Path, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        fine_tune(asked(base, dataset, tmp_path), KilledAt(6))
    fine_tune(asked(base, dataset, tmp_path, resume=True))
    left, wanted = (folder / "model.safetensors" for folder in (tmp_path, tuned.folder))
    assert left.read_bytes() == wanted.read_bytes()


def test_a_base_of_another_kind_is_refused(tmp_path: Path, dataset: Path) -> None:
    for save in (save_llama, save_blip2):
        with pytest.raises(InputError, match="image-text-to-text"):
            fine_tune(asked(save(tmp_path / save.__name__), dataset, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_all_weights_are_not_trained(tmp_path: Path, base: Path, dataset: Path) -> None:
    with pytest.raises(InputError, match="this baseline needs `lora`"):
        fine_tune(asked(base, dataset, tmp_path, recipe=Recipe()))

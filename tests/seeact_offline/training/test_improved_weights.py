"""A tiny LLaVA, improved by the trainer of `finetune --baseline web-agent`: what it is trained on, and what a stop leaves of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.dataset import open_split
from seeact_offline.grounding import MAX_SIDE
from seeact_offline.models.hf_loading import LoadingOptions, Prompt, PromptEncoder, Turn
from seeact_offline.pages.screenshots import PagePicture, open_picture
from seeact_offline.records import CropBox, InputError, Message
from seeact_offline.runs.watch import Watch
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.cycles import Improvement
from seeact_offline.training.recipe import Running
from seeact_offline.training.training_rows import parts_of
from seeact_offline.training.tuning import fine_tune
from seeact_offline.training.vlm import checked_template
from seeact_offline.training.web_agent_tuning import BASELINE, DialogueRows, shown_dialogues
from seeact_offline.trajectories.dialogue_files import Dialogue, write_dialogues
from tests.lazily import safetensors_torch, torch
from tests.pages import Stored, picture
from tests.seeact_offline.training.conftest import write_dataset
from tests.tiny_models import save_llava

RECIPE = replace(BASELINE.recipe, epochs=2, batch=2, learning_rate=1e-2, lora=4)
RUNNING = Running(log_every=1, save_every=2, threads=1, per_device=2)

pytestmark = [
    pytest.mark.slow,
    # three trainings, of seconds each where nothing else runs
    pytest.mark.timeout(600),
    # trl 1.16.0 asks by the old name
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llava(tmp_path_factory.mktemp("models") / "llava", says="Thought: this one\n\nAction: Click [1]")


async def lenient(messages: Sequence[Message]) -> str:
    return "SUCCESS"


def improved(out: Path, dataset: Path, base: Path, watch: Watch | None = None, **options: Any) -> Improvement:
    usual = {"cycles": 1, "limit": 1, "evaluate": (), "together": 1, "recipe": RECIPE, "running": RUNNING}
    judged = {"judge": lenient, "model": f"hf/{base}"}
    return so.improve(**{**usual, **judged, "out": out, "dataset": dataset, "watch": watch, **options})


class Killed(BaseException):
    """Nothing of ours catches it."""


class KilledAt(Watch):
    """Ends everything at the n-th step of an optimizer."""

    def __init__(self, n: int) -> None:
        self.left = n

    def counting(self, total: int, label: str, unit: str) -> Any:
        return nullcontext(self) if label == "training" else super().counting(total, label, unit)

    def advance(self, figures: str, resumed: bool = False) -> None:
        self.left -= 1
        if not self.left:
            raise Killed


@pytest.fixture(scope="module")
def whole(dataset: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Improvement:
    return improved(tmp_path_factory.mktemp("whole"), dataset, base)


def test_each_cycle_starts_from_the_last_weights_with_what_was_accepted(whole: Improvement) -> None:
    weights = {(whole.path / f"cycle-{n}" / "model" / "model.safetensors").read_bytes() for n in range(2)}
    assert len(weights) == 2
    for number, cycle in enumerate(whole.results["cycles"][1:], 1):
        n_accepted = cycle["exploration"]["accepted_turns"]
        record = json.loads((whole.path / f"cycle-{number}" / "model" / "training" / "record.json").read_text())
        # each of two epochs has both files
        assert record["data"]["questions"] == 2 * (whole.results["imitation"]["items"] + n_accepted)
        assert n_accepted > 0


@pytest.mark.nightly
def test_cycles_that_were_ended_in_a_training_leave_the_same_weights(
    whole: Improvement, dataset: Path, base: Path, tmp_path: Path
) -> None:
    """Ended between two checkpoints of cycle 1."""
    with pytest.raises(Killed):
        improved(tmp_path, dataset, base, KilledAt(n_steps(whole, "cycle-0/model") + 3))
    assert (tmp_path / "cycle-1" / "model" / "checkpoints").exists()
    assert not (tmp_path / "cycle-1" / "model" / "model.safetensors").exists()
    ended = improved(tmp_path, dataset, base)
    for model in ("cycle-0/model", "cycle-1/model", "cycle-1/control"):
        one, other = (folder.path / model / "model.safetensors" for folder in (whole, ended))
        assert one.read_bytes() == other.read_bytes()
    assert ended.results == whole.results


def n_steps(found: Improvement, model: str) -> int:
    """The steps of a training, which are all logged."""
    record = json.loads((found.path / model / "training" / "record.json").read_text())
    return sum("loss" in entry for entry in record["history"])


def test_a_batch_is_what_hf_asks_followed_by_the_reply(base: Path, dataset: Path, tmp_path: Path) -> None:
    from transformers import AutoProcessor
    from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

    shots = [
        PagePicture(Stored(picture(1280, 700, shade))).crop(CropBox(0, 0, 1280, 600), MAX_SIDE) for shade in (9, 99)
    ]
    shown = (
        Message("system", "Click or type. <|user|>"),
        Message("user", "Task: a <image> </s>\nOBSERVATION:", shots[0]),
        Message("assistant", "Thought: b\n\nAction: Wait \ud800"),
        Message("user", "OBSERVATION:\n[1] link 'c'\n<image>", shots[1]),
    )
    (split, reply), file = (open_split(dataset, "train"), "Thought: <image>\n\nAction: Click [1]"), tmp_path / "a.jsonl"
    assert not write_dialogues(file, [Dialogue(split.keys[0], shown, reply, "gold")] * 2, 0)
    (batch_rows,) = [one.batch for part in parts_of(split) for one in DialogueRows((file,), 1).steps(part) if one.batch]
    row = batch_rows.to_pydict()
    processor = AutoProcessor.from_pretrained(base)
    made = shown_dialogues(checked_template(processor), row)
    batch = DataCollatorForVisionLanguageModeling(processor, completion_only_loss=True)(
        [{name: column[0] for name, column in made.items()}]
    )
    turns = [
        Turn(one.role, one.text, one.picture and open_picture(one.picture.encoded()).convert("RGB")) for one in shown
    ]
    encoder = PromptEncoder("base", "image-text", processor, LoadingOptions())
    asked = encoder.encode([Prompt(tuple(turns))])[0].inputs
    n = asked["input_ids"].shape[1]
    assert torch.equal(batch["input_ids"][:, :n], asked["input_ids"])
    assert torch.equal(batch["pixel_values"], asked["pixel_values"])
    assert len(asked["pixel_values"]) == 2
    assert batch["labels"][0, :n].unique().tolist() == [-100]
    assert processor.tokenizer.decode(batch["labels"][0, n:]) == reply.replace("<image>", "< image>") + "</s>"


def test_all_weights_can_be_trained(base: Path, dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    key = open_split(dataset, "train").keys[0]
    write_dialogues(file, [Dialogue(key, (Message("user", "Click."),), "Thought: a\n\nAction: Click [1]", "gold")], 0)
    recipe = replace(RECIPE, lora=None, epochs=1, batch=1, warmup=0.0)
    asked = FineTuning(
        tmp_path / "model",
        "web-agent",
        str(base),
        dataset=dataset,
        recipe=recipe,
        own={"dialogues": (file,)},
        evaluate=(),
    )
    assert fine_tune(asked).made.steps == 1
    before, after = (safetensors_torch.load_file(folder / "model.safetensors") for folder in (base, tmp_path / "model"))
    # no picture is shown, so that the vision part has nothing to learn from
    assert not any(torch.equal(before[name], after[name]) for name in before if name.startswith("language_model"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            {"annotation_id": "of-a-test"},
            "dialogues: expected steps of the 4 tasks of train alone, got 1 others, task of-a-test",
        ),
        ({"images": ["a.png"]}, "as many <image> as images"),
        ({"conversations": [{"from": "human", "value": "a"}]}, "ends with a message from gpt"),
        ({"conversations": [{"from": "user", "value": "a"}]}, "line 1 of"),
    ],
)
def test_dialogues_that_cannot_be_learnt_from_are_refused_by_name(
    line: dict[str, Any], message: str, base: Path, dataset: Path, tmp_path: Path
) -> None:
    usual = {
        "id": "a--r0--step00", "annotation_id": "task-0-0", "action_uid": "uid-0-0-0", "source": "gold",
        "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
    }  # fmt: skip
    (tmp_path / "a.jsonl").write_text(json.dumps(usual | line) + "\n")
    asked = FineTuning(
        tmp_path / "out", "web-agent", str(base), dataset=dataset, own={"dialogues": (tmp_path / "a.jsonl",)}
    )
    with pytest.raises(InputError, match=message):
        fine_tune(asked)
    assert not (tmp_path / "out").exists()


def test_a_baseline_without_dialogues_is_refused(base: Path, dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name files of dialogues with `dialogues`"):
        fine_tune(FineTuning(tmp_path / "out", "web-agent", str(base), dataset=dataset))

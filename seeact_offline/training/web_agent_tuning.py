"""Any image-text-to-text model, fine-tuned as a web agent on dialogues: the pictures and trees that it was shown,
and its next action.

Dialogues are those of `trajectories.dialogue_files`, as `improve` writes them and OpenWebVoyager's files have them.
What is trained on is what `hf/` asks, token for token, followed by the reply; the loss falls on the reply alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from seeact_offline.dataset import Shard, Split
from seeact_offline.files.digest import file_digest
from seeact_offline.models.hf_folder import digest
from seeact_offline.models.hf_loading import Turn
from seeact_offline.pages.screenshots import open_picture
from seeact_offline.records import InputError, StepKey
from seeact_offline.runs.watch import Watch
from seeact_offline.training.baseline import Baseline, FineTuning, TrainedSettings
from seeact_offline.training.bases import build_llava
from seeact_offline.training.recipe import Recipe
from seeact_offline.training.training_rows import EPOCH, HELD_OUT, RowCounts, StepRows, left_out
from seeact_offline.training.vlm import ChatTemplate, load_vlm, open_vlm, sft_trainer
from seeact_offline.trajectories.dialogue_files import DialogueLine, messages_of, read_dialogues

ASKED: Mapping[str, Any] = {"agent": "openwebvoyager", "image_format": "png", "max_tokens": 256}
"""Fields of `EvalConfig` with which such a model is asked. JPEG would change the pixels that are trained on."""
TOGETHER = 8
"""Questions asked at once in evaluation."""


@dataclass(frozen=True, slots=True)
class DialogueRows:
    """Makes the rows of each step from its dialogues."""

    files: tuple[Path, ...]
    epochs: int
    held_out: frozenset[str] = frozenset()
    """Tasks that are not trained on."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([EPOCH, ("dialogue", pa.string()), ("answer", pa.string()), ("images", pa.list_(pa.string()))])

    def steps(self, part: Shard) -> Iterator[StepRows]:
        lines = _by_step(self.files)
        for place in part.places:
            yield self._step_rows(place.step_key, lines.get(place.step_key, []))

    def _step_rows(self, key: StepKey, lines: Sequence[tuple[Path, DialogueLine]]) -> StepRows:
        if not lines:
            return left_out("no_dialogue")
        held_out = key.annotation_id in self.held_out
        dialogues = [list(messages_of(line)) for _, line in lines]
        columns: list[Any] = [
            [HELD_OUT if held_out else 0] * len(lines),
            [json.dumps(messages[:-1]) for messages in dialogues],
            # Arrow takes no half of a surrogate pair
            [messages[-1][1].encode("utf-8", "replace").decode() for messages in dialogues],
            [[str(file.parent.resolve() / name) for name in line.images] for file, line in lines],
        ]
        # every epoch asks the same
        made = RowCounts(held_out_steps=1) if held_out else RowCounts(steps=1, questions=self.epochs * len(lines))
        return StepRows(made, pa.record_batch(columns, schema=self.schema))


@lru_cache(1)
def _by_step(files: tuple[Path, ...]) -> dict[StepKey, list[tuple[Path, DialogueLine]]]:
    """The lines of each step, in the files' order. Raises InputError."""
    lines: dict[StepKey, list[tuple[Path, DialogueLine]]] = {}
    for file in files:
        for line in read_dialogues(file):
            lines.setdefault(line.key, []).append((file, line))
    return lines


def shown_dialogues(template: ChatTemplate, columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Makes TRL's conversations of rows with dialogue, answer and images. Raises RowError `bad_screenshot`."""

    def turns(dialogue: str, names: Sequence[str]) -> Iterator[Turn]:
        pictures = (open_picture(Path(name).read_bytes()).convert("RGB") for name in names)
        for role, text, shows in json.loads(dialogue):
            yield Turn(role, text, next(pictures) if shows else None)

    dialogues = map(turns, columns["dialogue"], columns["images"])
    return template.conversations(map(list, dialogues), columns["answer"])


class WebAgentTuning:
    """A web agent that is about to be trained."""

    def __init__(self, asked: FineTuning, split: Split) -> None:
        """Raises InputError, also for dialogues about other tasks than those of the train split."""
        self._asked, self._files = asked, dialogues_of(asked)
        self._folder, self._processor, self._template = open_vlm(asked.resolved_base, asked.running.attention)
        check_train_steps(_by_step(self._files), split)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"base": digest(self._folder), "dialogues": [file_digest(file) for file in self._files]}

    @property
    def settings(self) -> TrainedSettings:
        return TrainedSettings(self._folder, str(self._asked.resolved_base))

    def maker(self, held_out: frozenset[str], watch: Watch) -> DialogueRows:
        return DialogueRows(self._files, self._asked.resolved_recipe.epochs, held_out)

    def trainer(self, maker: DialogueRows, table: Any) -> Any:
        return sft_trainer(self._asked, self._processor, table, partial(shown_dialogues, self._template))


def dialogues_of(asked: FineTuning) -> tuple[Path, ...]:
    """The files to learn from. Raises InputError where none are named, or one does not exist."""
    files = tuple(Path(file) for file in asked.own.get("dialogues", ()))
    if not files:
        raise InputError("dialogues", sentence="name files of dialogues with `dialogues`")
    for file in files:
        if not file.is_file():
            raise InputError("dialogues", sentence=f"{file} does not exist; name files of dialogues with `dialogues`")
    return files


def check_train_steps(
    keys: Mapping[StepKey, Any] | Sequence[StepKey], split: Split, argument: str = "dialogues"
) -> None:
    """Raises InputError for `argument` where a step is not of this train split, naming its task."""
    trained = frozenset(split.keys)
    foreign = sorted(key for key in keys if key not in trained)
    if foreign:
        got = f"{len(foreign)} others, task {foreign[0].annotation_id} first"
        raise InputError(argument, f"steps of the {len(split.tasks)} tasks of {split.name} alone", got)


BASELINE = Baseline(
    title="Web agent",
    base=None,
    open=WebAgentTuning,
    load=load_vlm,
    evaluation=lambda asked: {**ASKED, "model_args": {"batch_size": TOGETHER}, "concurrency": TOGETHER},
    small=build_llava,
    learns="act on a web page, seen through a window with its accessibility tree (OpenWebVoyager, [2410.19609]"
    "(https://arxiv.org/abs/2410.19609)), on recorded pages alone",
    limits="Nothing of its dialogues was cut off.",
    tag="image-text-to-text",
    # ours, for one GPU: published is the training of all weights, at 1e-5
    recipe=Recipe(epochs=2, batch=64, learning_rate=1e-4, warmup=0.03, lora=16),
    ignores=frozenset(
        {"draws", "choices", "none_share", "hard_negatives", "max_context", "max_question", "group_by_length"}
    ),
    own=("dialogues",),
    check_own=dialogues_of,
    packages={"trl": "vlm", "peft": "vlm"},
)

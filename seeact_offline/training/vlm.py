"""Any image-text-to-text model, fine-tuned with LoRA by TRL's SFTTrainer on SeeAct's own questions and their right
answers.

The questions are those of `eval --grounding choice --turns 1`: a group's options in one message with the part of the
page that they are in, answered by the final lines.
(Of two turns the first is a free description, for which there is no right answer.)

What is trained on is what `hf/` asks, token for token: text before picture, tokens that a page spells out made
harmless, a system message put before the question where the model's template takes none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from seeact_offline.dataset import Shard, Split
from seeact_offline.grounding import Grounding
from seeact_offline.grounding.conversation import Question
from seeact_offline.models.hf_folder import digest
from seeact_offline.models.hf_loading import (
    Turn,
    chat_messages,
    control_tokens,
    fitted,
    harmless,
    limit_pixels,
    load_processor,
    system_merged,
)
from seeact_offline.ranking.stage import RankConfig, rank
from seeact_offline.records import InputError, ModelSpecError, RowError, Step, StepError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.strategy_opening import open_strategy
from seeact_offline.runs.watch import Watch
from seeact_offline.training.baseline import Baseline, FineTuning, TrainedSettings
from seeact_offline.training.bases import base_folder, build_llava, check_model, load_model, load_part, loading_options
from seeact_offline.training.mindact_rows import check_letters
from seeact_offline.training.recipe import Recipe
from seeact_offline.training.trainer import RANKS, arguments, lora_config
from seeact_offline.training.training_rows import (
    EPOCH,
    HELD_OUT,
    PLACE,
    Pictures,
    RowCounts,
    StepRows,
    check_scores,
    epochs_of,
    kept_pictures,
    left_out,
    open_pictures,
    open_scores,
    place_columns,
    places_of,
)

TEXTS = (("system", pa.string()), ("question", pa.string()), ("answer", pa.string()))
"""Columns of a question in words."""
TOGETHER = 8
"""Questions asked at once in evaluation: a picture takes memory."""
NEW_TOKENS = 200
"""Most tokens of an answer, in evaluation: three lines, of which the last may be long."""


# --- questions ---


@dataclass(frozen=True, slots=True)
class ChoiceQuestions:
    """Makes the questions: of each step every group with a right element, and by the seed one without."""

    config: EvalConfig
    """The configuration of their evaluation, whose data set is not used."""
    recipe: Recipe
    scores: Path
    """The score file that decides which candidates are offered together."""
    pictures: Path
    """The folder of `kept_pictures`."""
    held_out: frozenset[str] = frozenset()
    """Tasks that are not trained on."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([EPOCH, *TEXTS, *PLACE])

    def steps(self, part: Shard) -> Iterator[StepRows]:
        grounding = open_strategy(self.config).grounding
        for step in part.steps():
            try:
                yield self._step_rows(step, grounding)
            except StepError as error:
                yield left_out(error.name)

    def _step_rows(self, step: Step, grounding: Grounding) -> StepRows:
        """The questions of a step. Raises StepError for one that nothing can be learnt from."""
        pictures = open_pictures(self.pictures)
        if step.key not in pictures:
            raise RowError("no_screenshot")
        prepared = prepare(step, open_scores(self.scores), self.config.top_k, needs_picture=False)
        asked = self._drawn(grounding.questions(replace(prepared, picture=pictures.page(step.key))), step)
        if not asked:
            raise StepError("no_question_drawn")
        held_out = step.annotation_id in self.held_out
        columns: list[Any] = [
            [HELD_OUT if held_out else 0] * len(asked),
            [question.system for question in asked],
            [question.turns[0] for question in asked],
            [question.ideal[-1] for question in asked],
            *place_columns(step, [question.offered for question in asked]),
        ]
        # every epoch asks the same
        made = (
            RowCounts(held_out_steps=1) if held_out else RowCounts(steps=1, questions=self.recipe.epochs * len(asked))
        )
        return StepRows(made, pa.record_batch(columns, schema=self.schema))

    def _drawn(self, asked: Sequence[Question], step: Step) -> list[Question]:
        right = [question for question in asked if not step.truth.positives.isdisjoint(question.offered)]
        wrong = [question for question in asked if question not in right]
        chance, share = random.Random(f"{self.recipe.seed}\n{step.key}"), self.recipe.none_share
        # as many without as make up their share, where every step has one with
        if wrong and chance.random() < share / (1 - share):
            right.append(chance.choice(wrong))
        return right


# --- what a trainer is given ---


class ChatTemplate(NamedTuple):
    """The way in which a model's chat template takes conversations."""

    control_tokens: tuple[str, ...]
    """Tokens that no text may spell out, the longest first."""
    merges_system: bool
    """It takes no system message."""

    def conversations(self, dialogues: Iterable[Sequence[Turn]], answers: Sequence[str]) -> dict[str, list[Any]]:
        """Conversations with their pictures beside them, as TRL takes them."""
        made: dict[str, list[Any]] = {"prompt": [], "completion": [], "images": []}
        for turns, answer in zip(dialogues, answers, strict=True):
            plain = [replace(turn, text=harmless(turn.text, self.control_tokens)) for turn in turns]
            made["prompt"].append(chat_messages(system_merged(plain) if self.merges_system else plain))
            made["completion"].append(chat_messages([Turn("assistant", harmless(answer, self.control_tokens))]))
            made["images"].append([turn.picture for turn in turns if turn.picture is not None])
        return made


def checked_template(processor: Any) -> ChatTemplate:
    """Raises InputError for a model without a chat template, or with one that takes no question with a picture."""
    from jinja2 import TemplateError

    template = getattr(processor, "chat_template", None)
    if not isinstance(template, str):
        raise InputError("base", "a processor with one chat template", "none" if template is None else "several")
    control = tuple(control_tokens(processor.tokenizer, template))
    refused = ""
    for merges in (False, True):
        turns = [Turn("system", "a"), Turn("user", "b")]
        tried = chat_messages(system_merged(turns) if merges else turns)
        tried[-1]["content"].append({"type": "image"})
        try:
            processor.apply_chat_template(tried, tokenize=False, add_generation_prompt=True)
            return ChatTemplate(control, merges)
        except TemplateError as error:
            refused = str(error)
    raise InputError("base", "a chat template that takes a question with a picture", refused)


def shown_questions(
    template: ChatTemplate, pictures: Pictures, max_pixels: int | None, columns: Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]]:
    """Makes TRL's conversations of rows with TEXTS and PLACE, by the process that loads a batch. `max_pixels`: most of
    a picture; None: the processor bounds them. Raises RowError `bad_screenshot`."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    dialogues = [
        [Turn("system", row["system"]), Turn("user", row["question"], fitted(pictures.of_row(row), max_pixels))]
        for row in rows
    ]
    return template.conversations(dialogues, [row["answer"] for row in rows])


# --- the baseline ---


class VlmTuning:
    """A model that is about to be trained."""

    def __init__(self, asked: FineTuning, split: Split) -> None:
        """Raises InputError, and PromptError."""
        if asked.resolved_recipe.lora is None:
            raise InputError("lora", sentence="this baseline needs `lora`: it trains matrices of low rank alone")
        self._asked, self._split = asked, split
        self._folder, self._processor, self._template = open_vlm(asked.resolved_base, asked.running.attention)
        self._max_pixels = asked.own.get("max_pixels")
        # the budget that the processor does not have itself
        self._unbounded = self._max_pixels
        if self._max_pixels is not None and limit_pixels(self._processor, self._max_pixels):
            self._unbounded = None
        self._config = EvalConfig(prompts=asked.prompts, seed=asked.resolved_recipe.seed, **_ASKED)
        self._strategy = open_strategy(self._config)
        check_letters(self._processor.tokenizer, self._config.group_size + 1)
        if asked.scores is not None:
            check_scores(asked.scores, split)
        else:
            try:
                self._ranking.check_chosen()
                self._ranking.open_ranker()
            except InputError as error:
                raise error.renamed("eval_ranker") from None

    @property
    def identity(self) -> Mapping[str, Any]:
        ranker = {} if self._asked.scores is not None else {"ranker": self._ranking.ranker_name}
        budget = {} if self._max_pixels is None else {"max_pixels": self._max_pixels}
        return {"base": digest(self._folder), **self._strategy.identity, **ranker, **budget}

    @property
    def settings(self) -> TrainedSettings:
        budget: dict[str, Any] = {}
        if self._unbounded != self._max_pixels:
            # the older names win where they say something
            budget = {"size": dict(self._processor.image_processor.size), "min_pixels": None, "max_pixels": None}
        return TrainedSettings(self._folder, str(self._asked.resolved_base), pictures=budget)

    def maker(self, held_out: frozenset[str], watch: Watch) -> ChoiceQuestions:
        pictures = kept_pictures(self._split, self._asked.out, self._asked.processes)
        return ChoiceQuestions(self._config, self._asked.resolved_recipe, self._ranked(watch), pictures, held_out)

    def trainer(self, maker: ChoiceQuestions, table: Any) -> Any:
        show = partial(shown_questions, self._template, Pictures(maker.pictures), self._unbounded)
        return sft_trainer(self._asked, self._processor, table, show)

    @cached_property
    def _ranking(self) -> RankConfig:
        asked = self._asked
        return RankConfig(dataset=asked.dataset, split=asked.split, limit=asked.limit, ranker=asked.eval_ranker)

    def _ranked(self, watch: Watch) -> Path:
        """The score file of the training steps: the one named, or one made by the ranker of the evaluation."""
        if self._asked.scores is not None:
            return self._asked.scores
        path = self._asked.out / RANKS
        if not path.exists():
            rank(self._ranking, path, watch)
        return path


def sft_trainer(asked: FineTuning, processor: Any, table: Any, show: Callable[..., Any]) -> Any:
    """TRL's Trainer with the base. `table`: rows with an epoch. `show`: their columns -> TRL's conversations."""
    from trl import SFTConfig, SFTTrainer

    recipe, epochs = asked.resolved_recipe, epochs_of(table)
    train, held_out = (
        table.select(places_of(epochs, epoch, batch)).remove_columns(EPOCH[0]).with_transform(show)
        for epoch, batch in ((0, recipe.batch), (HELD_OUT, 1))
    )
    # a picture's tokens must not be cut, and an answer comes last
    more = {"max_length": None, "completion_only_loss": True}
    lora = None if recipe.lora is None else lora_config(recipe.lora, "CAUSAL_LM", target_modules="all-linear")
    return SFTTrainer(
        model=load_vlm(asked),
        args=arguments(SFTConfig, asked, len(held_out) > 0, **more),
        train_dataset=train,
        eval_dataset=held_out if len(held_out) else None,
        processing_class=processor,
        peft_config=lora,
    )


_ASKED: dict[str, Any] = {"grounding": "choice", "turns": 1}
"""Fields of `EvalConfig`, in training and evaluation."""


def _evaluation(asked: FineTuning) -> dict[str, Any]:
    """Fields of `EvalConfig` with which the trained model is asked."""
    most = asked.own.get("max_pixels")
    budget = {} if most is None else {"max_pixels": most}
    running = {"model_args": {"batch_size": TOGETHER, **budget}, "concurrency": TOGETHER, "max_tokens": NEW_TOKENS}
    # JPEG would change the pixels that were trained on
    return {**_ASKED, **running, "image_format": "png"}


def load_vlm(asked: FineTuning) -> Any:
    """The base, to be trained. Raises InputError."""
    from transformers import AutoModelForImageTextToText

    return load_model(AutoModelForImageTextToText, base_folder(asked.resolved_base), **loading_options(asked))


class OpenVlm(NamedTuple):
    """A model that can be trained, but for its weights."""

    folder: Path
    processor: Any
    template: ChatTemplate


def open_vlm(base: object, attention: str | None, argument: str = "base") -> OpenVlm:
    """Raises InputError about `argument` for a model that does not continue a prompt with a picture,
    that lacks weights, or this attention."""
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, AutoConfig

    folder = base_folder(base, argument)
    config = load_part(AutoConfig, folder, argument)
    if type(config) not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING or config.is_encoder_decoder:
        wanted = "an image-text-to-text model that continues its prompt"
        raise InputError(argument, wanted, f"{base} of type {config.model_type}")
    try:
        processor = load_processor(str(base), folder, "image-text")
        template = checked_template(processor)
    except (InputError, ModelSpecError) as error:
        raise error.renamed(argument) from None
    check_model(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)], folder, argument, attention=attention)
    return OpenVlm(folder, processor, template)


BASELINE = Baseline(
    title="Vision-language baseline",
    base=None,
    open=VlmTuning,
    load=load_vlm,
    evaluation=_evaluation,
    small=build_llava,
    learns="choose the next element among a group's and say what is done there (SeeAct, [2401.01614]"
    "(https://arxiv.org/abs/2401.01614), grounding by textual choices, in one turn)",
    limits="Nothing of its questions was cut off.",
    tag="image-text-to-text",
    # ours: nobody has published any
    recipe=Recipe(epochs=1, batch=16, learning_rate=1e-4, warmup=0.03, lora=16),
    ignores=frozenset({"draws", "choices", "hard_negatives", "max_context", "max_question", "group_by_length"}),
    own=("max_pixels",),
    packages={"trl": "vlm", "peft": "vlm"},
)

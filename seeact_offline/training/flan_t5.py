"""The FLAN-T5 baseline: a text-to-text model fine-tuned on multi-choice questions, from a checkpoint or from scratch;
and its Trainer, which BLIP-2 with a T5 has too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from seeact_offline.dataset import Split
from seeact_offline.models.hf_folder import digest
from seeact_offline.records import InputError
from seeact_offline.replies.elimination_answer import read_answer
from seeact_offline.runs.watch import Watch
from seeact_offline.training.baseline import Baseline, FineTuning, TrainedSettings
from seeact_offline.training.bases import base_folder, build_t5, check_model, load_model, load_part, loading_options
from seeact_offline.training.mindact_rows import (
    CUT,
    LEARNS,
    MultiChoice,
    check_tokenizer,
    evaluation_fields,
    open_multichoice,
)
from seeact_offline.training.recipe import NEW_TOKENS
from seeact_offline.training.trainer import arguments, lora_config
from seeact_offline.training.training_rows import HELD_OUT, EpochRows, LengthGroupedOrder

IGNORED = -100
"""The label of tokens outside an answer."""


def seq2seq_trainer(model: Any, processor: Any, collator: Any, table: Any, asked: FineTuning) -> Any:
    """A Trainer for text-to-text models: each epoch has its own rows of the table,
    and those held out are answered meanwhile.

    `processor`: a tokenizer, or a processor of pictures that has one.
    `collator`: rows of the table -> the model's inputs.
    """
    import transformers

    recipe = asked.resolved_recipe
    train, held_out = EpochRows(table, batch=recipe.batch), EpochRows(table, HELD_OUT)
    tokenizer = getattr(processor, "tokenizer", processor)

    class TokenMeans(transformers.Seq2SeqTrainer):  # type: ignore[misc]
        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            outputs = model(**inputs)
            loss = outputs["loss"]
            if num_items_in_batch is not None:
                # T5 gives the mean over a batch's tokens, and ignores how many all batches of a step have: the Trainer
                # would add up such means, on several devices too, whose gradients it averages
                share = (inputs["labels"] != IGNORED).sum() / num_items_in_batch
                loss = loss * share * self.accelerator.num_processes
            return (loss, outputs) if return_outputs else loss

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            # the Trainer's own order by length reads the lengths of the first epoch's questions for all epochs
            if recipe.group_by_length:
                return LengthGroupedOrder(train, recipe.batch, recipe.seed)
            return super()._get_train_sampler(train_dataset)

    class NewDraws(transformers.TrainerCallback):  # type: ignore[misc]
        def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            # a resumed training may begin in the middle of an epoch
            train.begin_epoch(int((state.epoch or 0) + 1e-6))

    if recipe.lora is not None:
        from peft import get_peft_model

        model = get_peft_model(model, lora_config(recipe.lora, "SEQ_2_SEQ_LM"))
    # of a generated answer, the token that a decoder starts with counts too
    generating = {"predict_with_generate": True, "generation_max_length": NEW_TOKENS + 1, "label_names": ["labels"]}
    trainer = TokenMeans(
        model=model,
        args=arguments(transformers.Seq2SeqTrainingArguments, asked, len(held_out) > 0, **generating),
        train_dataset=train,
        eval_dataset=held_out if len(held_out) else None,
        data_collator=collator,
        processing_class=processor,
        compute_metrics=answer_metrics(tokenizer),
        callbacks=[NewDraws()],
    )
    # so that it counts a step's tokens for `compute_loss`
    trainer.model_accepts_loss_kwargs = True
    return trainer


def answer_metrics(tokenizer: Any) -> Callable[[Any], dict[str, float]]:
    """Measures the Trainer's generated answers by `multichoice_accuracy`."""

    def texts(ids: Any) -> list[str]:
        # -100 fills the room after an answer's end
        filled = np.where(ids < 0, tokenizer.pad_token_id, ids)
        return list(tokenizer.batch_decode(filled, skip_special_tokens=True))

    return lambda answers: multichoice_accuracy(texts(answers.predictions), texts(answers.label_ids))


def multichoice_accuracy(answers: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """`letter_accuracy`: the right option. `answer_accuracy`: the right operation and value too.
    Texts as T5 writes them."""
    pairs = [
        (read_answer(answer, "seq2seq"), read_answer(truth, "seq2seq"))
        for answer, truth in zip(answers, right, strict=True)
    ]
    letters = sum(answer.letter == truth.letter for answer, truth in pairs)
    return {
        "letter_accuracy": letters / len(pairs),
        "answer_accuracy": sum(answer == truth for answer, truth in pairs) / len(pairs),
    }


# --- the baseline ---


class FlanT5Tuning:
    """A T5 ready to be trained."""

    def __init__(self, asked: FineTuning, split: Split) -> None:
        """Raises InputError for a base that is not a T5, and PromptError."""
        from transformers import AutoConfig, AutoTokenizer, T5ForConditionalGeneration

        self._asked, self._folder = asked, base_folder(asked.resolved_base)
        kind = load_part(AutoConfig, self._folder).model_type
        if kind != "t5":
            raise InputError("base", "a T5 such as FLAN-T5", f"{asked.resolved_base} of type {kind}")
        check_model(T5ForConditionalGeneration, self._folder, attention=asked.running.attention)
        self._tokenizer = load_part(AutoTokenizer, self._folder)
        check_tokenizer(self._tokenizer)
        self._questions = open_multichoice(asked, split)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"base": digest(self._folder), "prompts_digest": self._questions.pack.digest}

    @property
    def settings(self) -> TrainedSettings:
        return TrainedSettings(self._folder, str(self._asked.resolved_base))

    def maker(self, held_out: frozenset[str], watch: Watch) -> MultiChoice:
        return dataclasses.replace(self._questions, held_out=held_out, tokenizer=self._tokenizer)

    def trainer(self, maker: MultiChoice, table: Any) -> Any:
        """Raises InputError for a checkpoint without all its weights."""
        from transformers import DataCollatorForSeq2Seq

        model = load_t5(self._asked)
        if len(maker.tokenizer) > model.config.vocab_size:
            got = f"{len(maker.tokenizer)} tokens for a model of {model.config.vocab_size}"
            raise InputError("base", "a tokenizer that belongs to the model", got)
        collator = DataCollatorForSeq2Seq(maker.tokenizer, model, pad_to_multiple_of=8)
        return seq2seq_trainer(model, maker.tokenizer, collator, table, self._asked)


def load_t5(asked: FineTuning) -> Any:
    """The base, to be trained. Raises InputError."""
    from transformers import T5ForConditionalGeneration

    return load_model(T5ForConditionalGeneration, base_folder(asked.resolved_base), **loading_options(asked))


BASELINE = Baseline(
    title="FLAN-T5 baseline",
    base="google/flan-t5-base",
    open=FlanT5Tuning,
    load=load_t5,
    evaluation=evaluation_fields,
    small=build_t5,
    learns=LEARNS,
    limits=CUT,
    tag="text2text-generation",
)

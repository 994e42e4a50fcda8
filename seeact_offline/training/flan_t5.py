"""The FLAN-T5 baseline: a text-to-text model fine-tuned on multi-choice questions, from a checkpoint or from scratch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from seeact_offline.dataset import Split
from seeact_offline.models.hf_folder import digest
from seeact_offline.records import InputError
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
from seeact_offline.training.trainer import TrainingProgress, seq2seq_trainer


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

    def trainer(self, maker: MultiChoice, table: Any, progress: TrainingProgress) -> Any:
        from transformers import DataCollatorForSeq2Seq

        model = self._model(maker.tokenizer)
        collator = DataCollatorForSeq2Seq(maker.tokenizer, model, pad_to_multiple_of=8)
        return seq2seq_trainer(model, maker.tokenizer, collator, table, self._asked, progress)

    def _model(self, tokenizer: Any) -> Any:
        """Raises InputError for a checkpoint without all its weights."""
        model = load_t5(self._asked)
        if len(tokenizer) > model.config.vocab_size:
            got = f"{len(tokenizer)} tokens for a model of {model.config.vocab_size}"
            raise InputError("base", "a tokenizer that belongs to the model", got)
        return model


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

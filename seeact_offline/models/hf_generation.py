"""A model of transformers in this process: prompts in, texts out, many at once.

Three kinds: image-text-to-text, text-only causal, and text-to-text (encoder and decoder, such as T5). Decoding is greedy;
above temperature 0 each prompt draws with a seed of its own, so that its text does not depend on who shares its batch.

Prompts become tensors in one thread (`prepare`) while another generates (`answer`).
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seeact_offline.models.failures import truncated
from seeact_offline.models.hf_folder import ModelParts
from seeact_offline.models.hf_loading import LoadingOptions, chat_template, load_model, load_processor, quiet
from seeact_offline.models.hf_prompts import EncodedPrompts, InputLimit, Prompt, PromptEncoder
from seeact_offline.records import CallError, Completion, Usage

Answer = Completion | CallError
"""The outcome of a prompt: a text, or the reason for none."""


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """Prompts that are answered together."""

    prompts: Sequence[Prompt]
    parts: Sequence[EncodedPrompts] = ()
    """Empty where they did not fit in memory all at once."""


class Generator:
    """One loaded model."""

    def __init__(
        self,
        name: str,
        parts: ModelParts,
        loading: LoadingOptions,
        max_tokens: int,
        temperature: float,
        stop: threading.Event,
    ) -> None:
        """`temperature`: 0 for greedy decoding. `stop`: once set, what is being generated ends with the next token.

        Raises ModelSpecError for what cannot be loaded.
        """
        self.batch_size = loading.batch_size
        """Halved for good when a batch did not fit in memory."""
        self._stop = stop
        self._name, self._max_tokens, self._temperature = name, max_tokens, temperature
        with quiet():
            self._kind, self._model = load_model(name, parts, loading)
            processor = load_processor(name, parts.processor, self._kind)
        self._tokenizer = getattr(processor, "tokenizer", processor)
        self._tokenizer.padding_side = "right" if self._model.config.is_encoder_decoder else "left"
        ends = self._model.generation_config.eos_token_id
        ends = self._tokenizer.eos_token_id if ends is None else ends
        # tokens that end a text
        self._ends = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token_id = min(self._ends, default=0)
        limit = None
        if loading.max_input_tokens is not None:
            limit = InputLimit(*map(int, loading.max_input_tokens.split("+")))
        template = chat_template(name, self._kind, processor)
        self._encoder = PromptEncoder(name, self._kind, processor, template, loading.max_pixels, limit)
        # a copy, as a tokenizer serves one thread at a time
        self._tokenizer = copy.deepcopy(self._tokenizer)

    def prepare(self, prompts: Sequence[Prompt]) -> PreparedBatch:
        """The prompts as tensors. May be called while others are answered. Raises ModelSpecError as `PromptEncoder.encode`."""
        with quiet():
            try:
                return PreparedBatch(prompts, self._encoder.encode(prompts))
            except MemoryError:
                return PreparedBatch(prompts)

    def answer(self, batch: PreparedBatch) -> list[Answer]:
        """One answer a prompt, in order. A batch that does not fit in memory is asked again in two halves, once.

        Raises ModelSpecError as `prepare`.
        """
        prompts, answers = batch.prompts, None
        with quiet():
            # a batch may have been prepared before an earlier one was halved
            if len(prompts) <= self.batch_size:
                answers = self._tried(prompts, batch.parts)
            if answers is None and len(prompts) > 1:
                self.batch_size = half = min(self.batch_size, (len(prompts) + 1) // 2)
                parts = [prompts[begin : begin + half] for begin in range(0, len(prompts), half)]
                return [one for part in parts for one in self._tried(part) or _out_of_memory(part)]
            return answers or _out_of_memory(prompts)

    def _tried(self, prompts: Sequence[Prompt], encoded: Sequence[EncodedPrompts] = ()) -> list[Answer] | None:
        """None where memory did not suffice. The error is let go of here, with the tensors that its frames hold."""
        import torch

        try:
            answers: dict[int, Answer] = {}
            parts = list(encoded or self._encoder.encode(prompts))
            while parts:
                part = parts.pop(0)
                with torch.inference_mode():
                    found = self._pass(part.inputs, [prompts[place] for place in part.places])
                pairs = list(zip(part.places, found, strict=True))
                answers.update((place, one) for place, one in pairs if one is not None)
                if left := [place for place, one in pairs if one is None]:
                    parts.append(self._encoder.encode_some(prompts, left))
            return [answers[place] for place in range(len(prompts))]
        except (torch.OutOfMemoryError, MemoryError):
            pass
        except RuntimeError as error:
            # what PyTorch raises where the computer's own memory is too small
            if "DefaultCPUAllocator" not in str(error):
                raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _pass(self, inputs: Any, prompts: Sequence[Prompt]) -> list[Answer | None]:
        """Answers at least one of the encoded prompts; None for those to be asked again, without the ones that are done.

        No text may be longer than the tightest prompt leaves room for. One that is not at its end by then, of a prompt
        that has more room, starts again.
        """
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        # tokens of prompt and reply together (of each, for an encoder and decoder); not bounded in T5
        context = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        rooms = [self._max_tokens] * len(lengths)
        if context is not None and self._model.config.is_encoder_decoder:
            rooms = [min(self._max_tokens, context - 1) if length <= context else 0 for length in lengths]
        elif context is not None:
            rooms = [min(self._max_tokens, context - length) for length in lengths]
        if min(rooms) < 1:
            said = f"tokens, the model takes {context}: nothing is cut off"
            too_long = [CallError("too_long", f"the prompt has {length} {said}") for length in lengths]
            return [error if room < 1 else None for error, room in zip(too_long, rooms, strict=True)]
        # the token that stands for a piece of a picture; -1 is no token
        token = getattr(self._model.config, "image_token_id", None)
        images = [int(n) for n in (inputs["input_ids"] == (-1 if token is None else int(token))).sum(dim=1)]
        answers: list[Answer | None] = []
        rows = self._generated(inputs, min(rooms), prompts)
        for row, length, room, image in zip(rows, lengths, rooms, images, strict=True):
            end = next((place for place, token in enumerate(row) if token in self._ends), None)
            text, ended = row[:end], end is not None
            usage = Usage(1, length, len(text) + ended, image, 0.0)
            answers.append(self._read(text, ended, room, usage) if ended or room == min(rooms) else None)
        return answers

    def _generated(self, inputs: Any, most: int, prompts: Sequence[Prompt]) -> list[list[int]]:
        """The new tokens of each prompt, at most so many; after its end a row is filled up."""
        import torch

        def is_stopped(ids: Any, scores: Any, **_: Any) -> Any:
            return torch.full((len(ids),), self._stop.is_set(), device=ids.device)

        inputs = inputs.to(self._model.device)
        if self._kind == "image-text":
            inputs = inputs.to(self._model.dtype)
        config = copy.deepcopy(self._settings)
        config.max_new_tokens = most
        if config.min_new_tokens is not None:
            config.min_new_tokens = min(config.min_new_tokens, most)
        draws = [GumbelNoise([prompt.seed for prompt in prompts], self._temperature)] if self._temperature else []
        out = self._model.generate(
            **inputs, generation_config=config, logits_processor=draws, stopping_criteria=[is_stopped]
        )
        # an encoder's prompt is not repeated, the decoder's first token is
        start = 1 if self._model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        rows: list[list[int]] = out[:, start:].tolist()
        return rows

    def _read(self, tokens: list[int], ended: bool, room: int, usage: Usage) -> Answer:
        text = self._tokenizer.decode(tokens, skip_special_tokens=True)
        if not ended:
            of_what = f"max_tokens {room}" if room == self._max_tokens else f"the {room} tokens that the model has left"
            return CallError("truncated", truncated(text, of_what), usage)
        if not text.strip():
            return CallError("empty_reply", "the model ended its reply before it said anything", usage)
        return Completion(text, usage)

    @cached_property
    def _settings(self) -> Any:
        """The model's own generation settings, without their sampling: one text, the most likely token each time."""
        config = copy.deepcopy(self._model.generation_config)
        config.update(
            do_sample=False, num_beams=1, temperature=None, top_p=None, top_k=None, max_length=None, min_p=None
        )
        config.update(
            typical_p=None, pad_token_id=self._tokenizer.pad_token_id, eos_token_id=sorted(self._ends) or None
        )
        return config


# --- drawing ---


class GumbelNoise:
    """Adds Gumbel noise to scores at a temperature: the most likely token afterwards is one drawn at that temperature.

    Each row has a generator of its own, on the CPU, so that it draws the same in every batch and on every device.
    """

    def __init__(self, seeds: Sequence[int], temperature: float) -> None:
        import torch

        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._temperature = temperature

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        noise = torch.stack([torch.empty(scores.shape[1]).exponential_(generator=one) for one in self._generators])
        return scores.float() / self._temperature - noise.clamp_min(1e-20).log().to(scores.device)


def _out_of_memory(prompts: Sequence[Prompt]) -> list[Answer]:
    detail = f"{len(prompts)} at once did not fit in memory: a smaller batch_size or max_pixels may"
    return [CallError("out_of_memory", detail) for _ in prompts]

"""A model of transformers in this process: prompts in, texts out, many at once.

Three kinds: image-text-to-text, text-only causal, and text-to-text (encoder and decoder, such as T5). Decoding is
greedy; above temperature 0 each prompt draws with a seed of its own, so that its text does not depend on who shares its
batch.

Prompts become tensors in one thread (`prepare`) while another generates (`answer`): see `Batches`.
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from seeact_offline.models.failures import truncated
from seeact_offline.models.hf_folder import ModelParts
from seeact_offline.models.hf_loading import (
    EncodedPrompts,
    LoadingOptions,
    Prompt,
    PromptEncoder,
    load_model,
    load_processor,
    quiet,
)
from seeact_offline.models.provider import ModelOptions
from seeact_offline.records import CallError, Completion, Usage

Answer = Completion | CallError
"""The outcome of a prompt: a text, or the reason for none."""
Work = Callable[[], Sequence[Answer]]
"""Answers a batch that is prepared."""


class Generator:
    """One loaded model."""

    def __init__(
        self, name: str, parts: ModelParts, loading: LoadingOptions, options: ModelOptions, stop: threading.Event
    ) -> None:
        """`stop`: once set, what is being generated ends with the next token. Raises ModelSpecError for what cannot be
        loaded."""
        self.batch_size = loading.batch_size
        """Halved for good when a batch did not fit in memory."""
        self._max_tokens, self._temperature, self._stop = options.max_tokens, options.temperature or 0.0, stop
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
        self._encoder = PromptEncoder(name, self._kind, processor, loading)
        # a copy, as a tokenizer serves one thread at a time
        self._tokenizer = copy.deepcopy(self._tokenizer)

    def prepare(self, prompts: Sequence[Prompt]) -> Work:
        """Makes the prompts tensors, also while others are answered; the result answers them. Raises ModelSpecError as
        `PromptEncoder.encode`."""
        with quiet():
            try:
                return partial(self.answer, prompts, self._encoder.encode(prompts))
            # they did not fit in memory all at once
            except MemoryError:
                return partial(self.answer, prompts)

    def answer(self, prompts: Sequence[Prompt], encoded: Sequence[EncodedPrompts] = ()) -> list[Answer]:
        """One answer a prompt, in order. A batch that does not fit in memory is asked again in two halves, once.

        Raises ModelSpecError as `prepare`.
        """
        answers = None
        with quiet():
            # a batch may have been prepared before an earlier one was halved
            if len(prompts) <= self.batch_size:
                answers = self._tried(prompts, encoded)
            if answers is None and len(prompts) > 1:
                self.batch_size = half = min(self.batch_size, (len(prompts) + 1) // 2)
                parts = [prompts[begin : begin + half] for begin in range(0, len(prompts), half)]
                return [answer for part in parts for answer in self._tried(part) or _out_of_memory(part)]
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
                    answers |= self._pass(part, [prompts[place].seed for place in part.places])
                if left := [place for place in part.places if place not in answers]:
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

    def _pass(self, part: EncodedPrompts, seeds: Sequence[int]) -> dict[int, Answer]:
        """Answers at least one of the encoded prompts, by its place; the others are to be asked again without those
        that are done.

        No text may be longer than the tightest prompt leaves room for. One that is not at its end by then, of a prompt
        that has more room, starts again.
        """
        inputs, config = part.inputs, self._model.config
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        # tokens of prompt and reply together (of each, for an encoder and decoder); not bounded in T5
        context = getattr(config.get_text_config(), "max_position_embeddings", None)
        bound: Any = inf if context is None else context
        taken = [1 if config.is_encoder_decoder and length <= bound else length for length in lengths]
        rooms = [min(self._max_tokens, bound - n) for n in taken]
        if min(rooms) < 1:
            too_long = f"tokens, the model takes {context}: nothing is cut off"
            return {
                place: CallError("too_long", f"the prompt has {length} {too_long}")
                for place, length, room in zip(part.places, lengths, rooms, strict=True)
                if room < 1
            }
        # the token that stands for a piece of a picture; -1 is no token
        token = getattr(config, "image_token_id", None)
        images = (inputs["input_ids"] == (-1 if token is None else int(token))).sum(dim=1).tolist()
        answers: dict[int, Answer] = {}
        rows = self._generated(inputs, min(rooms), seeds)
        for place, row, length, room, image in zip(part.places, rows, lengths, rooms, images, strict=True):
            end = next((n for n, token in enumerate(row) if token in self._ends), None)
            text = self._tokenizer.decode(row[:end], skip_special_tokens=True)
            usage = Usage(1, length, len(row) if end is None else end + 1, image, 0.0)
            if end is None and room == min(rooms):
                is_ours = room == self._max_tokens
                limit = f"max_tokens {room}" if is_ours else f"the {room} tokens that the model has left"
                answers[place] = CallError("truncated", truncated(text, limit), usage)
            elif end is not None and not text.strip():
                answers[place] = CallError("empty_reply", "the model ended its reply before it said anything", usage)
            elif end is not None:
                answers[place] = Completion(text, usage)
        return answers

    def _generated(self, inputs: Any, most: int, seeds: Sequence[int]) -> list[list[int]]:
        """The new tokens of each prompt, at most so many; after its end a row is filled up."""
        import torch

        def is_stopped(ids: Any, scores: Any, **_: Any) -> Any:
            return torch.full((len(ids),), self._stop.is_set(), device=ids.device)

        inputs = inputs.to(self._model.device)
        if self._kind == "image-text":
            inputs = inputs.to(self._model.dtype)
        config = copy.deepcopy(self._model.generation_config)
        # without its sampling: one text, the most likely token each time
        unset = dict.fromkeys(("temperature", "top_p", "top_k", "max_length", "min_p", "typical_p"))
        ends = {"pad_token_id": self._tokenizer.pad_token_id, "eos_token_id": sorted(self._ends) or None}
        config.update(do_sample=False, num_beams=1, **ends, **unset)
        config.max_new_tokens = most
        if config.min_new_tokens is not None:
            config.min_new_tokens = min(config.min_new_tokens, most)
        draws = [GumbelNoise(seeds, self._temperature)] if self._temperature else []
        out = self._model.generate(
            **inputs, generation_config=config, logits_processor=draws, stopping_criteria=[is_stopped]
        )
        # an encoder's prompt is not repeated, the decoder's first token is
        start = 1 if self._model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        rows: list[list[int]] = out[:, start:].tolist()
        return rows


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

        noise = torch.stack(
            [torch.empty(scores.shape[1]).exponential_(generator=generator) for generator in self._generators]
        )
        return scores.float() / self._temperature - noise.clamp_min(1e-20).log().to(scores.device)


def _out_of_memory(prompts: Sequence[Prompt]) -> list[Answer]:
    detail = f"{len(prompts)} at once did not fit in memory: a smaller batch_size or max_pixels may"
    return [CallError("out_of_memory", detail) for _ in prompts]


# --- batches ---

WINDOW_S = 0.02
"""A batch that is not full waits until none has come for so many seconds: nothing compared with the time that it
takes."""


@dataclass(slots=True, eq=False)
class _PendingPrompt:
    prompt: Prompt
    length: int
    answer: asyncio.Future[Completion]


class Batches:
    """Collects prompts, and prepares and answers them in a thread each, one batch at a time: those that arrive while a
    batch is under way become the next one, which is prepared meanwhile. Belongs to the loop that first asks."""

    def __init__(self, prepare: Callable[[Sequence[Prompt]], Work], size: Callable[[], int]) -> None:
        """`prepare`: makes a batch ready; its result gives one answer a prompt, in order. `size`: most prompts of a
        batch now."""
        self._prepare, self._size = prepare, size
        self._waiting: list[_PendingPrompt] = []
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix=name) for name in ("prepare", "generate")]
        self._begun: list[asyncio.Task[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def ask(self, prompt: Prompt, length: int) -> Completion:
        """`length`: prompts of like length are put together. Raises an answer that is an error, and what `prepare` and
        its result raise."""
        waiting = _PendingPrompt(prompt, length, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._look_ahead()
        return await waiting.answer

    async def aclose(self) -> None:
        """Gives up what waits, and waits for the batch under way."""
        for waiting in self._waiting:
            waiting.answer.cancel()
        for thread in self._threads:
            await asyncio.to_thread(thread.shutdown, cancel_futures=True)
        await asyncio.gather(*self._begun, return_exceptions=True)

    def _look_ahead(self) -> None:
        """Begins a batch once no more prompts come; while one is under way, the next as soon as it is full."""
        self._begun = [task for task in self._begun if not task.done()]
        is_full, loop = len(self._waiting) >= self._size(), asyncio.get_running_loop()
        # a full one begins when those that are asked at once have come, and no later for what comes meanwhile
        if self._timer is not None and self._timer.when() > loop.time():
            self._timer.cancel()
            self._timer = None
        if self._timer is None and self._waiting and len(self._begun) < 1 + is_full:
            self._timer = loop.call_later(0 if is_full else WINDOW_S, self._begin)

    def _begin(self) -> None:
        """Takes the one that waits longest and those nearest it in length, the longest first: nobody waits for ever."""
        self._timer = None
        self._waiting = [waiting for waiting in self._waiting if not waiting.answer.done()]
        if not self._waiting:
            return
        first = self._waiting[0]
        nearest = sorted(self._waiting, key=lambda some: (some is not first, abs(some.length - first.length)))
        batch = sorted(nearest[: self._size()], key=lambda some: -some.length)
        self._waiting = [waiting for waiting in self._waiting if waiting not in batch]
        task = asyncio.create_task(self._answer(batch))
        task.add_done_callback(lambda _: self._look_ahead())
        self._begun.append(task)
        self._look_ahead()

    async def _answer(self, batch: Sequence[_PendingPrompt]) -> None:
        prompts, loop = [waiting.prompt for waiting in batch], asyncio.get_running_loop()
        answers: Sequence[Completion | Exception]
        try:
            work = await loop.run_in_executor(self._threads[0], self._prepare, prompts)
            answers = await loop.run_in_executor(self._threads[1], work)
        except asyncio.CancelledError:
            for waiting in batch:
                waiting.answer.cancel()
            raise
        # whatever it is belongs to those who asked; a panic of the tokenizers' library is not even an Exception
        except BaseException as error:
            failure = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
            answers = [failure] * len(batch)
        for waiting, answer in zip(batch, answers, strict=True):
            if waiting.answer.done():
                continue
            if isinstance(answer, Exception):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)

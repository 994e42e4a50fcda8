"""`hf/` costs little more than a bare loop that renders, encodes and generates the same prompts, with pictures too."""

from __future__ import annotations

import argparse
import asyncio
import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.frame import SEED, Line, scratch_folder, timed

CALLS, TOGETHER, ROUNDS = 32, 8, 11
"""Calls of a round, calls in a batch, and rounds."""
MAX_TOKENS = 40
MOST = 1.15
WORDS = "search a flight from New York to London (button) None of them <input id=3> page "


def measure(options: argparse.Namespace) -> list[Line]:
    """Tiny models with random weights, whose batches take a moment: what is not generation counts for most here."""
    from tests.tiny_models import save_llama, save_llava

    lines = []
    with scratch_folder(options.dir) as scratch:
        for kind, save in (("texts", save_llama), ("pictures", save_llava)):
            lines += _compared(kind, save(scratch / kind))
    return lines


def _compared(kind: str, folder: Path) -> list[Line]:
    """Both answer the same prompts in turns, after a first round that counts for neither."""
    requests = _requests(kind == "pictures")
    bare = _BareLoop(folder, kind)
    walls: tuple[list[float], list[float]] = ([], [])

    async def rounds() -> int:
        from seeact_offline.models import ModelOptions
        from seeact_offline.models.hf import HFModel

        model = HFModel(str(folder), ModelOptions(max_tokens=MAX_TOKENS, model_args={"batch_size": TOGETHER}))
        differing = 0
        for number in range(ROUNDS + 1):
            theirs = timed(lambda: bare.answer(requests))
            began = asyncio.get_running_loop().time()
            answers = await asyncio.gather(*map(model.complete, requests), return_exceptions=True)
            ours_s = asyncio.get_running_loop().time() - began
            if number:
                walls[0].append(theirs.wall_s)
                walls[1].append(ours_s)
            texts = [getattr(answer, "text", None) for answer in answers]
            differing = sum(
                ours is not None and ours != other for ours, other in zip(texts, theirs.result, strict=True)
            )
            print(f"{kind}: bare {theirs.wall_s:.2f} s, hf/ {ours_s:.2f} s", file=sys.stderr)
        await model.aclose()
        return differing

    differing = asyncio.run(rounds())
    ratios = [ours / theirs for theirs, ours in zip(*walls, strict=True)]
    return [
        Line(f"{kind}: bare loop, {CALLS} calls", median(walls[0]), "s"),
        Line(f"{kind}: hf/ over the bare loop, median", median(ratios), "x", at_most=MOST),
        Line(f"{kind}: the same in all rounds", sum(walls[1]) / sum(walls[0]), "x"),
        Line(f"{kind}: other texts", differing, "", at_most=1),
    ]


def _requests(shows: bool) -> list[Any]:
    from random import Random

    from seeact_offline.records import Message, Request, StepKey

    draws = Random(SEED)
    requests = []
    for number in range(CALLS):
        picture: Any = _Noise(str(number)) if shows else None
        text = WORDS * draws.randrange(20, 60)
        requests.append(Request((Message("user", text, picture),), StepKey("task", str(number)), 0, 1))
    return requests


@dataclass(frozen=True)
class _Noise:
    """A picture that compresses badly."""

    key: str
    size: tuple[int, int] = (640, 480)
    box: None = None

    def encoded(self, image_format: Any) -> bytes:
        from random import Random

        from PIL import Image

        from seeact_offline.pages.screenshots import encode

        width, height = self.size
        return encode(Image.frombytes("RGB", self.size, Random(self.key).randbytes(3 * width * height)), image_format)


class _BareLoop:
    """The loop that one would write: batches by length, one after the other, greedily. Pictures
    are decoded from the same files.

    It runs where `hf/` does, and in the same number format.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        import torch
        import transformers

        from seeact_offline.models.hf_loading import LoadingOptions, running_dtype

        shows = kind == "pictures"
        loader = transformers.AutoModelForImageTextToText if shows else transformers.AutoModelForCausalLM
        model = loader.from_pretrained(folder, trust_remote_code=False, dtype=running_dtype(LoadingOptions()))
        self._shows, self._model = shows, model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        opener = transformers.AutoProcessor if shows else transformers.AutoTokenizer
        self._processor = opener.from_pretrained(folder, trust_remote_code=False)
        self._tokenizer = getattr(self._processor, "tokenizer", self._processor)
        self._tokenizer.padding_side = "left"
        self._config = copy.deepcopy(self._model.generation_config)
        self._config.update(max_new_tokens=MAX_TOKENS, pad_token_id=self._tokenizer.pad_token_id)

    def answer(self, requests: Sequence[Any]) -> list[str]:
        import torch

        order = sorted(range(len(requests)), key=lambda n: -len(requests[n].messages[0].text))
        texts: dict[int, str] = {}
        for begin in range(0, len(order), TOGETHER):
            places = order[begin : begin + TOGETHER]
            inputs = self._encoded([requests[place].messages[0] for place in places]).to(self._model.device)
            if "pixel_values" in inputs:
                inputs["pixel_values"] = inputs["pixel_values"].to(self._model.dtype)
            with torch.inference_mode():
                out = self._model.generate(**inputs, generation_config=self._config)
            rows = out[:, inputs["input_ids"].shape[1] :]
            texts.update(zip(places, self._tokenizer.batch_decode(rows, skip_special_tokens=True), strict=True))
        return [texts[place] for place in range(len(requests))]

    def _encoded(self, messages: Sequence[Any]) -> Any:
        from seeact_offline.pages.screenshots import open_picture
        from seeact_offline.records import JPEG_95

        parts = [[{"type": "text", "text": message.text}] + [{"type": "image"}] * self._shows for message in messages]
        chats = [[{"role": "user", "content": part if self._shows else part[0]["text"]}] for part in parts]
        texts = [
            self._processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats
        ]
        options: dict[str, Any] = {"padding": True, "return_tensors": "pt", "add_special_tokens": False}
        if not self._shows:
            return self._tokenizer(texts, return_token_type_ids=False, **options)
        pictures = [[open_picture(message.picture.encoded(JPEG_95)).convert("RGB")] for message in messages]
        return self._processor(text=texts, images=pictures, **options)

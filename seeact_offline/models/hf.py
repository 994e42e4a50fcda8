"""`hf/REPO_OR_DIR`: a model of transformers in this process, from the hub or a folder in its format.

Calls that come together are answered in one pass of the model (`hf_generation`), in a thread of its own. A
picture is decoded from the file that a server would be sent, so that both ways see the same pixels.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from seeact_offline.models.hf_folder import digest, find_parts, picture_settings, settings
from seeact_offline.models.hf_generation import Batches, Generator, Work
from seeact_offline.models.hf_loading import (
    DTYPES,
    LoadingOptions,
    Prompt,
    Turn,
    check_packages,
    check_parts,
    running_dtype,
)
from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.models.tokens import ImageRule
from seeact_offline.pages.screenshots import MOST_STRETCHED, open_picture, smart_resize
from seeact_offline.records import CallRecord, Completion, Message, Model, ModelSpecError, Request


class HFModel(Model):
    """One model, loaded when it is first asked. Belongs to the event loop that asks it; close it in the same loop."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        """Raises ModelSpecError for a name that is neither a model's folder nor a hub id that can be had, for
        model_args, and for a package that is not installed."""
        self._name, self._options = name, options
        self._loading = loading(options)
        check_packages(self._loading)
        self._parts = find_parts(name)
        check_parts(name, self._parts, self._loading)
        self._generator: Generator | None = None
        self._stop = threading.Event()
        self._batches = Batches(self._prepare, lambda: (self._generator or self._loading).batch_size)

    async def complete(self, request: Request) -> Completion:
        """Raises CallError (`truncated`, `empty_reply`, `too_long`, `out_of_memory`), the RowError of a picture that
        cannot be encoded, and ModelSpecError where the model cannot be loaded, or is shown a picture and sees none."""
        began = time.monotonic()
        prompt = await asyncio.to_thread(self._prompt, request)
        # characters stand in for tokens before there are any
        answer = await self._batches.ask(prompt, sum(len(turn.text) for turn in prompt.turns))
        return replace(answer, call=CallRecord(seconds=time.monotonic() - began))

    async def aclose(self) -> None:
        """Ends what is being generated with its next token. Safe to call twice."""
        self._stop.set()
        await self._batches.aclose()
        self._generator = None

    def _prompt(self, request: Request) -> Prompt:
        def turn(message: Message) -> Turn:
            picture, image_format = message.picture, self._options.image_format
            shown = None if picture is None else open_picture(picture.encoded(image_format)).convert("RGB")
            return Turn(message.role, message.text, shown, message.inserted, message.markup)

        # a seed of the call's place, so that neither order nor company matters
        place = "\0".join([str(self._options.seed), *request.key, str(request.group), str(request.turn)])
        digest = hashlib.sha256(place.encode("utf-8", "surrogatepass")).digest()
        return Prompt(tuple(map(turn, request.messages)), int.from_bytes(digest[:7], "big"))

    def _prepare(self, prompts: Sequence[Prompt]) -> Work:
        """Loads the model for the first batch."""
        if self._generator is None:
            self._generator = Generator(self._name, self._parts, self._loading, self._options, self._stop)
        return self._generator.prepare(prompts)


def loading(options: ModelOptions) -> LoadingOptions:
    """The loading options among `model_args`. Raises ModelSpecError for another name, or a value that cannot be."""
    for name, value in options.model_args.items():
        if name not in _VALUES:
            raise ModelSpecError("model_args", f"for hf/ one of {', '.join(_VALUES)}", repr(name))
        wanted, fits = _VALUES[name]
        if not fits(value):
            raise ModelSpecError("model_args", f"{wanted} as {name}", repr(value))
    return LoadingOptions(**options.model_args)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_INPUT_LIMIT = re.compile(r"(?!0+\+)[0-9]{1,7}\+(?!0*[01]$)[0-9]{1,7}")
"""At least one token of the page, and two of the rest: one ends the text."""
_VALUES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "batch_size": ("a whole number of at least 1", _is_count),
    "dtype": (f"one of {', '.join(DTYPES)}", lambda value: value in DTYPES),
    "device_map": ("a device or auto", lambda value: isinstance(value, str)),
    "load_in_4bit": ("true or false", lambda value: isinstance(value, bool)),
    "max_pixels": ("a whole number of at least 1", _is_count),
    "max_input_tokens": (
        "tokens of page and rest, such as 512+512,",
        lambda value: isinstance(value, str) and _INPUT_LIMIT.fullmatch(value),
    ),
}
"""The values that each of `LoadingOptions` may have, for people and as a test."""


def _identity(name: str, options: ModelOptions) -> dict[str, Any]:
    """A model is known by its content, wherever it lies. The batch size does not count: see docs/local-models.md.

    Raises ModelSpecError as opening does.
    """
    how, parts = asdict(loading(options)), find_parts(name)
    del how["batch_size"], how["device_map"]
    return {
        "model": "hf",
        "checkpoint_digest": digest(parts.folder),
        **({} if parts.adapter is None else {"adapter_digest": digest(parts.adapter)}),
        **how,
        "dtype": running_dtype(loading(options)),
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "image_format": str(options.image_format),
    }


def is_text_to_text(name: str) -> bool:
    """T5 and its like; BLIP-2 with one as its language part. Raises ModelSpecError as opening does."""
    config = settings(find_parts(name).folder, name)
    parts = [config, config.get("text_config")]
    return any(part.get("is_encoder_decoder", False) for part in parts if isinstance(part, dict))


# --- pictures, counted by a model's settings alone: nothing is loaded ---

_QWEN_PIXELS = 56 * 56, 28 * 28 * 1280
"""Fewest and most pixels where a processor's settings say none."""


def picture_rule(name: str, options: ModelOptions) -> ImageRule | None:
    """The rule of the model in a folder or of a hub id; None: not known, or there is no such model.

    Qwen2-VL and its successors: a token for each square of merged patches, once the picture is scaled by
    `smart_resize`. LLaVA: so many a picture, whatever its size. BLIP-2: its query tokens. Source: the processors of
    transformers 5.23.0.
    """
    try:
        folder = find_parts(name).folder
        model, pictures = settings(folder, name), picture_settings(folder, name)
        if str(pictures.get("image_processor_type", "")).startswith("Qwen2VLImageProcessor"):
            size, own = pictures.get("size") or {}, options.model_args.get("max_pixels")
            side = int(pictures.get("patch_size", 14)) * int(pictures.get("merge_size", 2))
            least = int(pictures.get("min_pixels") or size.get("shortest_edge") or _QWEN_PIXELS[0])
            # `limit_pixels` gives the processor the user's budget
            most = own or int(pictures.get("max_pixels") or size.get("longest_edge") or _QWEN_PIXELS[1])
            name = f"Qwen-VL's, {side} px a token, at most {most // side**2:,}"
            return ImageRule(name, lambda shown, _: _qwen_tokens(shown, side, least, most))
        if model.get("model_type") == "llava":
            vision = model["vision_config"]
            n_patches = (int(vision["image_size"]) // int(vision["patch_size"])) ** 2
            label, n_tokens = "LLaVA", n_patches + (model.get("vision_feature_select_strategy") == "full")
        elif model.get("model_type") == "blip-2":
            label, n_tokens = "BLIP-2", int(model.get("num_query_tokens", 32))
        else:
            return None
    # settings that say nothing of it are the defaults of a class, which only transformers knows
    except (ModelSpecError, KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
        return None
    return ImageRule(f"{label}'s, {n_tokens:,} a picture", lambda size, _: n_tokens)


def _qwen_tokens(shown: tuple[int, int], side: int, least: int, most: int) -> int:
    # the processor refuses longer ones; the most that it could be
    if max(shown) > MOST_STRETCHED * min(shown):
        return most // side**2
    across, down = smart_resize(*shown, side, min(least, most), most)
    return across * down // side**2


PROVIDER = Provider(
    usage=("REPO_OR_DIR",),
    open=HFModel,
    identity=_identity,
    options=("max_tokens", "temperature", "image_format", "concurrency", "seed", "model_args"),
    is_loaded=True,
    is_text_to_text=is_text_to_text,
    image_rule=picture_rule,
    at_once=lambda options: 2 * loading(options).batch_size,
)

"""`hf/REPO_OR_DIR`: a model of transformers in this process, from the hub or a folder in its format.

Calls that come together are answered in one pass of the model (`hf_batches`), in a thread of its own. A
picture is decoded from the file that a server would be sent, so that both ways see the same pixels.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from seeact_offline.models.hf_batches import Batches
from seeact_offline.models.hf_folder import digest, find_parts, settings
from seeact_offline.models.hf_generation import Answer, Generator, PreparedBatch
from seeact_offline.models.hf_loading import DTYPES, LoadingOptions, check_packages, check_parts, running_dtype
from seeact_offline.models.hf_pictures import picture_rule
from seeact_offline.models.hf_prompts import Prompt, Turn
from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.pages.screenshots import open_picture
from seeact_offline.records import CallError, CallRecord, Completion, Model, ModelSpecError, Picture, Request

if TYPE_CHECKING:
    from PIL import Image


class HFModel(Model):
    """One model, loaded when it is first asked. Belongs to the event loop that asks it; close it in the same loop."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        """Raises ModelSpecError for a name that is neither a model's folder nor a hub id that can be had, for model_args,
        and for a package that is not installed."""
        self._name, self._options = name, options
        self._loading = loading(options)
        check_packages(self._loading)
        self._parts = find_parts(name)
        check_parts(name, self._parts, self._loading)
        self._generator: Generator | None = None
        self._stop = threading.Event()
        self._batches: Batches[Prompt, PreparedBatch, Answer] = Batches(self._prepare, self._answer, self._batch_size)

    async def complete(self, request: Request) -> Completion:
        """Raises CallError (`truncated`, `empty_reply`, `too_long`, `out_of_memory`), the RowError of a picture that cannot
        be encoded, and ModelSpecError where the model cannot be loaded, or is shown a picture and sees none."""
        began = time.monotonic()
        prompt = await asyncio.to_thread(self._prompt, request)
        answer = await self._batches.ask(prompt, prompt.length)
        if isinstance(answer, CallError):
            raise answer
        return Completion(answer.text, answer.usage, CallRecord(seconds=time.monotonic() - began))

    async def aclose(self) -> None:
        """Ends what is being generated with its next token. Safe to call twice."""
        self._stop.set()
        await self._batches.aclose()
        self._generator = None

    def _prompt(self, request: Request) -> Prompt:
        def decoded(picture: Picture | None) -> Image.Image | None:
            return None if picture is None else open_picture(picture.encoded(self._options.image_format)).convert("RGB")

        turns = tuple(
            Turn(one.role, one.text, decoded(one.picture), one.inserted, one.markup) for one in request.messages
        )
        # a seed of the call's place, so that neither order nor company matters
        place = "\0".join([str(self._options.seed), *request.key, str(request.group), str(request.turn)])
        digest = hashlib.sha256(place.encode("utf-8", "surrogatepass")).digest()
        return Prompt(turns, int.from_bytes(digest[:7], "big"))

    def _prepare(self, prompts: Sequence[Prompt]) -> PreparedBatch:
        """Loads the model for the first batch."""
        if self._generator is None:
            options = self._options
            sampling = (options.max_tokens, options.temperature or 0.0)
            self._generator = Generator(self._name, self._parts, self._loading, *sampling, self._stop)
        return self._generator.prepare(prompts)

    def _answer(self, batch: PreparedBatch) -> list[Answer]:
        assert self._generator is not None
        return self._generator.answer(batch)

    def _batch_size(self) -> int:
        return self._loading.batch_size if self._generator is None else self._generator.batch_size


def loading(options: ModelOptions) -> LoadingOptions:
    """The loading options among `model_args`. Raises ModelSpecError for another name, or a value that cannot be."""
    given = options.model_args
    known = [field.name for field in fields(LoadingOptions)]
    for name, value in given.items():
        if name not in known:
            raise ModelSpecError("model_args", f"for hf/ one of {', '.join(known)}", repr(name))
        wanted, fits = _VALUES[name]
        if not fits(value):
            raise ModelSpecError("model_args", f"{wanted} as {name}", repr(value))
    return LoadingOptions(**given)


def _is_input_limit(value: Any) -> bool:
    found = re.fullmatch(r"([0-9]{1,7})\+([0-9]{1,7})", value) if isinstance(value, str) else None
    return found is not None and int(found[1]) >= 1 and int(found[2]) >= 2


def _at_least(least: int) -> Any:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


_VALUES: dict[str, tuple[str, Any]] = {
    "batch_size": ("a whole number of at least 1", _at_least(1)),
    "dtype": (f"one of {', '.join(DTYPES)}", lambda value: value in DTYPES),
    "device_map": ("a device or auto", lambda value: isinstance(value, str)),
    "load_in_4bit": ("true or false", lambda value: isinstance(value, bool)),
    "max_pixels": ("a whole number of at least 1", _at_least(1)),
    "max_input_tokens": ("tokens of page and rest, such as 512+512,", _is_input_limit),
}
"""The values that each of `LoadingOptions` may have, for people and as a test."""


def _identity(name: str, options: ModelOptions) -> dict[str, Any]:
    """A model is known by its content, wherever it lies. The batch size does not count: see docs/local-models.md.

    Raises ModelSpecError as opening does.
    """
    how, parts = asdict(loading(options)), find_parts(name)
    del how["batch_size"], how["device_map"]
    if how["max_input_tokens"] is None:
        del how["max_input_tokens"]
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
    found = settings(find_parts(name).folder, name)
    parts = [found, found.get("text_config")]
    return any(part.get("is_encoder_decoder", False) for part in parts if isinstance(part, dict))


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

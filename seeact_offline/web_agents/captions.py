"""Captions of the pictures on a page, for web agents that are told them: from a file, or by a model that is asked about each picture once.

VisualWebArena captions every `img` by its address; a recorded page has none, so a picture is what the screenshot shows in its box. It is
known by its pixels: the same picture on another page, or in another run, is not paid for again where replies are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Protocol

import msgspec

from seeact_offline.files.digest import file_digest
from seeact_offline.files.named import read_rows
from seeact_offline.grounding import PreparedStep
from seeact_offline.grounding.conversation import Session, in_thread
from seeact_offline.models import PROVIDERS, model_name
from seeact_offline.models.client import call_model
from seeact_offline.pages.screenshots import Crop
from seeact_offline.records import (
    CAPTION_GROUP,
    PICTURE,
    PNG,
    Call,
    CallError,
    Completion,
    CropBox,
    ImageFormat,
    Message,
    Request,
    StepKey,
)
from seeact_offline.web_agents.observations import Captions, Scene

ALTERNATIVE_TEXTS = "alternative texts alone"
"""Stands in manifests for captions where there are none."""
PROMPT = "Describe this picture from a web page in one sentence of at most 20 words. Answer with the sentence alone."
SMALLEST_SIDE = 8
"""Pixels below which a picture (a spacer, a counter) has no caption."""


class Captioner(Protocol):
    """The one seam to captions."""

    @property
    def known(self) -> Mapping[StepKey, Captions]:
        """Captions that need no call, by step."""

    async def captions(self, prepared: PreparedStep, session: Session) -> Captions:
        """The captions of a step's pictures, by `backend_node_id`. Raises CallError and RowError."""


@dataclass(frozen=True, slots=True)
class FileCaptioner:
    """Captions that were made before."""

    known: Mapping[StepKey, Captions]

    async def captions(self, prepared: PreparedStep, session: Session) -> Captions:
        return self.known.get(prepared.step.key, {})


class ModelCaptioner:
    """Captions by the run's second model. A picture that it declines to describe keeps its alternative text."""

    known: Mapping[StepKey, Captions] = MappingProxyType({})

    async def captions(self, prepared: PreparedStep, session: Session) -> Captions:
        pictures = await in_thread(pictures_of, prepared)
        distinct = {one.key: one for one in pictures.values()}
        # the same wherever a picture stands: neither step nor place is a part of a request
        requests = [
            Request((Message("user", PROMPT, one),), StepKey(PICTURE, key), 0, 1, (), for_second=True)
            for key, one in distinct.items()
        ]
        asked = [call_model(session.model, request, "") for request in requests]
        answers = dict(zip(distinct, await asyncio.gather(*asked, return_exceptions=True), strict=True))
        for number, answer in enumerate(answers.values(), len(session.calls) + 1):
            if isinstance(answer, Completion | CallError):
                session.usage += answer.usage
                if answer.call is not None:
                    session.calls.append(Call(CAPTION_GROUP, number, answer.call))
        for answer in answers.values():
            if isinstance(answer, BaseException) and not (isinstance(answer, CallError) and answer.answered):
                raise answer
        texts = {key: answer.text for key, answer in answers.items() if isinstance(answer, Completion)}
        return {node: texts[one.key] for node, one in pictures.items() if one.key in texts}


class PagePart:
    """A picture on a page, a `Picture` that is known by its pixels."""

    box = None

    def __init__(self, crop: Crop) -> None:
        """Raises RowError `bad_screenshot`."""
        self._crop, self.size = crop, crop.size
        pixels = hashlib.sha256(repr(crop.size).encode() + crop.image().tobytes()).hexdigest()
        self.key = f"pixels:{pixels}"

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        return self._crop.encoded(image_format)


def pictures_of(prepared: PreparedStep) -> dict[str, PagePart]:
    """The pictures of a page that have a box of some size, by the `backend_node_id` of the `img`. Raises RowError."""
    scene = Scene(prepared.step, prepared.page, prepared.picture)
    width, height = scene.size
    found = {}
    for one in scene.elements:
        if one.tag != "img" or one.box is None:
            continue
        left, top = max(0, round(one.box.x)), max(0, round(one.box.y))
        right, bottom = min(width, round(one.box.right)), min(height, round(one.box.bottom))
        if min(right - left, bottom - top) >= SMALLEST_SIDE:
            found[one.id] = PagePart(scene.picture.crop(CropBox(left, top, right, bottom)))
    return found


def captioning_model(given: Any) -> Any:
    """The model among the values of `--captions`: anything but the path of a file; None for a file or nothing."""
    if given is None or isinstance(given, Path):
        return None
    if not isinstance(given, str):
        return given
    is_named = given.partition("/")[0] in PROVIDERS or ".py:" in given
    return given if is_named and not Path(given).is_file() else None


def open_captioner(given: Any) -> Captioner | None:
    """`given`: a file, or a model; None for alternative texts alone. Raises InputError."""
    if given is None:
        return None
    return FileCaptioner(read_captions(Path(given))) if captioning_model(given) is None else ModelCaptioner()


def captions_identity(given: Any) -> str:
    """The captions as a manifest names them. Raises InputError."""
    if given is None:
        return ALTERNATIVE_TEXTS
    return file_digest(Path(given)) if captioning_model(given) is None else model_name(given)


class _CaptionLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a file of captions."""

    annotation_id: Annotated[str, msgspec.Meta(min_length=1)]
    action_uid: Annotated[str, msgspec.Meta(min_length=1)]
    backend_node_id: Annotated[str, msgspec.Meta(min_length=1)]
    caption: str


def read_captions(path: Path) -> dict[StepKey, dict[str, str]]:
    """The captions of a file, one JSON object a line, by step and node. Raises InputError with the number of the line at fault."""
    captions: dict[StepKey, dict[str, str]] = {}
    for row, _ in read_rows("captions", path, _CaptionLine):
        captions.setdefault(StepKey(row.annotation_id, row.action_uid), {})[row.backend_node_id] = row.caption
    return captions

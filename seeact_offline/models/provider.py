"""What a provider of models declares of itself: one `Provider` a module, listed in `PROVIDERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from seeact_offline.records import JPEG_95, ImageFormat, Model

ImageDetail = Literal["auto", "low", "high"]
"""How closely a server is to look at a picture, in the words of OpenAI's API."""
IMAGE_DETAILS: tuple[ImageDetail, ...] = get_args(ImageDetail)


class Price(NamedTuple):
    """What a model charges, in USD per million tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to ask a model. Providers that do not call a server take no notice."""

    base_url: str | None = None
    """None: OpenAI itself."""
    max_tokens: int = 4096
    """Most tokens a reply may have."""
    image_detail: ImageDetail = "high"
    image_format: ImageFormat = JPEG_95
    """What pictures are sent as."""
    temperature: float | None = 0.0
    """None: not sent, the server decides."""
    timeout_s: float = 120.0
    """Of one attempt."""
    max_retries: int = 5
    """After the first attempt, with growing pauses or those that the server asks for."""
    cache: Path | None = None
    """File that keeps paid replies; None for none."""
    price: Price | None = None
    """None: the cost is not known."""
    seed: int = 0
    """Sent along; servers promise best effort only."""


@dataclass(frozen=True, slots=True)
class Provider:
    """All that the rest of the program knows of one."""

    usage: tuple[str, ...]
    """What stands behind `PROVIDER/`, for people: `NAME`, `FILE`, or the names there are."""
    open: Callable[[str, ModelOptions], Model]
    """From what stands behind `PROVIDER/`. Raises ModelSpecError, InputError."""
    identity: Callable[[str, ModelOptions], Mapping[str, Any]]
    """What replies depend on, for the manifest. Holds no secret."""
    options: tuple[str, ...] = ()
    """The `ModelOptions` that it heeds."""

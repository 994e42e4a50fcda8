"""Language models: one protocol, one module a provider. `open_model` turns `PROVIDER/NAME` into one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from seeact_offline.models.address import address_of
from seeact_offline.models.builtin import open_builtin
from seeact_offline.models.cache import CachedModel
from seeact_offline.models.function import as_model, name_of_object
from seeact_offline.models.openai import OpenAIModel
from seeact_offline.models.replay import ReplayModel
from seeact_offline.records import Model, ModelSpecError

__all__ = ["ModelOptions", "Price", "model_identity", "model_name", "open_model"]


class Price(NamedTuple):
    """What a model charges, in USD per million tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to ask a model. Providers that do not call a server take no notice."""

    base_url: str | None = None
    # None: OpenAI itself
    max_tokens: int = 2048
    """Most tokens a reply may have."""
    temperature: float | None = 0.0
    # None: not sent, the server decides
    timeout_s: float = 120.0
    """Of one attempt."""
    max_retries: int = 5
    """After the first attempt, with growing pauses or those that the server asks for."""
    cache: Path | None = None
    """File that keeps paid replies; None for none."""
    price: Price | None = None
    # None: the cost is not known
    seed: int = 0
    """Sent along; servers promise best effort only."""


def open_model(spec: Any, options: ModelOptions) -> Model:
    """The model that `PROVIDER/NAME` names (only the first slash splits: the rest may be a path), a model itself, or any
    function, async or not, from messages to text.

    Raises ModelSpecError for a spec that names no usable model, InputError for a cache file that cannot be used.
    """
    if not isinstance(spec, str):
        return as_model(spec)
    provider, _, name = spec.partition("/")
    opener = PROVIDERS.get(provider)
    if opener is None or not name:
        raise ModelSpecError(
            f"--model must be PROVIDER/NAME with PROVIDER one of {', '.join(PROVIDERS)}, for example builtin/lexical; "
            f"got {spec!r}"
        )
    return opener(name, options)


def model_name(spec: Any) -> str:
    """The model as results name it."""
    return spec if isinstance(spec, str) else f"python/{name_of_object(spec)}"


def model_identity(spec: Any, options: ModelOptions) -> dict[str, Any]:
    """What replies depend on, for the manifest: a recording counts by its content, a server by its address and settings, an
    object or a function of Python by its name alone."""
    provider, _, name = model_name(spec).partition("/")
    if provider == "replay" and Path(name).is_file():
        return {"model": "replay", "recording_digest": _digest(Path(name))}
    if provider in ("builtin", "python"):
        return {"model": model_name(spec)}
    return {
        "model": spec,
        "base_url": address_of(options.base_url),
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
    }


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open_openai(name: str, options: ModelOptions) -> Model:
    model = OpenAIModel(name, options)
    if options.cache is None:
        return model
    return CachedModel(model, options.cache, model.identity)


def _open_replay(name: str, options: ModelOptions) -> Model:
    return ReplayModel(Path(name))


def _open_builtin(name: str, options: ModelOptions) -> Model:
    return open_builtin(name)


PROVIDERS: dict[str, Callable[[str, ModelOptions], Model]] = {
    "openai": _open_openai,
    "replay": _open_replay,
    "builtin": _open_builtin,
}

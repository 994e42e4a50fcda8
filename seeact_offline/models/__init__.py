"""Language models: one protocol, one module a provider. `open_model` turns `PROVIDER/NAME` into one of them.

A new provider is a module that declares a `Provider`, and a line in PROVIDERS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from seeact_offline.models import builtin, hf, openai, replay
from seeact_offline.models.budget import Price
from seeact_offline.models.function import as_model, name_of_object
from seeact_offline.models.provider import IMAGE_DETAILS, ImageDetail, ModelOptions, Provider
from seeact_offline.records import Model, ModelSpecError

__all__ = [
    "IMAGE_DETAILS",
    "PROVIDERS",
    "ImageDetail",
    "ModelOptions",
    "Price",
    "Provider",
    "is_text_to_text",
    "model_identity",
    "model_name",
    "open_model",
    "unheeded",
    "usage",
]

PROVIDERS: dict[str, Provider] = {
    "openai": openai.PROVIDER,
    "replay": replay.PROVIDER,
    "builtin": builtin.PROVIDER,
    "hf": hf.PROVIDER,
}


UNSAID = frozenset({"cache", "budget", "seed", "typed", "concurrency", "fail_on_error"})
"""Options that are set without being given, and one that the run heeds whatever the model."""


def open_model(spec: Any, options: ModelOptions) -> Model:
    """The model that `PROVIDER/NAME` names (only the first slash splits: the rest may be a path), a model itself, or any
    function, async or not, from messages to text.

    Raises ModelSpecError for a spec that names no usable model, InputError for a cache file that cannot be used.
    """
    if not isinstance(spec, str):
        return as_model(spec)
    provider, _, name = spec.partition("/")
    if provider not in PROVIDERS or not name:
        known = ", ".join(PROVIDERS)
        wanted = f"PROVIDER/NAME with PROVIDER one of {known}, for example builtin/lexical"
        raise ModelSpecError("model", wanted, repr(spec))
    return PROVIDERS[provider].open(name, options)


def model_name(spec: Any) -> str:
    """The model as results name it."""
    return spec if isinstance(spec, str) else f"python/{name_of_object(spec)}"


def model_identity(spec: Any, options: ModelOptions) -> Mapping[str, Any]:
    """What replies depend on, for the manifest: as the provider says, of an object or a function of Python its name alone."""
    provider, _, name = model_name(spec).partition("/")
    return PROVIDERS[provider].identity(name, options) if provider in PROVIDERS else {"model": model_name(spec)}


def is_text_to_text(spec: Any) -> bool:
    """Whether the model turns one text into another, as T5 does, and holds no conversation; an object says so by an attribute
    `is_text_to_text`. Raises ModelSpecError for a model that cannot be found."""
    if not isinstance(spec, str):
        return bool(getattr(spec, "is_text_to_text", False))
    provider, _, name = spec.partition("/")
    return provider in PROVIDERS and PROVIDERS[provider].is_text_to_text(name)


def unheeded(spec: Any, options: ModelOptions) -> list[str]:
    """The options that were given, of which the model takes no notice."""
    provider = PROVIDERS.get(model_name(spec).partition("/")[0])
    heeded, usual = provider.options if provider else (), ModelOptions()
    given = [field.name for field in fields(options) if getattr(options, field.name) != getattr(usual, field.name)]
    return [name for name in given if name not in (*heeded, *UNSAID)]


def usage() -> str:
    """The models there are, for people."""
    *others, last = (f"{name}/{what}" for name, provider in PROVIDERS.items() for what in provider.usage)
    return f"{', '.join(others)} or {last}"

"""Language models: one protocol, one module a provider. `open_model` turns `PROVIDER/NAME`, an object or a function into a model in
its budget, whose replies are kept.

A new provider is a module that declares a `Provider`, and a line in PROVIDERS.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from seeact_offline.models import builtin, hf, openai, replay
from seeact_offline.models.budget import Price
from seeact_offline.models.client import ModelClient
from seeact_offline.models.function import as_model, code_of, name_of_object
from seeact_offline.models.provider import IMAGE_DETAILS, ImageDetail, ModelOptions, Provider, version_of
from seeact_offline.records import Model, ModelSpecError

__all__ = [
    "IMAGE_DETAILS",
    "PROVIDERS",
    "ImageDetail",
    "ModelOptions",
    "Price",
    "Provider",
    "ignored_options",
    "is_free",
    "is_known",
    "is_text_to_text",
    "model_identity",
    "model_name",
    "open_model",
    "reports_cost",
    "usage",
]

PROVIDERS: dict[str, Provider] = {
    "openai": openai.PROVIDER,
    "replay": replay.PROVIDER,
    "builtin": builtin.PROVIDER,
    "hf": hf.PROVIDER,
}


UNSAID = frozenset({"cache", "budget", "run", "seed", "typed", "concurrency", "fail_on_error"})
"""Options that are set without being given, and one that the run heeds whatever the model."""
EVERYONES = ("price", "ask_equal", "model_version")
"""Options of every model whose replies are kept."""
UNKNOWN_CODE = "not known"
"""The code of an object or a function of Python that may have changed without being seen to."""


def open_model(spec: Any, options: ModelOptions) -> Model:
    """The model that `PROVIDER/NAME` names (only the first slash splits: the rest may be a path), a model itself, or any
    function, async or not, from messages to text. This is the one place that wraps them in budget and kept replies.

    Raises ModelSpecError for a spec that names no usable model, InputError for a file of kept replies that cannot be used.
    """
    if not isinstance(spec, str):
        # nothing that an earlier run was told is used where nobody knows whether the model has changed
        anew = {} if is_known(spec) else {"opened": uuid.uuid4().hex}
        return ModelClient(as_model(spec), lambda: {**model_identity(spec, options), **anew}, options)
    provider, name = _provider(spec)
    model: Any = provider.open(name, options)
    if provider.is_free:
        return cast("Model", model)

    def identity() -> Mapping[str, Any]:
        # the model itself may know more of what its replies depend on than the manifest says
        own = getattr(model, "identity", None) or provider.identity(name, options)
        return {**own, **version_of(options)}

    return ModelClient(model, identity, options)


def _provider(spec: str) -> tuple[Provider, str]:
    """The provider and what stands behind it. Raises ModelSpecError."""
    provider, _, name = spec.partition("/")
    if provider not in PROVIDERS or not name:
        known = ", ".join(PROVIDERS)
        wanted = f"PROVIDER/NAME with PROVIDER one of {known}, for example builtin/lexical"
        raise ModelSpecError("model", wanted, repr(spec))
    return PROVIDERS[provider], name


def model_name(spec: Any) -> str:
    """The model as results name it."""
    return spec if isinstance(spec, str) else f"python/{name_of_object(spec)}"


def model_identity(spec: Any, options: ModelOptions) -> Mapping[str, Any]:
    """All that replies depend on, for the manifest: as the provider says; an object of Python by what it says itself, a function
    by its code."""
    provider, _, name = model_name(spec).partition("/")
    if isinstance(spec, str):
        known = PROVIDERS[provider].identity(name, options) if provider in PROVIDERS else {"model": spec}
    else:
        known = {"model": model_name(spec), "code": code_of(spec) or UNKNOWN_CODE, **getattr(spec, "identity", {})}
    return {**known, **version_of(options)}


def is_known(spec: Any) -> bool:
    """Whether two models of one identity give the same replies. An object of Python has to say so by an attribute `identity`."""
    return isinstance(spec, str) or hasattr(spec, "identity") or code_of(spec) is not None


def is_free(spec: Any) -> bool:
    """Whether calls cost neither money nor time, so that no reply is kept."""
    return (
        isinstance(spec, str) and (provider := PROVIDERS.get(spec.partition("/")[0])) is not None and provider.is_free
    )


def reports_cost(spec: Any) -> bool:
    """Whether the model says what each call cost, or may do so: an object of Python, until its first call shows."""
    if isinstance(spec, str):
        provider = PROVIDERS.get(spec.partition("/")[0])
        return provider is not None and provider.reports_cost
    return hasattr(spec, "complete")


def is_text_to_text(spec: Any) -> bool:
    """Whether the model turns one text into another, as T5 does, and holds no conversation; an object says so by an attribute
    `is_text_to_text`. Raises ModelSpecError for a model that cannot be found."""
    if not isinstance(spec, str):
        return bool(getattr(spec, "is_text_to_text", False))
    provider, _, name = spec.partition("/")
    return provider in PROVIDERS and PROVIDERS[provider].is_text_to_text(name)


def ignored_options(spec: Any, options: ModelOptions) -> list[str]:
    """The options that were given, which the model ignores."""
    provider = PROVIDERS.get(model_name(spec).partition("/")[0])
    heeded, usual = provider.options if provider else (), ModelOptions()
    heeded = heeded if provider is not None and provider.is_free else (*heeded, *EVERYONES)
    given = [field.name for field in fields(options) if getattr(options, field.name) != getattr(usual, field.name)]
    return [name for name in given if name not in (*heeded, *UNSAID)]


def usage() -> str:
    """The models there are, for people."""
    *others, last = (f"{name}/{what}" for name, provider in PROVIDERS.items() for what in provider.usage)
    return f"{', '.join(others)} or {last}"

"""Language models: one protocol, one module a provider. `open_model` turns `PROVIDER/NAME`, `FILE.py:NAME`, an object
or a function into a model in its budget, whose replies are kept.

A new provider is a module that declares a `Provider`, and a line in PROVIDERS; or one in a file outside the package,
named by its path; or an entry point in the group ENTRY_POINTS.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from seeact_offline.files.extensions import Doors, entry_point_names, load_named
from seeact_offline.models.budget import Price
from seeact_offline.models.prices import bundled_prices
from seeact_offline.models.provider import (
    ModelOptions,
    ObjectModel,
    Provider,
    name_of_object,
    provider_of_object,
    version_of,
)
from seeact_offline.models.tokens import ImageRule
from seeact_offline.records import Model, ModelSpecError, did_you_mean

__all__ = [
    "PROVIDERS",
    "ModelOptions",
    "ModelSource",
    "Price",
    "Provider",
    "find_model",
    "model_name",
    "open_model",
    "usage",
]

PROVIDERS = Doors({name: f"seeact_offline.models.{name}:PROVIDER" for name in ("openai", "replay", "builtin", "hf")})
ENTRY_POINTS = "seeact_offline.providers"
UNSAID = frozenset({"cache", "budget", "run", "seed", "typed", "concurrency", "fail_on_error"})
"""Options that are set without being given, and one that the run heeds whatever the model."""
EVERYONES = ("price", "ask_equal", "model_version")
"""Options of every model whose replies are kept."""
_FILE_SPEC = re.compile(r"(?P<extension>(?P<file>.+\.py):\w+)(?:/(?P<rest>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model before it is opened."""

    provider: Provider
    name: str = ""
    """The part behind `PROVIDER/`."""
    code: Mapping[str, str] = field(default_factory=dict)
    """Digest of the code of a provider outside the package, as a part of the identity."""

    @property
    def is_text_to_text(self) -> bool:
        """Tells whether it reads a prompt and writes another text, as `Provider.is_text_to_text`. Raises ModelSpecError
        for a model that cannot be found."""
        return self.provider.is_text_to_text(self.name)

    def image_rule(self, options: ModelOptions) -> ImageRule | None:
        """Finds how it counts the tokens of a picture, as `Provider.image_rule`."""
        return self.provider.image_rule(self.name, options)

    def ignored_options(self, options: ModelOptions) -> list[str]:
        """Options that were given, which the model ignores."""
        used = {*self.provider.options, *UNSAID, *(() if self.provider.is_free else EVERYONES)}
        usual = ModelOptions()
        names = [field.name for field in fields(options) if getattr(options, field.name) != getattr(usual, field.name)]
        return [name for name in names if name not in used]

    def identity(self, options: ModelOptions) -> dict[str, Any]:
        """Everything that replies depend on, for the manifest. Raises ModelSpecError as opening does."""
        return {**self.provider.identity(self.name, options), **self.code, **version_of(options)}

    def open(self, options: ModelOptions) -> Model:
        """Raises ModelSpecError, and InputError for a file of kept replies that cannot be used."""
        opened = self.provider.open(self.name, options)
        # a provider outside the package may open any object with `complete`
        model = opened if isinstance(opened, Model) else ObjectModel(opened)
        if self.provider.is_free:
            return model
        from seeact_offline.models.client import ModelClient

        # replies of an earlier run are not used where nobody knows whether the model has changed
        anew = {} if self.provider.is_known else {"opened": uuid.uuid4().hex}

        def identity() -> Mapping[str, Any]:
            # the model itself may know more of what its replies depend on than the manifest says
            own = model.identity or self.provider.identity(self.name, options)
            return {**own, **self.code, **version_of(options), **anew}

        return ModelClient(model, identity, options)


def find_model(spec: Any) -> ModelSource:
    """The source of the model that `PROVIDER/NAME` names (only the first slash splits: the rest may be a path), or
    `FILE.py:NAME` (with `/REST` where NAME is a Provider), or of an object or a function of Python.

    Raises ModelSpecError for a text that names none, InputError for a file that cannot be loaded.
    """
    if not isinstance(spec, str):
        return ModelSource(provider_of_object(spec))
    first, _, rest = spec.partition("/")
    if first in PROVIDERS and rest:
        return ModelSource(PROVIDERS[first], rest)
    if in_file := _FILE_SPEC.fullmatch(spec):
        first, rest = in_file["extension"], in_file["rest"] or ""
    source = None if first in PROVIDERS else load_named(first, ENTRY_POINTS, "model")
    if source is None:
        names = ", ".join([*PROVIDERS, *entry_point_names(ENTRY_POINTS)])
        wanted = f"PROVIDER/NAME with PROVIDER one of {names}, for example builtin/lexical, or FILE.py:NAME"
        hint = "" if did_you_mean(repr(spec), wanted) else _named_with_provider(spec)
        raise ModelSpecError("model", wanted, f"{spec!r}{hint}")
    if isinstance(source.value, Provider):
        return ModelSource(source.value, rest, {"code": source.digest})
    if rest:
        raise ModelSpecError("model", f"{source.name} alone, which is no Provider", spec)
    return ModelSource(provider_of_object(source.value, source.name, source.digest))


def _named_with_provider(spec: str) -> str:
    """Returns `; did you mean PROVIDER/NAME?` for a model that is named without its provider; empty for no name at
    all."""
    if spec in PROVIDERS["builtin"].usage:
        meant = [f"builtin/{spec}"]
    elif spec and Path(spec).exists():
        meant = [f"hf/{spec}" if Path(spec).is_dir() else f"replay/{spec}"]
    elif spec.partition("/")[0] in ("", *PROVIDERS):
        return ""
    else:
        listed = {entry.model.replace("-", ""): entry.model for entry in bundled_prices().prices}
        # OWNER/NAME is a server's model as often as the hub's
        name = listed.get(spec.lower().replace("-", ""), spec)
        meant = [f"openai/{name}", *([f"hf/{spec}"] if "/" in spec else [])]
    return f"; did you mean {' or '.join(meant)}?"


def open_model(spec: Any, options: ModelOptions) -> Model:
    """Opens a model, as `find_model` names it, in its budget and with its replies kept.

    Raises ModelSpecError for a spec that names no usable model, InputError for a file of kept replies that cannot be
    used.
    """
    return find_model(spec).open(options)


def model_name(spec: Any) -> str:
    """The model as results name it. Loads nothing."""
    if not isinstance(spec, str):
        return f"python/{name_of_object(spec)}"
    in_file = None if spec.partition("/")[0] in PROVIDERS else _FILE_SPEC.fullmatch(spec)
    return spec.removeprefix(in_file["file"].removesuffix(Path(in_file["file"]).name)) if in_file else spec


def usage() -> str:
    """The models that there are, for people."""
    named = (f"{name}/{rest}" for name, provider in PROVIDERS.items() for rest in provider.usage)
    return f"{', '.join(named)} or FILE.py:NAME"

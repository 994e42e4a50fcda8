"""The declaration of a provider of models: one `Provider` a module, listed in `PROVIDERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.records import JPEG_95, ImageDetail, ImageFormat

if TYPE_CHECKING:
    from seeact_offline.models.bills import Price
    from seeact_offline.models.budget import Budget
    from seeact_offline.models.image_tokens import ImageRule


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of a model. Providers ignore those that they do not list."""

    base_url: str | None = None
    """None: OpenAI itself."""
    max_tokens: int = 4096
    """Most tokens a reply may have."""
    image_detail: ImageDetail = "high"
    image_format: ImageFormat = JPEG_95
    """The format in which pictures are sent."""
    temperature: float | None = 0.0
    """None: not sent, the server decides."""
    timeout_s: float = 120.0
    """Seconds of one attempt, from its first byte to its last."""
    max_retries: int | None = None
    """Most attempts after the first; None: as many as `max_wait_s` has room for."""
    max_wait_s: float = 600.0
    """Seconds that a call may take with all its attempts and pauses."""
    fail_on_error: float | None = None
    """The run stops once more than this share (0 to 1) of its calls, or of its steps, has failed; None: never for that."""
    concurrency: int = 4
    """Most calls in flight."""
    rpm: float | None = None
    """Most requests a minute; None: no limit of ours."""
    tpm: float | None = None
    """Most tokens a minute, prompt and reply; None: no limit of ours."""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    """More parameters of the request, by the name that the server gives them; None as a value: that one is not sent."""
    typed: frozenset[str] = frozenset()
    """Names of the options here that the user gave. A server that refuses one of them fails the call; others are left out."""
    cache: Path | None = None
    """File that keeps paid replies; None for none."""
    ask_equal: bool = False
    """Ask each of several equal requests, at temperature 0 too."""
    run: str = ""
    """Id of the run that pays, noted with each reply."""
    model_version: str | None = None
    """The user's name for the weights that stand behind the model's name now."""
    budget: Budget | None = None
    """The limit of what may be spent; None: no limit."""
    price: Price | None = None
    """None: the cost is not known."""
    seed: int = 0
    """Sent along; servers promise best effort only."""

    @property
    def asks_each(self) -> bool:
        """Equal requests of two places are two: a model that answers by chance is asked at each."""
        return self.ask_equal or self.temperature != 0.0


def version_of(options: ModelOptions) -> dict[str, str]:
    """The part of a model's identity that the user names."""
    return {} if options.model_version is None else {"model_version": options.model_version}


@dataclass(frozen=True, slots=True)
class Provider:
    """Everything that the rest of the program knows of one."""

    usage: tuple[str, ...]
    """The parts that may stand behind `PROVIDER/`, for people: `NAME`, `FILE`, or all names."""
    open: Callable[[str, ModelOptions], Any]
    """The part behind `PROVIDER/` -> a `Model`, or an object with `complete`. Raises ModelSpecError, InputError."""
    identity: Callable[[str, ModelOptions], Mapping[str, Any]]
    """The part behind `PROVIDER/` -> everything that replies depend on, for the manifest. Holds no secret."""
    options: tuple[str, ...] = ()
    """`ModelOptions` that it uses, besides those that every model has: price, cache and budget."""
    is_free: bool = False
    """Calls cost neither money nor time, so no reply is kept."""
    is_known: bool = True
    """Two models of one identity give the same replies."""
    is_loaded: bool = False
    """The model is held by the process that asks it, and wants its GPU."""
    is_file: bool = False
    """The part behind `PROVIDER/` is the path of a file."""
    reports_cost: bool = False
    """Each completion may say what it cost, so `max_cost` needs no price."""
    check_spending: Callable[[ModelOptions], None] = lambda options: None
    """Raises InputError for options with which a call may cost anything."""
    takes_batches: bool = False
    """Its models put requests into files, as `BatchCodec` needs them."""
    is_text_to_text: Callable[[str], bool] = lambda name: False
    """The part behind `PROVIDER/` -> True for a model that turns one text into another, as T5 does, and holds no conversation."""
    server: Callable[[str | None], str | None] = lambda base_url: base_url
    """A base URL, None for none -> the address of the server that the user names by it or in the environment; None: none."""
    is_listed: Callable[[str | None], bool] = lambda base_url: False
    """A base URL, None for none -> True where the bundled price table holds the prices of that server's models."""
    image_rule: Callable[[str, ModelOptions], ImageRule | None] = lambda name, options: None
    """The part behind `PROVIDER/` -> how the model counts pictures; None: not known."""
    picture_rules: Callable[[str], tuple[ImageRule, ...]] | None = None
    """The part behind `PROVIDER/` -> rules of which one is the model's, for reservations; None: that of `image_rule`, or GPT-4o's."""
    at_once: Callable[[ModelOptions], int] = lambda options: 1
    """Fewest calls in flight that keep the model busy: one that answers in batches wants a batch and the next. Raises ModelSpecError."""

"""The model that a run asks: its options, its price, where paid replies are kept, and the money that may be spent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seeact_offline.files.digest import cache_folder
from seeact_offline.grounding.strategy import SecondModel
from seeact_offline.models import ModelOptions, ModelSource, find_model, model_name
from seeact_offline.models.budget import Budget, Ledger, Terms
from seeact_offline.models.prices import PriceTable, Quote, bundled_prices, price_of
from seeact_offline.models.tokens import TILES, ImageRule
from seeact_offline.ranking.stage import LOCAL
from seeact_offline.records import ImageFormat, InputError, Model, Prediction
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.costs import kept_cost
from seeact_offline.runs.folder import RunFolder

REPLIES = "replies.sqlite"
_SAME = {f.name for f in fields(ModelOptions)} & {f.name for f in fields(EvalConfig)} - {
    "image_format",
    "cache",
    "price",
}
"""Options of a model that a configuration has as they are."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A model before it is opened, with everything that decides how it is asked and paid."""

    spec: Any
    """A spec as `open_model` takes it."""
    name: str
    """Its name in results."""
    source: ModelSource
    options: ModelOptions
    """Options with the store of paid replies, without budget and run."""
    quote: Quote | None
    """None: the price is not known."""
    max_cost: float | None
    """USD; None for any sum."""
    image_rule: ImageRule | None
    """None: how the model counts pictures is not known."""
    grounder: ModelSettings | None = None
    """A second model, which finds what this one describes, or says what pictures show."""
    role: str = "model"
    """Its name in manifests."""

    @property
    def is_free(self) -> bool:
        """Calls cost neither money nor time, so no reply is kept."""
        return self.source.provider.is_free

    @property
    def ignored(self) -> list[str]:
        """Options that were given, which the model ignores."""
        return self.source.ignored_options(self.options)

    @property
    def asks_each(self) -> bool:
        """True where equal requests of a step are each asked."""
        return self.options.asks_each or self.is_free

    def check_limit(self) -> None:
        """Raises InputError for a limit on a cost that nobody knows."""
        if self.max_cost is None:
            return
        if self.quote is None and not self.may_report_cost:
            raise InputError(
                "max_cost",
                sentence=f"`max_cost` needs a `price`, or a model that reports what its calls cost, unlike {self.name}",
            )
        for settings in (self, *([self.grounder] if self.grounder else [])):
            settings.source.provider.check_spending(settings.options)

    @property
    def may_report_cost(self) -> bool:
        """True where replies may name their cost; those of the providers in the bundled table never do."""
        provider = self.source.provider
        return provider.reports_cost and not provider.is_listed(self.options.base_url)

    @property
    def terms(self) -> Terms:
        """Terms that decide the cost of a call. A picture counts at the detail at which it costs most."""
        rules_of = self.source.provider.picture_rules
        rules = (self.image_rule or TILES,) if rules_of is None else rules_of(self.source.name)
        return Terms(self.options.price, self.options.max_tokens, tuple(rule.most for rule in rules))

    def open(self, budget: Budget | None = None, run: str = "") -> Model:
        """`run`: the id of the run that pays. Raises ModelSpecError and InputError as `open_model`."""
        model = self.source.open(replace(self.options, budget=budget, run=run))
        if self.grounder is None:
            return model
        second = self.grounder
        shared = budget and budget.sharing(replace(second.terms, name="second"))
        from seeact_offline.models.client import PlannerAndGrounder

        return PlannerAndGrounder(model, second.source.open(replace(second.options, budget=shared, run=run)))

    @contextmanager
    def spending(self, folder: RunFolder) -> Iterator[Budget]:
        """The budget of the run in a folder, with everything that it has spent. Raises InputError."""
        price, terms = self.options.price, self.terms
        with self.ledger(folder) as ledger:
            yield Budget(self.max_cost, price, terms.max_tokens, terms.picture_rules, ledger)

    def ledger(self, folder: RunFolder) -> Ledger:
        """The ledger of the run in a folder, which says no less than what its kept answers and replies
        have cost. Raises InputError."""
        models = [self] if self.grounder is None else [self, self.grounder]
        stores = [
            settings.options.cache for settings in models if settings.options.cache is not None and not settings.is_free
        ]
        price = self.options.price
        return Ledger(folder.ledger, price, kept_cost(folder, stores, price) if stores else 0.0)


def model_settings(config: EvalConfig, folder: RunFolder) -> ModelSettings:
    """`folder`: where replies are kept that no other run may use. The price is today's: the one that is given,
    or the bundled table's where the server is a provider's own. Raises ModelSpecError, also for a base URL that
    is not a URL, and InputError."""
    source, name = find_model(config.model), model_name(config.model)
    provider, price = source.provider, config.price
    # a configuration reads texts when it is made
    assert not isinstance(price, str)
    if price is None and provider.is_listed(config.base_url):
        price = bundled_prices()
    quote = None if price is None else price_of(name, price, datetime.now(UTC).date().isoformat())
    cache: Path | str | None = config.cache
    names_server = config.base_url is not None or provider.server(None) is not None
    if cache is None and (config.temperature or names_server or not provider.is_known):
        # another run is to ask anew: a model that answers by chance, a server on which other weights may have the same
        # name tomorrow, an object that does not say what it is
        cache = "off"
    options = ModelOptions(
        **{name: getattr(config, name) for name in _SAME},
        image_format=ImageFormat.read(config.image_format),
        timeout_s=config.timeout,
        max_wait_s=config.max_wait,
        cache=folder.calls if cache == "off" else _reply_store(cache, folder),
        price=None if quote is None else quote.price,
    )
    options = replace(options, concurrency=max(options.concurrency, provider.at_once(options)))
    rule = source.image_rule(options)
    return ModelSettings(config.model, name, source, options, quote, config.max_cost, rule, _grounder(config, folder))


def _grounder(config: EvalConfig, folder: RunFolder) -> ModelSettings | None:
    """The second model, asked with the options of the first on its own server. Raises InputError."""
    named = config.find_strategy().second_model(config.grounding_options)
    if named is None:
        if config.grounder is None:
            return None
        named = SecondModel("grounder", "grounder", config.grounder, config.grounder_base_url)
    # one price is the first model's; a table may have both
    price = config.price if isinstance(config.price, PriceTable) else None
    second = replace(
        config,
        model=named.spec,
        base_url=named.base_url,
        grounder=None,
        price=price,
        max_cost=None,
        grounding_options={},
    )
    grounder = replace(model_settings(second, folder), role=named.role)
    # a server that names its costs does so for both models; an object of Python may alone
    is_named = grounder.may_report_cost and (config.price is None or not grounder.source.provider.usage)
    if config.max_cost is not None and not (grounder.is_free or grounder.quote or is_named):
        raise InputError(
            "max_cost", sentence=f"`max_cost` needs a price of {grounder.name}, the model of `{named.option}`, too"
        )
    if config.engine != LOCAL:
        raise InputError("engine", sentence=f"`{named.option}` with a model needs `engine` local")
    return grounder


def _reply_store(cache: Path | str | None, folder: RunFolder) -> Path:
    """The file of paid replies in the folder that is named, else in the user's, so that no other run pays for one
    again; the run's own where the user's cannot be written."""
    if cache is not None:
        return Path(cache) / REPLIES
    shared = cache_folder()
    try:
        shared.mkdir(parents=True, exist_ok=True)
    except OSError:
        return folder.calls
    return shared / REPLIES if os.access(shared, os.W_OK) else folder.calls


# --- what was paid ---


def replies_of(predictions: Iterable[Prediction], spent_usd: float | None) -> dict[str, Any] | None:
    """Counts a run's replies by their source, for the manifest; None for a model whose replies are not kept.

    `spent_usd`: None where no price is known.
    """
    days = {
        call.record.asked: call.record.from_store
        for prediction in predictions
        for call in prediction.calls
        if call.record.asked
    }
    if not days:
        return None
    stored = [day for day in days.values() if day is not None]
    sent = len(days) - len(stored)
    return {
        "replies": len(days),
        "from_store": len(stored),
        "oldest": min(filter(None, stored), default=None),
        "sent": sent,
        # the same whatever the order in which calls ended
        "spent_usd": round(spent_usd, 9) if spent_usd is not None else None if sent else 0.0,
    }

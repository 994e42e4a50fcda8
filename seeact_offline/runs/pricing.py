"""The price of a run's model."""

from __future__ import annotations

from datetime import UTC, datetime

from seeact_offline.models import find_model, model_name
from seeact_offline.models.prices import Quote, bundled_prices, price_of
from seeact_offline.runs.config import EvalConfig


def quote_of(config: EvalConfig) -> Quote | None:
    """Today's: the price that was given, or the bundled table's where the server is a provider's own. None: not known.

    Raises ModelSpecError for a base URL that is none.
    """
    given = config.price
    if given is None and find_model(config.model).provider.is_listed(config.base_url):
        given = bundled_prices()
    # a configuration reads texts when it is made
    assert not isinstance(given, str)
    return None if given is None else price_of(model_name(config.model), given, datetime.now(UTC).date().isoformat())


def names_server(config: EvalConfig) -> bool:
    """True where the model is asked on a server that the user names: other weights may have the same name there tomorrow."""
    return config.base_url is not None or find_model(config.model).provider.server(None) is not None

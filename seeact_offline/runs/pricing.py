"""What a run's model charges."""

from __future__ import annotations

from datetime import UTC, datetime

from seeact_offline.models import model_name
from seeact_offline.models.address import address_of, find_server
from seeact_offline.models.prices import LISTED_HOSTS, Quote, price_of
from seeact_offline.runs.config import EvalConfig


def quote_of(config: EvalConfig) -> Quote | None:
    """Today's: the price that was given, or the bundled table's where the server is a provider's own. None: not known.

    Raises ModelSpecError for a base URL that is none.
    """
    name = model_name(config.model)
    is_own = name.startswith("openai/") and find_server(config.base_url).host in LISTED_HOSTS
    if config.price is None and not is_own:
        return None
    # a configuration reads texts when it is made
    assert not isinstance(config.price, str)
    return price_of(name, config.price, datetime.now(UTC).date().isoformat())


def names_server(config: EvalConfig) -> bool:
    """Whether the model is asked on a server that the user names, where other weights may have the same name tomorrow."""
    is_openai = model_name(config.model).startswith("openai/")
    return config.base_url is not None or (is_openai and address_of(None) is not None)

"""Where a run's replies come from, and what was paid for them now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seeact_offline.records import Prediction, Usage


def sent_usage(prediction: Prediction) -> Usage:
    """The usage of the calls that were made for this step, not of replies that were kept."""
    calls = (call.record for call in prediction.calls)
    return sum((call.usage for call in calls if call.attempts and call.usage), Usage())


def replies_of(predictions: Iterable[Prediction], spent_usd: float | None) -> dict[str, Any] | None:
    """For the manifest; None for a model whose replies are not kept. `spent_usd`: None where no price is known."""
    days = {call.record.asked: call.record.from_store for one in predictions for call in one.calls if call.record.asked}
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

"""Costs of runs by their ledgers. Predictions alone lack what was paid for replies that nobody could use: those of steps that were asked again
later, and of calls whose outcome nobody knows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from seeact_offline.models.budget import Ledger
from seeact_offline.records import CallRecord, Prediction
from seeact_offline.runs.folder import REPEAT, RunFolder

DIGITS = 9
"""Decimals of a cost in files. Sums of the same costs in another order differ beyond them."""


def run_cost(folder: RunFolder, counted: float | None) -> float | None:
    """USD of a run: what its ledger says it has spent, but for its repeats, and what other runs have paid for replies that it took over.

    `counted`: the sum over its predictions, which is given back where the ledger says the same, or does not know all costs.
    """
    calls = _calls(folder)
    asked = {call.asked for call in calls}
    repeated = [call for path in folder.path.glob(f"{REPEAT}*") for call in _calls(RunFolder(path))]
    # where a repeat asks the same, the reply is kept
    new = {call.asked: call.usage for call in repeated if call.from_store is None and call.asked not in asked}
    of_repeats = sum((usage.cost_usd or 0.0) for usage in new.values() if usage is not None)
    whole = None if counted is None else counted + of_repeats
    cost = ledger_cost(folder.ledger, calls, whole)
    return counted if cost == whole or cost is None else round(cost - of_repeats, DIGITS)


def _calls(folder: RunFolder) -> list[CallRecord]:
    return [call.record for of_step in folder.load_calls().values() for call in of_step]


def ledger_cost(ledger: Path, calls: Iterable[CallRecord], counted: float | None) -> float | None:
    """USD of the runs of one ledger. `calls`: theirs. `counted`: see `run_cost`."""
    if not os.path.lexists(ledger):
        return counted
    of_others = taken_over(calls)
    known = Ledger(ledger)
    if None in of_others.values() or not known.knows_all:
        return counted
    cost = known.spent + sum(one or 0.0 for one in of_others.values())
    is_same = counted is not None and abs(cost - counted) < 0.1**DIGITS
    return counted if is_same else round(cost, DIGITS)


def taken_over(calls: Iterable[CallRecord]) -> Mapping[str, float | None]:
    """Reply that another run has paid for -> its cost."""
    return {
        call.asked: call.usage.cost_usd
        for call in calls
        if call.from_store is not None and not call.reused and call.usage is not None
    }


def paid_cost(prediction: Prediction) -> float:
    """USD that this run has paid for a step; what is not known counts as 0."""
    of_others = taken_over(call.record for call in prediction.calls).values()
    return (prediction.usage.cost_usd or 0.0) - sum(one or 0.0 for one in of_others)

"""Costs of runs: the larger of what their ledgers say and what their kept answers have cost. Answers alone lack what
was paid for replies that nobody could use: those of steps that were asked again later, and of calls whose outcome
nobody knows. A damaged ledger lacks lines."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from itertools import chain
from pathlib import Path

from seeact_offline.models.budget import NOISE, Ledger, Price, priced
from seeact_offline.records import CallRecord, Prediction, Usage
from seeact_offline.runs.folder import REPEAT, RunFolder

DIGITS = 9
"""Decimals of a cost in files. Sums of the same costs in another order differ beyond them."""


def kept_cost(folder: RunFolder, stores: Iterable[Path], price: Price | None) -> float:
    """USD that a run has paid for the answers in its folder, and in folders inside that share its
    ledger, and for the replies in its own store and in these, each once. `price`: of replies that came
    when none was known. Raises InputError.

    So a run knows what it has spent whatever has become of its ledger, also on steps that it has not finished.
    """

    # models without a price keep no replies, and a run with one loads no store
    from seeact_offline.models.reply_cache import replies_paid_by

    def usd(usage: Usage) -> float:
        return priced(usage, price).cost_usd or 0.0

    run = folder.run_id
    # without an id its replies cannot be told apart in a store of several runs
    own = {folder.calls, *(stores if run else ())}
    paid = {asked: usd(usage) for store in own for asked, usage in replies_paid_by(store, run).items()}
    inside = (path.parent for path in folder.path.glob("*/predictions.jsonl"))
    shared = (path for path in inside if not (path / folder.ledger.name).exists())
    unusable = 0.0
    for answer in chain.from_iterable(
        RunFolder(path).load(with_calls=True).values() for path in (folder.path, *shared)
    ):
        calls = [(call.record, usd(call.record.usage)) for call in answer.calls if call.record.usage is not None]
        paid |= {call.asked: cost for call, cost in calls if call.from_store is None}
        unusable += max(0.0, usd(answer.usage) - sum(cost for call, cost in calls if not call.reused))
    return sum(paid.values()) + unusable


def run_cost(folder: RunFolder, counted: float | None) -> float | None:
    """USD of a run: what its ledger says it has spent, but for its repeats, and what other runs have
    paid for replies that it took over.

    `counted`: the sum over its predictions, which is given back where the ledger says the
    same, or does not know all costs.
    """
    repeats = [RunFolder(path) for path in folder.path.glob(f"{REPEAT}*")]
    if not repeats and not os.path.lexists(folder.ledger):
        return counted
    calls = _calls(folder)
    asked = {call.asked for call in calls}
    repeated = [call for repeat in repeats for call in _calls(repeat)]
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
    calls = [call for call in calls if call.from_store is not None and not call.reused]
    of_others = {call.asked: call.usage.cost_usd for call in calls if call.usage is not None}
    book = Ledger(ledger)
    if None in of_others.values() or not book.knows_all:
        return counted
    cost = book.spent + sum(usd or 0.0 for usd in of_others.values())
    return counted if counted is not None and cost < counted + NOISE else round(cost, DIGITS)


def paid_cost(prediction: Prediction, kept: Container[str]) -> float:
    """USD that this run has paid for a step now; what is not known counts as 0. `kept`: `CallRecord.asked`
    of replies that it had already."""
    calls = [call.record for call in prediction.calls if not call.record.reused]
    earlier = (call.usage for call in calls if call.from_store is not None or call.asked in kept)
    return (prediction.usage.cost_usd or 0.0) - sum(usage.cost_usd or 0.0 for usage in earlier if usage is not None)

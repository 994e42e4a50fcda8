"""Other ways of asking the same steps, beside each other: the orders of groups, and a turn 1 shared by all groups."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seeact_offline import scoring
from seeact_offline.protocols import Protocol
from seeact_offline.records import Prediction, Summary, Truth
from seeact_offline.runlog import RunDirectory

METRICS = ("element_accuracy", "operation_f1", "step_success_rate")
_FOLDER = "shuffled-"
_PRICES = {
    "calls": "calls_if_per_group",
    "estimated_prompt_tokens": "estimated_prompt_tokens_if_per_group",
}
PRICE_NOTES = frozenset({"shared_turn1", *_PRICES, *_PRICES.values()})
# notes of a prediction that `price_of_batching` sums up


def repeat_folder(run: Path, number: int) -> Path:
    """Where the run's repeat in another order lies; `number` from 1."""
    return run / f"{_FOLDER}{number}"


def shuffle_spread(run: Path, truths: Sequence[Truth], protocol: Protocol) -> dict[str, Any] | None:
    """How far the macro averages vary with the order of groups and choices; None for a run without finished repeats.

    Counted are the repeats that have a prediction for every step. `values` are theirs in order of number, `sd` is the
    sample standard deviation, None for fewer than two.
    """
    summaries = [
        summary for number in _repeats(run) if (summary := _summary(run, number, truths, protocol)) is not None
    ]
    if not summaries:
        return None
    spread: dict[str, Any] = {"n_orders": len(summaries)}
    for name in METRICS:
        figures = [getattr(summary, name) for summary in summaries]
        if None not in figures:
            spread[name] = _spread([figure.macro for figure in figures])
    return spread


def _repeats(run: Path) -> list[int]:
    numbers = [path.name.removeprefix(_FOLDER) for path in run.glob(f"{_FOLDER}*")]
    return sorted(int(number) for number in numbers if number.isdecimal())


def _summary(run: Path, number: int, truths: Sequence[Truth], protocol: Protocol) -> Summary | None:
    done = RunDirectory(repeat_folder(run, number)).load()
    if not all(truth.key in done for truth in truths):
        return None
    return scoring.summarise([done[truth.key] for truth in truths], truths, protocol, top_k=0, seed=0)[1]


def _spread(values: Sequence[float]) -> dict[str, Any]:
    sd = statistics.stdev(values) if len(values) > 1 else None
    return {"values": list(values), "min": min(values), "max": max(values), "sd": sd}


def price_of_batching(predictions: Sequence[Prediction]) -> dict[str, Any] | None:
    """Calls and prompt tokens a step with a shared turn 1, and with one a group; None where nothing was shared.

    Calls are counted, on the groups' side from the questions that were asked. Prompt tokens are estimates by one rule on
    both sides (`grounding.asking`); None where a step has none.
    """
    shared = [(p, dict(p.notes)) for p in predictions if dict(p.notes).get("shared_turn1")]
    if not shared:
        return None
    ours = {
        "calls": statistics.fmean(p.usage.calls for p, _ in shared),
        "estimated_prompt_tokens": _mean_note(shared, "estimated_prompt_tokens"),
    }
    theirs = {name: _mean_note(shared, note) for name, note in _PRICES.items()}
    return {"n_steps": len(shared), "shared-turn1": ours, "per-group": theirs}


def _mean_note(shared: Sequence[tuple[Prediction, Mapping[str, int]]], name: str) -> float | None:
    values = [notes.get(name) for _, notes in shared]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None

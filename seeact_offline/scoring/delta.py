"""The same predictions under several protocols, and which rule makes each difference.

From the first protocol to another the rules are exchanged one at a time, in the order of `Protocol`'s fields. What a
figure moves at an exchange is that rule's, so the moves add up to the whole difference. Another order could share it
out otherwise where two rules concern the same steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from seeact_offline.files.table import Table
from seeact_offline.records import Prediction, Truth
from seeact_offline.scoring.averaging import Averaging
from seeact_offline.scoring.labelled_predictions import LabelledPredictions, StepCredits
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.rules import RULES, Protocol, one_entry, point_in_any_box, sentence


def delta(predictions: Sequence[Prediction], truths: Sequence[Truth], protocols: Sequence[Protocol]) -> dict[str, Any]:
    """`protocols`: name -> `figures` (metric -> `macro`, `micro`, the `headline`, and which of them it `quotes`) and
    steps `left_out`. `paths`, one from the first protocol to each other: `from`, `to`, the `difference` of each
    headline, and `rules`, those that differ: the `rule`, what it says `from` and `to`, how many `steps` it moves, and
    how it `moves` each headline. `no_offset`, where pictures of a part of the page were shown: steps with a point on
    such a picture (`of`), and how many of them are `lost` or `won` if the point is read as a place on the page, as if
    the picture began at its corner. A hit is a point in the box of a positive.

    Figures that need an element are None under protocols without. A step is moved if what it earns changes, or whether
    it counts. Predictions and truths are of the same steps in the same order. Without predictions every figure is 0.
    """
    figures = _Figures(LabelledPredictions(predictions, truths))
    first, *others = protocols
    return {
        "n_steps": len(truths),
        "protocols": {protocol.name: figures.of(protocol) for protocol in protocols},
        "paths": [_path(first, other, figures) for other in others],
        **_no_offset(predictions, truths),
    }


def _no_offset(predictions: Sequence[Prediction], truths: Sequence[Truth]) -> dict[str, Any]:
    of, moves = 0, Counter[int]()
    for prediction, truth in zip(predictions, truths, strict=True):
        shown = prediction.groups[-1].shown if prediction.groups else None
        if prediction.point is None or shown is None or shown.part == (0, 0, *(truth.picture_size or ())):
            continue
        at = prediction.point[0] - shown.part[0], prediction.point[1] - shown.part[1]
        before, after = (
            point_in_any_box(msgspec.structs.replace(prediction, point=point), truth)
            for point in (prediction.point, at)
        )
        of, moves = of + 1, moves + Counter([after - before])
    return {"no_offset": {"of": of, "lost": moves[-1], "won": moves[1]}} if of else {}


class _Figures:
    """The figures of protocols over the same predictions, each average laid out once."""

    def __init__(self, labelled: LabelledPredictions) -> None:
        self._labelled = labelled
        self._averagings: dict[tuple[object, ...], Averaging] = {}

    def of(self, protocol: Protocol) -> dict[str, Any]:
        """An entry of `protocols` in `delta`."""
        scored = self.credits(protocol)
        one_each = replace(protocol, groups_of_f1=protocol.groups, entries_of_f1=one_entry)
        over_all, over_f1 = self._averaging(one_each, scored), self._averaging(protocol, scored)
        earned = {
            "element_accuracy": (scored.element, over_all, protocol.headline),
            "operation_f1": (scored.operation_f1, over_f1, protocol.headline_of_f1),
            "step_success_rate": (scored.success, over_all, protocol.headline),
        }
        figures: dict[str, Any] = {}
        for metric, (values, averaging, headline) in earned.items():
            points = averaging.points(values[scored.counted])
            applies = protocol.element is not None or metric == "operation_f1"
            figure = {**points._asdict(), "headline": headline(*points), "quotes": headline.__name__}
            figures[metric] = figure if applies else None
        return {"figures": figures, "left_out": int((~scored.counted).sum())}

    def headlines(self, protocol: Protocol) -> dict[str, float | None]:
        return {metric: figure and figure["headline"] for metric, figure in self.of(protocol)["figures"].items()}

    def credits(self, protocol: Protocol) -> StepCredits:
        return self._labelled.credits(protocol)

    def _averaging(self, protocol: Protocol, scored: StepCredits) -> Averaging:
        """The averaging of Operation F1."""
        key = (protocol.groups_of_f1, protocol.length, protocol.entries_of_f1, scored.counted.tobytes())
        if key not in self._averagings:
            counted = [t for t, counts in zip(self._labelled.truths, scored.counted.tolist(), strict=True) if counts]
            self._averagings[key] = protocol.averaging_of_f1(counted)
        return self._averagings[key]


def _path(first: Protocol, last: Protocol, figures: _Figures) -> dict[str, Any]:
    """An entry of `paths` in `delta`."""
    begin, end = figures.headlines(first), figures.headlines(last)
    rules: list[dict[str, Any]] = []
    protocol, now = first, begin
    for name in RULES:
        old, new = getattr(protocol, name), getattr(last, name)
        if old is new:
            continue
        before, past = figures.credits(protocol), now
        protocol = replace(protocol, **{name: new})
        now = figures.headlines(protocol)
        after = figures.credits(protocol)
        changed = (before.element != after.element) | (before.operation_f1 != after.operation_f1)
        changed |= (before.success != after.success) | (before.counted != after.counted)
        says = {"from": sentence(old), "to": sentence(new)}
        rules.append({"rule": name, **says, "steps": int(changed.sum()), "moves": _differences(past, now)})
    return {"from": first.name, "to": last.name, "difference": _differences(begin, end), "rules": rules}


def _differences(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> dict[str, float | None]:
    """Metric -> how much higher it is; None where it is not known on both sides."""
    return {
        metric: None if old is None or (new := after[metric]) is None else new - old for metric, old in before.items()
    }


# --- drawing ---


def delta_tables(difference: Mapping[str, Any]) -> list[Table]:
    """The result of `delta` for people: the figures, then one table for each path. In percent and percentage points."""
    return [_figures_table(difference), *(_path_table(path) for path in difference["paths"])]


def _figures_table(difference: Mapping[str, Any]) -> Table:
    rows = []
    for name, entry in difference["protocols"].items():
        figures = [entry["figures"][metric] for metric in METRICS]
        cells = ["-" if figure is None else f"{100 * figure['headline']:.2f} {figure['quotes']}" for figure in figures]
        rows.append([name, *cells, entry["left_out"] or None])
    notes = []
    if offset := difference.get("no_offset"):
        shown = f"no_offset: on {offset['of']} steps the picture was a part of the page"
        notes = [f"{shown}; its places read as places on the page: {offset['lost']} hits lost, {offset['won']} won."]
    return Table(
        title="The same predictions under each protocol",
        header=["protocol", *METRICS.values(), "steps left out"],
        rows=rows,
        notes=["macro: the mean of the groups' means (tasks, or for seeclick's and showui's Operation F1 the three operations);"
               " micro: over steps.",
               "screensuite's Operation F1 is its one figure: over clicks, where a TYPE counts a second time, half for"
               " its text.", *notes],
    )  # fmt: skip


def _path_table(path: Mapping[str, Any]) -> Table:
    moving = [rule for rule in path["rules"] if rule["steps"] or any(rule["moves"].values())]
    still = [_words(rule["rule"]) for rule in path["rules"] if rule not in moving]
    rows = [
        [_words(rule["rule"]), rule["from"], rule["to"], rule["steps"], *_points_moved(rule["moves"])]
        for rule in moving
    ]  # fmt: skip
    return Table(
        title=f"From {path['from']} to {path['to']}: {path['to']} minus {path['from']}",
        header=["rule", path["from"], path["to"], "steps moved", *METRICS.values()],
        rows=[*rows, ["all", None, None, None, *_points_moved(path["difference"])]],
        notes=[f"Differ without moving anything here: {', '.join(still)}."] if still else [],
        n_labels=3,
    )


def _words(rule: str) -> str:
    return rule.replace("_", " ")


def _points_moved(moves: Mapping[str, float | None]) -> list[str]:
    return ["-" if move is None else f"{100 * move:+.2f}" for move in (moves[metric] for metric in METRICS)]

"""Agreement beyond chance: Cohen's kappa of two judges, Fleiss' kappa of several, and two people's answers to the same
texts.

Cohen's kappa is (agreement - chance) / (1 - chance), where chance is how often two would agree who each keep to their
own shares of labels, whatever the step (Educational and Psychological Measurement 20 (1960), 37-46). Fleiss' kappa is
the same of the pairs of judges of an item, where chance keeps to the shares of all judges together (Psychological
Bulletin 76 (1971), 378-382). An element is a label of its own step and no label of another, so chance is little more
than two answers of "none".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from seeact_offline.records import StepKey
from seeact_offline.scoring.inference import LEVEL, PLACES, SAME, resampled

NONE = "none"
"""The label of a text that means no element of the page."""


def cohen_kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> float | None:
    """Computes Cohen's kappa of two judges' labels of the same items, in the same order.

    None for no items, and where chance alone makes all labels the same. Raises ValueError for lists of different
    lengths.

    >>> cohen_kappa([True, True, False, False], [True, True, False, True])
    0.5
    >>> cohen_kappa([True, True], [True, True]) is None
    True
    """
    if len(a) != len(b):
        raise ValueError(f"b: expected as many labels as a has, {len(a)}, got {len(b)}")
    number = {label: place for place, label in enumerate(dict.fromkeys([*a, *b]))}
    sums = _columns([("", number[first], number[second]) for first, second in zip(a, b, strict=True)])
    return _known(kappa_of_sums(sums, 1)[0]) if len(sums) else None


def fleiss_kappa(table: Sequence[Sequence[int]] | np.ndarray) -> float | None:
    """Computes Fleiss' kappa of a table of counts, shape (n_items, n_labels): how many judges gave an item each label.

    None for no items, and where chance alone makes all labels the same. Raises ValueError for an item with fewer than
    two judges, or with another number of them than the first.

    >>> fleiss_kappa([[3, 0], [0, 3], [3, 0]])
    1.0
    """
    try:
        counts = np.asarray(table, dtype=float)
    except ValueError:
        raise ValueError("table: expected counts, as many of each item, got another list") from None
    if not counts.size:
        return None
    if counts.ndim != 2 or not ((counts >= 0) & np.isfinite(counts)).all():
        raise ValueError(f"table: expected counts of shape (items, labels), got shape {counts.shape}")
    judges = counts.sum(axis=1)
    odd = int(np.argmax(judges != judges[0]))
    if judges[0] < 2 or odd:
        raise ValueError(f"table: expected the same two or more judges an item, got {judges[odd]:g} of item {odd}")
    return _known(fleiss_of_sums(fleiss_columns(counts).sum(axis=0)[None])[0])


def fleiss_columns(counts: np.ndarray) -> np.ndarray:
    """The columns of each item, from (n_items, n_labels) counts, that `fleiss_of_sums` needs: 1, the share of its pairs
    of judges that agree, and its counts. Items have two judges or more."""
    judges = counts.sum(axis=1)
    alike = ((counts**2).sum(axis=1) - judges) / (judges * (judges - 1))
    return np.column_stack([np.ones(len(counts)), alike, counts])


def fleiss_of_sums(sums: np.ndarray) -> np.ndarray:
    """Fleiss' kappa of each row of `fleiss_columns` summed over items; NaN where chance alone would agree."""
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = sums[:, 2:] / sums[:, 2:].sum(axis=1, keepdims=True)
        by_chance = (shares**2).sum(axis=1)
        return np.where(1 - by_chance > SAME, (sums[:, 1] / sums[:, 0] - by_chance) / (1 - by_chance), np.nan)


def _known(kappa: float) -> float | None:
    return None if np.isnan(kappa) else float(kappa)


class ElementLabel(NamedTuple):
    """The element and operation that a person reads in a text."""

    element_id: str | None
    """None: no element of the page."""
    op: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement of labels."""

    agreement: float
    """Share of steps with the same label."""
    kappa: float | None
    """None where chance alone makes all labels the same."""
    ci95: tuple[float, float] | None
    """The interval of kappa, by drawing tasks; None for fewer than two tasks, or where no resample has a kappa."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two people's answers to the same texts."""

    n_both: int
    """Steps that both have answered; all figures are of these."""
    n_tasks: int
    element: Kappa | None
    """The element, or that there is none. None, as are the next two, where there is no step."""
    found: Kappa | None
    """True if there is an element."""
    operation: Kappa | None
    disagreements: tuple[StepKey, ...]
    """Steps where element, operation or value differ, in the first's order."""


def agreement(
    first: Mapping[StepKey, ElementLabel], second: Mapping[StepKey, ElementLabel], seed: int = 0
) -> Agreement:
    """Computes the agreement over the steps that both hold."""
    both = [key for key in first if key in second]
    kappa = partial(_kappa, [(key, first[key], second[key]) for key in both], seed=seed)
    return Agreement(
        n_both=len(both),
        n_tasks=len({key.annotation_id for key in both}),
        element=kappa(lambda key, label: NONE if label.element_id is None else (key, label.element_id))
        if both
        else None,
        found=kappa(lambda _, meant: NONE if meant.element_id is None else "element") if both else None,
        operation=kappa(lambda _, meant: meant.op) if both else None,
        disagreements=tuple(key for key in both if differ(first[key], second[key])),
    )


def differ(first: ElementLabel, second: ElementLabel) -> bool:
    """True if two answers mean different things. Capitals and the space around a value do not matter."""
    return _folded(first) != _folded(second)


def _folded(meant: ElementLabel) -> ElementLabel:
    return meant._replace(value=" ".join(meant.value.split()).casefold())


Label = Callable[[StepKey, ElementLabel], Hashable]


def _kappa(pairs: Sequence[tuple[StepKey, ElementLabel, ElementLabel]], label: Label, seed: int) -> Kappa:
    labels = [(key.annotation_id, label(key, first), label(key, second)) for key, first, second in pairs]
    columns = _columns(labels)
    whole = columns.sum(axis=0)[None]
    ci95 = percentiles(kappa_of_sums(resampled(columns, seed), len(columns))) if len(columns) > 1 else None
    return Kappa(float(whole[0, 1] / whole[0, 0]), _known(kappa_of_sums(whole, 1)[0]), ci95)


def pairwise_kappas(labels: np.ndarray, task_of: np.ndarray, seed: int = 0) -> dict[tuple[int, int], Kappa]:
    """Cohen's kappa of every two judges of the same items, by their columns, with intervals by drawing tasks.

    `labels`: shape (n_items, n_judges), True or False. `task_of`: shape (n_items,), the task of each item, numbered
    from 0. No items: empty.
    """
    if not len(labels):
        return {}
    pairs = list(itertools.combinations(range(labels.shape[1]), 2))
    both = [labels[:, a] & labels[:, b] for a, b in pairs]
    columns = np.column_stack([np.ones(len(labels)), labels, *both])
    sums = np.zeros((int(task_of.max()) + 1, columns.shape[1]))
    np.add.at(sums, task_of, columns)
    whole = sums.sum(axis=0)[None]
    # all pairs are of the same draws
    drawn = resampled(sums, seed) if len(sums) > 1 else None

    def of_pair(rows: np.ndarray, number: int) -> np.ndarray:
        a, b = pairs[number]
        n, yes_a, yes_b, yes = (rows[:, column] for column in (0, 1 + a, 1 + b, 1 + labels.shape[1] + number))
        return np.column_stack([n, n - yes_a - yes_b + 2 * yes, 0 * n, yes_a, yes_b, n - yes_a, n - yes_b])

    kappas = {}
    for number, pair in enumerate(pairs):
        row = of_pair(whole, number)
        ci95 = None if drawn is None else percentiles(kappa_of_sums(of_pair(drawn, number), 1))
        kappas[pair] = Kappa(float(row[0, 1] / row[0, 0]), _known(kappa_of_sums(row, 1)[0]), ci95)
    return kappas


def percentiles(drawn: np.ndarray) -> tuple[float, float] | None:
    """The interval of a figure from its values in resamples, shape (n,); NaN, no value, is left out. None where there
    is no value."""
    values = drawn[~np.isnan(drawn)]
    if not len(values):
        return None
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    # + 0.0: no negative zero
    return round(float(low), PLACES) + 0.0, round(float(high), PLACES) + 0.0


def _columns(labels: Sequence[tuple[str, Hashable, Hashable]]) -> np.ndarray:
    """One row a task: its steps; those with the same label; those of them whose label no other step can have; and of
    every other label how often the first and the second gave it."""
    place = {task: row for row, task in enumerate(dict.fromkeys(task for task, _, _ in labels))}
    shared = [
        label for label in dict.fromkeys(label for _, *two in labels for label in two) if not isinstance(label, tuple)
    ]
    column = {label: 3 + 2 * i for i, label in enumerate(shared)}
    sums = np.zeros((len(place), 3 + 2 * len(shared)))
    for task, first, second in labels:
        row = sums[place[task]]
        row[0] += 1
        row[1] += first == second
        row[2] += first == second and first not in column
        for i, label in enumerate((first, second)):
            if label in column:
                row[column[label] + i] += 1
    return sums


def kappa_of_sums(sums: np.ndarray, scale: float) -> np.ndarray:
    """Cohen's kappa of each row of sums over tasks, then divided by `scale`; NaN where chance alone would agree.

    Columns: the items; those with the same label; those of them whose label no other item can have; then, of every
    other label, how often the first and the second judge gave it.
    """
    n, same, own = sums[:, 0], sums[:, 1], sums[:, 2]
    # a step drawn twice is two steps, each with labels of its own
    by_chance = ((sums[:, 3::2] * sums[:, 4::2]).sum(axis=1) + own / scale) / n**2
    rest = 1 - by_chance
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(rest > SAME, (same / n - by_chance) / rest, np.nan)

"""Agreement of a judge's verdicts with labels: shares, kappas, flips between repeats, and the order of agents.

All intervals are over tasks: several agents' trajectories of one task are alike, and so are repeats of one verdict.
Shares have the intervals of `scoring.inference.interval`; kappas and rank correlations have percentile intervals of
resampled tasks. Repeats of a verdict are pooled: each is compared with the label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from seeact_offline.records import InputError
from seeact_offline.scoring.agreement import (
    Kappa,
    fleiss_columns,
    fleiss_of_sums,
    kappa_of_sums,
    pairwise_kappas,
    percentiles,
)
from seeact_offline.scoring.inference import SAME, interval, linearised, resampled, total
from seeact_offline.trajectories.judgements import (
    NO_ANSWER,
    Judgement,
    by_judge,
    labels_by_person,
    majority,
    majority_of_repeats,
)

NoVerdict = Literal["left-out", "failure"]
NO_VERDICT: tuple[NoVerdict, ...] = ("left-out", "failure")
"""Policies for a judgement that ended without a verdict: it is left out of the figures and counted,
or it counts as `not a success`."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its uncertainty over tasks."""

    value: float
    ci95: tuple[float, float] | None
    """None for fewer than two tasks, and where no resample has a value."""
    n: int
    """The verdicts, pairs or trajectories that it is a figure of."""


class Cells(NamedTuple):
    """The 2 x 2 table of verdicts by labels."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int


@dataclass(frozen=True, slots=True)
class AgentRates:
    """One agent's rates of success over the labelled trajectories."""

    agent: str
    n: int
    """Trajectories."""
    by_judge: float
    by_labels: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of agents by a judge's rates of success, against the order by labels."""

    agents: tuple[AgentRates, ...]
    """Best first, by the judge."""
    tau: Figure | None
    """Kendall's tau-b of the two orders; None where one of them ranks all agents alike."""
    stability: float | None
    """Mean tau-b of the judge's order in resampled tasks with its own order; None where it ranks all alike."""
    best_kept: float
    """Share of resamples in which the judge's best agent stays the best; a tie with it counts."""


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """One judge's agreement with the labels."""

    judge: str
    model: str
    k: str
    n_repeats: int
    n_trajectories: int
    """Trajectories with a label and a verdict; all figures but `flips`, `repeats_kappa` and costs are of these."""
    n_tasks: int
    n_verdicts: int
    no_verdict: Mapping[str, int]
    """Judgements of labelled trajectories without a verdict, by outcome."""
    failed: int
    """Calls that failed; always left out."""
    n_unlabelled: int
    """Trajectories of the judge without a label."""
    n_missing: int
    """Labelled trajectories that the judge has not judged."""
    cells: Cells
    success_rate: Figure | None
    """The judge's; None, as the others, where nothing is counted in it."""
    label_rate: Figure | None
    agreement: Figure | None
    precision: Figure | None
    recall: Figure | None
    negative_predictive_value: Figure | None
    kappa: Figure | None
    """Cohen's, of verdicts and labels; None where chance alone would agree."""
    success_rate_sd: float | None
    """Standard deviation of the repeats' rates of success; None for one repeat."""
    agreement_sd: float | None
    flips: Figure | None
    """Share of pairs of repeats of one trajectory with different verdicts; None for one repeat."""
    n_flipped: int
    """Trajectories whose repeats do not all agree."""
    repeats_kappa: Figure | None
    """Fleiss', of the repeats, over trajectories with a verdict in each."""
    cost_per_verdict: float | None
    """USD; None where a price is not known, or nothing was asked."""
    tokens_per_verdict: float | None
    ranking: Ranking | None
    """None for fewer than two agents."""


@dataclass(frozen=True, slots=True)
class Agreements:
    """Several judges against the same labels."""

    judges: tuple[JudgeAgreement, ...]
    n_labels: int
    """Trajectories with a label that counts."""
    n_people: int
    people_kappa: Figure | None
    """Fleiss', of the labels of several people, over the trajectories that the usual number of them has labelled;
    None for one each."""
    n_split: int
    """Trajectories left out because people are split evenly."""
    sources: tuple[str, ...]
    """Sources of the labels."""
    no_verdict: NoVerdict


def agreements(
    verdicts: Sequence[Judgement], labels: Sequence[Judgement], *, no_verdict: NoVerdict = "left-out", seed: int = 0
) -> Agreements:
    """Compares each judge (rules, model and k) with the labels.

    Several labels of a trajectory count by their majority; it is left out where they are split evenly.
    `no_verdict`: see NO_VERDICT.
    Raises InputError where no trajectory has both, where a trajectory has two tasks,
    and where no verdict is a model's, as no trajectory has an answer.
    """
    if verdicts and all(verdict.outcome == NO_ANSWER for verdict in verdicts):
        got = "only trajectories without an answer, about which no model was asked"
        raise InputError("verdicts", "a verdict on an answer", got)
    people = labels_by_person(labels)
    truth = majority(people)
    if not truth.keys() & {verdict.trajectory for verdict in verdicts}:
        got = f"none of {len(truth)} in common, {next(iter(truth))} first" if truth else "no label"
        raise InputError("labels", "labels of the judged trajectories, by their ids", got)
    tasks = tasks_of([*verdicts, *labels])
    agents = {row.trajectory: row.agent for row in [*verdicts, *labels] if row.agent}
    keys = Counter(
        (verdict.trajectory, verdict.judge, verdict.model, verdict.k, verdict.repeat) for verdict in verdicts
    )
    if (twice := max(keys, key=keys.__getitem__)) and keys[twice] > 1:
        got = f"{keys[twice]} of {twice[0]} by {twice[1] or 'one judge'}, k {twice[3] or 'unnamed'}, repeat {twice[4]}"
        raise InputError("verdicts", "one verdict a trajectory, judge, model, k and repeat", got)
    compare = _Comparison(truth, tasks, agents, no_verdict, seed)
    return Agreements(
        judges=tuple(compare.judge(of_judge) for of_judge in by_judge(verdicts)),
        n_labels=len(truth),
        n_people=len({person for votes in people.values() for person in votes}),
        people_kappa=_people_kappa(people, tasks, seed),
        n_split=len(people) - len(truth),
        sources=tuple(sorted({label.source or "person" for label in labels if label.verdict is not None})),
        no_verdict=no_verdict,
    )


def tasks_of(rows: Sequence[Judgement]) -> dict[str, str]:
    """The task of each trajectory; one that names none is its own."""
    tasks: dict[str, str] = {}
    for row in rows:
        if row.task and tasks.setdefault(row.trajectory, row.task) != row.task:
            got = f"{tasks[row.trajectory]} and {row.task} for the trajectory {row.trajectory}"
            raise InputError("verdicts", "one task a trajectory", got)
    return {row.trajectory: f"trajectory {row.trajectory}" for row in rows} | tasks


def _counted(verdicts: Iterable[Judgement], no_verdict: NoVerdict) -> list[Judgement]:
    """The judgements that count, each with a verdict."""
    ran = [verdict for verdict in verdicts if verdict.ran]
    if no_verdict == "failure":
        return [replace(verdict, verdict=bool(verdict.verdict)) for verdict in ran]
    return [verdict for verdict in ran if verdict.verdict is not None]


class LabelledVerdict(NamedTuple):
    """A verdict and its label."""

    trajectory: str
    task: str
    agent: str
    """Empty where it is not known."""
    repeat: int
    said: bool
    label: bool


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The labels, and how verdicts are compared with them."""

    truth: Mapping[str, bool]
    tasks: Mapping[str, str]
    agents: Mapping[str, str]
    no_verdict: NoVerdict
    seed: int

    def judge(self, verdicts: Sequence[Judgement]) -> JudgeAgreement:
        first, ran = verdicts[0], [verdict for verdict in verdicts if verdict.ran]
        counted = _counted(ran, self.no_verdict)
        pairs = [
            LabelledVerdict(
                name,
                self.tasks[name],
                self.agents.get(name, ""),
                verdict.repeat,
                bool(verdict.verdict),
                self.truth[name],
            )
            for verdict in counted
            if (name := verdict.trajectory) in self.truth
        ]
        cells = Counter((pair.said, pair.label) for pair in pairs)
        repeats = sorted({verdict.repeat for verdict in verdicts})
        by_repeat = [[pair for pair in pairs if pair.repeat == number] for number in repeats]
        judged, calls = {verdict.trajectory for verdict in verdicts}, [verdict for verdict in verdicts if verdict.calls]
        spread: dict[str, list[bool]] = {}
        for verdict in counted:
            spread.setdefault(verdict.trajectory, []).append(bool(verdict.verdict))
        whole = {trajectory: some for trajectory, some in spread.items() if len(some) == len(repeats)}
        flips = [
            (self.tasks[trajectory], float(first != second))
            for trajectory, some in spread.items()
            for first, second in combinations(some, 2)
        ]
        tokens = [verdict.prompt_tokens + verdict.completion_tokens for verdict in calls]
        without_verdict = Counter(
            verdict.outcome for verdict in ran if verdict.verdict is None and verdict.trajectory in self.truth
        )
        return JudgeAgreement(
            first.judge, first.model, first.k, len(repeats),
            n_trajectories=len({pair.trajectory for pair in pairs}),
            n_tasks=len({pair.task for pair in pairs}),
            n_verdicts=len(pairs),
            no_verdict=dict(sorted(without_verdict.items())),
            failed=len(verdicts) - len(ran),
            n_unlabelled=len(judged - self.truth.keys()),
            n_missing=len(self.truth.keys() - judged),
            cells=Cells(cells[True, True], cells[True, False], cells[False, True], cells[False, False]),
            success_rate=self._share(pairs, lambda pair: pair.said),
            label_rate=self._share(pairs, lambda pair: pair.label),
            agreement=self._share(pairs, lambda pair: pair.said == pair.label),
            precision=self._share([pair for pair in pairs if pair.said], lambda pair: pair.label),
            recall=self._share([pair for pair in pairs if pair.label], lambda pair: pair.said),
            negative_predictive_value=self._share(
                [pair for pair in pairs if not pair.said], lambda pair: not pair.label
            ),
            kappa=self._kappa(pairs),
            success_rate_sd=_sd([[pair.said for pair in some] for some in by_repeat]),
            agreement_sd=_sd([[pair.said == pair.label for pair in some] for some in by_repeat]),
            flips=share_of(flips),
            n_flipped=sum(len(set(repeated)) > 1 for repeated in spread.values()),
            repeats_kappa=_fleiss(whole, self.tasks, self.seed) if len(repeats) > 1 else None,
            cost_per_verdict=cost_per_verdict(calls),
            tokens_per_verdict=fmean(tokens) if calls else None,
            ranking=rank_agents(pairs, self.seed),
        )  # fmt: skip

    def _share(self, pairs: Sequence[LabelledVerdict], is_counted: Callable[[LabelledVerdict], bool]) -> Figure | None:
        return share_of([(pair.task, float(is_counted(pair))) for pair in pairs])

    def _kappa(self, pairs: Sequence[LabelledVerdict]) -> Figure | None:
        """Cohen's kappa, of columns as `kappa_of_sums` has them: the verdicts, those that agree, none of their own,
        then of success and failure how often judge and labels say it."""
        rows = [(1, pair.said == pair.label, 0, pair.said, pair.label, not pair.said, not pair.label) for pair in pairs]
        sums = _sums([pair.task for pair in pairs], rows)
        return _resampled_figure(sums, lambda some: kappa_of_sums(some, 1), len(pairs), self.seed)


# --- figures ---


def success_of(judgements: Sequence[Judgement]) -> tuple[Figure | None, float | None]:
    """A judge's rate of success over its verdicts, and the standard deviation over its repeats, None for one."""
    verdicts = [verdict for verdict in judgements if verdict.verdict is not None]
    repeats = [
        [bool(verdict.verdict) for verdict in verdicts if verdict.repeat == number]
        for number in {verdict.repeat for verdict in verdicts}
    ]
    return share_of(
        [(verdict.task or f"trajectory {verdict.trajectory}", float(bool(verdict.verdict))) for verdict in verdicts]
    ), _sd(repeats)


def cost_per_verdict(judgements: Iterable[Judgement]) -> float | None:
    """USD, on average over those for which a model was asked; None where there is none, or a cost is not known."""
    costs = [judgement.cost_usd for judgement in judgements if judgement.calls]
    prices = [cost for cost in costs if cost is not None]
    return fmean(prices) if prices and len(prices) == len(costs) else None


def share_of(values: Sequence[tuple[str, float]]) -> Figure | None:
    """The mean of values of 0 and 1, each with its task; None for no values."""
    if not values:
        return None
    by_task: dict[str, list[float]] = {}
    for task, value in values:
        by_task.setdefault(task, []).append(value)
    share = fmean(value for _, value in values)
    added = np.array([total(some) - share * len(some) for some in by_task.values()]) / len(values)
    estimate = interval(share, linearised(share, added), share * (1 - share), len(values))
    return Figure(share, estimate.ci95, len(values))


def _sd(repeats: Sequence[Sequence[bool]]) -> float | None:
    rates = [fmean(verdicts) for verdicts in repeats if verdicts]
    return stdev(rates) if len(rates) > 1 else None


def _sums(tasks: Sequence[str], rows: Sequence[Sequence[float]]) -> np.ndarray:
    """The rows of each task, summed: shape (n_tasks, columns), tasks in the order of their names."""
    if not rows:
        return np.zeros((0, 0))
    places = {task: place for place, task in enumerate(sorted(set(tasks)))}
    sums = np.zeros((len(places), len(rows[0])))
    np.add.at(sums, [places[task] for task in tasks], np.array(rows, dtype=float))
    return sums


def _resampled_figure(sums: np.ndarray, figure: Callable[[np.ndarray], np.ndarray], n: int, seed: int) -> Figure | None:
    """A figure of sums over tasks that depends on their ratios alone, and its percentile interval;
    None where it has no value."""
    if not len(sums):
        return None
    value = figure(sums.sum(axis=0)[None])[0]
    if np.isnan(value):
        return None
    return Figure(float(value), percentiles(figure(resampled(sums, seed))) if len(sums) > 1 else None, n)


def _fleiss(verdicts: Mapping[str, Sequence[bool]], tasks: Mapping[str, str], seed: int) -> Figure | None:
    """Fleiss' kappa of several verdicts a trajectory, as many for each."""
    if not verdicts:
        return None
    counts = np.array([[sum(some), len(some) - sum(some)] for some in verdicts.values()], dtype=float)
    sums = _sums([tasks[trajectory] for trajectory in verdicts], fleiss_columns(counts).tolist())
    return _resampled_figure(sums, fleiss_of_sums, len(verdicts), seed)


def _people_kappa(people: Mapping[str, Mapping[str, bool]], tasks: Mapping[str, str], seed: int) -> Figure | None:
    """Gives Fleiss' kappa of the trajectories with the most common number of labels above one."""
    numbers = Counter(len(votes) for votes in people.values() if len(votes) > 1)
    if not numbers:
        return None
    usual = max(numbers, key=lambda number: (numbers[number], number))
    complete = {trajectory: list(labels.values()) for trajectory, labels in people.items() if len(labels) == usual}
    return _fleiss(complete, tasks, seed)


# --- the order of agents ---


def rank_agents(pairs: Sequence[LabelledVerdict], seed: int) -> Ranking | None:
    """Ranks agents by the judge's rates of success and by labels; None for fewer than two."""
    pairs = [pair for pair in pairs if pair.agent]
    place = {agent: number for number, agent in enumerate(sorted({pair.agent for pair in pairs}))}
    width = len(place)
    if width < 2:
        return None
    rows = np.zeros((len(pairs), 3 * width))
    for row, pair in zip(rows, pairs, strict=True):
        number = place[pair.agent]
        # the agent's verdicts, its successes by the judge, and by labels
        row[[number, width + number, 2 * width + number]] = 1, pair.said, pair.label
    sums = _sums([pair.task for pair in pairs], rows.tolist())
    whole = _rates(sums.sum(axis=0)[None], width)
    n_of = Counter(agent for agent, _ in {(pair.agent, pair.trajectory) for pair in pairs})
    rates = [
        AgentRates(agent, n_of[agent], float(whole.judge[0, number]), float(whole.labels[0, number]))
        for agent, number in place.items()
    ]
    drawn = _rates(resampled(sums, seed), width) if len(sums) > 1 else whole
    stable = kendall_tau(drawn.judge, np.broadcast_to(whole.judge, drawn.judge.shape))
    tau = _resampled_figure(sums, lambda some: kendall_tau(*_rates(some, width)), width, seed)
    best = np.argmax(whole.judge[0])
    with_best = drawn.judge[~np.isnan(drawn.judge[:, best])]
    return Ranking(
        agents=tuple(sorted(rates, key=lambda agent: (-agent.by_judge, agent.agent))),
        tau=tau,
        stability=None if np.isnan(stable).all() else float(np.nanmean(stable)),
        best_kept=float((with_best[:, best] >= np.nanmax(with_best, axis=1) - SAME).mean()),
    )


class _Rates(NamedTuple):
    """Rates of success, each of shape (n, agents); NaN for an agent without a verdict."""

    judge: np.ndarray
    labels: np.ndarray


def _rates(sums: np.ndarray, width: int) -> _Rates:
    with np.errstate(invalid="ignore", divide="ignore"):
        return _Rates(sums[:, width : 2 * width] / sums[:, :width], sums[:, 2 * width :] / sums[:, :width])


def kendall_tau(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of each row of two arrays of shape (n, agents); NaN where a row ranks all alike.
    Agents with a NaN are left out.

    Source: Kendall, Biometrika 33 (1945), 239-251.
    """
    same, untied_one, untied_other = (np.zeros(len(one)) for _ in range(3))
    for i in range(one.shape[1]):
        for j in range(i):
            a, b = one[:, i] - one[:, j], other[:, i] - other[:, j]
            both = ~np.isnan(a + b)
            # rates that differ by rounding alone are equal
            a, b = (np.where(both & (abs(x) > SAME), np.sign(x), 0.0) for x in (a, b))
            same += a * b
            untied_one += abs(a)
            untied_other += abs(b)
    with np.errstate(invalid="ignore", divide="ignore"):
        return same / np.sqrt(untied_one * untied_other)


# --- several judges of the same trajectories ---

# Only trajectories that have a label and a verdict of every judge are counted, so that a difference between two rows is
# a difference of judges. A judge's repeats count by their majority.


@dataclass(frozen=True, slots=True)
class PanelRow:
    """One judge, or the labels."""

    judge: str
    """Empty for the labels, as are model and k."""
    model: str
    k: str
    success_rate: Figure | None
    kappa: Kappa | None
    """Cohen's, with the labels; None for the labels."""
    places: Mapping[str, int]
    """Agent -> 1 and the number of agents with a higher rate of success; agents of equal rates share a place."""
    tau: Figure | None
    """Kendall's tau-b of the order of agents with that by labels;
    None for the labels, and where one ranks all alike."""
    cost_per_verdict: float | None
    """USD; None where a price is not known, or nothing was asked."""


@dataclass(frozen=True, slots=True)
class JudgePair:
    """Two judges, by their places among `Panel.judges`."""

    first: int
    second: int
    kappa: Kappa


@dataclass(frozen=True, slots=True)
class Panel:
    """Two or more judges of the same trajectories."""

    n_trajectories: int
    """Trajectories with a label and a verdict of every judge."""
    n_left_out: int
    """Labelled trajectories that some judge alone has judged, or without a verdict."""
    n_tasks: int
    agents: tuple[str, ...]
    """Agents with such trajectories, best first by labels; empty for fewer than two."""
    judges: tuple[PanelRow, ...]
    labels: PanelRow
    pairs: tuple[JudgePair, ...]


def judge_panel(
    verdicts: Sequence[Judgement], labels: Sequence[Judgement], *, no_verdict: NoVerdict = "left-out", seed: int = 0
) -> Panel | None:
    """Compares judges (rules, model and k) on the labelled trajectories that all of them have judged.

    None for fewer than two judges with a verdict on a labelled trajectory, and where no trajectory is judged by all.

    Arguments as for `agreements`.
    """
    truth = majority(labels_by_person(labels))
    judged = [(of_judge, majority_of_repeats(_counted(of_judge, no_verdict))) for of_judge in by_judge(verdicts)]
    judged = [(of_judge, some) for of_judge, some in judged if truth.keys() & some.keys()]
    if len(judged) < 2:
        return None
    tasks = tasks_of([*verdicts, *labels])
    agents = {row.trajectory: row.agent for row in [*verdicts, *labels] if row.agent}
    shared = [trajectory for trajectory in truth if all(trajectory in some for _, some in judged)]
    if not shared:
        return None
    number = {task: place for place, task in enumerate(sorted({tasks[trajectory] for trajectory in shared}))}
    marks = np.array([[*(some[name] for _, some in judged), truth[name]] for name in shared], dtype=bool)
    kappas = pairwise_kappas(marks, np.array([number[tasks[trajectory]] for trajectory in shared]), seed)
    last, rows, by_labels = len(judged), [], dict[str, int]()
    for place, (of_judge, some) in enumerate(judged):
        pairs = [
            LabelledVerdict(name, tasks[name], agents.get(name, ""), 1, some[name], truth[name]) for name in shared
        ]
        ranking = rank_agents(pairs, seed)
        rates = ranking.agents if ranking else ()
        by_labels = _places({agent.agent: agent.by_labels for agent in rates})
        rows.append(
            PanelRow(
                of_judge[0].judge, of_judge[0].model, of_judge[0].k,
                success_rate=share_of([(pair.task, float(pair.said)) for pair in pairs]),
                kappa=kappas[place, last],
                places=_places({agent.agent: agent.by_judge for agent in rates}),
                tau=ranking.tau if ranking else None,
                cost_per_verdict=cost_per_verdict(of_judge),
            )
        )  # fmt: skip
    label_rate = share_of([(tasks[trajectory], float(truth[trajectory])) for trajectory in shared])
    return Panel(
        n_trajectories=len(shared),
        n_left_out=len(truth.keys() & {verdict.trajectory for verdict in verdicts}) - len(shared),
        n_tasks=len(number),
        agents=tuple(sorted(by_labels, key=lambda agent: (by_labels[agent], agent))),
        judges=tuple(rows),
        labels=PanelRow("", "", "", label_rate, None, by_labels, None, None),
        pairs=tuple(JudgePair(a, b, kappa) for (a, b), kappa in kappas.items() if b < last),
    )  # fmt: skip


def _places(rates: Mapping[str, float]) -> dict[str, int]:
    return {agent: 1 + sum(other > rate + SAME for other in rates.values()) for agent, rate in rates.items()}

"""Several judges of the same trajectories: agreement with labels and with each other, and the place of each agent under each.

Only trajectories that have a label and a verdict of every judge are counted, so that a difference between two rows is a difference of
judges. A judge's repeats count by their majority.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from seeact_offline.scoring.agreement import Kappa, pairwise_kappas
from seeact_offline.scoring.inference import SAME
from seeact_offline.trajectories.judge_agreement import (
    Figure,
    LabelledVerdict,
    NoVerdict,
    by_judge,
    cost_per_verdict,
    labels_by_person,
    majority,
    rank_agents,
    share_of,
    tasks_of,
)
from seeact_offline.trajectories.judgements import Judgement


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
    """Kendall's tau-b of the order of agents with that by labels; None for the labels, and where one ranks all alike."""
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
    """None for fewer than two judges (rules, model and k) with a verdict on a labelled trajectory, and where no trajectory is judged by all.

    Arguments as for `agreements`.
    """
    truth = majority(labels_by_person(labels))
    judges = [ones for ones in by_judge(verdicts) if truth.keys() & _verdicts(ones, no_verdict).keys()]
    if len(judges) < 2:
        return None
    tasks, agents = (
        tasks_of([*verdicts, *labels]),
        {one.trajectory: one.agent for one in [*verdicts, *labels] if one.agent},
    )
    said = [_verdicts(ones, no_verdict) for ones in judges]
    shared = [one for one in truth if all(one in some for some in said)]
    if not shared:
        return None
    task_names = [tasks.get(one, f"trajectory {one}") for one in shared]
    number = {task: place for place, task in enumerate(sorted(set(task_names)))}
    marks = np.array([[*(some[one] for some in said), truth[one]] for one in shared], dtype=bool)
    kappas = pairwise_kappas(marks, np.array([number[task] for task in task_names]), seed)
    named = sorted({agents[one] for one in shared if one in agents})
    orders = _Orders(shared, task_names, agents, named if len(named) > 1 else [], truth, seed)
    last = len(judges)
    rows = [
        PanelRow(
            ones[0].judge, ones[0].model, ones[0].k,
            success_rate=share_of([(task, float(some[one])) for task, one in zip(task_names, shared, strict=True)], seed),
            kappa=kappas[place, last],
            places=orders.places(some),
            tau=orders.tau(some),
            cost_per_verdict=cost_per_verdict(ones),
        )
        for place, (ones, some) in enumerate(zip(judges, said, strict=True))
    ]  # fmt: skip
    by_labels = orders.places(truth)
    return Panel(
        n_trajectories=len(shared),
        n_left_out=len(truth.keys() & {one.trajectory for one in verdicts}) - len(shared),
        n_tasks=len(number),
        agents=tuple(sorted(by_labels, key=lambda agent: (by_labels[agent], agent))),
        judges=tuple(rows),
        labels=PanelRow(
            "", "", "", share_of([(task, float(truth[one])) for task, one in zip(task_names, shared, strict=True)], seed),
            None, by_labels, None, None,
        ),
        pairs=tuple(JudgePair(a, b, kappa) for (a, b), kappa in kappas.items() if b < last),
    )  # fmt: skip


def _verdicts(ones: Sequence[Judgement], no_verdict: NoVerdict) -> dict[str, bool]:
    """The verdict of most repeats on each trajectory; one on which they are split evenly has none."""
    repeats: dict[str, dict[str, bool]] = {}
    for one in ones:
        if one.ran and (one.verdict is not None or no_verdict == "failure"):
            repeats.setdefault(one.trajectory, {})[str(one.repeat)] = bool(one.verdict)
    return majority(repeats)


@dataclass(frozen=True, slots=True)
class _Orders:
    """The order of agents by verdicts on the shared trajectories."""

    shared: Sequence[str]
    tasks: Sequence[str]
    """The task of each."""
    agents: Mapping[str, str]
    """Trajectory -> agent."""
    named: Sequence[str]
    """The agents that are ranked; empty for fewer than two."""
    truth: Mapping[str, bool]
    seed: int

    def places(self, said: Mapping[str, bool]) -> dict[str, int]:
        rates = {
            agent: fmean([said[one] for one in self.shared if self.agents.get(one) == agent]) for agent in self.named
        }
        return {agent: 1 + sum(other > rate + SAME for other in rates.values()) for agent, rate in rates.items()}

    def tau(self, said: Mapping[str, bool]) -> Figure | None:
        if not self.named:
            return None
        pairs = [
            LabelledVerdict(one, task, 1, said[one], self.truth[one])
            for one, task in zip(self.shared, self.tasks, strict=True)
            if one in self.agents
        ]
        of = [self.agents[pair.trajectory] for pair in pairs]
        return rank_agents(pairs, of, self.named, self.seed).tau

"""The figures of a cycle: of its attempts, of the test splits after it, and paired differences. Pure functions of finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seeact_offline.results.comparing import compare
from seeact_offline.runs.run import Run
from seeact_offline.scoring import aggregate, inference
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.training.attempts import Exploration


def exploration_figures(found: Exploration, n_items: int, seed: int) -> dict[str, Any]:
    """`s_at`: tasks with an accepted attempt within k, over all tasks. `pass_at`: steps that some attempt within k has right, over all
    steps; another figure, as those of a task may be right in different attempts. `n_items`: actions of the accepted attempts."""
    tasks = found.first.tasks
    s_at, pass_at = [], []
    for k in range(1, found.most + 1):
        solved, right = found.solved_within(k), found.right_within(k)
        s_at.append({"k": k, "tasks": len(solved), **_share({task: [float(task in solved)] for task in tasks}, seed)})
        steps = {task: [float(row.key in right) for row in rows] for task, rows in tasks.items()}
        pass_at.append({"k": k, "steps": len(right), **_share(steps, seed)})
    completed = found.first.completed
    return {
        "n_tasks": len(tasks),
        "n_steps": sum(map(len, tasks.values())),
        "attempts": [
            {
                "number": one.number,
                "tasks": len(one.asked.tasks),
                "accepted": len(one.accepted),
                "not_run": one.asked.run.n_failed,
            }
            for one in found.attempts
        ],
        "accepted_tasks": len(found.accepted),
        "accepted_turns": n_items,
        "s_at": s_at,
        "pass_at": pass_at,
        "completed_at_1": {
            "tasks": len(completed),
            **_share({task: [float(task in completed)] for task in tasks}, seed),
        },
    }


def _share(values: Mapping[str, Sequence[float]], seed: int) -> dict[str, Any]:
    """The mean over steps (over tasks where each has one value), its interval clustered by task."""
    found = aggregate.metric(values, seed)
    return {"value": found.micro, "ci95": list(aggregate.micro_interval(values, seed).ci95)}


def split_figures(run: Run) -> dict[str, Any]:
    """Every metric as its protocol quotes it, with the number of steps and tasks."""
    results = run.record
    sizes = {"n_tasks": results.n_tasks, "n_steps": results.n_steps, "n_not_run": run.n_failed}
    return {**sizes, **results.headlines}


def differences(run: Run, others: Mapping[str, Run], seed: int) -> dict[str, Any]:
    """The run minus each of others, its baselines, metric by metric, paired by step and clustered by task.

    p is adjusted for the number of baselines.
    """
    gaps = {
        name: {pair.metric: pair.gap for pair in compare(other, run, seed=seed).pairs} for name, other in others.items()
    }
    found: dict[str, Any] = {name: {} for name in others}
    for metric in METRICS:
        of_metric = {name: by_metric[metric] for name, by_metric in gaps.items() if metric in by_metric}
        adjusted = inference.holm([gap.p for gap in of_metric.values()])
        for (name, gap), p in zip(of_metric.items(), adjusted, strict=True):
            ci95 = None if gap.ci95 is None else list(gap.ci95)
            found[name][metric] = {"value": gap.macro, "ci95": ci95, "p": p}
    return found

"""The results of episodes: success by state, with intervals over tasks, named ends, steps and costs; as a record and for people.

Success counts over episodes with a verdict. One that the browser or a server ended is counted by its name, and is no zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from seeact_offline.files.markdown import printable
from seeact_offline.files.table import Table
from seeact_offline.live.stop_rules import ENDS, ERROR, MEANINGS
from seeact_offline.scoring.inference import wilson


class EpisodeLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One episode, a line of `episodes.jsonl`."""

    annotation_id: str
    task: str
    website: str
    domain: str
    end: str
    done: bool | None
    reached: bool | None
    n_steps: int
    n_unreadable: int = 0
    n_failed_acts: int = 0
    n_helped: int = 0
    detail: str = ""
    answer: str | None = None
    attempts: int = 1
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    model_s: float = 0.0
    browser_s: float = 0.0

    @property
    def has_verdict(self) -> bool:
        return self.end != ERROR


class Figure(msgspec.Struct, frozen=True):
    """A share of tasks."""

    macro: float | None
    """Mean over tasks; None where no episode has a verdict."""
    micro: float | None
    """Share of episodes: the same for one episode a task."""
    ci95: tuple[float, float] | None
    """Wilson's interval over tasks."""


class Spending(msgspec.Struct, frozen=True):
    """Sums over episodes; `per_success`: the same by number of successes, None for none."""

    steps: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    per_success: Mapping[str, float] | None


class LiveResults(msgspec.Struct, frozen=True):
    """`results.json` of a run of `browse`."""

    n_tasks: int
    n_verdicts: int
    success: Figure
    """The state held where the agent stopped."""
    reached: Figure
    """It held after some action; the agent was not told."""
    unaided: Figure | None
    """Of the oracle with help: success without any recorded act in place of its own; None for other models."""
    by_website: Mapping[str, Figure]
    ends: Mapping[str, int]
    usage: Spending
    settings: Mapping[str, object]
    schema: Literal[1] = 1


def share_of_tasks(values: Sequence[bool]) -> Figure:
    """A figure of one value a task.

    >>> share_of_tasks([True, True, False, False]).macro
    0.5
    """
    if not values:
        return Figure(None, None, None)
    mean = float(np.mean(values))
    return Figure(round(mean, 9), round(mean, 9), wilson(mean, len(values)))


def summarise(episodes: Sequence[EpisodeLine], settings: Mapping[str, object], is_helped: bool) -> LiveResults:
    """`is_helped`: the model was the oracle with help."""
    judged = [one for one in episodes if one.has_verdict]
    ends = Counter(one.end for one in episodes)
    n_success = sum(bool(one.done) for one in judged)
    costs = [one.cost_usd for one in episodes if one.calls]
    cost = None if None in costs else sum(filter(None, costs))
    sums = {
        "steps": sum(one.n_steps for one in episodes),
        "calls": sum(one.calls for one in episodes),
        "prompt_tokens": sum(one.prompt_tokens for one in episodes),
        "completion_tokens": sum(one.completion_tokens for one in episodes),
    }
    per = {**sums, **({} if cost is None else {"cost_usd": cost})}
    sites = dict.fromkeys(one.website for one in judged)
    return LiveResults(
        n_tasks=len(episodes),
        n_verdicts=len(judged),
        success=share_of_tasks([bool(one.done) for one in judged]),
        reached=share_of_tasks([bool(one.reached) for one in judged]),
        unaided=share_of_tasks([bool(one.done) and not one.n_helped for one in judged]) if is_helped else None,
        by_website={site: share_of_tasks([bool(one.done) for one in judged if one.website == site]) for site in sites},
        ends={name: ends[name] for name in ENDS if ends[name]},
        usage=Spending(
            **sums, cost_usd=cost,
            per_success={name: round(value / n_success, 6) for name, value in per.items()} if n_success else None,
        ),
        settings=settings,
    )  # fmt: skip


def report(results: LiveResults, episodes: Sequence[EpisodeLine]) -> str:
    """`report.md`."""
    figures = Table(header=("", "% of tasks", "95 % interval"), rows=figure_rows(results))
    ends = Table(
        header=("end", "episodes", "meaning"), rows=[(name, str(n), MEANINGS[name]) for name, n in results.ends.items()]
    )
    sites = Table(
        header=("website", "success"),
        rows=[(site, percent(figure.macro)) for site, figure in results.by_website.items()],
    )
    mean = [one.n_steps for one in episodes]
    remark = (
        "Success is decided by the state of the page where the agent stopped; the sites are small and bundled, so this is no "
        "reproduction of figures on live sites."
    )
    lines = [
        "# Episodes", remark,
        f"{results.n_tasks} tasks, {results.n_verdicts} with a verdict; {np.mean(mean) if mean else 0:.1f} steps an episode, "
        f"{results.usage.calls} calls.",
        figures.markdown(), "## Ends", ends.markdown(), "## By website", sites.markdown(),
    ]  # fmt: skip
    failed = [one for one in episodes if not one.has_verdict]
    if failed:
        lines += ["## Errors", *(f"- {printable(one.task)}: {printable(one.detail)}" for one in failed[:20])]
    return "\n\n".join(lines) + "\n"


def figure_rows(results: LiveResults) -> list[tuple[str, str, str]]:
    named = [("success", results.success), ("ever reached", results.reached)]
    if results.unaided is not None:
        named.append(("unaided", results.unaided))
    return [(name, percent(one.macro), interval_text(one.ci95)) for name, one in named]


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def interval_text(ci95: tuple[float, float] | None) -> str:
    return "-" if ci95 is None else f"{100 * ci95[0]:.1f} to {100 * ci95[1]:.1f}"

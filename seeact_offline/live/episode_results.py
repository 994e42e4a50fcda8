"""Ends and results of episodes: when an episode ends, success by state with intervals over tasks, steps and costs; as
records and for people.

Success counts over episodes with a verdict. One that the browser or a server ended is counted by its name, and is no
zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from seeact_offline.files.formats import decoded
from seeact_offline.files.known_files import EPISODES
from seeact_offline.files.markdown import printable
from seeact_offline.files.table import Table
from seeact_offline.files.whole import Journal
from seeact_offline.runs.folder import read_lines
from seeact_offline.scoring.inference import interval, wilson
from seeact_offline.trajectories.judgements import LaterVerdict

FULL = "raw reward 1"
STATE = "state"
"""The name of the verdict that the page's state gives."""
STATE_REMARK = (
    "Success is decided by the state of the page where the agent stopped; the sites are small and bundled, so this is "
    "no reproduction of figures on live sites."
)
MINIWOB_REMARK = (
    "Success is a raw reward above 0 where the agent stopped, as published; some pages give less than 1 for what is "
    "half right, so the second figure asks for 1. An episode whose seed was drawn twice was run once and counts twice."
)
_BASELINES = Path(__file__).parent / "miniwob_baselines.json"
"""Model -> the command that was run and, for each task, the shares of its five episodes with a raw reward above 0 and
of at least 1, from `by_website` and `raw_1_by_website` of that run's results.json."""

# --- when an episode ends ---

ANSWERED, STOPPED, OVER, LIMIT = "answered", "stopped", "over", "limit"
UNREADABLE, REPEATED, NO_OP, ERROR = "unreadable", "repeated", "no_op", "error"
MEANINGS = {
    ANSWERED: "the agent gave a final answer",
    STOPPED: (
        "the agent said that it was done; of the oracle without help also: its language has no words for the next act"
    ),
    OVER: "the page ended the task by itself, solved or failed",
    LIMIT: "the most steps of its rules",
    UNREADABLE: "three replies in a row without an action",
    REPEATED: "the same action several times in a row",
    NO_OP: "two steps in a row without an action that could be carried out",
    ERROR: "the browser or the model's server failed, after retries: no verdict",
}
"""Ends, in the order in which results list them."""


@dataclass(frozen=True, slots=True)
class StopRules:
    """An agent's rules.

    Sources: WebVoyager's and OpenWebVoyager's `max_iter` of their scripts, VisualWebArena's `early_stop` (run.py),
    SeeAct's `max_op` and `max_continuous_no_op` (src/config/online_exp.toml), which is tested before an action is
    carried out. The limit of GUI models is ours.
    """

    steps: int = 15
    """Questions about a new view, those whose reply could not be read among them."""
    unreadable: int | None = 3
    """Replies in a row that hold no action."""
    same: int | None = None
    """Equal actions in a row."""
    typed: int | None = None
    """Texts typed into one element."""
    no_op: int | None = None
    """Steps in a row without an action that could be carried out."""

    def end(self, said: Sequence[str | None], done: Sequence[bool]) -> str | None:
        """The end that the steps so far lead to; None for none. `said`: each step's action, None where there is none.
        `done`: True for each that was carried out."""
        last = said[-1] if said else None
        if self.unreadable and len(said) >= self.unreadable and not any(said[-self.unreadable :]):
            return UNREADABLE
        if self.same and last and len(said) >= self.same and all(action == last for action in said[-self.same :]):
            return REPEATED
        if self.typed and last and last.startswith("type") and sum(action == last for action in said) >= self.typed:
            return REPEATED
        if self.no_op and len(done) >= self.no_op and not any(done[-self.no_op :]):
            return NO_OP
        return LIMIT if len(said) >= self.steps else None


SEEACT = StopRules(steps=29, unreadable=None, no_op=2)
RULES = {
    "webvoyager": StopRules(unreadable=None),
    "webvoyager-text": StopRules(unreadable=None),
    "openwebvoyager": StopRules(unreadable=None),
    "visualwebarena": StopRules(steps=30, same=5, typed=5),
}
"""Agent -> its rules; GUI models have the defaults, SeeAct's strategies `SEEACT`."""


# --- records ---


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
    verdict_by: str = STATE
    """`state`; of a task without a check `person`, `judge` with its name, or nothing where there is no verdict."""
    raw_reward: float | None = None
    """The page's own reward; None where it gives none."""
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
        return self.done is not None

    def with_verdict(self, later: LaterVerdict | None) -> EpisodeLine:
        """The line with a verdict that was given later, which counts where the state has none."""
        if self.end == ERROR or self.verdict_by == STATE:
            return self
        return replace(self, done=later and later.success, verdict_by=later.by if later else "")

    @property
    def has_full_reward(self) -> bool:
        return self.raw_reward is not None and self.raw_reward >= 1


def read_episodes(folder: Path, argument: str = "out") -> dict[str, EpisodeLine]:
    """The episodes of a folder of `browse` by id, a later line in place of an earlier one. Raises InputError for a line
    that is no episode."""
    read = partial(decoded, kind=EpisodeLine)
    lines = read_lines(Journal(folder / EPISODES), read, "which is no episode", argument)
    return {episode.annotation_id: episode for episode in lines}


class Figure(msgspec.Struct, frozen=True):
    """A share of tasks."""

    macro: float | None
    """Mean over tasks; None where no episode has a verdict."""
    micro: float | None
    """Share of episodes: the same for one episode a task."""
    ci95: tuple[float, float] | None
    """Wilson's interval over tasks; clustered by task where one has several episodes."""


class Spending(msgspec.Struct, frozen=True):
    """Sums over episodes; `per_success`: the same by number of successes, None for none."""

    steps: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    per_success: Mapping[str, float] | None


class BaselineFigure(msgspec.Struct, frozen=True):
    """Means over tasks of MiniWoB++ of a model that knows nothing and asks no network."""

    success: float
    success_raw_1: float


class LiveResults(msgspec.Struct, frozen=True):
    """`results.json` of a run of `browse`."""

    n_tasks: int
    n_episodes: int
    n_verdicts: int
    """Episodes with a verdict."""
    verdicts: Mapping[str, int]
    """Source of a verdict, as `EpisodeLine.verdict_by` -> number of verdicts."""
    success: Figure
    """The state held where the agent stopped, or a person or judge says that a task without a check was done."""
    reached: Figure
    """The state held after some action; the agent was not told."""
    unaided: Figure | None
    """Success of the oracle with help, without any recorded act in place of its own; None for other models."""
    by_website: Mapping[str, Figure]
    ends: Mapping[str, int]
    usage: Spending
    settings: Mapping[str, object]
    success_raw_1: Figure | None = None
    """Success by a raw reward of at least 1, for pages with a reward of their own. `success` is one above 0."""
    raw_1_by_website: Mapping[str, Figure] | None = None
    baselines: Mapping[str, BaselineFigure] | None = None
    """Figures of models that know nothing, over the tasks with a verdict."""
    schema: Literal[1] = 1

    @property
    def n_unjudged(self) -> int:
        """Episodes on which nobody has given a verdict, of tasks without a check."""
        return self.n_episodes - self.n_verdicts - self.ends.get(ERROR, 0)

    @property
    def is_by_state(self) -> bool:
        return self.verdicts.keys() <= {STATE} and not self.n_unjudged


def share_of_tasks(values: Sequence[bool]) -> Figure:
    """A figure of one value a task.

    >>> share_of_tasks([True, True, False, False]).macro
    0.5
    """
    if not values:
        return Figure(None, None, None)
    mean = float(np.mean(values))
    return Figure(round(mean, 9), round(mean, 9), wilson(mean, len(values)))


def share_of_episodes(tasks: Sequence[Sequence[bool]]) -> Figure:
    """A figure of several values a task, one an episode.

    >>> share_of_episodes([[True, False], [True, True]]).macro
    0.75
    """
    if all(len(values) == 1 for values in tasks):
        return share_of_tasks([value for (value,) in tasks])
    means = np.array([np.mean(values) for values in tasks])
    macro, micro = float(means.mean()), float(np.mean([value for values in tasks for value in values]))
    spread = float(np.mean([np.mean([(value - macro) ** 2 for value in values]) for values in tasks]))
    ci95 = interval(macro, means, spread, sum(map(len, tasks))).ci95
    return Figure(round(macro, 9), round(micro, 9), ci95)


def summarise(
    episodes: Sequence[EpisodeLine], settings: Mapping[str, object], is_helped: bool, is_seeded: bool = False
) -> LiveResults:
    """`is_helped`: the model was the oracle with help. `is_seeded`: a website is a task, with several episodes drawn by
    seeds and a reward of its own; one that was drawn twice stands twice, and was run and paid for once."""
    judged = [episode for episode in episodes if episode.has_verdict]
    ends = Counter(episode.end for episode in episodes)
    run = [*{episode.annotation_id: episode for episode in episodes}.values()]
    n_success = sum(bool(episode.done) for episode in run if episode.has_verdict)
    costs = [episode.cost_usd for episode in run if episode.calls]
    cost = None if None in costs else sum(filter(None, costs))
    fields = {"steps": "n_steps", **{name: name for name in ("calls", "prompt_tokens", "completion_tokens")}}
    sums = {name: sum(getattr(episode, of) for episode in run) for name, of in fields.items()}
    per = {**sums, **({} if cost is None else {"cost_usd": cost})}
    sites = {
        site: [episode for episode in judged if episode.website == site]
        for site in dict.fromkeys(episode.website for episode in judged)
    }

    def share_of(some: Sequence[EpisodeLine], holds: Callable[[EpisodeLine], bool]) -> Figure:
        if not is_seeded:
            return share_of_tasks([holds(episode) for episode in some])
        tasks: dict[str, list[bool]] = {}
        for episode in some:
            tasks.setdefault(episode.website, []).append(holds(episode))
        return share_of_episodes([*tasks.values()])

    def by_website(holds: Callable[[EpisodeLine], bool]) -> dict[str, Figure]:
        return {site: share_of(some, holds) for site, some in sites.items()}

    return LiveResults(
        n_tasks=len({episode.website if is_seeded else episode.annotation_id for episode in episodes}),
        n_episodes=len(episodes),
        n_verdicts=len(judged),
        verdicts=dict(Counter(episode.verdict_by for episode in judged)),
        success=share_of(judged, lambda episode: bool(episode.done)),
        reached=share_of(
            [episode for episode in judged if episode.reached is not None], lambda episode: bool(episode.reached)
        ),
        unaided=share_of(judged, lambda episode: bool(episode.done) and not episode.n_helped) if is_helped else None,
        by_website=by_website(lambda episode: bool(episode.done)),
        ends={name: ends[name] for name in MEANINGS if ends[name]},
        usage=Spending(
            **sums, cost_usd=cost,
            per_success={name: round(value / n_success, 6) for name, value in per.items()} if n_success else None,
        ),
        settings=settings,
        success_raw_1=share_of(judged, lambda episode: episode.has_full_reward) if is_seeded else None,
        raw_1_by_website=by_website(lambda episode: episode.has_full_reward) if is_seeded else None,
        baselines=baselines(sites) if is_seeded and sites else None,
    )  # fmt: skip


class _Measured(msgspec.Struct, frozen=True):
    command: str
    tasks: Mapping[str, tuple[float, float]]


def baselines(tasks: Collection[str]) -> dict[str, BaselineFigure]:
    """Model -> its figures over these tasks. Raises KeyError for an unknown task.

    >>> baselines(["click-test"])["builtin/submit"].success
    0.0
    """
    figures = {}
    for model, measured in msgspec.json.decode(_BASELINES.read_bytes(), type=dict[str, _Measured]).items():
        success, full = np.mean([measured.tasks[name] for name in tasks], axis=0)
        figures[model] = BaselineFigure(round(float(success), 9), round(float(full), 9))
    return figures


def report(results: LiveResults, episodes: Sequence[EpisodeLine]) -> str:
    """`report.md`."""
    figures = Table(header=("", "% of tasks", "95 % interval"), rows=figure_rows(results))
    ends = Table(
        header=("end", "episodes", "meaning"), rows=[(name, str(n), MEANINGS[name]) for name, n in results.ends.items()]
    )
    full = results.raw_1_by_website or {}
    unit = "task" if full else "website"
    sites = Table(
        header=(unit, "success", *([FULL] if full else [])),
        rows=[
            (site, percent(figure.macro), *([percent(full[site].macro)] if full else []))
            for site, figure in results.by_website.items()
        ],
    )
    n_steps = [episode.n_steps for episode in episodes]
    n_episodes, remark = "", STATE_REMARK
    if results.success_raw_1 is not None:
        n_episodes, remark = f", {results.n_episodes} episodes", MINIWOB_REMARK
    lines = [
        "# Episodes", remark if results.is_by_state else f"{verdicts_in_words(results)}.",
        f"{results.n_tasks} tasks{n_episodes}, {results.n_verdicts} with a verdict; "
        f"{np.mean(n_steps) if n_steps else 0:.1f} steps an episode, {results.usage.calls} calls.",
        figures.markdown(),
    ]  # fmt: skip
    if results.baselines is not None:
        rows = [
            (model, percent(figure.success), percent(figure.success_raw_1))
            for model, figure in results.baselines.items()
        ]
        lines += [
            "## Without knowing anything", "Measured over the same tasks, five seeds each, with agent qwen2.5-vl:",
            Table(header=("model", "success", FULL), rows=rows).markdown(),
        ]  # fmt: skip
    lines += ["## Ends", ends.markdown(), f"## By {unit}", sites.markdown()]
    failed = [episode for episode in episodes if episode.end == ERROR]
    if failed:
        lines += [
            "## Errors",
            *(f"- {printable(episode.task)}: {printable(episode.detail)}" for episode in failed[:20]),
        ]
    return "\n\n".join(lines) + "\n"


def verdicts_in_words(results: LiveResults) -> str:
    """`Verdicts: state 3, person 2; without one: 4, which count neither as success nor as failure`."""
    counts = ", ".join(f"{by} {n}" for by, n in results.verdicts.items()) or "none"
    unjudged = f"; without one: {results.n_unjudged}, which count neither as success nor as failure"
    return f"Verdicts: {counts}{unjudged if results.n_unjudged else ''}"


def figure_rows(results: LiveResults) -> list[tuple[str, str, str]]:
    named = [("success", results.success)]
    if results.success_raw_1 is None:
        named.append(("ever reached", results.reached))
    else:
        named.append((FULL, results.success_raw_1))
    if results.unaided is not None:
        named.append(("unaided", results.unaided))
    return [
        (name, percent(figure.macro), " to ".join(map(percent, figure.ci95)) if figure.ci95 else "-")
        for name, figure in named
    ]


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"

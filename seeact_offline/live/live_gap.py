"""Table 4 where episodes of `browse` are named beside runs of `eval`: the same tasks offline, step by step, and in a
browser.

Pairs are a folder of episodes and the runs of the same agent and model; every figure of a pair is over the tasks that
both have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from seeact_offline.files.digest import file_digest
from seeact_offline.files.table import Table
from seeact_offline.live.episode_results import EpisodeLine, read_episodes
from seeact_offline.records import InputError
from seeact_offline.scoring.inference import mcnemar_p
from seeact_offline.scoring.paper_tables import paper_table
from seeact_offline.scoring.protocols import PROTOCOLS
from seeact_offline.scoring.results import StepRow
from seeact_offline.scoring.run_figures import OFFLINE, Figure, share_of_tasks
from seeact_offline.scoring.waterfall import BY_EYE, CAUSES, NO_ROW, SUCCESS
from seeact_offline.tables import methods
from seeact_offline.tables.document import (
    NO_FIGURE,
    ORIGIN,
    Provenance,
    TableDocument,
    error_columns,
    figure_cells,
    figure_columns,
    interval_of,
    values_table,
)
from seeact_offline.tables.table_input import TableInput, TableRun, find_runs, is_live, read_typed, relative

TITLE = "Table 4: The same tasks offline and live"
FIGURES = {"offline0": "Offline 0", "offline1": "Offline 1", "live": "Live", "reached": "Ever reached"}
"""The figures of a pair, with their titles."""
NO_REPRODUCTION = (
    "No reproduction of the paper's online figures, which are a person's judgement on live websites: the bundled ones "
    "are small, and success there is the state of a page."
)
MEANINGS = (
    "Offline 0 and 1: tasks with no failing step, or at most one, when every step is asked about on its recorded page. "
    "Live: tasks whose state held where the agent stopped, or which, without a check, a person or a judge finds done; "
    "ever reached: the state held after some action."
)
UNAIDED = (
    "An oracle's episode in which a recorded act was carried out in place of its own counts as not solved, "
    "for offline nothing helps."
)
_EXPECTED = "episodes of browse, and runs of eval by the same agent and model"


class _Settings(msgspec.Struct, frozen=True):
    agent: str
    model: str
    split: str


class _Manifest(msgspec.Struct, frozen=True):
    settings: _Settings


@dataclass(frozen=True, slots=True)
class LiveEpisodes:
    """A folder of `browse`."""

    name: str
    """Path of the folder as the table names it."""
    results_sha256: str
    settings: _Settings
    episodes: Mapping[str, EpisodeLine]
    """Episodes by task."""

    @property
    def method(self) -> str:
        return f"{self.settings.agent}, {self.settings.model}"

    @property
    def source(self) -> dict[str, Any]:
        return {"run": self.name, "results_sha256": self.results_sha256, "split": self.settings.split}


@dataclass(frozen=True)
class Pair:
    """Episodes and the runs over recorded steps of the same agent and model, one a split."""

    live: LiveEpisodes
    offline: Sequence[TableRun]

    @cached_property
    def failing_steps(self) -> dict[str, float]:
        """Number of failing steps of each task of the runs."""
        return {task: n for run in self.offline for task, n in run.failing_steps.items()}

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks of both, with a verdict, in the order of the episodes."""
        return [
            task
            for task, episode in self.live.episodes.items()
            if episode.done is not None and task in self.failing_steps
        ]

    @property
    def left_out(self) -> dict[str, int]:
        """The tasks that do not count, by reason."""
        episodes, steps = self.live.episodes, self.failing_steps
        return {
            "without an episode": len(steps.keys() - episodes.keys()),
            "without recorded steps": len(episodes.keys() - steps.keys()),
            "without a verdict": sum(episode.done is None and task in steps for task, episode in episodes.items()),
        }

    def done(self, name: str) -> set[str]:
        """The tasks that are done by one of FIGURES."""
        if name in OFFLINE:
            return {task for task in self.tasks if self.failing_steps[task] <= OFFLINE.index(name)}
        episodes = self.live.episodes
        field = "done" if name == "live" else name
        return {task for task in self.tasks if getattr(episodes[task], field) and not episodes[task].n_helped}

    def figure(self, name: str) -> Figure:
        return share_of_tasks(len(self.done(name)) / len(self.tasks), len(self.tasks))

    def discordant(self, name: str) -> tuple[int, int, float]:
        """Tasks done live alone, tasks done by this offline figure alone, and McNemar's exact p."""
        live, offline = self.done("live"), self.done(name)
        counts = len(live - offline), len(offline - live)
        return (*counts, mcnemar_p(*counts))

    def first_losses(self) -> Counter[tuple[str, str]]:
        """Operation and cause of the first failing step of each task that was solved live and is no Offline 0."""
        lost = self.done("live") - self.done("offline0")
        steps: dict[str, list[StepRow]] = {}
        for step in (step for run in self.offline for step in run.counted if step.annotation_id in lost):
            steps.setdefault(step.annotation_id, []).append(step)
        return Counter(_first_loss(steps[task]) for task in lost)

    @property
    def sources(self) -> list[dict[str, Any]]:
        return [self.live.source, *(run.source for run in self.offline)]


def _first_loss(steps: Sequence[StepRow]) -> tuple[str, str]:
    first = next((step for step in sorted(steps, key=lambda step: step.n_before) if step.success != 1.0), None)
    if first is None:
        return NO_FIGURE, NO_ROW
    cause = first.person_cause or first.outcome
    # a person may find right what the rules did not
    return first.target.op or NO_FIGURE, cause if cause != SUCCESS else NO_FIGURE


def build(given: TableInput) -> TableDocument:
    """Raises InputError for runs that have no place in one table, for episodes without a partner, and for pairs without
    a task in common."""
    folders = find_runs(given.paths)
    live = [path for path in folders if is_live(path)]
    recorded = [path for path in folders if path not in live]
    if not recorded:
        raise InputError("runs", _EXPECTED, f"only episodes: {', '.join(relative(path, given.base) for path in live)}")
    offline = replace(given, paths=recorded)
    pairs = []
    for path in live:
        settings = read_typed(path / "manifest.json", _Manifest).settings
        name, digest = relative(path, given.base), file_digest(path / "results.json")
        pairs.append(_pair(LiveEpisodes(name, digest, settings, read_episodes(path, "runs")), offline.runs))
    used = {run.name: run for pair in pairs for run in pair.offline}
    alone = [run.name for run in offline.runs if run.name not in used]
    provenance = Provenance(
        table=given.table,
        inputs=[*(pair.live.name for pair in pairs), *used],
        stderr=given.stderr,
        runs=[*(pair.live.source for pair in pairs), *(run.source for run in used.values())],
    )
    notes = [
        f"Percent of the tasks that both have. 95 % interval: {interval_of([pair.figure('live') for pair in pairs])}. "
        f"{MEANINGS}",
        NO_REPRODUCTION,
        *([UNAIDED] if any(episode.n_helped for pair in pairs for episode in pair.live.episodes.values()) else []),
        *map(_left_out, pairs),
        *(
            f"Not all steps that were asked for: {run.name}." for run in used.values() if not run.results.complete
        ),
        *offline.choice,
        *([f"Without episodes, and not in the table: {', '.join(alone)}."] if alone else []),
    ]  # fmt: skip
    return TableDocument(
        title=TITLE,
        tables=[
            _page(pairs, provenance, notes),
            _tests(pairs, provenance),
            _losses(pairs, provenance),
            # never below the sample's, as in the other tables
            *([] if any(run.is_sample for run in used.values()) else [methods.paper_rows(paper_table(4))]),
        ],
        figures=_for_a_paper(pairs, provenance, notes),
        values=_values(pairs, provenance),
        provenance=provenance,
    )


def _pair(live: LiveEpisodes, runs: Sequence[TableRun]) -> Pair:
    """The episodes with the runs of their agent and model."""
    partners = [run for run in runs if run.method == live.method]
    if not partners:
        others = ", ".join(dict.fromkeys(run.method for run in runs))
        raise InputError(
            "runs", sentence=f"{live.name} is of {live.method}, and no run of eval is; there are runs of {others}"
        )
    by_split: dict[str, TableRun] = {}
    for run in partners:
        if (other := by_split.setdefault(run.results.split, run)) is not run:
            raise InputError(
                "runs",
                sentence=f"{other.name} and {run.name} are both of {live.method} on {run.results.split}; name one of "
                "them",
            )
        if run.results.protocol not in PROTOCOLS:
            raise InputError(
                "runs", "runs scored by a protocol of this package", f"{run.name}, by {run.results.protocol}"
            )
    pair = Pair(live, partners)
    if not pair.tasks:
        names = ", ".join(run.name for run in partners)
        raise InputError("runs", sentence=f"{live.name} and {names} have no task with a verdict in common")
    return pair


def _left_out(pair: Pair) -> str:
    reasons = ", ".join(f"{n} {reason}" for reason, n in pair.left_out.items() if n)
    return f"{pair.live.name}: {len(pair.tasks)} tasks; left out: {reasons or 'none'}."


# --- drawing ---


def _page(pairs: Sequence[Pair], provenance: Provenance, notes: Sequence[str]) -> Table:
    stderr = provenance.stderr
    errors = error_columns(stderr, False)
    columns = [text for title in FIGURES.values() for text in (title, *(f"{title}: {error}" for error in errors))]
    return Table(
        header=("method", *columns, "tasks", "left out", ORIGIN),
        rows=[
            (
                pair.live.method,
                *(text for name in FIGURES for text in figure_cells(pair.figure(name), stderr, "({} to {})")),
                len(pair.tasks), sum(pair.left_out.values()), _numbers(pair, provenance),
            )
            for pair in pairs
        ],
        notes=notes,
    )  # fmt: skip


def _tests(pairs: Sequence[Pair], provenance: Provenance) -> Table:
    rows = []
    for pair in pairs:
        for name in OFFLINE:
            live, offline, p = pair.discordant(name)
            both = pair.done("live") & pair.done(name)
            neither = len(pair.tasks) - len(both) - live - offline
            rows.append(
                (pair.live.method, FIGURES[name], len(both), live, offline, neither, _p(p), _numbers(pair, provenance))
            )
    return Table(
        title="Tasks done live and offline",
        header=("method", "offline by", "both", "live alone", "offline alone", "neither", "p", ORIGIN),
        rows=rows,
        notes=["p: McNemar's exact test, two-sided, of the tasks that are done in one of the two alone."],
        n_labels=2,
    )


def _losses(pairs: Sequence[Pair], provenance: Provenance) -> Table:
    order = [*CAUSES, *BY_EYE, NO_FIGURE]
    words: Mapping[str, str] = {**CAUSES, **BY_EYE}
    rows = [
        (pair.live.method, op, cause, n, words.get(cause, ""), _numbers(pair, provenance))
        for pair in pairs
        for (op, cause), n in sorted(
            pair.first_losses().items(), key=lambda loss: (loss[0][0], order.index(loss[0][1]))
        )
    ]
    n_tasks = {pair.live.name: sum(pair.first_losses().values()) for pair in pairs}
    counts = "; ".join(f"{name} {n}" for name, n in n_tasks.items())
    return Table(
        title="Solved live and lost offline: the first failing step",
        header=("method", "operation", "cause", "tasks", "meaning", ORIGIN),
        rows=rows,
        notes=[
            f"Tasks that were solved live and are no Offline 0: {counts}. Each is counted once, by its first failing "
            "step."
        ],
        n_labels=3,
    )


def _for_a_paper(pairs: Sequence[Pair], provenance: Provenance, notes: Sequence[str]) -> Table:
    stderr = provenance.stderr
    figures = [text for title in FIGURES.values() for text in (title, *figure_columns(stderr))]
    tests = ["Live alone", "Offline alone", "p"]
    header = ["Method", "Tasks", *figures, *(tests * len(OFFLINE))]
    rows = []
    for pair in pairs:
        discordant = [
            text for name in OFFLINE for live, offline, p in [pair.discordant(name)] for text in (live, offline, _p(p))
        ]
        shares = [text for name in FIGURES for text in figure_cells(pair.figure(name), stderr)]
        rows.append([pair.live.method, len(pair.tasks), *shares, *discordant])
    return Table(
        title=TITLE,
        above=[("", 2 + len(figures)), *((f"Live against {FIGURES[name]}", len(tests)) for name in OFFLINE)],
        header=header,
        rows=rows,
        notes=notes,
        numbers=[i for i, title in enumerate(header) if i and title != methods.INTERVAL],
        remarks=[f"{ORIGIN} {_numbers(pair, provenance)}" for pair in pairs],
    )


def _values(pairs: Sequence[Pair], provenance: Provenance) -> Table:
    """A line a pair: shares as fractions."""
    lines = []
    for pair in pairs:
        line: dict[str, Any] = {
            "agent": pair.live.settings.agent,
            "model": pair.live.settings.model,
            "n_tasks": len(pair.tasks),
        }
        line |= {f"n_{reason.replace(' ', '_')}": n for reason, n in pair.left_out.items()}
        for name in FIGURES:
            figure = pair.figure(name)
            low, high = figure.ci95 or (None, None)
            line |= {name: figure.value, f"{name}_low": low, f"{name}_high": high, f"{name}_se": figure.se}
        for name in OFFLINE:
            live, offline, p = pair.discordant(name)
            line |= {f"live_not_{name}": live, f"{name}_not_live": offline, f"p_{name}": p}
        lines.append(line | provenance.columns(pair.sources))
    return values_table(lines)


def _numbers(pair: Pair, provenance: Provenance) -> str:
    return provenance.numbers([source["run"] for source in pair.sources])


def _p(p: float) -> str:
    return f"{p:.4f}"

"""Ways of marking, a web agent's observations, or rankers over the same steps: a grid of runs in one
folder, from which a table is made.

The runs share the replies and the money of the folder: equal questions are paid for once,
by the first run that asks them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seeact_offline.files.extensions import Doors
from seeact_offline.grounding.strategies import find_strategy
from seeact_offline.grounding.strategy import Option
from seeact_offline.ranking import parts_of
from seeact_offline.ranking.stage import extent, ranking_stage
from seeact_offline.records import InputError
from seeact_offline.runs.ask import RunState
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import ask_all, write_results
from seeact_offline.runs.folder import Manifest, RunFolder
from seeact_offline.runs.markings import Marking, check_markings
from seeact_offline.runs.opening import OpenRun, numbered_folder, open_run, run_folder, safe_name, variant_of
from seeact_offline.runs.paid_folder import PaidFolder, paid_folder
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted


@dataclass(frozen=True, slots=True)
class Axis:
    """The settings in which the runs of an ablation differ."""

    name: str
    """Its name in the manifest, and in the name of a folder."""
    settings: tuple[str, ...]
    """Entries of a manifest that differ from run to run."""
    runs: tuple[str, str]
    """One run and several, in words."""
    table: str
    """The table that is made of them."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One run of an ablation."""

    name: str
    """The name of its folder."""
    options: Mapping[str, Any]
    """Options of the run that others lack or have otherwise."""


@dataclass(frozen=True, slots=True)
class OptionAxis(Axis):
    """An axis along one option of an agent's own."""

    agent: str
    option: str
    variants: Callable[[EvalConfig, Sequence[str]], list[Variant]]
    """Makes the run of each of these values, or of all where none is named. Raises InputError."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of the option."""
        return next(option.choices for option in self.own_options if option.name == self.option)

    @property
    def own_options(self) -> tuple[Option, ...]:
        """All options of the agent's own."""
        return find_strategy(self.agent).options


MARKUP = Axis("ablate-markup", ("marks", "mark_position", "mark_turn1"), ("way of marking", "ways of marking"), "5")
RANKER = Axis("ablate-ranker", ("ranker", "scores_digest"), ("ranker", "rankers"), "rankers")
AXES = Doors(
    {
        "markup": f"{__name__}:MARKUP",
        "observation": "seeact_offline.web_agents.observation_axis:OBSERVATION",
        "ranker": f"{__name__}:RANKER",
    }
)


def markup_variants(config: EvalConfig, markings: Sequence[Marking]) -> list[Variant]:
    """Annotation with each of these ways of marking. Raises InputError for one with too few labels."""
    check_markings(markings, config.group_size, config.merge, config.top_k)
    names = "grounding", "marks", "mark_position", "mark_turn1"
    options = {m.name: ("annotation", m.kind, m.position, m.in_turn1 or None) for m in markings}
    return [Variant(name, dict(zip(names, values, strict=True))) for name, values in options.items()]


def ranker_variants(config: EvalConfig, rankers: Sequence[str]) -> list[Variant]:
    """The steps ranked by each of these rankers, score files and fusions. Raises InputError
    where two would share a folder."""
    if config.scores is not None or config.ranker is not None:
        other = "ranker" if config.scores is None else "scores"
        raise InputError(other, sentence=f"`{other}` cannot be combined with `over` ranker; name it in `rankers`")
    names = [safe_name("+".join(Path(part).name for part in parts_of(ranker))) for ranker in rankers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError("rankers", sentence=f"two of `rankers` are named {twice}; rename one")
    return [Variant(name, {"ranker": ranker}) for name, ranker in zip(names, rankers, strict=True)]


@dataclass(frozen=True)
class Ablation:
    """The outcome of an ablation."""

    path: Path
    failed: int
    """Questions to which the model gave no answer, over all runs."""
    faults: Mapping[str, int]
    """Rows that some run could not ask, by the fault."""
    n_left: int
    """Steps that some run lacks, because a cost limit stopped the ablation: they are not in the table."""


def ablate(config: EvalConfig, axis: Axis, variants: Sequence[Variant], watch: Watch | None = None) -> Ablation:
    """Asks the same steps in every variant, one after the other. `config`: what the runs have in common. A killed
    ablation resumes from its folder.

    Raises InputError.
    """
    watch = watch or Watch()
    first, whole, runs = open_ablation(config, axis, variants, watch)
    with paid_folder(first.folder, whole.identity, first.model, watch) as paid:
        return _ablate(axis, whole, runs, paid)


def open_ablation(
    config: EvalConfig, axis: Axis, variants: Sequence[Variant], watch: Watch
) -> tuple[OpenRun, Manifest, list[OpenRun]]:
    """The run that opens the folder of all, the manifest of this folder, and the run of
    each variant. Raises InputError."""
    named = run_folder(config, what=axis.name)
    configs = [config.changed(out=named.path, **variant.options) for variant in variants]
    first = open_run(configs[0], watch)
    rankings = [first.ranking]
    for other in configs[1:]:
        rankings.append(ranking_stage(other, other.scores, first.split, watch) if axis is RANKER else first.ranking)
    identity, settings = (
        {name: value for name, value in entries.items() if name not in axis.settings}
        for entries in (first.manifest.identity, first.manifest.settings)
    )
    mark = {"ablation": axis.name}
    whole = Manifest(identity=identity | mark, settings=settings, made=first.manifest.made)

    def opened(folder: RunFolder) -> list[OpenRun]:
        ranked = [replace(first, ranking=ranking) for ranking in rankings]
        runs = [variant_of(run, config, folder) for run, config in zip(ranked, configs, strict=True)]
        return [
            replace(run, folder=RunFolder(folder.path / variant.name), manifest=run.manifest.changed(identity=mark))
            for variant, run in zip(variants, runs, strict=True)
        ]

    runs = opened(named)
    if config.out is None:
        keys, rows = first.split.keys, [(run.folder.path.name, run.manifest.identity) for run in runs]

        def suits(folder: RunFolder) -> bool:
            return folder.suits(whole.identity, keys) and all(
                RunFolder(folder.path / name).suits(row, keys) for name, row in rows
            )

        folder = numbered_folder(named, suits, watch)
        runs = opened(folder)
        first = replace(first, folder=folder, model=runs[0].model)
    return first, whole, runs


def _ablate(axis: Axis, whole: Manifest, runs: Sequence[OpenRun], paid: PaidFolder) -> Ablation:
    """The runs, in a folder in which no other process is at work."""
    for run in runs:
        if run.folder.path.exists():
            run.folder.check(run.manifest.identity)
    states = [RunState.of(run) for run in runs]
    models = [paid.open_model(whole)]
    for run in runs:
        run.folder.claim(run.manifest)
    settings, split, watch = whole.settings, runs[0].split, paid.watch
    watch.begun(settings["dataset"])
    n_rows = counted(len(runs), *axis.runs)
    watch.note(f"{n_rows}, {extent(split)} each, model {settings['model']}, out {paid.folder.path}")
    if n_done := sum(len(state.done) for state in states):
        watch.note(f"{n_done} of {len(runs) * len(split.keys)} are done already and are not asked again")
    scores = {run.ranking: run.scores() for run in runs}
    complete = True
    # a reply's usage is counted where it was asked first, also once the ablation is resumed
    asked = {call.record.asked for state in states for prediction in state.done.values() for call in prediction.calls}
    for run, state in zip(runs, states, strict=True):
        model = models.pop() if models else paid.another_model(run.model, whole)
        for part in model.parts:
            part.counted.update(asked)
        if not complete:
            # out of money: this run only shows the answers that it has
            state.to_ask = frozenset()
        complete = ask_all(run, state, model, scores[run.ranking], paid) and complete
        asked = asked.union(*(part.counted for part in model.parts))
    predictions = [prediction for state in states for prediction in state.done.values()]
    paid.note_replies(whole, predictions)
    for run, state in zip(runs, states, strict=True):
        write_results(run, state, complete)
    shared = frozenset.intersection(*(frozenset(state.done) for state in states))
    rows_at_fault = {
        (prediction.key, str(prediction.failure)) for prediction in predictions if prediction.is_data_fault
    }
    faults = Counter(name for _, name in rows_at_fault)
    failed = sum(prediction.has_failed for prediction in predictions)
    return Ablation(paid.folder.path, failed, dict(sorted(faults.items())), len(split.keys) - len(shared))

"""Annotation with several ways of marking over the same steps: a grid of runs in one folder, from which Table 5 is made.

The runs share the replies and the money of the folder: equal questions are paid for once, by the first run that asks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from seeact_offline.models.budget import Budget
from seeact_offline.runs.ask import RunState
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import ask_all, write_results
from seeact_offline.runs.folder import Manifest, RunFolder
from seeact_offline.runs.groundings import open_strategy
from seeact_offline.runs.markings import Marking, check_markings
from seeact_offline.runs.model_settings import replies_of
from seeact_offline.runs.open import OpenRun, open_run, run_folder
from seeact_offline.runs.selection import extent
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted, replies_in_words

NAME = "ablate-markup"
OF_A_MARKING = ("marks", "mark_position", "mark_turn1")
"""Entries of a manifest that differ from run to run."""


@dataclass(frozen=True)
class Ablation:
    """The outcome of an ablation."""

    path: Path
    failed: int
    """Answers that failed to run, over all runs."""
    n_left: int
    """Steps that some run lacks, because a cost limit stopped the ablation: they are not in the table."""


def ablate_markup(config: EvalConfig, markings: Sequence[Marking], watch: Watch | None = None) -> Ablation:
    """Asks the same steps with every marking, one after the other. `config`: what the runs have in common. A killed ablation
    resumes from its folder.

    Raises InputError.
    """
    watch = watch or Watch()
    check_markings(markings, config.group_size, config.merge, config.top_k)
    out = run_folder(config, what=NAME).path
    configs = [
        config.changed(
            out=out,
            grounding="annotation",
            marks=one.kind,
            mark_position=one.position,
            mark_turn1=one.in_turn1 or None,
        )
        for one in markings
    ]
    first = open_run(configs[0], watch)
    identity, settings = (
        {name: value for name, value in named.items() if name not in OF_A_MARKING}
        for named in (first.manifest.identity, first.manifest.settings)
    )
    whole = Manifest(identity=identity | {"ablation": NAME}, settings=settings, made=first.manifest.made)
    first.folder.check(whole.identity)
    runs = []
    for marking, one in zip(markings, configs, strict=True):
        opened = open_strategy(one)
        manifest = first.manifest.changed(identity=opened.identity | {"ablation": NAME}, settings=opened.shown)
        folder = RunFolder(first.folder.path / marking.name)
        runs.append(replace(first, grounding=opened.grounding, folder=folder, manifest=manifest))
    with first.folder.alone(), first.model.spending(first.folder) as budget, rare_collections():
        return _ablate(first.folder, whole, runs, budget, watch)


def _ablate(out: RunFolder, whole: Manifest, runs: Sequence[OpenRun], budget: Budget, watch: Watch) -> Ablation:
    """The runs, in a folder in which no other process is at work."""
    for run in runs:
        if run.folder.path.exists():
            run.folder.check(run.manifest.identity)
    states = [RunState.of(run) for run in runs]
    begun = out.begun() or whole
    pays = begun.made.run if begun.made else ""
    # no folder is claimed before the model is known to be usable
    model = runs[0].model.open(budget, pays)
    out.claim(whole)
    for run in runs:
        run.folder.claim(run.manifest)
    settings, split = whole.settings, runs[0].split
    watch.begun(settings["dataset"])
    steps = extent(split, settings["dataset"])
    watch.note(f"{counted(len(runs), 'way')} of marking, {steps} each, model {settings['model']}, out {out.path}")
    if n_done := sum(len(state.done) for state in states):
        watch.note(f"{n_done} of {len(runs) * len(split.keys)} are done already and are not asked again")
    scores = runs[0].scores()
    complete = True
    # a reply's usage is counted where it was asked first, also once the ablation is resumed
    asked = {call.record.asked for state in states for one in state.done.values() for call in one.calls}
    for run, state in zip(runs, states, strict=True):
        model = model if run is runs[0] else run.model.open(budget, pays)
        met: set[str] = getattr(model, "counted", set())
        met.update(asked)
        if not complete:
            # out of money: this run only shows the answers that it has
            state.to_ask = frozenset()
        complete = ask_all(run, state, model, scores, budget, watch) and complete
        asked |= met
    done = [prediction for state in states for prediction in state.done.values()]
    replies = replies_of(done, budget.known)
    out.claim(whole.with_replies(replies))
    if replies:
        watch.note(replies_in_words(replies))
    for run, state in zip(runs, states, strict=True):
        write_results(run, state, complete)
    shared = frozenset.intersection(*(frozenset(state.done) for state in states))
    return Ablation(out.path, sum(not one.ran for one in done), len(split.keys) - len(shared))

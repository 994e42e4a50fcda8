"""The finished predictions of a run scored again, under its own or other protocols. Asks
no model and needs no scores."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from seeact_offline.files.extensions import Doors
from seeact_offline.files.markdown import printable
from seeact_offline.files.table import Table
from seeact_offline.files.whole import replace_text
from seeact_offline.grounding.strategies import STRATEGIES, UNGROUNDED
from seeact_offline.grounding.strategies import notes as notes_of_strategies
from seeact_offline.pages.dom import Page
from seeact_offline.records import InputError, Prediction, StepKey, Usage
from seeact_offline.results.comparing import read_scored
from seeact_offline.runs.collecting import OF_SCORES, rare_collections
from seeact_offline.runs.costs import run_cost
from seeact_offline.runs.folder import RunFolder, read_manifest, read_results
from seeact_offline.runs.run import Run
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.also_right import read_also_right, with_also_right
from seeact_offline.scoring.assembling import ScoringInput, ScoringOutput, assemble
from seeact_offline.scoring.delta import delta, delta_tables
from seeact_offline.scoring.human_causes import read_causes
from seeact_offline.scoring.protocols import Protocol, find_protocol, recorded_protocol
from seeact_offline.scoring.report import NO_PREDICTION, report
from seeact_offline.scoring.results import IMPORT_NOTES

NOTES_OF_IMPORTS = Doors({"notes": "seeact_offline.importers:notes"})


@dataclass(frozen=True)
class ProtocolComparison:
    """The same predictions under several protocols."""

    delta: dict[str, Any]
    """The result of `scoring.delta.delta`, as JSON."""
    tables: Sequence[Table]
    """The same for people."""
    complete: bool
    """True if no step is missing, and none failed to run that could be asked again."""
    runs: Mapping[str, Run] = field(default_factory=dict)
    """Protocol -> where its scores and report are; empty where nothing was written."""


@dataclass(frozen=True)
class FinishedRun(ScoringInput):
    """Predictions with what was right, in data set order, and what results say of the run."""

    folder: RunFolder | None = None
    """None for an imported run."""

    @cached_property
    def cost(self) -> float | None:
        """USD; None where that is not known."""
        counted = sum((prediction.usage for prediction in self.predictions), Usage()).cost_usd
        return counted if self.folder is None else run_cost(self.folder, counted)

    @cached_property
    def hints(self) -> list[str]:
        """Sentences on replies that cannot be read."""
        from seeact_offline.runs.reading_hints import reading_hint

        hint = reading_hint(self.predictions, self.truths, self.settings)
        return [] if hint is None else hint.sentences()

    def protocol(self, name: str | None) -> Protocol:
        """The run's own for None. Raises InputError."""
        grounded = self.settings.get("grounding") != UNGROUNDED
        find = find_protocol if name else recorded_protocol
        return find(name or self.settings["protocol"], grounded=grounded)

    def score(self, protocol: Protocol) -> ScoringOutput:
        made = assemble(self, protocol)
        left_out = self.settings.get(IMPORT_NOTES) or {}
        return replace(made, results=made.results.changed(cost_usd=self.cost, notes=left_out))


def meanings(settings: Mapping[str, Any]) -> dict[str, str]:
    """The meaning of each note of a run, asked here or imported. `settings`: as results or a manifest have them."""
    imports = NOTES_OF_IMPORTS["notes"]() if settings.get("format") and "notes" in NOTES_OF_IMPORTS else {}
    return imports | notes_of_strategies(str(settings.get("agent", settings["grounding"])))


def report_of(made: ScoringOutput, finished: FinishedRun) -> str:
    """The text of `report.md`."""
    return printable(report(made.results, made.rows, meanings(made.results.settings), finished.hints))


def rescore(
    run: Path,
    *,
    protocol: str | None = None,
    dataset: Any = None,
    out: Path | None = None,
    watch: Watch | None = None,
    **opinions: Path | None,
) -> Run:
    """`protocol`: the run's unless given. `out`: where scores and report go, the run's own folder unless given.
    `opinions`: as `with_opinions` takes them.

    What was right is read from the run; from the data set where one is given, or the run is from before that was kept.
    Raises InputError, for data that are not the run's among others.
    """
    _check_out(run, out)
    with rare_collections(OF_SCORES):
        finished = open_finished(run, dataset, watch)
        finished = with_opinions(finished, **opinions)
        made = finished.score(finished.protocol(protocol))
        return _write(out or run, made, finished)


def score_over(run: Path, keys: Collection[StepKey], protocol: str) -> ScoringOutput:
    """The scores of a finished run over these of its steps alone. Writes nothing. Raises InputError."""
    finished = open_finished(run)
    kept = [(p, t) for p, t in zip(finished.predictions, finished.truths, strict=True) if p.key in keys]
    some = ScoringInput(finished.settings, [p for p, _ in kept], [t for _, t in kept], complete=False)
    return assemble(some, finished.protocol(protocol))


def rescore_all(
    run: Path, protocols: Sequence[str], *, dataset: Any = None, out: Path | None = None, watch: Watch | None = None
) -> ProtocolComparison:
    """Scores a run by two or more protocols, and finds what makes them differ. Scores and report of each go to a
    folder of its name in `out`, the differences to `delta.json` and `delta.md` there; nothing is written without it.
    The run's own files stay as they are.

    Raises InputError as `rescore` does.
    """
    _check_out(run, out)
    with rare_collections(OF_SCORES):
        finished = open_finished(run, dataset, watch)
        rules = [finished.protocol(name) for name in dict.fromkeys(protocols)]
        for protocol in rules:
            _check_out(run, out and out / protocol.name)
        differences = delta(finished.predictions, finished.truths, rules)
        tables = delta_tables(differences)
        runs: dict[str, Run] = {}
        if out is not None:
            runs = {rule.name: _write(out / rule.name, finished.score(rule), finished) for rule in rules}
            replace_text(out / "delta.json", json.dumps(differences, indent=2) + "\n")
            replace_text(out / "delta.md", printable("\n\n".join(table.markdown() for table in tables) + "\n"))
    all_ran = IMPORT_NOTES in finished.settings or not any(prediction.has_failed for prediction in finished.predictions)
    return ProtocolComparison(differences, tables, finished.complete and all_ran, runs)


def _check_out(run: Path, out: Path | None) -> None:
    """Raises InputError for the folder of another run, whose own results the scores would replace."""
    if out is not None and (out / "manifest.json").exists() and out.resolve() != run.resolve():
        raise InputError("out", sentence=f"{out} holds another run; name another folder for `out`")


def _write(folder: Path, made: ScoringOutput, finished: FinishedRun) -> Run:
    folder.mkdir(parents=True, exist_ok=True)
    RunFolder(folder).write_scores(made.rows, made.results, report_of(made, finished))
    return Run(folder)


# --- opening ---


def open_finished(
    run: Path, dataset: Any = None, watch: Watch | None = None, *, opens_data: bool = True
) -> FinishedRun:
    """A run's predictions with what was right. `opens_data`: False: the data set that the manifest names is never
    opened, as the folder may be anybody's. Raises InputError."""
    with _about_run():
        settings = read_manifest(run).settings
        directory = RunFolder(run)
        stored = directory.load()
        kept = {} if dataset is not None else directory.load_targets()
        flagged = directory.flagged()
    if kept and stored.keys() <= kept.keys():
        truths, was_finished = list(kept.values()), False
        # its own targets are only those of the steps that it reached
        with suppress(InputError):
            was_finished = read_results(run).complete
    elif not opens_data:
        strange = sorted(stored.keys() - kept.keys())
        raise InputError(
            "run", sentence=f"{run} lacks the right answer of {len(strange)} predictions, {strange[0]} first"
        )
    else:
        from seeact_offline.dataset import open_split
        from seeact_offline.runs.prepare import target_of

        source = dataset or settings["dataset"]
        split = open_split(source, settings["split"], limit=settings["limit"], tasks=settings.get("tasks"))
        if split.fingerprint != settings["dataset_fingerprint"]:
            raise InputError(
                "dataset", sentence=f"{source} has other rows than {run} was run on; name its data with `dataset`"
            )
        truths, was_finished = [target_of(step, partial(Page, step.cleaned_html)) for step in split.steps()], True
    # a step that the run's file has no line of counts as wrong: without it, lost lines would raise the figures
    detail = "the run holds no prediction of this step"
    lost: dict[str, Any] = {"failure": NO_PREDICTION, "detail": detail, "ran": False, "failed_in": "call"}
    predictions = [stored.get(truth.key) or Prediction(*truth.key, None, "", "", **lost) for truth in truths]
    n_missing = len({truth.key for truth in truths} - stored.keys())
    if n_missing:
        (watch or Watch()).note(f"{n_missing} of {len(truths)} steps have no prediction and count as wrong")
    with _about_run():
        orders = directory.finished_repeats(truths)
    return FinishedRun(
        settings=settings,
        predictions=predictions,
        truths=truths,
        complete=was_finished and not n_missing,
        folder=directory,
        flagged=flagged,
        orders=orders,
    )


def with_opinions(
    finished: FinishedRun, oracle: Path | None = None, causes: Path | None = None, also_right: Path | None = None
) -> FinishedRun:
    """Adds what people say. Raises InputError.

    `oracle`: a run of the oracle grounding over the same steps; the errors of annotation are counted where it is right.
    `causes`: a file of causes of loss that a person gives, which are shown with the computed ones and count in the
    waterfall. `also_right`: a file of other right answers, which count in figures of their own."""
    if also_right is not None:
        lines = read_also_right(also_right)
        named = frozenset(truth.key for truth in finished.truths if truth.key in lines)
        # the answers that are scored hold the truths
        finished = replace(finished, truths=with_also_right(finished.truths, lines), also_right=named)
    if oracle is not None:
        finished = replace(finished, oracle=_rights_of_oracle(oracle, finished))
    return finished if causes is None else replace(finished, causes=read_causes(causes))


def _rights_of_oracle(run: Path, finished: FinishedRun) -> dict[StepKey, bool]:
    """Tells for each step whether an oracle run gets it right. Raises InputError for another kind of
    run, and for one of other steps."""
    scored = read_scored(run)
    grounding = read_results(run).grounding
    if grounding not in STRATEGIES or not STRATEGIES[grounding].is_human:
        human = [name for name, strategy in STRATEGIES.items() if strategy.is_human]
        raise InputError(
            "oracle",
            sentence=f"{run} is of grounding {grounding}; name a finished run of grounding {' or '.join(human)}",
        )
    rights = {key: step.element == 1.0 for key, step in scored.steps.items()}
    missing = [truth.key for truth in finished.truths if truth.key not in rights]
    if missing:
        raise InputError(
            "oracle", sentence=f"{run} lacks {len(missing)} steps, {missing[0]} first; name a run over the same steps"
        )
    return rights


@contextmanager
def _about_run() -> Iterator[None]:
    """Names `run` in errors about the run's folder."""
    try:
        yield
    except InputError as error:
        raise error.renamed("run") from None

"""Builds `results.json`, both for a run that ends and for one that is scored again."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import msgspec

from seeact_offline.files.formats import FormatError, check_finite, short, typed
from seeact_offline.records import Metric, Prediction, StepKey, StepScore, Summary, Truth
from seeact_offline.scoring.answers import Answers
from seeact_offline.scoring.inference import wilson
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.rules import Protocol
from seeact_offline.scoring.smaller_k import ranker_budget
from seeact_offline.scoring.step_scores import merge_spread, rows, summarise, summarise_answers
from seeact_offline.scoring.waterfall import LEFT_OUT, SUCCESS, annotation_errors, waterfall, what_if, wrong_elements

if TYPE_CHECKING:
    from seeact_offline.scoring.human_causes import AnswerId, HumanCause

_PRICES = {
    "calls": "calls_if_per_group",
    "estimated_prompt_tokens": "estimated_prompt_tokens_if_per_group",
}
PRICE_NOTES = frozenset({"shared_turn1", *_PRICES, *_PRICES.values()})
"""Notes of a prediction that `price_of_batching` sums up."""
ELEMENT_RULES: Mapping[str, str] = {"strict": "strict_id_hit", "lenient": "lenient_hit"}
"""The rules beside Element Accuracy by which a web agent's element is right, and the note of a step that is."""


@dataclass(frozen=True, slots=True)
class ResultsFigure(Metric):
    """A metric of `results.json`."""

    quoted: str | msgspec.UnsetType = msgspec.UNSET
    """The average that a protocol from outside the package quotes; not in the file for a protocol of this package."""

    @property
    def named(self) -> dict[str, Any]:
        """The entry of `results.json`."""
        return dict(msgspec.to_builtins(self))


class PartFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of some of a run's steps."""

    n_flagged: int | None = None
    """Steps that are left out for their flags; None where none are."""
    n_tasks: int
    n_steps: int
    element_accuracy: ResultsFigure | None
    operation_f1: ResultsFigure
    step_success_rate: ResultsFigure | None

    def figure(self, metric: str) -> ResultsFigure | None:
        """One of METRICS."""
        found: ResultsFigure | None = getattr(self, metric)
        return found


class SecondFigureEntry(msgspec.Struct, frozen=True, kw_only=True):
    """See `also_right.SecondFigure`."""

    n_steps: int
    n_gained: int
    of_file: int = 0
    """Steps among them that a file names."""
    element_accuracy: ResultsFigure | None
    operation_f1: ResultsFigure
    step_success_rate: ResultsFigure | None


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of `results.json`: all by name, and those that programs of this project read as fields too."""

    settings: dict[str, Any] = {}
    """Name -> value, in the file's order. The file has them on its first level."""
    split: str
    grounding: str
    model: str
    protocol: str
    ranker: str | None = None
    dataset: str | None = None
    marks: str | None = None
    mark_position: str | None = None
    mark_turn1: bool | None = None
    observation: str | None = None
    no_image: bool | None = None
    format: str | None = None
    """The format that an imported run was read from."""


class Figures(Settings, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of `results.json`, in the file's order."""

    n_tasks: int
    n_steps: int
    element_accuracy: ResultsFigure | None
    """None, as is `step_success_rate`, for a run that asks for no element."""
    operation_f1: ResultsFigure
    step_success_rate: ResultsFigure | None
    point_accuracy: ResultsFigure | None
    """None where no step has a point."""
    ceiling: ResultsFigure | None
    """None where no step says whether its element can be reached."""
    task_success_rate: dict[str, float | None]
    task_success_ci95: dict[str, tuple[float, float] | None]
    recall_at_k: dict[str, float | None]


class Losses(Figures, frozen=True, kw_only=True, omit_defaults=True):
    """The causes of loss, after the figures."""

    left_out: int
    """Steps that the protocol leaves out: they are in no figure."""
    unknowns: dict[str, int]
    """Rule of the protocol -> steps to which it cannot be applied, as the run does not keep what it needs."""
    n_not_run: int
    n_succeeded: int
    waterfall: dict[str, dict[str, int | float]]
    wrong_element: dict[str, int]
    what_if: dict[str, dict[str, int | float]]
    ranker_budget: list[dict[str, Any]] | None
    """None for a run that ranked nothing."""


class Results(Losses, frozen=True, kw_only=True, omit_defaults=True):
    """`results.json` as a record. `read` makes it of the file's content, and `entries` gives that content.

    The file has the settings first, all on one level, then the figures, the losses and the rest, in the order of the fields.
    A field with a default is not in the file where it has that value.
    """

    usage: dict[str, Any]
    failures: dict[str, int]
    reply_failures: dict[str, int]
    notes: dict[str, int]
    causes_by_person: dict[str, int] | None = None
    also_right: SecondFigureEntry | None = None
    """The figures where other right answers count too; None where no step has one."""
    merge_spread: Mapping[str, Mapping[str, float]]
    batching_price: dict[str, Any] | None = None
    annotation_errors: dict[str, Any] | None = None
    element_by_rule: dict[str, ResultsFigure] = {}
    """Element Accuracy by each of ELEMENT_RULES, of a web agent."""
    complete: bool
    data_faults: dict[str, int] = {}
    """Those among `n_not_run` that no model was asked, by the failure's name."""
    unanswered: dict[str, Any] | None = None
    by_split: dict[str, PartFigures] | None = None
    shuffle_spread: dict[str, Any] | None = None
    without_flagged: PartFigures | None = None
    protocol_code: str | None = None
    """The digest of the file of a protocol from outside the package."""

    @classmethod
    def read(cls, content: object) -> Self:
        """Makes the record of the content of a `results.json`. Raises FormatError."""
        if not isinstance(content, dict):
            raise FormatError("a JSON object", short(content))
        check_finite(content)
        settings = {name: value for name, value in content.items() if name not in NO_SETTINGS}
        return typed({**content, "settings": settings}, cls)

    @property
    def entries(self) -> dict[str, Any]:
        """The content of `results.json`."""
        fields = msgspec.to_builtins(self)
        return {
            "schema": SCHEMA,
            **self.settings,
            **{name: fields[name] for name in ENTRIES if name in fields},
        }

    def changed(self, *, cost_usd: float | None, notes: Mapping[str, int] | None = None) -> Self:
        """The same results at this cost, and with these notes too."""
        both = dict(sorted((self.notes | dict(notes or {})).items()))
        return msgspec.structs.replace(self, usage={**self.usage, "cost_usd": cost_usd}, notes=both)

    def figure(self, metric: str) -> ResultsFigure | None:
        """One of METRICS, `point_accuracy` or `ceiling`."""
        found: ResultsFigure | None = getattr(self, metric)
        return found

    def quoted(self, metric: str, figure: ResultsFigure) -> dict[str, Any]:
        """The average of the figure that the protocol quotes, as `protocols.headline` gives it."""
        return headline(self.protocol, metric, figure.named)

    @property
    def headlines(self) -> dict[str, dict[str, Any]]:
        """Metric -> the average that the protocol quotes, as `quoted` gives it, of the metrics that the run has."""
        figures = {name: self.figure(name) for name in METRICS}
        return {name: self.quoted(name, figure) for name, figure in figures.items() if figure is not None}


SCHEMA = 1
"""The version of the layout of `results.json`."""
ENTRIES = tuple(name for name in Results.__struct_fields__ if name not in Settings.__struct_fields__)
"""The entries of `results.json` after the settings, in order."""
NO_SETTINGS = frozenset({"schema", *ENTRIES})


@dataclass(frozen=True)
class ScoringOutput:
    """Everything that scoring writes of a run."""

    results: Results
    """`results.json`."""
    rows: list[dict[str, Any]]
    """The lines of `steps.jsonl`."""


def assemble(
    predictions: Sequence[Prediction],
    truths: Sequence[Truth],
    protocol: Protocol,
    settings: Mapping[str, Any],
    *,
    complete: bool,
    flagged: frozenset[StepKey] | None = None,
    orders: Sequence[Sequence[Prediction]] = (),
    oracle: Mapping[StepKey, bool] | None = None,
    answers: Answers | None = None,
    causes: Mapping[AnswerId, HumanCause] | None = None,
    also_right: frozenset[StepKey] = frozenset(),
) -> ScoringOutput:
    """Scores a run.

    `settings`: entries of the results that name the run, with `top_k`, `seed` and `merge`. `complete`: whether all steps are
    there; a run in which none was answered counts as incomplete. `flagged`: steps without which figures are given too; None: not
    asked for. `orders`: the same steps asked in other orders of groups and choices, one list a repeat. `oracle`: see
    `waterfall.annotation_errors`. `answers`: the same predictions and truths, if they are scored under several protocols.
    `causes`: causes of loss that people give. `also_right`: steps whose truths have other right answers from a file.
    """
    answers = answers or Answers(predictions, truths)
    scores, summary = summarise_answers(answers, protocol, settings["top_k"] or 0, settings["seed"])
    of_people = None
    if causes is not None:
        from seeact_offline.scoring.human_causes import relabelled

        by_people = relabelled(scores, predictions, causes)
        scores = by_people.scores
        unused = len(causes) - by_people.counts["used"] - by_people.counts["not_lost"]
        of_people = {**by_people.counts, "of_other_answers": unused}
    named = {name: value for name, value in settings.items() if name != "tasks"} | {"protocol": protocol.name}
    price = price_of_batching(predictions)
    told: frozenset[str] = frozenset() if price is None else PRICE_NOTES
    faults = Counter(str(prediction.failure) for prediction in predictions if prediction.is_data_fault)
    lost_to = unanswered(predictions)
    errors = None if settings.get("marks") is None else annotation_errors(predictions, truths, oracle)
    is_told_by_rule = settings.get("observation") is not None
    by_rule = element_by_rule(predictions, truths, scores, protocol, settings["seed"]) if is_told_by_rule else {}

    def part(kept: Sequence[int], n_flagged: int | None = None) -> PartFigures:
        some = [predictions[i] for i in kept], [truths[i] for i in kept]
        _, found = summarise(*some, protocol, settings["top_k"] or 0, settings["seed"])
        return PartFigures(n_flagged=n_flagged, **_averages(found, protocol))

    by_split: dict[str, PartFigures] | None = None
    without_flagged: PartFigures | None = None
    if settings.get("split") == "all":
        splits = dict.fromkeys(truth.split for truth in truths if truth.split)
        by_split = {split: part([i for i, truth in enumerate(truths) if truth.split == split]) for split in splits}
    if flagged is not None:
        kept = [i for i, truth in enumerate(truths) if truth.key not in flagged]
        without_flagged = part(kept, len(truths) - len(kept))
    results = Results(
        settings=named,
        **{name: named[name] for name in Settings.__struct_fields__ if name in named},
        **_averages(summary, protocol),
        point_accuracy=_figure(summary.point_accuracy, "point_accuracy", protocol),
        ceiling=_figure(summary.ceiling, "ceiling", protocol),
        task_success_rate=dict(summary.task_success_rate),
        task_success_ci95={
            name: None if rate is None else wilson(rate, summary.n_tasks)
            for name, rate in summary.task_success_rate.items()
        },
        recall_at_k=dict(summary.recall_at_k),
        **_losses(scores, predictions, truths, protocol, settings),
        usage=summary.usage.named,
        failures=dict(sorted(summary.failures.items())),
        reply_failures=dict(sorted(summary.reply_failures.items())),
        notes={name: n for name, n in sorted(summary.notes.items()) if name not in told},
        causes_by_person=of_people,
        also_right=_second_figure(answers, protocol, settings["seed"], also_right),
        merge_spread=merge_spread(answers, protocol, settings["merge"]),
        batching_price=price,
        annotation_errors=errors,
        element_by_rule=by_rule,
        complete=complete and lost_to is None,
        data_faults=dict(sorted(faults.items())),
        unanswered=lost_to,
        by_split=by_split,
        shuffle_spread=shuffle_spread(orders, truths, protocol),
        without_flagged=without_flagged,
        protocol_code=protocol.code or None,
    )
    return ScoringOutput(results, rows(scores, predictions, truths))


def _second_figure(
    answers: Answers, protocol: Protocol, seed: int, of_file: frozenset[StepKey]
) -> SecondFigureEntry | None:
    if not any(truth.also_right for truth in answers.truths):
        return None
    from seeact_offline.scoring.also_right import second_figure

    found = second_figure(answers, protocol, seed)
    if found is None:
        return None
    f1 = ResultsFigure(**asdict(found.operation_f1), quoted=_quoted(protocol, "operation_f1"))
    return SecondFigureEntry(
        n_steps=found.n_steps, n_gained=found.n_gained, of_file=len(of_file), operation_f1=f1,
        element_accuracy=_figure(found.element_accuracy, "element_accuracy", protocol),
        step_success_rate=_figure(found.step_success_rate, "step_success_rate", protocol),
    )  # fmt: skip


def element_by_rule(
    predictions: Sequence[Prediction],
    truths: Sequence[Truth],
    scores: Sequence[StepScore],
    protocol: Protocol,
    seed: int,
) -> dict[str, ResultsFigure]:
    """A web agent's Element Accuracy by each of ELEMENT_RULES, averaged as the protocol does over the steps that it counts."""
    kept = [i for i, score in enumerate(scores) if score.outcome != LEFT_OUT]
    average = protocol.averaging([truths[i] for i in kept])
    notes = [predictions[i].notes for i in kept]
    quoted = _quoted(protocol, "element_accuracy")
    return {
        rule: ResultsFigure(**asdict(average.metric([float(one.get(note, 0)) for one in notes], seed)), quoted=quoted)
        for rule, note in ELEMENT_RULES.items()
    }


def unanswered(predictions: Sequence[Prediction]) -> dict[str, Any] | None:
    """The first failure of a run in which no step was answered, in its own words, and how many steps ended in it. None for any
    other run."""
    if not predictions or any(prediction.ran for prediction in predictions):
        return None
    first = predictions[0]
    alike = sum(prediction.failure == first.failure for prediction in predictions)
    return {"failure": first.failure, "steps": alike, "detail": first.detail}


def _losses(
    scores: Sequence[StepScore],
    predictions: Sequence[Prediction],
    truths: Sequence[Truth],
    protocol: Protocol,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The fields of `Losses`. A step that the protocol leaves out is in none of them."""
    kept = [i for i, score in enumerate(scores) if score.outcome != LEFT_OUT]
    counted, said, right = [scores[i] for i in kept], [predictions[i] for i in kept], [truths[i] for i in kept]
    average = protocol.averaging(right).points
    return {
        "left_out": len(scores) - len(kept),
        "unknowns": {rule.__name__: n for rule in protocol.unknowns.values() if (n := sum(map(rule, right)))},
        "n_not_run": sum(not prediction.ran for prediction in predictions),
        "n_succeeded": sum(score.outcome == SUCCESS for score in counted),
        "waterfall": waterfall(counted, average),
        "wrong_element": wrong_elements(said, right, counted),
        "what_if": what_if(counted, average),
        "ranker_budget": ranker_budget(said, right, settings, average),
    }


def _averages(summary: Summary, protocol: Protocol) -> dict[str, Any]:
    """The fields of `PartFigures` but for `n_flagged`."""
    return {
        "n_tasks": summary.n_tasks,
        "n_steps": summary.n_steps,
        **{name: _figure(getattr(summary, name), name, protocol) for name in METRICS},
    }


def _figure(metric: Metric | None, name: str, protocol: Protocol) -> ResultsFigure | None:
    return None if metric is None else ResultsFigure(**asdict(metric), quoted=_quoted(protocol, name))


def _quoted(protocol: Protocol, metric: str) -> str | msgspec.UnsetType:
    return protocol.average_of(metric) if protocol.code else msgspec.UNSET


def shuffle_spread(
    orders: Sequence[Sequence[Prediction]], truths: Sequence[Truth], protocol: Protocol
) -> dict[str, Any] | None:
    """The variation of the averages that the protocol quotes with the order of groups and choices; None without repeats.

    `values` are those of the repeats in order; `sd` is the sample standard deviation, None for fewer than two.
    """
    if not orders:
        return None
    summaries = [summarise(repeat, truths, protocol, top_k=0, seed=0)[1] for repeat in orders]
    spread: dict[str, Any] = {"n_orders": len(summaries)}
    for name in METRICS:
        figures = [getattr(summary, name) for summary in summaries]
        if None not in figures:
            values = [getattr(figure, protocol.average_of(name)) for figure in figures]
            sd = statistics.stdev(values) if len(values) > 1 else None
            spread[name] = {"values": values, "min": min(values), "max": max(values), "sd": sd}
    return spread


def price_of_batching(predictions: Sequence[Prediction]) -> dict[str, Any] | None:
    """Calls and prompt tokens per step with a shared turn 1, and with one per group; None if nothing was shared.

    Calls are counted; those of the groups follow from the questions that were asked. Prompt tokens are estimated by one rule
    for both (`grounding.groups`); None if a step has no estimate.
    """
    shared = [(p, p.notes) for p in predictions if p.notes.get("shared_turn1")]
    if not shared:
        return None

    def mean(name: str) -> float | None:
        values = [notes.get(name) for _, notes in shared]
        known = [value for value in values if value is not None]
        return statistics.fmean(known) if len(known) == len(values) else None

    ours = {
        "calls": statistics.fmean(p.usage.calls for p, _ in shared),
        "estimated_prompt_tokens": mean("estimated_prompt_tokens"),
    }
    theirs = {name: mean(note) for name, note in _PRICES.items()}
    return {"n_steps": len(shared), "shared-turn1": ours, "per-group": theirs}

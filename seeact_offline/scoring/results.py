"""The records of a scored run: `results.json`, and the lines of `steps.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Self

import msgspec
from msgspec import structs

from seeact_offline.files.formats import FormatError, check_finite, short, typed
from seeact_offline.records import KeyedRow, Metric, Truth
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import headline
from seeact_offline.scoring.rules import Protocol

IMPORT_NOTES = "import_notes"
"""The setting of an imported run that counts what was left out of it; results have it among their notes."""
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


class SecondFigure(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of a run where other right answers count too."""

    n_steps: int
    """Steps that count and have another right answer."""
    n_gained: int
    """Steps that succeed by another right answer and not by the annotated one; without elements, whose operation is
    right by one alone."""
    of_file: int = 0
    """Steps among them that a file names."""
    element_accuracy: ResultsFigure | None
    """None, as is `step_success_rate`, for a run that asks for no element."""
    operation_f1: ResultsFigure
    step_success_rate: ResultsFigure | None


def figure_entries(figures: Mapping[str, Metric | None], protocol: Protocol) -> dict[str, Any]:
    """Figures as `results.json` has them, by name."""
    return {
        name: figure
        and ResultsFigure(**asdict(figure), quoted=protocol.average_of(name) if protocol.code else msgspec.UNSET)
        for name, figure in figures.items()
    }


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
        figure: ResultsFigure | None = getattr(self, metric)
        return figure


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

    The file has the settings first, all on one level, then the figures, the losses and the rest, in the order of the
    fields. A field with a default is not in the file where it has that value.
    """

    usage: dict[str, Any]
    failures: dict[str, int]
    reply_failures: dict[str, int]
    notes: dict[str, int]
    causes_by_person: dict[str, int] | None = None
    also_right: SecondFigure | None = None
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
        return {"schema": SCHEMA, **self.settings, **{name: fields[name] for name in ENTRIES if name in fields}}

    def changed(self, *, cost_usd: float | None, notes: Mapping[str, int] | None = None) -> Self:
        """The same results at this cost, and with these notes too."""
        both = dict(sorted((self.notes | dict(notes or {})).items()))
        return structs.replace(self, usage={**self.usage, "cost_usd": cost_usd}, notes=both)

    def figure(self, metric: str) -> ResultsFigure | None:
        """One of METRICS, `point_accuracy` or `ceiling`."""
        figure: ResultsFigure | None = getattr(self, metric)
        return figure

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
NOT_IN_RESULTS = frozenset({"tasks", IMPORT_NOTES})
"""Settings of a run that its results do not repeat."""
NO_SETTINGS = frozenset({"schema", *ENTRIES})


# --- `steps.jsonl` ---


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class TargetEntry(msgspec.Struct, frozen=True, gc=False):
    """The right answer in a line of `steps.jsonl`."""

    op: str = ""
    value: str = ""
    element_ids: tuple[str, ...] = ()


class AnswerEntry(msgspec.Struct, frozen=True, gc=False):
    """The run's answer in a line of `steps.jsonl`."""

    element_id: str | None = None
    op: str = ""
    value: str = ""


class StepRow(KeyedRow, frozen=True, gc=False):
    """A line of `steps.jsonl`, as `rows` writes it. The fields that reading needs not are left out."""

    outcome: str
    operation_f1: Share | None
    target: TargetEntry
    element: Share | None = None
    success: Share | None = None
    best_rank: int | None = None
    website: str = ""
    domain: str = ""
    n_actions: int = 0
    """0, here and below: not known, or none."""
    n_before: int = 0
    n_candidates: int = 0
    task: str = ""
    failure: str | None = None
    person_cause: str | None = None
    reachable: bool | None = None
    predicted: AnswerEntry = AnswerEntry()
    cost_usd: float | None = None
    """None when a price is not known."""

    @property
    def truth(self) -> Truth:
        """The fields of the truth that averages use."""
        return Truth(*self.key, op=self.target.op, value="", positives=frozenset(), n_actions=self.n_actions)

"""A second figure for steps that have several right answers. The first one counts the annotated answer alone, and never
changes.

A file with one JSON object a line, of which the last three fields may be left out::

    {"annotation_id": "...", "action_uid": "...", "also_right": [{"element_ids": ["12", "40"]}, {"op": "TYPE", "value": "NYC"}],
     "note": "both open the same page", "annotator": "Ann"}

An answer is scored by the run's protocol against the annotated answer and each other one, and the best of these counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from seeact_offline.files.formats import check_other_answer
from seeact_offline.files.named import read_rows
from seeact_offline.records import InputError, OtherAnswer, Prediction, StepKey, Truth
from seeact_offline.scoring.labelled_predictions import LabelledPredictions
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.results import SecondFigure, figure_entries
from seeact_offline.scoring.rules import Protocol

_NotEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class OtherAnswerLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line of the file."""

    annotation_id: _NotEmpty
    action_uid: _NotEmpty
    also_right: Annotated[tuple[OtherAnswer, ...], msgspec.Meta(min_length=1)]
    note: str = ""
    annotator: str = ""

    def __post_init__(self) -> None:
        for answer in self.also_right:
            check_other_answer(answer)

    @property
    def key(self) -> StepKey:
        return StepKey(self.annotation_id, self.action_uid)

    @property
    def line(self) -> str:
        """Its JSON."""
        return json.dumps(msgspec.to_builtins(self))


def read_also_right(path: Path) -> dict[StepKey, OtherAnswerLine]:
    """Reads other right answers in the order of the file. Raises InputError with the number of the line that is at
    fault."""
    lines: dict[StepKey, OtherAnswerLine] = {}
    for row, where in read_rows("also_right", path, OtherAnswerLine):
        if row.key in lines:
            raise InputError("also_right", "each step once", f"{row.key} again in {where}")
        lines[row.key] = row
    return lines


def with_also_right(truths: Sequence[Truth], lines: Mapping[StepKey, OtherAnswerLine]) -> list[Truth]:
    """Adds the answers of a file to those that the truths have."""
    return [
        msgspec.structs.replace(truth, also_right=(*truth.also_right, *line.also_right))
        if (line := lines.get(truth.key)) is not None
        else truth
        for truth in truths
    ]


def second_figure(labelled: LabelledPredictions, protocol: Protocol, of_file: int = 0) -> SecondFigure | None:
    """None where no step that counts has another right answer. `of_file`: steps that a file names."""
    scored = labelled.credits(protocol)
    counted = scored.counted
    with_others = [place for place, truth in enumerate(labelled.truths) if truth.also_right and counted[place]]
    if not with_others:
        return None
    element, f1, success = (column.astype(float) for column in (scored.element, scored.operation_f1, scored.success))
    tried: list[tuple[int, Prediction, Truth]] = [
        (place, labelled.predictions[place], other_truth(labelled.truths[place], other))
        for place in with_others
        for other in labelled.truths[place].also_right
    ]
    others = LabelledPredictions([prediction for _, prediction, _ in tried], [truth for _, _, truth in tried]).credits(
        protocol
    )
    for row, (place, _, _) in enumerate(tried):
        by_other = float(others.success[row]), float(others.element[row]), float(others.operation_f1[row])
        if by_other > (success[place], element[place], f1[place]):
            success[place], element[place], f1[place] = by_other
    right = [truth for truth, counts in zip(labelled.truths, counted.tolist(), strict=True) if counts]
    grounded = protocol.element is not None
    before, after = (scored.success, success) if grounded else (scored.operation_f1 == 1.0, f1 == 1.0)
    figures = {**dict.fromkeys(METRICS), "operation_f1": protocol.averaging_of_f1(right).metric(f1[counted])}
    if grounded:
        average = protocol.averaging(right)
        figures["element_accuracy"] = average.metric(element[counted])
        figures["step_success_rate"] = average.metric(success[counted])
    return SecondFigure(
        n_steps=len(with_others),
        n_gained=int((np.asarray(after, dtype=bool) & ~np.asarray(before, dtype=bool) & counted).sum()),
        of_file=of_file,
        **figure_entries(figures, protocol),
    )


def other_truth(truth: Truth, other: OtherAnswer) -> Truth:
    """The step as if this answer had been annotated."""
    truth = msgspec.structs.replace(truth, also_right=())
    if other.op is not None:
        truth = msgspec.structs.replace(truth, op=other.op, value=other.value, original_op="")
    if not other.element_ids:
        return truth
    return msgspec.structs.replace(
        truth,
        positives=frozenset(other.element_ids),
        positives_in_order=other.element_ids,
        target=other.element_ids[0],
        boxes=other.boxes,
    )

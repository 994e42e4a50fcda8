"""UGround's samples, plans and answers of Multimodal-Mind2Web: the operation comes from a planner, the place from a
grounder.

A page is cut into blocks; the planner names a block, an operation and a description, the grounder a point of that
block. Source: UGround's released Multimodal-Mind2Web evaluation (OSU-NLP-Group/UGround).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from seeact_offline.files.formats import as_number
from seeact_offline.importers.importer import ImportedAnswers, Importer, Problem, Source, WrongFormat
from seeact_offline.importers.reading import SourceRow, SourceRows, box, is_finite, json_rows, numbers, step_of, text
from seeact_offline.records import Box, Prediction, Truth

SPLITS = {"task": "cross_task", "website": "cross_website", "domain": "cross_domain"}
"""The samples' names of splits, with ours."""
NOTES = {
    "block_without_target": "steps whose plan names a part of the page without a target: no answer can be right",
    "no_description": "steps whose plan describes no element, so that no answer was asked for",
    "no_answer": "steps without an answer though one could be right",
    "empty_output": "answers without a place, which count as the place (0, 0)",
    "bad_target_box": "boxes of targets that are not four numbers; left out",
    "unknown_length": "tasks whose last row says no length, so that nothing is padded",
}
Values = Mapping[str, Any]


def read(sources: Mapping[str, Source]) -> ImportedAnswers:
    """Reads UGround's files; every sample becomes a step. `failure` of a prediction: `no_plan`, `no_output`,
    `unreadable_output`, `bad_point` (not finite), `bad_scale`: such an element counts as wrong. The released evaluator
    stops at all but the first."""
    samples, problems = json_rows(sources["samples"]).first_of_each()
    if not any("operation" in row.values for row in samples.values()):
        raise WrongFormat(sources["samples"], "samples of UGround, with annotation_id, action_uid and operation")
    plans, about_plans = _plans(sources["plan"], samples)
    answers = _Answers({}, {}) if "answers" not in sources else _answers(sources["answers"])
    is_grounded = "answers" in sources
    steps = {key: _Step(key, row.values, plans.get(key, {}), answers.of(key, plans.get(key, {})), is_grounded)
             for key, row in samples.items()}  # fmt: skip
    lengths = {text(row.values["annotation_id"]): _length(row.values) for row in samples.values()}
    names = {text(row.values.get("split")) for row in samples.values()}
    name = names.pop() if len(names) == 1 else ""
    return ImportedAnswers(
        answers={key: step.prediction for key, step in steps.items()},
        problems=[
            *problems,
            *about_plans,
            *answers.problems(samples.keys()),
            *(Problem("unknown_length", f"task {task}") for task, length in lengths.items() if not length),
        ],
        settings={"split": SPLITS.get(name, name or "several splits")},
        truths=[step.truth(lengths[text(step.sample["annotation_id"])]) for step in steps.values()],
        is_grounded=is_grounded,
    )


def _plans(source: Source, samples: Mapping[str, SourceRow]) -> tuple[dict[str, Values], list[Problem]]:
    """The first plan of each sample."""
    plans, problems = json_rows(source).first_of_each()
    if not any("gpt_action" in row.values for row in plans.values()):
        raise WrongFormat(source, "plans of UGround, with annotation_id, action_uid and gpt_action")
    unknown = [Problem("unknown_step", f"{key} in {row.where}") for key, row in plans.items() if key not in samples]
    return {key: row.values for key, row in plans.items() if key in samples}, [*problems, *unknown]


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers by step. Without ids in the file, the plan's own row is the answer where it holds an output."""

    by_id: Mapping[str, SourceRow]
    by_step: Mapping[str, SourceRow]
    left_out: tuple[Problem, ...] = ()

    def of(self, key: str, plan: Values) -> Values | None:
        if key in self.by_id:
            return self.by_id[key].values
        if self.by_step and "output" in plan:
            return _in_block(plan)
        return _in_block(self.by_step[key].values) if key in self.by_step else None

    def problems(self, sample_keys: Collection[str]) -> list[Problem]:
        rows = [*self.by_id.values(), *self.by_step.values()]
        unknown = [Problem("unknown_step", f"{row.key} in {row.where}") for row in rows if row.key not in sample_keys]
        return [*self.left_out, *unknown]


def _in_block(row: Values) -> Values:
    """A plan's row as an answer: its own boxes are of the whole page, so that those of the block are looked up."""
    return {name: value for name, value in row.items() if name != "bbox"}


def _answers(source: Source) -> _Answers:
    """The first row decides whether all are known by their ids, as in the released code."""
    table = json_rows(source, lambda row: text(row.get("id")) or step_of(row))
    if not any("output" in row.values or "scale" in row.values for row in table.rows):
        raise WrongFormat(source, "answers of UGround, with id, output and scale")
    have_ids = bool(table.rows[0].values.get("id"))
    if not have_ids:
        named = [SourceRow(step_of(row.values), row.where, row.values) for row in table.rows]
        lost = [Problem("bad_row", row.where) for row in named if not row.key]
        table = SourceRows([row for row in named if row.key], [*table.problems, *lost])
    rows, problems = table.first_of_each()
    return _Answers(rows if have_ids else {}, {} if have_ids else rows, tuple(problems))


# --- one step ---


@dataclass(frozen=True, slots=True)
class _Step:
    key: str
    sample: Values
    plan: Values
    """Empty where there is none."""
    answer: Values | None
    is_grounded: bool

    def truth(self, n_actions: int) -> Truth:
        """Boxes are those of the answered block, in its pixels; of a step that cannot be answered, those of the
        page."""
        sample = self.sample
        page = boxes(sample.get("bbox"))
        ids = [f"box{i}" for i in range(len(page) or len(self._target_blocks or ()))]
        before = sample.get("previous_actions")
        answer = self.answer if self._is_asked else None
        in_block = (self._target_blocks or {}).get(str(self.plan.get("ans_block")))
        return Truth(
            text(sample["annotation_id"]),
            text(sample["action_uid"]),
            op=text(sample.get("operation")),
            value=text(sample.get("value")),
            positives=frozenset(ids),
            boxes=page if answer is None else boxes(answer.get("bbox") or in_block),
            website=text(sample.get("website")),
            domain=text(sample.get("domain")),
            target=next(iter(ids), None),
            n_actions=n_actions,
            n_before=len(before) if isinstance(before, list) else 0,
        )

    def prediction(self, truth: Truth) -> Prediction:
        if not self.plan:
            return Prediction(*truth.key, None, "", "", failure="no_plan", detail="no plan of this step", ran=False)
        op, value = text(self.plan.get("gpt_action")), text(self.plan.get("gpt_value"))
        if not self.is_grounded:
            return Prediction(*truth.key, None, op, value)
        at = place(self.answer) if self._is_asked and self.answer is not None else Place()
        target_boxes = self.sample.get("bbox")
        n_bad_boxes = 0
        if isinstance(target_boxes, list) and _is_many(target_boxes):
            n_bad_boxes = len(target_boxes) - len(boxes(target_boxes))
        notes = {
            "block_without_target": int(not self._shows_target),
            "no_description": int(self._lacks_description),
            "no_answer": int(self._is_asked and self.answer is None),
            "bad_target_box": n_bad_boxes,
            "empty_output": int(at.is_empty),
        }
        return Prediction(
            *truth.key,
            element_id=None,
            op=op,
            value=value,
            failure=at.failure,
            detail=at.detail,
            point=at.point,
            notes={name: n for name, n in sorted(notes.items()) if n},
            reachable=self._is_asked,
        )

    @property
    def _is_asked(self) -> bool:
        """True if the grounder was asked, which it is where its answer can be right. A gap in the plan is no reason not
        to."""
        return self._shows_target and not self._lacks_description

    @property
    def _shows_target(self) -> bool:
        targets = self._target_blocks
        return self.plan.get("ans_block") is None or targets is None or str(self.plan["ans_block"]) in targets

    @property
    def _lacks_description(self) -> bool:
        return "description" in self.plan and text(self.plan["description"]) in ("", "None")

    @property
    def _target_blocks(self) -> Values | None:
        blocks = self.sample.get("target_blocks", self.plan.get("target_blocks"))
        return blocks if isinstance(blocks, dict) else None


@dataclass(frozen=True, slots=True)
class Place:
    """The place that an answer names."""

    point: tuple[float, float] | None = None
    """Pixels of the block."""
    failure: str | None = None
    detail: str = ""
    is_empty: bool = False
    """True if the answer holds no place at all."""


def place(answer: Values) -> Place:
    """The `output` of an answer in the pixels of the picture that was shown, divided by its `scale`."""
    if answer.get("output") is None:
        return Place(failure="no_output", detail="expected an output, got none")
    output = numbers(answer["output"])
    if output is None or len(output) not in (0, 2):
        return Place(failure="unreadable_output", detail=f"expected x and y, got {answer['output']!r:.80}")
    scale = as_number(answer.get("scale"))
    if scale is None or not is_finite((scale,)) or scale <= 0:
        return Place(failure="bad_scale", detail=f"expected a number above 0, got {answer.get('scale')!r:.80}")
    if not is_finite(output):
        return Place(failure="bad_point", detail=f"expected two numbers, got {answer['output']!r:.80}")
    x, y = output or (0.0, 0.0)
    return Place((x / scale, y / scale), is_empty=not output)


def boxes(value: object) -> tuple[Box, ...]:
    """The boxes of a list that are four numbers; a single one may stand alone."""
    several = value if isinstance(value, list) and _is_many(value) else [value]
    return tuple(parsed for parsed in map(box, several) if parsed is not None)


def _is_many(value: list[Any]) -> bool:
    return not (len(value) == 4 and all(as_number(number) is not None for number in value))


def _length(sample: Values) -> int:
    """Actions of the task; 0 where the row does not say. The last row of a task decides."""
    length = as_number(sample.get("total_steps"))
    return int(length) if length is not None and 0 < length < 1e6 else 0


def _looks(first: Any) -> bool:
    return isinstance(first, dict) and (
        "gpt_action" in first or "target_blocks" in first or ("output" in first and "scale" in first)
    )


IMPORTER = Importer(
    name="uground",
    what="a file of UGround",
    protocol="uground",
    read=read,
    looks=_looks,
    needs=("samples", "plan"),
    takes=("answers",),
    notes=NOTES,
)

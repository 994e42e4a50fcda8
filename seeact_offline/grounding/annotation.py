"""Grounding by image annotation: the group's elements are marked on the picture, and the model names a mark.

Source: SeeAct (arXiv 2401.01614v2) section 3.2 and appendix, and its released code. Groups, crops and merging are those
of textual choices, so that the two differ in nothing but how elements are offered. Every element of a group has a
label. That of an element outside the page is offered though nobody can see it, and counted (`box_not_drawn`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import Field, fields, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from seeact_offline.files.extras import install_command
from seeact_offline.grounding import PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import Question, Reader, final_lines, group_picture, ideal_plan, share_turn1
from seeact_offline.grounding.groups import NOTES, GroupStrategy, ranked_boxes
from seeact_offline.grounding.strategy import (
    GROUPING_OPTIONS,
    Option,
    Strategy,
    StrategyInputs,
    StrategyInstance,
    whole,
)
from seeact_offline.merging import RELEASED_SIZE
from seeact_offline.models.tokens import fitted_scale
from seeact_offline.pages.marks import (
    NO_MARK,
    STYLE,
    Marks,
    Placement,
    Rect,
    capital_height,
    check_capacity,
    draw_marks,
    label_size,
    mark_labels,
    pixel_rect,
    place_labels,
)
from seeact_offline.pages.screenshots import Crop, encode
from seeact_offline.prompting import Placeholders, PromptPack
from seeact_offline.records import PNG, Box, CropBox, ImageFormat, InputError, MergeRule
from seeact_offline.replies.final_answer import parse_grounding_reply

if TYPE_CHECKING:
    from PIL import Image

LEGIBLE = 8
"""Pixels of a letter's height under which models misread it."""


class MarkedCrop:
    """A crop with some of its elements marked, a `Picture`. Marks are drawn after
    scaling, so that they stay legible."""

    def __init__(self, crop: Crop, boxes: Sequence[Box], labels: Sequence[str], marks: Marks) -> None:
        """`boxes` are page pixels; each gets the label at its place."""
        self.crop = crop
        self.labels = tuple(labels)
        self._boxes = tuple(boxes)
        self._marks = marks

    @property
    def key(self) -> str:
        labelled = [(label, *box) for label, box in zip(self.labels, self._boxes, strict=True)]
        first, later = self._marks.drawing[:3], self._marks.drawing[3:]
        marks = repr((STYLE, *first, labelled, *later))
        return f"{self.crop.key}+marks:{hashlib.sha256(marks.encode()).hexdigest()[:16]}"

    @property
    def box(self) -> CropBox:
        return self.crop.box

    @property
    def size(self) -> tuple[int, int]:
        return self.crop.size

    @property
    def resized(self) -> bool:
        return self.crop.resized

    @cached_property
    def rects(self) -> tuple[Rect, ...]:
        """The boxes in pixels of the picture as shown."""
        see = self.crop.from_page
        corners = [(*see(box.x, box.y), *see(box.right, box.bottom)) for box in self._boxes]
        return tuple(pixel_rect(*corner) for corner in corners)

    @cached_property
    def placement(self) -> Placement:
        """Places of the labels, in pixels of the picture as shown."""
        sizes = [label_size(text, self._marks) for text in self.labels]
        return place_labels(self.rects, sizes, self.size, self._marks)

    def image(self) -> Image.Image:
        return draw_marks(self.crop.image(), self.rects, self.labels, self.placement.spots, self._marks)

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        return encode(self.image(), image_format)


class AnnotationGrounding(GroupStrategy):
    """Asks every group with its marked picture, then merges by the rule."""

    def __init__(
        self,
        pack: PromptPack,
        group_size: int = RELEASED_SIZE,
        merge: MergeRule = "final-round",
        form: QuestionOptions | None = None,
        marks: Marks | None = None,
    ) -> None:
        """Raises InputError for marks that cannot be: without a picture, or more of them than there are labels."""
        self.marks = marks or Marks()
        super().__init__(replace(pack, values=self.marks.words), group_size, merge, form)
        if not self.form.image:
            raise InputError(
                "no_image",
                sentence="`no_image` cannot be combined with grounding annotation, which marks elements on the picture",
            )
        if self.marks.turn1 and self.form.shared_turn1:
            raise InputError("mark_turn1", sentence="`mark_turn1` needs `batching` per-group")
        if merge != "single":
            check_capacity(self.marks.kind, group_size)

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The groups' questions, as of any strategy by groups.

        Raises InputError when a group of the rule `single`, or a final round, would need more labels than there are.
        """
        if self.merge_rule == "final-round":
            # a final round may hold a pick of every group
            check_capacity(self.marks.kind, len(self.grouping(prepared).groups))
        return super().questions(prepared)

    def read(self, question: Question) -> Reader:
        labels = mark_labels(self.marks.kind, len(question.offered))
        return lambda text: parse_grounding_reply(text, "annotation", len(labels), labels=labels)

    def counts(self, prepared: PreparedStep, asked: Sequence[Question]) -> dict[str, int]:
        boxes = ranked_boxes(prepared.step, prepared.ranked).values()
        shown = (picture for question in asked for picture in question.pictures)
        marked = [picture for picture in shown if isinstance(picture, MarkedCrop)]
        height = capital_height(self.marks.text_size)
        return {
            **self.grouping(prepared).notes,
            "box_not_drawn": sum(
                pixel_rect(box.x, box.y, box.right, box.bottom).within(prepared.picture.size) is None for box in boxes
            ),
            "label_off_position": sum(picture.placement.n_off_position for picture in marked),
            "label_too_small": sum(height * fitted_scale(picture.size) < LEGIBLE for picture in marked),
        }

    def build_question(self, prepared: PreparedStep, ids: Sequence[str], index: int) -> Question:
        step, pack, boxes = prepared.step, self._pack, ranked_boxes(prepared.step, prepared.ranked)
        # document order, as textual choices have it
        ordered = sorted(ids, key=prepared.page.position)
        offered = tuple(self.form.ordered(ordered, step.key, f"choices {index}"))
        labels = mark_labels(self.marks.kind, len(offered))
        crop = group_picture(prepared, [boxes[node] for node in ids], self.form)
        assert crop is not None  # this grounding is never without a picture
        marked = MarkedCrop(crop, [boxes[node] for node in offered], labels, self.marks)
        phrase = labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"
        turn2 = pack.fill_turn2({"labels": phrase, "none_label": NO_MARK})
        turns = pack.messages(pack.render_turn1(step.task, step.history), turn2)
        # marks come with the question that asks for one; those of turn 1 are not shown a second time
        pictures = (marked, None) if self.marks.turn1 or len(turns) == 1 else (crop, marked)
        truth = step.truth
        right = next((label for node, label in zip(offered, labels, strict=True) if node in truth.positives), NO_MARK)
        question = Question(
            index=index,
            offered=offered,
            system=pack.render_system(),
            turns=turns,
            pictures=pictures[: len(turns)],
            ideal=(ideal_plan(step), final_lines(right, truth.operation))[-len(turns) :],
            labels=labels,
            reply_prefix=pack.reply_prefix,
        )
        return share_turn1(question, prepared, pack, self.form) if self.form.shared_turn1 else question


def _open(inputs: StrategyInputs) -> StrategyInstance:
    # before anything is asked: a package that is missing must not fail step by step
    if find_spec("supervision") is None:
        hint = install_command("marks")
        raise InputError("grounding", sentence=f"grounding annotation needs the package supervision: run {hint}")
    marks = Marks(**{field.name: inputs.own[field.metadata["option"]] for field in fields(Marks)})
    grounding = AnnotationGrounding(inputs.pack, inputs.group_size, inputs.merge, inputs.form, marks)
    return StrategyInstance(grounding, marks.identity | {"mark_style": STYLE})


def _option(field: Field[Any]) -> Option:
    name, purpose, choices = (field.metadata[key] for key in ("option", "help", "choices"))
    if isinstance(field.default, bool):
        return Option(name, purpose, field.default, read=bool)
    purpose = f"{purpose} (default: {field.default})"
    if choices:
        return Option(name, purpose, field.default, choices=choices)
    return Option(name, purpose, field.default, read=whole, metavar="N")


STRATEGY = Strategy(
    name="annotation",
    open=_open,
    turn2=Placeholders(("labels", "none_label", *Marks().words)),
    turn1=tuple(Marks().words),
    # files for a turn 1 that comes with the marked picture
    variant=lambda own, form: "marked" if own["mark_turn1"] or form.turns == 1 else "",
    options=tuple(map(_option, fields(Marks))),
    grouping_options=GROUPING_OPTIONS,
    is_grouped=True,
    needs_picture=True,
    notes={
        **NOTES,
        "box_not_drawn": "a candidate that is offered though its box lies outside the page, where nobody can see it",
        "label_off_position": "with --mark-place clear or outside: a label that stands elsewhere than asked",
        "label_too_small": f"a picture whose labels' letters are under {LEGIBLE} pixels tall once a server has fitted"
        " it into 2,048 pixels and its shorter side into 768: try max_image_side 2048",
    },
)

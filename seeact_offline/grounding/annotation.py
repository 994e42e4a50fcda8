"""Grounding by image annotation: the group's elements are marked on the picture, and the model names a mark.

Source: SeeAct (arXiv 2401.01614v2) section 3.2 and appendix. Groups, crops and merging are those of textual choices, so
that the two differ in nothing but how elements are offered. An element whose box has no area or lies outside the page
can be seen by nobody: it is not drawn, not offered, and counted (`box_not_drawn`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from seeact_offline.grounding import Grounded, Prepared, QuestionOptions
from seeact_offline.grounding.asking import (
    Question,
    Reader,
    boxes_of,
    final_lines,
    ground_by_groups,
    group_picture,
    ordered_groups,
    plan_ideal,
    share_turn1,
)
from seeact_offline.grounding.strategy import Asked, Opened, Option, Strategy
from seeact_offline.pages.marks import (
    MARK_KINDS,
    MARK_POSITIONS,
    NO_MARK,
    STYLE,
    MarkPosition,
    Marks,
    Rect,
    check_capacity,
    draw_marks,
    label_size,
    mark_labels,
    pixel_rect,
    place_labels,
    visible,
)
from seeact_offline.pages.screenshots import Crop, encode_png
from seeact_offline.prompting import Placeholders, PromptPack
from seeact_offline.records import Box, InputError, MergeRule, Model, Picture, RowError, Step
from seeact_offline.replies.final_answer import parse_grounding_reply

if TYPE_CHECKING:
    from PIL import Image


class MarkedCrop:
    """A crop with some of its elements marked, a `Picture`. Marks are drawn after scaling, so that they stay legible."""

    def __init__(self, crop: Crop, boxes: Sequence[Box], labels: Sequence[str], position: MarkPosition) -> None:
        """`boxes` are page pixels, inside the page; each gets the label at its place."""
        self.crop = crop
        self.labels = tuple(labels)
        self._boxes = tuple(boxes)
        self._position = position

    @property
    def key(self) -> str:
        marks = repr(
            (STYLE, self._position, [(label, *box) for label, box in zip(self.labels, self._boxes, strict=True)])
        )
        return f"{self.crop.key}+marks:{hashlib.sha256(marks.encode()).hexdigest()[:16]}"

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
        return tuple(pixel_rect(*corner, self.size) for corner in corners)

    @cached_property
    def spots(self) -> tuple[Rect, ...]:
        """Where the labels are, in pixels of the picture as shown."""
        return tuple(place_labels(self.rects, [label_size(text) for text in self.labels], self.size, self._position))

    def image(self) -> Image.Image:
        return draw_marks(self.crop.image(), self.rects, self.labels, self.spots)

    def png(self) -> bytes:
        return encode_png(self.image())


class AnnotationGrounding:
    """Asks every group with its marked picture, then merges by the rule."""

    needs_ranking = True

    def __init__(
        self,
        pack: PromptPack,
        group_size: int = 17,
        merge: MergeRule = "final-round",
        form: QuestionOptions | None = None,
        marks: Marks | None = None,
    ) -> None:
        """Raises InputError for marks that cannot be: without a picture, or more of them than there are labels."""
        self.form = form or QuestionOptions()
        self.merge_rule = merge
        self.marks = marks or Marks()
        self._pack = pack
        self._group_size = group_size
        if not self.form.image:
            raise InputError("no_image", "a picture for grounding annotation, which marks elements on it", "none")
        if self.marks.in_turn1 and self.form.shared_turn1:
            raise InputError(
                "mark_turn1",
                "one turn 1 a group",
                "batching shared-turn1, whose turn 1 shows the page of all groups while each group has labels of its own",
            )
        if merge != "single":
            check_capacity(self.marks.kind, group_size)

    def questions(self, prepared: Prepared) -> list[Question]:
        """One a group with anything to mark, top of the page first.

        Raises RowError `missing_box`, `bad_screenshot`, `nothing_to_mark`; InputError when a group of the rule `single`, or
        a final round, would need more labels than there are.
        """
        boxes = boxes_of(prepared.step, prepared.ranked)
        groups = ordered_groups(prepared, boxes, self._group_size, self.merge_rule, self.form)
        drawn = drawn_boxes(prepared, boxes)
        asked = [ids for ids in groups if any(node in drawn for node in ids)]
        if not asked:
            raise RowError("nothing_to_mark", f"none of the {len(boxes)} ranked candidates has a box on the page")
        if self.merge_rule == "final-round":
            check_capacity(self.marks.kind, len(asked))  # a final round may hold a pick of every group
        return [self._question(prepared, ids, boxes, index) for index, ids in enumerate(asked)]

    def final_round(self, prepared: Prepared, picks: Sequence[str], index: int) -> Question:
        boxes = boxes_of(prepared.step, prepared.ranked)
        return replace(self._question(prepared, picks, boxes, index), is_final_round=True)

    def read(self, question: Question) -> Reader:
        labels = mark_labels(self.marks.kind, len(question.offered))
        return lambda text: parse_grounding_reply(text, "annotation", len(labels), labels=labels)

    async def ground(self, prepared: Prepared, model: Model) -> Grounded:
        grounded = await ground_by_groups(self, prepared, model)
        boxes = boxes_of(prepared.step, prepared.ranked)
        drawn = drawn_boxes(prepared, boxes)
        missing = len(boxes) - len(drawn)
        notes = sorted([*grounded.notes, *([("box_not_drawn", missing)] if missing else [])])
        reachable = not drawn.keys().isdisjoint(prepared.step.truth.positives)
        return replace(grounded, notes=tuple(notes), reachable=reachable)

    def _question(self, prepared: Prepared, ids: Sequence[str], boxes: dict[str, Box], index: int) -> Question:
        step, pack = prepared.step, self._pack
        drawn = drawn_boxes(prepared, {node: boxes[node] for node in ids})
        offered = self._in_order(prepared, list(drawn), index)
        labels = mark_labels(self.marks.kind, len(offered))
        crop = group_picture(prepared, [boxes[node] for node in ids], self.form)
        assert crop is not None  # this grounding is never without a picture
        marked = MarkedCrop(crop, [drawn[node] for node in offered], labels, self.marks.position)
        turn2 = pack.fill_turn2({"labels": _phrase(labels), "none_label": NO_MARK})
        turns = pack.messages(pack.render_turn1(step.task, step.history), turn2)
        question = Question(
            index=index,
            offered=offered,
            system=pack.render_system(),
            turns=turns,
            pictures=self._shown(crop, marked, len(turns)),
            ideal=_ideal(step, offered, labels)[-len(turns) :],
            labels=labels,
        )
        return share_turn1(question, prepared, pack, self.form) if self.form.shared_turn1 else question

    def _in_order(self, prepared: Prepared, ids: Sequence[str], index: int) -> tuple[str, ...]:
        """Document order, as textual choices have it, or shuffled."""
        ordered = sorted(ids, key=prepared.page.position)
        order = self.form.order
        return tuple(ordered if order is None else order.shuffled(ordered, prepared.step.key, f"choices {index}"))

    def _shown(self, crop: Crop, marked: MarkedCrop, n_turns: int) -> tuple[Picture | None, ...]:
        """Marks come with the question that asks for one; in turn 1 already they are not shown a second time."""
        if n_turns == 1:
            return (marked,)
        return (marked, None) if self.marks.in_turn1 else (crop, marked)


def drawn_boxes(prepared: Prepared, boxes: dict[str, Box]) -> dict[str, Box]:
    """What can be seen of each box; elements of which nothing can be seen are left out. Raises RowError."""
    seen = {node: visible(box, prepared.picture.size) for node, box in boxes.items()}
    return {node: box for node, box in seen.items() if box is not None}


def _phrase(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"


def _ideal(step: Step, offered: Sequence[str], labels: Sequence[str]) -> tuple[str, str]:
    """The truth wherever it is marked, with the right operation: what is lost is lost before the model."""
    truth = step.truth
    found = next((label for node, label in zip(offered, labels, strict=True) if node in truth.positives), NO_MARK)
    return plan_ideal(step), final_lines(found, truth.operation)


def _open(asked: Asked) -> Opened:
    own = asked.own
    marks = Marks(own["marks"], own["mark_position"], own["mark_turn1"])
    return Opened(AnnotationGrounding(asked.pack, asked.group_size, asked.merge, asked.form, marks), own)


STRATEGY = Strategy(
    name="annotation",
    open=_open,
    turn2=Placeholders(("labels", "none_label")),
    options=(
        Option("marks", "kind of label (default: number)", MARK_KINDS[0], choices=MARK_KINDS),
        Option("mark_position", "where a label goes (default: bottom-left)", MARK_POSITIONS[0], choices=MARK_POSITIONS),
        Option("mark_turn1", "the marked picture in turn 1 too", False, read=bool),
    ),
    is_grouped=True,
    needs_picture=True,
    notes={"box_not_drawn": "a candidate's box has no area or lies outside of the page"},
)

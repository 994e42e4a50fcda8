"""Grounding by a point: the model is shown the whole page and says where to press; what lies there is the element.

The element is the smallest candidate whose box contains the point. Any candidate counts, ranked or not, so that no
ranker is needed. A box that a model gives in place of a point counts by its centre.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import (
    Question,
    Session,
    build_reply,
    final_lines,
    ideal_plan,
    in_thread,
    nonzero_notes,
)
from seeact_offline.grounding.strategy import Option, Strategy, StrategyInstance
from seeact_offline.merging import decision
from seeact_offline.pages.dom import Page
from seeact_offline.pages.pointing import (
    COORDINATES,
    Coordinates,
    describe,
    element_at,
    is_usable,
    shown_point,
    visible_centre,
    write_point,
)
from seeact_offline.pages.screenshots import Crop
from seeact_offline.prompting import Placeholders, PromptPack
from seeact_offline.records import Box, CropBox, GroundingReply, InputError, Model, Reply, Step, StepError
from seeact_offline.replies.answer_text import plain_answer
from seeact_offline.replies.final_answer import parse_grounding_reply
from seeact_offline.replies.points import read_point

MAX_DECIMALS = 6
"""Most decimals with which a place is written."""


@dataclass(frozen=True, slots=True)
class TargetPoint:
    """The ideal answer."""

    text: str
    """The place as the prompt asks for it; NA where there is none."""
    hits: bool
    """True if a positive lies there."""
    is_fine: bool = False
    """True if it takes more decimals than a place is usually written with."""


class PixelGrounding(Grounding):
    """Asks once for a place on the picture of the whole page."""

    needs_ranking = False

    def __init__(
        self, pack: PromptPack, form: QuestionOptions | None = None, coordinates: Coordinates = "absolute"
    ) -> None:
        self.form = form or QuestionOptions()
        if not self.form.image:
            raise InputError(
                "no_image",
                sentence="`no_image` cannot be combined with grounding pixel, which asks for a place on the picture",
            )
        self._pack = pack
        self._coordinates = coordinates
        # with which a place is usually written
        self._decimals = 3 if coordinates == "fraction" else 0

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The only one. Raises RowError `bad_screenshot`."""
        return [self._question(prepared, _picture(prepared, self.form), self._target(prepared))]

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        session = Session(model, prepared.step.key)
        try:
            picture, target = await in_thread(_picture, prepared, self.form), await in_thread(self._target, prepared)
            question = self._question(prepared, picture, target)
            talk = await session.converse(question)
        except StepError as error:
            return session.failed(error)
        point = None
        if talk.failure is not None:
            answer = build_reply(question, talk.texts, GroundingReply(None, failure=talk.failure), talk.detail)
        else:
            answer, point = self._read(question, talk.texts, prepared, picture)
        notes = nonzero_notes(
            picture_resized=int(picture.resized),
            target_finer_than_coordinates=int(target.is_fine),
            point_off_elements=int(point is not None and answer.element_id is None),
        )
        session.replies.append(answer)
        return session.ended(decision(answer), point=point, notes=notes)

    def reaches(self, prepared: PreparedStep) -> bool:
        """Tells whether some place that can be written leads to a positive."""
        return self._target(prepared).hits

    def _question(self, prepared: PreparedStep, picture: Crop, target: TargetPoint) -> Question:
        step, pack = prepared.step, self._pack
        width, height = picture.size
        asked = {"coordinates": describe(self._coordinates, picture.size), "width": str(width), "height": str(height)}
        turns = pack.messages(pack.render_turn1(step.task, step.history), pack.fill_turn2(asked))
        ideal = (ideal_plan(step), final_lines(target.text, step.truth.operation))
        return Question(
            index=0,
            offered=(),
            system=pack.render_system(),
            turns=turns,
            pictures=(picture, None)[: len(turns)],
            ideal=ideal[-len(turns) :],
            reply_prefix=pack.reply_prefix,
        )

    def _read(
        self, question: Question, texts: Sequence[str], prepared: PreparedStep, picture: Crop
    ) -> tuple[Reply, tuple[float, float] | None]:
        """The reply as recorded, and the point of the page that it names."""
        op, value, problem = read_operation(texts[-1])
        pointed = read_point(texts[-1])
        failure, detail = pointed.failure, pointed.detail
        point = None
        if failure is None and not pointed.says_none:
            try:
                point = picture.to_page(*shown_point(pointed.numbers, self._coordinates, picture.size))
            except StepError as error:
                failure, detail = error.name, error.detail
            failure, detail = (failure, detail) if failure else (problem, "")
        answer = build_reply(question, texts, GroundingReply(None, op, value, failure), detail)
        element = None if point is None else element_at(point, elements(prepared.step, prepared.page))
        return msgspec.structs.replace(answer, element_id=element), point

    def _target(self, prepared: PreparedStep) -> TargetPoint:
        """The centre of the first positive that is what lies there; in its absence, of the first that can be seen."""
        picture = _picture(prepared, self.form)
        boxes, positives = elements(prepared.step, prepared.page), prepared.step.truth.positives
        centres = [visible_centre(box, prepared.picture.size) for node, box in boxes if node in positives]
        seen = [centre for centre in centres if centre is not None]
        hits = [centre for centre in seen if element_at(centre, boxes) in positives]
        if not seen:
            return TargetPoint("NA", hits=False)
        return self._written_so_that_it_stays((hits or seen)[0], picture, boxes, hits=bool(hits))

    def _written_so_that_it_stays(
        self, centre: tuple[float, float], picture: Crop, boxes: Sequence[tuple[str, Box]], hits: bool
    ) -> TargetPoint:
        """The centre with the fewest decimals that leave it on the element that lies there, no fewer than are usual."""
        there = element_at(centre, boxes)
        for decimals in range(self._decimals, MAX_DECIMALS + 1):
            place = write_point(picture.from_page(*centre), self._coordinates, picture.size, decimals)
            written = f"<point>{place}</point>"
            back = shown_point(read_point(written).numbers, self._coordinates, picture.size)
            if element_at(picture.to_page(*back), boxes) == there:
                return TargetPoint(written, hits, is_fine=hits and decimals > self._decimals)
        # no place is that fine: the element is as good as out of reach
        return TargetPoint(written, hits=False, is_fine=hits)


def _picture(prepared: PreparedStep, form: QuestionOptions) -> Crop:
    """The page from top to bottom, no larger than the form allows. Raises RowError `bad_screenshot`."""
    return prepared.picture.crop(CropBox(0, 0, *prepared.picture.size), max_side=form.max_side)


def elements(step: Step, page: Page) -> list[tuple[str, Box]]:
    """The candidates that can be pointed at, in document order."""
    boxed = [(c.backend_node_id, c.box) for c in step.candidates if c.box is not None and is_usable(c.box)]
    return sorted(boxed, key=lambda element: page.position(element[0])) if step.has_page else boxed


_ACTION = re.compile(r"\baction\b", re.IGNORECASE)


def read_operation(text: str) -> tuple[str, str, str | None]:
    """Operation and value of a final answer, and the failure that they would be if there is an element."""
    text = plain_answer(text)
    read = parse_grounding_reply(text, "choice", 0)
    if not read.op:
        return "", read.value, "unknown_action" if _ACTION.search(text) else "missing_action"
    return read.op, read.value, "missing_value" if read.op != "CLICK" and not read.value else None


STRATEGY = Strategy(
    name="pixel",
    open=lambda inputs: StrategyInstance(
        PixelGrounding(inputs.pack, inputs.form, inputs.own["coordinates"]), inputs.own
    ),
    turn2=Placeholders(("coordinates", "width", "height"), required=(("coordinates",),)),
    options=(Option("coordinates", "how a place is written (default: absolute)", COORDINATES[0], choices=COORDINATES),),
    needs_picture=True,
    needs_page=False,
    notes={
        "point_off_elements": "the model pointed at a place where no candidate is",
        "target_finer_than_coordinates": "no whole number (or third decimal of a fraction) lies on the right element",
    },
)

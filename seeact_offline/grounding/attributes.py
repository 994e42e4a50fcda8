"""Grounding by attributes: the model says what the element is and what stands on it, and a search finds it on the page.

Source: SeeAct (arXiv 2401.01614v2) section 3.2 and appendix; the search was never released, and `pages.search` states
ours. Two turns on the whole page. One match is the element; none is no element. Of several the model chooses, in one
further turn that shows them as options with the part of the page where they are; the conversation so far stays above
it. The first `MAX_CHOICES` matches in document order are offered, the rest is left out and counted. A match without a
box may be anywhere: it counts as seen, and the whole page is shown.

Notes of a step: `found_TIER`, `found_unseen` (nothing that can be seen fits), `no_match`, `several_matches`,
`matches_left_out` (how many), `target_without_text` (nothing that a target says is in the page's code),
`target_not_found` (its own type and text lead elsewhere), `picture_resized`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import msgspec

from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.choice import choice_question
from seeact_offline.grounding.conversation import (
    Question,
    Session,
    build_reply,
    count_resized,
    ideal_plan,
    in_thread,
    nonzero_notes,
    operation_lines,
    whole_page,
)
from seeact_offline.grounding.conversation import page_html as whole_markup
from seeact_offline.grounding.strategy import Option, Strategy, StrategyInputs, StrategyInstance, percent
from seeact_offline.merging import Decision, decision
from seeact_offline.pages.dom import Page
from seeact_offline.pages.search import FUZZY_THRESHOLD, Description, PageSearch, SearchResult, descriptions
from seeact_offline.pages.wording import TYPES
from seeact_offline.prompting import Placeholders, PromptPack
from seeact_offline.records import Box, Candidate, GroundingReply, Model, Step, StepError
from seeact_offline.replies.final_answer import parse_grounding_reply

MAX_CHOICES = 50
"""The number that the published choice grounding offers of a whole page."""


@dataclass(frozen=True, slots=True)
class _FirstQuestion:
    """A step's first question, with the search for its answer."""

    question: Question
    search: PageSearch
    reachable: bool
    notes: dict[str, int]
    """Counts about the target."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Result of a step's conversations."""

    decision: Decision
    questions: tuple[Question, ...]
    """All questions asked."""
    notes: dict[str, int]
    """Counts about the matches."""


class AttributesGrounding(Grounding):
    """Asks for a type and a text, searches, and asks again when several elements have them."""

    needs_ranking = False

    def __init__(
        self,
        pack: PromptPack,
        choice_pack: PromptPack,
        form: QuestionOptions | None = None,
        threshold: float = FUZZY_THRESHOLD,
    ) -> None:
        """`choice_pack`: templates of `choice`, for the question among several matches. `threshold`: percent."""
        self.form = form or QuestionOptions()
        self._pack = pack
        self._choice_pack = choice_pack
        self._threshold = threshold

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The one that is always asked. Raises RowError `bad_screenshot`."""
        return [self._first_question(prepared).question]

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        session = Session(model, prepared.step.key)
        try:
            asked = await in_thread(self._first_question, prepared)
            outcome = await self._answer(prepared, asked, session)
        except StepError as error:
            return session.failed(error)
        notes = nonzero_notes(picture_resized=count_resized(outcome.questions), **asked.notes, **outcome.notes)
        return session.ended(outcome.decision, notes=notes)

    def reaches(self, prepared: PreparedStep) -> bool:
        """Tells whether a target's own type and text lead to it."""
        return self._first_question(prepared).reachable

    async def _answer(self, prepared: PreparedStep, asked: _FirstQuestion, session: Session) -> _Outcome:
        """Asks for a type and a text, looks for them, and asks again where several elements fit. Raises StepError."""
        question = asked.question
        talk = await session.converse(question)
        read = GroundingReply(None, failure=talk.failure)
        if talk.failure is None:
            read = parse_grounding_reply(talk.texts[-1], "attributes", 0)
        # without a type any will do; without a text there is nothing to look for
        matches = await in_thread(asked.search.find, read.element_type, read.element_text)
        alone = matches.ids[0] if len(matches.ids) == 1 else None
        first = msgspec.structs.replace(build_reply(question, talk.texts, read, talk.detail), element_id=alone)
        session.replies.append(first)
        notes = match_notes(read, matches)
        if len(matches.ids) < 2:
            return _Outcome(decision(first), (question,), notes)
        again = await in_thread(self._among, prepared, question, matches.ids[:MAX_CHOICES])
        turn1_replies = talk.texts[:1] if len(again.turns) > 1 else ()
        last = await session.ask(
            again, lambda text: parse_grounding_reply(text, "choice", len(again.offered)), turn1_replies
        )
        # the first reply's operation stands where the choice names none
        op, value = (last.op, last.value) if last.op else (first.op, first.value)
        return _Outcome(replace(decision(last), op=op, value=value), (question, again), notes)

    def _first_question(self, prepared: PreparedStep) -> _FirstQuestion:
        step, pack = prepared.step, self._pack
        search = page_search(prepared.page, step.candidates, self._page_size(prepared), self._threshold)
        named = descriptions(search, step.truth.positives, MAX_CHOICES)
        best = next((d for d in named if _survives(step, d)), None)
        turn1 = pack.render_turn1(step.task, step.history, "" if self.form.image else whole_markup(prepared))
        turns = pack.messages(turn1, pack.fill_turn2({"types": ", ".join(TYPES[:-1]) + f" or {TYPES[-1]}"}))
        question = Question(
            index=0,
            offered=(),
            system=pack.render_system(),
            turns=turns,
            pictures=(whole_page(prepared, self.form), None)[: len(turns)],
            ideal=(ideal_plan(step), _ideal(step, best))[-len(turns) :],
            reply_prefix=self._pack.reply_prefix,
        )
        reaches = best is not None and best.reaches
        lost = bool(step.truth.positives) and not reaches
        notes = {"target_without_text": int(lost and not named), "target_not_found": int(lost and bool(named))}
        return _FirstQuestion(question, search, reaches, notes)

    def _among(self, prepared: PreparedStep, first: Question, ids: Sequence[str]) -> Question:
        """The matches as options. After the two turns on the whole page only a further one is asked."""
        form = replace(self.form, shared_turn1=False)
        candidate_boxes = {c.backend_node_id: c.box for c in prepared.step.candidates}
        boxes = {node: candidate_boxes[node] or Box(0, 0, *self._page_size(prepared)) for node in ids}
        question = choice_question(prepared, self._choice_pack, form, ids, boxes, index=1)
        question = replace(question, is_final_round=True)
        if len(question.turns) < 2:
            return question
        return replace(
            question,
            turns=(first.turns[0], question.turns[1]),
            # the crop comes with the options; the whole page is above already
            pictures=(first.pictures[0], question.pictures[0]),
            ideal=(first.ideal[0], *question.ideal[1:]),
        )

    def _page_size(self, prepared: PreparedStep) -> tuple[float, float]:
        """Width and height in pixels; without a picture, which the row need not have then, no box lies beyond them."""
        return prepared.picture.size if self.form.image else (inf, inf)


def page_search(
    page: Page, candidates: Sequence[Candidate], size: tuple[float, float] | None, threshold: float = FUZZY_THRESHOLD
) -> PageSearch:
    """The search of a page. `size`: width and height of its picture in pixels; None where they are not known.

    An element can be seen if a pixel of its box is on the page, or if it has no box and may be anywhere.
    """
    width, height = size or (inf, inf)
    seen = frozenset(
        c.backend_node_id
        for c in candidates
        if c.box is None
        or (
            c.box.w > 0
            and c.box.h > 0
            and c.box.right > 0
            and c.box.bottom > 0
            and c.box.x < width
            and c.box.y < height
        )
    )
    ids = (candidate.backend_node_id for candidate in candidates)
    return PageSearch(page.nodes(), ids, threshold, seen)


def match_notes(read: GroundingReply, matches: SearchResult) -> dict[str, int]:
    """The notes of a search; none for a reply that names no text, as nothing was looked for."""
    if matches.tier is None:
        return {"no_match": int(bool(read.element_text))}
    return {
        f"found_{matches.tier}": 1,
        "found_unseen": int(not matches.seen),
        "several_matches": int(len(matches.ids) > 1),
        "matches_left_out": max(0, len(matches.ids) - MAX_CHOICES),
    }


def _ideal(step: Step, description: Description | None) -> str:
    """The final lines, as the prompt asks for them."""
    kind, text = (description.type, description.text) if description else ("NA", "NA")
    element = "the one described below" if description else "NA"
    lines = f"ELEMENT: {element}\nELEMENT TYPE: {kind}\nELEMENT TEXT: {text}"
    return f"{lines}\n{operation_lines(step.truth.operation)}"


def _survives(step: Step, description: Description) -> bool:
    """Tells whether the answer is read as meant: a text such as `None` or `VALUE: 3` cannot be written in a reply."""
    read = parse_grounding_reply(_ideal(step, description), "attributes", 0)
    return (read.element_type, read.element_text) == (description.type, description.text)


def _open(inputs: StrategyInputs) -> StrategyInstance:
    choices = inputs.pack_of("choice")
    grounding = AttributesGrounding(inputs.pack, choices, inputs.form, inputs.own["fuzzy_threshold"])
    return StrategyInstance(grounding, {**inputs.own, "choice_prompts_digest": choices.digest})


STRATEGY = Strategy(
    name="attributes",
    open=_open,
    turn2=Placeholders(("types",)),
    options=(
        Option(
            "fuzzy_threshold", "how alike two texts must be at least", FUZZY_THRESHOLD, read=percent, metavar="PERCENT"
        ),
    ),
    is_lettered=True,
    estimate_remark="A further question is counted where the right element's own type and text fit several elements.",
    notes={
        "found_exact": "attributes: the text as written is on an element",
        "found_normalised": "attributes: but for case, signs and spaces the text is on an element",
        "found_contained": "attributes: the text is part of an element's",
        "found_fuzzy": "attributes: but for typing errors the text is on an element",
        "found_unseen": "attributes: nothing that can be seen fits, but something without area or off the page",
        "several_matches": "attributes: more than one element fits; the model was asked to choose,"
        " an import takes none",
        "matches_left_out": "attributes: matches beyond those that were offered",
        "no_match": "attributes: no element fits",
        "target_without_text": "attributes: the right element has no text to find it by",
        "target_not_found": "attributes: its own type and text lead to another element",
    },
)

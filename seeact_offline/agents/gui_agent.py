"""Grounding in an agent's own language: it is shown the page part by part, acts, and what lies at its place is the
element.

An agent (`seeact_offline.agents`) says what is shown and how its replies are read; this is the one loop that asks any
of them. The element is the smallest candidate whose box contains the place, as for grounding by pixel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import msgspec

from seeact_offline.agents import GUI_MODELS, Act, Agent, Answer, find_agent
from seeact_offline.agents.screens import BLOCK_HEIGHT, Point, Shown, blocks
from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import Question, Session, build_reply, in_thread, nonzero_notes
from seeact_offline.grounding.pixel import elements
from seeact_offline.grounding.strategy import STRICT_READING, Option, Strategy, StrategyInputs, StrategyInstance, whole
from seeact_offline.merging import decision
from seeact_offline.pages.dom import TEXT, Page, page_of
from seeact_offline.pages.pointing import element_at, visible_centre
from seeact_offline.pages.screenshots import Crop, PagePicture
from seeact_offline.prompting import PromptPack
from seeact_offline.records import (
    Box,
    CropBox,
    GroundingReply,
    InputError,
    Message,
    Model,
    Reply,
    RowError,
    Step,
    StepError,
)

TYPE_PLACES = ("none", "last-click", "ask-again")
OPTIONS = (
    Option("history_pictures", "earlier steps of the task that are told with their screenshots (default: 0)", 0,
           read=whole, metavar="N"),
    Option("max_pixels", "most pixels that the model's server takes, in place of those of the agent's rule",
           read=whole, metavar="N"),
    STRICT_READING,
    Option("type_place", "the place of typing that names none: none, that of the step before if it was a click, or"
           " that of a further question (default: none)", TYPE_PLACES[0], choices=TYPE_PLACES),
    Option("grounder_agent", "agent that finds the element which a planner such as uground describes, by name,"
           " FRAME:NOTATION or FILE.py:NAME (default: its own)", metavar="NAME"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """The reply that reaches the right element."""

    view: int
    """The view in which the element is; the last one where it is in none."""
    reply: str
    answer: str = ""
    """The grounder's reply, or that to the further question; empty where neither is asked."""
    hits: bool = False
    """Tells whether this reply, read and mapped to the page, leads to a positive."""


@dataclass(frozen=True, slots=True)
class AskedView:
    """A question about one view, and its replies."""

    question: Question
    texts: tuple[str, ...]
    """Replies, one per turn."""
    acts: tuple[Act, ...]
    """Empty where the model declined, and where no act could be read."""
    answer: Answer
    agent: Agent
    """The agent that answered."""
    shown: Shown

    def reply(self, answer: Answer) -> Reply:
        """The conversation as it is recorded, with this answer."""
        return agent_reply(self.question, self.texts, answer, self.agent, self.shown)


class AgentGrounding(Grounding):
    """Shows an agent one view of the page after the other, until it does something else than scroll."""

    needs_ranking = False
    """True if a second model may find what the first describes."""

    def __init__(
        self,
        agent: Agent,
        pack: PromptPack,
        form: QuestionOptions | None = None,
        grounder_pack: PromptPack | None = None,
        strict: bool = False,
        grounder: Agent | None = None,
        earlier: int = 0,
    ) -> None:
        """`earlier`: steps of the task that are told with their screenshots. `grounder`: the agent that finds what this
        one describes; None: its own. `grounder_pack`: the templates of that, or of this one where it is asked again for
        the place of a TYPE that has none; None: nothing is asked twice."""
        self.form = form or QuestionOptions()
        self.agent, self._pack, self._grounder_pack = agent, pack, grounder_pack
        self._strict, self._n_told_pictures = strict, earlier
        self.earlier = max(earlier, agent.fold.type_place == "last-click")
        self.asks_grounder = agent.grounder is not None
        self._grounder = grounder or (agent if agent.grounder is None else GUI_MODELS[agent.grounder])

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The first one. Raises RowError `bad_screenshot`."""
        views = views_of(self.agent, prepared)
        return [self._question(prepared, views[0], 0, self.target(prepared, views))]

    def question(self, prepared: PreparedStep, offered: Sequence[str], index: int) -> Question:
        """The question of one view. Raises IndexError for that to a grounder, which depends on a reply."""
        views = views_of(self.agent, prepared)
        number = range(len(views))[index]
        return self._question(prepared, views[number], number, self.target(prepared, views))

    def reaches(self, prepared: PreparedStep) -> bool:
        """Tells whether some reply in the agent's language leads to a positive."""
        return self.target(prepared, views_of(self.agent, prepared)).hits

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        session = Session(model, prepared.step.key)
        try:
            views = await in_thread(views_of, self.agent, prepared)
            target = await in_thread(self.target, prepared, views)
            last = self._last_view(prepared, views)
            last_click = _last_click(prepared.step)
            for index in range(last + 1):
                asked = await self.ask_view(session, prepared, views[index], index, last_click, target)
                if asked.answer.failure != "scrolled" or index == last:
                    break
                session.replies.append(asked.reply(replace(asked.answer, failure=None)))
            stops = self.agent.grounder is not None and self.agent.view.stops_at_truth
            if self.lacks_place(asked.answer) and (not stops or index in _blocks_with_target(prepared, views)):
                session.replies.append(asked.reply(asked.answer))
                asked = await self.ask_place(session, prepared, asked, index + len(views), target)
        except StepError as error:
            return session.failed(error)
        element, answer = await in_thread(landed, prepared.step, prepared.page, asked.answer)
        session.replies.append(msgspec.structs.replace(asked.reply(answer), element_id=element))
        notes = nonzero_notes(
            point_off_elements=int(answer.place is not None and element is None),
            acts_without_place=int(answer.failure is None and answer.place is None),
        )
        return session.ended(decision(session.replies[-1]), point=answer.place, notes=notes)

    async def ask_view(
        self,
        session: Session,
        prepared: PreparedStep,
        shown: Shown,
        index: int = 0,
        last_click: Point | None = None,
        target: Target | None = None,
    ) -> AskedView:
        """Asks about one view. `prepared`: its history is the past that is told, recorded or lived. `last_click`: where
        the step before clicked. `target`: the truth; None where it is not known. Raises StepError."""
        question = self._question(prepared, shown, index, target)
        talk = await session.converse(question)
        if talk.failure is not None:
            return AskedView(
                question, talk.texts, (), Answer(failure=talk.failure, detail=talk.detail), self.agent, shown
            )
        acts, answer = self.agent.read_answer(talk.texts[-1], shown, last_click, self._strict)
        return AskedView(question, talk.texts, acts, answer, self.agent, shown)

    async def ask_place(
        self, session: Session, prepared: PreparedStep, asked: AskedView, index: int, target: Target | None = None
    ) -> AskedView:
        """Asks the grounder for the place of what was described. `index`: the question's number. Raises StepError."""
        shown = self._for_grounder(asked.shown)
        question = self._grounder_question(prepared, shown, index, asked.answer, target)
        talk = await session.converse(question)
        place_answer, acts = Answer(failure=talk.failure, detail=talk.detail), tuple[Act, ...]()
        if talk.failure is None:
            acts, place_answer = self._grounder.read_answer(talk.texts[-1], shown, None, self._strict)
        answer = replace(
            asked.answer, place=place_answer.place, failure=place_answer.failure, detail=place_answer.detail
        )
        return AskedView(question, talk.texts, acts, answer, self._grounder, shown)

    def lacks_place(self, answer: Answer) -> bool:
        """Tells whether a further question finds the place of this answer."""
        if answer.failure is not None or self._grounder_pack is None:
            return False
        if self.agent.grounder is None:
            return answer.op == "TYPE" and answer.place is None
        return answer.label is not None

    def _last_view(self, prepared: PreparedStep, views: Sequence[Shown]) -> int:
        """The view after which nothing more is shown; for an agent that stops by the truth, the one behind the last
        that holds it."""
        if not self.agent.view.stops_at_truth:
            return len(views) - 1
        return min(max(_blocks_with_target(prepared, views), default=-1) + 1, len(views) - 1)

    def _question(self, prepared: PreparedStep, shown: Shown, index: int, target: Target | None) -> Question:
        step = prepared.step
        pack = _sized(self._pack, shown)
        n, history = self.agent.history_steps, step.history[: len(step.history) - len(self._shown_steps(step))]
        history = history if n is None else history[-n:]
        text = pack.render_turn1(step.task, history)
        ideal = "" if target is None else self.agent.scroll if index < target.view else target.reply
        picture = self._picture(prepared, shown)
        return Question(
            index, (), pack.render_system(), (text,), (picture,), (ideal,), examples=self._earlier_turns(prepared),
            reply_prefix=pack.reply_prefix, inserted=(step.task, *history),
        )  # fmt: skip

    def _shown_steps(self, step: Step) -> tuple[Step, ...]:
        return step.earlier[-self._n_told_pictures :] if self._n_told_pictures else ()

    def _earlier_turns(self, prepared: PreparedStep) -> tuple[Message, ...]:
        """Earlier steps as turns: the screenshot, and what was done in the agent's language. One whose row has a fault
        is left out."""
        turns: list[Message] = []
        for step in self._shown_steps(prepared.step):
            if step.screenshot is None or step.faults:
                continue
            before = PreparedStep(step, page_of(step), PagePicture(step.screenshot), ())
            views = views_of(self.agent, before)
            target = self.target(before, views)
            picture = self._picture(before, views[target.view])
            # the agent's own language, but for the element's words of a planner, and a value that might spell a token,
            # escaped
            value = step.truth.operation.value
            inserted = None if self.agent.grounder is not None or set("<[|") & set(value) else (value,)
            turns += [
                Message("user", f"Step {step.index + 1}", picture),
                Message("assistant", self.agent.told(target.reply), inserted=inserted),
            ]
        return tuple(turns)

    def _grounder_question(
        self, prepared: PreparedStep, shown: Shown, index: int, answer: Answer, target: Target | None
    ) -> Question:
        """`shown`: as the grounder sees it."""
        assert self._grounder_pack is not None
        finds, ideal = self.agent.grounder is not None, "" if target is None else target.answer
        pack, wanted = _sized(self._grounder_pack, shown), answer.label or f"the field to type {answer.value!r} into"
        text = pack.render_turn1(wanted if self._grounder.speaks == {"CLICK"} else f"Click on {wanted}", ())
        return Question(
            index, (), pack.render_system(), (text,), (self._picture(prepared, shown),), (ideal,),
            reply_prefix=pack.reply_prefix, for_second=finds, inserted=(wanted,),
        )  # fmt: skip

    def _for_grounder(self, shown: Shown) -> Shown:
        """The same part of the page, at the size in which the grounder sees it."""
        return replace(shown, sent=self._grounder.view.resize.apply(_size(shown.part)))

    def _picture(self, prepared: PreparedStep, shown: Shown) -> Crop:
        return prepared.picture.crop(CropBox(*shown.part), size=shown.sent)

    def target(self, prepared: PreparedStep, views: Sequence[Shown]) -> Target:
        """The reply of one who knows the truth: the first that leads to a positive, in the first view that shows it."""
        truth = prepared.step.truth
        operation, positives = truth.operation, truth.positives
        if self.agent.names_selected and operation.op == "SELECT" and truth.element_name is not None:
            operation = msgspec.structs.replace(operation, value=truth.element_name)
        last = self._last_view(prepared, views)
        asked = _blocks_with_target(prepared, views) if self.agent.view.stops_at_truth else range(len(views))
        for index, shown in enumerate(views[: last + 1]):
            if index not in asked:
                continue
            for node, box in elements(prepared.step, prepared.page):
                centre = visible_centre_in(box, shown) if node in positives else None
                if centre is None:
                    continue
                words = truth.element_name or ""
                if prepared.step.has_page:
                    words = " ".join(prepared.page.ranker_text(node).rpartition("target: ")[2].split())
                tried = self._written(operation.op, operation.value, centre, words, shown, index)
                there = Answer("CLICK", place=self._place(tried, shown, prepared.step))
                if landed(prepared.step, prepared.page, there)[0] in positives:
                    return replace(tried, hits=True)
        shown = views[last]
        corner = float(shown.part[0]), float(shown.part[1])
        return self._written(operation.op, operation.value, corner, "None", shown, last)

    def _written(self, op: str, value: str, place: tuple[float, float], label: str, shown: Shown, index: int) -> Target:
        what = place if self.agent.grounder is None else label or "the element"
        answer = self._grounder.write("CLICK", "", place, self._for_grounder(shown))
        return Target(index, self.agent.write(op, value, what, shown), answer)

    def _place(self, target: Target, shown: Shown, step: Step) -> tuple[float, float] | None:
        answer = self.agent.read_answer(target.reply, shown, _last_click(step), self._strict)[1]
        asks = self._grounder_pack is not None and (self.agent.grounder is not None or answer.op == "TYPE")
        if answer.failure is None and answer.place is None and asks:
            return self._grounder.read_answer(target.answer, self._for_grounder(shown), None, self._strict)[1].place
        return answer.place


def _last_click(step: Step) -> tuple[float, float] | None:
    """Returns the place that the step before clicked; None where it was no click."""
    boxes = step.earlier[-1].truth.boxes if step.earlier and step.earlier[-1].operation.op == "CLICK" else ()
    return boxes[0].center if boxes else None


def landed(step: Step, page: Page, answer: Answer) -> tuple[str | None, Answer]:
    """The element at an answer's place, and the answer. An entry of a list stands for its `select`: a click on one that
    has a place of its own selects it."""
    if answer.place is None:
        return None, answer
    return list_of_entry(step, page, element_at(answer.place, elements(step, page)), answer)


def list_of_entry(step: Step, page: Page, node: str | None, answer: Answer) -> tuple[str | None, Answer]:
    """The element, and the answer; for an entry of a list its `select`, as `landed` says."""
    tags = {candidate.backend_node_id: candidate.tag for candidate in step.candidates}
    if node is None or tags.get(node) != "option":
        return node, answer
    boxes = dict(elements(step, page))
    start, end = page.span(node)
    lists = [
        candidate
        for candidate in boxes
        if tags[candidate] == "select" and (span := page.span(candidate))[0] < start < span[1]
    ]
    if not lists:
        return node, answer
    if answer.op == "CLICK" and boxes.get(node) != boxes[lists[-1]]:
        words = [text_node.text for text_node in islice(page.nodes(), start, end) if text_node.tag == TEXT]
        answer = replace(answer, op="SELECT", value=" ".join(" ".join(words).split()))
    return lists[-1], answer


def visible_centre_in(box: Box, shown: Shown) -> tuple[float, float] | None:
    """The centre of the part of a box that a view shows; None where it shows nothing of it. A view of a part of the
    page must show all of the box, as UGround's blocks do."""
    left, top, right, bottom = shown.part
    if (right, bottom) != shown.page and not (top <= box.y and box.bottom <= bottom):
        return None
    centre = visible_centre(Box(box.x - left, box.y - top, box.w, box.h), (right - left, bottom - top))
    return None if centre is None else (centre[0] + left, centre[1] + top)


def views_of(agent: Agent, prepared: PreparedStep) -> list[Shown]:
    """The parts of the page that an agent is shown, from the top. Raises RowError `bad_screenshot`."""
    page = prepared.picture.size
    try:
        return [Shown(page, agent.view.resize.apply(_size(part)), part) for part in _parts(agent, page)]
    except ValueError as error:
        raise RowError("bad_screenshot", str(error)) from None


def _parts(agent: Agent, page: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
    width, height = page
    if agent.view.part == "page":
        yield 0, 0, width, height
    elif agent.view.part == "blocks":
        yield from blocks(width, height)
    else:
        right, window = min(agent.view.size[0], width), agent.view.size[1]
        tops = range(0, max(1, height - window + agent.view.step), agent.view.step)
        yield from ((0, top, right, min(top + window, height)) for top in tops)


def _size(part: tuple[int, int, int, int]) -> tuple[int, int]:
    left, top, right, bottom = part
    return right - left, bottom - top


def _blocks_with_target(prepared: PreparedStep, views: Sequence[Shown]) -> frozenset[int]:
    """The blocks in which a positive's box lies wholly; the last one counts as high as the others, however little of it
    is left."""
    positives = prepared.step.truth.positives
    boxes = [box for node, box in elements(prepared.step, prepared.page) if node in positives]
    return frozenset(
        index
        for index, shown in enumerate(views)
        for box in boxes
        if shown.part[0] <= box.x
        and box.right <= shown.part[2]
        and shown.part[1] <= box.y
        and box.bottom <= shown.part[1] + BLOCK_HEIGHT
    )


def _sized(pack: PromptPack, shown: Shown) -> PromptPack:
    return replace(pack, values={**pack.values, "width": str(shown.sent[0]), "height": str(shown.sent[1])})


def agent_reply(question: Question, texts: Sequence[str], answer: Answer, agent: Agent, shown: Shown) -> Reply:
    """The conversation as it is recorded, with the sizes of the picture where one is shown."""
    read = GroundingReply(None, answer.op, answer.value, answer.failure)
    picture = agent.picture(shown) if question.pictures[0] is not None else None
    return msgspec.structs.replace(build_reply(question, texts, read, answer.detail), shown=picture)


def _open(agent: Agent, inputs: StrategyInputs) -> StrategyInstance:
    """Raises InputError for a grounder of an agent that points itself."""
    agent = replace(agent, fold=replace(agent.fold, type_place=inputs.own["type_place"]))
    if inputs.own["max_pixels"] is not None:
        agent = _limited(agent, inputs.own["max_pixels"])
    named, pack = inputs.own["grounder_agent"], inputs.pack if inputs.own["type_place"] == "ask-again" else None
    if named and agent.grounder is None:
        raise InputError(
            "grounder_agent",
            sentence=f"`grounder_agent` needs an agent that describes elements, such as uground; {agent.name} points "
            "itself",
        )
    finder, grounder, code = named or agent.grounder, None, dict[str, str]()
    if finder:
        grounder, code = find_agent(finder, "grounder_agent")
        if grounder.grounder is not None or grounder.view.part != "page":
            raise InputError("grounder_agent", "an agent that is shown the whole page and names places", finder)
        pack = inputs.pack_of(grounder.as_strategy())
    grounding = AgentGrounding(
        agent, inputs.pack, inputs.form, pack, inputs.own["strict_reading"], grounder, inputs.own["history_pictures"]
    )
    truth_use = {"view_uses_truth": True} if agent.view.stops_at_truth else {}
    options = {name: value for name, value in inputs.own.items() if value is not None}
    if code:
        options |= {"grounder_agent": code["name"], "grounder_digest": code["digest"]}
    return StrategyInstance(grounding, {"view": agent.view.part, **truth_use, **options})


def _limited(agent: Agent, most: int) -> Agent:
    """The agent on a server with another limit. Raises InputError where it scales no pictures, or to a size of its
    own."""
    if agent.view.resize.rule not in ("smart", "linear"):
        raise InputError(
            "max_pixels",
            sentence="`max_pixels` needs an agent whose pictures are scaled to a number of pixels, "
            f"unlike {agent.name}",
        )
    least = agent.view.resize.min_pixels
    if most < least:
        raise InputError("max_pixels", f"at least {least}, the least of {agent.name}", str(most))
    view = replace(agent.view, resize=replace(agent.view.resize, max_pixels=most))
    frame = agent.frame
    if frame.resize.rule != "none":
        frame = replace(frame, resize=replace(frame.resize, max_pixels=most))
    return replace(agent, view=view, frame=frame)


def strategy_of(agent: Agent) -> Strategy:
    """The grounding strategy that asks this agent."""
    return Strategy(
        name=agent.name,
        open=partial(_open, agent),
        turn2=None,
        turn1=("width", "height"),
        options=OPTIONS,
        shares_prompts=False,
        protocol=agent.protocol,
        prompt=agent.prompt,
        needs_picture=True,
        needs_page=False,
        notes={
            "point_off_elements": "the model pointed at a place where no candidate is",
            "acts_without_place": "the model said what to do, and not where",
        },
    )

"""How each kind of agent is asked about a live page, by the grounding that asks it about recorded ones, and what its reply is to do.

A window's row holds what the window shows, so that the grounding sees one view, and the page itself is scrolled; SeeAct's strategies are
shown the whole page. The past is lived: web agents' dialogues hold their own turns, the others are told the actions so far.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from seeact_offline.agents import Act, Agent, Answer
from seeact_offline.agents.gui_agent import AgentGrounding, landed, views_of
from seeact_offline.agents.gui_agent import Target as AgentTarget
from seeact_offline.agents.screens import Point, Size
from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep
from seeact_offline.grounding.conversation import Session
from seeact_offline.live.acting import Deed
from seeact_offline.live.pages import PageView
from seeact_offline.records import Box, Completion, Model, Request, StepError
from seeact_offline.replies.final_answer import action_field
from seeact_offline.web_agents.observations import Target as WindowTarget
from seeact_offline.web_agents.web_actions import thought_of
from seeact_offline.web_agents.web_loop import CORRECTED, AskedWindow, Past, Turn, WebAgentGrounding

WINDOW = (1280, 720)
"""Size of the window where an agent has none of its own, as pages were recorded."""
BLOCK = (1280, 1000)
DECLINED = "declined"
FURTHER: Mapping[str, str] = {"press": "PRESS ENTER", "stop": "TERMINATE"}
"""Acts of a live page that need no element, in the words of SeeAct's strategies."""
_FURTHER = re.compile(r"\b(?:(?P<end>TERMINATE)|(?:PRESS[ _-]*)?ENTER)\b", re.IGNORECASE)
MOST_DEEDS = 10
"""Acts of one reply that are carried out."""


@dataclass(frozen=True, slots=True)
class Move:
    """An agent's reply to one view."""

    reply: str
    deeds: tuple[Deed, ...] = ()
    said: str = ""
    """The action in words, for the trajectory."""
    thought: str = ""
    answer: Answer = field(default_factory=Answer)
    """The same as one operation, in the row's terms."""
    element: str | None = None
    """The element at its place, as offline."""
    failure: str | None = None
    """The name of what is wrong with the reply; None for none."""
    detail: str = ""


class Speaker(Protocol):
    """An agent in one episode."""

    size: Size
    """Width and height of the browser's window."""
    whole: bool
    """True if it is shown the whole page."""
    speaks_select: bool
    """True if its language has a choice in a list."""

    async def ask(
        self, session: Session, prepared: PreparedStep, view: PageView, ideal: Act | None, known: bool
    ) -> Move:
        """Asks about a view. `ideal`: the act that the oracle says, a scroll or the end; None: the row's own operation where `known`. Raises StepError."""

    def can_say(self, act: Act) -> bool:
        """Tells whether its language has words for a scroll or an end."""

    def hear(self, outcome: str) -> None:
        """Hears what became of its last move besides what its next view shows. Most agents read it in their history, and need nothing here."""
        return


def speaker_of(grounding: Grounding, has_further: bool = False) -> Speaker:
    """The agent of a grounding. `has_further`: its second turn offers the acts of `FURTHER`."""
    if isinstance(grounding, WebAgentGrounding):
        return WebSpeaker(grounding)
    if isinstance(grounding, AgentGrounding):
        return PointSpeaker(grounding)
    return ElementSpeaker(grounding, has_further)


def place_of(move: Move, view: PageView) -> Box | None:
    """The box of the element that a move names, or its point, without a size, in pixels of the view's picture; None for neither."""
    deed = next((one for one in move.deeds if one.point is not None or one.node is not None), None)
    if deed is None:
        return None
    number = None if deed.node is None else str(view.ids.get(deed.node))
    box = next((one.box for one in view.record.elements if one.backend_node_id == number), None)
    return box or (None if deed.point is None else Box(*deed.point, 0, 0))


class WebSpeaker:
    """WebVoyager, VisualWebArena and OpenWebVoyager, which name labels."""

    whole, speaks_select = False, True

    def __init__(self, grounding: WebAgentGrounding) -> None:
        self._grounding, self._web = grounding, grounding.web
        width, height = self._web.agent.view.size
        self.size = min(width, WINDOW[0]), height
        self._turn, self._asked, self._outcome = Turn(), None, ""

    _asked: AskedWindow | None

    async def ask(
        self, session: Session, prepared: PreparedStep, view: PageView, ideal: Act | None, known: bool
    ) -> Move:
        grounding = self._grounding
        await grounding.caption(prepared, session)
        windows = grounding.windows(prepared)
        target = None
        if ideal is not None:
            target = WindowTarget(0, windows.at(0), reply=self._web.agent.say(ideal))
        elif known:
            target = grounding.target(windows)
        if self._asked is not None:
            correction = grounding.correction(self._asked) if self._asked.answer.failure in CORRECTED else ""
            self._turn = grounding.follow(self._turn, self._asked, correction, outcome=self._outcome)
            self._outcome = ""
        asked = await grounding.ask_view(session, windows, self._turn, Past(), target)
        # a refusal without a word is no turn of the dialogue
        self._asked = asked if asked.texts else None
        reply = asked.texts[-1] if asked.texts else ""
        if asked.act is None or asked.answer.failure in CORRECTED:
            failure = asked.answer.failure or DECLINED
            return Move(reply, answer=asked.answer, failure=failure, detail=asked.answer.detail)
        act, answer, element = asked.act, asked.answer, None
        point, node = None, None
        if isinstance(act.place, str):
            label = asked.seen.labels.get(act.place)
            if label is None:
                return Move(reply, failure="bad_label", detail=f"label {act.place} is not there")
            point, node = label.place, view.node(label.id)
            if answer.failure is None:
                element, answer = windows.landed(label, answer)
        extra = dict(act.extra)
        if act.kind == "scroll":
            # a share of the window, which a place may make smaller
            extra.setdefault("pixels", self._web.agent.view.step * view.size[1] / self.size[1])
        if act.kind == "type" and self._web.presses_enter:
            extra["enter"] = True
        text = act.text or ""
        deed = Deed(act.kind, point, node, text, extra)
        said = self._web.grammar.write(act)
        return Move(reply, (deed,), said, thought_of(reply), answer, element)

    def can_say(self, act: Act) -> bool:
        return _has_words(self._web.agent, act)

    def hear(self, outcome: str) -> None:
        """Stands with its next view: a reply that could not be read is corrected without one."""
        self._outcome = outcome


class PointSpeaker(Speaker):
    """GUI models and planners, which name places."""

    whole = False

    def __init__(self, grounding: AgentGrounding) -> None:
        self._grounding, self._agent = grounding, grounding.agent
        self.speaks_select = "SELECT" in self._agent.speaks and "SELECT" in self._agent.speaks_value
        view = self._agent.view
        self.size = view.size if view.part == "window" else BLOCK if view.part == "blocks" else WINDOW
        self._last_click: Point | None = None

    async def ask(
        self, session: Session, prepared: PreparedStep, view: PageView, ideal: Act | None, known: bool
    ) -> Move:
        grounding, agent = self._grounding, self._agent
        # the window is all that there is of the page, so there is one view
        shown = views_of(agent, prepared)[0]
        target = None
        if ideal is not None:
            target = AgentTarget(0, agent.say(ideal))
        elif known:
            target = grounding.target(prepared, [shown])
        asked = await grounding.ask_view(session, prepared, shown, 0, self._last_click, target)
        reply, acts, place = asked.texts[-1] if asked.texts else "", asked.acts, None
        if acts and grounding.lacks_place(asked.answer):
            asked = await grounding.ask_place(session, prepared, asked, 1, target)
            place = asked.answer.place
        answer = asked.answer
        if not acts:
            return Move(reply, failure=answer.failure or DECLINED, detail=answer.detail)
        if answer.failure == "point_outside":
            return Move(reply, failure=answer.failure, detail=answer.detail)
        deeds = []
        for act in acts[:MOST_DEEDS]:
            # a place without a picture's end is read as that of a click
            read = Answer() if act.point is None else agent.answer([Act("click", act.place)], shown)
            to = act.extra.get("to")
            end = None if to is None else agent.answer([Act("click", to)], shown).place
            point = place if isinstance(act.place, str) or (act.place is None and act.kind == "type") else read.place
            extra = {name: value for name, value in act.extra.items() if name != "to"} | (
                {} if end is None else {"to": end}
            )
            deeds.append(Deed(act.kind, point, None, act.text or "", extra))
        element = None
        if answer.failure is None:
            element, answer = landed(prepared.step, prepared.page, answer)
            self._last_click = answer.place if answer.op == "CLICK" else None
        said = "; ".join(map(_words, deeds))
        return Move(reply, _joined(deeds), said, "", answer, element)

    def can_say(self, act: Act) -> bool:
        return _has_words(self._agent, act)


class ElementSpeaker(Speaker):
    """SeeAct's strategies, which choose an element of the whole page."""

    whole, size, speaks_select = True, WINDOW, True

    def __init__(self, grounding: Grounding, has_further: bool) -> None:
        self._grounding, self._has_further = grounding, has_further

    async def ask(
        self, session: Session, prepared: PreparedStep, view: PageView, ideal: Act | None, known: bool
    ) -> Move:
        model = session.model if ideal is None else _Saying(session.model, FURTHER[ideal.kind])
        result = await self._grounding.ground(prepared, model)
        session.usage += result.usage
        session.calls.extend(result.calls)
        decision = result.decision
        reply = "\n\n".join(result.groups[-1].replies) if result.groups else ""
        answer = Answer(decision.op, decision.value, result.point, failure=decision.failure)
        if not result.ran:
            raise StepError(decision.failure or "error", decision.detail)
        if decision.failure is not None or (decision.element_id is None and result.point is None):
            act = _further_act(result) if self._has_further else None
            if act is not None:
                return Move(reply, (Deed(act.kind, text=act.text or ""),), FURTHER[act.kind], "", answer)
            return Move(reply, answer=answer, failure=decision.failure or "no_element", detail=decision.detail)
        kinds = {"TYPE": "type", "SELECT": "select"}
        node = None if decision.element_id is None else view.node(decision.element_id)
        deed = Deed(kinds.get(decision.op, "click"), None if node else result.point, node, decision.value)  # type: ignore[arg-type]
        said = f"{decision.op}{f': {decision.value}' if decision.value else ''}"
        move = Move(reply, (deed,), said, "", answer, decision.element_id)
        # as SeeAct tells it
        return replace(move, said=" ".join(history_line(view, move).split()))

    def can_say(self, act: Act) -> bool:
        return self._has_further and act.kind in FURTHER


class _Saying(Model):
    """The oracle of an act that a row cannot hold: the last line of its reply names the action."""

    takes_ideal = True

    def __init__(self, model: Model, action: str) -> None:
        self._model, self._reply = model, f"ELEMENT: none of them\nACTION: {action}\nVALUE: None"

    async def complete(self, request: Request) -> Completion:
        return await self._model.complete_with_ideal(request, self._reply)

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        return await self.complete(request)


def _further_act(result: GroundingResult) -> Act | None:
    """The first of the groups' answers that presses Enter or ends, where no element was decided on."""
    for group in result.groups:
        found = _FURTHER.search(action_field(group.replies[-1])) if group.replies else None
        if found is not None:
            return Act("stop") if found["end"] else Act("press", None, "Enter")
    return None


def history_line(view: PageView, move: Move) -> str:
    """The action in the words of the data set, for agents that are told a history."""
    answer = move.answer
    if move.element is None or not answer.op:
        return move.said
    role, name = view.names.get(move.element, ("", ""))
    element = next((one for one in view.record.elements if one.backend_node_id == move.element), None)
    value = f": {answer.value}" if answer.value else ""
    return f"[{role or (element.tag if element else '')}]  {name[:80]} -> {answer.op}{value}"


def outcome(problem: str, events: Sequence[str] = ()) -> str:
    """The outcome of an action in words, for trajectories and agents; empty where nothing is to be told."""
    return "; ".join([*([f"not carried out: {problem}"] if problem else []), *events])


def _words(deed: Deed) -> str:
    """A deed in words, for trajectories and rules.

    >>> _words(Deed("type", (3.4, 5.0), text="Vienna"))
    'type (3, 5) Vienna'
    """
    place = "" if deed.point is None else f"({deed.point[0]:.0f}, {deed.point[1]:.0f})"
    way = str(deed.extra.get("direction", "")) if deed.kind in ("scroll", "back") else ""
    return " ".join(filter(None, (deed.kind, place, way, deed.text[:80])))


def _has_words(agent: Agent, act: Act) -> bool:
    try:
        agent.say(act)
    except ValueError:
        return False
    return True


def _joined(deeds: Sequence[Deed]) -> tuple[Deed, ...]:
    """The deeds, with a typing that follows a click at the click's place: a native list is chosen from, and not opened."""
    joined: list[Deed] = []
    for deed in deeds:
        before = joined[-1] if joined else None
        if before and before.kind == "click" and deed.kind in ("type", "select") and deed.point in (None, before.point):
            joined[-1] = replace(deed, point=before.point)
        else:
            joined.append(deed)
    return tuple(joined)

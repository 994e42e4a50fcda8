"""Grounding by the web agents WebVoyager, VisualWebArena and OpenWebVoyager over recorded steps.

The agent sees the page through a window, which it can scroll, and names a label of what it sees (`agents.observations`) in its own
language (`agents.web_actions`). Earlier steps are told as if it had done them: the window that holds the right element, and the action
that was recorded, without a thought. Both are ours: nobody scrolled to that window, and nobody wrote that reply.

WebVoyager's label is its element; in the others an action points at a place, whose smallest candidate is the element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from seeact_offline.agents import AGENTS, Act, Agent, Answer, Unreadable, observations
from seeact_offline.agents.acts import MissingPart
from seeact_offline.agents.history import IMAGE, OBSERVATION, OPEN_OBSERVATION, clip, clip_open
from seeact_offline.agents.observations import Captions, Label, Observation, Observe, Scene
from seeact_offline.agents.screen_page import FALL_BACKS, OF_EVERY_ROW
from seeact_offline.agents.screens import Shown
from seeact_offline.agents.trees import MAX_TOKENS
from seeact_offline.agents.web_actions import GRAMMARS, Grammar, remembered
from seeact_offline.agents.web_agents import WIDEST
from seeact_offline.files.digest import file_digest
from seeact_offline.files.named import read_rows
from seeact_offline.grounding import GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.agent import STRICT_READING, agent_reply, landed, list_of_entry
from seeact_offline.grounding.conversation import PastQuestion, Question, Session, in_thread, nonzero_notes
from seeact_offline.grounding.merging import decision
from seeact_offline.grounding.pixel import elements
from seeact_offline.grounding.strategy import Option, Strategy, StrategyInputs, StrategyInstance, whole
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.prompting import PromptPack
from seeact_offline.ranking.tokenizers import WORDS, open_tokenizer, tokenizer_of
from seeact_offline.records import InputError, Message, Model, RowError, Step, StepError, StepKey
from seeact_offline.replies.points import element_at

PARTS_MISSING = "Your reply cannot be read: it needs a part that begins with Thought: and one that begins with Action:."
CANNOT_ACT = (
    "Your action cannot be carried out. Check that its label is among those shown and that it is written in one of the given forms,"
    " then give a new Thought and Action."
)
UNREADABLE_REPLY = (
    "none, as your last reply could not be read: {said}. Put one action between triple backticks, its arguments in brackets, as in"
    " ```click [12]```."
)
NO_SUCH_LABEL = "none, as the element of your last action is not there: {said}. Look at the observation again."
LONGEST_SAID = 2_000
"""Characters of a reply that such a line repeats."""
ANYWHERE = Shown.whole((1, 1))
"""Stands for the picture where a label is read or written, which no picture is needed for."""
BAD_LABEL = "bad_label"
CUT_BY_WORDS = "cut_by_words"
CORRECTED = frozenset({MissingPart.name, Unreadable.name, BAD_LABEL})
"""Failures after which a dialogue goes on."""
ALTERNATIVE_TEXTS = "alternative texts alone"
"""Stands in manifests for captions where there are none."""
MOST_EARLIER = 1_000
"""Earlier steps of a task that a dialogue may hold; none has as many."""
MOST_KEPT = 40
"""Observations of earlier steps that are kept for the steps after them."""


@dataclass(frozen=True, slots=True)
class WebAgent:
    """A web agent: its window and language, what it is shown, and how its dialogue is led."""

    agent: Agent
    grammar: Grammar
    observations: Mapping[str, Observe]
    """By name, the usual one first."""
    clip: Callable[[Sequence[Message], bool], tuple[Message, ...]]
    """Clips a dialogue; True: as released, with its accidents."""
    head: str = ""
    """Stands above each observation of a dialogue; empty: no dialogue, every question stands alone."""
    correction: Literal["alone", "above", "last action"] = "last action"
    """Where a correction stands: in a message of its own, above the next observation, or in place of the last action."""
    names_elements: bool = False
    """Whether a label is its element; False: the place that it points at decides."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A window of a page."""

    shown: Observation
    leads: Mapping[str, str | None] = field(repr=False)
    """Label -> the element that an action on it is judged by."""


@dataclass(frozen=True, slots=True)
class _Target:
    """The first window that shows the right element, if any does."""

    n_scrolls: int
    seen: _Seen
    label: str | None = None
    cause: str = ""
    """Why no window shows it: `not_marked` or `target_cut_off`."""
    reply: str = ""
    """The ideal reply once it is in view; where it is out of reach, one with the right operation."""
    hits: bool = False
    """Whether that reply, read and mapped to the page within the turns there are, leads to a positive."""


@dataclass(frozen=True, slots=True)
class _Told:
    """An earlier step as it is told."""

    seen: Observation
    address: str
    label: str
    reply: str


@dataclass(frozen=True, slots=True)
class _Past:
    """The steps before this one, as they are told."""

    messages: tuple[Message, ...] = ()
    texts: tuple[str, ...] = ()
    """Those that no window shows, in words."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """The dialogue about this step so far."""

    index: int = 0
    top: int = 0
    """Of the window, in pixels of the page."""
    said: tuple[Message, ...] = ()
    correction: str = ""
    last_action: str = ""


class _Windows:
    """A step's page as an agent sees it, window by window."""

    def __init__(self, web: WebAgent, observe: Observe, scene: Scene) -> None:
        self.scene, self.step = scene, scene.step
        self._web, self._observe = web, observe
        self._boxes = elements(scene.step, scene.page)
        self._tags = {one.backend_node_id: one.tag for one in scene.step.candidates}
        self._seen: dict[int, _Seen] = {}
        self._last = max(0, scene.size[1] - web.agent.view.size[1])

    @property
    def tops(self) -> list[int]:
        """The windows that scrolling down leads to."""
        return [*range(0, self._last, self._web.agent.view.step), self._last]

    def scrolled(self, top: int, direction: str | None) -> int:
        step = self._web.agent.view.step
        return min(max(top + (-step if direction == "up" else step), 0), self._last)

    def at(self, top: int) -> _Seen:
        if top not in self._seen:
            width, height = self._web.agent.view.size
            window = (0, top, min(width, self.scene.size[0]), min(top + height, self.scene.size[1]))
            shown = self._observe(self.scene, window)
            leads = {name: self._lead(one) for name, one in shown.labels.items() if one.is_shown or one.is_cut}
            self._seen[top] = _Seen(shown, leads)
        return self._seen[top]

    def landed(self, label: Label, answer: Answer) -> tuple[str | None, Answer]:
        """The element that an answer with this label means, and the answer. Typing into a list selects."""
        answer = replace(answer, place=label.place)
        if self._web.names_elements:
            node, answer = list_of_entry(self.step, self.scene.page, label.id, answer)
        else:
            node, answer = landed(self.step, self.scene.page, answer)
        if answer.op == "TYPE" and self._tags.get(node or "") == "select":
            answer = replace(answer, op="SELECT")
        return node, answer

    def _lead(self, label: Label) -> str | None:
        node = label.id if self._web.names_elements else label.place and element_at(label.place, self._boxes)
        return self.landed(label, Answer("CLICK"))[0] if self._tags.get(node or "") == "option" else node

    def find(self) -> _Target:
        """The first window with a positive; the first of all where none has any."""
        positives = self.step.truth.positives
        cause = "not_marked" if positives else ""
        for n_scrolls, top in enumerate(self.tops):
            seen = self.at(top)
            labels = seen.shown.labels
            right = [name for name, node in seen.leads.items() if node in positives]
            # a label of its own comes before one of what merely lies at its place
            right = sorted(right, key={name: one.id not in positives for name, one in labels.items()}.__getitem__)
            if shown := next((name for name in right if labels[name].is_shown), None):
                return _Target(n_scrolls, seen, shown)
            cause = "target_cut_off" if right else cause
        return _Target(0, self.at(0), cause=cause)

    def is_lenient_hit(self, label: Label) -> bool:
        """Tells whether it is around or inside of a positive, or its place is in the box of one."""
        page, truth = self.scene.page, self.step.truth
        if label.place is not None and any(box.contains(*label.place) for box in truth.boxes):
            return True
        spans = [page.span(node) for node in truth.positives if node in page.ids]
        own = page.span(label.id) if label.id in page.ids else (-1, -1)
        return any(a <= own[0] < b or own[0] <= a < own[1] for a, b in spans)


class WebAgentGrounding:
    """Shows a web agent one window after the other, and corrects it, until it acts."""

    needs_ranking = False

    def __init__(
        self,
        web: WebAgent,
        pack: PromptPack,
        form: QuestionOptions | None = None,
        observation: str | None = None,
        captions: Mapping[StepKey, Captions] | None = None,
        max_turns: int = 5,
        strict: bool = False,
        tokenizer: str = WORDS,
    ) -> None:
        """`captions`: of each step; alternative texts alone where it has none. `max_turns`: most questions a step. `tokenizer`: as
        `open_tokenizer` takes it, by which long observations are cut."""
        self.form = form or QuestionOptions()
        self._web, self._agent, self._pack = web, web.agent, pack
        self.observation = observation or next(iter(web.observations))
        self._captions, self._max_turns, self._strict = captions or {}, max_turns, strict
        self._tokenizer = tokenizer
        self.earlier = MOST_EARLIER if web.head else 1
        self._kept: dict[StepKey, _Told | None] = {}

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The first one. Raises RowError."""
        windows = self._windows(prepared)
        return [self._question(windows, self._target(windows), self._past(prepared.step), _Turn())]

    def past_questions(self, prepared: PreparedStep, replies: Sequence[Sequence[str]]) -> Iterator[PastQuestion]:
        """The questions of the dialogue in which these replies came, the texts of each. Raises RowError."""
        windows = self._windows(prepared)
        target, past, turn = self._target(windows), self._past(prepared.step), _Turn()
        for texts in replies:
            question, seen = self._question(windows, target, past, turn), windows.at(turn.top).shown
            act, answer = self._read(texts[-1], seen) if texts else (None, Answer())
            yield PastQuestion(question, seen.window, "" if act is None else self._web.grammar.write(act))
            following = self._next(windows, turn, question, texts, act, answer) if texts else None
            if following is None:
                return
            turn = following

    def reaches(self, prepared: PreparedStep) -> bool:
        """Whether some dialogue within the turns leads to a positive."""
        return self._target(self._windows(prepared)).hits

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        session = Session(model, prepared.step.key)
        notes: Counter[str] = Counter()
        turn = _Turn()
        try:
            windows = await in_thread(self._windows, prepared)
            target = await in_thread(self._target, windows)
            notes.update({target.cause} - {""} | (windows.scene.fall_backs - OF_EVERY_ROW))
            past = await in_thread(self._past, prepared.step)
            while True:
                question = await in_thread(self._question, windows, target, past, turn)
                talk = await session.converse(question)
                act, answer = None, Answer(failure=talk.failure, detail=talk.detail)
                seen = windows.at(turn.top).shown
                notes[CUT_BY_WORDS] |= seen.is_cut and self._tokenizer == WORDS
                if talk.failure is None:
                    act, answer = self._read(talk.texts[-1], seen)
                if answer.failure in CORRECTED:
                    notes[BAD_LABEL if answer.failure == BAD_LABEL else MissingPart.name] += 1
                following = self._next(windows, turn, question, talk.texts, act, answer)
                if following is None:
                    break
                said = answer if answer.failure in CORRECTED else replace(answer, failure=None)
                session.replies.append(agent_reply(question, talk.texts, said, self._agent, _shown(windows, seen)))
                turn = following
        except StepError as error:
            return session.failed(error, notes=nonzero_notes(**notes))
        element = None
        if answer.failure is None and answer.label is not None:
            label = seen.labels[answer.label]
            element, answer = await in_thread(windows.landed, label, answer)
            positives = prepared.step.truth.positives
            notes["strict_id_hit"] += label.id in positives
            notes["lenient_hit"] += element in positives or windows.is_lenient_hit(label)
            notes["recovered"] += any(reply.failure in CORRECTED for reply in session.replies)
        last = agent_reply(question, talk.texts, answer, self._agent, _shown(windows, seen))
        session.replies.append(replace(last, element_id=element))
        return session.ended(decision(session.replies[-1]), point=answer.place, notes=nonzero_notes(**notes))

    def _windows(self, prepared: PreparedStep) -> _Windows:
        """Raises RowError."""
        captions = self._captions.get(prepared.step.key, {}) if "captions" in self.observation else None
        cut = open_tokenizer(self._tokenizer).cut
        scene = Scene(prepared.step, prepared.page, prepared.picture, captions, cut)
        return _Windows(self._web, self._web.observations[self.observation], scene)

    def _target(self, windows: _Windows) -> _Target:
        """The target with the ideal reply."""
        found = windows.find()
        if found.label is not None and found.n_scrolls < self._max_turns:
            reply = self._ideal(windows.step, found.label)
            answer = self._read(reply, found.seen.shown)[1]
            if (answer.failure, answer.label) == (None, found.label):
                return replace(found, reply=reply, hits=True)
        first = windows.at(0)
        label = next((name for name, one in first.shown.labels.items() if one.is_shown), "0")
        return replace(found, seen=first, reply=self._ideal(windows.step, label))

    def _ideal(self, step: Step, label: str) -> str:
        return self._agent.write(step.operation.op, step.operation.value, label, ANYWHERE)

    # --- what is asked ---

    def _question(self, windows: _Windows, target: _Target, past: _Past, turn: _Turn) -> Question:
        seen = windows.at(turn.top)
        if turn.correction and self._web.correction == "alone":
            message = Message("user", turn.correction)
        else:
            texts = (turn.last_action,) if turn.last_action else past.texts
            is_first = not (past.messages or turn.said)
            task, address = windows.step.task, windows.scene.address
            message = self._message(task, address, seen.shown, is_first, texts, turn.correction)
        *before, last = self._web.clip((*past.messages, *turn.said, message), self._strict)
        leads = {name: node for name, node in seen.leads.items() if node and seen.shown.labels[name].is_shown}
        ideal = self._agent.scroll if turn.top < target.seen.shown.window[1] else target.reply
        return Question(
            turn.index, tuple(leads.values()), self._pack.render_system(), (last.text,), (last.picture,), (ideal,),
            examples=tuple(before), labels=tuple(leads), reply_prefix=self._pack.reply_prefix,
        )  # fmt: skip

    def _message(
        self, task: str, address: str, seen: Observation, is_first: bool, texts: Sequence[str], correction: str = ""
    ) -> Message:
        """An observation as it is sent, with the task where it is the first of a dialogue or stands alone."""
        if not is_first and self._web.head:
            text = "\n".join([*filter(None, [correction]), self._web.head, seen.text])
        else:
            values = {**self._pack.values, "observation": seen.text, "address": address or "not known"}
            text = replace(self._pack, values=values).render_turn1(task, texts)
        return Message("user", text, seen.picture)

    def _past(self, step: Step) -> _Past:
        """Dialogues tell all earlier steps; else the last one is told in a line."""
        n_untold = max(0, len(step.history) - len(step.earlier))
        told = [(self._told(one), text) for one, text in zip(step.earlier, step.history[n_untold:], strict=False)]
        if not self._web.head:
            lines = [text if one is None else self._action_line(one) for one, text in told]
            return _Past(texts=tuple(lines or step.history[-1:]))
        untold = step.history[:n_untold] + tuple(text for one, text in told if one is None)
        messages: list[Message] = []
        for one in (one for one, _ in told if one is not None):
            messages.append(self._message(step.task, one.address, one.seen, not messages, untold))
            messages.append(Message("assistant", self._pack.reply_prefix + one.reply))
        return _Past(tuple(messages), untold)

    def _told(self, step: Step) -> _Told | None:
        """None for one whose element no window shows, or whose row has a fault."""
        if step.key not in self._kept:
            told = None
            with suppress(RowError):
                if step.screenshot is not None and not step.faults:
                    before = PreparedStep(step, Page(step.cleaned_html), PagePicture(step.screenshot), ())
                    windows = self._windows(before)
                    found = windows.find()
                    if found.label is not None:
                        reply = self._ideal(step, found.label)
                        told = _Told(found.seen.shown, windows.scene.address, found.label, reply)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[step.key] = told
        return self._kept[step.key]

    def _action_line(self, told: _Told) -> str:
        """The action with what it names, as VisualWebArena remembers it."""
        words = told.seen.labels[told.label].words
        return remembered(self._web.grammar.read(told.reply)[0], words)

    # --- what is answered ---

    def _read(self, text: str, seen: Observation) -> tuple[Act | None, Answer]:
        try:
            acts = self._agent.read(text, strict=self._strict)
        except Unreadable as error:
            return None, Answer(failure=error.name, detail=str(error))
        answer = self._agent.answer(acts, ANYWHERE)
        if answer.failure is None and answer.label not in seen.labels:
            answer = Answer(failure=BAD_LABEL, detail=f"label {answer.label} is not there")
        return acts[0], answer

    def _next(
        self, windows: _Windows, turn: _Turn, question: Question, texts: Sequence[str], act: Act | None, answer: Answer
    ) -> _Turn | None:
        """The turn after this one; None where the step ends."""
        top, correction = turn.top, ""
        if answer.failure == "scrolled" and act is not None:
            top = windows.scrolled(top, act.text) if act.place is None else top
        elif answer.failure in CORRECTED:
            correction = self._correction(texts[-1], act, answer)
        elif answer.failure != "waited":
            return None
        if turn.index + 1 >= self._max_turns:
            return None
        asked = Message("user", question.turns[0], question.pictures[0])
        said = Message("assistant", question.reply_prefix + texts[-1])
        following = _Turn(turn.index + 1, top, (*turn.said, asked, said), correction)
        if self._web.correction != "last action":
            return following
        return replace(following, correction="", last_action=correction or (remembered(act) if act else ""))

    def _correction(self, text: str, act: Act | None, answer: Answer) -> str:
        """The words that follow a reply without an action or with a label that is not there."""
        if self._web.correction != "last action":
            return PARTS_MISSING if answer.failure == MissingPart.name else CANNOT_ACT
        if act is None:
            return UNREADABLE_REPLY.format(said=text[-LONGEST_SAID:].strip())
        return NO_SUCH_LABEL.format(said=self._web.grammar.write(act))


def _shown(windows: _Windows, seen: Observation) -> Shown:
    left, top, right, bottom = seen.window
    return Shown(windows.scene.size, (right - left, bottom - top), seen.window)


# --- the agents ---


def _clip_open(messages: Sequence[Message], strict: bool) -> tuple[Message, ...]:
    """As OpenWebVoyager does; pictures travel beside the texts, which need no places for them."""
    return tuple(replace(one, text=one.text.replace(f" {IMAGE}", "")) for one in clip_open(messages))


WEB_AGENTS: Mapping[str, WebAgent] = {
    "webvoyager": WebAgent(
        AGENTS["webvoyager"], GRAMMARS["webvoyager"], {"som": observations.observe_webvoyager},
        lambda messages, strict: clip(messages, 3), OBSERVATION, "alone", names_elements=True,
    ),
    "webvoyager-text": WebAgent(
        AGENTS["webvoyager-text"], GRAMMARS["webvoyager-text"], {"tree": observations.observe_webvoyager_text},
        lambda messages, strict: clip(messages, 1, "all" if strict else "observations"), OBSERVATION, "alone",
    ),
    "visualwebarena": WebAgent(
        AGENTS["visualwebarena"], GRAMMARS["visualwebarena"],
        {"som+captions": observations.observe_som, "tree": observations.observe_tree, "tree+captions": observations.observe_tree,
         "image+tree+captions": observations.observe_tree_and_picture, "html": observations.observe_html},
        lambda messages, strict: tuple(messages[-1:]),
    ),
    "openwebvoyager": WebAgent(
        AGENTS["openwebvoyager"], GRAMMARS["openwebvoyager"],
        {"image+tree": observations.observe_open}, _clip_open, OPEN_OBSERVATION, "above",
    ),
}  # fmt: skip
"""The web agents by name."""


def _open(web: WebAgent, inputs: StrategyInputs) -> StrategyInstance:
    """Raises InputError."""
    own = inputs.own
    if own["max_turns"] < 1:
        raise InputError("max_turns", "at least 1", str(own["max_turns"]))
    observation, file = own.get("observation"), own.get("captions")
    if file is not None and "captions" not in (observation or ""):
        raise InputError("captions", "none with an observation that shows no captions", str(file))
    captions = None if file is None else read_captions(file)
    tokenizer = own.get("cut_by", WORDS)
    try:
        open_tokenizer(tokenizer)
    except InputError as error:
        raise InputError("cut_by", error.expected, error.got) from None
    grounding = WebAgentGrounding(
        web, inputs.pack, inputs.form, observation, captions, own["max_turns"], own["strict_reading"], tokenizer
    )
    width, height = web.agent.view.size
    identity = {
        "observation": grounding.observation,
        "max_turns": own["max_turns"],
        "window": f"{'full width' if width == WIDEST else width} x {height}",
        "thoughts": "none",
        "fall_backs": sorted(OF_EVERY_ROW | ({CUT_BY_WORDS} if tokenizer == WORDS and not web.head else set())),
    }
    if own["strict_reading"]:
        identity["strict_reading"] = True
    if not web.head:
        identity |= {"cut": MAX_TOKENS, "cut_by": tokenizer}
    if "captions" in grounding.observation:
        identity["captions"] = ALTERNATIVE_TEXTS if file is None else file_digest(file)
    return StrategyInstance(grounding, identity)


class _CaptionLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a file of captions."""

    annotation_id: Annotated[str, msgspec.Meta(min_length=1)]
    action_uid: Annotated[str, msgspec.Meta(min_length=1)]
    backend_node_id: Annotated[str, msgspec.Meta(min_length=1)]
    caption: str


def read_captions(path: Path) -> dict[StepKey, dict[str, str]]:
    """The captions of a file, one JSON object a line, by step and node. Raises InputError with the number of the line at fault."""
    captions: dict[StepKey, dict[str, str]] = {}
    for row, _ in read_rows("captions", path, _CaptionLine):
        captions.setdefault(StepKey(row.annotation_id, row.action_uid), {})[row.backend_node_id] = row.caption
    return captions


def strategy_of(web: WebAgent) -> Strategy:
    """The grounding strategy that asks this agent."""
    several = len(web.observations) > 1
    return Strategy(
        name=web.agent.name,
        open=partial(_open, web),
        turn2=None,
        turn1=("observation", "address"),
        options=(
            Option("max_turns", "most questions a step, with those that scroll, wait or are not readable (default: 5)", 5, read=whole, metavar="N"),
            STRICT_READING,
            *(
                Option("observation", "what is shown of a page (default: som+captions)", next(iter(web.observations)), choices=tuple(web.observations)),
                Option("cut_by", f"counts the {MAX_TOKENS:,} tokens at which an observation is cut: words, characters, tiktoken:NAME or hf:DIR_OR_ID"
                       " (default: the model's own where this machine has it, else words)", WORDS, of_model=tokenizer_of, metavar="NAME"),
                Option("captions", "captions of pictures, JSONL (default: their alternative texts alone)", read=Path, metavar="FILE"),
            ) * several,
        ),
        shares_prompts=False,
        needs_picture=True,
        notes=NOTES,
    )  # fmt: skip


NOTES: Mapping[str, str] = {
    "not_marked": "no positive has a label in any window of its page",
    "target_cut_off": "a positive has a label, in a part of the observation that was cut off",
    "format_error": "a reply without an action in this agent's form",
    "bad_label": "a reply with a label that is not there",
    "recovered": "a step that was answered after such a reply",
    "strict_id_hit": "the element named, whatever lies at its place, is a positive",
    CUT_BY_WORDS: "an observation was cut by words, as the model's tokenizer is not known or not on this machine",
    "lenient_hit": "the element named is a positive, around or inside of one, or has its centre in the box of one",
    **{name: said for name, said in FALL_BACKS.items() if name not in OF_EVERY_ROW},
}
"""Everything that web agents count beside failures."""
STRATEGIES: dict[str, Strategy] = {name: strategy_of(web) for name, web in WEB_AGENTS.items()}

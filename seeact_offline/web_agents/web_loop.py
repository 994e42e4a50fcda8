"""Grounding by the web agents WebVoyager, VisualWebArena and OpenWebVoyager over recorded steps.

The agent sees the page through a window, which it can scroll, and names a label of what it sees
(`web_agents.observations`) in its own language (`web_agents.web_actions`). Earlier steps are told as if it had done
them: the window that holds the right element, and the action that was recorded, without a thought or with the one that
the model gave at that step in another run. Both are ours: nobody scrolled to that window, and nobody wrote that reply.

WebVoyager's label is its element; in the others an action points at a place, whose smallest candidate is the element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from seeact_offline.agents import Act, Agent, Answer, Unreadable
from seeact_offline.agents.acts import MissingPart
from seeact_offline.agents.gui_agent import agent_reply
from seeact_offline.agents.history import IMAGE, OBSERVATION, OPEN_OBSERVATION, clip, clip_open
from seeact_offline.agents.screens import Shown
from seeact_offline.files.digest import file_digest
from seeact_offline.grounding import Grounding, GroundingResult, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import PastQuestion, Question, Session, in_thread, nonzero_notes
from seeact_offline.grounding.oracle import PREDICTIONS
from seeact_offline.grounding.strategy import (
    STRICT_READING,
    Option,
    SecondModel,
    Strategy,
    StrategyInputs,
    StrategyInstance,
    whole,
)
from seeact_offline.merging import decision
from seeact_offline.models.replay import read_recordings
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.prompting import PromptPack
from seeact_offline.ranking.tokenizers import WORDS, open_tokenizer, tokenizer_of
from seeact_offline.records import InputError, Message, Model, RowError, Step, StepError, StepKey
from seeact_offline.web_agents import observations
from seeact_offline.web_agents.captions import Captioner, captioning_model, captions_identity, open_captioner
from seeact_offline.web_agents.marks import TEXT_FIELDS, text_field_kind
from seeact_offline.web_agents.observations import (
    Captions,
    Observation,
    PageWindows,
    Scene,
    SeenWindow,
    Target,
    WebAgent,
)
from seeact_offline.web_agents.screen_page import FALL_BACKS, OF_EVERY_ROW
from seeact_offline.web_agents.systems import (
    OPENWEBVOYAGER,
    THOUGHT,
    VISUALWEBARENA,
    WEBVOYAGER,
    WEBVOYAGER_TEXT,
    WIDEST,
)
from seeact_offline.web_agents.trees import MAX_TOKENS
from seeact_offline.web_agents.web_actions import GRAMMARS, remembered, thought_of

PARTS_MISSING = "Your reply cannot be read: it needs a part that begins with Thought: and one that begins with Action:."
CANNOT_ACT = (
    "Your action cannot be carried out. Check that its label is among those shown and that it is written in one of the "
    "given forms, then give a new Thought and Action."
)
UNREADABLE_REPLY = (
    "none, as your last reply could not be read: {said}. Put one action between triple backticks, its arguments in "
    "brackets, as in ```click [12]```."
)
NO_SUCH_LABEL = "none, as the element of your last action is not there: {said}. Look at the observation again."
NO_TEXT_FIELD = "(The text went into an element that may be no text field: tag {tag}, type {kind}.)"
LONGEST_SAID = 2_000
"""Characters of a reply that such a line repeats."""
ANYWHERE = Shown.whole((1, 1))
"""Stands for the picture where a label is read or written, which no picture is needed for."""
BAD_LABEL = "bad_label"
CUT_BY_WORDS = "cut_by_words"
CORRECTED = frozenset({MissingPart.name, Unreadable.name, BAD_LABEL})
"""Failures after which a dialogue continues."""
MOST_EARLIER = 1_000
"""Earlier steps of a task that a dialogue may hold; none has as many."""
MOST_KEPT = 40
"""Observations of earlier steps that are kept for the steps after them."""


@dataclass(frozen=True, slots=True)
class _PastStep:
    """An earlier step as it is told."""

    seen: Observation
    address: str
    label: str
    reply: str
    warning: str = ""
    """Stands before the next observation."""


@dataclass(frozen=True, slots=True)
class Past:
    """The steps before this one, as they are told; nothing where they were lived, and are the dialogue's own turns."""

    messages: tuple[Message, ...] = ()
    texts: tuple[str, ...] = ()
    """Steps that no window shows, in words."""
    warning: str = ""
    """Stands before the first observation of this step."""
    n_without_thought: int = 0
    """Messages of the model with a neutral line in place of a thought that was asked for."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The dialogue so far: about this step, or about the whole task where it was lived."""

    index: int = 0
    top: int = 0
    """Top of the window in page pixels."""
    said: tuple[Message, ...] = ()
    correction: str = ""
    last_action: str = ""
    outcome: str = ""
    """Outcome of the last action besides what is seen, where it was lived."""


@dataclass(frozen=True, slots=True)
class AskedWindow:
    """A question about one window, and its reply."""

    question: Question
    texts: tuple[str, ...]
    """The reply, if there is one."""
    act: Act | None
    """None where the model declined, and where no action could be read."""
    answer: Answer
    seen: Observation


class WebAgentGrounding(Grounding):
    """Shows a web agent one window after the other, and corrects it, until it acts."""

    needs_ranking = False

    def __init__(
        self,
        web: WebAgent,
        pack: PromptPack,
        form: QuestionOptions | None = None,
        observation: str | None = None,
        captioner: Captioner | None = None,
        max_turns: int = 5,
        strict: bool = False,
        tokenizer: str = WORDS,
        thoughts: Mapping[StepKey, str] | None = None,
    ) -> None:
        """`captioner`: None for alternative texts alone. `max_turns`: most questions a step. `tokenizer`: as
        `open_tokenizer` takes it, by which long observations are cut. `thoughts`: the model's own at earlier steps;
        None: a neutral line for each."""
        self.form = form or QuestionOptions()
        self.web, self._agent, self._pack = web, web.agent, pack
        self.observation = observation or next(iter(web.observations))
        self._captioner, self._max_turns, self._strict = captioner, max_turns, strict
        self._captions: dict[StepKey, Captions] = {} if captioner is None else dict(captioner.known)
        self._tokenizer = tokenizer
        self.earlier = MOST_EARLIER if web.head else 1
        self._kept: dict[StepKey, _PastStep | None] = {}
        self._thoughts = thoughts
        self._examples = [
            message
            for example in pack.examples
            for message in (Message("user", example.user), Message("assistant", example.assistant))
        ]

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The first one. Raises RowError."""
        windows = self.windows(prepared)
        return [self._question(windows, self.target(windows), self._past(prepared.step), Turn())]

    def past_questions(self, prepared: PreparedStep, replies: Sequence[Sequence[str]]) -> Iterator[PastQuestion]:
        """The questions of the dialogue in which these replies came, the texts of each. Raises RowError."""
        windows = self.windows(prepared)
        target, past, turn = self.target(windows), self._past(prepared.step), Turn()
        for texts in replies:
            question, seen = self._question(windows, target, past, turn), windows.at(turn.top).shown
            act, answer = self._read(texts[-1], seen) if texts else (None, Answer())
            yield PastQuestion(question, seen.window, "" if act is None else self.web.grammar.write(act))
            asked = AskedWindow(question, tuple(texts), act, answer, seen)
            following = self._next(windows, turn, asked) if texts else None
            if following is None:
                return
            turn = following

    def reaches(self, prepared: PreparedStep) -> bool:
        """Tells whether some dialogue within the turns leads to a positive."""
        return self.target(self.windows(prepared)).hits

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        session = Session(model, prepared.step.key)
        notes: Counter[str] = Counter()
        turn = Turn()
        try:
            await self.caption(prepared, session)
            windows = await in_thread(self.windows, prepared)
            target = await in_thread(self.target, windows)
            notes.update({target.cause} - {""} | (windows.scene.fall_backs - OF_EVERY_ROW))
            past = await in_thread(self._past, prepared.step)
            notes["without_thought"] = past.n_without_thought
            while True:
                asked = await self.ask_view(session, windows, turn, past, target)
                answer, seen = asked.answer, asked.seen
                notes[CUT_BY_WORDS] |= seen.is_cut and self._tokenizer == WORDS
                if answer.failure in CORRECTED:
                    notes[BAD_LABEL if answer.failure == BAD_LABEL else MissingPart.name] += 1
                following = self._next(windows, turn, asked)
                if following is None:
                    break
                recorded = answer if answer.failure in CORRECTED else replace(answer, failure=None)
                session.replies.append(
                    agent_reply(asked.question, asked.texts, recorded, self._agent, _shown(windows, seen))
                )
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
        last = agent_reply(asked.question, asked.texts, answer, self._agent, _shown(windows, seen))
        session.replies.append(msgspec.structs.replace(last, element_id=element))
        captions = {**self._captions.get(prepared.step.key, {})}
        return session.ended(
            decision(session.replies[-1]),
            point=answer.place,
            notes=nonzero_notes(**notes),
            captions=captions,
            reachable=target.hits,
        )

    async def ask_view(
        self, session: Session, windows: PageWindows, turn: Turn, past: Past, target: Target | None = None
    ) -> AskedWindow:
        """Asks about the window at the top of `turn`. `past`: told or lived. `target`: the truth; None where nobody
        knows it. Raises StepError."""
        question = await in_thread(self._question, windows, target, past, turn)
        talk = await session.converse(question)
        act, answer = None, Answer(failure=talk.failure, detail=talk.detail)
        seen = windows.at(turn.top).shown
        if talk.failure is None:
            act, answer = self._read(talk.texts[-1], seen)
        return AskedWindow(question, talk.texts, act, answer, seen)

    async def caption(self, prepared: PreparedStep, session: Session) -> None:
        """Captions the step's pictures, and those of the step before, whose names may be told; nothing without a
        captioner. Raises CallError and RowError."""
        captioner = self._captioner
        if captioner is None:
            return
        for step in prepared.step.earlier[-1:]:
            if step.key not in self._captions and step.screenshot is not None and not step.faults:
                with suppress(RowError):
                    before = PreparedStep(step, Page(step.cleaned_html), PagePicture(step.screenshot), ())
                    self._captions[step.key] = await captioner.captions(before, session)
        if prepared.step.key not in self._captions:
            self._captions[prepared.step.key] = await captioner.captions(prepared, session)

    def windows(self, prepared: PreparedStep) -> PageWindows:
        """Raises RowError."""
        captions = self._captions.get(prepared.step.key, {}) if "captions" in self.observation else None
        cut = open_tokenizer(self._tokenizer).cut
        scene = Scene(prepared.step, prepared.page, prepared.picture, captions, cut)
        return PageWindows(self.web, self.web.observations[self.observation], scene)

    def target(self, windows: PageWindows) -> Target:
        """The target with the ideal reply."""
        target = windows.find()
        if target.label is not None and target.n_scrolls < self._max_turns:
            reply = self._ideal(windows.step, target.label)
            answer = self._read(reply, target.seen.shown)[1]
            if (answer.failure, answer.label) == (None, target.label):
                return replace(target, reply=reply, hits=True)
        first = windows.at(0)
        label = next((name for name, candidate in first.shown.labels.items() if candidate.is_shown), "0")
        return replace(target, seen=first, reply=self._ideal(windows.step, label))

    def _ideal(self, step: Step, label: str) -> str:
        return self._agent.write(step.operation.op, step.operation.value, label, ANYWHERE)

    # --- questions ---

    def _question(self, windows: PageWindows, target: Target | None, past: Past, turn: Turn) -> Question:
        seen = windows.at(turn.top)
        if turn.correction and self.web.correction == "alone":
            message = Message("user", turn.correction)
        else:
            texts = (turn.last_action,) if turn.last_action else past.texts
            is_first = not (past.messages or turn.said)
            task, address = windows.step.task, windows.scene.address
            warning = turn.outcome and f"({turn.outcome})" if turn.index else past.warning
            message = self._message(task, address, seen.shown, is_first, texts, turn.correction, warning)
        *before, last = self.web.clip((*past.messages, *turn.said, message), self._strict)
        leads = {name: node for name, node in seen.leads.items() if node and seen.shown.labels[name].is_shown}
        ideal = ""
        if target is not None:
            ideal = self._agent.scroll if turn.top < target.seen.shown.window[1] else target.reply
        return Question(
            turn.index, tuple(leads.values()), self._pack.render_system(), (last.text,), (last.picture,), (ideal,),
            examples=(*self._examples, *before), labels=tuple(leads), reply_prefix=self._pack.reply_prefix,
        )  # fmt: skip

    def _message(
        self,
        task: str,
        address: str,
        seen: Observation,
        is_first: bool,
        texts: Sequence[str],
        correction: str = "",
        warning: str = "",
    ) -> Message:
        """An observation as it is sent, with the task where it is the first of a dialogue or stands alone."""
        if not is_first and self.web.head:
            head = f"{self.web.head} {warning}" if warning else self.web.head
            text = "\n".join([*filter(None, [correction]), head, seen.text])
        else:
            values = {**self._pack.values, "observation": seen.text, "address": address or "not known"}
            text = replace(self._pack, values=values).render_turn1(task, texts)
        return Message("user", text, seen.picture)

    def _past(self, step: Step) -> Past:
        """Dialogues tell all earlier steps; else the last one is told in a line."""
        n_untold = max(0, len(step.history) - len(step.earlier))
        earlier = list(zip(step.earlier, step.history[n_untold:], strict=False))
        past_steps = [(before.key, self._past_step(before), text) for before, text in earlier]
        if not self.web.head:
            # the action with what it names, as VisualWebArena remembers it
            read = self.web.grammar.read
            lines = [
                text
                if past_step is None
                else remembered(read(past_step.reply)[0], past_step.seen.labels[past_step.label].words)
                for _, past_step, text in past_steps
            ]
            return Past(texts=tuple(lines or step.history[-1:]))
        untold = step.history[:n_untold] + tuple(text for _, past_step, text in past_steps if past_step is None)
        messages: list[Message] = []
        warning, n_without_thought = "", 0
        for key, past_step, _ in past_steps:
            if past_step is None:
                continue
            messages.append(
                self._message(step.task, past_step.address, past_step.seen, not messages, untold, warning=warning)
            )
            reply, warning = past_step.reply, past_step.warning
            if self._thoughts is not None and key in self._thoughts:
                # the thought comes first in a reply
                reply = reply.replace(THOUGHT, self._thoughts[key], 1)
            else:
                n_without_thought += self._thoughts is not None
            messages.append(Message("assistant", self._pack.reply_prefix + reply))
        return Past(tuple(messages), untold, warning, n_without_thought)

    def _past_step(self, step: Step) -> _PastStep | None:
        """None for one whose element no window shows, or whose row has a fault."""
        if step.key not in self._kept:
            past_step = None
            with suppress(RowError):
                if step.screenshot is not None and not step.faults:
                    before = PreparedStep(step, Page(step.cleaned_html), PagePicture(step.screenshot), ())
                    windows = self.windows(before)
                    target = windows.find()
                    if target.label is not None:
                        reply = self._ideal(step, target.label)
                        warning = self._warning(windows, target.seen, target.label)
                        past_step = _PastStep(target.seen.shown, windows.scene.address, target.label, reply, warning)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[step.key] = past_step
        return self._kept[step.key]

    def _warning(self, windows: PageWindows, seen: SeenWindow, label: str) -> str:
        """WebVoyager's note where a text was typed into what is no text field."""
        node = seen.leads[label]
        if self.web.correction != "alone" or windows.step.operation.op == "CLICK" or node is None:
            return ""
        element = next(candidate for candidate in windows.scene.elements if candidate.id == node)
        kind = text_field_kind(element)
        return "" if kind in TEXT_FIELDS else NO_TEXT_FIELD.format(tag=element.tag, kind=kind or "none")

    # --- answers ---

    def _read(self, text: str, seen: Observation) -> tuple[Act | None, Answer]:
        try:
            acts = self._agent.read(text, strict=self._strict)
        except Unreadable as error:
            return None, Answer(failure=error.name, detail=str(error))
        answer = self._agent.answer(acts, ANYWHERE)
        if answer.failure is None and answer.label not in seen.labels:
            answer = Answer(failure=BAD_LABEL, detail=f"label {answer.label} is not there")
        return acts[0], answer

    def _next(self, windows: PageWindows, turn: Turn, asked: AskedWindow) -> Turn | None:
        """The turn after this one; None where the step ends."""
        act, answer = asked.act, asked.answer
        top, correction = turn.top, ""
        if answer.failure == "scrolled" and act is not None:
            top = windows.scrolled(top, act.text) if act.place is None else top
        elif answer.failure in CORRECTED:
            correction = self.correction(asked)
        elif answer.failure != "waited":
            return None
        if turn.index + 1 >= self._max_turns:
            return None
        return self.follow(turn, asked, correction, top)

    def follow(self, turn: Turn, asked: AskedWindow, correction: str, top: int = 0, outcome: str = "") -> Turn:
        """The turn after one that was asked. `correction`: the words that follow what could not be read; empty for
        none. `outcome`: the action's outcome besides what the next view shows."""
        question, texts = asked.question, asked.texts
        shown = Message("user", question.turns[0], question.pictures[0])
        reply = Message("assistant", question.reply_prefix + texts[-1])
        following = Turn(turn.index + 1, top, (*turn.said, shown, reply), correction, outcome=outcome)
        if self.web.correction != "last action":
            return following
        act, label = asked.act, asked.seen.labels.get(asked.answer.label or "")
        words = "" if label is None else label.words
        last = correction or (remembered(act, words) if act else "")
        return replace(following, correction="", last_action="; ".join(filter(None, (last, outcome))))

    def correction(self, asked: AskedWindow) -> str:
        """The words that follow a reply without an action, or with a label that is not there."""
        text, act, answer = asked.texts[-1], asked.act, asked.answer
        if self.web.correction != "last action":
            return PARTS_MISSING if answer.failure == MissingPart.name else CANNOT_ACT
        if act is None:
            return UNREADABLE_REPLY.format(said=text[-LONGEST_SAID:].strip())
        return NO_SUCH_LABEL.format(said=self.web.grammar.write(act))


def _shown(windows: PageWindows, seen: Observation) -> Shown:
    left, top, right, bottom = seen.window
    return Shown(windows.scene.size, (right - left, bottom - top), seen.window)


# --- the agents ---


WEB_AGENTS: Mapping[str, WebAgent] = {
    "webvoyager": WebAgent(
        WEBVOYAGER, GRAMMARS["webvoyager"], {"som": observations.observe_webvoyager},
        lambda messages, strict: clip(messages, 3), OBSERVATION, "alone", names_elements=True, presses_enter=True,
    ),
    "webvoyager-text": WebAgent(
        WEBVOYAGER_TEXT, GRAMMARS["webvoyager-text"], {"tree": observations.observe_webvoyager_text},
        lambda messages, strict: clip(messages, 1, "all" if strict else "observations"), OBSERVATION, "alone",
        presses_enter=True,
    ),
    "visualwebarena": WebAgent(
        VISUALWEBARENA, GRAMMARS["visualwebarena"],
        {"som+captions": observations.observe_som, "tree": observations.observe_tree,
         "tree+captions": observations.observe_tree, "image+tree+captions": observations.observe_tree_and_picture,
         "html": observations.observe_html},
        lambda messages, strict: tuple(messages[-1:]),
    ),
    "openwebvoyager": WebAgent(
        OPENWEBVOYAGER, GRAMMARS["openwebvoyager"],
        {"image+tree": observations.observe_open},
        # pictures travel beside the texts, which need no places for them
        lambda messages, strict: tuple(replace(m, text=m.text.replace(f" {IMAGE}", "")) for m in clip_open(messages)),
        OPEN_OBSERVATION, "above", presses_enter=True,
    ),
}  # fmt: skip
"""The web agents by name."""


def read_thoughts(run: Path) -> dict[StepKey, str]:
    """The thoughts that a model gave in an earlier run: the one before the last reply of each step that has one. Raises
    InputError for a run that cannot be read or has none."""
    try:
        recorded = read_recordings(run / PREDICTIONS)
    except InputError as error:
        raise error.renamed("thoughts") from None
    thoughts: dict[StepKey, str] = {}
    for key, groups in recorded.items():
        replies = [group.replies[-1] for _, group in sorted(groups.items()) if group.replies]
        if replies and (thought := thought_of(replies[-1])):
            thoughts[key] = thought
    if not thoughts:
        raise InputError("thoughts", sentence=f"no reply of {run} has thoughts; name a run whose replies have")
    return thoughts


def _open(web: WebAgent, inputs: StrategyInputs) -> StrategyInstance:
    """The strategy with its options. Raises InputError for options that do not go together."""
    own = inputs.own
    if own["max_turns"] < 1:
        raise InputError("max_turns", "at least 1", str(own["max_turns"]))
    observation, file, run = own.get("observation"), own.get("captions"), own.get("thoughts")
    if file is not None and "captions" not in (observation or ""):
        raise InputError(
            "captions", sentence="`captions` needs an observation that shows captions, such as tree+captions"
        )
    captioner = open_captioner(file)
    tokenizer = own.get("cut_by", WORDS)
    try:
        open_tokenizer(tokenizer)
    except InputError as error:
        raise error.renamed("cut_by") from None
    grounding = WebAgentGrounding(
        web, inputs.pack, inputs.form, observation, captioner, own["max_turns"], own["strict_reading"], tokenizer,
        None if run is None else read_thoughts(run),
    )  # fmt: skip
    width, height = web.agent.view.size
    identity = {
        "observation": grounding.observation,
        "max_turns": own["max_turns"],
        "window": f"{'full width' if width == WIDEST else width} x {height}",
        "thoughts": "none" if run is None else "model",
        "fall_backs": sorted(OF_EVERY_ROW | ({CUT_BY_WORDS} if tokenizer == WORDS and not web.head else set())),
    }
    if run is not None:
        identity["thoughts_digest"] = file_digest(run / PREDICTIONS)
    if own["strict_reading"]:
        identity["strict_reading"] = True
    if not web.head:
        identity |= {"cut": MAX_TOKENS, "cut_by": tokenizer}
    if "captions" in grounding.observation:
        identity["captions"] = captions_identity(file)
    return StrategyInstance(grounding, identity)


_VARIANTS = {"som+captions": "som", "image+tree+captions": "image", "html": "html"}
"""Observation -> ending of the prompt files that fit it better than those for a tree alone."""


def _captioner(own: Mapping[str, Any]) -> SecondModel | None:
    model = captioning_model(own.get("captions"))
    return None if model is None else SecondModel("captioner", "captions", model, own.get("captions_base_url"))


def strategy_of(agent: Agent) -> Strategy:
    """The grounding strategy that asks this agent, one of `WEB_AGENTS`."""
    web = WEB_AGENTS[agent.name]
    several = len(web.observations) > 1
    return Strategy(
        name=web.agent.name,
        open=partial(_open, web),
        turn2=None,
        turn1=("observation", "address"),
        variant=lambda own, form: _VARIANTS.get(own.get("observation", ""), ""),
        options=(
            Option("max_turns", "most questions a step, with those that scroll, wait or are not readable (default: 5)",
                   5, read=whole, metavar="N"),
            STRICT_READING,
            *[Option("thoughts", "tell earlier steps with the model's own thoughts, those of this run"
                     " (default: a neutral line)", read=Path, metavar="RUN")] * bool(web.head),
            *(
                Option("observation", "what is shown of a page (default: som+captions)", next(iter(web.observations)),
                       choices=tuple(web.observations)),
                Option("cut_by", f"counts the {MAX_TOKENS:,} tokens at which an observation is cut: words, characters,"
                       " tiktoken:NAME or hf:DIR_OR_ID (default: the model's own where this machine has it, else"
                       " words)",
                       WORDS, of_model=tokenizer_of, metavar="NAME"),
                Option("captions", "captions of pictures: a JSONL file, or a model that describes them, as --model"
                       " names it (default: their alternative texts alone)", metavar="FILE|MODEL"),
                Option("captions_base_url", "server of the model that describes pictures", metavar="URL"),
            ) * several,
        ),
        second_model=_captioner,
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
    "without_thought": "an earlier step without a thought in the run named by thoughts, told with a neutral line",
    "strict_id_hit": "the element named, whatever lies at its place, is a positive",
    CUT_BY_WORDS: "an observation was cut by words, as the model's tokenizer is not known or not on this machine",
    "lenient_hit": "the element named is a positive, around or inside of one, or has its centre in the box of one",
    **{name: meaning for name, meaning in FALL_BACKS.items() if name not in OF_EVERY_ROW},
}
"""Everything that web agents count beside failures."""

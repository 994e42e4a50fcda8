"""One episode: a task, an agent, and a browser, until the agent stops or a rule ends it.

The state is checked after every action, and where the agent stopped; it is told neither. An error of the browser ends
in a new attempt from the start, and at last in an end without a verdict.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import structs

from seeact_offline.agents import Act
from seeact_offline.grounding import PreparedStep
from seeact_offline.grounding.conversation import Session
from seeact_offline.live.acting import ActFailed, carry_out
from seeact_offline.live.acting_places import Place
from seeact_offline.live.episode_results import ANSWERED, ERROR, OVER, STOPPED, StopRules
from seeact_offline.live.pages import LiveSession, PageView
from seeact_offline.live.speakers import Move, Speaker, history_line, outcome, place_of
from seeact_offline.ranking import Scores
from seeact_offline.recorder.browser import Deadline, find, same_box
from seeact_offline.recorder.browser import carry_out as carry_out_recorded
from seeact_offline.recorder.origins import BrowserOptions, Origin
from seeact_offline.recorder.script import Action, TaskScript
from seeact_offline.records import Box, Model, Operation, Step, StepError, Usage
from seeact_offline.runs.opening import safe_name
from seeact_offline.runs.prepare import prepare

ORACLE, RANDOM = "oracle", "random"
ATTEMPTS = 3
"""Attempts at an episode that the browser ends."""
DEADLINE_S = 60.0
"""Seconds between two observations, with settling and acting; the model's time does not count."""
FIND_MS = 2_000
"""Milliseconds for a recorded element to appear."""
CLICKED = frozenset({"a", "button", "summary", "label", "li", "td"})
TYPED = frozenset({"input", "textarea"})
TEXT_TYPES = frozenset({"text", "search", "email", "tel", "url", "number", "password"})
_IS_MET = (Path(__file__).parent / "is_met.js").read_text(encoding="utf-8")
_HAS_FOCUS = "(e) => e === document.activeElement"
T = TypeVar("T")
Ask = Callable[[Coroutine[Any, Any, T]], T]
"""Runs a coroutine where the model lives."""

REJECTED, ENDED = "a person rejected it", "a person ended it"
Decision = Literal["accept", "reject", "end"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """An act that waits for a person."""

    task: str
    address: str
    """Address of the page."""
    number: int
    """Number of the step, from 1."""
    action: str
    """The action in the agent's words."""
    place: str
    """The place that it acts on, in words; empty where it names no place."""


Confirm = Callable[[Proposal], Decision]
AskVerdict = Callable[["Episode"], bool | None]
"""Asks a person whether the task of an episode without a check was done; None for no answer."""


@dataclass(frozen=True, slots=True)
class LiveStep:
    """One question, and its outcome."""

    action: str
    """The action in the agent's words; empty where there is none."""
    reply: str
    thought: str
    address: str
    """Address of the page before the action."""
    png: bytes
    failure: str = ""
    """Name of what is wrong with the reply."""
    problem: str = ""
    """Reason why the action could not be carried out."""
    helped: bool = False
    """True if the recorded act was carried out in its place."""
    place: Box | None = None
    """Place that was acted on, in pixels of the picture; a point has no size."""
    events: tuple[str, ...] = ()
    """Side effects of the action, in words."""

    @property
    def outcome(self) -> str:
        """The reason why it was not carried out, and its side effects; empty for neither."""
        return outcome("" if self.failure else self.problem, self.events)


@dataclass(slots=True)
class Episode:
    """A task, and the outcome of acting on it."""

    task: TaskScript
    steps: list[LiveStep] = field(default_factory=list)
    end: str = ""
    detail: str = ""
    answer: str | None = None
    done: bool | None = None
    """True if the task's state held where the agent stopped; None without a verdict."""
    reached: bool | None = None
    """True if it held after any action."""
    by_person: bool | None = None
    """A person's verdict where the task has no check."""
    raw_reward: float | None = None
    """The page's own reward, where it gives one."""
    last_png: bytes | None = None
    last_address: str = ""
    usage: Usage = field(default_factory=Usage)
    model_s: float = 0.0
    browser_s: float = 0.0
    attempts: int = 1
    rows: list[dict[str, Any]] = field(default_factory=list)
    """The pages that were asked about, where they are kept."""

    @property
    def n_helped(self) -> int:
        return sum(step.helped for step in self.steps)


@dataclass(frozen=True, slots=True)
class EpisodeOptions:
    """Settings that all episodes of a run share."""

    rules: StopRules
    place: Place = field(default_factory=Place)
    pilot: str = ""
    """`oracle`: the model is given the recorded acts; `random`: acts drawn by chance; empty: nothing."""
    helped: bool = True
    """True if the oracle's act is replaced by the recorded one where its language cannot say that."""
    seed: int = 0
    top_k: int = 50
    needs_picture: bool = True
    allowed: frozenset[Origin] = frozenset()
    deadline_s: float = DEADLINE_S
    keep_rows: bool = False
    confirm: Confirm | None = None
    """Asks a person about each act before it is carried out; None: nobody is asked."""
    ask_verdict: AskVerdict | None = None
    browser: BrowserOptions = field(default_factory=BrowserOptions)
    traces: Path = Path()
    """Folder for Playwright's traces."""


def run_episode(
    task: TaskScript, open_browser: Callable[[str], Any], speaker: Callable[[], Speaker], scores: Scores | None,
    model: Model, ask: Ask[Any], options: EpisodeOptions, port: int = 0,
) -> Episode:  # fmt: skip
    """Runs one episode. `open_browser`: an address -> a browser that reaches its origin, a new one where the last has
    ended. `ask`: see `Ask`. `port`: see `Place.address`.

    Raises only what must stop the run: OutOfBudget and errors of the model's set-up. A failing browser or server is the
    end `error`.
    """
    from playwright.sync_api import Error

    episode = Episode(task)
    for attempt in range(1, ATTEMPTS + 1):
        # what an attempt was asked is paid, whatever became of it
        episode, deadline = Episode(task, usage=episode.usage, attempts=attempt), None
        try:
            with options.place.address(task, port) as start:
                browser = open_browser(start)
                running = _Running(episode, speaker(), scores, model, ask, options)
                with Deadline(browser, options.deadline_s) as deadline:
                    running.run(browser, start, deadline)
            return episode
        except Error as error:
            episode.end, episode.detail = ERROR, " ".join(error.message.split())[:300]
            if deadline is not None and deadline.passed:
                # it would last as long again
                episode.detail = f"a step was not done within {options.deadline_s:g} s"
                return episode
        except StepError as error:
            # the model's server: what could be tried again was
            episode.end, episode.detail = ERROR, str(error)[:300]
            return episode
    return episode


class _Running:
    def __init__(
        self,
        episode: Episode,
        speaker: Speaker,
        scores: Scores | None,
        model: Model,
        ask: Ask[Any],
        options: EpisodeOptions,
    ) -> None:
        self._episode, self._speaker, self._scores, self._model = episode, speaker, scores, model
        self._ask, self._options = ask, options
        self._history: list[str] = []
        self._actions: list[str | None] = []
        self._carried: list[bool] = []
        self._recorded = 0
        """Recorded actions that the oracle has behind it."""
        self._waited_s = 0.0
        """Seconds in which a person decided."""

    def run(self, browser: Any, start: str, deadline: Deadline) -> None:
        """Raises Playwright's Error where the browser fails, StepError where the model's server does."""
        episode, place = self._episode, self._options.place
        began = time.monotonic()
        size = place.size or self._speaker.size
        own = self._options.browser, self._options.traces / f"{safe_name(episode.task.annotation_id)}.zip"
        with LiveSession(browser, episode.task, start, size, self._options.allowed, place.clock_runs, *own) as session:
            episode.task = session.task = place.begin(session)
            session.rest()
            while not episode.end:
                view = session.observe(f"live-{len(episode.steps)}", self._history, self._speaker.whole)
                self._step(session, view, deadline)
                if not episode.end:
                    session.rest()
                    self._tell_outcome(session)
                    judged = place.judge(session)
                    episode.reached = episode.reached or judged.done
                    by_rule = self._options.rules.end(self._actions, self._carried) or ""
                    episode.end = OVER if judged.is_over else by_rule
                deadline.restart()
            judged = place.judge(session)
            episode.done, episode.raw_reward = judged.done, judged.raw_reward
            episode.reached = episode.reached or episode.done
            episode.last_png, episode.last_address = session.picture(), session.address
            if self._options.ask_verdict and episode.done is None:
                with self._waiting_for_a_person(deadline):
                    episode.by_person = self._options.ask_verdict(episode)
            episode.browser_s += time.monotonic() - began - episode.model_s - self._waited_s

    def _step(self, session: LiveSession, view: PageView, deadline: Deadline) -> None:
        episode, speaker = self._episode, self._speaker
        is_recorded = self._options.pilot == ORACLE and self._recorded < len(episode.task.actions)
        recorded = episode.task.actions[self._recorded] if is_recorded else None
        hit, ideal, step = self._truth(session, view, recorded)
        if self._options.keep_rows:
            episode.rows.append(view.row(hit, step.operation))
        if self._options.pilot == ORACLE and recorded is None and (ideal is None or not speaker.can_say(ideal)):
            # the recorded acts are over, and its language has no words for the end
            episode.end = STOPPED
            return
        needs_help = False
        if self._options.pilot == ORACLE and recorded is not None and ideal is None and not hit:
            needs_help = True
        elif ideal is not None and not speaker.can_say(ideal):
            needs_help, ideal = True, None
        if needs_help and not self._options.helped:
            episode.end, episode.detail = STOPPED, "its language has no words for the next recorded act"
            return
        prepared = prepare(step, self._scores, self._options.top_k, self._options.needs_picture)
        deadline.pause()
        move = self._asked(prepared, view, ideal, bool(hit))
        deadline.restart()
        helps = needs_help or not (recorded is None or ideal is not None or self._says(session, move, recorded, step))
        helped: Action | None = None
        problem = self._refusal(view, move, recorded if helps and self._options.helped else None, deadline)
        if problem:
            pass
        elif self._options.pilot == ORACLE and recorded is not None and ideal is None:
            if helps and self._options.helped:
                problem, helped = self._help(session, recorded), recorded
            else:
                problem = self._carry_out(session, move)
            self._recorded += not problem
            if problem:
                episode.end, episode.detail = STOPPED, f"recorded act {self._recorded + 1}: {problem}"
        elif move.failure is None:
            problem = self._carry_out(session, move)
            # Enter, the one recorded act that names no element
            self._recorded += ideal is not None and ideal.kind == "press" and not problem
        self._note(view, move, problem, helped)

    def _asked(self, prepared: PreparedStep, view: PageView, ideal: Act | None, has_hit: bool) -> Move:
        session = Session(self._model, prepared.step.key)
        began = time.monotonic()
        try:
            move: Move = self._ask(self._speaker.ask(session, prepared, view, ideal, has_hit))
        finally:
            self._episode.usage += session.usage
            self._episode.model_s += time.monotonic() - began
        return move

    # --- what is right, for the two models that are told ---

    def _truth(
        self, session: LiveSession, view: PageView, recorded: Action | None
    ) -> tuple[list[int], Act | None, Step]:
        """The elements that are right, or the scroll or the end that is; the row that says so."""
        if self._options.pilot == RANDOM:
            return self._drawn(view)
        if self._options.pilot != ORACLE:
            return [], None, view.step()
        if recorded is None:
            words = [Act("stop"), Act("answer", None, self._episode.task.answer or "done")]
            return [], next((act for act in words if self._speaker.can_say(act)), words[0]), view.step()
        operation = recorded.operation
        if operation.op == "SELECT" and not self._speaker.speaks_select:
            # typing on a list chooses
            operation = structs.replace(operation, op="TYPE")
        if recorded.frame is not None:
            return [], None, view.step(operation=operation)
        from playwright.sync_api import Error

        session.page.set_default_timeout(FIND_MS)
        try:
            target = find(session.page, recorded)
            box = target.bounding_box()
        except (Error, StepError):
            if not session.is_alive:
                raise
            return [], None, view.step(operation=operation)
        finally:
            # the session's own, TIMEOUT_S
            session.page.set_default_timeout(10_000)
        enter = Act("press", None, "Enter")
        if operation.original_op == "ENTER" and self._speaker.can_say(enter) and target.evaluate(_HAS_FOCUS):
            return [], enter, view.step(operation=operation)
        if not self._speaker.whole and box is not None:
            middle, height = box["y"] + box["height"] / 2, session.size[1]
            if not 0 <= middle < height:
                way = "up" if middle < 0 else "down"
                scroll = Act("scroll", None, way, {"direction": way})
                # where the last scroll moved nothing, the element is in a box of its own that scrolls, or beside the page
                if self._speaker.can_say(scroll) and self._carried[-1:] != [False]:
                    return [], scroll, view.step(operation=operation)
        hit = same_box(target, session.devtools)
        return hit, None, view.step(hit, operation)

    def _drawn(self, view: PageView) -> tuple[list[int], Act | None, Step]:
        rng = random.Random(f"{self._options.seed}\n{self._episode.task.annotation_id}\n{len(self._episode.steps)}")
        width, height = view.size
        shown = [
            element for element in view.record.elements
            if element.box.w > 1 and element.box.h > 1
            and 0 <= element.box.center[0] < width and 0 <= element.box.center[1] < height
            and (element.tag in CLICKED | TYPED | {"select"} or element.attributes.get("is_clickable") == "true")
        ]  # fmt: skip
        if not shown:
            return [], None, view.step()
        element = rng.choice(shown)
        words = self._episode.task.task.split()
        operation = Operation("CLICK")
        if element.tag in TYPED and element.attributes.get("type", "text") in TEXT_TYPES:
            operation = Operation("TYPE", rng.choice(words).strip(".,"))
        key = view.node(element.backend_node_id)
        assert key is not None
        return [key.backend], None, view.step([key.backend], operation)

    def _says(self, session: LiveSession, move: Move, recorded: Action, step: Step) -> bool:
        """Tells whether the move is the recorded act: the element, which nothing covers, the operation, the value, and
        nothing else."""
        operation, positives = recorded.operation, step.truth.positives
        if move.failure is not None or len(move.deeds) != 1 or move.element not in positives:
            return False
        deed = move.deeds[0]
        # typing on a list chooses
        op = "SELECT" if operation.op == "SELECT" and deed.kind == "type" else move.answer.op
        if op != operation.op or operation.original_op not in ("", operation.op):
            return False
        # nothing is pressed after a choice
        if op == "TYPE" and deed.extra.get("enter"):
            return False
        if operation.op != "CLICK":
            return deed.text.removesuffix("\n") == operation.value
        # a recorded click waits until the element is met
        return deed.point is None or bool(find(session.page, recorded).evaluate(_IS_MET, list(deed.point)))

    def _help(self, session: LiveSession, recorded: Action) -> str:
        from playwright.sync_api import Error

        try:
            carry_out_recorded(find(session.page, recorded), recorded)
        except (Error, StepError) as error:
            if not session.is_alive:
                raise
            return " ".join(str(getattr(error, "message", error)).split())[:200]
        return ""

    # --- what is done ---

    def _carry_out(self, session: LiveSession, move: Move) -> str:
        """Carries the move out; returns why it could not be, or nothing."""
        if move.failure is not None:
            return move.failure
        for deed in move.deeds:
            if deed.kind in ("stop", "answer"):
                self._episode.end = STOPPED if deed.kind == "stop" else ANSWERED
                self._episode.answer = deed.text if deed.kind == "answer" else None
                return ""
            try:
                carry_out(session, deed)
            except ActFailed as error:
                return str(error)
            if len(move.deeds) > 1:
                session.rest()
        return ""

    def _refusal(self, view: PageView, move: Move, helped: Action | None, deadline: Deadline) -> str:
        """Asks the person, if there is one; returns why the act is not carried out, or nothing. `helped`: the recorded
        act in its place."""
        if self._options.confirm is None or (move.failure is not None and helped is None):
            return ""
        place = "" if helped else _place_in_words(view, move)
        action = f"(help) {_words(helped)}" if helped else move.said
        task = self._episode.task.task
        with self._waiting_for_a_person(deadline):
            decision = self._options.confirm(Proposal(task, view.address, len(self._episode.steps) + 1, action, place))
        if decision == "end":
            self._episode.end, self._episode.detail = STOPPED, ENDED
        return {"accept": "", "reject": REJECTED, "end": ENDED}[decision]

    @contextmanager
    def _waiting_for_a_person(self, deadline: Deadline) -> Iterator[None]:
        began = time.monotonic()
        deadline.pause()
        yield
        deadline.restart()
        self._waited_s += time.monotonic() - began

    def _note(self, view: PageView, move: Move, problem: str, helped: Action | None) -> None:
        """`helped`: the recorded act that was carried out in place of the agent's."""
        done = move.failure is None and not problem
        # what is carried out in an agent's place breaks none of its rules
        self._actions.append(f"recorded act {self._recorded}" if helped else move.said or None)
        # a person's no is no step in vain (SeeAct)
        self._carried.append(done or helped is not None or problem == REJECTED)
        if helped or move.failure is None:
            self._history.append(_words(helped) if helped else history_line(view, move))
        self._episode.steps.append(
            LiveStep(
                f"(help) {_words(helped)}" if helped else move.said, move.reply, move.thought, view.address, view.png,
                move.failure or "", problem, helped is not None, None if helped else place_of(move, view),
            )
        )  # fmt: skip

    def _tell_outcome(self, session: LiveSession) -> None:
        """Notes what the last action led to besides, and tells the agent; a tab opens some time after the click."""
        step = replace(self._episode.steps[-1], events=tuple(session.events))
        self._episode.steps[-1] = step
        session.events.clear()
        if step.outcome:
            self._speaker.hear(step.outcome)
            if not step.failure or step.helped:
                self._history[-1] += f"; {step.outcome}"


def _place_in_words(view: PageView, move: Move) -> str:
    """`[button] Search at (640, 90)`; empty for none."""
    place = place_of(move, view)
    if place is None:
        return ""
    role, name = view.names.get(move.element or "", ("", ""))
    x, y = place.center
    return " ".join(filter(None, (f"[{role}]" if role else "", name[:80], f"at ({x:.0f}, {y:.0f})")))


def _words(recorded: Action) -> str:
    value = f": {recorded.operation.value}" if recorded.operation.value else ""
    return f"{recorded.operation.original_op or recorded.operation.op}{value}"

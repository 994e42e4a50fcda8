"""Proves checks: plays a task as it was recorded, on a detour, and as it must not pass: with an act left out,
a false value, an act too many.

A play that passes although something is wrong in it shows that the check is too weak; unless its page is the same in
the end, to the last attribute and field: then the act is redundant.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from seeact_offline.recorder.browser import INIT, Chromium, evaluate, find_chromium, fresh_page
from seeact_offline.recorder.browser import carry_out as carry_out_act
from seeact_offline.recorder.origins import Origin, served
from seeact_offline.recorder.recording import RecordOptions
from seeact_offline.recorder.script import STATE, Action, TaskScript, Value, changes, read_state
from seeact_offline.records import Operation, StepError

if TYPE_CHECKING:
    from playwright.sync_api import Page

CORRECTED, SWAPPED = "a false value first", "two fields in the other order"
PLAY, LEFT_OUT, FALSE_VALUE, REPEATED, UNDONE, EXTRA, STOPPED = (
    "as recorded", "an act left out", "a false value", "the last act again", "the last value undone",
    "another task's acts too", "stopped at once",
)  # fmt: skip
OTHER_THAN = "an entry other than "
"""Before the label of a list's entry: any other one is chosen."""
ACT_MS = 1200
"""Milliseconds for an act, and a fifth of it for its element to appear; what takes longer cannot be carried out."""
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_PAGE = """() =>
  [document, ...[...document.querySelectorAll('iframe')].map((frame) => frame.contentDocument)].map((root) =>
    [root?.documentElement?.outerHTML, [...root?.querySelectorAll('input, textarea, select') ?? []].map((field) =>
      [field.value, field.checked])])"""
"""All that a page shows, but for what is painted on a canvas."""


RIGHT = frozenset({PLAY, CORRECTED, SWAPPED})
"""Kinds of plays that must pass; all others must not."""


@dataclass(frozen=True, slots=True)
class Play:
    """Acts that are carried out from the start of a task."""

    kind: str
    detail: str
    """The act that is wrong, in words; empty where the kind says it."""
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one play."""

    task: TaskScript
    play: Play
    passes: bool
    is_same: bool
    """True if it passes on the page of the recorded play, to the last attribute and field:
    what was wrong makes no difference."""

    @property
    def is_weakness(self) -> bool:
        """True for a wrong play that passes on another page."""
        return self.play.kind not in RIGHT and self.passes and not self.is_same


def mutants(task: TaskScript, harm: TaskScript | None = None) -> Iterator[Play]:
    """The plays of a task that must not pass. `harm`: another task, whose acts follow."""
    acts = task.actions
    for place, act in enumerate(acts):
        words = f"{place + 1} {act.operation.original_op} {act.selector}"
        yield Play(LEFT_OUT, words, (*acts[:place], *acts[place + 1 :]))
        if act.operation.value:
            false = _with_value(act, _false_value(act))
            yield Play(FALSE_VALUE, words, (*acts[:place], false, *acts[place + 1 :]))
    last = acts[-1]
    if last.operation.op == "CLICK":
        yield Play(REPEATED, "", (*acts, last))
    else:
        yield Play(UNDONE, "", (*acts, _with_value(last, _false_value(last) if last.operation.op == "SELECT" else "")))
    if harm is not None:
        yield Play(EXTRA, harm.task, (*acts, *harm.actions))
    yield Play(STOPPED, "", ())


def detours(task: TaskScript) -> Iterator[Play]:
    """Other plays that reach the same state: with a value corrected, and with two fields filled in the other order."""
    acts = task.actions
    fields = [place for place, act in enumerate(acts) if act.operation.value]
    if fields:
        place = fields[0]
        yield Play(CORRECTED, "", (*acts[:place], _with_value(acts[place], _false_value(acts[place])), *acts[place:]))
    for place in fields:
        if place + 1 in fields:
            yield Play(SWAPPED, "", (*acts[:place], acts[place + 1], acts[place], *acts[place + 2 :]))
            return


def _false_value(act: Action) -> str:
    value = act.operation.value
    return OTHER_THAN + value if act.operation.op == "SELECT" else false_text(value)


def harm_of(task: TaskScript, tasks: Sequence[TaskScript]) -> TaskScript | None:
    """The next task that starts where this one does, from the end on to the beginning again;
    None where there is none."""
    place = tasks.index(task)
    return next((other for other in (*tasks[place + 1 :], *tasks[:place]) if other.start == task.start), None)


def false_text(text: str) -> str:
    """A text of the same form that says something else: its last letter or digit is the next one.

    >>> false_text("r.lee@post.example"), false_text("555-0199")
    ('r.lee@post.examplf', '555-0190')
    """
    place = max((place for place, sign in enumerate(text) if sign.isalnum()), default=None)
    if place is None:
        return text + "a"
    sign = text[place]
    following = str((int(sign) + 1) % 10) if sign.isdecimal() else "a" if sign in "zZ" else chr(ord(sign) + 1)
    return text[:place] + following + text[place + 1 :]


def _with_value(act: Action, value: str) -> Action:
    return replace(act, operation=Operation(act.operation.op, value, act.operation.original_op))


class Prover:
    """Plays tasks in one browser. A context manager."""

    def __init__(self, options: RecordOptions) -> None:
        self._allowed = frozenset(Origin.of(url, "allow_origin") for url in options.allow_origins)
        self._chromium, self._port = Chromium(find_chromium(options.browser), options.fonts), 0

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *_: object) -> None:
        self._chromium.close()

    def changes(self, task: TaskScript) -> dict[str, Value | None]:
        """The changes of the state that the recorded acts make.
        Raises StepError where one of them cannot be carried out."""
        with self._started(task) as (page, start):
            return _play(page, start, task, task.actions, is_strict=True).changes

    def prove(self, task: TaskScript, harm: TaskScript | None = None) -> list[Outcome]:
        """The outcomes of all plays of a task, the recorded one first. `harm`: as of `mutants`.
        Raises StepError as `changes` does."""
        plays = [Play(PLAY, "", task.actions), *detours(task), *mutants(task, harm)]
        outcomes, shown = [], ""
        with closing(self._pages(task)) as pages:
            for play, (page, start) in zip(plays, pages, strict=False):
                passes = _play(page, start, task, play.actions, is_strict=play.kind == PLAY).passes
                shown = page.evaluate(_PAGE) if play.kind == PLAY else shown
                outcomes.append(Outcome(task, play, passes, passes and page.evaluate(_PAGE) == shown))
        return outcomes

    def _pages(self, task: TaskScript) -> Generator[tuple[Page, str]]:
        """Yields a page and the address to open for each play, in a fresh profile. Bundled sites store nothing: they
        are opened again in the same page, by a query of its own,
        as an address that differs by its fragment alone is not loaded anew."""
        while task.changes is None:
            with self._started(task) as opened:
                yield opened
        with self._started(task) as (page, start):
            for number in count():
                yield page, urlunsplit(urlsplit(start)._replace(query=f"play={number}"))

    @contextmanager
    def _started(self, task: TaskScript) -> Iterator[tuple[Page, str]]:
        """A page in a fresh profile, and the address to open. The browser is kept while the origin is the same."""
        with served(task.start, task.served, self._port) as start:
            origin = Origin.of(start, "start")
            self._port = origin.port
            with fresh_page(self._chromium.reaching(self._allowed | {origin}), INIT + STATE) as page:
                yield page, start


def is_done(task: TaskScript, page: Page, before: Mapping[str, Value]) -> bool:
    """Tells whether a task's check holds on a page. `before`: the state when the task began."""
    if task.changes is not None:
        return changes(before, read_state(page), task.free) == task.changes
    return bool(task.check) and all(evaluate(page, condition).holds for condition in task.check)


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a play."""

    changes: dict[str, Value | None]
    passes: bool


def _play(page: Page, start: str, task: TaskScript, actions: Sequence[Action], is_strict: bool = False) -> _End:
    """Plays acts from the start of the task. Those that cannot be carried out are left out;
    `is_strict`: raises StepError instead."""
    page.goto(start)
    before = read_state(page)
    timeout_ms = 10 * ACT_MS if is_strict else ACT_MS
    for number, action in enumerate(actions, 1):
        problem = _carry_out(page, action, timeout_ms, is_strict)
        if problem and is_strict:
            raise StepError("record_failed", f"step {number} of task {task.task!r:.100}: {problem}")
        # where an act is missing, those that need it are too
        timeout_ms = min(timeout_ms, 3 * ACT_MS // 10) if problem else timeout_ms
    page.set_default_timeout(10 * ACT_MS)
    page.evaluate(_DRAWN)
    return _End(changes(before, read_state(page), task.free), is_done(task, page, before))


def _carry_out(page: Page, action: Action, timeout_ms: int, is_strict: bool) -> str:
    """Carries out an act; returns why it cannot be, or nothing. `is_strict`: a click on an element that is covered
    cannot; else it meets what is there."""
    from playwright.sync_api import Error

    scope = page.frame_locator(action.frame) if action.frame else page
    target = scope.locator(action.selector).filter(visible=True)
    try:
        if not target.count():
            target.first.wait_for(timeout=timeout_ms / 5)
        right = action.operation.value.removeprefix(OTHER_THAN)
        if right != action.operation.value:
            labels = target.evaluate("(e) => [...e.options].filter((o) => !o.disabled).map((o) => o.label)")
            action = _with_value(action, next((label for label in reversed(labels) if label != right), right))
        page.set_default_timeout(timeout_ms)
        if action.operation.original_op == "CLICK" and not is_strict:
            target.click(force=True)
        else:
            carry_out_act(target, action)
    except Error as error:
        return " ".join(error.message.split())[:200]
    return ""

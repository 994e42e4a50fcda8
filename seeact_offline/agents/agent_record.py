"""The record of an agent: its view of a page, its numbers for places, and the language of its replies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from seeact_offline.agents.acts import Act, Answer, Fold, Kind, Unreadable, answer_of
from seeact_offline.agents.notations import acts_in, boxes
from seeact_offline.agents.screens import Frame, Point, Resize, Shown, Size
from seeact_offline.agents.templates import Writer
from seeact_offline.files.extensions import load_place
from seeact_offline.records import ShownPicture
from seeact_offline.replies.answer_text import answer_text

Reader = Callable[[str], Sequence[Act]]
MOST_CHARACTERS = 20_000
"""Characters that are read of a reply, at its end: the act follows the thoughts."""
_CUT = re.compile(
    r"(?:[\[({]|<(?:point|bbox|box)\b|<parameter=(?:coordinate|point|\w{0,9}box\w{0,3}|x|y)>\s*)"
    r"[^\])}\n]*?(?P<numbers>[\d.-][\d.,\s-]*)\Z"
)
OPERATIONS = frozenset({"CLICK", "TYPE", "SELECT"})


@dataclass(frozen=True, slots=True)
class View:
    """The part of the page that a question shows."""

    part: Literal["page", "blocks", "window"] = "page"
    size: Size = (1280, 800)
    """Size of a window in page pixels."""
    step: int = 800
    """Pixels of a scroll of the window."""
    resize: Resize = field(default_factory=Resize)
    """Scaling of the picture before it is sent."""
    stops_at_truth: bool = False
    """True if scrolling ends one view behind the last that holds the right element, as UGround's released loop does."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A model's way of looking and answering."""

    name: str
    source: str
    """Repository and commit, or paper, that its rules come from."""
    reader: Reader
    """Reads a reply; raises Unreadable."""
    strict_reader: Reader
    """Reads a reply as the released code does, with its accidents; raises Unreadable."""
    writer: Writer
    """Operation, value, and place in numbers of the frame or a label -> a reply."""
    frame: Frame = field(default_factory=Frame)
    view: View = field(default_factory=View)
    history_steps: int | None = None
    """Newest earlier actions that are told as texts; None: all."""
    fold: Fold = field(default_factory=Fold)
    speaks: frozenset[str] = OPERATIONS
    """Operations that its language has; the writer clicks in place of the others."""
    speaks_value: frozenset[str] = frozenset({"TYPE", "SELECT"})
    """Operations of which it says the value."""
    names_selected: bool = False
    """True if its value of a SELECT is the element's name, and not the option."""
    speaks_place: frozenset[str] = OPERATIONS
    """Operations of which it says the place."""
    told: Callable[[str], str] = str
    """A reply -> that reply as an earlier step's, which is told with its picture."""
    scroll: str = ""
    """The reply that asks for the next view."""
    act_writer: Callable[[Act], str] | None = None
    """Writes acts that are no operation, such as scrolls and the end; raises ValueError for one that the language has
    no words for."""
    grounder: str | None = None
    """The agent that finds the place of what this one describes."""
    protocol: str = "seeact"
    """The scoring rules that its figures are published under."""
    strategy: str = "seeact_offline.agents.gui_agent:strategy_of"
    """`MODULE:FUNCTION` that makes the grounding strategy which asks it."""
    prompt: str = ""
    """Template of its question where the prompt pack has none."""
    verbs: Mapping[str, Kind] = field(default_factory=dict)
    """Acts that verbs of its own ask for, beside those that many models have."""
    reads_others: bool = True
    """True if a reply that `reader` cannot read is read in any other notation of calls that there is."""

    def as_strategy(self) -> Any:
        """Makes the grounding strategy that asks it."""
        return load_place(self.strategy)(self)

    def read(self, text: str, shown: Shown | None = None, strict: bool = False) -> tuple[Act, ...]:
        """The acts of a reply, in its order, without those of its thoughts in tags. `strict`: as the released code
        reads it. Raises Unreadable, UnknownAct and NoMarks among them.

        >>> from seeact_offline.agents import AGENTS
        >>> AGENTS["showui"].read("{'action': 'TYPE', 'value': 'Vienna', 'position': [0.5, 0.25]}")
        (Act(kind='type', place=(0.5, 0.25), text='Vienna'),)
        >>> AGENTS["showui"].read("Let me think.")
        Traceback (most recent call last):
        seeact_offline.agents.acts.Unreadable: expected {'action': ..., 'value': ..., 'position': [x, y]}
        """
        if strict:
            acts = tuple(self.strict_reader(text[-MOST_CHARACTERS:]))
            if not acts:
                raise Unreadable("no act")
            return acts
        text = bare_reply(text)
        try:
            return read_parts(self.reader, text)
        except Unreadable as error:
            if not self.reads_others or error.name != Unreadable.name:
                raise
            try:
                return read_parts(partial(acts_in, verbs=self.verbs), text)
            except Unreadable as other:
                # what is named comes before "no act"
                raise (error if other.name == Unreadable.name else other) from None

    def answer(
        self, acts: Sequence[Act], shown: Shown, last_click: Point | None = None, strict: bool = False
    ) -> Answer:
        """The one answer that these acts are. `last_click`: where the step before was clicked, in pixels of the page.
        `strict`: treat a place beyond the picture as the released code does.

        >>> from seeact_offline.agents import AGENTS
        >>> answer = AGENTS["showui"].answer([Act("type", (0.5, 0.25), "Vienna")], Shown.whole((1280, 800)))
        >>> answer.op, answer.value, answer.place
        ('TYPE', 'Vienna', (640.0, 200.0))
        >>> AGENTS["showui"].answer([Act("scroll")], Shown.whole((1280, 800))).failure
        'scrolled'
        """
        return answer_of(acts, shown, self.frame, self.fold, last_click, strict, needs_place=self.grounder is None)

    def read_answer(
        self, text: str, shown: Shown, last_click: Point | None = None, strict: bool = False
    ) -> tuple[tuple[Act, ...], Answer]:
        """The acts of a reply and the answer that they are; without acts, the failure. Arguments as for `answer`."""
        try:
            acts = self.read(text, shown, strict)
        except Unreadable as error:
            return (), Answer(failure=error.name, detail=str(error))
        return acts, self.answer(acts, shown, last_click, strict)

    def picture(self, shown: Shown) -> ShownPicture | None:
        """The sizes of a picture that this agent is shown; None for one that its rule refuses."""
        with suppress(ValueError):
            return ShownPicture(shown.part, shown.sent, self.frame.resize.apply(shown.sent))
        return None

    def say(self, act: Act) -> str:
        """A reply with an act that is no operation, and that names no place. Raises ValueError where the language has
        no words for it.

        >>> from seeact_offline.agents import AGENTS
        >>> AGENTS["visualwebarena"].say(Act("scroll", None, "up")).splitlines()[-1]
        '```scroll [up]```'
        """
        if self.act_writer is not None:
            return self.act_writer(act)
        if act.kind == "scroll" and self.scroll and (act.text or act.extra.get("direction", "down")) == "down":
            return self.scroll
        raise ValueError(f"no words for {act}")

    def write(self, op: str, value: str, place: Point | str | None, shown: Shown) -> str:
        """A reply with this answer, in the agent's language. `place`: in pixels of the page, or a label.

        OpenCUA counts pixels of the picture as it scales it, here to 1288 x 812:

        >>> from seeact_offline.agents import AGENTS
        >>> AGENTS["opencua"].write("CLICK", "", (640, 200), Shown.whole((1280, 800)))
        '## Code:\\n```python\\npyautogui.click(x=644, y=203)\\n```'
        """
        if place is not None and not isinstance(place, str):
            place = shown.from_page(place, self.frame)
        return self.writer(op if op in self.speaks else "CLICK", value, place)


def bare_reply(text: str) -> str:
    """The model's answer, as readers of acts are given it."""
    answer = answer_text(text[-MOST_CHARACTERS:])
    # without the numbers at the very end that an open bracket or tag holds: the reply may have been cut short within or
    # behind one, and the place would be another
    cut = _CUT.search(answer[-100:])
    return answer if cut is None else answer[: len(answer) - len(answer[-100:]) + cut.start("numbers")]


def read_parts(reader: Reader, text: str) -> tuple[Act, ...]:
    """The acts of the first part of an answer that has any: its boxes, then all of it. Raises Unreadable."""
    refused = Unreadable("no act")
    for part in boxes(text):
        try:
            if acts := tuple(reader(part)):
                return acts
        except Unreadable as error:
            refused = error
            if error.name != Unreadable.name:
                break
    raise refused

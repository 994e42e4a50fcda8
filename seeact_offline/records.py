"""The vocabulary that every other module speaks. Imports nothing of the project.

Records that a run's files hold are msgspec Structs: their fields are those of the row, in its order.

Errors::

    SeeActError
    ├── InputError            what the user named cannot be used; one sentence; exit status 2
    │   ├── DatasetError      no such folder, split or column; a file that cannot be read
    │   ├── ScoreFileError    ranker scores that cannot be read or belong to other steps
    │   ├── PromptError       a prompt pack with a missing turn or a wrong placeholder
    │   └── ModelSpecError    an unknown provider, no API key, no such recording
    │       └── ModelStopped  the server answers nothing: no quota, no such model, an outage
    ├── OutOfBudget           the next call could cost more than is left; the run ends as it is
    └── StepError             one step could not be carried out; has a failure name and a stage; the run continues
        ├── RowError          its row, or what else the run is given for it, is at fault
        ├── CallError         the model gave no answer
        └── ReplyError        the answer cannot be used
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

T = TypeVar("T")
_NAME = re.compile(r"[\w./+:-]+")
LIKE = 0.7
"""Least likeness of a misspelt name to the one that was meant, by `difflib`."""
OPERATIONS = ("CLICK", "TYPE", "SELECT")
EMPTY_VALUE = " "
"""A prediction's value that is there and empty, as some evaluators tell it from none, the empty text. Blank as well, it has no words either."""

MergeRule = Literal["final-round", "first", "best-rank", "single"]
MERGE_RULES: tuple[MergeRule, ...] = ("final-round", "first", "best-rank", "single")
"""Rules by which the answers of a step's groups become one."""
ImageDetail = Literal["auto", "low", "high"]
"""The detail in which a server looks at a picture, in the words of OpenAI's API."""
IMAGE_DETAILS: tuple[ImageDetail, ...] = ("auto", "low", "high")


def letter(index: int) -> str:
    """The label of option `index` (from 0): A to Z, then AA, AB, ..."""
    if index < 0:
        raise ValueError(f"index must be 0 or more, got {index}")
    label = ""
    while index >= 0:
        label = chr(ord("A") + index % 26) + label
        index = index // 26 - 1
    return label


Kinship = Literal["same_text", "overlapping", "neighbour", "clicks_positive", "clicks_target"]
"""The likeness of a wrong element to the right one: it reads the same; its box overlaps that of a positive; it is its
parent, child or sibling; its box's centre lies in a positive's box, or in the first positive's (as SeeClick has it)."""


class SeeActError(Exception):
    """Base of every error that this project raises on purpose."""

    status = 2
    """Exit status of a command that it ends."""


class InputError(SeeActError):
    """Something the user named cannot be used: one sentence, and the exit status is 2.

    A wrong value is `argument: expected ..., got ...`. A conflict of options, or what is missing or failed, is a whole
    `sentence` that says what to do, with the names of arguments in backquotes. All names are those of Python; what
    shows them to people may spell them otherwise.
    """

    def __init__(self, argument: str, expected: str = "", got: str = "", sentence: str = "") -> None:
        super().__init__(argument, expected, got, sentence)
        self.argument, self.expected, self.got, self.sentence = argument, expected, got, sentence

    def __str__(self) -> str:
        return self.sentence or f"{self.argument}: {self.problem}"

    def renamed(self, argument: str) -> InputError:
        """Returns the error under the name that a caller has for the argument."""
        sentence = self.sentence.replace(f"`{self.argument}`", f"`{argument}`")
        return InputError(argument, self.expected, self.got, sentence)

    @property
    def problem(self) -> str:
        """The sentence without the argument's name before it."""
        hint = did_you_mean(self.got, self.expected)
        return self.sentence or f"expected {self.expected}, got {self.got}{hint}"


def did_you_mean(got: str, expected: str) -> str:
    """Returns `; did you mean NAME?` for the name in the list `expected` that `got` probably misspells; empty for none.

    Of `PROVIDER/NAME` either the whole or the provider may be misspelt.
    """
    # a quoted word, with or without a remark, or a word alone
    match = re.match(r"'([^']+)'", got) or re.fullmatch(r"(\S+)", got)
    word = match[1] if match else ""
    names = [name for name in re.split(r",? or |, | and |: |one of |[()]", expected) if _NAME.fullmatch(name)]
    if not _NAME.fullmatch(word) or word in names:
        return ""
    begun = [name for name in names if len(name) > 2 and word.lower().startswith(name)]
    near = begun[:1] or get_close_matches(word.lower(), names, 1, LIKE)
    head, slash, rest = word.partition("/")
    if slash and not (near and "/" in near[0]):
        # of opnai/x not openai alone
        heads = [name.partition("/")[0] for name in names]
        near = [] if head in heads else [f"{name}/{rest}" for name in get_close_matches(head.lower(), heads, 1, LIKE)]
    return f"; did you mean {near[0]}?" if near else ""


class Diverged(InputError):
    """A training whose loss is no number at its end, or far above that of its first step."""

    status = 1


class UnusedOption(InputError):
    """An option that changes nothing here: `merge: grounding pixel does not use it; remove it`."""

    def __init__(self, argument: str, owner: str, got: str) -> None:
        """`owner`: what does not use it, such as `grounding pixel`."""
        super().__init__(argument, f"its default, as {owner} does not use it", got)
        self.args, self.owner = (argument, owner, got), owner

    def __str__(self) -> str:
        return f"{self.argument}: {self.owner} does not use it; remove it"


class DatasetError(InputError):
    """A data set that is not there, or not of a known layout."""


class ScoreFileError(InputError):
    """Ranker scores that cannot be read, or that belong to other steps."""


class PromptError(InputError):
    """A prompt pack that lacks a turn or uses a wrong placeholder."""


class ModelSpecError(InputError):
    """A model that cannot be set up: unknown provider, no key, no recording."""


class ModelStopped(ModelSpecError):
    """Nothing gets through to the model, or too little: the run stops, and the same command resumes it."""


class OutOfBudget(SeeActError):
    """The next call could cost more than is left: the run ends as it is, and a larger limit resumes it."""


Stage = Literal["row", "call", "reply"]
"""The place where a step fails: in its data, in a call, or in the model's answer."""


class StepError(SeeActError):
    """One step failed. `name` is the failure as counted in the results, `detail` one sentence about it."""

    stage: Stage | None = None
    """The type of the error decides. None for one that was read from a file, where its name decides (`Prediction.stage`)."""
    ranked: tuple[str, ...] = ()
    """The step's best candidates, where they could be ranked all the same."""

    def __init__(self, name: str, detail: str = "") -> None:
        super().__init__(f"{name}: {detail}" if detail else name)
        self.name = name
        self.detail = detail


class RowError(StepError):
    """The data of the step are at fault: its row (no screenshot, unreadable HTML, a wrong box), its scores, the oracle's answer."""

    stage = "row"


class CallError(StepError):
    """The model gave no answer: `api_error`, `rate_limited`, `timeout`, `refused`, `no_recorded_reply`, ...

    `usage` is what the call cost all the same: a truncated or refused reply is paid for too.
    """

    ANSWERED = frozenset({"refused", "truncated", "empty_reply"})
    """The model's own doing: asking again would give the same."""

    def __init__(self, name: str, detail: str = "", usage: Usage | None = None, call: CallRecord | None = None) -> None:
        super().__init__(name, detail)
        self.usage = usage or Usage()
        self.call = call

    @property
    def answered(self) -> bool:
        """The model itself declined, so the step counts as run."""
        return self.name in self.ANSWERED

    @property
    def stage(self) -> Stage:  # type: ignore[override]
        return "reply" if self.answered else "call"


class ReplyError(StepError):
    """The model's answer cannot be used, such as a point outside of the page."""

    stage = "reply"


ROW_FAILURES = frozenset({
    "bad_box", "bad_candidates", "bad_html", "bad_operation", "bad_screenshot", "bad_target_index", "bad_text",
    "bad_recording", "bad_trajectory", "duplicate_id", "duplicate_step", "missing_box", "missing_candidate", "missing_field", "no_candidates",
    "no_screenshot", "nothing_to_show", "page_too_large", "text_too_long", "unrankable",
    "no_scores", "no_answer", "unknown_element", "oracle_of_another_text",
})  # fmt: skip
"""Failures of stage `row` in files that do not say the stage. Complete: files say it of any other name."""


class Box(NamedTuple):
    """A rectangle in page pixels: left edge, top edge, width, height.

    >>> box = Box(10, 20, 100, 40)
    >>> box.right, box.bottom, box.center, box.contains(110, 60)
    (110, 60, (60.0, 40.0), True)
    >>> Box.around([box, Box(0, 30, 5, 5)])
    Box(x=0, y=20, w=110, h=40)
    """

    x: float
    y: float
    w: float
    h: float

    @property
    def bottom(self) -> float:
        return self.y + self.h

    @property
    def right(self) -> float:
        return self.x + self.w

    @property
    def center(self) -> tuple[float, float]:
        return self.x + self.w / 2, self.y + self.h / 2

    @classmethod
    def around(cls, boxes: Sequence[Box]) -> Box:
        """The smallest rectangle around at least one other."""
        left, top = min(box.x for box in boxes), min(box.y for box in boxes)
        return cls(left, top, max(box.right for box in boxes) - left, max(box.bottom for box in boxes) - top)

    def contains(self, x: float, y: float) -> bool:
        return self.x <= x <= self.right and self.y <= y <= self.bottom

    def is_off(self, size: tuple[int, int]) -> bool:
        """Tells whether it lies wholly outside a picture of this width and height."""
        return self.right <= 0 or self.bottom <= 0 or self.x >= size[0] or self.y >= size[1]


CLICKED_DIGITS = 3
"""Digits of a box's edges as fractions of the picture, as SeeClick rounds them."""
SAME_DIGITS = 12
"""Digits to which a point's fraction is one and the same number, whatever was multiplied and divided on its way."""


class ClickedBox:
    """A box as SeeClick has it: its edges are rounded fractions of the picture, and belong to it."""

    def __init__(self, box: Box, size: tuple[int, int]) -> None:
        self._size = width, height = size
        self._left, self._right = (round(edge / width, CLICKED_DIGITS) for edge in (box.x, box.right))
        self._top, self._bottom = (round(edge / height, CLICKED_DIGITS) for edge in (box.y, box.bottom))

    def holds(self, x: float, y: float) -> bool:
        width, height = self._size
        # a fraction that was turned into pixels is got back as it was written
        return (
            self._left <= round(x / width, SAME_DIGITS) <= self._right
            and self._top <= round(y / height, SAME_DIGITS) <= self._bottom
        )


class CropBox(NamedTuple):
    """A rectangle cut from a picture: left, top, right, bottom in whole pixels (right and bottom exclusive)."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def size(self) -> tuple[int, int]:
        return self.x1 - self.x0, self.y1 - self.y0


@dataclass(frozen=True, slots=True)
class ImageFormat:
    """A file format of pictures. As text: `png`, `jpeg:Q` or `webp:Q`."""

    kind: str
    """png, jpeg or webp."""
    quality: int | None = None
    """1 to 100; None for PNG, which loses nothing."""

    @classmethod
    def read(cls, text: str) -> ImageFormat:
        """Raises InputError."""
        match = re.fullmatch(r"(jpeg|webp):([0-9]{1,3})", text)
        if text == "png":
            return PNG
        if match is None or not 1 <= int(match[2]) <= 100:
            raise InputError("image_format", "png, jpeg:Q or webp:Q with Q from 1 to 100, such as jpeg:95", repr(text))
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return self.kind if self.quality is None else f"{self.kind}:{self.quality}"

    @property
    def mime(self) -> str:
        return f"image/{self.kind}"

    @property
    def endings(self) -> tuple[str, ...]:
        """Endings of such files, the usual one first."""
        return (".jpg", ".jpeg") if self.kind == "jpeg" else (f".{self.kind}",)

    @property
    def longest_side(self) -> int | None:
        """Pixels beyond which there can be no such file; None for PNG, which takes any."""
        return {"jpeg": 65_500, "webp": 16_383}.get(self.kind)


PNG = ImageFormat("png")
JPEG_95 = ImageFormat("jpeg", 95)
"""The format that SeeAct's released code sends."""


class Picture(Protocol):
    """An image that a message carries. Nothing is decoded or encoded until a method is called."""

    @property
    def key(self) -> str:
        """Short text equal for equal pictures (source digest and crop), cheap to compute."""

    @property
    def box(self) -> CropBox | None:
        """Page pixels that it shows; None if it is no crop of a page."""

    def encoded(self, image_format: ImageFormat = PNG) -> bytes:
        """The picture as a file of this format. Raises RowError `bad_screenshot` when it cannot be decoded."""


class StepKey(NamedTuple):
    """The identity of a step in every file."""

    annotation_id: str
    action_uid: str

    def __str__(self) -> str:
        return f"{self.annotation_id}_{self.action_uid}"


class KeyedRow(msgspec.Struct, frozen=True):
    """A row of a file that is about one step."""

    annotation_id: str
    """The task."""
    action_uid: str
    """The step, unique inside its task."""

    @property
    def key(self) -> StepKey:
        return StepKey(self.annotation_id, self.action_uid)


PICTURE = "picture"
"""Stands for the task in the key of a request about a picture alone, so that its reply is kept by picture."""
CAPTION_GROUP = -1
"""The group of calls for captions among those of a step."""


class Operation(msgspec.Struct, frozen=True, gc=False):
    """The operation on an element."""

    op: str
    """One of OPERATIONS; empty when nothing was predicted."""
    value: str = ""
    """Text typed or option chosen; empty for none."""
    original_op: str = ""
    """The recorder's own name (HOVER and ENTER appear here only)."""

    @property
    def text(self) -> str:
        """`OP value`, the text whose tokens Operation F1 compares."""
        return f"{self.op} {self.value}".strip()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One element of the page that could be the target."""

    backend_node_id: str
    tag: str
    box: Box | None
    """None where the row gives none."""
    is_positive: bool
    is_clickable: bool = False
    """The row says that the browser took it for something to click."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a row: the failure's name and what was found."""

    name: str
    detail: str


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


class Recorded(Protocol):
    """The columns of a row that only our recorder writes, as stored. `dataset.recorded` has their types."""

    @property
    def final_screenshot(self) -> Screenshot | None:
        """The page after the task's last action; None at its other steps."""

    def read(self, kind: type[T]) -> T | None:
        """The column of this type, such as `Check`, parsed; None where the row lacks it. Raises RowError `bad_recording`."""


class Screenshot(Protocol):
    """A page's picture, as stored. Opening it is the business of `screenshots`."""

    def read(self) -> bytes:
        """The encoded image file."""


class OtherAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An answer to a step that is as right as the annotated one."""

    element_ids: tuple[str, ...] = ()
    """backend_node_ids; any of them is right. Empty: the annotated elements."""
    op: str | None = None
    """None: the annotated operation and value."""
    value: str = ""
    """Of `op`."""
    boxes: tuple[Box, ...] = ()
    """Boxes of the elements, for answers that are places."""


@dataclass(frozen=True, slots=True)
class Step:
    """One annotated action on one page."""

    annotation_id: str
    """The task."""
    action_uid: str
    """The step, unique inside its task."""
    task: str
    """The goal, in the person's words."""
    history: tuple[str, ...]
    """Texts of the actions before this one, oldest first; never later ones."""
    website: str
    domain: str
    cleaned_html: str
    operation: Operation
    candidates: tuple[Candidate, ...]
    """Positives first, then negatives, each in the row's order."""
    screenshot: Screenshot | None
    index: int = 0
    """Position in the task, from 0."""
    subdomain: str = ""
    raw_html: str | None = None
    """None unless asked for."""
    action_text: str = ""
    """The dataset's own text of this action: part of the answer, never shown to a model."""
    n_actions: int = 0
    """Action texts that the row lists for its task."""
    faults: tuple[Fault, ...] = ()
    """Faults of the row itself; a step with faults is not asked, but counted."""
    split: str = field(default="", compare=False)
    """The split it was read from; empty where it was read from none."""
    earlier: tuple[Step, ...] = field(default=(), compare=False)
    """Steps of the task before this one, oldest first; empty unless a grounding shows them."""
    recorded: Recorded | None = field(default=None, compare=False, repr=False)
    """The recorder's own columns; None for a row without them. Partly the answer."""
    also_right: tuple[OtherAnswer, ...] = ()
    """Other right answers that the row lists. Part of the answer, never shown to a model."""

    def __repr__(self) -> str:
        """One line: the pages and texts of a step fill many."""
        place = f"{self.index + 1} of {self.n_actions}" if self.n_actions else f"{self.index + 1}"
        done, task = _short(self.operation.text, 24), _short(self.task, 40)
        return f"<Step {place} on {_short(self.website, 16)}: {done!r} for {task!r}, {len(self.candidates)} candidates>"

    @property
    def key(self) -> StepKey:
        return StepKey(self.annotation_id, self.action_uid)

    @property
    def has_page(self) -> bool:
        """False for a step of a picture alone, whose one candidate is the right box. Of rows without faults, others have a page."""
        return bool(self.cleaned_html)

    @property
    def truth(self) -> Truth:
        positives = frozenset(c.backend_node_id for c in self.candidates if c.is_positive)
        boxes = tuple(c.box for c in self.candidates if c.is_positive and c.box is not None)
        places = {c.backend_node_id: c.box for c in self.candidates if c.box is not None} if self.also_right else {}
        also = tuple(
            msgspec.structs.replace(
                answer, boxes=answer.boxes or tuple(places[name] for name in answer.element_ids if name in places)
            )
            for answer in self.also_right
        )
        return Truth(
            *self.key,
            op=self.operation.op,
            value=self.operation.value,
            original_op=self.operation.original_op,
            positives=positives,
            boxes=boxes,
            website=self.website,
            domain=self.domain,
            target=next((c.backend_node_id for c in self.candidates if c.is_positive), None),
            n_actions=self.n_actions,
            n_before=len(self.history),
            n_candidates=len(self.candidates),
            task=self.task,
            index=self.index,
            split=self.split,
            action_text=self.action_text,
            positives_in_order=tuple(c.backend_node_id for c in self.candidates if c.is_positive),
            also_right=also,
        )


class Truth(KeyedRow, frozen=True, kw_only=True):
    """The annotated answer of a step, and what scoring needs of its page. Nothing of it depends on a prediction."""

    website: str = ""
    domain: str = ""
    op: str
    """The parts of `operation`."""
    value: str
    original_op: str = ""
    target: str | None = None
    """The first positive of the row; None where there is none."""
    positives: frozenset[str]
    """backend_node_ids; any of them is right."""
    boxes: tuple[Box, ...] = ()
    """Boxes of the positives that have one, in the step's order."""
    picture_size: tuple[int, int] | None = None
    """Width and height of the screenshot in pixels; None where there is none that can be opened."""
    n_actions: int = 0
    """Action texts that the row lists for its task, which is how hard the task is; 0: not known."""
    n_before: int = 0
    """Actions before this one."""
    n_candidates: int = 0
    """Elements that the row lists."""
    kin: Mapping[str, frozenset[str]] = {}
    """Elements that are like a positive: Kinship -> their backend_node_ids. Empty where the page was not read."""
    task: str = ""
    """The goal, in the person's words; empty where it is not known, as are the following."""
    index: int | None = None
    """Position in the task, from 0."""
    split: str = ""
    element_text: str = ""
    """The page's text of `target`; empty where the page was not read."""
    action_text: str = ""
    """`Step.action_text`; empty where the run does not keep it."""
    positives_in_order: tuple[str, ...] = ()
    """`positives` as the row lists them; empty where the run does not keep their order."""
    also_right: tuple[OtherAnswer, ...] = ()
    """Other right answers, which count in figures of their own alone (`scoring.also_right`). Left out of the row where there are none."""

    @property
    def operation(self) -> Operation:
        return Operation(self.op, self.value, self.original_op)

    @property
    def element_name(self) -> str | None:
        """The element's name in `action_text` as ShowUI's released code finds it (data/dset_mind2web.py); None where there is none."""
        name = re.search(r"\]\s+(.*?)\s+->", self.action_text)
        return name[1] if name else None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a model."""

    role: str
    """System, user or assistant."""
    text: str
    picture: Picture | None = None
    """Shown after the text."""
    inserted: tuple[str, ...] | None = None
    """Texts of pages, tasks and replies in `text`; None: it may all be. In them alone special tokens of a model mean nothing."""
    markup: int = 0
    """Characters of a page's markup at the beginning of `text`, which a model's limit may cut apart from the rest."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call: what a model sees, and where it stands, for recordings and stores. Holds nothing of the answer."""

    messages: tuple[Message, ...]
    key: StepKey
    group: int
    """Number of the group from 0; a final round counts on."""
    turn: int
    """1 or 2."""
    offered: tuple[str, ...] = ()
    """backend_node_ids in the order of their letters."""
    for_second: bool = False
    """Asks for the place of an element that an earlier reply describes, or for a caption; a second model may answer it."""
    coming: tuple[Picture, ...] = ()
    """Pictures of the step's later requests, so that its page is decoded once for all."""


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The cost of calls. Adds up with `+`."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    image_tokens: int = 0
    """The part of prompt_tokens that the server says were images."""
    # a whole number stays one, so that a line is written again as it was
    cost_usd: int | float | None = 0.0
    """None when the price is not known."""
    unreported: int = 0
    """Calls of which the server did not say what they used."""

    def __add__(self, other: Usage) -> Usage:
        is_priced = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.image_tokens + other.image_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if is_priced else None,
            self.unreported + other.unreported,
        )

    @property
    def named(self) -> dict[str, int | float | None]:
        """The fields as files hold them; omits `unreported` where it is 0."""
        fields = msgspec.structs.asdict(self)
        return fields if self.unreported else {name: value for name, value in fields.items() if name != "unreported"}


class CallRecord(msgspec.Struct, frozen=True, gc=False):
    """The circumstances of an answer, which differ from run to run."""

    attempts: int = 1
    """0 for an answer that was kept."""
    seconds: float = 0.0
    """Seconds from the first attempt to the answer, waiting included."""
    request_id: str | None = None
    """The server's own name for the call."""
    asked: str = ""
    """The beginning of the digest of what was asked; empty where no answer came, or answers are not kept."""
    reused: bool = False
    """An earlier place of the run has asked the same, and the answer's usage is counted there."""
    from_store: str | None = None
    """The UTC day on which another run paid for the answer, empty for a day that is not known; None: this run paid."""
    usage: Usage | None = None
    """The cost of the answer, at whichever place it is counted; None where that is not known."""
    finish_reason: str | None = None
    """The server's reason for the end of the reply, where it is one that nobody knows; None for any other."""


class Call(msgspec.Struct, frozen=True, gc=False):
    """One call of a step."""

    group: int
    turn: int
    record: CallRecord


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer to one request."""

    text: str
    usage: Usage = field(default_factory=Usage)
    call: CallRecord | None = None
    """None where nothing was sent: a built-in model, a recording."""


class Model(ABC):
    """The one seam to language models. Only `complete` must be written: the rest is what most models have of it.

    An object or a function of Python that is no `Model` is made one where it is opened (`models.provider`).
    """

    server: str = "the model"
    """Its name in errors."""
    takes_ideal: bool = False
    """An upper bound, whose reply may depend on the right answer."""

    @abstractmethod
    async def complete(self, request: Request) -> Completion:
        """Raises CallError; never returns an empty text in place of a failure."""

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        """Completes as `complete` does. `ideal` is the right answer, in the words that the prompt asks for: for upper bounds alone."""
        return await self.complete(request)

    @property
    def identity(self) -> Mapping[str, object] | None:
        """Everything that replies depend on except the messages, without secrets; None where its provider knows as much."""
        return None

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that the server would not take."""
        return ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for the user on how the model is asked."""
        return ()

    @property
    def counted(self) -> set[str]:
        """`CallRecord.asked` of the kept replies whose usage is counted already."""
        return set()

    @property
    def parts(self) -> tuple[Model, ...]:
        """The models that this one is made of; itself where it is one."""
        return (self,)

    async def aclose(self) -> None:  # noqa: B027
        """Lets go of connections and files. Safe to call twice, and on a model that was never asked."""


@dataclass(frozen=True, slots=True)
class GroundingReply:
    """The fields of a grounding answer, as read from a model's text."""

    choice: int | None
    """Index of the chosen option from 0; None for "none of them", and where failure says why there is none."""
    op: str = ""
    """One of OPERATIONS, or empty."""
    value: str = ""
    failure: str | None = None
    """None, or the name of what could not be read."""
    picked_none: bool = False
    """True only when the text really says "none of them"."""
    element_type: str = ""
    """Attributes grounding: as written."""
    element_text: str = ""
    """Attributes grounding: as written."""


class ShownPicture(msgspec.Struct, frozen=True, gc=False):
    """The picture that an agent was shown: which part of the page, and in which sizes."""

    part: tuple[int, int, int, int]
    """Left, top, right and bottom in pixels of the page."""
    sent: tuple[int, int]
    """Width and height in pixels."""
    resized: tuple[int, int]
    """Width and height to which the model's own rule scales it."""


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One group's conversation: what was offered, what came back, what it means."""

    group: int
    offered: tuple[str, ...]
    """backend_node_ids in the order of their letters."""
    replies: tuple[str, ...]
    """The model's texts, one a turn."""
    element_id: str | None
    """The pick; None for none."""
    op: str
    value: str
    failure: str | None = None
    detail: str = ""
    """One sentence for people, empty without a failure."""
    is_final_round: bool = False
    """This group holds the picks of the others."""
    shown: ShownPicture | None = None
    """Picture shown by agents with a language of their own; None for other groundings, whose rows leave it out."""


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """One candidate with its place among all candidates of its step."""

    backend_node_id: str
    score: float
    rank: int
    """Rank from 0."""


class Prediction(KeyedRow, frozen=True):
    """The action that the model wants at one step, with everything it said."""

    element_id: str | None
    op: str
    value: str
    """EMPTY_VALUE for one that is there and empty; empty for none."""
    failure: str | None = None
    """The first thing that kept a step from being carried out or read."""
    detail: str = ""
    ran: bool = True
    """False when the step was never answered (a fault of the row, the scores or the call), so a zero is no answer."""
    usage: Usage = Usage()
    ranked: tuple[str, ...] = ()
    """backend_node_ids of the top-k, best first. Not all need have been offered."""
    groups: tuple[Reply, ...] = ()
    point: tuple[float, float] | None = None
    """Page pixels that the model pointed at; None where no point was asked for or given. The row leaves out this and the following
    fields where they are not set."""
    notes: Mapping[str, int] = {}
    """Counts of things that are no failure (`box_not_drawn`, `picture_resized`), sorted by name."""
    reachable: bool | None = None
    """A perfect model would get the element right under this grounding, whatever this one did; None: not known, or no
    more than the ranks say."""
    element_text: str = ""
    """The page's text of the element; empty for none."""
    failed_in: Stage | None = msgspec.field(default=None, name="stage")
    """See `StepError.stage`; None where no error says it, and where the failure's name says the same."""
    calls: tuple[Call, ...] = msgspec.field(default=(), name="calls.jsonl")
    """The calls of its answers, in order of asking. Kept in a file of their own, as they differ from run to run."""
    captions: Mapping[str, str] = msgspec.field(default_factory=dict, name="captions.jsonl")
    """Captions of pictures that were shown, by `backend_node_id`. Kept in a file of their own, which is not read again."""

    def __post_init__(self) -> None:
        if self.failed_in is not None and (self.failure is None or self.failed_in == self._stage_by_name):
            msgspec.structs.force_setattr(self, "failed_in", None)

    def __repr__(self) -> str:
        """One line: what a model said fills many."""
        action = f"{_short(self.operation.text, 24)!r} on {self.element_id or 'no element'}"
        problem = f", {self.failure}" if self.failure else ""
        key = f"{_short(self.annotation_id, 12)}_{_short(self.action_uid, 12)}"
        return f"<Prediction {key}: {action}, {len(self.groups)} groups, {self.usage.calls} calls{problem}>"

    @property
    def operation(self) -> Operation:
        """Returns the operation as it is compared: no value and an empty one are the same."""
        return Operation(self.op, "" if self.value == EMPTY_VALUE else self.value)

    @property
    def _stage_by_name(self) -> Stage:
        return "reply" if self.ran else "row" if self.failure in ROW_FAILURES else "call"

    @property
    def stage(self) -> Stage | None:
        """The stage of `failure`, which some files leave to its name; None without a failure."""
        return None if self.failure is None else self.failed_in or self._stage_by_name

    @property
    def is_data_fault(self) -> bool:
        """True where the step could not be asked, as its row or what else the run is given for it is at fault: asking again would
        give the same."""
        return not self.ran and self.stage == "row"

    @property
    def has_failed(self) -> bool:
        """True where the model gave no answer, so that asking again may."""
        return not self.ran and self.stage != "row"


@dataclass(frozen=True, slots=True)
class StepScore:
    """One step under one scoring protocol."""

    key: StepKey
    element: float | None
    """1.0 when the element is right, else 0.0; None where none was asked for, or where the step is left out."""
    operation_f1: float | None
    """0 to 1; None where the protocol leaves the step out."""
    success: float | None
    """1.0 when the element is right and operation_f1 is 1; None as for `element`."""
    outcome: str
    """`success`, the first cause of loss (`scoring.waterfall`), or `left_out`."""
    best_rank: int | None = None
    """Best rank of a positive from 0; None when there is none or ranks are not known."""
    failure: str | None = None
    point: float | None = None
    """1.0 when the point given lies in a positive's box, else 0.0; None where none was given."""
    reachable: bool | None = None
    """A perfect model could have got the element right; None where that is not known."""
    person_cause: str | None = None
    """The cause of loss that a person names (`scoring.human_causes`); None where nobody did."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure over a split."""

    macro: float
    """Mean over tasks of the task's mean."""
    micro: float
    """Mean over steps."""
    ci95: tuple[float, float]
    """Interval of the macro average."""
    se: float | None = None
    """Standard error of the macro average, clustered by task; None where it is not known."""
    n_effective: float | None = None
    """The number of independent steps that would have that standard error; None where it is not known."""
    method: str = "korn-graubard"
    """The method of `ci95`: `korn-graubard` (Clopper-Pearson's on the effective n), or `wilson` for a share of tasks."""
    micro_ci95: tuple[float, float] | None = None
    """Interval of the micro average, clustered by task; None where it is not known."""
    micro_se: float | None = None
    """Standard error of the micro average, clustered by task; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A run's results."""

    n_tasks: int
    n_steps: int
    element_accuracy: Metric | None
    """None, as is all that needs an element, where none was asked for."""
    operation_f1: Metric
    step_success_rate: Metric | None
    task_success_rate: Mapping[str, float | None]
    """Offline0: share of tasks without a failing step; offline1: with at most one."""
    recall_at_k: Mapping[str, float | None]
    """None where k is beyond what was ranked."""
    waterfall: Mapping[str, int]
    """Steps by first cause of loss."""
    usage: Usage
    failures: Mapping[str, int]
    """Steps by failure name."""
    reply_failures: Mapping[str, int]
    """Single groups' replies by failure name, in steps that continued without them."""
    ceiling: Metric | None = None
    """Share of steps whose element this grounding lets a perfect model get right; None where no step says so."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """`Prediction.notes` added up by name."""
    point_accuracy: Metric | None = None
    """Share of steps whose point lies in a positive's box; None where no step has a point."""

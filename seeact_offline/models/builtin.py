"""Models without a network: `builtin/lexical`, a baseline by word overlap, and `builtin/oracle`, the upper bound.

`LexicalModel` sees what any model sees, the messages' text, and answers in text: it exercises the same rendering and
the same parsing. `OracleModel` says what each strategy expects of one who knows the truth.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.records import Completion, Message, ModelSpecError, Operation, Request, Usage, letter

_FREE = Usage(calls=1)


def open_builtin(name: str) -> LexicalModel | OracleModel:
    """Raises ModelSpecError for a name that is not one of MODELS."""
    model = MODELS.get(name)
    if model is None:
        known = ", ".join(f"builtin/{known}" for known in MODELS)
        raise ModelSpecError("model", f"one of {known}", f"builtin/{name}")
    return model()


class OracleModel:
    """Says what one who knows the truth would: what is lost is lost before the model."""

    async def complete(self, request: Request) -> Completion:
        """Where nobody tells it the truth."""
        return Completion("There is nothing to be said here.", _FREE)

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        return Completion(ideal, _FREE) if ideal else await self.complete(request)

    async def aclose(self) -> None:
        """Nothing is held open."""


class LexicalModel:
    """Answers by the words that task and element share. Reads the messages only, any prompt pack's; deterministic.

    The task is what follows the first `... task ...:`, the history are lines `[role]  text -> OP: value`, the options
    the longest run of lines `A. ...`, `B. ...` in the last message, of which the last is "none of them", or the first where it
    begins with `None of`. A last message with a line `Task: ...` and options says it all: others are examples. It looks at no
    picture: asked for a mark it says NA, asked for a spot it names the picture's middle, asked for an element's type and
    text it guesses them from the task.
    """

    async def complete(self, request: Request) -> Completion:
        """The final lines when the last message asks for them, else one sentence."""
        page = Page.read(request.messages)
        asked = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
        if page.options:
            place, operation = choose(page)
            return Completion(_chosen(page, place, operation, asked), _FREE)
        if _ASKS_ATTRIBUTES.search(asked):
            return Completion(_described(page), _FREE)
        if _ASKS_FINAL.search(asked):
            return Completion(_final(_middle(asked), Operation("CLICK")), _FREE)
        left = ", ".join(sorted(page.wanted)) or "nothing in particular"
        return Completion(f"The next target should have to do with: {left}.", _FREE)

    async def aclose(self) -> None:
        """Nothing is held open."""


MODELS: dict[str, Callable[[], LexicalModel | OracleModel]] = {"lexical": LexicalModel, "oracle": OracleModel}


def _chosen(page: Page, place: int, operation: Operation, asked: str) -> str:
    """The choice in the lines that are asked for: final ones, or `Answer:` where the message speaks of that."""
    is_none = place == len(page.options) - 1
    named = letter(place) if not page.none_first else "A" if is_none else letter(place + 1)
    if not _ASKS_ANSWER.search(asked):
        return _final(named, operation)
    lines = [f"Answer: {named}.", f"Action: {operation.op}", f"Value: {' '.join(operation.value.splitlines())}"]
    return "\n".join(lines[:1] if is_none else lines[:2] if operation.op == "CLICK" else lines)


def _final(element: str, operation: Operation) -> str:
    """The final lines, as prompts ask for them; a value's line breaks would end its line."""
    value = " ".join(operation.value.splitlines()) or "None"
    return f"ELEMENT: {element}\nACTION: {operation.op}\nVALUE: {value}"


# --- without options ---

_ASKS_ANSWER = re.compile(r"\bAnswer:")
_ASKS_FINAL = re.compile(r"^[ \t]*ELEMENT:", re.MULTILINE)
_ASKS_ATTRIBUTES = re.compile(r"^[ \t]*ELEMENT TEXT:", re.MULTILINE)
_ASKS_POINT = re.compile(r"<(?:point|box)>|\bcoordinates\b", re.IGNORECASE)
_PER_MILLE = re.compile(r"\bthousandths\b|\b0 ?(?:to|-) ?1,?000\b", re.IGNORECASE)
_FRACTION = re.compile(r"\bfractions?\b|\b0 ?(?:to|-) ?1\b", re.IGNORECASE)
_SMALL_WORD = re.compile(r"^(?:(?:the|a|an|of|and)\b ?)+")
_PICTURE_SIZE = re.compile(r"(\d+)(?: pixels| px)? (?:wide and|by|x|×) (\d+)")


def _middle(asked: str) -> str:
    """The middle of the picture in the notation asked for; NA where no spot is asked for, or no size is given."""
    if not _ASKS_POINT.search(asked):
        return "NA"
    if _PER_MILLE.search(asked):
        return "<point>500 500</point>"
    if _FRACTION.search(asked):
        return "<point>0.5 0.5</point>"
    size = _PICTURE_SIZE.search(asked)
    return f"<point>{int(size[1]) // 2} {int(size[2]) // 2}</point>" if size else "NA"


def _described(page: Page) -> str:
    """A guess at an element: after typing the button that sends the form, else the first name that the task still has."""
    if page.history and page.history[-1].op == "TYPE":
        kind, text = "BUTTON", "Search"
    else:
        fresh = [span for span in _spans(page.task) if not words(span.text) <= page.used]
        name = _SMALL_WORD.sub("", fresh[0].text) if fresh else ""
        text = name or " ".join(_in_order(page.task, page.wanted))
        kind = "LINK"
    if not text:
        return "ELEMENT: None\nELEMENT TYPE: None\nELEMENT TEXT: None\nACTION: CLICK\nVALUE: None"
    return f"ELEMENT: {text}\nELEMENT TYPE: {kind}\nELEMENT TEXT: {text}\nACTION: CLICK\nVALUE: None"


def _in_order(task: str, wanted: frozenset[str]) -> list[str]:
    return [word for word in _WORD.findall(task) if _stem(word.lower()) in wanted][:3]


# --- reading the prompt ---

_TASK = re.compile(r"\btask\b[^:\n]{0,80}:[ \t]*(?P<rest>.*)(?:\n\s*(?P<below>\S.*))?", re.IGNORECASE)
_TASK_LINE = re.compile(r"^Task: ", re.MULTILINE)
_NONE_OF = re.compile(r"none of\b", re.IGNORECASE)
_DONE = re.compile(
    r"^[ \t]*(?:\d+[.)]|[-*•])?[ \t]*\[[^\]\n]*\](?P<text>.*?)->[ \t]*(?P<op>[A-Za-z]+)(?::(?P<value>.*))?$",
    re.MULTILINE,
)
_OPTION = re.compile(r"^\s*(?P<letter>[A-Z]{1,2})\.(?:\s+(?P<text>.*))?$")
_WORD = re.compile(r"[^\W_]+")
_TAG = re.compile(r"[<(]\s*/?(\w+)")
_MARKUP = re.compile(r"</?\w+|/?>|\bid=\d+")
_MARKUP_ROUND = re.compile(r"\(\w+|\)|\bid=\d+")
_STOP_WORDS = frozenset(
    _WORD.findall(
        """a all also an and any are as at be but by do for from get i if in into is it its me my near no not of on
        only or our out over see show so than that the their them then there these this to under up view was what when
        where which who will with you your button checkbox div false image img input link option radio select selected
        span src svg text true type"""
    )
)
_INTERACTIVE = frozenset(("a", "button", "input", "select", "textarea"))
_SUBMITTING = frozenset(("search", "submit", "go", "find", "apply", "continue", "next", "done", "enter"))
_NOT_TYPED = frozenset(("checkbox", "radio", "submit", "button", "reset", "image", "file"))


@dataclass(frozen=True, slots=True)
class Done:
    """One action of the history."""

    words: frozenset[str]
    """Of the element it went to."""
    op: str
    value: str


@dataclass(frozen=True)
class Option:
    """One element to choose from."""

    tag: str
    """Empty when the text shows none."""
    text: str
    """As offered."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of its attributes and text, without mark-up."""
        markup = _MARKUP_ROUND if self.text.startswith("(") else _MARKUP
        return words(markup.sub(" ", self.text))

    @cached_property
    def raw_words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.text.lower()))


@dataclass(frozen=True)
class Page:
    """What can be read from the messages."""

    task: str
    history: tuple[Done, ...]
    options: tuple[Option, ...]
    """The last is "none of them"; empty where nothing is to be chosen."""
    none_first: bool = False
    """Whether "none of them" was the first where they stood."""

    @classmethod
    def read(cls, messages: Sequence[Message]) -> Page:
        shown = [m.text for m in messages if m.role == "user"]
        told = [m.text for m in messages if m.role == "system"]
        options = _options(shown[-1] if shown else "")
        if options and _TASK_LINE.search(shown[-1]):
            shown = shown[-1:]
        none_first = bool(options) and _NONE_OF.match(options[0].text) is not None
        if none_first:
            options = (*options[1:], options[0])
        return cls(_task([*shown, *told]), tuple(_history(shown)), options, none_first)

    @cached_property
    def used(self) -> frozenset[str]:
        """The words of values that were typed or selected already."""
        return frozenset().union(*(words(done.value) for done in self.history))

    @cached_property
    def wanted(self) -> frozenset[str]:
        """The task's words that no earlier action has dealt with."""
        return words(self.task) - self.used - frozenset().union(*(done.words for done in self.history))


def words(text: str) -> frozenset[str]:
    """Lower-case stems without stop words. The stem only drops a plural s."""
    found = (word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS)
    return frozenset(_stem(word) for word in found)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _task(texts: Sequence[str]) -> str:
    found = next((match for text in texts if (match := _TASK.search(text))), None)
    if found is None:
        return ""
    return str(found["rest"] or found["below"] or "").strip()


def _history(texts: Sequence[str]) -> Iterator[Done]:
    for text in texts:
        for match in _DONE.finditer(text):
            yield Done(words(match["text"]), match["op"].upper(), (match["value"] or "").strip())


def _options(text: str) -> tuple[Option, ...]:
    """The longest run of lines lettered A, B, C and so on; empty lines do not end a run."""
    longest: list[Option] = []
    run: list[Option] = []
    for line in filter(str.strip, text.splitlines()):
        match = _OPTION.match(line)
        if match is None or match["letter"] != letter(len(run)):
            run = []
        if match is not None and match["letter"] == letter(len(run)):
            run.append(_option(match["text"] or ""))
        if len(run) > len(longest):
            longest = list(run)
    return tuple(longest)


def _option(text: str) -> Option:
    tag = _TAG.match(text)
    return Option(tag[1].lower() if tag else "", text.strip())


# --- choosing ---


def choose(page: Page) -> tuple[int, Operation]:
    """The place of the option with the highest score above 0, the first of equals, and what to do with it."""
    none = len(page.options) - 1
    elements = page.options[:none]
    weights = _weights(elements)
    scores = [score(page, option, weights) for option in elements]
    best = max(range(none), key=scores.__getitem__, default=none)
    if best == none or scores[best] <= 0:
        return none, Operation("CLICK")
    return best, act(page, page.options[best])


def _weights(options: Sequence[Option]) -> dict[str, float]:
    """Inverse document frequency over the options: what all of them say distinguishes none."""
    counts = Counter(word for option in options for word in option.words)
    return {word: math.log(1 + len(options) / count) for word, count in counts.items()}


def score(page: Page, option: Option, weights: dict[str, float]) -> float:
    """Shared words by weight, less for elements already dealt with, more for those that people operate."""
    # fsum: sets have no order, and a rounding error must not decide between equals
    shared = math.fsum(weights[word] for word in option.words & page.wanted)
    if _submits(page, option):
        shared += 2 * max(weights.values())
    if shared == 0:
        return 0.0
    dealt_with = any(_same(done, option) for done in page.history)
    focus = 1 / math.sqrt(len(option.words))
    return shared * focus * (0.2 if dealt_with else 1.0) * (3.0 if option.tag in _INTERACTIVE else 1.0)


def _submits(page: Page, option: Option) -> bool:
    """After typing, people press the button that sends the form; it says little else."""
    pressed = option.tag in ("button", "a") or "submit" in option.raw_words
    typed = bool(page.history) and page.history[-1].op == "TYPE"
    return typed and pressed and bool(option.words) and option.words <= _SUBMITTING


def _same(done: Done, option: Option) -> bool:
    return bool(done.words) and done.words <= option.words


def act(page: Page, option: Option) -> Operation:
    """What people do with such an element; a click where a value would be needed and the task names none."""
    op = _operation(option)
    value = "" if op == "CLICK" else _value(page, option)
    return Operation(op, value) if value else Operation("CLICK")


def _operation(option: Option) -> str:
    if option.tag == "select" or option.raw_words & {"combobox", "listbox"}:
        return "SELECT"
    typed = option.tag == "textarea" or (option.tag == "input" and not option.raw_words & _NOT_TYPED)
    return "TYPE" if typed else "CLICK"


# --- values ---

_NUMBER = r"\$?\d[\d,.:/-]*\d|\$?\d"
_NAME = r"[A-Z][\w'&-]*"
_SPAN = re.compile(
    rf"\"(?P<double>[^\"]+)\"|(?<!\w)'(?P<single>[^']+)'(?!\w)|“(?P<curly>[^”]+)”"
    rf"|(?P<plain>(?:{_NAME}|{_NUMBER})(?:,? (?:of |and |the )?(?:{_NAME}|{_NUMBER}))*)"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the task that may be a value."""

    text: str
    start: int
    end: int
    quoted: bool


def _value(page: Page, option: Option) -> str:
    """A quoted text, else the name or number that stands nearest to a word of the option; those not yet used first."""
    spans = list(_spans(page.task))
    fresh = [span for span in spans if not words(span.text) <= page.used]
    if not fresh:
        return max((span.text for span in spans), key=len, default="")
    places = [match.start() for match in _WORD.finditer(page.task.lower()) if _stem(match[0]) in option.words]
    return min(fresh, key=lambda span: (not span.quoted, _distance(span, places), -len(span.text))).text


def _spans(task: str) -> Iterator[Span]:
    """Quoted texts, runs of capitalised words and numbers. The first word is capitalised for another reason."""
    for match in _SPAN.finditer(task):
        text, start = match[match.lastgroup or 0], match.start()
        if start == 0 and match.lastgroup == "plain" and text[0].isalpha():
            first, _, text = text.partition(" ")
            start = len(first) + 1
        if text:
            yield Span(text, start, match.end(), match.lastgroup != "plain")


def _distance(span: Span, places: Sequence[int]) -> int:
    """Characters between the span and the nearest of the places; 0 inside of it."""
    return min((max(span.start - place, place - span.end, 0) for place in places), default=0)


def _open(name: str, options: ModelOptions) -> LexicalModel | OracleModel:
    return open_builtin(name)


def _identity(name: str, options: ModelOptions) -> dict[str, str]:
    return {"model": f"builtin/{name}"}


PROVIDER = Provider(usage=tuple(MODELS), open=_open, identity=_identity, is_free=True)

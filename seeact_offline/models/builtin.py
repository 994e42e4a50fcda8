"""Models without a network: `builtin/lexical`, a baseline by word overlap, and `builtin/oracle`, the upper bound.

`LexicalModel` sees the messages' text, as any model does, and answers in text: it exercises the same rendering and the
same parsing. `OracleModel` repeats the ideal answer that each strategy names.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.records import Completion, Message, Model, ModelSpecError, Operation, Request, Usage, letter

_FREE = Usage(calls=1)


def open_builtin(name: str, options: ModelOptions | None = None) -> LexicalModel | OracleModel:
    """The model of this name, which uses no options. Raises ModelSpecError for a name that is not one of MODELS."""
    if name not in MODELS:
        raise ModelSpecError("model", f"one of {', '.join(f'builtin/{model}' for model in MODELS)}", f"builtin/{name}")
    return MODELS[name]()


class OracleModel(Model):
    """Gives the ideal answer: what is lost with it is lost before the model."""

    takes_ideal = True

    async def complete(self, request: Request) -> Completion:
        """The answer to a question for which there is no ideal one."""
        return Completion("There is nothing to be said here.", _FREE)

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        return Completion(ideal, _FREE) if ideal else await self.complete(request)


class LexicalModel(Model):
    """Answers by the words that task and element share. Reads the messages only, any prompt pack's; deterministic.

    The task is what follows the first `... task ...:`, the history are lines `[role]  text -> OP: value`, the options
    the longest run of lines `A. ...`, `B. ...` in the last message, of which the last is "none of them", or the first
    where it begins with `None of`. Where the system message has actions on labels (`click [ID]`), the options are the
    last message's lines `[12] ...` or `[12]: ...`, and it scrolls where none of them will do. A last message with a
    line `Task: ...` and options or such lines is all that counts: others are examples. It looks at no picture: asked
    for a mark it says NA, asked for a spot it names the picture's middle, asked for an element's type and text it
    guesses them from the task.
    """

    async def complete(self, request: Request) -> Completion:
        """The lines that the last message asks for (final ones, or `Answer:`), else one sentence."""
        prompt = Prompt.read(request.messages)
        asked = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
        rules = next((m.text for m in request.messages if m.role == "system"), "")
        if prompt.none is not None:
            place, operation = choose(prompt) or (None, Operation("CLICK"))
            label = letter(prompt.none if place is None else place + (prompt.none == 0))
            if _ASKS_ANSWER.search(asked):
                lines = f"Answer: {label}.", f"Action: {operation.op}", f"Value: {operation.value}"
                text = "\n".join(lines[: 1 if place is None else 2 if operation.op == "CLICK" else 3])
            else:
                text = _final(label, operation)
        elif _ASKS_LABEL.search(rules):
            text = _labelled(prompt, asked, is_fenced="```" in rules)
        elif _ASKS_ATTRIBUTES.search(asked):
            text = _described(prompt)
        elif _ASKS_FINAL.search(asked):
            text = _final(_middle(asked), Operation("CLICK"))
        else:
            text = f"The next target should have to do with: {', '.join(sorted(prompt.wanted)) or 'nothing in particular'}."
        return Completion(text, _FREE)


MODELS: dict[str, Callable[[], LexicalModel | OracleModel]] = {"lexical": LexicalModel, "oracle": OracleModel}


def _final(element: str, operation: Operation) -> str:
    """The final lines, as prompts ask for them."""
    return f"ELEMENT: {element}\nACTION: {operation.op}\nVALUE: {operation.value or 'None'}"


# --- labelled lines ---

_ASKS_LABEL = re.compile(r"^[^\w\n]*click \[\w+\]", re.IGNORECASE | re.MULTILINE)
_LABELLED = re.compile(r"^[^\S\n]*\[(\d+)\]:?[ \t]+(.*)$", re.MULTILINE)
_KIND = re.compile(r"[\[<]?(\w+)")
_ACTION = re.compile(r"\baction: (\w+) \[\d+\]", re.IGNORECASE)
_WHERE = re.compile(r" where \[\d+\] is(?= )", re.IGNORECASE)
_TAGS = {"link": "a", "textbox": "input", "searchbox": "input", "combobox": "select", "listbox": "select"}
"""Roles of a tree's lines, as the tags that they are."""


def _labelled(prompt: Prompt, asked: str, is_fenced: bool) -> str:
    """An action on the best of the labelled lines, between backticks or behind `Action:`; a scroll where none is any
    good."""
    lines = _LABELLED.findall(asked.replace(";\t", "\n"))
    kinds = [match[1].lower() if (match := _KIND.match(text)) else "" for _, text in lines]
    options = tuple(Option(_TAGS.get(kind, kind), text) for kind, (_, text) in zip(kinds, lines, strict=True))
    history = [*prompt.history]
    for line in asked.split("\n"):
        # such as `Previous action: click [3] where [3] is Home`
        *before, element = _WHERE.split(line)
        if actions := [action for part in before for action in _ACTION.findall(part)]:
            history.append(PastAction(words(element), actions[-1].upper(), ""))
    place, operation = choose(replace(prompt, options=options, history=tuple(history))) or (None, Operation("CLICK"))
    if place is None:
        action = "scroll [down]" if is_fenced else "Scroll [WINDOW]; [down]"
    elif operation.op == "CLICK":
        action = f"{'click' if is_fenced else 'Click'} [{lines[place][0]}]"
    else:
        label, value = lines[place][0], operation.value
        action = f"type [{label}] [{value}]" if is_fenced else f"Type [{label}]; [{value}]"
    return f"```{action}```" if is_fenced else f"Thought: It shares words with the task.\nAction: {action}"


# --- without options ---

_ASKS_ANSWER = re.compile(r"\bAnswer:")
_ASKS_FINAL = re.compile(r"^[ \t]*ELEMENT:", re.MULTILINE)
_ASKS_ATTRIBUTES = re.compile(r"^[ \t]*ELEMENT TEXT:", re.MULTILINE)
_ASKS_POINT = re.compile(r"<(?:point|box)>|\bcoordinates\b", re.IGNORECASE)
_PER_MILLE = re.compile(r"\bthousandths\b|\b0 ?(?:to|-) ?1,?000\b", re.IGNORECASE)
_FRACTION = re.compile(r"\bfractions?\b|\b0 ?(?:to|-) ?1\b", re.IGNORECASE)
_SMALL_WORD = re.compile(r"^(?:(?:the|a|an|of|and)\b ?)+")
_PICTURE_SIZE = re.compile(r"(?<!\d)(\d{1,9})(?: pixels| px)? (?:wide and|by|x|×) (\d{1,9})(?!\d)")


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


def _described(prompt: Prompt) -> str:
    """A guess at an element: after typing the button that sends the form, else the first name that the task still
    has."""
    if prompt.has_typed:
        kind, text = "BUTTON", "Search"
    else:
        name = next((span.text for span in _spans(prompt.task) if not words(span.text) <= prompt.used), "")
        others = [word for word in _WORD.findall(prompt.task) if _stem(word.lower()) in prompt.wanted]
        text = _SMALL_WORD.sub("", name) or " ".join(others[:3])
        kind, text = ("LINK", text) if text else ("None", "None")
    return f"ELEMENT: {text}\nELEMENT TYPE: {kind}\nELEMENT TEXT: {text}\nACTION: CLICK\nVALUE: None"


# --- reading the prompt ---

_TASK = re.compile(r"\btask\b[^:\n]{0,80}:[ \t]*(?P<rest>.*)(?:\n\s*(?P<below>\S.*))?", re.IGNORECASE)
_TASK_LINE = re.compile(r"^Task: ", re.MULTILINE)
_NONE_OF = re.compile(r"none of\b", re.IGNORECASE)
_DONE = re.compile(
    r"^[ \t]*(?:(?:\d+[.)]|[-*•])[ \t]*)?\[[^\]\n]*\](?P<text>.*?)->[ \t]*(?P<op>[A-Za-z]+)(?::(?P<value>.*))?$",
    re.MULTILINE,
)
_OPTION = re.compile(r"^\s*(?P<letter>[A-Z]{1,2})\.(?:\s+(?P<text>.*))?$")
_WORD = re.compile(r"[^\W_]+")
_TAG = re.compile(r"[<(]\s*/?(\w+)")
_MARKUP = re.compile(r"</?\w+|/?>|\bid=\d+")
_MARKUP_ROUND = re.compile(r"\(\w+|\)|\bid=\d+")
_STOP_WORDS = frozenset(
    """a all also an and any are as at be but by do for from get i if in into is it its me my near no not of on only or our
    out over see show so than that the their them then there these this to under up view was what when where which who
    will with you your button checkbox div false image img input link option radio select selected span src svg text true
    type""".split()
)
_INTERACTIVE = frozenset(("a", "button", "input", "select", "textarea"))
_SUBMITTING = frozenset(("search", "submit", "go", "find", "apply", "continue", "next", "done", "enter"))
_NOT_TYPED = frozenset(("checkbox", "radio", "submit", "button", "reset", "image", "file"))


class PastAction(NamedTuple):
    """One action of the history."""

    words: frozenset[str]
    """The words of the element that it went to."""
    op: str
    value: str


@dataclass(frozen=True)
class Option:
    """One element to choose from."""

    tag: str
    """Empty when the text shows none."""
    text: str
    """The option as offered."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of its attributes and text, without mark-up."""
        markup = _MARKUP_ROUND if self.text.startswith("(") else _MARKUP
        return words(markup.sub(" ", self.text))

    @cached_property
    def raw_words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.text.lower()))


@dataclass(frozen=True)
class Prompt:
    """The parts of a prompt, as far as they can be read from its messages."""

    task: str
    history: tuple[PastAction, ...]
    options: tuple[Option, ...]
    """Without "none of them"."""
    none: int | None
    """The place of "none of them" among the options as offered, the first or the last; None where nothing is to be
    chosen."""

    @classmethod
    def read(cls, messages: Sequence[Message]) -> Prompt:
        shown = [m.text for m in messages if m.role == "user"]
        rules = [m.text for m in messages if m.role == "system"]
        options = _options(shown[-1] if shown else "")
        # the others are examples, each with a task of its own
        if shown and _TASK_LINE.search(shown[-1]) and (options or _LABELLED.search(shown[-1])):
            shown = shown[-1:]
        none = len(options) - 1 if options else None
        if options and _NONE_OF.match(options[0].text):
            none = 0
        task = next((match for text in [*shown, *rules] if (match := _TASK.search(text))), None)
        history = tuple(
            PastAction(words(match["text"]), match["op"].upper(), (match["value"] or "").strip())
            for text in shown
            for match in _DONE.finditer(text)
        )
        elements = tuple(option for place, option in enumerate(options) if place != none)
        return cls("" if task is None else str(task["rest"] or task["below"] or "").strip(), history, elements, none)

    @property
    def has_typed(self) -> bool:
        """The last action was typing: people press the button that sends the form next."""
        return bool(self.history) and self.history[-1].op == "TYPE"

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
    return frozenset(_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _options(text: str) -> tuple[Option, ...]:
    """The longest run of lines lettered A, B, C and so on; empty lines do not end a run."""
    longest: list[Option] = []
    run: list[Option] = []
    for line in filter(str.strip, text.splitlines()):
        match = _OPTION.match(line)
        if match is None or match["letter"] != letter(len(run)):
            run = []
        if match is not None and match["letter"] == letter(len(run)):
            offered = match["text"] or ""
            tag = _TAG.match(offered)
            run.append(Option(tag[1].lower() if tag else "", offered.strip()))
        longest = max(longest, run, key=len)
    return tuple(longest)


# --- choosing ---


def choose(prompt: Prompt) -> tuple[int, Operation] | None:
    """The place of the option with the highest score above 0, the first of equals, and what to do with it; None: none
    has one."""
    # inverse document frequency over the options: what all of them say distinguishes none
    counts = Counter(word for option in prompt.options for word in option.words)
    weights = {word: math.log(1 + len(prompt.options) / count) for word, count in counts.items()}
    scores = [score(prompt, option, weights) for option in prompt.options]
    best = max(scores, default=0.0)
    return (scores.index(best), act(prompt, prompt.options[scores.index(best)])) if best > 0 else None


def score(prompt: Prompt, option: Option, weights: dict[str, float]) -> float:
    """Shared words by weight, less for elements already dealt with, more for those that people operate."""
    # fsum: sets have no order, and a rounding error must not decide between equals
    shared = math.fsum(weights[word] for word in option.words & prompt.wanted)
    is_pressed = option.tag in ("button", "a") or "submit" in option.raw_words
    # such a button says little else
    if prompt.has_typed and is_pressed and option.words and option.words <= _SUBMITTING:
        shared += 2 * max(weights.values())
    if shared == 0:
        return 0.0
    dealt_with = any(done.words and done.words <= option.words for done in prompt.history)
    focus = 1 / math.sqrt(len(option.words))
    return shared * focus * (0.2 if dealt_with else 1.0) * (3.0 if option.tag in _INTERACTIVE else 1.0)


def act(prompt: Prompt, option: Option) -> Operation:
    """The operation that people carry out on such an element; a click where a value would be needed and the task names
    none."""
    is_typed = option.tag == "textarea" or (option.tag == "input" and not option.raw_words & _NOT_TYPED)
    is_list = option.tag == "select" or option.raw_words & {"combobox", "listbox"}
    value = _value(prompt, option) if is_list or is_typed else ""
    # a line break would end the line of the value
    return Operation("SELECT" if is_list else "TYPE", " ".join(value.splitlines())) if value else Operation("CLICK")


# --- values ---

_NUMBER = r"\$?\d[\d,.:/-]*\d|\$?\d"
_NAME = r"[A-Z][\w'&-]*"
_SPAN = re.compile(
    rf"\"(?P<double>[^\"]+)\"|(?<!\w)'(?P<single>[^']+)'(?!\w)|“(?P<curly>[^“”]+)”"
    rf"|(?P<plain>(?:{_NAME}|{_NUMBER})(?:,? (?:of |and |the )?(?:{_NAME}|{_NUMBER}))*)"
)


class Span(NamedTuple):
    """A part of the task that may be a value."""

    text: str
    start: int
    end: int
    quoted: bool


def _value(prompt: Prompt, option: Option) -> str:
    """A quoted text, else the name or number that stands nearest to a word of the option; those not yet used first."""
    spans = list(_spans(prompt.task))
    fresh = [span for span in spans if not words(span.text) <= prompt.used]
    if not fresh:
        return max((span.text for span in spans), key=len, default="")
    places = [match.start() for match in _WORD.finditer(prompt.task.lower()) if _stem(match[0]) in option.words]

    def distance(span: Span) -> int:
        """Characters between the span and the nearest of the places; 0 inside of it."""
        return min((max(span.start - place, place - span.end, 0) for place in places), default=0)

    return min(fresh, key=lambda span: (not span.quoted, distance(span), -len(span.text))).text


def _spans(task: str) -> Iterator[Span]:
    """Quoted texts, runs of capitalised words and numbers. The first word is capitalised for another reason."""
    for match in _SPAN.finditer(task):
        text, start = match[match.lastgroup or 0], match.start()
        if start == 0 and match.lastgroup == "plain" and text[0].isalpha():
            first, _, text = text.partition(" ")
            start = len(first) + 1
        if text:
            yield Span(text, start, match.end(), match.lastgroup != "plain")


PROVIDER = Provider(
    usage=tuple(MODELS), open=open_builtin, identity=lambda name, options: {"model": f"builtin/{name}"}, is_free=True
)

"""Models without a network: `builtin/lexical`, a baseline by word overlap, and `builtin/oracle`, the upper bound.

`LexicalModel` sees the messages' text, as any model does, and answers in text: it exercises the same rendering and the same parsing.
`OracleModel` repeats the ideal answer that each strategy names.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from seeact_offline.models.provider import ModelOptions, Provider
from seeact_offline.records import Completion, Model, ModelSpecError, Operation, Request, Usage, letter

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


_ACTS_ON_LABELS = re.compile(r"^[^\w\n]*click \[\w+\]", re.IGNORECASE | re.MULTILINE)
_LABELLED = re.compile(r"^[^\S\n]*\[(\d+)\]:?[ \t]+(.*)$", re.MULTILINE)
_LETTERED = re.compile(r"\s*(?P<letter>[A-Z]{1,2})\.(?:\s+(?P<text>.*))?")
_NONE_OF = re.compile(r"none of\b", re.IGNORECASE)
_TASK = re.compile(r"\btask\b[^:\n]{0,80}:[ \t]*(?P<rest>.*)(?:\n\s*(?P<below>\S.*))?", re.IGNORECASE)
_DONE = re.compile(
    r"^[ \t]*(?:(?:\d+[.)]|[-*•])[ \t]*)?\[[^\]\n]*\](?P<text>.*?)->[ \t]*(?P<op>[A-Za-z]+)(?::(?P<value>.*))?$",
    re.MULTILINE,
)


class LexicalModel(Model):
    """Answers by the words that task and element share. Reads the messages only, any prompt pack's; deterministic.

    The task is what follows the first `... task ...:`, the history are lines `[role]  text -> OP: value`. The options are the longest run
    of lines `A. ...`, `B. ...` in the last message, of which the last is "none of them", or the first where it begins with `None of`;
    or, where the system message has actions on labels (`click [ID]`), its lines `[12] ...`. A last message with a line `Task: ...` is all
    that counts: others are examples. It looks at no picture: asked for a mark or a spot it says NA, asked for an element's type and
    text it guesses them from the task.
    """

    async def complete(self, request: Request) -> Completion:
        """The lines that the last message asks for (final ones, or `Answer:`), an action on a label, or else one sentence."""
        shown = [message.text for message in request.messages if message.role == "user"]
        rules = [message.text for message in request.messages if message.role == "system"]
        asked = shown[-1] if shown else ""
        options = _lettered(asked)
        task = _read_task(shown[-1:] if re.search("^Task: ", asked, re.MULTILINE) else shown, rules)
        if options:
            none = options[0] if _NONE_OF.match(options[0].text) else options[-1]
            choice = choose(task, [option for option in options if option is not none])
            text = _final(none.label if choice is None else choice[0].label, choice[1] if choice else _CLICK)
            if re.search(r"\bAnswer:", asked):
                label, action, value = (line.partition(": ")[2] for line in text.split("\n"))
                lines = f"Answer: {label}.", f"Action: {action}", f"Value: {value}"
                # "none of them" has no action, and a click no value
                text = "\n".join(lines[: 1 if choice is None else 2 if choice[1] == _CLICK else 3])
        elif rules and _ACTS_ON_LABELS.search(rules[0]):
            text = _act_on_label(task, asked, is_fenced="```" in rules[0])
        elif re.search(r"^[ \t]*ELEMENT TEXT:", asked, re.MULTILINE):
            text = _describe(task)
        elif re.search(r"^[ \t]*ELEMENT:", asked, re.MULTILINE):
            text = _final("NA", _CLICK)
        else:
            text = (
                f"The next target should have to do with: {', '.join(sorted(task.wanted)) or 'nothing in particular'}."
            )
        return Completion(text, _FREE)


MODELS: dict[str, Callable[[], LexicalModel | OracleModel]] = {"lexical": LexicalModel, "oracle": OracleModel}
PROVIDER = Provider(
    usage=tuple(MODELS), open=open_builtin, identity=lambda name, options: {"model": f"builtin/{name}"}, is_free=True
)
_CLICK = Operation("CLICK")


def _final(element: str, operation: Operation) -> str:
    """The final lines, as prompts ask for them."""
    return f"ELEMENT: {element}\nACTION: {operation.op}\nVALUE: {operation.value or 'None'}"


def _act_on_label(task: Task, asked: str, is_fenced: bool) -> str:
    """An action on the best of the labelled lines, between backticks or behind `Action:`; a scroll where none is any good."""
    options = [Option(label, text) for label, text in _LABELLED.findall(asked.replace(";\t", "\n"))]
    choice = choose(task, options)
    if choice is None:
        action = ["scroll", *([] if is_fenced else ["[WINDOW]"]), "[down]"]
    else:
        value = [] if choice[1] == _CLICK else [f"[{choice[1].value}]"]
        action = ["type" if value else "click", f"[{choice[0].label}]", *value]
    if is_fenced:
        return f"```{' '.join(action)}```"
    return f"Thought: It shares words with the task.\nAction: {action[0].capitalize()} {'; '.join(action[1:])}"


def _describe(task: Task) -> str:
    """A guess at an element: after typing the button that sends the form, else the first name that the task still has."""
    kind, text = "BUTTON", "Search"
    if not task.has_typed:
        name = next((span for span, _, _, _ in _spans(task.text) if not words(span) <= task.used), "")
        others = [word for word in _WORD.findall(task.text) if _stem(word.lower()) in task.wanted]
        kind, text = "LINK", re.sub(r"^(?:(?:the|a|an|of|and)\b ?)+", "", name) or " ".join(others[:3])
    kind, text = (kind, text) if text else ("None", "None")
    return f"ELEMENT: {text}\nELEMENT TYPE: {kind}\nELEMENT TEXT: {text}\nACTION: CLICK\nVALUE: None"


# --- reading the prompt ---

_WORD = re.compile(r"[^\W_]+")
_TAG = re.compile(r"[<(\[]?\s*/?(\w+)")
_ROLES = {"link": "a", "textbox": "input", "searchbox": "input", "combobox": "select", "listbox": "select"}
"""Roles of a tree's lines, as the tags that they are."""
_STOP_WORDS = frozenset(
    """a all also an and any are as at be but by do for from get i if in into is it its me my near no not of on only or our
    out over see show so than that the their them then there these this to under up view was what when where which who
    will with you your button checkbox div false image img input link option radio select selected span src svg text true
    type""".split()
)
_INTERACTIVE = frozenset(("a", "button", "input", "select", "textarea"))
_SUBMITTING = frozenset(("search", "submit", "go", "find", "apply", "continue", "next", "done", "enter"))
_NOT_TYPED = frozenset(("checkbox", "radio", "submit", "button", "reset", "image", "file"))


@dataclass(frozen=True)
class Option:
    """One element to choose from."""

    label: str
    text: str
    """The option as offered."""

    @cached_property
    def tag(self) -> str:
        tag = match[1].lower() if (match := _TAG.match(self.text)) else ""
        return _ROLES.get(tag, tag)

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of its attributes and text, without mark-up."""
        markup = r"\(\w+|\)|\bid=\d+" if self.text.startswith("(") else r"</?\w+|/?>|\bid=\d+"
        return words(re.sub(markup, " ", self.text))

    @cached_property
    def raw_words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.text.lower()))


@dataclass(frozen=True)
class Task:
    """The task of a prompt, and what was done for it."""

    text: str
    history: tuple[tuple[frozenset[str], Operation], ...]
    """Words of the element that each action went to, and the action."""

    @property
    def has_typed(self) -> bool:
        """The last action was typing: people press the button that sends the form next."""
        return bool(self.history) and self.history[-1][1].op == "TYPE"

    @cached_property
    def used(self) -> frozenset[str]:
        """The words of values that were typed or selected already."""
        return frozenset().union(*(words(done.value) for _, done in self.history))

    @cached_property
    def wanted(self) -> frozenset[str]:
        """The task's words that no earlier action has dealt with."""
        return words(self.text) - self.used - frozenset().union(*(element for element, _ in self.history))


def _read_task(shown: Sequence[str], rules: Sequence[str]) -> Task:
    task = next((match for text in [*shown, *rules] if (match := _TASK.search(text))), None)
    history = tuple(
        (words(match["text"]), Operation(match["op"].upper(), (match["value"] or "").strip()))
        for text in shown
        for match in _DONE.finditer(text)
    )
    return Task("" if task is None else str(task["rest"] or task["below"] or "").strip(), history)


def words(text: str) -> frozenset[str]:
    """Lower-case stems without stop words. The stem only drops a plural s."""
    return frozenset(_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _lettered(text: str) -> list[Option]:
    """The longest run of lines lettered A, B, C and so on; empty lines do not end a run."""
    longest: list[Option] = []
    run: list[Option] = []
    for line in filter(str.strip, text.splitlines()):
        match = _LETTERED.fullmatch(line)
        if match is None or match["letter"] != letter(len(run)):
            run = []
        if match is not None and match["letter"] == letter(len(run)):
            run.append(Option(match["letter"], (match["text"] or "").strip()))
        longest = max(longest, run, key=len)
    return longest


# --- choosing ---


def choose(task: Task, options: Sequence[Option]) -> tuple[Option, Operation] | None:
    """The option with the highest score above 0, the first of equals, and what to do with it; None: none has one."""
    # inverse document frequency over the options: what all of them say distinguishes none
    counts = Counter(word for option in options for word in option.words)
    weights = {word: math.log(1 + len(options) / count) for word, count in counts.items()}
    scores = [score(task, option, weights) for option in options]
    if max(scores, default=0.0) <= 0:
        return None
    best = options[scores.index(max(scores))]
    return best, act(task, best)


def score(task: Task, option: Option, weights: dict[str, float]) -> float:
    """Shared words by weight, less for elements already dealt with, more for those that people operate."""
    # fsum: sets have no order, and a rounding error must not decide between equals
    shared = math.fsum(weights[word] for word in option.words & task.wanted)
    is_pressed = option.tag in ("button", "a") or "submit" in option.raw_words
    # such a button says little else
    if task.has_typed and is_pressed and option.words and option.words <= _SUBMITTING:
        shared += 2 * max(weights.values())
    if shared == 0:
        return 0.0
    dealt_with = any(element and element <= option.words for element, _ in task.history)
    focus = 1 / math.sqrt(len(option.words))
    return shared * focus * (0.2 if dealt_with else 1.0) * (3.0 if option.tag in _INTERACTIVE else 1.0)


def act(task: Task, option: Option) -> Operation:
    """The operation that people carry out on such an element; a click where a value would be needed and the task names none."""
    is_typed = option.tag == "textarea" or (option.tag == "input" and not option.raw_words & _NOT_TYPED)
    is_list = option.tag == "select" or option.raw_words & {"combobox", "listbox"}
    value = _value(task, option) if is_list or is_typed else ""
    # a line break would end the line of the value
    return Operation("SELECT" if is_list else "TYPE", " ".join(value.splitlines())) if value else _CLICK


_NUMBER = r"\$?\d[\d,.:/-]*\d|\$?\d"
_NAME = r"[A-Z][\w'&-]*"
_SPAN = re.compile(
    rf"\"(?P<double>[^\"]+)\"|(?<!\w)'(?P<single>[^']+)'(?!\w)|“(?P<curly>[^“”]+)”"
    rf"|(?P<plain>(?:{_NAME}|{_NUMBER})(?:,? (?:of |and |the )?(?:{_NAME}|{_NUMBER}))*)"
)


def _value(task: Task, option: Option) -> str:
    """A quoted text, else the name or number that stands nearest to a word of the option; those not yet used first."""
    spans = list(_spans(task.text))
    fresh = [span for span in spans if not words(span[0]) <= task.used]
    if not fresh:
        return max((span[0] for span in spans), key=len, default="")
    places = [match.start() for match in _WORD.finditer(task.text.lower()) if _stem(match[0]) in option.words]

    def order(span: tuple[str, int, int, bool]) -> tuple[bool, int, int]:
        text, start, end, is_quoted = span
        distance = min((max(start - place, place - end, 0) for place in places), default=0)
        return not is_quoted, distance, -len(text)

    return min(fresh, key=order)[0]


def _spans(task: str) -> Iterator[tuple[str, int, int, bool]]:
    """Quoted texts, runs of capitalised words and numbers: the text, its start and end, and whether it is quoted."""
    for match in _SPAN.finditer(task):
        text, start, is_plain = match[match.lastgroup or 0], match.start(), match.lastgroup == "plain"
        # the first word is capitalised for another reason
        if start == 0 and is_plain and text[0].isalpha():
            first, _, text = text.partition(" ")
            start = len(first) + 1
        if text:
            yield text, start, match.end(), not is_plain

"""The action grammars of WebVoyager, OpenWebVoyager and VisualWebArena.

A label is the place of an act. A scroll has its direction as text, and no place where it moves the whole window. Typed
text ends in a line feed where VisualWebArena presses Enter behind it; WebVoyager always does, and does not say so. Its
ANSWER and VisualWebArena's `stop` are answers, though without a word.

Strict readers follow the released code, with what it misreads by accident; the others read that, too, as it was meant.

Source: MinorJerry/WebVoyager 5a78967: run.py, utils.py; MinorJerry/OpenWebVoyager e907cef: WebVoyager/utils.py;
web-arena-x/visualwebarena 89f5af2: browser_env/actions.py, agent/prompts/prompt_constructor.py.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from seeact_offline.agents.acts import CLICKS, Act, Kind, MissingPart, Unreadable
from seeact_offline.replies.calls import closed


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language of actions.

    >>> act = GRAMMARS["webvoyager"].read("Thought: I search. Action: Type [3]; [Vienna]")[0]
    >>> act.kind, act.place, act.text
    ('type', '3', 'Vienna')
    """

    name: str
    read: Callable[[str], list[Act]]
    """Reads a reply. Raises MissingPart where it lacks the words around an action, else Unreadable."""
    read_strictly: Callable[[str], list[Act]]
    """Reads a reply as the released code does. Raises like `read`."""
    write: Callable[[Act], str]
    """The action alone. Raises ValueError for an act that the language has no words for."""
    form: str
    """A reply, with `{thought}` and `{action}`."""

    def reply(self, act: Act, thought: str = "") -> str:
        """A whole reply. Raises ValueError like `write`."""
        return self.form.format(thought=thought, action=self.write(act))


_ONE_LABEL = r"(?P<label>\d++)(?!\w|\.\d|\s*[,;&/]\s*\d++\s*[\])])"
"""Digits that stand for themselves: no part of a word, of a decimal number or of a list in brackets."""
_NO_MORE = r"(?!\s*[,;&/]\s*\d)"
"""Keeps another number from following a label where nothing is typed."""

# --- WebVoyager and OpenWebVoyager ---

_LABEL = r"\[?(?P<label>\d+)\]?"
_CONTENT = r"\[?(?P<text>.[^\]]*)"
_STRICT_MARKS = re.compile("(?:Thought|Action|Observation):")
_ACTION_MARK = re.compile(r"action[*_]*\s*:[*_]*", re.IGNORECASE)
_THOUGHT_MARK = re.compile(r"thought[*_]*\s*:[*_]*", re.IGNORECASE)
_AT_MARK = re.compile(r"[\s*#_]*+(?:thought|action|observation)\b[*_]*+\s*+:", re.IGNORECASE)
_LINE_MARK = re.compile(rf"(?<![\s*#_])(?=(?P<before>[\s*#_]*+)){_AT_MARK.pattern}", re.IGNORECASE)
"""A mark with all blanks and signs before it, which hold a line feed where the mark begins a line."""
_LONGEST_NUMBER = 4_000
"""Digits of a label; Python refuses to read much longer ones."""


@dataclass(frozen=True, slots=True)
class _Dialect:
    home: Literal["Google", "Restart"]
    """The verb that leads to the search engine."""
    answer_marks: str
    """Characters between ANSWER and its text."""
    reads_numbers: bool = True
    """True if `03` is 3; text-only WebVoyager compares labels as they are written."""

    @property
    def strict(self) -> Sequence[tuple[Kind, str]]:
        """Patterns in the order in which they are looked for, anywhere in the text."""
        return (
            ("click", f"Click {_LABEL}"),
            ("type", f"Type {_LABEL}[; ]+{_CONTENT}"),
            ("scroll", r"Scroll \[?(?P<label>\d+|WINDOW)\]?[; ]+\[?(?P<text>up|down)"),
            ("wait", "^Wait"),
            ("back", "^GoBack"),
            ("goto", f"^{self.home}"),
            ("answer", f"ANSWER[{self.answer_marks}]+{_CONTENT}"),
        )

    @property
    def tolerant(self) -> Sequence[tuple[Kind, str]]:
        """Patterns of which one begins the text."""
        label = rf"[\s:;,]*+\[?+\s*+{_ONE_LABEL}"
        return (
            ("click", rf"click(?:\s+on)?{label}{_NO_MORE}"),
            ("type", rf"type(?:\s+in(?:to)?)?{label}\s*\]?[\s:;,]*(?P<content>.*)"),
            ("scroll", r"scroll[\s:]*+\[?+\s*+(?P<label>\d++|window)?+\s*+\]?+[\s:;,]*+\[?+\s*+(?P<text>up|down)"),
            ("wait", r"wait\b"),
            ("back", r"go[\s_]*back\b"),
            ("goto", rf"{self.home}\b"),
            ("answer", r"answer\b[\s:;,]*(?P<content>.*)"),
        )

    def label(self, written: str | None) -> str | None:
        """The label that was written; None for the window."""
        if written is None or not written.isdecimal():
            return None
        return _number(written) if self.reads_numbers else written


def _number(digits: str) -> str:
    """Digits of any script as a number without leading zeros."""
    return str(int(digits)) if len(digits) <= _LONGEST_NUMBER else digits


def _read_strictly(dialect: _Dialect, text: str) -> list[Act]:
    """The third piece of a reply that is split at every mark; the first pattern that is found in it counts."""
    if "Thought:" not in text or "Action:" not in text:
        raise MissingPart("expected Thought: and Action:")
    action = _STRICT_MARKS.split(text)[2].strip()
    for kind, pattern in dialect.strict:
        if match := re.search(pattern, action):
            groups = match.groupdict()
            return [Act(kind, dialect.label(groups.get("label")), groups.get("text"))]
    raise Unreadable(f"expected an action such as Click [3], got {action[:80]!r}")


def _read(dialect: _Dialect, text: str) -> list[Act]:
    """Returns the text after the first `Action:` that an action follows, in any case, up to a mark at the beginning of
    a line."""
    marks = list(_ACTION_MARK.finditer(text))
    ends = [
        mark.start() + mark["before"].find("\n") + 1 for mark in _LINE_MARK.finditer(text) if "\n" in mark["before"]
    ]
    for mark in marks:
        at = mark.end()
        end = at if _AT_MARK.match(text, at) else next(iter(ends[bisect_left(ends, at) :][:1]), len(text))
        if act := _begun(dialect, text, at, end):
            return [act]
    if not marks:
        raise MissingPart("expected Action:")
    return _read_strictly(dialect, text)


def thought_of(reply: str) -> str:
    """The words of a reply of WebVoyager or OpenWebVoyager between `Thought:` and `Action:`; empty without an
    action."""
    action = _ACTION_MARK.search(reply)
    if action is None:
        return ""
    before = reply[: action.start()]
    mark = _THOUGHT_MARK.search(before)
    return before[mark.end() if mark else 0 :].strip(" \t\r\n*#_")


def _begun(dialect: _Dialect, text: str, start: int, end: int) -> Act | None:
    """The action that this part of the text begins with."""
    for kind, pattern in dialect.tolerant:
        begins = re.compile(rf"[\s*_`#>\[(\"'-]*{pattern}", re.IGNORECASE | re.DOTALL)
        match = begins.match(text, start, end)
        if match is None:
            continue
        groups = match.groupdict()
        content, act_text = groups.get("content"), groups.get("text")
        if content is not None:
            if kind == "type" and not content:
                return None
            act_text = _unwrapped(content, all_lines=kind == "answer")
        return Act(
            kind, dialect.label(groups.get("label")), act_text.lower() if kind == "scroll" and act_text else act_text
        )
    return None


def _unwrapped(text: str, all_lines: bool = True) -> str:
    """A text in brackets: up to the one that closes the first, or to the last one where more are closed than opened
    behind that."""
    if not text.startswith("["):
        return text.strip() if all_lines else (text.strip().splitlines() or [""])[0].strip()
    last, depth = text.rfind("]"), 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth == 0:
            rest = text[at + 1 :]
            return text[1 : last if rest.count("]") > rest.count("[") else at]
    return text[1:last] if last > 0 else text[1:]


def _write(dialect: _Dialect, act: Act) -> str:
    """The action in the language's words; a choice in a list is typed. A text is written as it is, though both readers
    end one sooner where it has brackets of its own."""
    if act.kind in CLICKS and act.place is not None:
        return f"Click [{act.place}]"
    if act.kind in ("type", "select") and act.place is not None:
        return f"Type [{act.place}]; [{act.text or ''}]"
    words: Mapping[Kind, str] = {
        "scroll": f"Scroll [{act.place or 'WINDOW'}]; [{act.text}]",
        "wait": "Wait",
        "back": "GoBack",
        "goto": dialect.home,
        "answer": f"ANSWER; [{act.text or ''}]",
    }
    if act.kind not in words:
        raise ValueError(f"no words for {act}")
    return words[act.kind]


def _webvoyager(name: str, dialect: _Dialect, gap: str = "\n") -> Grammar:
    form = f"Thought: {{thought}}{gap}Action: {{action}}"
    return Grammar(name, partial(_read, dialect), partial(_read_strictly, dialect), partial(_write, dialect), form)


# --- VisualWebArena ---

_KEYS = {
    key.lower(): key
    for key in (
        "Backquote Minus Equal Backslash Backspace Meta Tab Delete Escape ArrowDown End Enter Home Insert PageDown "
        "PageUp ArrowRight ArrowUp F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12"
    ).split()
}
"""The names that the released code knows; it has no ArrowLeft."""
_FENCED = re.compile("```(.*?)```", re.DOTALL)
_UNTYPABLE = re.compile("[^\n\x20-\x7f\x81-\U0001fbcf]")
_ALONE = dict.fromkeys(("new_tab", "close_tab", "go_back", "go_forward"), "()")
_STRICT_ARGUMENTS: Mapping[str, str] = {
    **{verb: rf"{verb} ?\[(?P<label>\d+)\]" for verb in ("click", "hover", "clear")},
    "type": r"type ?\[(?P<label>\d+)\] ?\[(?:(?P<text>.+)\] ?\[(?P<enter>\d+)\]|.*)",
    "press": r"press ?\[(?:(?P<text>.+)\]|.*)",
    "scroll": r"scroll ?\[?(?P<text>up|down)",
    "goto": r"goto ?\[(?:(?P<text>.+)\]|.*)",
    "tab_focus": r"tab_focus ?\[(?P<text>\d+)\]",
    "stop": r"stop ?\[(?:(?P<text>.+)\]|.*)",
    **_ALONE,
}
"""Verb -> what is looked for anywhere in the action, as `closed` does."""
_TOLERANT_ARGUMENTS: Mapping[str, str] = {
    **dict.fromkeys(("click", "hover", "clear"), rf"\[?\s*{_ONE_LABEL}{_NO_MORE}"),
    "type": rf"\[?\s*{_ONE_LABEL}\s*\]?[\s,;]*(?P<text>.*)",
    "press": r"(?P<text>.+)",
    "scroll": r".*?(?P<text>up|down)\b",
    "goto": r"(?P<text>.+)",
    "tab_focus": r"\[?\s*(?P<text>\d+)",
    "stop": r"(?P<text>.*)",
    **_ALONE,
}
"""Verb -> what follows it."""
_ENTER = re.compile(r"\[\s*(?:press_enter_after\s*=\s*)?(?P<enter>\d+)\s*\]\s*", re.IGNORECASE)
"""The flag behind a typed text, which may be missing."""
_VERB = rf"({'|'.join(_TOLERANT_ARGUMENTS).replace('_', '[_ ]')})\b"
_BEGINS = re.compile(rf"[^\w\[]*(?:[a-z]+\n\s*)?{_VERB}[\s:(]*", re.IGNORECASE)
_WHOLE_LINE = re.compile(rf"[^\w\[]*{_VERB}\s*(?:\[(?>.*\w)?+[^\w\]]*+\]\W*)?$", re.IGNORECASE)


def _read_arena_strictly(text: str) -> list[Act]:
    """The text between the first two triple backticks; its verb is what stands before the first bracket, or its first
    word."""
    fenced = _FENCED.search(text)
    if fenced is None:
        raise MissingPart("expected an action between triple backticks")
    action = fenced[1].strip()
    verb = (action.split("[")[0] if "[" in action else (action.split() or [""])[0]).strip()
    if verb == "type" and not action.endswith(("[0]", "[1]")):
        action += " [1]"
    match = closed(re.compile(_STRICT_ARGUMENTS[verb]), action) if verb in _STRICT_ARGUMENTS else None
    if match is None and verb != "stop":
        raise Unreadable(f"expected an action such as click [3], got {action[:80]!r}")
    groups = match.groupdict() if match else {}
    act_text = groups.get("text") or ""
    if verb == "type":
        act_text = act_text.replace("\t", " ") + "\n" * (groups["enter"] == "1")
        if bad := _UNTYPABLE.search(act_text):
            raise Unreadable(f"{bad[0]!r} cannot be typed")
    return [_arena_act(verb, groups.get("label"), act_text)]


def _read_arena(text: str) -> list[Act]:
    """The first action that can be read between triple backticks; where there are none, between single ones or on a
    line of its own."""
    for candidate in _candidates(text):
        begun = _BEGINS.match(candidate)
        verb = begun[1].lower().replace(" ", "_") if begun else ""
        match = re.match(_TOLERANT_ARGUMENTS[verb], candidate[begun.end() :], re.I | re.S) if begun else None
        if match is None:
            continue
        groups = match.groupdict()
        label, act_text = groups.get("label"), (groups.get("text") or "").strip()
        if verb == "type":
            last = act_text.rfind("[")
            flag = _ENTER.fullmatch(act_text, last) if last >= 0 else None
            act_text, enter = (act_text[:last].rstrip(), flag["enter"]) if flag else (act_text, "")
            if not act_text and not enter:
                continue
            typed = act_text
            # where the flag would be all that is typed, it is the text
            act_text = (
                act_text[1:-1]
                if act_text[:1] == "[" and act_text[-1:] == "]"
                else _unwrapped(act_text)
                if act_text
                else enter
            )
            act_text += "\n" * (enter != "0" or not typed)
        elif verb in ("press", "goto", "stop"):
            act_text = _unwrapped(act_text)
        return [_arena_act(verb, label and _number(label), act_text.lower() if verb == "scroll" else act_text)]
    return _read_arena_strictly(text)


def _candidates(text: str) -> Iterator[str]:
    fenced = _FENCED.findall(text)
    yield from fenced
    if not fenced:
        yield from re.findall("`([^`\n]+)`", text)
        yield from filter(_WHOLE_LINE.match, text.splitlines())


def _arena_act(verb: str, label: str | None, text: str) -> Act:
    match verb:
        case "click" | "hover" | "clear":
            return Act(verb, label)
        case "type":
            return Act("type", label, text)
        case "press":
            return Act("press", None, "+".join(_KEYS.get(key.lower(), key) for key in text.split("+")))
        case "scroll" | "goto":
            return Act(verb, None, text)
        case "tab_focus":
            return Act("tab", None, _number(text))
        case "new_tab" | "close_tab":
            return Act("tab", None, verb.removesuffix("_tab"))
        case "go_back" | "go_forward":
            return Act("back", None, None if verb == "go_back" else "forward")
    return Act("answer", None, text)


def _write_arena(act: Act) -> str:
    """The action in the language's words; Enter is pressed where a typed text ends in a line feed, and a choice in a
    list is a click."""
    if act.kind in ("hover", "clear") and act.place is not None:
        return f"{act.kind} [{act.place}]"
    if act.kind in (*CLICKS, "select") and act.place is not None:
        return f"click [{act.place}]"
    text = act.text or ""
    if act.kind == "type" and act.place is not None:
        return f"type [{act.place}] [{text.removesuffix(chr(10))}] [{int(text.endswith(chr(10)))}]"
    if act.kind in ("press", "scroll", "goto"):
        return f"{act.kind} [{text}]"
    if act.kind == "tab":
        return f"{text}_tab" if text in ("new", "close") else f"tab_focus [{text}]"
    if act.kind == "back":
        return "go_forward" if text == "forward" else "go_back"
    if act.kind in ("answer", "stop"):
        return f"stop [{text}]"
    raise ValueError(f"no words for {act}")


def remembered(act: Act, words: str = "") -> str:
    """VisualWebArena's line of the action before. `words`: what it named, as its line of a tree says. Raises ValueError
    as `Grammar.write`."""
    if act.place is not None and act.kind in (*CLICKS, "select", "type"):
        typed = f" [{act.text or ''}]" if act.kind == "type" else ""
        verb = act.kind if act.kind in ("hover", "type") else "click"
        return f"{verb} [{act.place}]{typed} where [{act.place}]{f' is {words}' if words else ''}"
    if act.kind == "tab" and act.text not in ("new", "close"):
        return f"page_focus [{act.text}]"
    return _write_arena(act)


WEBVOYAGER = _webvoyager("webvoyager", _Dialect("Google", "; "))
WEBVOYAGER_TEXT = _webvoyager("webvoyager-text", _Dialect("Google", "; ", reads_numbers=False))
OPENWEBVOYAGER = _webvoyager("openwebvoyager", _Dialect("Restart", ";: "), gap="\n\n")
VISUALWEBARENA = Grammar("visualwebarena", _read_arena, _read_arena_strictly, _write_arena, "{thought}\n```{action}```")
GRAMMARS: Mapping[str, Grammar] = {
    grammar.name: grammar for grammar in (WEBVOYAGER, WEBVOYAGER_TEXT, OPENWEBVOYAGER, VISUALWEBARENA)
}
"""Every grammar by its name."""

"""The released readers of web agents' replies, character by character: no pattern, and nothing shared with the package.

A reader returns kind, label and text; for a reply that cannot be read the name of the failure alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Read = tuple[str | None, ...]
FORMAT_ERROR: Read = ("format_error",)
NO_ACT: Read = ("no_act",)
KEYS = (
    "Backquote Minus Equal Backslash Backspace Meta Tab Delete Escape ArrowDown End Enter Home Insert PageDown PageUp ArrowRight ArrowUp "
    "F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12"
).split()


def webvoyager(reply: str, home: str = "Google", marks: str = "; ", numbers: bool = True) -> Read:
    if "Thought:" not in reply or "Action:" not in reply:
        return FORMAT_ERROR
    pieces = [""]
    at = 0
    while at < len(reply):
        mark = next((m for m in ("Thought:", "Action:", "Observation:") if reply.startswith(m, at)), "")
        if mark:
            pieces.append("")
            at += len(mark)
        else:
            pieces[-1] += reply[at]
            at += 1
    text = pieces[2].strip()

    def number(digits: str) -> str:
        return str(int(digits)) if numbers else digits

    for at in range(len(text)):
        for digits, _ in labels(text, at, "Click "):
            return "click", number(digits), None
    for at in range(len(text)):
        for digits, end in labels(text, at, "Type "):
            for content in contents(text, end, "; "):
                return "type", number(digits), content
    for at in range(len(text)):
        for digits, end in labels(text, at, "Scroll ", ("WINDOW",)):
            for begin in separators(text, end, "; "):
                for direction in ("up", "down"):
                    if text[begin + (text[begin : begin + 1] == "[") :].startswith(direction):
                        return "scroll", None if digits == "WINDOW" else number(digits), direction
    for word, kind in (("Wait", "wait"), ("GoBack", "back"), (home, "goto")):
        if text.startswith(word):
            return kind, None, None
    for at in range(len(text)):
        if text.startswith("ANSWER", at):
            for content in contents(text, at + 6, marks):
                return "answer", None, content
    return NO_ACT


def labels(text: str, at: int, verb: str, words: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """What may be a label behind a verb, greediest first, and where it ends with its bracket and without."""
    if not text.startswith(verb, at):
        return
    at += len(verb)
    at += text[at : at + 1] == "["
    end = at
    while end < len(text) and text[end].isdecimal():
        end += 1
    for stop in range(end, at, -1):
        if text[stop : stop + 1] == "]":
            yield text[at:stop], stop + 1
        yield text[at:stop], stop
    for word in words:
        if text.startswith(word, at):
            stop = at + len(word)
            if text[stop : stop + 1] == "]":
                yield word, stop + 1
            yield word, stop


def separators(text: str, at: int, marks: str) -> Iterator[int]:
    """Where one or more separators may end, greediest first."""
    end = at
    while end < len(text) and text[end] in marks:
        end += 1
    yield from range(end, at, -1)


def contents(text: str, at: int, marks: str) -> Iterator[str]:
    for begin in separators(text, at, marks):
        for first in (begin + 1, begin) if text[begin : begin + 1] == "[" else (begin,):
            if first < len(text) and text[first] != "\n":
                end = first + 1
                while end < len(text) and text[end] != "]":
                    end += 1
                yield text[first:end]


def visualwebarena(reply: str) -> Read:
    parts = reply.split("```")
    # two fences that share backticks, such as four in a row, are found from the left
    if len(parts) < 3:
        return FORMAT_ERROR
    action = parts[1].strip()
    verb = action.split("[")[0].strip() if "[" in action else (action.split() or [""])[0]
    if verb in ("new_tab", "close_tab"):
        return "tab", None, verb[:-4]
    if verb == "go_back":
        return "back", None, None
    if verb == "go_forward":
        return "back", None, "forward"
    if verb == "type" and action[-3:] not in ("[0]", "[1]"):
        action += " [1]"
    for at in range(len(action)):
        if not action.startswith(verb, at) or not verb:
            continue
        rest = action[at + len(verb) :]
        for bare in (rest[1:], rest) if rest.startswith(" ") else (rest,):
            if verb == "scroll":
                for direction in ("up", "down"):
                    if bare.removeprefix("[").startswith(direction):
                        return "scroll", None, direction
            if verb in ("click", "hover", "clear", "tab_focus") and bare.startswith("["):
                digits = bare[1:].split("]")[0]
                if "]" in bare and digits.isdecimal():
                    return ("tab", None, str(int(digits))) if verb == "tab_focus" else (verb, digits, None)
            if verb in ("press", "goto", "stop") and bare.startswith("["):
                line = bare.split("\n")[0]
                last = line.rfind("]")
                if last > 1:
                    return said(verb, line[1:last])
            if verb == "type" and (found := typed(bare)):
                return found
    return ("answer", None, "") if verb == "stop" else NO_ACT


def said(verb: str, text: str) -> Read:
    if verb == "press":
        keys = [next((key for key in KEYS if key.lower() == one.lower()), one) for one in text.split("+")]
        return "press", None, "+".join(keys)
    return "answer" if verb == "stop" else verb, None, text


def typed(bare: str) -> Read | None:
    """`[digits] [text] [digits]`, of which the text is as long as can be."""
    digits = bare[1:].split("]")[0]
    if not bare.startswith("[") or not digits.isdecimal() or "]" not in bare:
        return None
    rest = bare[len(digits) + 2 :].removeprefix(" ")
    if not rest.startswith("["):
        return None
    line = rest.split("\n")[0]
    for close in range(len(line) - 1, 1, -1):
        if line[close] != "]":
            continue
        behind = line[close + 1 :].removeprefix(" ")
        flag = behind[1:].split("]")[0]
        if behind.startswith("[") and "]" in behind and flag.isdecimal():
            text = line[1:close].replace("\t", " ")
            if not all(32 <= ord(c) < 128 or 129 <= ord(c) < 130_000 for c in text):
                return NO_ACT
            return "type", digits, text + ("\n" if flag == "1" else "")
    return None


READERS: dict[str, Callable[[str], Read]] = {
    "webvoyager": webvoyager,
    "webvoyager-text": lambda reply: webvoyager(reply, numbers=False),
    "openwebvoyager": lambda reply: webvoyager(reply, "Restart", ";: "),
    "visualwebarena": visualwebarena,
}

"""JSON and YAML texts -> values; an error is one sentence that names the field, the expectation and the finding.

Texts are parsed by `json` and checked by msgspec, because a model's reply may hold a lone surrogate, which msgspec
cannot parse.
"""

from __future__ import annotations

import html
import json
import re
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from seeact_offline.records import OPERATIONS, OtherAnswer

T = TypeVar("T", bound=msgspec.Struct)
WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
"""msgspec's names of JSON types -> names for people."""
SHOWN_CHARS = 80
"""Characters of a value that an error shows."""
DEEPEST = 100
"""Deepest nesting of lists and objects: a few hundred levels end Python's recursion."""
LONGEST_NUMBER = 1000
"""Characters of a number in YAML: Python writes none of more than 4,300 digits."""
MOST_CHARS = 4_000_000
"""Characters of a YAML text after its aliases are expanded."""
_CONTAINERS = (dict, list)
_REFERENCE = re.compile("&#0*([0-9]+)")
_NUMBER = re.compile(r"[-+]?[.0-9][-+.:_0-9a-fxA-FX]*")
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_KEY = "[...]"
"""msgspec's name of an object's key in a path, which does not say which."""
_WRONG_TYPE = re.compile(r"Expected `(?P<types>[^`]+)`(?P<limits>.*?)(?:, got (?P<found>.+))?")
_WRONG_FIELDS = re.compile(r"Object (?P<fault>missing required|contains unknown) field `(?P<name>[^`]*)")


class FormatError(ValueError):
    """Text that is not JSON, or a value of the wrong type."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected, self.got = expected, got


def read_json(text: str | bytes) -> Any:
    """Parses a JSON text. Raises FormatError, also for more than DEEPEST levels."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        shown = text[:SHOWN_CHARS].decode(errors="replace") if isinstance(text, bytes) else text
        raise FormatError("a JSON object", short(shown)) from None
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):
        parts = (outer.values() if isinstance(outer, dict) else outer for outer in level)
        level = [inner for part in parts for inner in part if isinstance(inner, _CONTAINERS)]
        if not level:
            return value
    raise FormatError(f"JSON nested at most {DEEPEST} times", "more")


def check_finite(value: Any) -> None:
    """Raises FormatError for NaN, an infinity, or a whole number that is no float, anywhere in a JSON value of
    `read_json`."""
    level = [value]
    while level:
        for number in level:
            if isinstance(number, int | float) and not abs(number) <= sys.float_info.max:
                raise FormatError("finite numbers", short(number))
        parts = (
            outer.values() if isinstance(outer, dict) else outer for outer in level if isinstance(outer, _CONTAINERS)
        )
        level = [inner for part in parts for inner in part]


def unescape_html(text: str) -> str:
    """The text with entities of HTML as characters. A number too large for any character becomes U+FFFD, however long
    it is, where `html.unescape` raises ValueError for 4,300 digits."""
    return html.unescape(_REFERENCE.sub(lambda number: f"&#{number[1][:8]}", text))


def read_yaml(text: str) -> Any:
    """Parses a YAML text without tags. Raises FormatError, also beyond the limits above."""
    import yaml

    # the C loader, if available, is ten times as fast
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_yaml(yaml.parse(text, loader))
        return yaml.load(text, loader)
    except FormatError:
        raise
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        said = str(error).replace('in "<unicode string>", ', "at ")
        raise FormatError("YAML", " ".join(said.split())[:200]) from None


@dataclass(slots=True)
class _Node:
    """A value of a YAML text with its content, aliases expanded."""

    anchor: str | None = None
    n_chars: int = 1
    height: int = 0
    """Depth of collections, this one included."""


def _check_yaml(events: Iterable[Any]) -> None:
    """Raises FormatError for a text that would take too much time, memory or recursion to load."""
    import yaml

    around: list[_Node] = [_Node()]
    anchored: dict[str | None, _Node] = {}
    for event in events:
        node = None
        match event:
            case yaml.CollectionStartEvent(anchor=anchor):
                around.append(_Node(anchor, height=1))
            case yaml.CollectionEndEvent():
                node = around.pop()
            case yaml.ScalarEvent(anchor=anchor, value=value):
                if event.implicit[0] and len(value) > LONGEST_NUMBER and _NUMBER.fullmatch(value):
                    raise FormatError(f"numbers of at most {LONGEST_NUMBER:,} characters", f"{len(value):,}")
                node = _Node(anchor, 1 + len(value))
            case yaml.AliasEvent(anchor=anchor):
                node = anchored.get(anchor)
                if node is None:
                    raise FormatError("aliases of values before them", f"*{anchor}")
        if getattr(event, "tag", None):
            raise FormatError("YAML without tags", event.tag)
        if node is not None:
            around[-1].n_chars += node.n_chars
            around[-1].height = max(around[-1].height, 1 + node.height)
            if node.anchor:
                anchored[node.anchor] = node
        if around[-1].n_chars > MOST_CHARS:
            raise FormatError(f"at most {MOST_CHARS:,} characters with aliases written out", "more")
        if len(around) - 1 + around[-1].height > DEEPEST + 1:
            raise FormatError(f"YAML nested at most {DEEPEST} times", "more")


def typed(value: object, kind: type[T]) -> T:
    """Converts a JSON value to this type. Raises FormatError."""
    try:
        converted: T = msgspec.convert(value, type=described(kind))
        return converted
    except msgspec.ValidationError as error:
        # a type's `__post_init__` words its own refusals
        own = error.__cause__
        raise (own if isinstance(own, FormatError) else _worded(str(error), value, kind)) from None
    except UnicodeEncodeError as error:
        # raised for a field's name: texts are not checked
        raise FormatError("a field's name without lone surrogates", short(error.object)) from None


def decoded(text: str | bytes, kind: type[T]) -> T:
    """Decodes a JSON text as this type, quickly if it is valid. Raises FormatError."""
    try:
        value: T = msgspec.json.decode(text, type=described(kind))
        return value
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # accepts lone surrogates, and words the error
        return typed(read_json(text), kind)


_describing = threading.Lock()
_are_described: set[object] = set()


def described(kind: Any) -> Any:
    """The type, once msgspec has its description.

    msgspec makes it when a type is first read, and offers it to other threads before it is whole: a second thread that
    reads the same type then ends the program with a segmentation fault.
    """
    if kind not in _are_described:
        with _describing:
            msgspec.json.Decoder(kind)
            _are_described.add(kind)
    return kind


def short(found: object) -> str:
    """Returns the beginning of a value, on one line."""
    return repr(found)[:SHOWN_CHARS]


def _worded(message: str, value: Any, kind: type[msgspec.Struct]) -> FormatError:
    """Words msgspec's message about a value."""
    place = _PLACE.search(message)
    problem, path = (message[: place.start()], place["path"]) if place else (message, "")
    if wrong := _WRONG_FIELDS.match(problem):
        return _about_fields(wrong, _at(value, path), path, kind)
    if wrong := _WRONG_TYPE.fullmatch(problem):
        return _about_type(wrong, value, path)
    found = path.lstrip(".") if _KEY in path else short(_at(value, path))
    return FormatError("another value", f"{found}: {problem}")


def _about_type(wrong: re.Match[str], value: Any, path: str) -> FormatError:
    words = " or ".join(WORDS.get(name, name) for name in wrong["types"].split(" | "))
    field = f"{path.lstrip('.')} to be " if path else ""
    found = WORDS.get((wrong["found"] or "").strip("`"), "another") if _KEY in path else short(_at(value, path))
    return FormatError(f"{field}{words}{wrong['limits']}", found)


def _about_fields(wrong: re.Match[str], found: dict[str, Any], path: str, kind: type[msgspec.Struct]) -> FormatError:
    if path:
        article = "the" if wrong["fault"] == "missing required" else "no"
        wanted = f"{article} field {wrong['name']} in {path.lstrip('.')}"
    else:
        known, exact = msgspec.structs.fields(kind), kind.__struct_config__.forbid_unknown_fields
        required = ", ".join(field.encode_name for field in known if field.required)
        optional = ", ".join(field.encode_name for field in known if not field.required)
        wanted = f"{'exactly ' if exact else ''}the fields {required}"
        if exact and optional:
            wanted = f"{wanted}, and perhaps {optional}" if required else f"no fields but {optional}"
    return FormatError(wanted, short(", ".join(found)) if found else "none")


def _at(value: Any, path: str) -> Any:
    """Returns the value at a path such as `.groups[0].op`."""
    for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        value = value[name] if name else value[int(number)]
    return value


def as_number(value: object) -> float | None:
    """A number, or a text of one; None for anything else. May be infinite or NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


# --- other right answers ---


def check_other_answer(answer: OtherAnswer) -> OtherAnswer:
    """Raises FormatError for one that says nothing, or names no operation of ours."""
    if answer.op is not None and answer.op not in OPERATIONS:
        raise FormatError(f"op to be one of {', '.join(OPERATIONS)}", repr(answer.op)[:40])
    if not answer.element_ids and answer.op is None:
        raise FormatError("element_ids, op or both", "neither")
    if answer.value and answer.op is None:
        raise FormatError("the op of a value", "none")
    return answer

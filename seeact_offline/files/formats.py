"""What a file's JSON holds, as typed values; what is wrong with it, as one sentence that names field, expectation and finding.

Texts are parsed by `json` and checked by msgspec: a model's reply may hold a lone surrogate, which msgspec's own parser refuses.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import msgspec

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
"""What msgspec calls the types of JSON -> what people call them."""
SHOWN_CHARS = 80
"""Of what was found."""
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_WRONG_TYPE = re.compile(r"Expected `(?P<types>[^`]+)`(?P<limits>.*?)(?:, got (?P<found>.+))?")
_WRONG_FIELDS = re.compile(r"Object (?P<fault>missing required|contains unknown) field `(?P<name>[^`]*)")


class FormatError(ValueError):
    """A text that is no JSON, or a value of another type."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected, self.got = expected, got


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises FormatError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        shown = text.decode(errors="replace") if isinstance(text, bytes) else text
        raise FormatError("a JSON object", short(shown)) from None


def typed(value: object, kind: type[T]) -> T:
    """A value of JSON as this type. Raises FormatError."""
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        # what a type's `__post_init__` refuses is worded there
        own = error.__cause__
        raise (own if isinstance(own, FormatError) else _worded(str(error), value, kind)) from None
    except UnicodeEncodeError as error:
        # of a field's name: texts are not looked into
        raise FormatError("a field's name without lone surrogates", short(error.object)) from None


def short(found: object) -> str:
    """The beginning of what was found, in one line."""
    return repr(found)[:SHOWN_CHARS]


def _worded(message: str, value: Any, kind: type[msgspec.Struct]) -> FormatError:
    """msgspec's message about a value in our words."""
    place = _PLACE.search(message)
    problem, path = (message[: place.start()], place["path"]) if place else (message, "")
    if wrong := _WRONG_FIELDS.match(problem):
        return _about_fields(wrong, _at(value, path), path, kind)
    if wrong := _WRONG_TYPE.fullmatch(problem):
        return _about_type(wrong, value, path)
    return FormatError("another value", f"{short(_at(value, path))}: {problem}")


def _about_type(wrong: re.Match[str], value: Any, path: str) -> FormatError:
    words = " or ".join(WORDS.get(name, name) for name in wrong["types"].split(" | "))
    field = f"{path.lstrip('.')} to be " if path else ""
    # a path does not tell an object's key
    found = WORDS.get((wrong["found"] or "").strip("`"), "another") if "[...]" in path else short(_at(value, path))
    return FormatError(f"{field}{words}{wrong['limits']}", found)


def _about_fields(wrong: re.Match[str], found: dict[str, Any], path: str, kind: type[msgspec.Struct]) -> FormatError:
    if path:
        article = "the" if wrong["fault"] == "missing required" else "no"
        wanted = f"{article} field {wrong['name']} in {path.lstrip('.')}"
    else:
        required = ", ".join(field.encode_name for field in msgspec.structs.fields(kind) if field.required)
        wanted = f"{'exactly ' if kind.__struct_config__.forbid_unknown_fields else ''}the fields {required}"
    return FormatError(wanted, short(", ".join(found)) if found else "none")


def _at(value: Any, path: str) -> Any:
    """What lies at a path such as `.groups[0].op`."""
    for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        value = value[name] if name else value[int(number)]
    return value

"""CSS selectors as XPath, for the part of CSS that tasks use.

Types, `*`, `#id`, `.class`, attributes with `= ~= |= ^= $= *=`, the four combinators, lists, and the pseudo-classes of PSEUDO,
`:nth-child(n)`, `:nth-of-type(n)` (numbers, odd, even) and `:not(...)` of one simple selector. As in browsers, the end of the selector closes
an open `[`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from seeact_offline.rewards.unscored import Unscored

_NAME = r"-?(?:[\w\u0080-\uffff-]|\\.)+"
_PART = re.compile(
    rf"""(?P<type>{_NAME}|\*)|\#(?P<id>{_NAME})|\.(?P<class>{_NAME})
    |\[\s*(?P<attribute>{_NAME})\s*(?:(?P<sign>[~|^$*]?=)\s*(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|{_NAME})\s*)?(?:\]|\Z)
    |:(?P<pseudo>[a-z-]+)(?:\((?P<argument>[^()]*(?:\([^()]*\))?[^()]*)\))?""",
    re.VERBOSE,
)
_COMBINATOR = re.compile(r"\s*([>+~,])\s*|\s+")
_ESCAPE = re.compile(r"\\(.)")
_AXES = {None: "//", ">": "/", "+": "/following-sibling::*[1]/self::", "~": "/following-sibling::"}
PSEUDO = {
    "first-child": "not(preceding-sibling::*)",
    "last-child": "not(following-sibling::*)",
    "only-child": "not(preceding-sibling::* or following-sibling::*)",
    "empty": "not(node())",
    "checked": "@checked or @selected",
    "disabled": "@disabled",
}
"""Pseudo-class -> its condition."""
LONGEST = 2000
"""Characters of a selector."""


@lru_cache(1024)
def xpath(selector: str) -> str:
    """The XPath, from a document's or an element's own place, of the elements that a selector matches. Raises Unscored `unsupported_locator`."""
    if len(selector) > LONGEST:
        raise _unsupported(selector[:60])
    paths, path, rest = [], ".//", selector.strip()
    while True:
        step, rest = _compound(rest, selector)
        path += step
        found = _COMBINATOR.match(rest)
        if found is None:
            break
        rest = rest[found.end() :]
        if found[1] == ",":
            paths.append(path)
            path = ".//"
        else:
            path += _AXES[found[1]]
    if rest:
        raise _unsupported(selector)
    return " | ".join([*paths, path])


def _compound(rest: str, selector: str) -> tuple[str, str]:
    """One element's condition, and what follows it."""
    name, conditions, begun = "*", [], False
    while found := _PART.match(rest):
        if found["type"] and begun:
            break
        if found["type"]:
            name = found["type"].lower()
        else:
            conditions.append(_condition(found, name, selector))
        begun, rest = True, rest[found.end() :]
    if not begun:
        raise _unsupported(selector)
    return name + "".join(f"[{condition}]" for condition in conditions), rest


def _condition(found: re.Match[str], name: str, selector: str) -> str:
    if found["id"]:
        return f"@id = {_literal(_plain(found['id']))}"
    if found["class"]:
        return _has_word("@class", _plain(found["class"]))
    if found["attribute"]:
        return _attribute(found)
    pseudo, argument = found["pseudo"], (found["argument"] or "").strip().lower()
    if pseudo in PSEUDO and not argument:
        return PSEUDO[pseudo]
    if pseudo in ("nth-child", "nth-of-type", "first-of-type", "last-of-type"):
        same = "*" if pseudo == "nth-child" else name
        side = "following" if pseudo == "last-of-type" else "preceding"
        place = f"count({side}-sibling::{same}) + 1"
        wanted = "1" if pseudo in ("first-of-type", "last-of-type") else argument
        if same == "*" and pseudo != "nth-child":
            raise _unsupported(selector)
        if wanted in ("odd", "even"):
            return f"({place}) mod 2 = {int(wanted == 'odd')}"
        if wanted.isdecimal():
            return f"{place} = {int(wanted)}"
    if pseudo == "not" and argument:
        inner = _PART.fullmatch((found["argument"] or "").strip())
        if inner is not None and inner["pseudo"] != "not":
            return f"not(self::{inner['type']})" if inner["type"] else f"not({_condition(inner, name, selector)})"
    raise _unsupported(selector)


def _attribute(found: re.Match[str]) -> str:
    at, sign = f"@{found['attribute'].lower()}", found["sign"]
    if sign is None:
        return at
    value = found["value"]
    value = _plain(value[1:-1] if value[0] in "\"'" else value)
    text = _literal(value)
    if sign == "=":
        return f"{at} = {text}"
    if sign == "~=":
        return _has_word(at, value)
    if sign == "|=":
        return f"{at} = {text} or starts-with({at}, {_literal(value + '-')})"
    if not value:
        return "false()"
    if sign == "^=":
        return f"starts-with({at}, {text})"
    if sign == "*=":
        return f"contains({at}, {text})"
    return f"substring({at}, string-length({at}) - {len(value) - 1}) = {text}"


def _has_word(at: str, word: str) -> str:
    if not word or word.split() != [word]:
        return "false()"
    return f"contains(concat(' ', normalize-space({at}), ' '), {_literal(f' {word} ')})"


def _plain(written: str) -> str:
    return _ESCAPE.sub(r"\1", written)


def _literal(text: str) -> str:
    """A text as XPath writes it, which has no escapes."""
    if "'" not in text:
        return f"'{text}'"
    pieces = ', "\'", '.join(f"'{piece}'" for piece in text.split("'"))
    return f"concat({pieces})"


def _unsupported(selector: str) -> Unscored:
    return Unscored("unsupported_locator", f"selector {selector!r:.80}")

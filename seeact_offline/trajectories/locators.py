"""Applies a task's locator to a stored page. JavaScript is read, never run.

Supported are an empty locator (the whole HTML), `func:get_query_text(__page__, 'css')` and its `_lowercase`, and chains that begin with
`document`: `querySelector`, `querySelectorAll`, `getElementById`, `getElementsByClassName`, `getElementsByTagName`, `getElementsByName`,
`[n]`, the properties of PROPERTIES, `getAttribute`, `trim`, `toLowerCase`, `length`, `title`, `URL`; the same over all elements as
`[...CHAIN].map(x => x.CHAIN)`, with or without `.join('...')`; and `lambda:() => CHAIN`, also in
try and catch. All others raise Unscored `unsupported_locator`.
Text and markup are in `page_text`. A stored page knows no style sheet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from seeact_offline.trajectories.page_text import collapsed, inner_markup, markup, shown_text
from seeact_offline.trajectories.unscored import Unscored

if TYPE_CHECKING:
    from lxml import html as lxml_html

MAX_CHARACTERS = 20_000_000
MAX_TAGS = 500_000
LONGEST_SELECTOR = 2000
"""Characters."""
EXPRESSIONS = ("document.", "[...document.")
"""Beginnings of a locator that is an expression of JavaScript."""
_CALL = re.compile(
    r"""\??\.(?P<name>\w+)(?P<call>\(\s*+(?:(?P<quote>["'`])(?P<text>(?:\\.|(?!(?P=quote))[^\\\n])*+)(?P=quote)\s*+)?+\))?|(?:\?\.)?\[(?P<index>\d{1,6})\]"""
)
_QUERY = re.compile(
    r"""func:get_query_text(?P<lower>_lowercase)?\(__page__,\s*(?P<quote>["'])(?P<css>.*)(?P=quote)\)\s*""", re.DOTALL
)
_EACH = re.compile(
    r"\s*+(?:\((?P<in_brackets>\w++)\)|(?P<x>\w++))\s*+=>\s*+(?:(?P=in_brackets)|(?P=x))(?P<each>.*)", re.DOTALL
)
_QUOTED = re.compile(r"""(?P<quote>["'`])(?P<text>(?:\\.|(?!(?P=quote))[^\\])*+)(?P=quote)""", re.DOTALL)
_LAMBDA = re.compile(r"\(\)\s*+=>\s*+(?:\{\s*+return\s++(?P<body>[^{}]*+)\}|(?P<plain>[^{}]*+))(?:\s*+;)?+\s*+")
_TRIED = re.compile(
    r"""\(\(\)\s*+=>\s*+\{\s*+try\s*+\{\s*+return\s++(?P<body>[^{}]*+)\}\s*+catch\s*+(?:\(\w*+\)\s*+)?+
    \{\s*+return\s*+(?:''|""|null|false)?+;?+\s*+\}\s*+;?+\s*+\}\s*+\)\s*+\(\)\s*+;?+\s*+""",
    re.VERBOSE,
)
_NOT_READ = re.compile(r":(?:hover|active|focus|visited|target|scope|contains)\b|!=")
"""Selectors that a stored page cannot decide, and those that no browser reads."""
_FAILED = object()
"""The value of a chain that raises in a browser, such as a property of null."""


@dataclass(frozen=True)
class StoredPage:
    """A page as it was left: its address and its HTML."""

    address: str
    html: str = field(repr=False)
    _selected: dict[str, dict[Any, None]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Selector -> what it matches on the whole page: a chain looks for it below each of many elements."""

    @cached_property
    def tree(self) -> lxml_html.HtmlElement | None:
        """The parsed page; None for a page without an element. Raises Unscored `bad_task` for a page that is too large."""
        from lxml import etree, html

        if len(self.html) > MAX_CHARACTERS or self.html.count("<") > MAX_TAGS:
            raise Unscored("no_state", f"the page at {self.address:.60} is too large")
        try:
            parser = html.HTMLParser(no_network=True, encoding="utf-8", huge_tree=True)
            tree = html.document_fromstring(self.html.encode("utf-8", "replace"), parser=parser)
        except (etree.ParserError, etree.XMLSyntaxError, ValueError):
            return None
        for element in tree.iter("pre", "textarea", "listing"):
            # a line feed behind the tag is not part of the text
            element.text = element.text and element.text.removeprefix("\n")
        for table in tree.iter("table"):
            _add_bodies(table)
        return tree

    def select(self, css: str, below: Any = None) -> list[Any]:
        """The elements that a selector matches, in order of the page. Raises Unscored. Needs the extra `rewards`.

        `below`: an element in which they have to lie; the selector may name others around it.
        """
        from cssselect import HTMLTranslator, SelectorError
        from lxml import etree

        if len(css) > LONGEST_SELECTOR or _NOT_READ.search(css):
            raise Unscored("unsupported_locator", f"selector {css!r:.80}")
        # as in browsers, the end of the selector closes an open bracket
        closed = css + "]" * (css.count("[") - css.count("]"))
        try:
            if closed not in self._selected:
                path = HTMLTranslator().css_to_xpath(closed, prefix="descendant-or-self::")
                self._selected[closed] = dict.fromkeys(() if self.tree is None else self.tree.xpath(path))
        except (SelectorError, etree.XPathError, RecursionError):
            raise Unscored("unsupported_locator", f"selector {css!r:.80}") from None
        found = self._selected[closed]
        return list(found) if below is None else [one for one in below.iterdescendants() if one in found]


def _add_bodies(table: Any) -> None:
    """Puts rows that lie in no part of their table into a body, as browsers do."""
    body = None
    for part in list(table):
        if part.tag == "tr":
            if body is None:
                body = table.makeelement("tbody")
                part.addprevious(body)
            body.append(part)
        elif isinstance(part.tag, str):
            body = None


def locate(page: StoredPage, locator: str) -> str | None:
    """The text that a locator finds, as the released code passes it on; None where it says that the page is wrong. Raises Unscored."""
    if not locator.strip():
        return page.html
    if query := _QUERY.fullmatch(locator):
        elements = page.select(query["css"].replace("\\'", "'").replace('\\"', '"'))
        text = elements[0].text_content() if elements else ""
        return text.lower() if query["lower"] else text
    if locator.startswith(EXPRESSIONS):
        value = _evaluate(page, locator)
        return "" if value is _FAILED else _as_python(value)
    if locator.startswith("lambda:"):
        # what is caught returns nothing, which is a failure as well
        code = locator.removeprefix("lambda:").strip()
        found = _LAMBDA.fullmatch(code) or _TRIED.fullmatch(code)
        if found is not None:
            value = _evaluate(page, found["body"] or found.groupdict().get("plain") or "")
            return None if value is _FAILED or not value else _as_python(value)
    raise _unsupported(locator)


def _evaluate(page: StoredPage, code: str) -> Any:
    """The value of an expression: text, number, truth, None, element, list, or _FAILED. Raises Unscored."""
    code = code.strip().removesuffix(";").rstrip()
    if not code.startswith("[...document"):
        return _chain(page, page, code.rstrip(";").removeprefix("document"), code)
    spread = _spread(code)
    values = _chain(page, page, spread.chain.removeprefix("document"), code)
    if not isinstance(values, list):
        return _FAILED
    if spread.each is not None:
        values = [_chain(page, value, spread.each.strip(), code) for value in values]
    if _FAILED in values:
        return _FAILED
    if spread.separator is None:
        return values
    # as JavaScript writes them
    texts = ["" if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    return _unescaped(spread.separator).join(texts)


class _Spread(NamedTuple):
    """The parts of `[...CHAIN].map(x => xEACH).join('SEPARATOR')`, the last two None where they are missing."""

    chain: str
    each: str | None
    separator: str | None


def _spread(code: str) -> _Spread:
    """Raises Unscored for another expression."""
    end = _bracket_end(code, 0)
    chain, each, separator = code[len("[...") : end - 1], None, None
    if code.startswith(".map(", end):
        start, end = end + len(".map("), _bracket_end(code, end + len(".map"))
        if (found := _EACH.fullmatch(code, start, end - 1)) is None:
            raise _unsupported(code)
        each = found["each"]
    if code.startswith(".join(", end):
        start, end = end + len(".join("), _bracket_end(code, end + len(".join"))
        if (found := _QUOTED.fullmatch(code[start : end - 1].strip())) is None:
            raise _unsupported(code)
        separator = found["text"]
    if end < len(code):
        raise _unsupported(code)
    return _Spread(chain, each, separator)


def _bracket_end(code: str, start: int) -> int:
    """The place behind the bracket that closes the one at `start`. Raises Unscored where none does."""
    depth, place = 0, start
    while place < len(code):
        if quoted := _QUOTED.match(code, place):
            place = quoted.end()
            continue
        depth += (code[place] in "[(") - (code[place] in "])")
        place += 1
        if depth == 0:
            return place
    raise _unsupported(code)


def _chain(page: StoredPage, value: Any, code: str, whole: str) -> Any:
    place = 0
    while place < len(code):
        found = _CALL.match(code, place)
        if found is None:
            raise _unsupported(whole)
        if value is None and found[0].startswith("?."):
            return None
        value, place = _step(page, value, found, whole), found.end()
        if value is _FAILED:
            return _FAILED
    return value


def _step(page: StoredPage, value: Any, found: re.Match[str], whole: str) -> Any:
    """The value after one property, call or index."""
    if value is None:
        return _FAILED
    if found["index"] is not None:
        if not isinstance(value, list):
            raise _unsupported(whole)
        place = int(found["index"])
        return value[place] if place < len(value) else None
    name, argument = found["name"], found["text"]
    if found["call"] and argument is not None and name in _CALLS and not isinstance(value, list | str | bool | int):
        return _CALLS[name](page, None if value is page else value, _unescaped(argument))
    if found["call"] and argument is None and isinstance(value, str) and name in _TEXT_CALLS:
        return _TEXT_CALLS[name](value)
    if found["call"] or isinstance(value, bool | int):
        raise _unsupported(whole)
    if name == "length" and isinstance(value, list | str):
        return len(value)
    if value is page:
        if name in ("URL", "documentURI"):
            return page.address
        if name == "title":
            titles = [one for one in page.select("title") if next(one.iterancestors("svg"), None) is None]
            return collapsed("".join(one.text_content() for one in titles[:1])).strip(" ")
        if name in ("body", "documentElement", "head"):
            tag = "html" if name == "documentElement" else name
            return next(iter(page.select(tag)), None)
    elif not isinstance(value, list | str) and name in PROPERTIES:
        return PROPERTIES[name](value)
    raise _unsupported(whole)


def _by_class(page: StoredPage, below: Any, names: str) -> list[Any]:
    selector = "".join("." + re.sub(r"([^A-Za-z0-9_-])", r"\\\1", word) for word in names.split())
    return page.select(selector, below) if selector else []


def _by_attribute(name: str) -> Callable[[StoredPage, Any, str], list[Any]]:
    def find(page: StoredPage, below: Any, value: str) -> list[Any]:
        return [one for one in page.select(f"[{name}]", below) if one.get(name) == value]

    return find


_CALLS: Mapping[str, Callable[[StoredPage, Any, str], Any]] = {
    "querySelector": lambda page, below, css: next(iter(page.select(css, below)), None),
    "querySelectorAll": lambda page, below, css: page.select(css, below),
    "getElementById": lambda page, below, name: next(iter(_by_attribute("id")(page, below, name)), None),
    "getElementsByClassName": _by_class,
    "getElementsByTagName": lambda page, below, tag: page.select(tag, below),
    "getElementsByName": _by_attribute("name"),
    "getAttribute": lambda page, element, name: None if element is None else element.get(name.lower()),
}
_TEXT_CALLS: Mapping[str, Callable[[str], str]] = {
    "trim": str.strip,
    "toLowerCase": str.lower,
    "toLocaleLowerCase": str.lower,
    "toUpperCase": str.upper,
    "toString": str,
}


def _selected(element: Any) -> int | None:
    """The place of a select's chosen option, from the recorder's attributes or from HTML's; -1 for none, None for another element."""
    if element.tag != "select":
        return None
    options, is_multiple = list(element.iter("option")), element.get("multiple") is not None
    for chosen in ("option_selected", "selected"):
        places = [i for i, one in enumerate(options) if one.get(chosen, "false") != "false"]
        if places:
            return places[0 if is_multiple else -1]
    enabled = [i for i, one in enumerate(options) if one.get("disabled") is None]
    return enabled[0] if enabled and not is_multiple else -1


def _value(element: Any) -> Any:
    """The value of a field, from the recorder's attributes or from HTML's; None for an element that has none."""
    if (place := _selected(element)) is not None:
        return _value(list(element.iter("option"))[place]) if place >= 0 else ""
    if element.tag == "option":
        return element.get("value", collapsed(element.text_content()).strip(" "))
    if element.get("input_value") is not None:
        return element.get("input_value")
    if element.tag == "textarea":
        return element.text_content()
    if element.tag == "li":
        return element.get("value", "0")
    if element.tag not in ("input", "button", "data", "output", "param"):
        return None
    return element.get("value", "on" if element.get("type") in ("checkbox", "radio") else "")


def _checked(element: Any) -> bool | None:
    if element.tag != "input":
        return None
    recorded = element.get("input_checked")
    return bool(recorded == "true") if recorded is not None else element.get("checked") is not None


PROPERTIES: Mapping[str, Callable[[Any], Any]] = {
    "textContent": lambda element: element.text_content(),
    "innerText": shown_text,
    "outerText": shown_text,
    "outerHTML": markup,
    "innerHTML": inner_markup,
    "value": _value,
    "checked": _checked,
    "selectedIndex": _selected,
    "children": lambda element: [one for one in element if isinstance(one.tag, str)],
    "parentElement": lambda element: element.getparent(),
    "firstElementChild": lambda element: next((one for one in element if isinstance(one.tag, str)), None),
    "lastElementChild": lambda element: next((one for one in reversed(element) if isinstance(one.tag, str)), None),
    "nextElementSibling": lambda element: next(element.itersiblings("*"), None),
    "previousElementSibling": lambda element: next(element.itersiblings("*", preceding=True), None),
    "className": lambda element: element.get("class", ""),
    "id": lambda element: element.get("id", ""),
    "tagName": lambda element: element.tag.upper(),
}
"""Property of an element -> its value."""


def _as_python(value: Any) -> str:
    """A value as Python writes what a browser returns. Elements come back as an object of nothing that can be told."""
    if isinstance(value, list):
        return str([one if one is None or isinstance(one, str | int) else "ref: <Node>" for one in value])
    return str(value) if value is None or isinstance(value, str | int) else "ref: <Node>"


def _unescaped(written: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), written)


def _unsupported(code: str) -> Unscored:
    return Unscored("unsupported_locator", f"{code!r:.100}")

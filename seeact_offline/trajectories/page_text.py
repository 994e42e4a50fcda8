"""Text and markup of an element of a stored page, as browsers give them: `innerText`, `outerHTML`, `innerHTML` (HTML Standard, 2025)."""

from __future__ import annotations

import re
from typing import Any

BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 "
    "header hr html legend li main menu nav ol optgroup option p pre search section summary table tbody tfoot thead tr ul".split()
)
UNSEEN = frozenset(
    "audio canvas datalist head iframe link meta noframes noscript script style template textarea title video".split()
)
"""Elements whose text is not shown with the page's."""
RAW = frozenset("iframe noembed noframes noscript plaintext script style xmp".split())
"""Elements whose text is written as it is."""
VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_HIDDEN = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
_PRE = re.compile(r"(?i)white-space\s*:\s*pre(?!-line)")
# characters that no page has
_SPACE, _LINE, _TAB, _BREAK, _PARAGRAPH = "\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4"
_KEPT = str.maketrans({" ": _SPACE, "\n": _LINE, "\t": _TAB})
_BACK = str.maketrans({_SPACE: " ", _LINE: "\n", _TAB: "\t"})
_BREAKS = re.compile(f" ?[{_BREAK}{_PARAGRAPH}][ {_BREAK}{_PARAGRAPH}]*")


def collapsed(text: str | None) -> str:
    """Writes each run of white space as one blank. A no-break space is not white space."""
    return re.sub(r"[ \t\n\r\f]+", " ", text or "")


def shown_text(element: Any) -> str:
    """The text in order of the page with a line for each block, an empty one around paragraphs, and a tab between cells.

    All text of an element that is itself not shown.
    """
    if element.tag == "textarea":
        return ""
    if element.tag == "option" or is_hidden(element):
        return str(element.text_content())
    text = _BREAKS.sub(lambda run: _LINE * (2 if _PARAGRAPH in run[0] else 1), "".join(_pieces(element)).strip(_EDGES))
    text = re.sub(f" *([{_LINE}{_TAB}]) *", r"\1", re.sub(" +", " ", text)).strip(" ")
    return text.translate(_BACK)


_EDGES = f" {_BREAK}{_PARAGRAPH}"


def _pieces(top: Any) -> list[str]:
    from lxml import etree

    pieces: list[str] = []
    hidden, kept = None, [_keeps_space(top)]

    def add(text: str | None) -> None:
        pieces.append((text or "").translate(_KEPT) if kept[-1] else collapsed(text))

    for event, element in etree.iterwalk(top, events=("start", "end", "comment", "pi")):
        if event == "start" and hidden is None:
            if element is not top and _hides(element):
                hidden = element
                continue
            pieces.append(_LINE if element.tag == "br" else _edge(element))
            kept.append(kept[-1] or _keeps_space(element))
            add("" if _is_closed(element) else element.text)
        elif event == "end" and hidden is None:
            kept.pop()
            pieces.append(_edge(element))
            if element.tag in ("td", "th") and element is not top and element.getnext() is not None:
                pieces.append(_TAB)
        if event != "start" and hidden in (None, element) and element is not top:
            hidden = None
            add("" if _is_closed(element.getparent()) else element.tail)
    return pieces


def _edge(element: Any) -> str:
    return _PARAGRAPH if element.tag == "p" else _BREAK if element.tag in BLOCKS else ""


def _keeps_space(element: Any) -> bool:
    return element.tag in ("pre", "listing") or _PRE.search(element.get("style", "")) is not None


def _hides(element: Any) -> bool:
    return (
        element.tag in UNSEEN
        or element.get("hidden") is not None
        or _HIDDEN.search(element.get("style", "")) is not None
        or (element.tag != "summary" and _is_closed(element.getparent()))
    )


def _is_closed(element: Any) -> bool:
    """Tells whether nothing but its summary is shown of an element."""
    return element is not None and element.tag == "details" and element.get("open") is None


def is_hidden(element: Any) -> bool:
    """Tells whether the element or one around it is not shown."""
    return _hides(element) or any(_hides(one) for one in element.iterancestors())


def markup(element: Any) -> str:
    """The element as a browser writes it: every attribute with its value in double quotes."""
    from lxml import etree

    written: list[str] = []
    for event, one in etree.iterwalk(element, events=("start", "end", "comment")):
        if event == "comment":
            written.append(f"<!--{one.text or ''}-->")
        elif event == "start":
            written.append(f"<{one.tag}{''.join(_attribute(*item) for item in one.items())}>{_text(one, one.text)}")
        elif one.tag not in VOID:
            written.append(f"</{one.tag}>")
        if event != "start" and one is not element:
            written.append(_text(one.getparent(), one.tail))
    return "".join(written)


def inner_markup(element: Any) -> str:
    """The markup of all that is inside the element."""
    whole = markup(element)
    start = len(f"<{element.tag}{''.join(_attribute(*item) for item in element.items())}>")
    return whole[start:] if element.tag in VOID else whole[start : -len(f"</{element.tag}>")]


def _attribute(name: str, value: str) -> str:
    written = value.replace("&", "&amp;").replace("\xa0", "&nbsp;").replace('"', "&quot;")
    return f' {name}="{written}"'


def _text(within: Any, text: str | None) -> str:
    if text is None or within.tag in RAW:
        return text or ""
    return text.replace("&", "&amp;").replace("\xa0", "&nbsp;").replace("<", "&lt;").replace(">", "&gt;")

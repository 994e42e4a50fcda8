"""The search by type and text again, slowly: every element's texts walked afresh, every pair of matches compared."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from itertools import pairwise

from lxml import etree

from seeact_offline.pages.search import (
    ASKED_TYPES,
    INPUT_TYPES,
    LOOK_ALIKES,
    MAX_LENGTH,
    MAX_WORDS,
    ROLE_TYPES,
    TAG_TYPES,
)

Element = etree._Element


def find(
    html: str, candidates: Collection[str], kind: str, text: str, threshold: float
) -> tuple[list[str], str | None]:
    """Ids in document order and the tier."""
    root = etree.fromstring(html)
    sought, wanted = squeezed(text), type_asked(kind)
    elements = [e for e in root.iter() if e.get("backend_node_id") in candidates]
    elements = [e for e in elements if e.tag not in ("option", "optgroup", "text", "html", "body")]
    for tier in ("exact", "normalised", "contained", "fuzzy") if sought else ():
        hits: dict[Element, int] = {}
        for element in elements:
            fitting = [plain(t) for t in texts(root, element) if matches(tier, t, sought, threshold)]
            if fitting:
                hits[element] = min(map(len, fitting))
        for group in (lambda k: k and wanted in ("", k)), (lambda k: not k or k in LOOK_ALIKES.get(wanted, ())):
            chosen = {e: size for e, size in hits.items() if group(type_of(e))}
            if chosen:
                return list(dict.fromkeys(e.get("backend_node_id") for e in innermost(chosen))), tier
    return [], None


def innermost(hits: dict[Element, int]) -> list[Element]:
    """An element is left out when a better one is inside it, and when one around it that stays is better."""

    def badness(element: Element) -> tuple[int, bool]:
        return hits[element], not type_of(element)

    def inside(inner: Element, outer: Element) -> bool:
        return outer in inner.iterancestors()

    kept = [e for e in hits if not any(inside(other, e) and badness(other) <= badness(e) for other in hits)]
    return [e for e in kept if not any(inside(e, other) for other in kept)]


def matches(tier: str, text: str, sought: str, threshold: float) -> bool:
    key, asked = plain(text), plain(sought)
    if tier == "exact":
        return text == sought
    if tier == "normalised":
        return key == asked
    if tier == "contained":
        words, wanted = key.split(), asked.split()
        return is_run(wanted, words) or (is_run(words, wanted) and len(words) >= len(wanted) / 2)
    return 200 * longest_common(key, asked) / (len(key) + len(asked)) >= threshold


def is_run(short: list[str], long: list[str]) -> bool:
    return any(long[i : i + len(short)] == short for i in range(len(long) - len(short) + 1))


def longest_common(a: str, b: str) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        previous = row
        row = [0]
        for j, y in enumerate(b):
            row.append(previous[j] + 1 if x == y else max(previous[j + 1], row[j]))
    return row[-1]


def squeezed(text: str) -> str:
    return " ".join(text.split()[:MAX_WORDS])[:MAX_LENGTH].rstrip()


def plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    out = ""
    for char in folded:
        if char in "'`\u2018\u2019\u02bc\u00b4\u00ad\u200b\u200c\u200d\ufeff":
            continue
        out += char if char.isalnum() or unicodedata.category(char).startswith("M") else " "
    return " ".join(out.split()) or " ".join(unicodedata.normalize("NFKC", text).split())


def type_asked(kind: str) -> str:
    words = plain(kind[:200]).upper().split()
    for name, known in ASKED_TYPES.items():
        if "".join(words) in known:
            return name
    parts = {w for w in words if len(w) > 1} | {a + b for a, b in pairwise(words)}
    named = {name for name, known in ASKED_TYPES.items() if parts & set(known)}
    return named.pop() if len(named) == 1 else ""


def type_of(element: Element) -> str:
    if element.tag == "input":
        return INPUT_TYPES.get(element.get("type", ""), "TEXTBOX")
    if element.tag in ("select", "textarea"):
        return TAG_TYPES[element.tag]
    return ROLE_TYPES.get(element.get("role", "")) or TAG_TYPES.get(element.tag, "")


def texts(root: Element, element: Element) -> list[str]:
    found = [" ".join(own_words(element)), short(words_below(element)), short(words_below(element, pictures=True))]
    found += [element.get(name, "") for name in ("alt", "aria_label", "placeholder")]
    options = list(element.iter("option")) if element.tag == "select" else []
    if options or element.tag == "select":
        chosen = [o for o in options if o.get("option_selected")] or options[:1]
        found += [option_text(o) for o in chosen]
    elif element.get("type", "") not in ("checkbox", "radio", "hidden", "image", "password", "file"):
        found += [element.get(name, "") for name in ("input_value", "text_value", "value")]
    found += [element.get("title", ""), element.get("label", ""), *label_texts(root, element)]
    found += [option_text(o) for o in options]
    return [t for t in map(squeezed, found) if t]


def own_words(element: Element) -> list[str]:
    return [w for child in element if child.tag == "text" for w in (child.text or "").split()]


def words_below(
    element: Element, pictures: bool = False, less: Element | None = None, in_options: bool = False
) -> list[str]:
    words: list[str] = []
    for e in element.iter():
        chain = [e, *e.iterancestors()]
        if less is not None and less in chain:
            continue
        if not in_options and any(a.tag == "option" for a in chain):
            continue
        words += (e.text or "").split()
        if pictures and e.tag in ("img", "svg", "image"):
            words += (e.get("aria_label") or e.get("alt") or e.get("title") or "").split()
    return words


def short(words: list[str]) -> str:
    return " ".join(words) if len(words) <= MAX_WORDS else ""


def option_text(option: Element) -> str:
    return short(words_below(option, in_options=True)) or option.get("label", "")


def label_texts(root: Element, element: Element) -> list[str]:
    by_id = {e.get("id"): e for e in reversed(list(root.iter())) if e.get("id")}
    named = [by_id[i] for i in element.get("aria_labelledby", "").split() if i in by_id]
    if named:
        return [" ".join(w for e in named for w in short(words_below(e)).split())]
    found = []
    for label in root.iter("label"):
        if field_of(label, by_id) is element:
            found += [" ".join(own_words(label)), short(words_below(label, less=element))]
    return found


def field_of(label: Element, by_id: dict[str, Element]) -> Element | None:
    if label.get("for"):
        return by_id.get(label.get("for", ""))
    inside = [e for e in label.iterdescendants() if is_field(e)]
    if inside:
        return inside[0]
    before, after = label.getprevious(), label.getnext()
    if before is not None and before.get("type") in ("checkbox", "radio"):
        return before
    return after if after is not None and is_field(after) else None


def is_field(element: Element) -> bool:
    if element.tag == "input":
        return element.get("type", "") not in ("hidden", "button", "submit", "reset", "image")
    return type_of(element) in ("TEXTBOX", "SELECTBOX")

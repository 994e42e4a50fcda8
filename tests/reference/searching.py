"""The search by type and text again, slowly: every element's texts walked afresh, every pair of matches compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from itertools import pairwise

from lxml import etree

from seeact_offline.pages.element_texts import ASKED_FOR, BROWSER_WORDS, MAX_CAPTION_WORDS, MAX_ICON_NODES, MAX_WRAPPERS
from seeact_offline.pages.wording import (
    ASKED_TYPES,
    INPUT_TYPES,
    LOOK_ALIKES,
    MAX_LENGTH,
    MAX_WORDS,
    ROLE_TYPES,
    TAG_TYPES,
    TYPE_WORDS,
)

Element = etree._Element
PASSES = ("exact", "normalised", "contained", "bare", "contained bare", "named", "begun", "fuzzy")


def find(
    html: str,
    candidates: Collection[str],
    kind: str,
    text: str,
    threshold: float,
    seen: Collection[str] | None = None,
) -> tuple[list[str], str | None]:
    """Ids in document order and the tier. `seen`: of the candidates; None: all."""
    root = etree.fromstring(html)
    sought, wanted = squeezed(text), type_asked(kind)
    elements = [e for e in root.iter() if e.get("backend_node_id") in candidates]
    elements = [e for e in elements if e.tag not in ("option", "optgroup", "text", "html", "body")]
    shown = {e: texts(root, e) for e in elements} if sought else {}
    visible = {e for e in shown if seen is None or any(is_seen(inner, candidates, seen) for inner in e.iter())}
    for group in visible, shown.keys() - visible:
        for way in PASSES:
            hits: dict[Element, int] = {}
            for element in (e for e in shown if e in group):
                fitting = [plain(t) for t in shown[element] if matches(way, t, sought, threshold)]
                if fitting:
                    hits[element] = min(map(len, fitting))
            for fits in (lambda k: k and wanted in ("", k)), (lambda k: not k or k in LOOK_ALIKES.get(wanted, ())):
                chosen = {e: size for e, size in hits.items() if fits(type_of(e))}
                if chosen:
                    tier = way if way in ("exact", "normalised", "fuzzy") else "contained"
                    return list(dict.fromkeys(e.get("backend_node_id") for e in innermost(chosen))), tier
    return [], None


def is_seen(element: Element, candidates: Collection[str], seen: Collection[str]) -> bool:
    node = element.get("backend_node_id")
    return node in seen and node in candidates and element.tag != "text"


def innermost(hits: dict[Element, int]) -> list[Element]:
    """An element is left out when a better one is inside it, and when one around it that stays is better."""

    def badness(element: Element) -> tuple[int, bool]:
        return hits[element], not type_of(element)

    def inside(inner: Element, outer: Element) -> bool:
        return outer in inner.iterancestors()

    kept = [e for e in hits if not any(inside(other, e) and badness(other) <= badness(e) for other in hits)]
    return [e for e in kept if not any(inside(e, other) for other in kept)]


def matches(way: str, text: str, sought: str, threshold: float) -> bool:
    key, asked, bare = plain(text), plain(sought), without_type(sought)
    named = " ".join(
        bare.split()[
            next(
                (i for i, w in enumerate(bare.split()) if w not in {*TYPE_WORDS, "a", "an", "the"}), len(bare.split())
            ) :
        ]
    )
    if way == "exact":
        return text == sought
    if way == "normalised":
        return key == asked
    if way == "contained":
        is_cut = sought[-1:] == "\u2026" or sought[-3:] == "..."
        whole = whole_numbers(asked, text, sought)
        return shares(key, asked, text, sought) or (is_cut and whole and key[: len(asked)] == asked)
    if way in ("bare", "contained bare"):
        return bool(bare) and (key == bare if way == "bare" else shares(key, bare, text, sought))
    if way in ("named", "begun"):
        begins = len(named.split()) > 1 and key.startswith(named) and shares(key, named, text, sought)
        return bool(named) and named != bare and (key == named if way == "named" else begins)
    alike = 200 * longest_common(key, asked) / (len(key) + len(asked)) >= threshold
    return alike and only_typos(key.split(), asked.split())


def shares(key: str, asked: str, text: str, sought: str) -> bool:
    words, wanted = key.split(), asked.split()
    if is_run(wanted, words):
        return whole_numbers(asked, text, sought)
    return is_run(words, wanted) and len(words) >= len(wanted) / 2 and whole_numbers(key, text, sought)


def whole_numbers(run: str, text: str, sought: str) -> bool:
    in_text, in_sought = numbers(text), numbers(sought)
    allowed = {part for number in in_text if number in in_sought for part in re.split("[.,:]", number)}
    return all(digits in allowed for digits in re.findall("[0-9]+", run))


def numbers(text: str) -> list[str]:
    found = re.findall(r"[0-9]+(?:[.,:][0-9]+)*", text)
    return [re.sub(r"[.,]00?$", "", number) for number in found]


def only_typos(a: list[str], b: list[str]) -> bool:
    """The words are the same, in order, but for articles and typing errors: every way to pair runs of them is tried."""
    if not a and not b:
        return True
    skips = [(x[1:], y) for x, y in ((a, b), (b, a)) if x and x[0] in ("a", "an", "the")]
    return any(only_typos(*rest) for rest in skips) or any(
        (is_typo(a[0], b[0]) if i == j else joined(a[:i]) == joined(b[:j])) and only_typos(a[i:], b[j:])
        for i in range(1, min(len(a), 3) + 1)
        for j in range(1, min(len(b), 3) + 1)
        if i == 1 or j == 1
    )


def joined(words: list[str]) -> str:
    """Numbers stay apart."""
    out = words[0]
    for word in words[1:]:
        out += " " + word if out[-1].isdigit() and word[0].isdigit() else word
    return without_accents(out)


def is_typo(one: str, other: str) -> bool:
    x, y = without_accents(one), without_accents(other)
    if x == y:
        return True
    if x[:1] != y[:1] or is_code(x) or is_code(y):
        return False
    if len(x) > len(y):
        x, y = y, x
    if len(x) == len(y):
        wrong = [i for i in range(len(x)) if x[i] != y[i]]
        swapped = (
            len(wrong) == 2 and wrong[0] + 1 == wrong[1] and x[wrong[0]] + x[wrong[1]] == y[wrong[1]] + y[wrong[0]]
        )
        return swapped or (len(wrong) == 1 and len(x) >= 5 and wrong != [len(x) - 1])
    return x in (y[:i] + y[i + 1 :] for i in range(len(y)))


def without_accents(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not "\u0300" <= c <= "\u036f")


def is_code(word: str) -> bool:
    is_roman, is_mute = set(word) <= set("ivxlcdm"), set(word) <= set("bcdfghjklmnpqrstvwxz")
    return is_roman or is_mute or any(c.isdigit() for c in word)


def without_type(text: str) -> str:
    quoted = re.findall('["\u201c\u201d]([^"\u201c\u201d]+)["\u201c\u201d]', text)
    if not quoted:
        quoted = re.findall(r"(?:^|(?<=\W))['\u2018]([^'\u2018\u2019]+)['\u2019](?=\W|$)", text)
    if len(quoted) == 1:
        return plain(quoted[0])
    words = plain(re.sub(r"\[[^\[\]]*\]|\([^()]*\)", " ", text)).split()
    kept = [i for i, word in enumerate(words) if word not in TYPE_WORDS]
    words = words[: kept[-1] + 1] if kept else []
    return " ".join(words[next((i for i, w in enumerate(words) if w not in ("a", "an", "the")), 0) :])


def is_run(short: list[str], long: list[str]) -> bool:
    """Without a negation right before it."""
    places = [i for i in range(len(long) - len(short) + 1) if long[i : i + len(short)] == short]
    return any(not i or long[i - 1] not in "no not non dont never without".split() for i in places)


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
    text = re.sub(r"(?<=\d)[.,]00?(?!\d|[.,:]\d)", "", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = "".join(char for char in folded if char not in "'`\u2018\u2019\u02bc\u00b4\u00ad\u200b\u200c\u200d\ufeff")
    folded = re.sub(r"\b(un|de|dis|non)-(?=[a-z])", r"\1", folded)
    out = ""
    for char in folded:
        out += char if char.isalnum() or unicodedata.category(char).startswith("M") else " "
    if out.split():
        return " ".join(out.split())
    signs = unicodedata.normalize("NFKC", text)
    for one, others in ("x", "×✕✖✗✘╳⨯"), (">", "›»→▶❯⟩▸"), ("<", "‹«←◀❮⟨◂"), ("-", "−–—‐‑"):
        signs = "".join(one if sign in others else sign for sign in signs)
    return " ".join(signs.split())


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
    kind = element.get("type", "") if element.tag == "input" else ""
    if element.tag == "select":
        chosen = [o for o in options if o.get("option_selected")] or options[:1]
        found += [option_text(o) for o in chosen]
    else:
        held = [element.get(name, "") for name in ("input_value", "text_value", "value")]
        hidden = kind in ("checkbox", "radio", "hidden", "image", "password", "file")
        found += held if any(held) and not hidden else [BROWSER_WORDS.get(kind, "")]
    found += [element.get("title", ""), element.get("label", ""), *label_texts(root, element)]
    found += [option_text(o) for o in options]
    shown = [t for t in map(squeezed, found) if t]
    return shown or ([] if words_below(element) else [t for t in map(squeezed, names(element, kind)) if t])


def names(element: Element, kind: str) -> list[str]:
    value = telling(element.get("value", "")) if kind in ("checkbox", "radio") else ""
    name = telling(element.get("name", "")) if type_of(element) else ""
    parts = list(element.iter())
    icons = [icon_name(e) for e in parts] if len(parts) <= MAX_ICON_NODES else []
    return [value or name, " ".join(n for n in icons if n), ASKED_FOR.get(kind, "")]


def telling(name: str) -> str:
    words = in_words(name)
    says_nothing = words.lower() in ("on", "off", "true", "false", "yes", "no")
    return "" if says_nothing or not any(c.isalpha() for c in words) else words


def in_words(name: str) -> str:
    apart = "".join(
        " " + c if "A" <= c <= "Z" and i and re.match("[a-z0-9]", name[i - 1]) else c for i, c in enumerate(name)
    )
    return " ".join("".join(" " if c == "_" or not re.match(r"\w", c) else c for c in apart).split())


def icon_name(element: Element) -> str:
    name = element.get("name", "") or (element.get("class", "") if element.tag == "svg" else "")
    words = in_words(name).split() if is_icon(element) else []
    return " ".join(w for w in words if w.lower() not in ("icon", "icons", "ico", "ic", "svg", "img", "image", "glyph"))


def is_icon(element: Element) -> bool:
    if element.tag in ("img", "svg", "image"):
        return True
    others = "text option optgroup input select textarea iframe frame embed object source param".split()
    return not len(element) and not element.text and not type_of(element) and element.tag not in others


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
        if pictures and is_icon(e):
            words += (e.get("aria_label") or e.get("alt") or e.get("title") or "").split()
    return words


def short(words: list[str]) -> str:
    return " ".join(words) if len(words) <= MAX_WORDS else ""


def option_text(option: Element) -> str:
    return short(words_below(option, in_options=True)) or option.get("label", "")


# --- labels ---


def label_texts(root: Element, element: Element) -> list[str]:
    by_id = {e.get("id"): e for e in reversed(list(root.iter())) if e.get("id")}
    named = [by_id[i] for i in element.get("aria_labelledby", "").split() if i in by_id]
    if named:
        return [" ".join(w for e in named for w in short(words_below(e)).split())]
    owners = {label: owner_of(label, by_id) for label in root.iter("label")}
    labels = [label for label, owner in owners.items() if owner is element]
    if not labels and is_field(element):
        taken = {label for label, owner in owners.items() if owner is not None}
        beside = beside_field(element, taken)
        labels = [] if beside is None else [beside]
    return [t for label in labels for t in (" ".join(own_words(label)), short(words_below(label, less=element)))]


def owner_of(label: Element, by_id: dict[str, Element]) -> Element | None:
    named = by_id.get(label.get("for", ""))
    inside = [e for e in label.iterdescendants() if is_field(e)]
    return named if named is not None else next(iter(inside), None)


def beside_field(field: Element, taken: set[Element]) -> Element | None:
    is_pressed = field.get("type", "") in ("checkbox", "radio")
    inner = field
    for _ in range(MAX_WRAPPERS):
        wrapper = inner.getparent()
        if wrapper is None:
            return None
        alone = [e for e in wrapper.iter() if is_field(e) and e is not wrapper] == [field]
        alone = alone and not is_field(wrapper)
        before, after = list(inner.itersiblings(preceding=True)), list(inner.itersiblings())
        if is_pressed:
            sides = [nearest(after, taken)] + ([nearest(before, taken)] if alone else [])
        else:
            floating = [
                s for s in after[:1] if alone and s.tag == "label" and words_below(s) and not is_taken(s, taken)
            ]
            sides = [nearest(before, taken), *((label, True) for label in floating)]
        for found, _ in sides:
            if found is not None:
                return found
        if any(in_the_way for _, in_the_way in sides) or (is_pressed and not alone):
            return None
        inner = wrapper
    return None


def nearest(siblings: list[Element], taken: set[Element]) -> tuple[Element | None, bool]:
    """The one that speaks for the field, and whether anything is in the way."""
    upto = next((i for i, s in enumerate(siblings) if any(is_field(e) for e in s.iter())), len(siblings))
    saying = [s for s in siblings[:upto] if words_below(s)]
    label = next((s for s in saying if s.tag == "label" and not is_taken(s, taken)), None)
    if label is not None:
        return label, True
    if saying and not is_taken(saying[0], taken) and is_caption(saying[0]):
        return saying[0], True
    return None, bool(saying) or upto < len(siblings)


def is_taken(element: Element, taken: set[Element]) -> bool:
    return any(e in taken for e in element.iter())


def is_caption(element: Element) -> bool:
    free = [e for e in element.iter() if (e.text or "").strip() and not any(type_of(a) for a in chain_to(e, element))]
    return bool(free) and len(words_below(element)) <= MAX_CAPTION_WORDS


def chain_to(inner: Element, outer: Element) -> list[Element]:
    chain = [inner]
    while chain[-1] is not outer:
        chain.append(chain[-1].getparent())
    return chain


def is_field(element: Element) -> bool:
    if element.tag == "input":
        return element.get("type", "") not in ("hidden", "button", "submit", "reset", "image")
    return type_of(element) in ("TEXTBOX", "SELECTBOX")

"""Words as they are compared, those written on a page and those that a reply says are written there; and the types of
elements in both."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import dropwhile, pairwise

MAX_WORDS = 60
MAX_LENGTH = 1000
"""Characters of a text."""

_JOINED = str.maketrans(dict.fromkeys("'`\u2018\u2019\u02bc\u00b4\u00ad\u200b\u200c\u200d\ufeff", ""))
"""Apostrophes and invisible characters part no words."""
_ALIKE = str.maketrans(
    {sign: plain for plain, signs in {"x": "×✕✖✗✘╳⨯", ">": "›»→▶❯⟩▸", "<": "‹«←◀❮⟨◂", "-": "−–—‐‑"}.items() for sign in signs}
)  # fmt: skip
"""Signs that look alike, as one types them."""
_SIGNS = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PREFIX = re.compile(r"\b(un|de|dis|non)-(?=[a-z])")
"""A hyphen after these parts no words: `de-select` is the opposite of `select`."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# `$5.00` is `$5`, while `1.00.5` and `1,000` stay
_NO_CENTS = re.compile(r"(?<=\d)[.,]00?(?!\d|[.,:]\d)")
_DIGITS = re.compile(r"\d+")
_RUNS = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (0, 1), (1, 0))
"""Numbers of words of one text that may stand for so many of the other: `sign up`, `signup`."""
ARTICLES = frozenset({"a", "an", "the"})
_NEGATIONS = frozenset({"no", "not", "non", "dont", "never", "without"})
_BETWEEN = re.compile(r"(?<!\d) | (?!\d)")
"""A space that does not part two numbers."""
_CODE = re.compile(r"\w*\d\w*|[ivxlcdm]+|[b-df-hj-np-tv-xz]+")
"""A word with a digit, a Roman numeral, or letters without a vowel, such as sizes and time zones."""


def collapsed(text: str) -> str:
    """The first words, with single spaces between them."""
    # cut early: a reply may hold megabytes, with or without spaces
    return " ".join(text.split(maxsplit=MAX_WORDS)[:MAX_WORDS])[:MAX_LENGTH].rstrip()


def normalised(text: str) -> str:
    """The words in their plain form, with single spaces; of a text of signs alone the signs, those that look alike as
    one.

    Cents that are zero are left out: `$1,199.00` is `$1,199`.
    """
    text = _NO_CENTS.sub("", text)
    if text.isascii():
        plain = _PREFIX.sub(r"\1", text.lower().replace("'", "").replace("`", ""))
        words = " ".join(_SIGNS.sub(" ", plain).split())
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        plain = _PREFIX.sub(r"\1", folded.translate(_JOINED))
        # marks belong to words: in Hindi or Thai they are the vowels
        words = " ".join("".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in plain).split())
    return words or " ".join(unicodedata.normalize("NFKC", text).translate(_ALIKE).split())


def spelt_out(name: str) -> str:
    """A name of code as words: `addToCart`, `add_to_cart` and `btn$addToCart`."""
    return " ".join(_SIGNS.sub(" ", _HUMP.sub(" ", name)).split())


# --- texts that are nearly the same ---


def are_whole(words: str, *texts: str) -> bool:
    """Tells whether all numbers among words that texts as written share are numbers in each of them: 9 is not in
    `9.5`."""
    digits = _DIGITS.findall(words)
    if not digits:
        return True
    shared = set.intersection(*(set(_NUMBER.findall(_NO_CENTS.sub("", text))) for text in texts))
    return {part for number in shared for part in _DIGITS.findall(number)}.issuperset(digits)


def contains(text: str, part: str) -> bool:
    """Tells whether the words of `part` stand together in `text`, both normalised, without a negation right before
    them."""
    words, wanted = f" {text} ", f" {part} "
    place = words.find(wanted)
    while place >= 0:
        if words[words.rfind(" ", 0, place) + 1 : place] not in _NEGATIONS:
            return True
        # one place may begin inside of another: `no 9 9` has a 9 without a negation
        place = words.find(wanted, place + 1)
    return False


def differ_by_typos(text: str, other: str) -> bool:
    """Tells whether two normalised texts have the same words but for articles, spaces, accents and a typing error in
    each.

    Codes and numbers (`_CODE`) are equal or other ones. So are words that begin differently (`check`, `uncheck`). The
    error is a letter too many or too few, two swapped, or, inside a word of five letters or more, another letter.
    """
    a, b = text.split(), other.split()
    # how many words of each are paired
    paired = {(0, 0)}
    while paired and (len(a), len(b)) not in paired:
        ends = {(i, j, i + m, j + n) for i, j in paired for m, n in _RUNS if i + m <= len(a) and j + n <= len(b)}
        paired = {(m, n) for i, j, m, n in ends if _are_alike(a[i:m], b[j:n])}
    return bool(paired)


def _are_alike(first: list[str], second: list[str]) -> bool:
    """Tells whether two words differ by one typing error at most, by spaces, or by an article too many."""
    from rapidfuzz.distance import OSA

    if not first or not second:
        return (first or second)[0] in ARTICLES

    # accents of Latin, Greek and Cyrillic script go; marks of other scripts tell words apart
    a, b = (
        "".join(c for c in unicodedata.normalize("NFKD", joined) if not "\u0300" <= c <= "\u036f")
        for joined in (_BETWEEN.sub("", " ".join(words)) for words in (first, second))
    )
    if a == b or len(first) != len(second):
        return a == b
    if a[:1] != b[:1] or _CODE.fullmatch(a) or _CODE.fullmatch(b) or OSA.distance(a, b) > 1:
        return False
    return len(a) != len(b) or sorted(a) == sorted(b) or (len(a) >= 5 and a[-1] == b[-1])


# --- types of elements ---

BUTTON, TEXTBOX, SELECTBOX, LINK = "BUTTON", "TEXTBOX", "SELECTBOX", "LINK"
TYPES = (BUTTON, TEXTBOX, SELECTBOX, LINK)

LOOK_ALIKES = {BUTTON: (LINK, SELECTBOX), LINK: (BUTTON,), TEXTBOX: (SELECTBOX,), SELECTBOX: (BUTTON, TEXTBOX)}
"""Types that look alike on a picture: links drawn as buttons, lists opened by one, fields that suggest entries."""
TAG_TYPES = {
    "button": BUTTON, "summary": BUTTON, "a": LINK, "area": LINK, "select": SELECTBOX, "textarea": TEXTBOX,
}  # fmt: skip
INPUT_TYPES = {
    "button": BUTTON, "submit": BUTTON, "reset": BUTTON, "image": BUTTON, "checkbox": BUTTON, "radio": BUTTON, "file": BUTTON,
    "color": BUTTON, "range": "", "hidden": "",
}  # fmt: skip
"""Any other is a TEXTBOX, as in browsers."""
ROLE_TYPES = {
    "button": BUTTON, "tab": BUTTON, "menuitem": BUTTON, "menuitemcheckbox": BUTTON, "menuitemradio": BUTTON, "option": BUTTON,
    "checkbox": BUTTON, "radio": BUTTON, "switch": BUTTON, "treeitem": BUTTON, "gridcell": BUTTON, "textbox": TEXTBOX,
    "searchbox": TEXTBOX, "spinbutton": TEXTBOX, "combobox": SELECTBOX, "listbox": SELECTBOX, "link": LINK,
}  # fmt: skip
ASKED_TYPES = {
    BUTTON: (
        "BUTTON", "BTN", "SUBMIT", "ICON", "CHECKBOX", "CHECK", "RADIO", "RADIOBUTTON", "TAB", "TOGGLE", "SWITCH", "OPTION",
        "MENUITEM", "LISTITEM", "TREEITEM", "GRIDCELL", "CHIP", "PILL",
    ),
    TEXTBOX: (
        "TEXTBOX", "INPUT", "INPUTBOX", "FIELD", "TEXTAREA", "TEXTFIELD", "SEARCHBOX", "SEARCHBAR", "SEARCHFIELD", "SPINBUTTON",
        "TEXTINPUT", "INPUTFIELD",
    ),
    SELECTBOX: (
        "SELECTBOX", "SELECT", "DROPDOWN", "DROPDOWNLIST", "COMBOBOX", "COMBO", "LISTBOX", "PICKER", "SELECTLIST", "SELECTOR",
    ),
    LINK: ("LINK", "HYPERLINK", "ANCHOR", "A"),
}  # fmt: skip
_ASKED = {word: kind for kind, words in ASKED_TYPES.items() for word in words}

TYPE_WORDS = frozenset(
    """button btn icon checkbox radio tab toggle switch option link hyperlink textbox input field textarea box bar
    dropdown list menu selectbox select combobox labeled labelled""".split()
)
"""Words around a text that say what bears it, in small letters; articles stand before it."""
_QUOTED = re.compile(r"[\"\u201c\u201d]([^\"\u201c\u201d]+)[\"\u201c\u201d]")
_QUOTED_SINGLY = re.compile(r"(?<!\w)['\u2018]([^'\u2018\u2019]+)['\u2019](?!\w)")
_REMARK = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")

_FIELDS = frozenset({"input", "select", "textarea"})


def element_type(tag: str, attributes: Mapping[str, str]) -> str:
    """One of TYPES, or empty for an element without a type of its own.

    Form fields are what their tag says, whatever their role: a text box that suggests entries is written into.
    """
    tag = tag.lower()
    if tag == "input":
        return INPUT_TYPES.get(attributes.get("type", "").strip().lower(), TEXTBOX)
    if tag in _FIELDS:
        return TAG_TYPES[tag]
    role = (attributes.get("role") or attributes.get("aria_role") or "").lower().split()
    return ROLE_TYPES.get(role[0], "") if role and role[0] in ROLE_TYPES else TAG_TYPES.get(tag, "")


def asked_type(text: str) -> str:
    """The type that a reply's words name: one of TYPES, or empty for any (none known, or more than one).

    Each word counts, and two words as one: `Drop-down list`, `input field`, `RADIO BUTTON`.
    """
    words = [word.upper() for word in normalised(text[:200]).split()]
    names = [word for word in (*words, *(a + b for a, b in pairwise(words))) if len(word) > 1]
    whole = _ASKED.get("".join(words))
    kinds = {whole} if whole else {_ASKED[name] for name in names if name in _ASKED}
    return kinds.pop() if len(kinds) == 1 else ""


def bare_text(text: str) -> str:
    """A reply's text, normalised, less what it says about the element: `the "Go" button`, `Location field`, `Go (an
    icon)`.

    That is what it quotes, if just one thing; else what is left without remarks in brackets, TYPE_WORDS at the end and
    articles in front. Empty where nothing but TYPE_WORDS is left.
    """
    quoted: list[str] = _QUOTED.findall(text) or _QUOTED_SINGLY.findall(text)
    if len(quoted) == 1:
        return normalised(quoted[0])
    words = normalised(_REMARK.sub(" ", text)).split()
    while words and words[-1] in TYPE_WORDS:
        words.pop()
    return " ".join(dropwhile(ARTICLES.__contains__, words))


def without_leading_type(text: str) -> str:
    """A normalised text without TYPE_WORDS in front, which may be verbs: `dropdown size`, but also `select all`, `link
    account`."""
    return " ".join(dropwhile((TYPE_WORDS | ARTICLES).__contains__, text.split()))

"""Types of elements, and the types that a reply's words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import dropwhile, pairwise

from seeact_offline.pages.wording import ARTICLES, normalised

BUTTON, TEXTBOX, SELECTBOX, LINK = "BUTTON", "TEXTBOX", "SELECTBOX", "LINK"
TYPES = (BUTTON, TEXTBOX, SELECTBOX, LINK)

LOOK_ALIKES = {
    BUTTON: (LINK, SELECTBOX),
    LINK: (BUTTON,),
    TEXTBOX: (SELECTBOX,),
    SELECTBOX: (BUTTON, TEXTBOX),
}
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
    """A reply's text, normalised, less what it says about the element: `the "Go" button`, `Location field`, `Go (an icon)`.

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
    """A normalised text without TYPE_WORDS in front, which may be verbs: `dropdown size`, but also `select all`, `link account`."""
    return " ".join(dropwhile((TYPE_WORDS | ARTICLES).__contains__, text.split()))
